import numpy as np
import pytest
from _helpers import GRAPHS
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf._consensus.stopping import StopCount
from skppdnmf._data.graph import make_network


def run_rounds(network, stop_rounds, n_rounds):
    """Yield after each round the counters, and who has stopped by then."""
    counters = [StopCount(network.diameter, d) for d in network.degrees]
    for t in range(n_rounds):
        sent = [counter.value for counter in counters]
        for i, counter in enumerate(counters):
            for k, j in enumerate(network.neighbours[i]):
                counter.hear(k, sent[j])
            counter.update(t >= stop_rounds[i])
        yield t, counters, [t >= s for s in stop_rounds]


@st.composite
def stopping_problems(draw):
    n = draw(st.integers(1, 12))
    name = draw(st.sampled_from(GRAPHS))
    network = make_network(name, n, draw(st.integers(0, 1000)))
    times = draw(st.lists(st.integers(0, 15), min_size=n, max_size=n))
    return network, times


@given(stopping_problems())
@settings(deadline=None, max_examples=150)
def test_all_agents_learn_it_together(problem):
    network, times = problem
    expected = max(times) + network.diameter
    for t, counters, _ in run_rounds(network, times, expected + 4):
        # The last agent stops in round max(times), which is the first of the
        # diameter + 1 rounds.
        assert [c.all_stopped for c in counters] == [t >= expected] * len(counters)


def hops_of(network):
    hops = np.where(network.adjacency > 0, 1.0, np.inf)
    np.fill_diagonal(hops, 0)
    for k in range(network.n_agents):
        hops = np.minimum(hops, hops[:, [k]] + hops[[k]])
    return hops


@given(stopping_problems(), st.data())
@settings(deadline=None, max_examples=150)
def test_one_that_is_asked_is_enough(problem, data):
    """Some never stop by themselves; word of the first request reaches all."""
    network, times = problem
    n = network.n_agents
    askers = data.draw(
        st.dictionaries(st.integers(0, n - 1), st.integers(0, 15), min_size=1)
    )
    times = [t if data.draw(st.booleans()) else np.inf for t in times]
    hops = hops_of(network)
    told = [min(t + hops[a, i] for a, t in askers.items()) for i in range(n)]
    expected = max(map(min, times, told)) + network.diameter
    counters = [StopCount(network.diameter, d) for d in network.degrees]
    for t in range(int(expected) + 4):
        sent = [counter.value for counter in counters]
        for a in (a for a, when in askers.items() if when == t):
            counters[a].ask()
        for i, counter in enumerate(counters):
            for k, j in enumerate(network.neighbours[i]):
                counter.hear(k, sent[j])
            counter.update(t >= times[i])
        assert [c.all_stopped for c in counters] == [t >= expected] * n


@given(stopping_problems())
@settings(deadline=None, max_examples=20)
def test_counts_end_at_the_diameter(problem):
    """However many rounds an iteration takes, they fit into their two bytes."""
    network, times = problem
    for _, counters, _ in run_rounds(network, times, max(times) + 60):
        assert all(0 <= c.value <= network.diameter + 1 for c in counters)
    for counter in counters:
        counter.ask()
        assert counter.value < 2**16


@given(stopping_problems())
@settings(deadline=None, max_examples=60)
def test_a_count_never_reaches_beyond_those_who_have_stopped(problem):
    network, times = problem
    hops = hops_of(network)
    for _, counters, stopped in run_rounds(network, times, max(times) + 4):
        for i, counter in enumerate(counters):
            near = hops[i] < counter.value
            assert all(stopped[j] for j in np.flatnonzero(near))


@pytest.mark.parametrize("name", GRAPHS)
def test_reset_starts_again(name):
    network = make_network(name, 7, 0)
    times = [3, 0, 1, 5, 2, 0, 4]
    fresh = list(run_rounds(network, times, 20))[-1][1]
    values = [counter.value for counter in fresh]
    for counter in fresh:
        counter.reset()
        assert counter.value == 0
        assert not counter.all_stopped
    again = run_rounds_with(fresh, network, times, 20)
    assert again == values


def run_rounds_with(counters, network, stop_rounds, n_rounds):
    for t in range(n_rounds):
        sent = [counter.value for counter in counters]
        for i, counter in enumerate(counters):
            for k, j in enumerate(network.neighbours[i]):
                counter.hear(k, sent[j])
            counter.update(t >= stop_rounds[i])
    return [counter.value for counter in counters]


def test_one_agent_stops_at_once():
    counter = StopCount(0, 0)
    counter.update(False)
    assert not counter.all_stopped
    counter.update(True)
    assert counter.all_stopped
