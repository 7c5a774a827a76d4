"""The left factor's path under differential privacy: a function of noisy totals."""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from .._nmf.hals import hals
from .noisy_totals import NoisyTotals
from .settings import NoiseSettings

Array = NDArray[np.float64]

# The t-th total has a power of t as its weight in the average of all so far: early ones
# are of right factors that have improved since. The exponent is so much more than one
# half for few totals, which are few because their noise is large.
_LEAST_EXPONENT = 0.5
_PER_TOTAL = 1.6
_SWEEPS = 10
# Where totals are few, of the noise's largest singular value, what is taken off the
# products, and what the eigenvalues are floored at; more totals do better without.
_FEW_TOTALS = 15
_SHRINKAGE = 0.5
_FEW_FLOOR = 0.5
# How much longer or shorter the averages take a row of H to have become at most, which
# noise could otherwise make grow without end.
_LARGEST_STEP = 1.1
# The least entry of a row of H over its norm: what noise has set to zero may return.
_FLOOR = 3e-4


class NoisyPath:
    """A point of the left factor's path, a function of the start and of noisy totals.

    `set_up` and `take` return the next point and leave this one as it is: every agent
    follows the path by itself, bit for bit the same.

    Parameters
    ----------
    start : ndarray of shape (K, F)
        Common start, nonnegative.
    settings : NoiseSettings
        Common to all agents.

    Attributes
    ----------
    H : ndarray of shape (K, F)
        The left factor, of unit rows.
    numbers : NoisyTotals
        What turns right factors into words.
    iteration : int
        Totals taken, the number of units not counted; -1 before it.
    n_units : float
        Number of samples, or of agents that have some, under noise.
    finished : bool
        Whether all totals have been taken.
    divisors : ndarray of shape (K,)
        What the right factors were to be divided by after the last total.
    """

    def __init__(self, start: Array, settings: NoiseSettings) -> None:
        self.settings = settings
        self.numbers = NoisyTotals(settings, *start.shape)
        self.H = _floored(start)
        self.H /= _norms(self.H)[:, None]
        self.iteration = -1
        self.n_units = 0.0
        self.finished = False
        self.divisors = np.ones(len(start))
        self._gram = np.zeros((len(start), len(start)))
        self._products = np.zeros(start.shape)
        self._variance = 0.0

    def set_up(self, words: NDArray[np.uint64]) -> NoisyPath:
        """Take the first total.

        Parameters
        ----------
        words : ndarray of uint64
            Of the number of units, under noise.

        Returns
        -------
        NoisyPath
            Before the first iteration.

        Raises
        ------
        ExcessiveNoiseError
            If the noise exceeds the signal.
        """
        after = copy(self)
        after.n_units = self.numbers.read_count(words)
        after.numbers = self.numbers.planned(after.n_units)
        after.iteration = 0
        return after

    def take(self, words: NDArray[np.uint64]) -> NoisyPath:
        """Take the totals of the next iteration and make the next step.

        Parameters
        ----------
        words : ndarray of uint64
            The total.

        Returns
        -------
        NoisyPath
            After the iteration.
        """
        totals = self.numbers.decode(words)
        self.numbers.check_totals(totals, self.n_units)
        after = copy(self)
        after.iteration += 1
        after._average(totals.gram[0], totals.products[0])
        after._step()
        after.finished = after.iteration >= self.numbers.n_totals
        return after

    def _average(self, gram: Array, products: Array) -> None:
        """Take a total into the averages."""
        exponent = min(1.0, _LEAST_EXPONENT + _PER_TOTAL / self.numbers.n_totals)
        weight = float(self.iteration) ** -exponent
        self._gram = (1.0 - weight) * self._gram + weight * gram
        self._products = (1.0 - weight) * self._products + weight * products
        self._variance = (1.0 - weight) ** 2 * self._variance + weight**2

    def _step(self) -> None:
        """Solve for the left factor, and rescale the averages with its rows."""
        numbers, deviation = self.numbers, np.sqrt(self._variance)
        few = numbers.n_totals <= _FEW_TOTALS
        # The largest eigenvalue of the noise alone is about root two of this.
        floor = numbers.gram_noise * deviation * np.sqrt(len(self.H))
        values, vectors = np.linalg.eigh(self._gram)
        floor *= _FEW_FLOOR if few else 1.0
        gram = (vectors * np.maximum(values, floor)) @ vectors.T
        products = self._products
        if few:
            products = _shrunk(products, _SHRINKAGE * numbers.product_noise * deviation)
        H = hals(gram[None], products[None], self.H[None].copy(), _SWEEPS)[0]
        H = _floored(H)
        norms = _norms(H)
        self.H = H / norms[:, None]
        self.divisors = np.clip(1.0 / norms, 1.0 / _LARGEST_STEP, _LARGEST_STEP)
        self._gram = self._gram / self.divisors / self.divisors[:, None]
        self._products = self._products / self.divisors[:, None]


def _shrunk(products: Array, noise: float) -> Array:
    """Take from each singular value what noise of this deviation adds to it."""
    left, values, right = np.linalg.svd(products, full_matrices=False)
    K, F = products.shape
    added = noise * (np.sqrt(K) + np.sqrt(F))
    return (left * np.sqrt(np.maximum(values**2 - added**2, 0.0))) @ right


def _norms(H: Array) -> Array:
    """Norm of each row."""
    return np.sqrt(np.einsum("kf,kf->k", H, H))


def _floored(H: Array) -> Array:
    """Raise what is nearly zero, above all in rows that are."""
    least = np.maximum(_FLOOR * _norms(H), np.finfo(float).tiny ** 0.25)
    return np.maximum(H, least[:, None])
