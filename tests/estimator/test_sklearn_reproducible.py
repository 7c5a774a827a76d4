"""The same seed, the same numbers; a sample's row is its own."""

import joblib
import numpy as np
import pytest
from _estimators import model as quick
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF


@pytest.fixture(scope="module")
def X():
    return load_digits().data[:100, 10:40]


def model(n_components=4, **parameters):
    return quick(n_components, **{"max_iter": 4, **parameters})


PENALISED = {"alpha_W": 0.05, "l1_ratio": 0.5}


@pytest.mark.parametrize("penalty", [{}, PENALISED], ids=["free", "penalised"])
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_n_jobs_and_backend_change_no_bit(X, penalty, backend):
    one = model(**penalty).fit(X)
    with joblib.parallel_config(backend=backend):
        for n_jobs in (2, 3):
            other = model(**penalty, n_jobs=n_jobs).fit(X)
            assert_array_equal(other.components_, one.components_)
            assert_array_equal(other.agent_components_, one.agent_components_)
            assert_array_equal(other.transform(X), one.transform(X))
            assert other.reconstruction_err_ == one.reconstruction_err_
            assert other.traffic_ == one.traffic_


def test_fitting_twice_is_fitting_once(X):
    estimator = model(**PENALISED).fit(X)
    once = {**vars(estimator)}
    estimator.fit(X[:30]).fit(X)
    assert set(vars(estimator)) == set(once)
    for name, value in once.items():
        if name == "history_":
            for column in set(value) - {"seconds"}:
                assert_array_equal(estimator.history_[column], value[column])
        elif isinstance(value, np.ndarray):
            assert_array_equal(getattr(estimator, name), value)
        else:
            assert getattr(estimator, name) == value


def test_no_seed_gives_another_result_each_time(X):
    results = [model(random_state=None).fit(X).components_ for _ in range(3)]
    for k in range(3):
        assert not np.allclose(results[k], results[k - 1], rtol=1e-3)


def test_the_global_seed_has_no_part_in_it(X):
    one = model().fit(X)
    state = np.random.get_state()  # noqa: NPY002 - the global generator is meant
    other = model().fit(X)
    after = np.random.get_state()  # noqa: NPY002
    assert_array_equal(after[1], state[1])
    assert_array_equal(other.components_, one.components_)


@pytest.mark.parametrize("penalty", [{}, PENALISED], ids=["free", "penalised"])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_batch_is_its_rows(X, penalty, convert, dtype):
    data = convert(X.astype(dtype))
    fitted = model(12, **penalty).fit(data)
    whole = fitted.transform(data)
    rows = np.concatenate([fitted.transform(data[k : k + 1]) for k in range(100)])
    assert_allclose(rows, whole, rtol=1e-10, atol=1e-10)
    shuffled = np.random.default_rng(0).permutation(100)
    assert_array_equal(fitted.transform(data[shuffled]), whole[shuffled])


@pytest.mark.parametrize("n_components", [1, 5, 12])
def test_the_right_factor_comes_back(X, n_components):
    fitted = model(n_components, max_iter=20).fit(X)
    assert np.linalg.matrix_rank(fitted.components_) == n_components
    W = np.random.default_rng(2).exponential(size=(30, n_components))
    W[W < 0.4] = 0
    again = fitted.transform(fitted.inverse_transform(W))
    assert_allclose(again, W, rtol=1e-6, atol=1e-8)
    sparse_again = fitted.inverse_transform(sparse.csr_array(W))
    assert_allclose(sparse_again, W @ fitted.components_, rtol=1e-12)


def test_the_global_seed_repeats_sums_and_all_but_masks():
    """As the documentation of `random_state` says."""
    X = np.random.default_rng(0).random((20, 6))
    found = []
    for parameters in ({"protocol": "secure-sum"}, {"encryption": "simulated"}):
        fits = []
        for _ in range(2):
            np.random.seed(3)  # noqa: NPY002 - this generator is what it is about
            estimator = PrivateDistributedNMF(2, max_iter=4, tol=0, **parameters)
            fits.append(estimator.fit(X).components_)
        found.append(np.abs(fits[0] - fits[1]).max())
    assert found[0] == 0.0
    assert 0.0 < found[1] < 0.1
