"""The picture of what an attack recovered."""

import builtins

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skppdnmf.audit import Leakage
from skppdnmf.plot import LeakageDisplay


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
