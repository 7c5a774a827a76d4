"""What the displays need and refuse, and that they refuse it before they draw."""

import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from _pictures import COMPONENTS, HISTORY, SQUARE
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import skppdnmf
from skppdnmf import PrivateDistributedNMF
from skppdnmf.audit import Leakage
from skppdnmf.plot import (
    ComponentsDisplay,
    LeakageDisplay,
    LearningCurveDisplay,
    NetworkDisplay,
)
from skppdnmf.plot._checks import (
    as_numbers,
    check_choice,
    check_numbers,
    check_sequence,
    require_attributes,
    shorten,
)

pytestmark = pytest.mark.filterwarnings("ignore:agents with one neighbour")

PACKAGE = Path(skppdnmf.__file__).parent
X = load_digits().data[:40]
LEAKAGE = Leakage(
    *("A", 0, 1, "samples", 0.1, 0.4),
    *(0.9 * COMPONENTS, COMPONENTS, 0.5 * COMPONENTS),
)
DISPLAYS = (ComponentsDisplay, LearningCurveDisplay, NetworkDisplay)


@pytest.fixture(scope="module")
def fitted():
    return PrivateDistributedNMF(
        4, adjacency="ring", encryption=None, max_iter=2, tol=0, random_state=0
    ).fit(X)


def components(**data):
    return ComponentsDisplay(**{"components": COMPONENTS, **data})


def network(**data):
    return NetworkDisplay(**{"adjacency": SQUARE, **data})


def curves(**data):
    return LearningCurveDisplay(**{"histories": HISTORY, **data})


def leakage(**data):
    return LeakageDisplay(**{"leakage": LEAKAGE, **data})


NOT_NUMBERS = (3, None, "abcd", {0: 1}, len, ["a"] * 4, [1j] * 4, [[1], [1, 2]])
NO_SEQUENCE = (3, 2.5, {"a": 1}, np.array(3), len)
NO_FLAG = ("yes", 1, None, np.ones(2))
NO_STYLE = (3, "red", ["red"], np.ones(2))

# How a display is made, the parameter, what it must not be. None where it may be.
DATA = [
    (components, "components", NOT_NUMBERS),
    (components, "components", (sparse.eye(4), np.array([["1", "2"]]), [[10**400]])),
    (components, "image_shape", (3, "ab", ("a", 2), (3.0, 4.0), (12,), (3, 4, 1))),
    (components, "image_shape", ((True, 12), (0, 0), (-3, -4), {3: 4}, [[1], [1, 2]])),
    (components, "image_shape", (np.array(3), np.ones((2, 2)), (3, None), len)),
    (components, "feature_names", (*NO_SEQUENCE, "a" * 12, ["a"], [])),
    (curves, "histories", (3, None, "ab", [3], [None], {}, [{}], [], [HISTORY, 3])),
    (curves, "histories", ({**HISTORY, "seconds": "abc"},)),
    (curves, "histories", ({**HISTORY, "bytes": 3}, {**HISTORY, "bytes": [1, 2]})),
    (curves, "histories", ({name: [] for name in HISTORY},)),
    (curves, "histories", ({name: [[1.0]] for name in HISTORY},)),
    (curves, "labels", (*NO_SEQUENCE, [], ["a", "b"])),
    (curves, "reference", ("a", -1, 1j, True, np.nan, np.inf, 10**400, [0.1])),
    (curves, "reference", ({"a": "b"}, {"a": None})),
    (network, "adjacency", (3, None, "ring", {}, [[1], [1, 2]], np.ones((2, 3)))),
    (network, "adjacency", (np.eye(3), np.zeros((2, 2)), [[0, 2], [2, 0]])),
    (network, "adjacency", ([[0, 1], [0, 0]], [["a"]], [[0, np.nan], [np.nan, 0]])),
    (network, "labels", (*NO_SEQUENCE, "abcd", ["a"])),
    (network, "n_samples", (3, "abcd", ["a"] * 4, [1, 2], [-1, 1, 1, 1])),
    (network, "n_samples", ([np.nan] * 4, [np.inf] * 4, [np.datetime64("2020")] * 4)),
    (network, "values", (3, "abcd", ["a"] * 4, [1, 2], [[1, 2, 3, 4]], [1j] * 4)),
    (network, "value_name", (3, None, ["a"])),
    (network, "edge_bytes", (3, "a", [1, 2, 3, 4], -SQUARE, np.inf * np.ones((4, 4)))),
    (leakage, "leakage", (3, None, "a", [LEAKAGE], Leakage, {"truth": 1})),
    (leakage, "image_shape", (3, "ab", ("a", 2), (3.0, 4.0), (12,), (0, 0), (3, 5))),
]
# Of `plot`, with the data that need it.
ARGUMENTS = [
    *[
        (components, name, values)
        for name, values in {
            "ax": (3, "a", [], [3], [None] * 4, {"a": 1}, [[3, 4], [5]], plt),
            "kind": ("pie", 3, ["bar"], np.array(["bar", "stem"]), {}),
            "scale": ("log", None, 3, np.array(["component", "shared"])),
            "n_cols": (0, -1, 2.5, "3", True, [3], np.nan),
            "n_top": (0, -1, 2.5, "3", True, None, [3], np.inf),
            "titles": NO_FLAG,
            "colorbar": NO_FLAG,
            "style_kw": NO_STYLE,
        }.items()
    ],
    *[
        (curves, name, values)
        for name, values in {
            "ax": (3, "a", [], [plt], plt),
            "x": ("epochs", 3, None, ["bytes"], np.array(["bytes", "seconds"])),
            "errors": (*NO_SEQUENCE, "bias", [3], [["shared_error"]], []),
            "xscale": ("symlog", 3, None),
            "yscale": ("symlog", 3, None),
            "legend": NO_FLAG,
            "line_kw": (*NO_STYLE, [3], [{}, {}]),
            "reference_kw": NO_STYLE,
        }.items()
    ],
    *[
        (network, name, values)
        for name, values in {
            "ax": (3, "a", [], [plt], plt),
            "layout": (*NOT_NUMBERS, "spring", np.zeros((3, 2)), np.zeros((4, 2))),
            "colorbar": NO_FLAG,
            "legend": NO_FLAG,
            "node_kw": NO_STYLE,
            "edge_kw": NO_STYLE,
            "label_kw": NO_STYLE,
        }.items()
    ],
    (network, "layout", (np.full((4, 2), np.nan), np.full((4, 2), 3.0))),
    (network, "layout", ([[1e300, 0], [0, 0], [1, 1], [2, 2]], {0: (0, 0)})),
    (network, "layout", ({k: (k, k) if k else 3 for k in range(4)},)),
    (leakage, "ax", (3, "a", [], plt)),
    (leakage, "n_samples", (0, -1, 2.5, "3", True, None)),
]


def each(cases):
    """One test for each value."""
    return [
        pytest.param(make, name, value, id=f"{make.__name__}-{name}-{shorten(value)}")
        for make, name, values in cases
        for value in values
    ]


def assert_ours(caught, name):
    """The error is raised here, not further inside, and says which parameter."""
    assert PACKAGE in Path(caught.traceback[-1].path).parents
    assert name in str(caught.value)


@pytest.mark.parametrize(("make", "name", "value"), each(DATA))
def test_odd_data_are_refused_before_a_figure_is_made(make, name, value):
    display = make(**{name: value})
    with pytest.raises((TypeError, ValueError)) as caught:
        display.plot()
    assert_ours(caught, name)
    assert not plt.get_fignums()


@pytest.mark.parametrize(("make", "name", "value"), each(ARGUMENTS))
def test_odd_arguments_are_refused_before_a_figure_is_made(make, name, value):
    display = make(image_shape=(3, 4)) if make is components else make()
    with pytest.raises((TypeError, ValueError)) as caught:
        display.plot(**{name: value})
    assert_ours(caught, name)
    assert not plt.get_fignums()


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (components, {"style_kw": "red"}),
        (components, {"kind": "stem", "titles": "yes"}),
        (curves, {"line_kw": "red"}),
        (curves, {"reference_kw": "red", "yscale": "log"}),
        (network, {"layout": np.zeros((4, 2))}),
        (network, {"label_kw": "red"}),
        (leakage, {"n_samples": "3"}),
    ],
)
def test_axes_of_the_user_are_left_alone(make, arguments):
    figure, ax = plt.subplots()
    before = ax.get_children(), ax.get_aspect(), ax.get_yscale(), ax.axison
    with pytest.raises((TypeError, ValueError)):
        make().plot(ax, **arguments)
    assert figure.axes == [ax]
    assert (ax.get_children(), ax.get_aspect(), ax.get_yscale(), ax.axison) == before
    assert not ax.has_data()


@pytest.mark.parametrize("make", [components, curves, network, leakage])
def test_axes_that_cannot_be_drawn_in(make):
    figure = plt.figure()
    with pytest.raises(ValueError, match=r"ax=.* is three-dimensional"):
        make().plot(figure.add_subplot(projection="3d"))
    with pytest.raises(TypeError, match=r"ax=.* must be a matplotlib Axes"):
        make().plot(figure)
    gone = figure.add_subplot()
    gone.remove()
    with pytest.raises(ValueError, match=r"ax=.* has been removed from its figure"):
        make().plot(gone)


def test_a_graph_needs_equal_scales():
    ax = plt.figure().add_subplot(projection="polar")
    with pytest.raises(ValueError, match=r"ax=.* has the projection 'polar'"):
        network().plot(ax)
    assert ax.axison


def test_each_of_several_axes_is_checked():
    _, axes = plt.subplots(2, 2)
    grid = axes.astype(object)
    grid[1, 0] = "lower left"
    with pytest.raises(TypeError, match=r"ax\[1, 0\]='lower left' must be"):
        components().plot(grid, kind="stem")
    assert not any(ax.has_data() for ax in axes.flat)


@pytest.mark.parametrize(
    "display", [ComponentsDisplay, LearningCurveDisplay, NetworkDisplay]
)
@pytest.mark.parametrize("estimator", [3, None, "model", np.ones(2), len])
def test_what_is_no_estimator(display, estimator):
    with pytest.raises(TypeError, match="needs a fitted estimator with") as caught:
        display.from_estimator(estimator)
    assert_ours(caught, type(estimator).__name__)


@pytest.mark.parametrize(
    ("display", "arguments", "names"),
    [
        (ComponentsDisplay, {"agent": "a"}, "agent='a' is not one of 0, 1, 2, 3"),
        (ComponentsDisplay, {"agent": np.ones(2)}, "agent=array"),
        (ComponentsDisplay, {"agent": [0]}, "agent=[0]"),
        (ComponentsDisplay, {"image_shape": 3}, "image_shape=3"),
        (LearningCurveDisplay, {"ax": 3}, "ax=3"),
        (NetworkDisplay, {"color": 3}, "color=3 is not one of 'error'"),
        (NetworkDisplay, {"layout": np.zeros((4, 2))}, "layout puts all 4 agents at"),
        (NetworkDisplay, {"X": 3}, "X is no data for the estimator"),
        (NetworkDisplay, {"X": "samples"}, "X is no data for the estimator"),
        (NetworkDisplay, {"X": -X}, "X is no data for the estimator"),
        (NetworkDisplay, {"X": X[:, 1:]}, "X has 63 features"),
        (NetworkDisplay, {"X": [X[:, 1:]] * 4}, "X has 63 features"),
        (NetworkDisplay, {"X": X, "agents": 3}, "agents must be 1-D"),
        (NetworkDisplay, {"X": X, "agents": [[0]] * 40}, "agents must be 1-D"),
    ],
)
def test_odd_arguments_of_from_estimator(fitted, display, arguments, names):
    with pytest.raises((TypeError, ValueError)) as caught:
        display.from_estimator(fitted, **arguments)
    assert_ours(caught, names)
    assert not plt.get_fignums()


def test_odd_leakages():
    for odd, message in (
        ({"truth": np.ones(3)}, r"truth .* must be a matrix; it has shape \(3,\)"),
        ({"guess": np.ones((2, 3))}, r"guess .* has shape \(2, 3\), but truth has"),
        (
            {"truth": np.nan * COMPONENTS},
            r"truth .* has entries that are infinite or nan",
        ),
    ):
        data = {
            **{"truth": COMPONENTS, "reconstruction": None, "guess": COMPONENTS},
            **odd,
        }
        with pytest.raises(ValueError, match=message):
            leakage(leakage=Leakage("A", 0, 1, "samples", 0.1, 0.4, **data)).plot()
    assert not plt.get_fignums()


def test_image_shape_of_moments_is_checked():
    moments = COMPONENTS.T @ COMPONENTS
    given = Leakage("A", 0, 1, "moments", 0.1, 0.4, None, moments, moments)
    with pytest.raises(ValueError, match=r"image_shape=\(5, 5\) does not hold 12"):
        LeakageDisplay(given, image_shape=(5, 5)).plot()
    assert LeakageDisplay(given, image_shape=(3, 4)).plot().axes_.shape == (1, 2)


# What stays allowed --------------------------------------------------------------


def test_other_sequences_of_the_right_kind():
    names = pd.Index([f"f{k}" for k in range(12)])
    display = components(image_shape=np.array([3, 4]), feature_names=names)
    assert display.plot(n_cols=np.int64(2), titles=np.True_).axes_.shape == (2, 2)
    several = curves(histories=(HISTORY, HISTORY), labels=np.array(["a", "b"]))
    lists = [{name: column.tolist() for name, column in HISTORY.items()}]
    assert several.plot(line_kw=[{"c": "red"}, None]).lines_.shape == (2, 1)
    assert curves(histories=lists).plot(errors=("local_error",)).lines_.size == 1
    display = network(labels=pd.Series(list("abcd")), n_samples=range(4)).plot()
    assert [text.get_text() for text in display.texts_] == list("abcd")


def test_graphs_as_the_estimator_takes_them():
    frame = pd.DataFrame(SQUARE, index=list("abcd"), columns=list("abcd"))
    display = NetworkDisplay(frame).plot(layout={k: (ord(k), 0) for k in "abcd"})
    assert [text.get_text() for text in display.texts_] == list("abcd")
    for graph in (sparse.csr_matrix(SQUARE), SQUARE.astype(bool), SQUARE.tolist()):
        drawn = NetworkDisplay(graph).plot()
        assert len(drawn.edges_.get_segments()) == 4
        assert [text.get_text() for text in drawn.texts_] == ["0", "1", "2", "3"]


def test_agents_in_one_place_leave_room_for_the_others():
    places = [(0, 0), (0, 0), (0, 1), (0, 1)]
    display = network().plot(layout=places)
    assert_array_equal(display.positions_, places)
    low, high = display.ax_.get_xlim()
    assert low < -0.5 < 0.5 < high


# What is needed: matplotlib, and estimators that are fitted ----------------------


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


# The checks themselves ---------------------------------------------------------


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
