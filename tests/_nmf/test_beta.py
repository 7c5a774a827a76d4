"""Beta divergences: beside scikit-learn's, scipy's minimisers, and naive updates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from sklearn.decomposition._nmf import _beta_divergence

from skppdnmf._nmf.beta import BetaSamples, beta_of, exponent, solve_beta

BETAS = [0.0, 0.5, 1.0, 1.5]


def counts(n=40, n_features=12, K=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, 1.0, (n, K)) @ rng.gamma(1.0, 1.0, (K, n_features))
    return X * rng.gamma(5.0, 0.2, X.shape)


def factors(n=40, n_features=12, K=3, seed=1):
    rng = np.random.default_rng(seed)
    return rng.gamma(2.0, 1.0, (n, K)), rng.gamma(2.0, 1.0, (K, n_features))


def naive_update(X, W, H, beta, M=1.0):
    """The multiplicative update of W, as it is printed."""
    Y = W @ H
    ratio = ((M * X * Y ** (beta - 2)) @ H.T) / ((M * Y ** (beta - 1)) @ H.T)
    return W * ratio ** exponent(beta)


def right_steps(samples, W, H, steps):
    return samples.improve(W, H, np.ones(len(W)), steps).W


def totals(samples, W, H, weights):
    return samples.improve(W, H, weights, 0)[1:]


def test_names():
    assert [beta_of(n) for n in ("frobenius", "itakura-saito", 1.5)] == [2.0, 0.0, 1.5]


@pytest.mark.parametrize("beta", BETAS)
def test_divergences_are_those_of_scikit_learn(beta):
    X, (W, H) = counts(), factors()
    found = BetaSamples.of(X, beta, False).divergences(W, H)
    expected = [
        _beta_divergence(x[None], w[None], H, beta) for x, w in zip(X, W, strict=True)
    ]
    assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("beta", BETAS)
def test_steps_are_the_naive_ones_and_never_raise_the_divergence(beta):
    X, (W, H) = counts(), factors()
    samples = BetaSamples.of(X, beta, False)
    one = right_steps(samples, W, H, 1)
    assert_allclose(one, naive_update(X, W, H, beta), rtol=1e-12)
    last = samples.divergences(W, H)
    for _ in range(20):
        W = right_steps(samples, W, H, 1)
        now = samples.divergences(W, H)
        assert (now <= last * (1 + 1e-12) + 1e-12).all()
        last = now


@pytest.mark.parametrize("beta", BETAS)
def test_totals_are_the_naive_sums(beta):
    X, (W, H) = counts(), factors()
    weights = np.arange(40.0)
    above, below, divergences = totals(BetaSamples.of(X, beta, False), W, H, weights)
    Y, V = W @ H, W * weights[:, None]
    assert_allclose(above, H * (V.T @ (X * Y ** (beta - 2))))
    assert_allclose(below, H * (V.T @ Y ** (beta - 1)))
    assert_allclose(divergences.sum(), _beta_divergence(X, W, H, beta))


def test_expected_counts_add_up_to_the_features():
    X, (W, H) = counts(), factors()
    above, _, _ = totals(BetaSamples.of(X, 1.0, False), W, H, np.ones(40))
    assert_allclose(above.sum(axis=0), X.sum(axis=0))


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("missing", [False, True])
def test_sparse_is_dense(beta, missing):
    X, (W, H) = counts(n=300), factors(n=300)
    X[np.random.default_rng(2).random(X.shape) < 0.5] = 0
    thin = BetaSamples.of(sparse.csr_array(X), beta or 0.1, missing)
    dense = np.where(X > 0, X, np.nan) if missing else X
    plain = BetaSamples.of(dense, beta or 0.1, missing)
    for a, b in zip(
        totals(thin, W, H, np.ones(300)), totals(plain, W, H, np.ones(300)), strict=True
    ):
        assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    assert_allclose(right_steps(thin, W, H, 3), right_steps(plain, W, H, 3))
    assert_allclose(thin.size_bounds(), plain.size_bounds())
    assert_allclose(thin.null_divergences(), plain.null_divergences(), atol=1e-9)


@pytest.mark.parametrize("beta", BETAS)
def test_missing_entries_do_not_count(beta):
    X, (W, H) = counts(), factors()
    gaps = np.random.default_rng(3).random(X.shape) < 0.4
    samples = BetaSamples.of(np.where(gaps, np.nan, X), beta, True)
    M = (~gaps).astype(float)
    assert_allclose(right_steps(samples, W, H, 1), naive_update(X, W, H, beta, M))
    other = BetaSamples.of(np.where(gaps, np.nan, 7 * X + 1), beta, True)
    if beta == 1:  # ratio one where nothing is observed
        above = totals(samples, W, H, np.ones(40))[0]
        Y = W @ H
        assert_allclose(above, H * (W.T @ np.where(gaps, 1, X / Y)))
    assert not np.allclose(other.constants, samples.constants)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 1.5])
@pytest.mark.parametrize("penalty", [(0.0, 0.0), (0.3, 0.0), (0.1, 0.2)])
@pytest.mark.parametrize("missing", [False, True])
def test_no_minimiser_of_scipy_is_better(beta, penalty, missing):
    X = counts(n=12)
    _, H = factors()
    gaps = np.random.default_rng(3).random(X.shape) < 0.3 if missing else X < 0
    data = np.where(gaps, np.nan, X)
    l1, l2 = penalty
    W = solve_beta(data, H, beta, l1, l2, missing)

    def objective(w, x, seen):
        w = np.maximum(w, 0)[None]
        d = _beta_divergence(x[None, seen], w, H[:, seen], beta)
        return d + l1 * w.sum() + l2 / 2 * (w * w).sum()

    for x, w, gap in zip(X, W, gaps, strict=True):
        best = min(
            minimize(
                objective,
                start,
                args=(x, ~gap),
                method="L-BFGS-B",
                bounds=[(0, None)] * 3,
                options={"ftol": 1e-15, "gtol": 1e-9},
            ).fun
            for start in (w, np.ones(3))
        )
        assert objective(w, x, ~gap) <= best + 1e-7 * (1 + abs(best))


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_a_sample_does_not_depend_on_the_others_nor_on_scale(beta, scale):
    X, (_, H) = counts(n=130), factors()
    W = solve_beta(X, H, beta, 0.0, 0.0, False)
    assert_allclose(solve_beta(X[100:103], H, beta, 0, 0, False), W[100:103], rtol=1e-7)
    scaled = solve_beta(X * scale, H, beta, 0.0, 0.0, False)
    assert_allclose(scaled, W * scale, rtol=1e-6, atol=1e-9 * scale)


def test_degenerate_samples():
    H = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    X = np.array([[0.0, 0.0, 0.0], [2.0, 3.0, 5.0], [1.0, 0.0, 0.0]])
    W = solve_beta(X, H, 1.0, 0.0, 0.0, False)
    assert_allclose(W[0], 0)
    assert_allclose(W[1], [2, 0, 3], atol=1e-6)
    assert np.isfinite(W).all()
    nothing = np.full((1, 3), np.nan)
    assert_allclose(solve_beta(nothing, H, 1.0, 0, 0, True), 0)


@pytest.mark.parametrize("missing", [False, True])
def test_sparse_samples_of_any_length_do_not_depend_on_the_others(missing):
    rng = np.random.default_rng(4)
    X = rng.poisson(1.0, (60, 90)) * (rng.random((60, 90)) < rng.random((60, 1)))
    X[7] = 0
    X, (_, H) = sparse.csr_matrix(X.astype(float)), factors(n_features=90)
    W = solve_beta(X, H, 1.0, 0.0, 0.0, missing)
    alone = np.vstack([solve_beta(X[i], H, 1.0, 0.0, 0.0, missing) for i in range(60)])
    assert_array_equal(alone, W)
    assert not W[7].any()
    dense = X.toarray()
    plain = np.where(dense > 0, dense, np.nan) if missing else dense
    samples = BetaSamples.of(plain, 1.0, missing)
    expected = solve_beta(plain, H, 1.0, 0.0, 0.0, missing)
    reached = samples.divergences(expected, H)
    assert_allclose(samples.divergences(W, H), reached, rtol=1e-6, atol=1e-9)
