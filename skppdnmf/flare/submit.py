"""Submits a recipe in any of FLARE's environments, and follows the run to its end."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nvflare.fuel.flare_api.flare_api import new_secure_session
from nvflare.recipe import ProdEnv, SimEnv

from ..exceptions import FederationError
from .environment import variables
from .follow import follow
from .local import LocalEnv
from .recipe import NMFRecipe
from .results import COMPONENTS
from .run import OUTCOME
from .site import SITES_VARIABLE


def submit(
    recipe: NMFRecipe,
    kind: str,
    show: Callable[[dict[str, Any]], None],
    names: Sequence[str] = (),
    sites: Path | None = None,
    workspace: Path | None = None,
    startup_kit: Path | None = None,
    user: str = "",
) -> dict[str, Any]:
    """Submit a recipe and follow the run.

    Parameters
    ----------
    recipe : NMFRecipe
        Not yet executed.
    kind : {"poc", "sim", "prod"}
        Of environment.
    show : callable
        As for `follow`; never called under "sim".
    names : sequence of str
        Of the sites, under "poc" and "sim".
    sites, workspace : Path or None
        Under "poc" and "sim" the sites' folders, and where FLARE keeps its files.
    startup_kit : Path or None
        Under "prod" the submitter's.
    user : str
        Under "prod" the submitter's name.

    Returns
    -------
    dict
        As `follow` returns it.

    Raises
    ------
    FederationError
        If FLARE cannot start the sites, or does not take the job.
    """
    if kind == "prod":
        assert startup_kit is not None
        with quiet():
            env = ProdEnv(startup_kit_location=str(startup_kit), username=user)
            run = recipe.run(env)
            session = new_secure_session(user, str(startup_kit))
        with contextlib.closing(session):
            return follow(session, run.get_job_id(), show)
    assert sites is not None
    assert workspace is not None
    with variables({SITES_VARIABLE: str(sites.resolve())}):
        if kind == "sim":
            return _simulate(recipe, names, workspace.resolve())
        return submit_locally(recipe, local_env(names, workspace), show)


def local_env(names: Sequence[str], workspace: Path) -> LocalEnv:
    """Return an environment of sites as processes of this machine.

    Parameters
    ----------
    names : sequence of str
        Of the sites.
    workspace : Path
        Where FLARE keeps its files; made anew.

    Returns
    -------
    LocalEnv
    """
    with variables({"NVFLARE_POC_WORKSPACE": str(workspace.resolve())}):
        return LocalEnv(clients=list(names), num_clients=len(names))


def submit_locally(
    recipe: NMFRecipe, env: LocalEnv, show: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Start the sites, submit a recipe, follow it, and stop the sites.

    Parameters
    ----------
    recipe : NMFRecipe
        Not yet executed.
    env : LocalEnv
        Its sites inherit the environment variables of this process.
    show : callable
        As for `follow`.

    Returns
    -------
    dict
        As `follow` returns it.
    """
    try:
        with quiet():
            run = recipe.run(env)
            session = env.session()
        try:
            return follow(session, run.get_job_id(), show)
        finally:
            session.close()
    finally:
        with quiet():
            env.stop(clean_up=False)


def _simulate(
    recipe: NMFRecipe, names: Sequence[str], workspace: Path
) -> dict[str, Any]:
    """Run in FLARE's simulator, and return how it ended."""
    with quiet():
        recipe.run(SimEnv(clients=list(names), workspace_root=str(workspace)))
    found = max(
        workspace.rglob(OUTCOME), key=lambda one: one.stat().st_mtime, default=None
    )
    if found is None:
        raise FederationError(f"the simulator has left no {OUTCOME} in {workspace}")
    outcome: dict[str, Any] = json.loads(found.read_text())
    components = found.parent / COMPONENTS
    return {
        **outcome,
        "status": outcome["ended"],
        "folder": str(found.parent),
        "components": str(components) if components.exists() else None,
    }


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep to itself what FLARE prints."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
