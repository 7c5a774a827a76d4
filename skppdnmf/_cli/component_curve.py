"""`skppdnmf component-curve`: how many components the data in a file have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from .._files.errors import CommandError
from .._fit.protocols import protocol_of
from ..model_selection import COLUMNS, ComponentCurve, component_curve
from .errors import compute
from .options import (
    FILE_HELP,
    SumsCommand,
    check_report,
    data_options,
    make_estimator,
    read_input,
)
from .outputs import as_csv, check_writable, write_text
from .page import Page, new_figure
from .parameter_types import CsvFile, Numbers
from .summary import parameter_rows, plain
from .terminal import format_table

HELP = f"""Find how many components the data in FILE have.

{FILE_HELP}

Fits each number under the secure sum: with some entries held out, whose error is
printed, and from several starts, whose components are compared. The number marked is
the fewest whose error is within a standard error of the least.
"""


@click.command("component-curve", cls=SumsCommand, help=HELP)
@data_options
@click.option(
    "--n-components",
    type=Numbers(),
    default="2-12",
    show_default=True,
    help="Numbers of components: from one to another (2-12), or several (2,4,8).",
)
@click.option(
    "--n-masks",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="How often other entries are held out.",
)
@click.option(
    "--n-starts",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Starts whose components are compared.",
)
@click.option(
    "--test-size",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.1,
    show_default=True,
    help="Share of the entries that is held out.",
)
@click.option("--out", type=CsvFile(), help="Write the table.")
@click.option("--quiet", "-q", is_flag=True, help="Print no table and no progress.")
@click.pass_context
def component_curve_command(
    ctx: click.Context,
    file: Path,
    n_components: list[int],
    n_masks: int,
    n_starts: int,
    test_size: float,
    out: Path | None,
    report: Path | None,
    force: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Find how many components the data in a file have."""
    estimator = make_estimator(ctx, quiet)
    estimator.set_params(n_components="auto", verbose=0)
    if out is not None:
        check_writable(out, force)
    check_report(ctx)
    if ctx.params["image_shape"] is not None:
        raise CommandError("--image-shape is for components, of which none are drawn")
    data = read_input(ctx, protocol_of(estimator).sums)
    curve = compute(
        lambda: component_curve(
            estimator,
            data.X,
            n_components=n_components,
            agents=data.agents,
            n_masks=n_masks,
            n_starts=n_starts,
            test_size=test_size,
            random_state=ctx.params["random_state"],
            verbose=0 if quiet else ctx.params["verbose"],
        )
    )
    columns = [np.asarray(curve.table[name]).tolist() for name in COLUMNS]
    rows = list(zip(*columns, strict=True))
    if out is not None:
        write_text(out, as_csv(COLUMNS, rows))
    shown = _shown(rows, curve.best_n_components)
    if report is not None:
        write_text(report, _page(curve, shown, str(file), estimator))
    if not quiet:
        click.echo(format_table(shown))
        for path in (out, report):
            if path is not None:
                click.echo(f"written: {path}")


def _shown(rows: list[tuple[Any, ...]], best: int) -> list[tuple[str, ...]]:
    """Return the table as people read it, the chosen number marked."""
    heading = ("components", *(name.replace("_", " ") for name in COLUMNS[1:]), "")
    lines = [
        (f"{K}", *(f"{value:.4f}" for value in values), "chosen" if K == best else "")
        for K, *values in rows
    ]
    return [heading, *lines]


def _page(
    curve: ComponentCurve, shown: list[tuple[str, ...]], source: str, estimator: Any
) -> str:
    """Return the HTML page: table, figure and parameters."""
    page = Page(f"How many components: {source}")
    page.paragraph(
        f"{curve.best_n_components} components: the fewest whose error of held-out "
        "entries is within a standard error of the least."
    )
    figure, ax = new_figure(9.0, 3.6)
    ax.remove()
    curve.display.plot(figure.subplots(1, 2))
    page.figure(figure, "Error of held-out entries, and stability over starts")
    page.table(shown[1:], header=shown[0])
    page.paragraph(
        f"{curve.cost.fits} fits, at most {curve.cost.exchanges:,} exchanges and "
        f"{curve.cost.bytes / 1e6:,.1f} MB over all links."
    )
    page.heading("Parameters")
    parameters = {k: plain(v) for k, v in estimator.get_params().items()}
    page.table(parameter_rows(parameters))
    return page.render()
