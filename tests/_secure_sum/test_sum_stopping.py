"""Asked to stop, by one of them or by all: everybody ends with the same sum."""

import numpy as np
import pytest
from _helpers import GRAPHS, random_start, split_parts
from _sums import (
    RandomOrder,
    Reporting,
    Summing,
    exact_sum,
    make_sum_agents,
    make_sums,
    words_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf._data.graph import make_network
from skppdnmf._federation.memo import Memo
from skppdnmf.exceptions import DropoutError
from skppdnmf.exchange import SUM_UP

N_STEPS = 6
GROUPS = st.sets(st.integers(0, 5), min_size=1, max_size=2)
ASKED = st.lists(
    st.tuples(st.integers(0, 150), st.sets(st.integers(0, 5), min_size=1)),
    min_size=1,
    max_size=3,
)


class Stop:
    """Sums that are stopped: who was asked, and how many totals it had then."""

    def __init__(self, n_agents, graph, seed):
        rng = np.random.default_rng(seed)
        self.summands = [
            [words_of(rng, 4) for _ in range(n_agents)] for _ in range(N_STEPS)
        ]
        network = make_network(graph, n_agents, seed)
        sums = make_sums(n_agents, network, seed=seed)
        self.parties = [
            Summing(one, [words[i] for words in self.summands])
            for i, one in enumerate(sums)
        ]
        self.order = RandomOrder(self.parties, rng, network)
        self.sent = []
        post = self.order.post

        def note(sent):
            self.sent += [letter for _, letter in sent]
            post(sent)

        self.order.post = note
        self.asked = {}

    def run(self, leaving, asking):
        self.order.run(
            leaving,
            asking,
            ask=lambda i: self.asked.setdefault(i, len(self.parties[i].totals)),
        )

    def check(self):
        """All that are left end with the same total; return how many there were."""
        left = [self.parties[i] for i in sorted(self.order.present)]
        [n_totals] = {len(party.totals) for party in left}
        for party in left:
            assert party.begun == n_totals
            lasts = [total.last for total in party.totals]
            assert not any(lasts[:-1])
            assert lasts == [total.last for total in left[0].totals]
        assert n_totals == N_STEPS or left[0].totals[-1].last
        # Those that have left may have been a sum ahead.
        steps = [
            message.step
            for sender, message in self.sent
            if message.kind == SUM_UP and sender in self.order.present
        ]
        assert max(steps, default=0) < n_totals
        for i, n_known in self.asked.items():
            if i in self.order.present:
                # The sum in course or, if its own part was on its way, the next.
                assert n_totals <= n_known + 2
        return n_totals


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.sampled_from(GRAPHS),
    ASKED,
)
def test_whoever_is_asked_all_end_with_the_same_sum(seed, n_agents, graph, asking):
    run = Stop(n_agents, graph, seed)
    run.run([], asking)
    n_totals = run.check()
    for party in run.parties:
        for words, total in zip(run.summands, party.totals, strict=False):
            assert total.words.tolist() == exact_sum(words)
    if n_totals < N_STEPS:
        assert run.asked


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(2, 6),
    st.sampled_from(GRAPHS),
    ASKED,
    st.lists(st.tuples(st.integers(0, 150), GROUPS), min_size=1, max_size=3),
)
def test_so_do_those_that_are_left_when_others_leave(
    seed, n_agents, graph, asking, leaving
):
    run = Stop(n_agents, graph, seed)
    run.run(leaving, asking)
    run.check()
    ends = {
        tuple(tuple(total.words.tolist()) for total in run.parties[i].totals)
        for i in run.order.present
    }
    assert len(ends) == 1


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("who", [*range(5), "all"])
def test_asked_before_the_start_the_first_sum_is_the_last(graph, who):
    run = Stop(5, graph, 0)
    for i in range(5) if who == "all" else [who]:
        run.parties[i].stop()
    run.run([], [])
    assert run.check() == 1


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(GRAPHS),
    ASKED,
    st.lists(st.tuples(st.integers(0, 120), GROUPS), max_size=2),
    st.booleans(),
)
def test_agents_that_are_asked_report_the_same_last_iteration(
    seed, graph, asking, leaving, shared
):
    parts = split_parts((4, 1, 3, 0, 5), seed=seed)
    starts = np.stack([random_start(2, 6, seed + s) for s in range(2)])
    given = {"compute": Memo()} if shared else {}
    network = make_network(graph, len(parts), seed)
    agents = make_sum_agents(parts, starts, network, max_iter=8, **given)
    parties = [Reporting(agent) for agent in agents]
    run = RandomOrder(parties, np.random.default_rng(seed), network)
    asked = {}
    refused = None
    try:
        run.run(leaving, asking, lambda i: asked.setdefault(i, len(parties[i].reports)))
    except DropoutError as error:
        refused = str(error)
    if refused is not None:
        # Several were lost, one of whom may know the total of the setup.
        assert "dropped out in the first sum" in refused
        assert not any(parties[i].reports for i in run.present)
        assert len(set(range(len(parts))) - run.present) > 1
        return
    left = [parties[i].reports for i in sorted(run.present)]
    [n_reports] = {len(reports) for reports in left}
    for reports in left:
        assert [report.iteration for report in reports] == list(range(1, n_reports + 1))
        finals = [report.final for report in reports]
        assert finals == [False] * (n_reports - 1) + [True] * (n_reports > 0)
        for mine, theirs in zip(reports, left[0], strict=True):
            np.testing.assert_array_equal(mine.H, theirs.H)
    for i, n_known in asked.items():
        # The setup is a sum without a report.
        if i in run.present:
            assert n_reports <= n_known + 2
    assert n_reports == 8 or asked
