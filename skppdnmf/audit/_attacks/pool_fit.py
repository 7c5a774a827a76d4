"""Fits samples to the totals of all others, by damped Gauss-Newton steps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .noisy_pool import NoisyPool
from .pool import Pool

Array = NDArray[np.float64]

# Numbers to fit for each unknown: more of them cost time and tell hardly more.
_PER_UNKNOWN = 5
_FEWEST_SUMS = 12
STEP = 1e-6  # of finite differences, relative to the mean
_DAMPING, _EASE, _HARDEN, _TRIES = 1e-3, 5.0, 4.0, 8
_ENOUGH = 1e-3  # relative fall of the cost below which a fit ends
# The totals are sums of rounded right factors: what is left at the truth.
EXPLAINED = 2e-5


class Fit(NamedTuple):
    """Samples that explain the totals, and how well they do.

    Parameters
    ----------
    rows : ndarray of shape (m, F)
        Samples.
    misfit : float
        Root mean square of what they leave of the totals, relative to these.
    """

    rows: Array
    misfit: float


class _Part(NamedTuple):
    """The totals of some starts of one sum, scaled to be compared."""

    number: int
    starts: NDArray[np.intp]
    gram: Array
    products: Array
    gram_weight: float
    products_weight: float


def descended(
    cost_of: Callable[[Array], float],
    normal_of: Callable[[Array], tuple[Array, Array]],
    rows: Array,
    max_steps: int,
    deadline: float,
) -> Fit:
    """Descend by damped Gauss-Newton steps, and stay nonnegative.

    Parameters
    ----------
    cost_of, normal_of : callable
        Of rows: the squared misfit, and matrix and gradient of the normal equations.
    rows : ndarray of shape (m, F)
        A first guess.
    max_steps : int
        Most steps.
    deadline : float
        Time of `time.perf_counter` after which no step is begun.

    Returns
    -------
    Fit
    """
    cost, damping = cost_of(rows), _DAMPING
    for _ in range(max_steps):
        if math.sqrt(cost) < EXPLAINED or time.perf_counter() > deadline:
            break
        matrix, gradient = normal_of(rows)
        # Nothing may depend on a value.
        diagonal = np.maximum(np.diag(matrix), 1e-12 * np.diag(matrix).max())
        free = ~((rows.ravel() <= 0) & (gradient > 0))
        if not free.any() or not diagonal.all():
            break
        before = cost
        for _ in range(_TRIES):
            damped = matrix[np.ix_(free, free)] + np.diag(damping * diagonal[free])
            step = np.zeros(rows.size)
            step[free] = np.linalg.solve(damped, -gradient[free])
            moved = np.maximum(rows + step.reshape(rows.shape), 0.0)
            after = cost_of(moved)
            if after < cost:
                rows, cost = moved, after
                break
            damping *= _HARDEN
        damping = max(damping / _EASE, 1e-12)
        if before - cost <= _ENOUGH * before:
            break
    return Fit(rows, math.sqrt(cost))


class PoolFit:
    """Least squares for the samples of all others.

    Parameters
    ----------
    pool : Pool or NoisyPool
        What an agent knows of them.
    n_rows : int
        Samples to fit, each of which stands for ``pool.n_samples / n_rows``.
    """

    def __init__(self, pool: Pool | NoisyPool, n_rows: int) -> None:
        self.pool: Any = pool
        self.n_rows = n_rows
        _, K, F = pool.stages[0].point.shape
        self._n_features = F
        self._upper = np.triu_indices(K)
        self._share = pool.n_samples / n_rows
        self._parts = self._choose(K * (K + 1) // 2 + K * F)

    def _choose(self, n_values: int) -> list[_Part]:
        """Spread as many totals as are needed over all sums and starts."""
        places = [
            (number, start)
            for number, stage in enumerate(self.pool.stages)
            for start in range(len(stage.point))
        ]
        n_unknown = self.n_rows * self._n_features
        needed = max(_FEWEST_SUMS, math.ceil(_PER_UNKNOWN * n_unknown / n_values))
        spread = np.linspace(0, len(places) - 1, min(needed, len(places)))
        chosen: dict[int, list[int]] = {}
        for place in np.rint(spread).astype(int):
            number, start = places[place]
            chosen.setdefault(number, []).append(start)
        parts = []
        for number, starts in chosen.items():
            totals = self.pool.stages[number].totals
            gram = self._flat(totals.gram[starts])
            products = totals.products[starts].ravel()
            scale = 1.0 / math.sqrt(2 * len(chosen))
            weights = [scale / (np.linalg.norm(one) or 1.0) for one in (gram, products)]
            parts.append(
                _Part(number, np.array(starts), gram, products, *map(float, weights))
            )
        return parts

    def _flat(self, gram: Array) -> Array:
        """Return the distinct entries of symmetric matrices."""
        return gram[:, self._upper[0], self._upper[1]].ravel()

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

    def _cost(self, rows: Array) -> float:
        """Mean squared misfit, relative."""
        right = self.pool.simulate(rows)
        cost = 0.0
        for part in self._parts:
            W, V = (one[part.starts] for one in right[part.number])
            gram = self._share * self._flat(W @ W.transpose(0, 2, 1)) - part.gram
            products = self._share * (V @ rows).ravel() - part.products
            cost += float(part.gram_weight**2 * gram @ gram)
            cost += float(part.products_weight**2 * products @ products)
        return cost

    def _normal(self, rows: Array) -> tuple[Array, Array]:
        """Return matrix and gradient of the normal equations.

        Each sample contributes by itself: all are changed in each feature at once.
        """
        m, F = rows.shape
        each = np.arange(F)
        step = STEP * (rows.mean() or 1.0)
        changed = np.repeat(rows[:, None, :], F + 1, axis=1)
        changed[:, each, each] += step
        right = self.pool.simulate(changed.reshape(-1, F))
        matrix, gradient = np.zeros((m * F, m * F)), np.zeros(m * F)
        for part in self._parts:
            W, V = (one[part.starts] for one in right[part.number])
            S, K, _ = W.shape
            W, V = W.reshape(S, K, m, F + 1), V.reshape(S, K, m, F + 1)
            slopes = (W[..., :F] - W[..., F:]) / step
            W = W[..., F]
            gram = np.einsum("skmf,slm->sklmf", slopes, W)
            gram = gram + gram.transpose(0, 2, 1, 3, 4)
            gram = gram[:, self._upper[0], self._upper[1]].reshape(-1, m * F)
            slopes = (V[..., :F] - V[..., F:]) / step
            V = V[..., F]
            products = np.einsum("skmf,mg->skgmf", slopes, rows)
            products[:, :, each, :, each] += V[None]
            products = products.reshape(-1, m * F)
            left = (
                self._share * self._flat(W @ W.transpose(0, 2, 1)) - part.gram,
                self._share * (V @ rows).ravel() - part.products,
            )
            weights = part.gram_weight, part.products_weight
            for slope, residual, weight in zip(
                (gram, products), left, weights, strict=True
            ):
                slope *= self._share * weight
                matrix += slope.T @ slope
                gradient += slope.T @ (weight * residual)
        return matrix, gradient
