"""A site's part, as FLARE calls it."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from nvflare.apis.fl_constant import FLMetaKey
from nvflare.apis.job_launcher_spec import JobReturnCode
from nvflare.collab import collab

from .._files.errors import CommandError
from .._site.folder import FILE, SiteFolder, read_folder
from ..exceptions import FederationError
from .frames import Answer, Failure
from .job import JobSpec
from .party import SiteParty
from .quiet import quieten

# A folder with one for each site, where several sites share a machine.
SITES_VARIABLE = "SKPPDNMF_SITES"
PASSPHRASE_VARIABLE = "SKPPDNMF_PASSPHRASE"
# A relay is silent while it waits for another site, and for those that it asks again.
_SILENCE = 3
_LEAST_SILENCE = 20.0


class Site:
    """What runs at a site; it does as the site's own `skppdnmf.toml` allows.

    Parameters
    ----------
    job : str
        As `JobSpec.to_text` writes it.
    """

    def __init__(self, job: str) -> None:
        self.job = job
        self._party: SiteParty | None = None
        self._refusal: bytes | None = None

    @collab.init
    def open(self) -> None:
        """Find the site's folder; what is wrong with it is said when asked."""
        quieten()
        job_id = collab.fl_ctx.get_job_id()
        self._outcome = Path(collab.workspace.get_run_dir(job_id))
        self._outcome /= FLMetaKey.PROCESS_RC_FILE
        leave_to_the_relay(self._outcome)
        try:
            folder = find_folder(collab.site_name, collab.workspace)
            passphrase = os.environ.get(PASSPHRASE_VARIABLE)
            self._party = SiteParty(folder, self.job, passphrase)
        except (CommandError, FederationError) as error:
            text = f"{collab.site_name}: {error}"
            failure = Failure("FederationError", text, None)
            self._refusal = Answer([], failure=failure).to_bytes()
            return
        watcher = threading.Thread(
            target=self._watch, args=(collab.fl_ctx,), daemon=True
        )
        watcher.start()

    @collab.publish
    def offer(self, order: bytes) -> bytes:
        """As `SiteParty.offer`."""
        return self._ask("offer", order)

    @collab.publish
    def prepare(self, order: bytes) -> bytes:
        """As `SiteParty.prepare`."""
        return self._ask("prepare", order)

    @collab.publish
    def start(self) -> bytes:
        """As `SiteParty.start`."""
        return self._ask("start")

    @collab.publish
    def advance(self, mail: bytes) -> bytes:
        """As `SiteParty.advance`."""
        return self._ask("advance", mail)

    @collab.publish
    def depart(self, order: bytes) -> bytes:
        """As `SiteParty.depart`."""
        return self._ask("depart", order)

    @collab.publish
    def finish(self, order: bytes) -> bytes:
        """As `SiteParty.finish`."""
        return b"" if self._party is None else self._ask("finish", order)

    @collab.final
    def close(self) -> None:
        """End a run that FLARE ends."""
        if self._party is not None:
            self._party.cut_off("FLARE has ended the job before the relay has")
        self._outcome.unlink(missing_ok=True)

    def _ask(self, method: str, *given: bytes) -> bytes:
        """Let the site's part answer, if it is the relay that asks."""
        if collab.caller != "server":
            failure = Failure(
                "FederationError",
                f"{collab.site_name} is called by {collab.caller}; only the relay may",
                None,
            )
            return Answer([], failure=failure).to_bytes()
        if self._party is None:
            return self._refusal or b""
        answer: bytes = getattr(self._party, method)(*given)
        return answer

    def _watch(self, fl_ctx: Any) -> None:
        """End the run, and the process, if the relay falls silent."""
        assert self._party is not None
        try:
            timeout = JobSpec.from_text(self.job).timeout
        except FederationError:  # said when asked
            return
        seconds = max(_LEAST_SILENCE, _SILENCE * timeout)
        while not self._party.watch(seconds):
            time.sleep(min(1.0, seconds / 10))
        if "RelayLostError" in (self._party.ended or ""):
            signal = fl_ctx.get_run_abort_signal()
            if signal is not None:
                signal.trigger(True)


def leave_to_the_relay(outcome: Path) -> None:
    """Have FLARE's client report nothing if this process dies.

    Its server would end the run at all sites at once, whatever the job says of sites
    that drop out. The relay finds out by itself, and decides.

    Parameters
    ----------
    outcome : Path
        Where FLARE looks for the process's own word on how it ended.
    """
    outcome.parent.mkdir(parents=True, exist_ok=True)
    outcome.write_text(f"{int(JobReturnCode.UNKNOWN)}\n")


def find_folder(name: str, workspace: Any) -> SiteFolder:
    """Return a site's folder.

    Parameters
    ----------
    name : str
        What FLARE calls the site.
    workspace : nvflare.apis.workspace.Workspace
        Of the site. Its ``local`` folder holds `skppdnmf.toml`, unless the environment
        variable ``SKPPDNMF_SITES`` names a folder with one for each site.

    Returns
    -------
    SiteFolder

    Raises
    ------
    CommandError
        If there is none, or it is not valid.
    FederationError
        If it is another site's.
    """
    sites = os.environ.get(SITES_VARIABLE)
    place = Path(sites) / name if sites else Path(workspace.get_site_config_dir())
    folder = read_folder(place / FILE)
    if folder.name != name:
        raise FederationError(
            f"{place / FILE} is that of {folder.name!r}, FLARE calls this site {name!r}"
        )
    return folder
