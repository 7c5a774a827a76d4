"""What a federation has reached, iteration by iteration, from the agents' reports."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._agent import Report
from .._nmf.admm import frobenius_square


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
    observed_error : float, default=nan
        What an observer of all data has computed where agents know of no error.
    """

    exchanges: int
    local_error: float
    shared_error: float
    consensus_error: float
    seconds: float
    bytes: int
    observed_error: float = math.nan


def mean_components(copies: Sequence[NDArray[np.floating]]) -> NDArray[np.floating]:
    """Return the mean of the agents' copies of the left factor."""
    if _all_one(copies):
        return copies[0]
    total = copies[0] + copies[1]
    for copy in copies[2:]:
        total += copy
    total /= len(copies)
    return total


def _all_one(copies: Sequence[NDArray[np.floating]]) -> bool:
    """Whether all copies are equal, without comparing those that are one array."""
    first = copies[0]
    return all(copy is first or np.array_equal(copy, first) for copy in copies[1:])


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
    mean = mean_components(copies)
    squares = [frobenius_square(copy - mean) for copy in copies if copy is not mean]
    return _relative_distance(sum(squares) / len(copies), mean)


def _relative_distance(distance: float, mean: NDArray[np.floating]) -> float:
    """Root of a mean squared distance over the norm of the mean."""
    norm = np.linalg.norm(mean)
    return float(np.sqrt(distance) / norm) if norm > 0 else np.inf if distance else 0.0


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
    copies = [report.H for report in reports]
    mean = mean_components(copies)
    local = shared = distance = 0.0
    for report in reports:
        # ||X - W M||^2 from ||X - W H||^2: what cancels is small where the step is,
        # unlike in the expansion around zero.
        local += report.squared_error
        shared += report.squared_error
        if report.H is mean:
            continue
        step = mean - report.H
        distance += frobenius_square(step)
        witness = report.witness
        if witness is None:
            continue
        shared -= 2.0 * float(np.vdot(witness.products, step))
        shared += float(np.vdot(witness.gram, (mean + report.H) @ step.T))
    if _all_one(copies):
        # Rounded once: how the agents are numbered does not show in the last bit.
        local = shared = math.fsum(report.squared_error for report in reports)
    scale = squared_norm or 1.0
    return HistoryRow(
        exchanges=max(report.n_exchanges for report in reports),
        local_error=float(np.sqrt(max(local, 0.0) / scale)),
        shared_error=float(np.sqrt(max(shared, 0.0) / scale)),
        consensus_error=_relative_distance(distance / len(reports), mean),
        seconds=seconds,
        bytes=n_bytes,
    )


def as_arrays(rows: Sequence[HistoryRow]) -> dict[str, NDArray]:
    """Turn rows into equally long arrays, one for each column that has numbers."""
    columns = {
        name: np.array([getattr(row, name) for row in rows])
        for name in HistoryRow._fields
    }
    if np.isnan(columns["observed_error"]).all():
        del columns["observed_error"]
    return columns


class Observer:
    """What an omniscient process makes of the agents' reports: the history.

    The shared error under the consensus, and ``||X||``, are known to nobody in a real
    federation; they are for studies.

    Parameters
    ----------
    squared_norm : float
        ``||X||^2`` of all data.
    squared_norms : sequence of float
        ``||X_i||^2`` of each agent's, of which those that leave take theirs along.

    Attributes
    ----------
    rows : list of HistoryRow
        One for each iteration.
    """

    def __init__(self, squared_norm: float, squared_norms: Sequence[float]) -> None:
        self._started = time.perf_counter()
        self._squared_norm = squared_norm
        self._left = dict(enumerate(squared_norms))
        self.rows: list[HistoryRow] = []

    def note(
        self,
        reports: Sequence[Report | None],
        n_bytes: int,
        observed_error: float = math.nan,
    ) -> HistoryRow:
        """Sum up the reports on one iteration.

        Parameters
        ----------
        reports : sequence of Report or None
            None of those that have left.
        n_bytes : int
            Bytes sent so far.
        observed_error : float, default=nan
            As in `HistoryRow`.

        Returns
        -------
        HistoryRow
        """
        gone = [i for i in self._left if reports[i] is None]
        if gone:
            self._squared_norm -= sum(self._left.pop(i) for i in gone)
            self._squared_norm = max(0.0, self._squared_norm)
        present = [report for report in reports if report is not None]
        seconds = time.perf_counter() - self._started
        row = history_row(present, self._squared_norm, seconds, n_bytes)
        row = row._replace(observed_error=observed_error)
        self.rows.append(row)
        return row


def component_scales(
    H: NDArray[np.floating], normalize: str | None
) -> NDArray[np.float64]:
    """Return what each row is divided by.

    Parameters
    ----------
    H : ndarray of shape (K, F)
        The left factor.
    normalize : {"none", "components", "max"} or None
        To rows that sum to one, or whose largest entry is one.

    Returns
    -------
    ndarray of shape (K,)
        1 for a row of zeros, and everywhere under None or "none".

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._fit.history import component_scales
    >>> component_scales(np.array([[1.0, 3.0], [0.0, 0.0]]), "components")
    array([4., 1.])
    """
    H = H.astype(np.float64, copy=False)
    scales = np.ones(len(H))
    if normalize not in (None, "none"):
        scales = H.sum(axis=1) if normalize == "components" else H.max(axis=1)
        scales[scales == 0] = 1.0
    return scales


def fitted_attributes(
    reports: Sequence[Report | None],
    rows: Sequence[HistoryRow],
    dtype: Any,
    normalize: str | None = None,
) -> dict[str, Any]:
    """Return the fitted attributes of an estimator that follow from the reports.

    Parameters
    ----------
    reports : sequence of Report or None
        The agents' last reports; None of those that have left, whose copies are nan.
    rows : sequence of HistoryRow
        One for each BCD iteration.
    dtype : dtype
        Of the factors.
    normalize : {"none", "components", "max"} or None, default=None
        The estimator's.

    Returns
    -------
    dict
        From attribute names, with their underscores, to values.
    """
    present = [report.H for report in reports if report is not None]
    mean = mean_components(present)
    scales = component_scales(mean, normalize)
    divisors: Any = 1 if normalize in (None, "none") else scales[:, None]
    components = (mean / divisors).astype(dtype)
    missing = np.full_like(components, np.nan)
    copies = [missing if report is None else report.H / divisors for report in reports]
    return {
        "components_": components,
        "component_scales_": scales,
        "agent_components_": np.stack(copies).astype(dtype, copy=False),
        "consensus_error_": consensus_error(present),
        "n_components_": components.shape[0],
        "n_features_in_": components.shape[1],
        "n_iter_": len(rows),
        "n_exchanges_": rows[-1].exchanges,
        "history_": as_arrays(rows),
    }
