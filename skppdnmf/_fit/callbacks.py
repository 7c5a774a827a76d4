"""Scikit-learn's callbacks, where there are any (from version 1.9 on)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Takes callbacks and does nothing with them."""

        def set_callbacks(self, *callbacks: Any) -> Any:
            """Ignore callbacks, which need scikit-learn 1.9.

            Parameters
            ----------
            *callbacks : callback instances
                Ignored.

            Returns
            -------
            self : object
                The estimator itself.
            """
            return self


class FitCallbacks:
    """Calls an estimator's callbacks at the begin and end of a fit and its iterations.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        Being fitted.
    X : {array, sparse matrix, frame} of shape (n_samples, n_features)
        The training data as the user gave them, so that a callback that scores the
        fitted estimator sees the features' names.
    y : array-like or None
        The target; zeros stand in for None, because `sklearn.callback.ScoringMonitor`
        scores nothing without one.
    max_iter : int
        Most iterations.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, max_iter: int) -> None:
        self._context: Any = None
        if not hasattr(estimator, "_init_callback_context"):
            return
        self._data = {
            "estimator": estimator,
            "X": X,
            "y": np.zeros(_num_samples(X)) if y is None else y,
        }
        self._context = estimator._init_callback_context(max_subtasks=max_iter)
        self._context.call_on_fit_task_begin(**self._data)
        # Nobody listens to most fits, which should not pay for it.
        self._heard = bool(getattr(estimator, "_skl_callbacks", None))
        self._begin_iteration()

    def _begin_iteration(self) -> None:
        """Announce the next iteration."""
        if self._heard:
            self._iteration = self._context.subcontext(task_name="iteration")
            self._iteration.call_on_fit_task_begin(**self._data)

    def end_iteration(
        self, attributes: Callable[[], dict[str, Any]], last: bool
    ) -> bool:
        """Report an iteration and begin the next.

        Parameters
        ----------
        attributes : callable
            Returns the fitted attributes as if the fit ended here.
        last : bool
            Whether no iteration follows.

        Returns
        -------
        bool
            Whether a callback asks to end the fit.
        """
        if self._context is None or not self._heard:
            return False
        stop = self._iteration.call_on_fit_task_end(
            **self._data, reconstruction_attributes=attributes
        )
        if not (stop or last):
            self._begin_iteration()
        return bool(stop)

    def end(self) -> None:
        """Report the end of the fit; the estimator has its fitted attributes."""
        if self._context is not None:
            self._context.call_on_fit_task_end(
                **self._data, reconstruction_attributes={}
            )
