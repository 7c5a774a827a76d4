"""Nonnegative least squares by coordinate descent, for several problems at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .threads import in_turn

Array = NDArray[np.float64]


def hals(
    gram: Array,
    products: Array,
    factor: Array,
    sweeps: int,
    tol: float = 0.0,
    first_row: int = 0,
) -> Array:
    """Minimise ``<gram F, F> / 2 - <products, F>`` over ``F >= 0``, row by row.

    Hierarchical alternating least squares: each row of F in turn takes its best
    value for the others as they are. The left factor has ``gram = W^T W`` and
    ``products = W^T X``; the transposed right factor ``H H^T`` and ``H X^T``.

    Parameters
    ----------
    gram : ndarray of shape (S, K, K)
        Positive semidefinite, one for each of S problems.
    products : ndarray of shape (S, K, m)
        Linear terms.
    factor : ndarray of shape (S, K, m)
        Where to start; overwritten.
    sweeps : int
        Most passes over the rows.
    tol : float, default=0.0
        Stop when a pass changes F by at most this fraction of the first one.
    first_row : int, default=0
        Rows before this one stay as they are.

    Returns
    -------
    ndarray of shape (S, K, m)
        `factor`.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._nmf.hals import hals
    >>> hals(np.eye(2)[None], np.array([[[3.0], [-1.0]]]), np.ones((1, 2, 1)), 5, 0.1)
    array([[[3.],
            [0.]]])
    """
    diagonal = np.einsum("skk->sk", gram)
    # A row that no sample uses has a zero diagonal: the objective is linear in it,
    # and nothing but rounding can make it fall for ever. It stays, or vanishes where
    # a penalty draws it to zero.
    unused = ~(diagonal > 0)
    divisor = np.where(unused, 1.0, diagonal)[:, :, None]
    coupling = gram / divisor
    np.einsum("skk->sk", coupling)[...] = 0.0
    target = products / divisor
    if unused.any():
        coupling[unused] = 0.0
        target[unused] = np.where(products[unused] < 0.0, 0.0, factor[unused])
    with in_turn():
        _sweep(target, coupling, factor, sweeps, tol, first_row)
    return factor


def _sweep(
    target: Array, coupling: Array, factor: Array, sweeps: int, tol: float, start: int
) -> None:
    """Let each row take its best value in turn, sweep after sweep."""
    first = 0.0
    for _ in range(sweeps):
        before = factor.copy() if tol and sweeps > 1 else factor
        for k in range(start, factor.shape[1]):
            row = slice(k, k + 1)
            step = np.matmul(coupling[:, row], factor)
            np.subtract(target[:, row], step, out=step)
            np.maximum(step, 0.0, out=factor[:, row])
        if before is not factor:
            before -= factor
            change = float(np.vdot(before, before))
            first = first or change
            if change <= tol * tol * first:
                break
