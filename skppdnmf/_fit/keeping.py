"""A fit that fails leaves an estimator as it was."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


def keeps_what_was_fitted(method: Callable[..., T]) -> Callable[..., T]:
    """Restore an estimator's fitted attributes if one of its methods raises.

    Data that are refused, an agent that is lost or an interrupt must not destroy a
    good model, nor make a half fitted one of an estimator that was not fitted.

    Parameters
    ----------
    method : callable
        A method that sets fitted attributes: those whose names end in an underscore.

    Returns
    -------
    callable
        The same, all or nothing.
    """

    @wraps(method)
    def all_or_nothing(estimator: Any, *given: Any, **named: Any) -> T:
        before = _fitted(estimator)
        try:
            return method(estimator, *given, **named)
        except BaseException:
            for name in _fitted(estimator):
                delattr(estimator, name)
            for name, value in before.items():
                setattr(estimator, name, value)
            raise

    return all_or_nothing


def _fitted(estimator: Any) -> dict[str, Any]:
    """Fitted attributes, which end in an underscore."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_")
    }
