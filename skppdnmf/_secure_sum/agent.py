"""One agent of the secure sum: what it holds and what it makes of the totals.

It does no I/O (`skppdnmf._agent`). It learns the network-wide totals and nothing else
of the other agents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._agent import Departure, Envelope, Report, Step
from .._data.weights import WeightedSamples
from .._nmf import admm
from .._nmf.blocks import one_by_one, row_slices
from .._nmf.hals import hals
from .._nmf.observed import descend_observed, observed_model, split_observed
from .._protocol import call
from .._sealing.transcript import Transcript
from ..exceptions import DropoutError
from .correspondence import Correspondence, Learnt
from .exchange import SecureSum, Total
from .left_factor import LeftPath, row_norms
from .limbs import to_limbs
from .points import SummedPoints
from .side_by_side import SideBySide
from .totals import (
    HEADROOM,
    ResidualTotals,
    Totals,
    are_exact,
    largest_column,
    row_blocks,
    setup_words,
    squared_norms,
)

Array = NDArray[np.float64]

# Passes of coordinate descent, at first and then warm started; more would cost more
# than they gain.
_FIRST_SWEEPS = 10
_SWEEPS = 2


class SumAgent:
    """One party of the federation under the secure sum.

    Parameters
    ----------
    number : int
        Its node in the graph.
    names : sequence of str
        What errors call the agents.
    X : ndarray, sparse matrix or WeightedSamples of shape (n_i, F)
        Its samples; none for a relay.
    path : LeftPath
        Where all agents start.
    secure_sum : SecureSum
        Its side of the sums.
    correspondents : collection of int
        From whom envelopes may come.
    run : bytes
        16 bytes that name the run.
    compute : callable, default=call
        As in `skppdnmf._protocol.Hooks`: what all agents compute alike goes through it.
    notes : object or None, default=None
        Of an audit, which is told of the right factors behind each summand.
    share : callable, default=one_by_one
        As in `skppdnmf._protocol.Hooks`: blocks of samples go through it.
    beside : SideBySide or None, default=None
        With which agents of one process it sweeps over its right factors.
    """

    def __init__(
        self,
        number: int,
        names: Sequence[str],
        X: Any,
        path: LeftPath,
        secure_sum: SecureSum,
        correspondents: Sequence[int],
        run: bytes,
        compute: Callable[..., Any] = call,
        notes: Any = None,
        share: Callable[..., list[Any]] = one_by_one,
        beside: SideBySide | None = None,
    ) -> None:
        self.number = number
        self.n_solved = 0
        self._beside = beside
        if beside is not None:
            beside.join(self)
        self.name = names[number]
        self._weights: Array | None = None
        if isinstance(X, WeightedSamples):
            X, self._weights = X
        self._mask: Any = None  # of what is observed, if entries may be missing
        if path.settings.missing:
            X, self._mask = split_observed(X)
        self._each = share
        self._rows = row_slices(X.shape[0])
        self._take_samples(X)
        self.path = path
        self._compute = compute
        self._notes = notes
        self._post = Correspondence(number, names, secure_sum, correspondents, run)
        self._address = self._post.address
        self._squared_norm = self._squared_error = self._weighted_norm()
        self._sum = secure_sum
        self._begin_at_zero()
        self._share: Totals | None = None
        self._errors: Array | None = None  # where entries are missing
        self._words = np.empty(0, dtype=np.uint64)
        self._points = SummedPoints(self.name)
        # Samples and their unit; rounded as soon as all know by how much.
        self._sample_unit = 1.0
        self._rounded_norm = self._squared_norm

    def _begin_at_zero(self) -> None:
        """Have right factors of zeros for each start, to be filled block by block."""
        shape = (*self.path.point.shape[:2], self.X.shape[0])
        self._W, self._extrapolated = np.zeros(shape), np.zeros(shape)

    def _take_samples(self, X: Any) -> None:
        """Keep samples, in blocks too, of which more is computed when it is needed."""
        self.X = X
        whole = len(self._rows) == 1
        self._parts = [X] if whole else [X[rows] for rows in self._rows]
        self._columns = [math.inf] * len(self._parts)
        self._blocks: list[list[Any] | None] = [None] * len(self._parts)

    def start(self) -> Step:
        """Begin; the first envelopes carry public keys.

        Returns
        -------
        Step

        Raises
        ------
        OverflowError
            If the agent's samples are too large to be squared.
        """
        if not math.isfinite(self._squared_norm):
            raise OverflowError(f"{self.name}: ||X||^2 is not finite; rescale X")
        return self._post.start(self._setup())

    def advance(self, envelopes: list[Envelope]) -> Step:
        """Take envelopes and go on as far as they allow.

        At most one BCD iteration is finished in a call.

        Parameters
        ----------
        envelopes : list of Envelope
            In any order.

        Returns
        -------
        Step

        Raises
        ------
        CorruptedMessageError
            If an envelope is not what its sender must have sent.
        DropoutError
            If a sum was given up that must not be formed again.
        """
        return self._post.advance(envelopes, self._learn, self._another_summand)

    def depart(self, departure: Departure) -> Step:
        """Take note that others have left: the present sum is void.

        Parameters
        ----------
        departure : Departure
            Who has left; all agents are told the same, in the same order.

        Returns
        -------
        Step

        Raises
        ------
        DropoutError
            If the fit cannot go on without them.
        CorruptedMessageError
            If what came from one who had heard of it before is not what it must have
            sent.
        """
        return self._post.depart(departure, self._learn, self._another_summand)

    def stop(self) -> None:
        """Be asked to end the fit: the next total is everybody's last."""
        self._sum.stop()

    def _learn(self, total: Total) -> Learnt:
        """Take a total; return the next summand, and a report on the iteration."""
        report = None
        if total.step == 0:
            path = self.path = self._compute(LeftPath.set_up, self.path, total.words)
            self._begin_at_zero()
            if self._sum.fresh:
                path = self._move_on()
            if not path.settings.exact:
                self._round_samples()
            self._solve_right(_FIRST_SWEEPS)
        else:
            # Alone, an agent has no need to round.
            alone: Any = self._share if self.path.settings.exact else None
            if alone is not None and self._mask is not None:
                errors = self._errors
                if errors is None:
                    errors = np.zeros(len(self._W))
                alone = ResidualTotals(alone, errors)
            path = self.path = self._compute(
                LeftPath.take, self.path, alone or total.words, total.fresh
            )
            report = self._end_iteration(total)
        if report is not None and report.final:
            return Learnt(None, report)
        self._check_point()
        settings = path.settings
        rounds = not (settings.exact or settings.missing)
        if total.step == 0 and rounds and not self._sum.fresh:
            # With the first totals goes the norm of what has been rounded; not over
            # other agents than those whose norm has been summed before.
            words = self._each(self._rounded_norm_words, range(len(self._parts)))
            return Learnt(np.concatenate([sum(words[1:], words[0]), self._words]))
        return Learnt(self._words, report)

    def _another_summand(self) -> NDArray[np.uint64]:
        """Return a summand for a sum that was given up, but not the same again."""
        if self.path.iteration < 0:
            # These words depend on nothing that could be changed.
            if self._sum.exposed:
                who = ", ".join(map(self._address.name_of, sorted(self._sum.lost)))
                raise DropoutError(
                    f"{who} dropped out in the first sum and one of them may know its "
                    "total: summed anew without them, the norm and the number of the "
                    "samples would show it those of the others that were lost"
                )
            return self._setup()
        path = self._move_on()
        self._check_point()
        self._solve_right(_SWEEPS if path.iteration else _FIRST_SWEEPS)
        return self._words

    def _weights_of(self, place: int) -> Array | None:
        """Return the weights of a block of samples."""
        return None if self._weights is None else self._weights[self._rows[place]]

    def _weighted_norm(self) -> float:
        """Return ``||X||^2`` of the samples as they are, weighted."""
        if self._weights is None:
            return float(sum(self._each(admm.squared_norm, self._parts)))
        return float(squared_norms(self.X) @ self._weights)

    def _round_samples(self) -> None:
        """Round the samples as all have agreed."""
        numbers = self.path.fixed_point
        if sparse.issparse(self.X):
            self._take_samples(numbers.round_samples(self.X))
        else:
            rounded = np.empty(self.X.shape)

            def round_part(place: int) -> None:
                part = numbers.round_samples(self._parts[place])
                rounded[self._rows[place]] = part

            self._each(round_part, range(len(self._parts)))
            self._take_samples(rounded)
        self._columns = self._each(largest_column, self._parts)
        self._sample_unit = numbers.sample_unit
        self._rounded_norm = self._weighted_norm() * self._sample_unit**2

    def _rounded_norm_words(self, place: int) -> NDArray[np.uint64]:
        """Return ``||X||^2`` of a block of rounded samples, exactly."""
        numbers = self.path.fixed_point
        return numbers.rounded_norm_words([self._parts[place]], self._weights_of(place))

    def _counts(self) -> float:
        """Return as how many samples one counts at most in the fixed-point numbers."""
        if self._weights is None:
            return 1.0
        largest = float(self._weights.max(initial=0.0))
        return max(1.0, largest / self.path.fixed_point.weight_unit)

    def _setup(self) -> NDArray[np.uint64]:
        """Return the summand of the first sum."""
        if self._weights is None:
            parts = self._each(_setup_words, self._parts)
            return sum(parts[1:], parts[0])
        norms = squared_norms(self.X)
        words = setup_words(norms * self._weights)
        return np.concatenate([words, to_limbs(self._weights)])

    def _check_point(self) -> None:
        """Refuse to contribute twice at one point in a round."""
        self._points.add(self._sum.next_step, self.path.point)

    def _move_on(self) -> LeftPath:
        """Go to a point at which nothing has been summed."""
        self.path = self._compute(LeftPath.move_on, self.path, self._post.n_departures)
        return self.path

    def _end_iteration(self, total: Total) -> Report:
        """Report, and solve the right factors for the next points."""
        path = self.path
        if path.improved and self._share is not None:
            gram, products = self._share.gram, self._share.products
            H = path.normalised
            inner = float(np.vdot(products[path.leader], H))
            outer = float(np.vdot(gram[path.leader], H @ H.T))
            self._squared_error = max(0.0, self._rounded_norm - 2.0 * inner + outer)
            if self._errors is not None:
                self._squared_error = float(self._errors[path.leader])
        report = Report(
            iteration=total.step,
            n_exchanges=max(0, self._sum.n_rounds - 1),
            H=path.H,
            squared_error=self._squared_error,
            stopped=path.converged,
            final=path.finished or total.last,
            shared_error=path.relative_error,
            totals=path.batch if path.finished or total.last else None,
        )
        if report.final:  # no iterate of the right factor is left behind
            self._W, self._extrapolated = self._W[:0], self._extrapolated[:0]
            self._share = None
            self._words = self._words[:0]
            return report
        if self._sum.fresh:
            path = self._move_on()
        if len(path.kept) < len(self._W):
            self._W = self._W[path.kept]
            self._extrapolated = self._extrapolated[path.kept]
        if path.divisors is not None:
            self._W = self._W / path.divisors[:, :, None]
            self._extrapolated = self._extrapolated / path.divisors[:, :, None]
        self._solve_right(_SWEEPS)
        return report

    @property
    def transcript(self) -> Transcript:
        """What the agent has been told."""
        return self._sum.transcript

    @property
    def finished(self) -> bool:
        """Whether the fit is over."""
        return self._post.finished

    @property
    def n_samples(self) -> float:
        """Samples of all agents; 0 before the first total."""
        return self.path.n_samples

    def _solve_right(self, sweeps: int) -> None:
        """Solve the right factors for the points and form the next summand."""
        path = self.path
        if self._mask is not None and path.iteration > 0:
            self._solve_observed(2 * sweeps)
            return
        solve = partial(self._solve_rows, sweeps)
        solved = self._each(solve, range(len(self._parts)))
        self.n_solved += 1
        squares = [block.squares for block in solved]
        beyond = self._beyond_bound(sum(squares[1:], squares[0]))
        if len(beyond):
            scale_down = partial(self._scale_down, self._scales(beyond))
            solved = self._each(scale_down, range(len(self._parts)))
        summands = [block.summand for block in solved]
        if path.settings.exact:
            self._share = reduce(_added, summands)
        else:
            self._words, self._share = path.fixed_point.joined(summands)
        if self._notes is not None:
            self._notes.right_factors(path.point, self._extrapolated)

    def next_sweeps(self, path: LeftPath) -> tuple[Array, Array] | None:
        """Return what sweeps begin with at a point to which the agent has yet to come.

        Parameters
        ----------
        path : LeftPath
            The point.

        Returns
        -------
        products, start : ndarray of shape (S, K, n_i)
            Linear terms and right factors; or None, where these are not known yet, or
            not all samples are one block.
        """
        ready = len(self._parts) == 1 and self._mask is None and self.n_solved > 0
        same = path.divisors is None and path.n_starts == len(self._extrapolated)
        if not ready or not same or not path.iteration:
            return None
        return self._products(0, path), self._extrapolated

    def _products(self, place: int, path: LeftPath) -> Array:
        """Return the linear terms of a block's right factors at a point."""
        point, X = path.point, self._parts[place]
        flat = point.reshape(-1, point.shape[-1]) * self._sample_unit
        products = _right_products(X, flat).reshape(*point.shape[:2], X.shape[0])
        products -= path.right.l1
        return products

    def _solve_rows(self, sweeps: int, place: int) -> _Solved:
        """Solve the right factors of a block of samples."""
        path, rows = self.path, self._rows[place]
        W = None
        if self._beside is not None and len(self._parts) == 1:
            W = self._beside.take(self, path, sweeps)
        if W is None:
            start = self._extrapolated[:, :, rows].copy()
            W = hals(path.gram, self._products(place, path), start, sweeps)
        extrapolated = W
        if path.weights.any():
            step = W - self._W[:, :, rows]
            step *= path.weights[:, None, None]
            step += W
            extrapolated = np.maximum(step, 0.0, out=step)
        self._W[:, :, rows] = W
        self._extrapolated[:, :, rows] = extrapolated
        return self._summand(place)

    def _summand(self, place: int) -> _Solved:
        """Return what a block of samples adds to the totals."""
        path, rows = self.path, self._rows[place]
        normalised = self._extrapolated[:, :, rows] * row_norms(path.point)[:, :, None]
        weights, X = self._weights_of(place), self._parts[place]
        squares = self._squares(normalised, weights)
        if path.settings.exact:
            return _Solved(squares, _exact_share(X, normalised, weights))
        numbers = path.fixed_point
        norm = numbers.largest_norm(squares, X.shape[0])
        blocks = [X]
        if weights is not None or not are_exact(norm, self._columns[place]):
            known = self._blocks[place]
            if known is None:
                known = row_blocks(X, path.settings.n_max, self._counts())
                self._blocks[place] = known
            blocks = known
        return _Solved(squares, numbers.whole(normalised, blocks, weights, norm))

    def _scales(self, beyond: NDArray[np.intp]) -> dict[int, float]:
        """Return for these starts by how much their right factors are too large."""
        terms = [self._products(place, self.path) for place in range(len(self._parts))]
        products = np.concatenate(terms, axis=2)
        return {
            int(s): _best_scale(
                products[s], self.path.gram[s], self._W[s], self._weights
            )
            for s in beyond
        }

    def _scale_down(self, scales: dict[int, float], place: int) -> _Solved:
        """Replace what exceeds the bound in a block by what fits."""
        rows = self._rows[place]
        for start, scale in scales.items():
            self._extrapolated[start, :, rows] = scale * self._W[start, :, rows]
        return self._summand(place)

    def _solve_observed(self, sweeps: int) -> None:
        """Do so on the observed entries: the summand has what is left of them."""
        path, X, unit = self.path, self.X, self._sample_unit
        penalty, numbers = path.right, path.fixed_point
        previous = self._W
        self._W = np.stack(
            [
                descend_observed(
                    X, self._mask, H, W.T / unit, sweeps, penalty.l1 / unit, penalty.l2
                ).T
                * unit
                for H, W in zip(path.point, self._extrapolated, strict=True)
            ]
        )
        step = (self._W - previous) * path.weights[:, None, None]
        self._extrapolated = np.maximum(self._W + step, 0.0)
        norms = row_norms(path.point)[:, :, None]
        right = self._extrapolated * norms
        for start in self._beyond_bound(self._squares(right, self._weights)):
            size = np.sqrt(self._bound() / np.square(right[start]).sum(axis=1).max())
            right[start] = self._W[start] * norms[start]
            right[start] *= min(1.0, 0.99 * size)
        if not path.settings.exact:
            right = numbers.round_right(right)
        unscaled = np.divide(right, norms, out=np.zeros_like(right), where=norms > 0)
        residuals, errors = [], np.zeros(len(right))
        weights = 1.0 if self._weights is None else self._weights
        for start, H in enumerate(path.point):
            model = observed_model(unscaled[start].T / unit, H, self._mask)
            residual = X - model
            if not path.settings.exact:
                residual = np.rint(residual)
            residuals.append(residual)
            errors[start] = float(np.sum(squared_norms(residual) * weights))
        errors *= unit**2
        self._errors = errors
        if self._notes is not None:
            self._notes.right_factors(path.point, self._extrapolated)
        if path.settings.exact:
            shares = [
                _exact_share(residual, right[start : start + 1], self._weights)
                for start, residual in enumerate(residuals)
            ]
            self._share = Totals(
                np.concatenate([share.gram for share in shares]),
                np.concatenate([share.products for share in shares]),
                np.concatenate([share.sums for share in shares]),
            )
            return
        blocks = [
            row_blocks(residual, path.settings.n_max, self._counts())
            for residual in residuals
        ]
        self._words, self._share = numbers.encode_residuals(
            right, blocks, errors, self._weights
        )

    def _bound(self) -> float:
        """Return the agent's share of the bound on the square of a right factor."""
        headroom = HEADROOM * self.path.fixed_point.spare
        return headroom**2 * self._squared_norm / self.path.point.shape[-1]

    @staticmethod
    def _squares(normalised: Array, weights: Array | None) -> Array:
        """Return the squared norms of right factors' columns, shape (S, K)."""
        counted = normalised if weights is None else normalised * weights
        return np.einsum("skn,skn->sk", counted, normalised)

    def _beyond_bound(self, squares: Array) -> NDArray[np.intp]:
        """Return the starts whose summand exceeds the agent's share of the bound."""
        return np.flatnonzero(~(squares.max(axis=1) <= self._bound()))


class _Solved(NamedTuple):
    """A block of samples whose right factors are solved."""

    squares: Array  # squared norms of their columns
    summand: Any  # `Totals` of an agent alone, or `Whole`


def _setup_words(X: Any) -> NDArray[np.uint64]:
    """Return the summand of the first sum of samples without weights."""
    return setup_words(squared_norms(X))


def _added(one: Totals, other: Totals) -> Totals:
    """Return the totals of two blocks of samples."""
    return Totals(*(a + b for a, b in zip(one, other, strict=True)))


def _exact_share(X: Any, normalised: Array, weights: Array | None) -> Totals:
    """Return the totals of an agent alone, not rounded."""
    n_starts, n_components, n_samples = normalised.shape
    counted = normalised if weights is None else normalised * weights
    flat = counted.reshape(n_starts * n_components, n_samples)
    return Totals(
        counted @ normalised.transpose(0, 2, 1),
        _left_products(X, flat).reshape(n_starts, n_components, X.shape[1]),
        counted.sum(axis=2),
    )


def _best_scale(products: Array, gram: Array, W: Array, weights: Array | None) -> float:
    """Return the t for which ``t W`` is nearest to the samples."""
    if weights is not None:
        W, products = W * np.sqrt(weights), products * np.sqrt(weights)
    square = float(np.vdot(gram @ W, W))
    return max(0.0, float(np.vdot(products, W)) / square) if square > 0 else 0.0


def _right_products(X: Any, H: Array) -> Array:
    """Return ``H X^T`` in double precision, shape (m, n)."""
    H = H.astype(X.dtype, copy=False)
    product = (X @ H.T).T if sparse.issparse(X) else H @ X.T
    return np.ascontiguousarray(product, dtype=np.float64)


def _left_products(X: Any, W: Array) -> Array:
    """Return ``W X`` in double precision, shape (m, F)."""
    W = W.astype(X.dtype, copy=False)
    product = (X.T @ W.T).T if sparse.issparse(X) else W @ X
    return np.ascontiguousarray(product, dtype=np.float64)
