"""`skppdnmf audit`: what the agents learn about each other's data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from scipy import sparse

from .._files.errors import CommandError
from .._files.samples import read_data
from .._files.tables import TABLE_KINDS, kind_of
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
from .parameter_types import InputFile, Number
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
@click.option(
    "--references",
    type=InputFile(),
    metavar="FILE",
    help="Other samples of the same kind that no agent holds, in a file laid out as "
    "FILE: what an attacker knows beforehand, and is to tell from members. Without it "
    "half of the samples are held out for that.",
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
    references: Path | None,
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
    if references is not None:
        given["references"] = read_references(ctx, references, data.X)
    result = compute(lambda: audit_report(estimator, data.X, data.agents, **given))
    click.echo(str(result))
    if report is not None:
        page = audit_page(result, str(file), estimator.get_params(), image_shape)
        write_text(report, page)
        click.echo(f"written: {report}")


def read_references(ctx: click.Context, path: Path, X: Any) -> Any:
    """Read samples that no agent holds, with the features of those that some do.

    Parameters
    ----------
    ctx : click.Context
        Of the command.
    path : Path
        A file laid out as the command's: its column of agents, if it has one, and
        those that are dropped are left out here, too.
    X : ndarray, sparse matrix or pandas.DataFrame
        The agents' samples.

    Returns
    -------
    ndarray or pandas.DataFrame of shape (n_references, n_features)

    Raises
    ------
    CommandError
        If the file cannot be read, or has other features.
    """
    agents, drop = ctx.params["agents"], ctx.params["drop"]
    if agents is not None and not Path(agents).is_file():
        drop = (*drop, agents)
    header = ctx.params["header"]
    if kind_of(path) not in TABLE_KINDS or kind_of(path) == "parquet":
        header = None  # it is about the other file
    found = read_data(path, drop=drop, header=header).X
    if found.shape[1] != X.shape[1]:
        raise CommandError(
            f"--references {path}: has {found.shape[1]} features, but "
            f"{ctx.params['file']} has {X.shape[1]}"
        )
    names = [list(getattr(one, "columns", ())) for one in (found, X)]
    if all(names) and names[0] != names[1]:
        first, other = next(
            pair for pair in zip(*names, strict=True) if pair[0] != pair[1]
        )
        raise CommandError(
            f"--references {path}: has a column {first!r} where {ctx.params['file']} "
            f"has {other!r}"
        )
    return found.toarray() if sparse.issparse(found) else found


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
