"""The private average: consensus on the scale of the data, by encrypted exchange.

The penalties follow the data's scale, so all agents must agree on one. Each starts
from two numbers, whether its right factor is nonzero and the logarithm of its size,
and moves them towards its neighbours' in rounds of the same masked exchange that
the left factor goes through. The logarithm keeps the fixed-point numbers in range
whatever the scale. In the end one agent's estimate becomes everybody's. The geometric
mean that comes of it is a unit in which the roots of the sizes can be averaged: the
square of their mean is the scale. Small data of one agent hardly change it, nor does
one agent with much more than the others decide it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .masks import MEAN_MASK_PRODUCT

N_VALUES = 2
N_MAX = 2.0**32
VALUE_BITS = 45  # the logarithm of a double's square lies within +-2200

_REDUCTION = 1e4  # by which the rounds shrink the differences between agents
_MAX_ROUNDS = 200
_MAX_MOMENTUM = 1.75  # more lets the random masks amplify the differences
_LARGEST_ROOT = 2.0**11  # of a number over the unit: fits VALUE_BITS


@dataclass(frozen=True)
class AveragingPlan:
    """How all agents average, a function of the public graph.

    Parameters
    ----------
    n_rounds : int
        Rounds of exchange.
    momentum : float
        Second-order weight, 1 for none.
    """

    n_rounds: int
    momentum: float


def plan_averaging(adjacency: NDArray) -> AveragingPlan:
    """Choose rounds and momentum from the spectrum of the graph's weights.

    Parameters
    ----------
    adjacency : ndarray of shape (N, N)
        Zeros and ones.

    Returns
    -------
    AveragingPlan
        The same for every agent.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._consensus.scale import plan_averaging
    >>> plan_averaging(np.ones((3, 3)) - np.eye(3)).n_rounds
    11
    """
    adjacency = np.asarray(adjacency, dtype=float)
    if len(adjacency) == 1:
        return AveragingPlan(0, 1.0)
    degrees = adjacency.sum(axis=1)
    weights = adjacency / (1.0 + np.maximum(degrees[:, None], degrees))
    laplacian = np.diag(weights.sum(axis=1)) - weights
    spectrum = MEAN_MASK_PRODUCT * np.linalg.eigvalsh(laplacian)
    factor = max(abs(1.0 - spectrum[1]), abs(1.0 - spectrum[-1]))
    momentum = min(_MAX_MOMENTUM, 2.0 / (1.0 + math.sqrt(1.0 - factor**2)))
    roots = np.roots([1.0, -momentum * factor, momentum - 1.0])
    rate = max(float(np.abs(roots).max()), 1e-3)
    # Rounding keeps the plan independent of how the agents are numbered.
    rounds = math.ceil(round(math.log(_REDUCTION) / -math.log(rate), 6))
    return AveragingPlan(min(_MAX_ROUNDS, rounds), round(momentum, 12))


class PrivateAverage:
    """One agent's estimate of a mean of all agents' positive numbers.

    Parameters
    ----------
    number : float
        The agent's own number; zero takes no part in a geometric mean.
    plan : AveragingPlan
        Common to all agents.
    unit : float, default=0.0
        For the power mean of exponent 1/2, a number common to all agents and of
        their order of magnitude; 0 for the geometric mean.
    """

    def __init__(self, number: float, plan: AveragingPlan, unit: float = 0.0) -> None:
        present = number > 0
        value = 0.0
        if unit:
            value = min(math.sqrt(number / unit), _LARGEST_ROOT)
        elif present:
            value = math.log2(number)
        self.values = np.array([float(present), value])
        self._previous = self.values
        self._plan = plan
        self._unit = unit
        self.n_rounds = 0

    @property
    def done(self) -> bool:
        """Whether all rounds have been run."""
        return self.n_rounds >= self._plan.n_rounds

    def update(self, differences: NDArray[np.float64]) -> None:
        """Move towards the neighbours by one round's weighted sum of differences."""
        moved = self.values + differences
        if self.n_rounds:
            momentum = self._plan.momentum
            moved = momentum * moved + (1.0 - momentum) * self._previous
        self._previous, self.values = self.values, moved
        self.n_rounds += 1

    def mean(self) -> float:
        """Power mean over all agents, or geometric one over those with a number.

        0 if there are none. No number counts for more than ``2**22`` units.
        """
        share, value = self.values.tolist()
        if self._unit:
            return self._unit * max(0.0, value) ** 2
        return 2.0 ** (value / share) if share > 0.5**13 else 0.0
