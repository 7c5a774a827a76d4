"""FLARE notes each call at two or three places; a run makes hundreds."""

from __future__ import annotations

import logging

# Loggers that write a line or more for every call.
_PER_CALL = (
    "nvflare.collab",
    "nvflare.fuel.f3.streaming",
    "Group",
    "CellDispatcher",
    "Proxy",
)


def quieten() -> None:
    """Have FLARE note warnings only, of calls; all else as the site has configured."""
    known = logging.root.manager.loggerDict
    for name in [*known, *_PER_CALL]:
        last = name.rsplit(".", 1)[-1]
        if name.startswith(_PER_CALL[:2]) or last in _PER_CALL:
            logging.getLogger(name).setLevel(logging.WARNING)
