"""Types of options and arguments that click has not."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .._files.tables import KINDS
from .outputs import is_archive

REPORT_SUFFIXES = (".html", ".htm")
# Whoever gives one of these wants a file. A list, for "run-0.5" is a directory.
_FILE_SUFFIXES = (
    *(*KINDS, *REPORT_SUFFIXES),
    *(".txt", ".json", ".xlsx", ".zip", ".gz", ".pkl", ".joblib", ".h5", ".mat"),
)


class Number(click.FloatRange):
    """A finite number of a range; one written as an integer stays one."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return an int or a float."""
        number = super().convert(value, param, ctx)
        # Comparisons with nan are false, so that it is in every range.
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        try:
            return int(str(value))
        except ValueError:
            return number


class Word(click.Choice):
    """One of several words, written exactly so."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the word."""
        # With the context, whose options may be written --alpha_W or --alpha-w, click
        # takes "Scalar" for "scalar" as well; it might be the name of a file.
        return super().convert(value, param, None)


class NoneWord(click.Choice):
    """The word "none", which means None."""

    def __init__(self) -> None:
        super().__init__(["none"], case_sensitive=False)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return None."""
        super().convert(value, param, ctx)


class Either(click.ParamType):
    """A value of the first of several types that takes it."""

    name = "either"

    def __init__(self, *types: click.ParamType) -> None:
        self.types = types

    def get_metavar(self, param: click.Parameter, ctx: Any = None) -> str:
        """Return what the help shows for the value, such as "INTEGER|auto"."""
        shown: list[str] = []
        for each in self.types:
            if isinstance(each, click.Choice):
                shown += map(str, each.choices)
            else:
                shown.append(each.name.removesuffix(" range").upper())
        return "|".join(shown)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the value; if no type takes it, say what each of them says."""
        refusals = []
        for each in self.types:
            try:
                return each.convert(value, param, ctx)
            except click.BadParameter as error:  # noqa: PERF203 - few types
                refusals.append(error.message)
        self.fail(" ".join(refusals), param, ctx)


class Truth(click.ParamType):
    """True or false, in words."""

    name = "true|false"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return a bool."""
        if isinstance(value, bool):
            return value
        if value.lower() not in ("true", "false"):
            self.fail(f"{value!r} is neither true nor false.", param, ctx)
        return value.lower() == "true"


class Blocks(click.ParamType):
    """A number of agents, block sizes, or fractions of the samples."""

    name = "integer|sizes|fractions"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return an int; a list if there are several numbers, or one fraction."""
        pieces = value.split(",")
        for kind in (int, float):
            try:
                blocks = [kind(piece) for piece in pieces]
            except ValueError:
                continue
            return blocks[0] if kind is int and len(blocks) == 1 else blocks
        self.fail(
            f"{value!r} is not a number of agents (5), block sizes (10,20,30) or "
            "fractions (0.5,0.5).",
            param,
            ctx,
        )


class Numbers(click.ParamType):
    """Whole numbers from one to another, or several."""

    name = "from-to|list"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return a list of int."""
        if isinstance(value, list):
            return value
        first, dash, last = value.partition("-")
        pieces = [first, last] if dash else value.split(",")
        if not all(piece.strip().isdecimal() and int(piece) for piece in pieces):
            self.fail(
                f"{value!r} is not whole numbers from one to another (2-12), or "
                "several (2,4,8).",
                param,
                ctx,
            )
        numbers = [int(piece) for piece in pieces]
        if dash:
            numbers = list(range(numbers[0], numbers[1] + 1))
        if not numbers or len(set(numbers)) < len(numbers):
            self.fail(f"{value!r} has no number, or one twice.", param, ctx)
        return numbers


class ImageShape(click.ParamType):
    """Rows and columns of an image, as 8x8."""

    name = "ROWSxCOLUMNS"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return both numbers."""
        if isinstance(value, tuple):
            return value
        rows, _, columns = value.lower().partition("x")
        if not (rows.isdecimal() and columns.isdecimal() and int(rows) * int(columns)):
            self.fail(f"{value!r} is not rows x columns, such as 8x8.", param, ctx)
        return int(rows), int(columns)


class InputFile(click.Path):
    """A file that exists and can be read, more than once."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False, path_type=Path)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the path."""
        path: Any = super().convert(value, param, ctx)
        # The first line of a pipe would be gone when the table is read.
        if not path.is_file():
            self.fail(f"{value!r} is not a regular file.", param, ctx)
        return path


class MatrixFile(InputFile):
    """A file that holds a matrix, which is the value.

    Parameters
    ----------
    read : callable
        Takes the path and returns the matrix.
    """

    def __init__(self, read: Callable[[Path], Any]) -> None:
        super().__init__()
        self._read = read

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the matrix."""
        return self._read(super().convert(value, param, ctx))


class ReportFile(click.Path):
    """A file named as HTML, which need not exist."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, readable=False, path_type=Path)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the path."""
        path: Any = super().convert(value, param, ctx)
        if path.suffix.lower() not in REPORT_SUFFIXES:
            self.fail(
                f"{value!r} does not end in {' or '.join(REPORT_SUFFIXES)}; the report "
                "is written as HTML.",
                param,
                ctx,
            )
        return path


class NewFile(click.ParamType):
    """A file with a certain ending, which need not exist."""

    name = "path"
    suffix = ""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the path."""
        refuse_blank(ctx, param, str(value))
        path = Path(value)
        if path.suffix.lower() != self.suffix:
            self.fail(f"{str(value)!r} does not end with {self.suffix}.", param, ctx)
        kind = click.Path(dir_okay=False, readable=False)
        kind.convert(str(value), param, ctx)
        return path


class ArchiveFile(NewFile):
    """An .npz file, which need not exist."""

    name = "file.npz"
    suffix = ".npz"


class CsvFile(NewFile):
    """A .csv file, which need not exist."""

    name = "file.csv"
    suffix = ".csv"


class OutputPath(click.ParamType):
    """A directory or an .npz file, which need not exist."""

    name = "path"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the path."""
        refuse_blank(ctx, param, value)
        path = Path(value)
        archive = is_archive(path)
        is_named_like_a_file = path.name.lower().endswith(_FILE_SUFFIXES)
        if is_named_like_a_file and not archive and not path.is_dir():
            self.fail(
                f"{value!r} is named like a file; the output is a directory or a new "
                ".npz file.",
                param,
                ctx,
            )
        kind = click.Path(file_okay=archive, dir_okay=not archive, readable=False)
        kind.convert(value, param, ctx)
        return path


def refuse_blank(
    ctx: click.Context | None, param: click.Parameter | None, value: Any
) -> Any:
    """Refuse an empty text; a callback of options, for one text or for several."""
    for text in value if isinstance(value, tuple) else (value,):
        if text is not None and not text.strip():
            raise click.BadParameter(f"{text!r} is empty.", ctx, param)
    return value
