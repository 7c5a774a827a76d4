"""Writes a fit to files, which are checked before it and replaced as a whole."""

from __future__ import annotations

import csv
import io
import json
import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._files.errors import FAILED, CommandError, describe
from .summary import plain

FOLDER_FILES = (
    "W.npy",
    "adjacency.npy",
    "agent_labels.json",
    "components.npy",
    "history.csv",
    "sample_agents.npy",
    "summary.json",
)
TABLE_FILE = "components.csv"


def is_archive(path: Path) -> bool:
    """Whether the output is one .npz file, and not a directory."""
    return path.suffix.lower() == ".npz"


def check_writable(path: Path, force: bool) -> None:
    """Refuse a file that cannot be written, or that exists.

    Parameters
    ----------
    path : Path
        Of the file; missing directories will be made.
    force : bool
        Whether an existing file is replaced.

    Raises
    ------
    CommandError
        If it exists, or has no directory that can be written to.
    """
    if path.exists() and not force:
        raise CommandError(f"{path}: exists; --force replaces it")
    _check_folder(path, path.parent)


def check_output(path: Path, force: bool) -> None:
    """Refuse an output that cannot be written, or that exists.

    Parameters
    ----------
    path : Path
        An .npz file or a directory, which may exist without results in it.
    force : bool
        Whether existing results are replaced.

    Raises
    ------
    CommandError
        If it cannot be written or exists.
    """
    if is_archive(path):
        check_writable(path, force)
        return
    _check_folder(path, path)
    present = [name for name in (*FOLDER_FILES, TABLE_FILE) if (path / name).exists()]
    if present and not force:
        raise CommandError(
            f"{path}: holds {', '.join(present)} already; --force replaces them"
        )


def _check_folder(path: Path, folder: Path) -> None:
    """Refuse a directory that can neither be made nor written to."""
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise CommandError(f"{path}: cannot be made, {folder} is not a directory")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CommandError(f"{path}: no permission to write to {folder}")


def write_output(
    path: Path, estimator: Any, W: Any, summary: dict[str, Any], is_table: bool
) -> None:
    """Write the factors, the history and who holds what.

    Parameters
    ----------
    path : Path
        An .npz file or a directory.
    estimator : PrivateDistributedNMF
        Fitted.
    W : ndarray of shape (n_samples, n_components)
        The right factor.
    summary : dict
        What `summarise` returns.
    is_table : bool
        Whether the data were a table; then a directory gets `components.csv`.

    Raises
    ------
    CommandError
        If it cannot be written.
    """
    arrays = {
        "components": estimator.components_,
        "W": W,
        "sample_agents": estimator.sample_agents_,
        "adjacency": estimator.adjacency_,
    }
    names = getattr(estimator, "feature_names_in_", None)
    if is_archive(path):
        history = {f"history_{k}": v for k, v in estimator.history_.items()}
        labels = {"agent_labels": _label_array(estimator.agent_labels_)}
        if names is not None:
            labels["feature_names"] = np.array([str(name) for name in names])
        text = {"summary": np.array(json.dumps(summary))}
        everything = {**arrays, **history, **labels, **text}
        write_file(path, lambda file: np.savez(file, **everything))
        return
    for name, array in arrays.items():
        write_file(path / f"{name}.npy", _saver(array))
    labels_text = json.dumps([plain(label) for label in estimator.agent_labels_])
    write_text(path / "agent_labels.json", labels_text + "\n")
    write_text(path / "summary.json", json.dumps(summary, indent=2) + "\n")
    history = estimator.history_
    rows = zip(*(column.tolist() for column in history.values()), strict=True)
    write_text(path / "history.csv", as_csv(history, rows))
    if is_table:
        header = range(estimator.n_features_in_) if names is None else names
        # Widening float32 is exact, so that the texts name the very same numbers.
        rows = iter(estimator.components_.tolist())
        write_text(path / TABLE_FILE, as_csv(header, rows))
    else:
        # One of an earlier fit would not belong to the other files.
        (path / TABLE_FILE).unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8 and replace a file of that name."""
    write_file(path, lambda file: file.write(text.encode()))


def write_file(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file and replace one of that name, but not by a broken one.

    Parameters
    ----------
    path : Path
        Of the file; missing directories are made.
    write : callable
        Writes to an open file.

    Raises
    ------
    CommandError
        If that fails.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with new.open("xb") as file:
                write(file)
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror or describe(error)}"
        raise CommandError(message, FAILED) from error


def _saver(array: Any) -> Callable[[BinaryIO], None]:
    """Return a function that writes an array to an open file."""
    return lambda file: np.save(file, array, allow_pickle=False)


def _label_array(labels: list[Any]) -> Any:
    """Labels as an array that needs no pickle: integers, or else strings."""
    if all(isinstance(label, int) and not isinstance(label, bool) for label in labels):
        return np.array(labels)
    return np.array([str(label) for label in labels])


def as_csv(header: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table as text; floats are written so that they are read back exactly."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(list(header))
    writer.writerows(rows)
    return text.getvalue()
