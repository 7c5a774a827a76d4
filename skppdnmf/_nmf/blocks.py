"""Blocks of rows: what large sums are split into, whoever computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

# Rows of a block. A right factor of some twenty components then stays in the
# processor's cache from one sweep to the next, and the interpreter costs little.
_ROWS = 4096
# Blocks begin at multiples, so that vectorised loops treat a row as if in one piece.
_STEP = 64


def row_slices(n_rows: int) -> list[slice]:
    """Split rows into blocks that depend on their number alone.

    Parameters
    ----------
    n_rows : int
        How many there are.

    Returns
    -------
    list of slice
        At least one; of at most 4,096 rows each, nearly as many in each.

    Examples
    --------
    >>> from skppdnmf._nmf.blocks import row_slices
    >>> row_slices(5000)
    [slice(0, 2560, None), slice(2560, 5000, None)]
    """
    n_blocks = max(1, -(-n_rows // _ROWS))
    n_blocks += n_blocks > 1 and n_blocks % 2  # so that two threads end together
    size = max(1, -(-n_rows // (n_blocks * _STEP)) * _STEP)
    starts = range(0, max(1, n_rows), size)
    return [slice(start, min(start + size, n_rows)) for start in starts]


def one_by_one(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Return ``[function(item) for item in items]``."""
    return [function(item) for item in items]
