"""Coordinate descent for nonnegative least squares, against scipy's solver."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from skppdnmf._nmf.hals import hals

LONG = 1500


def problem(n_rows, n_columns, n_problems=1, seed=0, n_samples=30):
    """Grams and products of random problems, some of whose solutions are at zero."""
    rng = np.random.default_rng(seed)
    W = rng.exponential(size=(n_problems, n_samples, n_rows))
    X = rng.standard_normal((n_problems, n_samples, n_columns)) + 0.3
    across = W.transpose(0, 2, 1)
    return W, X, across @ W, across @ X


def objective(gram, products, F):
    return 0.5 * np.einsum("skl,skf,slf->s", gram, F, F) - np.einsum(
        "skf,skf->s", products, F
    )


@pytest.mark.parametrize("n_rows", [1, 2, 5, 9])
def test_converges_to_the_nonnegative_least_squares_solution(n_rows):
    W, X, gram, products = problem(n_rows, 7)
    F = hals(gram, products, np.ones((1, n_rows, 7)), LONG)
    expected = np.stack([nnls(W[0], column)[0] for column in X[0].T], axis=1)
    if n_rows > 1:
        assert (expected == 0).any()
    np.testing.assert_allclose(F[0], expected, rtol=0, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 8), st.integers(1, 6), st.integers(0, 10**6))
def test_solution_is_optimal(n_rows, n_columns, seed):
    """Nonnegative, with a gradient that is zero inside and not negative at zero."""
    _, _, gram, products = problem(n_rows, n_columns, 2, seed, n_samples=20)
    F = hals(gram, products, np.zeros((2, n_rows, n_columns)), LONG)
    gradient = gram @ F - products
    size = np.abs(products).max()
    assert (F >= 0).all()
    assert gradient.min() > -1e-6 * size
    assert np.abs(gradient[F > 0]).max(initial=0) < 1e-6 * size


def test_each_pass_lowers_the_objective():
    _, _, gram, products = problem(6, 8, 3)
    F = np.random.default_rng(1).exponential(size=(3, 6, 8))
    last = objective(gram, products, F)
    for _ in range(40):
        hals(gram, products, F, 1)
        now = objective(gram, products, F)
        assert (now <= last + 1e-12 * np.abs(last)).all()
        last = now


def test_problems_do_not_affect_each_other():
    _, _, gram, products = problem(5, 7, 4)
    start = np.random.default_rng(2).exponential(size=(4, 5, 7))
    together = hals(gram, products, start.copy(), 6)
    for s in range(4):
        alone = hals(gram[s : s + 1], products[s : s + 1], start[s : s + 1].copy(), 6)
        np.testing.assert_allclose(together[s], alone[0], rtol=1e-12, atol=1e-15)


def test_passes_go_on_where_others_stopped():
    _, _, gram, products = problem(5, 7)
    start = np.ones((1, 5, 7))
    once = hals(gram, products, start.copy(), 9)
    twice = hals(gram, products, hals(gram, products, start.copy(), 4), 5)
    np.testing.assert_array_equal(once, twice)


def test_warm_start_stays_at_the_solution():
    _, _, gram, products = problem(5, 7)
    solution = hals(gram, products, np.ones((1, 5, 7)), LONG)
    again = hals(gram, products, solution.copy(), 3)
    np.testing.assert_allclose(again, solution, rtol=0, atol=1e-13)
    still = hals(gram, products, solution.copy(), 3, tol=0.1)
    np.testing.assert_allclose(still, solution, rtol=0, atol=1e-13)


def test_overwrites_and_returns_the_factor():
    _, _, gram, products = problem(3, 4)
    given_gram, given_products = gram.copy(), products.copy()
    F = np.ones((1, 3, 4))
    assert hals(gram, products, F, 2) is F
    np.testing.assert_array_equal(gram, given_gram)
    np.testing.assert_array_equal(products, given_products)


def test_tolerance_ends_the_passes():
    _, _, gram, products = problem(6, 8)
    start = np.ones((1, 6, 8))
    first = hals(gram, products, start.copy(), 1)
    np.testing.assert_array_equal(
        hals(gram, products, start.copy(), 50, tol=1.0), first
    )
    changes = []
    F = start.copy()
    for _ in range(50):
        before = F.copy()
        hals(gram, products, F, 1)
        changes.append(np.linalg.norm(F - before))
    n_passes = 1 + next(k for k, c in enumerate(changes) if c <= 0.05 * changes[0])
    assert 1 < n_passes < 50
    np.testing.assert_array_equal(
        hals(gram, products, start.copy(), 50, tol=0.05),
        hals(gram, products, start.copy(), n_passes),
    )


def test_an_unused_row_stays_and_does_not_disturb_the_others():
    W, X, _, _ = problem(4, 6)
    W[0, :, 2] = 0.0
    gram, products = W[0].T @ W[0], W[0].T @ X[0]
    start = np.random.default_rng(3).exponential(size=(1, 4, 6))
    F = hals(gram[None], products[None], start.copy(), LONG)[0]
    np.testing.assert_array_equal(F[2], start[0, 2])
    used = [0, 1, 3]
    expected = np.stack([nnls(W[0][:, used], x)[0] for x in X[0].T], axis=1)
    np.testing.assert_allclose(F[used], expected, rtol=0, atol=1e-9)


def test_a_penalty_removes_an_unused_row():
    gram = np.diag([2.0, 0.0])[None]
    products = np.array([[[4.0], [0.0]]]) - 0.5
    F = hals(gram, products, np.ones((1, 2, 1)), 5)
    np.testing.assert_allclose(F[0, :, 0], [1.75, 0.0])


@pytest.mark.parametrize("size", [1.0, 1e6, 1e12])
def test_rounding_errors_do_not_blow_up_an_unused_row(size):
    """The diagonal was rounded to zero, what stands beside it was not."""
    gram = size * np.array([[[1.0, 1e-6], [1e-6, 0.0]]])
    products = size * np.array([[[2.0, 1.0], [3e-6, 5e-6]]])
    F = hals(gram, products, np.ones((1, 2, 2)), 10)
    np.testing.assert_allclose(F[0, 1], 1.0)
    np.testing.assert_allclose(F[0, 0], [2.0, 1.0], rtol=1e-5)
