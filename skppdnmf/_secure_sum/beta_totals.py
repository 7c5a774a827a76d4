"""Totals of expected counts under a beta divergence, and the words that carry them."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..exceptions import CorruptedTotalError
from .limbs import N_LIMBS, from_limbs, to_limbs
from .plausible import WHY, check_limbs
from .settings import PathSettings

Array = NDArray[np.float64]
Words = NDArray[np.uint64]

# Units in what the totals add up to at the best fit. A total is at most 2**12 times
# that: what agents send is kept below 2**10 times their share.
_BITS = 50
_LARGEST = 2.0**10
_OBJECTIVE_BITS = 40
# Units by which rounding may take a total beyond its bounds, far more than it does.
_SLACK = 2.0**24
_ROUNDING = 1e-6


class BetaTotals(NamedTuple):
    """What one exchange brings, for each of S starts.

    Parameters
    ----------
    above, below : ndarray of shape (S, K, F)
        As of `skppdnmf._nmf.beta.BetaSamples.improve`; `below` is empty where it is
        not sent.
    objectives : ndarray of shape (S,)
        Divergences with the penalties on the right factors.
    """

    above: Array
    below: Array
    objectives: Array


def beta_setup_words(bounds: Array, nulls: Array, weights: Array | None) -> Words:
    """Return an agent's summand of the first sum.

    Parameters
    ----------
    bounds, nulls : ndarray of shape (n_i,)
        Of its samples: what totals add up to, and divergences from their means.
    weights : ndarray of shape (n_i,) or None
        Of its samples, if any have weights.

    Returns
    -------
    ndarray of uint64
    """
    count = np.array([len(bounds)], dtype=np.uint64)
    words = [to_limbs(bounds), count, to_limbs(nulls)]
    if weights is not None:
        words.append(to_limbs(weights))
    return np.concatenate(words)


class BetaSetup(NamedTuple):
    """What the first sum says of all samples.

    Parameters
    ----------
    bound : float
        What totals add up to, about.
    n_samples : int
        Their number.
    null : float
        Their divergence from their means.
    weight : float
        Their weight, or their number.
    """

    bound: float
    n_samples: int
    null: float
    weight: float


def read_beta_setup(words: Words) -> BetaSetup:
    """Return what the first total says.

    Raises
    ------
    CorruptedTotalError
        If no samples can have it.
    """
    bound, rest = words[:N_LIMBS], words[N_LIMBS:]
    null, weights = rest[1 : 1 + N_LIMBS], rest[1 + N_LIMBS :]
    n = int(rest[0])
    check_limbs("the bound on totals", bound, n)
    check_limbs("divergences", null, n)
    check_limbs("the weights", weights, n)
    weight = from_limbs(weights) if len(weights) else float(n)
    return BetaSetup(from_limbs(bound), n, from_limbs(null), weight)


class BetaNumbers:
    """Turns totals into words and back; they are bounded by the data.

    Parameters
    ----------
    settings : PathSettings
        Common to all agents.
    n_components, n_features : int
        K and F.
    """

    def __init__(
        self, settings: PathSettings, n_components: int, n_features: int
    ) -> None:
        self.shape = n_components, n_features
        # Under Kullback-Leibler rows that sum to one need no second total.
        self.with_below = settings.beta != 1 or settings.left_alpha > 0
        self.unit = self.objective_unit = 1.0
        # Under Kullback-Leibler expected counts add up to the counts, at most, if all
        # are observed; else agents keep to `_LARGEST`.
        counts = settings.beta == 1 and not settings.missing
        self._most = (1.0 if counts else _LARGEST) * 2.0**_BITS

    @property
    def words_per_start(self) -> int:
        """Words that one start takes."""
        K, F = self.shape
        return K * F * (2 if self.with_below else 1) + 1

    def bounded(self, bound: float) -> BetaNumbers:
        """Return the numbers for what all agents' totals add up to."""
        after = copy(self)
        after.unit = (bound or 1.0) / 2.0**_BITS
        after.objective_unit = (bound or 1.0) / 2.0**_OBJECTIVE_BITS
        if not bound:
            after._most = 0.0
        return after

    def check(self, totals: BetaTotals) -> None:
        """Refuse totals that cannot be of any nonnegative samples and factors.

        Parameters
        ----------
        totals : BetaTotals
            Decoded.

        Raises
        ------
        CorruptedTotalError
            If one is negative, expected counts add up to more than the agreed bound
            allows, or an objective exceeds it.
        """
        above, below, objectives = totals
        for name, values in (("expected counts", above), ("model counts", below)):
            least = float(values.min(initial=0.0)) / self.unit
            if least < -_SLACK:
                raise CorruptedTotalError(
                    f"the total of {name} is {least * self.unit:.6g}, which is "
                    f"negative; {WHY}"
                )
        largest = _LARGEST * 2.0**_BITS
        for name, values, most in (
            ("expected counts", above, self._most),
            ("model counts", below, largest),
        ):
            limit = most * (1.0 + _ROUNDING) + _SLACK
            sums = values.sum(axis=(1, 2)) / self.unit
            if (sums > limit).any():
                raise CorruptedTotalError(
                    f"the {name} add up to {sums.max() * self.unit:.6g}, more than "
                    f"{limit * self.unit:.6g}, which the samples allow; {WHY}"
                )
        limit = _LARGEST * 2.0**_OBJECTIVE_BITS * (1.0 + _ROUNDING) + _SLACK
        units = objectives / self.objective_unit
        if not ((units >= -_SLACK) & (units <= limit)).all():
            raise CorruptedTotalError(
                f"the total of the objective is {objectives.min():.6g} to "
                f"{objectives.max():.6g}, which is not between 0 and "
                f"{limit * self.objective_unit:.6g}; {WHY}"
            )

    def encode(self, totals: BetaTotals, bound: float) -> Words:
        """Return an agent's summand.

        Parameters
        ----------
        totals : BetaTotals
            Its own.
        bound : float
            What its totals add up to at the best fit.

        Returns
        -------
        ndarray of uint64
        """
        objectives = totals.objectives
        parts = [totals.above, totals.below] if self.with_below else [totals.above]
        sizes = np.max([part.sum(axis=(1, 2)) for part in parts], axis=0)
        most = _LARGEST * max(bound, 0.0)
        shrink = np.minimum(1.0, most / np.maximum(sizes, np.finfo(float).tiny))
        factors = (shrink / self.unit)[:, None, None]
        size = totals.above.size
        words = np.empty(size * len(parts) + len(objectives), dtype=np.int64)
        whole = np.empty_like(totals.above)
        for k, part in enumerate(parts):
            np.rint(np.multiply(part, factors, out=whole), out=whole)
            words[k * size : (k + 1) * size].reshape(part.shape)[...] = whole
        cap = np.minimum(objectives, most / self.unit * self.objective_unit)
        words[len(parts) * size :] = np.rint(cap / self.objective_unit)
        return words.view(np.uint64)

    def decode(self, words: Words, n_starts: int) -> BetaTotals:
        """Return the totals from the sum of all agents' words."""
        K, F = self.shape
        values = words.view(np.int64).astype(np.float64)
        size = n_starts * K * F
        above = values[:size].reshape(n_starts, K, F) * self.unit
        below = above[:0]
        if self.with_below:
            below = values[size : 2 * size].reshape(n_starts, K, F) * self.unit
        return BetaTotals(above, below, values[-n_starts:] * self.objective_unit)
