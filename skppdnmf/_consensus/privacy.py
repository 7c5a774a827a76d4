"""What the consensus protects less than a user may believe."""

from __future__ import annotations

import numpy as np

from .._data.graph import Network, name_some
from .._data.partition import LEAST_HOLDERS, Partition

# Area under the ROC curve of a neighbour's attack on a single candidate, by the number
# of samples in the pool: benchmarks/bench_membership.py. At 2,000 it is 0.54.
MEMBERSHIP_AREAS = {20: 0.97, 100: 0.78, 500: 0.64}
MANY = 1000


def privacy_messages(
    network: Network,
    partition: Partition,
    masking: str,
    seeded: bool = False,
    encrypted: bool = False,
) -> list[str]:
    """Return warnings for settings that protect little.

    Parameters
    ----------
    network : Network
        The graph, of two agents or more.
    partition : Partition
        Who holds what.
    masking : {"entrywise", "scalar"}
        The estimator's.
    seeded : bool, default=False
        Whether secrets of encrypted agents follow from an integer.
    encrypted : bool, default=False
        Whether what is sent is encrypted in fact.

    Returns
    -------
    list of str
    """
    messages = []
    labels = partition.labels
    n_holders = partition.n_holders
    sums_protect = n_holders >= LEAST_HOLDERS
    holders = "one agent" if n_holders == 1 else "two agents"
    more_holders = (
        "more agents with samples would help: the secure sum, too, hides nothing "
        f"with {holders} that hold any"
    )
    if masking == "scalar":
        way_out = 'protocol="secure-sum" protects' if sums_protect else more_holders
        messages.append(
            'masking="scalar" lets a neighbour solve for the samples of an agent '
            "that holds few, with the one unknown factor of each round; "
            f'masking="entrywise" makes that harder, {way_out}'
        )
    single = [repr(labels[k]) for k in np.flatnonzero(network.degrees == 1)]
    if single:
        way_out = 'give them more, or use protocol="secure-sum"'
        if not sums_protect:
            # Of two agents neither can be given another neighbour.
            few = network.n_agents == 2
            way_out = more_holders if few else f"give them more; {more_holders}"
        messages.append(
            f"agents with one neighbour: {name_some(single[:5], len(single))}; "
            "that neighbour knows all they receive and can reconstruct their "
            f"data from their answers; {way_out}"
        )
    if seeded:
        messages.append(
            "random_state is an integer, from which all masks follow: who tries seeds "
            "against the public start finds one of 32 bits in 236 core-hours at worst, "
            "a small one in seconds; use random_state=None where data matter"
        )
    largest = int(np.argmax(partition.sizes))
    others = int(partition.sizes.sum() - partition.sizes[largest])
    if encrypted and 0 < others < MANY:
        # The nearest pool that was measured and is not smaller, or the largest.
        measured = [pool for pool in MEMBERSHIP_AREAS if others <= pool]
        pool = measured[0] if measured else max(MEMBERSHIP_AREAS)
        messages.append(
            f"membership: all agents but {labels[largest]!r} have {others} samples in "
            "all, and from its neighbours' answers and the components it can tell who "
            "is among them, a single candidate with an AUC of "
            f"{MEMBERSHIP_AREAS[pool]:.2f} in a pool of {pool} (measured on digits); "
            'protocol="secure-sum" with epsilon bounds that, for some thousand samples'
        )
    return messages
