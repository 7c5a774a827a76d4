"""The secure sum: exact for every graph, uniform on every link, no mask twice."""

from itertools import combinations

import numpy as np
import pytest
from _helpers import GRAPHS
from _sums import (
    RARE,
    KeyStreams,
    carry,
    exact_sum,
    make_sums,
    own_parts,
    p_uniform,
    words_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf._data.graph import make_network
from skppdnmf.exchange import KEYS_DOWN, SUM_DOWN, SUM_UP

HUGE = np.uint64(2**64 - 1)


@st.composite
def federations(draw):
    n_agents = draw(st.integers(1, 14))
    least = min(2, n_agents - 1)
    degree = draw(st.integers(least, max(least, n_agents - 1)))
    seed = draw(st.integers(0, 1000))
    return n_agents, draw(st.sampled_from(GRAPHS)), degree, seed


@settings(max_examples=60, deadline=None)
@given(federations(), st.integers(0, 30), st.integers(1, 3), st.booleans())
def test_the_total_is_the_sum_of_whole_numbers(federation, n_words, n_steps, shuffled):
    n_agents, graph, degree, seed = federation
    rng = np.random.default_rng(seed)
    summands = [
        [words_of(rng, n_words) for _ in range(n_agents)] for _ in range(n_steps)
    ]
    totals, _ = carry(
        make_sums(n_agents, graph, degree, seed), summands, rng if shuffled else None
    )
    expected = [exact_sum(step) for step in summands]
    for learnt in totals:
        assert [total.words.tolist() for total in learnt] == expected
        assert [total.step for total in learnt] == list(range(n_steps))
        assert not any(total.fresh for total in learnt)


@pytest.mark.parametrize("graph", GRAPHS)
def test_sixty_agents_with_few_keys(graph):
    rng = np.random.default_rng(0)
    summands = [[words_of(rng, 5) for _ in range(60)]]
    totals, sent = carry(make_sums(60, graph, degree=4), summands)
    assert all(learnt[0].words.tolist() == exact_sum(summands[0]) for learnt in totals)
    for kind in (SUM_UP, SUM_DOWN, KEYS_DOWN):  # one hop each, over a tree
        assert sum(message.kind == kind for _, _, message in sent) == 59


def test_messages_follow_links_of_the_graph():
    network = make_network("random", 12, 4)
    rng = np.random.default_rng(0)
    _, sent = carry(make_sums(12, network), [[words_of(rng, 3) for _ in range(12)]])
    assert all(network.adjacency[i, j] for i, j, _ in sent)


@pytest.mark.parametrize("fill", [0, HUGE, 1 << 62])
@pytest.mark.parametrize(("graph", "degree"), [("path", 2), ("star", 7), ("random", 4)])
def test_what_crosses_a_link_is_uniform_whatever_the_data(fill, graph, degree):
    n_agents, n_words = 8, 3000
    summand = np.full(n_words, fill, dtype=np.uint64)
    _, sent = carry(make_sums(n_agents, graph, degree), [[summand] * n_agents] * 2)
    masked = [m.words for _, _, m in sent if m.kind == SUM_UP]
    assert len(masked) == 2 * (n_agents - 1)
    assert p_uniform(masked) > RARE
    parts = [p for step in (0, 1) for p in own_parts(sent, n_agents, step).values()]
    assert p_uniform(parts) > RARE
    # Each link and each agent's own part by itself, too.
    for words in [*masked, *parts]:
        assert p_uniform([words]) > RARE


def test_only_the_whole_sum_is_free_of_masks():
    """Every smaller set of agents' parts still holds masks, however it is combined."""
    n_agents, n_words = 5, 3000
    zeros = np.zeros(n_words, dtype=np.uint64)
    sums = make_sums(n_agents, "path")
    _, sent = carry(sums, [[zeros] * n_agents])
    parts = own_parts(sent, n_agents, 0)
    root = sums[0]._tree.root
    assert set(parts) == set(range(n_agents)) - {root}
    for size in range(1, n_agents):
        for some in combinations(sorted(parts), size):
            assert p_uniform([sum(parts[i] for i in some)]) > RARE


@pytest.mark.parametrize("degree", [2, 4])
def test_colluders_learn_sums_of_connected_pieces_only(degree):
    """They take off the masks that they share, and those of the others remain."""
    n_agents, n_words = 9, 3000
    zeros = np.zeros(n_words, dtype=np.uint64)
    sums = make_sums(n_agents, "complete", degree)
    told = sums[0].transcript.digest()
    _, sent = carry(sums, [[zeros] * n_agents])
    parts = own_parts(sent, n_agents, 0)
    root = sums[0]._tree.root
    # All parts but the root's crossed links: it colludes.
    peers = {i: set(sums[i]._peers(i)) for i in parts}
    cut_off = 0
    for first in parts:
        colluders = {root, first}
        for victim in set(parts) - colluders:
            known = parts[victim].copy()
            for other in peers[victim] & colluders:
                zero = np.zeros(n_words, dtype=np.uint64)
                known += sums[other]._masks.mask(zero, 0, [victim], told)
            if peers[victim] <= colluders:
                cut_off += 1
                assert not known.any()
            else:
                assert p_uniform([known]) > RARE
    # With two keys each, two colluders may stand on either side of a victim.
    assert (cut_off > 0) == (degree == 2)


def test_two_runs_send_different_words():
    zeros = np.zeros(500, dtype=np.uint64)
    words = [
        m.words
        for _ in range(2)
        for _, _, m in carry(make_sums(5, "ring"), [[zeros] * 5] * 3)[1]
        if m.kind == SUM_UP
    ]
    words = np.concatenate(words)
    assert len(np.unique(words)) == len(words)


def test_no_mask_word_is_used_twice(monkeypatch):
    """Over sums, pairs, runs, and sums that are begun anew after a dropout."""
    streams = KeyStreams(monkeypatch)
    rng = np.random.default_rng(0)
    for _ in range(2):
        sums = make_sums(5, "complete")
        summands = [[words_of(rng, 200) for _ in range(5)] for _ in range(3)]
        carry(sums, summands)
        # A fourth sum, in which agent 4 drops out.
        for one, words in zip(sums, summands[0], strict=True):
            one._over = False
            one.begin(words)
        left = sums[:4]
        boxes = {i: [] for i in range(4)}
        for one in left:
            for receiver, message in one.drop(4)[0]:
                boxes[receiver].append((one.number, message))
        learnt = {}
        while len(learnt) < 4:
            for one in left:
                arrived, boxes[one.number] = boxes[one.number], []
                letters, total = one.advance(arrived)
                if one.awaits_summand:
                    letters = letters + one.begin(summands[0][one.number])
                if total is not None:
                    learnt[one.number] = total.words.tolist()
                for receiver, message in letters:
                    boxes[receiver].append((one.number, message))
        assert set(map(tuple, learnt.values())) == {tuple(exact_sum(summands[0][:4]))}
    # Agent 4 has masked its part of the fourth sum, and the others theirs twice.
    ends = streams.check()
    # Of each pair a key for each epoch, and another place for each sum.
    assert len({key for key, _ in ends}) == 2 * (10 + 6)
    assert len({place for _, place in ends}) == 2 * (4 * 10 + 6)


def test_one_agent_sums_alone():
    [one] = make_sums(1)
    assert one.alone
    words = np.arange(4, dtype=np.uint64)
    assert one.start(words) == []
    letters, total = one.advance([])
    assert letters == []
    np.testing.assert_array_equal(total.words, words)
    assert one.n_rounds == 0


def test_the_given_words_are_left_alone():
    rng = np.random.default_rng(0)
    summands = [[words_of(rng, 5) for _ in range(4)]]
    copies = [words.copy() for words in summands[0]]
    carry(make_sums(4, "star"), summands)
    for words, copy in zip(summands[0], copies, strict=True):
        np.testing.assert_array_equal(words, copy)
