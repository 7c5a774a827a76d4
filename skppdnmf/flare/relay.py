"""The relay, as FLARE's server runs it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from nvflare.collab import collab
from nvflare.collab.api.context import set_call_context

from .job import JobSpec
from .quiet import quieten
from .run import PROGRESS, RemoteParty, Run


class Relay:
    """What runs at FLARE's server.

    Parameters
    ----------
    job : str
        As `JobSpec.to_text` writes it.
    """

    def __init__(self, job: str) -> None:
        self.job = job

    @collab.main
    def carry(self) -> None:
        """Carry a run to its end, whatever that is, and say how it ended.

        Raises
        ------
        FederationError
            If the run has failed; the message names the site and the reason.
        """
        quieten()
        spec = JobSpec.from_text(self.job)
        # In one order for all, whatever the order in which they have come.
        clients = sorted(collab.clients, key=lambda client: _natural(client.name))
        context = collab.context
        parties = [
            RemoteParty(client.name, partial(_call, client, context, spec.timeout))
            for client in clients
        ]
        folder = Path(collab.workspace.get_run_dir(collab.fl_ctx.get_job_id()))
        run = Run(spec, parties, folder)
        collab.fl_ctx.get_engine().register_app_command(PROGRESS, run.progress)
        run.to_the_end()


def _call(client: Any, context: Any, timeout: float, method: str, *given: bytes) -> Any:
    """Call a site's method, in whatever thread this is."""
    set_call_context(context)
    return getattr(client(timeout=timeout), method)(*given)


def _natural(name: str) -> tuple[int, str]:
    """Order site-2 before site-10."""
    return len(name), name
