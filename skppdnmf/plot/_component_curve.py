"""`ComponentCurveDisplay`: how many components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._checks import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class ComponentCurveDisplay:
    """Error on held-out entries and stability against the number of components.

    Made by `skppdnmf.model_selection.component_curve`. All parameters are stored as
    attributes.

    Parameters
    ----------
    n_components : sequence of int
        Numbers of components.
    test_error, test_error_se : sequence of float
        Error of held-out entries, and its standard error.
    cosine, silhouette : sequence of float
        How well components of several starts agree.
    best_n_components : int or None, default=None
        Number to be marked.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The figure.
    axes_ : ndarray of matplotlib.axes.Axes, of shape (2,)
        Error, and stability.

    Examples
    --------
    >>> from skppdnmf.plot import ComponentCurveDisplay
    >>> display = ComponentCurveDisplay(
    ...     [1, 2, 3], [0.5, 0.1, 0.2], [0.01] * 3, [1.0, 0.99, 0.8], [1, 0.98, 0.5], 2
    ... )
    >>> display.plot().axes_.shape
    (2,)
    """

    def __init__(
        self,
        n_components: Sequence[int],
        test_error: Sequence[float],
        test_error_se: Sequence[float],
        cosine: Sequence[float],
        silhouette: Sequence[float],
        best_n_components: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.test_error = test_error
        self.test_error_se = test_error_se
        self.cosine = cosine
        self.silhouette = silhouette
        self.best_n_components = best_n_components

    figure_: Figure
    axes_: Any

    def plot(self, axes: Sequence[Axes] | None = None) -> ComponentCurveDisplay:
        """Draw both.

        Parameters
        ----------
        axes : sequence of two matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ComponentCurveDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If there are not two axes, or the numbers are not all of one length.
        """
        require_matplotlib("ComponentCurveDisplay")
        numbers = np.asarray(self.n_components)
        columns = {
            name: np.asarray(getattr(self, name), dtype=float)
            for name in ("test_error", "test_error_se", "cosine", "silhouette")
        }
        for name, values in columns.items():
            if values.shape != numbers.shape:
                raise ValueError(
                    f"{name} has shape {values.shape}, n_components {numbers.shape}"
                )
        if axes is None:
            import matplotlib.pyplot as plt

            _, axes = plt.subplots(1, 2, figsize=(9.0, 3.4), layout="constrained")
        self.axes_ = np.asarray(axes, dtype=object).ravel()
        if len(self.axes_) != 2:
            raise ValueError(f"axes has {len(self.axes_)} Axes, expected 2")
        error, stability = self.axes_
        self.figure_ = error.figure
        order = np.argsort(numbers)
        x = numbers[order]
        error.errorbar(
            x,
            columns["test_error"][order],
            columns["test_error_se"][order],
            marker="o",
            capsize=3,
        )
        error.set(xlabel="Components", ylabel="Error of held-out entries")
        stability.plot(x, columns["cosine"][order], marker="o", label="matched cosine")
        stability.plot(
            x, columns["silhouette"][order], marker="s", ls="--", label="silhouette"
        )
        stability.set(xlabel="Components", ylabel="Stability over starts")
        if self.best_n_components is not None:
            for ax in self.axes_:
                ax.axvline(self.best_n_components, color="0.6", ls=":", zorder=0)
        stability.legend()
        return self
