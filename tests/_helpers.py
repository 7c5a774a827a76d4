"""Helpers shared by several test files."""

from functools import partial

import numpy as np
from _paillier_keys import cipher

from skppdnmf._agent import Envelope
from skppdnmf._consensus.agent import ConsensusAgent
from skppdnmf._consensus.settings import AgentSettings, graph_facts
from skppdnmf._data.graph import make_network
from skppdnmf.exchange import MaskStream, PlainCipher, SimulatedCipher

GRAPHS = ("random", "path", "star", "ring", "complete")
KEY_SIZE = 256
RUN = bytes(range(16))


def split_parts(sizes, n_features=6, seed=0):
    """Exponential samples for each agent."""
    rng = np.random.default_rng(seed)
    return [rng.exponential(size=(size, n_features)) for size in sizes]


def random_start(n_components, n_features, seed=0):
    return np.random.default_rng([seed, 1]).exponential(size=(n_components, n_features))


def make_settings(network, **parameters):
    """Settings of the consensus; the parameters of an estimator, few iterations."""
    parameters = {
        "mu": 1.0,
        "eta": 1.0,
        "g_max": 1.0,
        "penalty_scaling": "data",
        "update": "proximal",
        "masking": "entrywise",
        "n_max": 1e6,
        "key_size": KEY_SIZE,
        "max_iter": 4,
        "max_admm_iter": 5,
        "tol": 0.0,
        **parameters,
    }
    return AgentSettings(**graph_facts(network), **parameters)


def _plain(number):
    return PlainCipher()


def _simulated(number):
    return SimulatedCipher(KEY_SIZE)


def _paillier(number):
    return cipher(KEY_SIZE, number=number)


def make_agents(
    graph, parts, start, encryption=None, seed=0, observed=True, **parameters
):
    """Agents on a named or given graph, with small keys; as an estimator has them."""
    network = make_network(graph, len(parts), seed) if isinstance(graph, str) else graph
    settings = make_settings(network, **parameters)
    ciphers = {
        None: _plain,
        "simulated": _simulated,
        "paillier": _paillier,
    }
    return [
        ConsensusAgent(
            i,
            [f"agent {k}" for k in range(len(parts))],
            part,
            start,
            network.neighbours[i],
            network.degrees[network.neighbours[i]],
            settings,
            partial(ciphers[encryption], i),
            MaskStream.from_seed(np.random.SeedSequence([seed, i])),
            RUN,
            observed,
        )
        for i, part in enumerate(parts)
    ]


def drive(agents, rng=None, serialise=False, meanwhile=None):
    """Carry the agents' envelopes until all have finished.

    Every turn all envelopes arrive in the order in which they were sent. With `rng`
    one agent a turn goes on, with a random part of its envelopes in random order, so
    that messages overtake each other and wait for many turns. With `serialise` they
    travel as bytes. `meanwhile` is called with all reports before each turn.

    Returns
    -------
    reports : list of lists
        Each agent's reports.
    sent : list of Envelope
        As they were sent.
    """
    reports = [[] for _ in agents]
    boxes = [[] for _ in agents]
    finished = [False] * len(agents)
    sent = []

    def post(i, step):
        for envelope in step.envelopes:
            assert envelope.sender == i
            sent.append(envelope)
            if serialise:
                data = envelope.to_bytes()
                assert len(data) == envelope.n_bytes
                envelope = Envelope.from_bytes(data, i)
            boxes[envelope.receiver].append(envelope)
        reports[i] += [] if step.report is None else [step.report]
        finished[i] = step.finished

    for i, agent in enumerate(agents):
        post(i, agent.start())
    idle = 0
    while not all(finished):
        if meanwhile is not None:
            meanwhile(reports)
        if rng is None:
            batch = list(enumerate(boxes))
            boxes[:] = [[] for _ in agents]
        else:
            i = int(rng.integers(len(agents)))
            order = rng.permutation(len(boxes[i]))
            # At times all of them, lest the last messages take for ever.
            some = (
                len(order) if rng.random() < 0.3 else int(rng.integers(len(order) + 1))
            )
            batch = [(i, [boxes[i][k] for k in order[:some]])]
            boxes[i] = [boxes[i][k] for k in sorted(order[some:])]
        before = len(sent), sum(map(len, reports))
        for i, arrived in batch:
            post(i, agents[i].advance(arrived))
        moved = before != (len(sent), sum(map(len, reports))) or any(
            a for _, a in batch
        )
        idle = 0 if moved else idle + 1
        assert idle < 100 * len(agents), "no agent can go on"
    assert not any(boxes)
    return reports, sent


def assert_same_reports(one, other):
    """All agents' reports, to the last bit."""
    assert [len(reports) for reports in one] == [len(reports) for reports in other]
    for mine, theirs in zip(one, other, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert (a.witness is None) == (b.witness is None)
            for name in sorted(set(a._fields) - {"witness"}):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name), name)
            for x, y in zip(a.witness or (), b.witness or (), strict=True):
                np.testing.assert_array_equal(x, y)
