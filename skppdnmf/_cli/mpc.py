"""`skppdnmf mpc`: take part in secure multi-party computation, at a site."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy import sparse

from .._data.checks import check_fixed
from .._files.errors import FAILED, CommandError, describe
from .._mpc.engine import require_spu
from .._mpc.job import MpcJob, read_job
from .._mpc.party import Outcome, Site
from .._sealing.identity import Identity, read_public
from .._site.folder import SiteFolder, read_folder
from .._site.log import SiteLog
from .._site.policy import Job
from .._site.samples import read_samples
from ..exceptions import PolicyError

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
