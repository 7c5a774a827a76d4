"""Data and labels that have come in another shape than a matrix and an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from .._warn import called_by_user, warn_user
from .graph import comes_from, name_some


def refuse_unread(X: Any) -> None:
    """Refuse, by name, what would lose something or hang if it became an array.

    Parameters
    ----------
    X : object
        Samples, or a part of them.

    Raises
    ------
    TypeError
        If X is a masked array, a lazy frame, or a frame that is being grouped. The
        message says what to pass instead.
    """
    name = type(X).__name__
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(
            f"X is a {name}, whose mask would be lost; pass X.filled(numpy.nan) of a "
            "float array to have what is masked taken for missing, or X.filled(0.0)"
        )
    if comes_from(X, "dask") or comes_from(X, "dask_expr"):
        if hasattr(X, "compute"):
            raise TypeError(f"X is a lazy dask {name}; pass X.compute()")
    elif hasattr(X, "collect") and not hasattr(X, "__array__"):
        raise TypeError(f"X is a lazy frame ({name}); pass X.collect()")
    if "GroupBy" in name:
        raise TypeError(f"X is a {name}; pass list(X), pairs of a label and a part")


def without_label_columns(labels: Sequence[Any], parts: Sequence[Any]) -> list[Any]:
    """Leave out of frames the columns that grouping by them has left there.

    Parameters
    ----------
    labels : sequence
        Of the parts; a tuple where frames were grouped by several columns.
    parts : sequence of object
        The parts; only frames have columns with names.

    Returns
    -------
    list
        A column in which each part holds nothing but its label is left out.
    """
    parts = list(parts)
    if not parts or not all(_is_frame(part) for part in parts):
        return parts
    keys = [label if isinstance(label, tuple) else (label,) for label in labels]
    if len({len(key) for key in keys}) > 1:
        return parts
    names = [name for name in parts[0].columns if all(name in p.columns for p in parts)]
    unwanted = []
    for place in zip(*keys, strict=True):
        # A column of zeros in a single part labelled 0 may be data.
        numbers = all(not isinstance(key, str) for key in place)
        if numbers and len(set(place)) < 2:
            continue
        found = [
            name
            for name in names
            if all(
                _holds_only(part[name], key)
                for part, key in zip(parts, place, strict=True)
            )
        ]
        unwanted += found
    if not unwanted:
        return parts
    kept = [name for name in parts[0].columns if name not in unwanted]
    return [
        part[[name for name in part.columns if name not in unwanted]]
        if list(part.columns) != list(parts[0].columns)
        else part[kept]
        for part in parts
    ]


def _is_frame(part: Any) -> bool:
    """Whether it is a pandas or a polars frame."""
    known = comes_from(part, "pandas") or comes_from(part, "polars")
    return known and len(getattr(part, "shape", ())) == 2


def _holds_only(column: Any, key: Any) -> bool:
    """Whether all entries of a column are equal to a label."""
    if getattr(column, "ndim", 1) != 1:
        return False  # a name that several columns have
    values = set(
        column.unique().to_list()
        if hasattr(column, "to_list") and comes_from(column, "polars")
        else column.unique().tolist()
    )
    return values <= {key}


def align(values: Any, X: Any, name: str) -> Any:
    """Return one value for each sample in the order of the samples.

    Parameters
    ----------
    values : object
        A pandas series whose index is a permutation of a frame's is put in the
        frame's order, with a warning. Everything else is returned as it is.
    X : object
        The samples.
    name : str
        What errors call the values.

    Returns
    -------
    object

    Raises
    ------
    ValueError
        If both have an index, of the same length but of other labels.
    """
    if not (
        comes_from(values, "pandas")
        and hasattr(values, "reindex")
        and hasattr(values, "index")
        and getattr(values, "ndim", 0) == 1
    ):
        return values
    if not (comes_from(X, "pandas") and hasattr(X, "columns")) or len(values) != len(X):
        return values
    if values.index.equals(X.index):
        return values
    order = (
        X.index.get_indexer(values.index)
        if X.index.is_unique and values.index.is_unique
        else np.array([-1])
    )
    if (order < 0).any():
        odd = [repr(one) for one in values.index if one not in X.index]
        reason = f"{name} has rows {name_some(odd)}" if odd else "labels are repeated"
        raise ValueError(
            f"the index of {name} is not that of X: {reason}. A series is taken by "
            f"its index; pass {name}.to_numpy() if its order is that of the samples"
        )
    warn_user(
        f"{name} is a series in another order than X; it is aligned by its index",
        DataConversionWarning,
    )
    return values.reindex(X.index)


def warn_of_labels_as_target(y: Any, agents: Any, X: Any, name: str) -> None:
    """Warn where what stands in the place of `y` may be meant for the agents' labels.

    Parameters
    ----------
    y, agents, X : object
        As given to `fit`. Pipelines and searches pass the classes of the samples as
        y, and are not warned.
    name : str
        What the warning calls the estimator.
    """
    if y is None or agents is not None or not called_by_user():
        return
    shape = np.shape(y) if hasattr(y, "shape") or isinstance(y, (list, tuple)) else ()
    if len(shape) != 1 or len(y) != getattr(X, "shape", (len(y),))[0]:
        return
    values = np.asarray(y)
    if values.dtype.kind == "f" and (values != np.floor(values)).any():
        return  # no labels
    warn_user(
        f"y is ignored: {name} takes the labels of the agents by name only, "
        "fit(X, agents=labels)",
        DataConversionWarning,
    )
