"""Makes the agents of one process from data, a graph and parameters."""

from __future__ import annotations

import math
import secrets
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state

from .._data.graph import Network
from .._paillier.keys import (
    SECURE_KEY_SIZE,
    new_keypair,
    valid_key_size,
    warn_insecure,
)
from .agent import Agent
from .ciphers import Cipher, PaillierCipher, PlainCipher, SimulatedCipher
from .masks import MaskStream
from .scale import plan_averaging
from .settings import AgentSettings

# Ties between agents that are broken with regard to the graph, then by number.
_MOST_TIES = 32


class Seeds(NamedTuple):
    """Independent seeds for what may be reproducible.

    Parameters
    ----------
    graph, start : int
        Of the random graph and of the common start; both are public.
    masks : list of int
        Of the agents' masks and dithers, in runs of one process.
    """

    graph: int
    start: int
    masks: list[int]


def draw_seeds(random_state: Any) -> Seeds:
    """Draw all seeds at once, so that none depends on which others are used.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        The estimator's. With None the masks are seeded by the operating system, not
        by numpy's global generator.

    Returns
    -------
    Seeds
        One set.
    """
    rng = check_random_state(random_state)
    graph, start, *masks = rng.randint(0, 2**31 - 1, size=6).tolist()
    if random_state is None:
        masks = [secrets.randbits(32) for _ in range(8)]
    return Seeds(graph, start, masks)


def common_start(
    init: Any, n_components: int, n_features: int, seed: int, penalty_scaling: str
) -> NDArray[np.float64]:
    """Return the start of the left factor that all agents share.

    Parameters
    ----------
    init : {"random", "ones"} or ndarray of shape (K, F)
        Kind of start, or the start itself.
    n_components, n_features : int
        K and F.
    seed : int
        Public seed of the random start, independent of the data.
    penalty_scaling : {"data", "absolute"}
        Under "data" a given start is scaled by a power of two to entries around 1,
        the range that the fixed-point numbers are made for; the right factor takes
        up the scale.

    Returns
    -------
    ndarray of shape (K, F)
        Nonnegative, not all zero.
    """
    if isinstance(init, str):
        if init == "ones":
            return np.ones((n_components, n_features))
        rng = np.random.RandomState(seed)
        return np.abs(rng.standard_normal((n_components, n_features)))
    start = np.array(init, dtype=np.float64)
    if penalty_scaling == "data":
        start = np.ldexp(start, -round(math.log2(start[start > 0].mean())))
    return start


def canonical_order(parts: list[Any], adjacency: NDArray[np.int8]) -> NDArray[np.intp]:
    """Order the agents by what they hold, so that their numbering has no effect.

    The masks' seeds and the order of sums follow this order. Sums are compared to
    six digits relative to the whole: the order is the same for scaled, sparse and
    single precision data. Agents that hold the same, as relays do, are told apart by
    their neighbours, and their neighbours' neighbours.

    Parameters
    ----------
    parts : list of ndarray or sparse matrix of shape (n_i, F)
        The agents' samples.
    adjacency : ndarray of shape (N, N)
        The graph.

    Returns
    -------
    ndarray of int
        Position k holds the agent that comes k-th.
    """
    columns = [np.asarray(part.sum(axis=0), dtype=float).ravel() for part in parts]
    whole = sum(float(column.sum()) for column in columns) or 1.0
    ramp = np.linspace(0.0, 1.0, len(columns[0]))
    keys: list[Any] = [
        (part.shape[0], f"{column.sum() / whole:.5e}", f"{column @ ramp / whole:.5e}")
        for part, column in zip(parts, columns, strict=True)
    ]
    neighbours = [np.flatnonzero(row).tolist() for row in adjacency]
    ranks = _ranks(keys)
    for _ in range(_MOST_TIES):
        ranks = _refined(ranks, neighbours)
        tied = [k for k, rank in enumerate(ranks) if ranks.count(rank) > 1]
        if not tied:
            break
        # All that are tied look alike from everywhere: any may come first, and those
        # around it follow.
        first = min(tied, key=ranks.__getitem__)
        ranks = _ranks([(rank, k != first) for k, rank in enumerate(ranks)])
    return np.array(sorted(range(len(parts)), key=ranks.__getitem__), dtype=np.intp)


def _refined(ranks: list[int], neighbours: list[list[int]]) -> list[int]:
    """Tell agents of one rank apart by the ranks around them, as far as possible."""
    n_kinds = 0
    while n_kinds < len(set(ranks)) < len(ranks):
        n_kinds = len(set(ranks))
        around = [tuple(sorted(ranks[j] for j in row)) for row in neighbours]
        ranks = _ranks(list(zip(ranks, around, strict=True)))
    return ranks


def _ranks(keys: list[Any]) -> list[int]:
    """Places of the keys among the distinct ones."""
    places = {key: place for place, key in enumerate(sorted(set(keys)))}
    return [places[key] for key in keys]


def make_settings(network: Network, **parameters: Any) -> AgentSettings:
    """Add what follows from the public graph to the estimator's parameters."""
    eigenvalues = network.laplacian_eigenvalues
    connectivity = 1.0
    if network.n_agents > 1:
        product = float(eigenvalues[1] * eigenvalues[-1])
        connectivity = float(f"{math.sqrt(product):.10g}")
    return AgentSettings(
        n_agents=network.n_agents,
        diameter=network.diameter,
        connectivity=connectivity,
        averaging=plan_averaging(network.adjacency),
        leader=int(np.argmin(network.eccentricities)),
        leader_eccentricity=int(network.eccentricities.min()),
        **parameters,
    )


def make_ciphers(
    encryption: str | None,
    n_agents: int,
    key_size: int,
    key_scheme: str,
    n_jobs: int | None,
) -> list[Cipher]:
    """Make each agent's cipher; Paillier keys are fresh in every fit."""
    if encryption is None or n_agents == 1:
        return [PlainCipher() for _ in range(n_agents)]
    valid_key_size(key_size, key_scheme)  # what is simulated could be encrypted
    if encryption == "simulated":
        return [SimulatedCipher(key_size) for _ in range(n_agents)]
    if key_size < SECURE_KEY_SIZE:  # once, and not in a worker where no one sees it
        warn_insecure(key_size)
    # Before version 1.4 joblib took a given None for 1, whatever the context says.
    jobs = {} if n_jobs is None else {"n_jobs": n_jobs}
    keys = Parallel(**jobs, prefer="threads")(
        delayed(new_keypair)(key_size, key_scheme) for _ in range(n_agents)
    )
    return [PaillierCipher(private) for _, private in keys]


def make_agents(
    parts: list[NDArray | sparse.sparray],
    names: list[str],
    network: Network,
    start: NDArray[np.float64],
    settings: AgentSettings,
    ciphers: list[Cipher],
    mask_seeds: list[int],
) -> list[Agent]:
    """Make one agent for each part of the data.

    Parameters
    ----------
    parts : list of ndarray or sparse matrix of shape (n_i, F)
        The agents' samples.
    names : list of str
        What errors call the agents.
    network : Network
        The graph; node i is agent i.
    start : ndarray of shape (K, F)
        Common start of the left factor.
    settings : AgentSettings
        Common to all agents.
    ciphers : list of Cipher
        One for each agent.
    mask_seeds : list of int
        Seeds of the masks.

    Returns
    -------
    list of Agent
        Agent i has number i.
    """
    sequences = np.random.SeedSequence(mask_seeds).spawn(len(parts))
    degrees = network.degrees
    return [
        Agent(
            i,
            names[i],
            parts[i],
            start,
            network.neighbours[i],
            degrees[network.neighbours[i]],
            settings,
            ciphers[i],
            MaskStream.from_seed(sequences[i]),
        )
        for i in range(len(parts))
    ]
