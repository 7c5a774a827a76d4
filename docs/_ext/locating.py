"""Finds lines of code in the functions that pages quote; needs no Sphinx."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def find_function(name: str) -> Any:
    """Import what a dotted name means, ``package.module.Class.method`` included."""
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(f"no module of {name}")


def locate(name: str, lines: list[str]) -> tuple[str, int]:
    """Return file and line number at which the lines stand in a function.

    Parameters
    ----------
    name : str
        Dotted name of the function.
    lines : list of str
        Consecutive lines of it; indentation does not matter.

    Returns
    -------
    file : str
        Relative to the project's root.
    number : int
        Of the first line.

    Raises
    ------
    ValueError
        If the function has no such lines.
    """
    function = find_function(name)
    source, first = inspect.getsourcelines(function)
    wanted = [line.strip() for line in lines]
    stripped = [line.strip() for line in source]
    for start in range(len(stripped) - len(wanted) + 1):
        if stripped[start : start + len(wanted)] == wanted:
            file = Path(inspect.getsourcefile(function) or "").resolve()
            return file.relative_to(ROOT).as_posix(), first + start
    raise ValueError(f"{name} does not have the lines {wanted}")
