"""The network-wide totals of the secure sum, and the words that carry them."""

from __future__ import annotations

import math
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..exceptions import CorruptedTotalError
from .limbs import N_LIMBS, TOTAL_BITS, from_limbs, to_limbs
from .plausible import check_totals
from .settings import PathSettings

Array = NDArray[np.float64]
Words = NDArray[np.uint64]

# The norm of a right factor's column is at most this many times what its samples'
# norm allows without extrapolation, which at most doubles it.
HEADROOM = 2.0
# The largest entry of a right factor that is common, over its root mean square.
_LARGEST = 16.0
# Units in the root mean square of X.
_SAMPLE_SCALE = 2.0**20
# So many times n_max the entries of right factors are taken to be at most, in their
# units (64 times the root mean square), when products are summed in doubles.
_LARGEST_RIGHT = 4.0
# Right factors of samples of which little is observed are larger, by up to this.
_SPARE = 8.0
# Units of the squared error on observed entries, in ``||X||^2``.
_ERROR_BITS = 40
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


class Whole(NamedTuple):
    """Totals of some samples in whole numbers, which add up in any order.

    Parameters
    ----------
    gram, products, sums : ndarray of int64
        As of `Totals`, in their units.
    """

    gram: NDArray[np.int64]
    products: NDArray[np.int64]
    sums: NDArray[np.int64]


class Memory(NamedTuple):
    """Totals of earlier samples, with a left factor to go on from.

    Parameters
    ----------
    gram : ndarray of shape (K, K)
        Of their right factors.
    products : ndarray of shape (K, F)
        Of their right factors and them.
    squared_norm : float
        Of them.
    H : ndarray of shape (K, F)
        The left factor.
    """

    gram: Array
    products: Array
    squared_norm: float
    H: Array

    def faded(self, factor: float) -> Memory:
        """Return what is left of it."""
        return Memory(
            self.gram * factor,
            self.products * factor,
            self.squared_norm * factor,
            self.H,
        )

    def moved(self, H: Array) -> Memory:
        """Return what the totals would be for another left factor, nearly.

        Samples that the old left factor explains as W H have with the new one the right
        factor W M, where M H is nearest to the old one.
        """
        gram = H @ H.T
        ridge = 1e-9 * float(np.trace(gram)) / len(H) + np.finfo(float).tiny
        M = np.linalg.solve(gram + ridge * np.eye(len(H)), H @ self.H.T).T
        return Memory(M.T @ self.gram @ M, M.T @ self.products, self.squared_norm, H)

    def joined(self, other: Memory) -> Memory:
        """Return both, for the left factor of the other, which is newer."""
        old = self.moved(other.H)
        return Memory(
            old.gram + other.gram,
            old.products + other.products,
            old.squared_norm + other.squared_norm,
            other.H,
        )


class ResidualTotals(NamedTuple):
    """What an exchange brings where entries may be missing.

    Parameters
    ----------
    totals : Totals
        With products of the right factors and what is left of the observed entries.
    errors : ndarray of shape (S,)
        Squared errors on them.
    """

    totals: Totals
    errors: Array


def _rounded_down(value: float) -> str:
    """Three digits of a large number, not more than it."""
    if value < 1:
        return "0: no scale is small enough"
    digit = 10 ** max(0, math.floor(math.log10(value)) - 2)
    return f"{value // digit * digit:.3g}"


def squared_norms(X: Any) -> Array:
    """Return each sample's squared norm, as if it stood alone.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (m, F)
        Samples.

    Returns
    -------
    ndarray of shape (m,)
    """
    if sparse.issparse(X):
        squares = X.astype(np.float64).power(2)
        return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()
    X = X.astype(np.float64, copy=False)
    return np.einsum("nf,nf->n", X, X)


def setup_words(squared_norms: Array) -> Words:
    """Return an agent's summand of the first sum: ``||X_i||^2``, exactly, and n_i.

    Parameters
    ----------
    squared_norms : ndarray of shape (n_i,)
        Of its samples.

    Returns
    -------
    ndarray of uint64, shape (SETUP_WORDS,)
    """
    return np.append(to_limbs(squared_norms), np.uint64(len(squared_norms)))


def read_setup(words: Words) -> tuple[float, int]:
    """Return ``||X||^2`` and the number of samples from the first total."""
    return from_limbs(words[:N_LIMBS]), int(words[N_LIMBS])


def read_weight(words: Words) -> float:
    """Return the sum of the samples' weights from the first total, or their number."""
    weights = words[SETUP_WORDS:]
    return from_limbs(weights) if len(weights) else float(words[N_LIMBS])


class FixedPoint:
    r"""Turns right factors into words whose sums are exact, and totals back.

    Under ``"secure-sum"`` an agent rounds its samples and its right factors, not the
    products: these are whole numbers then, exact in whatever order they are summed,
    so that the totals do not depend on who holds which samples. (As long as products
    of entries fit a double. Those of an outlier, a sample far larger than the root
    mean square, may not, nor others above about ``n_max=1e7``: then a total is off by
    a few units.)

    With the rows of H scaled to a root mean square of 1, the exact right factor W of
    samples X_i has ``||W||^2 <= ||X_i||^2 / F``. Entries of W are multiples of

    .. math:: \frac{16}{n_{max}} \frac{\|X\|}{\sqrt{n K F}},

    16 being about the largest entry over the root mean square, and entries of X of
    ``2**-20`` times their root mean square.

    Parameters
    ----------
    n_components, n_features : int
        K and F.
    n_max : float
        Fixed-point scale.
    with_sums : bool
        Whether the right factors' column sums are sent, too.
    missing : bool, default=False
        Whether entries may be missing: a squared error is sent, too, and right factors
        are rounded to eight times as much.
    """

    def __init__(
        self,
        n_components: int,
        n_features: int,
        n_max: float,
        with_sums: bool,
        missing: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_features = n_features
        self.n_max = n_max
        self.with_sums = with_sums
        self.missing = missing
        self.spare = _SPARE if missing else 1.0
        self.error_unit = 1.0
        self._upper = np.triu_indices(n_components)
        self.right_unit = self.sample_unit = self.weight_unit = 1.0

    @classmethod
    def of(
        cls, settings: PathSettings, n_components: int, n_features: int
    ) -> FixedPoint:
        """Return the numbers that settings ask for: what is rounded, and what is sent.

        Parameters
        ----------
        settings : PathSettings
            Common to all agents.
        n_components, n_features : int
            K and F.

        Returns
        -------
        FixedPoint
        """
        n_max = 1.0 if settings.exact else settings.n_max
        with_sums = settings.right_penalty.l1 > 0
        return cls(n_components, n_features, n_max, with_sums, settings.missing)

    def check(self, n_samples: int) -> None:
        """Refuse a scale under which a total could wrap.

        Parameters
        ----------
        n_samples : int
            Number of samples n.

        Raises
        ------
        OverflowError
            If `n_max` is too large; the message says how large it may be.
        """
        K, F, n = self.n_components, self.n_features, max(1, n_samples)
        # Norms of a column of W and of X in their units; rounding adds the last term.
        slack = math.sqrt(n) / 2.0
        samples = math.sqrt(n * F) * _SAMPLE_SCALE + slack
        per_scale = HEADROOM * math.sqrt(n * K) / _LARGEST
        limit = 2.0**TOTAL_BITS
        most = (min(math.sqrt(limit), limit / samples) - slack) / per_scale
        if not self.n_max <= most:
            raise OverflowError(
                f"n_max={self.n_max:g} is too large for the secure sum: with "
                f"n_samples={n}, n_components={K} and n_features={F} a total could "
                f"exceed 64 bits; the largest is n_max={_rounded_down(most)}"
            )

    def bounded(
        self, squared_norm: float, n_samples: int, weight: float | None = None
    ) -> FixedPoint:
        """Return the numbers for public bounds that all agents have agreed upon.

        Parameters
        ----------
        squared_norm : float
            ``||X||^2``.
        n_samples : int
            Number of samples n.
        weight : float or None, default=None
            Sum of their weights; None where they have none.

        Returns
        -------
        FixedPoint
            With its units.

        Raises
        ------
        OverflowError
            If a total could wrap.
        """
        bounded = copy(self)
        n: float = max(1, n_samples)
        if weight:
            # Weights are rounded like right factors, and integers of a usual size not.
            mean = math.frexp(weight / n)[1]
            bounded.weight_unit = math.ldexp(1.0, mean) if abs(mean) > 4 else 1.0
            n = max(1.0, weight / bounded.weight_unit)
            squared_norm /= bounded.weight_unit
        self.check(math.ceil(n))
        K, F = self.n_components, self.n_features
        norm = math.sqrt(squared_norm) or 1.0
        bounded.right_unit = _LARGEST / self.n_max * norm / math.sqrt(n * K * F)
        bounded.right_unit *= self.spare
        bounded.error_unit = norm * norm / 2.0**_ERROR_BITS * bounded.weight_unit
        bounded.sample_unit = norm / math.sqrt(n * F) / _SAMPLE_SCALE
        return bounded

    @property
    def words_per_start(self) -> int:
        """Words that one start takes."""
        K = self.n_components
        n_words = K * (K + 1) // 2 + K * self.n_features
        return n_words + (K if self.with_sums else 0) + self.missing

    def resolution(self) -> float:
        """Size of what rounding makes of the objective, in units of ``||X||^2``."""
        return (_LARGEST / self.n_max * self.spare) ** 2 / 12.0

    def rounded_norm_words(
        self, blocks: list[Any], weights: Array | None = None
    ) -> Words:
        """Return ``||X_i||^2`` of an agent's rounded samples, exactly, in words.

        Parameters
        ----------
        blocks : list of ndarray or sparse matrix of shape (m, F)
            Its rounded samples.
        weights : ndarray of shape (n_i,) or None, default=None
            Of the samples.

        Returns
        -------
        ndarray of uint64, shape (N_LIMBS,)
        """
        norms = np.concatenate([squared_norms(block) for block in blocks])
        return to_limbs(norms if weights is None else norms * weights)

    def read_rounded_norm(self, words: Words) -> float:
        """Return ``||X||^2`` of all rounded samples from a total."""
        return from_limbs(words) * self.sample_unit**2

    def round_samples(self, X: Any) -> Any:
        """Return an agent's samples in whole numbers of `sample_unit`.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_i, F)
            Its samples.

        Returns
        -------
        ndarray or sparse matrix of float64
        """
        rounded = X.astype(np.float64)
        values = rounded.data if sparse.issparse(X) else rounded
        values /= self.sample_unit
        np.rint(values, out=values)
        return rounded

    def encode(
        self, right: Array, blocks: list[Any], weights: Array | None = None
    ) -> tuple[Words, Totals]:
        """Return an agent's summand, in words and as the numbers they stand for.

        Parameters
        ----------
        right : ndarray of shape (S, K, n_i)
            Its right factors, for rows of H of root mean square 1.
        blocks : list of ndarray or sparse matrix of shape (m, F)
            Its rounded samples, in `row_blocks`.
        weights : ndarray of shape (n_i,) or None, default=None
            Of the samples.

        Returns
        -------
        words : ndarray of uint64, one-dimensional
            What the agent adds to the sum.
        share : Totals
            The same in numbers.
        """
        return self.joined([self.whole(right, blocks, weights)])

    def joined(self, wholes: list[Whole]) -> tuple[Words, Totals]:
        """Return a summand of several blocks of samples.

        Parameters
        ----------
        wholes : list of Whole
            Of each block.

        Returns
        -------
        words, share
            As for `encode`.
        """
        whole = Whole(*(sum(parts[1:], parts[0]) for parts in zip(*wholes)))  # noqa: B905
        return self._words(*whole, np.zeros(len(whole.gram))), self._numbers(*whole)

    def encode_residuals(
        self,
        right: Array,
        blocks: list[list[Any]],
        errors: Array,
        weights: Array | None = None,
    ) -> tuple[Words, Totals]:
        """Return a summand in which the samples are what is left of them, by start.

        Parameters
        ----------
        right : ndarray of shape (S, K, n_i)
            As for `encode`.
        blocks : list of list of ndarray or sparse matrix
            For each start its rounded residuals, in `row_blocks`.
        errors : ndarray of shape (S,)
            Squared errors on observed entries.
        weights : ndarray of shape (n_i,) or None, default=None
            Of the samples.

        Returns
        -------
        words, share
            As for `encode`.
        """
        wholes = [
            self.whole(right[s : s + 1], own, weights) for s, own in enumerate(blocks)
        ]
        parts = zip(*wholes, strict=True)
        gram, products, sums = (np.concatenate(one) for one in parts)
        errors = np.minimum(np.rint(errors / self.error_unit), 2.0**TOTAL_BITS / 64)
        words = self._words(gram, products, sums, errors)
        return words, self._numbers(gram, products, sums)

    def round_right(self, right: Array) -> Array:
        """Return right factors as the words hold them."""
        return np.rint(right / self.right_unit) * self.right_unit

    def largest_norm(self, squares: Array, n_rows: int) -> float:
        """Return a bound on the norm of a right factor's column in whole numbers.

        Parameters
        ----------
        squares : ndarray of shape (S, K)
            Squared norms of the columns before rounding.
        n_rows : int
            Number of samples.

        Returns
        -------
        float
        """
        largest = math.sqrt(float(squares.max(initial=0.0)))
        return largest / self.right_unit + math.sqrt(n_rows)

    def whole(
        self,
        right: Array,
        blocks: list[Any],
        weights: Array | None = None,
        norm: float = math.inf,
    ) -> Whole:
        """Return totals in whole numbers.

        Parameters
        ----------
        right, blocks, weights
            As for `encode`; products with each block are taken to be exact.
        norm : float, default=inf
            Bound on the norm of a right factor's column, in whole numbers.

        Returns
        -------
        Whole
        """
        K, F = self.n_components, self.n_features
        n_starts = len(right)
        whole = np.rint(right / self.right_unit)
        counted = whole
        if weights is not None:
            counted = np.rint(whole * (weights / self.weight_unit))
        products = np.zeros((n_starts * K, F), dtype=np.int64)
        end = 0
        for block in blocks:
            start, end = end, end + block.shape[0]
            flat = counted[:, :, start:end].reshape(n_starts * K, -1)
            product = (block.T @ flat.T).T if sparse.issparse(block) else flat @ block
            products += _as_integers(np.asarray(product))
        gram = np.zeros((n_starts, K, K), dtype=np.int64)
        n_rows = _exact_rows((_LARGEST_RIGHT * self.n_max) ** 2)
        if weights is not None:
            largest = weights.max(initial=0.0) / self.weight_unit
            n_rows = max(1, int(n_rows / max(1.0, largest)))
        elif are_exact(norm, norm):
            n_rows = max(1, whole.shape[2])
        for start in range(0, whole.shape[2], n_rows):
            part = whole[:, :, start : start + n_rows]
            other = counted[:, :, start : start + n_rows]
            gram += _as_integers(other @ part.transpose(0, 2, 1))
        sums = counted.sum(axis=2).astype(np.int64)
        return Whole(gram, products.reshape(n_starts, K, F), sums)

    def _words(self, gram: Any, products: Any, sums: Any, errors: Array) -> Words:
        """Return the words of whole numbers."""
        parts = [gram[:, self._upper[0], self._upper[1]], products]
        if self.with_sums:
            parts.append(sums)
        if self.missing:
            parts.append(errors.astype(np.int64))
        return np.concatenate([part.ravel() for part in parts]).view(np.uint64)

    def _numbers(self, gram: Any, products: Any, sums: Any) -> Totals:
        """Return totals from whole numbers."""
        return Totals(
            gram * (self.right_unit**2 * self.weight_unit),
            products * (self.right_unit * self.sample_unit * self.weight_unit),
            sums * (self.right_unit * self.weight_unit),
        )

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
        ends = np.cumsum([n_starts * K * (K + 1) // 2, n_starts * K * F])
        upper, products, sums = np.split(words.view(np.int64), ends)
        if self.missing:
            sums = sums[: len(sums) - n_starts]
        gram = np.zeros((n_starts, K, K))
        rows, columns = self._upper
        gram[:, rows, columns] = upper.reshape(n_starts, -1)
        gram[:, columns, rows] = gram[:, rows, columns]
        if not self.with_sums:
            sums = np.zeros(n_starts * K, dtype=np.int64)
        # What overflows here is no total of any samples; `check_totals` says so.
        with np.errstate(over="ignore"):
            return self._numbers(
                gram, products.reshape(n_starts, K, F), sums.reshape(n_starts, K)
            )

    def check_totals(
        self,
        totals: Totals,
        squared_norm: float,
        errors: Array | None = None,
    ) -> None:
        """Refuse totals that no samples of this norm can have.

        Parameters
        ----------
        totals : Totals
            Decoded.
        squared_norm : float
            ``||X||^2``, weighted.
        errors : ndarray of shape (S,) or None, default=None
            Squared errors on observed entries, where entries may be missing.

        Raises
        ------
        CorruptedTotalError
            If one cannot be.
        """
        norm = math.sqrt(squared_norm)
        most = HEADROOM * self.spare * norm / math.sqrt(self.n_features)
        # What rounding adds to the norm of a right factor's column, more than enough.
        K, F = self.n_components, self.n_features
        rounding = _LARGEST * self.spare * norm / (self.n_max * math.sqrt(K * F))
        check_totals(
            totals.gram,
            totals.products,
            (most + rounding) * (most + rounding),  # infinite, where it overflows
            squared_norm,
            noise=(rounding * (most + rounding), rounding * norm),
            signed=self.missing,
        )
        for name, values in (("column sums", totals.sums), ("errors", errors)):
            if values is not None and not (values >= 0).all():
                raise CorruptedTotalError(
                    f"the total of the {name} is {values.min():.6g}, which is negative"
                )

    def decode_errors(self, words: Words, n_starts: int) -> Array:
        """Return the squared errors on observed entries from the sum of the words.

        Parameters
        ----------
        words : ndarray of uint64
            The sum.
        n_starts : int
            Number of starts S in it.

        Returns
        -------
        ndarray of shape (S,)
        """
        errors = words[-n_starts:].view(np.int64).astype(np.float64)
        return errors * self.error_unit


def _as_integers(whole: Array) -> NDArray[np.int64]:
    """Convert whole numbers, which the bounds keep in range."""
    largest = float(np.abs(whole).max(initial=0.0))
    if not largest <= 2.0**TOTAL_BITS:
        raise OverflowError(
            f"a summand of {largest:.3g} units exceeds 2**{TOTAL_BITS}: the total "
            "could wrap"
        )
    return whole.astype(np.int64)


def _exact_rows(largest: float) -> int:
    """Return how many products up to this size are summed exactly in doubles."""
    return max(1, int(2.0**53 / largest))


def are_exact(norm: float, other: float) -> bool:
    """Whether doubles sum products of whole numbers exactly, by Cauchy-Schwarz.

    Parameters
    ----------
    norm, other : float
        Norms of the two vectors.

    Returns
    -------
    bool
    """
    return norm * other <= 2.0**52


def largest_column(X: Any) -> float:
    """Return the largest norm of a feature.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (m, F)
        Samples.

    Returns
    -------
    float
    """
    if sparse.issparse(X):
        squares = np.bincount(X.indices, weights=np.square(X.data), minlength=1)
    else:
        squares = np.einsum("nf,nf->f", X, X)
    return math.sqrt(float(squares.max(initial=0.0)))


def row_blocks(X: Any, n_max: float = 1e6, counts: float = 1.0) -> list[Any]:
    """Split rounded samples so that products with them are exact in doubles.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_i, F)
        Samples in whole numbers.
    n_max : float, default=1e6
        Fixed-point scale of the right factors.
    counts : float, default=1.0
        As how many samples one counts at most.

    Returns
    -------
    list of ndarray or sparse matrix
        Its rows, as many in each as may be summed.
    """
    n_rows = X.shape[0]
    is_sparse = sparse.issparse(X)
    largest = float(np.abs(X.data if is_sparse else X).max(initial=1.0))
    most = _exact_rows(largest * _LARGEST_RIGHT * n_max * counts)
    if n_rows <= most or (is_sparse and _fullest_column(X) <= most):
        return [X]
    return [X[start : start + most] for start in range(0, n_rows, most)]


def _fullest_column(X: Any) -> int:
    """Return the most entries of a column."""
    return int(np.bincount(X.indices, minlength=1).max(initial=0))
