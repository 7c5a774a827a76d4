"""`ComponentsDisplay`: the rows of the left factor."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import (
    as_numbers,
    check_axes,
    check_choice,
    check_count,
    check_flags,
    check_image_shape,
    check_sequence,
    check_style,
    require_attributes,
    require_matplotlib,
    shorten,
)
from ._panels import divide, draw_image
from ._style import COLOURS, SMALL, merge_styles, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.container import BarContainer
    from matplotlib.image import AxesImage

KINDS = ("image", "heatmap", "stem", "bar")
# Most features that are named below a panel of stems, and below a heat map.
FEW_FEATURES = 15
MANY_FEATURES = 40
# Most components that each have a tick.
MANY_COMPONENTS = 30
MOST_COLUMNS = 10
# Inches that one panel needs.
LEAST_WIDTHS = {"image": 0.5, "stem": 1.6, "bar": 1.6}
GREATEST_WIDTH, GREATEST_HEIGHT = 9.6, 11.0


class ComponentsDisplay:
    """Components as images, as a heat map, as stems or as bars.

    The scale of a component says nothing by itself, for the right factor can make
    up for any other; so by default each is divided by its greatest weight.

    Made best with :meth:`~skppdnmf.plot.ComponentsDisplay.from_estimator`. All
    parameters are stored as attributes.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features)
        The components.
    image_shape : (int, int) or None, default=None
        Height and width of the images that the features are pixels of, row by row.
    feature_names : sequence of str or None, default=None
        Names of the features.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The figure.
    ax_ : matplotlib.axes.Axes or None
        The axes of a heat map; else those in whose place the panels are, or None
        if panels were given.
    axes_ : ndarray of shape (n_rows, n_columns), dtype object
        The axes of the panels; None where there is none. The shape is (1, 1) for a
        heat map, and that of `ax` if panels were given.
    artists_ : list
        An `matplotlib.image.AxesImage` for each component ("image") or for all
        ("heatmap"), or for each component a `matplotlib.collections.LineCollection`
        ("stem") or a `matplotlib.container.BarContainer` ("bar").
    colorbar_ : matplotlib.colorbar.Colorbar or None
        The colour bar.

    See Also
    --------
    skppdnmf.plot.LearningCurveDisplay : How the error falls.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.plot import ComponentsDisplay
    >>> components = np.random.default_rng(0).exponential(size=(6, 20))
    >>> display = ComponentsDisplay(components, image_shape=(5, 4)).plot()
    >>> display.axes_.shape
    (2, 3)
    """

    def __init__(
        self,
        components: ArrayLike,
        *,
        image_shape: tuple[int, int] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.components = components
        self.image_shape = image_shape
        self.feature_names = feature_names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        agent: Any = None,
        image_shape: tuple[int, int] | None = None,
        feature_names: Sequence[str] | None = None,
        ax: Any = None,
        kind: str | None = None,
        scale: str = "component",
        n_cols: int | None = None,
        n_top: int = 10,
        titles: bool = True,
        colorbar: bool = True,
        style_kw: Mapping[str, Any] | None = None,
    ) -> ComponentsDisplay:
        """Draw the components of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted one with ``components_``: `PrivateDistributedNMF`,
            `sklearn.decomposition.NMF` and others.
        agent : hashable or None, default=None
            Label of the agent whose copy is drawn; None draws ``components_``.
        image_shape : (int, int) or None, default=None
            As in the constructor.
        feature_names : sequence of str or None, default=None
            Names of the features; None takes ``feature_names_in_``, if there is one.
        ax, kind, scale, n_cols, n_top, titles, colorbar, style_kw
            As in :meth:`plot`.

        Returns
        -------
        ComponentsDisplay
            The display.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If it has no components, or none of an agent.
        TypeError, ValueError
            If a parameter is invalid.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.decomposition import NMF
        >>> from skppdnmf.plot import ComponentsDisplay
        >>> model = NMF(4, init="nndsvd", tol=0.01).fit(load_digits().data)
        >>> display = ComponentsDisplay.from_estimator(model, image_shape=(8, 8))
        >>> len(display.artists_)
        4
        """
        require_matplotlib(f"{cls.__name__}.from_estimator")
        require_attributes(estimator, cls.__name__, "components_")
        components = estimator.components_
        if agent is not None:
            require_attributes(
                estimator,
                f"{cls.__name__} with agent={agent!r}",
                "agent_components_",
                "agent_labels_",
            )
            components = estimator.agent_components_[agent_index(estimator, agent)]
            if np.isnan(components).all():
                raise ValueError(f"agent={agent!r} has dropped out of the fit")
        if feature_names is None:
            feature_names = getattr(estimator, "feature_names_in_", None)
        display = cls(components, image_shape=image_shape, feature_names=feature_names)
        return display.plot(
            ax,
            kind=kind,
            scale=scale,
            n_cols=n_cols,
            n_top=n_top,
            titles=titles,
            colorbar=colorbar,
            style_kw=style_kw,
        )

    def plot(
        self,
        ax: Any = None,
        *,
        kind: str | None = None,
        scale: str = "component",
        n_cols: int | None = None,
        n_top: int = 10,
        titles: bool = True,
        colorbar: bool = True,
        style_kw: Mapping[str, Any] | None = None,
    ) -> ComponentsDisplay:
        """Draw the components.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, array-like of Axes, or None, default=None
            Where to draw. One Axes holds a heat map, and is divided into panels for
            the other kinds; an array has a panel for each component. None makes a
            new figure.
        kind : {"image", "heatmap", "stem", "bar"} or None, default=None
            What to draw: an image of each component, which needs an image shape;
            one heat map; a line for each feature; or bars for the features of
            greatest weight, with their names. None draws images where there is an
            image shape, else a heat map.
        scale : {"component", "feature", "shared"}, default="component"
            Whether the weights are divided by the greatest of their component, which
            shows what a component consists of; then by the greatest of their feature
            among the components, so that a feature of large numbers does not hide the
            rest; or are shown as they are, on a scale for all components.
        n_cols : int or None, default=None
            Columns of panels; None chooses.
        n_top : int, default=10
            Number of bars of each component.
        titles : bool, default=True
            Whether panels are numbered.
        colorbar : bool, default=True
            Whether to add a colour bar to a heat map, and to images on a shared
            scale.
        style_kw : mapping or None, default=None
            Keywords of `matplotlib.axes.Axes.imshow`, ``vlines`` or ``barh``, as the
            kind may be.

        Returns
        -------
        ComponentsDisplay
            The display itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            If a parameter is invalid or shapes do not fit each other.
        """
        require_matplotlib(f"{type(self).__name__}.plot")
        components, image_shape, names = self._check_data()
        if kind is None:
            kind = "heatmap" if image_shape is None else "image"
        check_choice("kind", kind, KINDS)
        check_choice("scale", scale, ("component", "feature", "shared"))
        if kind == "image" and image_shape is None:
            raise ValueError("kind='image' needs image_shape, such as (8, 8)")
        n_cols = None if n_cols is None else check_count("n_cols", n_cols)
        n_top = min(check_count("n_top", n_top), components.shape[1])
        check_flags(titles=titles, colorbar=colorbar)
        check_style("style_kw", style_kw)
        for axis in {"component": [1], "feature": [1, 0], "shared": []}[scale]:
            greatest = np.abs(components).max(axis=axis, keepdims=True)
            components = components / np.where(greatest > 0, greatest, 1.0)
        low = min(0.0, float(components.min()))
        limits = low, float(components.max()) or 1.0
        short_name = "Weight" if scale == "shared" else "Relative weight"
        known = names or [str(k) for k in range(components.shape[1])]

        def draw(panel: Axes, weights: NDArray) -> Any:
            if kind == "heatmap":
                return draw_heat_map(panel, components, limits, names, style_kw)
            if kind == "image":
                image = weights.reshape(image_shape)
                return draw_image(panel, image, limits, style_kw)
            if kind == "stem":
                lines = draw_stems(panel, weights, style_kw)
                label_features(panel, len(weights), names, FEW_FEATURES)
                return lines
            return draw_bars(panel, weights, known, n_top, style_kw)

        self._make_axes(ax, kind, len(components), image_shape, n_cols, n_top)
        panels = [panel for panel in self.axes_.ravel() if panel is not None]
        self.colorbar_ = None
        # A heat map is one panel for all components.
        self.artists_: list[Any] = [
            draw(panel, weights)
            for panel, weights in zip(panels, components, strict=False)
        ]
        if kind == "stem":
            share_axes(self.axes_, limits, ("Feature", short_name))
        elif kind == "bar":
            share_axes(self.axes_, limits, (short_name, None))
        if colorbar and (kind == "heatmap" or (kind == "image" and scale == "shared")):
            self.colorbar_ = self.figure_.colorbar(
                self.artists_[0], ax=panels, label=short_name
            )
        if titles and kind != "heatmap":
            for k, panel in enumerate(panels):
                text = str(k) if kind == "image" else f"Component {k}"
                panel.set_title(text, fontsize=SMALL + 1, pad=3)
        return self

    def _check_data(
        self,
    ) -> tuple[NDArray[np.float64], tuple[int, int] | None, list[str] | None]:
        """Components, image shape and names, checked against each other."""
        components = as_numbers("components", self.components, "a matrix of numbers")
        if components.ndim != 2 or not components.size:
            raise ValueError(
                "components must be a matrix of at least one row and column; it has "
                f"shape {components.shape}"
            )
        if not np.isfinite(components).all():
            raise ValueError("components has entries that are infinite or nan")
        n_features = components.shape[1]
        image_shape = None
        if self.image_shape is not None:
            image_shape = check_image_shape(self.image_shape, n_features)
        if self.feature_names is None:
            return components, image_shape, None
        names = check_sequence("feature_names", self.feature_names, "str")
        if len(names) != n_features:
            raise ValueError(
                f"feature_names has {len(names)} entries for n_features={n_features}"
            )
        return components, image_shape, [str(name) for name in names]

    def _make_axes(
        self,
        ax: Any,
        kind: str,
        n_components: int,
        image_shape: tuple[int, int] | None,
        n_cols: int | None,
        n_top: int,
    ) -> None:
        """Set the axes and the figure."""
        n_panels = 1 if kind == "heatmap" else n_components
        if isinstance(ax, (np.ndarray, list, tuple)):
            axes = np.asarray(ax, dtype=object)
            for place, panel in np.ndenumerate(axes):
                if panel is not None:
                    name = f"ax[{', '.join(map(str, place))}]"
                    check_axes(panel, name, "a matplotlib Axes")
            given = [panel for panel in axes.ravel() if panel is not None]
            if len(given) != n_panels:
                raise ValueError(
                    f"ax has {len(given)} Axes, but kind={kind!r} of {n_components} "
                    f"components needs {n_panels}"
                )
            self.ax_ = None
            self.axes_ = np.atleast_2d(axes)
            self.figure_ = given[0].figure
            return
        if ax is not None:
            check_axes(ax, allowed="a matplotlib Axes, an array of them or None")
        columns = 1
        if kind != "heatmap":
            width = GREATEST_WIDTH if ax is None else width_of(ax)
            most = int(np.clip(width / LEAST_WIDTHS[kind], 1, MOST_COLUMNS))
            columns = n_cols or choose_columns(n_panels, most)
            columns = min(columns, n_panels)
        if ax is None:
            shape = image_shape or (1, 1)
            ax = new_axes(
                *figure_size(kind, n_components, columns, n_top, shape[0] / shape[1])
            )
        self.ax_ = ax
        self.figure_ = ax.figure
        if kind == "heatmap":
            self.axes_ = np.array([[ax]], dtype=object)
        else:
            self.axes_ = divide(ax, n_panels, columns)


def agent_index(estimator: Any, agent: Any) -> int:
    """Return the row of an agent in ``agent_components_``, or raise a ValueError."""
    labels = list(estimator.agent_labels_)
    # Labels are hashable, and what is not may not compare to a single truth value.
    if not isinstance(agent, Hashable) or agent not in labels:
        some = ", ".join(map(repr, labels[:8])) + (", ..." if len(labels) > 8 else "")
        raise ValueError(f"agent={shorten(agent)} is not one of {some}")
    return labels.index(agent)


def choose_columns(n_panels: int, most: int = MOST_COLUMNS) -> int:
    """Return how many columns, no fewer than rows, leave fewest places empty."""
    least = min(int(np.ceil(np.sqrt(n_panels))), most)
    candidates = range(least, min(2 * least, most) + 1)
    return min(candidates, key=lambda columns: (-n_panels % columns, columns))


def draw_heat_map(
    ax: Axes,
    weights: NDArray,
    limits: tuple[float, float],
    names: Sequence[str] | None,
    style: Mapping[str, Any] | None,
) -> AxesImage:
    """Draw all components as rows."""
    from matplotlib.image import AxesImage
    from matplotlib.ticker import MaxNLocator

    defaults = {
        "cmap": "viridis",
        "vmin": limits[0],
        "vmax": limits[1],
        "aspect": "auto",
        "interpolation": "nearest",
    }
    image = ax.imshow(weights, **merge_styles(AxesImage, defaults, style))
    n_components, n_features = weights.shape
    if n_components <= MANY_COMPONENTS:
        ax.set_yticks(range(n_components))
    else:
        ax.yaxis.set_major_locator(MaxNLocator("auto", integer=True))
    label_features(ax, n_features, names, MANY_FEATURES)
    ax.set(xlabel="Feature", ylabel="Component")
    return image


def label_features(
    ax: Axes, n_features: int, names: Sequence[str] | None, most: int
) -> None:
    """Tick the x axis with the names of the features, or numbers if they are many."""
    from matplotlib.ticker import MaxNLocator

    if names is not None and n_features <= most:
        ax.set_xticks(range(n_features), list(names), rotation=90)
        ax.tick_params(axis="x", labelsize=SMALL)
    else:
        ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))


def draw_stems(
    ax: Axes, weights: NDArray, style: Mapping[str, Any] | None
) -> LineCollection:
    """Draw one component as a vertical line for each feature."""
    from matplotlib.collections import LineCollection

    # Adjacent lines should not run into one another.
    width = float(np.clip(120.0 / len(weights), 0.6, 3.0))
    defaults = {"color": COLOURS[0], "linewidth": width}
    style = merge_styles(LineCollection, defaults, style)
    lines = ax.vlines(np.arange(len(weights)), 0.0, weights, **style)
    ax.axhline(0.0, color="black", linewidth=0.8)
    ax.set_xlim(-0.7, len(weights) - 0.3)
    return lines


def draw_bars(
    ax: Axes,
    weights: NDArray,
    names: Sequence[str],
    n_top: int,
    style: Mapping[str, Any] | None,
) -> BarContainer:
    """Draw the features of greatest weight in one component, greatest on top."""
    from matplotlib.patches import Rectangle

    order = np.argsort(-weights, kind="stable")[:n_top]
    defaults = {"color": COLOURS[0], "height": 0.75}
    # By number and labelled afterwards: two features may have the same name.
    bars = ax.barh(
        range(len(order)), weights[order], **merge_styles(Rectangle, defaults, style)
    )
    ax.set_yticks(range(len(order)), [names[k] for k in order])
    ax.tick_params(axis="y", labelsize=SMALL, length=0)
    ax.set_ylim(len(order) - 0.4, -0.6)
    return bars


def share_axes(
    axes: NDArray[Any], limits: tuple[float, float], labels: tuple[str, str | None]
) -> None:
    """Give panels the same scale, with numbers at the left and lower edges alone."""
    # Without a label of the y axis the weights are on the x axis, and each panel has
    # its own ticks on the other.
    low, high = limits
    room = low - 0.05 * (high - low) if low < 0 else low, high + 0.05 * (high - low)
    for (row, column), ax in np.ndenumerate(axes):
        if ax is None:
            continue
        ax.spines[["top", "right"]].set_visible(False)
        lowest = row == len(axes) - 1 or axes[row + 1, column] is None
        ax.tick_params(labelbottom=lowest)
        if lowest:
            ax.set_xlabel(labels[0])
        if labels[1] is None:
            ax.set_xlim(*room)
            continue
        ax.set_ylim(*room)
        ax.tick_params(labelleft=column == 0)
        if column == 0:
            ax.set_ylabel(labels[1])


def width_of(ax: Axes) -> float:
    """Return the width of an Axes, in inches."""
    return float(ax.get_window_extent().width / ax.figure.dpi)


def figure_size(
    kind: str, n_components: int, n_columns: int, n_top: int, aspect: float
) -> tuple[float, float]:
    """Return the width and the height of a new figure in inches, at most a page."""
    if kind == "heatmap":
        return 7.0, float(np.clip(1.8 + 0.25 * n_components, 2.2, GREATEST_HEIGHT))
    n_rows = -(-n_components // n_columns)
    if kind == "image":
        width = min(1.1, GREATEST_WIDTH / n_columns)
        height = width * aspect + 0.22
    else:
        width = 2.4
        height = 1.5 if kind == "stem" else 0.45 + 0.17 * n_top
    below = 0.0 if kind == "image" else 0.5
    return (
        float(np.clip(width * n_columns, 2.4, GREATEST_WIDTH)),
        float(np.clip(height * n_rows + below, 1.4, GREATEST_HEIGHT)),
    )
