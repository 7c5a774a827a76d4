"""The secure sum when agents drop out and the news of it travels as it likes."""

import numpy as np
import pytest
from _sums import carry, exact_sum, make_sums, words_of
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf._data.graph import make_network
from skppdnmf._secure_sum.tree import SpanningTrees
from skppdnmf.exceptions import DropoutError
from skppdnmf.exchange import SecureSum


class Dropouts:
    """Sums over a graph in which agents drop out; news of it travels as it likes.

    All agents are told of the dropouts in the same order, each at its own time.
    """

    def __init__(self, n_agents, graph, seed, n_steps):
        self.rng = np.random.default_rng(seed)
        self.sums = make_sums(n_agents, graph, seed=seed)
        self.summands = [
            [words_of(self.rng, 4) for _ in range(n_agents)] for _ in range(n_steps)
        ]
        self.totals = [[] for _ in self.sums]
        self.boxes = [[] for _ in self.sums]
        self.present = set(range(n_agents))
        self.told = [0] * n_agents
        self.gone = []

    def post(self, i, letters):
        for receiver, message in letters:
            self.boxes[receiver].append((i, message))

    def take(self, i, letters, total):
        self.post(i, letters)
        while total is not None:
            self.totals[i].append(total)
            step = len(self.totals[i])
            if step == len(self.summands):
                self.sums[i].end()
                return
            self.post(i, self.sums[i].begin(self.summands[step][i]))
            letters, total = self.sums[i].advance([])
            self.post(i, letters)

    def move(self):
        i = int(self.rng.choice(sorted(self.present)))
        if self.told[i] < len(self.gone) and self.rng.random() < 0.4:
            self.told[i] += 1
            self.take(i, *self.sums[i].drop(*self.gone[self.told[i] - 1]))
            return
        order = self.rng.permutation(len(self.boxes[i]))
        n_taken = int(self.rng.integers(len(order) + 1))
        arrived = [self.boxes[i][k] for k in order[:n_taken]]
        self.boxes[i] = [self.boxes[i][k] for k in sorted(order[n_taken:])]
        self.take(i, *self.sums[i].advance(arrived))

    def run(self, moments):
        """Agents drop out at these moves; those that may, in a connected rest."""
        for i, one in enumerate(self.sums):
            self.post(i, one.start(self.summands[0][i]))
        moves = 0
        while not self.over():
            for group in moments.get(moves, []):
                left = self.present - set(group)
                if left:
                    self.present = left
                    self.gone.append(group)
            self.move()
            moves += 1
            assert moves < 50_000, "no agent can go on"

    def over(self):
        return all(
            len(self.totals[i]) == len(self.summands) and self.told[i] == len(self.gone)
            for i in self.present
        )


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(2, 6),
    st.lists(
        st.tuples(
            st.integers(0, 150), st.sets(st.integers(0, 5), min_size=1, max_size=2)
        ),
        max_size=3,
    ),
)
def test_dropouts_at_any_moment_leave_one_exact_total_of_each_sum(
    seed, n_agents, drops
):
    run = Dropouts(n_agents, "complete", seed, n_steps=4)
    moments = {}
    alive = set(range(n_agents))
    for moment, group in sorted(drops, key=lambda drop: drop[0]):
        group = sorted(group & alive)
        if group and len(alive) > len(group):
            alive -= set(group)
            moments.setdefault(moment, []).append(group)
    run.run(moments)
    # The sets over which a total may have been formed, in order.
    everyone = set(range(n_agents))
    sets = [everyone.difference(*run.gone[:k]) for k in range(len(run.gone) + 1)]
    ends = set()
    for i in run.present:
        epoch = 0
        for step, total in enumerate(run.totals[i]):
            assert total.step == step
            found = [
                k
                for k in range(epoch, len(sets))
                if exact_sum([run.summands[step][j] for j in sets[k]])
                == total.words.tolist()
            ]
            assert found, "a total of no set, or of more agents than the one before"
            # Only the first over another set says so, but for the first of all.
            assert total.fresh == (found[0] > epoch and step > 0)
            epoch = found[0]
        ends.add(tuple(tuple(total.words.tolist()) for total in run.totals[i]))
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
