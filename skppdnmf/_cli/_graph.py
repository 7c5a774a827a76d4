"""Reads the matrices that are values of options: the graph and the start."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._data import as_integers
from ._errors import CommandError, describe
from ._files import TABLE_KINDS, check_readable, kind_of, read_matrix
from ._tables import import_pandas


def read_numbers(path: Path) -> NDArray[Any]:
    """Read a dense matrix.

    Parameters
    ----------
    path : Path
        An .npy, .npz, Matrix Market, CSV or TSV file; a first line of a text that
        is not numbers is a header.

    Returns
    -------
    ndarray of shape (n, m)
        Numbers.

    Raises
    ------
    CommandError
        If the file cannot be read or holds something else.
    """
    check_readable(path)
    if kind_of(path) not in TABLE_KINDS:
        matrix = read_matrix(path)
        return matrix.toarray() if sparse.issparse(matrix) else matrix
    rows = _read_cells(path)
    try:
        return _as_floats(rows)
    except ValueError:
        return _floats(path, rows[1:])


def read_adjacency(path: Path) -> Any:
    """Read the adjacency matrix of a graph.

    Parameters
    ----------
    path : Path
        As in `read_numbers`. The first row and the first column of a text may hold
        the agents' labels; their corner is empty or a word.

    Returns
    -------
    ndarray or pandas.DataFrame
        A frame if there are labels. That it is a graph is for the estimator to
        check.

    Raises
    ------
    CommandError
        If the file cannot be read or holds something else.
    """
    check_readable(path)
    if kind_of(path) not in TABLE_KINDS:
        return read_numbers(path)
    rows = _read_cells(path)
    try:
        return _as_floats(rows)
    except ValueError:
        body = _floats(path, [row[1:] for row in rows[1:]])
    columns = as_integers(rows[0][1:])
    index = as_integers([row[0] for row in rows[1:]])
    return import_pandas(path).DataFrame(body, index=index, columns=columns)


def _read_cells(path: Path) -> list[list[str]]:
    """Return the cells of a text, without empty lines."""
    kind = kind_of(path)
    if kind == "parquet":
        raise CommandError(f"{path}: a matrix for an option is not read from Parquet")
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter="\t" if kind == "tsv" else ",")
            rows = [[cell.strip() for cell in row] for row in reader]
    except (OSError, UnicodeDecodeError, EOFError, csv.Error) as error:
        raise CommandError(f"{path}: cannot be read: {describe(error)}") from error
    rows = [row for row in rows if any(row)]
    if not rows:
        raise CommandError(f"{path}: is empty")
    for k, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise CommandError(
                f"{path}: row {k} has {len(row)} cells, but row 0 has {len(rows[0])}"
            )
    return rows


def _as_floats(rows: list[list[str]]) -> NDArray[np.float64]:
    """Rows of numbers; raises ValueError if one is none."""
    return np.array([[float(cell) for cell in row] for row in rows])


def _floats(path: Path, rows: list[list[str]]) -> NDArray[np.float64]:
    """Rows of numbers from a file, which is at fault if they are not."""
    if not rows or not rows[0]:
        raise CommandError(f"{path}: holds no rows of numbers")
    try:
        return _as_floats(rows)
    except ValueError as error:
        raise CommandError(
            f"{path}: is not a matrix of numbers: {describe(error)}"
        ) from error
