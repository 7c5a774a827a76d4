"""A site's own log: one JSON object in a line for each event, only ever appended."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any


class SiteLog:
    """Appends events to a file of JSON lines.

    Parameters
    ----------
    path : Path
        The file; it is made when the first event is noted.
    **always
        What every line says.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skppdnmf._site.log import SiteLog
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = SiteLog(Path(folder) / "log.jsonl", run="ab")
    ...     log.note("begun", rows=12)
    ...     line = (Path(folder) / "log.jsonl").read_text()
    >>> line.startswith('{"time": "'), '"event": "begun"' in line
    (True, True)
    """

    def __init__(self, path: Path, **always: Any) -> None:
        self._path = path
        self._always = always

    def note(self, event: str, **facts: Any) -> None:
        """Append one event.

        Parameters
        ----------
        event : str
            What has happened.
        **facts
            What is to be known of it.
        """
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"time": stamp, "event": event, **self._always, **facts})
        # In one write, on the disk before anything else happens.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        descriptor = os.open(self._path, flags, 0o600)
        try:
            os.write(descriptor, line.encode() + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
