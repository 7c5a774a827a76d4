"""What the secure sum protects less than a user may believe."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtr

from .._data.partition import Partition
from .key_graph import key_degree
from .noisy_totals import RIGHT_BOUND, NoisyTotals

# Area under the ROC curve of the attack on a single candidate, by the number of
# samples in the pool, with one start and with eight: benchmarks/bench_membership.py.
MEMBERSHIP_AREAS = {20: (1.00, 0.99), 100: (0.88, 0.95), 500: (0.67, 0.73)}
# From so many on it is about 0.6 or less: 0.57 and 0.58 at 2,000.
MANY = 1000
# What two pools differ by that a fit with noise hides.
NEIGHBOURS = {
    "sample": "one sample more or less",
    "agent": "all samples of one agent more or less",
}


def privacy_messages(
    estimator: Any, partition: Partition, n_components: int
) -> list[str]:
    """Return a warning that lists what the totals tell too much of.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters.
    partition : Partition
        Who holds what, among two agents or more.
    n_components : int
        Number of components.

    Returns
    -------
    list of str
        One, or none.
    """
    points = [
        *_of_samples(estimator, partition, n_components),
        *_of_keys(estimator, partition),
    ]
    if estimator.on_dropout == "continue":
        points.append(
            'with on_dropout="continue" the totals before and after a dropout tell '
            "what the lost agent held, with its name"
        )
    return ["; ".join(points)] if points else []


def _of_samples(estimator: Any, partition: Partition, n_components: int) -> list[str]:
    """Say what the totals tell of the samples, the worst first."""
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
            "subtracts its own summand from the total and has the other's; let a third "
            "take part"
        ]
    if others <= n_components:
        return [
            f"all agents but {labels[largest]!r} have {others} samples in all, no "
            f"more than n_components={n_components}: it can find them from the "
            "totals, though not whose they are"
        ]
    if others >= MANY:
        return []
    # The nearest pool that was measured and is not smaller, or the largest.
    measured = [pool for pool in MEMBERSHIP_AREAS if others <= pool]
    pool = measured[0] if measured else max(MEMBERSHIP_AREAS)
    area, several = MEMBERSHIP_AREAS[pool]
    one_start = not isinstance(estimator.init, str) or estimator.init != "random"
    n_init = 1 if one_start else estimator.n_init
    point = (
        f"membership: all agents but {labels[largest]!r} have {others} samples in all, "
        "and the totals tell who has a list of candidates which of them are among "
        f"these; a single candidate is told with an AUC of {area:.2f} in a pool of "
        f"{pool} (measured on digits)"
    )
    if n_init != 1:
        point += (
            f", {several:.2f} with eight starts, and n_init={n_init!r} may follow "
            "several"
        )
    return [point]


def _of_keys(estimator: Any, partition: Partition) -> list[str]:
    """Say where few agents that collude would cut honest ones off."""
    n_agents = len(partition.labels)
    degree, usual = estimator.key_degree, key_degree(n_agents)
    if degree is None or degree >= usual:
        return []
    return [
        f"with key_degree={degree}, below the default of {usual}, "
        f"{-(-degree // 2) * 2} agents that collude can separate others and read a "
        "sum of few"
    ]


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
    numbers: NoisyTotals, n_units: float, n_totals: int
) -> dict[str, Any]:
    """Return what an agent knows of the noise of a fit.

    Parameters
    ----------
    numbers : NoisyTotals
        Of the fit.
    n_units : float
        Samples of all agents, or agents that have some, under noise.
    n_totals : int
        Totals that have been taken.

    Returns
    -------
    dict
        As `privacy_` of the estimator.
    """
    settings, guarantee = numbers.settings, numbers.guarantee
    right = RIGHT_BOUND * settings.clip
    count = f"n_{numbers.units}"
    return {
        "epsilon": settings.epsilon,
        "delta": settings.delta,
        "mu": guarantee.mu,
        "unit": settings.unit,
        "neighbours": NEIGHBOURS[settings.unit],
        "clip": settings.clip,
        "sensitivity": {
            "gram": numbers.bound * right**2,
            "products": numbers.bound * right * settings.clip,
            count: 1.0,
        },
        "noise": {
            "gram": numbers.gram_noise,
            "products": numbers.product_noise,
            count: numbers.count_noise,
        },
        "share": {
            "gram": guarantee.gram_share,
            "products": 1.0 - guarantee.gram_share,
        },
        "n_totals": n_totals,
        count: n_units,
        "n_honest": settings.n_honest,
        "max_colluding": settings.max_colluding,
        "membership_auc": membership_auc(guarantee.mu),
    }
