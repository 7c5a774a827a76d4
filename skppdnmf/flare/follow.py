"""Follows a run from where it was submitted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..exceptions import FederationError
from .results import COMPONENTS
from .run import OUTCOME, PROGRESS

# Seconds between two questions to the server.
_PAUSE = 0.5
# The same before the run has begun: FLARE's server notes each that is not answered.
_LONG_PAUSE = 2.0
# Seconds for which a server that does not answer is asked again.
_PATIENCE = 60.0


def follow(
    session: Any, job_id: str, show: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Show how far a run is until it has ended.

    Parameters
    ----------
    session : nvflare.fuel.flare_api.flare_api.Session
        Of the submitter.
    job_id : str
        What FLARE calls the job.
    show : callable
        Called with ``iteration``, ``max_iter``, ``exchanges``, ``error``, ``bytes``,
        ``sites`` and ``seconds``, again and again.

    Returns
    -------
    dict
        The same at the end, with ``ended``: "finished", or what ended it; with
        ``status``, FLARE's own word for it, and ``folder``, where the outcome is and,
        if all sites' policies allow it, the components.

    Raises
    ------
    FederationError
        If the server does not answer for a minute; the run may go on.
    """
    status, heard = "", time.monotonic()
    while not status.startswith("FINISHED"):
        time.sleep(_PAUSE)
        try:
            status = str(session.get_job_status(job_id))
        except Exception as error:  # the run goes on, whoever watches it
            silent = time.monotonic() - heard
            if silent > _PATIENCE:
                raise FederationError(
                    f"job {job_id}: the server has not answered for {silent:.0f} s; "
                    "the sites' own logs say how the run ends"
                ) from error
            time.sleep(_LONG_PAUSE)
            continue
        heard = time.monotonic()
        if status == "RUNNING":
            try:
                state = session.do_app_command(job_id, PROGRESS, None)
            except Exception:  # its process has not begun, or is at its end
                time.sleep(_LONG_PAUSE)
                continue
            if isinstance(state, dict) and "iteration" in state:
                show(state)
    folder = Path(session.download_job_result(job_id))
    outcome: dict[str, Any] = {"ended": f"FLARE ended the job: {status}"}
    for file in folder.rglob(OUTCOME):
        outcome = json.loads(file.read_text())
        show(outcome)
    components = next(folder.rglob(COMPONENTS), None)
    return {
        **outcome,
        "status": status,
        "folder": str(folder),
        "components": None if components is None else str(components),
    }
