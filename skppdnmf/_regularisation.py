"""Penalties on the factors, with the definition and scaling of scikit-learn's NMF."""

from __future__ import annotations

from typing import NamedTuple


class Penalty(NamedTuple):
    """``l1 sum(F) + l2 ||F||^2 / 2`` of a nonnegative factor F.

    Parameters
    ----------
    l1, l2 : float
        Weights, not negative.
    """

    l1: float = 0.0
    l2: float = 0.0


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
    >>> from skppdnmf._regularisation import right_penalty
    >>> right_penalty(0.25, 0.5, 4)
    Penalty(l1=0.5, l2=0.5)
    """
    weight = alpha * n_features
    return Penalty(weight * l1_ratio, weight * (1.0 - l1_ratio))


def left_penalty(alpha: float, l1_ratio: float, n_samples: int) -> Penalty:
    """Return one agent's share of the penalty on the left factor.

    NMF weighs it by the number of all samples, so that each agent can bear the
    part of its own samples without knowing anybody else's number.

    Parameters
    ----------
    alpha, l1_ratio : float
        ``alpha_H`` and ``l1_ratio`` of the estimator.
    n_samples : int
        Number of the agent's samples.

    Returns
    -------
    Penalty
    """
    weight = alpha * n_samples
    return Penalty(weight * l1_ratio, weight * (1.0 - l1_ratio))
