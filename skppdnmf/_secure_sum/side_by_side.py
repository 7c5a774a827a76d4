"""Small right factors of agents of one process, swept side by side."""

from __future__ import annotations

import threading
import weakref
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._nmf.hals import hals

Array = NDArray[np.float64]

# Doubles of a right factor with which the interpreter costs more than the arithmetic,
# and of all that are swept at once, which stay in the processor's cache.
_SMALL = 1 << 14
_TOGETHER = 1 << 16


class Sweeper(Protocol):
    """What an agent tells of its next sweeps."""

    @property
    def number(self) -> int:
        """Of the agent."""
        ...

    @property
    def n_solved(self) -> int:
        """How often it has solved its right factors."""
        ...

    def next_sweeps(self, path: Any) -> tuple[Array, Array] | None:
        """Return linear terms and start at this point; None if it is not ready."""
        ...


class SideBySide:
    """Sweeps over the right factors of all agents when the first asks for its own.

    Agents of one process are at the same point of one path. Each problem is rounded as
    if it stood alone, so that an agent finds what it would have computed; what was
    prepared for another state than it is in then it does not take. An agent that moves
    to another process leaves this behind.
    """

    def __init__(self) -> None:
        # An agent that is let go takes its samples along.
        self._agents: list[weakref.ref[Any]] = []
        self._lock = threading.Lock()
        self._path: Any = None
        self._swept: dict[int, tuple[int, int, Array]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()

    def join(self, agent: Sweeper) -> None:
        """Have an agent's right factors swept with the others'."""
        self._agents.append(weakref.ref(agent))

    def take(self, agent: Sweeper, path: Any, sweeps: int) -> Array | None:
        """Return an agent's right factors after some sweeps.

        Parameters
        ----------
        agent : Sweeper
            Whose.
        path : LeftPath
            The point, the very object at which the others are.
        sweeps : int
            Passes over the rows.

        Returns
        -------
        ndarray of shape (S, K, n_i) or None
            None if the agent has to sweep by itself.
        """
        with self._lock:
            if self._path is not path:
                self._path, self._swept = path, {}
                self._sweep(path, sweeps)
            swept = self._swept.pop(agent.number, None)
        if swept is None or swept[:2] != (agent.n_solved, sweeps):
            return None
        return swept[2]

    def _sweep(self, path: Any, sweeps: int) -> None:
        """Sweep for all that are ready, those with as many samples at once."""
        groups: dict[Any, list[tuple[Sweeper, Array, Array]]] = {}
        for reference in self._agents:
            agent = reference()
            ready = None if agent is None else agent.next_sweeps(path)
            if ready is None or ready[1].size > _SMALL:
                continue
            shape = ready[1].shape
            group = groups.setdefault(shape, [])
            group.append((agent, *ready))
            if (len(group) + 1) * ready[1].size > _TOGETHER:
                self._sweep_some(path.gram, groups.pop(shape), sweeps)
        for group in groups.values():
            self._sweep_some(path.gram, group, sweeps)

    def _sweep_some(
        self, gram: Array, group: list[tuple[Sweeper, Array, Array]], sweeps: int
    ) -> None:
        """Sweep for agents with as many samples each."""
        agents, products, starts = zip(*group, strict=True)
        grams = np.concatenate([gram] * len(group))
        W = hals(grams, np.concatenate(products), np.concatenate(starts), sweeps)
        for agent, own in zip(agents, np.split(W, len(group)), strict=True):
            self._swept[agent.number] = agent.n_solved, sweeps, own
