"""Exact nonnegative least squares for many samples at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import nnls

from ._threads import single_threaded

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
# Doubles in one batch of K x K systems.
_BATCH_DOUBLES = 1 << 21


def solve_nnls(X: NDArray | sparse.sparray, H: Array) -> Array:
    """Minimise ``||X - W H||`` over ``W >= 0`` exactly, sample by sample.

    Block principal pivoting on the normal equations, each sample on its own, so
    that the result for a sample does not depend on which others are in the batch,
    not even in the last bit.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        The data; sparse data stays sparse.
    H : ndarray of shape (n_components, n_features)
        The left factor.

    Returns
    -------
    ndarray of shape (n_samples, n_components), dtype float64
        The right factor W.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._nnls import solve_nnls
    >>> solve_nnls(np.array([[1.0, 2.0], [3.0, -1.0]]), np.eye(2))
    array([[1., 2.],
           [3., 0.]])
    """
    H = np.asarray(H, dtype=np.float64)
    # Unit rows make the tolerances independent of the scale of each component.
    largest = np.abs(H).max(axis=1, initial=0.0)
    scaled = H / np.where(largest > 0, largest, 1.0)[:, None]
    norms = largest * np.sqrt(np.einsum("kf,kf->k", scaled, scaled))
    used = norms > 0
    W = np.zeros((X.shape[0], H.shape[0]))
    if not used.any():
        return W
    unit = H[used] / norms[used, None]
    with single_threaded():
        B = sample_products(X, unit)
        solution = _pivot(unit @ unit.T, B, unit)
    W[:, used] = solution / norms[used]
    return W


def sample_products(X: NDArray | sparse.sparray, H: Array) -> Array:
    """Compute ``X H^T``, each row as if it stood alone."""
    if sparse.issparse(X):
        return np.asarray(sparse.csr_array(X).astype(np.float64) @ H.T)
    # A matrix product rounds a row according to the size of the batch.
    return np.einsum("nf,kf->nk", np.asarray(X, dtype=np.float64), H)


def _pivot(A: Array, B: Array, unit: Array) -> Array:
    """Block principal pivoting for ``min w A w / 2 - b w`` over all rows b."""
    n_samples, n_components = B.shape
    A = A + _RIDGE * np.trace(A) * np.eye(n_components)
    W = np.zeros_like(B)
    tolerance = _TOLERANCE * np.abs(B).max(axis=1, initial=0.0)
    passive = B > tolerance[:, None]
    best = np.full(n_samples, n_components + 1)
    trials = np.full(n_samples, _TRIALS)
    active = np.flatnonzero(passive.any(axis=1))
    batch = max(1, _BATCH_DOUBLES // n_components**2)
    for _ in range(_MAX_PIVOTS):
        if not len(active):
            return W
        w, y = _solve_passive(A, B[active], passive[active], batch)
        p = passive[active]
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
    return _one_by_one(W, active, B, unit)


def _solve_passive(
    A: Array, B: Array, passive: NDArray[np.bool_], batch: int
) -> tuple[Array, Array]:
    """Solve on each row's passive set; return solutions and gradients there."""
    w = np.empty_like(B)
    eye = np.eye(len(A), dtype=bool)
    for start in range(0, len(B), batch):
        rows = slice(start, start + batch)
        p = passive[rows]
        systems = np.where(p[:, :, None] & p[:, None, :], A, 0.0)
        systems[:, eye] = np.where(p, systems[:, eye], 1.0)
        rhs = np.where(p, B[rows], 0.0)
        w[rows] = np.linalg.solve(systems, rhs[..., None])[..., 0]
    y = np.einsum("nk,jk->nj", w, A) - B
    return w, y


def _one_by_one(W: Array, active: NDArray[np.intp], B: Array, unit: Array) -> Array:
    """Finish with scipy the rows on which pivoting did not end."""
    if len(active):
        # ||L^T w - L^+ b|| has the same minimisers as the normal equations.
        values, vectors = np.linalg.eigh(unit @ unit.T)
        keep = values > values[-1] * 1e-12
        root = np.sqrt(values[keep])
        design = root[:, None] * vectors[:, keep].T
        for row in active:
            target = (vectors[:, keep].T @ B[row]) / root
            W[row] = nnls(design, target, maxiter=100 * len(unit))[0]
    return W
