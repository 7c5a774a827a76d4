"""What a federation has reached, iteration by iteration, from the agents' reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._settings import Report


class HistoryRow(NamedTuple):
    """The state of the federation after one BCD iteration.

    Parameters
    ----------
    exchanges : int
        Exchanges of the left factor so far.
    local_error : float
        ``||X - W H_i|| / ||X||`` with each agent's own copy (the paper's NMSE).
    shared_error : float
        The same with the mean of the copies.
    consensus_error : float
        Root mean square distance of the copies from their mean, over its norm.
    seconds : float
        Wall time so far.
    bytes : int
        Bytes sent so far.
    """

    exchanges: int
    local_error: float
    shared_error: float
    consensus_error: float
    seconds: float
    bytes: int


def mean_components(copies: Sequence[NDArray[np.floating]]) -> NDArray[np.floating]:
    """Return the mean of the agents' copies of the left factor."""
    return np.mean(np.stack(copies), axis=0)


def consensus_error(copies: Sequence[NDArray[np.floating]]) -> float:
    """Return the root mean square distance of the copies from their mean.

    Parameters
    ----------
    copies : sequence of ndarrays of shape (K, F)
        The agents' copies of the left factor.

    Returns
    -------
    float
        Relative to the norm of the mean; 0 where all copies are equal.
    """
    if all(np.array_equal(copy, copies[0]) for copy in copies[1:]):
        return 0.0
    mean = mean_components(copies)
    distance = np.sqrt(np.mean([np.sum((copy - mean) ** 2) for copy in copies]))
    norm = np.linalg.norm(mean)
    return float(distance / norm) if norm > 0 else float("inf")


def history_row(
    reports: Sequence[Report], squared_norm: float, seconds: float, n_bytes: int
) -> HistoryRow:
    """Summarise the agents' reports on one BCD iteration.

    Parameters
    ----------
    reports : sequence of Report
        One for each agent.
    squared_norm : float
        ``||X||^2`` of all agents' data.
    seconds, n_bytes
        As in `HistoryRow`.

    Returns
    -------
    HistoryRow
        Errors are 0 where X is zero.
    """
    mean = mean_components([report.H for report in reports])
    local = shared = 0.0
    for report in reports:
        # ||X - W M||^2 from ||X - W H||^2, free of the cancellation between large
        # terms that the expansion around zero would have.
        step = mean - report.H
        local += report.squared_error
        shared += report.squared_error - 2.0 * float(np.vdot(report.gradient, step))
        shared += float(np.vdot(report.gram @ step, step))
    scale = squared_norm or 1.0
    return HistoryRow(
        exchanges=max(report.n_exchanges for report in reports),
        local_error=float(np.sqrt(max(local, 0.0) / scale)),
        shared_error=float(np.sqrt(max(shared, 0.0) / scale)),
        consensus_error=consensus_error([report.H for report in reports]),
        seconds=seconds,
        bytes=n_bytes,
    )


def as_arrays(rows: Sequence[HistoryRow]) -> dict[str, NDArray]:
    """Turn rows into equally long arrays, one for each column."""
    return {
        name: np.array([getattr(row, name) for row in rows])
        for name in HistoryRow._fields
    }


def fitted_attributes(
    reports: Sequence[Report],
    rows: Sequence[HistoryRow],
    order: NDArray[np.intp],
    dtype: Any,
) -> dict[str, Any]:
    """Return the fitted attributes of an estimator that follow from the reports.

    Parameters
    ----------
    reports : sequence of Report
        The agents' last reports, in the order in which they ran.
    rows : sequence of HistoryRow
        One for each BCD iteration.
    order : ndarray of int
        The agent of each report.
    dtype : dtype
        Of the factors.

    Returns
    -------
    dict
        From attribute names, with their underscores, to values.
    """
    # Means over the agents in the order in which they ran: numbering has no effect.
    ordered = [report.H for report in reports]
    components = mean_components(ordered).astype(dtype)
    copies = [ordered[k] for k in np.argsort(order)]
    return {
        "components_": components,
        "agent_components_": np.stack(copies).astype(dtype),
        "consensus_error_": consensus_error(ordered),
        "n_components_": components.shape[0],
        "n_features_in_": components.shape[1],
        "n_iter_": len(rows),
        "n_exchanges_": rows[-1].exchanges,
        "history_": as_arrays(rows),
    }
