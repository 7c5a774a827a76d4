"""Penalties on the factors, with the definition and scaling of scikit-learn's NMF."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_BISECTIONS = 60


class Penalty(NamedTuple):
    """``l1 sum(F) + l2 ||F||^2 / 2`` of a nonnegative factor F.

    Parameters
    ----------
    l1, l2 : float
        Weights, not negative.
    """

    l1: float = 0.0
    l2: float = 0.0

    def rescaled(self, scale: float) -> Penalty:
        """Return the penalty on F / scale that equals this one on F."""
        return Penalty(self.l1 * scale, self.l2 * scale * scale)

    def terms(self, factor: NDArray[np.floating]) -> tuple[float, float]:
        """Return ``l1 sum(F)`` and ``l2 ||F||^2``."""
        flat = factor.ravel().astype(np.float64, copy=False)
        return self.l1 * float(flat.sum()), self.l2 * float(flat @ flat)


def left_weight(alpha_W: float, alpha_H: float | str) -> float:
    """Return the weight of the penalty on the left factor; "same" takes `alpha_W`.

    Parameters
    ----------
    alpha_W, alpha_H
        The estimator's.

    Returns
    -------
    float

    Examples
    --------
    >>> from skppdnmf._nmf.penalties import left_weight
    >>> left_weight(0.5, "same"), left_weight(0.5, 0.0)
    (0.5, 0.0)
    """
    return float(alpha_W if isinstance(alpha_H, str) else alpha_H)


def right_penalty(alpha: float, l1_ratio: float, n_features: int) -> Penalty:
    """Return the penalty on the right factor, which every sample bears alike.

    Parameters
    ----------
    alpha, l1_ratio : float
        ``alpha_W`` and ``l1_ratio`` of the estimator.
    n_features : int
        Number of features.

    Returns
    -------
    Penalty

    Examples
    --------
    >>> from skppdnmf._nmf.penalties import right_penalty
    >>> right_penalty(0.25, 0.5, 4)
    Penalty(l1=0.5, l2=0.5)
    """
    weight = alpha * n_features
    return Penalty(weight * l1_ratio, weight * (1.0 - l1_ratio))


def left_penalty(alpha: float, l1_ratio: float, n_samples: float) -> Penalty:
    """Return one agent's share of the penalty on the left factor.

    NMF weighs it by the number of all samples, so that each agent can bear the
    part of its own samples without knowing anybody else's number.

    Parameters
    ----------
    alpha, l1_ratio : float
        ``alpha_H`` and ``l1_ratio`` of the estimator.
    n_samples : float
        Number of the agent's samples, or the sum of their weights.

    Returns
    -------
    Penalty
    """
    weight = alpha * n_samples
    return Penalty(weight * l1_ratio, weight * (1.0 - l1_ratio))


def balancing_scale(
    left: Penalty,
    H: NDArray[np.floating],
    right: Penalty,
    W: NDArray[np.floating],
) -> float:
    """Return the c for which ``c H`` and ``W / c`` bear the least penalty.

    Parameters
    ----------
    left, right : Penalty
        On the left and on the right factor.
    H, W : ndarray
        The factors.

    Returns
    -------
    float
        0 if a factor bears no penalty, so that there is no such c.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._nmf.penalties import Penalty, balancing_scale
    >>> c = balancing_scale(Penalty(l2=1), np.ones((1, 1)), Penalty(l2=16), np.eye(1))
    >>> round(c, 9)
    2.0
    """
    return balance(*left.terms(H), *right.terms(W))


def balance(
    linear_left: float, square_left: float, linear_right: float, square_right: float
) -> float:
    """Return the c that minimises ``c a + c^2 b / 2 + d / c + e / c^2 / 2``.

    Parameters
    ----------
    linear_left, square_left : float
        The left factor's terms a and b, not negative.
    linear_right, square_right : float
        The right factor's terms d and e, not negative.

    Returns
    -------
    float
        0 if the terms of a factor are zero, so that there is no such c.
    """
    if not linear_left + square_left or not linear_right + square_right:
        return 0.0
    low, high = -512.0, 512.0  # the derivative by log c grows
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        c = 2.0**middle
        rising = math.fsum(
            (c * linear_left, c * c * square_left, -linear_right / c,
             -square_right / c / c)
        )  # fmt: skip
        low, high = (low, middle) if rising > 0 else (middle, high)
    return 2.0**low
