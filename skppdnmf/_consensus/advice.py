"""What a fit of the consensus has not reached, and what to change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._agent import Report
from .masks import MEAN_SQUARED_MASK

# Sums of dithers above this fraction of the data's part are worth a warning.
_MOST_DITHER = 0.05
# The agents' disagreement that is blamed on the links if it stands still.
_LARGE_ERROR = 0.01
_STANDING_STILL = 0.5
_LEAST_ITERATIONS = 20  # before that nothing is said of the links


def dither_share(reports: Sequence[Report | None], n_max: float | None) -> float:
    """Return what dithers have added to the normal equations, beside the data's part.

    Both ends of a link add dithers of their own, of up to half a step of the
    fixed-point numbers, to what should cancel in the sum of all Q.

    Parameters
    ----------
    reports : sequence of Report or None
        The agents' last reports.
    n_max : float or None
        Fixed-point scale.

    Returns
    -------
    float
        Expected norm of the sum of Q, over the norm of the sum of ``W^T X``.
    """
    total: Any = 0.0
    weight = 0.0
    for one in reports:
        if one is not None and one.witness is not None:
            total = total + one.witness.products
            weight += one.witness.dither
    norm = float(np.linalg.norm(total))
    if n_max is None or not norm:
        return 0.0
    # A dither is uniform on half a step either way, times the product of two masks.
    variance = weight * MEAN_SQUARED_MASK**2 / 12.0
    return math.sqrt(total.size * variance) / n_max / norm


def dither_message(share: float, n_max: float, n_exchanges: int) -> str:
    """Return the warning of dithers that add up to so much, empty if it is little."""
    if share <= _MOST_DITHER:
        return ""
    enough = 10.0 ** math.ceil(math.log10(n_max * share / _MOST_DITHER))
    return (
        f"n_max={n_max:g} is small for {n_exchanges} exchanges: the dithers add up to "
        f"{share:.2g} times the data's part of the normal equations, and the "
        f"components follow them; use n_max={enough:g} or more, or fewer iterations"
    )


def parted_message(reports: Sequence[Report | None]) -> list[str]:
    """Return the warning of copies that parted, empty if they did not.

    Parameters
    ----------
    reports : sequence of Report or None
        The agents' last reports.

    Returns
    -------
    list of str
        One message or none.
    """
    returned = max((one.returned for one in reports if one is not None), default=0)
    if not returned:
        return []
    return [
        "The agents' copies of the left factor parted, and stronger links did not "
        f"bring them together again: the components are those after {returned} "
        "iterations, when the copies agreed best. Raise g_max, or try another start."
    ]


def advice(estimator: Any) -> str:
    """Return what to change where the agents do not agree, or cannot so finely.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        Fitted.

    Returns
    -------
    str
        Some sentences, each behind a space; may be empty.
    """
    H, tol, n_max = estimator.components_, estimator.tol, estimator.n_max
    said = ""
    errors = estimator.history_["consensus_error"]
    last, before = errors[-1], errors[2 * len(errors) // 3 - 1]
    still = len(errors) >= _LEAST_ITERATIONS and last > _STANDING_STILL * before
    if still and last > _LARGE_ERROR:
        said += " The agents do not come to agree: raise g_max, three to ten times."
    rounding = 1.0 / (n_max * float(np.sqrt(np.mean(H**2)))) if n_max else 0.0
    if tol < rounding:
        said += (
            f" n_max={n_max:g} rounds the left factor to {rounding:.1g} of its "
            "entries, which is more than tol: raise n_max."
        )
    return said
