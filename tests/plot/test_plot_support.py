"""What the displays share, and that matplotlib stays optional."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from skppdnmf import PrivateDistributedNMF
from skppdnmf.plot import ComponentsDisplay, LearningCurveDisplay, NetworkDisplay
from skppdnmf.plot._checks import (
    as_numbers,
    check_choice,
    check_numbers,
    check_sequence,
    check_style,
    shorten,
)
from skppdnmf.plot._support import merge_styles, require_attributes, unit_of_bytes

mpl.use("Agg")

DISPLAYS = (ComponentsDisplay, LearningCurveDisplay, NetworkDisplay)
HISTORY = {
    name: np.ones(2)
    for name in (
        "exchanges",
        "seconds",
        "bytes",
        "local_error",
        "shared_error",
        "consensus_error",
    )
}


@pytest.fixture(scope="module")
def fitted():
    X = load_digits().data[:60]
    return PrivateDistributedNMF(
        3, encryption=None, max_iter=3, tol=0, random_state=0
    ).fit(X)


def test_import_needs_no_matplotlib():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import skppdnmf.plot as plot\n"
        "assert 'networkx' not in sys.modules\n"
        "try:\n"
        "    plot.NetworkDisplay([[0, 1], [1, 0]]).plot()\n"
        "except ImportError as error:\n"
        "    assert 'pip install \"skppdnmf[plot]\"' in str(error)\n"
        "else:\n"
        "    raise SystemExit('drawn without matplotlib')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("display", DISPLAYS)
def test_from_estimator_without_matplotlib(display, fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "skppdnmf\[plot\]"') as caught:
        display.from_estimator(fitted)
    assert f"{display.__name__}.from_estimator" in str(caught.value)


@pytest.mark.parametrize(
    "display",
    [
        ComponentsDisplay(np.ones((2, 4))),
        LearningCurveDisplay(HISTORY),
        NetworkDisplay(np.zeros((1, 1))),
    ],
)
def test_plot_without_matplotlib(display, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=rf"{type(display).__name__}\.plot needs"):
        display.plot()


@pytest.mark.parametrize("display", DISPLAYS)
@pytest.mark.parametrize(
    "estimator",
    [PrivateDistributedNMF(2), make_pipeline(MinMaxScaler(), PrivateDistributedNMF(2))],
    ids=["estimator", "pipeline"],
)
def test_refuses_what_is_not_fitted(display, estimator):
    with pytest.raises(NotFittedError):
        display.from_estimator(estimator)


@pytest.mark.parametrize("display", [LearningCurveDisplay, NetworkDisplay])
def test_refuses_other_estimators(display):
    other = NMF(2, init="nndsvd", tol=0.1).fit(load_digits().data[:60])
    with pytest.raises(TypeError, match=r"needs a fitted estimator with .*; got NMF;"):
        display.from_estimator(other)


@pytest.mark.parametrize("display", DISPLAYS)
def test_refuses_what_is_no_estimator(display):
    with pytest.raises(TypeError, match="got str"):
        display.from_estimator("model")
    with pytest.raises(TypeError, match="got type"):
        display.from_estimator(PrivateDistributedNMF)


def test_refuses_a_fitted_pipeline_with_a_hint(fitted):
    pipeline = make_pipeline(MinMaxScaler(), NMF(2, init="nndsvd", tol=0.1)).fit(
        load_digits().data[:60]
    )
    with pytest.raises(TypeError, match="pass the fitted step of a pipeline"):
        LearningCurveDisplay.from_estimator(pipeline)


@pytest.mark.parametrize("display", DISPLAYS)
def test_refuses_what_is_not_of_scikit_learn(display):
    class Foreign:
        def fit(self, X):
            self.done_ = True
            return self

    with pytest.raises(TypeError, match="got Foreign; pass the fitted step"):
        display.from_estimator(Foreign().fit(None))


def test_only_what_is_missing_is_named(fitted):
    with pytest.raises(TypeError, match=r"with other_, such as"):
        require_attributes(fitted, "Some", "history_", "other_")


def test_styles_by_any_name_override_the_defaults():
    from matplotlib.lines import Line2D

    defaults = {"color": "red", "linewidth": 2}
    assert merge_styles(Line2D, defaults, {"lw": 5}) == {
        "color": "red",
        "linewidth": 5,
    }
    assert merge_styles(Line2D, defaults, None) == defaults
    with pytest.raises(TypeError):
        merge_styles(Line2D, defaults, {"lw": 5, "linewidth": 6})


@pytest.mark.parametrize(
    ("largest", "unit"),
    [
        (0, ("B", 1)),
        (999, ("B", 1)),
        (1000, ("kB", 1e3)),
        (2.5e6, ("MB", 1e6)),
        (1e9, ("GB", 1e9)),
        (5e13, ("TB", 1e12)),
    ],
)
def test_unit_of_bytes(largest, unit):
    assert unit_of_bytes(largest) == unit


def test_values_are_shortened():
    assert shorten("a") == "'a'"
    assert shorten(np.eye(2)) == "array([[1., 0.], [0., 1.]])"
    assert len(shorten(list(range(1000)))) == 60


def test_choices_are_named():
    check_choice("x", "a", ("a", "b"))
    with pytest.raises(ValueError, match="x='c' is not one of 'a', 'b'"):
        check_choice("x", "c", ("a", "b"))


def test_sequences_are_lists():
    assert check_sequence("x", (k for k in "ab"), "str") == ["a", "b"]
    assert check_sequence("x", np.array([1, 2]), "int") == [1, 2]
    with pytest.raises(TypeError, match="x='ab' must be a sequence of str"):
        check_sequence("x", "ab", "str")


def test_numbers_are_arrays():
    given = [[1, None], [True, 2.5]]
    assert_array_equal(as_numbers("x", given, "numbers"), [[1, np.nan], [1, 2.5]])
    frame = pd.DataFrame({"a": [1], "b": [0.5]})
    assert_array_equal(check_numbers("x", frame, (1, 2)), [[1, 0.5]])
    with pytest.raises(ValueError, match="x has negative entries, such as -1"):
        check_numbers("x", [2, -1], (2,), nonnegative=True)
    with pytest.raises(TypeError, match="x=3 must be 'a' or an array of numbers"):
        check_numbers("x", 3, (2,), alternatives="'a' or ")


def test_styles_without_keywords_are_not_tried():
    def draw(ax):
        raise AssertionError("tried")

    check_style("x", None, draw)
    check_style("x", {}, draw)
    with pytest.raises(ValueError, match=r"x=\{'a': 1\} cannot be drawn: tried"):
        check_style("x", {"a": 1}, draw)
