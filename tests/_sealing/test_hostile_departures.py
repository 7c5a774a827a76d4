"""Departures are invented, hidden, and told differently; words are withheld."""

import numpy as np
import pytest
from _helpers import assert_same_reports
from _hostile import Ledger, carry, switch_off
from _sealed import CODES, credentials_of, sealed_agents
from _sums import RARE, p_uniform

from skppdnmf._agent import Departure
from skppdnmf._sealing.agent import HELLO
from skppdnmf.exceptions import (
    DropoutError,
    ForgedMessageError,
    ReplayedMessageError,
    TranscriptMismatchError,
)
from skppdnmf.exchange import SUM_UP, SealedAgent

SIZES = (4, 3, 5, 2, 3)
both = pytest.mark.parametrize("protocol", CODES)
TURN = 3  # in the middle of a sum


def sums(**given):
    return sealed_agents("secure-sum", SIZES, "complete", signed=True, **given)


def told(agents, gone):
    """What some agents are told: ``{number: (who has left, ...)}``."""
    calls = [(i, agents[i].depart, Departure(1, left)) for i, left in gone.items()]
    return {TURN: calls}


def ledgers():
    others = {i: [k for k in range(5) if k != i] for i in range(5)}
    return [
        SealedAgent(Ledger(i, one), credentials_of(i, 5), one, 3)
        for i, one in others.items()
    ]


def test_an_invented_departure_is_signed_by_all_that_go_on():
    """What it comes to all can show: the agreement of the others names who is left."""
    agents = sums(min_sites=3)
    run = carry(agents, then=told(agents, dict.fromkeys((0, 1, 2, 3), (4,))))
    assert run.refused == {}
    assert run.finished == [0, 1, 2, 3]
    assert agents[4].agreement is None
    for agent in agents[:4]:
        assert list(agent.agreement.statements) == [0, 1, 2, 3]
        assert agent.agreement.verify(credentials_of(0, 5)) == [
            f"site-{i}" for i in range(4)
        ]


def test_an_invented_departure_ends_a_run_that_does_without_nobody():
    """Whatever whoever carries says: under the default of a fit, nothing goes on."""
    agents = sums(on_dropout="raise")
    run = carry(agents, then=told(agents, dict.fromkeys((0, 1, 2, 3), (4,))))
    assert run.refused == dict.fromkeys((0, 1, 2, 3), DropoutError)
    assert "told that agent 'site-4' left" in str(run.errors[0])
    assert not [one for one in run.sent if one.kind != HELLO and one.body[1] == 1]


def test_without_that_rule_it_goes_on():
    """The positive control: totals with and without a site that has not left."""
    agents = sums(on_dropout="continue")
    run = carry(agents, then=told(agents, dict.fromkeys((0, 1, 2, 3), (4,))))
    assert run.finished == [0, 1, 2, 3]
    assert [one for one in run.sent if one.kind == SUM_UP and one.body[1] == 1]


@pytest.mark.parametrize(
    ("given", "gone"),
    [({"min_sites": 4}, (3, 4)), ({}, (2, 3, 4)), ({"holders": [0, 1, 2, 3]}, (2, 3))],
)
def test_a_relay_cannot_leave_too_few(given, gone):
    """Each site refuses by itself; nothing more is summed."""
    agents = sums(**given)
    left = [i for i in range(5) if i not in gone]
    run = carry(agents, then=told(agents, dict.fromkeys(left, gone)))
    assert {run.refused[i] for i in left} == {DropoutError}
    assert run.finished == []


def test_without_the_least_number_one_of_two_reads_the_other(monkeypatch):
    """The positive control: a total less one's own summand is the other's."""
    switch_off(monkeypatch, "least numbers")
    summands = []
    agents = sums()
    inner = [agent.agent for agent in agents]
    for one in inner[:2]:
        genuine = one._sum.begin

        def begin(words, genuine=genuine, number=one.number):
            summands.append((number, words.copy()))
            return genuine(words)

        one._sum.begin = begin
    run = carry(agents, then=told(agents, dict.fromkeys((0, 1), (2, 3, 4))))
    assert run.finished == [0, 1]
    last = dict(summands)
    total = inner[0]._sum._last
    np.testing.assert_array_equal(total - last[0], last[1])


def test_other_members_told_to_some_end_the_run_by_name():
    """At all who hear of it from a neighbour, before anything is summed anew."""
    agents = sums()
    gone = {0: (4,), 1: (4,), 2: (3,), 3: (2,)}
    run = carry(agents, then=told(agents, gone))
    assert {run.refused[i] for i in (0, 1, 2)} == {TranscriptMismatchError}
    assert "site-2" in str(run.errors[0])
    assert "of other members after departure 1" in str(run.errors[0])
    assert run.finished == []
    since = [one for one in run.sent if one.kind == SUM_UP and one.body[1] == 1]
    assert since == []


def test_without_signed_members_they_go_on(monkeypatch):
    """The positive control, of agents that would sum with anybody."""
    gone = {0: (4,), 1: (4,), 2: (3,), 3: (2,)}
    agents = ledgers()
    assert (
        TranscriptMismatchError
        in carry(agents, then=told(agents, gone)).refused.values()
    )
    switch_off(monkeypatch, "signed members", "comparison")
    agents = ledgers()
    run = carry(agents, then=told(agents, gone))
    assert run.refused == {}


@pytest.mark.parametrize("heard", [(0,), (0, 1), (1, 2, 3)])
def test_a_departure_that_some_are_not_told_of_holds_the_run_up(heard):
    """Nobody finishes, and those that were told sum nothing without the others."""
    agents = sums()
    run = carry(agents, then=told(agents, dict.fromkeys(heard, (4,))))
    assert run.refused == {}
    assert run.finished == []
    epochs = {one.body[1] for one in run.sent if one.kind == SUM_UP}
    assert epochs == {0}


def test_a_departure_of_which_nobody_is_told_holds_the_run_up():
    """Of one that is gone: its summand and its keys are needed."""
    seen = []

    def meddle(envelope):
        if 4 in (envelope.sender, envelope.receiver) and envelope.kind != HELLO:
            seen.append(envelope)
            return [envelope] if len(seen) < 4 else []
        return [envelope]

    run = carry(sums(), meddle)
    assert run.refused == {}
    assert run.finished == []


@both
def test_a_departure_ends_the_consensus_and_numbers_are_checked(protocol):
    agents = sealed_agents(protocol, SIZES, "complete", signed=True)
    later = {TURN: [(0, agents[0].depart, Departure(2, (4,)))]}
    assert type(carry(agents, then=later).errors[0]) is ValueError
    agents = sealed_agents(protocol, SIZES, "complete", signed=True)
    run = carry(agents, then=told(agents, dict.fromkeys(range(4), (4,))))
    if protocol == "consensus":
        assert run.refused == dict.fromkeys(range(4), DropoutError)


class Withhold:
    """Keeps all words of one site until the others have nothing more to say."""

    def __init__(self, site):
        self.site, self.kept, self.heard = site, [], []

    def __call__(self, envelope):
        if envelope.sender == self.site and envelope.kind != HELLO:
            self.kept.append(envelope)
            return []
        self.heard.append(envelope)
        return [envelope]

    def release(self):
        kept, self.kept = self.kept, []
        return kept


@both
@pytest.mark.parametrize("site", [0, 3])
def test_withholding_a_sites_words_changes_nothing_and_tells_nothing(protocol, site):
    """The others say the same as ever, to the last bit of their reports."""
    honest = carry(sealed_agents(protocol, SIZES, "complete", signed=True))
    withhold = Withhold(site)
    run = carry(sealed_agents(protocol, SIZES, "complete", signed=True), withhold)
    assert run.refused == {}
    assert run.finished == [0, 1, 2, 3, 4]
    assert_same_reports(honest.reports, run.reports)
    assert withhold.heard
    bodies = [one.body[10:] for one in withhold.heard if one.kind < 254]
    data = b"".join(bodies)
    words = np.frombuffer(data[: len(data) // 8 * 8], dtype="<u8")
    assert p_uniform([words]) > RARE


def test_without_masks_and_seals_the_last_to_speak_knows_all_others(monkeypatch):
    """The positive control: summands lie open while one site's words are kept."""
    switch_off(monkeypatch, "masks", "seals")
    agents = sums()
    withhold = Withhold(3)
    expected = {one.number: one.agent._setup() for one in agents}
    carry(agents, withhold)
    heard = {}
    for one in withhold.heard:
        if one.kind == SUM_UP and one.round == 0:
            n_bytes = expected[one.sender].nbytes
            words = np.frombuffer(one.body[-16 - n_bytes : -16], dtype="<u8")
            heard[one.sender] = words
    assert heard
    for sender, words in heard.items():
        np.testing.assert_array_equal(words, expected[sender])


def of_another_epoch(agents, rewritten):
    """Instead of the first sealed envelope of an epoch that of the one before."""
    before, done = [], []

    def meddle(envelope):
        if (envelope.sender, envelope.receiver) != (1, 0) or envelope.kind == HELLO:
            return [envelope]
        if envelope.body[1] == 0:
            before.append(envelope)
            return [envelope]
        if done:
            return [envelope]
        done.append(envelope)
        old = before[0]
        if rewritten:
            old = old._replace(body=envelope.body[:2] + old.body[2:])
        return [old]

    run = carry(agents, meddle, told(agents, dict.fromkeys((0, 1, 2, 3), (4,))))
    assert done
    return run


@pytest.mark.parametrize("make", [sums, ledgers])
@pytest.mark.parametrize("rewritten", [False, True])
def test_what_was_recorded_in_another_epoch_is_refused(make, rewritten):
    run = of_another_epoch(make(), rewritten)
    expected = ForgedMessageError if rewritten else ReplayedMessageError
    assert run.refused == {0: expected}
    assert run.finished == []


def test_without_seals_what_is_of_another_epoch_is_taken(monkeypatch):
    """The positive control: an amount counts twice, and another not at all."""
    switch_off(monkeypatch, "seals", "counters", "comparison")
    agents = ledgers()
    assert of_another_epoch(agents, True).refused == {}
    taken = [amount for sender, amount in agents[0].agent.taken if sender == 1]
    assert len(taken) > len(set(taken))
