"""Figures of leakage."""

import numpy as np
import pytest
from _audit import ATTACKER, VICTIM, transcript
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skppdnmf.audit import Estimate, Leakage
from skppdnmf.audit._attacks.leakage import (
    in_order_of,
    mean_moments,
    mean_sample,
    relative_error,
    score,
)


@pytest.mark.parametrize(
    ("error", "guess_error", "recovered"),
    [(0.1, 0.4, 0.75), (0.5, 0.4, 0.0), (0.0, 0.4, 1.0), (0.3, 0.0, 0.0)],
)
def test_recovered_share(error, guess_error, recovered):
    leakage = Leakage("A", "a", "b", "samples", error, guess_error)
    assert leakage.recovered == pytest.approx(recovered)


def test_one_line():
    text = str(Leakage("A", None, "b", "links", 0.5, 0.5))
    assert text == "A, links on b: links with error 50 %, guessing 50 %: 0 % recovered"
    assert "\n" not in str(Leakage("A", 1, 2, "samples", 0.123, 0.4))


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_means(convert):
    X = np.random.default_rng(0).exponential(size=(7, 4))
    assert_allclose(mean_sample(convert(X)), X.mean(axis=0))
    assert_allclose(mean_moments(convert(X)), X.T @ X / 7)
    assert_array_equal(mean_sample(convert(X)[:0]), np.zeros(4))


def test_order_of_samples_does_not_matter():
    X = np.random.default_rng(0).exponential(size=(6, 4))
    shuffled = X[[3, 0, 5, 1, 2, 4]]
    assert_array_equal(in_order_of(shuffled, X), X)
    assert relative_error(1.1 * X, X) == pytest.approx(0.1)


def test_scores_of_the_truth_of_the_guess_and_of_nothing():
    one = transcript(n_samples=3)
    view, X = one.view(ATTACKER), one.view(VICTIM).X
    moments = score("A", one, view, VICTIM, Estimate(X[[2, 0, 1]]))
    assert moments.target == "moments"
    assert moments.error == pytest.approx(0, abs=1e-12)
    samples = score("A", one, view, VICTIM, Estimate(X[[2, 0, 1]]), "samples")
    assert (samples.error, samples.recovered) == (0, 1)
    guess = np.repeat(view.X.mean(axis=0)[None], 3, axis=0)
    guessed = score("A", one, view, VICTIM, Estimate(guess), "samples")
    assert guessed.error == pytest.approx(guessed.guess_error)
    nothing = score("A", one, view, VICTIM, Estimate())
    assert (nothing.reconstruction, nothing.recovered) == (None, 0.0)
    assert nothing.error == nothing.guess_error > 0
    # Too few samples say nothing of each, but of their moments.
    few = score("A", one, view, VICTIM, Estimate(X[:1]), "samples")
    assert few.reconstruction is None
    assert score("A", one, view, VICTIM, Estimate(X[:1])).reconstruction is not None


def test_one_sample_is_scored_itself():
    one = transcript()
    view, X = one.view(ATTACKER), one.view(VICTIM).X
    leakage = score("A", one, view, VICTIM, Estimate(2 * X))
    assert (leakage.target, leakage.n_samples, leakage.n_neighbours) == (
        "samples",
        1,
        1,
    )
    assert leakage.error == pytest.approx(1)
