"""The integers that an exchange masks: their bounds, and what an answer is.

A layout says how many there are and how wide. Every layout has `n_values`,
`value_bits`, `mask_bits`, `masking` and `bits_value_dtype`, whatever the cipher.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MASKINGS = ("scalar", "entrywise")
MAX_MASK_BITS = 62  # a mask fits into int64
MAX_VALUE_BITS = 4096
EXACT_BITS = 53  # integers up to 2**53 are exact in a float64
_SECRET = ("masks", "dither")  # their values stand in no message


def positive_int(name: str, value: Any) -> int:
    """Check a count; numpy integers pass, booleans do not."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}={value!r} should be an integer")
    if value < 1:
        raise ValueError(f"{name}={value} should be >= 1")
    return int(value)


def as_integers(values: Any, n_values: int, name: str) -> np.ndarray:
    """Return a 1-D array of integers (a signed or unsigned dtype, or object)."""
    array = np.asarray(values)
    if array.shape != (n_values,):
        raise ValueError(f"{name} has shape {array.shape}, expected ({n_values},)")
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind == "O":
        for value in array:
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                found = type(value).__name__ if name in _SECRET else repr(value)
                raise TypeError(f"{name} should hold integers, got {found}")
        return array
    raise TypeError(f"{name} should hold integers, got dtype {array.dtype}")


def extrema(array: np.ndarray) -> tuple[int, int]:
    """Smallest and largest entry as Python integers."""
    return int(np.minimum.reduce(array)), int(np.maximum.reduce(array))


def is_object(dtype: np.dtype) -> bool:
    """Whether numbers of this dtype are Python integers."""
    return dtype.kind == "O"


def _cast(array: np.ndarray, layout: Any) -> np.ndarray:
    """Convert to the layout's dtype once the bounds have been checked."""
    if array.dtype == layout.bits_value_dtype:
        return array
    if is_object(layout.bits_value_dtype):
        return np.array([int(value) for value in array], dtype=object)
    return array.astype(layout.bits_value_dtype)


def check_values(values: Any, layout: Any, name: str = "values") -> np.ndarray:
    """Return the values in the layout's dtype, or raise if one breaks the promise."""
    array = as_integers(values, layout.n_values, name)
    low, high = extrema(array)
    if -low >> layout.value_bits > 0 or high >> layout.value_bits > 0:
        worst = high if high >= -low else low
        raise OverflowError(
            f"{name} holds {worst}, beyond the limit |u| <= {2**layout.value_bits - 1} "
            f"(value_bits={layout.value_bits})"
        )
    return _cast(array, layout)


def check_masks(masks: Any, layout: Any) -> Any:
    """Return one Python integer (scalar) or a signed integer array (entrywise)."""
    limit = 1 << layout.mask_bits
    array = None
    if layout.masking == "entrywise":
        array = as_integers(masks, layout.n_values, "masks")
        low, high = extrema(array)
    elif isinstance(masks, bool) or not isinstance(masks, int | np.integer):
        raise TypeError(
            "masks should be one integer under masking='scalar', got "
            f"{type(masks).__name__}"
        )
    else:
        low = high = int(masks)
    if low < 1 or high > limit:
        raise OverflowError(
            f"a mask lies outside 1 <= G <= {limit} (mask_bits={layout.mask_bits})"
        )
    if array is None:
        return high
    # Narrow signed masks may stay so; unsigned ones would wrap or become floats.
    if array.dtype.kind == "i" and not is_object(layout.bits_value_dtype):
        return array
    return _cast(array, layout)


def check_dither(dither: Any, masks: Any, layout: Any) -> np.ndarray:
    """Return the dither if every entry lies in (-G/2, G/2], or raise."""
    array = as_integers(dither, layout.n_values, "dither")
    low, high = extrema(array)
    half = 1 << (layout.mask_bits - 1)
    if -half <= low and high <= half:
        array = _cast(array, layout)
        if layout.masking == "scalar":
            outside = 2 * low <= -masks or 2 * high > masks
        else:
            twice = array + array
            wrong = (twice > masks) | (twice <= -masks)
            outside = bool(wrong.any())
        if not outside:
            return array
    raise OverflowError(
        f"a dither lies outside (-G/2, G/2] (mask_bits={layout.mask_bits})"
    )


def answer(values: Any, request: Any, masks: Any, dither: Any) -> np.ndarray:
    """Compute what the owner decrypts, ``G * (u_j - u_i) + dither``."""
    result = np.add(values, request)
    result *= masks
    result += dither
    return result
