"""Reads tables with pandas, and finds their columns."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._data.graph import name_some
from ._errors import CommandError, describe
from ._files import check_readable, kind_of

_SEPARATORS = {"csv": ",", "tsv": "\t"}


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
    check_readable(path)
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
    >>> from skppdnmf._cli._tables import find_column
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
