"""What the components alone tell, and who has to be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._data.partition import Partition

# Area under the ROC curve of the attack on a single candidate from the components
# alone, by the number of samples in the pool: benchmarks/bench_membership.py.
COMPONENTS_AREAS = {20: 0.99, 100: 0.77, 500: 0.58}


def privacy_messages(
    estimator: Any, partition: Partition, n_components: int
) -> list[str]:
    """Return a warning of what the components tell too much of.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters.
    partition : Partition
        Who holds what.
    n_components : int
        Number of components.

    Returns
    -------
    list of str
        One, or none.
    """
    labels, sizes = partition.labels, partition.sizes
    largest = int(np.argmax(sizes))
    others = int(sizes.sum() - sizes[largest])
    who = f"all agents but {labels[largest]!r} have {others} samples in all"
    if others <= n_components:
        return [
            f"{who}, no more than n_components={n_components}: the components can be "
            "these samples, though not whose they are"
        ]
    measured = [pool for pool in COMPONENTS_AREAS if others <= pool]
    if not measured:
        return []
    return [
        f"membership: {who}, and the components alone tell a single candidate with an "
        f"AUC of {COMPONENTS_AREAS[measured[0]]:.2f} in a pool of {measured[0]} "
        "(measured on digits)"
    ]
