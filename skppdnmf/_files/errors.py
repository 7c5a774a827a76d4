"""What is wrong with a file, or with how it is used: one line, and an exit code."""

from __future__ import annotations

import click

FAILED = 1
BAD_INPUT = 2


class CommandError(click.ClickException):
    """An error with an exit code.

    Parameters
    ----------
    message : str
        What is wrong; line breaks become spaces.
    exit_code : int, default=2
        The process's.
    """

    def __init__(self, message: str, exit_code: int = BAD_INPUT) -> None:
        super().__init__(one_line(message))
        self.exit_code = exit_code  # type: ignore[misc]


def one_line(text: object) -> str:
    r"""Return a text without line breaks.

    Parameters
    ----------
    text : object
        Anything that has a text.

    Returns
    -------
    str
        With every run of white space made one space.

    Examples
    --------
    >>> from skppdnmf._files.errors import one_line
    >>> one_line(ValueError("two\n   lines"))
    'two lines'
    """
    return " ".join(str(text).split())


def describe(error: BaseException) -> str:
    """Return an error's message, or its name where it has none."""
    return one_line(error) or type(error).__name__
