"""The victim's update equations of the first iteration, solved for its data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._consensus.factors import UNIT_PENALTY, consensus_penalties
from ..._nmf.penalties import left_penalty
from .._views.transcript import AgentView, Label
from .leakage import Estimate
from .replay import Inputs, masked_difference, own_values

Array = NDArray[np.float64]

# Eigenvalues of A below this fraction of the largest do not count as samples.
_RANK_TOLERANCE = 1e-3
_POSITIVE = 1e-9
_ABOVE_ROUNDING = 10.0


class Solution(NamedTuple):
    """Least squares solution of the update equations.

    Parameters
    ----------
    A, B : ndarray of shape (K, K) and (K, F)
        The victim's ``W^T W`` and ``W^T X``.
    residual : ndarray
        What is left of the equations, relative to their right side.
    """

    A: Array
    B: Array
    residual: Array


class FirstIteration:
    """The equations that link a victim's A and B to its U of the first iteration.

    With ``A = W^T W`` and ``B = W^T X`` constant, each round's update (9) reads
    ``A U_t - B + mu (U_t - H_t + P_t') = rho (U_t' - U_t) + Q_t + S_t``, where a
    prime marks the round before. All but A, B and mu, which follows from A, are
    functions of the U, and linear equations remain.

    Parameters
    ----------
    view : AgentView
        The attacker's.
    victim : label
        Its neighbour.
    """

    def __init__(self, view: AgentView, victim: Label) -> None:
        public = view.public
        settings = public.settings
        self.n_rounds = sum(one.iteration == 0 for one in view.left_rounds)
        self.answers = masked_difference(view, victim)[: self.n_rounds]
        self._own = own_values(view)[: self.n_rounds]
        self._inputs = Inputs(view, victim)
        self._start = public.start
        self._n_max = float(settings.n_max or 1.0)
        self._published = settings.update == "published"
        self._rho, self._step = consensus_penalties(
            settings, len(public.neighbours(victim)), public.scale
        )
        self._mu_fixed = 0.0 if settings.penalty_scaling == "data" else settings.mu
        self._mu_slope = UNIT_PENALTY * settings.mu / len(public.start)
        if self._mu_fixed:
            self._mu_slope = 0.0

    def solve(self, factors: Array) -> Solution:
        """Solve for A and B, the victim's secret factors given.

        Parameters
        ----------
        factors : ndarray of shape (n_rounds,) or (n_rounds, K, F)
            Factors in [0.1, 1], one or one for each value.

        Returns
        -------
        Solution
        """
        factors = factors.reshape(self.n_rounds, *factors.shape[1:] or (1, 1))
        U = self._own + self.answers / factors
        gaps, right = self._terms(U)
        right = right - self._mu_fixed * gaps
        mean_U, mean_gap, mean_right = (a.mean(axis=0) for a in (U, gaps, right))
        # B is what the mean over the rounds leaves.
        n_components = len(self._start)
        design = _by_component(U - mean_U).T
        target = np.vstack([_by_component(right - mean_right),
                            _by_component(gaps - mean_gap)]).T  # fmt: skip
        both = self._least_squares(design, target).T
        plain, slope = both[:n_components], both[n_components:]
        trace = np.trace(plain) / (1.0 + self._mu_slope * np.trace(slope))
        mu = self._mu_slope * trace
        A = plain - mu * slope
        A = (A + A.T) / 2.0
        B = A @ mean_U + mu * mean_gap - mean_right
        rest = np.einsum("kl,tlf->tkf", A, U) - B + mu * gaps - right
        size = np.linalg.norm(right - mean_right) or 1.0
        return Solution(A, B, rest.ravel() / size)

    def _least_squares(self, design: Array, target: Array) -> Array:
        """Solve, leaving out directions in which U moves less than it is rounded."""
        left, values, right = np.linalg.svd(design, full_matrices=False)
        rounding = np.sqrt(len(design)) / self._n_max
        kept = values > _ABOVE_ROUNDING * rounding
        inverse = np.zeros_like(values)
        inverse[kept] = 1.0 / values[kept]
        return right.T @ (inverse[:, None] * (left.T @ target))

    def _terms(self, U: Array) -> tuple[Array, Array]:
        """Return ``U_t - H_t + P_t'`` and the right sides of all rounds."""
        last = self._start
        P = Q = S = np.zeros_like(last)
        gaps, right = np.empty_like(U), np.empty_like(U)
        for t, now in enumerate(U):
            gap = np.maximum(last + P, 0.0) - P
            gaps[t] = now - gap
            multiplier = Q + S
            if self._published:
                multiplier = self._rho * multiplier
            right[t] = self._rho * (last - now) + multiplier
            P, last = gaps[t], now
            S = self._step * self._inputs(t, now)
            Q = Q + S
        return gaps, right


def _by_component(array: Array) -> Array:
    """Reshape (T, K, F) to (K, T * F)."""
    return array.transpose(1, 0, 2).reshape(array.shape[1], -1)


def data_from(
    view: AgentView, solution: Solution, n_samples: int | None, details: dict
) -> Estimate:
    """Return what A and B tell of the samples.

    ``B^T A^+ B`` is the sum of ``x x^T`` over the samples, projected onto what the
    right factor spans: everything where there are no more samples than components.

    Parameters
    ----------
    view : AgentView
        The attacker's, for the number of samples where nothing else tells it.
    solution : Solution
        A and B.
    n_samples : int or None
        Number of the victim's samples; None takes the rank of A, or the attacker's
        own number where A has full rank.
    details : dict
        Passed on.

    Returns
    -------
    Estimate
    """
    A, B = solution.A, solution.B
    rank = n_samples
    if rank is None:
        values = np.linalg.eigvalsh(A)
        rank = max(1, int(np.sum(values > _RANK_TOLERANCE * max(values[-1], 0.0))))
        n_samples = rank if rank < len(A) else max(1, view.X.shape[0])
    assert n_samples is not None
    settings = view.public.settings
    penalty = left_penalty(settings.left_alpha, settings.l1_ratio, n_samples)
    penalty = penalty.rescaled(view.public.unit)
    values, vectors = np.linalg.eigh(A - penalty.l2 * np.eye(len(A)))
    top = slice(-min(rank, len(A)), None)
    values, vectors = values[top], vectors[:, top]
    positive = values > _POSITIVE * max(values[-1], 0.0)
    if not positive.any():
        return Estimate(details=details)
    # X is a rotation of these rows where it has as many.
    roots = np.sqrt(values[positive])[:, None]
    rows = vectors[:, positive].T @ (B + penalty.l1) / roots
    samples = np.abs(rows) if n_samples == 1 else None
    details["n_samples"] = n_samples
    return Estimate(samples, rows.T @ rows / n_samples, details)
