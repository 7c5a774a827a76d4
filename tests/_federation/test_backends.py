"""The result does not depend on who runs the agents, nor on how they are numbered."""

import warnings
from collections import Counter
from dataclasses import replace
from functools import partial

import joblib
import numpy as np
import pytest
from _helpers import (
    RUN,
    assert_same_reports,
    drive,
    make_agents,
    random_start,
    split_parts,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF
from skppdnmf._consensus.agent import ConsensusAgent
from skppdnmf.exceptions import InsecureKeyWarning
from skppdnmf.exchange import MaskStream, SimulatedCipher


@pytest.fixture(scope="module")
def X():
    return load_digits().data[:200]


def model(**parameters):
    defaults = {
        "n_components": 4,
        "partition": 5,
        "encryption": "simulated",
        "max_iter": 3,
        "tol": 0,
        "random_state": 0,
    }
    return PrivateDistributedNMF(**{**defaults, **parameters})


def assert_same(first, second):
    assert_array_equal(first.components_, second.components_)
    assert_array_equal(first.agent_components_, second.agent_components_)
    assert first.traffic_ == second.traffic_
    for name in ("local_error", "shared_error", "consensus_error", "bytes"):
        assert_array_equal(first.history_[name], second.history_[name])


@pytest.mark.parametrize("encryption", [None, "simulated"])
@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_threads(X, encryption, n_jobs):
    one = model(encryption=encryption).fit(X)
    assert_same(model(encryption=encryption, n_jobs=n_jobs).fit(X), one)


@pytest.mark.parametrize("encryption", [None, "simulated"])
def test_loky(X, encryption):
    one = model(encryption=encryption).fit(X)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert_same(model(encryption=encryption).fit(X), one)


def test_loky_with_paillier(X):
    parameters = {"encryption": "paillier", "key_size": 256, "max_iter": 1}
    one = model(max_iter=1, key_size=256).fit(X[:, 20:40])
    with pytest.warns(InsecureKeyWarning), joblib.parallel_config("loky", n_jobs=2):
        assert_same(model(**parameters).fit(X[:, 20:40]), one)


@pytest.mark.journey
def test_dask(X):
    distributed = pytest.importorskip("distributed")
    one = model(max_iter=2).fit(X)
    with warnings.catch_warnings():
        # The cluster's own machinery warns, which is not ours to judge.
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
            ) as cluster,
            distributed.Client(cluster),
            joblib.parallel_config(backend="dask"),
        ):
            other = model(max_iter=2).fit(X)
    assert_same(other, one)


@pytest.mark.parametrize("masking", ["entrywise", "scalar"])
@pytest.mark.parametrize("adjacency", ["path", "ring", "star", "random"])
@pytest.mark.parametrize("key_size", [256, 512])
def test_paillier_equals_simulated_bit_for_bit(X, masking, adjacency, key_size):
    parameters = {
        "n_components": 2,
        "partition": 4,
        "masking": masking,
        "adjacency": adjacency,
        "key_size": key_size,
        "max_iter": 1,
        "max_admm_iter": 3,
    }
    part = X[:40, 30:40]
    simulated = model(**parameters).fit(part)
    with pytest.warns(InsecureKeyWarning):
        encrypted = model(**parameters, encryption="paillier").fit(part)
    assert_same(encrypted, simulated)


@pytest.mark.parametrize("masking", ["entrywise", "scalar"])
@pytest.mark.parametrize("key_size", [1024, 2048])
def test_paillier_equals_simulated_under_long_keys(X, masking, key_size):
    parameters = {
        "n_components": 2,
        "partition": 2,
        "masking": masking,
        "key_size": key_size,
        "max_iter": 1,
        "max_admm_iter": 2,
    }
    part = X[:40, 30:36]
    simulated = model(**parameters).fit(part)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureKeyWarning)
        encrypted = model(**parameters, encryption="paillier", n_jobs=2).fit(part)
    assert_same(encrypted, simulated)


def renumbered(agents, new, settings):
    """The agents under other numbers, each with the masks and the order it had."""
    old = np.argsort(new)
    names = [agents[k].name for k in old]
    return [
        ConsensusAgent(
            number,
            names,
            agents[k].factors.X,
            agents[k].factors.left.U,
            new[agents[k].neighbours],
            [len(agents[j].neighbours) for j in agents[k].neighbours],
            replace(settings, leader=int(new[settings.leader])),
            partial(SimulatedCipher, settings.key_size),
            MaskStream.from_seed(np.random.SeedSequence([0, int(k)])),
            RUN,
        )
        for number, k in enumerate(old)
    ]


@pytest.mark.parametrize("sizes", [(9, 5, 4, 2, 1), (3, 3, 0, 6, 0), (0, 4, 4, 0, 4)])
@pytest.mark.parametrize("graph", ["path", "random", "star"])
def test_numbers_have_no_effect_but_through_masks(graph, sizes):
    """Relays and copies of the same samples included."""
    parts = split_parts(sizes)
    start = random_start(3, 6)
    make = partial(make_agents, graph, parts, start, "simulated", observed=False)
    reports, sent = drive(make())
    counts = Counter((e.sender, e.receiver, e.kind, e.round) for e in sent)
    for seed in range(3):
        new = np.random.default_rng(seed).permutation(len(parts))
        agents = make()
        others, other_sent = drive(renumbered(agents, new, agents[0].settings))
        assert_same_reports([others[k] for k in new], reports)
        assert counts == Counter(
            (*np.argsort(new)[[e.sender, e.receiver]], e.kind, e.round)
            for e in other_sent
        )


@pytest.mark.parametrize("cuts", [(30, 30, 60), (60, 0, 0, 60), (60, 0, 0, 0, 60)])
def test_numbering_has_no_effect_on_the_secure_sum(X, cuts):
    """Relays, and copies of the same samples, on a ring."""
    n = len(cuts) + 1
    parts = [X[:30], *(X[:size] for size in cuts)]
    ring = np.roll(np.eye(n), 1, axis=1)
    ring = np.maximum(ring, ring.T)
    one = model(adjacency=ring, protocol="secure-sum").fit(parts)
    for seed in range(3):
        old = np.random.default_rng(seed).permutation(n)
        other = model(adjacency=ring[np.ix_(old, old)], protocol="secure-sum")
        other.fit([parts[k] for k in old])
        assert_array_equal(other.components_, one.components_)


def test_order_of_parts_has_no_effect_on_the_secure_sum(X):
    parts = [X[:80], X[80:130], X[130:]]
    one = model(adjacency="complete", protocol="secure-sum").fit(parts)
    other = model(adjacency="complete", protocol="secure-sum")
    other.fit([parts[2], parts[0], parts[1]])
    assert_array_equal(other.components_, one.components_)


@pytest.mark.parametrize("scale", [1e-3, 1e3, 2.0**-60, 1e30])
@pytest.mark.parametrize("encryption", [None, "simulated"])
def test_scale_of_the_data_has_no_effect(X, scale, encryption):
    parameters = {"encryption": encryption, "max_iter": 20}
    one = model(**parameters).fit(X)
    other = model(**parameters).fit(scale * X)
    assert_allclose(other.components_, one.components_, rtol=1e-4, atol=1e-6)
    assert_allclose(other.transform(scale * X), scale * one.transform(X), rtol=1e-3,
                    atol=1e-4 * scale)  # fmt: skip
