"""Reads matrices, tables and labels from files; a line says what is wrong with one."""

from __future__ import annotations

import csv
import gzip
import os
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import io, sparse

from .._data.graph import as_python, name_some
from .errors import CommandError, describe

# Longest first, so that .mtx.gz is not taken for an unknown .gz.
KINDS = {
    ".mtx.gz": "mtx",
    ".csv.gz": "csv",
    ".tsv.gz": "tsv",
    ".parquet": "parquet",
    ".npy": "npy",
    ".npz": "npz",
    ".mtx": "mtx",
    ".csv": "csv",
    ".tsv": "tsv",
    ".pq": "parquet",
}
TABLE_KINDS = ("csv", "tsv", "parquet")
_SEPARATORS = {"csv": ",", "tsv": "\t"}


def kind_of(path: Path) -> str:
    """Return the format of a file, from its name.

    Parameters
    ----------
    path : Path
        Of the file.

    Returns
    -------
    {"npy", "npz", "mtx", "csv", "tsv", "parquet"}
        The format.

    Raises
    ------
    CommandError
        If the name ends in no known way.

    Examples
    --------
    >>> from pathlib import Path
    >>> from skppdnmf._files.tables import kind_of
    >>> kind_of(Path("counts.MTX.gz"))
    'mtx'
    """
    for suffix, kind in KINDS.items():
        if path.name.lower().endswith(suffix):
            return kind
    raise CommandError(
        f"{path}: unknown format; the name should end in {', '.join(sorted(KINDS))}"
    )


def read_matrix(path: Path) -> Any:
    """Read a matrix from an .npy, .npz or Matrix Market file.

    Parameters
    ----------
    path : Path
        Of the file.

    Returns
    -------
    ndarray or CSR matrix or array
        Numbers in two dimensions.

    Raises
    ------
    CommandError
        If the file cannot be read or holds something else.
    """
    reader = {"npy": _read_npy, "npz": _read_npz, "mtx": _read_mtx}[kind_of(path)]
    try:
        matrix = reader(path)
    except CommandError:
        raise
    # What these readers raise on a damaged file depends on the damage and on their
    # version; whatever it is, the file is at fault.
    except Exception as error:
        raise CommandError(f"{path}: cannot be read: {describe(error)}") from error
    if matrix.ndim != 2:
        raise CommandError(
            f"{path}: should hold a matrix; its array has shape {matrix.shape}"
        )
    if matrix.dtype.kind not in "biuf":
        raise CommandError(f"{path}: should hold real numbers, not {matrix.dtype}")
    return sparse.csr_array(matrix) if sparse.issparse(matrix) else matrix


def read_vector(path: Path) -> Any:
    """Read a 1-D array from an .npy file.

    Parameters
    ----------
    path : Path
        Of the file.

    Returns
    -------
    ndarray
        One-dimensional, of numbers or strings.

    Raises
    ------
    CommandError
        If the file cannot be read or holds something else.
    """
    try:
        vector = _read_npy(path)
    except Exception as error:
        raise CommandError(f"{path}: cannot be read: {describe(error)}") from error
    if vector.ndim != 1:
        raise CommandError(
            f"{path}: should hold one label for each sample; its array has shape "
            f"{vector.shape}"
        )
    return vector


def _read_npy(path: Path) -> Any:
    """Return the array of an .npy file; never unpickles."""
    with path.open("rb") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _read_npz(path: Path) -> Any:
    """Return a sparse matrix as scipy saves it, the array `X`, or the only array."""
    if not zipfile.is_zipfile(path):
        raise CommandError(f"{path}: is not an .npz file")
    with np.load(path, allow_pickle=False) as archive:
        names = list(archive.files)
        if {"format", "shape", "data"} <= set(names):
            return sparse.load_npz(path)
        if "X" in names:
            return archive["X"]
        if len(names) == 1:
            return archive[names[0]]
    found = name_some([repr(name) for name in names]) or "none"
    raise CommandError(
        f"{path}: should hold an array 'X', a single array or a sparse matrix saved "
        f"by scipy; its arrays: {found}"
    )


def _read_mtx(path: Path) -> Any:
    """Read a Matrix Market file, sparse or dense."""
    return io.mmread(os.fspath(path))


def import_pandas(path: Path) -> Any:
    """Return pandas, without which there are no tables.

    Parameters
    ----------
    path : Path
        The table that needs it.

    Returns
    -------
    module
        Pandas.

    Raises
    ------
    CommandError
        If it is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise CommandError(
            f'{path}: reading a table needs pandas: pip install "skppdnmf[graph]", or '
            "save the numbers as .npy, .npz or .mtx"
        ) from error
    return pd


def read_table(
    path: Path, header: bool | None = None, as_text: str | None = None
) -> Any:
    """Read a table from a CSV, TSV or Parquet file.

    Parameters
    ----------
    path : Path
        Of the file.
    header : bool or None, default=None
        Whether the first line of a text file holds names. None takes a line of
        numbers for data, unless they count from 0 or 1: then they are names.
    as_text : str or None, default=None
        A column of a text file, by name or number, that is left as it is written.

    Returns
    -------
    pandas.DataFrame
        Its columns are strings, or the numbers from 0 where there are no names.

    Raises
    ------
    CommandError
        If pandas, or what it needs for Parquet, is missing; if the file cannot be
        read, is empty, or names columns twice or not at all.
    """
    kind = kind_of(path)
    pd = import_pandas(path)
    try:
        if kind == "parquet":
            frame = pd.read_parquet(path).reset_index(drop=True)
        else:
            frame = _read_text(pd, path, _SEPARATORS[kind], header, as_text)
    except CommandError:
        raise
    except ImportError as error:
        raise CommandError(
            f"{path}: reading Parquet needs pyarrow: pip install pyarrow"
        ) from error
    except Exception as error:
        raise CommandError(f"{path}: cannot be read: {describe(error)}") from error
    if not len(frame) or not len(frame.columns):
        raise CommandError(f"{path}: holds no rows of data")
    return frame


def _read_text(
    pd: Any, path: Path, separator: str, header: bool | None, as_text: str | None
) -> Any:
    """Read a frame from a text; its floats are the nearest to what is written."""
    shared = {"sep": separator, "skipinitialspace": True}
    first = pd.read_csv(
        path, header=None, nrows=1, dtype=str, keep_default_na=False, **shared
    )
    names = [str(name) for name in first.iloc[0]]
    if header is None:
        header = not _is_data(names)
    if header:
        twice = [repr(name) for name, count in Counter(names).items() if count > 1]
        if twice:
            raise CommandError(f"{path}: names columns twice: {name_some(twice)}")
    columns: Sequence[Any] = names if header else range(len(names))
    column = None if as_text is None else find_column(columns, as_text)
    # Marked, or pandas would take a label like "NA" for a missing number.
    texts = {} if column is None else {"converters": {column: _marked}}
    # Before version 3.1 pandas rounds floats wrongly unless asked not to.
    release = tuple(int(number) for number in pd.__version__.split(".")[:2])
    precision = {"float_precision": "round_trip"} if release < (3, 1) else {}
    with warnings.catch_warnings():
        # Rows with more fields than the first line would lose them.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame = pd.read_csv(
            path,
            header=0 if header else None,
            index_col=False,
            low_memory=False,
            **texts,
            **precision,
            **shared,
        )
    if column is not None:
        frame.isetitem(column, frame.iloc[:, column].str[1:])
    if header:
        # Pandas makes up names for columns without one.
        frame.columns = names
    return frame


def _marked(text: str) -> str:
    """Return a label behind a mark."""
    return "=" + text.strip()


def _is_data(names: Sequence[str]) -> bool:
    """Whether a first line is one of numbers that do not count the columns."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    first = numbers[0]
    counts = first in (0, 1) and len(numbers) > 1
    return not (counts and numbers == [first + k for k in range(len(numbers))])


def find_column(columns: Sequence[Any], wanted: str) -> int | None:
    """Return the position of a column by its name, or else by its number.

    Parameters
    ----------
    columns : sequence
        Names; numbers where there are none.
    wanted : str
        A name, or a number from 0.

    Returns
    -------
    int or None
        None if there is no such column; negative numbers name none.

    Examples
    --------
    >>> from skppdnmf._files.tables import find_column
    >>> find_column(["a", "7", "b"], "7"), find_column(["a", "7", "b"], "2")
    (1, 2)
    """
    if wanted in columns:
        return list(columns).index(wanted)
    if re.fullmatch(r"\d+", wanted) and int(wanted) < len(columns):
        return int(wanted)
    return None


def numeric_frame(path: Path, frame: Any) -> Any:
    """Return a frame of floats, if all its columns are numbers.

    Parameters
    ----------
    path : Path
        Where it comes from.
    frame : pandas.DataFrame
        As read.

    Returns
    -------
    pandas.DataFrame
        float32 if all columns are, else float64; missing numbers are NaN.

    Raises
    ------
    CommandError
        If columns are not numeric, which are named, or one of them has no name.
    """
    pd = import_pandas(path)
    nameless = [str(k) for k, name in enumerate(frame.columns) if name == ""]
    if nameless:
        raise CommandError(
            f"{path}: column {name_some(nameless)} has no name; if it holds row "
            f"numbers leave it out with --drop {nameless[0]}"
        )
    other = [
        name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])
    ]
    if other:
        found = []
        for name in other[:5]:
            numbers = pd.to_numeric(frame[name], errors="coerce")
            row = int(np.argmax(numbers.isna().to_numpy()))
            found.append(f"{name!r} ({frame[name].iloc[row]!r} in row {row})")
        raise CommandError(
            f"{path}: columns that are not numeric: {name_some(found, len(other))}; "
            "leave them out with --drop NAME, or name the one with the agents by "
            "--agents NAME"
        )
    single = all(dtype == np.float32 for dtype in frame.dtypes)
    dtype = np.float32 if single else np.float64
    values = frame.to_numpy(dtype=dtype, na_value=np.nan)
    return pd.DataFrame(values, columns=frame.columns)


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


def read_labels(path: Path) -> list[Any]:
    """Read one label for each sample from a file.

    Parameters
    ----------
    path : Path
        An .npy file with a 1-D array, or a text with one label in each line.

    Returns
    -------
    list of int or of str
        Integers if all labels are.

    Raises
    ------
    CommandError
        If the file cannot be read or a line is empty.
    """
    if path.name.lower().endswith(".npy"):
        return [as_python(label) for label in read_vector(path)]
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: cannot be read: {describe(error)}") from error
    labels = [line.strip() for line in lines]
    empty = [str(k) for k, label in enumerate(labels, start=1) if not label]
    if empty:
        raise CommandError(f"{path}: no label in line {name_some(empty)}")
    return as_integers(labels)


def as_integers(labels: Sequence[str]) -> list[Any]:
    """Turn labels into integers if all of them are written as such.

    Parameters
    ----------
    labels : sequence of str
        Labels.

    Returns
    -------
    list of int or of str
        Strings as they are if one of them is no integer, or would not be written
        the same again, as "007".

    Examples
    --------
    >>> from skppdnmf._files.tables import as_integers
    >>> as_integers(["2", "10"]), as_integers(["2", "x"])
    ([2, 10], ['2', 'x'])
    """
    if all(re.fullmatch(r"0|-?[1-9]\d*", label) for label in labels):
        return [int(label) for label in labels]
    return list(labels)
