"""Errors and warnings of the command line: one line each, and an exit code."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any

from .._files.errors import FAILED, CommandError, describe, one_line
from ..exceptions import DropoutError

NOT_CONVERGED = 3
INTERRUPTED = 130


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


class WarningLines:
    """Shows warnings as single lines on stderr, each once; a context manager.

    Only those for users are shown (`UserWarning` and its children). Floating point
    warnings are not: what they would announce is found in the result.

    Attributes
    ----------
    categories : set of type
        Of the warnings shown so far.
    """

    def __init__(self) -> None:
        self.categories: set[type[Warning]] = set()
        self._shown: set[str] = set()
        self._catcher = warnings.catch_warnings()

    def __enter__(self) -> WarningLines:
        self._catcher.__enter__()
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = self._show
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._catcher.__exit__(kind, error, trace)

    def saw(self, category: type[Warning]) -> bool:
        """Whether a warning of this category or a child of it was shown."""
        return any(issubclass(seen, category) for seen in self.categories)

    def _show(
        self, message: Any, category: type[Warning], *args: Any, **kwargs: Any
    ) -> None:
        """Take the place of `warnings.showwarning`."""
        self.categories.add(category)
        line = f"Warning: {one_line(message)}"
        if line not in self._shown:
            self._shown.add(line)
            _write_line(line)


def _write_line(line: str) -> None:
    """Write to stderr, above a progress bar if there is one."""
    from tqdm import tqdm

    tqdm.write(line, file=sys.stderr)
    sys.stderr.flush()
