"""`skppdnmf partial-fit`: further samples go into a model that is kept in a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import click
import numpy as np
from click.core import ParameterSource

from .._files.errors import CommandError, describe
from .._fit.protocols import protocol_of
from .._secure_sum.totals import Memory
from .errors import compute
from .fit import fit_finite, fit_page
from .options import (
    FILE_HELP,
    SumsCommand,
    check_report,
    data_options,
    make_estimator,
    read_input,
    weight_option,
)
from .outputs import check_output, check_writable, write_file, write_output, write_text
from .parameter_types import ArchiveFile, OutputPath
from .summary import summarise, summary_rows, what_is_not
from .terminal import format_table

HELP = f"""Let the samples in FILE go into the model in a file.

{FILE_HELP}

The model holds the left factor and the totals of earlier samples, which all agents
know, and none of these samples. If there is no such file the first batch makes it; each
further one is fitted from where the last has left it, `--forget-factor` of the earlier
totals counting as well, and the file is replaced.
"""

_ARRAYS = ("gram", "products", "squared_norm", "H")


@click.command("partial-fit", cls=SumsCommand, help=HELP)
@data_options
@click.option(
    "--model",
    type=ArchiveFile(),
    required=True,
    help="The model, which is read if it exists, and written.",
)
@weight_option
@click.option(
    "--out",
    metavar="DIRECTORY|FILE.npz",
    type=OutputPath(),
    help="Write components, history, and the right factor of this batch (W), as fit "
    "does.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print no summary and no progress.")
@click.pass_context
def partial_fit_command(
    ctx: click.Context,
    file: Path,
    model: Path,
    out: Path | None,
    report: Path | None,
    force: bool,
    image_shape: tuple[int, int] | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Let the samples in a file go into a model."""
    estimator = make_estimator(ctx, quiet)
    if not hasattr(estimator, "partial_fit"):
        raise CommandError(_reason(estimator))
    if out is not None:
        check_output(out, force)
    check_report(ctx)
    check_writable(model, True)
    began = not model.exists()
    if not began:
        given = ctx.get_parameter_source("n_components")
        _resume(estimator, model, given is not ParameterSource.DEFAULT)
    data = read_input(ctx, protocol_of(estimator).sums)
    started = time.perf_counter()
    W = compute(lambda: fit_finite(estimator, data, batch=True))
    summary = summarise(estimator, time.perf_counter() - started)
    write_file(model, lambda target: np.savez(target, **_arrays(estimator)))
    if out is not None:
        write_output(out, estimator, W, summary, data.is_table)
    if report is not None:
        page = fit_page(estimator, data.X, str(file), summary, image_shape)
        write_text(report, page)
    if not quiet:
        results = summary["results"]
        click.echo(format_table(summary_rows(results, what_is_not(estimator))))
        click.echo(f"{'begun' if began else 'replaced'}: {model}")
        for path in (out, report):
            if path is not None:
                click.echo(f"written: {path}")


def _reason(estimator: Any) -> str:
    """Return why there are no batches with these parameters."""
    try:
        estimator.partial_fit  # noqa: B018
    except AttributeError as error:
        return str(error.__cause__ or error)
    return ""


def _arrays(estimator: Any) -> dict[str, Any]:
    """Return what the file holds."""
    arrays = dict(zip(_ARRAYS, estimator.memory_, strict=True))
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        arrays["feature_names"] = np.array([str(name) for name in names])
    return arrays


def _resume(estimator: Any, model: Path, is_given: bool) -> None:
    """Have an estimator go on from a model, or refuse it."""
    try:
        # Numpy would leave a file open that is no archive.
        with model.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise CommandError(f"{model}: cannot be read: {describe(error)}") from error
    missing = [name for name in _ARRAYS if name not in arrays]
    if missing:
        raise CommandError(
            f"{model}: is no model of partial-fit, it has no {', '.join(missing)}"
        )
    gram, products, squared_norm, H = (
        np.asarray(arrays[name], dtype=np.float64) for name in _ARRAYS
    )
    fits = H.ndim == 2 and products.shape == H.shape and squared_norm.ndim == 0
    known = all(np.isfinite(each).all() for each in (gram, products, squared_norm, H))
    if not fits or gram.shape != (len(H), len(H)) or not known:
        raise CommandError(f"{model}: is no model of partial-fit, or is damaged")
    if is_given and estimator.n_components != len(H):
        raise CommandError(
            f"--n-components {estimator.n_components} although {model} has {len(H)}"
        )
    estimator.set_params(n_components=len(H))
    estimator.memory_ = Memory(gram, products, float(squared_norm), H)
    estimator.n_features_in_ = H.shape[1]
    if "feature_names" in arrays:
        names = [str(name) for name in arrays["feature_names"]]
        estimator.feature_names_in_ = np.array(names, dtype=object)
