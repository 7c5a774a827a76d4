"""Makes agents, all of them or some, from data, a graph and settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._data.graph import Network
from .._lattice.keys import new_lattice_keypair
from .._lattice.seal import binding
from .._paillier.keys import (
    new_keypair,
    valid_key_size,
)
from .agent import ConsensusAgent
from .ciphers import Cipher, PaillierCipher, PlainCipher, SimulatedCipher
from .lattice_cipher import LatticeCipher
from .masks import MaskStream
from .settings import AgentSettings


def cipher_maker(
    encryption: str | None, n_agents: int, key_size: int, key_scheme: str
) -> Callable[[], Cipher]:
    """Return what makes an agent's cipher; each calls it for itself.

    Parameters
    ----------
    encryption : {"paillier", "bfv", "simulated"} or None
        The estimator's.
    n_agents : int
        Number of agents; one alone has nobody to hide anything from.
    key_size, key_scheme
        As for `PrivateDistributedNMF`.

    Returns
    -------
    callable
        Without arguments; keys are fresh at each call.

    Raises
    ------
    ValueError
        If the scheme has no keys of this size, simulated or not.
    ImportError
        If SEAL's binding is not installed.
    """
    if encryption is None or n_agents == 1:
        return PlainCipher
    if encryption == "bfv":
        binding()  # before any work is done
        return _fresh_lattice_cipher
    valid_key_size(key_size, key_scheme)  # what is simulated could be encrypted
    if encryption == "simulated":
        return partial(SimulatedCipher, key_size)
    return partial(_fresh_cipher, key_size, key_scheme)


def _fresh_cipher(key_size: int, key_scheme: str) -> PaillierCipher:
    """Make a cipher with a fresh key."""
    return PaillierCipher(new_keypair(key_size, key_scheme)[1])


def _fresh_lattice_cipher() -> LatticeCipher:
    """Make a cipher with a fresh key."""
    return LatticeCipher(new_lattice_keypair())


def make_agents(
    parts: Sequence[Any],
    names: Sequence[str],
    network: Network,
    start: NDArray[np.float64],
    settings: AgentSettings,
    make_cipher: Callable[[], Cipher],
    mask_seeds: list[int] | None,
    run: bytes,
    observed: bool = True,
    recorder: Any = None,
    numbers: Sequence[int] | None = None,
) -> list[ConsensusAgent]:
    """Make one agent for each part of the data.

    Parameters
    ----------
    parts : sequence of ndarray or sparse matrix of shape (n_i, F)
        The agents' samples.
    names : sequence of str
        What errors call the agents.
    network : Network
        The graph; node i is agent i.
    start : ndarray of shape (K, F)
        Common start of the left factor.
    settings : AgentSettings
        Common to all agents.
    make_cipher : callable
        What `cipher_maker` returned.
    mask_seeds : list of int or None
        Seeds of the masks, of which each agent is handed one of its own; None has
        every agent draw from the operating system.
    run : bytes
        16 bytes that name the run.
    observed : bool, default=True
        As for `ConsensusAgent`.
    recorder : object or None, default=None
        Of an audit.
    numbers : sequence of int or None, default=None
        Whose the parts are. None makes all agents of the roster.

    Returns
    -------
    list of ConsensusAgent
        In the order of the parts.
    """
    streams: list[MaskStream | None] = [None] * network.n_agents
    if mask_seeds is not None:
        seeds = np.random.SeedSequence(mask_seeds).spawn(network.n_agents)
        streams = [MaskStream.from_seed(seed) for seed in seeds]
    degrees = network.degrees
    return [
        ConsensusAgent(
            i,
            names,
            part,
            start,
            network.neighbours[i],
            degrees[network.neighbours[i]],
            settings,
            make_cipher,
            streams[i],
            run,
            observed,
            None if recorder is None else recorder.of(i),
        )
        for i, part in zip(
            range(len(parts)) if numbers is None else numbers, parts, strict=True
        )
    ]
