"""What a fit has not reached, and what to change."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._protocol import FitProtocol


def unfinished(estimator: Any) -> bool:
    """Return whether a fit that ended with max_iter should have gone on.

    It need not have met `tol`, which is relative to what is left: as in scikit-learn,
    what counts is by how much it still moved for what it began with.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        Fitted.

    Returns
    -------
    bool
        Whether the squared error still fell by more than `tol` of ``||X||^2`` in the
        last iteration, or the copies' squared distance is more than `tol` of
        ``||H||^2``, or there are no components.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from skppdnmf._fit.advice import unfinished
    >>> history = {"shared_error": np.array([0.4, 0.3])}
    >>> fitted = SimpleNamespace(
    ...     components_=np.eye(2), history_=history, tol=1e-4, consensus_error_=0.0
    ... )
    >>> unfinished(fitted)
    True
    >>> history["shared_error"] = np.array([0.3001, 0.3])
    >>> unfinished(fitted)
    False
    """
    errors = np.concatenate([[1.0], estimator.history_["shared_error"]])
    fall = abs(errors[-2] ** 2 - errors[-1] ** 2)
    apart = estimator.consensus_error_**2
    settled = max(fall, apart) <= estimator.tol and estimator.components_.any()
    return not settled


def advice(estimator: Any, protocol: FitProtocol) -> str:
    """Return what to change in an estimator that did not reach its tolerance.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        Fitted.
    protocol : FitProtocol
        Its protocol.

    Returns
    -------
    str
        Some sentences.
    """
    if not estimator.components_.any():
        return "All components are zero: lower alpha_W or alpha_H."
    return "Increase max_iter, or tol." + protocol.advice(estimator)
