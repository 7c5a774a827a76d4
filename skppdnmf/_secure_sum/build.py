"""Makes the agents of the secure sum, all of them or some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._agent import Agent
from .._data.graph import Network
from .._nmf.blocks import one_by_one
from .._protocol import call, nobody
from .._sealing.credentials import Credentials
from .agent import SumAgent
from .beta_agent import BetaAgent
from .beta_path import BetaPath
from .exchange import SecureSum
from .key_graph import key_graph_of
from .left_factor import LeftPath
from .noisy_agent import NoisyAgent
from .noisy_path import NoisyPath
from .pairs import SharedPairs
from .settings import NoiseSettings, PathSettings
from .side_by_side import SideBySide
from .totals import Memory
from .tree import SpanningTrees


def make_sum_agents(
    parts: Sequence[Any],
    names: Sequence[str],
    network: Network,
    starts: NDArray[np.float64],
    settings: PathSettings | NoiseSettings,
    degree: int,
    seed: int,
    run: bytes,
    compute: Callable[..., Any] = call,
    recorder: Any = None,
    numbers: Sequence[int] | None = None,
    credentials: Callable[[int], Credentials | None] = nobody,
    memory: Memory | None = None,
    share: Callable[..., list[Any]] = one_by_one,
    together: bool = False,
) -> list[Agent]:
    """Make one agent for each part of the data.

    Parameters
    ----------
    parts : sequence of ndarray, sparse matrix or WeightedSamples of shape (n_i, F)
        The agents' samples.
    names : sequence of str
        What errors call the agents.
    network : Network
        The graph; node i is agent i.
    starts : ndarray of shape (S, K, F)
        Common starts of the left factor.
    settings : PathSettings or NoiseSettings
        Common to all agents; the latter for fits with noise.
    degree : int
        With how many others each agent shares a key.
    seed : int
        The run's public seed, from which all agents derive the key graph.
    run : bytes
        16 bytes that name the run.
    compute : callable, default=call
        As in `skppdnmf._protocol.Hooks`.
    recorder : object or None, default=None
        Of an audit.
    numbers : sequence of int or None, default=None
        Whose the parts are. None makes all agents of the roster.
    credentials : callable, default=nobody
        As in `skppdnmf._protocol.Hooks`.
    memory : Memory or None, default=None
        Totals of earlier samples.
    share : callable, default=one_by_one
        As in `skppdnmf._protocol.Hooks`.
    together : bool, default=False
        As in `skppdnmf._protocol.Hooks`.

    Returns
    -------
    list of SumAgent, NoisyAgent or BetaAgent
        In the order of the parts.

    Raises
    ------
    ValueError
        If the degree does not fit the number of agents.
    OverflowError
        If a total could wrap.
    """
    pairs = SharedPairs() if together else None
    beside = SideBySide() if together and len(parts) > 1 else None
    Party: Any = partial(SumAgent, share=share, beside=beside)
    path: Any
    if isinstance(settings, NoiseSettings):
        Party, path = NoisyAgent, NoisyPath(starts[0], settings)
    elif settings.beta != 2:
        Party, path = BetaAgent, BetaPath(starts, settings)
    else:
        path = LeftPath(starts, settings, memory)
    trees = SpanningTrees(network)
    key_graph = key_graph_of(network.n_agents, degree, seed)
    agents = []
    numbers = range(len(parts)) if numbers is None else numbers
    for i, part in zip(numbers, parts, strict=True):
        notes = None if recorder is None else recorder.of(i)
        sums = SecureSum(
            i,
            names[i],
            trees,
            key_graph,
            network.neighbours[i].tolist(),
            notes,
            credentials(i),
            pairs,
        )
        neighbours = network.neighbours[i].tolist()
        agents.append(
            Party(i, names, part, path, sums, neighbours, run, compute, notes)
        )
    return agents
