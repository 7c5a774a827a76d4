"""Figures of leakage and their picture."""

import builtins

import matplotlib as mpl
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
from skppdnmf.plot._leakage import LeakageDisplay

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


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


def leakage_of(target, n_samples=4):
    X = np.random.default_rng(0).exponential(size=(n_samples, 12))
    truth = X if target == "samples" else X.T @ X
    return Leakage("A", 0, 1, target, 0.1, 0.4, 0.9 * truth, truth, 0.5 * truth)


def test_images_of_samples():
    leakage = leakage_of("samples")
    display = LeakageDisplay.from_leakage(leakage, image_shape=(3, 4), n_samples=2)
    assert display.axes_.shape == (2, 3)
    titles = [ax.get_title() for ax in display.axes_[0]]
    assert titles == ["true", "recovered, 75 %", "guessed"]
    drawn = [image.get_array() for image in display.artists_]
    expected = [
        sample.reshape(3, 4)
        for some in (leakage.truth, leakage.reconstruction, leakage.guess)
        for sample in some[:2]
    ]
    for image, sample in zip(drawn, expected, strict=True):
        assert_array_equal(image, sample)
    assert len({image.get_clim() for image in display.artists_}) == 1
    display.figure_.canvas.draw()


def test_lines_and_matrices():
    display = LeakageDisplay.from_leakage(leakage_of("samples", 9), n_samples=8)
    assert display.axes_.shape == (6, 1)
    assert len(display.artists_) == 18
    assert_array_equal(
        display.artists_[6].get_ydata(), display.leakage.reconstruction[0]
    )
    assert "75 %" in display.axes_[0, 0].get_title()
    _, ax = plt.subplots()
    display = LeakageDisplay(leakage_of("moments")).plot(ax)
    assert display.ax_ is ax
    assert display.axes_.shape == (1, 3)
    assert display.artists_[1].get_array().shape == (12, 12)


def test_without_a_reconstruction():
    leakage = leakage_of("samples")
    nothing = Leakage(
        "A", 0, 1, "samples", 0.4, 0.4, None, leakage.truth, leakage.guess
    )
    display = LeakageDisplay.from_leakage(nothing, image_shape=(3, 4), n_samples=1)
    assert display.axes_.shape == (1, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: LeakageDisplay.from_leakage(
                leakage_of("samples"), image_shape=(5, 5)
            ),
            r"image_shape=\(5, 5\) does not hold 12 pixels",
        ),
        (
            lambda: LeakageDisplay.from_leakage(leakage_of("samples"), n_samples=0),
            "n_samples=0 must be at least 1",
        ),
        (
            lambda: LeakageDisplay.from_leakage(Leakage("A", 0, 1, "masks", 0, 1)),
            "A on masks holds no samples or moments",
        ),
    ],
)
def test_what_cannot_be_drawn(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_without_matplotlib(monkeypatch):
    real = builtins.__import__

    def refuse(name, *arguments, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"skppdnmf\[plot\]"):
        LeakageDisplay.from_leakage(leakage_of("samples"))
