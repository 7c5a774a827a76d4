"""Beta divergences: what is summed over samples, and the steps of the right factor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .observed import split_observed
from .products import (
    DenseProducts,
    DenseTotal,
    GatheredProducts,
    SparseRows,
    ThinTotal,
    sparse_rows,
)
from .threads import single_threaded

Array = NDArray[np.float64]

NAMED = {"frobenius": 2.0, "kullback-leibler": 1.0, "itakura-saito": 0.0}
# Least entry of the model, in units of the mean of the sample.
_FLOOR = 1e-10
_LEAST = 1e-300
# Rows of sparse data that are dense at a time, where zeros are observed.
_ROWS = 256
# Rows that Newton's method takes at a time; always so many, as products of matrices
# round according to their number.
_BATCH = 64
_WARM_STEPS = 10
_MAX_STEPS = 200
_HALVINGS = 12
_ROUNDING = 1e-13
_TOLERANCE = 1e-9


def beta_of(loss: str | float) -> float:
    """Return the beta of a loss by name or number.

    Examples
    --------
    >>> from skppdnmf._nmf.beta import beta_of
    >>> beta_of("kullback-leibler"), beta_of(0.5)
    (1.0, 0.5)
    """
    return NAMED[loss] if isinstance(loss, str) else float(loss)


def exponent(beta: float) -> float:
    """Return the power of the multiplicative update under which the loss never rises.

    Fevotte and Idier, Neural Computation 23, 2011.
    """
    return 1.0 / (2.0 - beta) if beta < 1.0 else 1.0


class Improved(NamedTuple):
    """A right factor and what the left factor needs of it.

    Parameters
    ----------
    W : ndarray of shape (n, K)
        The right factor.
    above, below : ndarray of shape (K, F), below None if not asked for
        ``H * (W^T (X / Y^(2-beta)))`` and ``H * (W^T Y^(beta-1))``, Y being ``W H``;
        under Kullback-Leibler a missing entry is in both as if the model was right.
    divergences : ndarray of shape (n,)
        Of each sample.
    """

    W: Array
    above: Array
    below: Array | None
    divergences: Array


class _Block:
    """Some samples beside a left factor: arrays of their entries, zeros padded.

    Parameters
    ----------
    samples : BetaSamples
        All of them.
    rows : slice or ndarray of int
        Which.
    X, mask : ndarray of shape (n, m), mask possibly None
        Their entries, and where they are observed.
    products : DenseProducts or GatheredProducts
        With the left factor.
    sums : ndarray of shape (K,)
        Of the left factor's rows.
    """

    def __init__(
        self,
        samples: BetaSamples,
        rows: Any,
        X: Array,
        mask: Array | None,
        products: Any,
        sums: Array,
    ) -> None:
        self.rows, self.X, self.mask = rows, X, mask
        self.beta, self.sums, self.products = samples.beta, sums, products
        self._constants = samples.constants[rows]
        self._floors = np.maximum(_FLOOR * samples.means[rows], _LEAST)[:, None]

    def parts(self, w: Array) -> tuple[Array, Array, Array | None]:
        """Return the model Y, ``X Y^(beta-2)`` and ``Y^(beta-1)`` where observed.

        The last is None where it is one everywhere.
        """
        beta = self.beta
        Y = self.products.model(w)
        np.maximum(Y, self._floors, out=Y)
        if beta == 1:
            return Y, self.X / Y, self.mask
        R = self.X / Y if beta == 0 else self.X * Y ** (beta - 2.0)
        if beta == 0:
            R /= Y
        D = 1.0 / Y if beta == 0 else Y ** (beta - 1.0)
        return Y, R, D if self.mask is None else D * self.mask

    def counted_steps(self, w: Array, steps: int) -> None:
        """Do updates in place where every entry is observed, of Kullback-Leibler."""
        over = np.divide(1.0, self.sums, out=np.zeros_like(w[0]), where=self.sums > 0)
        Y = np.empty(self.X.shape)
        for _ in range(steps):
            self.products.model(w, out=Y)
            np.maximum(Y, self._floors, out=Y)
            np.divide(self.X, Y, out=Y)
            w *= self.products.right(Y)
            w *= over

    def steps(self, w: Array, steps: int, l1: float, l2: float) -> None:
        """Do multiplicative updates in place."""
        if self.beta == 1 and self.mask is None and not (l1 or l2):
            self.counted_steps(w, steps)
            return
        power = exponent(self.beta)
        for _ in range(steps):
            _, R, D = self.parts(w)
            whole = self.sums if D is None else self.products.right(D)
            below = whole + l1 + l2 * w
            above = self.products.right(R)
            ratio = np.divide(above, below, out=np.zeros_like(w), where=below > 0)
            w *= ratio if power == 1 else ratio**power

    def divergences(
        self, w: Array, parts: tuple[Array, Array, Array | None] | None = None
    ) -> Array:
        """Return each sample's divergence from its model."""
        Y, R, D = self.parts(w) if parts is None else parts
        beta, constants = self.beta, self._constants
        if beta == 1:
            model = w @ self.sums if D is None else _row_products(Y, D)
            logs = _row_products(self.X, np.log(Y))
            return np.maximum(constants - logs + model, 0.0)
        inner = _row_products(R, Y)
        if beta == 0:
            logs = np.log(Y)
            if self.mask is not None:
                logs *= self.mask
            return np.maximum(constants + inner + logs.sum(axis=1), 0.0)
        assert D is not None
        outer = _row_products(D, Y)
        return np.maximum(constants + outer / beta - inner / (beta - 1.0), 0.0)


@dataclass(frozen=True)
class BetaSamples:
    """Samples, prepared for steps under a beta divergence.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, F), dtype float64
        Zero where an entry is missing.
    mask : ndarray, sparse matrix or None
        Where entries are observed; None for all of them.
    beta : float
        Of the divergence.
    means : ndarray of shape (n,)
        Of the observed entries of each sample.
    constants : ndarray of shape (n,)
        What each sample's divergence has of X alone.
    thin : SparseRows or None
        The samples where they are sparse and only their entries count.
    """

    X: Any
    mask: Any
    beta: float
    means: Array
    constants: Array
    thin: SparseRows | None

    @classmethod
    def of(cls, X: Any, beta: float, missing: bool) -> BetaSamples:
        """Prepare samples.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n, F)
            As for `skppdnmf._nmf.observed.split_observed` if entries may be missing.
        beta : float
            Of the divergence.
        missing : bool
            Whether entries may be missing.

        Returns
        -------
        BetaSamples
        """
        mask = None
        if missing:
            X, mask = split_observed(X)
        X = X.astype(np.float64)
        counts = np.full(X.shape[0], float(X.shape[1]))
        if mask is not None:
            counts = np.asarray(mask.sum(axis=1), dtype=np.float64).ravel()
        sums = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
        means = sums / np.maximum(counts, 1.0)
        values = X.data if sparse.issparse(X) else X
        with np.errstate(divide="ignore", invalid="ignore"):
            if beta == 1:
                terms = np.where(values > 0, values * np.log(values), 0.0) - values
            elif beta == 0:
                terms = np.where(values > 0, -np.log(values) - 1.0, 0.0)
            else:
                terms = values**beta / (beta * (beta - 1.0))
        thin = None
        if sparse.issparse(X):
            each = X.copy()
            each.data = terms
            constants = np.asarray(each.sum(axis=1), dtype=np.float64).ravel()
            if beta == 1 or missing:
                thin = sparse_rows(X)
        else:
            constants = terms.sum(axis=1)
        return cls(X, mask, beta, means, constants, thin)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.X.shape[0]

    def _blocks(self, H: Array) -> Iterator[_Block]:
        """Return the samples in blocks, dense where zeros of sparse ones count."""
        sums = H.sum(axis=1)
        if self.thin is not None:
            transposed = np.ascontiguousarray(H.T)
            for part in self.thin.blocks:
                mask = None if self.mask is None else part.observed
                products = GatheredProducts(transposed, part.columns)
                yield _Block(self, part.rows, part.values, mask, products, sums)
        elif sparse.issparse(self.X):
            for start in range(0, self.n_samples, _ROWS):
                rows = slice(start, min(start + _ROWS, self.n_samples))
                X = self.X[rows].toarray()
                yield _Block(self, rows, X, None, DenseProducts(H), sums)
        elif self.n_samples:
            rows = slice(0, self.n_samples)
            yield _Block(self, rows, self.X, self.mask, DenseProducts(H), sums)

    def size_bounds(self) -> Array:
        """Return for each sample what `improve` adds up to, about, at its best fit."""
        values = self.X.data if sparse.issparse(self.X) else self.X
        n_features = self.X.shape[1]
        counts = np.full(self.n_samples, float(n_features))
        if self.mask is not None:
            counts = np.asarray(self.mask.sum(axis=1), dtype=np.float64).ravel()
        if self.beta <= 1:
            return counts * self.means**self.beta if self.beta else counts
        if not sparse.issparse(self.X):
            return (values**self.beta).sum(axis=1)
        return np.asarray(self.X.power(self.beta).sum(axis=1), np.float64).ravel()

    def first_right_factor(self, H: Array) -> Array:
        """Return a right factor to start from, shape (n, K): of the samples' means."""
        means = H.mean(axis=1)
        inverse = np.divide(1.0, means, out=np.zeros_like(means), where=means > 0)
        return self.means[:, None] * inverse / len(H)

    def improve(
        self,
        W: Array,
        H: Array,
        weights: Array,
        steps: int,
        l1: float = 0.0,
        l2: float = 0.0,
        with_below: bool = True,
        filled: bool = True,
    ) -> Improved:
        """Do multiplicative updates of the right factor; return what H needs of it.

        Parameters
        ----------
        W : ndarray of shape (n, K)
            Where to start.
        H : ndarray of shape (K, F)
            The left factor.
        weights : ndarray of shape (n,)
            Of the samples.
        steps : int
            How many updates.
        l1, l2 : float, default=0.0
            Weights of the penalties on each sample's right factor.
        with_below : bool, default=True
            Whether `below` is needed.
        filled : bool, default=True
            Whether missing entries count as if the model was right, under
            Kullback-Leibler; else as zeros in `above`.

        Returns
        -------
        Improved
        """
        W = W.copy()
        divergences = np.empty(self.n_samples)
        beta = self.beta
        unweighted = bool((weights == 1).all())
        whole = np.zeros((len(H), 1))
        ratios, others = self._total(), self._total()
        for block in self._blocks(H):
            rows = block.rows
            w = W[rows]
            block.steps(w, steps, l1, l2)
            W[rows] = w
            weighted = w if unweighted else w * weights[rows, None]
            Y, R, D = block.parts(w)
            ratios.add(weighted, R)
            if D is not None:
                others.add(weighted, D)
            if beta == 1:
                whole += weighted.sum(axis=0)[:, None]
            divergences[rows] = block.divergences(w, (Y, R, D))
        above, below = ratios.result(), None
        if beta == 1 and self.mask is not None and filled:
            above = above + whole - others.result()
        if with_below:
            below = H * (whole if beta == 1 else others.result())
        return Improved(W, H * above, below, divergences)

    def _total(self) -> DenseTotal | ThinTotal:
        """Return an empty sum over blocks."""
        return DenseTotal() if self.thin is None else ThinTotal(self.thin)

    def divergences(self, W: Array, H: Array) -> Array:
        """Return each sample's divergence from ``W H``.

        Parameters
        ----------
        W : ndarray of shape (n, K)
            Right factor.
        H : ndarray of shape (K, F)
            Left factor.

        Returns
        -------
        ndarray of shape (n,)

        Examples
        --------
        >>> import numpy as np
        >>> from skppdnmf._nmf.beta import BetaSamples
        >>> samples = BetaSamples.of(np.array([[1.0, 3.0]]), 1.0, False)
        >>> samples.divergences(np.ones((1, 1)), np.array([[2.0, 2.0]])).round(3)
        array([0.523])
        """
        found = np.empty(self.n_samples)
        for block in self._blocks(H):
            found[block.rows] = block.divergences(W[block.rows])
        return found

    def null_divergences(self) -> Array:
        """Return each sample's divergence from its mean: of one constant component."""
        H = np.ones((1, self.X.shape[1]))
        return self.divergences(self.means[:, None], H)


def _row_products(A: Array, B: Array) -> Array:
    """Row sums of the entrywise product."""
    return np.einsum("nf,nf->n", A, B)


def solve_beta(
    X: Any, H: Array, beta: float, l1: float, l2: float, missing: bool
) -> Array:
    """Minimise ``d(x, w H) + l1 sum(w) + l2 ||w||^2 / 2`` over ``w >= 0`` for each x.

    Projected Newton (Bertsekas, SIAM J. Control Optim. 20, 1982), from a few
    multiplicative updates; where the divergence is not convex (beta below 1) with the
    curvature of its convex part.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, F)
        As for `BetaSamples.of`.
    H : ndarray of shape (K, F)
        The left factor.
    beta : float
        Of the divergence.
    l1, l2 : float
        Weights of the penalties.
    missing : bool
        Whether entries may be missing.

    Returns
    -------
    ndarray of shape (n, K)
        A sample's result does not depend on the others.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._nmf.beta import solve_beta
    >>> H = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> solve_beta(np.array([[2.0, 3.0, 5.0]]), H, 1.0, 0.0, 0.0, False).round(6)
    array([[2., 3.]])
    """
    H = np.asarray(H, dtype=np.float64)
    W = np.zeros((X.shape[0], len(H)))
    sizes = H.mean(axis=1)
    used = sizes > 0
    if not used.any():
        return W
    unit = H[used] / sizes[used, None]
    with single_threaded():
        if sparse.issparse(X) and (beta == 1 or missing):
            # Where entries do not count, or only by the sums of H.
            outside = np.zeros(len(unit)) if missing else unit.sum(axis=1)
            transposed = np.ascontiguousarray(unit.T)
            for thin in sparse_rows(X.astype(np.float64)).blocks:
                mask = thin.observed if missing else np.zeros_like(thin.values)
                counts = mask.sum(axis=1) if missing else float(X.shape[1])
                products = GatheredProducts(transposed, thin.columns)
                given = thin.values, mask, counts, products, outside
                w = _solve_block(*given, sizes[used], beta, l1, l2)
                W[np.ix_(thin.rows, used)] = w / sizes[used]
            return W
        for start in range(0, X.shape[0], _BATCH):
            rows = slice(start, min(start + _BATCH, X.shape[0]))
            x, mask, n = *_padded(X[rows], missing), rows.stop - start
            counts, dense = mask.sum(axis=1), DenseProducts(unit)
            w = _solve_block(x, mask, counts, dense, 0.0, sizes[used], beta, l1, l2)[:n]
            W[rows, used] = w / sizes[used]
    return W


def _padded(X: Any, missing: bool) -> tuple[Array, Array]:
    """Return a whole batch of samples, and where they are observed."""
    mask = None
    if missing:
        X, mask = split_observed(X)
    if sparse.issparse(X):
        X = X.toarray()
    n, n_features = X.shape
    x, m = np.zeros((_BATCH, n_features)), np.ones((_BATCH, n_features))
    x[:n] = X
    if mask is not None:
        m[:n] = mask
    return x, m


def _solve_block(
    x: Array,
    m: Array,
    counts: Any,
    products: Any,
    outside: Any,
    sizes: Array,
    beta: float,
    l1: float,
    l2: float,
) -> Array:
    """Solve for some samples at once, H having rows of mean one.

    Parameters
    ----------
    x, m : ndarray of shape (n, m)
        Their entries, and where they count with their model.
    counts : float or ndarray of shape (n,)
        Entries that each mean is over.
    products : DenseProducts or GatheredProducts
        With H.
    outside : float or ndarray of shape (K,)
        What entries that are not in x add to the gradient.
    sizes : ndarray of shape (K,)
        By what H has been divided.
    beta, l1, l2 : float
        As for `solve_beta`.

    Returns
    -------
    ndarray of shape (n, K)
    """
    x, m = x.copy(), m.copy()
    scales = x.sum(axis=1) / np.maximum(counts, 1.0)
    live = scales > 0
    s = np.where(live, scales, 1.0)
    x /= s[:, None]
    x[~live], m[~live] = 1.0, 1.0  # harmless, and not read
    # In units of each sample's mean.
    first = np.ones((len(x), 1)) * (l1 / sizes)[None] * (s ** (1.0 - beta))[:, None]
    first += outside
    second = (l2 / sizes**2)[None] * (s ** (2.0 - beta))[:, None]
    w = _newton(x, m, products, beta, first, second, live)
    return np.where(live[:, None], w * s[:, None], 0.0)


def _newton(
    x: Array,
    m: Array,
    products: Any,
    beta: float,
    first: Array,
    second: Array,
    live: NDArray[np.bool_],
) -> Array:
    """Projected Newton for all rows of a block side by side."""
    K = first.shape[1]
    w = np.full((len(x), K), 1.0 / K)
    power = exponent(beta)
    for _ in range(_WARM_STEPS):
        y = np.maximum(products.model(w), _FLOOR)
        below = products.right(m * y ** (beta - 1.0)) + first + second * w
        above = products.right(x * y ** (beta - 2.0))
        w *= np.divide(above, below, out=np.ones_like(w), where=below > 0) ** power

    def value(w: Array) -> Array:
        y = np.maximum(products.model(w), _FLOOR)
        if beta == 1:
            terms = m * y - x * np.log(y)
        elif beta == 0:
            terms = x / y + m * np.log(y)
        else:
            terms = m * y**beta / beta - x * y ** (beta - 1.0) / (beta - 1.0)
        return terms.sum(axis=1) + (first * w + 0.5 * second * w * w).sum(axis=1)

    diagonal = np.arange(K)
    going = live.copy()
    f = value(w)
    for _ in range(_MAX_STEPS):
        y = np.maximum(products.model(w), _FLOOR)
        g = products.right(m * y ** (beta - 1.0) - x * y ** (beta - 2.0))
        g += first + second * w
        curvature = (2.0 - beta) * x * y ** (beta - 3.0)
        if beta > 1:
            curvature += (beta - 1.0) * m * y ** (beta - 2.0)
        hess = products.grams(curvature)
        hess[:, diagonal, diagonal] += second
        own = hess[:, diagonal, diagonal]
        own = np.maximum(own, 1e-14 * own.max(axis=1, keepdims=True) + 1e-100)
        move = np.abs(w - np.maximum(w - g / own, 0.0)).max(axis=1)
        going &= move > _TOLERANCE * w.max(axis=1)
        if not going.any():
            break
        bound = (w <= np.minimum(move, 1e-4)[:, None]) & (g > 0)
        hess[:, diagonal, diagonal] = own * (1.0 + 1e-12)
        hess *= ~bound[:, :, None] & ~bound[:, None, :]
        hess[:, diagonal, diagonal] += np.where(bound, own, 0.0)
        step = np.linalg.solve(hess, -g[..., None])[..., 0]
        t = np.ones(len(w))
        open_ = going.copy()
        new, best = w.copy(), f.copy()
        for _ in range(_HALVINGS):
            trial = np.maximum(w + t[:, None] * step, 0.0)
            ft = value(trial)
            slope = (g * (trial - w)).sum(axis=1)
            enough = ft <= f + 1e-4 * slope + _ROUNDING * np.abs(f)
            accept = open_ & enough
            new[accept], best[accept] = trial[accept], ft[accept]
            open_ &= ~accept
            if not open_.any():
                break
            t[open_] *= 0.5
        going &= ~open_  # rounding allows no further descent
        w, f = new, best
    return w
