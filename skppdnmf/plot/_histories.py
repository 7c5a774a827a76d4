"""Histories of fits, as `LearningCurveDisplay` draws them: checks, names, labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._checks import as_numbers, check_choice, check_sequence, shorten

ERRORS = ("shared_error", "local_error", "consensus_error")
COLUMNS = (*ERRORS, "exchanges", "seconds", "bytes")
X_LABELS = {
    "exchanges": "Exchanges between neighbours",
    "seconds": "Time (s)",
    "bytes": "Sent by all agents",
    "iterations": "Iterations of block coordinate descent",
}
# Longest value of a parameter that serves as a label.
LONGEST_VALUE = 30


def check_histories(
    histories: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    labels: Sequence[str] | None,
) -> tuple[list[dict[str, NDArray[np.float64]]], list[str | None]]:
    """Return lists of histories and of their labels.

    Parameters
    ----------
    histories, labels
        As `LearningCurveDisplay` takes them.

    Returns
    -------
    histories : list of dict
        At least one; each has all columns, as arrays of the same length.
    labels : list of str or None
        As many.

    Raises
    ------
    TypeError
        If they are no sequences, no mappings or no numbers.
    ValueError
        If there are none, a column is absent, or numbers differ.
    """
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
    shapes = {array.shape for array in columns.values()}
    if len(shapes) > 1 or len(shapes.pop()) != 1 or not len(columns["exchanges"]):
        shapes_of = [f"{column} {array.shape}" for column, array in columns.items()]
        raise ValueError(
            f"the columns of {name} must have one entry for each iteration; their "
            f"shapes are {', '.join(shapes_of)}"
        )
    return columns


def check_errors(errors: str | Sequence[str] | None, n_histories: int) -> list[str]:
    """Return the names of the errors to draw, each once.

    Parameters
    ----------
    errors : str, sequence of str or None
        The user's choice.
    n_histories : int
        Decides the default.

    Returns
    -------
    list of str
        Some of `ERRORS`.

    Raises
    ------
    TypeError
        If it is neither a str nor a sequence.
    ValueError
        If the choice is empty or has another name.
    """
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
    """Return the references by their labels.

    Parameters
    ----------
    reference : float, mapping from str to float, or None
        The user's choice.
    yscale : {"log", "linear"}
        The axis that they are drawn on.

    Returns
    -------
    dict
        From labels to errors.

    Raises
    ------
    ValueError
        If one is no error, or cannot be drawn.
    """
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
    """Return one style for each history.

    Parameters
    ----------
    style : mapping, sequence of mappings or None
        The user's choice; a mapping is for all.
    n_histories : int
        Number of histories.

    Returns
    -------
    list of mappings or None
        As many.

    Raises
    ------
    TypeError
        If it is neither a mapping nor a sequence.
    ValueError
        If there is another number of them.
    """
    if style is None or isinstance(style, Mapping):
        return [style] * n_histories
    styles = check_sequence("line_kw", style, "mappings, a mapping or None")
    if len(styles) != n_histories:
        raise ValueError(
            f"line_kw has {len(styles)} mappings for {n_histories} histories"
        )
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
    """Label estimators by the parameters in which they differ.

    Parameters
    ----------
    estimators : sequence of estimators
        At least one.

    Returns
    -------
    list of str
        For example "n_max=10" and "n_max=1000"; numbers where parameters do not
        tell all estimators apart.
    """
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
