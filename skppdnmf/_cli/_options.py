"""What the commands on a file of data share: options, estimator, progress."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from .._estimator import PrivateDistributedNMF
from ..exceptions import DropoutError
from ._data import Data, read_data
from ._errors import FAILED, CommandError, describe
from ._outputs import check_report_name, check_writable
from ._values import given_parameters, parameter_options

FILE_HELP = """FILE is a matrix with a sample in each row: .npy, .npz (an array X, the
only array, or a sparse matrix saved by scipy), Matrix Market (.mtx, .mtx.gz), or a
table (.csv, .tsv, .parquet) whose columns are the features."""


class DataCommand(click.Command):
    """A command on a file of data; the help shows the estimator's options apart."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        shown = {"verbose": "1 on a terminal, else 0"}
        self._parameters = parameter_options(PrivateDistributedNMF, shown)
        self.params = [*self.params, *self._parameters]

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the help on the options in two sections.

        Parameters
        ----------
        ctx : click.Context
            Of the command.
        formatter : click.HelpFormatter
            Takes the text.
        """
        for title, own in (("Options", True), ("Parameters of the estimator", False)):
            records = [
                record
                for param in self.get_params(ctx)
                if isinstance(param, click.Option)
                and (param not in self._parameters) is own
                and (record := param.get_help_record(ctx)) is not None
            ]
            with formatter.section(title):
                formatter.write_dl(records)


def refuse_empty(value: Any, param: click.Parameter | None) -> None:
    """Refuse an empty text, of which a path would make the current directory.

    Parameters
    ----------
    value : object
        As given.
    param : click.Parameter or None
        The option or argument.

    Raises
    ------
    CommandError
        If it is a text of nothing but white space.
    """
    if isinstance(value, str) and not value.strip():
        is_option = isinstance(param, click.Option)
        name = param.opts[0] if is_option else "FILE"  # type: ignore[union-attr]
        raise CommandError(f"{name} {value!r}: should not be empty")


class GivenText(click.types.StringParamType):
    """A text that is not empty."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the text.

        Parameters
        ----------
        value : str
            As given.
        param : click.Parameter or None
            The option.
        ctx : click.Context or None
            Where it was given.

        Returns
        -------
        str
            The same.

        Raises
        ------
        CommandError
            If it is empty.
        """
        refuse_empty(value, param)
        return super().convert(value, param, ctx)


class GivenPath(click.Path):
    """A path that is not empty; what is there is checked elsewhere."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the path.

        Parameters
        ----------
        value : str
            As given.
        param : click.Parameter or None
            The option or argument.
        ctx : click.Context or None
            Where it was given.

        Returns
        -------
        Path
            Of a file or directory.

        Raises
        ------
        CommandError
            If it is empty.
        """
        refuse_empty(value, param)
        return super().convert(value, param, ctx)


class PositiveNumber(click.ParamType):
    """A finite number above 0."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the number.

        Parameters
        ----------
        value : str
            As given.
        param : click.Parameter or None
            The option.
        ctx : click.Context or None
            Not used.

        Returns
        -------
        float
            Checked.

        Raises
        ------
        CommandError
            If it is not a number, not finite or not above 0.
        """
        refuse_empty(value, param)
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            name = self.name if param is None else param.opts[0]
            raise CommandError(f"{name} {value}: should be a finite number above 0")
        return number


class ImageShape(click.ParamType):
    """Rows and columns of an image, as 8x8."""

    name = "ROWSxCOLUMNS"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the shape.

        Parameters
        ----------
        value : str
            As given.
        param : click.Parameter or None
            The option.
        ctx : click.Context or None
            Not used.

        Returns
        -------
        tuple of int
            Rows and columns.

        Raises
        ------
        CommandError
            If these are not two numbers.
        """
        if not isinstance(value, str):
            return value
        rows, _, columns = value.lower().partition("x")
        if not (rows.isdecimal() and columns.isdecimal() and int(rows) * int(columns)):
            raise CommandError(
                f"--image-shape {value}: should be rows x columns, such as 8x8"
            )
        return int(rows), int(columns)


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument and the options that say what the data are.

    Parameters
    ----------
    command : callable
        The function of a command.

    Returns
    -------
    callable
        The same, for `click.command`.
    """
    options = (
        click.argument("file", type=GivenPath()),
        click.option(
            "--agents",
            type=GivenText(),
            metavar="COLUMN|FILE",
            help="Which agent holds which sample: a column of FILE, by name or number "
            "from 0, which is then no feature; or a file with a label in each line, or "
            "an .npy file.",
        ),
        click.option(
            "--drop",
            type=GivenText(),
            metavar="COLUMN",
            multiple=True,
            help="Leave a column out, by name or number from 0. May be repeated.",
        ),
        click.option(
            "--header/--no-header",
            default=None,
            help="Whether the first line of a .csv or .tsv file holds names. Without "
            "either, a first line of numbers is taken for data unless it counts the "
            "columns from 0 or 1.",
        ),
        click.option(
            "--report",
            metavar="FILE.html",
            type=GivenPath(),
            help="Write a report with figures, in one HTML file.",
        ),
        click.option(
            "--image-shape",
            type=ImageShape(),
            metavar="ROWSxCOLUMNS",
            help="Draw the features in the report as the pixels of images of this "
            "shape, such as 8x8.",
        ),
        click.option("--force", is_flag=True, help="Replace files that exist."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def make_estimator(ctx: click.Context, quiet: bool) -> PrivateDistributedNMF:
    """Return the estimator that the options describe.

    Parameters
    ----------
    ctx : click.Context
        Of the command.
    quiet : bool
        Whether progress is hidden in any case.

    Returns
    -------
    PrivateDistributedNMF
        Not fitted; it shows a progress bar on a terminal.

    Raises
    ------
    CommandError
        If options exclude each other.
    """
    given = given_parameters(ctx, PrivateDistributedNMF)
    if given.get("partition") is not None and ctx.params["agents"] is not None:
        raise CommandError("--agents and --partition exclude each other")
    given.setdefault("verbose", int(on_terminal()))
    if quiet:
        given["verbose"] = 0
    return PrivateDistributedNMF(**given)


def on_terminal() -> bool:
    """Whether somebody watches stderr, where progress is shown."""
    return sys.stderr.isatty()


def read_input(ctx: click.Context) -> Data:
    """Read the data that the options name, and check that images fit them.

    Parameters
    ----------
    ctx : click.Context
        Of the command.

    Returns
    -------
    Data
        The samples.

    Raises
    ------
    CommandError
        If they cannot be read, or have another number of features than the images
        have pixels.
    """
    names = ("agents", "drop", "header")
    file = ctx.params["file"]
    data = read_data(file, **{name: ctx.params[name] for name in names})
    shape = ctx.params["image_shape"]
    if shape is not None and shape[0] * shape[1] != data.X.shape[1]:
        raise CommandError(
            f"--image-shape {shape[0]}x{shape[1]} has {shape[0] * shape[1]} pixels, "
            f"but {file} has {data.X.shape[1]} features"
        )
    return data


def compute(task: Callable[[], Any]) -> Any:
    """Run a computation, whose errors become errors of the command.

    Parameters
    ----------
    task : callable
        Takes nothing.

    Returns
    -------
    object
        What the task returns.

    Raises
    ------
    CommandError
        With exit code 2 where the task refuses its data or parameters, and 1 where
        it fails.
    """
    try:
        return task()
    except (ValueError, TypeError) as error:
        raise CommandError(describe(error)) from error
    except (OverflowError, DropoutError) as error:
        raise CommandError(f"failed: {describe(error)}", FAILED) from error
    except MemoryError as error:
        raise CommandError("failed: not enough memory", FAILED) from error


def check_report(ctx: click.Context) -> None:
    """Refuse to go on if a report is wanted that cannot be written.

    Parameters
    ----------
    ctx : click.Context
        Of the command.

    Raises
    ------
    CommandError
        If matplotlib is not installed, the file exists, cannot be written or is not
        named as HTML, or if there are options for a report that is not wanted.
    """
    report = ctx.params["report"]
    if report is None:
        if ctx.params["image_shape"] is not None:
            raise CommandError("--image-shape is for --report, which is not given")
        return
    check_report_name(report)
    check_writable(report, ctx.params["force"])
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise CommandError(
            '--report needs matplotlib: pip install "skppdnmf[plot]"'
        ) from error


def format_table(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows as text with aligned columns.

    Parameters
    ----------
    rows : sequence of tuples of str
        Equally long; the first column is aligned left, others right.

    Returns
    -------
    str
        A line for each row.

    Examples
    --------
    >>> from skppdnmf._cli._options import format_table
    >>> print(format_table([("", "ours"), ("error", "0.1")]))
           ours
    error   0.1
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        padded = zip(others, widths[1:], strict=True)
        cells = [f"{cell:>{width}}" for cell, width in padded]
        lines.append("  ".join([f"{first:<{widths[0]}}", *cells]).rstrip())
    return "\n".join(lines)
