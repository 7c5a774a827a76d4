"""Exact nonnegative least squares for many samples at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import nnls

from .blocks import one_by_one, row_slices
from .threads import single_threaded

Array = NDArray[np.float64]

# Full exchanges that a sample may spend without progress before it falls back to
# exchanging one variable at a time (Murty's rule, which cannot cycle).
_TRIALS = 3
# Relative ridge that decides between the minimisers of a rank-deficient problem.
_RIDGE = 1e-13
_TOLERANCE = 1e-11
# Pivots after which scipy takes over, sample by sample. Problems of full rank end
# within twenty or so; rank-deficient ones (more components than features) may not.
_MAX_PIVOTS = 60
# Sweeps of the last resort, for single samples.
_MAX_SWEEPS = 20_000
# Of an l1 penalty on a vanishing component, which keeps it out either way.
_LARGEST_COST = 1e100
# Doubles in one batch of small systems.
_BATCH_DOUBLES = 1 << 21
# Sizes of small systems are rounded up to a multiple, so that there are few groups.
_SIZE_STEP = 4
# Up to this condition number the inverse is as good as a solve.
_WELL_CONDITIONED = 1e5


def solve_nnls(
    X: NDArray | sparse.sparray,
    H: Array,
    l1: float = 0.0,
    l2: float = 0.0,
    share: Callable[..., list[Any]] = one_by_one,
) -> Array:
    """Minimise ``||X - W H||^2 / 2 + l1 sum(W) + l2 ||W||^2 / 2`` over ``W >= 0``.

    Block principal pivoting on the normal equations, exact and each sample on its
    own, so that the result for a sample does not depend on which others are in the
    batch, not even in the last bit.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        The data; sparse data stays sparse.
    H : ndarray of shape (n_components, n_features)
        The left factor.
    l1, l2 : float, default=0.0
        Weights of the penalties on each sample's right factor.
    share : callable, default=one_by_one
        ``share(function, items)`` returns what the function returns for each item;
        blocks of samples go through it.

    Returns
    -------
    ndarray of shape (n_samples, n_components), dtype float64
        The right factor W.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._nmf.nnls import solve_nnls
    >>> solve_nnls(np.array([[1.0, 2.0], [3.0, -1.0]]), np.eye(2))
    array([[1., 2.],
           [3., 0.]])
    >>> solve_nnls(np.array([[1.0, 2.0]]), np.eye(2), l1=0.5, l2=1.0)
    array([[0.25, 0.75]])
    """
    H = np.asarray(H, dtype=np.float64)
    if sparse.issparse(X):
        X = sparse.csr_array(X)  # not every format has rows
    # Unit rows make the tolerances independent of the scale of each component.
    largest = np.abs(H).max(axis=1, initial=0.0)
    scaled = H / np.where(largest > 0, largest, 1.0)[:, None]
    norms = largest * np.sqrt(np.einsum("kf,kf->k", scaled, scaled))
    used = norms > 0
    W = np.zeros((X.shape[0], H.shape[0]))
    if not used.any():
        return W
    # With the ridge the augmented rows, (h, sqrt(l2) e), are the ones of unit norm.
    norms = np.hypot(norms[used], np.sqrt(l2))
    unit = H[used] / norms[:, None]
    with single_threaded():
        A = unit @ unit.T
        if l2:
            A += np.diag((np.sqrt(l2) / norms) ** 2)
        cost = np.minimum(l1 / norms, _LARGEST_COST) if l1 else np.zeros(len(norms))
        problem = _Problem.of(A, cost)

        def solve(rows: slice) -> None:
            W[rows, used] = problem.pivot(sample_products(X[rows], unit)) / norms

        share(solve, row_slices(X.shape[0]))
    return W


def sample_products(X: NDArray | sparse.sparray, H: Array) -> Array:
    """Compute ``X H^T``, each row as if it stood alone."""
    if sparse.issparse(X):
        return np.asarray(sparse.csr_array(X).astype(np.float64) @ H.T)
    # A matrix product rounds a row according to the size of the batch.
    return np.einsum("nf,kf->nk", np.asarray(X, dtype=np.float64), H)


class _Problem(NamedTuple):
    """What the samples' problems, ``min w A w / 2 - (b - cost) w``, have in common."""

    A: Array
    ridged: Array
    inverse: Array
    cost: Array
    well: bool

    @classmethod
    def of(cls, A: Array, cost: Array) -> _Problem:
        """Return the problem with what follows from it."""
        ridged = A + _RIDGE * len(A) * np.eye(len(A))
        inverse: Array = np.linalg.inv(ridged).astype(np.float64, copy=False)
        # A large cost would cancel where the unconstrained solution is corrected.
        well = not cost.any() and bool(
            np.linalg.norm(ridged, 2) * np.linalg.norm(inverse, 2) < _WELL_CONDITIONED
        )
        return cls(A, ridged, inverse, cost, well)

    def pivot(self, B: Array) -> Array:
        """Block principal pivoting, every row b of B by itself."""
        A, ridged, inverse, cost, well = self
        n_samples, n_components = B.shape
        W = np.zeros_like(B)
        tolerance = _TOLERANCE * np.abs(B).max(axis=1, initial=0.0)
        if cost.any():
            B = B - cost
        active = np.flatnonzero((B > tolerance[:, None]).any(axis=1))
        # The least squares solution has nearly the right signs.
        free = np.einsum("nk,jk->nj", B, inverse)
        passive = free > 0
        best = np.full(n_samples, n_components + 1)
        trials = np.full(n_samples, _TRIALS)
        for _ in range(_MAX_PIVOTS):
            if not len(active):
                return W
            p = passive[active]
            # From the solution without constraints only where few variables are zero.
            many = well & (2 * p.sum(axis=1) > n_components)
            w = np.empty(p.shape)
            w[~many] = _solve_subsets(ridged, B[active[~many]], p[~many])
            w[many] = _pin(inverse, free[active[many]], ~p[many])
            y = np.einsum("nk,jk->nj", w, ridged) - B[active]
            wrong = np.where(p, w, y) < -tolerance[active, None]
            count = wrong.sum(axis=1)
            done = count == 0
            W[active[done]] = np.maximum(w[done], 0.0)
            active, wrong, count = active[~done], wrong[~done], count[~done]
            progress = count < best[active]
            best[active[progress]] = count[progress]
            trials[active] = np.where(progress, _TRIALS, trials[active] - 1)
            single = trials[active] < 0
            if single.any():
                last = wrong.shape[1] - 1 - np.argmax(wrong[single][:, ::-1], axis=1)
                wrong[single] = np.arange(wrong.shape[1]) == last[:, None]
            passive[active] ^= wrong
        return _one_by_one(W, active, B, A)


def _pin(inverse: Array, free: Array, zero: NDArray[np.bool_]) -> Array:
    """Solve with some variables zero, given each row's solution without that."""
    multipliers = _solve_subsets(inverse, free, zero)
    w = free - np.einsum("nk,jk->nj", multipliers, inverse)
    w[zero] = 0.0
    return w


def _solve_subsets(A: Array, B: Array, members: NDArray[np.bool_]) -> Array:
    """Solve ``A x = b`` for every row b on its members alone, zero elsewhere.

    A row's system and its rounding depend on that row only.
    """
    X = np.zeros_like(B)
    n_columns = B.shape[1]
    counts = members.sum(axis=1)
    sizes = np.minimum(-(-counts // _SIZE_STEP) * _SIZE_STEP, n_columns)
    # Each row's members in order, and then the others, without sorting.
    position = np.cumsum(members, axis=1) - 1
    outside = counts[:, None] + np.arange(n_columns) - position - 1
    order = np.empty(B.shape, dtype=np.intp)
    np.put_along_axis(
        order,
        np.where(members, position, outside),
        np.broadcast_to(np.arange(n_columns), B.shape),
        axis=1,
    )
    flat = A.ravel()
    # Counting takes a tenth of the time that np.unique does.
    for size in np.flatnonzero(np.bincount(sizes)[1:]) + 1:
        rows = np.flatnonzero(sizes == size)
        batch = max(1, _BATCH_DOUBLES // int(size) ** 2)
        diagonal = np.arange(size)
        for start in range(0, len(rows), batch):
            part = rows[start : start + batch]
            # The members' places, filled up with others that stay zero.
            place = order[part, :size]
            inside = diagonal < counts[part, None]
            systems = flat[n_columns * place[:, :, None] + place[:, None, :]]
            right = np.take_along_axis(B[part], place, axis=1)
            if not inside.all():
                systems *= inside[:, :, None] & inside[:, None, :]
                systems[:, diagonal, diagonal] += ~inside
                right *= inside
            # Not one system for many right sides: that rounds according to how many.
            solution = np.linalg.solve(systems, right[..., None])[..., 0]
            X[part[:, None], place] = solution
    return X


def _one_by_one(W: Array, active: NDArray[np.intp], B: Array, A: Array) -> Array:
    """Finish with scipy the rows on which pivoting did not end."""
    if not len(active):
        return W
    values, vectors = np.linalg.eigh(A)
    keep = values > values[-1] * 1e-12
    # ||L^T w - L^+ b|| has the minimisers of the normal equations, if b is in their
    # range; a linear cost need not be.
    design = np.sqrt(values[keep])[:, None] * vectors[:, keep].T
    targets = np.einsum("nk,kj->nj", B[active], vectors[:, keep])
    targets /= np.sqrt(values[keep])
    rest = B[active] - np.einsum("nj,jk->nk", targets, design)
    outside = np.abs(rest).max(axis=1) > 1e-6 * np.abs(B[active]).max(axis=1)
    for row, target, descend in zip(active, targets, outside, strict=True):
        if descend:
            W[row] = _descend(A, B[row])
        else:
            W[row] = nnls(design, target, maxiter=100 * len(A))[0]
    return W


def _descend(A: Array, b: Array) -> Array:
    """Cyclic coordinate descent for one sample, which no rank deficiency stops."""
    w = np.zeros_like(b)
    tolerance = _TOLERANCE * np.abs(b).max()
    for _ in range(_MAX_SWEEPS):
        largest = 0.0
        for k in range(len(b)):
            new = max(0.0, w[k] + (b[k] - A[k] @ w) / A[k, k])
            largest = max(largest, abs(new - w[k]))
            w[k] = new
        if largest <= tolerance:
            break
    return w
