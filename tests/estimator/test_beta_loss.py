"""Other divergences under the secure sum, beside scikit-learn's NMF."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF, non_negative_factorization
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skppdnmf import PrivateDistributedNMF, estimate_cost
from skppdnmf._nmf.beta import exponent
from skppdnmf._secure_sum import beta_path, settings
from skppdnmf.audit import record

KL = "kullback-leibler"
LOSSES = ["itakura-saito", 0.5, KL, 1.5]


def model(n_components=4, **parameters):
    given = {"protocol": "secure-sum", "max_iter": 30, "tol": 0, "random_state": 0}
    return PrivateDistributedNMF(
        n_components, **{"beta_loss": KL, **given, **parameters}
    )


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    H = rng.gamma(0.3, 1.0, (4, 30)) + 0.01
    return rng.poisson(3 * rng.gamma(1.0, 1.0, (120, 4)) @ H).astype(float)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([model(2, max_iter=6), model(2, beta_loss=1.5, max_iter=6)])
def test_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_agents", [1, 5])
def test_without_extrapolation_it_is_the_pooled_update(
    counts, loss, n_agents, monkeypatch
):
    """The same path, written naively; and the loss never rises."""
    X = counts + 0.5
    start = np.random.default_rng(1).gamma(2.0, 1.0, (4, 30))
    make = settings.PathSettings
    monkeypatch.setattr(
        settings, "PathSettings", lambda **given: make(**given, extrapolates=False)
    )
    nmf = model(beta_loss=loss, init=start, max_iter=12, partition=n_agents).fit(X)
    beta = {KL: 1.0, "itakura-saito": 0.0}.get(loss, loss)
    power = exponent(beta)
    H = np.ldexp(start, -round(np.log2(start.mean())))
    H = H / H.sum(axis=1, keepdims=True) if beta == 1 else H
    W = X.mean(axis=1, keepdims=True) / H.mean(axis=1) / 4
    for iteration in range(12):
        for _ in range(2 if iteration else 5):
            Y = W @ H
            below = Y ** (beta - 1) @ H.T
            W = W * ((X * Y ** (beta - 2)) @ H.T / below) ** power
        Y = W @ H
        H = H * ((W.T @ (X * Y ** (beta - 2))) / (W.T @ Y ** (beta - 1))) ** power
        H = H / H.sum(axis=1, keepdims=True) if beta == 1 else H
    assert_allclose(nmf.components_, H, rtol=1e-6, atol=1e-9)
    assert (np.diff(nmf.history_["local_error"]) <= 1e-12).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_comes_as_near_as_scikit_learn(counts, loss):
    X = counts + 0.5
    ours = model(beta_loss=loss, max_iter=200, partition=5).fit(X)
    pooled = NMF(
        4, solver="mu", beta_loss=loss, init="random", max_iter=200, tol=0,
        random_state=0,
    ).fit(X)  # fmt: skip
    assert ours.reconstruction_err_ < 1.02 * pooled.reconstruction_err_
    W, H = ours.transform(X), ours.components_
    fixed, _, _ = non_negative_factorization(
        X, H=H, n_components=4, solver="mu", beta_loss=loss, update_H=False,
        max_iter=3000, tol=1e-9,
    )  # fmt: skip
    assert_allclose(W, fixed, atol=2e-2 * W.max())
    assert ours.history_["local_error"][-1] == pytest.approx(-ours.score(X), rel=0.01)
    assert ours.consensus_error_ == 0


@pytest.mark.parametrize("penalty", [{}, {"alpha_W": 0.01}, {"alpha_H": 0.01}])
@pytest.mark.parametrize("convert", [sparse.csr_array, np.float32])
def test_other_kinds_of_data(counts, penalty, convert):
    dense = model(**penalty).fit(counts)
    other = model(**penalty).fit(convert(counts))
    largest = dense.components_.max()
    assert_allclose(other.components_, dense.components_, atol=1e-3 * largest)
    W = dense.transform(counts)
    assert_allclose(other.transform(convert(counts)), W, atol=1e-2 * W.max())
    assert other.score(convert(counts)) == pytest.approx(dense.score(counts), rel=1e-3)


@pytest.mark.parametrize("n_agents", [3, 7])
def test_who_holds_what_hardly_shows(counts, n_agents):
    one = model().fit(counts, agents=np.arange(120) % n_agents)
    other = model().fit(counts, agents=np.arange(120) // 30)
    assert_allclose(one.components_, other.components_, rtol=1e-5, atol=1e-8)


def test_rows_sum_to_one(counts):
    assert_allclose(model().fit(counts).components_.sum(axis=1), 1.0)


@pytest.mark.parametrize("loss", [1.0, 0.5])
def test_a_weight_counts_samples(counts, loss):
    weights = np.arange(120) % 3
    site = np.arange(120) % 4
    weighted = model(beta_loss=loss).fit(counts, agents=site, sample_weight=weights)
    repeated = model(beta_loss=loss).fit(
        np.repeat(counts, weights, axis=0), agents=np.repeat(site, weights)
    )
    assert_allclose(weighted.components_, repeated.components_, rtol=1e-6, atol=1e-9)
    assert weighted.reconstruction_err_ == pytest.approx(repeated.reconstruction_err_)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("normalize", [None, "components"])
def test_known_components_stay(counts, loss, normalize):
    X = counts + 0.5
    known = model(2, beta_loss=loss).fit(X).components_ * 3.7
    fitted = model(beta_loss=loss, fixed_components=known, normalize=normalize).fit(X)
    scaled = known / known.sum(axis=1, keepdims=True) if normalize else known
    assert_array_equal(fitted.components_[:2], scaled)
    free = model(2, beta_loss=loss).fit(X)
    assert fitted.reconstruction_err_ < free.reconstruction_err_


@pytest.mark.parametrize("loss", [0.5, KL, 1.5])
def test_recovers_what_is_missing(loss):
    rng = np.random.default_rng(0)
    whole = rng.gamma(1.0, 1.0, (300, 5)) @ rng.gamma(1.0, 1.0, (5, 40))
    gaps = rng.random(whole.shape) < 0.5
    X = np.where(gaps, np.nan, whole)
    fitted = model(5, beta_loss=loss, max_iter=300).fit(X)
    filled = fitted.inverse_transform(fitted.transform(X))
    error = np.linalg.norm((filled - whole)[gaps]) / np.linalg.norm(whole[gaps])
    assert error < 0.03
    thin = sparse.csr_array(np.nan_to_num(X))
    other = model(5, beta_loss=loss, max_iter=20, sparse_missing=True).fit(thin)
    dense = model(5, beta_loss=loss, max_iter=20).fit(X)
    assert_allclose(other.components_, dense.components_, rtol=1e-4, atol=1e-7)


def test_tol_ends_it(counts):
    early = model(max_iter=500, tol=1e-4).fit(counts)
    assert early.n_iter_ < 500
    late = model(max_iter=500).fit(counts)
    assert early.reconstruction_err_ < 1.05 * late.reconstruction_err_


def test_starts_side_by_side(counts):
    one = model(n_init=1).fit(counts).reconstruction_err_
    several = model(n_init=6).fit(counts)
    assert several.reconstruction_err_ < 1.01 * one


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("alpha_H", [0.0, 0.01])
def test_traffic_is_that_of_the_estimate(counts, loss, alpha_H):
    nmf = model(beta_loss=loss, alpha_H=alpha_H, max_iter=5, adjacency="path")
    nmf.fit(counts + 0.5)
    assert nmf.traffic_["bytes"] == estimate_cost(nmf, 30).bytes
    assert nmf.n_exchanges_ == 5


def test_pipelines_searches_and_frames(counts):
    frame = pd.DataFrame(counts, columns=[f"f{k}" for k in range(30)])
    pipeline = make_pipeline(MaxAbsScaler(), model(max_iter=5))
    assert pipeline.fit_transform(frame).shape == (120, 4)
    search = GridSearchCV(model(max_iter=20), {"n_components": [1, 3]}, cv=3)
    assert search.fit(frame).best_params_ == {"n_components": 3}
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert_array_equal(again.transform(frame), search.transform(frame))
    assert_array_equal(clone(again).fit(frame).components_, again.components_)


def test_frobenius_by_number(counts):
    one = model(beta_loss=2).fit(counts)
    other = model(beta_loss="frobenius").fit(counts)
    assert_array_equal(one.components_, other.components_)


def test_degenerate_data():
    for X in (np.zeros((8, 3)), np.eye(8), np.ones((8, 1))):
        fitted = model(2, max_iter=5).fit(X)
        assert np.isfinite(fitted.components_).all()
        assert np.isfinite(fitted.transform(X)).all()
        assert fitted.score(X) <= 0


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_the_scale_of_data_is_nothing(counts, scale):
    one, other = model().fit(counts), model().fit(counts * scale)
    assert_allclose(one.components_, other.components_, rtol=1e-6, atol=1e-9)


def test_refusals(counts):
    plain = PrivateDistributedNMF(2, beta_loss=KL, encryption=None)
    with pytest.raises(ValueError, match=r'beta_loss=.*only protocol="secure-sum"'):
        plain.fit(counts)
    with pytest.raises(ValueError, match=r"beta_loss='kullback-leibler' with epsilon"):
        model(epsilon=1.0, delta=1e-5, clip=1.0).fit(counts)
    for X in (counts, sparse.csr_array(counts)):
        with pytest.raises(ValueError, match=r"itakura-saito.*contains zeros"):
            model(beta_loss="itakura-saito").fit(X)
    fitted = model(beta_loss=0).fit(counts + 1)
    with pytest.raises(ValueError, match="contains zeros"):
        fitted.transform(counts)
    with pytest.raises(ValueError, match="beta_loss"):
        model(beta_loss=2.5).fit(counts)


def test_the_audit_says_what_it_does_not_know(counts):
    with pytest.raises(ValueError, match=r"beta_loss=.*Frobenius fits only"):
        record(model(), counts)


def test_a_lost_agent(counts):
    """The path goes on from another point, and never sums the same again."""
    path = beta_path.BetaPath(np.ones((1, 4, 30)), settings.settings_of(model(), 4, 30))
    moved = path.move_on(1)
    assert (moved.point != path.point).all()
    assert_allclose(moved.point.sum(axis=2), 1.0)
    assert not np.allclose(path.move_on(2).point, moved.point)


@pytest.mark.journey
def test_digits_beside_scikit_learn():
    X = load_digits().data[::4]
    ours, pooled = [], []
    for seed in range(3):
        nmf = model(10, max_iter=200, random_state=seed, partition=10).fit(X)
        ours.append(nmf.reconstruction_err_)
        mu = NMF(
            10, solver="mu", beta_loss=KL, init="random", max_iter=200, tol=0,
            random_state=seed,
        )  # fmt: skip
        pooled.append(mu.fit(X).reconstruction_err_)
    assert np.mean(ours) <= np.mean(pooled)
