"""The two ADMM steps of block coordinate descent, as pure functions on arrays.

Shapes: K components, F features, n samples of one agent. Equation numbers are those
of arXiv 2403.18326, transposed to scikit-learn's orientation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .blocks import one_by_one, row_slices
from .penalties import Penalty

Array = NDArray[np.floating]
Share = Callable[..., list[Any]]
Data = Any  # an ndarray, or a scipy sparse matrix or array in CSR format


_CHECK_EVERY = 2


class LeftState(NamedTuple):
    """One agent's left-factor variables, each of shape (K, F).

    H, which follows from U and P, is what `project_left` returns.
    """

    U: Array
    P: Array
    Q: Array
    S: Array


class RightState(NamedTuple):
    """One agent's right-factor variables, each of shape (n, K)."""

    W: Array
    V: Array
    R: Array


def invert(A: Array, shift: float) -> Array:
    """Return ``(A + shift I)^-1`` for a positive semidefinite A of shape (K, K)."""
    try:
        return np.linalg.inv(A + shift * np.eye(len(A)))
    except np.linalg.LinAlgError as error:
        raise ValueError(
            "the normal equations of a factor are singular in double precision: "
            f"entries up to {np.abs(A).max():.3g} beside penalties of {shift:.3g}; "
            "rescale X or init, or change mu, eta or g_max"
        ) from error


def left_step(
    state: LeftState,
    inverse: Array,
    B: Array,
    penalty: float,
    proximal: float,
) -> LeftState:
    """One ADMM iteration on the left factor, up to the exchange.

    ``H = max(U + P, 0)``  (8),
    ``U = (A + (mu + rho) I)^-1 (B + mu (H - P) + rho U + Q + S)``  (9),
    ``P = P - (H - U)``  (10).

    The minimiser of the augmented Lagrangian (7) has ``rho U + 2Q - Q'`` where the
    paper prints ``rho (U + 2Q - Q')``; with ``Q = Q' + S`` this is ``rho U + Q + S``.

    Parameters
    ----------
    state : LeftState
        The variables before the iteration.
    inverse : ndarray of shape (K, K)
        ``(A + (mu + rho) I)^-1``.
    B : ndarray of shape (K, F)
        ``W^T X``.
    penalty : float
        The agent's mu.
    proximal : float
        The agent's weight rho on its last U.

    Returns
    -------
    LeftState
        With new U and P.
    """
    U, P, Q, S = state
    gap = np.maximum(U, -P)  # H - P, which is max(U + P, 0) - P
    right = penalty * gap
    right += B
    right += proximal * U
    right += Q
    right += S
    U = inverse @ right
    return LeftState(U, np.subtract(U, gap, out=gap), Q, S)


def published_left_step(
    state: LeftState,
    inverse: Array,
    B: Array,
    penalty: float,
    rho: float,
) -> LeftState:
    """One ADMM iteration on the left factor as the paper prints it.

    As `left_step`, with (9) in its printed form, ``rho (U + 2Q - Q')``. Kept to
    reproduce the paper; the agents do not reach consensus.

    Parameters
    ----------
    state, inverse, B, penalty
        As in `left_step`.
    rho : float
        The agent's sum of consensus penalties.

    Returns
    -------
    LeftState
        With new U and P.
    """
    U, P, Q, S = state
    H = project_left(state)
    U = inverse @ (B + penalty * (H - P) + rho * (U + Q + S))
    return LeftState(U, P - H + U, Q, S)


def penalise(A: Any, B: Any, penalty: Penalty) -> tuple[Any, Any]:
    """Return the normal equations ``A + l2 I`` and ``B - l1`` of a penalised factor."""
    if penalty.l2:
        A = A + penalty.l2 * np.eye(len(A))
    if penalty.l1:
        B = B - B.dtype.type(penalty.l1)
    return A, B


def add_consensus(state: LeftState, S: Array) -> LeftState:
    """Accumulate the consensus multiplier, ``Q = Q + S``  (11)."""
    return LeftState(state.U, state.P, state.Q + S, S)


def project_left(state: LeftState) -> Array:
    """Return the agent's copy of the left factor, ``max(U + P, 0)``  (8)."""
    # As max(U + P, 0), but numpy is faster with an array than with a number.
    return np.maximum(state.U, -state.P) + state.P


def rescale_multiplier(multiplier: Array, old: float, new: float) -> Array:
    """Keep penalty times scaled multiplier unchanged when the penalty changes."""
    return multiplier if old == new or new == 0 else multiplier * (old / new)


def right_factor(
    state: RightState,
    A: Array,
    B: Array,
    penalty: float,
    max_iter: int,
    tol: float,
) -> RightState:
    """Solve one agent's right factor by ADMM, warm started.

    ``W = max(V + R, 0)``  (12),
    ``V = (B + eta (W - R)) (A + eta I)^-1``  (13),
    ``R = R - (W - V)``  (14).

    Parameters
    ----------
    state : RightState
        Where to start.
    A : ndarray of shape (K, K)
        ``H H^T``.
    B : ndarray of shape (n, K)
        ``X H^T``.
    penalty : float
        The agent's eta, positive.
    max_iter : int
        Most iterations.
    tol : float
        Stop when both the step of V and its distance from W are at most this
        fraction of the norm of V.

    Returns
    -------
    RightState
        W is nonnegative.
    """
    _, V, R = state
    inverse = invert(A, penalty).astype(B.dtype, copy=False)
    for iteration in range(max_iter):
        last_V, last_R = V, R
        gap = np.maximum(V, -R)  # W - R, which is max(V + R, 0) - R
        target = penalty * gap
        target += B
        V = target @ inverse
        R = np.subtract(V, gap, out=gap)
        if iteration % _CHECK_EVERY == 0:  # the norms cost as much as the step
            limit = tol * tol * frobenius_square(V)
            # R moves by V - W.
            if (
                frobenius_square(R - last_R) <= limit
                and frobenius_square(V - last_V) <= limit
            ):
                break
    return RightState(np.maximum(V, -R) + R, V, R)


def extrapolate(current: Array, previous: Array, weight: float) -> Array:
    """Move on along the last step, ``current + weight (current - previous)``."""
    return current + weight * (current - previous)


def gram(W: Array) -> NDArray[np.float64]:
    """Return ``A = W^T W`` in double precision, shape (K, K)."""
    W = W.astype(np.float64, copy=False)
    return W.T @ W


def left_products(W: Array, X: Data) -> NDArray[np.float64]:
    """Return ``B = W^T X`` in double precision, shape (K, F)."""
    if sparse.issparse(X):
        return np.ascontiguousarray((X.T @ W).T).astype(np.float64, copy=False)
    return (W.T @ X).astype(np.float64, copy=False)


def right_products(X: Data, H: Array) -> Array:
    """Return ``B = X H^T`` in the precision of X, shape (n, K)."""
    right = H.T.astype(X.dtype, copy=False)
    return X @ (np.ascontiguousarray(right) if sparse.issparse(X) else right)


def squared_norm(X: Data, share: Share = one_by_one) -> float:
    """Return ``||X||^2`` in double precision; blocks of rows go through `share`."""
    parts = [X.data] if sparse.issparse(X) else [X[rows] for rows in row_slices(len(X))]
    return float(sum(share(_sum_of_squares, parts)))


def _sum_of_squares(values: Array) -> float:
    """Return the sum of squares; infinity is refused where it matters."""
    with np.errstate(over="ignore"):
        return float(np.sum(np.square(values, dtype=np.float64)))


def expanded_residual(
    norm: float, W: Array, B: Array, left_gram: Array, right_gram: Array
) -> float:
    """Return ``||X - W H||^2`` from ``||X||^2``, ``B = X H^T``, ``H H^T``, ``W^T W``.

    Cheap, and exact to the rounding error of the norm of X.
    """
    W, B = W.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
    inner = float(np.vdot(W, B))
    return max(0.0, norm - 2.0 * inner + float(np.vdot(left_gram, right_gram)))


def squared_residual(X: Data, W: Array, H: Array, share: Share = one_by_one) -> float:
    """Return ``||X - W H||^2`` without forming W H where X is sparse."""
    if sparse.issparse(X):
        H = H.astype(np.float64, copy=False)
        return expanded_residual(squared_norm(X), W, X @ H.T, H @ H.T, gram(W))
    H = H.astype(W.dtype, copy=False)

    def of_rows(rows: slice) -> float:
        residual = X[rows] - W[rows] @ H
        return float(np.einsum("ij,ij->", residual, residual, dtype=np.float64))

    return float(sum(share(of_rows, row_slices(len(W)))))


def frobenius_square(array: Array) -> float:
    """Return the squared Frobenius norm."""
    flat = array.ravel()
    return float(flat @ flat)
