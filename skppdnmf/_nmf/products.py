"""Products with a left factor, for dense samples and at the entries of sparse ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]

# Entries of a block of sparse samples: their columns of the left factor, gathered, stay
# in the processor's cache.
_ENTRIES = 1 << 12


class DenseProducts:
    """Products of all entries of some samples with a left factor.

    Parameters
    ----------
    H : ndarray of shape (K, F)
        The left factor.
    """

    def __init__(self, H: Array) -> None:
        self._H = H

    def model(self, W: Array, out: Array | None = None) -> Array:
        """Return ``W H``."""
        return np.matmul(W, self._H, out=out)

    def right(self, R: Array) -> Array:
        """Return ``R H^T``."""
        return R @ self._H.T

    def grams(self, C: Array) -> Array:
        """Return ``H diag(c) H^T`` for each row c of C, of shape (n, K, K)."""
        K = len(self._H)
        outer = (self._H[:, None] * self._H[None]).reshape(K * K, -1).T
        return (C @ outer).reshape(-1, K, K)


class GatheredProducts:
    """The same at the entries of sparse samples only, which are arrays of (n, m).

    Parameters
    ----------
    H : ndarray of shape (F, K)
        The left factor, transposed.
    columns : ndarray of int, shape (n, m)
        Of the entries.
    """

    def __init__(self, H: Array, columns: NDArray[np.intp]) -> None:
        self._gathered = H.take(columns, axis=0)

    def model(self, W: Array, out: Array | None = None) -> Array:
        """Return ``W H`` at the entries."""
        target = None if out is None else out[:, :, None]
        return np.matmul(self._gathered, W[:, :, None], out=target)[:, :, 0]

    def right(self, R: Array) -> Array:
        """Return ``R H^T``."""
        return np.matmul(R[:, None, :], self._gathered)[:, 0]

    def grams(self, C: Array) -> Array:
        """Return ``H diag(c) H^T`` for each row c of C, of shape (n, K, K)."""
        weighted = self._gathered * C[:, :, None]
        return np.matmul(weighted.transpose(0, 2, 1), self._gathered)


class DenseTotal:
    """Sums ``W^T R`` over blocks of samples."""

    def __init__(self) -> None:
        self._total: Any = 0.0

    def add(self, W: Array, R: Array) -> None:
        """Add a block."""
        self._total = self._total + W.T @ R

    def result(self) -> Any:
        """Return the sum, of shape (K, F); zero of no block."""
        return self._total


class ThinTotal:
    """Sums ``W^T R`` over blocks of sparse samples, added in their order.

    Parameters
    ----------
    rows : SparseRows
        The samples.
    """

    def __init__(self, rows: SparseRows) -> None:
        self._rows = rows
        self._W: list[Array] = []
        self._R: list[Array] = []

    def add(self, W: Array, R: Array) -> None:
        """Add a block."""
        self._W.append(W)
        self._R.append(R.ravel())

    def result(self) -> Any:
        """Return the sum, of shape (K, F); zero of no block."""
        if not self._W:
            return 0.0
        matrix = self._rows.transposed
        matrix.data = np.concatenate(self._R)
        return np.asarray(matrix @ np.concatenate(self._W)).T


@dataclass(frozen=True)
class SparseBlock:
    """Some rows of a sparse matrix, of about as many entries each.

    A row of fewer entries has its last places in column 0, where its values are zero.
    How many places there are, m, follows from the row alone: sums over them do not
    depend on the other rows.

    Parameters
    ----------
    rows : ndarray of int, shape (n,)
        Which.
    values : ndarray of shape (n, m)
        Their entries.
    observed : ndarray of shape (n, m)
        1 where there is one, 0 where a row has fewer.
    columns : ndarray of int, shape (n, m)
        Where they are.
    """

    rows: NDArray[np.intp]
    values: Array
    observed: Array
    columns: NDArray[np.intp]


@dataclass(frozen=True)
class SparseRows:
    """All rows of a sparse matrix, in blocks.

    Parameters
    ----------
    blocks : list of SparseBlock
        Each row is in one of them.
    transposed : sparse matrix of shape (F, n)
        The rows of all blocks, one after another, as columns.
    """

    blocks: list[SparseBlock]
    transposed: Any


def _lengths(counts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the least power of two, or three halves of one, that is not less."""
    octave = np.ceil(np.log2(np.maximum(counts, 1))).astype(np.intp)
    whole = np.left_shift(1, octave)
    return np.where(4 * counts <= 3 * whole, whole - whole // 4, whole)


def sparse_rows(X: Any) -> SparseRows:
    """Split the rows of a sparse matrix into blocks of about as many entries.

    Parameters
    ----------
    X : sparse matrix in CSR format, of shape (n, F)
        Without duplicates.

    Returns
    -------
    SparseRows

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from skppdnmf._nmf.products import sparse_rows
    >>> X = sparse.csr_matrix([[0.0, 0.0, 0.0], [1.0, 0.0, 2.0]])
    >>> first, second = sparse_rows(X).blocks
    >>> first.rows.tolist(), first.columns.tolist(), first.values.tolist()
    ([0], [[0]], [[0.0]])
    >>> second.rows.tolist(), second.columns.tolist(), second.values.tolist()
    ([1], [[0, 2]], [[1.0, 2.0]])
    """
    counts = np.diff(X.indptr).astype(np.intp)
    lengths = _lengths(counts)
    blocks = []
    for m in np.unique(lengths):
        same = np.flatnonzero(lengths == m)
        size = max(1, _ENTRIES // int(m))
        for first in range(0, len(same), size):
            rows = same[first : first + size]
            places = np.arange(m)
            there = places < counts[rows, None]
            entries = np.where(there, X.indptr[rows, None] + places, 0)
            columns = np.zeros(there.shape, dtype=np.intp)
            values = np.zeros(there.shape)
            columns[there] = X.indices[entries[there]]
            values[there] = X.data[entries[there]]
            observed = there.astype(np.float64)
            blocks.append(SparseBlock(rows, values, observed, columns))
    widths = np.concatenate([[0], *(np.full(*b.columns.shape) for b in blocks)])
    flat = [b.columns.ravel() for b in blocks] or [np.zeros(0, dtype=np.intp)]
    columns, starts = np.concatenate(flat), np.cumsum(widths)
    there = (np.zeros(len(columns)), columns, starts)
    return SparseRows(blocks, sparse.csc_matrix(there, shape=X.shape[::-1]))
