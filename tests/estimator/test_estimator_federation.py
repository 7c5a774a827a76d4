"""Who holds which samples, and who talks to whom: partition, agents, graph."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from _estimators import model
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits

from skppdnmf import stack_parts


@pytest.fixture(scope="module")
def X():
    return load_digits().data[:120, 10:40]


# Partition -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partition", "sizes"),
    [
        (None, [30, 30, 30, 30]),
        (1, [120]),
        (2, [60, 60]),
        (7, [18, 17, 17, 17, 17, 17, 17]),
        ([100, 15, 5], [100, 15, 5]),
        ([0.5, 0.3, 0.2], [60, 36, 24]),
    ],
)
def test_partition(X, partition, sizes):
    fitted = model(partition=partition).fit(X)
    assert_array_equal(np.bincount(fitted.sample_agents_), sizes)
    assert len(fitted.agent_labels_) == len(sizes)


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        (121, "partition=121 exceeds n_samples=120"),
        (0, "partition=0"),
        ([100, 10], "sum to 110"),
        ([0.5, 0.4], "sum to 0.9"),
        ("four", "four"),
    ],
)
def test_wrong_partition(X, partition, message):
    with pytest.raises(ValueError, match=message):
        model(partition=partition).fit(X)


def test_few_samples_make_few_agents(X):
    assert model(2).fit(X[:3]).agent_labels_ == [0, 1, 2]


def test_agents_override_the_partition(X):
    labels = np.array(["north", "south", "west"])[np.arange(120) % 3]
    fitted = model(partition=7).fit(X, agents=labels)
    assert fitted.agent_labels_ == ["north", "south", "west"]
    assert_array_equal(fitted.sample_agents_, np.arange(120) % 3)
    assert ("north", "south") in fitted.traffic_["edges"]


def test_agents_of_a_named_graph_and_a_relay(X):
    graph = nx.path_graph(["a", "b", "c"])
    fitted = model(adjacency=graph).fit(X, agents=["a"] * 70 + ["c"] * 50)
    assert fitted.agent_labels_ == ["a", "b", "c"]
    assert_array_equal(np.bincount(fitted.sample_agents_), [70, 0, 50])
    assert fitted.consensus_error_ < 0.2
    frame = nx.to_pandas_adjacency(graph)
    again = model(adjacency=frame).fit(X, agents=["a"] * 70 + ["c"] * 50)
    assert_array_equal(again.components_, fitted.components_)
    with pytest.raises(ValueError, match="'z'"):
        model(adjacency=graph).fit(X, agents=["a"] * 70 + ["z"] * 50)


def test_wrong_length_of_agents(X):
    with pytest.raises(ValueError, match="119"):
        model().fit(X, agents=np.zeros(119))


def test_parts_are_agents(X):
    parts = [X[:50], X[50:90], X[90:]]
    fitted = model().fit(parts)
    stacked, agents = stack_parts(parts)
    same = model().fit(stacked, agents=agents)
    assert_array_equal(fitted.components_, same.components_)
    assert_array_equal(fitted.transform(parts), same.transform(X))
    assert fitted.score(parts) == same.score(X)
    sparse_parts = tuple(sparse.csr_array(part) for part in parts)
    assert_allclose(
        model().fit(sparse_parts).components_, same.components_, rtol=1e-3, atol=1e-4
    )
    frames = [pd.DataFrame(p, columns=[f"f{k}" for k in range(30)]) for p in parts]
    named = model().fit(frames)
    assert list(named.feature_names_in_[:2]) == ["f0", "f1"]
    assert_array_equal(named.components_, same.components_)
    with pytest.raises(ValueError, match="agents is given although X is a list"):
        model().fit(parts, agents=agents)


def test_a_part_without_rows_is_a_relay(X):
    fitted = model(adjacency="path").fit([X[:50], X[:0], X[50:]])
    assert len(fitted.agent_labels_) == 3
    assert_array_equal(np.bincount(fitted.sample_agents_), [50, 0, 70])


@pytest.mark.parametrize("odd", [None, [[1.0]], np.ones(30)])
def test_a_bad_part_is_named(X, odd):
    with pytest.raises(ValueError, match=r"parts must be 2-D; these are not: 1 \("):
        model(2).fit([X, odd])


# Graph ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["random", "ring", "complete", "star", "path"])
@pytest.mark.parametrize("n_agents", [1, 2, 3, 6])
def test_generated_graphs(X, kind, n_agents):
    fitted = model(partition=n_agents, adjacency=kind).fit(X)
    assert fitted.adjacency_.shape == (n_agents, n_agents)
    assert np.isfinite(fitted.components_).all()


@pytest.mark.parametrize(
    "convert", [np.array, sparse.csr_array, nx.from_numpy_array, np.ndarray.tolist]
)
def test_explicit_graphs(X, convert):
    ring = np.roll(np.eye(4, dtype=int), 1, axis=1)
    ring = ring + ring.T
    fitted = model(adjacency=convert(ring)).fit(X)
    assert_array_equal(fitted.adjacency_, ring)
    reference = model(adjacency="ring").fit(X)
    assert_array_equal(fitted.components_, reference.components_)


@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        (np.ones((3, 4)), "square"),
        (np.triu(np.ones((4, 4)), 1), "symmetric"),
        (np.ones((4, 4)), "self-loop"),
        (2.0 - 2.0 * np.eye(4), "2"),
        (-(1.0 - np.eye(4)), "-1"),
        (np.kron(np.eye(2), 1 - np.eye(2)), "connected"),
        (np.pad(1 - np.eye(3), (0, 1)), "3"),
        (1 - np.eye(5), "5"),
        ("torus", "torus"),
    ],
)
def test_wrong_graphs(X, adjacency, message):
    with pytest.raises(ValueError, match=message):
        model(partition=4, adjacency=adjacency).fit(X)
