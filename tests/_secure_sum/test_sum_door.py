"""The door of the secure sum: what cannot be due is refused by its sender's name.

Nothing has been taken then: the sums go on with the right messages as if the wrong one
had never come.
"""

from dataclasses import replace

import numpy as np
import pytest
from _sums import carry, exact_sum, make_sums, over_a_wire, words_of
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf.exceptions import CorruptedMessageError
from skppdnmf.exchange import (
    KEYS_DOWN,
    KEYS_UP,
    STATE_DOWN,
    STATE_UP,
    SUM_DOWN,
    SUM_UP,
    PairwiseMasks,
    SumMessage,
)

KEY = bytes(range(32))


def trio(n_words=3):
    """Agents 0 - 1 - 2, of which 1 is the root, with keys agreed upon.

    Returns the sums and the masked sums that the root is waiting for.
    """
    sums = make_sums(3, "path")
    words = np.arange(n_words, dtype=np.uint64)
    up = [(i, sums[i].start(words)[0][1]) for i in (0, 2)]
    assert sums[1].start(words) == []
    letters, _ = sums[1].advance(up)
    waiting = []
    for receiver, message in letters:
        answers, total = sums[receiver].advance([(1, message)])
        assert total is None
        waiting += [(receiver, answer) for _, answer in answers]
    return sums, waiting


def refused(one, arrived, match):
    """The error that refuses one of the messages; its sender is named."""
    with pytest.raises(CorruptedMessageError, match=match) as caught:
        one.advance(arrived)
    assert str(caught.value).startswith(f"{one.name}: ")
    return caught.value.sender


def finish(sums, waiting, given=()):
    """The root gets the rest, learns the total, and so do the others."""
    rest = [letter for letter in waiting if letter not in given]
    letters, total = sums[1].advance(rest)
    np.testing.assert_array_equal(total.words, 3 * np.arange(len(total.words)))
    assert sorted(receiver for receiver, _ in letters) == [0, 2]
    for receiver, message in letters:
        _, other = sums[receiver].advance([(1, message)])
        np.testing.assert_array_equal(other.words, total.words)


# The root in the middle of a sum: what is wrong with what arrives from agent 0.
WRONG = {
    "own": (1, {}, r"masked sum from agent 1, expected it from \[0, 2\]"),
    "stranger": (7, {}, r"masked sum from agent 7, expected it from \[0, 2\]"),
    "total": (0, {"kind": SUM_DOWN}, r"total from agent 0, expected it from \[\]"),
    "keys": (
        0,
        {"kind": KEYS_UP},
        r"public keys, up from agent 0, of step 0, not due in stage 'collect masked "
        r"inputs', step 0",
    ),
    "state": (0, {"kind": STATE_UP}, "last total, up from agent 0, .*not due in stage"),
    "late step": (0, {"step": 1}, r"agent 0, of step 1, not due .*, step 0$"),
    "fewer words": (0, {"words": 2}, "agent 0, of 2 words, expected 3"),
    "more words": (0, {"words": 4}, "agent 0, of 4 words, expected 3"),
    "another epoch": (0, {"epoch": 1}, "agent 0, of epoch 1, this is 0"),
    "far epoch": (0, {"epoch": 4, "kind": STATE_UP}, "agent 0, of epoch 4, this is 0"),
    "down, later": (0, {"epoch": 1, "kind": STATE_DOWN}, "agent 0, of epoch 1"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("together", [False, True])
def test_what_is_not_due_in_a_sum_is_refused(name, together):
    """Also where it comes with others that are right, which are not taken then."""
    sender, changes, match = WRONG[name]
    sums, waiting = trio()
    if "words" in changes:
        changes = {**changes, "words": np.zeros(changes["words"], dtype=np.uint64)}
    wrong = replace(dict(waiting)[0], **changes)
    arrived = [waiting[1], (sender, wrong)] if together else [(sender, wrong)]
    before = sums[1]._partial.copy()
    assert refused(sums[1], arrived, match) == sender
    np.testing.assert_array_equal(sums[1]._partial, before)
    assert sums[1]._waiting == {0, 2}
    assert sums[1]._inbox == []
    finish(sums, waiting)


@pytest.mark.parametrize("together", [False, True])
def test_a_second_message_of_the_same_sum_is_refused(together):
    sums, waiting = trio()
    first = waiting[0]
    if together:
        assert (
            refused(sums[1], [first, first], "agent 0, which it has sent before") == 0
        )
        finish(sums, waiting)
        return
    sums[1].advance([first])
    assert refused(sums[1], [first], r"from agent 0, expected it from \[2\]") == 0
    finish(sums, waiting, [first])


def test_a_total_before_ones_own_part_is_refused():
    """Of an agent between the root and a leaf."""
    sums = make_sums(4, "path")  # 0 - 1 - 2 - 3, of which 1 is the root
    assert sums[2]._tree.parents == {0: 1, 2: 1, 3: 2}
    rng = np.random.default_rng(0)
    summands = [[words_of(rng, 3) for _ in range(4)] for _ in range(2)]
    carry(sums, summands[:1])
    for one, words in zip(sums, summands[1], strict=True):
        one._over = False
        one.begin(words)
    total = SumMessage(SUM_DOWN, 0, 1, np.zeros(3, dtype=np.uint64))
    match = r"total from agent 1, although \[3\] have not sent theirs"
    assert refused(sums[2], [(1, total)], match) == 1
    assert sums[2]._learnt == 0
    assert sums[2]._waiting == {3}


def test_a_total_of_the_sum_before_is_refused():
    sums, waiting = trio()
    letters, _ = sums[1].advance(waiting)
    message = dict(letters)[0]
    sums[0].advance([(1, message)])
    match = r"total from agent 1, of step 0, not due in stage 'between sums', step 1"
    assert refused(sums[0], [(1, message)], match) == 1
    sums[0].begin(np.zeros(3, dtype=np.uint64))
    match = r"total from agent 1, of step 0, not due .*, step 1"
    assert refused(sums[0], [(1, message)], match) == 1


def test_the_next_summand_of_a_child_may_come_early_and_once():
    sums, waiting = trio()
    letters, total = sums[1].advance(waiting)
    np.testing.assert_array_equal(total.words, [0, 3, 6])
    early = []
    for receiver, message in letters:
        sums[receiver].advance([(1, message)])
        early += [
            (receiver, m) for _, m in sums[receiver].begin(np.full(4, 5, dtype="u8"))
        ]
    # Between sums, before this agent has begun its own.
    assert sums[1].advance(early[:1]) == ([], None)
    match = "masked sum from agent 0, which it has sent before"
    assert refused(sums[1], early[:1], match) == 0
    later = replace(early[1][1], step=2)
    assert (
        refused(sums[1], [(2, later)], r"agent 2, of step 2, not due .*, step 1") == 2
    )
    match = r"agent 1, expected it from \[0, 2\]"
    assert refused(sums[1], [(1, early[1][1])], match) == 1
    sums[1].begin(np.full(4, 5, dtype="u8"))
    assert sums[1].advance([]) == ([], None)
    assert sums[1]._waiting == {2}
    assert sums[1]._inbox == []
    _, total = sums[1].advance(early[1:])
    np.testing.assert_array_equal(total.words, [15] * 4)


def test_an_early_summand_of_another_length_is_refused_when_its_sum_has_begun():
    sums, waiting = trio()
    letters, _ = sums[1].advance(waiting)
    right = []
    for receiver, message in letters:
        sums[receiver].advance([(1, message)])
        right += [
            (receiver, m) for _, m in sums[receiver].begin(np.full(4, 5, dtype="u8"))
        ]
    wrong = replace(right[0][1], words=right[0][1].words[:3])
    assert sums[1].advance([(right[0][0], wrong)]) == ([], None)
    assert sums[1].begin(np.full(4, 5, dtype="u8")) == []
    assert refused(sums[1], right[1:], "of 3 words, expected 4") == right[0][0]
    _, total = sums[1].advance(right[:1])
    np.testing.assert_array_equal(total.words, [15] * 4)


def test_after_the_end_nothing_is_due():
    sums, waiting = trio()
    for one in sums:
        one.end()
    letters, _ = sums[1].advance(waiting)
    for receiver, message in letters:
        sums[receiver].advance([(1, message)])
    late = replace(waiting[0][1], step=1)
    match = r"agent 0, of step 1, not due in stage 'between sums', step 1"
    assert refused(sums[1], [(0, late)], match) == 0


# Keys -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ([0, 1], r"no public key of agents \[2\]"),
        ([], r"no public key of agents \[0, 1, 2\]"),
        ([0, 1, 2, 9], r"public keys of agents \[9\], not theirs to send"),
    ],
)
def test_the_keys_of_all_are_those_of_all(keys, reason):
    sums = make_sums(3, "path")
    zeros = np.zeros(1, dtype=np.uint64)
    up = [(i, sums[i].start(zeros)[0][1]) for i in (0, 2)]
    sums[1].start(zeros)
    message = SumMessage(KEYS_DOWN, 0, 0, keys=dict.fromkeys(keys, KEY))
    match = rf"public keys, down from agent 1, {reason}"
    assert refused(sums[0], [(1, message)], match) == 1
    letters, _ = sums[1].advance(up)
    [(_, masked)] = sums[0].advance([(1, dict(letters)[0])])[0]
    assert masked.kind == SUM_UP


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ([2], r"no public key of agents \[3\]"),
        ([1, 2, 3], r"public keys of agents \[1\], not theirs to send"),
        ([0, 1, 2, 3], r"public keys of agents \[0, 1\], not theirs to send"),
    ],
)
def test_the_keys_from_below_are_those_below(keys, reason):
    """Nobody puts another key in the place of one that is not below it."""
    sums = make_sums(4, "path")  # 0 - 1 - 2 - 3, of which 1 is the root
    zeros = np.zeros(1, dtype=np.uint64)
    sums[1].start(zeros)
    mine = sums[1]._keys[1]
    message = SumMessage(KEYS_UP, 0, 0, keys=dict.fromkeys(keys, KEY))
    assert refused(sums[1], [(2, message)], f"keys, up from agent 2, {reason}") == 2
    assert sums[1]._keys == {1: mine}
    assert sums[1]._waiting == {0, 2}


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), bytes(32)])
def test_what_is_no_public_key_is_the_fault_of_its_agent(key):
    with pytest.raises(CorruptedMessageError, match="agent 7") as caught:
        PairwiseMasks(0).agree({7: key})
    assert caught.value.sender == 7


# After a departure ----------------------------------------------------------------


def quartet():
    """Four agents, all neighbours, in the third sum; agent 3 leaves.

    Returns the sums of those that are left and what they send when they are told, by
    sender, and the summands.
    """
    sums = make_sums(4, "complete")
    rng = np.random.default_rng(0)
    summands = [[words_of(rng, 3) for _ in range(4)] for _ in range(3)]
    carry(sums, summands[:2])
    for one, words in zip(sums, summands[2], strict=True):
        one._over = False
        one.begin(words)
    states = {i: sums[i].drop(3)[0] for i in (1, 2)}
    return sums, states, summands[2]


def complete(sums, arrived, summands):
    """Those that are left bring the sum to its end; this is on its way to the root."""
    boxes = {0: arrived, 1: [], 2: []}
    totals = {}
    for _ in range(10):
        for i in boxes:
            taken, boxes[i] = boxes[i], []
            letters, total = sums[i].advance(taken)
            if sums[i].awaits_summand:
                letters = letters + sums[i].begin(summands[i])
            for receiver, message in letters:
                boxes[receiver].append((i, over_a_wire(message)))
            if total is not None:
                totals[i] = total.words.tolist()
    assert totals == dict.fromkeys(range(3), exact_sum(summands[:3]))


def test_a_state_may_come_before_the_news_of_a_departure_and_once():
    sums, states, summands = quartet()
    arrived = [(i, message) for i, [(_, message)] in states.items()]
    assert {message.kind for _, message in arrived} == {STATE_UP}
    assert sums[0].advance(arrived[:1]) == ([], None)
    match = "last total, up from agent 1, which it has sent before"
    assert refused(sums[0], arrived[:1], match) == 1
    assert len(sums[0]._inbox) == 1
    letters, _ = sums[0].drop(3)
    assert letters == []
    complete(sums, arrived[1:], summands)


STATES = {
    "two ahead": ({"step": 4}, r"agent 1, of step 4, expected 1 to 3"),
    "two behind": ({"step": 0}, r"agent 1, of step 0, expected 1 to 3"),
    "words": ({"step": 3, "words": 2}, r"agent 1, of 2 words, expected 3"),
    "no words": ({"step": 3, "words": 0}, r"agent 1, of 0 words, expected 3"),
}


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("early", [False, True])
def test_a_state_that_nobody_can_have_is_refused(name, early):
    """Where it came before the news of the departure, when that comes."""
    changes, match = STATES[name]
    if "words" in changes:
        changes = {**changes, "words": np.zeros(changes["words"], dtype=np.uint64)}
    sums, states, summands = quartet()
    arrived = [(i, message) for i, [(_, message)] in states.items()]
    wrong = 1, replace(arrived[0][1], **changes)
    if early:
        assert sums[0].advance([wrong]) == ([], None)
        with pytest.raises(CorruptedMessageError, match=match) as caught:
            sums[0].drop(3)
        assert caught.value.sender == 1
    else:
        sums[0].drop(3)
        assert refused(sums[0], [wrong], match) == 1
    assert sums[0]._waiting == {1, 2}
    complete(sums, arrived, summands)


def test_messages_from_before_a_dropout_are_forgotten():
    sums, [(_, message), _] = trio()
    sums[1].drop(2)
    assert sums[1].advance([(0, message)]) == ([], None)
    assert sums[1]._inbox == []


def test_an_epoch_is_at_most_as_many_departures_as_there_are_agents():
    sums, waiting = trio()
    for epoch in (4, 5, 1000):
        message = SumMessage(STATE_UP, epoch, 0)
        match = f"last total, up from agent 0, of epoch {epoch}, this is 0"
        assert refused(sums[1], [(0, message)], match) == 0
    finish(sums, waiting)


# Anything -------------------------------------------------------------------------


@pytest.mark.journey
@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.data())
def test_whatever_arrives_beside_the_right_messages_is_refused_and_forgotten(
    seed, n_agents, data
):
    """Each agent is sent rubbish before its first turn of each round."""
    rng = np.random.default_rng(seed)
    sums = make_sums(n_agents, "random", seed=seed)
    summands = [[words_of(rng, 3) for _ in range(n_agents)] for _ in range(2)]
    rubbish = st.builds(
        SumMessage,
        kind=st.sampled_from([KEYS_UP, KEYS_DOWN, SUM_UP, SUM_DOWN]),
        epoch=st.just(0),
        step=st.integers(0, 3),
        words=st.integers(0, 5).map(lambda n: np.zeros(n, dtype=np.uint64)),
        keys=st.sets(st.integers(0, 7)).map(lambda who: dict.fromkeys(who, KEY)),
    )
    genuine = [one.advance for one in sums]
    n_refused = 0

    def beside(i):
        def advance(arrived):
            nonlocal n_refused
            sender = data.draw(st.integers(0, 7).filter(lambda k: k not in near[i]))
            message = data.draw(rubbish)
            with pytest.raises(CorruptedMessageError) as caught:
                genuine[i]([*arrived, (sender, message)])
            assert caught.value.sender == sender
            n_refused += 1
            return genuine[i](arrived)

        return advance

    tree = sums[0]._tree
    near = {i: {*tree.children[i], tree.parents.get(i)} for i in range(n_agents)}
    for i, one in enumerate(sums):
        one.advance = beside(i)
    totals, _ = carry(sums, summands)
    assert n_refused > 0
    for learnt in totals:
        assert [total.words.tolist() for total in learnt] == list(
            map(exact_sum, summands)
        )
