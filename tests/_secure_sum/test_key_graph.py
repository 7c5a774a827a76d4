"""Key graphs: shape, connectivity, and the degree that withstands colluders."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf import PrivateDistributedNMF
from skppdnmf._secure_sum.key_graph import key_graph_of
from skppdnmf.exchange import (
    ALL_PAIRS,
    PairwiseMasks,
    key_degree,
    keys_connected,
    make_key_graph,
)


def as_sets(graph, without=()):
    gone = set(without)
    return {
        i: {int(j) for j in peers} - gone
        for i, peers in enumerate(graph)
        if i not in gone
    }


def longest_run(order, colluders):
    """Colluders side by side on the circle."""
    n_agents = len(order)
    run = longest = 0
    for place in range(2 * n_agents):
        run = run + 1 if order[place % n_agents] in colluders else 0
        longest = max(longest, run)
    return min(longest, n_agents)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 70), st.data())
def test_graph_is_regular_symmetric_and_connected(n_agents, data):
    degree = data.draw(st.integers(min(2, n_agents - 1), n_agents - 1))
    graph = make_key_graph(n_agents, degree, np.random.default_rng(n_agents))
    expected = min(n_agents - 1, degree + degree % 2)
    if expected + 1 >= n_agents:
        expected = n_agents - 1
    peers = as_sets(graph)
    for i, mine in enumerate(graph):
        assert len(mine) == expected
        assert (np.diff(mine) > 0).all()
        assert i not in peers[i]
        assert all(i in peers[j] for j in peers[i])
    assert keys_connected(peers)


def test_order_on_the_circle_is_drawn():
    graphs = [
        make_key_graph(40, 4, np.random.default_rng(seed))[0].tolist()
        for seed in range(20)
    ]
    assert len({tuple(graph) for graph in graphs}) > 15


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 70), st.integers(0, 2**31 - 2), st.data())
def test_the_graph_of_a_run_follows_from_its_public_seed(n_agents, seed, data):
    degree = data.draw(st.integers(min(2, n_agents - 1), n_agents - 1))
    one = as_sets(key_graph_of(n_agents, degree, seed))
    assert as_sets(key_graph_of(n_agents, degree, seed)) == one
    assert keys_connected(one)
    assert all(i in one[j] for i in one for j in one[i])
    sizes = {len(peers) for peers in one.values()}
    assert len(sizes) == 1
    assert min(sizes) >= degree


def test_another_seed_is_another_graph():
    graphs = {
        tuple(tuple(sorted(peers)) for peers in as_sets(graph).values())
        for graph in (key_graph_of(40, 4, seed) for seed in range(20))
    }
    assert len(graphs) == 20


@pytest.mark.parametrize(("n_agents", "degree"), [(3, 1), (10, 10), (10, 1), (5, 0)])
def test_degree_out_of_range_is_refused(n_agents, degree):
    with pytest.raises(ValueError, match=f"key_degree={degree} .*{n_agents - 1}"):
        make_key_graph(n_agents, degree, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_agents": 0}, "n_agents=0"),
        ({"n_agents": 60, "colluding": 1.0}, "colluding=1.0"),
        ({"n_agents": 60, "colluding": 0.0}, "colluding=0.0"),
        ({"n_agents": 60, "failure_bits": 0}, "failure_bits=0"),
    ],
)
def test_key_degree_refuses_what_has_no_answer(given, message):
    with pytest.raises(ValueError, match=message):
        key_degree(**given)


@pytest.mark.parametrize("key_degree", [0, -2, 2.5, "all"])
def test_estimator_refuses_what_is_no_degree(key_degree):
    estimator = PrivateDistributedNMF(
        2, partition=4, protocol="secure-sum", key_degree=key_degree
    )
    with pytest.raises(ValueError, match="key_degree"):
        estimator.fit(np.ones((8, 3)))


@pytest.mark.parametrize("key_degree", [1, 4, 100])
def test_estimator_names_the_degrees_that_fit(key_degree):
    estimator = PrivateDistributedNMF(
        2, partition=4, protocol="secure-sum", key_degree=key_degree
    )
    with pytest.raises(ValueError, match=f"key_degree={key_degree} .* 2 .*3"):
        estimator.fit(np.ones((8, 3)))


@pytest.mark.parametrize("n_agents", [51, 60, 200, 1000, 10**6])
@pytest.mark.parametrize("colluding", [0.1, 1 / 3, 0.6])
@pytest.mark.parametrize("failure_bits", [3, 40])
def test_degree_is_the_least_that_the_bound_allows(n_agents, colluding, failure_bits):
    degree = key_degree(n_agents, colluding, failure_bits)
    if degree == n_agents - 1:
        return
    assert degree % 2 == 0
    at = n_agents * colluding ** (degree // 2)
    below = n_agents * colluding ** (degree // 2 - 1)
    assert at <= 2.0**-failure_bits < below


def test_up_to_fifty_all_pairs():
    assert [key_degree(n) for n in (1, 2, 3, ALL_PAIRS)] == [0, 1, 2, ALL_PAIRS - 1]


def test_only_a_run_of_colluders_cuts_the_others_off():
    """All 792 sets of five colluders among twelve agents, each keyed with four."""
    graph = make_key_graph(12, 4, np.random.default_rng(3))
    order = [0]
    # The two next on either side are shared with three common peers.
    while len(order) < 12:
        peers = [int(j) for j in graph[order[-1]] if j not in order]
        order.append(
            max(peers, key=lambda j: np.isin(graph[j], graph[order[-1]]).sum())
        )
    cut = 0
    for chosen in combinations(range(12), 5):
        if not keys_connected(as_sets(graph, chosen)):
            cut += 1
            assert longest_run(order, set(chosen)) >= 2
    assert cut > 0


@pytest.mark.parametrize("failure_bits", [1, 3, 5])
def test_colluders_cut_others_off_no_more_often_than_the_bound(failure_bits):
    n_agents, colluding, trials = 60, 1 / 3, 400
    degree = key_degree(n_agents, colluding, failure_bits)
    rng = np.random.default_rng(failure_bits)
    failures = {degree: 0, 4: 0}
    for _ in range(trials):
        colluders = rng.choice(n_agents, n_agents // 3, replace=False)
        for tried in failures:
            graph = make_key_graph(n_agents, tried, rng)
            failures[tried] += not keys_connected(as_sets(graph, colluders))
    # Three standard deviations above the bound; a low degree fails far more often.
    bound = 2.0**-failure_bits
    assert failures[degree] <= trials * bound + 3 * np.sqrt(trials * bound)
    assert failures[4] > trials / 2


def test_those_with_whom_one_shares_keys_isolate_it():
    """A third chosen before the graph is drawn cannot; 64 chosen afterwards can."""
    graph = key_graph_of(1000, key_degree(1000), seed=5)
    peers = graph[17].tolist()
    assert len(peers) == 64
    assert not keys_connected(as_sets(graph, peers))
    before = np.random.default_rng(0).choice(1000, 333, replace=False)
    assert keys_connected(as_sets(graph, before))


def test_two_that_collude_on_a_ring_of_keys_read_the_sum_of_those_between():
    graph = make_key_graph(6, 2, np.random.default_rng(0))
    order = [0, int(graph[0][0])]
    while len(order) < 6:
        order += [int(j) for j in graph[order[-1]] if j != order[-2]]
    left, one, other, right = order[:4]
    masks = [PairwiseMasks(i) for i in range(6)]
    for i, mine in enumerate(masks):
        mine.agree({int(j): masks[j].public_key for j in graph[i]})
    words = np.arange(12, dtype=np.uint64).reshape(6, 2)
    sent = [masks[i].mask(words[i], 3, graph[i].tolist()) for i in range(6)]
    # They know the streams that they share with those at the ends.
    zeros = np.zeros(2, dtype=np.uint64)
    known = masks[left].mask(zeros, 3, [one]) + masks[right].mask(zeros, 3, [other])
    found = sent[one] + sent[other] + known
    assert found.tolist() == (words[one] + words[other]).tolist()
    # With all pairs, or another graph in which the others hang together, they do not.
    assert not keys_connected(as_sets(graph, [left, right]))
    assert keys_connected(as_sets(make_key_graph(6, 5, None), [left, right]))


def test_keys_connected_sees_pieces():
    assert keys_connected({})
    assert keys_connected({3: set()})
    assert keys_connected({0: {1}, 1: {0, 2}, 2: {1}})
    assert not keys_connected({0: {1}, 1: {0}, 2: {3}, 3: {2}})
    # Keys shared with those that are gone connect nobody.
    assert not keys_connected({0: {5}, 1: {5}})
