"""`LearningCurveDisplay`: how the error of a fit falls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._checks import check_axes, check_choice, check_flags, check_style
from ._histories import (
    X_LABELS,
    abscissa,
    axis_label,
    check_errors,
    check_histories,
    check_references,
    check_styles,
    curve_label,
    distinguish,
    plain_name,
)
from ._support import (
    COLOURS,
    GREY,
    merge_styles,
    new_axes,
    require_attributes,
    require_matplotlib,
)
from ._ticks import tick_bytes, tick_counts, tick_logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE_STYLES = {"shared_error": "-", "local_error": ":", "consensus_error": "--"}
ZERO_LABEL = "exactly 0"
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


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
        check_choice("x", x, tuple(X_LABELS))
        check_choice("xscale", xscale, ("linear", "log"))
        check_choice("yscale", yscale, ("log", "linear"))
        histories, labels = check_histories(self.histories, self.labels)
        chosen = check_errors(errors, len(histories))
        references = check_references(self.reference, yscale)
        styles = check_styles(line_kw, len(histories))
        check_flags(legend=legend)
        if ax is not None:
            check_axes(ax)
        if x in ("exchanges", "bytes") and not any(np.any(h[x]) for h in histories):
            x = "iterations"
        curves = [[history[name] for name in chosen] for history in histories]
        for h, (history, style) in enumerate(zip(histories, styles, strict=True)):
            name = "line_kw" if style is line_kw else f"line_kw[{h}]"
            check_style(name, style, partial(_try_line, history, x, style))
        check_style("reference_kw", reference_kw, partial(_try_level, reference_kw))
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
            tick_counts(ax.xaxis)
        ax.set_xlabel(X_LABELS[x])
        if x == "bytes":
            tick_bytes(ax, X_LABELS[x])
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


def _try_line(
    history: Mapping[str, NDArray], x: str, style: Mapping[str, Any] | None, ax: Axes
) -> None:
    """Draw a line with the user's style, as long as the curves are."""
    from matplotlib.lines import Line2D

    places = abscissa(history, x)
    (_,) = ax.plot(places, np.ones(len(places)), **merge_styles(Line2D, {}, style))


def _try_level(style: Mapping[str, Any] | None, ax: Axes) -> None:
    """Draw a horizontal line with the user's style."""
    from matplotlib.lines import Line2D

    ax.axhline(0.5, **merge_styles(Line2D, {}, style))
