"""What people see on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def on_terminal() -> bool:
    """Whether somebody watches stderr, where progress is shown."""
    return sys.stderr.isatty()


def format_table(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows as text with aligned columns.

    Parameters
    ----------
    rows : sequence of tuples of str
        Equally long; the first column is aligned left, others right.

    Returns
    -------
    str
        A line for each row.

    Examples
    --------
    >>> from skppdnmf._cli.terminal import format_table
    >>> print(format_table([("", "ours"), ("error", "0.1")]))
           ours
    error   0.1
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        padded = zip(others, widths[1:], strict=True)
        cells = [f"{cell:>{width}}" for cell, width in padded]
        lines.append("  ".join([f"{first:<{widths[0]}}", *cells]).rstrip())
    return "\n".join(lines)
