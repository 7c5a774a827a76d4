"""The network-wide totals of the secure sum, and the words that carry them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .exchange import (
    N_LIMBS,
    from_limbs,
    from_words,
    largest_scale,
    to_limbs,
    to_words,
)

Array = NDArray[np.float64]
Words = NDArray[np.uint64]

# An agent's share of a total is at most this many times what its samples' squared
# norm allows without extrapolation, which at most doubles a right factor.
HEADROOM = 4.0
SETUP_WORDS = N_LIMBS + 1


class Totals(NamedTuple):
    """What one exchange of the secure sum brings, for each of S starts.

    Parameters
    ----------
    gram : ndarray of shape (S, K, K)
        ``A = sum_i W_i^T W_i``.
    products : ndarray of shape (S, K, F)
        ``B = sum_i W_i^T X_i``.
    sums : ndarray of shape (S, K)
        Column sums of the right factors; zero where no penalty needs them.
    """

    gram: Array
    products: Array
    sums: Array


def setup_words(squared_norm: float, n_samples: int) -> Words:
    """Return an agent's summand of the first sum: ``||X_i||^2``, exactly, and n_i."""
    return np.append(to_limbs(squared_norm), np.uint64(n_samples))


def read_setup(words: Words) -> tuple[float, int]:
    """Return ``||X||^2`` and the number of samples from the first total."""
    return from_limbs(words[:-1]), int(words[-1])


class FixedPoint:
    """Turns normalised right factors' products into words, and totals back.

    With the rows of H scaled to a root mean square of 1, the exact right factor W of
    samples X_i has ``||W||^2 <= ||X_i||^2 / F``. All entries of the totals A and B are
    then bounded by ``||X||^2``, which all agents know; its fraction
    ``||X||^2 / (K F)``, about the size of an entry, is sent as `n_max`.

    Parameters
    ----------
    n_components, n_features : int
        K and F.
    n_max : float
        Fixed-point scale.
    with_sums : bool
        Whether the right factors' column sums are sent, too.

    Raises
    ------
    OverflowError
        If a total could wrap.
    """

    def __init__(
        self, n_components: int, n_features: int, n_max: float, with_sums: bool
    ) -> None:
        self.n_components = n_components
        self.n_features = n_features
        self.n_max = n_max
        self.with_sums = with_sums
        most = largest_scale(HEADROOM * n_components * math.sqrt(n_features))
        if n_max > most:
            raise OverflowError(
                f"n_max={n_max:g} is too large for the secure sum: with n_components="
                f"{n_components} and n_features={n_features} a total could exceed 64 "
                f"bits; the largest is n_max={most:.3g}"
            )
        self._upper = np.triu_indices(n_components)
        self._unit = 1.0
        self._sum_unit = 1.0

    def set_bound(self, squared_norm: float, n_samples: int) -> None:
        """Take the public bound that all agents have agreed upon.

        Parameters
        ----------
        squared_norm : float
            ``||X||^2``.
        n_samples : int
            Number of samples.
        """
        K, F = self.n_components, self.n_features
        self._unit = (squared_norm or 1.0) / (K * F)
        self._sum_unit = math.sqrt((n_samples or 1) * (squared_norm or 1.0) / F) / K

    @property
    def words_per_start(self) -> int:
        """Words that one start takes."""
        K = self.n_components
        n_words = K * (K + 1) // 2 + K * self.n_features
        return n_words + (K if self.with_sums else 0)

    def resolution(self, n_agents: int) -> float:
        """Typical rounding error of ``<B, H>``, in units of ``||X||^2``."""
        quanta = math.sqrt(n_agents / 12.0)
        return quanta / (math.sqrt(self.n_components * self.n_features) * self.n_max)

    def encode(self, totals: Totals) -> Words:
        """Return an agent's normalised summand in words.

        Parameters
        ----------
        totals : Totals
            The agent's share of the totals, for rows of H of root mean square 1.

        Returns
        -------
        ndarray of uint64, one-dimensional
        """
        scale = self.n_max / self._unit
        n_starts = len(totals.gram)
        parts = [
            to_words(totals.gram[:, self._upper[0], self._upper[1]], scale),
            to_words(totals.products.reshape(n_starts, -1), scale),
        ]
        if self.with_sums:
            parts.append(to_words(totals.sums, self.n_max / self._sum_unit))
        return np.concatenate([part.ravel() for part in parts])

    def decode(self, words: Words, n_starts: int) -> Totals:
        """Return the totals from the sum of all agents' words.

        Parameters
        ----------
        words : ndarray of uint64
            The sum.
        n_starts : int
            Number of starts S in it.

        Returns
        -------
        Totals
        """
        K, F = self.n_components, self.n_features
        scale = self.n_max / self._unit
        ends = np.cumsum([n_starts * K * (K + 1) // 2, n_starts * K * F])
        upper, products, sums = np.split(words, ends)
        gram = np.zeros((n_starts, K, K))
        rows, columns = self._upper
        gram[:, rows, columns] = from_words(upper, scale).reshape(n_starts, -1)
        gram[:, columns, rows] = gram[:, rows, columns]
        column_sums = np.zeros((n_starts, K))
        if self.with_sums:
            column_sums = from_words(sums, self.n_max / self._sum_unit)
        return Totals(
            gram,
            from_words(products, scale).reshape(n_starts, K, F),
            column_sums.reshape(n_starts, K),
        )
