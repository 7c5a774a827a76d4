"""Numbers that are summed exactly, modulo 2**64."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

# Doubles are whole multiples of 2**-1074 below 2**1024.
_LEAST_EXPONENT = -1074
_LIMB_BITS = 32
N_LIMBS = -(-(1024 - _LEAST_EXPONENT) // _LIMB_BITS)
_TOTAL_BITS = 62  # of the magnitude of a total, with a bit to spare


def largest_scale(bound: float) -> float:
    """Return the largest scale at which a total of this magnitude cannot wrap.

    Parameters
    ----------
    bound : float
        Largest magnitude of a total.

    Returns
    -------
    float

    Examples
    --------
    >>> from skppdnmf.exchange import largest_scale
    >>> largest_scale(4.0) == 2.0**60
    True
    """
    return 2.0**_TOTAL_BITS / bound


def to_words(values: NDArray[np.floating], scale: float) -> Words:
    """Return ``round(scale * values)`` modulo 2**64.

    Parameters
    ----------
    values : ndarray of float64
        Finite.
    scale : float
        Fixed-point scale.

    Returns
    -------
    ndarray of uint64, of the same shape

    Raises
    ------
    OverflowError
        If a scaled value is not finite or of a magnitude above 2**62, so that a
        total could wrap.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.exchange import from_words, to_words
    >>> words = to_words(np.array([0.5, -0.25]), 100)
    >>> from_words(words + words, 100)
    array([ 1. , -0.5])
    """
    scaled = np.rint(values * scale)
    largest = float(np.abs(scaled).max(initial=0.0))
    if not largest <= 2.0**_TOTAL_BITS:
        raise OverflowError(
            f"a summand of {largest:.3g} fixed-point units exceeds 2**{_TOTAL_BITS}, "
            "the total could wrap"
        )
    return scaled.astype(np.int64).view(np.uint64)


def from_words(words: Words, scale: float) -> NDArray[np.float64]:
    """Return the numbers that words stand for, the inverse of `to_words`.

    Parameters
    ----------
    words : ndarray of uint64
        A total of words.
    scale : float
        Fixed-point scale.

    Returns
    -------
    ndarray of float64, of the same shape
    """
    return words.view(np.int64) / scale


def to_limbs(value: float) -> Words:
    """Return a nonnegative double exactly, in words that hold 32 bits each.

    Whatever the doubles' magnitudes, up to 2**31 of them are summed exactly, so
    that no scale has to be agreed beforehand.

    Parameters
    ----------
    value : float
        Nonnegative and finite.

    Returns
    -------
    ndarray of uint64, shape (N_LIMBS,)

    Raises
    ------
    OverflowError
        If the value is negative or not finite.

    Examples
    --------
    >>> from skppdnmf.exchange import from_limbs, to_limbs
    >>> from_limbs(to_limbs(0.1) + to_limbs(1e300) + to_limbs(0.1))
    1e+300
    """
    if not (math.isfinite(value) and value >= 0):
        raise OverflowError(f"{value} is no finite, nonnegative number")
    mantissa, exponent = math.frexp(value)
    shift = exponent - 53 - _LEAST_EXPONENT
    whole = int(mantissa * 2.0**53)
    whole = whole << shift if shift >= 0 else whole >> -shift  # no bit is lost
    data = whole.to_bytes(N_LIMBS * _LIMB_BITS // 8, "little")
    return np.frombuffer(data, dtype="<u4").astype(np.uint64)


def from_limbs(limbs: Words) -> float:
    """Return the double nearest to a total of limbs.

    Parameters
    ----------
    limbs : ndarray of uint64, shape (N_LIMBS,)
        A total of what `to_limbs` returned.

    Returns
    -------
    float

    Raises
    ------
    OverflowError
        If the total exceeds the largest double.
    """
    whole = 0
    for limb in limbs[::-1]:
        whole = (whole << _LIMB_BITS) + int(limb)
    # Python divides integers with one rounding.
    return whole / (1 << -_LEAST_EXPONENT)
