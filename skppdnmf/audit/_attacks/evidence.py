"""Sums over the others' samples that an agent knows, as functions of one sample.

Under the secure sum they are the totals. The components alone tell the left factor's
optimality conditions: where the factor is positive, its gradient is zero, and the
gradient is a sum over all samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..._nmf.hals import hals
from ..._secure_sum.settings import NoiseSettings
from .._views.transcript import AgentView
from .leakage import dense
from .noisy_pool import NoisyPool
from .pool import Pool, Right

Array = NDArray[np.float64]

_SWEEPS = 200  # of right factors that an agent has solved nearly to convergence
_UNUSED = 1e-6  # entries of the left factor below this share of the largest are zero


class Evidence(Protocol):
    """A sum of known functions over the others' samples.

    The functions have many values; what attacks need are their inner products.
    """

    n_samples: int
    # Variance of noise on the sum, in every direction.
    noise: float

    def traces(self, X: Array) -> Any:
        """Return what each sample adds to the sum, in a form of its own."""

    def inner(self, one: Any, other: Any) -> Array:
        """Return the inner products of two sets of traces."""

    def paired(self, one: Any, other: Any) -> Array:
        """Return the inner product of each trace with its counterpart."""

    def with_sum(self, one: Any) -> Array:
        """Return the inner products of traces with the sum."""


class SumEvidence:
    """The totals of the secure sum without the agent's own summands.

    Parameters
    ----------
    pool : Pool or NoisyPool
        What an agent knows of the others.
    """

    def __init__(self, pool: Pool | NoisyPool) -> None:
        self._pool: Any = pool
        self.n_samples = pool.n_samples
        self.noise = pool.noise

    def traces(self, X: Array) -> tuple[Array, list[Right]]:
        """Return the samples and their right factors in each sum."""
        return X, self._pool.simulate(X)

    def inner(
        self, one: tuple[Array, list[Right]], other: tuple[Array, list[Right]]
    ) -> Array:
        """Return the inner products of the samples' summands."""
        result = np.zeros((len(one[0]), len(other[0])))
        samples = one[0] @ other[0].T
        for stage, left, right in zip(self._pool.stages, one[1], other[1], strict=True):
            for s, weights in enumerate(self._pool.weights(stage)):
                # <w w^T, v v^T> = (w v)^2 and <w x^T, v y^T> = (w v) (x y).
                result += weights[0] * (left.gram[s].T @ right.gram[s]) ** 2
                common = left.products[s].T @ right.products[s]
                result += weights[1] * common * samples
        return result

    def paired(
        self, one: tuple[Array, list[Right]], other: tuple[Array, list[Right]]
    ) -> Array:
        """Return the inner products of the summands of samples at the same place."""
        result = np.zeros(len(one[0]))
        samples = np.einsum("nf,nf->n", one[0], other[0])
        for stage, left, right in zip(self._pool.stages, one[1], other[1], strict=True):
            for s, weights in enumerate(self._pool.weights(stage)):
                common = np.einsum("kn,kn->n", left.gram[s], right.gram[s])
                result += weights[0] * common**2
                common = np.einsum("kn,kn->n", left.products[s], right.products[s])
                result += weights[1] * common * samples
        return result

    def with_sum(self, one: tuple[Array, list[Right]]) -> Array:
        """Return the inner products of the samples' summands with the totals."""
        result = np.zeros(len(one[0]))
        for stage, right in zip(self._pool.stages, one[1], strict=True):
            totals = stage.totals
            for s, weights in enumerate(self._pool.weights(stage)):
                W = right.gram[s]
                result += weights[0] * np.sum(W * (totals.gram[s] @ W), axis=0)
                products = totals.products[s] @ one[0].T
                W = right.products[s]
                result += weights[1] * np.sum(W * products, axis=0)
        return result


class GradientEvidence:
    """Left factors at which the gradient over all samples is taken to be zero.

    Parameters
    ----------
    points : sequence of ndarray of shape (K, F)
        Left factors.
    own : ndarray of shape (n_i, F)
        The agent's samples.
    n_samples : int
        Of all others.

    Notes
    -----
    Penalties are left aside.
    """

    noise = 0.0

    def __init__(self, points: Sequence[Array], own: Array, n_samples: int) -> None:
        self.n_samples = n_samples
        self._points = points
        self._sums = [-trace.sum(axis=0) for trace in self.traces(own)]

    def traces(self, X: Array) -> list[Array]:
        """Return each sample's gradient at each point, a row each."""
        result = []
        for H in self._points:
            products = (H @ X.T)[None]
            W = hals((H @ H.T)[None], products, np.zeros_like(products), _SWEEPS)[0].T
            used = H > _UNUSED * H.max()
            each = W[:, :, None] * (W @ H - X)[:, None, :]
            result.append(each[:, used])
        return result

    def inner(self, one: list[Array], other: list[Array]) -> Array:
        """Return the inner products of gradients."""
        return sum(
            (a @ b.T for a, b in zip(one, other, strict=True)),
            start=np.zeros((len(one[0]), len(other[0]))),
        )

    def paired(self, one: list[Array], other: list[Array]) -> Array:
        """Return the inner products of gradients at the same place."""
        return sum(
            (np.einsum("nd,nd->n", a, b) for a, b in zip(one, other, strict=True)),
            start=np.zeros(len(one[0])),
        )

    def with_sum(self, one: list[Array]) -> Array:
        """Return the inner products of gradients with what all others' must be."""
        return sum(
            (a @ b for a, b in zip(one, self._sums, strict=True)),
            start=np.zeros(len(one[0])),
        )


def pool_of(
    view: AgentView, max_sums: int | None = None, n_others: int | None = None
) -> Pool | NoisyPool:
    """Return what an agent knows of the others from totals, with noise or without.

    Parameters
    ----------
    view : AgentView
        The agent's.
    max_sums : int or None, default=None
        How many totals to use at most; None for the first 20, or all under noise.
    n_others : int or None, default=None
        How many samples they hold, which totals under noise say nearly.

    Returns
    -------
    Pool or NoisyPool
    """
    if isinstance(view.public.settings, NoiseSettings):
        return NoisyPool(view, max_sums, n_others)
    return Pool(view, max_sums)


def evidence_of(
    view: AgentView, n_others: int, max_sums: int | None = None
) -> Evidence:
    """Return what an agent knows of the others' samples, under either protocol.

    Parameters
    ----------
    view : AgentView
        The agent's.
    n_others : int
        How many samples they hold.
    max_sums : int or None, default=None
        As for `pool_of`.

    Returns
    -------
    Evidence
        Under the consensus of the components alone: an agent's copies of the left
        factor before them are off by what the agents do not agree upon yet.
    """
    if view.sums:
        return SumEvidence(pool_of(view, max_sums, n_others))
    return evidence_of_components(view, n_others)


def evidence_of_components(view: AgentView, n_others: int) -> Evidence:
    """Return what the published components alone tell an agent.

    Parameters
    ----------
    view, n_others
        As for `evidence_of`.

    Returns
    -------
    Evidence
    """
    components = np.asarray(view.public.components, dtype=np.float64)
    return GradientEvidence([components], dense(view.X), n_others)
