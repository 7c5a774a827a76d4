"""`skppdnmf federate`: submits a run to the sites of a federation, and follows it."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import click

from .._estimator import PrivateDistributedNMF
from .._files.errors import FAILED, CommandError, describe
from .._text import format_bytes
from ..exceptions import FederationError
from .options import PARAMETERS, estimator_options
from .parameter_types import Number
from .terminal import on_terminal

# What concerns one process that has all data.
_NOT_FEDERATED = ("n_jobs", "partition", "verbose")


class FederateCommand(click.Command):
    """A command with the estimator's options, less those of one process."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = {param.name for param in self.params}
        self.params = [
            *self.params,
            *(
                option
                for option in estimator_options()
                if option.name not in (*_NOT_FEDERATED, *own)
            ),
        ]


def require_flare() -> None:
    """Refuse to go on without FLARE.

    Raises
    ------
    CommandError
        If it is not installed.
    """
    try:
        import nvflare  # noqa: F401
    except ImportError as error:
        raise CommandError(
            'a federation needs NVIDIA FLARE: pip install "skppdnmf[flare]"'
        ) from error


@click.command(cls=FederateCommand)
@click.option(
    "--env",
    "kind",
    type=click.Choice(["poc", "sim", "prod"]),
    default="prod",
    show_default=True,
    help="prod: the sites of a FLARE project. poc: sites as processes of this machine. "
    "sim: sites in FLARE's simulator.",
)
@click.option(
    "--startup-kit",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="prod: the folder of the submitter's FLARE startup kit.",
)
@click.option("--user", default="admin@nvidia.com", show_default=True, help="prod.")
@click.option(
    "--sites",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="poc and sim: a folder with a folder and skppdnmf.toml for each site.",
)
@click.option(
    "--workspace",
    type=click.Path(file_okay=False, path_type=Path),
    help="poc and sim: where FLARE keeps its own files.",
)
@click.option("--dataset", default="cohort", show_default=True, help="Its name.")
@click.option("--min-sites", type=click.IntRange(min=2), default=3, show_default=True)
@click.option(
    "--timeout",
    type=Number(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds that a site may take for one answer.",
)
@click.option(
    "--return-components",
    is_flag=True,
    help="Ask for the components; sites whose policy forbids it refuse the job.",
)
@click.option(
    "--weighted", is_flag=True, help="Samples have weights, at sites that name them."
)
@click.option(
    "--missing", is_flag=True, help="Entries may be missing, at sites that allow it."
)
@click.option("--resume", metavar="RUN", help="Start from what a run has left.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --return-components: where they are written, as .npz.",
)
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
@click.pass_context
def federate(
    ctx: click.Context,
    kind: str,
    startup_kit: Path | None,
    user: str,
    sites: Path | None,
    workspace: Path | None,
    dataset: str,
    min_sites: int,
    timeout: float,
    return_components: bool,
    weighted: bool,
    missing: bool,
    resume: str | None,
    out: Path | None,
    quiet: bool,
    **parameters: Any,
) -> None:
    """Submit a federated fit, and follow it to its end.

    The sites' own skppdnmf.toml decide whether it is run. Each site that holds data
    has the result in its own folder.
    """
    require_flare()
    if out is not None and not return_components:
        raise CommandError("--out is for --return-components, which is not given")
    if kind == "prod" and startup_kit is None:
        raise CommandError("--env prod needs --startup-kit")
    if kind != "prod" and (sites is None or workspace is None):
        raise CommandError(f"--env {kind} needs --sites and --workspace")
    known = {name: parameters[name] for name in parameters if name in PARAMETERS}
    try:
        from ..flare.recipe import NMFRecipe

        recipe = NMFRecipe(
            PrivateDistributedNMF(**known),
            dataset,
            min_sites=min_sites,
            timeout=timeout,
            return_components=return_components,
            resume=resume,
            weighted=weighted,
            missing=missing,
        )
    except ValueError as error:
        raise CommandError(describe(error)) from error
    from ..flare.submit import submit

    names = [] if sites is None else _site_names(sites)
    with RunBar(int(parameters["max_iter"]), quiet) as bar:
        try:
            outcome = submit(
                recipe, kind, bar.show, names, sites, workspace, startup_kit, user
            )
        except FederationError as error:
            raise CommandError(f"failed: {describe(error)}", FAILED) from error
        finally:
            # Connections of a session that has ended go on complaining.
            logging.disable(logging.CRITICAL)
    if outcome["ended"] != "finished":
        raise CommandError(f"failed: {outcome['ended']}", FAILED)
    click.echo(
        f"run {outcome['run']}: {outcome['iteration']} iterations, "
        f"{len(outcome['sites'])} sites, {format_bytes(outcome['bytes'])}, "
        f"{outcome['seconds']:.1f} s"
    )
    if out is not None and outcome["components"]:
        shutil.copyfile(outcome["components"], out)
        click.echo(f"components: {out}")


def _site_names(sites: Path) -> list[str]:
    """Return the names of the folders of sites."""
    names = sorted(
        (one.parent.name for one in sites.glob("*/skppdnmf.toml")),
        key=lambda name: (len(name), name),
    )
    if not names:
        raise CommandError(f"{sites}: holds no folder with a skppdnmf.toml")
    return names


class RunBar:
    """A progress bar of a run that is elsewhere.

    Parameters
    ----------
    max_iter : int
        Its length.
    quiet : bool
        Whether nothing is shown; nor is it without a terminal.
    """

    def __init__(self, max_iter: int, quiet: bool) -> None:
        self._max_iter = max_iter
        self._shown = on_terminal() and not quiet
        self._bar: Any = None

    def __enter__(self) -> RunBar:
        if self._shown:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=self._max_iter, unit="it", desc="federation")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, state: dict[str, Any]) -> None:
        """Show how far the run is."""
        if self._bar is None:
            return
        error = state.get("error")
        known = f"error {error:.4f}, " if error is not None else ""
        self._bar.set_postfix_str(
            f"{known}{len(state['sites'])} sites, {format_bytes(state['bytes'])}",
            refresh=False,
        )
        self._bar.n = min(int(state["iteration"]), self._max_iter)
        self._bar.refresh()
