"""The secure sum when agents drop out and the news of it travels as it likes."""

import numpy as np
import pytest
from _helpers import GRAPHS
from _sums import RandomOrder, Summing, carry, exact_sum, make_sums, words_of
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf._data.graph import make_network
from skppdnmf._secure_sum.tree import SpanningTrees
from skppdnmf.exceptions import DropoutError
from skppdnmf.exchange import SecureSum


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(2, 8),
    st.sampled_from(GRAPHS),
    st.lists(
        st.tuples(
            st.integers(0, 200), st.sets(st.integers(0, 7), min_size=1, max_size=2)
        ),
        max_size=3,
    ),
)
def test_dropouts_at_any_moment_leave_one_exact_total_of_each_sum(
    seed, n_agents, graph, drops
):
    rng = np.random.default_rng(seed)
    summands = [[words_of(rng, 4) for _ in range(n_agents)] for _ in range(4)]
    network = make_network(graph, n_agents, seed)
    sums = make_sums(n_agents, network, seed=seed)
    parties = [Summing(one, [s[i] for s in summands]) for i, one in enumerate(sums)]
    run = RandomOrder(parties, rng, network)
    run.run(drops)
    # The sets over which a total may have been formed, in order.
    everyone = set(range(n_agents))
    gone = [departure.agents for departure in run.departures]
    sets = [everyone.difference(*gone[:k]) for k in range(len(gone) + 1)]
    ends = set()
    for i in run.present:
        epoch = 0
        assert len(parties[i].totals) == 4
        for step, total in enumerate(parties[i].totals):
            assert total.step == step
            found = [
                k
                for k in range(epoch, len(sets))
                if exact_sum([summands[step][j] for j in sets[k]])
                == total.words.tolist()
            ]
            assert found, "a total of no set, or of more agents than the one before"
            # Only the first over another set says so, but for the first of all.
            assert total.fresh == (found[0] > epoch and step > 0)
            epoch = found[0]
        ends.add(tuple(tuple(total.words.tolist()) for total in parties[i].totals))
    assert len(ends) == 1, "two totals of the same summands"


def test_a_dropout_that_parts_the_others_is_refused():
    sums = make_sums(3, "path")
    with pytest.raises(DropoutError, match="not connected"):
        sums[0].drop(1)


def test_two_at_the_end_of_a_path_drop_out_together():
    """One after the other they would part the third from the rest."""
    sums = make_sums(5, "path")
    zeros = np.zeros(2, dtype=np.uint64)
    for one in sums:
        one.start(zeros)
    for i in (2, 3, 4):
        sums[i].drop(1, 0)
        assert set(sums[i]._tree.children) == {2, 3, 4}


def test_too_few_keys_among_those_that_are_left():
    network = make_network("complete", 6)
    trees = SpanningTrees(network)
    # Two triangles of keys, joined through agents 2 and 3.
    peers = [[1, 2], [0, 2], [0, 1, 3], [2, 4, 5], [3, 5], [3, 4]]
    keys = [np.array(p) for p in peers]
    sums = [SecureSum(i, f"agent {i}", trees, keys) for i in range(6)]
    zeros = np.zeros(2, dtype=np.uint64)
    totals, _ = carry(sums, [[zeros] * 6])
    assert not any(learnt[0].words.any() for learnt in totals)
    with pytest.raises(DropoutError, match="5 agents that are left share too few keys"):
        sums[0].drop(2)
