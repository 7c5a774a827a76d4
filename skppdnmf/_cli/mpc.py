"""`skppdnmf mpc`: take part in secure multi-party computation, at a site."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy import sparse

from .._data.checks import check_fixed
from .._files.errors import BAD_INPUT, FAILED, CommandError, describe
from .._mpc.engine import require_spu
from .._mpc.job import MpcJob, read_job
from .._mpc.party import Outcome, Site
from .._sealing.identity import Identity, read_public
from .._site.folder import SiteFolder, read_folder
from .._site.log import SiteLog
from .._site.policy import Job
from .._site.samples import read_samples
from ..exceptions import PolicyError

_PARENT = "SKPPDNMF_MPC_PARENT"  # the process that supervises this one
_LOOK = 0.2  # seconds between looks after it

HELP = """Take part in the secure multi-party computation that JOB describes.

JOB is a TOML file that is the same at all sites: the sites' addresses, the three that
compute, the data set, and the parameters. The site's own folder has its identity, the
roster of public keys, the data set, and the policy, in its skppdnmf.toml.

Nobody learns more than the components, as long as no two of the three that compute
collude. Needs the extra [mpc].

Exit codes: 0 success, 1 a failed computation or a site that is lost, 2 a run that the
policy or another site refuses, or wrong files.
"""


@click.command("mpc", help=HELP)
@click.argument("job", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--site",
    "folder",
    metavar="DIRECTORY",
    default=".",
    type=click.Path(path_type=Path),
    help="The site's folder, which has its skppdnmf.toml.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print no progress.")
def mpc(job: Path, folder: Path, quiet: bool) -> None:
    """Take part in a run."""
    read = read_job(job)
    site = read_folder(folder)
    watched = os.environ.get(_PARENT)
    if watched is None:
        words = ["mpc", str(job), "--site", str(folder), *["--quiet"] * quiet]
        sys.exit(supervised([sys.executable, "-m", "skppdnmf", *words], site.name))
    threading.Thread(target=_end_with, args=(int(watched),), daemon=True).start()
    log = SiteLog(site.log, run=read.name, protocol="mpc")
    try:
        require_spu()
        party = _prepared(read, site, quiet)
    except (PolicyError, ImportError, ValueError, OSError) as error:
        log.note("refused", reason=describe(error))
        raise CommandError(describe(error)) from error
    log.note("begun", sites=list(read.sites), parties=list(read.parties))
    try:
        outcome = party.run()
    except BaseException as error:
        log.note("failed", reason=describe(error))
        click.echo(f"Error: {type(error).__name__}: {describe(error)}", err=True)
        refused = isinstance(error, PolicyError)
        sys.stdout.flush()
        sys.stderr.flush()
        # Links to sites that are lost do not always let a process end by itself.
        os._exit(2 if refused else FAILED)
    target = _written(read, site, outcome)
    log.note("finished", n_samples=outcome.n_samples, opened=outcome.opened)
    opened = ", ".join(f"{name} ({n})" for name, n in outcome.opened.items())
    click.echo(f"{target}: components of {outcome.n_samples} samples; opened: {opened}")


def supervised(command: list[str], name: str) -> int:
    """Run a command in a process of its own, whose end by a signal gets a name.

    Where a site is lost in the middle of a message, SPU's links may take the process
    with them before it can say anything.

    Parameters
    ----------
    command : list of str
        What is run; it ends when this process does.
    name : str
        Of the site.

    Returns
    -------
    int
        The exit code.
    """
    environment = {**os.environ, _PARENT: str(os.getpid())}
    with subprocess.Popen(command, env=environment) as process:
        code = process.wait()
    if code in (0, FAILED, BAD_INPUT):
        return code
    click.echo(
        f"Error: DropoutError: {name}: SPU ended by exit code {code}, as it may where "
        "a site is lost in the middle of a message",
        err=True,
    )
    return FAILED


def _end_with(parent: int) -> None:
    """End this process, whatever it waits for, when its parent has ended."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(FAILED)


def _prepared(job: MpcJob, site: SiteFolder, quiet: bool) -> Site:
    """Check the job against the policy, then read the samples."""
    absent = [name for name in job.sites if name not in site.roster]
    if absent:
        raise ValueError(f"{absent[0]!r} of the job is not in the roster of the site")
    if site.name not in job.sites:
        raise ValueError(
            f"{site.name!r} is not among the job's sites {list(job.sites)}"
        )
    identity = Identity.load(site.identity)
    roster = {name: read_public(site.roster[name]) for name in job.sites}
    if roster[site.name] != identity.public:
        raise ValueError(f"the roster has another key of {site.name!r} than its own")
    site.policy.check(
        Job("mpc", len(job.sites), job.n_components, job.n_init, job.max_iter)
    )
    X, weights = read_samples(site, job.dataset)
    if weights is not None:
        raise CommandError(
            f"{job.dataset}: has weights, which are not for shares; name a data set "
            "without"
        )
    features = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    check_fixed(job.fixed_components, job.n_components, X.shape[1], "the job")
    return Site(
        job,
        site.name,
        identity,
        roster,
        X,
        features,
        lambda others: site.policy.check_samples(others, job.n_components),
        None if quiet else lambda k: click.echo(f"iteration {k} of {job.max_iter}"),
    )


def _written(job: MpcJob, site: SiteFolder, outcome: Outcome) -> Path:
    """Write the components into a folder of the run's name."""
    folder = site.results / job.name
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "components.npz"
    given: dict[str, Any] = {"components": outcome.components}
    np.savez(target, **given)
    return target
