"""Fixed-point numbers, which floats become before they are sent, and their slots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._integers import EXACT_BITS
from .._paillier.slots import SlotLayout, slot_width
from .masks import MASK_BITS

# Slots get this many bits more than the values need when they are widened, so that
# slowly growing values do not ask for wider slots round after round.
SPARE_BITS = 2
_INT64_BITS = 62
MOST_BITS = 1000  # a masked difference is read as a float64


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
    n_max = float(n_max)
    largest = largest_magnitude(values) * n_max
    if not largest < 2.0**MOST_BITS:
        raise OverflowError(
            f"n_max={n_max:g} times a value of the left factor is {largest:g}, beyond "
            f"the limit 2**{MOST_BITS}; use a smaller n_max, or rescale X"
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


def value_layout(
    n_values: int, value_bits: int, n_max: float, masking: str, key_size: int
) -> SlotLayout:
    """Lay out slots for an agent's values, or say what to change if none fits.

    Parameters
    ----------
    n_values : int
        Number of values of an agent.
    value_bits : int
        Width of the values in bits.
    n_max : float
        Fixed-point scale, which errors name.
    masking : {"entrywise", "scalar"}
        As for `DifferenceExchange`.
    key_size : int
        Bits of the keys.

    Returns
    -------
    SlotLayout
        With masks of ``MASK_BITS`` bits.

    Raises
    ------
    OverflowError
        If the values fit no slot of a plaintext.

    Examples
    --------
    >>> from skppdnmf.exchange import value_layout
    >>> value_layout(640, 24, 1e6, "scalar", 2048).slots_per_plaintext
    52
    """
    try:
        return SlotLayout(n_values, value_bits, MASK_BITS, masking, key_size)
    except (OverflowError, ValueError) as error:
        most = widest_values(key_size)
        limit = f"2**{most}" if most > 0 else "no value at all"
        raise OverflowError(
            f"values of {value_bits} bits (n_max={n_max:g} times entries of the left "
            f"factor of up to 2**{value_bits} / n_max) do not fit into a slot; "
            f"key_size={key_size} holds {limit}. Use "
            f"key_size={SlotLayout.smallest_key(value_bits, MASK_BITS)} or more, or a "
            "smaller n_max"
        ) from error


def with_spare(bits: int, key_size: int) -> int:
    """Return the slots' width for values, with spare bits where they fit.

    Parameters
    ----------
    bits : int
        What the values need.
    key_size : int
        Bits of the keys.

    Returns
    -------
    int
        At least `bits`, even where these do not fit.

    Examples
    --------
    >>> from skppdnmf.exchange import with_spare
    >>> with_spare(40, 2048), with_spare(40, 56)
    (42, 40)
    """
    return widened(bits, widest_values(key_size))


def widened(bits: int, widest: int) -> int:
    """Add spare bits, as far as the widest values go."""
    return max(bits, min(bits + SPARE_BITS, widest))


def widest_values(key_size: int) -> int:
    """Bits of the widest values whose slot fits into a plaintext."""
    return key_size - 1 - slot_width(0, MASK_BITS)


def answer_unit(n_max: float) -> float:
    """Return what a unit of ``G_ij G_ji (u_j - u_i)`` is worth."""
    return 0.25**MASK_BITS / n_max
