r"""The factorisation that is run on secret shares: few rounds, and bounded throughout.

Both factors are solved by projected gradient with momentum. For a nonnegative Gram
matrix G the diagonal matrix of its row sums d is at least G, so that

.. math:: Y \leftarrow \max(0, Y - (Y G - B) \operatorname{diag}(1 / d))

descends without a step length to be found: one product, one comparison. G, B and the
reciprocals are formed once for several such steps. Between factors extrapolation
(Ang and Gillis 2019) does what more steps would do.

The functions take an array module and are the same under numpy, where they are the
reference, and under jax.numpy, where SPU runs them on shares. All numbers are secret
but shapes and what comes as a Python number.

References
----------
A. Ang and N. Gillis, "Accelerating nonnegative matrix factorization algorithms using
extrapolation", Neural Computation 31(2), 2019.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

# Momentum of the steps on one factor, after the first, in quarters: points ahead are
# then sums, which are free.
MOMENTUM = (0.5, 0.5, 0.75, 0.75)
# Largest weight of the extrapolation between factors, which is reached after so many
# iterations and kept for the first half of them.
EXTRAPOLATION = 0.5
_RAMP = 10
# Added to the row sums: a component that has vanished takes bounded steps.
RIDGE = 2.0**-12
# Factors are kept below this; the norm of the data is at most one.
CLIP = 16.0
# Exponents of four: of the largest entry of an agent that has none above zero, and of
# the largest that doubles have.
LEAST_EXPONENT, LARGEST_EXPONENT = -538, 512
# Differences of the exponents from which on an agent's samples vanish beside others'.
_EXPONENT_STEPS = 18
# Powers of two by which the norm may be below its bound.
_NORM_STEPS = 16
# Coefficients of penalties beyond this leave nothing of a factor.
LARGEST_PENALTY = 2.0**10


class Penalties(NamedTuple):
    """Weights of the penalties, in the units of the data.

    Parameters
    ----------
    right_l1, right_l2 : float
        On the right factor, for each sample.
    left_l1, left_l2 : float
        On the left factor.
    """

    right_l1: float = 0.0
    right_l2: float = 0.0
    left_l1: float = 0.0
    left_l2: float = 0.0


class State(NamedTuple):
    """Where the iteration is, for S starts side by side.

    Parameters
    ----------
    left, left_ahead : array of shape (S, F, K)
        The transposed left factor, and the same extrapolated.
    right, right_ahead : array of shape (S, n, K)
        The right factor, and the same extrapolated.
    """

    left: Any
    left_ahead: Any
    right: Any
    right_ahead: Any


def normalised(X: Any) -> tuple[Any, int]:
    """Return one agent's samples as whole fractions, and their exponent.

    Parameters
    ----------
    X : ndarray of shape (n_i, F)
        Nonnegative.

    Returns
    -------
    X : ndarray of shape (n_i, F), dtype float32
        Between 0 and 1.
    exponent : int
        The power of four that was divided by.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._mpc.solver import normalised
    >>> normalised(np.array([[1.0, 16.0]]))
    (array([[0.0625, 1.    ]], dtype=float32), 2)
    """
    X = np.asarray(X, dtype=np.float64)
    largest = float(X.max(initial=0.0))
    if largest == 0.0:
        return X.astype(np.float32), LEAST_EXPONENT
    mantissa, power = math.frexp(largest)
    power -= mantissa == 0.5  # a power of two is its own bound
    exponent = -(-power // 2)
    # In two steps: the power alone may be beyond the range of doubles.
    half = -exponent
    return np.ldexp(np.ldexp(X, half), half).astype(np.float32), exponent


def weight_of(iteration: int, n_iterations: int) -> float:
    """Return the weight of the extrapolation in an iteration; public.

    Parameters
    ----------
    iteration, n_iterations : int
        From 0; how many there are.

    Returns
    -------
    float

    Examples
    --------
    >>> from skppdnmf._mpc.solver import weight_of
    >>> weight_of(0, 60), weight_of(20, 60), weight_of(59, 60) < 0.02
    (0.0, 0.5, True)
    """
    left = 1.0 - iteration / n_iterations
    return EXTRAPOLATION * min(1.0, iteration / _RAMP) * min(1.0, 2.0 * left)


def scaled(
    xp: Any, parts: Sequence[Any], exponents: Any, penalties: Penalties
) -> tuple[Any, ...]:
    """Bring all samples to one scale, on which their norm is between a half and one.

    Parameters
    ----------
    xp : module
        numpy or jax.numpy.
    parts : sequence of arrays of shape (n_i, F)
        As `normalised` returns them.
    exponents : array of shape (n_agents,)
        Theirs.
    penalties : Penalties
        Public weights, in units of the data.

    Returns
    -------
    X : array of shape (n, F)
        Of Frobenius norm at most one.
    scale : array of shape (2,)
        Exponents: X was divided by ``4**scale[0] / 2**scale[1]`` times sqrt(n F).
    weights : array of shape (4,)
        The penalties in these units; missing where there are none.
    """
    exponents = xp.asarray(exponents, dtype=np.float32)
    n_samples = sum(part.shape[0] for part in parts)
    size = n_samples * parts[0].shape[1]
    largest = xp.max(exponents)
    steps = np.arange(1, _EXPONENT_STEPS + 1)
    taken = _reached(xp, (largest - exponents)[None, :], steps[:, None] - 0.5)
    # Samples that would be smaller than 4**-18 of the largest entry vanish.
    table = np.r_[4.0 ** -np.arange(_EXPONENT_STEPS), 0.0]
    factors = _looked_up(xp, taken, table[:, None])
    X = xp.concatenate([part * factors[i] for i, part in enumerate(parts)], axis=0)
    square = xp.sum(X * X) * (1.0 / size)
    limits = 4.0 ** -np.arange(1, _NORM_STEPS + 1, dtype=np.float64)
    below = _reached(xp, -square, -limits)
    power = xp.sum(below)
    scale = _looked_up(xp, below, 2.0 ** np.arange(_NORM_STEPS + 1))
    # One after the other: their product would have lost the lowest bits.
    X = (X * scale) * np.float32(size**-0.5)
    exponent = xp.stack([largest, power])
    if not any(penalties):
        return X, exponent
    weights = _penalties_in(xp, penalties, largest, below, size)
    return X, exponent, weights


def _penalties_in(
    xp: Any, penalties: Penalties, largest: Any, below: Any, size: int
) -> Any:
    """Return the penalties in the units of the scaled samples."""
    # X = s X', W = sqrt(s) W', H = sqrt(s) H': squares weigh 1 / s, the rest s**-1.5.
    exponents = np.arange(LEAST_EXPONENT, LARGEST_EXPONENT + 1, dtype=np.float64)
    reached = _reached(xp, largest, exponents[1:] - 0.5)
    weights = []
    for weight, degree in zip(penalties, (1.5, 1.0, 1.5, 1.0), strict=True):
        log = math.log2(weight) if weight else -math.inf
        powers = log - 2.0 * degree * exponents - degree * 0.5 * math.log2(size)
        table = 2.0 ** np.minimum(powers, math.log2(LARGEST_PENALTY))
        # The norm may be below its bound by powers of two.
        steps = 2.0 ** (degree * np.arange(_NORM_STEPS + 1))
        value = _looked_up(xp, reached, table) * _looked_up(xp, below, steps)
        weights.append(xp.minimum(value, np.float32(LARGEST_PENALTY)))
    return xp.stack(weights)


def _reached(xp: Any, value: Any, limits: Any) -> Any:
    """Return 1.0 for each of rising public limits that a value exceeds, else 0.0."""
    above = value > np.asarray(limits, dtype=np.float32)
    return xp.where(above, np.float32(1.0), np.float32(0.0))


def _looked_up(xp: Any, reached: Any, table: Any) -> Any:
    """Return the entry of a public table at the number of limits reached."""
    table = np.asarray(table, dtype=np.float32)
    between = xp.sum((reached[:-1] - reached[1:]) * table[1:-1], axis=0)
    return (1.0 - reached[0]) * table[0] + between + reached[-1] * table[-1]


def begun(xp: Any, n_samples: int, starts: Any, n_fixed: int = 0) -> State:
    """Return where the iteration begins.

    Parameters
    ----------
    xp : module
        numpy or jax.numpy.
    n_samples : int
        n.
    starts : ndarray of shape (S, K, F)
        Common starts of the left factor; public.
    n_fixed : int, default=0
        How many of their first rows are kept.

    Returns
    -------
    State
    """
    starts = np.asarray(starts, dtype=np.float64)
    norms = np.sqrt(np.einsum("skf,skf->s", starts, starts))
    left = (starts / norms[:, None, None]).transpose(0, 2, 1).astype(np.float32)
    if n_fixed:
        left[:, :, :n_fixed] = fixed_columns(starts, n_fixed)
    right = xp.zeros((len(starts), n_samples, starts.shape[1]), dtype=np.float32)
    left = xp.asarray(left)
    return State(left, left, right, right)


def fixed_columns(starts: Any, n_fixed: int) -> Any:
    """Return the columns of the left factor that are kept; public.

    Parameters
    ----------
    starts : ndarray of shape (S, K, F)
        Common starts, alike in their first rows.
    n_fixed : int
        How many of these are kept.

    Returns
    -------
    ndarray of shape (F, n_fixed), dtype float32
        Each of norm one: their weight is the right factor's.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._mpc.solver import fixed_columns
    >>> fixed_columns(np.array([[[3.0, 4.0], [1.0, 1.0]]]), 1).T
    array([[0.6, 0.8]], dtype=float32)
    """
    rows = np.asarray(starts, dtype=np.float64)[0, :n_fixed]
    rows = rows / rows.max(axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.T.astype(np.float32)


def iterated(
    xp: Any,
    X: Any,
    state: State,
    weight: Any,
    weights: Any | None = None,
    fixed: Any | None = None,
) -> State:
    """Do one iteration of block coordinate descent.

    Parameters
    ----------
    xp : module
        numpy or jax.numpy.
    X : array of shape (n, F)
        As `scaled` returns it.
    state : State
        Where the iteration is.
    weight : float
        Of the extrapolation; public.
    weights : array of shape (4,) or None, default=None
        The penalties.
    fixed : ndarray of shape (F, n_fixed) or None, default=None
        The first columns of the left factor, if they are known; public.

    Returns
    -------
    State
    """
    right_l1, right_l2, left_l1, left_l2 = (
        [0.0] * 4 if weights is None else [weights[k] for k in range(4)]
    )
    new = _solved(xp, X, state.left_ahead, state.right_ahead, right_l1, right_l2)
    right, right_ahead = new, _ahead(xp, new, state.right, weight)
    new = _solved(xp, X.T, right_ahead, state.left_ahead, left_l1, left_l2, fixed)
    return State(new, _ahead(xp, new, state.left, weight), right, right_ahead)


def _solved(
    xp: Any, X: Any, other: Any, factor: Any, l1: Any, l2: Any, fixed: Any = None
) -> Any:
    """Solve for one factor given the other, by a few steps; rows are X's."""
    n_components = other.shape[2]
    identity = np.eye(n_components, dtype=np.float32)
    # One product for the Gram matrix and the linear term; flat times wide, which SPU
    # multiplies in a third of the time.
    rows = [one.T @ xp.concatenate([X.T, one], axis=1) for one in other]
    products = xp.stack([row[:, : X.shape[0]].T for row in rows]) - l1
    gram = xp.stack([row[:, X.shape[0] :] for row in rows]) + l2 * identity
    step = 1.0 / (xp.sum(gram, axis=1) + RIDGE)
    target = products * step[:, None, :]
    keep = identity - gram * step[:, None, :]

    def after(point: Any, matrix: Any) -> Any:
        moved = _positive(xp, _products(xp, point, matrix) + target)
        return moved if fixed is None else _kept(xp, moved, fixed)

    before, now = factor, after(factor, keep)
    # Four times the point ahead, by sums alone, which are free and exact.
    quarter = keep * np.float32(0.25)
    for momentum in MOMENTUM:
        change = now - before
        twice = now + now
        point = twice + twice
        for _ in range(round(4 * momentum)):
            point = point + change
        before, now = now, after(point, quarter)
    return now


def _kept(xp: Any, factor: Any, fixed: Any) -> Any:
    """Put known columns in front of those that have been found."""
    known = xp.stack([xp.asarray(fixed)] * factor.shape[0])
    return xp.concatenate([known, factor[:, :, fixed.shape[1] :]], axis=2)


def _ahead(xp: Any, new: Any, old: Any, weight: Any) -> Any:
    """Extrapolate a factor, and keep it between zero and its bound."""
    point = new + (new - old) * weight
    both = _positive(xp, xp.stack([point, point - CLIP]))
    return both[0] - both[1]


def _products(xp: Any, left: Any, right: Any) -> Any:
    """Multiply matrix by matrix: SPU has no products of stacks in one round."""
    return xp.stack([one @ other for one, other in zip(left, right, strict=True)])


def _positive(xp: Any, array: Any) -> Any:
    """Return the nonnegative part."""
    return xp.maximum(array, 0.0)


def best(xp: Any, X: Any, state: State, weights: Any | None = None) -> Any:
    """Return the number of the start with the least objective.

    Parameters
    ----------
    xp, X, state, weights
        As for `iterated`.

    Returns
    -------
    array of shape ()
        An integer.
    """
    values = []
    # Within the bound, as products of three are formed.
    kept = CLIP - _positive(xp, CLIP - state.left)
    for left, right in zip(kept, state.right_ahead, strict=True):
        rows = xp.concatenate([X.T, right.T], axis=0) @ right
        products, gram = rows[: X.shape[1]], rows[X.shape[1] :]
        # The norm of X is the same for all.
        value = 0.5 * xp.sum((left @ gram) * left) - xp.sum(products * left)
        if weights is not None:
            value = value + weights[0] * xp.sum(right) + weights[2] * xp.sum(left)
            squares = weights[1] * xp.sum(right * right)
            value = value + 0.5 * (squares + weights[3] * xp.sum(left * left))
        values.append(value)
    return xp.argmin(xp.stack(values))


def components_of(
    left: Any, exponents: Any | None, size: int, fixed: Any | None = None
) -> Any:
    """Return the components from what was opened.

    Parameters
    ----------
    left : ndarray of shape (F, K)
        The transposed left factor.
    exponents : ndarray of shape (2,) or None
        Of the scale, where penalties give it a meaning; otherwise it stays secret, and
        the components have about unit norm.
    size : int
        n F.
    fixed : ndarray of shape (n_fixed, F) or None, default=None
        The first components, if they are known, as they were given.

    Returns
    -------
    ndarray of shape (K, F), dtype float64
    """
    H = np.maximum(np.asarray(left, dtype=np.float64).T, 0.0)
    if fixed is not None:
        H[: len(fixed)] = fixed
    if exponents is None:
        return H
    largest, power = (float(value) for value in np.rint(exponents))
    # The root of 4**largest / 2**power sqrt(n F).
    return H * 2.0 ** (largest - 0.5 * power) * size**0.25
