"""How close fits under protocol="secure-sum" come to those of plain NMF."""

from functools import lru_cache

import numpy as np
import pytest
from _sums import error_of, ignored, model
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from skppdnmf import PrivateDistributedNMF, make_paper_synthetic

pytestmark = pytest.mark.journey

DIGITS = load_digits().data
EXCESSES = {60: 0.005, 100: 0.002}


def best_of_three(X, n_components):
    """The lowest error of three converged runs of scikit-learn."""
    with ignored(ConvergenceWarning):
        return min(
            NMF(n_components, init="random", max_iter=2000, tol=1e-6, random_state=seed)
            .fit(X)
            .reconstruction_err_
            for seed in range(3)
        )


@lru_cache
def best_on_digits():
    return best_of_three(DIGITS, 10)


@pytest.mark.parametrize("exchanges", [60, 100])
def test_quality_on_digits(exchanges):
    errors = []
    for seed in range(3):
        fitted = model(10, partition=10, max_iter=exchanges, random_state=seed)
        fitted.fit(DIGITS)
        assert fitted.n_exchanges_ == exchanges
        errors.append(fitted.reconstruction_err_ / best_on_digits())
    assert np.median(errors) < 1 + EXCESSES[exchanges]


def test_quality_on_the_synthetic_data():
    errors = {60: [], 100: []}
    for seed in range(10):
        X, agents, *_ = make_paper_synthetic(seed)
        X = np.maximum(X, 0)
        best = best_of_three(X, 5)
        for exchanges, found in errors.items():
            fitted = model(5, max_iter=exchanges, random_state=seed)
            fitted.fit(X, agents=agents)
            assert len(fitted.agent_labels_) == 10
            found.append(fitted.reconstruction_err_ / best)
    for exchanges, found in errors.items():
        assert np.median(found) < 1 + EXCESSES[exchanges]


def test_one_agent_is_plain_nmf():
    fitted = model(10, partition=1, max_iter=100).fit(DIGITS)
    assert fitted.reconstruction_err_ < 1.002 * best_on_digits()
    assert fitted.n_exchanges_ == 0
    assert fitted.traffic_["bytes"] == 0


def test_default_tolerance_ends_early_without_a_warning():
    fitted = PrivateDistributedNMF(
        10, protocol="secure-sum", partition=10, random_state=0
    ).fit(DIGITS)
    assert fitted.n_iter_ < 60
    assert fitted.n_exchanges_ == fitted.n_iter_
    assert fitted.reconstruction_err_ < 1.005 * best_on_digits()


def test_more_starts_cost_bytes_and_save_error():
    X = DIGITS[:300]
    errors, n_bytes = [], []
    for n_init in (1, 8):
        runs = [
            model(8, n_init=n_init, max_iter=40, random_state=s).fit(X)
            for s in range(5)
        ]
        errors.append(np.mean([run.reconstruction_err_ for run in runs]))
        n_bytes.append(runs[0].traffic_["bytes"])
    assert errors[1] < errors[0]
    assert n_bytes[1] > 2 * n_bytes[0]


@pytest.mark.parametrize(
    ("alpha_W", "alpha_H"), [(0.01, "same"), (0.05, 0.005), (0.002, 0.05)]
)
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
def test_penalised_objective_is_that_of_nmf(alpha_W, alpha_H, l1_ratio):
    X = DIGITS[:200, 10:40] / 16
    penalty = {"alpha_W": alpha_W, "alpha_H": alpha_H, "l1_ratio": l1_ratio}

    def objective(estimator):
        with ignored(ConvergenceWarning):
            W = estimator.fit_transform(X)
        H = estimator.components_
        weights = alpha_W * 30, (alpha_W if alpha_H == "same" else alpha_H) * 200
        total = 0.5 * np.linalg.norm(X - W @ H) ** 2
        for factor, weight in zip((W, H), weights, strict=True):
            total += weight * l1_ratio * factor.sum()
            total += 0.5 * weight * (1 - l1_ratio) * (factor**2).sum()
        return total

    pooled = min(
        objective(
            NMF(4, init="random", max_iter=1000, tol=1e-6, random_state=s, **penalty)
        )
        for s in range(3)
    )
    ours = objective(model(4, partition=6, max_iter=100, **penalty))
    assert ours < 1.005 * pooled


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_a_penalty_does_not_meet_the_scale_of_the_start(size):
    """Factors of one scale bear a penalty that others would not."""
    rng = np.random.default_rng(0)
    X = size * rng.exponential(size=(60, 3)) @ rng.exponential(size=(3, 12))
    penalty = {"alpha_W": 2e-2 * size**2, "alpha_H": 2e-7, "l1_ratio": 1.0}
    fitted = model(3, max_iter=60, **penalty).fit(X)
    assert fitted.components_.any(axis=1).all()
    assert fitted.score(X) > -0.2


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("partition", [1, 5])
def test_an_exact_factorisation_is_found_and_ends_early(partition, dtype):
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(60, 3)) @ rng.exponential(size=(3, 12))
    fitted = model(tol=1e-4, max_iter=300, partition=partition).fit(X.astype(dtype))
    assert fitted.n_iter_ < 100
    assert error_of(fitted, X) < 1e-3
    if partition == 1 and dtype == np.float64:
        assert error_of(fitted, X) < 1e-7


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
@pytest.mark.parametrize("n_max", [10, 100, 10**4])
def test_a_coarse_n_max_costs_accuracy_and_no_more(scale, n_max):
    """Also where a component that is hardly used is rounded to nothing."""
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(60, 2)) @ rng.exponential(size=(2, 12))
    X[0] += 1e-3 * rng.exponential(size=12)
    fitted = model(4, n_max=n_max, max_iter=60).fit(scale * X)
    error = error_of(fitted, scale * X)
    assert error < min(0.3, 5 / n_max**0.5)
    assert fitted.components_.max() < 1e4
    assert fitted.history_["shared_error"][-1] < 0.5
