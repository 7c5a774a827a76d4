"""Runs the code of an agent on guessed data, with the inputs that it received."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._agent import Agent
from .._averaging import MEAN_MASK_PRODUCT
from ..exchange import MASK_BITS, PlainCipher
from ._transcript import AgentView, Label


def exchanged_product(view: AgentView, victim: Label) -> NDArray[np.float64]:
    """Return ``g_ij g_ji (U_j - U_i)`` of each exchange of the left factor.

    Parameters
    ----------
    view : AgentView
        Agent i's.
    victim : label
        Its neighbour j.

    Returns
    -------
    ndarray of shape (n_rounds, K, F)
        What agent i itself adds to its multiplier; j adds the negative, up to less
        than half a unit of the fixed-point numbers.
    """
    shape = view.public.start.shape
    return np.array(
        [
            (one.answers[victim] * one.masks[victim]).astype(np.float64).reshape(shape)
            * (0.25**MASK_BITS / one.n_max)
            for one in view.left_rounds
        ]
    )


def masked_difference(view: AgentView, victim: Label) -> NDArray[np.float64]:
    """Return ``g_ji (U_j - U_i)`` of each exchange, with j's factor in [0.1, 1].

    Parameters
    ----------
    view : AgentView
        Agent i's.
    victim : label
        Its neighbour j.

    Returns
    -------
    ndarray of shape (n_rounds, K, F)
    """
    shape = view.public.start.shape
    return np.array(
        [
            one.answers[victim].astype(np.float64).reshape(shape)
            * (0.5**MASK_BITS / one.n_max)
            for one in view.left_rounds
        ]
    )


def own_values(view: AgentView) -> NDArray[np.float64]:
    """Return the attacker's own U of each exchange, as it was sent."""
    shape = view.public.start.shape
    return np.array(
        [
            one.values.astype(np.float64).reshape(shape) / one.n_max
            for one in view.left_rounds
        ]
    )


class Inputs:
    """The sums over its neighbours that a victim adds up, as the attacker sees them.

    A victim whose only neighbour is the attacker adds what the attacker knows. Of
    other neighbours the attacker sees nothing; it takes their left factors to be
    its own, as all copies come to be alike, and their masks to be the mean.

    Parameters
    ----------
    view : AgentView
        The attacker's.
    victim : label
        Its neighbour.
    """

    def __init__(self, view: AgentView, victim: Label) -> None:
        self._known = -exchanged_product(view, victim)
        self._own = own_values(view)
        n_others = len(view.public.neighbours(victim)) - 1
        self._others = n_others * MEAN_MASK_PRODUCT

    def __call__(self, t: int, U: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum in round t for the victim's U of that round."""
        if not self._others:
            return self._known[t]
        return self._known[t] + self._others * (self._own[t] - U)


class _Replayed(Agent):
    """An agent that keeps its U instead of sending it, and is told what it receives."""

    def __init__(self, *args: Any, inputs: Inputs, n_rounds: int, counts: list[int]):
        super().__init__(*args)
        self.trace: list[NDArray[np.float64]] = []
        self._left_exchange = _Received(self, inputs, n_rounds)  # type: ignore[assignment]
        self._left_count = _Counts(self, counts)  # type: ignore[assignment]
        self._fit_count = _Counts(self, None)  # type: ignore[assignment]

    def _begin_round(self, values: Any, active: Any, outbox: Any) -> None:
        """Keep the values; all neighbours have been heard."""
        self.trace.append(values)
        self._heard = len(self.neighbours)


class _Received:
    """Stands for the exchange: the sums that the victim received."""

    round = 0

    def __init__(self, agent: _Replayed, inputs: Inputs, n_rounds: int) -> None:
        self._agent = agent
        self._inputs = inputs
        self._n_rounds = n_rounds

    @property
    def complete(self) -> bool:
        """Whether there is a round left."""
        return len(self._agent.trace) < self._n_rounds

    def weighted_sum(self) -> NDArray[np.float64]:
        """Return the input of the present round."""
        U = self._agent.left.U.astype(np.float64, copy=False)
        return self._inputs(len(self._agent.trace) - 1, U)


class _Counts:
    """Stands for a stopping count: rounds end when they ended in the transcript."""

    value = 0

    def __init__(self, agent: _Replayed, counts: list[int] | None) -> None:
        self._agent = agent
        self._counts = counts

    def update(self, stopped: bool) -> None:
        """Nothing to count."""

    def reset(self) -> None:
        """Nothing to forget."""

    @property
    def all_stopped(self) -> bool:
        """Whether the transcript's loop ended here."""
        if self._counts is None:
            return False
        return self._agent._inner >= self._counts[self._agent.iteration]


class Replay:
    """Computes what a victim with guessed data would have sent.

    Parameters
    ----------
    view : AgentView
        The attacker's.
    victim : label
        Its neighbour.
    max_rounds : int or None, default=None
        Exchanges of the left factor to compute; all by default.

    Attributes
    ----------
    n_rounds : int
        Exchanges that are computed.
    """

    def __init__(
        self, view: AgentView, victim: Label, max_rounds: int | None = None
    ) -> None:
        public = view.public
        rounds = view.left_rounds[:max_rounds]
        self.n_rounds = len(rounds)
        self._counts = np.bincount([one.iteration for one in view.left_rounds]).tolist()
        self._inputs = Inputs(view, victim)
        node = public.node(victim)
        neighbours = np.flatnonzero(public.adjacency[node])
        degrees = public.adjacency.sum(axis=1)[neighbours]
        self._public = public
        self._arguments = (neighbours, degrees, public.settings, PlainCipher())
        self._node = node

    def __call__(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the U that a victim with these samples would have sent.

        Parameters
        ----------
        X : ndarray of shape (n, F)
            Guessed samples.

        Returns
        -------
        ndarray of shape (n_rounds, K, F)
        """
        public = self._public
        agent = _Replayed(
            self._node,
            "replayed agent",
            np.ascontiguousarray(X),
            public.start,
            *self._arguments,
            np.random.default_rng(0),
            inputs=self._inputs,
            n_rounds=self.n_rounds,
            counts=self._counts,
        )
        agent._first_solve()
        if public.settings.balanced:
            agent._set_unit(public.unit)
        agent._begin_left(public.scale, [])
        while len(agent.trace) < self.n_rounds:
            agent.advance([])
        return np.array(agent.trace).reshape(-1, *public.start.shape)
