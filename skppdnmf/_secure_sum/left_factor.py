"""The left factor's path: what every agent computes alike from the totals."""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from .._nmf.hals import hals
from .._nmf.penalties import Penalty, balance, left_penalty
from .plausible import check_limbs, check_setup
from .settings import LEFT_SWEEPS, PathSettings, StartCost, count_starts
from .totals import FixedPoint, Memory, ResidualTotals, Totals, read_setup, read_weight

Array = NDArray[np.float64]

# Extrapolation between iterations (Ang and Gillis, Neural Computation 31, 2019): the
# weight grows while the objective falls and is cut when it rises.
_FIRST_WEIGHT = 0.5
_GROWTH = 1.05
_LIMIT_GROWTH = 1.01
_CUT = 1.5
# When a pass over the left factor changes it by so little, beside the first, the passes
# end.
_LEFT_TOL = 0.2
# When the worse half of the starts, and then all but one, are given up: after so many
# iterations, or this share of max_iter if that comes first.
_FIRST_CUT = (16, 4)
_LAST_CUT = (30, 2)
_NOISE = 4.0
# How far entries are moved, at most, from the last left factor when a sum was given up.
# Less would leave the totals at both points much alike; more would cost a fit in which
# an agent is lost at the end.
_MOVE = 0.2


class LeftPath:
    """A point of the left factor's path, a function of the start and of the totals.

    `set_up` and `take` return the next point and leave this one as it is: every agent
    follows the path by itself, bit for bit the same.

    Parameters
    ----------
    starts : ndarray of shape (S, K, F)
        Common starts, nonnegative.
    settings : PathSettings
        Common to all agents.
    memory : Memory or None, default=None
        Totals of earlier samples, which count as well.

    Attributes
    ----------
    H : ndarray of shape (K, F)
        The left factor of the lowest objective so far.
    point : ndarray of shape (S, K, F)
        The left factors for which agents solve their right factors next.
    gram : ndarray of shape (S, K, K)
        ``H H^T`` of them, with the penalty on the right factor.
    weights : ndarray of shape (S,)
        Extrapolation weights of the right factors.
    kept : ndarray of int
        Which of the starts before the last total are left.
    right : Penalty
        On the right factor. None at first: what fits the scale of the start, which
        has none, could lose components to the penalty for ever.
    divisors : ndarray of shape (S, K) or None
        What the right factors' columns are to be divided by.
    improved : bool
        Whether the last total lowered the objective, so that H is new.
    leader : int
        The start, of those in the last total, that H comes from if so.
    normalised : ndarray of shape (K, F)
        H if so, over the norms by which that total was normalised.
    iteration : int
        Totals taken, the setup's not counted.
    finished, converged : bool
        Whether the fit is over, and whether `tol` was met.
    """

    def __init__(
        self, starts: Array, settings: PathSettings, memory: Memory | None = None
    ) -> None:
        self.settings = settings
        self._memory = memory
        self.batch: Memory | None = None
        n_starts, n_components, n_features = starts.shape
        self.fixed_point = FixedPoint.of(settings, n_components, n_features)
        self._left = Penalty()
        self.right = Penalty()
        self._current = self.point = starts
        self.H = starts[0]
        self.squared_norm = 0.0
        self._n_samples = 0
        self._filled_norm: Array | None = None  # of samples that the model fills
        self.relative_error = np.nan
        self.improved = False
        self.leader = 0
        self.normalised = self.H
        self.iteration = -1  # before the setup
        self.finished = self.converged = False
        self.kept = np.arange(n_starts)
        self.divisors: Array | None = None
        self.weights = np.zeros(n_starts)
        self._limits = np.ones(n_starts)
        self._next = np.full(n_starts, _FIRST_WEIGHT)
        self._forced = np.ones(n_starts, dtype=bool)
        self._last = np.full(n_starts, np.inf)
        self._lowest = np.inf
        self._still = 0
        self._refresh()

    @property
    def n_starts(self) -> int:
        """Starts that are left."""
        return len(self.point)

    @property
    def n_samples(self) -> int:
        """Samples of all agents; 0 before the first total."""
        return self._n_samples

    @property
    def n_words(self) -> int:
        """Words of the next total."""
        return self.n_starts * self.fixed_point.words_per_start

    def set_up(self, words: NDArray[np.uint64]) -> LeftPath:
        """Take the first total.

        Parameters
        ----------
        words : ndarray of uint64
            Of ``||X||^2``, the number of samples and their weight, if they have one.

        Returns
        -------
        LeftPath
            Before the first iteration.
        """
        after = copy(self)
        check_setup(words)
        (squared_norm, n_samples), weight = read_setup(words), read_weight(words)
        if not squared_norm < np.inf:
            raise OverflowError(f"the total of ||X||^2 is {squared_norm}; rescale X")
        after.squared_norm, after._n_samples = squared_norm, n_samples
        settings = self.settings
        after.fixed_point = self.fixed_point.bounded(
            squared_norm, n_samples, weight if settings.weighted else None
        )
        after._left = left_penalty(settings.left_alpha, settings.l1_ratio, weight)
        after.iteration = 0
        after._follow_fewer()
        return after

    def _follow_fewer(self) -> None:
        """Follow as many starts as the number of samples, now known, makes worth it."""
        settings = self.settings
        if settings.auto_peers is None:
            return
        K, F = self.H.shape
        cost = StartCost.of(
            K, F, settings.n_agents, settings.auto_peers, self._n_samples
        )
        n_starts = count_starts("auto", cost)
        if n_starts < self.n_starts:
            self._keep(np.arange(n_starts))
            self._refresh()

    def take(
        self, words: NDArray[np.uint64] | Totals | ResidualTotals, fresh: bool = False
    ) -> LeftPath:
        """Take the totals of the next iteration and make the next step.

        Parameters
        ----------
        words : ndarray of uint64, Totals or ResidualTotals
            The total, normalised to rows of H of root mean square 1; the first may
            begin with the squared norm of the rounded samples.
        fresh : bool, default=False
            Whether the totals are the first over another set of agents, so that the
            objective cannot be compared.

        Returns
        -------
        LeftPath
            After the iteration.
        """
        after = copy(self)
        after._advance(words, fresh)
        return after

    def move_on(self, n_departures: int) -> LeftPath:
        """Leave the point of a sum that was given up for another.

        A lost agent may know the total at the old point. The new one is the last left
        factor, not extrapolated, with every entry multiplied by a factor that is
        public and different after each departure: extrapolation may be nothing.

        Parameters
        ----------
        n_departures : int
            Departures of the run so far.

        Returns
        -------
        LeftPath
            At another point, without an iteration in between.
        """
        after = copy(self)
        rng = np.random.default_rng([n_departures, self.iteration + 1])
        factors = rng.uniform(1.0 - _MOVE, 1.0 + _MOVE, self._current.shape)
        factors[:, : self.settings.n_fixed] = 1.0
        after.point = self._current * factors
        after.weights = np.zeros(self.n_starts)
        after._refresh()
        return after

    def _advance(
        self, words: NDArray[np.uint64] | Totals | ResidualTotals, fresh: bool
    ) -> None:
        """Make the next step in a copy, whose arrays are those of the point before."""
        errors: Array | None = None
        if isinstance(words, ResidualTotals):
            words, errors = words
        totals = words
        if not isinstance(totals, Totals) and len(totals) > self.n_words:
            norm, totals = np.split(totals, [len(totals) - self.n_words])
            check_limbs("||X||^2, rounded", norm, self._n_samples)
            squared_norm = self.fixed_point.read_rounded_norm(norm)
            if not squared_norm < np.inf:
                raise OverflowError(f"the total of ||X||^2 is {squared_norm}, rounded")
            self.squared_norm = squared_norm
        if not isinstance(totals, Totals):
            if self.settings.missing:
                errors = self.fixed_point.decode_errors(totals, self.n_starts)
            totals = self.fixed_point.decode(totals, self.n_starts)
            self.fixed_point.check_totals(totals, self.squared_norm, errors)
        factors = self._inverse_norms()
        if errors is not None:
            totals = self._completed(totals, errors, factors)
        first = None
        if self.iteration == 0:
            first = self._balance(_scaled(totals, factors), self.point)
        if first is not None:
            self._current = self.point = self.point * first[:, :, None]
            factors = factors / first
        self._step(_scaled(totals, factors), factors, fresh)
        if first is not None and self.divisors is not None:
            self.divisors = self.divisors * first
        self.iteration += 1
        self._end_iteration()

    def _completed(self, totals: Totals, errors: Array, factors: Array) -> Totals:
        """Return the totals of samples whose missing entries the model fills.

        At first they count as zeros, so that a feature that nobody has observed gets
        zeros, for ever.
        """
        if self.iteration == 0:
            self._filled_norm = np.full(self.n_starts, self.squared_norm)
            return totals
        H = self.point * factors[:, :, None]
        model = totals.gram @ H
        norm = errors + 2.0 * np.einsum("skf,skf->s", totals.products, H)
        self._filled_norm = norm + np.einsum("skf,skf->s", model, H)
        return totals._replace(products=totals.products + model)

    def _inverse_norms(self) -> Array:
        """Inverse row norms of the points; 0 for a component that is not used."""
        norms = row_norms(self.point)
        return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)

    def _step(self, totals: Totals, factors: Array, fresh: bool) -> None:
        """Solve the left factor, compare the objective, choose the extrapolation."""
        own, solved_for = totals, self.point
        if self._memory is not None:
            memory = self._memory.moved(self.point[0])
            totals = totals._replace(
                gram=totals.gram + memory.gram,
                products=totals.products + memory.products,
            )
        H = hals(
            totals.gram + self._left.l2 * np.eye(factors.shape[1]),
            totals.products - self._left.l1,
            self.point.copy(),
            LEFT_SWEEPS,
            _LEFT_TOL,
            self.settings.n_fixed,
        )
        objective = self._objective(totals, H)
        worse = (objective > self._last) & ~self._forced & (not fresh)
        weights = np.where(worse | self._forced, 0.0, self._next)
        self._limits = np.where(
            worse, self._next, np.minimum(1.0, self._limits * _LIMIT_GROWTH)
        )
        self._next = np.where(
            worse, self._next / _CUT, np.minimum(self._limits, self._next * _GROWTH)
        )
        step = H - self._current
        step *= weights[:, None, None]
        step += H
        self.point = np.maximum(step, 0.0, out=step)
        self._current = H
        self.weights = weights
        self._forced = worse
        self.kept = np.arange(len(H))
        self.divisors = self._balance(totals, H)
        if self.divisors is not None:
            self._current = H * self.divisors[:, :, None]
            self.point = self.point * self.divisors[:, :, None]
        best = int(np.argmin(objective))
        self._check(objective[best], self._last[best], fresh)
        self._last = objective
        self.improved = bool(objective[best] <= self._lowest or fresh)
        if self.improved:
            self._lowest = objective[best]
            self.leader = best
            self.normalised = H[best] * factors[best][:, None]
            self.H = self._current[best]
            self.relative_error = self._relative_error(own, H, best)
            if self.settings.remembers:
                batch = Memory(
                    own.gram[best],
                    own.products[best],
                    self.squared_norm,
                    solved_for[best],
                )
                self.batch = batch.moved(self.H)

    def _objective(self, totals: Totals, H: Array) -> Array:
        """Half the squared error and the penalties, for each start."""
        right = self.settings.right_penalty
        squared = self.squared_norm - 2.0 * np.einsum("skf,skf->s", totals.products, H)
        squared += np.einsum("skl,skf,slf->s", totals.gram, H, H, optimize=True)
        if self._filled_norm is not None:
            squared += self._filled_norm - self.squared_norm
        if self._memory is not None:
            squared += self._memory.squared_norm
        objective = 0.5 * squared
        if right.l1 or right.l2:
            objective += right.l1 * totals.sums.sum(axis=1)
            objective += 0.5 * right.l2 * np.einsum("skk->s", totals.gram)
        if self._left.l1 or self._left.l2:
            objective += self._left.l1 * H.sum(axis=(1, 2))
            objective += 0.5 * self._left.l2 * np.einsum("skf,skf->s", H, H)
        return objective

    def _relative_error(self, totals: Totals, H: Array, start: int) -> float:
        """Return ``||X - W H|| / ||X||`` of all agents, without penalties."""
        norm = self.squared_norm
        if self._filled_norm is not None:
            norm = float(self._filled_norm[start])
        squared = norm - 2.0 * float(np.vdot(totals.products[start], H[start]))
        squared += float(np.vdot(totals.gram[start], H[start] @ H[start].T))
        return float(np.sqrt(max(0.0, squared) / (self.squared_norm or 1.0)))

    def _balance(self, totals: Totals, H: Array) -> Array | None:
        """Return the scale of each component that bears the least penalty."""
        left, right = self._left, self.settings.right_penalty
        if not (left.l1 or left.l2) or not (right.l1 or right.l2):
            return None
        linear = left.l1 * H.sum(axis=2)
        square = left.l2 * np.einsum("skf,skf->sk", H, H)
        right_linear = right.l1 * totals.sums
        right_square = right.l2 * np.einsum("skk->sk", totals.gram)
        scales = np.ones(H.shape[:2])
        for place in np.ndindex(*scales.shape):
            if place[1] < self.settings.n_fixed:
                continue
            terms = linear, square, right_linear, right_square
            scales[place] = balance(*(float(term[place]) for term in terms)) or 1.0
        return scales

    def _check(self, objective: float, last: float, fresh: bool) -> None:
        """Count the iterations in a row that hardly lowered the objective."""
        settings = self.settings
        floor = float(np.finfo(float).eps)
        jitter = floor
        if not settings.exact:
            resolution = self.fixed_point.resolution()
            floor += resolution
            # Rounding anew in every iteration changes the objective by less.
            n_entries = max(1, self._n_samples) * self.H.shape[0]
            jitter += resolution * np.sqrt(2.0 / n_entries)
        fall = last - objective
        still = np.isfinite(fall) and (
            0 <= fall <= settings.tol * objective
            or abs(fall) <= _NOISE * jitter * self.squared_norm
            or objective <= _NOISE * floor * self.squared_norm
        )
        met = settings.tol > 0 and bool(still) and not fresh
        self._still = self._still + 1 if met else 0

    def _end_iteration(self) -> None:
        """Give up starts, or end the fit."""
        settings = self.settings
        max_iter = settings.max_iter
        n_starts = self.n_starts
        settled = self._still >= 2
        self.converged = settled and n_starts == 1
        self.finished = self.converged or self.iteration >= max_iter
        left = starts_after(self.iteration, n_starts, max_iter)
        if settled or self.finished:
            left = 1
        if left < n_starts:
            self._keep(np.sort(np.argsort(self._last, kind="stable")[:left]))
            self._still = 0
        self.right = settings.right_penalty
        self._refresh()

    def _keep(self, chosen: NDArray[np.intp]) -> None:
        """Go on with these starts only."""
        self.kept = self.kept[chosen]
        for name in ("_current", "point", "weights", "_limits", "_next"):
            setattr(self, name, getattr(self, name)[chosen])
        self._forced, self._last = self._forced[chosen], self._last[chosen]
        if self.divisors is not None:
            self.divisors = self.divisors[chosen]

    def _refresh(self) -> None:
        """Form what the right factors' problems have in common."""
        point = self.point
        self.gram = point @ point.transpose(0, 2, 1)
        self.gram += self.right.l2 * np.eye(point.shape[1])


def _scaled(totals: Totals, factors: Array) -> Totals:
    """Totals for right factors whose columns are multiplied by factors."""
    return Totals(
        totals.gram * factors[:, :, None] * factors[:, None, :],
        totals.products * factors[:, :, None],
        totals.sums * factors,
    )


def row_norms(H: Array) -> Array:
    """Root mean square of each row, shape (S, K)."""
    return np.sqrt(np.einsum("skf,skf->sk", H, H) / H.shape[-1])


def starts_after(iteration: int, n_starts: int, max_iter: int) -> int:
    """Return how many of the starts are followed after an iteration."""
    if iteration >= _cut(_LAST_CUT, max_iter):
        return 1
    return -(-n_starts // 2) if iteration == _cut(_FIRST_CUT, max_iter) else n_starts


def _cut(rule: tuple[int, int], max_iter: int) -> int:
    """Return the iteration at which starts are given up."""
    iterations, share = rule
    return min(iterations, max(1, max_iter // share))
