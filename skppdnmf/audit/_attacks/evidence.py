"""Sums over the others' samples that an agent knows, as functions of one sample.

Under the secure sum they are the totals, under the consensus the gradients that follow
from the answers (`gradients`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..._secure_sum.settings import NoiseSettings
from .._views.transcript import AgentView, Label
from .gradients import evidence_of_components, evidence_of_neighbour
from .noisy_pool import NoisyPool
from .pool import Pool, Right

Array = NDArray[np.float64]


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
    view: AgentView, sizes: Mapping[Label, int], max_sums: int | None = None
) -> list[Evidence]:
    """Return what an agent knows of the others' samples, under any protocol.

    Parameters
    ----------
    view : AgentView
        The agent's.
    sizes : dict from label to int
        How many samples each of the others holds.
    max_sums : int or None, default=None
        As for `pool_of`; under the consensus the iterations to use, spread evenly, or
        20 of them. Where only the components are known it has no meaning.

    Returns
    -------
    list of Evidence
        Each of others: of all together, or of those whom the agent separates.
    """
    n_others = sum(sizes.values())
    if view.sums:
        return [SumEvidence(pool_of(view, max_sums, n_others))]
    found: list[Evidence] = list(evidence_of_neighbour(view, sizes, max_sums))
    return found or [evidence_of_components(view, n_others)]
