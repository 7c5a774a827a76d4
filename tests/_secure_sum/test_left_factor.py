"""The left factor's path: alike for every agent, and down the exact objective."""

import pickle

import numpy as np
import pytest
from _paths import (
    N_FEATURES,
    arrays_of,
    assert_same_numbers,
    assert_same_path,
    assert_same_state,
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
from skppdnmf._secure_sum.totals import row_blocks, setup_words


@pytest.mark.parametrize(("alpha_W", "alpha_H"), [(0, 0), (0.3, 0), (0, 0.2)])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.4, 1.0])
def test_objective_is_the_naive_one(alpha_W, alpha_H, l1_ratio):
    """With both penalties H is scaled afterwards; see below."""
    settings = path_settings(1, alpha_W, alpha_H, l1_ratio)
    X = samples()
    path = set_up(LeftPath(starts(2), settings), X)
    W = solved(path, X)
    path = path.take(totals_of(path, X, W))
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
    path = follow(path, X, 1)
    across = path.point @ path.point.transpose(0, 2, 1)
    penalty = 0.3 * N_FEATURES
    expected = across + penalty * (1 - l1_ratio) * np.eye(3)
    np.testing.assert_allclose(path.gram, expected)
    assert path.right.l1 == pytest.approx(penalty * l1_ratio)


def test_rounded_totals_give_it_to_their_resolution():
    X = samples()
    path = set_up(LeftPath(starts(), path_settings(4, n_max=1e5)), X)
    W = solved(path, X)
    path = path.take(words_of(path, X, W))
    expected = naive_objective(X, W[0], path.H, path.settings, len(X))
    error = abs(path._last[0] - expected) / (X**2).sum()
    assert 0 < error < 1e-5  # to first order in the step of W


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
def test_scales_are_balanced_without_changing_the_product(l1_ratio):
    settings = path_settings(1, 0.5, 0.01, l1_ratio)
    X = samples()
    path = set_up(LeftPath(starts(), settings), X)
    W = solved(path, X)
    path = path.take(totals_of(path, X, W))
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
    one = follow(LeftPath(starts(4), path_settings(3, max_iter=20)), X, 6)
    other = pickle.loads(pickle.dumps(one))
    assert_same_path(one, other)
    one, other = (follow(path, X, 14) for path in (one, other))
    assert one.finished
    assert_same_path(one, other)


PENALTIES = [(0.0, 0.0), (0.05, 0.05)]  # the latter balances the scales


@pytest.mark.parametrize("n_agents", [1, 3])
@pytest.mark.parametrize("penalties", PENALTIES)
def test_a_step_leaves_the_point_before_as_it_was(n_agents, penalties):
    """Through all that a path does: the setup, starts given up, the end."""
    X = samples(30)
    settings = path_settings(n_agents, *penalties, max_iter=12, tol=1e-2)
    given = starts(4)
    path = LeftPath(given, settings)
    words = setup_words((X**2).sum(axis=1))
    taken = 0
    while not path.finished:
        before, copies = arrays_of(path), [word.copy() for word in words]
        codec = pickle.loads(pickle.dumps(path.fixed_point))
        following = path.set_up if path.iteration < 0 else path.take
        after = following(words)
        assert_same_state(arrays_of(path), before)
        assert_same_numbers(path.fixed_point, codec)
        for word, copy in zip(words, copies, strict=True):
            np.testing.assert_array_equal(word, copy)
        # The same arguments, the same bits; also in another process.
        assert_same_path(following(words), after)
        other = pickle.loads(pickle.dumps(path))
        assert_same_path(other.take(words) if taken else other.set_up(words), after)
        path = after
        form = totals_of if n_agents == 1 else words_of
        words = form(path, X, solved(path, X))
        taken += 1
    assert taken >= 4
    np.testing.assert_array_equal(given, starts(4))


def test_the_first_total_may_begin_with_the_norm_of_the_rounded_samples():
    X = samples(20)
    path = set_up(LeftPath(starts(2), path_settings(3)), X)
    words = words_of(path, X, solved(path, X))
    rounded = path.fixed_point.round_samples(X)
    norm = path.fixed_point.rounded_norm_words(row_blocks(rounded))
    after = path.take(np.concatenate([norm, words]))
    expected = (rounded**2).sum() * path.fixed_point.sample_unit**2
    assert after.squared_norm == pytest.approx(expected, rel=1e-15)
    assert path.squared_norm == pytest.approx((X**2).sum(), rel=1e-15)
    assert after.squared_norm != path.squared_norm
    np.testing.assert_array_equal(after.point, path.take(words).point)


def test_a_total_that_nobody_who_is_left_has_learnt_is_replaced():
    """By what the others sum instead."""
    X, rest = samples(20), samples(20)[:15]
    path = follow(LeftPath(starts(2), path_settings(3)), X, 3)
    untouched = pickle.loads(pickle.dumps(path))
    W = solved(path, X)
    words = words_of(path, rest, W[:, :, :15])
    lost = path.take(words_of(path, X, W))
    path, expected = (p.take(words, True) for p in (path, untouched))
    assert_same_path(path, expected)
    assert (lost.point != path.point).any()
    path, expected = (follow(one, rest, 3) for one in (path, expected))
    assert_same_path(path, expected)


def test_so_is_a_setup():
    X, rest = samples(20), samples(20)[:15]
    path, expected = (LeftPath(starts(), path_settings(3, 0, 0.1)) for _ in "ab")
    lost = set_up(path, X)
    path, expected = (follow(set_up(one, rest), rest, 4) for one in (path, expected))
    assert path.squared_norm == (rest**2).sum() != lost.squared_norm
    assert_same_path(path, expected)


def test_best_objective_never_rises_and_h_belongs_to_it():
    X = samples(60)
    path = set_up(LeftPath(starts(1, 4), path_settings(1, max_iter=60)), X)
    lowest = np.inf
    rose = 0
    for _ in range(60):
        W = solved(path, X)
        before = path.H
        path = path.take(totals_of(path, X, W))
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
    path = follow(path, X, 1)
    assert path.weights.tolist() == [0.0]
    path = follow(path, X, 1)
    path = follow(path, X, 1)
    assert 0.4 < path.weights[0] < 0.7
    # Totals with worse right factors make the objective rise.
    path = path.take(totals_of(path, X, solved(path, X)[:, :, ::-1]))
    cut = path._next[0]
    assert path.weights.tolist() == [0.0]
    np.testing.assert_array_equal(path.point, path._current)
    path = follow(path, X, 1)
    assert path.weights.tolist() == [0.0]
    path = follow(path, X, 1)
    assert path.weights[0] == pytest.approx(cut, rel=0.1)
    assert cut < 0.55


def test_a_rise_over_another_set_of_agents_does_not_count():
    X = samples(60)
    path = follow(LeftPath(starts(1, 4), path_settings(2, max_iter=60)), X, 4)
    last = path._last[0]
    rest = X[:20]  # the squared norm is still that of all: the objective rises
    words = words_of(path, rest, solved(path, rest))
    path = path.take(words, fresh=True)
    assert path._last[0] > last
    assert path.improved
    assert path.weights[0] > 0
    path = follow(path, rest, 1)
    assert path._lowest <= path._last[0]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
@pytest.mark.parametrize("n_max", [10.0, 1e3])
def test_a_component_below_the_resolution_is_held(scale, n_max):
    """Its right factors are rounded to zero, and nothing is learnt of it."""
    rng = np.random.default_rng(0)
    X = scale * rng.exponential(size=(40, 2)) @ rng.exponential(size=(2, N_FEATURES))
    path = set_up(
        LeftPath(starts(1, 3), path_settings(10, n_max=n_max, max_iter=50)), X
    )
    for _ in range(29):
        W = solved(path, X)
        W[0, 2] *= 0.2 / np.sqrt(n_max)
        path = path.take(words_of(path, X, W))
        # A component is a few times the size at which it began, whatever X's scale.
        assert np.isfinite(path.H).all()
        assert path.H.max() < 200
        error = 2 * naive_objective(X, W[0], path._current[0], path.settings, 40)
        assert error < 3 * (X**2).sum()
