"""Agents of one process that leave each other keys and masks send what they would."""

import pickle

import numpy as np
import pytest

from skppdnmf._secure_sum import masks as masks_module
from skppdnmf._secure_sum.masks import PairwiseMasks
from skppdnmf._secure_sum.pairs import SharedPairs

N_AGENTS = 5


def pairs_of(shared):
    """Agents that have agreed, each beside itself without anything that is shared."""
    agents = [PairwiseMasks(i, shared) for i in range(N_AGENTS)]
    alone = [PairwiseMasks(i) for i in range(N_AGENTS)]
    for one, other in zip(agents, alone, strict=True):
        other._private, other.public_key = one._private, one.public_key
    keys = {one.number: one.public_key for one in agents}
    for one in agents + alone:
        others = {i: key for i, key in keys.items() if i != one.number}
        one.agree(others, others, b"told")
    return agents, alone


def masked(agents, words, round_number, told=b"told"):
    others = [[i for i in range(N_AGENTS) if i != k] for k in range(N_AGENTS)]
    return [
        one.mask(words[one.number], round_number, others[one.number], told)
        for one in agents
    ]


def draw(n_words):
    rng = np.random.default_rng(n_words)
    return rng.integers(0, 2**64, (N_AGENTS, n_words), dtype=np.uint64)


@pytest.mark.parametrize("n_words", [0, 1, 700, 9000, 32768, 32769])
def test_masked_words_are_what_an_agent_sends_alone(n_words):
    agents, alone = pairs_of(SharedPairs())
    words = draw(n_words)
    for round_number in range(3):
        found = masked(agents, words, round_number)
        np.testing.assert_array_equal(found, masked(alone, words, round_number))
        np.testing.assert_array_equal(sum(found), words.sum(axis=0))


def test_each_pair_agrees_and_expands_once(monkeypatch):
    counts = {"_agreed": 0, "_expanded": 0}
    for name in counts:
        genuine = getattr(masks_module, name)

        def counting(first, *given, name=name, genuine=genuine):
            counts[name] += len(first) if name == "_expanded" else 1
            return genuine(first, *given)

        monkeypatch.setattr(masks_module, name, counting)
    agents = [PairwiseMasks(i, shared) for i, shared in enumerate([SharedPairs()] * 5)]
    for one in agents:
        one.agree({i: k.public_key for i, k in enumerate(agents) if k is not one})
    masked(agents, draw(7), 1)
    assert counts == {"_agreed": 10, "_expanded": 10}


def test_nothing_is_taken_that_means_another_round_or_other_totals():
    """Then masks do not cancel, as between processes."""
    agents, alone = pairs_of(SharedPairs())
    words = draw(50)
    everybody = range(N_AGENTS)
    for told, rounds in (([b"a", b"a", b"b", b"a", b"b"], [1] * 5), (None, range(5))):
        for i in everybody:
            others = [k for k in everybody if k != i]
            said = b"" if told is None else told[i]
            given = words[i], rounds[i], others, said
            np.testing.assert_array_equal(agents[i].mask(*given), alone[i].mask(*given))


def test_nothing_is_taken_of_one_that_takes_no_part_or_has_another_seed():
    agents, alone = pairs_of(SharedPairs())
    words = draw(50)
    agents[0].mask(words[0], 1, [1, 2, 3])
    left_out = words[1], 1, [2, 3]  # has been told that the first has left
    np.testing.assert_array_equal(agents[1].mask(*left_out), alone[1].mask(*left_out))
    for one in (agents[2], alone[2]):
        one._seeds[0] = bytes(16)
    other = words[2], 1, [0, 1, 3]
    np.testing.assert_array_equal(agents[2].mask(*other), alone[2].mask(*other))


def test_one_whose_public_key_is_not_its_own_leaves_nobody_a_key():
    shared = SharedPairs()
    liar, other = PairwiseMasks(0, shared), PairwiseMasks(1, shared)
    liar.public_key = PairwiseMasks(0).public_key
    liar.agree({1: other.public_key})
    other.agree({0: liar.public_key})
    assert liar._seeds[1] != other._seeds[0]


def test_an_agent_that_moves_derives_everything_itself():
    agents, alone = pairs_of(SharedPairs())
    moved = pickle.loads(pickle.dumps(agents))
    assert all(one._shared is None for one in moved)
    words = draw(20)
    np.testing.assert_array_equal(masked(moved, words, 1), masked(alone, words, 1))
