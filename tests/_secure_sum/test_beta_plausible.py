"""Totals of expected counts: which are refused, and that sound ones are not."""

import numpy as np
import pytest
from _paths import samples, starts
from _sums import path_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf._nmf.beta import BetaSamples
from skppdnmf._secure_sum.beta_path import BetaPath
from skppdnmf._secure_sum.beta_totals import (
    BetaNumbers,
    BetaTotals,
    beta_setup_words,
    read_beta_setup,
)
from skppdnmf.exceptions import CorruptedTotalError


def begun(beta, X, n_starts=2, **given):
    """A path after the first total, and the samples behind it."""
    held = BetaSamples.of(X, beta, False)
    path = BetaPath(starts(n_starts), path_settings(3, beta=beta, **given))
    words = beta_setup_words(held.size_bounds(), held.null_divergences(), None)
    return path.set_up(words), held


def summand(path, held, W):
    """What one agent with all samples sends, and its right factors afterwards."""
    ones, below = np.ones(held.n_samples), path.numbers.with_below
    parts = [
        held.improve(w, H, ones, 2, 0.0, 0.0, below)
        for w, H in zip(W, path.point, strict=True)
    ]
    W, above, model, divergences = zip(*parts, strict=True)
    below = np.array(model if below else [])
    divergences = np.array(divergences)
    totals = BetaTotals(np.array(above), below, divergences.sum(axis=1))
    return path.numbers.encode(totals, float(held.size_bounds().sum())), W


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([0.0, 0.5, 1.0, 1.5, 3.0]),
    st.integers(1, 30),
    st.sampled_from([1e-9, 1.0, 1e9]),
    st.floats(0, 0.9),
    st.integers(0, 999),
)
def test_a_fit_takes_its_totals_and_no_uniform_words(beta, n, scale, zeros, seed):
    """Of data of any scale, with zeros where the divergence has them."""
    X = samples(n, seed) * scale
    if beta >= 1:
        X[np.random.default_rng(seed).random(X.shape) < zeros] = 0.0
    path, held = begun(beta, X, tol=0.0)
    W = [held.first_right_factor(H) for H in path.point]
    for _ in range(3):
        words, W = summand(path, held, W)
        noise = np.random.default_rng(seed).integers(0, 2**64, len(words), np.uint64)
        with pytest.raises(CorruptedTotalError, match="masks do not cancel"):
            path.take(noise)
        path = path.take(words)
        W = [W[k] for k in path.kept]


WRONG = {
    "negative counts": (1.0, "above", -1.0, "expected counts is -.* negative"),
    "negative model": (1.5, "below", -1.0, "model counts is -.* negative"),
    "more than was counted": (1.0, "above", 2.0, "expected counts add up to"),
    "far too many": (1.5, "above", 2048.0, "expected counts add up to"),
    "too large a model": (1.5, "below", 2048.0, "model counts add up to"),
    "a negative objective": (1.0, "objectives", -1.0, "the objective is -"),
    "too large an objective": (1.0, "objectives", 2048.0, "which is not between 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_check_names_what_cannot_be(name):
    """By how many times the agreed bound one entry is changed."""
    beta, field, times, reason = WRONG[name]
    path, held = begun(beta, samples())
    words, _ = summand(path, held, [held.first_right_factor(H) for H in path.point])
    totals = path.numbers.decode(words, 2)
    path.numbers.check(totals)
    getattr(totals, field).flat[0] += times * float(held.size_bounds().sum())
    with pytest.raises(CorruptedTotalError, match=reason):
        path.numbers.check(totals)


def test_the_counts_that_all_have_bound_what_is_expected_of_them():
    """Where no entry is missing and no other divergence asks for more room."""
    shape = 3, 6
    totals = BetaTotals(np.full((1, *shape), 0.1), np.zeros((1, *shape)), np.zeros(1))
    assert totals.above.sum() > 1.5
    BetaNumbers(path_settings(3, beta=1.0, missing=True), *shape).bounded(1).check(
        totals
    )
    with pytest.raises(CorruptedTotalError, match="add up to"):
        BetaNumbers(path_settings(3, beta=1.0), *shape).bounded(1).check(totals)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_first_totals_of_uniform_words_are_refused(seed):
    words = np.random.default_rng(seed).integers(0, 2**64, 200, dtype=np.uint64)
    sound = beta_setup_words(np.ones(4), np.ones(4), None)
    assert read_beta_setup(sound).n_samples == 4
    with pytest.raises(CorruptedTotalError):
        read_beta_setup(words[: len(sound)])


def test_no_samples_have_nothing_to_count():
    path, held = begun(1.0, np.zeros((3, 6)))
    words, _ = summand(path, held, [held.first_right_factor(H) for H in path.point])
    path.take(words)
