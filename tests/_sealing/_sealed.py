"""Sealed agents of both protocols on small data, and their identities."""

import numpy as np
from _helpers import RUN, make_agents, random_start, split_parts
from _sums import make_sum_agents

from skppdnmf._data.graph import make_network
from skppdnmf.exchange import Credentials, Identity, Roster, SealedAgent

K, F = 3, 5
SIZES = (4, 3, 5, 2)
FACTS = {
    "n_components": K,
    "n_features": F,
    "dtype": "float64",
    "graph": "ring",
    "n_init": 1,
    "feature digest": "ab" * 32,
}
_OPTIONS = "min_sites", "holders", "on_dropout"
CODES = {"consensus": 1, "secure-sum": 2}
IDENTITIES = [Identity(bytes([1 + i]) * 32) for i in range(8)]


def roster_of(n_agents, **changed):
    keys = {f"site-{i}": IDENTITIES[i].public for i in range(n_agents)}
    return Roster({**keys, **changed})


def plain_agents(protocol, sizes=SIZES, graph="ring", **given):
    """The agents without seals."""
    parts = split_parts(sizes, F)
    if protocol == "secure-sum":
        starts = np.stack([random_start(K, F, seed) for seed in range(2)])
        return make_sum_agents(parts, starts, graph, **{"max_iter": 4, **given})
    start = random_start(K, F)
    return make_agents(graph, parts, start, "simulated", **{"max_iter": 2, **given})


def credentials_of(i, n_agents, facts=FACTS, run=RUN, roster=None):
    roster = roster_of(n_agents) if roster is None else roster
    return Credentials(IDENTITIES[i], roster, run, facts)


def sealed_agents(
    protocol, sizes=SIZES, graph="ring", facts=None, credentials=None, **given
):
    """Agents behind seals; `facts` gives those of some agents by number.

    With `signed` those of the secure sum sign the keys of their masks, too.
    """
    n_agents = len(sizes)
    options = {key: given.pop(key) for key in _OPTIONS if key in given}
    facts, credentials = facts or {}, credentials or {}
    own = [
        credentials.get(i) or credentials_of(i, n_agents, facts.get(i, FACTS))
        for i in range(n_agents)
    ]
    if given.pop("signed", False) and protocol == "secure-sum":
        given["credentials"] = own.__getitem__
    inner = plain_agents(protocol, sizes, graph, **given)
    network = make_network(graph, n_agents, 0)
    return [
        SealedAgent(
            agent, own[i], network.neighbours[i].tolist(), CODES[protocol], **options
        )
        for i, agent in enumerate(inner)
    ]
