"""`skppdnmf audit`: what the agents learn about each other's data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .._version import __version__
from ..plot._leakage import LeakageDisplay
from .errors import compute
from .options import (
    FILE_HELP,
    DataCommand,
    check_report,
    data_options,
    make_estimator,
    read_input,
)
from .outputs import write_text
from .page import Page, new_figure
from .parameter_types import Number
from .summary import parameter_rows, plain

_COLUMNS = ("protection", "attack", "attacker", "victim", "target")

HELP = f"""Measure what the agents of a fit learn about each other's data.

{FILE_HELP}

Fits, records what each agent sees, and runs attacks on it. Rows and columns are
counted from 0.
"""


@click.command("audit", cls=DataCommand, help=HELP)
@data_options
@click.option(
    "--max-rounds",
    type=click.IntRange(min=1),
    help="Exchanges of the left factor to record.",
)
@click.option(
    "--max-samples",
    type=click.IntRange(min=1),
    help="Simulate agents with so many samples at most.",
)
@click.option(
    "--max-seconds",
    type=Number(min=0, min_open=True),
    help="Time for all simulations together.",
)
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
@click.pass_context
def audit(
    ctx: click.Context,
    file: Path,
    report: Path | None,
    image_shape: tuple[int, int] | None,
    force: bool,
    quiet: bool,
    max_rounds: int | None,
    max_samples: int | None,
    max_seconds: float | None,
    **options: Any,
) -> None:
    """Measure what the agents learn about each other's data."""
    estimator = make_estimator(ctx, quiet)
    check_report(ctx)
    data = read_input(ctx)
    # Here, for it brings in all attacks.
    from ..audit import audit_report

    limits: dict[str, Any] = {
        "max_rounds": max_rounds,
        "max_samples": max_samples,
        "max_seconds": max_seconds,
    }
    given = {name: value for name, value in limits.items() if value is not None}
    result = compute(lambda: audit_report(estimator, data.X, data.agents, **given))
    click.echo(str(result))
    if report is not None:
        page = audit_page(result, str(file), estimator.get_params(), image_shape)
        write_text(report, page)
        click.echo(f"written: {report}")


def audit_page(
    result: Any,
    source: str,
    parameters: dict[str, Any],
    image_shape: tuple[int, int] | None = None,
) -> str:
    """Return the HTML page on an audit.

    Parameters
    ----------
    result : AuditReport
        What `audit_report` returns.
    source : str
        What the page calls the data.
    parameters : dict
        The estimator's.
    image_shape : tuple of int or None, default=None
        Shape of a sample as an image.

    Returns
    -------
    str
        The page.
    """
    page = Page(f"What the agents learn: an audit of {source}")
    page.paragraph(f"skppdnmf {__version__}")
    page.text(str(result))
    worst = result.worst
    # Nobody's data are shown without need.
    if worst is not None and worst.truth is not None and worst.recovered > 0:
        page.heading("The greatest leak")
        page.paragraph(
            f"The figure shows data of agent {worst.victim!r}: guard it like these.",
            warning=True,
        )
        figure, ax = new_figure(7.0, 4.0)
        LeakageDisplay.from_leakage(worst, image_shape=image_shape, ax=ax)
        page.figure(figure, str(worst))
    records = [
        (
            *(record[name] for name in _COLUMNS),
            *(f"{record[name]:.4g}" for name in ("error", "guess_error", "recovered")),
        )
        for record in result.to_dict()
    ]
    page.table(
        records,
        header=[*_COLUMNS, "error", "error of guessing", "recovered"],
        folded="All attacks",
    )
    page.heading("Parameters")
    page.table(parameter_rows({k: plain(v) for k, v in parameters.items()}))
    return page.render()
