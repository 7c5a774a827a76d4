"""Numbers that are summed exactly, modulo 2**64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

# Doubles are whole multiples of 2**-1074 below 2**1024.
_LEAST_EXPONENT = -1074
_LIMB_BITS = 32
_MANTISSA_BITS = 53
_LIMB = (1 << _LIMB_BITS) - 1
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
        If a value is negative or not finite.

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
    place = exponents.astype(np.int64) - _MANTISSA_BITS - _LEAST_EXPONENT
    whole >>= np.maximum(-place, 0)  # of a subnormal number; loses no bit
    limb, shift = np.divmod(np.maximum(place, 0), _LIMB_BITS)
    low = (whole & _LIMB).astype(np.uint64) << shift.astype(np.uint64)
    high = (whole >> _LIMB_BITS).astype(np.uint64) << shift.astype(np.uint64)
    # Each value's limbs are added as they are, without carrying over between values:
    # that would show how they are grouped.
    middle = (low >> _LIMB_BITS) + (high & _LIMB)
    limbs = np.zeros(N_LIMBS, dtype=np.uint64)
    for k, part in enumerate(
        (low & _LIMB, middle & _LIMB, (high >> _LIMB_BITS) + (middle >> _LIMB_BITS))
    ):
        used = part > 0
        np.add.at(limbs, limb[used] + k, part[used])
    return limbs


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
