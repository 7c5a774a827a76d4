"""`LeakageDisplay`: what an attack recovered beside what there was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._checks import (
    as_numbers,
    check_axes,
    check_count,
    check_image_shape,
    require_matplotlib,
    shorten,
)
from ._panels import divide, draw_image
from ._style import COLOURS, GREY, SMALL, new_axes

if TYPE_CHECKING:
    from ..audit import Leakage

_MOST_SAMPLES = 6
# What is read of a leakage.
_READ = ("attack", "target", "truth", "reconstruction", "guess", "recovered")
_PANEL = 1.5  # inches


class LeakageDisplay:
    """The truth, what an attack recovered, and the guess without it.

    Samples are drawn as images where their shape is known, else as one line a
    sample; second moments as matrices. All share one scale.

    Parameters
    ----------
    leakage : Leakage
        Result of an attack on an agent's data.
    image_shape : (int, int) or None, default=None
        Height and width of the images that the features are pixels of, row by row.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The figure.
    ax_ : matplotlib.axes.Axes
        The axes in whose place the panels are.
    axes_ : ndarray of shape (n_rows, n_columns), dtype object
        The axes of the panels: for images and matrices a column each for the truth,
        the reconstruction and the guess; for lines one panel a sample.
    artists_ : list
        Images or lines: those of the truth, of the reconstruction, of the guess.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.audit import Leakage
    >>> from skppdnmf.plot import LeakageDisplay
    >>> x = np.random.default_rng(0).exponential(size=(1, 12))
    >>> leakage = Leakage("GuessAttack", "a", "b", "samples", error=0.1,
    ...                   guess_error=0.4, reconstruction=1.1 * x, truth=x,
    ...                   guess=0.6 * x)
    >>> display = LeakageDisplay(leakage, image_shape=(3, 4)).plot()
    >>> display.axes_.shape
    (1, 3)
    """

    def __init__(
        self, leakage: Leakage, *, image_shape: tuple[int, int] | None = None
    ) -> None:
        self.leakage = leakage
        self.image_shape = image_shape

    @classmethod
    def from_leakage(
        cls,
        leakage: Leakage,
        *,
        image_shape: tuple[int, int] | None = None,
        ax: Any = None,
        n_samples: int = 3,
    ) -> LeakageDisplay:
        """Draw the result of an attack.

        Parameters
        ----------
        leakage, image_shape
            As in the constructor.
        ax, n_samples
            As in :meth:`plot`.

        Returns
        -------
        LeakageDisplay
            The display.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            As in :meth:`plot`.
        """
        return cls(leakage, image_shape=image_shape).plot(ax, n_samples=n_samples)

    def plot(self, ax: Any = None, *, n_samples: int = 3) -> LeakageDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Is divided into panels; None makes a new figure.
        n_samples : int, default=3
            Most samples to draw.

        Returns
        -------
        LeakageDisplay
            The display itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the leakage is none, or a parameter is of another type.
        ValueError
            If the leakage holds no data to draw, or shapes do not fit each other.
        """
        require_matplotlib(f"{type(self).__name__}.plot")
        leakage = self.leakage
        if not all(hasattr(leakage, name) for name in _READ):
            raise TypeError(
                f"leakage={shorten(leakage)} must be a Leakage, such as the result of "
                "an attack"
            )
        if leakage.target not in ("samples", "moments") or leakage.truth is None:
            raise ValueError(
                f"{leakage.attack} on {leakage.target} holds no samples or moments "
                "to draw"
            )
        n_samples = check_count("n_samples", n_samples)
        if ax is not None:
            check_axes(ax)
        known = self._check_data()
        image_shape = None
        if self.image_shape is not None:
            image_shape = check_image_shape(self.image_shape, known["true"].shape[1])
        panels = self._panels(known, image_shape, n_samples)
        n_rows, n_columns = len(panels["true"]), len(panels)
        lines = leakage.target == "samples" and image_shape is None
        if lines:
            n_columns = 1
        if ax is None:
            ax = new_axes(4 * _PANEL if lines else 3 * _PANEL, n_rows * _PANEL + 0.5)
        self.ax_, self.figure_ = ax, ax.figure
        self.axes_ = divide(ax, n_rows * n_columns, n_columns)
        self.artists_: list[Any] = []
        if lines:
            self._draw_lines(panels)
        else:
            self._draw_images(panels)
        return self

    def _check_data(self) -> dict[str, NDArray]:
        """Truth, reconstruction and guess, as far as known, of the same shape."""
        leakage = self.leakage
        given = {
            "true": ("truth", leakage.truth),
            "recovered": ("reconstruction", leakage.reconstruction),
            "guessed": ("guess", leakage.guess),
        }
        known = {}
        for title, (name, data) in given.items():
            if data is None:
                continue
            name = f"{name} of the leakage"
            known[title] = as_numbers(name, data, "a matrix of numbers")
            shape = known["true"].shape
            if len(shape) != 2 or not known["true"].size:
                raise ValueError(f"{name} must be a matrix; it has shape {shape}")
            if known[title].shape != shape:
                raise ValueError(
                    f"{name} has shape {known[title].shape}, but truth has {shape}"
                )
        if not np.isfinite(known["true"]).all():
            raise ValueError(
                "truth of the leakage has entries that are infinite or nan"
            )
        return known

    def _panels(
        self,
        known: dict[str, NDArray],
        image_shape: tuple[int, int] | None,
        n_samples: int,
    ) -> dict[str, list[NDArray]]:
        """Split data into what one panel shows."""
        if self.leakage.target == "moments":
            return {name: [data] for name, data in known.items()}
        count = min(n_samples, _MOST_SAMPLES, len(known["true"]))
        samples = {name: list(data[:count]) for name, data in known.items()}
        if image_shape is None:
            return samples
        return {
            name: [sample.reshape(image_shape) for sample in some]
            for name, some in samples.items()
        }

    def _share(self) -> str:
        """Print the recovered share."""
        return f"{100 * self.leakage.recovered:.0f} %"

    def _draw_images(self, panels: dict[str, list[NDArray]]) -> None:
        """Draw a column of images for each of truth, reconstruction and guess."""
        limits = 0.0, max(float(np.max(one)) for one in panels["true"]) or 1.0
        for column, (name, images) in zip(self.axes_.T, panels.items(), strict=True):
            for axes, image in zip(column, images, strict=True):
                self.artists_.append(draw_image(axes, image, limits, None))
            share = f", {self._share()}" if name == "recovered" else ""
            column[0].set_title(name + share, fontsize=SMALL, pad=3)

    def _draw_lines(self, panels: dict[str, list[NDArray]]) -> None:
        """Draw truth, reconstruction and guess of each sample into one panel."""
        styles = {
            "true": {"color": "black", "linewidth": 2.5, "alpha": 0.5},
            "recovered": {"color": COLOURS[1], "linewidth": 1.0},
            "guessed": {"color": GREY, "linewidth": 1.0, "linestyle": ":"},
        }
        for name, samples in panels.items():
            for axes, sample in zip(self.axes_[:, 0], samples, strict=True):
                style: dict[str, Any] = styles[name]
                self.artists_ += axes.plot(sample, label=name, **style)
        for axes in self.axes_[:, 0]:
            axes.tick_params(labelsize=SMALL)
        title = f"{self.leakage.attack}: {self._share()} recovered"
        self.axes_[0, 0].set_title(title, fontsize=SMALL + 1)
        self.axes_[0, 0].legend(fontsize=SMALL, loc="upper right", frameon=False)
        self.axes_[-1, 0].set_xlabel("Feature", fontsize=SMALL)
