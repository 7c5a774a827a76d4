"""What has no effect on a fit under protocol="secure-sum"."""

import numpy as np
import pytest
from _helpers import GRAPHS
from _sums import model
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits


@pytest.fixture(scope="module")
def X():
    return load_digits().data[:90, 10:40]


@pytest.fixture(scope="module")
def fitted(X):
    return model().fit(X)


def assert_same_fit(one, other):
    assert_array_equal(one.components_, other.components_)
    assert_array_equal(one.agent_components_, other.agent_components_)
    assert one.n_iter_ == other.n_iter_
    assert one.reconstruction_err_ == other.reconstruction_err_
    for name in ("exchanges", "local_error", "shared_error", "consensus_error"):
        assert_array_equal(one.history_[name], other.history_[name])


def test_all_agents_have_the_same_components(fitted):
    assert fitted.consensus_error_ == 0.0
    assert not fitted.history_["consensus_error"].any()
    for copy in fitted.agent_components_:
        assert_array_equal(copy, fitted.components_)


@pytest.mark.parametrize("adjacency", GRAPHS)
@pytest.mark.parametrize("key_degree", [None, 2])
def test_graph_and_keys_have_no_effect(X, fitted, adjacency, key_degree):
    assert_same_fit(model(adjacency=adjacency, key_degree=key_degree).fit(X), fitted)


@pytest.mark.parametrize(
    ("backend", "n_jobs"), [("threading", 2), ("loky", 2), ("sequential", 1)]
)
def test_backends_have_no_effect(X, fitted, backend, n_jobs):
    with parallel_config(backend, n_jobs=n_jobs):
        other = model(n_jobs=None).fit(X)
    assert_same_fit(other, fitted)
    assert other.traffic_ == fitted.traffic_


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_n_jobs_has_no_effect(X, fitted, n_jobs):
    assert_same_fit(model(n_jobs=n_jobs).fit(X), fitted)


def test_numbering_has_no_effect(X, fitted):
    order = np.array([3, 1, 4, 0, 2])
    other = model().fit(X, agents=order[fitted.sample_agents_])
    assert_array_equal(other.components_, fitted.components_)
    assert_array_equal(other.history_["shared_error"], fitted.history_["shared_error"])


@pytest.mark.parametrize("partition", [2, 9, [3, 80, 7], "shuffled"])
def test_who_holds_which_samples_has_no_effect(X, partition):
    """Given the number of starts, which follows that of the agents otherwise."""
    expected = model(n_init=3, max_iter=40).fit(X)
    agents = None
    if partition == "shuffled":
        agents = np.random.default_rng(0).integers(0, 5, 90)
        partition = None
    other = model(n_init=3, max_iter=40, partition=partition).fit(X, agents=agents)
    assert_allclose(other.components_, expected.components_, rtol=1e-9, atol=1e-12)


def test_a_fit_repeats_itself(X, fitted):
    assert_same_fit(model().fit(X), fitted)
    assert_same_fit(clone(fitted).fit(X), fitted)


@pytest.mark.parametrize("factor", [1e-3, 1e3, 1e-30, 1e30])
def test_scale_of_the_data_goes_into_the_right_factor(X, fitted, factor):
    other = model().fit(factor * X)
    assert_allclose(other.components_, fitted.components_, rtol=1e-6)
    assert_allclose(
        other.history_["shared_error"], fitted.history_["shared_error"], rtol=1e-6
    )


def test_sparse_and_dense_data_give_the_same(X, fitted):
    for kind in (sparse.csr_matrix, sparse.csc_array):
        other = model().fit(kind(X))
        assert_allclose(other.components_, fitted.components_, rtol=1e-6, atol=1e-9)
        assert_allclose(
            other.transform(kind(X)), fitted.transform(X), rtol=1e-5, atol=1e-6
        )


def test_single_precision_is_kept_and_close(X, fitted):
    other = model().fit(X.astype(np.float32))
    assert other.components_.dtype == other.agent_components_.dtype == np.float32
    assert other.transform(X.astype(np.float32)).dtype == np.float32
    assert_allclose(other.components_, fitted.components_, rtol=1e-3, atol=1e-3)


def test_a_list_of_parts(X, fitted):
    parts = [X[rows] for rows in np.split(np.arange(90), 5)]
    other = model(partition=None).fit(parts)
    assert_array_equal(other.components_, fitted.components_)
    mixed = model(partition=None).fit([sparse.csr_array(part) for part in parts])
    assert_allclose(mixed.components_, fitted.components_, rtol=1e-6, atol=1e-9)
