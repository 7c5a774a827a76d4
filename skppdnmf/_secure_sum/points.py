"""The left factors at which an agent has contributed to the present round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..exceptions import RepeatedSummandError


class SummedPoints:
    """Refuses a second summand at one left factor in one round.

    Two totals of the same summands, with and without an agent that has left in
    between, would differ by that agent's summand.

    Parameters
    ----------
    name : str
        How errors call the agent.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._secure_sum.points import SummedPoints
    >>> points = SummedPoints("agent 0")
    >>> points.add(3, np.ones((1, 2, 4)))
    >>> points.add(3, np.full((1, 2, 4), 1.1))
    >>> points.add(4, np.ones((1, 2, 4)))
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._step = -1
        self._points: list[NDArray[np.float64]] = []

    def add(self, step: int, point: NDArray[np.float64]) -> None:
        """Note a point, once.

        Parameters
        ----------
        step : int
            Number of the sum.
        point : ndarray of shape (S, K, F)
            Left factors for which the summand is.

        Raises
        ------
        RepeatedSummandError
            If it has been one of this sum before. Zeros tell nothing and may be summed
            again.
        """
        if self._step != step:
            self._step, self._points = step, []
        if point.any() and any(np.array_equal(point, one) for one in self._points):
            raise RepeatedSummandError(
                f"{self._name}: has contributed to sum {step} at this left factor "
                "before"
            )
        self._points.append(point)
