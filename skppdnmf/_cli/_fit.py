"""`skppdnmf fit`: factorise the data in a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ._data import Data
from ._errors import FAILED, NOT_CONVERGED, CommandError
from ._fit_report import fit_page
from ._options import (
    FILE_HELP,
    DataCommand,
    GivenPath,
    check_report,
    compute,
    data_options,
    format_table,
    make_estimator,
    read_input,
)
from ._outputs import check_output, write_output, write_text
from ._summary import summarise, summary_rows

HELP = f"""Factorise the data in FILE.

{FILE_HELP}

Prints what the fit came to. Rows and columns are counted from 0.
"""


@click.command("fit", cls=DataCommand, help=HELP)
@data_options
@click.option(
    "--out",
    metavar="DIRECTORY|FILE.npz",
    type=GivenPath(),
    help="Write components, right factor (W), history, graph, and which agent holds "
    "which sample. A directory gets components.csv too if FILE is a table.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print no summary and no progress.")
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with 3 if the fit does not converge; its results are still written.",
)
@click.pass_context
def fit(
    ctx: click.Context,
    file: Path,
    out: Path | None,
    report: Path | None,
    force: bool,
    image_shape: tuple[int, int] | None,
    quiet: bool,
    strict: bool,
    **options: Any,
) -> None:
    """Factorise the data in a file."""
    estimator = make_estimator(ctx, quiet)
    if out is not None:
        check_output(out, force)
        if report is not None and out.resolve() == report.resolve():
            raise CommandError(f"{out}: is both --out and --report")
    check_report(ctx)
    data = read_input(ctx)
    started = time.perf_counter()
    W = compute(lambda: fit_finite(estimator, data))
    summary = summarise(estimator, time.perf_counter() - started)
    if out is not None:
        write_output(out, estimator, W, summary, data.is_table)
    if report is not None:
        page = fit_page(estimator, data.X, str(file), summary, image_shape)
        write_text(report, page)
    if not quiet:
        click.echo(format_table(summary_rows(summary["results"])))
        for path in (out, report):
            if path is not None:
                click.echo(f"written: {path}")
    if strict and ctx.obj.saw(ConvergenceWarning):
        raise CommandError("the fit did not converge (--strict)", NOT_CONVERGED)


def fit_finite(estimator: Any, data: Data) -> Any:
    """Fit an estimator and return the right factor, which is finite.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        To be fitted.
    data : Data
        The samples and their agents.

    Returns
    -------
    ndarray of shape (n_samples, n_components)
        The right factor.

    Raises
    ------
    CommandError
        If a factor is not finite.
    """
    W = estimator.fit_transform(data.X, agents=data.agents)
    for factor in (W, estimator.components_):
        if not np.isfinite(factor).all():
            raise CommandError(
                "the fit failed: its factors are not finite. The iterations diverge "
                "with these parameters; the defaults of mu, eta, g_max and "
                "penalty_scaling suit data of any scale",
                FAILED,
            )
    return W
