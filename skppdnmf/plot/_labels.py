"""The labels of the nodes of a graph, placed where they hide least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._support import merge_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.text import Annotation

# Most characters that fit into a node.
SHORT = 2
# Points between a node and its label.
GAP = 3.0
# Mean width of a character and height of a line, over the font size.
CHARACTER, LINE = 0.6, 1.25
# What it costs to hide a node or a label, in points of hidden edges.
HIDDEN = 1000.0


class Side(NamedTuple):
    """Where a label stands beside its node, and how it is aligned."""

    direction: tuple[float, float]
    horizontal: str
    vertical: str


_SLANT = float(np.sqrt(0.5))
# In the order of preference.
SIDES = (
    Side((0.0, -1.0), "center", "top"),
    Side((0.0, 1.0), "center", "bottom"),
    Side((1.0, 0.0), "left", "center"),
    Side((-1.0, 0.0), "right", "center"),
    Side((_SLANT, -_SLANT), "left", "top"),
    Side((-_SLANT, -_SLANT), "right", "top"),
    Side((_SLANT, _SLANT), "left", "bottom"),
    Side((-_SLANT, _SLANT), "right", "bottom"),
)


def draw_labels(
    ax: Axes,
    positions: NDArray,
    labels: Sequence[Any],
    edges: NDArray[np.intp],
    nodes: PathCollection,
    style: Mapping[str, Any] | None,
) -> list[Annotation]:
    """Write the labels: into the nodes if all are short, else beside them.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw, with its final limits and, as far as possible, place.
    positions : ndarray of shape (n_nodes, 2)
        Where the nodes are.
    labels : sequence
        Their labels.
    edges : ndarray of shape (n_edges, 2)
        Pairs of nodes.
    nodes : matplotlib.collections.PathCollection
        The drawn nodes.
    style : mapping or None
        Keywords of the annotations.

    Returns
    -------
    list of matplotlib.text.Annotation
        The labels.
    """
    from matplotlib import patheffects
    from matplotlib.text import Text

    texts = [str(label) for label in labels]
    size = 9 if len(texts) <= 12 else 7
    nodes.update_scalarmappable()
    radii = np.resize(np.sqrt(nodes.get_sizes()) / 2, len(texts))
    colours = np.atleast_2d(np.asarray(nodes.get_facecolor()))
    places: list[dict[str, Any]]
    if max(map(len, texts)) <= SHORT:
        places = [
            {
                "xytext": (0.0, 0.0),
                "horizontalalignment": "center",
                "verticalalignment": "center",
                "color": _readable_on(colours[k % len(colours)]),
            }
            for k in range(len(texts))
        ]
    else:
        boxes = np.array([(CHARACTER * len(text), LINE) for text in texts]) * size
        # In points: the scale of the radii and of the text.
        points = ax.transData.transform(positions) * 72.0 / ax.figure.dpi
        places = [
            {
                "xytext": (radius + GAP) * np.array(side.direction),
                "horizontalalignment": side.horizontal,
                "verticalalignment": side.vertical,
                "path_effects": [
                    patheffects.withStroke(linewidth=2.5, foreground="white")
                ],
            }
            for radius, side in zip(
                radii, choose_sides(points, radii, boxes, edges), strict=True
            )
        ]
    return [
        ax.annotate(
            text,
            position,
            textcoords="offset points",
            **merge_styles(Text, {"fontsize": size, "zorder": 3, **place}, style),
        )
        for text, position, place in zip(texts, positions, places, strict=True)
    ]


def choose_sides(
    points: NDArray, radii: NDArray, boxes: NDArray, edges: NDArray[np.intp]
) -> list[Side]:
    """Choose a side for each label, one after the other, the most crowded first.

    Parameters
    ----------
    points : ndarray of shape (n_nodes, 2)
        Where the nodes are, in points.
    radii : ndarray of shape (n_nodes,)
        Of the nodes.
    boxes : ndarray of shape (n_nodes, 2)
        Width and height of each label.
    edges : ndarray of shape (n_edges, 2)
        Pairs of nodes.

    Returns
    -------
    list of Side
        One for each node: that where its label hides least of nodes, of labels
        already placed and of edges.
    """
    dots, dot_length = _dot_edges(points[edges])
    degrees = np.bincount(edges.ravel(), minlength=len(points))
    taken = np.empty((0, 4))
    sides: list[Side] = [SIDES[0]] * len(points)
    for node in np.argsort(-degrees, kind="stable"):
        rectangles = np.array(
            [_rectangle(points[node], radii[node], boxes[node], side) for side in SIDES]
        )
        nearest = np.clip(
            points[None], rectangles[:, None, :2], rectangles[:, None, 2:]
        )
        distance = np.linalg.norm(nearest - points[None], axis=2)
        hidden = (distance < radii[None]).sum(axis=1)
        hidden += (
            (
                (rectangles[:, None, :2] < taken[None, :, 2:])
                & (taken[None, :, :2] < rectangles[:, None, 2:])
            )
            .all(axis=2)
            .sum(axis=1)
        )
        over = (
            (rectangles[:, None, :2] < dots[None])
            & (dots[None] < rectangles[:, None, 2:])
        ).all(axis=2)
        best = int(np.argmin(HIDDEN * hidden + (over @ dot_length).round(1)))
        sides[node] = SIDES[best]
        taken = np.vstack([taken, rectangles[best]])
    return sides


def _rectangle(point: NDArray, radius: float, box: NDArray, side: Side) -> NDArray:
    """Left, bottom, right and top of a label."""
    shift = {"left": 0.0, "bottom": 0.0, "center": 0.5, "right": 1.0, "top": 1.0}
    anchor = point + (radius + GAP) * np.array(side.direction)
    corner = anchor - box * [shift[side.horizontal], shift[side.vertical]]
    return np.concatenate([corner, corner + box])


def _dot_edges(ends: NDArray) -> tuple[NDArray, NDArray]:
    """Dots along the edges, and the length for which each stands."""
    share = (np.arange(40) + 0.5)[:, None, None] / 40
    dots = ends[None, :, 0] + share * (ends[None, :, 1] - ends[None, :, 0])
    lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1) / 40
    return dots.reshape(-1, 2), np.tile(lengths, 40)


def _readable_on(colour: NDArray) -> str:
    """Black or white, whichever reads better on the colour."""
    # Relative luminance of sRGB, with the exponent that approximates its curve.
    luminance = np.array([0.2126, 0.7152, 0.0722]) @ np.asarray(colour[:3]) ** 2.2
    return "white" if luminance < 0.18 else "black"
