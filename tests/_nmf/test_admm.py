import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import nnls

from skppdnmf._nmf import admm

K, F, N = 4, 7, 9


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def random_left(rng):
    P, Q, S = 0.1 * rng.standard_normal((3, K, F))
    return admm.LeftState(rng.exponential(size=(K, F)), P, Q, S)


# The paper's equations, transposed, entry by entry -----------------------------


def equation_8(U, P):
    """X = max(U + P, 0)."""
    H = np.empty_like(U)
    for k in range(U.shape[0]):
        for f in range(U.shape[1]):
            H[k, f] = max(U[k, f] + P[k, f], 0.0)
    return H


def equation_9(A, B, H, U, P, Q, Q_before, mu, rho, published):
    """Solve (A + (mu + rho) I) U = right-hand side, one feature after another."""
    result = np.empty_like(U)
    for f in range(U.shape[1]):
        if published:
            consensus = rho * (U[:, f] + 2 * Q[:, f] - Q_before[:, f])
        else:
            consensus = rho * U[:, f] + 2 * Q[:, f] - Q_before[:, f]
        right = B[:, f] + mu * (H[:, f] - P[:, f]) + consensus
        result[:, f] = np.linalg.solve(A + (mu + rho) * np.eye(len(A)), right)
    return result


@pytest.mark.parametrize("published", [False, True])
def test_left_step_is_equations_8_to_11(rng, published):
    X, W = rng.exponential(size=(N, F)), rng.exponential(size=(N, K))
    mu, rho = 0.7, 1.3
    A, B = np.zeros((K, K)), np.zeros((K, F))
    for n in range(N):
        A += np.outer(W[n], W[n])
        B += np.outer(W[n], X[n])
    state = random_left(rng)
    U, P, Q, Q_before = state.U, state.P, state.Q, state.Q - state.S
    step = admm.published_left_step if published else admm.left_step
    inverse = admm.invert(admm.gram(W), mu + rho)
    for _ in range(6):
        increment = 0.05 * rng.standard_normal((K, F))
        H = equation_8(U, P)
        np.testing.assert_allclose(admm.project_left(state), H, rtol=1e-10, atol=1e-12)
        state = step(state, inverse, admm.left_products(W, X), mu, rho)
        U = equation_9(A, B, H, U, P, Q, Q_before, mu, rho, published)
        P = P - (H - U)
        np.testing.assert_allclose(state.U, U, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(state.P, P, rtol=1e-10, atol=1e-12)
        state = admm.add_consensus(state, increment)
        Q_before, Q = Q, Q + increment
        np.testing.assert_allclose(state.Q, Q, rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(state.S, increment)
    np.testing.assert_allclose(admm.project_left(state), equation_8(U, P), rtol=1e-10)


def test_left_step_minimises_the_augmented_lagrangian(rng):
    """(9) must make the gradient of (7) with respect to U vanish."""
    X, W = rng.exponential(size=(N, F)), rng.exponential(size=(N, K))
    state, mu, rho = random_left(rng), 0.4, 2.5
    new = admm.left_step(
        state, admm.invert(W.T @ W, mu + rho), admm.left_products(W, X), mu, rho
    )

    def lagrangian(U):
        value = 0.5 * np.sum((X - W @ U) ** 2)
        value += 0.5 * mu * np.sum((admm.project_left(state) - U - state.P) ** 2)
        value += 0.5 * rho * np.sum((U - state.U) ** 2)
        return value - np.sum(U * (state.Q + state.S))

    best = lagrangian(new.U)
    for _ in range(20):
        direction = rng.standard_normal((K, F))
        assert lagrangian(new.U + 1e-3 * direction) > best
        ahead, behind = (lagrangian(new.U + t * direction) for t in (1e-3, -1e-3))
        assert ahead - behind == pytest.approx(0, abs=1e-10 * best)


@pytest.mark.parametrize("published", [False, True])
def test_left_step_leaves_its_arguments_alone(rng, published):
    state, B = random_left(rng), rng.exponential(size=(K, F))
    copies = [array.copy() for array in (*state, B)]
    step = admm.published_left_step if published else admm.left_step
    step(state, np.eye(K), B, 0.5, 0.5)
    for array, copy in zip((*state, B), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_published_and_corrected_steps_agree_without_consensus(rng):
    zero = np.zeros((K, F))
    state = random_left(rng)._replace(Q=zero, S=zero)
    B, inverse = rng.exponential(size=(K, F)), 0.5 * np.eye(K)
    one = admm.left_step(state, inverse, B, 0.3, 0.6)
    other = admm.published_left_step(state, inverse, B, 0.3, 0.6)
    np.testing.assert_allclose(one.U, other.U, rtol=1e-12)


def test_invert(rng):
    A = admm.gram(rng.standard_normal((N, K)))
    product = admm.invert(A, 0.3) @ (A + np.diag([0.3] * K))
    np.testing.assert_allclose(product, np.eye(K), atol=1e-12)


# The right factor ---------------------------------------------------------------


@pytest.mark.parametrize("n_iter", [1, 2, 7])
def test_right_factor_is_equations_12_to_14(rng, n_iter):
    X, H = rng.exponential(size=(N, F)), rng.exponential(size=(K, F))
    V = rng.exponential(size=(N, K))
    R = 0.2 * rng.standard_normal((N, K))
    eta = 0.8
    state = admm.RightState(np.zeros((N, K)), V, R)
    state = admm.right_factor(
        state, H @ H.T, admm.right_products(X, H), eta, n_iter, tol=0.0
    )
    for _ in range(n_iter):
        W = np.empty((N, K))
        for n in range(N):
            for k in range(K):
                W[n, k] = max(V[n, k] + R[n, k], 0.0)
        V = np.empty((N, K))
        for n in range(N):
            system = sum(np.outer(H[:, f], H[:, f]) for f in range(F))
            right = sum(X[n, f] * H[:, f] for f in range(F)) + eta * (W[n] - R[n])
            V[n] = np.linalg.solve(system + eta * np.eye(K), right)
        R = R - (W - V)
    np.testing.assert_allclose(state.V, V, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(state.R, R, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(state.W, np.maximum(V + R, 0), rtol=1e-9, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.floats(0.05, 3.0))
@settings(deadline=None, max_examples=25)
def test_right_factor_converges_to_scipy(seed, n, weight):
    rng = np.random.default_rng(seed)
    X, H = rng.exponential(size=(n, 10)), rng.exponential(size=(K, 10))
    A = H @ H.T
    eta = weight * np.trace(A) / K
    empty = np.zeros((n, K))
    state = admm.right_factor(
        admm.RightState(empty, empty, empty),
        A,
        admm.right_products(X, H),
        eta,
        20_000,
        1e-11,
    )
    expected = [nnls(H.T, x)[0] for x in X]
    assert (state.W >= 0).all()
    np.testing.assert_allclose(state.W, expected, atol=1e-6 * np.max(expected))


def solve_right(X, H, tol, max_iter, weight=0.3):
    A = H @ H.T
    empty = np.zeros((len(X), len(H)))
    state = admm.RightState(empty, empty, empty)
    eta = weight * np.trace(A) / len(H)
    return admm.right_factor(state, A, admm.right_products(X, H), eta, max_iter, tol)


@pytest.mark.parametrize("weight", [0.05, 0.3, 5.0])
def test_right_factor_stops_at_the_tolerance(rng, weight):
    X, H = rng.exponential(size=(N, F)), rng.exponential(size=(K, F))
    tol = 1e-3

    def met(n_iter):
        """Whether both conditions hold after that many iterations."""
        before = solve_right(X, H, 0.0, n_iter - 1, weight)
        now = solve_right(X, H, 0.0, n_iter, weight)
        W = np.maximum(before.V + before.R, 0)
        limit = tol * np.linalg.norm(now.V)
        return (
            np.linalg.norm(now.V - W) <= limit
            and np.linalg.norm(now.V - before.V) <= limit
        )

    loose = solve_right(X, H, tol, 500, weight)
    stopped = next(
        n
        for n in range(1, 500)
        if np.array_equal(solve_right(X, H, 0.0, n, weight).V, loose.V)
    )
    first = next(n for n in range(1, 500) if met(n))
    assert met(stopped)
    # The norms are not formed in every iteration.
    assert 3 < first <= stopped <= first + 5


def test_right_factor_started_at_its_solution_stays_there(rng):
    X, H = rng.exponential(size=(N, F)), rng.exponential(size=(K, F))
    solved = solve_right(X, H, 1e-12, 50_000)
    A = H @ H.T
    eta = 0.3 * np.trace(A) / K
    again = admm.right_factor(solved, A, admm.right_products(X, H), eta, 1, 0.0)
    np.testing.assert_allclose(again.W, solved.W, atol=1e-9)
    np.testing.assert_allclose(again.R, solved.R, atol=1e-9)


def test_right_factor_of_no_samples():
    empty = np.zeros((0, K))
    state = admm.right_factor(
        admm.RightState(empty, empty, empty), np.eye(K), empty, 1.0, 10, 1e-4
    )
    assert state.W.shape == (0, K)


def test_right_factor_keeps_single_precision(rng):
    X = rng.exponential(size=(N, F)).astype(np.float32)
    H = rng.exponential(size=(K, F))
    B = admm.right_products(X, H)
    empty = np.zeros((N, K), dtype=np.float32)
    start = admm.RightState(empty, empty, empty)
    state = admm.right_factor(start, H @ H.T, B, 1.0, 50, 1e-4)
    assert {array.dtype for array in (B, *state)} == {np.dtype(np.float32)}
    double = admm.right_factor(
        admm.RightState(*[a.astype(float) for a in start]),
        H @ H.T,
        X.astype(float) @ H.T,
        1.0,
        50,
        1e-4,
    )
    np.testing.assert_allclose(state.W, double.W, rtol=1e-3, atol=1e-4)


# Multipliers and extrapolation --------------------------------------------------


@given(st.floats(1e-8, 1e8), st.floats(1e-8, 1e8), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=30)
def test_rescaling_keeps_penalty_times_multiplier(old, new, seed):
    multiplier = np.random.default_rng(seed).standard_normal((K, F))
    rescaled = admm.rescale_multiplier(multiplier, old, new)
    np.testing.assert_allclose(new * rescaled, old * multiplier, rtol=1e-12)


def test_rescaling_to_zero_or_to_the_same_changes_nothing(rng):
    multiplier = rng.standard_normal((K, F))
    for old, new in ((0.3, 0.3), (0.3, 0.0)):
        np.testing.assert_array_equal(
            admm.rescale_multiplier(multiplier, old, new), multiplier
        )


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_extrapolation(weight):
    W, before = np.array([[1.0, 2.0, 0.1]]), np.array([[0.5, 3.0, 4.0]])
    expected = [[1 + 0.5 * weight, 2 - weight, 0.1 - 3.9 * weight]]
    np.testing.assert_allclose(admm.extrapolate(W, before, weight), expected)


# Products and residuals ---------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_and_residual(rng, convert, dtype):
    X = rng.exponential(size=(N, F)).astype(dtype)
    X[X < 0.8] = 0
    W, H = rng.exponential(size=(N, K)).astype(dtype), rng.exponential(size=(K, F))
    given_X, double = convert(X), W.astype(np.float64)
    rtol = 1e-12 if dtype == np.float64 else 1e-5
    A, B = np.zeros((K, K)), np.zeros((K, F))
    products, residual = np.zeros((N, K)), 0.0
    for n in range(N):
        A += np.outer(double[n], double[n])
        B += np.outer(double[n], X[n])
        for f in range(F):
            products[n] += float(X[n, f]) * H[:, f]
            residual += (X[n, f] - double[n] @ H[:, f]) ** 2
    np.testing.assert_allclose(admm.gram(W), A, rtol=1e-12)
    np.testing.assert_allclose(admm.left_products(W, given_X), B, rtol=rtol)
    np.testing.assert_allclose(admm.right_products(given_X, H), products, rtol=rtol)
    assert admm.squared_residual(given_X, W, H) == pytest.approx(
        residual, rel=10 * rtol
    )
    assert admm.gram(W).dtype == admm.left_products(W, given_X).dtype == np.float64
    assert admm.right_products(given_X, H).dtype == dtype


@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float64, np.float32]))
@settings(deadline=None, max_examples=40)
def test_residual_of_exact_low_rank_data_is_never_negative(seed, dtype):
    rng = np.random.default_rng(seed)
    W = rng.exponential(size=(20, 3)) * (rng.random((20, 3)) < 0.5)
    H = rng.exponential(size=(3, 15)) * (rng.random((3, 15)) < 0.5)
    X = (W @ H).astype(dtype)
    total = float(np.sum(X.astype(np.float64) ** 2))
    for data in (X, sparse.csr_array(X)):
        residual = admm.squared_residual(data, W.astype(dtype), H)
        limit = 1e-13 if dtype == np.float64 else 1e-5
        assert 0 <= residual <= limit * total


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_no_samples(convert):
    X, W, H = np.zeros((0, F)), np.zeros((0, K)), np.ones((K, F))
    X = convert(X)
    np.testing.assert_array_equal(admm.gram(W), np.zeros((K, K)))
    np.testing.assert_array_equal(admm.left_products(W, X), np.zeros((K, F)))
    assert admm.right_products(X, H).shape == (0, K)
    assert admm.squared_residual(X, W, H) == 0.0


def test_singular_normal_equations_are_named():
    with pytest.raises(ValueError, match=r"singular .*up to 1e\+20 beside .* of 1;"):
        admm.invert(np.full((2, 2), 1e20), 1.0)
