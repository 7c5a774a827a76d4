"""What the displays share: the optional import, estimators, styles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette, which people with any common colour blindness can tell
# apart; black is left to references, yellow is too pale for lines on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
GREY = "#666666"


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


def unit_of_bytes(largest: float) -> tuple[str, float]:
    """Return the name and the size of the unit in which so many bytes read well."""
    for name, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if largest >= size:
            return name, size
    return "B", 1.0
