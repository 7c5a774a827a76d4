"""The parts of a picture of a graph: nodes, edges, legend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skppdnmf._fit.progress import format_bytes

from ._support import merge_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.colors import Colormap
    from matplotlib.legend import Legend

# Points squared, as in Axes.scatter, of the smallest and of the largest node.
NODE_SIZES = (240.0, 900.0)
# Points, of the least and of the most used edge.
EDGE_WIDTHS = (1.0, 5.0)
UNUSED = (0, (1, 2.5))
DASHES = (0, (2.5, 1.5))
# Amounts of which the least is this share of the greatest look the same.
ALIKE = 0.95
# Above this many nodes they shrink.
ROOMY = 12
LEGEND_SIZE = 9
EDGE_COLOUR = "#999999"
PLAIN_COLOUR = "#BFD7EA"


def node_areas(n_samples: NDArray) -> NDArray[np.float64]:
    """Return the areas of the nodes, in points squared.

    Parameters
    ----------
    n_samples : ndarray of shape (n_nodes,)
        Number of samples of each.

    Returns
    -------
    ndarray of shape (n_nodes,)
        Proportional to the samples from a least size on.
    """
    shrink = min(1.0, ROOMY / len(n_samples))
    small, large = (size * shrink for size in NODE_SIZES)
    return _spread(n_samples, small, large, (small + large) / 2)


def edge_widths(sent: NDArray) -> NDArray[np.float64]:
    """Return the widths of the edges, in points, from their bytes."""
    thin, thick = EDGE_WIDTHS
    return _spread(sent, thin, thick, (thin + thick) / 3)


def _spread(
    amounts: NDArray, least: float, greatest: float, medium: float
) -> NDArray[np.float64]:
    """Sizes in proportion to amounts; medium ones where these are much the same."""
    most = amounts.max(initial=0.0)
    positive = amounts[amounts > 0]
    if len(positive) and positive.min() < ALIKE * most:
        return least + (greatest - least) * amounts / most
    # Zeros are told from the others, unless there are zeros alone.
    return np.where((amounts == 0) & (most > 0), least, medium)


def colour_limits(values: NDArray) -> tuple[float, float]:
    """Return the ends of the colour scale.

    Parameters
    ----------
    values : ndarray
        What the colours show; nan counts for nothing.

    Returns
    -------
    low, high : float
        The range of the values; from 0 where they are all the same, for a scale
        of rounding errors would show differences that are none.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    if high - low > 1e-6 * max(abs(low), abs(high)):
        return low, high
    return min(0.0, low), max(0.0, high) or (1.0 if low == 0 else 0.0)


def draw_edges(
    ax: Axes,
    positions: NDArray,
    edges: NDArray[np.intp],
    sent: NDArray,
    style: Mapping[str, Any] | None,
) -> LineCollection:
    """Draw the edges, as wide as what was sent; dotted where nothing was.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    positions : ndarray of shape (n_nodes, 2)
        Where the nodes are.
    edges : ndarray of shape (n_edges, 2)
        Pairs of nodes.
    sent : ndarray of shape (n_edges,)
        Bytes over each.
    style : mapping or None
        Keywords of the collection.

    Returns
    -------
    matplotlib.collections.LineCollection
        The edges.
    """
    from matplotlib.collections import LineCollection

    some = sent.max(initial=0.0) > 0
    defaults = {
        "linewidth": edge_widths(sent),
        "color": EDGE_COLOUR,
        "linestyle": [UNUSED if some and count == 0 else "solid" for count in sent],
        "zorder": 1,
    }
    lines = LineCollection(
        list(positions[edges]), **merge_styles(LineCollection, defaults, style)
    )
    ax.add_collection(lines)
    return lines


def draw_nodes(
    ax: Axes,
    positions: NDArray,
    areas: NDArray,
    values: NDArray | None,
    is_relay: NDArray[np.bool_],
    cmap: str | Colormap,
    style: Mapping[str, Any] | None,
) -> PathCollection:
    """Draw the nodes.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    positions : ndarray of shape (n_nodes, 2)
        Where they are.
    areas : ndarray of shape (n_nodes,)
        Points squared.
    values : ndarray of shape (n_nodes,) or None
        What the colours show.
    is_relay : ndarray of shape (n_nodes,)
        Which outlines are dashed.
    cmap : str or matplotlib.colors.Colormap
        Colours of the values.
    style : mapping or None
        Keywords of the collection.

    Returns
    -------
    matplotlib.collections.PathCollection
        The nodes.
    """
    import matplotlib.pyplot as plt
    from matplotlib.collections import PathCollection

    defaults: dict[str, Any] = {
        "s": areas,
        "edgecolor": "black",
        "linewidth": 1.0,
        "linestyle": [DASHES if relay else "solid" for relay in is_relay],
        "zorder": 2,
    }
    if values is None:
        if not {"c", "color"} & set(style or ()):  # which it would take precedence of
            defaults["facecolor"] = [
                "white" if relay else PLAIN_COLOUR for relay in is_relay
            ]
    else:
        low, high = colour_limits(values)
        defaults |= {
            "c": np.where(np.isfinite(values), values, np.nan),
            "cmap": plt.get_cmap(cmap).with_extremes(bad="white"),
            "vmin": low,
            "vmax": high,
            "plotnonfinite": True,
        }
        if style and "norm" in style:  # which has limits of its own
            del defaults["vmin"], defaults["vmax"]
    return ax.scatter(*positions.T, **merge_styles(PathCollection, defaults, style))


def draw_legend(
    ax: Axes,
    n_samples: NDArray | None,
    areas: NDArray,
    sent: NDArray,
    is_relay: NDArray[np.bool_],
) -> Legend | None:
    """Say below the graph what areas, widths and outlines mean.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    n_samples : ndarray of shape (n_nodes,) or None
        Number of samples of each node.
    areas : ndarray of shape (n_nodes,)
        Of the nodes, in points squared.
    sent : ndarray of shape (n_edges,)
        Bytes over each edge.
    is_relay : ndarray of shape (n_nodes,)
        Which nodes have no samples.

    Returns
    -------
    matplotlib.legend.Legend or None
        The legend; None where there is nothing to say.
    """
    from matplotlib.lines import Line2D

    entries: list[tuple[Any, str]] = []
    if n_samples is not None:
        for area, text in _extremes(n_samples, areas, _name_samples, "each"):
            entries.append((_node_handle(ax, area, "solid"), text))
        if is_relay.any():
            area = float(areas[is_relay][0])
            entries.append((_node_handle(ax, area, DASHES), "no samples"))
    for width, text in _extremes(sent, edge_widths(sent), format_bytes, "on each edge"):
        entries.append((Line2D([], [], color=EDGE_COLOUR, linewidth=width), text))
    if entries and np.any(sent > 0) and np.any(sent == 0):
        line = Line2D([], [], color=EDGE_COLOUR, linewidth=1, linestyle=UNUSED)
        entries.append((line, "nothing sent"))
    if not entries:
        return None
    handles, texts = zip(*entries, strict=True)
    # Of the largest node, in units of the font size.
    diameter = np.sqrt(areas.max()) / LEGEND_SIZE
    return ax.legend(
        handles,
        texts,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=2 if len(entries) in (2, 4) else 3,
        fontsize=LEGEND_SIZE,
        frameon=False,
        scatteryoffsets=[0.5],
        handlelength=max(2.0, diameter),
        labelspacing=max(0.5, diameter - 0.7),
        borderpad=max(0.4, diameter / 2 - 0.2),
        columnspacing=1.5,
    )


def _extremes(
    amounts: NDArray, sizes: NDArray, name: Callable[[float], str], same: str
) -> list[tuple[float, str]]:
    """Size and text of the least and of the greatest positive amount."""
    positive = np.flatnonzero(amounts > 0)
    if not len(positive):
        return []
    ends = [positive[amounts[positive].argmin()], positive[amounts[positive].argmax()]]
    texts = [name(float(amounts[k])) for k in ends]
    if texts[0] == texts[1]:
        alone = len(amounts) == 1
        return [(float(sizes[ends[1]]), texts[0] if alone else f"{texts[0]} {same}")]
    if amounts[ends[0]] >= ALIKE * amounts[ends[1]]:
        return [(float(sizes[ends[1]]), " to ".join(texts))]
    return [(float(sizes[k]), text) for k, text in zip(ends, texts, strict=True)]


def _name_samples(count: float) -> str:
    """Say in words how many samples."""
    return "1 sample" if count == 1 else f"{count:,.0f} samples"


def _node_handle(ax: Axes, area: float, linestyle: Any) -> PathCollection:
    """Return a node for the legend, which is not in the axes."""
    handle = ax.scatter(
        [], [], s=area, color="white", edgecolor="black", linestyle=linestyle
    )
    handle.remove()
    return handle
