"""Components as images, heat maps, stems and bars."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from skppdnmf import PrivateDistributedNMF
from skppdnmf.plot import ComponentsDisplay
from skppdnmf.plot._components import choose_columns


@pytest.fixture(scope="module")
def fitted():
    X = load_digits().data[:90]
    agents = np.repeat(["north", "south", "west"], 30)
    return PrivateDistributedNMF(
        5, encryption=None, max_iter=3, tol=0, random_state=0
    ).fit(X, agents=agents)


@pytest.fixture
def components():
    return np.random.default_rng(0).exponential(size=(4, 12))


def relative(components):
    return components / components.max(axis=1, keepdims=True)


def test_images_are_the_components(fitted):
    display = ComponentsDisplay.from_estimator(fitted, image_shape=(8, 8))
    assert len(display.artists_) == 5
    for image, component in zip(display.artists_, fitted.components_, strict=True):
        assert_allclose(image.get_array(), component.reshape(8, 8) / component.max())
        assert image.get_clim() == (0, 1)
    assert display.colorbar_ is None
    titles = [ax.get_title() for ax in display.axes_.flat if ax is not None]
    assert titles == ["0", "1", "2", "3", "4"]
    display.figure_.canvas.draw()


def test_images_on_a_shared_scale(fitted):
    display = ComponentsDisplay.from_estimator(
        fitted, image_shape=(8, 8), scale="shared", titles=False
    )
    for image, component in zip(display.artists_, fitted.components_, strict=True):
        assert_allclose(image.get_array(), component.reshape(8, 8))
        assert_allclose(image.get_clim(), (0, fitted.components_.max()))
    assert display.colorbar_.ax.get_ylabel() == "Weight"
    assert not any(ax.get_title() for ax in display.axes_.flat if ax is not None)


def test_copy_of_an_agent(fitted):
    copies = fitted.agent_components_
    assert not np.array_equal(copies[1], copies[2])
    display = ComponentsDisplay.from_estimator(fitted, agent="south", scale="shared")
    assert_array_equal(display.artists_[0].get_array(), copies[1])
    with pytest.raises(ValueError, match="agent='east' is not one of 'north', 'south'"):
        ComponentsDisplay.from_estimator(fitted, agent="east")


def test_plain_nmf_with_names():
    names = [f"gene {k}" for k in range(12)]
    X = np.random.default_rng(0).exponential(size=(30, 12))
    model = NMF(3, init="nndsvd", tol=0.01).fit(pd.DataFrame(X, columns=names))
    display = ComponentsDisplay.from_estimator(model)
    (image,) = display.artists_
    assert_allclose(image.get_array(), relative(model.components_))
    display.figure_.canvas.draw()
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == names
    assert display.colorbar_.ax.get_ylabel() == "Relative weight"
    assert display.axes_.shape == (1, 1)
    assert display.axes_[0, 0] is display.ax_
    with pytest.raises(TypeError, match="agent_components_, agent_labels_"):
        ComponentsDisplay.from_estimator(model, agent=0)


def test_many_features_are_numbered():
    names = [f"f{k}" for k in range(100)]
    display = ComponentsDisplay(np.ones((40, 100)), feature_names=names).plot()
    display.figure_.canvas.draw()
    assert len(display.ax_.get_xticks()) < 20
    assert len(display.ax_.get_yticks()) < 30


def test_stems_stand_at_the_weights(components):
    display = ComponentsDisplay(components).plot(kind="stem", scale="shared")
    assert len(display.artists_) == 4
    for lines, component in zip(display.artists_, components, strict=True):
        tops = [segment[1] for segment in lines.get_segments()]
        assert_allclose(tops, np.column_stack([np.arange(12), component]))
    limits = {ax.get_ylim() for ax in display.axes_.flat}
    assert len(limits) == 1
    assert display.axes_[0, 0].get_ylabel() == "Weight"
    assert display.axes_[1, 0].get_xlabel() == "Feature"
    assert display.axes_[0, 0].get_xlabel() == ""


def test_bars_are_the_greatest_in_order(components):
    names = [f"word{k}" for k in range(12)]
    display = ComponentsDisplay(components, feature_names=names).plot(
        kind="bar", n_top=3
    )
    display.figure_.canvas.draw()
    for ax, bars, component in zip(
        display.axes_.flat, display.artists_, components, strict=True
    ):
        order = np.argsort(component)[::-1][:3]
        assert [label.get_text() for label in ax.get_yticklabels()] == [
            names[k] for k in order
        ]
        widths = [bar.get_width() for bar in bars]
        assert_allclose(widths, component[order] / component.max())
        assert ax.yaxis_inverted()  # the greatest on top


def test_bars_of_features_without_or_with_equal_names(components):
    display = ComponentsDisplay(components[:1]).plot(kind="bar", n_top=50)
    assert len(display.artists_[0]) == 12
    order = np.argsort(components[0])[::-1]
    texts = [label.get_text() for label in display.axes_[0, 0].get_yticklabels()]
    assert texts == [str(k) for k in order]
    same = ComponentsDisplay(components[:1], feature_names=["same"] * 12)
    assert len(same.plot(kind="bar").artists_[0]) == 10


def test_one_axes_is_divided(components):
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4))
    display = ComponentsDisplay(components, image_shape=(3, 4)).plot(left, n_cols=2)
    assert display.ax_ is left
    assert display.figure_ is figure
    assert display.axes_.shape == (2, 2)
    assert not left.axison
    figure.canvas.draw()
    for ax in display.axes_.flat:
        assert ax.get_position().x1 <= right.get_position().x0
    with pytest.raises(ValueError, match=r"ax=display\.axes_"):
        ComponentsDisplay(components, image_shape=(3, 4)).plot(left)
    again = ComponentsDisplay(components, image_shape=(3, 4)).plot(display.axes_)
    assert_array_equal(again.axes_, display.axes_)
    assert again.ax_ is None


def test_axes_placed_by_hand_are_divided_too(components):
    figure = plt.figure()
    ax = figure.add_axes([0.2, 0.3, 0.5, 0.4])
    display = ComponentsDisplay(components).plot(ax, kind="stem")
    for panel in display.axes_.flat:
        box = panel.get_position()
        assert box.x0 >= 0.2 - 1e-9
        assert box.x1 <= 0.7 + 1e-9
        assert box.y0 >= 0.3 - 1e-9
        assert box.y1 <= 0.7 + 1e-9


def test_places_left_empty(components):
    display = ComponentsDisplay(components[:3], image_shape=(3, 4)).plot(n_cols=2)
    assert display.axes_.shape == (2, 2)
    assert display.axes_[1, 1] is None
    again = ComponentsDisplay(components[:3], image_shape=(3, 4)).plot(display.axes_)
    assert len(again.artists_) == 3


def test_list_of_axes_must_have_one_for_each(components):
    _, axes = plt.subplots(1, 4)
    display = ComponentsDisplay(components).plot(list(axes), kind="stem")
    assert display.axes_.shape == (1, 4)
    with pytest.raises(ValueError, match="ax has 3 Axes, but kind='stem' of 4"):
        ComponentsDisplay(components).plot(axes[:3], kind="stem")


def test_narrow_axes_have_few_columns(components):
    display = ComponentsDisplay(components).plot(
        plt.figure(figsize=(2.5, 9)).add_subplot(), kind="bar"
    )
    assert display.axes_.shape == (4, 1)


def test_zero_and_negative_components():
    components = np.array([[0.0, 0, 0, 0], [1, -2, 0, 0.5]])
    display = ComponentsDisplay(components, image_shape=(2, 2)).plot()
    zero, signed = display.artists_
    assert_array_equal(zero.get_array(), np.zeros((2, 2)))
    assert_allclose(signed.get_array().min(), -1)
    assert zero.get_clim() == signed.get_clim() == (-1, 0.5)
    ComponentsDisplay(np.zeros((1, 3))).plot().figure_.canvas.draw()


@pytest.mark.parametrize(
    ("kind", "style", "getter", "expected"),
    [
        ("image", {"cmap": "magma"}, lambda image: image.get_cmap().name, "magma"),
        ("heatmap", {"cmap": "magma"}, lambda image: image.get_cmap().name, "magma"),
        ("stem", {"lw": 7}, lambda lines: lines.get_linewidth()[0], 7),
        ("bar", {"fc": "red"}, lambda bars: bars[0].get_facecolor(), (1, 0, 0, 1)),
    ],
)
def test_styles(components, kind, style, getter, expected):
    display = ComponentsDisplay(components, image_shape=(3, 4)).plot(
        kind=kind, style_kw=style
    )
    assert getter(display.artists_[0]) == expected


@pytest.mark.parametrize("n_panels", range(1, 60))
def test_columns_leave_no_row_empty(n_panels):
    columns = choose_columns(n_panels)
    rows = -(-n_panels // columns)
    assert 1 <= columns <= 10
    assert rows <= columns
    assert rows * columns - n_panels < columns
    assert choose_columns(n_panels, 2) <= 2


def test_columns_are_few_and_full():
    assert [choose_columns(n) for n in (1, 6, 7, 10, 49)] == [1, 3, 4, 5, 7]


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        ({"image_shape": (3, 5)}, {}, r"image_shape=\(3, 5\) does not hold 12 pixels"),
        ({"image_shape": (12,)}, {}, r"image_shape=\(12,\) does not hold"),
        ({"image_shape": (-3, -4)}, {}, r"image_shape=\(-3, -4\) does not hold"),
        ({"feature_names": ["a"]}, {}, "1 entries for n_features=12"),
        ({}, {"kind": "image"}, "kind='image' needs image_shape"),
        ({}, {"kind": "pie"}, "kind='pie' is not one of"),
        ({}, {"scale": "log"}, "scale='log' is not one of"),
        ({}, {"n_cols": 0}, "n_cols=0 must be at least 1"),
        ({}, {"n_top": 2.5}, "n_top=2.5 must be an integer"),
    ],
)
def test_bad_arguments_are_refused_before_a_figure_is_made(
    components, data, arguments, message
):
    with pytest.raises(ValueError, match=message):
        ComponentsDisplay(components, **data).plot(**arguments)
    assert not plt.get_fignums()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones(4), r"it has shape \(4,\)"),
        (np.ones((0, 4)), r"it has shape \(0, 4\)"),
        ([[1.0, np.nan]], "infinite or nan"),
    ],
)
def test_bad_components(bad, message):
    with pytest.raises(ValueError, match=message):
        ComponentsDisplay(bad).plot()
