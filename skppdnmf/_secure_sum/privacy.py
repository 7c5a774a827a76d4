"""What the secure sum protects less than a user may believe."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtr

from .._data.partition import Partition
from .noisy_totals import RIGHT_BOUND, NoisyTotals


def privacy_messages(partition: Partition, n_components: int) -> list[str]:
    """Return warnings for pools that the totals tell too much of.

    Parameters
    ----------
    partition : Partition
        Who holds what, among two agents or more.
    n_components : int
        Number of components.

    Returns
    -------
    list of str
    """
    labels, sizes = partition.labels, partition.sizes
    largest = int(np.argmax(sizes))
    others = int(sizes.sum() - sizes[largest])
    if partition.n_holders == 1:
        return [
            "with one agent that has samples the secure sum hides nothing: the "
            "total is its summand"
        ]
    if partition.n_holders == 2:
        return [
            "with two agents that have samples the secure sum hides nothing: each "
            "subtracts its own summand from the total and has the other's"
        ]
    if others <= n_components:
        return [
            f"all agents but {labels[largest]!r} have {others} samples in all, no "
            f"more than n_components={n_components}: it can find them from the "
            "totals, though not whose they are"
        ]
    return []


def membership_auc(mu: float) -> float:
    """Return the largest area under the curve of a test of membership.

    Parameters
    ----------
    mu : float
        Of a Gaussian mechanism.

    Returns
    -------
    float

    Examples
    --------
    >>> from skppdnmf._secure_sum.privacy import membership_auc
    >>> membership_auc(0.0), round(membership_auc(1.0), 3)
    (0.5, 0.76)
    """
    return float(ndtr(mu / math.sqrt(2.0)))


def privacy_account(
    numbers: NoisyTotals, n_samples: float, n_totals: int
) -> dict[str, Any]:
    """Return what an agent knows of the noise of a fit.

    Parameters
    ----------
    numbers : NoisyTotals
        Of the fit.
    n_samples : float
        Of all agents, under noise.
    n_totals : int
        Totals that have been taken.

    Returns
    -------
    dict
        As `privacy_` of the estimator.
    """
    settings, guarantee = numbers.settings, numbers.guarantee
    bound = RIGHT_BOUND * settings.clip
    return {
        "epsilon": settings.epsilon,
        "delta": settings.delta,
        "mu": guarantee.mu,
        "neighbours": "one sample more or less",
        "clip": settings.clip,
        "sensitivity": {
            "gram": bound**2,
            "products": bound * settings.clip,
            "n_samples": 1.0,
        },
        "noise": {
            "gram": numbers.gram_noise,
            "products": numbers.product_noise,
            "n_samples": numbers.count_noise,
        },
        "share": {
            "gram": guarantee.gram_share,
            "products": 1.0 - guarantee.gram_share,
        },
        "n_totals": n_totals,
        "n_samples": n_samples,
        "n_honest": settings.n_honest,
        "max_colluding": settings.max_colluding,
        "membership_auc": membership_auc(guarantee.mu),
    }
