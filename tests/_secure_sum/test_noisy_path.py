"""The left factor under noisy totals: a function of them, sound whatever they are."""

import numpy as np
import pytest

from skppdnmf._secure_sum.noisy_path import NoisyPath
from skppdnmf._secure_sum.noisy_totals import NoisyTotals, Samples
from skppdnmf._secure_sum.settings import NoiseSettings

SETTINGS = NoiseSettings(
    n_agents=3, max_iter=60, epsilon=8.0, delta=1e-5, clip=1.0, max_colluding=1
)


def samples_of(n, K=3, F=6, seed=0):
    rng = np.random.default_rng(seed)
    H = rng.exponential(size=(K, F)) * (rng.random((K, F)) < 0.6) + 0.01
    X = rng.dirichlet(np.full(K, 0.4), size=n) @ H
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def start(K=3, F=6, seed=1):
    return np.abs(np.random.default_rng(seed).standard_normal((K, F)))


def begun(n, first=None, settings=SETTINGS):
    path = NoisyPath(start() if first is None else first, settings)
    return path.set_up(np.array([n << 32], dtype=np.uint64))


def follow(path, X, noise=True):
    """Every point of the path of one pool."""
    samples = Samples.clipped(X, path.settings.clip)
    W = np.zeros((len(path.H), len(X)))
    yield path
    while not path.finished:
        W = samples.right_factors(path.H, W / path.divisors[:, None])
        if noise:
            words = path.numbers.encode(samples, W)
        else:
            words = path.numbers.summand(*path.numbers.whole(samples, W))
            words = words.view(np.uint64)
        path = path.take(words)
        yield path


def error(X, H):
    samples = Samples(np.ascontiguousarray(X.T))
    W = samples.right_factors(H, np.zeros((len(H), len(X))))
    for _ in range(20):
        W = samples.right_factors(H, W)
    return np.linalg.norm(X - W.T @ H) / np.linalg.norm(X)


def test_comes_to_explain_the_samples():
    X = samples_of(20_000)
    points = list(follow(begun(len(X)), X))
    assert len(points) == 61
    assert error(X, points[-1].H) < 0.3 * error(X, points[0].H)


def test_points_stay_as_they_are_and_depend_on_totals_alone():
    X = samples_of(5000)
    path = begun(5000)
    samples = Samples.clipped(X, 1.0)
    W = samples.right_factors(path.H, np.zeros((3, 5000)))
    words = path.numbers.encode(samples, W)
    before = path.H.copy()
    one, other = path.take(words), path.take(words.copy())
    np.testing.assert_array_equal(path.H, before)
    assert path.iteration == 0
    np.testing.assert_array_equal(one.H, other.H)
    assert one.iteration == 1


@pytest.mark.parametrize("kind", ["noise", "zero", "negative", "huge"])
def test_rows_stay_positive_and_of_unit_norm(kind, monkeypatch):
    """Also where totals are noise and nothing else, were they let through."""
    monkeypatch.setattr(NoisyTotals, "check_totals", lambda *_: None)
    rng = np.random.default_rng(2)
    path = begun(3000)
    while not path.finished:
        words = {
            "noise": rng.integers(-(2**45), 2**45, path.numbers.n_words),
            "zero": np.zeros(path.numbers.n_words, dtype=np.int64),
            "negative": np.full(path.numbers.n_words, -(2**50)),
            "huge": rng.integers(-(2**62), 2**62, path.numbers.n_words),
        }[kind]
        path = path.take(words.view(np.uint64))
        np.testing.assert_allclose(np.linalg.norm(path.H, axis=1), 1.0)
        assert path.H.min() > 0


def test_a_row_of_zeros_in_the_start_takes_part():
    first = start()
    first[1] = 0.0
    X = samples_of(20_000)
    *_, last = follow(begun(len(X), first), X)
    assert error(X, last.H) < 0.2


def test_averages_keep_to_the_rows_scale():
    """Without noise the averages are those of the right factors, rescaled."""
    X = samples_of(20_000)
    *_, last = follow(begun(len(X)), X, noise=False)
    *_, noisy = follow(begun(len(X)), X)
    assert error(X, last.H) <= error(X, noisy.H) + 0.02
