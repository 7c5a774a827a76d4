"""Counts are those of the real fit; long fits are announced."""

import os
import warnings

import networkx as nx
import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from skppdnmf import (
    CostWarning,
    InsecureKeyWarning,
    PrivacyWarning,
    PrivateDistributedNMF,
    estimate_cost,
)


@pytest.fixture(scope="module")
def X():
    return load_digits().data[:60, 20:40]


@pytest.mark.parametrize("encryption", [None, "simulated"])
@pytest.mark.parametrize("masking", ["entrywise", "scalar"])
@pytest.mark.parametrize("key_size", [64, 256, 2048])
@pytest.mark.parametrize("adjacency", ["path", "random", "complete", nx.star_graph(3)])
@pytest.mark.parametrize("penalty_scaling", ["data", "absolute"])
def test_counts_are_those_of_the_fit(
    X, encryption, masking, key_size, adjacency, penalty_scaling
):
    estimator = PrivateDistributedNMF(
        3,
        adjacency=adjacency,
        partition=4,
        encryption=encryption,
        masking=masking,
        key_size=key_size,
        penalty_scaling=penalty_scaling,
        max_iter=2,
        max_admm_iter=3,
        tol=0,
        random_state=0,
    )
    estimate = estimate_cost(estimator, 20)
    fitted = estimator.fit(X / 16)
    assert estimate.exchanges == fitted.n_exchanges_ == 6
    assert estimate.ciphertexts == fitted.traffic_["ciphertexts"]
    if penalty_scaling == "data":  # else the left factor may outgrow its slots
        assert estimate.bytes == fitted.traffic_["bytes"]
    assert estimate.seconds == 0


def test_one_agent_costs_nothing(X):
    estimator = PrivateDistributedNMF(3, partition=1, max_iter=2, tol=0)
    estimate = estimate_cost(estimator, 20)
    assert (estimate.exchanges, estimate.ciphertexts, estimate.bytes) == (0, 0, 0)
    assert estimator.fit(X).n_exchanges_ == 0


def test_components_and_start():
    start = np.ones((7, 20))
    estimator = PrivateDistributedNMF(init=start, encryption="simulated")
    same = PrivateDistributedNMF(7, init="ones", encryption="simulated", random_state=0)
    estimator.set_params(random_state=0)
    assert estimate_cost(estimator, 20) == estimate_cost(same, 20)
    other = PrivateDistributedNMF(init="ones", encryption="simulated", random_state=0)
    assert estimate_cost(other, 20, n_components=7) == estimate_cost(same, 20)
    with pytest.raises(ValueError, match="n_features=0"):
        estimate_cost(same, 0)


def test_seconds_follow_the_work():
    estimator = PrivateDistributedNMF(3, key_size=256, max_iter=10, random_state=0)
    short = estimate_cost(estimator, 20)
    longer = estimate_cost(estimator.set_params(max_iter=100), 20)
    assert short.seconds > 0
    # Ten times the exchanges, the same keys and averaging; timings are noisy.
    assert 2 < longer.seconds / short.seconds < 20
    assert longer.exponentiations > 9 * short.exponentiations


def test_calibration_is_quick():
    estimator = PrivateDistributedNMF(10, partition=5, random_state=0)
    before = os.times()
    estimate = estimate_cost(estimator, 64)
    after = os.times()
    assert after.user + after.system - before.user - before.system < 2.0
    assert estimate.seconds > 10


def test_long_fits_are_announced_before_they_start(X, monkeypatch):
    def stop(*args, **kwargs):
        raise RuntimeError("started")

    monkeypatch.setattr("skppdnmf._consensus.protocol.make_agents", stop)
    estimator = PrivateDistributedNMF(20, partition=20, adjacency="complete")
    with (
        pytest.warns(CostWarning, match=r"expected to take \d+ minutes.*simulated"),
        pytest.raises(RuntimeError, match="started"),
    ):
        estimator.fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)
        for cheap in ({"encryption": "simulated"}, {"max_iter": 1, "n_components": 1}):
            short = PrivateDistributedNMF(20, partition=4).set_params(**cheap)
            with pytest.raises(RuntimeError, match="started"):
                short.fit(X)


def test_short_fits_are_not_timed_beforehand(X, monkeypatch):
    def fail(layout, key_scheme):
        raise AssertionError("calibrated")

    monkeypatch.setattr("skppdnmf._consensus.cost.calibrate", fail)
    short = PrivateDistributedNMF(
        2, partition=3, key_size=64, max_iter=2, max_admm_iter=1, tol=0, random_state=0
    )
    expected = short.set_params(encryption="simulated").fit(X).components_
    with pytest.warns(InsecureKeyWarning):
        short.set_params(encryption="paillier", n_jobs=2).fit(X)
    np.testing.assert_array_equal(short.components_, expected)
    # An estimate of a fit without ciphertexts is not timed, either.
    for encryption in ("simulated", None):
        estimator = PrivateDistributedNMF(20, encryption=encryption, random_state=0)
        assert estimate_cost(estimator, 500).seconds == 0
    with pytest.raises(AssertionError, match="calibrated"):
        estimate_cost(PrivateDistributedNMF(2, random_state=0), 5)


@pytest.mark.parametrize(
    ("parameters", "n_features", "message"),
    [
        ({"partition": "5"}, 6, "partition"),
        ({"max_iter": -1}, 6, "max_iter"),
        ({"mu": -1}, 6, "mu"),
        ({"n_components": 2.5}, 6, "n_components"),
        ({"partition": 3, "adjacency": 1 - np.eye(2)}, 6, "2 agents"),
        ({"init": np.ones((2, 9))}, 6, r"init has shape \(2, 9\)"),
        ({"init": -np.ones((2, 6))}, 6, "Negative"),
        ({}, 6.5, "n_features=6.5"),
    ],
)
def test_bad_input_is_refused_as_by_fit(parameters, n_features, message):
    estimator = PrivateDistributedNMF(encryption="simulated").set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        estimate_cost(estimator, n_features)


@pytest.mark.parametrize("n_components", [None, 3])
@pytest.mark.parametrize(
    ("other", "name"), [(NMF(2), "NMF"), (None, "NoneType"), ("fit", "str")]
)
def test_other_estimators_are_refused_by_name(other, name, n_components):
    with pytest.raises(
        TypeError, match=f"expected a PrivateDistributedNMF, got a {name}$"
    ):
        estimate_cost(other, 5, n_components)


@pytest.mark.parametrize("partition", [np.int64(5), [10, 20, 30], [0.5, 0.25, 0.25]])
def test_partitions_as_in_fit(partition):
    estimator = PrivateDistributedNMF(2, partition=partition, encryption="simulated")
    n_agents = 5 if isinstance(partition, np.int64) else 3
    same = PrivateDistributedNMF(2, partition=n_agents, encryption="simulated")
    for one in (estimator, same):
        one.set_params(random_state=0)
    assert estimate_cost(estimator, 6) == estimate_cost(same, 6)
