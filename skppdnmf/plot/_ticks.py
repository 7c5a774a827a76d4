"""Ticks that read well on axes of errors and of costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._support import unit_of_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# Below this ratio of the limits a logarithmic axis has too few powers of ten to read.
NARROW = 8.0
MIDDLE = 300.0


def tick_logarithmic(axis: Axis) -> None:
    """Tick a logarithmic axis, however few decades it spans.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
        The axis, with its final limits.
    """
    from matplotlib import ticker

    low, high = sorted(axis.get_view_interval())
    if high < NARROW * low:
        axis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(ticker.ScalarFormatter(useOffset=False))
        axis.set_minor_locator(ticker.NullLocator())
    elif high < MIDDLE * low:
        axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axis.set_minor_locator(ticker.LogLocator(subs=tuple(range(1, 10))))
    axis.set_minor_formatter(ticker.NullFormatter())


def tick_counts(axis: Axis) -> None:
    """Tick an axis of counts at integers."""
    from matplotlib import ticker

    axis.set_major_locator(ticker.MaxNLocator("auto", integer=True))


def tick_bytes(ax: Axes, label: str) -> None:
    """Tick the x axis in units of bytes that read well, and name it.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The axes, with their final limits.
    label : str
        What is counted.
    """
    from matplotlib import ticker

    if ax.get_xscale() == "log":
        # Over decades of bytes no unit suits all ticks.
        ax.xaxis.set_major_formatter(ticker.FuncFormatter(_with_unit))
        ax.set_xlabel(label)
        return
    name, size = unit_of_bytes(max(ax.get_xlim()))
    ax.xaxis.set_major_formatter(
        ticker.FuncFormatter(lambda value, _: f"{value / size:g}")
    )
    ax.set_xlabel(f"{label} ({name})")


def _with_unit(count: float, _: Any) -> str:
    """Return a number of bytes with its unit."""
    name, size = unit_of_bytes(count)
    return f"{count / size:g} {name}"
