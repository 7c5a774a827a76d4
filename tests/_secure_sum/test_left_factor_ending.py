"""The end of the left factor's path: starts given up, tolerance, iterations."""

import numpy as np
import pytest
from _paths import (
    N_FEATURES,
    follow,
    samples,
    set_up,
    solved,
    starts,
    totals_of,
    words_of,
)
from _sums import path_settings

from skppdnmf._secure_sum.left_factor import LeftPath, starts_after
from skppdnmf.exchange import to_limbs


@pytest.mark.parametrize("max_iter", [1, 2, 5, 12, 31, 60, 64, 100, 500])
def test_starts_are_given_up_as_documented(max_iter):
    """Half after a quarter of the iterations, at most 16; one after half, 30."""
    first = min(16, max(1, max_iter // 4))
    last = min(30, max(1, max_iter // 2))
    left = 7
    for iteration in range(1, max_iter + 1):
        left = starts_after(iteration, left, max_iter)
        if iteration < first:
            assert left == 7
        elif iteration < last:
            assert left == 4
        else:
            assert left == 1


def test_the_worse_starts_are_given_up():
    X = samples(30)
    path = set_up(LeftPath(starts(6), path_settings(1, max_iter=20)), X)
    sizes = []
    for _ in range(20):
        before = path.n_starts
        path = path.take(totals_of(path, X, solved(path, X)))
        sizes.append(path.n_starts)
        assert len(path.weights) == len(path.gram) == len(path.kept) == path.n_starts
        assert path.n_words == path.n_starts * path.fixed_point.words_per_start
        if path.n_starts < before:
            assert path.kept.tolist() == sorted(path.kept.tolist())
            assert path.kept.max() < before
            if path.n_starts == 1:
                assert path.H == pytest.approx(path._current[0])
    assert sizes == [6] * 4 + [3] * 5 + [1] * 11


def test_the_best_of_several_starts_is_followed():
    X = np.maximum(0, np.random.default_rng(0).standard_normal((30, N_FEATURES)))
    settings = path_settings(1, max_iter=60)
    many = follow(LeftPath(starts(6, 4), settings), X, 60)
    alone = [follow(LeftPath(starts(6, 4)[[s]], settings), X, 60) for s in range(6)]
    ends = np.array([path._lowest for path in alone])
    assert ends[0] > 1.1 * ends.min()
    assert many._lowest == pytest.approx(ends.min(), rel=1e-4)


def run_to_the_end(path, X):
    return follow(path, X, path.settings.max_iter)


def test_tolerance_ends_the_path_after_two_small_falls():
    X = samples(30)
    path = set_up(LeftPath(starts(), path_settings(3, max_iter=500, tol=1e-3)), X)
    objectives = []
    while not path.finished:
        words = words_of(path, X, solved(path, X))
        path = path.take(words)
        objectives.append(path._last[0])
    assert path.converged
    falls = -np.diff(objectives) / objectives[1:]
    small = (falls >= 0) & (falls <= 1e-3)
    pairs = small[1:] & small[:-1]
    assert pairs[-1]
    assert not pairs[:-1].any()


def test_a_rise_is_no_small_fall():
    X = samples(30)
    path = follow(LeftPath(starts(), path_settings(3, tol=1.0, max_iter=50)), X, 2)
    assert path._still == 1
    path = path.take(words_of(path, X, solved(path, X)[:, :, ::-1]))
    assert path._still == 0


def test_without_tolerance_all_iterations_are_run():
    X = samples(30)
    path = run_to_the_end(LeftPath(starts(), path_settings(3, max_iter=40)), X)
    assert (path.iteration, path.finished, path.converged) == (40, True, False)


def test_the_end_of_the_iterations_is_no_convergence():
    X = samples(30)
    settings = path_settings(3, max_iter=4, tol=1e-9)
    path = run_to_the_end(LeftPath(starts(3), settings), X)
    assert (path.iteration, path.finished, path.converged) == (4, True, False)
    assert path.n_starts == 1


def test_starts_that_have_settled_early_are_cut_to_one_which_goes_on():
    X = samples(30)
    settings = path_settings(3, max_iter=200, tol=0.3)
    path = set_up(LeftPath(starts(4), settings), X)
    sizes = []
    while not path.finished:
        words = words_of(path, X, solved(path, X))
        path = path.take(words)
        sizes.append(path.n_starts)
    assert path.converged
    assert path.iteration < 16
    assert sizes[0] == 4
    assert sizes.count(1) >= 2


@pytest.mark.parametrize("n_agents", [1, 3])
def test_an_exact_factorisation_settles_at_the_rounding_error(n_agents):
    """Where the objective no longer falls but jumps about zero."""
    X = samples(30)[:, :2] @ starts(1, 2)[0]
    settings = path_settings(n_agents, max_iter=1000, tol=1e-12)
    path = run_to_the_end(LeftPath(starts(1, 3, seed=5), settings), X)
    assert path.converged
    assert path.iteration < 1000


def test_zero_data_settles_at_once():
    path = LeftPath(starts(), path_settings(3, tol=1e-4))
    path = path.set_up(np.append(to_limbs(0.0), np.uint64(5)))
    n_words = path.n_words
    for _ in range(3):
        if not path.finished:
            path = path.take(np.zeros(n_words, dtype=np.uint64))
    assert path.converged
    assert np.isfinite(path.H).all()
