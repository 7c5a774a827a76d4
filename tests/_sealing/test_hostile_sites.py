"""Sites collude with each other and with the relay, and ask for more than their due.

What they know is all that they hold: their keys, and what went over the links. With
the positive controls: the measure switched off, the summand is read to the last bit.
"""

import _sealed
import numpy as np
import pytest
from _hostile import carry, switch_off
from _sealed import CODES, credentials_of, plain_agents, sealed_agents
from _sums import RARE, make_sums, p_uniform, words_of

from skppdnmf._agent import Departure
from skppdnmf._sealing.transcript import Position
from skppdnmf._secure_sum.exchange import Stage
from skppdnmf.exceptions import CorruptedMessageError, RepeatedSummandError
from skppdnmf.exchange import SUM_DOWN, SUM_UP, SumMessage

SIZES = (4, 3, 5, 2, 3)
# In a complete graph agent 0 is the root of the tree, and the parent of all others.
ROOT, VICTIM = 0, 2
TURN = 5


def sums(**given):
    own = [credentials_of(i, len(SIZES)) for i in range(len(SIZES))]
    return plain_agents(
        "secure-sum", SIZES, "complete", credentials=own.__getitem__, **given
    )


def noted(agents):
    """The summands of all agents by (number, epoch, step), for comparison."""
    summands = {}
    for agent in agents:
        sums, genuine = agent._sum, agent._sum._begin_sum

        def begin(sums=sums, genuine=genuine):
            mark = sums.number, sums._epoch, sums.next_step
            summands[mark] = sums._words.copy()
            genuine()

        sums._begin_sum = begin
    return summands


def keys_of(agents):
    """Each agent's keys of masks by (number, epoch), which it hands over."""
    keys = {}
    for agent in agents:
        sums, genuine = agent._sum, agent._sum._agree

        def agree(given, sums=sums, genuine=genuine):
            keys[sums.number, sums._epoch] = sums._masks
            genuine(given)

        sums._agree = agree
    return keys


def words_sent(run, victim=VICTIM):
    """What the victim has sent up by (epoch, step)."""
    sent = {}
    for one in run.sent:
        if one.sender == victim and one.kind == SUM_UP:
            message = SumMessage.from_bytes(one.body, one.kind, one.round)
            sent[message.epoch, message.step] = message.words
    return sent


def stripped(words, mark, colluders, keys, agents):
    """The victim's words less all masks that colluders share with it."""
    epoch, step = mark
    words = words.copy()
    for one in colluders:
        told = agents[one].transcript.digest(Position(epoch, step))
        number = (epoch << 32) + step
        zeros = np.zeros_like(words)
        words += keys[one, epoch].mask(zeros, number, [VICTIM], told)
    return words


@pytest.mark.parametrize("colluders", [[ROOT], [ROOT, 1], [ROOT, 1, 3]])
def test_who_colludes_reads_no_summand_while_another_is_honest(colluders):
    """Whatever they hand over: masks with the honest ones are still on."""
    agents = sums(max_iter=8)
    keys, summands = keys_of(agents), noted(agents)
    sent = words_sent(carry(agents))
    assert len(sent) > 5
    left = [stripped(sent[k], k, colluders, keys, agents) for k in sent]
    assert p_uniform(left) > RARE
    assert p_uniform([summands[(VICTIM, *mark)] for mark in sent]) < RARE


def test_all_others_together_read_a_summand():
    """The positive control, and the claim's limit: nobody honest shares a key."""
    agents = sums()
    keys, summands = keys_of(agents), noted(agents)
    for mark, words in words_sent(carry(agents)).items():
        found = stripped(words, mark, [ROOT, 1, 3, 4], keys, agents)
        np.testing.assert_array_equal(found, summands[(VICTIM, *mark)])


def lost_in_a_sum(agents, gone):
    """Some are lost while a sum is on; the rest go on. What was sent, and marks."""

    def meddle(envelope):
        # The parent gets all words of that sum but those of one that is lost.
        lost = envelope.sender in gone and envelope.kind == SUM_UP
        return [] if lost and envelope.round == 2 else [envelope]

    left = [i for i in range(len(SIZES)) if i not in gone]
    calls = [(i, agents[i].depart, Departure(1, tuple(gone))) for i in left]
    return carry(agents, meddle, {30: calls})


COLLUDERS = [ROOT, 4]  # the parent has recorded the first try; 4 is lost


def two_tries(agents):
    """Views of the victim's words of the sum that was given up, and formed anew."""
    keys, summands = keys_of(agents), noted(agents)
    sent = words_sent(lost_in_a_sum(agents, [4]))
    first, second = (0, 2), (1, 2)
    assert first in sent
    assert second in sent
    words = stripped(sent[first], first, COLLUDERS, keys, agents)
    words -= stripped(sent[second], second, [ROOT], keys, agents)
    truth = summands[(VICTIM, *first)] - summands[(VICTIM, *second)]
    return words, truth


def test_recorded_words_of_a_sum_that_was_given_up_tell_nothing():
    """With those of the next try, and all keys of the lost site and of the parent."""
    differences, truths = zip(*(two_tries(sums()) for _ in range(5)), strict=True)
    assert p_uniform(differences) > RARE
    assert p_uniform(truths) < RARE


def test_without_another_stream_they_tell_how_the_summand_changed(monkeypatch):
    """The positive control: keys that outlive the departure, and one stream a round."""
    switch_off(monkeypatch, "another stream", "another key")
    found, truth = two_tries(sums())
    np.testing.assert_array_equal(found, truth)
    assert truth.any()


def difference_of_totals(agents):
    """The root keeps a total to itself and is lost with another, whose it is to tell.

    Agent 1 tells it the total that follows.
    """
    summands = noted(agents)
    gone, left, victim = (ROOT, 3), (1, 2, 4), 3

    def meddle(envelope):
        kept = envelope.sender == ROOT and envelope.kind == SUM_DOWN
        return [] if kept and envelope.round == 2 else [envelope]

    calls = [(i, agents[i].depart, Departure(1, gone)) for i in left]
    after = {}

    def noting(total, genuine=agents[1]._learn):
        after.setdefault(total.step, total.words.copy())
        return genuine(total)

    agents[1]._learn = noting
    run = carry(agents, meddle, {30: calls})
    assert run.finished
    # It may have gone on by itself since; this sum is the one that it kept.
    whole = sum(summands[i, 0, 2] for i in range(len(SIZES)))
    found = whole - summands[ROOT, 0, 2] - after[2]
    return found, summands[victim, 0, 2]


def test_totals_with_and_without_a_lost_site_are_of_other_summands():
    found, truth = difference_of_totals(sums())
    assert (found != truth).mean() > 0.5


def test_without_another_point_they_tell_its_summand(monkeypatch):
    """The positive control: to the last bit."""
    switch_off(monkeypatch, "another point")
    found, truth = difference_of_totals(sums())
    np.testing.assert_array_equal(found, truth)


class Twice:
    """A site that says one thing twice, each under a seal of its own."""

    def __init__(self, agent, kind, round_):
        self.agent, self.mark = agent, (kind, round_)

    def __getattr__(self, name):
        return getattr(self.agent, name)

    def start(self):
        return self.agent.start()

    def advance(self, envelopes):
        step = self.agent.advance(envelopes)
        twice = [
            one
            for one in step.envelopes
            for _ in range(1 + ((one.kind, one.round) == self.mark))
        ]
        return step._replace(envelopes=twice)


# In the consensus a request asks for an answer, in the sum the last total for the next.
ASKS = {"consensus": (1, 2), "secure-sum": (SUM_DOWN, 1)}


@pytest.mark.parametrize("protocol", CODES)
def test_asking_twice_for_a_round_is_refused(protocol):
    """By all that are asked."""
    agents = sealed_agents(protocol, SIZES, "complete", signed=True)
    agents[ROOT].agent = Twice(agents[ROOT].agent, *ASKS[protocol])
    run = carry(agents)
    assert run.refused
    assert set(run.refused.values()) == {CorruptedMessageError}
    assert all(error.sender == ROOT for error in run.errors.values())
    assert run.finished == []


def asked_again(one, words):
    """What an agent of a sum sends up if it is made to contribute once more."""
    one.stage, one._contributed = Stage.IDLE, (0, -1)
    ((_, message),) = one.begin(words)
    return message.words


def contributing():
    """An agent that has sent its first summand, and what it has sent."""
    rng = np.random.default_rng(0)
    first, second = (words_of(rng, 40) for _ in range(2))
    sums = make_sums(3, "complete")
    letters = [(i, *one) for i, s in enumerate(sums) for one in s.start(first)]
    sent = []
    while letters:
        sender, receiver, message = letters.pop(0)
        if message.kind == SUM_UP:
            sent.append((sender, message.words))
            continue
        more, _ = sums[receiver].advance([(sender, message)])
        letters += [(receiver, *one) for one in more]
    number, words = sent[0]
    return sums[number], words, first, second


def test_no_agent_contributes_a_second_summand_to_a_round():
    one, _, _, second = contributing()
    with pytest.raises(RepeatedSummandError, match="contributes once to each sum"):
        one.begin(second)
    one.stage = Stage.IDLE
    with pytest.raises(RepeatedSummandError, match="has contributed to sum"):
        one.begin(second)


def test_without_the_rule_two_summands_of_a_round_tell_their_difference():
    """The positive control: they are under one stream."""
    one, sent, first, second = contributing()
    np.testing.assert_array_equal(asked_again(one, second) - sent, second - first)


def test_every_agent_starts_once():
    for protocol in CODES:
        agent = sealed_agents(protocol)[0]
        agent.start()
        with pytest.raises(RuntimeError, match="started before"):
            agent.start()


def test_false_data_pass(monkeypatch):
    """Nothing tells that a site adds what its samples do not say."""
    honest = carry(sealed_agents("secure-sum", SIZES, "complete", signed=True))

    def split_parts(*given):
        parts = split_genuine(*given)
        return [*parts[:3], 3.0 * parts[3][:, ::-1], *parts[4:]]

    split_genuine = _sealed.split_parts
    monkeypatch.setattr(_sealed, "split_parts", split_parts)
    run = carry(sealed_agents("secure-sum", SIZES, "complete", signed=True))
    assert run.refused == {}
    assert run.finished == [0, 1, 2, 3, 4]
    assert (run.reports[0][-1].H != honest.reports[0][-1].H).any()


@pytest.mark.parametrize("protocol", CODES)
def test_a_site_that_aborts_ends_the_run(protocol):
    """Nobody finishes; the others are told by whoever carries, or wait."""

    def meddle(envelope):
        return [envelope] if envelope.sender != 3 or envelope.kind > 253 else []

    run = carry(sealed_agents(protocol, SIZES, "complete", signed=True), meddle)
    assert run.refused == {}
    assert run.finished == []


@pytest.mark.parametrize("protocol", CODES)
def test_sizes_and_rounds_are_seen(protocol):
    """Sealed envelopes are as long as what is in them, and a constant."""
    sealed = carry(sealed_agents(protocol, SIZES, "complete")).sent
    open_ = carry(plain_agents(protocol, SIZES, "complete")).sent
    seen = sorted(len(one.body) for one in sealed if one.kind < 254)
    meant = sorted(len(one.body) for one in open_)
    assert len({a - b for a, b in zip(seen, meant, strict=True)}) == 1
    assert {one.round for one in open_} <= {one.round for one in sealed}
