"""How the displays look: colours, sizes, keywords for matplotlib, new figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette, which people with any common colour blindness can tell
# apart; black is left to references, yellow is too pale for lines on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
GREY = "#666666"
# Font size of what is inside a panel.
SMALL = 8


def merge_styles(
    artist: type, defaults: Mapping[str, Any], given: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return style keywords: the defaults, overridden by those given.

    Parameters
    ----------
    artist : type
        Class of the matplotlib artist, which knows that "lw" is "linewidth".
    defaults : mapping
        Keywords by their full names.
    given : mapping or None
        Keywords of the user, by any of their names.

    Returns
    -------
    dict
        Keywords by their full names.

    Raises
    ------
    TypeError
        If a keyword is given under two of its names.
    """
    from matplotlib.cbook import normalize_kwargs

    return {**defaults, **normalize_kwargs(dict(given or {}), artist)}


def new_axes(width: float, height: float) -> Axes:
    """Make a figure of that many inches with one Axes, laid out without overlaps."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax
