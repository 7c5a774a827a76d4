"""Missing entries: fitted, transformed and scored on what is observed."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import get_tags

from skppdnmf import PrivateDistributedNMF, estimate_cost
from skppdnmf._nmf.nnls import solve_nnls
from skppdnmf._nmf.observed import descend_observed, solve_observed, split_observed

NAN = np.nan


def model(n_components=5, **parameters):
    given = {"protocol": "secure-sum", "max_iter": 60, "tol": 0, "random_state": 0}
    return PrivateDistributedNMF(n_components, **{**given, **parameters})


def low_rank(share=0.6, n=300, n_features=40, rank=5, seed=0, noise=0.0):
    """A matrix of low rank, whole and with gaps."""
    rng = np.random.default_rng(seed)
    whole = rng.exponential(size=(n, rank)) @ rng.exponential(size=(rank, n_features))
    whole += noise * rng.random(whole.shape)
    gaps = rng.random(whole.shape) < share
    return whole, np.where(gaps, NAN, whole)


def as_sparse(X):
    """Observed entries, zeros among them, in a sparse matrix."""
    rows, columns = np.nonzero(~np.isnan(X))
    return sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_recovers_what_is_missing(seed, dtype):
    whole, X = low_rank(seed=seed)
    X = X.astype(dtype)
    fitted = model(partition=5).fit(X)
    filled = fitted.inverse_transform(fitted.transform(X))
    gaps = np.isnan(X)
    error = np.linalg.norm((filled - whole)[gaps]) / np.linalg.norm(whole[gaps])
    assert error < 0.01
    assert filled.dtype == dtype
    # With zeros for what is missing nothing is recovered.
    zeros = model(partition=5).fit(np.nan_to_num(X))
    other = zeros.inverse_transform(zeros.transform(np.nan_to_num(X)))
    assert np.linalg.norm((other - whole)[gaps]) > 0.3 * np.linalg.norm(whole[gaps])


@pytest.mark.parametrize("given", [{}, {"alpha_W": 0.01}, {"alpha_H": 0.01}])
@pytest.mark.parametrize("n_agents", [1, 4])
def test_sparse_is_dense(given, n_agents):
    _, X = low_rank(n=60, n_features=12)
    X[np.nan_to_num(X) < 1] *= 0  # observed zeros
    dense = model(3, partition=n_agents, **given).fit(X)
    thin = model(3, partition=n_agents, sparse_missing=True, **given).fit(as_sparse(X))
    assert_allclose(thin.components_, dense.components_, rtol=1e-4, atol=1e-6)
    assert_allclose(thin.transform(as_sparse(X)), dense.transform(X), atol=1e-3)
    assert thin.score(as_sparse(X)) == pytest.approx(dense.score(X), rel=1e-5)
    assert thin.reconstruction_err_ == pytest.approx(dense.reconstruction_err_)
    # Without the flag what is absent is zero.
    zeros = model(3, partition=n_agents, **given).fit(as_sparse(X))
    plain = model(3, partition=n_agents, **given).fit(np.nan_to_num(X))
    assert_allclose(zeros.components_, plain.components_, rtol=1e-6, atol=1e-9)


def test_the_objective_falls():
    _, X = low_rank(noise=2.0, n=100)
    fits = [model(max_iter=n, n_init=1).fit(X) for n in (5, 10, 20, 40)]
    errors = [fitted.reconstruction_err_ for fitted in fits]
    assert (np.diff(errors) < 0).all()
    norm = np.linalg.norm(X[~np.isnan(X)])
    assert fits[-1].history_["shared_error"][-1] == pytest.approx(
        errors[-1] / norm, rel=0.01
    )


def test_stationary_on_the_observed_entries():
    _, X = low_rank(noise=2.0, n=100, share=0.4)
    fitted = model(3, max_iter=300).fit(X)
    W, H = fitted.transform(X), fitted.components_
    residual = np.where(np.isnan(X), 0, W @ H - np.nan_to_num(X))
    gradient = W.T @ residual
    scale = np.abs(W.T @ np.nan_to_num(X)).max()
    assert np.abs(gradient * H).max() < 2e-3 * scale * H.max()
    assert gradient.min() > -2e-3 * scale


def test_a_model_with_few_gaps_is_near_that_without():
    whole, _ = low_rank(noise=1.0)
    X = whole.copy()
    X[0, 0] = NAN
    one, other = model().fit(X), model().fit(whole)
    assert_allclose(one.reconstruction_err_, other.reconstruction_err_, rtol=2e-3)


@pytest.mark.parametrize("n_agents", [3, 6])
def test_who_holds_what_hardly_shows(n_agents):
    _, X = low_rank(n=90)
    one = model(max_iter=20).fit(X, agents=np.arange(90) % n_agents)
    other = model(max_iter=20).fit(X, agents=np.arange(90) // 30)
    assert_allclose(one.components_, other.components_, rtol=1e-4, atol=1e-6)


def test_a_feature_that_some_agents_have_never_measured():
    whole, X = low_rank(share=0.2)
    site = np.arange(300) % 3
    X[np.ix_(site == 1, np.arange(8))] = NAN
    fitted = model(max_iter=100).fit(X, agents=site)
    filled = fitted.inverse_transform(fitted.transform(X))
    assert_allclose(filled, whole, atol=0.02 * whole.max())


@pytest.mark.parametrize("loss", ["kullback-leibler", "itakura-saito", 0.5, 1.5])
@pytest.mark.parametrize("alpha_H", [0.0, 0.01])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_so_it_does_under_any_divergence(loss, alpha_H, as_sparse):
    _, X = low_rank(n=60, share=0.2)
    X[:, 3] = NAN
    given = {"beta_loss": loss, "alpha_H": alpha_H, "max_iter": 3}
    if as_sparse:
        X, given["sparse_missing"] = sparse.csr_array(np.nan_to_num(X)), True
    fitted = model(**given).fit(X)
    assert_array_equal(fitted.components_[:, 3], 0)
    assert (np.delete(fitted.components_, 3, axis=1).sum(axis=1) > 0).all()
    assert np.isfinite(fitted.transform(X)).all()


@pytest.mark.parametrize("n_agents", [1, 4])
def test_a_feature_that_nobody_has_observed_gets_zeros(n_agents):
    _, X = low_rank(share=0.2)
    X[:, 3] = NAN
    fitted = model(partition=n_agents).fit(X)
    assert_array_equal(fitted.components_[:, 3], 0)
    assert np.isfinite(fitted.transform(X)).all()
    others = np.delete(X, 3, axis=1)
    assert fitted.reconstruction_err_ < 0.05 * np.linalg.norm(np.nan_to_num(others))


def test_a_sample_without_observed_entries_gets_zeros():
    _, X = low_rank(share=0.2)
    X[7] = NAN
    site = np.arange(300) % 4
    fitted = model().fit(X, agents=site)
    assert_array_equal(fitted.transform(X)[7], 0)
    without = model().fit(np.delete(X, 7, axis=0), agents=np.delete(site, 7))
    assert fitted.reconstruction_err_ == pytest.approx(
        without.reconstruction_err_, rel=0.2, abs=0.1
    )


def test_transform_is_exact_and_row_by_row():
    _, X = low_rank(n=60)
    fitted = model().fit(X)
    W, H = fitted.transform(X), fitted.components_
    for x, w in zip(X, W, strict=True):
        seen = ~np.isnan(x)
        _, best = nnls(H[:, seen].T, x[seen])
        assert np.linalg.norm(x[seen] - w @ H[:, seen]) <= best + 1e-9
    assert_array_equal(fitted.transform(X[20:25]), W[20:25])
    complete = np.nan_to_num(X)
    assert_array_equal(fitted.transform(complete), solve_nnls(complete, H))


def test_score_counts_observed_entries():
    whole, X = low_rank(n=60, noise=1.0)
    fitted = model().fit(X)
    W = fitted.transform(X)
    seen = ~np.isnan(X)
    weights = np.arange(60.0)
    square = ((X - W @ fitted.components_) ** 2 * weights[:, None])[seen].sum()
    norm = (X**2 * weights[:, None])[seen].sum()
    assert fitted.score(X, sample_weight=weights) == pytest.approx(
        -np.sqrt(square / norm)
    )
    assert np.isfinite(fitted.score(whole))


def test_with_weights_known_components_and_normalised():
    _, X = low_rank(n=90, noise=1.0)
    weights = np.arange(90) % 3
    given = {"fixed_components": model(2).fit(X).components_}
    fitted = model(**given).fit(X, sample_weight=weights)
    repeated = model(**given).fit(np.repeat(X, weights, axis=0))
    assert_array_equal(fitted.components_[:2], given["fixed_components"])
    assert_allclose(fitted.components_, repeated.components_, rtol=0.01, atol=1e-2)
    scaled = model(normalize="components", **given).fit(X, sample_weight=weights)
    assert_allclose(scaled.components_.sum(axis=1), 1)
    assert scaled.reconstruction_err_ == pytest.approx(fitted.reconstruction_err_)


def test_pipelines_searches_and_frames():
    _, X = low_rank(n=90)
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(40)])
    pipeline = make_pipeline(MinMaxScaler(clip=True), model(max_iter=5))
    assert pipeline.fit_transform(frame).shape == (90, 5)
    search = GridSearchCV(model(max_iter=10), {"n_components": [1, 5]}, cv=3)
    assert search.fit(frame).best_params_ == {"n_components": 5}
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert_array_equal(again.transform(frame), search.transform(frame))
    assert_array_equal(
        clone(again).fit([frame[:40], frame[40:]]).components_.shape, (5, 40)
    )


def test_traffic_has_one_word_more_for_each_start():
    _, X = low_rank(n=40, n_features=8)
    given = {"n_init": 2, "max_iter": 4, "partition": 4, "adjacency": "path"}
    with_gaps = model(2, **given).fit(X).traffic_["bytes"]
    without = model(2, **given).fit(np.nan_to_num(X)).traffic_["bytes"]
    assert without == estimate_cost(model(2, **given), 8).bytes
    # Starts in four iterations: two, one, one, one; and no norm of rounded samples.
    n_words = 5 - 66
    assert abs(with_gaps - without) <= 2 * 3 * 8 * abs(n_words) + 100


def test_tags():
    assert get_tags(model()).input_tags.allow_nan
    assert not get_tags(PrivateDistributedNMF()).input_tags.allow_nan
    noisy = model(epsilon=1.0, delta=1e-5, clip=1.0)
    assert not get_tags(noisy).input_tags.allow_nan
    assert not get_tags(model(protocol="other")).input_tags.allow_nan


def test_refusals():
    _, X = low_rank(n=40)
    plain = PrivateDistributedNMF(2, encryption=None, max_iter=2, tol=0)
    with pytest.raises(ValueError, match=r'contains NaN.*protocol="secure-sum"'):
        plain.fit(X)
    with pytest.raises(ValueError, match="contains NaN"):
        plain.fit(np.nan_to_num(X)).transform(X)
    thin = PrivateDistributedNMF(2, encryption=None, sparse_missing=True)
    with pytest.raises(ValueError, match=r'sparse_missing=True.*"secure-sum"'):
        thin.fit(as_sparse(X))
    noisy = model(epsilon=1.0, delta=1e-5, clip=1.0)
    with pytest.raises(ValueError, match="contains NaN with epsilon=1"):
        noisy.fit(X)
    with pytest.raises(ValueError, match="no entry of X is observed"):
        model().fit(np.full((8, 3), NAN))
    with pytest.raises(ValueError, match="infinity"):
        model().fit(np.where(np.isnan(X), np.inf, X))
    with pytest.raises(ValueError, match="Negative values"):
        model().fit(-X)
    holed = sparse.csr_array(np.where(np.isnan(X), NAN, X))
    with pytest.raises(ValueError, match="contains NaN although it is sparse"):
        model().fit(holed)
    with_nan = model(max_iter=3, sparse_missing=True).fit(holed).components_
    without = model(max_iter=3, sparse_missing=True).fit(as_sparse(X)).components_
    assert_array_equal(with_nan, without)


def test_descent_ends_at_the_solution():
    _, X = low_rank(n=30, share=0.3)
    H = np.random.default_rng(1).exponential(size=(3, 40))
    values, mask = split_observed(X)
    for penalty in ((0.0, 0.0), (2.0, 1.0)):
        W = descend_observed(values, mask, H, np.ones((30, 3)), 2000, *penalty)
        assert_allclose(W, solve_observed(X, H, *penalty), atol=1e-6)
