"""Who takes part: departures in one order, the same for everybody."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf._agent import Departure, Report, Step
from skppdnmf._federation.local import run_local
from skppdnmf._federation.membership import Membership
from skppdnmf.exceptions import AgentLost, DropoutError, DropoutWarning


def check(membership, gone):
    """Members, and those that have left, are all; departures are who has left."""
    everyone = set(range(membership.n_agents))
    assert membership.present == sorted(everyone - gone)
    assert membership.gone == sorted(gone)
    assert [d.number for d in membership.departures] == list(
        range(1, len(membership.departures) + 1)
    )
    told = [agent for d in membership.departures for agent in d.agents]
    assert len(told) == len(set(told))
    assert set(told) == gone


@settings(max_examples=200)
@given(st.integers(1, 8), st.lists(st.sets(st.integers(0, 9)), max_size=8))
def test_departures_are_numbered_and_nobody_leaves_twice(n_agents, groups):
    membership = Membership(n_agents)
    gone = set()
    for group in groups:
        before = list(membership.departures)
        unknown = sorted(group - set(membership.present))
        if unknown or not group:
            with pytest.raises(ValueError, match="do not take part") as caught:
                membership.leave(group)
            assert str(unknown) in str(caught.value)
            assert membership.departures == before
        else:
            departure = membership.leave(group)
            gone |= group
            expected = Departure(len(before) + 1, tuple(sorted(group)))
            assert departure == expected
            assert membership.departures == [*before, expected]
        check(membership, gone)


def test_one_that_leaves_twice_at_the_same_time_leaves_once():
    membership = Membership(3)
    assert membership.leave([2, 0, 2]) == Departure(1, (0, 2))
    assert membership.present == [1]


@pytest.mark.parametrize("agent", [-1, 3])
def test_strangers_do_not_leave(agent):
    membership = Membership(3)
    with pytest.raises(ValueError, match=rf"agents \[{agent}\] do not take part"):
        membership.leave([0, agent])
    assert membership.present == [0, 1, 2]


def test_some_may_leave_again_after_others():
    membership = Membership(4)
    membership.leave({3})
    with pytest.raises(ValueError, match=r"agents \[3\] do not take part"):
        membership.leave({1, 3})
    assert membership.leave({1}) == Departure(2, (1,))


LAST_TURN = 6


class Mortal:
    """A fake agent that is lost in a turn, or when it is told of a departure."""

    def __init__(self, turn=0, deaf=False):
        self.turn = turn
        self.deaf = deaf
        self.turns = 0
        self.told = []

    def start(self):
        return Step([])

    def advance(self, envelopes):
        self.turns += 1
        if self.turns == self.turn:
            raise AgentLost("gone")
        report = Report(self.turns, 0, np.zeros((1, 1)), 0.0)
        return Step([], report, self.turns >= LAST_TURN)

    def depart(self, departure):
        if self.deaf:
            raise AgentLost("cannot be told")
        self.told.append(departure)
        return Step([], None, self.turns >= LAST_TURN)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, LAST_TURN + 1), st.booleans()), max_size=6))
@pytest.mark.filterwarnings("ignore::skppdnmf.exceptions.DropoutWarning")
def test_all_that_are_left_are_told_the_same(fates):
    """Some are lost at the same time, and some when they are told of others."""
    agents = [*(Mortal(*fate) for fate in fates), Mortal()]
    names = [f"agent {i}" for i in range(len(agents))]
    left = []
    outcome = run_local(
        agents, names, on_dropout="continue", check_departure=left.append
    )
    membership = outcome.membership
    check(membership, set(membership.gone))
    turns = [turn for turn, _ in fates if 0 < turn <= LAST_TURN]
    for i, (turn, deaf) in enumerate(fates):
        lost = 0 < turn <= LAST_TURN or (deaf and bool(turns))
        assert (i in membership.gone) == lost
    for i in membership.present:
        assert agents[i].told == membership.departures
        assert agents[i].turns == LAST_TURN
    for k, departure in enumerate(membership.departures):
        for i in departure.agents:
            assert agents[i].told == membership.departures[: len(agents[i].told)]
            assert len(agents[i].told) <= k
    assert [report is None for report in outcome.reports] == [
        i in membership.gone for i in range(len(agents))
    ]
    # Asked before each departure whether those that would be left may go on.
    everyone = set(range(len(agents)))
    gone = [departure.agents for departure in membership.departures]
    assert left == [
        sorted(everyone.difference(*gone[: k + 1])) for k in range(len(gone))
    ]


def test_one_that_cannot_be_told_leaves_next():
    agents = [Mortal(), Mortal(2), Mortal(deaf=True), Mortal()]
    with pytest.warns(DropoutWarning) as caught:
        outcome = run_local(agents, list("abcd"), on_dropout="continue")
    expected = [Departure(1, (1,)), Departure(2, (2,))]
    assert outcome.membership.departures == agents[0].told == agents[3].told == expected
    messages = [str(warning.message) for warning in caught]
    assert "b dropped out" in messages[0]
    assert "the other 3 agents" in messages[0]
    assert "c dropped out" in messages[1]
    assert "cannot be told" in messages[1]
    assert "the other 2 agents" in messages[1]


def test_those_that_cannot_go_on_without_say_whom_they_miss():
    class Refusing(Mortal):
        def depart(self, departure):
            raise DropoutError("too few keys")

    agents = [Mortal(2), Refusing(), Mortal(2), Mortal()]
    with (
        pytest.raises(
            DropoutError, match=r"a, c dropped out and .* cannot go on: too few keys"
        ),
        pytest.warns(DropoutWarning),
    ):
        run_local(agents, list("abcd"), on_dropout="continue")
