"""Right factors of samples of which not every entry is observed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import nnls

from .blocks import row_slices
from .nnls import solve_nnls
from .threads import single_threaded

Array = NDArray[np.float64]

# Doubles of a block of the samples' own Gram matrices.
_BLOCK_DOUBLES = 1 << 22


def split_observed(X: Any) -> tuple[Any, Any]:
    """Return the entries that are observed, zero elsewhere, and where they are.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, F)
        Missing is nan in an array, and what a sparse matrix does not hold.

    Returns
    -------
    values : ndarray or sparse matrix of shape (n, F)
        Without nan.
    mask : ndarray or sparse matrix of shape (n, F), dtype float64
        1 where an entry is observed.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._nmf.observed import split_observed
    >>> values, mask = split_observed(np.array([[1.0, np.nan]]))
    >>> values.tolist(), mask.tolist()
    ([[1.0, 0.0]], [[1.0, 0.0]])
    """
    if sparse.issparse(X):
        mask = X.copy().astype(np.float64)
        mask.data[:] = 1.0
        return X, mask
    known = ~np.isnan(X)
    return np.where(known, X, X.dtype.type(0)), known.astype(np.float64)


def has_gaps(X: Any) -> bool:
    """Whether an array has a missing entry; a sparse matrix does not say."""
    if sparse.issparse(X):
        return False
    return any(bool(np.isnan(X[rows]).any()) for rows in row_slices(len(X)))


def zero_filled(X: Any) -> Any:
    """Return data without nan: a missing entry counts as zero."""
    return np.nan_to_num(X, nan=0.0) if has_gaps(X) else X


def descend_observed(
    X: Any, mask: Any, H: Array, W: Array, sweeps: int, l1: float = 0.0, l2: float = 0.0
) -> Array:
    """Improve the right factor by coordinate descent on observed entries alone.

    Parameters
    ----------
    X, mask : ndarray or sparse matrix of shape (n, F)
        From `split_observed`.
    H : ndarray of shape (K, F)
        The left factor.
    W : ndarray of shape (n, K)
        Where to start.
    sweeps : int
        Passes over the components.
    l1, l2 : float, default=0.0
        Weights of the penalties on each sample's right factor.

    Returns
    -------
    ndarray of shape (n, K)
        Nonnegative. A sample without an observed entry, or whose entries a component
        does not touch, gets zero there.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._nmf.observed import descend_observed, split_observed
    >>> X, mask = split_observed(np.array([[2.0, np.nan], [np.nan, np.nan]]))
    >>> descend_observed(X, mask, np.array([[1.0, 5.0]]), np.ones((2, 1)), 1)
    array([[2.],
           [0.]])
    """
    n_components, n_features = H.shape
    outer = (H[:, None, :] * H[None, :, :]).reshape(-1, n_features).T
    products = np.asarray(X @ H.T, dtype=np.float64) - l1
    W = W.copy()
    rows = max(1, _BLOCK_DOUBLES // max(1, n_components**2))
    for start in range(0, len(W), rows):
        block = slice(start, start + rows)
        grams = np.asarray(mask[block] @ outer)
        grams = grams.reshape(-1, n_components, n_components)
        b, w = products[block], W[block]
        for _ in range(sweeps):
            for k in range(n_components):
                own = grams[:, k, k]
                gain = b[:, k] - np.einsum("nk,nk->n", grams[:, k], w) - l2 * w[:, k]
                step = np.divide(gain, own + l2, out=np.zeros_like(gain), where=own > 0)
                w[:, k] = np.where(own > 0, np.maximum(w[:, k] + step, 0.0), 0.0)
    return W


def observed_model(W: Array, H: Array, mask: Any) -> Any:
    """Return ``W H`` where entries are observed, zero elsewhere, like the mask.

    Parameters
    ----------
    W : ndarray of shape (n, K)
        Right factor.
    H : ndarray of shape (K, F)
        Left factor.
    mask : ndarray or sparse matrix of shape (n, F)
        Where entries are observed; of a sparse one only these are computed.

    Returns
    -------
    ndarray or sparse matrix of shape (n, F)
    """
    if not sparse.issparse(mask):
        return (W @ H) * mask
    model = mask.copy()
    rows = np.repeat(np.arange(mask.shape[0]), np.diff(mask.indptr))
    columns = np.ascontiguousarray(H.T)
    step = max(1, _BLOCK_DOUBLES // max(1, len(H)))
    for start in range(0, mask.nnz, step):
        part = slice(start, start + step)
        model.data[part] = np.einsum(
            "nk,nk->n", W[rows[part]], columns[mask.indices[part]]
        )
    return model


def solve_observed(X: Any, H: Array, l1: float = 0.0, l2: float = 0.0) -> Array:
    """Solve each sample's nonnegative least squares problem on its observed entries.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, F)
        As for `split_observed`.
    H : ndarray of shape (K, F)
        The left factor.
    l1, l2 : float, default=0.0
        Weights of the penalties.

    Returns
    -------
    ndarray of shape (n, K)
        A sample's result does not depend on the others; zeros where nothing of it is
        observed.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._nmf.observed import solve_observed
    >>> solve_observed(np.array([[2.0, np.nan]]), np.array([[1.0, 5.0]]))
    array([[2.]])
    """
    H = np.asarray(H, dtype=np.float64)
    W = np.zeros((X.shape[0], len(H)))
    if not sparse.issparse(X):
        whole = ~np.isnan(X).any(axis=1)
        W[whole] = solve_nnls(X[whole], H, l1, l2)
        partial = np.flatnonzero(~whole)
    else:
        partial = np.arange(X.shape[0])
    with single_threaded():
        for row in partial:
            places, values = _entries(X, int(row))
            scale = float(np.abs(values).max(initial=0.0))
            if scale > 0:
                problem = H[:, places], values / scale, l1 / scale, l2
                W[row] = scale * _solve_row(*problem)
    return W


def _entries(X: Any, row: int) -> tuple[Any, Array]:
    """Places and values of what is observed of a sample."""
    if sparse.issparse(X):
        inside = slice(X.indptr[row], X.indptr[row + 1])
        return X.indices[inside], X.data[inside].astype(np.float64)
    places = np.flatnonzero(~np.isnan(X[row]))
    return places, X[row, places].astype(np.float64)


def _solve_row(H: Array, x: Array, l1: float, l2: float) -> Array:
    """Solve one sample's problem."""
    if l1:
        return solve_nnls(x[None], H, l1, l2)[0]
    sizes = np.abs(H).max(axis=1)
    used = sizes > 0
    w = np.zeros(len(H))
    if used.any():
        # Columns of like size, so that scipy's tolerances mean the same for each.
        divisors = np.sqrt((H[used] ** 2).sum(axis=1) + l2)
        design = (H[used] / divisors[:, None]).T
        if l2:
            design = np.vstack([design, np.diag(np.sqrt(l2) / divisors)])
            x = np.concatenate([x, np.zeros(len(divisors))])
        w[used] = nnls(design, x, maxiter=100 * len(H))[0] / divisors
    return w


def observed_errors(X: Any, W: Array, H: Array) -> tuple[Array, Array]:
    """Return each sample's squared norm and squared error on its observed entries.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, F)
        As for `split_observed`.
    W : ndarray of shape (n, K)
        Right factor.
    H : ndarray of shape (K, F)
        Left factor.

    Returns
    -------
    norms, errors : ndarray of shape (n,)
    """
    values, mask = split_observed(X)
    residual = values.astype(np.float64) - observed_model(W, H, mask)
    return _row_squares(values.astype(np.float64)), _row_squares(residual)


def _row_squares(X: Any) -> Array:
    """Sum of squares of each row."""
    if sparse.issparse(X):
        return np.asarray(X.power(2).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("nf,nf->n", X, X)
