"""Whoever carries envelopes changes, repeats, drops, reorders and readdresses them.

Each attack on agents of both protocols, on agents that would take anything, and on
these without the measure that stops it.
"""

import functools
from collections import Counter

import _helpers
import _sums
import pytest
from _helpers import RUN, assert_same_reports
from _hostile import Ledger, OnLink, carry, switch_off
from _sealed import CODES, credentials_of, plain_agents, sealed_agents
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skppdnmf._sealing.agent import FINAL, HELLO
from skppdnmf.exceptions import (
    CorruptedMessageError,
    FactsMismatchError,
    ForgedMessageError,
    ReplayedMessageError,
    TranscriptMismatchError,
)
from skppdnmf.exchange import REPLY, SUM_UP, SealedAgent

both = pytest.mark.parametrize("protocol", CODES)
RING = {0: [1, 3], 1: [0, 2], 2: [1, 3], 3: [0, 2]}
# From 0 to 1; the other neighbour of 0 is 3, that of 1 is 2.
SENDER, RECEIVER = 0, 1
OTHER_RUN = bytes(reversed(range(16)))


def ledgers(run=RUN):
    return [
        SealedAgent(Ledger(i, others, run), credentials_of(i, 4, run=run), others, 3)
        for i, others in RING.items()
    ]


def flipped(at):
    """Flip a bit of the body at a place."""

    def change(envelope, earlier):
        body = bytearray(envelope.body)
        body[at] ^= 1
        return [envelope._replace(body=bytes(body))]

    return change


def replaced(**fields):
    return lambda envelope, earlier: [
        envelope._replace(**{k: new(envelope) for k, new in fields.items()})
    ]


# Epoch, counter | position, digest, payload | tag
EPOCH, COUNTER, POSITION, DIGEST, PAYLOAD, TAG = 1, 9, 15, 40, 48, -1

# What is delivered instead; who refuses it; as what; without which measures not.
ATTACKS = {
    "drop": (lambda one, past: [], 1, ReplayedMessageError, ["counters"]),
    "reorder": (lambda one, past: None, 1, ReplayedMessageError, ["counters"]),
    "duplicate": (lambda one, past: [one, one], 1, ReplayedMessageError, ["counters"]),
    "replay of another round": (
        lambda one, past: [past[0]], 1, ReplayedMessageError, ["counters"],
    ),
    "truncate": (
        lambda one, past: [one._replace(body=one.body[:-3])],
        1, ForgedMessageError, ["seals"],
    ),
    "bit of the payload": (flipped(PAYLOAD), 1, ForgedMessageError, ["seals"]),
    "bit of the tag": (flipped(TAG), 1, ForgedMessageError, ["seals"]),
    "bit of the counter": (
        flipped(COUNTER), 1, ForgedMessageError, ["seals", "counters"],
    ),
    "bit of the epoch": (flipped(EPOCH), 1, ReplayedMessageError, None),
    "bit of the position": (flipped(POSITION), 1, ForgedMessageError, ["seals"]),
    "bit of the digest": (
        flipped(DIGEST), 1, ForgedMessageError, ["seals", "comparison"],
    ),
    "another round": (
        replaced(round=lambda one: one.round ^ 1), 1, ForgedMessageError, ["seals"],
    ),
    "another kind": (
        replaced(kind=lambda one: one.kind ^ 1), 1, ForgedMessageError, ["seals"],
    ),
    "in another's name": (
        replaced(sender=lambda one: 2), 1, ForgedMessageError, ["seals", "counters"],
    ),
    "to another": (
        replaced(receiver=lambda one: 3), 3, ForgedMessageError, ["seals", "counters"],
    ),
    "back to its sender": (
        replaced(sender=lambda one: 1, receiver=lambda one: 0),
        0, ForgedMessageError, ["seals", "counters"],
    ),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", ATTACKS)
def test_what_a_relay_delivers_instead_is_refused(protocol, name):
    """Or nobody goes on, where what was dropped was all that there was to come."""
    change, who, error, _ = ATTACKS[name]
    meddle = OnLink(SENDER, RECEIVER, change)
    run = carry(sealed_agents(protocol, signed=True), meddle)
    assert meddle.done
    assert run.finished == []
    starves = name in ("drop", "reorder") and not run.refused
    assert starves or run.refused.pop(who) is error
    # Its receiver lacks what went elsewhere.
    assert run.refused in ({}, {RECEIVER: ReplayedMessageError})


@pytest.mark.parametrize("name", ATTACKS)
def test_agents_that_take_anything_get_none_of_it(name):
    change, who, error, _ = ATTACKS[name]
    agents = ledgers()
    run = carry(agents, OnLink(SENDER, RECEIVER, change))
    assert run.refused.pop(who) is error
    assert run.refused in ({}, {RECEIVER: ReplayedMessageError})
    for i, agent in enumerate(agents):
        assert agent.agreement is None
        for other in RING[i]:
            amounts = [one for sender, one in agent.agent.taken if sender == other]
            assert amounts == [1000 * other + k for k in range(len(amounts))]


@pytest.mark.parametrize("name", [k for k, one in ATTACKS.items() if one[3]])
def test_without_the_measure_they_take_it(name, monkeypatch):
    """The positive control: the receiver has other amounts, and refuses nothing."""
    change, who, _, measures = ATTACKS[name]
    switch_off(monkeypatch, *measures)
    agents = ledgers()
    run = carry(agents, OnLink(SENDER, RECEIVER, change))
    assert who not in run.refused
    sent = [(j, 1000 * j + k) for k in range(Ledger.AMOUNTS) for j in RING[who]]
    unchanged = "bit of the tag", "bit of the position", "bit of the digest"
    harmless = (*unchanged, "another round", "another kind", "bit of the counter")
    if name in harmless:  # for amounts, but taken
        assert sorted(agents[who].agent.taken) == sorted(sent)
    else:
        assert agents[who].agent.taken != sent


def agents_of(protocol, run, monkeypatch):
    """Agents of the same sites in one run, or such as take anything."""
    if protocol == "ledger":
        return ledgers(run)
    monkeypatch.setattr(_helpers, "RUN", run)
    monkeypatch.setattr(_sums, "RUN", run)
    own = {i: credentials_of(i, 4, run=run) for i in range(4)}
    return sealed_agents(protocol, credentials=own)


def of_another_run(protocol, hello, rewritten, monkeypatch):
    """Deliver, in a run, what was recorded over the same link in the one before."""
    earlier = carry(agents_of(protocol, OTHER_RUN, monkeypatch)).sent
    link = [one for one in earlier if (one.sender, one.receiver) == (SENDER, RECEIVER)]
    # The hello, or the second sealed one.
    old = link[0] if hello else link[2]
    assert (old.kind == HELLO) == hello
    if rewritten:
        old = old._replace(run=RUN)
    place = iter(link)

    def meddle(envelope):
        if (envelope.sender, envelope.receiver) != (SENDER, RECEIVER):
            return [envelope]
        now = next(place, None)
        return [old if now is link[0 if hello else 2] else envelope]

    agents = agents_of(protocol, RUN, monkeypatch)
    return carry(agents, meddle), agents[RECEIVER]


@pytest.mark.parametrize("protocol", [*CODES, "ledger"])
@pytest.mark.parametrize("hello", [True, False])
@pytest.mark.parametrize("rewritten", [False, True])
def test_what_was_recorded_in_another_run_is_refused(
    protocol, hello, rewritten, monkeypatch
):
    """Also where its header has been rewritten to say that it is of this one."""
    run, _ = of_another_run(protocol, hello, rewritten, monkeypatch)
    expected = ForgedMessageError if rewritten else ReplayedMessageError
    assert run.refused == {RECEIVER: expected}
    assert run.finished == []


def test_without_seals_what_is_of_another_run_is_taken(monkeypatch):
    """The positive control: the receiver cannot tell, and all finish."""
    switch_off(monkeypatch, "seals", "signatures", "comparison")
    run, _ = of_another_run("ledger", False, True, monkeypatch)
    assert run.refused == {}
    assert run.finished == [0, 1, 2, 3]


def test_final_signatures_cross_a_link_once_in_each_direction():
    run = carry(ledgers())
    assert run.finished == [0, 1, 2, 3]
    links = Counter((one.sender, one.receiver) for one in run.sent if one.kind == FINAL)
    entries = 4  # of four sites, each at most once
    assert max(links.values()) <= entries


HARMS = {
    "drop": lambda one, past, bit: [],
    "twice": lambda one, past, bit: [one, one],
    "old": lambda one, past, bit: [past[bit % len(past)]],
    "early": lambda one, past, bit: [one, past[bit % len(past)]],
    "flip": lambda one, past, bit: [with_bit(one, bit)],
    "cut": lambda one, past, bit: [one._replace(body=one.body[: bit % len(one.body)])],
    "to": lambda one, past, bit: [one._replace(receiver=bit % 4)],
    "from": lambda one, past, bit: [one._replace(sender=bit % 4)],
}


def with_bit(envelope, bit):
    body = bytearray(envelope.body)
    body[bit // 8 % len(body)] ^= 1 << bit % 8
    return envelope._replace(body=bytes(body))


@functools.cache
def honest(protocol):
    """The reports of a run that nobody meddles with, and how much is sent in it."""
    run = carry(sealed_agents(protocol, signed=True))
    return run.reports, len(run.sent)


@both
@settings(max_examples=30, deadline=None)
@example([(1.0, "early", 0)])
@given(
    st.lists(
        st.tuples(
            st.floats(0, 1), st.sampled_from(sorted(HARMS)), st.integers(0, 1 << 20)
        ),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_a_relay_does_no_result_is_another(protocol, harms):
    """Each agent ends as in an honest run, to the last bit, or without a result."""
    expected, n_sent = honest(protocol)
    planned = {int(where * (n_sent - 1)): (harm, bit) for where, harm, bit in harms}
    past = []

    def meddle(envelope):
        past.append(envelope)
        if len(past) - 1 not in planned:
            return [envelope]
        harm, bit = planned[len(past) - 1]
        return HARMS[harm](envelope, past, bit)

    agents = sealed_agents(protocol, signed=True)
    run = carry(agents, meddle)
    named = CorruptedMessageError, FactsMismatchError, TranscriptMismatchError
    assert all(isinstance(error, named) for error in run.errors.values())
    for i, agent in enumerate(agents):
        # Who is done may still refuse what comes once more.
        done = agent.agreement is not None
        assert done or i not in run.finished
        n_reports = len(run.reports[i])
        assert_same_reports([expected[i][:n_reports]], [run.reports[i]])
        if done:
            assert n_reports == len(expected[i])
            assert agent.agreement.verify(credentials_of(0, 4)) == [
                f"site-{k}" for k in range(4)
            ]


@both
def test_without_seals_a_bit_makes_another_result(protocol):
    """The positive control: all agents finish, and none refuses anything."""
    kind, place = {"consensus": (REPLY, -64), "secure-sum": (SUM_UP, 75)}[protocol]
    changed = []

    def meddle(envelope):
        if envelope.kind != kind or envelope.round != 2 or changed:
            return [envelope]
        changed.append(envelope)
        return [with_bit(envelope, 8 * (place % len(envelope.body)))]

    run = carry(plain_agents(protocol), meddle)
    assert run.refused == {}
    assert run.finished == [0, 1, 2, 3]
    expected, _ = honest(protocol)
    different = [
        (mine[-1].H != theirs[-1].H).any()
        for mine, theirs in zip(run.reports, expected, strict=True)
    ]
    assert all(different)
