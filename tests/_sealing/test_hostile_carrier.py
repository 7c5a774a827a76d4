"""A site tells another a total of its own: what stops it, and what each measure is for.

The liar alters what it passes down the spanning tree, under its own seal: nobody but
the receiver's other neighbours can tell.
"""

import numpy as np
import pytest
from _helpers import RUN, random_start, split_parts
from _hostile import carry, switch_off
from _sealed import SIZES, credentials_of, plain_agents, sealed_agents
from _sums import RARE, p_uniform, path_settings

from skppdnmf._data.graph import make_network
from skppdnmf._federation.local import run_local
from skppdnmf._sealing.transcript import Transcript
from skppdnmf._secure_sum.build import make_sum_agents as build_agents
from skppdnmf._secure_sum.totals import FixedPoint
from skppdnmf.exceptions import CorruptedTotalError, TranscriptMismatchError
from skppdnmf.exchange import SUM_DOWN, SealedAgent, SumMessage

# In the tree of a star agent 0 tells all others the totals.
GRAPH, LIAR, VICTIM, ROUND = "star", 0, 2, 2
NAMES = [f"site-{i}" for i in range(len(SIZES))]


class Liar:
    """An agent that changes one word of one total, for one receiver, by little."""

    def __init__(self, agent):
        self.agent = agent

    def __getattr__(self, name):
        return getattr(self.agent, name)

    def start(self):
        return self.agent.start()

    def advance(self, envelopes):
        step = self.agent.advance(envelopes)
        return step._replace(envelopes=[self.changed(one) for one in step.envelopes])

    def changed(self, envelope):
        mark = envelope.kind, envelope.round, envelope.receiver
        if mark != (SUM_DOWN, ROUND, VICTIM):
            return envelope
        message = SumMessage.from_bytes(envelope.to_bytes()[40:], SUM_DOWN, ROUND)
        message.words[-1] ^= np.uint64(1 << 10)  # so it changes under the stream, too
        return envelope._replace(body=message)


def agents_of(lies, sealed):
    agents = plain_agents("secure-sum", graph=GRAPH)
    if lies:
        agents[LIAR] = Liar(agents[LIAR])
    if not sealed:
        return agents
    neighbours = make_network(GRAPH, len(SIZES), 0).neighbours
    return [
        SealedAgent(agent, credentials_of(i, len(SIZES)), neighbours[i].tolist(), 2)
        for i, agent in enumerate(agents)
    ]


def run(agents):
    """The left factors of all agents, by iteration."""
    history = []
    run_local(
        agents,
        NAMES,
        observer=lambda reports, n_bytes: history.append([one.H for one in reports]),
        serialise=True,
    )
    return history


def last_total(agent):
    return agent._sum._last


@pytest.fixture
def nothing_is_noted(monkeypatch):
    """Masks and seals that do not depend on the totals."""
    monkeypatch.setattr(Transcript, "tell", lambda self, data: None)


def test_another_total_for_one_site_ends_the_run_by_name():
    with pytest.raises(TranscriptMismatchError, match="not been told") as caught:
        run(agents_of(lies=True, sealed=True))
    told = str(caught.value)
    assert "site-0" in told
    assert "site-2" in told


def test_another_total_for_one_site_makes_the_next_sum_noise():
    """Where no seal tells before: masks are bound to what was said."""
    agents = agents_of(lies=True, sealed=False)
    with pytest.raises(CorruptedTotalError, match="masks do not cancel"):
        run(agents)
    assert p_uniform([last_total(agents[LIAR])]) > RARE
    honest = agents_of(lies=False, sealed=False)
    run(honest)
    assert p_uniform([last_total(honest[LIAR])]) < RARE


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.usefixtures("nothing_is_noted")
def test_it_goes_unnoticed_without_the_transcript(sealed):
    """The positive control: all sums come out, of summands at two left factors."""
    history = run(agents_of(lies=True, sealed=sealed))
    assert len(history) == 4
    *_, last = history
    np.testing.assert_array_equal(last[LIAR], last[1])
    assert (last[VICTIM] != last[LIAR]).any()


def test_noise_goes_on_without_the_check_of_totals(monkeypatch):
    """The positive control: it becomes a left factor like any other."""
    monkeypatch.setattr(FixedPoint, "check_totals", lambda *_: None)
    assert len(run(agents_of(lies=True, sealed=False))) == 4


def told_another_scale(agents):
    """An agent of the consensus whose private average has come to another scale."""
    transcript = agents[VICTIM].agent.transcript
    genuine = transcript.tell
    transcript.tell = lambda data: genuine(data[::-1])
    return carry(agents)


def test_another_scale_for_one_agent_ends_the_consensus_by_name():
    """It is what all agents are told alike, under that protocol."""
    run = told_another_scale(sealed_agents("consensus"))
    assert VICTIM in {*run.refused, *(one.sender for one in run.errors.values())}
    assert set(run.refused.values()) == {TranscriptMismatchError}
    assert run.finished == []


def test_without_the_comparison_another_scale_goes_unnoticed(monkeypatch):
    """The positive control."""
    switch_off(monkeypatch, "comparison")
    run = told_another_scale(sealed_agents("consensus"))
    assert run.refused == {}
    assert run.finished == [0, 1, 2, 3]


@pytest.mark.parametrize("beta", [2.0, 1.0, 0.5])
def test_it_ends_by_name_under_every_loss(beta):
    """All agents of the sum tell their seals what they have been told."""
    network = make_network(GRAPH, len(SIZES), 0)
    starts = np.stack([random_start(3, 5, seed) for seed in range(2)])
    agents = build_agents(
        split_parts(SIZES, 5),
        NAMES,
        network,
        starts,
        path_settings(len(SIZES), n_features=5, beta=beta, max_iter=4),
        degree=3,
        seed=0,
        run=RUN,
    )
    agents[LIAR] = Liar(agents[LIAR])
    sealed = [
        SealedAgent(one, credentials_of(i, 4), network.neighbours[i].tolist(), 2)
        for i, one in enumerate(agents)
    ]
    refused = carry(sealed).refused
    assert set(refused.values()) == {TranscriptMismatchError}
