"""Fixed-point numbers: what a float becomes before it is sent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._paillier.slots import EXACT_BITS

# Slots get this many bits more than the values need when they are widened, so that
# slowly growing values do not ask for wider slots round after round.
SPARE_BITS = 2
_INT64_BITS = 62
_MOST_BITS = 1000  # a masked difference is read as a float64


def fixed_point(
    values: NDArray[np.floating], n_max: float, floats: bool = False
) -> tuple[Any, int]:
    """Return ``round(n_max * values)`` and the bits that its magnitudes need.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Finite floats.
    n_max : float
        Fixed-point scale.
    floats : bool, default=False
        Leave the integers in floats, where these are exact.

    Returns
    -------
    integers : ndarray of shape (n_values,)
        int64, or Python integers in an object array beyond 62 bits.
    bits : int
        The least b with ``|u| < 2**b`` for all, at least 1.

    Raises
    ------
    OverflowError
        If a value is nan or infinite, or beyond 2**1000 after scaling.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.exchange import fixed_point
    >>> fixed_point(np.array([0.5, -1.26]), 10)
    (array([  5, -13]), 4)
    """
    largest = largest_magnitude(values) * n_max
    if not largest < 2.0**_MOST_BITS:
        raise OverflowError(
            f"n_max={n_max:g} times a value of the left factor is {largest:g}, beyond "
            f"the limit 2**{_MOST_BITS}; use a smaller n_max, or rescale X"
        )
    bits = max(1, round(largest).bit_length())
    scaled = np.multiply(values, n_max, dtype=np.float64)
    np.rint(scaled, out=scaled)
    if floats and bits <= EXACT_BITS:
        return scaled, bits
    if bits <= _INT64_BITS:
        return scaled.astype(np.int64), bits
    return np.array([int(value) for value in scaled], dtype=object), bits


def largest_magnitude(values: NDArray[np.floating]) -> float:
    """Return the largest magnitude; an OverflowError if a value is not finite."""
    largest = max(float(values.max()), -float(values.min()))
    if not math.isfinite(largest):
        raise OverflowError(
            f"a value of the left factor is {largest:g}: the iteration has diverged; "
            "change the penalties (mu, eta, g_max), or use "
            'penalty_scaling="absolute" with update="published"'
        )
    return largest


def starting_bits(start: NDArray[np.floating], n_max: float | None) -> int:
    """Return the width of the values with which all agents start.

    Parameters
    ----------
    start : ndarray
        The common start of the left factor.
    n_max : float or None
        Fixed-point scale; None without rounding.

    Returns
    -------
    int
        Bits that the start needs, and a few more.

    Raises
    ------
    OverflowError
        If the start is not finite after scaling.
    """
    return fixed_point(start.ravel(), n_max or 1.0)[1] + SPARE_BITS
