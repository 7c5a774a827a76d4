"""What holds for scikit-learn's NMF holds for PrivateDistributedNMF."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from skppdnmf import PrivateDistributedNMF


def pooled(n_components=3, **parameters):
    defaults = {"init": "random", "max_iter": 300, "tol": 1e-4, "random_state": 0}
    return NMF(n_components, **{**defaults, **parameters})


def private(n_components=3, **parameters):
    defaults = {
        "encryption": "simulated",
        "max_iter": 80,
        "tol": 0,
        "random_state": 0,
    }
    return PrivateDistributedNMF(n_components, **{**defaults, **parameters})


# Convergence to NMF's tolerance is not what most of these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
both = pytest.mark.parametrize("make", [pooled, private], ids=["NMF", "private"])


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).random((24, 8)) + 0.01


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:120]


@both
def test_factors_are_nonnegative(make):
    # A matrix whose unconstrained factors have both signs.
    X = 5.0 - np.arange(1, 6) * (np.arange(12) % 2)[:, None]
    X = np.abs(X)
    model = make(2)
    W = model.fit_transform(X)
    assert (W >= 0).all()
    assert (model.components_ >= 0).all()
    assert (model.transform(X[::-1]) >= 0).all()


@both
def test_reconstruction_of_low_rank_data_is_close(make):
    rng = np.random.default_rng(3)
    X = rng.random((30, 4)) @ rng.random((4, 10))
    model = make(4, max_iter=300)
    reconstructed = model.inverse_transform(model.fit_transform(X))
    assert np.linalg.norm(X - reconstructed) < 0.03 * np.linalg.norm(X)


@both
def test_more_components_reconstruct_better(make, X):
    errors = [make(k).fit(X).reconstruction_err_ for k in (1, 2, 4, 7)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.5 * errors[0]


@both
def test_reconstruction_error_is_the_frobenius_norm(make, X):
    model = make()
    W = model.fit_transform(X)
    error = np.linalg.norm(X - W @ model.components_)
    assert_allclose(model.reconstruction_err_, error)


@both
def test_attributes(make, X):
    model = make("auto").fit(X)
    assert model.n_components_ == 8
    assert model.components_.shape == (8, 8)
    assert model.n_features_in_ == 8
    assert 1 <= model.n_iter_ <= 300
    assert list(model.get_feature_names_out()) == [
        f"{type(model).__name__.lower()}{k}" for k in range(8)
    ]


@both
@pytest.mark.parametrize(
    "convert", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array]
)
def test_sparse_data_give_the_dense_result(make, X, convert):
    X = np.where(X > 0.5, X, 0)
    dense, thin = make(), make()
    W, V = dense.fit_transform(X), thin.fit_transform(convert(X))
    assert_allclose(V, W, rtol=1e-4, atol=1e-4)
    assert_allclose(thin.components_, dense.components_, rtol=1e-4, atol=1e-4)
    assert_allclose(
        dense.transform(convert(X)), dense.transform(X), rtol=1e-6, atol=1e-6
    )
    assert isinstance(V, np.ndarray)


@both
def test_transform_gives_what_fit_transform_gave(make, digits):
    model = make(4)
    W = model.fit_transform(digits)
    assert_allclose(model.transform(digits), W, atol=0.02 * W.max())


@both
def test_transform_of_a_part_is_part_of_the_transform(make, digits):
    model = make(4, tol=1e-5).fit(digits)
    whole = model.transform(digits)
    part = model.transform(digits[40:50])
    assert_allclose(part, whole[40:50], atol=0.02 * whole.max())


@both
def test_inverse_transform_and_back(make, digits):
    model = make(4, max_iter=400).fit(digits)
    W = np.random.default_rng(1).random((6, 4))
    X = model.inverse_transform(W)
    assert_allclose(X, W @ model.components_)
    again = model.inverse_transform(model.transform(X))
    assert np.linalg.norm(again - X) < 0.02 * np.linalg.norm(X)
    with pytest.raises(ValueError, match=r"5|features|columns"):
        model.inverse_transform(np.ones((2, 5)))


@both
def test_new_samples_in_the_span_of_the_components(make, X):
    model = make().fit(X)
    W = np.random.default_rng(5).random((4, 3)) + 0.1
    new = W @ model.components_
    error = new - model.transform(new) @ model.components_
    assert np.linalg.norm(error) < 0.02 * np.linalg.norm(new)


@both
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_penalties_shrink_their_factor(make, digits, l1_ratio):
    free = make(4, max_iter=100)
    W = free.fit_transform(digits)
    bound = make(4, max_iter=100, alpha_W=2.0, alpha_H=2.0, l1_ratio=l1_ratio)
    V = bound.fit_transform(digits)
    # Per product, since the scale of a factor alone is free without a penalty.
    assert np.linalg.norm(V @ bound.components_) < np.linalg.norm(W @ free.components_)
    assert bound.reconstruction_err_ > free.reconstruction_err_
    if l1_ratio:
        assert (V == 0).mean() > (W == 0).mean()


@both
def test_alpha_h_takes_alpha_w_by_default(make, digits):
    one = make(3, alpha_W=0.1, max_iter=10, tol=0).fit(digits)
    other = make(3, alpha_W=0.1, alpha_H=0.1, max_iter=10, tol=0).fit(digits)
    assert_array_equal(one.components_, other.components_)


@both
def test_transform_applies_the_penalty(make, digits):
    model = make(3, alpha_W=0.2, alpha_H=0.0, max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(digits)
    before = np.linalg.norm(model.transform(digits))
    after = np.linalg.norm(model.set_params(alpha_W=20.0).transform(digits))
    assert after < before


@both
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.int32, np.float64),
        (np.int64, np.float64),
    ],
)
def test_types_are_kept(make, digits, given, kept):
    model = make(2, max_iter=20, tol=1.0 if make is pooled else 0)
    W = model.fit_transform(digits.astype(given))
    assert W.dtype == kept
    assert model.components_.dtype == kept
    assert model.transform(digits.astype(given)).dtype == kept


@both
def test_single_and_double_precision_agree(make, X):
    single, double = make(), make()
    W, V = single.fit_transform(X.astype(np.float32)), double.fit_transform(X)
    assert_allclose(W, V, rtol=1e-2, atol=1e-2)
    assert_allclose(single.components_, double.components_, rtol=1e-2, atol=1e-2)


@both
def test_names_of_features(make, X):
    frame = pd.DataFrame(X, columns=[f"gene {k}" for k in range(8)])
    model = make().fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame.rename(columns={"gene 0": "gene x"}))
    out = model.set_output(transform="pandas").transform(frame)
    assert list(out.columns) == list(model.get_feature_names_out())
    assert_allclose(out.to_numpy(), make().fit(X).transform(X))


@both
@pytest.mark.parametrize("method", ["fit", "fit_transform", "transform"])
def test_negative_data_are_refused(make, X, method):
    model = make()
    if method == "transform":
        model.fit(X)
    with pytest.raises(ValueError, match="Negative values in data passed to"):
        getattr(model, method)(-X)


@both
@pytest.mark.parametrize("method", ["transform", "inverse_transform"])
def test_an_unfitted_model_says_so(make, X, method):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(make(), method)(X)


@both
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_components", 0),
        ("n_components", 1.5),
        ("max_iter", 0),
        ("tol", -1.0),
        ("alpha_W", -1.0),
        ("alpha_H", -1.0),
        ("alpha_H", "other"),
        ("l1_ratio", 2.0),
        ("init", "unknown"),
        ("verbose", -1),
    ],
)
def test_invalid_parameters_are_named(make, X, name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter of"):
        make().set_params(**{name: value}).fit(X)


@both
def test_too_few_iterations_warn(make, digits):
    with pytest.warns(ConvergenceWarning, match="Increase"):
        make(5, max_iter=1, tol=1e-8).fit(digits)


@both
def test_without_tolerance_there_is_no_warning(make, X):
    assert make(max_iter=7, tol=0).fit(X).n_iter_ == 7


@both
def test_seeds(make, X):
    one = make().fit(X)
    assert_array_equal(make().fit(X).components_, one.components_)
    assert_array_equal(clone(one).fit(X).components_, one.components_)
    assert not np.allclose(make(random_state=1).fit(X).components_, one.components_)
    unseeded = [
        make(random_state=None, max_iter=3, tol=0).fit(X).components_ for _ in range(2)
    ]
    assert not np.allclose(*unseeded)


@both
def test_the_data_stay_as_they_are(make, X):
    before = X.copy()
    make().fit(X).transform(X)
    assert_array_equal(X, before)
    thin = sparse.csr_array(X)
    make().fit(thin).transform(thin)
    assert_array_equal(thin.toarray(), before)


@both
def test_zero_data(make):
    model = make(2)
    W = model.fit_transform(np.zeros((6, 4)))
    assert_array_equal(W @ model.components_, 0)
    assert model.reconstruction_err_ == 0


@pytest.mark.journey
def test_errors_are_as_low_as_those_of_nmf(digits):
    for n_components in (3, 8):
        errors = [
            min(
                make(n_components, random_state=seed).fit(digits).reconstruction_err_
                for seed in range(3)
            )
            for make in (pooled, private)
        ]
        assert errors[1] < 1.01 * errors[0]


def test_transform_is_at_least_as_exact_as_that_of_nmf(digits):
    theirs = pooled(10).fit(digits)
    ours = private(10, max_iter=1).fit(digits)
    ours.components_ = theirs.components_
    errors = [
        np.linalg.norm(digits - model.transform(digits) @ theirs.components_, axis=1)
        for model in (theirs, ours)
    ]
    assert (errors[1] <= errors[0] * (1 + 1e-9)).all()
