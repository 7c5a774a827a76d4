"""The left factor's path under a beta divergence, which every agent computes alike."""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from .._nmf.beta import exponent
from .._nmf.penalties import Penalty, left_penalty
from .beta_totals import BetaNumbers, read_beta_setup
from .left_factor import starts_after
from .settings import PathSettings

Array = NDArray[np.float64]

# Extrapolation of the logarithms, as in `skppdnmf._secure_sum.left_factor`.
_FIRST_WEIGHT = 0.5
_GROWTH = 1.05
_LIMIT_GROWTH = 1.01
_CUT = 1.5
# An entry changes by this factor at most by extrapolation.
_LARGEST_RATIO = 10.0
_MOVE = 0.2
_ROUNDING = 2.0**-36


class BetaPath:
    """A point of the path: multiplicative updates of the left factor from totals.

    Parameters
    ----------
    starts : ndarray of shape (S, K, F)
        Common starts, nonnegative.
    settings : PathSettings
        Common to all agents.

    Attributes
    ----------
    H : ndarray of shape (K, F)
        The left factor after the lowest objective so far.
    point : ndarray of shape (S, K, F)
        For which agents improve their right factors next.
    kept : ndarray of int
        Which of the starts before the last total are left.
    improved : bool
        Whether the last total had the lowest objective, so that H is new.
    leader : int
        The start that H comes from if so.
    iteration : int
        Totals taken, the setup's not counted.
    finished, converged : bool
        Whether the fit is over, and whether `tol` was met.
    relative_error : float
        Root of the divergence over that from the samples' means.
    """

    def __init__(self, starts: Array, settings: PathSettings) -> None:
        self.settings = settings
        self.numbers = BetaNumbers(settings, *starts.shape[1:])
        self.right = settings.right_penalty
        self._left = Penalty()
        self._current = self.point = _by_feature(self._normalised(starts))
        self.H = self.point[0]
        self.n_samples = 0
        self._null = 0.0
        self.relative_error = np.nan
        self.improved = False
        self.leader = 0
        self.kept = np.arange(len(starts))
        self.iteration = -1
        self.finished = self.converged = False
        self._last = np.full(len(starts), np.inf)
        self._limits = np.ones(len(starts))
        self._next = np.full(len(starts), _FIRST_WEIGHT)
        self._lowest = np.inf
        self._still = 0

    @property
    def n_starts(self) -> int:
        """Starts that are left."""
        return len(self.point)

    def _normalised(self, H: Array) -> Array:
        """Rows that sum to one, where nothing else fixes their scale."""
        settings = self.settings
        if settings.beta != 1 or settings.left_alpha or any(settings.right_penalty):
            return H
        sums = H.sum(axis=2, keepdims=True)
        scaled = np.divide(H, sums, out=np.zeros_like(H), where=sums > 0)
        scaled[:, : settings.n_fixed] = H[:, : settings.n_fixed]
        return scaled

    def set_up(self, words: NDArray[np.uint64]) -> BetaPath:
        """Take the first total and return the path before the first iteration."""
        after = copy(self)
        setup = read_beta_setup(words)
        if not setup.bound < np.inf:
            raise OverflowError(f"a total of the data is {setup.bound}; rescale X")
        settings = self.settings
        after.n_samples, after._null = setup.n_samples, setup.null
        after.numbers = self.numbers.bounded(setup.bound)
        after._left = left_penalty(settings.left_alpha, settings.l1_ratio, setup.weight)
        after.iteration = 0
        return after

    def take(self, words: NDArray[np.uint64], fresh: bool = False) -> BetaPath:
        """Take the totals of an iteration and return the path after the next step."""
        after = copy(self)
        after._advance(words, fresh)
        return after

    def move_on(self, n_departures: int) -> BetaPath:
        """Leave the point of a sum that was given up for another."""
        after = copy(self)
        rng = np.random.default_rng([n_departures, self.iteration + 1])
        factors = rng.uniform(1.0 - _MOVE, 1.0 + _MOVE, self._current.shape)
        factors[:, : self.settings.n_fixed] = 1.0
        after.point = _by_feature(self._normalised(self._current * factors))
        after._last = np.full(self.n_starts, np.inf)
        return after

    def _advance(self, words: NDArray[np.uint64], fresh: bool) -> None:
        """Make the next step in a copy."""
        totals = self.numbers.decode(words, self.n_starts)
        self.numbers.check(totals)
        left, point = self._left, self.point
        objective = totals.objectives + left.l1 * point.sum(axis=(1, 2))
        objective += 0.5 * left.l2 * np.einsum("skf,skf->s", point, point)
        new = self._updated(totals.above, totals.below)
        slack = 1.0 + _ROUNDING
        worse = (objective > self._last * slack) & (not fresh)
        weights = np.where(worse, 0.0, self._next)
        self._limits = np.where(
            worse, self._next, np.minimum(1.0, self._limits * _LIMIT_GROWTH)
        )
        self._next = np.where(
            worse, self._next / _CUT, np.minimum(self._limits, self._next * _GROWTH)
        )
        if not self.settings.extrapolates:
            weights = np.zeros(self.n_starts)
        both = (new > 0) & (self._current > 0)
        ratio = np.divide(new, self._current, out=np.ones_like(new), where=both)
        np.clip(ratio, 1.0 / _LARGEST_RATIO, _LARGEST_RATIO, out=ratio)
        moved = new * ratio ** weights[:, None, None]
        n_fixed = self.settings.n_fixed
        moved[:, :n_fixed] = point[:, :n_fixed]
        best = int(np.argmin(objective))
        self._check(objective[best], self._last[best], fresh)
        self.point, self._current = _by_feature(self._normalised(moved)), new
        self._last = np.where(worse, np.inf, objective)
        self.kept = np.arange(len(new))
        self.improved = bool(objective[best] <= self._lowest or fresh)
        if self.improved:
            self._lowest, self.leader = objective[best], best
            self.H = new[best]
            ratio_ = totals.objectives[best] / (self._null or 1.0)
            self.relative_error = float(np.sqrt(max(0.0, ratio_)))
        self.iteration += 1
        self._end_iteration(objective)

    def _updated(self, above: Array, below: Array) -> Array:
        """Return the multiplicative update of the points."""
        settings, point = self.settings, self.point
        if not self.numbers.with_below:
            if any(settings.right_penalty):
                # Their scale is fixed by the penalty on the other factor alone: H would
                # grow without end, as in NMF; so rows keep their sums.
                sums = point.sum(axis=2, keepdims=True)
            else:
                sums = np.ones((*point.shape[:2], 1))
            total = above.sum(axis=2, keepdims=True)
            new = np.divide(above * sums, total, out=point.copy(), where=total > 0)
        else:
            # Nobody has observed a feature of which there is nothing in the totals.
            known = np.any(above, axis=1, keepdims=True)
            known |= np.any(below, axis=1, keepdims=True)
            below = below + point * (self._left.l1 + self._left.l2 * point)
            ratio = np.divide(above, below, out=np.ones_like(above), where=below > 0)
            new = point * ratio ** exponent(settings.beta)
            if settings.missing:
                new = np.where(known, new, 0.0)
        new[:, : settings.n_fixed] = point[:, : settings.n_fixed]
        return new

    def _check(self, objective: float, last: float, fresh: bool) -> None:
        """Count the iterations in a row that hardly lowered the objective."""
        fall = last - objective
        tol = self.settings.tol
        noise = _ROUNDING * abs(objective)
        met = tol > 0 and np.isfinite(fall) and not fresh
        met = met and -noise <= fall <= max(tol * objective, noise)
        self._still = self._still + 1 if met else 0

    def _end_iteration(self, objective: Array) -> None:
        """Give up starts, or end the fit."""
        max_iter, n_starts = self.settings.max_iter, self.n_starts
        settled = self._still >= 2
        self.converged = settled and n_starts == 1
        self.finished = self.converged or self.iteration >= max_iter
        left = starts_after(self.iteration, n_starts, max_iter)
        if settled or self.finished:
            left = 1
        if left < n_starts:
            chosen = np.sort(np.argsort(objective, kind="stable")[:left])
            self.kept = self.kept[chosen]
            for name in ("_current", "point", "_last", "_limits", "_next"):
                setattr(self, name, getattr(self, name)[chosen])
            self._still = 0


def _by_feature(H: Array) -> Array:
    """Return left factors laid out feature by feature, as agents gather them."""
    return np.ascontiguousarray(H.transpose(0, 2, 1)).transpose(0, 2, 1)
