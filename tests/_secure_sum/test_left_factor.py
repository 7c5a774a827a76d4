"""The left factor's path: alike for every agent, and down the exact objective."""

import pickle

import numpy as np
import pytest
from _paths import (
    N_FEATURES,
    assert_same_path,
    follow,
    naive_objective,
    samples,
    set_up,
    solved,
    starts,
    totals_of,
    words_of,
)
from _sums import path_settings

from skppdnmf._secure_sum.left_factor import LeftPath, row_norms
from skppdnmf._secure_sum.totals import setup_words


@pytest.mark.parametrize(("alpha_W", "alpha_H"), [(0, 0), (0.3, 0), (0, 0.2)])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.4, 1.0])
def test_objective_is_the_naive_one(alpha_W, alpha_H, l1_ratio):
    """With both penalties H is scaled afterwards; see below."""
    settings = path_settings(1, alpha_W, alpha_H, l1_ratio)
    X = samples()
    path = LeftPath(starts(2), settings)
    set_up(path, X)
    W = solved(path, X)
    path.take(1, totals_of(path, X, W))
    for s in range(2):
        expected = naive_objective(X, W[s], path._current[s], settings, len(X))
        assert path._last[s] == pytest.approx(expected, rel=1e-12)
    best = int(np.argmin(path._last))
    assert path.leader == best
    np.testing.assert_array_equal(path.H, path._current[best])
    np.testing.assert_allclose(
        path.normalised * row_norms(starts(2))[best][:, None], path.H
    )


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
def test_right_problems_bear_their_penalty_from_the_first_total_on(l1_ratio):
    X = samples()
    path = LeftPath(starts(2), path_settings(3, 0.3, 0.0, l1_ratio))
    across = path.point @ path.point.transpose(0, 2, 1)
    np.testing.assert_array_equal(path.gram, across)
    assert path.right.l1 == 0
    follow(path, X, 1)
    across = path.point @ path.point.transpose(0, 2, 1)
    penalty = 0.3 * N_FEATURES
    expected = across + penalty * (1 - l1_ratio) * np.eye(3)
    np.testing.assert_allclose(path.gram, expected)
    assert path.right.l1 == pytest.approx(penalty * l1_ratio)


def test_rounded_totals_give_it_to_their_resolution():
    X = samples()
    path = LeftPath(starts(), path_settings(4, n_max=1e5))
    set_up(path, X)
    W = solved(path, X)
    path.take(1, words_of(path, X, W))
    expected = naive_objective(X, W[0], path.H, path.settings, len(X))
    error = abs(path._last[0] - expected) / (X**2).sum()
    assert 0 < error < 1e-5  # to first order in the step of W


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
def test_scales_are_balanced_without_changing_the_product(l1_ratio):
    settings = path_settings(1, 0.5, 0.01, l1_ratio)
    X = samples()
    path = LeftPath(starts(), settings)
    set_up(path, X)
    W = solved(path, X)
    path.take(1, totals_of(path, X, W))
    scales = path.divisors
    assert scales.shape == (1, 3)
    H, W = path.H, W[0] / scales[0][:, None]
    before = path._last[0]
    now = naive_objective(X, W, H, settings, len(X))
    assert now < before
    for k in range(3):  # no other scale of any component would be better
        for factor in (0.99, 1.01):
            scaled = np.ones(3)
            scaled[k] = factor
            other = naive_objective(
                X, W / scaled[:, None], H * scaled[:, None], settings, len(X)
            )
            assert other > now


def test_two_copies_go_the_same_way_to_the_last_bit():
    X = samples(40)
    one = LeftPath(starts(4), path_settings(3, max_iter=20))
    follow(one, X, 6)
    other = pickle.loads(pickle.dumps(one))
    assert_same_path(one, other)
    for path in (one, other):
        follow(path, X, 14, first=7)
    assert one.finished
    assert_same_path(one, other)


def test_a_total_is_taken_once():
    X = samples()
    path = follow(LeftPath(starts(), path_settings(3)), X, 2)
    copy = pickle.loads(pickle.dumps(path))
    words = words_of(path, X, solved(path, X))
    path.take(3, words)
    copy.take(3, words)
    for _ in range(2):  # the others bring it, too
        path.take(3, words)
        path.take(3, words.copy())
    path.take(2, words)  # and one comes late
    assert path.iteration == 3
    assert_same_path(path, copy)
    path.set_up(setup_words(np.full(3, 1e9)))
    assert path.squared_norm == (X**2).sum()


def test_a_total_that_nobody_who_is_left_has_learnt_is_replaced():
    """By what the others sum instead."""
    X, rest = samples(20), samples(20)[:15]
    path = follow(LeftPath(starts(2), path_settings(3)), X, 3)
    expected = pickle.loads(pickle.dumps(path))
    W = solved(path, X)
    lost = words_of(path, X, W)
    words = words_of(path, rest, W[:, :, :15])
    path.take(4, lost)
    path.take(4, words, fresh=True)
    expected.take(4, words, fresh=True)
    assert_same_path(path, expected)
    for one in (path, expected):
        follow(one, rest, 3, first=5)
    assert_same_path(path, expected)


def test_so_is_a_setup():
    X, rest = samples(20), samples(20)[:15]
    path, expected = (LeftPath(starts(), path_settings(3, 0, 0.1)) for _ in "ab")
    set_up(path, X)
    for one in (path, expected):
        set_up(one, rest)
        follow(one, rest, 4)
    assert path.squared_norm == (rest**2).sum()
    assert_same_path(path, expected)


def test_best_objective_never_rises_and_h_belongs_to_it():
    X = samples(60)
    path = LeftPath(starts(1, 4), path_settings(1, max_iter=60))
    set_up(path, X)
    lowest = np.inf
    rose = 0
    for iteration in range(1, 61):
        W = solved(path, X)
        before = path.H
        path.take(iteration, totals_of(path, X, W))
        objective = path._last[0]
        if path.improved:
            assert objective <= lowest
            lowest = objective
            naive = naive_objective(X, W[0], path.H, path.settings, len(X))
            assert naive == pytest.approx(lowest, rel=1e-10)
        else:
            rose += 1
            assert path.H is before
    assert lowest == pytest.approx(path._lowest)
    assert lowest < 0.9 * naive_objective(
        X, solved(LeftPath(starts(1, 4), path_settings(1)), X)[0], starts(1, 4)[0],
        path.settings, len(X),
    )  # fmt: skip


def test_extrapolation_grows_and_is_cut_when_the_objective_rises():
    X = samples(60)
    path = LeftPath(starts(1, 4), path_settings(1, max_iter=60))
    follow(path, X, 1)
    assert path.weights.tolist() == [0.0]
    follow(path, X, 1, first=2)
    follow(path, X, 1, first=3)
    assert 0.4 < path.weights[0] < 0.7
    # Totals with worse right factors make the objective rise.
    path.take(4, totals_of(path, X, solved(path, X)[:, :, ::-1]))
    cut = path._next[0]
    assert path.weights.tolist() == [0.0]
    np.testing.assert_array_equal(path.point, path._current)
    follow(path, X, 1, first=5)
    assert path.weights.tolist() == [0.0]
    follow(path, X, 1, first=6)
    assert path.weights[0] == pytest.approx(cut, rel=0.1)
    assert cut < 0.55


def test_a_rise_over_another_set_of_agents_does_not_count():
    X = samples(60)
    path = follow(LeftPath(starts(1, 4), path_settings(2, max_iter=60)), X, 4)
    last = path._last[0]
    rest = X[:20]  # the squared norm is still that of all: the objective rises
    words = words_of(path, rest, solved(path, rest))
    path.take(5, words, fresh=True)
    assert path._last[0] > last
    assert path.improved
    assert path.weights[0] > 0
    follow(path, rest, 1, first=6)
    assert path._lowest <= path._last[0]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
@pytest.mark.parametrize("n_max", [10.0, 1e3])
def test_a_component_below_the_resolution_is_held(scale, n_max):
    """Its right factors are rounded to zero, and nothing is learnt of it."""
    rng = np.random.default_rng(0)
    X = scale * rng.exponential(size=(40, 2)) @ rng.exponential(size=(2, N_FEATURES))
    path = LeftPath(starts(1, 3), path_settings(10, n_max=n_max, max_iter=50))
    set_up(path, X)
    for iteration in range(1, 30):
        W = solved(path, X)
        W[0, 2] *= 0.2 / np.sqrt(n_max)
        path.take(iteration, words_of(path, X, W))
        # A component is a few times the size at which it began, whatever X's scale.
        assert np.isfinite(path.H).all()
        assert path.H.max() < 200
        error = 2 * naive_objective(X, W[0], path._current[0], path.settings, 40)
        assert error < 3 * (X**2).sum()
