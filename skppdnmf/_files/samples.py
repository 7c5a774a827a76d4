"""The data of a command: samples, the names of features, the agents' labels."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .._data.graph import as_python, name_some
from .errors import CommandError
from .tables import (
    TABLE_KINDS,
    as_integers,
    find_column,
    kind_of,
    numeric_frame,
    read_labels,
    read_matrix,
    read_table,
)


@dataclass(frozen=True)
class Data:
    """What a file and the options about it amount to.

    Parameters
    ----------
    X : ndarray, CSR array or pandas.DataFrame of shape (n_samples, n_features)
        Finite, nonnegative numbers.
    agents : list or None
        Label of each sample's agent.
    is_table : bool
        Whether the file was a table.
    weights : list of float or None, default=None
        Weight of each sample.
    """

    X: Any
    agents: list[Any] | None
    is_table: bool
    weights: list[float] | None = None


def read_data(
    path: Path,
    agents: str | None = None,
    drop: Sequence[str] = (),
    header: bool | None = None,
    sample_weight: str | None = None,
    allow_missing: bool = False,
) -> Data:
    """Read samples and the agents' labels.

    Parameters
    ----------
    path : Path
        A file of any known format.
    agents : str or None
        A column of the file, by name or number, or another file with one label for
        each sample.
    drop : sequence of str
        Columns to leave out.
    header : bool or None
        As for `read_table`.
    sample_weight : str or None, default=None
        A column of the file, or another file, as for `agents`; of numbers.
    allow_missing : bool, default=False
        Whether nan is let through.

    Returns
    -------
    Data
        Checked.

    Raises
    ------
    CommandError
        If something is wrong with one of the files, or they do not fit together.
    """
    is_table = kind_of(path) in TABLE_KINDS
    if header is not None and (not is_table or kind_of(path) == "parquet"):
        raise CommandError(
            f"{path}: --header and --no-header are for .csv and .tsv files"
        )
    X = read_table(path, header, agents) if is_table else read_matrix(path)
    names = list(X.columns) if is_table else list(range(X.shape[1]))
    unwanted = [_column_to_drop(path, names, name) for name in drop]
    labels, column = _read_agents(path, X, names, agents)
    if column is not None:
        unwanted.append(column)
    weights, column = _read_weights(path, X, names, sample_weight)
    if column is not None:
        unwanted.append(column)
    kept = [k for k in range(len(names)) if k not in set(unwanted)]
    if not kept:
        raise CommandError(f"{path}: no column is left as a feature")
    if not is_table and X.shape[0] == 0:
        raise CommandError(f"{path}: holds no rows of data")
    if len(kept) < len(names):
        X = X.iloc[:, kept] if is_table else X[:, kept]
        names = [names[k] for k in kept]
    if is_table:
        X = numeric_frame(path, X)
        _check_entries(path, X.to_numpy(), names, allow_missing)
        # Numbers are no names that an estimator would keep.
        X = X if all(isinstance(name, str) for name in names) else X.to_numpy()
    else:
        _check_entries(path, X, names, allow_missing)
    if labels is not None and len(labels) != X.shape[0]:
        raise CommandError(
            f"{agents}: has {len(labels)} labels, but {path} has {X.shape[0]} samples"
        )
    if weights is not None and len(weights) != X.shape[0]:
        raise CommandError(
            f"{sample_weight}: has {len(weights)} weights, but {path} has "
            f"{X.shape[0]} samples"
        )
    return Data(X, labels, is_table, weights)


def _read_weights(
    path: Path, X: Any, names: list[Any], given: str | None
) -> tuple[list[float] | None, int | None]:
    """Weights of the samples, and the column that they come from."""
    if given is None:
        return None, None
    column = find_column(names, given)
    if column is None:
        if not Path(given).is_file():
            raise CommandError(
                f"--sample-weight {given}: {_no_column(path, names, given)}; nor is "
                "there such a file"
            )
        values: Any = read_labels(Path(given))
    elif sparse.issparse(X):
        values = X[:, [column]].toarray().ravel()
    else:
        values = X[:, column] if isinstance(X, np.ndarray) else X.iloc[:, column]
    try:
        weights = [float(value) for value in values]
    except ValueError as error:
        raise CommandError(f"--sample-weight {given}: {error}") from error
    odd = [f"{w:g} (row {k})" for k, w in enumerate(weights) if not 0 <= w < math.inf]
    if odd:
        raise CommandError(
            f"--sample-weight {given}: has weights that are no numbers of 0 or more: "
            f"{name_some(odd)}"
        )
    return weights, column


def _column_to_drop(path: Path, names: list[Any], wanted: str) -> int:
    """Position of a column to leave out."""
    column = find_column(names, wanted)
    if column is None:
        raise CommandError(f"--drop {wanted}: {_no_column(path, names, wanted)}")
    return column


def _no_column(path: Path, names: list[Any], wanted: str) -> str:
    """Say that there is no such column, and which there are."""
    if re.fullmatch(r"-\d+", wanted):
        return (
            f"{path} has no such column; columns are numbered 0 to {len(names) - 1}, "
            "not from the end"
        )
    if isinstance(names[0], int):
        return f"{path} has no such column; they are numbered 0 to {len(names) - 1}"
    named = name_some([repr(name) for name in names])
    return f"{path} has no such column; it has {named}"


def _read_agents(
    path: Path, X: Any, names: list[Any], agents: str | None
) -> tuple[list[Any] | None, int | None]:
    """Labels of the samples' agents, and the column that they come from."""
    if agents is None:
        return None, None
    column = find_column(names, agents)
    if column is not None:
        return _column_labels(path, X, column, agents), column
    file = Path(agents)
    if not file.is_file():
        raise CommandError(
            f"--agents {agents}: {_no_column(path, names, agents)}; nor is there such "
            "a file"
        )
    return read_labels(file), None


def _column_labels(path: Path, X: Any, column: int, agents: str) -> list[Any]:
    """Labels in a column of the data."""
    if sparse.issparse(X):
        raise CommandError(
            f"--agents {agents}: {path} is sparse, and labels do not come from a "
            "sparse column; give a file with one label for each sample"
        )
    if isinstance(X, np.ndarray):
        values = X[:, column]
    else:
        series = X.iloc[:, column]
        missing = np.flatnonzero(series.isna().to_numpy() | (series == "").to_numpy())
        if missing.size:
            rows = name_some([str(row) for row in missing[:5]], missing.size)
            raise CommandError(
                f"--agents {agents}: the label is missing in row {rows} of {path}"
            )
        values = series.to_numpy()
    if values.dtype.kind == "f":
        odd = values[values != np.floor(values)]
        if odd.size:
            hint = f"; for {agents} agents give --partition {agents}"
            raise CommandError(
                f"--agents {agents}: column {column} of {path} holds {odd[0]:g}, which "
                f"is no agent's label{hint if agents.isdigit() else ''}"
            )
        values = values.astype(np.int64)
    labels = [as_python(value) for value in values]
    texts = all(isinstance(label, str) for label in labels)
    return as_integers(labels) if texts else labels


def _check_entries(
    path: Path, X: Any, names: Sequence[Any], allow_missing: bool
) -> None:
    """Refuse entries that are missing, infinite or negative, and say where."""
    values = X.data if sparse.issparse(X) else X
    for fault, wrong in (
        (
            "entries that are missing or infinite",
            np.isinf(values) if allow_missing else ~np.isfinite(values),
        ),
        ("negative entries", values < 0),
    ):
        if not wrong.any():
            continue
        at = np.flatnonzero(wrong)
        if sparse.issparse(X):
            entries = X.tocoo()
            rows, columns = entries.row[at], entries.col[at]
        else:
            rows, columns = np.unravel_index(at, X.shape)
        found = [
            f"{value:g} (row {row}, column {names[column]!r})"
            for value, row, column in zip(
                values[wrong][:5], rows[:5], columns[:5], strict=True
            )
        ]
        raise CommandError(
            f"{path}: has {fault}, rows counted from 0: {name_some(found, at.size)}"
        )
