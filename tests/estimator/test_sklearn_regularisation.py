"""alpha_W, alpha_H and l1_ratio: NMF's objective, and each agent's share of it."""

import warnings

import numpy as np
import pytest
from _estimators import model
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import InvalidParameterError

from skppdnmf import estimate_cost, make_paper_synthetic
from skppdnmf._nmf.admm import penalise
from skppdnmf._nmf.nnls import solve_nnls
from skppdnmf._nmf.penalties import (
    Penalty,
    balancing_scale,
    left_penalty,
    right_penalty,
)

KINDS = {"l2": 0.0, "l1": 1.0, "mixed": 0.5}


def objective(X, W, H, alpha_W, alpha_H, l1_ratio):
    """As the documentation of NMF has it."""
    n_samples, n_features = X.shape
    total = 0.5 * np.linalg.norm(X - W @ H) ** 2
    for factor, weight in ((W, alpha_W * n_features), (H, alpha_H * n_samples)):
        total += weight * l1_ratio * factor.sum()
        total += 0.5 * weight * (1 - l1_ratio) * (factor**2).sum()
    return total


def best_objectives(X, n_components, seeds, alpha_W, alpha_H, l1_ratio, **ours):
    """Best objectives of both estimators over several starts."""
    penalty = {"alpha_W": alpha_W, "alpha_H": alpha_H, "l1_ratio": l1_ratio}
    found = [[], []]
    for seed in seeds:
        pooled = NMF(
            n_components,
            init="random",
            tol=1e-6,
            max_iter=1000,
            random_state=seed,
            **penalty,
        )
        private = model(n_components, random_state=seed, **penalty, **ours)
        for values, estimator in zip(found, (pooled, private), strict=True):
            with warnings.catch_warnings():
                # The best of several starts need not have converged.
                warnings.simplefilter("ignore", ConvergenceWarning)
                W = estimator.fit_transform(X)
            values.append(
                objective(X, W, estimator.components_, alpha_W, alpha_H, l1_ratio)
            )
    return min(found[0]), min(found[1])


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[::3]


@pytest.fixture(scope="module")
def synthetic():
    return make_paper_synthetic(random_state=0)[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", [0.01, 0.3])
def test_objective_equals_that_of_nmf_on_digits(digits, kind, alpha):
    pooled, private = best_objectives(
        digits, 5, range(3), alpha, alpha, KINDS[kind], max_iter=150, encryption=None
    )
    assert private == pytest.approx(pooled, rel=5e-3)


@pytest.mark.journey
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("alpha_W", "alpha_H"), [(1e-5, 1e-5), (2e-4, 2e-4), (3e-4, 3e-5)]
)
def test_objective_equals_that_of_nmf_on_small_numbers(
    synthetic, kind, alpha_W, alpha_H
):
    pooled, private = best_objectives(
        synthetic,
        5,
        range(3),
        alpha_W,
        alpha_H,
        KINDS[kind],
        max_iter=150,
        partition=6,
        encryption=None,
    )
    assert private == pytest.approx(pooled, rel=5e-3)


@pytest.mark.parametrize("partition", [1, 3, [570, 29, 0, 0]])
def test_share_of_each_agent(digits, partition):
    """The split of the penalty is exact: uneven agents and relays change nothing."""
    penalty = {"alpha_W": 0.2, "l1_ratio": 0.5}
    values = []
    for split in (4, partition):
        fitted = model(
            4, partition=split, adjacency="path", encryption=None, max_iter=150,
            **penalty,
        )  # fmt: skip
        W = fitted.fit_transform(digits)
        values.append(objective(digits, W, fitted.components_, 0.2, 0.2, 0.5))
    assert values[1] == pytest.approx(values[0], rel=5e-3)


def test_alpha_h_is_the_same_by_default(digits):
    one = model(alpha_W=0.1).fit(digits)
    other = model(alpha_W=0.1, alpha_H=0.1).fit(digits)
    assert_array_equal(one.components_, other.components_)
    different = model(alpha_W=0.1, alpha_H=1.0).fit(digits)
    assert np.linalg.norm(different.components_) < np.linalg.norm(one.components_)


def test_no_penalty_changes_nothing(digits):
    plain = model().fit(digits)
    again = model(alpha_W=0.0, alpha_H=0.0, l1_ratio=0.7).fit(digits)
    assert_array_equal(again.components_, plain.components_)


@pytest.mark.parametrize(("alpha_W", "alpha_H"), [(0.05, 0.0), (0.0, 0.05)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_penalty_on_one_factor_alone(digits, alpha_W, alpha_H, kind):
    # The other factor then grows without bound, as NMF documents.
    penalty = {"alpha_W": alpha_W, "alpha_H": alpha_H, "l1_ratio": KINDS[kind]}
    fitted = model(**penalty, max_iter=40).fit(digits)
    plain = model(max_iter=40).fit(digits)
    assert np.isfinite(fitted.components_).all()
    assert fitted.reconstruction_err_ < 1.05 * plain.reconstruction_err_
    shrunk = fitted.components_ if alpha_H else fitted.transform(digits)
    free = plain.components_ if alpha_H else plain.transform(digits)
    assert np.linalg.norm(shrunk) < np.linalg.norm(free)


def test_error_and_score_leave_the_penalty_out(digits):
    fitted = model(alpha_W=1.0).fit(digits)
    W = fitted.transform(digits)
    error = np.linalg.norm(digits - W @ fitted.components_)
    assert_allclose(fitted.reconstruction_err_, error)
    assert_allclose(fitted.score(digits), -error / np.linalg.norm(digits))
    weight = np.r_[np.ones(100), np.zeros(len(digits) - 100)]
    assert_allclose(
        fitted.score(digits, sample_weight=weight), fitted.score(digits[:100])
    )
    free = solve_nnls(digits, fitted.components_)
    assert np.linalg.norm(digits - free @ fitted.components_) < error


@pytest.mark.parametrize("kind", KINDS)
def test_transform_is_that_of_nmf(digits, kind):
    penalty = {"alpha_W": 0.5, "l1_ratio": KINDS[kind]}
    fitted = model(5, **penalty).fit(digits)
    assert_array_equal(
        fitted.transform(digits), model(5, **penalty).fit_transform(digits)
    )
    pooled = NMF(5, init="random", tol=1e-10, max_iter=5000, random_state=0, **penalty)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        pooled.set_params(max_iter=1).fit(digits)
    pooled.set_params(max_iter=5000).components_ = fitted.components_.copy()
    W, V = fitted.transform(digits), pooled.transform(digits)
    assert_allclose(W, V, atol=1e-4 * V.max())
    mine = objective(digits, W, fitted.components_, 0.5, 0, KINDS[kind])
    theirs = objective(digits, V, fitted.components_, 0.5, 0, KINDS[kind])
    assert mine <= theirs * (1 + 1e-12)
    for k in (0, 77):
        assert_array_equal(fitted.transform(digits[k : k + 1])[0], W[k])


def test_l1_makes_zeros_and_l2_makes_small_numbers(digits):
    plain = model(5, max_iter=40).fit(digits)
    l1 = model(5, max_iter=40, alpha_W=1.0, l1_ratio=1.0).fit(digits)
    l2 = model(5, max_iter=40, alpha_W=1.0).fit(digits)
    zeros = [np.mean(m.transform(digits) == 0) for m in (plain, l1, l2)]
    assert zeros[1] > zeros[0] + 0.05
    sizes = [
        np.linalg.norm(m.transform(digits)) * np.linalg.norm(m.components_)
        for m in (plain, l2)
    ]
    assert sizes[1] < sizes[0]


def test_an_overwhelming_penalty_leaves_nothing(digits):
    fitted = model(alpha_W=1e6, l1_ratio=1.0).fit(digits)
    assert_array_equal(fitted.transform(digits), 0)
    assert_allclose(fitted.reconstruction_err_, np.linalg.norm(digits))
    assert fitted.score(digits) == pytest.approx(-1.0)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_scaled_data_with_scaled_penalties(digits, scale):
    """Penalties scale as X: objective s^2, factors sqrt(s)."""
    one = model(alpha_W=0.1, l1_ratio=0.0, encryption=None).fit(digits)
    other = model(alpha_W=0.1 * scale, encryption=None).fit(scale * digits)
    root = np.sqrt(scale)
    assert_allclose(
        other.components_, root * one.components_, rtol=1e-4, atol=1e-5 * root
    )


@pytest.mark.parametrize("alpha_H", [0.0, "same"])
def test_the_cost_estimate_counts_the_agreement_on_a_scale(digits, alpha_H):
    estimator = model(alpha_W=0.1, alpha_H=alpha_H, partition=3)
    expected = estimate_cost(estimator, n_features=64)
    traffic = estimator.fit(digits).traffic_
    assert expected.ciphertexts == traffic["ciphertexts"]
    # A penalty on both factors takes one more private average.
    plain = estimate_cost(model(partition=3), n_features=64).ciphertexts
    assert (expected.ciphertexts > plain) == (alpha_H == "same")


@pytest.mark.parametrize("masking", ["entrywise", "scalar"])
def test_ciphers_change_nothing(digits, masking):
    parameters = {
        "alpha_W": 0.1,
        "l1_ratio": 0.3,
        "max_iter": 1,
        "partition": 2,
        "masking": masking,
        "key_size": 256,
    }
    part = digits[:40, 20:30]
    simulated = model(2, **parameters).fit(part)
    with pytest.warns(match="256"):
        encrypted = model(2, encryption="paillier", **parameters).fit(part)
    assert_array_equal(encrypted.components_, simulated.components_)
    assert encrypted.traffic_ == simulated.traffic_


def test_absolute_penalties_and_float32(digits):
    fitted = model(
        alpha_W=0.01, penalty_scaling="absolute", mu=50.0, g_max=10.0, max_iter=30
    ).fit(digits)
    assert fitted.consensus_error_ < 0.2
    single = model(alpha_W=0.1, l1_ratio=0.5).fit(digits.astype(np.float32))
    assert single.components_.dtype == np.float32
    double = model(alpha_W=0.1, l1_ratio=0.5).fit(digits)
    assert single.reconstruction_err_ == pytest.approx(
        double.reconstruction_err_, rel=1e-3
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha_W", -0.1),
        ("alpha_H", -0.1),
        ("alpha_H", "equal"),
        ("l1_ratio", 1.5),
        ("l1_ratio", -0.5),
    ],
)
def test_invalid_penalties_are_named(digits, name, value):
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter"):
        model(**{name: value}).fit(digits)


# The functions below the estimator ------------------------------------------------


def test_shares_sum_up_to_the_whole():
    shares = [left_penalty(0.3, 0.25, n) for n in (7, 0, 13)]
    whole = left_penalty(0.3, 0.25, 20)
    assert_allclose(np.sum(shares, axis=0), whole)
    assert shares[1] == Penalty(0, 0)
    assert right_penalty(0.3, 1.0, 10) == Penalty(3.0, 0.0)


def test_penalise_adds_the_gradient_of_the_penalty():
    rng = np.random.default_rng(0)
    A, B, F = rng.random((3, 3)), rng.random((3, 4)), rng.random((3, 4))
    C, D = penalise(A, B, Penalty(0.7, 0.2))
    assert_allclose(C @ F - D, A @ F - B + 0.7 + 0.2 * F)
    for untouched, array in zip(penalise(A, B, Penalty()), (A, B), strict=True):
        assert untouched is array


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Penalty(1, 0), Penalty(4, 0)),
        (Penalty(1, 2), Penalty(3, 5)),
        (Penalty(0, 1e-9), Penalty(7, 1e9)),
    ],
)
def test_balancing_scale_is_the_best(left, right):
    rng = np.random.default_rng(1)
    H, W = rng.random((2, 5)), 1e3 * rng.random((9, 2))

    def penalty(c):
        return sum(
            p.l1 * F.sum() + p.l2 * (F**2).sum() / 2
            for p, F in ((left, c * H), (right, W / c))
        )

    c = balancing_scale(left, H, right, W)
    assert penalty(c) <= min(penalty(0.99 * c), penalty(1.01 * c))
    # The same penalties, of the factors in units of c.
    scaled = balancing_scale(left.rescaled(c), H, right.rescaled(1 / c), W)
    assert scaled == pytest.approx(1.0)
    assert balancing_scale(Penalty(), H, right, W) == 0
    assert balancing_scale(left, H, right, 0 * W) == 0


@pytest.mark.parametrize("K", [3, 9, 20])
@pytest.mark.parametrize("penalty", [(0.5, 0.0), (0.0, 0.3), (0.4, 0.2), (1e-6, 0.0)])
def test_penalised_nnls_meets_the_optimality_conditions(K, penalty):
    l1, l2 = penalty
    rng = np.random.default_rng([K, 5])
    X, H = rng.exponential(size=(40, 8)), rng.exponential(size=(K, 8))
    H[0] = H[1]  # rank deficient, and ties between duplicates
    W = solve_nnls(X, H, l1, l2)
    gradient = (W @ H - X) @ H.T + l1 + l2 * W
    size = np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(H, axis=1))
    assert (W >= 0).all()
    assert (gradient / size).min() > -1e-7
    assert np.abs((gradient / size)[W > 0]).max(initial=0.0) < 1e-7
    for k in (0, 17):
        assert_array_equal(solve_nnls(X[k : k + 1], H, l1, l2)[0], W[k])


def test_last_resort_with_a_cost_out_of_range():
    from skppdnmf._nmf import nnls as _nnls

    rng = np.random.default_rng(3)
    H = rng.exponential(size=(6, 3))
    A, B = H @ H.T, rng.exponential(size=(5, 3)) @ H.T - 0.3
    W = _nnls._one_by_one(np.zeros((5, 6)), np.arange(5), B, A)
    gradient = W @ A - B
    assert (W >= 0).all()
    assert gradient.min() > -1e-7
    assert np.abs(gradient[W > 0]).max() < 1e-7
