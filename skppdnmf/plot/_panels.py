"""Panels in the place of one Axes, and images in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._style import merge_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage


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
    ax: Axes,
    image: NDArray,
    limits: tuple[float, float],
    style: Mapping[str, Any] | None,
) -> AxesImage:
    """Draw an image without ticks, dark where it is great."""
    from matplotlib.image import AxesImage

    defaults = {"cmap": "gray_r", "vmin": limits[0], "vmax": limits[1]}
    drawn = ax.imshow(image, **merge_styles(AxesImage, defaults, style))
    ax.set(xticks=[], yticks=[])
    return drawn
