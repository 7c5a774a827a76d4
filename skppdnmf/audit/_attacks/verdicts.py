"""How well scores tell members from others: areas, intervals, rates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

FALSE_POSITIVES = 0.01
_CONFIDENCE = 0.95


def area(
    scores: NDArray[np.float64], member: NDArray[np.bool_]
) -> tuple[float, float, float]:
    """Return the area under the ROC curve and its interval of 95 %.

    The interval is that of DeLong, DeLong and Clarke-Pearson (Biometrics 44, 1988). At
    an area of 0 or 1 their variance vanishes; there it is by the rule of three.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        The larger, the likelier a member.
    member : ndarray of bool, shape (n,)
        The truth, with both values.

    Returns
    -------
    area, low, high : float

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.audit._attacks.verdicts import area
    >>> area(np.array([3.0, 2.0, 1.0, 2.0]), np.array([True, True, False, False]))[0]
    0.875
    """
    inside, outside = scores[member], scores[~member]
    n, m = len(inside), len(outside)
    ranks = rankdata(np.concatenate([inside, outside]))
    # How many of the other kind each is ranked above, as a share.
    above = (ranks[:n] - rankdata(inside)) / m
    below = 1.0 - (ranks[n:] - rankdata(outside)) / n
    value = float(above.mean())
    variance = sum(
        float(np.var(part, ddof=1)) / len(part)
        for part in (above, below)
        if len(part) > 1
    )
    half = float(norm.ppf(0.5 + _CONFIDENCE / 2)) * variance**0.5
    if not variance > 0:
        half = 3.0 / min(n, m)
    return value, max(0.0, value - half), min(1.0, value + half)


def true_positives(scores: NDArray[np.float64], member: NDArray[np.bool_]) -> float:
    """Return the share of members above all but 1 % of the others.

    Parameters
    ----------
    scores, member
        As for `area`.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.audit._attacks.verdicts import true_positives
    >>> true_positives(np.array([3.0, 0.0, 1.0]), np.array([True, True, False]))
    0.5
    """
    outside = np.sort(scores[~member])[::-1]
    allowed = int(FALSE_POSITIVES * len(outside))
    return float(np.mean(scores[member] > outside[allowed]))


def describe(
    scores: NDArray[np.float64], member: NDArray[np.bool_], prefix: str = ""
) -> dict[str, Any]:
    """Return all figures by name, with a prefix.

    Parameters
    ----------
    scores, member
        As for `area`.
    prefix : str, default=""
        Of the names.

    Returns
    -------
    dict
    """
    value, low, high = area(scores, member)
    return {
        f"{prefix}auc": value,
        f"{prefix}auc_interval": (low, high),
        f"{prefix}true_positives": true_positives(scores, member),
    }
