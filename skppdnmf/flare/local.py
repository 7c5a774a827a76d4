"""A federation on one machine, each site in processes of its own."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nvflare.app_common.default_component_policy import DEFAULT_CLASS_ALLOW_LIST
from nvflare.app_common.widgets.component_path_authorizer import CLASS_ALLOW_LIST
from nvflare.fuel.flare_api.flare_api import Session, new_secure_session
from nvflare.job_config.api import FedJob
from nvflare.recipe import PocEnv
from nvflare.tool.poc.poc_commands import (
    _start_poc,
    get_prod_dir,
    prepare_poc_provision,
    setup_service_config,
)

from ..exceptions import FederationError
from .environment import variables

# What a site's and the server's `class_allow_list` must hold beside FLARE's own.
COMPONENT_CLASSES = (
    "nvflare.collab.runtime.controller.CollabController",
    "nvflare.collab.runtime.executor.CollabExecutor",
    "skppdnmf.flare.relay.Relay",
    "skppdnmf.flare.site.Site",
)
# How long FLARE's server keeps a job that has ended open for a site that does not say
# how it ended there; FLARE's own default is 900 seconds.
OUTCOME_VARIABLE = "NVFLARE_CLIENT_OUTCOME_WAIT_TIMEOUT"
_OUTCOME_SECONDS = 15.0
_CONNECT_SECONDS = 60.0


class LocalEnv(PocEnv):
    """FLARE's `PocEnv`, whose sites take jobs of this package and are waited for.

    FLARE's own starts a job with those sites that have connected after three seconds,
    and lets jobs name FLARE's classes only.

    Parameters
    ----------
    **given
        As for `nvflare.recipe.PocEnv`.
    """

    @classmethod
    def of(cls, env: PocEnv) -> LocalEnv:
        """Return the same environment as one of this class."""
        if isinstance(env, cls):
            return env
        made = cls(num_clients=env.num_clients)
        made.__dict__.update(env.__dict__)
        return made

    def begin(self) -> None:
        """Provision the sites, start them, and wait until all have connected.

        Raises
        ------
        FederationError
            If they do not connect.
        """
        self.provision()
        self.start()

    def provision(self) -> None:
        """Make the workspaces of the server and the sites anew."""
        if self._check_poc_running():
            self.stop(clean_up=True)
        prepare_poc_provision(
            clients=self.clients or [],
            number_of_clients=self.num_clients,
            workspace=self.poc_workspace,
            docker_image=self.docker_image,
            use_he=self.use_he,
            project_conf_path=self.project_conf_path,
            examples_dir=None,
        )
        for local in self.participants():
            allow_classes(local / "local")

    def start(self) -> None:
        """Start the server and the sites, and wait until all have connected.

        Raises
        ------
        FederationError
            If they do not connect, or if the server's port is taken.
        """
        check_port(self.participants())
        with variables({OUTCOME_VARIABLE: str(_OUTCOME_SECONDS)}):
            _start_poc(
                poc_workspace=self.poc_workspace,
                gpu_ids=self.gpu_ids,
                excluded=[self.username],
                services_list=[],
            )
        self._wait()

    def deploy(self, job: FedJob) -> str:
        """Start the sites and submit a job."""
        self.begin()
        submitted: str = self._get_session_manager().submit_job(job)
        return submitted

    def participants(self) -> list[Path]:
        """Return the workspaces of the server and the sites."""
        project, _ = setup_service_config(self.poc_workspace)
        folder = Path(get_prod_dir(self.poc_workspace, project["name"]))
        return sorted(one.parent for one in folder.glob("*/local") if one.is_dir())

    def session(self) -> Session:
        """Return a session of the submitter."""
        return new_secure_session(
            username=self.username,
            startup_kit_location=self._get_admin_startup_kit_path(),
        )

    def _wait(self) -> None:
        """Wait until all sites have connected."""
        deadline = time.monotonic() + _CONNECT_SECONDS
        connected: list[Any] = []
        while time.monotonic() < deadline:
            try:
                session = self.session()
            except Exception:  # the server is not there yet
                time.sleep(0.5)
                continue
            try:
                while time.monotonic() < deadline:
                    connected = session.get_connected_client_list()
                    if len(connected) >= self.num_clients:
                        return
                    time.sleep(0.25)
            finally:
                session.close()
        raise FederationError(
            f"{len(connected)} of {self.num_clients} sites have connected to the "
            f"server within {_CONNECT_SECONDS:g} s"
        )


def check_port(places: Sequence[Path]) -> None:
    """Refuse to start a server where another one listens.

    Parameters
    ----------
    places : sequence of Path
        Workspaces of the server and the sites.

    Raises
    ------
    FederationError
        If the server's port is taken.
    """
    for file in (place / "startup" / "fed_server.json" for place in places):
        if file.exists():
            target = json.loads(file.read_text())["servers"][0]["service"]["target"]
            port = int(target.rsplit(":", 1)[1])
            try:
                with socket.create_server(("", port)):
                    pass
            except OSError as error:
                raise FederationError(
                    f"port {port}, where FLARE's server is to listen, cannot be had "
                    f"({error.strerror}): perhaps another federation runs here"
                ) from error


def allow_classes(local: Path) -> None:
    """Add what a federation needs to the classes that FLARE lets jobs name.

    Parameters
    ----------
    local : Path
        A FLARE workspace's folder ``local``; it is made if need be.
    """
    own, default = local / "resources.json", local / "resources.json.default"
    file = own if own.exists() else default
    resources: dict[str, Any] = {"format_version": 2}
    if file.exists():
        resources = json.loads(file.read_text())
    allowed = resources.get(CLASS_ALLOW_LIST, list(DEFAULT_CLASS_ALLOW_LIST))
    allowed += [name for name in COMPONENT_CLASSES if name not in allowed]
    resources[CLASS_ALLOW_LIST] = allowed
    local.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(resources, indent=2) + "\n")
