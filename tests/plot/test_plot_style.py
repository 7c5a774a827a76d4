"""Keywords for matplotlib: by any of their names, and its errors as they are."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from _pictures import COMPONENTS, HISTORY, SQUARE
from matplotlib.lines import Line2D

from skppdnmf.plot import ComponentsDisplay, LearningCurveDisplay, NetworkDisplay
from skppdnmf.plot._style import merge_styles


@pytest.fixture
def components():
    return ComponentsDisplay(COMPONENTS, image_shape=(3, 4))


@pytest.fixture
def curves():
    return LearningCurveDisplay(HISTORY, reference=0.5)


@pytest.fixture
def network():
    return NetworkDisplay(SQUARE, values=[1.0, 2.0, 3.0, 4.0])


def test_styles_by_any_name_override_the_defaults():
    defaults = {"color": "red", "linewidth": 2}
    assert merge_styles(Line2D, defaults, {"lw": 5}) == {
        "color": "red",
        "linewidth": 5,
    }
    assert merge_styles(Line2D, defaults, None) == defaults
    with pytest.raises(TypeError):
        merge_styles(Line2D, defaults, {"lw": 5, "linewidth": 6})


@pytest.mark.parametrize("kind", ["image", "heatmap", "stem", "bar"])
def test_matplotlib_refuses_keywords_of_components(components, kind):
    with pytest.raises(AttributeError, match="'foo'"):
        components.plot(kind=kind, style_kw={"foo": 1})


@pytest.mark.parametrize("name", ["line_kw", "reference_kw"])
def test_matplotlib_refuses_keywords_of_curves(curves, name):
    with pytest.raises(AttributeError, match="'foo'"):
        curves.plot(**{name: {"foo": 1}})


@pytest.mark.parametrize("name", ["node_kw", "edge_kw", "label_kw"])
def test_matplotlib_refuses_keywords_of_networks(network, name):
    with pytest.raises(AttributeError, match="'foo'"):
        network.plot(**{name: {"foo": 1}})


@pytest.mark.parametrize(
    "arguments",
    [
        {"cmap": 3},
        {"cmap": "spring green"},
        {"node_kw": {"s": "big"}},
        {"node_kw": {"c": [1, 2]}},
        {"edge_kw": {"color": "reddest"}},
        {"label_kw": {"fontsize": "x"}},
        {"label_kw": {"bbox": {"boxstyle": "x"}}},
        {"label_kw": {1: 2}},
    ],
)
def test_matplotlib_refuses_values_of_keywords(network, arguments):
    with pytest.raises((TypeError, ValueError)):
        network.plot(**arguments)


def test_the_scale_of_the_user_is_that_of_the_values(network):
    norm = mpl.colors.Normalize()
    network.plot(node_kw={"norm": norm, "s": [9, 8, 7, 6]})
    assert (norm.vmin, norm.vmax) == (1, 4)
    assert len(plt.get_fignums()) == 1


def test_warnings_of_matplotlib_come_once(network):
    # An unfilled marker has no edge to colour.
    with pytest.warns(UserWarning, match="edgecolor") as caught:
        network.plot(node_kw={"marker": "x"})
    assert len(caught) == 1
