"""Paths of the left factor, driven by the pooled samples; their objective."""

import numpy as np

from skppdnmf._nmf.hals import hals
from skppdnmf._secure_sum.left_factor import row_norms
from skppdnmf._secure_sum.totals import Totals, row_blocks, setup_words

N_FEATURES = 6


def starts(n_starts=1, K=3, seed=0):
    return np.random.default_rng(seed).exponential(size=(n_starts, K, N_FEATURES))


def samples(n_samples=15, seed=1):
    return np.random.default_rng(seed).exponential(size=(n_samples, N_FEATURES))


def totals_of(path, X, W):
    """What agents send for right factors W, shape (S, K, n): normalised totals."""
    normalised = W * row_norms(path.point)[:, :, None]
    return Totals(
        normalised @ normalised.transpose(0, 2, 1), normalised @ X, normalised.sum(2)
    )


def set_up(path, X):
    return path.set_up(setup_words((X**2).sum(axis=1)))


def words_of(path, X, W):
    """The same in words."""
    blocks = row_blocks(path.fixed_point.round_samples(X))
    return path.fixed_point.encode(W * row_norms(path.point)[:, :, None], blocks)[0]


def solved(path, X):
    """Right factors for the path's points, by a few passes."""
    products = path.point @ X.T - path.right.l1
    return hals(path.gram, products, np.ones((*path.point.shape[:2], len(X))), 20)


def follow(path, X, n_iterations):
    """Iterations with the pooled samples, as rounded words if the path rounds."""
    if path.iteration < 0:
        path = set_up(path, X)
    form = totals_of if path.settings.exact else words_of
    for _ in range(n_iterations):
        path = path.take(form(path, X, solved(path, X)))
        if path.finished:
            break
    return path


def arrays_of(path):
    """Copies of all that a path holds."""
    return {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in vars(path).items()
    }


def assert_same_path(one, other):
    """To the last bit, in all that they hold."""
    assert_same_state(arrays_of(one), arrays_of(other))


def assert_same_state(one, other):
    """What `arrays_of` returned, to the last bit."""
    assert one.keys() == other.keys()
    for name, mine in one.items():
        theirs = other[name]
        if name == "fixed_point":
            assert_same_numbers(mine, theirs)
            continue
        assert type(mine) is type(theirs), name
        np.testing.assert_array_equal(mine, theirs, err_msg=name)


def assert_same_numbers(one, other):
    """Two codecs."""
    for name, mine in vars(one).items():
        np.testing.assert_array_equal(mine, vars(other)[name], err_msg=name)


def naive_objective(X, W, H, settings, n_samples):
    right, left = settings.right_penalty, settings.left_alpha * n_samples
    ratio = settings.l1_ratio
    objective = 0.5 * ((X - W.T @ H) ** 2).sum()
    objective += right.l1 * W.sum() + 0.5 * right.l2 * (W**2).sum()
    objective += left * ratio * H.sum() + 0.5 * left * (1 - ratio) * (H**2).sum()
    return objective
