"""`LearningCurveDisplay`: how the error of a fit falls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from sys import float_info
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._checks import (
    as_numbers,
    check_axes,
    check_choice,
    check_flags,
    check_sequence,
    check_style,
    require_attributes,
    require_matplotlib,
    shorten,
)
from ._style import COLOURS, GREY, merge_styles, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

ERRORS = ("shared_error", "local_error", "consensus_error")
COLUMNS = (*ERRORS, "exchanges", "seconds", "bytes")
X_LABELS = {
    "exchanges": "Exchanges between neighbours",
    "seconds": "Time (s)",
    "bytes": "Sent by all agents",
    "iterations": "Iterations of block coordinate descent",
}
LINE_STYLES = {"shared_error": "-", "local_error": ":", "consensus_error": "--"}
ZERO_LABEL = "exactly 0"
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Longest value of a parameter that serves as a label.
LONGEST_VALUE = 30
# Below this ratio of the limits a logarithmic axis has too few powers of ten to read.
NARROW = 8.0
MIDDLE = 300.0


class LearningCurveDisplay:
    """Errors of one or several fits against what they cost.

    Made best with :meth:`~skppdnmf.plot.LearningCurveDisplay.from_estimator`. All
    parameters are stored as attributes.

    Parameters
    ----------
    histories : mapping, or sequence of mappings
        ``history_`` of a fitted estimator, or of several.
    labels : sequence of str or None, default=None
        Names of the histories, for the legend.
    reference : float, mapping from str to float, or None, default=None
        Errors to draw as horizontal lines, such as that of
        `sklearn.decomposition.NMF` on the pooled data. A float is labelled
        "reference".

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The figure.
    ax_ : matplotlib.axes.Axes
        The axes.
    lines_ : ndarray of shape (n_histories, n_errors), dtype object
        The curves, as `matplotlib.lines.Line2D`.
    zeros_ : list of matplotlib.lines.Line2D
        Marks at the bottom edge where an error is exactly zero, which a logarithmic
        axis cannot show.
    reference_lines_ : list of matplotlib.lines.Line2D
        The horizontal lines.
    legend_ : matplotlib.legend.Legend or None
        The legend.

    See Also
    --------
    skppdnmf.plot.ComponentsDisplay : The components.
    skppdnmf.plot.NetworkDisplay : The graph of the agents.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.plot import LearningCurveDisplay
    >>> model = PrivateDistributedNMF(
    ...     4, partition=3, encryption="simulated", max_iter=5, tol=0, random_state=0
    ... ).fit(load_digits().data[:60])
    >>> display = LearningCurveDisplay(model.history_, reference={"pooled": 0.4})
    >>> display = display.plot(x="iterations", errors=["shared_error"])
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('Iterations of block coordinate descent', 'Shared error, relative to the data')
    """

    def __init__(
        self,
        histories: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        labels: Sequence[str] | None = None,
        reference: float | Mapping[str, float] | None = None,
    ) -> None:
        self.histories = histories
        self.labels = labels
        self.reference = reference

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        labels: Sequence[str] | None = None,
        reference: float | Mapping[str, float] | None = None,
        ax: Axes | None = None,
        x: str = "exchanges",
        errors: str | Sequence[str] | None = None,
        xscale: str = "linear",
        yscale: str = "log",
        legend: bool = True,
        line_kw: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        reference_kw: Mapping[str, Any] | None = None,
    ) -> LearningCurveDisplay:
        """Draw the learning curves of fitted estimators.

        Parameters
        ----------
        estimator : estimator, mapping from str to estimator, or sequence of them
            Fitted estimators with a ``history_``. The keys of a mapping are labels.
        labels : sequence of str or None, default=None
            Labels of the estimators of a sequence; None names the parameters in
            which they differ.
        reference
            As in the constructor.
        ax, x, errors, xscale, yscale, legend, line_kw, reference_kw
            As in :meth:`plot`.

        Returns
        -------
        LearningCurveDisplay
            The display.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        NotFittedError
            If an estimator is not fitted.
        TypeError
            If an estimator has no ``history_``.
        TypeError, ValueError
            If a parameter is invalid.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from skppdnmf import PrivateDistributedNMF
        >>> from skppdnmf.plot import LearningCurveDisplay
        >>> X = load_digits().data[:60]
        >>> models = [
        ...     PrivateDistributedNMF(
        ...         4, n_max=n, encryption="simulated", max_iter=5, tol=0
        ...     ).fit(X)
        ...     for n in (10, 1000)
        ... ]
        >>> display = LearningCurveDisplay.from_estimator(models)
        >>> [line.get_label() for line in display.lines_[:, 0]]
        ['n_max=10', 'n_max=1000']
        """
        require_matplotlib(f"{cls.__name__}.from_estimator")
        if isinstance(estimator, Mapping):
            if labels is not None:
                raise ValueError(
                    f"labels={labels!r} is given although the estimators of a mapping "
                    "are labelled by its keys"
                )
            labels = [str(key) for key in estimator]
            estimators = list(estimator.values())
        elif isinstance(estimator, (list, tuple)):
            estimators = list(estimator)
        else:
            estimators = [estimator]
        if not estimators:
            raise ValueError(f"estimator={estimator!r} is empty; nothing to draw")
        for one in estimators:
            require_attributes(one, cls.__name__, "history_")
        if labels is None and len(estimators) > 1:
            labels = distinguish(estimators)
        display = cls(
            [one.history_ for one in estimators], labels=labels, reference=reference
        )
        return display.plot(
            ax,
            x=x,
            errors=errors,
            xscale=xscale,
            yscale=yscale,
            legend=legend,
            line_kw=line_kw,
            reference_kw=reference_kw,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        x: str = "exchanges",
        errors: str | Sequence[str] | None = None,
        xscale: str = "linear",
        yscale: str = "log",
        legend: bool = True,
        line_kw: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        reference_kw: Mapping[str, Any] | None = None,
    ) -> LearningCurveDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw. None makes a new figure.
        x : {"exchanges", "seconds", "bytes", "iterations"}, default="exchanges"
            The horizontal axis. Where nobody has exchanged anything, because each
            fit has one agent alone, iterations take the place of exchanges and
            bytes.
        errors : str, sequence of str or None, default=None
            Some of "shared_error" (with the mean of the agents' copies),
            "local_error" (with each agent's own copy) and "consensus_error" (of the
            copies from their mean). None draws all three of a single history and
            the first of several.
        xscale : {"linear", "log"}, default="linear"
            The horizontal axis.
        yscale : {"log", "linear"}, default="log"
            The vertical axis; linear in any case if all errors are zero.
        legend : bool, default=True
            Whether to add a legend, where there is something to tell apart.
        line_kw : mapping, sequence of mappings or None, default=None
            Keywords of `matplotlib.axes.Axes.plot` for all curves, or for those of
            each history.
        reference_kw : mapping or None, default=None
            Keywords of `matplotlib.axes.Axes.axhline` for the references.

        Returns
        -------
        LearningCurveDisplay
            The display itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            If a parameter is invalid.
        """
        require_matplotlib(f"{type(self).__name__}.plot")
        from matplotlib.ticker import EngFormatter, MaxNLocator

        check_choice("x", x, tuple(X_LABELS))
        check_choice("xscale", xscale, ("linear", "log"))
        check_choice("yscale", yscale, ("log", "linear"))
        histories, labels = check_histories(self.histories, self.labels)
        chosen = check_errors(errors, len(histories))
        references = check_references(self.reference, yscale)
        styles = check_styles(line_kw, len(histories))
        check_style("reference_kw", reference_kw)
        check_flags(legend=legend)
        if ax is not None:
            check_axes(ax)
        if x in ("exchanges", "bytes") and not any(np.any(h[x]) for h in histories):
            x = "iterations"
        curves = [[history[name] for name in chosen] for history in histories]
        positive = any(
            np.any((curve > 0) & np.isfinite(curve)) for row in curves for curve in row
        )

        ax = new_axes(6.4, 4.2) if ax is None else ax
        is_log = yscale == "log" and (
            positive or bool(references) or ax.get_yscale() == "log"
        )
        self.ax_ = ax
        self.figure_ = ax.figure
        self.lines_ = np.empty((len(histories), len(chosen)), dtype=object)
        self.zeros_: list[Any] = []
        first = len(ax.get_lines())  # so that a second display has other colours
        for h, history in enumerate(histories):
            for e, name in enumerate(chosen):
                self.lines_[h, e] = self._draw_curve(
                    abscissa(history, x),
                    curves[h][e],
                    name=name,
                    label=curve_label(labels[h], name, len(chosen)),
                    number=first + (h if len(histories) > 1 else e),
                    marked=len(histories) > 1,
                    is_log=is_log,
                    style=styles[h],
                )
        self._draw_references(references, reference_kw)
        if is_log:
            ax.set_yscale("log")
        elif not positive and not references and first == 0:
            ax.set_ylim(-0.05, 1.0)  # errors are never negative
        if ax.get_yscale() == "log":
            tick_logarithmic(ax.yaxis)
        if xscale == "log":
            ax.set_xscale("log")
            tick_logarithmic(ax.xaxis)
        elif x in ("exchanges", "iterations"):
            ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
        if x == "bytes":
            ax.xaxis.set_major_formatter(EngFormatter("B"))
        ax.set_xlabel(X_LABELS[x])
        ax.set_ylabel(axis_label(chosen))
        self.legend_ = self._draw_legend(labels, chosen) if legend else None
        return self

    def _draw_curve(
        self,
        x: NDArray,
        y: NDArray,
        *,
        name: str,
        label: str,
        number: int,
        marked: bool,
        is_log: bool,
        style: Mapping[str, Any] | None,
    ) -> Any:
        """Draw one error of one history."""
        from matplotlib.lines import Line2D

        zero = y == 0
        defaults: dict[str, Any] = {
            "color": COLOURS[number % len(COLOURS)],
            "linestyle": LINE_STYLES[name],
            "linewidth": 1.6,
            "markersize": 4.5,
        }
        if marked or len(y) == 1:
            defaults["marker"] = MARKERS[number % len(MARKERS)]
            # Each history has its marks elsewhere, for curves that coincide.
            step = max(1, len(y) // 8)
            defaults["markevery"] = (number % step, step)
        style = merge_styles(Line2D, {**defaults, "label": label}, style)
        (line,) = self.ax_.plot(x, np.where(zero & is_log, np.nan, y), **style)
        if is_log and zero.any():
            self._mark_zeros(x[zero], line.get_color())
        return line

    def _mark_zeros(self, x: NDArray, colour: Any) -> None:
        """Mark at the bottom edge where an error is zero."""
        from matplotlib.transforms import blended_transform_factory

        ax = self.ax_
        x = x[:: max(1, len(x) // 12)]
        named = any(line.get_label() == ZERO_LABEL for line in ax.get_lines())
        (marks,) = ax.plot(
            x,
            np.full(len(x), 0.025),
            linestyle="none",
            marker="v",
            markersize=5,
            markerfacecolor="none",
            color=colour,
            transform=blended_transform_factory(ax.transData, ax.transAxes),
            label="_zeros" if named else ZERO_LABEL,
        )
        self.zeros_.append(marks)

    def _draw_references(
        self, references: Mapping[str, float], style: Mapping[str, Any] | None
    ) -> None:
        """Draw the horizontal lines."""
        from matplotlib.lines import Line2D

        patterns = ((0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
        self.reference_lines_ = []
        for k, (label, value) in enumerate(references.items()):
            defaults = {
                "color": "black",
                "linewidth": 1.0,
                "linestyle": patterns[k % len(patterns)],
                "label": label,
                "zorder": 1.5,
            }
            line = self.ax_.axhline(value, **merge_styles(Line2D, defaults, style))
            self.reference_lines_.append(line)

    def _draw_legend(self, labels: list[str | None], chosen: list[str]) -> Any:
        """Add the legend; None where there is nothing to tell apart."""
        from matplotlib.lines import Line2D

        handles, names = self.ax_.get_legend_handles_labels()
        if min(self.lines_.shape) > 1:
            # Colours say the history and dashes the error: a sum, not a product.
            handles = [
                Line2D([], [], color=row[0].get_color(), marker=row[0].get_marker())
                for row in self.lines_
            ]
            handles += [
                Line2D([], [], color=GREY, linestyle=line.get_linestyle())
                for line in self.lines_[0]
            ]
            names = [label or f"history {k}" for k, label in enumerate(labels)]
            names += [plain_name(name) for name in chosen]
            others = self.zeros_[:1] + self.reference_lines_
            handles += others
            names += [str(line.get_label()) for line in others]
        if len(handles) < 2 and labels[0] is None:
            return None
        return self.ax_.legend(handles, names, frameon=False)


def check_histories(
    histories: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    labels: Sequence[str] | None,
) -> tuple[list[dict[str, NDArray[np.float64]]], list[str | None]]:
    """Return lists of histories, as columns of the same length, and of their labels."""
    if isinstance(histories, Mapping):
        listed = [_check_history("histories", histories)]
    else:
        given = check_sequence("histories", histories, "mappings")
        listed = [_check_history(f"histories[{k}]", one) for k, one in enumerate(given)]
    if not listed:
        raise ValueError("histories is empty; there is nothing to draw")
    if labels is None:
        return listed, [None] * len(listed)
    names = [labels]
    if not isinstance(labels, str):
        names = check_sequence("labels", labels, "str")
    if len(names) != len(listed):
        raise ValueError(f"labels has {len(names)} entries for {len(listed)} histories")
    return listed, [str(name) for name in names]


def _check_history(name: str, history: Any) -> dict[str, NDArray[np.float64]]:
    """Return the columns of a history as arrays of the same length."""
    if not isinstance(history, Mapping):
        raise TypeError(
            f"{name}={shorten(history)} must be a mapping, such as history_ of a "
            "fitted estimator"
        )
    absent = [column for column in COLUMNS if column not in history]
    if absent:
        raise ValueError(f"{name} has no {', '.join(absent)}")
    columns = {
        column: as_numbers(
            f"{name}[{column!r}]", history[column], "a sequence of numbers"
        )
        for column in COLUMNS
    }
    if "observed_error" in history:
        # Of the one copy that all agents have, which none of them knows before the end.
        observed = as_numbers(
            f"{name}['observed_error']",
            history["observed_error"],
            "a sequence of numbers",
        )
        columns["shared_error"] = columns["local_error"] = observed
    shapes = {array.shape for array in columns.values()}
    if len(shapes) > 1 or len(shapes.pop()) != 1 or not len(columns["exchanges"]):
        shapes_of = [f"{column} {array.shape}" for column, array in columns.items()]
        raise ValueError(
            f"the columns of {name} must have one entry for each iteration; their "
            f"shapes are {', '.join(shapes_of)}"
        )
    return columns


def check_errors(errors: str | Sequence[str] | None, n_histories: int) -> list[str]:
    """Return the names of the errors to draw, each once."""
    if errors is None:
        return list(ERRORS) if n_histories == 1 else [ERRORS[0]]
    chosen: list[Any] = [errors]
    if not isinstance(errors, str):
        chosen = check_sequence("errors", errors, "str")
    if not chosen:
        raise ValueError("errors is empty; there is nothing to draw")
    for name in chosen:
        check_choice("errors", name, ERRORS)
    return list(dict.fromkeys(chosen))


def check_references(reference: Any, yscale: str) -> dict[str, float]:
    """Return the references by their labels, or raise a ValueError."""
    if reference is None:
        return {}
    named = reference if isinstance(reference, Mapping) else {"reference": reference}
    for label, value in named.items():
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= float_info.max:
            raise ValueError(
                f"reference={shorten(value)} ({label}) must be a finite number of at "
                "least 0"
            )
        if value == 0 and yscale == "log":
            raise ValueError(
                f"reference={value!r} ({label}) has no place on a logarithmic axis; "
                "use yscale='linear'"
            )
    return {str(label): float(value) for label, value in named.items()}


def check_styles(style: Any, n_histories: int) -> list[Mapping[str, Any] | None]:
    """Return one style for each history."""
    if style is None or isinstance(style, Mapping):
        return [style] * n_histories
    styles = check_sequence("line_kw", style, "mappings, a mapping or None")
    if len(styles) != n_histories:
        raise ValueError(
            f"line_kw has {len(styles)} mappings for {n_histories} histories"
        )
    for k, one in enumerate(styles):
        check_style(f"line_kw[{k}]", one)
    return styles


def abscissa(history: Mapping[str, Any], x: str) -> NDArray:
    """Return the values of a history on the horizontal axis."""
    if x == "iterations":
        return np.arange(1, len(history["exchanges"]) + 1)
    return np.asarray(history[x])


def plain_name(error: str) -> str:
    """Return the name of an error in words."""
    return error.replace("_", " ")


def curve_label(label: str | None, error: str, n_errors: int) -> str:
    """Return what the legend calls one error of a history."""
    if label is None:
        return plain_name(error)
    return label if n_errors == 1 else f"{label}, {plain_name(error)}"


def axis_label(errors: Sequence[str]) -> str:
    """Return the label of the vertical axis."""
    if len(errors) > 1:
        return "Relative error"
    whole = "components" if errors[0] == "consensus_error" else "data"
    return f"{plain_name(errors[0]).capitalize()}, relative to the {whole}"


def distinguish(estimators: Sequence[Any]) -> list[str]:
    """Label estimators by the parameters in which they differ, else by numbers."""
    parameters = [
        estimator.get_params() if hasattr(estimator, "get_params") else {}
        for estimator in estimators
    ]
    # Their texts, for arrays do not compare to a single truth value.
    texts = [
        {name: repr(value) for name, value in given.items()} for given in parameters
    ]
    differing = [
        name
        for name in texts[0]
        if all(len(given.get(name, "")) <= LONGEST_VALUE for given in texts)
        and len({given.get(name) for given in texts}) > 1
    ]
    labels = [
        ", ".join(f"{name}={given[name]}" for name in differing if name in given)
        for given in texts
    ]
    if len(set(labels)) < len(labels):
        return [f"estimator {k}" for k in range(len(labels))]
    return labels


def tick_logarithmic(axis: Axis) -> None:
    """Tick a logarithmic axis with final limits, however few decades it spans."""
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
