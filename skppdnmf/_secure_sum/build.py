"""Makes the agents of one process for the secure sum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._consensus.masks import system_generator
from .._data.graph import Network
from .agent import SumAgent
from .exchange import SecureSum
from .key_graph import key_degree, make_key_graph
from .left_factor import LeftPath, PathSettings
from .tree import SpanningTrees

# By default as many starts are followed as keep the masks that an agent makes for an
# exchange within this many words (512 KiB), so that they cost little time.
_MASK_WORDS = 1 << 16
_MOST_STARTS = 8
_FEWEST_PEERS = 8  # that count: without masks the rest costs as much


def count_starts(
    n_init: int | str, n_components: int, n_features: int, n_peers: int
) -> int:
    """Return how many random starts are followed side by side.

    Parameters
    ----------
    n_init : int or "auto"
        The estimator's.
    n_components, n_features : int
        K and F.
    n_peers : int
        With how many others each agent shares a key.

    Returns
    -------
    int
        Under "auto" 1 to 8, the more the smaller the left factor.

    Examples
    --------
    >>> from skppdnmf._secure_sum.build import count_starts
    >>> count_starts("auto", 10, 64, 9), count_starts("auto", 49, 361, 9)
    (8, 1)
    """
    if not isinstance(n_init, str):
        return int(n_init)
    words = n_components * n_features * max(n_peers, _FEWEST_PEERS)
    return max(1, min(_MOST_STARTS, _MASK_WORDS // words))


def plan_sums(
    estimator: Any, n_agents: int, n_components: int, n_features: int
) -> tuple[int, int]:
    """Return what the estimator's parameters come to for a federation of this size.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters.
    n_agents, n_components, n_features : int
        Sizes.

    Returns
    -------
    degree : int
        With how many others each agent shares a key.
    n_starts : int
        Starts that are followed side by side; one where `init` gives it.
    """
    degree = estimator.key_degree
    degree = key_degree(n_agents) if degree is None else int(degree)
    if not (isinstance(estimator.init, str) and estimator.init == "random"):
        return degree, 1
    return degree, count_starts(estimator.n_init, n_components, n_features, degree)


def random_starts(
    first: NDArray[np.float64], n_starts: int, seed: int
) -> NDArray[np.float64]:
    """Return the first start and others drawn as it was.

    Parameters
    ----------
    first : ndarray of shape (K, F)
        The common start.
    n_starts : int
        Number of starts.
    seed : int
        Public seed of the random start.

    Returns
    -------
    ndarray of shape (n_starts, K, F)
    """
    rng = np.random.RandomState(seed)
    drawn = np.abs(rng.standard_normal((n_starts, *first.shape)))
    drawn[0] = first
    return drawn


def make_sum_agents(
    parts: list[Any],
    names: list[str],
    network: Network,
    starts: NDArray[np.float64],
    settings: PathSettings,
    degree: int,
) -> list[SumAgent]:
    """Make one agent for each part of the data.

    Parameters
    ----------
    parts : list of ndarray or sparse matrix of shape (n_i, F)
        The agents' samples.
    names : list of str
        What errors call the agents.
    network : Network
        The graph; node i is agent i.
    starts : ndarray of shape (S, K, F)
        Common starts of the left factor.
    settings : PathSettings
        Common to all agents.
    degree : int
        With how many others each agent shares a key.

    Returns
    -------
    list of SumAgent
        Agent i has number i. All share one `LeftPath`, which each would compute to
        the same bits.

    Raises
    ------
    ValueError
        If the degree does not fit the number of agents.
    OverflowError
        If a total could wrap.
    """
    n_agents = len(parts)
    path = LeftPath(starts, settings)
    path.fixed_point.check(sum(part.shape[0] for part in parts))
    trees = SpanningTrees(network)
    # The sums are exact: which pairs share a key has no effect on the result.
    key_graph = (
        make_key_graph(n_agents, degree, system_generator())
        if n_agents > 1
        else [np.empty(0, dtype=np.intp)]
    )
    return [
        SumAgent(
            i,
            names[i],
            parts[i],
            path,
            SecureSum(i, names[i], trees, key_graph, network.neighbours[i].tolist()),
        )
        for i in range(n_agents)
    ]
