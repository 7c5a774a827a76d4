"""Numbers in text, for people."""

from __future__ import annotations


def format_bytes(count: float) -> str:
    """Return a count of bytes in a unit that reads well.

    Parameters
    ----------
    count : float
        Bytes.

    Returns
    -------
    str
        For example "3.2 MB".

    Examples
    --------
    >>> from skppdnmf._text import format_bytes
    >>> format_bytes(512), format_bytes(3_210_000)
    ('512 B', '3.2 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
