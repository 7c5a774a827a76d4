"""`skppdnmf audit`: what the agents learn about each other's data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ._audit_report import audit_page
from ._options import (
    FILE_HELP,
    DataCommand,
    PositiveNumber,
    check_report,
    compute,
    data_options,
    make_estimator,
    read_input,
)
from ._outputs import write_text

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
    type=PositiveNumber(),
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
