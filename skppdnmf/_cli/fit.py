"""`skppdnmf fit`: factorise the data in a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._files.errors import FAILED, CommandError
from .._files.samples import Data
from .._fit.protocols import protocol_of
from ..plot import ComponentsDisplay, LearningCurveDisplay, NetworkDisplay
from ..plot._learning_curve import ERRORS
from .errors import NOT_CONVERGED, compute
from .options import (
    FILE_HELP,
    DataCommand,
    check_report,
    data_options,
    make_estimator,
    read_input,
    weight_option,
)
from .outputs import check_output, write_output, write_text
from .page import Page, new_figure
from .parameter_types import OutputPath
from .summary import (
    history_columns,
    parameter_rows,
    summarise,
    summary_rows,
    what_is_not,
)
from .terminal import format_table

HELP = f"""Factorise the data in FILE.

{FILE_HELP}

Prints what the fit came to. Rows and columns are counted from 0.
"""


@click.command("fit", cls=DataCommand, help=HELP)
@data_options
@weight_option
@click.option(
    "--out",
    metavar="DIRECTORY|FILE.npz",
    type=OutputPath(),
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
    check_report(ctx)
    data = read_input(ctx, protocol_of(estimator).sums)
    started = time.perf_counter()
    W = compute(lambda: fit_finite(estimator, data))
    summary = summarise(estimator, time.perf_counter() - started)
    if out is not None:
        write_output(out, estimator, W, summary, data.is_table)
    if report is not None:
        page = fit_page(estimator, data.X, str(file), summary, image_shape)
        write_text(report, page)
    if not quiet:
        rows = summary_rows(summary["results"], what_is_not(estimator))
        click.echo(format_table(rows))
        for path in (out, report):
            if path is not None:
                click.echo(f"written: {path}")
    if strict and ctx.obj.saw(ConvergenceWarning):
        raise CommandError("the fit did not converge (--strict)", NOT_CONVERGED)


def fit_finite(estimator: Any, data: Data, batch: bool = False) -> Any:
    """Fit an estimator and return the right factor, which is finite.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        To be fitted.
    data : Data
        The samples and their agents.
    batch : bool, default=False
        Whether they are a batch after others.

    Returns
    -------
    ndarray of shape (n_samples, n_components)
        The right factor.

    Raises
    ------
    CommandError
        If a factor is not finite.
    """
    weights = {} if data.weights is None else {"sample_weight": data.weights}
    if batch:
        W = estimator.partial_fit(data.X, agents=data.agents, **weights).transform(
            data.X
        )
    else:
        W = estimator.fit_transform(data.X, agents=data.agents, **weights)
    for factor in (W, estimator.components_):
        if not np.isfinite(factor).all():
            raise CommandError(
                "the fit failed: its factors are not finite. The iterations diverge "
                "with these parameters; the defaults of mu, eta, g_max and "
                "penalty_scaling suit data of any scale",
                FAILED,
            )
    return W


def fit_page(
    estimator: Any,
    X: Any,
    source: str,
    summary: dict[str, Any],
    image_shape: tuple[int, int] | None = None,
) -> str:
    """Return the HTML page on a fit.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        Fitted.
    X : {ndarray, sparse matrix, frame} of shape (n_samples, n_features)
        The training data.
    source : str
        What the page calls them.
    summary : dict
        From `summarise`.
    image_shape : tuple of int or None, default=None
        Shape of a component as an image.

    Returns
    -------
    str
        The page.
    """
    page = Page(f"Private distributed NMF of {source}")
    page.paragraph(f"skppdnmf {summary['version']}")
    protocol = protocol_of(estimator)
    if protocol.protects(estimator):
        page.paragraph(protocol.protection(estimator))
    else:
        page.paragraph(
            f"encryption={estimator.encryption!r}: nothing was encrypted. This fit "
            "shows what the encrypted one computes; it protects nothing.",
            warning=True,
        )
    page.heading("Results")
    page.table(summary_rows(summary["results"], what_is_not(estimator)))
    page.heading("Learning curve")
    figure, ax = new_figure(7.0, 4.2)
    history = history_columns(estimator)
    errors = [name for name in ERRORS if name in history]
    LearningCurveDisplay.from_estimator(estimator, errors=errors or None, ax=ax)
    page.figure(figure, "Errors against the exchanges")
    columns = [column.tolist() for column in history.values()]
    page.table(
        [
            (k, *(_number(value) for value in row))
            for k, row in enumerate(zip(*columns, strict=True), start=1)
        ],
        header=["iteration", *(name.replace("_", " ") for name in history)],
        folded="All iterations",
    )
    page.heading("Components")
    n_components = int(estimator.n_components_)
    if image_shape is None:
        figure, ax = new_figure(8.0, min(12.0, 2.2 + 0.3 * n_components))
    else:
        figure, ax = new_figure(8.0, 0.6 + 1.7 * -(-n_components // 5))
    # One feature of large numbers would hide the rest of a table.
    scale = "feature" if image_shape is None else "component"
    ComponentsDisplay.from_estimator(
        estimator, image_shape=image_shape, scale=scale, ax=ax
    )
    whose = "common to all agents" if protocol.agrees else "mean of the agents' copies"
    scaled = {
        "feature": "and then by its feature's, in whichever component",
        "component": "so that only proportions within a component show",
    }
    page.figure(
        figure,
        f"The left factor, {whose}. Each weight is divided by the largest of its "
        f"component, {scaled[scale]}.",
    )
    page.heading("Agents")
    figure, ax = new_figure(7.0, 5.2)
    NetworkDisplay.from_estimator(estimator, X, ax=ax)
    page.figure(figure, "The graph of the agents")
    sizes = np.bincount(
        estimator.sample_agents_, minlength=len(estimator.agent_labels_)
    )
    degrees = estimator.adjacency_.sum(axis=1)
    page.table(
        zip(estimator.agent_labels_, sizes, degrees, strict=True),
        header=["agent", "samples", "neighbours"],
        folded="All agents",
    )
    page.heading("Parameters")
    page.table(parameter_rows(summary["parameters"]))
    return page.render()


def _number(value: float) -> str:
    """Return a number with as many digits as people read."""
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}"
