"""Reads matrices from files; what is wrong with a file is said in a line."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io, sparse

from .._data.graph import name_some
from ._errors import CommandError, describe

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


def check_readable(path: Path) -> None:
    """Refuse what is not a file that can be read.

    Parameters
    ----------
    path : Path
        Of the file.

    Raises
    ------
    CommandError
        If there is no such file, or it is a directory or not readable.
    """
    if not path.exists():
        raise CommandError(f"{path}: no such file")
    if not path.is_file():
        raise CommandError(f"{path}: is not a file")
    if not os.access(path, os.R_OK):
        raise CommandError(f"{path}: no permission to read it")


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
    >>> from skppdnmf._cli._files import kind_of
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
    check_readable(path)
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
    check_readable(path)
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
