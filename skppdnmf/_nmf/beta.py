"""Beta divergences: what is summed over samples, and the steps of the right factor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .observed import observed_model, split_observed
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
    """

    X: Any
    mask: Any
    beta: float
    means: Array
    constants: Array

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
        if sparse.issparse(X):
            each = X.copy()
            each.data = terms
            constants = np.asarray(each.sum(axis=1), dtype=np.float64).ravel()
        else:
            constants = terms.sum(axis=1)
        return cls(X, mask, beta, means, constants)

    def part(self, rows: slice) -> BetaSamples:
        """Return some of the samples."""
        mask = None if self.mask is None else self.mask[rows]
        return BetaSamples(
            self.X[rows], mask, self.beta, self.means[rows], self.constants[rows]
        )

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.X.shape[0]

    def dense_blocks(self) -> list[tuple[slice, BetaSamples]]:
        """Return the samples in blocks, dense where zeros of sparse ones count."""
        sparsely = self.beta == 1 or self.mask is not None
        if not sparse.issparse(self.X) or sparsely:
            return [(slice(0, self.n_samples), self)]
        blocks = []
        for start in range(0, self.n_samples, _ROWS):
            rows = slice(start, min(start + _ROWS, self.n_samples))
            block = self.part(rows)
            blocks.append((rows, replace(block, X=block.X.toarray())))
        return blocks

    def size_bounds(self) -> Array:
        """Return for each sample what `totals` adds up to, about, at its best fit."""
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

    def _parts(self, W: Array, H: Array) -> tuple[Any, Any, Any]:
        """Return the model Y, ``X Y^(beta-2)`` and ``Y^(beta-1)`` where observed.

        The last is None where it is one everywhere.
        """
        floors = np.maximum(_FLOOR * self.means, _LEAST)
        beta = self.beta
        if sparse.issparse(self.X):
            Y = observed_model(W, H, self.X)
            np.maximum(Y.data, np.repeat(floors, np.diff(Y.indptr)), out=Y.data)
            R = Y.copy()
            R.data = self.X.data * Y.data ** (beta - 2.0)
            D = None
            if self.mask is not None:
                D = Y.copy()
                D.data = Y.data ** (beta - 1.0)
            return Y, R, D
        Y = np.maximum(W @ H, floors[:, None])
        if beta == 1:
            return Y, self.X / Y, self.mask
        R = self.X / Y if beta == 0 else self.X * Y ** (beta - 2.0)
        if beta == 0:
            R /= Y
        D = 1.0 / Y if beta == 0 else Y ** (beta - 1.0)
        return Y, R, D if self.mask is None else D * self.mask

    def right_steps(
        self, W: Array, H: Array, steps: int, l1: float = 0.0, l2: float = 0.0
    ) -> Array:
        """Do multiplicative updates of the right factor.

        Parameters
        ----------
        W : ndarray of shape (n, K)
            Where to start.
        H : ndarray of shape (K, F)
            The left factor.
        steps : int
            How many.
        l1, l2 : float, default=0.0
            Weights of the penalties on each sample's right factor.

        Returns
        -------
        ndarray of shape (n, K)
        """
        W = W.copy()
        power = exponent(self.beta)
        sums = H.sum(axis=1)
        plain = self.mask is None and not (l1 or l2 or sparse.issparse(self.X))
        if self.beta == 1 and plain and self.n_samples:
            back = np.divide(H.T, sums, out=np.zeros(H.T.shape), where=sums > 0)
            floors = np.maximum(_FLOOR * self.means, _LEAST)[:, None]
            Y, ratio = np.empty(self.X.shape), np.empty(W.shape)
            for _ in range(steps):
                np.matmul(W, H, out=Y)
                np.maximum(Y, floors, out=Y)
                np.divide(self.X, Y, out=Y)
                W *= np.matmul(Y, back, out=ratio)
            return W
        for rows, block in self.dense_blocks():
            w = W[rows]
            for _ in range(steps):
                _, R, D = block._parts(w, H)
                below = np.broadcast_to(sums, w.shape) if D is None else D @ H.T
                below = np.asarray(below) + l1 + l2 * w
                ratio = np.divide(
                    np.asarray(R @ H.T), below, out=np.zeros_like(w), where=below > 0
                )
                w *= ratio if power == 1 else ratio**power
        return W

    def totals(self, W: Array, H: Array, weights: Array) -> tuple[Array, Array, Array]:
        """Return what the left factor needs of the samples.

        Parameters
        ----------
        W : ndarray of shape (n, K)
            Right factor.
        H : ndarray of shape (K, F)
            The left factor.
        weights : ndarray of shape (n,)
            Of the samples.

        Returns
        -------
        above, below : ndarray of shape (K, F)
            ``H * (W^T (X / Y^(2-beta)))`` and ``H * (W^T Y^(beta-1))``; under
            Kullback-Leibler a missing entry is in both as if the model was right.
        divergences : ndarray of shape (n,)
            Of each sample.
        """
        above, below = np.zeros(H.shape), np.zeros(H.shape)
        divergences = np.empty(self.n_samples)
        beta = self.beta
        unweighted = bool((weights == 1).all())
        for rows, block in self.dense_blocks():
            w = W[rows]
            weighted = w if unweighted else w * weights[rows, None]
            Y, R, D = block._parts(w, H)
            above += _left_product(weighted, R)
            whole = weighted.sum(axis=0)[:, None]
            if D is None:
                below += whole
            elif beta == 1:
                below += whole
                above += whole - _left_product(weighted, D)
            else:
                below += _left_product(weighted, D)
            divergences[rows] = block._divergences(w, H, Y, R, D)
        return above * H, below * H, divergences

    def _divergences(self, W: Array, H: Array, Y: Any, R: Any, D: Any) -> Array:
        """Return each sample's divergence from its model."""
        beta = self.beta
        if beta == 1:
            model = W @ H.sum(axis=1) if D is None else _row_products(Y, D)
            return np.maximum(self.constants - _row_logs(self.X, Y) + model, 0.0)
        inner = _row_products(R, Y)
        if beta == 0:
            one = self.mask if self.mask is not None else np.ones(self.X.shape)
            return np.maximum(self.constants + inner + _row_logs(one, Y), 0.0)
        outer = _row_products(D, Y)
        return np.maximum(self.constants + outer / beta - inner / (beta - 1.0), 0.0)

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
        for rows, block in self.dense_blocks():
            found[rows] = block._divergences(W[rows], H, *block._parts(W[rows], H))
        return found

    def null_divergences(self) -> Array:
        """Return each sample's divergence from its mean: of one constant component."""
        H = np.ones((1, self.X.shape[1]))
        return self.divergences(self.means[:, None], H)


def _left_product(W: Array, R: Any) -> Array:
    """Return ``W^T R``."""
    return np.asarray((R.T @ W).T if sparse.issparse(R) else W.T @ R)


def _row_products(A: Any, B: Any) -> Array:
    """Row sums of the entrywise product."""
    if sparse.issparse(A):
        return np.asarray(A.multiply(B).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("nf,nf->n", A, B)


def _row_logs(A: Any, Y: Any) -> Array:
    """Row sums of ``A log Y``."""
    if sparse.issparse(Y):
        logs = Y.copy()
        logs.data = (A.data if sparse.issparse(A) else 1.0) * np.log(Y.data)
        return np.asarray(logs.sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("nf,nf->n", A, np.log(Y))


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
        for start in range(0, X.shape[0], _BATCH):
            rows = slice(start, min(start + _BATCH, X.shape[0]))
            w = _solve_block(X[rows], unit, sizes[used], beta, l1, l2, missing)
            W[rows, used] = w / sizes[used]
    return W


def _solve_block(
    X: Any, H: Array, sizes: Array, beta: float, l1: float, l2: float, missing: bool
) -> Array:
    """Solve for some samples at once, H having rows of mean one."""
    n = X.shape[0]
    outside = np.zeros(len(H))
    mask = None
    if sparse.issparse(X):
        if beta == 1 or missing:
            # Only features that occur; the others are in the sum of the model.
            columns = np.unique(X.indices)
            rest = np.setdiff1d(np.arange(X.shape[1]), columns)
            if not missing:
                outside = H[:, rest].sum(axis=1)
            if missing:
                mask = X.copy()
                mask.data = np.ones_like(X.data, dtype=np.float64)
                mask = mask[:, columns].toarray()
            X, H = X[:, columns], H[:, columns]
        X = X.toarray()
    elif missing:
        X, mask = split_observed(X)
    x = np.zeros((_BATCH, X.shape[1]))
    x[:n] = X
    m = np.ones_like(x)
    if mask is not None:
        m[:n] = mask
    counts = np.maximum(m.sum(axis=1), 1.0)
    scales = x.sum(axis=1) / counts
    live = scales > 0
    s = np.where(live, scales, 1.0)
    x /= s[:, None]
    x[~live], m[~live] = 1.0, 1.0  # harmless, and not read
    # In units of each sample's mean.
    first = np.ones((_BATCH, 1)) * (l1 / sizes)[None] * (s ** (1.0 - beta))[:, None]
    first += outside
    second = (l2 / sizes**2)[None] * (s ** (2.0 - beta))[:, None]
    w = _newton(x, m, H, beta, first, second, live)
    return np.where(live[:, None], w * s[:, None], 0.0)[:n]


def _newton(
    x: Array,
    m: Array,
    H: Array,
    beta: float,
    first: Array,
    second: Array,
    live: NDArray[np.bool_],
) -> Array:
    """Projected Newton for all rows of a block side by side."""
    K = len(H)
    outer = (H[:, None] * H[None]).reshape(K * K, -1).T
    w = np.full((len(x), K), 1.0 / K)
    power = exponent(beta)
    for _ in range(_WARM_STEPS):
        y = np.maximum(w @ H, _FLOOR)
        below = (m * y ** (beta - 1.0)) @ H.T + first + second * w
        above = (x * y ** (beta - 2.0)) @ H.T
        w *= np.divide(above, below, out=np.ones_like(w), where=below > 0) ** power

    def value(w: Array) -> Array:
        y = np.maximum(w @ H, _FLOOR)
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
        y = np.maximum(w @ H, _FLOOR)
        g = (m * y ** (beta - 1.0) - x * y ** (beta - 2.0)) @ H.T + first + second * w
        curvature = (2.0 - beta) * x * y ** (beta - 3.0)
        if beta > 1:
            curvature += (beta - 1.0) * m * y ** (beta - 2.0)
        hess = (curvature @ outer).reshape(-1, K, K)
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
