"""The estimator's contract: attributes, parameters, data, errors."""

import pickle
import warnings

import numpy as np
import pytest
from _estimators import model
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils._param_validation import InvalidParameterError


@pytest.fixture(scope="module")
def X():
    return load_digits().data[:120, 10:40]


@pytest.mark.parametrize("encryption", ["simulated", None])
def test_attributes_describe_the_fit(X, encryption):
    fitted = model(4, partition=5, encryption=encryption, max_iter=7).fit(X)
    assert fitted.components_.shape == (4, 30)
    assert fitted.agent_components_.shape == (5, 4, 30)
    assert (fitted.agent_components_ >= 0).all()
    assert_allclose(fitted.components_, fitted.agent_components_.mean(axis=0))
    assert (fitted.n_components_, fitted.n_features_in_) == (4, 30)
    assert (fitted.n_iter_, fitted.n_exchanges_) == (7, 35)
    assert fitted.agent_labels_ == [0, 1, 2, 3, 4]
    assert_array_equal(fitted.sample_agents_, np.repeat(range(5), 24))
    assert_array_equal(fitted.adjacency_, fitted.adjacency_.T)
    mean = fitted.agent_components_.mean(axis=0)
    distance = np.sqrt(
        ((fitted.agent_components_ - mean) ** 2).sum(axis=(1, 2)).mean()
    ) / np.linalg.norm(mean)
    assert_allclose(fitted.consensus_error_, distance)
    assert set(fitted.history_) == {
        "exchanges",
        "local_error",
        "shared_error",
        "consensus_error",
        "seconds",
        "bytes",
    }
    for column in fitted.history_.values():
        assert len(column) == 7
    assert_array_equal(fitted.history_["exchanges"], np.arange(5, 36, 5))
    assert fitted.history_["bytes"][-1] == fitted.traffic_["bytes"]
    assert_allclose(fitted.history_["consensus_error"][-1], fitted.consensus_error_)


def test_reconstruction_error_is_nmf_s_measure(X):
    fitted = model().fit(X)
    W = fitted.transform(X)
    error = np.linalg.norm(X - W @ fitted.components_)
    assert_allclose(fitted.reconstruction_err_, error)
    assert_allclose(fitted.score(X), -error / np.linalg.norm(X))
    # The history solves each agent's own copy, so its error lies a little above.
    last = fitted.history_["shared_error"][-1] * np.linalg.norm(X)
    assert error <= last * (1 + 1e-9)
    assert last <= 1.05 * error


def test_traffic_adds_up_over_the_edges(X):
    fitted = model(partition=4, adjacency="path").fit(X)
    edges = fitted.traffic_["edges"]
    assert set(edges) == {(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)}
    for name in ("messages", "ciphertexts", "bytes"):
        assert fitted.traffic_[name] == sum(edge[name] for edge in edges.values())
        assert fitted.traffic_[name] > 0


def test_fit_transform_equals_transform_to_the_last_digit(X):
    estimator = model()
    assert_array_equal(estimator.fit_transform(X), estimator.transform(X))
    assert_array_equal(clone(estimator).fit(X).transform(X), estimator.transform(X))


def test_transform_is_exact_and_row_by_row(X):
    fitted = model(5).fit(X)
    W = fitted.transform(X)
    for k in (0, 57, 119):
        exact, _ = nnls(fitted.components_.T, X[k])
        assert_allclose(W[k], exact, atol=1e-9 * exact.max())
        assert_array_equal(fitted.transform(X[k : k + 1])[0], W[k])


def test_inverse_transform_and_back(X):
    fitted = model().fit(X)
    W = np.random.default_rng(0).random((7, 3))
    assert_allclose(fitted.inverse_transform(W), W @ fitted.components_)
    assert_allclose(fitted.transform(fitted.inverse_transform(W)), W, rtol=1e-8)
    with pytest.raises(ValueError, match="4 columns, expected n_components_=3"):
        fitted.inverse_transform(np.ones((2, 4)))


def test_score_weighs_samples(X):
    fitted = model().fit(X)
    weight = np.r_[np.ones(60), np.zeros(60)]
    assert_allclose(fitted.score(X, sample_weight=weight), fitted.score(X[:60]))
    scaled = fitted.score(sparse.csr_array(X), sample_weight=3 * np.ones(120))
    assert_allclose(scaled, fitted.score(X))
    assert fitted.score(np.zeros((2, 30))) == 0


def test_unfitted_estimator_says_so(X):
    for call in ("transform", "score", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(model(), call)(X)


# Parameters ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"mu": -1.0},
        {"mu": 0},
        {"eta": -0.5},
        {"g_max": 0},
        {"n_max": 0},
        {"n_components": 0},
        {"n_components": 2.5},
        {"max_iter": 0},
        {"max_admm_iter": 0},
        {"tol": -1e-3},
        {"penalty_scaling": "relative"},
        {"masking": "none"},
        {"protocol": "gossip"},
        {"encryption": "rsa"},
        {"update": "printed"},
        {"init": "nndsvd"},
        {"key_size": 8},
        {"key_scheme": "rsa"},
        {"n_jobs": 1.5},
        {"verbose": "loud"},
    ],
)
def test_invalid_parameters_are_named(X, parameters):
    name = next(iter(parameters))
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter"):
        model(**parameters).fit(X)


def test_n_components_auto_and_start(X):
    assert model("auto", max_iter=2).fit(X).n_components_ == 30
    start = np.random.default_rng(0).random((5, 30))
    fitted = model("auto", init=start, max_iter=2).fit(X)
    assert fitted.n_components_ == 5
    scaled = model(5, init=1e9 * start, max_iter=2).fit(X)
    assert_allclose(scaled.components_, fitted.components_, rtol=0.3)
    with pytest.raises(ValueError, match=r"init has shape \(5, 30\)"):
        model(4, init=start).fit(X)
    with pytest.raises(ValueError, match="Negative values"):
        model("auto", init=-start).fit(X)
    with pytest.raises(ValueError, match="all zeros"):
        model("auto", init=0 * start).fit(X)


def test_ones_keep_all_components_alike(X):
    fitted = model(3, init="ones", masking="scalar", encryption=None, max_iter=3).fit(X)
    assert_allclose(fitted.components_[0], fitted.components_[1], rtol=1e-6)
    random = model(3, encryption=None, max_iter=3).fit(X)
    assert not np.allclose(random.components_[0], random.components_[1], rtol=0.1)


@pytest.mark.parametrize("n_components", [31, 50, 130])
def test_more_components_than_features_samples_or_agents_samples(X, n_components):
    fitted = model(n_components, max_iter=3).fit(X)
    assert fitted.components_.shape == (n_components, 30)
    assert np.isfinite(fitted.transform(X)).all()


def test_random_state(X):
    first, same = model().fit(X), model().fit(X)
    assert_array_equal(first.components_, same.components_)
    assert_array_equal(first.fit(X).components_, same.components_)
    other = model(random_state=1).fit(X)
    assert not np.allclose(first.components_, other.components_)
    state = model(random_state=np.random.RandomState(0)).fit(X)
    assert_array_equal(state.components_, first.components_)
    unseeded = [model(random_state=None).fit(X).components_ for _ in range(2)]
    assert not np.array_equal(*unseeded)


def test_convergence_warning_names_what_to_raise(X):
    with pytest.warns(ConvergenceWarning, match="Increase max_iter"):
        model(tol=1e-4, max_iter=1).fit(X)


def test_converged_fit_stops_early_without_a_warning(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = model(2, tol=1e-2, max_iter=300, partition=3).fit(X)
    assert fitted.n_iter_ < 300
    assert fitted.consensus_error_ < 0.02


# Data ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, sparse.csc_matrix])
def test_dtype_is_kept(X, dtype, convert):
    fitted = model().fit(convert(X.astype(dtype)))
    assert fitted.components_.dtype == dtype
    assert fitted.agent_components_.dtype == dtype
    assert fitted.transform(convert(X.astype(dtype))).dtype == dtype
    reference = model().fit(X)
    assert_allclose(
        fitted.reconstruction_err_, reference.reconstruction_err_, rtol=1e-3
    )


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, bool, np.float16])
def test_other_dtypes_become_double(X, dtype):
    assert model(2).fit(X.astype(dtype)).components_.dtype == np.float64


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda X: np.where(X == X.max(), np.nan, X), "NaN"),
        (lambda X: np.where(X == X.max(), np.inf, X), "inf"),
        (lambda X: X - 1, "Negative values in data passed to PrivateDistributedNMF"),
        (lambda X: X[0], "2D array"),
        (lambda X: X[:0], "0 sample"),
        (lambda X: X + 1j, "[Cc]omplex"),
    ],
)
def test_bad_data(X, broken, message):
    with pytest.raises(ValueError, match=message):
        model().fit(broken(X))
    with pytest.raises(ValueError, match=message):
        model().fit(X).transform(broken(X))


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((8, 5)),
        np.ones((8, 5)),
        np.ones((1, 5)),
        np.ones((8, 1)),
        np.r_[np.zeros((4, 5)), np.random.default_rng(0).random((4, 5))],
        np.c_[np.zeros(8), np.random.default_rng(0).random((8, 4))],
        np.repeat(np.random.default_rng(0).random((1, 5)), 8, axis=0),
        np.where(np.arange(40).reshape(8, 5) == 3, 1e-323, 1.0),
    ],
    ids=[
        "zero",
        "ones",
        "sample",
        "feature",
        "zero agents",
        "zero feature",
        "duplicates",
        "denormal",
    ],
)
@pytest.mark.parametrize("n_components", [1, 3, 7])
def test_degenerate_data(X, n_components):
    fitted = model(n_components, max_iter=40).fit(X)
    W = fitted.transform(X)
    assert np.isfinite(W).all()
    assert np.isfinite(fitted.components_).all()
    best = NMF(n_components, init="random", tol=1e-8, max_iter=2000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        reference = best.fit(X).reconstruction_err_
    assert fitted.reconstruction_err_ <= 1.05 * reference + 0.01 * np.linalg.norm(X)


def test_exact_low_rank_is_found():
    rng = np.random.default_rng(0)
    X = rng.random((60, 3)) @ rng.random((3, 20))
    fitted = model(3, max_iter=300).fit(X)
    assert -fitted.score(X) < 5e-3
    assert np.isfinite(fitted.history_["shared_error"]).all()


def test_read_only_and_fortran_data(X):
    frozen = X.copy()
    frozen.setflags(write=False)
    reference = model().fit(X).components_
    assert_array_equal(model().fit(frozen).components_, reference)
    assert_array_equal(model().fit(np.asfortranarray(X)).components_, reference)


def test_pickle_holds_no_secret(X):
    with pytest.warns(match="256"):
        fitted = model(2, encryption="paillier", key_size=256, max_iter=2).fit(X[:, :5])
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.transform(X[:, :5]), fitted.transform(X[:, :5]))
    text = pickle.dumps(fitted)
    for word in (b"Paillier", b"Cipher", b"Generator", b"nmf._agent", b"nmf.exchange"):
        assert word not in text


def test_verbose_reports_on_stderr(X, capsys):
    model(verbose=2, max_iter=2).fit(X)
    captured = capsys.readouterr()
    shown = captured.out + captured.err
    assert "exchanges 10" in shown
    assert "iteration 2: 10 exchanges" in shown
    model(max_iter=2).fit(X)
    silent = capsys.readouterr()
    assert silent.out + silent.err == ""


def test_plain_lists(X):
    expected = model(2, max_iter=2).fit(X).components_
    assert_array_equal(model(2, max_iter=2).fit(X.tolist()).components_, expected)
    assert_array_equal(model(2, max_iter=2).fit(list(X)).components_, expected)


def test_sparse_entries_in_portions_count_as_their_sum(X):
    dense = X[:30, :6] + 1
    rows, columns = np.nonzero(dense)
    values = dense[rows, columns] / 2
    indptr = np.r_[0, np.cumsum(np.bincount(np.r_[rows, rows], minlength=30))]
    order = np.argsort(np.r_[rows, rows], kind="stable")
    portions = sparse.csr_matrix(
        (np.r_[values, values][order], np.r_[columns, columns][order], indptr),
        shape=dense.shape,
    )
    assert portions.nnz == 2 * dense.size
    fitted = model(2).fit(portions)
    assert portions.nnz == 2 * dense.size  # the user's matrix stays as it was
    reference = model(2).fit(dense)
    assert_allclose(fitted.reconstruction_err_, reference.reconstruction_err_)
    assert_allclose(fitted.score(portions), reference.score(dense))


def test_unseeded_masks_do_not_follow_numpy_s_global_generator(X):
    start = np.ones((2, 30))
    results = []
    for _ in range(2):
        np.random.seed(7)  # noqa: NPY002 - the global generator is the point
        results.append(model(2, init=start, random_state=None).fit(X).components_)
    assert not np.array_equal(*results)
