"""Warnings that point to the user's line."""

from __future__ import annotations

import sys
import warnings

# Whose lines lie between the user's and ours: scikit-learn wraps `fit` and calls it
# in pipelines and searches, joblib calls for it, and contextlib wraps our methods.
# From Python 3.12 on there is skip_file_prefixes for this.
_BETWEEN = frozenset({"skppdnmf", "sklearn", "joblib", "contextlib"})


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line that is neither ours nor of what calls us."""
    # 1 is this function and 2 what calls it.
    level = 2
    frame = sys._getframe(1)
    while _package(frame.f_globals) in _BETWEEN and frame.f_back is not None:
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


# What wraps the methods of an estimator that is called directly.
_WRAPPERS = (
    "sklearn.base",
    "sklearn.utils._set_output",
    "sklearn.callback",
    "contextlib",
)


def called_by_user() -> bool:
    """Whether a method of ours was called directly, not by a pipeline or a search."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if _package(frame.f_globals) != "skppdnmf" and not module.startswith(_WRAPPERS):
            break
        frame = frame.f_back
    return _package(frame.f_globals) not in _BETWEEN


def _package(namespace: dict[str, object]) -> str:
    """Name of the package that a module's namespace belongs to."""
    return str(namespace.get("__name__", "")).partition(".")[0]
