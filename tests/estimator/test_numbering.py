"""Agents are numbered by the roster, whatever their data: what follows from it."""

import numpy as np
import pytest
from _estimators import model
from _helpers import GRAPHS
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits

from skppdnmf._data.graph import make_network
from skppdnmf._fit import run as _run

SIZES = (18, 7, 30, 0, 12, 23)
LABELS = ["f", "b", "e", "a", "d", "c"]
SIZES_1 = (85, 1, 1, 1, 1, 1)
PROTOCOLS = ("consensus", "secure-sum")


@pytest.fixture(scope="module")
def X():
    return load_digits().data[: sum(SIZES), 10:40]


def fit_in_both_orders(name, X, seed, **parameters):
    """Fits of agents, and of the same under other numbers; who has been what."""
    order = np.random.default_rng(seed).permutation(len(SIZES))
    adjacency = make_network(name, len(SIZES), 0).adjacency
    agents = np.repeat(np.arange(len(SIZES)), SIZES)
    one = model(adjacency=adjacency, **parameters).fit(X, agents=agents)
    parameters["adjacency"] = adjacency[np.ix_(order, order)]
    other = model(**parameters).fit(X, agents=np.argsort(order)[agents])
    return one, other, order


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", GRAPHS)
def test_secure_sums_are_the_same_to_the_last_bit(X, name, seed):
    parameters = {"protocol": "secure-sum", "max_iter": 20}
    one, other, order = fit_in_both_orders(name, X, seed, **parameters)
    assert_array_equal(other.components_, one.components_)
    assert_array_equal(other.agent_components_, one.agent_components_[order])
    for column in ("exchanges", "local_error", "shared_error", "consensus_error"):
        assert_array_equal(other.history_[column], one.history_[column])


@pytest.mark.parametrize("masking", ["entrywise", "scalar"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_consensus_differs_by_its_masks(X, name, masking):
    """They follow the numbers: another numbering is as another seed."""
    one, other, order = fit_in_both_orders(name, X, 0, masking=masking, max_iter=60)
    last = other.history_["shared_error"][-1]
    assert last == pytest.approx(one.history_["shared_error"][-1], rel=0.01)
    assert other.reconstruction_err_ == pytest.approx(one.reconstruction_err_, rel=0.01)
    assert 0.2 < other.consensus_error_ / one.consensus_error_ < 5
    assert (other.n_iter_, other.n_exchanges_) == (one.n_iter_, one.n_exchanges_)
    # Everybody sends as much to everybody else as before.
    for (i, j), counts in other.traffic_["edges"].items():
        assert one.traffic_["edges"][order[i], order[j]] == counts


def headers(monkeypatch, X, agents, **parameters):
    """Settings, labels, and the headers of a fit: turn, from, to, kind and round."""
    seen, genuine = [], _run.run_local

    def spy(parties, names, **given):
        def tap(turn, envelope):
            seen.append((turn, *envelope[1:6]))

        seen.append([getattr(party, "settings", None) for party in parties])
        seen.append(names)
        return genuine(parties, names, **{**given, "tap": tap})

    with monkeypatch.context() as patch:
        patch.setattr(_run, "run_local", spy)
        fitted = model(**parameters).fit(X, agents=agents)
    return seen, fitted


def scattered(rng, sizes):
    """Samples of the agents in any order."""
    return rng.permutation(np.repeat(LABELS, sizes))


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_numbers_do_not_depend_on_the_data(monkeypatch, X, protocol, name):
    """Nor do leader, averaging plan, trees, and who shares a key with whom."""
    rng = np.random.default_rng(0)
    parameters = {"protocol": protocol, "adjacency": name, "max_iter": 9}
    expected, fitted = headers(
        monkeypatch, X, scattered(rng, [18, 7, 30, 1, 11, 23]), **parameters
    )
    assert fitted.agent_labels_ == sorted(LABELS)
    assert expected[1] == [f"agent {label!r}" for label in sorted(LABELS)]
    assert len(expected) > 100
    others = [
        (X[::-1] ** 2, scattered(rng, [18, 7, 30, 1, 11, 23])),
        (1e6 * X, scattered(rng, [1, 1, 1, 1, 1, 85])),
        (X[:40] + 1e3 * np.eye(40, 30), scattered(rng, [5, 5, 5, 5, 10, 10])),
        (np.where(rng.random(X.shape) < 0.9, 0.0, X), np.sort(scattered(rng, SIZES_1))),
    ]
    for data, agents in others:
        found, _ = headers(monkeypatch, data, agents, **parameters)
        # Later the left factor may outgrow its slots, which depends on the data.
        n = 400 if protocol == "consensus" else len(expected)
        assert found[:n] == expected[:n]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_labels_are_numbered_and_not_their_first_appearance(X, protocol):
    """Whoever has the first sample is not agent 0 for that."""
    agents = np.repeat(["c", "a", "b"], 30)
    one = model(protocol=protocol).fit(X, agents=agents)
    moved = np.random.default_rng(1).permutation(90)
    other = model(protocol=protocol).fit(X[moved], agents=agents[moved])
    assert one.agent_labels_ == other.agent_labels_ == ["a", "b", "c"]
    np.testing.assert_allclose(
        other.agent_components_, one.agent_components_, rtol=1e-4, atol=1e-6
    )
