"""Numbers that are summed exactly, modulo 2**64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

# Doubles are whole multiples of 2**-1074 below 2**1024.
_LEAST_EXPONENT = -1074
_LIMB_BITS = 32
_MANTISSA_BITS = 53
_HALF_BITS = 26  # sums of so many bits fit 64
N_LIMBS = -(-(1024 - _LEAST_EXPONENT) // _LIMB_BITS)
TOTAL_BITS = 62  # that the magnitude of a total may take, with a bit to spare


def to_limbs(values: float | NDArray[np.floating]) -> Words:
    """Return the sum of nonnegative doubles exactly, in words that hold 32 bits each.

    Whatever the doubles' magnitudes, up to 2**31 such words are summed exactly, so
    that no scale has to be agreed beforehand, and the order has no effect.

    Parameters
    ----------
    values : float or ndarray of float64
        Nonnegative and finite.

    Returns
    -------
    ndarray of uint64, shape (N_LIMBS,)

    Raises
    ------
    OverflowError
        If a value is negative or not finite, or the sum exceeds the largest double.

    Examples
    --------
    >>> from skppdnmf.exchange import from_limbs, to_limbs
    >>> from_limbs(to_limbs(0.1) + to_limbs(1e300) + to_limbs(0.1))
    1e+300
    """
    doubles = np.atleast_1d(np.asarray(values, dtype=np.float64)).ravel()
    wrong = doubles[~(np.isfinite(doubles) & (doubles >= 0))]
    if wrong.size:
        raise OverflowError(f"{wrong[0]} is no finite, nonnegative number")
    mantissas, exponents = np.frexp(doubles)
    whole = np.ldexp(mantissas, _MANTISSA_BITS).astype(np.int64)
    total = 0
    for exponent in np.unique(exponents):
        here = whole[exponents == exponent]
        high, low = here >> _HALF_BITS, here & ((1 << _HALF_BITS) - 1)
        partial = (int(high.sum()) << _HALF_BITS) + int(low.sum())
        shift = int(exponent) - _MANTISSA_BITS - _LEAST_EXPONENT
        total += partial << shift if shift >= 0 else partial >> -shift  # loses no bit
    try:
        data = total.to_bytes(N_LIMBS * _LIMB_BITS // 8, "little")
    except OverflowError as error:
        raise OverflowError("the sum exceeds the largest double") from error
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
