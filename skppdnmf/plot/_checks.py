"""Checks of what the displays need and are given, before anything is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

# Most characters of a value in an error.
_LONGEST_TEXT = 60
# What numpy would make numbers of.
_NO_NUMBERS = (str, bytes, np.datetime64, np.timedelta64)


def require_matplotlib(caller: str) -> None:
    """Check that matplotlib can be imported.

    Parameters
    ----------
    caller : str
        What the error says needs it.

    Raises
    ------
    ImportError
        If it cannot.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib, which is an optional dependency; install it "
            'with: pip install "skppdnmf[plot]"'
        ) from error


def require_attributes(estimator: Any, display: str, *names: str) -> None:
    """Check that an estimator is fitted and has what a display draws.

    Parameters
    ----------
    estimator : object
        The estimator.
    display : str
        Name of the display, for the error.
    *names : str
        Fitted attributes.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    TypeError
        If it is no estimator, or one without these attributes.
    """
    missing = [name for name in names if not hasattr(estimator, name)]
    if not missing:
        return
    kind = type(estimator).__name__
    if hasattr(estimator, "fit") and not isinstance(estimator, type):
        try:
            check_is_fitted(estimator)
        except NotFittedError:
            raise
        except (AttributeError, TypeError):
            pass  # no scikit-learn estimator: it cannot say whether it is fitted
    wrapped = (
        "; pass the fitted step of a pipeline, or best_estimator_ of a search"
        if hasattr(estimator, "fit")
        else ""
    )
    raise TypeError(
        f"{display} needs a fitted estimator with {', '.join(missing)}, such as "
        f"PrivateDistributedNMF; got {kind}{wrapped}"
    )


def shorten(value: Any) -> str:
    """Return a value as it is written in code, in one line that is not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise a ValueError unless the value is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        allowed = ", ".join(map(repr, choices))
        raise ValueError(f"{name}={shorten(value)} is not one of {allowed}")


def check_flags(**flags: Any) -> None:
    """Raise a TypeError unless each is a bool."""
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name}={shorten(value)} must be True or False")


def check_count(name: str, value: Any) -> int:
    """Return a positive int, or raise a ValueError."""
    if not _is_integer(value):
        raise ValueError(f"{name}={shorten(value)} must be an integer of at least 1")
    if value < 1:
        raise ValueError(f"{name}={value} must be at least 1")
    return int(value)


def check_text(name: str, value: Any) -> None:
    """Raise a TypeError unless it is a str."""
    if not isinstance(value, str):
        raise TypeError(f"{name}={shorten(value)} must be a str")


def check_sequence(name: str, values: Any, entries: str) -> list[Any]:
    """Return a list of the entries of a sequence.

    Parameters
    ----------
    name : str
        What errors call it.
    values : iterable
        A list, an array, an index, but neither a str nor a mapping.
    entries : str
        What its entries are, for the error.

    Returns
    -------
    list
        The entries.

    Raises
    ------
    TypeError
        If it is no sequence.
    """
    is_text = isinstance(values, (str, bytes, Mapping))
    # Arrays without a dimension are iterable until one tries.
    is_scalar = getattr(values, "ndim", 1) == 0
    if is_text or is_scalar or not isinstance(values, Iterable):
        raise TypeError(f"{name}={shorten(values)} must be a sequence of {entries}")
    return list(values)


def check_image_shape(shape: Any, n_features: int) -> tuple[int, int]:
    """Return the height and the width of an image.

    Parameters
    ----------
    shape : sequence of two int
        The user's.
    n_features : int
        Number of pixels.

    Returns
    -------
    height, width : int
        Their product is `n_features`.

    Raises
    ------
    TypeError
        If they are no integers.
    ValueError
        If there are not two, or their product is another number.
    """
    what = "a height and a width, two positive integers"
    is_scalar = getattr(shape, "ndim", None) == 0
    is_pair = isinstance(shape, (tuple, list, np.ndarray)) and not is_scalar
    sides = tuple(shape) if is_pair else (None,)
    if not all(_is_integer(side) for side in sides):
        raise TypeError(f"image_shape={shorten(shape)} must be {what}, or None")
    sides = tuple(int(side) for side in sides)
    if len(sides) != 2 or min(sides) < 1 or sides[0] * sides[1] != n_features:
        raise ValueError(
            f"image_shape={shorten(shape)} does not hold {n_features} pixels, one "
            f"for each feature; it must be {what}, whose product is {n_features}"
        )
    return sides[0], sides[1]


def as_numbers(name: str, given: Any, expected: str) -> NDArray[np.float64]:
    """Return an array-like of real numbers as an array.

    Parameters
    ----------
    name : str
        What errors call it.
    given : array-like
        The user's.
    expected : str
        What it should be, for the error.

    Returns
    -------
    ndarray of float64
        With at least one dimension.

    Raises
    ------
    TypeError
        If it holds anything else than real numbers, or is no array.
    """
    wrong = f"{name}={shorten(given)} must be {expected}"
    if sparse.issparse(given):
        raise TypeError(f"{wrong}, not sparse; toarray() makes it one")
    try:
        # As objects, rows of unequal length make the same array in every numpy.
        is_list = isinstance(given, (list, tuple))
        array = np.asarray(given, dtype=object if is_list else None)
        others = array.dtype.kind == "O" and any(
            isinstance(entry, _NO_NUMBERS) for entry in array.flat
        )
        if array.ndim == 0 or array.dtype.kind not in "biufO" or others:
            raise TypeError(wrong)
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(wrong) from error


def check_numbers(
    name: str,
    given: Any,
    shape: tuple[int, ...],
    *,
    nonnegative: bool = False,
    finite: bool = True,
    alternatives: str = "",
) -> NDArray[np.float64]:
    """Return an array-like of that shape as an array.

    Parameters
    ----------
    name : str
        What errors call it.
    given : array-like
        The user's.
    shape : tuple of int
        What its shape must be.
    nonnegative : bool, default=False
        Whether its entries must be.
    finite : bool, default=True
        Whether its entries must be.
    alternatives : str, default=""
        What else the parameter could be, for the error.

    Returns
    -------
    ndarray of float64

    Raises
    ------
    TypeError
        If it is no array of numbers.
    ValueError
        If its shape or an entry is wrong.
    """
    expected = f"{alternatives}an array of numbers of shape {shape}"
    array = as_numbers(name, given, expected)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {shape}")
    if finite and not np.isfinite(array).all():
        raise ValueError(f"{name} has entries that are infinite or nan")
    if nonnegative and array.min(initial=0.0) < 0:
        raise ValueError(f"{name} has negative entries, such as {array.min():g}")
    return array


def check_axes(
    ax: Any,
    name: str = "ax",
    allowed: str = "a matplotlib Axes or None",
    *,
    equal_scales: bool = False,
) -> None:
    """Raise unless it is an Axes that can be drawn in.

    Parameters
    ----------
    ax : object
        The user's, not None.
    name : str, default="ax"
        What errors call it.
    allowed : str, default="a matplotlib Axes or None"
        What it may be, for the error.
    equal_scales : bool, default=False
        Whether a unit must be as long along both axes.

    Raises
    ------
    TypeError
        If it is no Axes.
    ValueError
        If it has been removed from its figure, is three-dimensional, or has a
        projection that cannot have equal scales.
    """
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(f"{name}={shorten(ax)} must be {allowed}")
    if ax.figure is None:
        raise ValueError(f"{name}={shorten(ax)} has been removed from its figure")
    if ax.name == "3d":
        raise ValueError(f"{name}={shorten(ax)} is three-dimensional, not plane")
    if equal_scales and type(ax).get_data_ratio is not Axes.get_data_ratio:
        raise ValueError(
            f"{name}={shorten(ax)} has the projection {ax.name!r}, which cannot have "
            "equal scales; pass a rectilinear Axes"
        )


def check_style(name: str, style: Any) -> None:
    """Raise a TypeError unless it is a mapping or None; matplotlib checks the rest."""
    if style is not None and not isinstance(style, Mapping):
        raise TypeError(
            f"{name}={shorten(style)} must be a mapping from keywords to values, or "
            "None"
        )


def _is_integer(value: Any) -> bool:
    """Whether the value is an integer and no bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)
