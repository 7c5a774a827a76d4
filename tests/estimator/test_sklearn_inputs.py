"""Odd inputs: what a fit and a transform make of them, beside NMF where it helps."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from _estimators import model
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from skppdnmf import stack_parts


@pytest.fixture(scope="module")
def X():
    return load_digits().data[:60, 10:26]


@pytest.fixture(scope="module")
def fitted(X):
    return model().fit(X)


def assert_exact(estimator, X):
    """The right factor is scipy's, sample by sample."""
    W = estimator.transform(X)
    assert (W >= 0).all()
    H = estimator.components_.astype(float)
    for x, w in zip(X, W, strict=True):
        _, best = nnls(H.T, x)
        assert np.linalg.norm(x - w @ H) <= best + 1e-6 * np.linalg.norm(x)


# Degenerate data ------------------------------------------------------------------

RNG = np.random.default_rng(0)
PLAIN = RNG.random((12, 6))
DEGENERATE = {
    "all zero": np.zeros((12, 6)),
    "zero rows": PLAIN * (np.arange(12) % 3 > 0)[:, None],
    "zero features": PLAIN * (np.arange(6) % 3 > 0),
    "one agent all zero": PLAIN * (np.arange(12) > 2)[:, None],
    "one sample": PLAIN[:1],
    "one feature": PLAIN[:, :1],
    "one number": PLAIN[:1, :1],
    "constant": np.full((12, 6), 3.0),
    "duplicate samples": np.tile(PLAIN[:2], (6, 1)),
    "one positive entry": np.where(np.arange(72).reshape(12, 6) == 17, 2.0, 0.0),
    "smallest denormal": np.where(np.arange(72).reshape(12, 6) == 7, 1e-323, PLAIN),
    "exact low rank": PLAIN[:, :2] @ PLAIN[:2],
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("n_components", [1, 3, 15])
def test_degenerate_data(name, n_components):
    X = DEGENERATE[name]
    estimator = model(n_components, max_iter=40).fit(X)
    assert np.isfinite(estimator.components_).all()
    assert_exact(estimator, X)
    assert_array_equal(clone(estimator).fit_transform(X), estimator.transform(X))
    pooled = NMF(n_components, init="random", tol=1e-8, max_iter=500, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = pooled.fit(X).reconstruction_err_
    # One of several starts, since any may end in another local minimum.
    assert any(
        clone(estimator).set_params(random_state=seed).fit(X).reconstruction_err_
        <= 1.05 * best + 0.01 * np.linalg.norm(X)
        for seed in range(4)
    )
    assert estimator.score(X) <= 0
    for values in estimator.history_.values():
        assert np.isfinite(values).all()


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_data_in_transform(fitted, name):
    X = np.resize(DEGENERATE[name], (12, 16))
    assert_exact(fitted, X)
    assert np.isfinite(fitted.score(X))


def test_zero_rows_get_zeros_and_zero_features_stay_zero():
    X = PLAIN * (np.arange(12) % 3 > 0)[:, None] * (np.arange(6) % 3 > 0)
    estimator = model(2, max_iter=60).fit(X)
    W = estimator.transform(X)
    assert_array_equal(W[::3], 0)
    assert (W[1::3].sum(axis=1) > 0).all()
    assert_allclose(estimator.components_[:, ::3], 0, atol=1e-4)


@pytest.mark.parametrize("n_components", [17, 61, 70])
def test_more_components_than_anything(X, n_components):
    # Above the features; above the features and samples; above everything.
    estimator = model(n_components, partition=[1, 20, 39], max_iter=10).fit(X)
    assert estimator.components_.shape == (n_components, 16)
    assert_exact(estimator, X)
    assert -estimator.score(X) < 0.2


# The range of numbers -------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "dtype"),
    [
        (1e-300, np.float64),
        (1e300, np.float64),
        (1e-30, np.float32),
        (1e25, np.float32),
    ],
)
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_numbers_that_cannot_be_squared_are_refused(X, fitted, scale, dtype, convert):
    scaled = convert((X / 16).astype(dtype) * dtype(scale))
    assert scaled.max() > 0
    for call in (model().fit, model().fit_transform):
        with pytest.raises(ValueError, match=r"largest entry of X is .*rescale X"):
            call(scaled)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_sample_is_transformed_the_same_alone_and_in_any_company(
    fitted, dtype, convert
):
    """Whatever its size: what solves row by row has no range for the batch."""
    rng = np.random.default_rng(0)
    exponents = np.linspace(-60, 60, 41) if dtype is np.float64 else np.arange(-37, 37)
    rows = rng.random((len(exponents), fitted.n_features_in_))
    X = (rows * 10.0 ** exponents[:, None]).astype(dtype)
    together = fitted.transform(convert(X))
    alone = np.concatenate([fitted.transform(convert(row[None])) for row in X])
    np.testing.assert_array_equal(together, alone)
    assert together.dtype == dtype
    # In units of its own every row has the W that it has at a common size.
    common = fitted.transform(rows)
    scaled = together.astype(np.float64) / 10.0 ** exponents[:, None]
    np.testing.assert_allclose(scaled, common, rtol=1e-3, atol=1e-4 * common.max())
    scores = [fitted.score(convert(row[None])) for row in X]
    expected = [fitted.score(row[None]) for row in rows]
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-6)


def test_what_single_precision_cannot_hold_is_refused(fitted):
    H = fitted.components_
    X = np.full((1, H.shape[1]), 3e38, dtype=np.float32)
    small = clone(fitted)
    for name, value in vars(fitted).items():
        setattr(small, name, value)
    small.components_ = H * 1e-3
    with pytest.raises(OverflowError, match="more than float32 holds"):
        small.transform(X)


@pytest.mark.parametrize(
    ("scale", "dtype"),
    [
        (2.0**-200, np.float64),
        (2.0**200, np.float64),
        (2.0**-25, np.float32),
        (2.0**25, np.float32),
    ],
)
def test_other_scales_give_the_right_factors(X, scale, dtype):
    one = model().fit((X / 16).astype(dtype))
    other = model().fit((X / 16).astype(dtype) * dtype(scale))
    assert_allclose(other.components_, one.components_, rtol=1e-4, atol=1e-5)
    W = one.transform((X / 16).astype(dtype))
    V = other.transform((X / 16).astype(dtype) * dtype(scale))
    assert_allclose(V / dtype(scale), W, rtol=1e-3, atol=1e-3 * W.max())
    assert other.score((X / 16).astype(dtype) * dtype(scale)) == pytest.approx(
        one.score((X / 16).astype(dtype)), rel=1e-4
    )


def test_tiny_entries_among_large_ones(X):
    small = X.copy()
    small[small == 0] = 1e-323
    assert_allclose(model().fit(small).components_, model().fit(X).components_)


def test_exact_low_rank_has_no_error_below_zero():
    rng = np.random.default_rng(2)
    X = rng.random((50, 2)) @ rng.random((2, 9))
    for data in (X, sparse.csr_array(X), 1e8 * X):
        estimator = model(2, max_iter=200).fit(data)
        assert 0 <= -estimator.score(data) < 1e-2
        assert np.isfinite(estimator.reconstruction_err_)
        assert np.isfinite(estimator.history_["local_error"]).all()


# What is no data ------------------------------------------------------------------

BROKEN = {
    "NaN": lambda X: np.where(X == X.max(), np.nan, X),
    "infinity": lambda X: np.where(X == X.max(), np.inf, X),
    "negative": lambda X: X - 1,
    "minus infinity": lambda X: np.where(X == X.max(), -np.inf, X),
    "complex": lambda X: X + 1j,
    "objects": lambda X: np.where(X > 3, None, X),
    "words": lambda X: np.where(X > 3, "many", "few"),
    "1-D": lambda X: X[0],
    "3-D": lambda X: X[None],
    "scalar": lambda X: X[0, 0],
    "no samples": lambda X: X[:0],
    "no features": lambda X: X[:, :0],
    "nothing": lambda X: [],
    "sparse NaN": lambda X: sparse.csr_array(np.where(X == X.max(), np.nan, X)),
    "sparse negative": lambda X: sparse.csc_array(-X),
    "frame of words": lambda X: pd.DataFrame(X).astype(str) + "x",
}


@pytest.mark.parametrize("name", BROKEN)
def test_no_data_is_nmf_s_kind_of_error(X, fitted, name):
    broken = BROKEN[name](X)
    pooled = NMF(3, init="random", random_state=0, tol=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pooled.fit(X)
        for theirs, ours in (
            (pooled.fit, model().fit),
            (pooled.fit_transform, model().fit_transform),
            (pooled.transform, fitted.transform),
        ):
            with pytest.raises((ValueError, TypeError)) as expected:
                theirs(broken)
            with pytest.raises(type(expected.value)) as found:
                ours(broken)
            assert str(found.value)
            said = str(expected.value).replace("NMF", "PrivateDistributedNMF")
            assert str(found.value).splitlines()[0][:20] == said.splitlines()[0][:20]


@pytest.mark.parametrize("name", ["NaN", "infinity", "negative", "sparse NaN"])
def test_errors_name_x(X, fitted, name):
    for call in (model().fit, fitted.transform):
        with pytest.raises(ValueError, match=r"\bX\b"):
            call(BROKEN[name](X))


def test_wrong_number_of_features(X, fitted):
    with pytest.raises(ValueError, match=r"15 features.*expecting 16"):
        fitted.transform(X[:, :15])
    with pytest.raises(ValueError, match=r"15 features.*expecting 16"):
        fitted.score(X[:, :15])


# Types and layouts ----------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int64, np.uint16, bool, np.float16, np.longdouble, object]
)
def test_other_types_become_double(X, fitted, dtype):
    data = (X > 4).astype(dtype) if dtype is bool else X.astype(dtype)
    estimator = model().fit(data)
    assert estimator.components_.dtype == np.float64
    assert estimator.transform(data).dtype == np.float64
    double = data.astype(np.float64)
    assert_array_equal(estimator.components_, model().fit(double).components_)
    assert_array_equal(fitted.transform(data), fitted.transform(double))


def test_lists_of_lists_are_one_matrix(X):
    listed = model().fit(X.tolist())
    assert_array_equal(listed.components_, model().fit(X).components_)
    assert_array_equal(listed.transform(X.tolist()), listed.transform(X))


@pytest.mark.parametrize("first", [10, 12])  # parts of unequal and of equal lengths
@pytest.mark.parametrize("listed", [list, np.ndarray.tolist])
def test_parts_as_lists_are_refused_as_by_stack_parts(X, fitted, first, listed):
    parts = [listed(X[:first]), listed(X[first:24])]
    with pytest.raises(ValueError, match=r"parts must be 2-D.*0 \(list.*1 \(") as said:
        stack_parts(parts)
    assert "numpy.asarray" in str(said.value)
    for call in (model().fit, model().fit_transform, fitted.transform, fitted.score):
        with pytest.raises(ValueError, match="2-D") as found:
            call(parts)
        assert str(found.value) == str(said.value)
    arrays = [np.asarray(part) for part in parts]  # what the message says to do
    assert_array_equal(fitted.transform(arrays), fitted.transform(X[:24]))


def frozen(X, path):
    X = X.copy()
    X.setflags(write=False)
    return X


def mapped(X, path):
    np.save(path / "X.npy", X)
    return np.load(path / "X.npy", mmap_mode="r")


def strided(X, path):
    return np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]


def sparse_frozen(X, path):
    X = sparse.csr_array(X)
    for array in (X.data, X.indices, X.indptr):
        array.setflags(write=False)
    return X


@pytest.mark.parametrize(
    "arrange",
    [frozen, mapped, strided, sparse_frozen, lambda X, _: np.asfortranarray(X)],
    ids=["read-only", "memory-mapped", "strided", "read-only sparse", "Fortran"],
)
def test_layouts(X, fitted, arrange, tmp_path):
    data = arrange(X, tmp_path)
    assert_allclose(model().fit(data).components_, fitted.components_, rtol=1e-9)
    assert_allclose(fitted.transform(data), fitted.transform(X), rtol=1e-12)


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_with_names(X, fitted, library):
    names = [f"pixel {k}" for k in range(16)]

    def frame(values, columns):
        if library is pd:
            return pd.DataFrame(values, columns=columns)
        return pl.DataFrame(values, schema=columns)

    data = frame(X, names)
    estimator = model().fit(data)
    assert list(estimator.feature_names_in_) == names
    assert_array_equal(estimator.components_, fitted.components_)
    assert_array_equal(estimator.transform(data), fitted.transform(X))
    for wrong in (names[::-1], [*names[:-1], "other"]):
        for call in (estimator.transform, estimator.score):
            with pytest.raises(ValueError, match="feature names should match"):
                call(frame(X, wrong))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        estimator.transform(X)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        fitted.transform(data)
    parts = [data[:20], data[20:]]
    by_parts = model().fit(parts)
    assert list(by_parts.feature_names_in_) == names
    assert_array_equal(by_parts.transform(parts), by_parts.transform(data))


# Parameters that do not fit the data ----------------------------------------------


def test_one_iteration_warns(X):
    with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations"):
        model(max_iter=1, tol=1e-6).fit(X)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations"):
        model(max_iter=1, tol=1e-6).fit_transform(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_iter": 0}, "'max_iter' parameter"),
        ({"n_max": 0}, "'n_max' parameter"),
        ({"mu": -1.0}, "'mu' parameter"),
        ({"mu": np.nan}, "'mu' parameter"),
        ({"masking": "entry"}, "'masking' parameter"),
        ({"adjacency": "torus"}, "torus"),
        ({"partition": [30, 31]}, "sum to 61"),
        ({"partition": [0.5, 0.6]}, "sum to 1.1"),
        ({"partition": 61}, "exceeds n_samples=60"),
        ({"init": np.ones((3, 15))}, r"init has shape \(3, 15\)"),
        ({"init": np.ones(16)}, "2D array"),
        ({"init": np.full((3, 16), np.nan)}, "init contains NaN"),
    ],
)
def test_parameters_that_do_not_fit(X, parameters, message):
    for method in ("fit", "fit_transform"):
        with pytest.raises(ValueError, match=message):
            getattr(model(**parameters), method)(X)


@pytest.mark.parametrize(
    ("agents", "adjacency", "message"),
    [
        ([0] * 59, "ring", "59 labels"),
        ([0] * 61, "ring", "61 labels"),
        (["a"] * 30 + [None] * 30, "ring", "missing"),
        ([0] * 30 + [7] * 30, 1 - np.eye(3), "7"),
        (np.zeros((60, 1)), "ring", "1-D"),
        (5, "ring", "1-D"),
    ],
)
def test_agents_that_do_not_fit(X, agents, adjacency, message):
    for method in ("fit", "fit_transform"):
        with pytest.raises(ValueError, match=message):
            getattr(model(adjacency=adjacency), method)(X, agents=agents)


def test_a_given_start_sets_the_number_of_components(X):
    start = np.random.default_rng(1).random((5, 16))
    for given in (start, start.tolist(), pd.DataFrame(start), np.asfortranarray(start)):
        estimator = model("auto", init=given).fit(X)
        assert estimator.n_components_ == 5
        assert estimator.components_.shape == (5, 16)
        assert_array_equal(
            estimator.components_, model(5, init=start).fit(X).components_
        )
    single = model("auto", init=start.astype(np.float32)).fit(X.astype(np.float32))
    assert single.components_.dtype == np.float32
    # It is where the fit starts: the result of a fit is left nearly alone.
    done = model(3, max_iter=150).fit(X)
    onward = model("auto", init=done.components_, max_iter=2).fit(X)
    assert onward.reconstruction_err_ < 1.01 * done.reconstruction_err_
    assert onward.reconstruction_err_ < model(3, max_iter=2).fit(X).reconstruction_err_


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # overflow on the way to nan
@pytest.mark.parametrize("encryption", ["simulated", None])
def test_a_fit_that_diverges_says_so(X, encryption):
    estimator = model(update="published", max_iter=60, encryption=encryption)
    with pytest.raises(OverflowError, match=r"agent .*diverged.*penalties") as caught:
        estimator.fit(X)
    assert "n_max" not in str(caught.value)
    # What the message says to do is a way out.
    assert 'penalty_scaling="absolute"' in str(caught.value)
    estimator.set_params(penalty_scaling="absolute").fit(X)
    assert np.isfinite(estimator.components_).all()


def test_a_failed_fit_leaves_the_estimator_usable(X):
    estimator = model()
    with pytest.raises(ValueError, match="NaN"):
        estimator.fit(np.full((5, 4), np.nan))
    assert not hasattr(estimator, "components_")
    assert_array_equal(estimator.fit(X).components_, model().fit(X).components_)
