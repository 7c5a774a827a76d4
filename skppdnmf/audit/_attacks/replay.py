"""Runs the code of an agent on guessed data, with the inputs that it received."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._consensus.factors import Factors
from ..._consensus.masks import MASK_BITS, MEAN_MASK_PRODUCT
from .._views.transcript import AgentView, Label


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
        self._pulls = {one.iteration: one.pull for one in view.left_rounds}
        self._inputs = Inputs(view, victim)
        self._public = public
        self._n_neighbours = len(public.neighbours(victim))

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
        factors = Factors(
            np.ascontiguousarray(X),
            public.start,
            self._n_neighbours,
            public.settings,
            "replayed agent",
        )
        if public.settings.balanced:
            factors.balance()
        factors.measure(public.unit)
        factors.begin(public.scale)
        trace: list[NDArray[np.floating]] = []
        # Rounds ended when they ended in the transcript.
        for iteration, count in enumerate(self._counts):
            factors.begin_iteration(self._pulls[iteration])
            for _ in range(count):
                U = factors.step().astype(np.float64, copy=False)
                trace.append(U)
                if len(trace) == self.n_rounds:
                    return np.array(trace)
                factors.add(self._inputs(len(trace) - 1, U))
            factors.end_iteration()
        return np.array(trace)
