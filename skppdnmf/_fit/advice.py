"""What a fit has not reached, and what to change."""

from __future__ import annotations

from typing import Any

from .._protocol import FitProtocol


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
