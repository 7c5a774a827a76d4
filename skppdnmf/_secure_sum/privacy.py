"""What the secure sum protects less than a user may believe."""

from __future__ import annotations

import numpy as np

from .._data.partition import Partition


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
