"""Bounds of all numbers of the factorisation, which no data exceed.

Overflow in a ring is silent. The samples are scaled to a norm of one at most and the
factors cut off between iterations, so that every number that comes up is bounded by
shapes alone. A truncated product needs twice the bits of the fraction behind the point.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .solver import CLIP, EXTRAPOLATION, LARGEST_PENALTY, MOMENTUM, RIDGE

FRACTION_BITS = 40
RING_BITS = 128
# In front of the point: of a product before it is truncated, whose sign takes one bit
# and SPU's truncation another, and of any other number.
PRODUCT_BITS = RING_BITS - 2 - 2 * FRACTION_BITS
NUMBER_BITS = RING_BITS - 2 - FRACTION_BITS
# By how much rounding may move what is bounded.
_SLACK = 2.0**-10


def factor_bound() -> float:
    """Return the largest entry of a factor after its steps.

    A step from Y >= 0 below b ends below b + c, where c = 1 / (2 sqrt(ridge)) bounds
    ``<x, h> / (<h, h> + ridge)`` for a row x of norm one at most. With momentum m the
    point it starts from lies between -m b and (1 + m) b, and as the rows of what it is
    multiplied by sum to one at most, it ends below (1 + 2 m) b + c.

    Returns
    -------
    float

    Examples
    --------
    >>> from skppdnmf._mpc.ranges import factor_bound
    >>> factor_bound() < 2**11
    True
    """
    reach = 0.5 / math.sqrt(RIDGE)
    bound = CLIP + reach
    for momentum in MOMENTUM:
        bound = (1.0 + 2.0 * momentum) * bound + reach
    return bound * (1.0 + _SLACK)


def bounds(n_samples: int, n_features: int, n_components: int) -> dict[str, float]:
    """Return bounds of products before truncation.

    Parameters
    ----------
    n_samples, n_features, n_components : int
        Sizes.

    Returns
    -------
    dict
        From what is bounded to the bound.

    Examples
    --------
    >>> from skppdnmf._mpc.ranges import PRODUCT_BITS, bounds
    >>> max(bounds(500, 64, 10).values()) < 2.0**PRODUCT_BITS
    True
    """
    rows = max(n_samples, n_features)
    factor = factor_bound()
    gram = rows * CLIP**2
    step = 1.0 / RIDGE
    point = factor * (1.0 + 2.0 * max(MOMENTUM))
    return {
        "scaled samples": 2.0**16,
        "Gram matrix": gram + LARGEST_PENALTY,
        "linear term": CLIP * math.sqrt(rows),
        # Each entry of the Gram matrix is below the row sum that it is divided by.
        "scaled linear term": LARGEST_PENALTY * step + 0.5 / math.sqrt(RIDGE),
        "step": 2.0 * point,
        "extrapolated factor": factor * (1.0 + 2.0 * EXTRAPOLATION) + CLIP,
        "objective": n_components * gram * CLIP**2,
        "penalty": LARGEST_PENALTY * rows * n_components * CLIP**2,
        # Its reciprocal is found from the place of the first bit.
        "row sum": n_components * gram + LARGEST_PENALTY,
    }


def check_ranges(n_samples: int, n_features: int, n_components: int) -> None:
    """Refuse sizes whose numbers the ring might not hold.

    Parameters
    ----------
    n_samples, n_features, n_components : int
        Sizes.

    Raises
    ------
    OverflowError
        If a bound exceeds what is in front of the point.
    """
    found = bounds(n_samples, n_features, n_components)
    limits = dict.fromkeys(found, 2.0**PRODUCT_BITS)
    limits["row sum"] = 2.0 ** (FRACTION_BITS - 1)
    for name, bound in found.items():
        if not bound < limits[name]:
            raise OverflowError(
                f"{name} of n_samples={n_samples}, n_features={n_features}, "
                f"n_components={n_components} may be up to {bound:.3g}; numbers of "
                f'protocol="mpc" hold {limits[name]:.3g} there'
            )


def check_result(left: Any) -> None:
    """Refuse what no factorisation can have ended with.

    Parameters
    ----------
    left : ndarray
        The left factor as it was opened.

    Raises
    ------
    OverflowError
        If an entry is outside of its bounds: a number did not fit the ring, or a party
        computed something else.
    """
    left = np.asarray(left, dtype=np.float64)
    least, most = float(left.min(initial=0.0)), float(left.max(initial=0.0))
    bound = factor_bound()
    if not (least >= -(2.0 ** -(FRACTION_BITS // 2)) and most <= bound):
        raise OverflowError(
            f"the opened left factor has entries from {least:.3g} to {most:.3g}, which "
            f"lie between 0 and {bound:.3g} in any factorisation: a number has "
            "overflowed, or a party has not computed what was agreed upon"
        )
