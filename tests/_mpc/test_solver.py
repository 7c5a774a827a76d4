"""The factorisation that is run on shares, in floating point."""

import numpy as np
import pytest
from _shares import parts_of, plain, settings_for, starts_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.decomposition import NMF

from skppdnmf._mpc import solver
from skppdnmf._mpc.ranges import factor_bound
from skppdnmf._mpc.solver import CLIP, Penalties, State, normalised
from skppdnmf._nmf.nnls import solve_nnls

magnitudes = st.floats(0, 1e300) | st.floats(0, 1e-300) | st.just(0.0)


@given(
    arrays(np.float64, st.tuples(st.integers(1, 4), st.just(3)), elements=magnitudes)
)
def test_samples_become_fractions_of_a_power_of_four(X):
    scaled, exponent = normalised(X)
    assert scaled.max() <= 1
    if X.any():
        assert scaled.max() > 0.24
        back = np.ldexp(np.ldexp(scaled.astype(float), exponent), exponent)
        np.testing.assert_allclose(back, X, rtol=1e-6, atol=1e-7 * X.max())
    else:
        assert exponent == solver.LEAST_EXPONENT


@pytest.mark.parametrize("power", [-300, -7, 0, 1, 200])
def test_the_scale_of_the_data_does_not_matter(power):
    """All samples by a power of four: the same iterations."""
    parts, starts = parts_of(), starts_of(1)
    settings = settings_for(parts)
    expected = plain(parts, starts, settings)
    found = plain([np.ldexp(part, 2 * power) for part in parts], starts, settings)
    np.testing.assert_array_equal(found.components, expected.components)


def test_agents_of_different_scales_are_brought_to_one():
    parts = parts_of()
    parts[1] = parts[1] * 300.0
    exponents = np.array([normalised(part)[1] for part in parts])
    assert len(set(exponents)) > 1
    X, scale = solver.scaled(
        np, [normalised(part)[0] for part in parts], exponents, Penalties()
    )
    whole = np.concatenate(parts)
    unit = 4.0 ** scale[0] / 2.0 ** scale[1] * np.sqrt(whole.size)
    np.testing.assert_allclose(X * unit, whole, rtol=1e-5)
    assert 0.5 < np.linalg.norm(X) <= 1


def test_a_heavy_tail_keeps_its_norm():
    X = np.full((40, 8), 1e-4)
    X[0, 0] = 1.0
    scaled, exponent = normalised(X)
    found, _ = solver.scaled(np, [scaled], np.array([exponent]), Penalties())
    assert 0.5 < np.linalg.norm(found) <= 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(3))
def test_it_ends_where_nmf_does(seed):
    parts = parts_of((30, 40, 30), 12, 4, seed)
    X = np.concatenate(parts) + np.random.default_rng(seed).exponential(
        0.3, size=(100, 12)
    )
    parts = np.array_split(X, 3)
    run = plain(parts, starts_of(4, 4, 12, seed), settings_for(parts, 60, 15))
    error = np.linalg.norm(X - solve_nnls(X, run.components) @ run.components)
    pooled = min(
        NMF(4, init="random", max_iter=500, random_state=k).fit(X).reconstruction_err_
        for k in range(4)
    )
    assert error < 1.01 * pooled


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
def test_penalties_are_those_of_nmf(l1_ratio):
    parts = parts_of((30, 20, 10), 8, 3)
    X = np.concatenate(parts)
    n, F = X.shape
    alpha = 0.02
    l1, l2 = alpha * l1_ratio, alpha * (1 - l1_ratio)
    penalties = Penalties(l1 * F, l2 * F, l1 * n, l2 * n)

    def objective(H):
        W = solve_nnls(X, H, l1 * F, l2 * F)
        return 0.5 * (
            np.linalg.norm(X - W @ H) ** 2 + l2 * (F * np.sum(W**2) + n * np.sum(H**2))
        ) + l1 * (F * W.sum() + n * H.sum())

    run = plain(parts, starts_of(4), settings_for(parts, 150, 40, penalties))
    pooled = NMF(
        3, init="random", alpha_W=alpha, l1_ratio=l1_ratio, max_iter=2000, tol=1e-6,
        random_state=0,
    ).fit(X)  # fmt: skip
    assert objective(run.components) < 1.02 * objective(pooled.components_)


def test_penalties_follow_the_scale_of_the_data():
    """Samples by 4, penalties on squares by 4, others by 8: the factors double."""
    parts, starts = parts_of(), starts_of(1)
    one = plain(parts, starts, settings_for(parts, 5, 2, Penalties(0.1, 0.2, 0.3, 0.4)))
    other = plain(
        [4 * part for part in parts],
        starts,
        settings_for(parts, 5, 2, Penalties(0.8, 0.8, 2.4, 1.6)),
    )
    np.testing.assert_allclose(other.components, 2 * one.components, rtol=1e-5)


def test_the_best_start_is_found():
    parts, starts = parts_of(), starts_of(3)
    settings = settings_for(parts, 4, 4)
    run = plain(parts, starts, settings)
    alone = [plain(parts, starts[k : k + 1], settings).components for k in range(3)]
    X = np.concatenate(parts)
    errors = [np.linalg.norm(X - solve_nnls(X, H) @ H) for H in alone]
    assert run.index == int(np.argmin(errors))
    np.testing.assert_allclose(run.components, alone[run.index], rtol=1e-4)


extremes = st.sampled_from([0.0, 2.0**-40, 2.0**-10, 0.5, CLIP])


@given(
    arrays(np.float32, (5, 4), elements=st.floats(0, 1, width=32)),
    arrays(np.float32, (1, 4, 3), elements=extremes),
    arrays(np.float32, (1, 5, 3), elements=extremes),
    st.sampled_from([0.0, 0.5]),
)
def test_no_factor_leaves_its_bound(X, left, right, weight):
    """Wherever an iteration may begin, and whatever the data of norm one."""
    X = X / max(1.0, np.linalg.norm(X))
    state = State(left, left, right, right)
    for _ in range(3):
        state = solver.iterated(np, X, state, np.float32(weight))
        for factor in (state.left, state.right):
            assert factor.min() >= 0
            assert factor.max() <= factor_bound()
        for ahead in (state.left_ahead, state.right_ahead):
            assert ahead.min() >= 0
            assert ahead.max() <= CLIP


@given(
    arrays(np.float64, (5, 4), elements=st.floats(0, 10)),
    arrays(np.float64, (1, 4, 3), elements=st.floats(0.1, 3)),
)
def test_without_momentum_a_step_descends(X, left):
    """The row sums are enough: the measure of every step."""
    right = np.ones((5, 3))
    left = left[0]
    gram = left.T @ left
    step = 1.0 / (gram.sum(axis=0) + solver.RIDGE)
    after = np.maximum(right - (right @ gram - X @ left) * step, 0)
    before_error = np.linalg.norm(X - right @ left.T)
    assert np.linalg.norm(X - after @ left.T) <= before_error * (1 + 1e-12)


def test_known_components_are_kept_and_the_others_found():
    """Of exact factors, whatever the scale of those that are known."""
    rng = np.random.default_rng(2)
    H = rng.exponential(size=(3, 8)) * (rng.random((3, 8)) < 0.6)
    parts = np.split(rng.exponential(size=(60, 3)) @ H, 3)
    known = 1e5 * H[:2]
    starts = starts_of(2)
    starts[:, :2] = known
    settings = settings_for(parts, 400, 20, n_fixed=2)
    run = plain(parts, starts, settings)
    np.testing.assert_array_equal(run.components[:2], known)
    found = run.components[2] / np.linalg.norm(run.components[2])
    np.testing.assert_allclose(found, H[2] / np.linalg.norm(H[2]), atol=0.02)
    free = plain(parts, starts, settings_for(parts, 400, 20)).components
    assert not np.allclose(free[:2] / free[:2].max(), known / known.max(), atol=0.02)
