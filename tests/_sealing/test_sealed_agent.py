"""Sealed agents: the same results, and what is refused by which name."""

import pickle

import numpy as np
import pytest
from _helpers import RUN, assert_same_reports
from _hostile import carry, switch_off
from _sealed import (
    CODES,
    FACTS,
    IDENTITIES,
    SIZES,
    credentials_of,
    plain_agents,
    roster_of,
    sealed_agents,
)

from skppdnmf._agent import Departure, Envelope
from skppdnmf._federation.local import run_local
from skppdnmf._sealing.agent import FINAL, HELLO
from skppdnmf.exceptions import (
    AgentLost,
    CorruptedMessageError,
    DropoutError,
    DropoutWarning,
    FactsMismatchError,
    ForgedMessageError,
    ReplayedMessageError,
)
from skppdnmf.exchange import (
    SEALED_BYTES,
    Agreement,
    Credentials,
    Facts,
    SealedAgent,
)

both = pytest.mark.parametrize("protocol", CODES)


def run(agents, **given):
    """The last reports, and all envelopes."""
    sent, history = [], []
    names = [f"agent {i}" for i in range(len(agents))]
    outcome = run_local(
        agents,
        names,
        tap=lambda turn, envelope: sent.append(envelope),
        observer=lambda reports, n_bytes: history.append(reports),
        serialise=True,
        **given,
    )
    return outcome, sent, [list(column) for column in zip(*history, strict=True)]


@both
@pytest.mark.parametrize("graph", ["ring", "path", "star", "complete"])
def test_seals_change_no_bit_of_the_result(protocol, graph):
    _, bare, expected = run(plain_agents(protocol, graph=graph))
    outcome, sealed, found = run(sealed_agents(protocol, graph=graph))
    assert_same_reports(expected, found)
    greetings = [one for one in sealed if one.kind in (HELLO, FINAL)]
    inner = [one for one in sealed if one.kind not in (HELLO, FINAL)]
    assert len(inner) == len(bare)
    clear, longer = (
        sorted((*one[2:6], one.n_bytes) for one in sent) for sent in (bare, inner)
    )
    assert longer == [(*one, size + SEALED_BYTES) for *one, size in clear]
    assert SEALED_BYTES <= 100
    assert len(greetings) >= 2 * len(outcome.traffic.summary(range(4))["edges"])


@both
def test_nothing_of_what_is_said_can_be_read(protocol):
    """Not the payloads, nor equal ones as equal."""
    _, bare, _ = run(plain_agents(protocol))
    _, sealed, _ = run(sealed_agents(protocol))
    bodies = [one.body for one in sealed if one.kind != HELLO]
    assert len(set(bodies)) == len(bodies)
    everything = b"".join(bodies)
    for envelope in bare:
        data = envelope.to_bytes()[40:]
        for start in range(0, len(data) - 16, 16):
            part = data[start : start + 16]
            assert len(set(part)) < 4 or part not in everything


@both
def test_all_sign_what_they_have_been_told(protocol):
    agents = sealed_agents(protocol, graph="path")
    run(agents)
    agreement = agents[0].agreement
    everybody = credentials_of(3, len(SIZES))
    names = [f"site-{i}" for i in range(len(SIZES))]
    for agent in agents:
        assert agent.agreement == agreement
        assert agent.agreement.verify(everybody) == names
    kept = Agreement.from_json(agreement.to_json())
    assert kept == agreement
    forged = {**agreement.statements, 1: agreement.statements[2]}
    with pytest.raises(ForgedMessageError, match="signed by agent 'site-1'"):
        Agreement(
            agreement.run, agreement.facts, agreement.position, agreement.digest, forged
        ).verify(everybody)
    others = credentials_of(0, len(SIZES), run=bytes(16))
    with pytest.raises(ForgedMessageError):
        agreement.verify(others)


def test_another_text_is_no_agreement():
    for text in ("[]", "{}", '{"run": 1}'):
        with pytest.raises(ValueError, match="no agreement"):
            Agreement.from_json(text)


@both
def test_an_agent_alone_has_nobody_to_greet(protocol):
    (agent,) = sealed_agents(protocol, sizes=[3], graph="path")
    run([agent])
    assert agent.agreement.verify(credentials_of(0, 1)) == ["site-0"]


CHANGED = {
    "n_components": (4, "n_components: 3 here, 4 there"),
    "dtype": ("float32", 'dtype: "float64" here, "float32" there'),
    "graph": ("path", 'graph: "ring" here, "path" there'),
    "n_init": (2, "n_init: 1 here, 2 there"),
    "feature digest": ("cd" * 32, 'feature digest: "abab.*" here, "cdcd.*" there'),
    "tol": (0.1, "tol: no such fact here, 0.1 there"),
}


@both
@pytest.mark.parametrize("name", CHANGED)
def test_a_site_with_other_facts_is_refused_and_the_fact_named(protocol, name):
    """By all its neighbours, and before anything else is sent."""
    value, match = CHANGED[name]
    agents = sealed_agents(protocol, facts={2: {**FACTS, name: value}})
    boxes = [[] for _ in agents]
    for agent in agents:
        for envelope in agent.start().envelopes:
            assert envelope.kind == HELLO
            boxes[envelope.receiver].append(envelope)
    for i in (1, 3):
        with pytest.raises(FactsMismatchError, match=match) as caught:
            agents[i].advance(boxes[i])
        assert caught.value.sender == 2
    with pytest.raises(FactsMismatchError):
        agents[2].advance(boxes[2])


@both
@pytest.mark.parametrize("name", CHANGED)
def test_without_the_comparison_of_facts_they_go_on(protocol, name, monkeypatch):
    """The positive control: nobody notices that one has been told another fact."""
    switch_off(monkeypatch, "facts", "signatures")
    value, _ = CHANGED[name]
    hostile = carry(sealed_agents(protocol, facts={2: {**FACTS, name: value}}))
    assert hostile.refused == {}
    assert hostile.finished == [0, 1, 2, 3]


@both
def test_facts_are_in_the_keys_of_links(protocol, monkeypatch):
    """Nothing is read by one with other facts, even if nobody compares or verifies."""
    monkeypatch.setattr(Facts, "difference", lambda *_: None)
    switch_off(monkeypatch, "signatures")
    run = carry(sealed_agents(protocol, facts={2: {**FACTS, "n_init": 2}}))
    assert run.finished == []
    assert set(run.refused.values()) == {ForgedMessageError}


@both
def test_a_site_with_another_roster_is_refused(protocol):
    other = roster_of(4, **{"site-3": IDENTITIES[7].public})
    agents = sealed_agents(
        protocol, credentials={2: Credentials(IDENTITIES[2], other, RUN, FACTS)}
    )
    hellos = agents[2].start().envelopes
    agents[1].start()
    with pytest.raises(FactsMismatchError, match="roster: sha256"):
        agents[1].advance([one for one in hellos if one.receiver == 1])


@both
def test_an_agent_begins_once(protocol):
    agent = sealed_agents(protocol)[0]
    agent.start()
    with pytest.raises(RuntimeError, match="has been started before"):
        agent.start()


def greeted(protocol):
    """Agents that have keys with each other, and what they send first."""
    agents = sealed_agents(protocol)
    boxes = [[] for _ in agents]
    for agent in agents:
        for envelope in agent.start().envelopes:
            boxes[envelope.receiver].append(envelope)
    sent = []
    for agent, box in zip(agents, boxes, strict=True):
        sent += agent.advance(box).envelopes
    return agents, sent, boxes


@both
def test_every_bit_of_a_sealed_envelope_counts(protocol):
    agents, sent, _ = greeted(protocol)
    envelope = sent[0]
    receiver, data = agents[envelope.receiver], envelope.to_bytes()
    n_bits = 8 * len(data)
    for bit in [*range(8 * 60), *range(8 * 60, n_bits, 97), n_bits - 1]:
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptedMessageError):
            receiver.advance([Envelope.from_bytes(bytes(changed))])
    for end in range(len(data)):
        with pytest.raises(CorruptedMessageError):
            receiver.advance([Envelope.from_bytes(data[:end])])
    receiver.advance([Envelope.from_bytes(data)])


@both
def test_every_bit_of_a_hello_counts(protocol):
    agents = sealed_agents(protocol)
    hello = next(one for one in agents[0].start().envelopes if one.receiver == 1)
    agents[1].start()
    data = hello.to_bytes()
    for bit in range(0, 8 * len(data), 3):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptedMessageError):
            agents[1].advance([Envelope.from_bytes(bytes(changed))])
    agents[1].advance([Envelope.from_bytes(data)])


@both
def test_what_comes_twice_or_out_of_order_is_refused(protocol):
    agents, sent, boxes = greeted(protocol)
    envelope = sent[0]
    receiver = agents[envelope.receiver]
    receiver.advance([envelope])
    with pytest.raises(ReplayedMessageError, match="has come before"):
        receiver.advance([envelope])
    with pytest.raises(ReplayedMessageError, match="sent a key for the link before"):
        receiver.advance([boxes[envelope.receiver][0]])
    # A later one, the next having been lost.
    links = agents[envelope.sender]._epochs[-1]
    links._sending[envelope.receiver] = (links._sending[envelope.receiver][0], 5)
    later = links.seal(envelope._replace(protocol=CODES[protocol], body=b""), b"")
    with pytest.raises(ReplayedMessageError, match=r"5 .*comes before 1, which"):
        receiver.advance([later])


@both
def test_other_runs_and_unsealed_envelopes_are_refused(protocol):
    agents, sent, _ = greeted(protocol)
    envelope = sent[0]
    receiver = agents[envelope.receiver]
    with pytest.raises(ReplayedMessageError, match="an envelope of run 0000"):
        receiver.advance([envelope._replace(run=bytes(16))])
    with pytest.raises(CorruptedMessageError, match="of protocol"):
        receiver.advance([envelope._replace(protocol=CODES[protocol])])


@both
def test_nothing_is_opened_before_there_are_keys(protocol):
    _, sent, _ = greeted(protocol)
    fresh = sealed_agents(protocol)[sent[0].receiver]
    fresh.start()
    with pytest.raises(ReplayedMessageError, match="no keys yet"):
        fresh.advance([sent[0]])


def lose(agents, number, call):
    """An agent is lost at this call of `advance`."""
    genuine, calls = agents[number].advance, 0

    def advance(envelopes):
        nonlocal calls
        calls += 1
        if calls == call:
            raise AgentLost(f"agent {number} is gone")
        return genuine(envelopes)

    agents[number].advance = advance
    return agents


@pytest.mark.parametrize("call", [1, 2, 3, 5, 8, 12])
def test_after_a_departure_the_others_go_on_with_new_keys(call):
    """Whenever it is; and sign who is left."""
    sizes = (4, 3, 5, 2, 3)
    agents = lose(sealed_agents("secure-sum", sizes, "complete", min_sites=3), 3, call)
    with pytest.warns(DropoutWarning):
        outcome, sent, _ = run(agents, on_dropout="continue")
    assert outcome.membership.present == [0, 1, 2, 4]
    agreement = agents[0].agreement
    assert agreement.position.epoch == 1
    assert list(agreement.statements) == [0, 1, 2, 4]
    names = ["site-0", "site-1", "site-2", "site-4"]
    for i in (0, 1, 2, 4):
        assert agents[i].agreement == agreement
        assert agents[i].agreement.verify(credentials_of(0, 5)) == names
        old, new = agents[i]._epochs
        assert old.key != new.key
    assert {one.kind for one in sent} >= {HELLO, FINAL}


def test_too_few_sites_or_holders_do_not_go_on():
    sizes = (4, 3, 5, 2, 3)
    agent = sealed_agents("secure-sum", sizes, "complete", min_sites=5)[0]
    agent.start()
    with pytest.raises(DropoutError, match="4 sites are left, fewer than min_sites=5"):
        agent.depart(Departure(1, (3,)))
    agent = sealed_agents("secure-sum", sizes, "complete", holders=[0, 1, 3])[0]
    agent.start()
    with pytest.raises(DropoutError, match=r"n_holders=2 .*at least 3 are needed"):
        agent.depart(Departure(1, (3,)))


def test_departures_that_cannot_be_are_refused():
    agent = sealed_agents("secure-sum")[0]
    agent.start()
    with pytest.raises(ValueError, match="told of departure 2 after 0"):
        agent.depart(Departure(2, (3,)))
    for gone in ((0,), (7,), (1, 0)):
        with pytest.raises(ValueError, match="cannot have"):
            agent.depart(Departure(1, gone))


def test_options_that_cannot_be_are_refused():
    agent, credentials = plain_agents("secure-sum")[0], credentials_of(0, 4)
    with pytest.raises(ValueError, match="min_sites=5 exceeds the 4 sites"):
        SealedAgent(agent, credentials, [1, 3], 2, min_sites=5)
    with pytest.raises(ValueError, match="on_dropout='skip' should be"):
        SealedAgent(agent, credentials, [1, 3], 2, on_dropout="skip")
    with pytest.raises(ValueError, match="protocol=128"):
        SealedAgent(agent, credentials, [1, 3], 128)


def test_credentials_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="run has 3 bytes, expected 16"):
        credentials_of(0, 4, run=b"abc")
    with pytest.raises(ValueError, match="is not in the roster"):
        credentials_of(5, 4)
    with pytest.raises(ValueError, match=r"facts \['roster'\] are added"):
        credentials_of(0, 4, facts={"roster": 1})


def test_a_sealed_agent_moves_to_another_process():
    """Between any two calls, its keys and counters with it."""
    expected = run(sealed_agents("secure-sum"))[2]
    agents = sealed_agents("secure-sum")

    class Moving:
        def __init__(self, agent):
            self.agent = agent

        def __getattr__(self, name):
            def call(*given):
                self.agent = pickle.loads(pickle.dumps(self.agent))
                return getattr(self.agent, name)(*given)

            return call

    assert_same_reports(expected, run([Moving(agent) for agent in agents])[2])


def test_counters_do_not_depend_on_what_is_carried():
    """A link's envelopes are numbered from 0 in either direction."""
    _, sent, _ = run(sealed_agents("secure-sum"))
    counters = {}
    for one in sent:
        if one.kind != HELLO:
            number = int.from_bytes(one.body[2:10], "big")
            counters.setdefault((one.sender, one.receiver), []).append(number)
    assert counters
    for numbers in counters.values():
        np.testing.assert_array_equal(numbers, np.arange(len(numbers)))
