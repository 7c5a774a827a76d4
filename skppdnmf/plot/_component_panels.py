"""The panels of `ComponentsDisplay`: a grid of Axes, and what goes into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._support import COLOURS, merge_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.container import BarContainer
    from matplotlib.image import AxesImage

# Most features that are named, rather than numbered, below a panel of full width.
MANY_FEATURES = 40
# Most components that each have a tick.
MANY_COMPONENTS = 30
MOST_COLUMNS = 10
# Inches that one panel needs.
LEAST_WIDTHS = {"image": 0.5, "stem": 1.6, "bar": 1.6}
SMALL = 8
GREATEST_WIDTH, GREATEST_HEIGHT = 9.6, 11.0


def choose_columns(n_panels: int, most: int = MOST_COLUMNS) -> int:
    """Return a number of columns that leaves few places empty.

    Parameters
    ----------
    n_panels : int
        Number of panels.
    most : int
        Greatest number of columns.

    Returns
    -------
    int
        At least as many as rows, as far as `most` allows; of those, the nearest to
        a square that leaves fewest places empty.

    Examples
    --------
    >>> from skppdnmf.plot._component_panels import choose_columns
    >>> [choose_columns(n) for n in (1, 6, 7, 10, 49)]
    [1, 3, 4, 5, 7]
    """
    least = min(int(np.ceil(np.sqrt(n_panels))), most)
    candidates = range(least, min(2 * least, most) + 1)
    return min(candidates, key=lambda columns: (-n_panels % columns, columns))


def divide(ax: Axes, n_panels: int, n_columns: int) -> NDArray[Any]:
    """Divide the place of an Axes, which is not shown, among a grid of others.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Whose place it is.
    n_panels : int
        How many are needed.
    n_columns : int
        Columns of the grid.

    Returns
    -------
    ndarray of shape (n_rows, n_columns), dtype object
        The Axes, row by row; None where no more are needed.

    Raises
    ------
    ValueError
        If it has been divided before.
    """
    from matplotlib.gridspec import GridSpecFromSubplotSpec

    if not ax.axison:
        raise ValueError(
            "ax is already divided or turned off; to draw into the same panels, pass "
            "ax=display.axes_"
        )
    ax.set_axis_off()
    n_rows = -(-n_panels // n_columns)
    # Before matplotlib 3.7 an Axes put into the figure by hand has no such method.
    place = ax.get_subplotspec() if hasattr(ax, "get_subplotspec") else None
    grid: Any
    if place is None:
        box = ax.get_position()
        grid = ax.figure.add_gridspec(
            n_rows, n_columns, left=box.x0, right=box.x1, bottom=box.y0, top=box.y1
        )
    else:
        grid = GridSpecFromSubplotSpec(n_rows, n_columns, subplot_spec=place)
    axes = np.full((n_rows, n_columns), None, dtype=object)
    for k in range(n_panels):
        axes.flat[k] = ax.figure.add_subplot(grid[k])
    return axes


def draw_image(
    ax: Axes, image: NDArray, limits: tuple[float, float], style: Mapping[str, Any]
) -> AxesImage:
    """Draw one component as an image."""
    from matplotlib.image import AxesImage

    defaults = {"cmap": "gray_r", "vmin": limits[0], "vmax": limits[1]}
    drawn = ax.imshow(image, **merge_styles(AxesImage, defaults, style))
    ax.set(xticks=[], yticks=[])
    return drawn


def draw_heat_map(
    ax: Axes,
    weights: NDArray,
    limits: tuple[float, float],
    names: Sequence[str] | None,
    style: Mapping[str, Any],
) -> AxesImage:
    """Draw all components as rows.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    weights : ndarray of shape (n_components, n_features)
        The components, scaled.
    limits : (float, float)
        Ends of the colour scale.
    names : sequence of str or None
        Names of the features.
    style : mapping
        Keywords of imshow.

    Returns
    -------
    matplotlib.image.AxesImage
        The heat map.
    """
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


def draw_stems(ax: Axes, weights: NDArray, style: Mapping[str, Any]) -> LineCollection:
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
    style: Mapping[str, Any],
) -> BarContainer:
    """Draw the features of greatest weight in one component, greatest on top.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    weights : ndarray of shape (n_features,)
        The component, scaled.
    names : sequence of str
        Names of the features.
    n_top : int
        How many.
    style : mapping
        Keywords of barh.

    Returns
    -------
    matplotlib.container.BarContainer
        The bars.
    """
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
    """Give panels the same scale, with numbers at the left and lower edges alone.

    Parameters
    ----------
    axes : ndarray of shape (n_rows, n_columns), dtype object
        The panels; None where there is none.
    limits : (float, float)
        Ends of the scale of the weights.
    labels : (str, str or None)
        Of the x and of the y axis. None for the latter says that the weights are on
        the x axis, and that each panel needs its own ticks on the other.
    """
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
    """Return the width and the height of a new figure, in inches.

    Parameters
    ----------
    kind : {"image", "heatmap", "stem", "bar"}
        What it shows.
    n_components, n_columns, n_top : int
        How many.
    aspect : float
        Height of an image, over its width.

    Returns
    -------
    width, height : float
        No larger than a page.
    """
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
