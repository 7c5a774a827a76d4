"""Fits samples to gradients over all others, by damped Gauss-Newton steps."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .gradients import GradientEvidence
from .pool_fit import STEP, Fit, descended

Array = NDArray[np.float64]


class GradientFit:
    """Least squares for others' samples, from the gradients that these add up to.

    Parameters
    ----------
    evidence : GradientEvidence
        What an agent knows of them.
    n_rows : int
        Samples to fit, each of which stands for ``evidence.n_samples / n_rows``.
    """

    def __init__(self, evidence: GradientEvidence, n_rows: int) -> None:
        self._evidence = evidence
        self._share = evidence.n_samples / n_rows
        self._totals = evidence.totals()
        norm = math.sqrt(sum(float(one @ one) for one in self._totals))
        self._weight = 1.0 / (norm or 1.0)

    def run(self, rows: Array, max_steps: int, deadline: float = math.inf) -> Fit:
        """Fit, from a first guess.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, F)
            The guess.
        max_steps : int
            Most steps.
        deadline : float
            Time of `time.perf_counter` after which no step is begun.

        Returns
        -------
        Fit
        """
        return descended(self._cost, self._normal, rows, max_steps, deadline)

    def _residuals(self, sums: list[Array]) -> list[Array]:
        """Return what sums of gradients leave of those that are known, relative."""
        return [
            self._weight * (self._share * one - total)
            for one, total in zip(sums, self._totals, strict=True)
        ]

    def _cost(self, rows: Array) -> float:
        """Mean squared misfit, relative."""
        sums = [trace.sum(axis=0) for trace in self._evidence.traces(rows)]
        return sum(float(one @ one) for one in self._residuals(sums))

    def _normal(self, rows: Array) -> tuple[Array, Array]:
        """Return matrix and gradient of the normal equations, as in `PoolFit`."""
        m, F = rows.shape
        each = np.arange(F)
        step = STEP * (rows.mean() or 1.0)
        changed = np.repeat(rows[:, None, :], F + 1, axis=1)
        changed[:, each, each] += step
        traces = [
            trace.reshape(m, F + 1, -1)
            for trace in self._evidence.traces(changed.reshape(-1, F))
        ]
        left = self._residuals([trace[:, F].sum(axis=0) for trace in traces])
        matrix, gradient = np.zeros((m * F, m * F)), np.zeros(m * F)
        for trace, residual in zip(traces, left, strict=True):
            slopes = (trace[:, :F] - trace[:, F:]).reshape(m * F, -1)
            slopes *= self._share * self._weight / step
            matrix += slopes @ slopes.T
            gradient += slopes @ residual
        return matrix, gradient
