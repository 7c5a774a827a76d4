"""What agents agree upon beforehand, and what they report to their operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .scale import AveragingPlan


@dataclass(frozen=True)
class AgentSettings:
    """What all agents have agreed upon; everything here is public.

    Parameters
    ----------
    n_agents, diameter : int
        Size of the graph.
    connectivity : float
        ``sqrt(l_2 l_N)`` of the graph's Laplacian eigenvalues.
    averaging : AveragingPlan
        How the scale is averaged.
    leader, leader_eccentricity : int
        Number of the agent whose estimate of the scale becomes everybody's, and the
        hops from it to the farthest agent.
    mu, eta, g_max, penalty_scaling, update, masking, n_max, key_size, key_scheme, \
max_iter, max_admm_iter, tol, l1_ratio
        As for `PrivateDistributedNMF`.
    right_alpha, left_alpha : float
        Its `alpha_W` and `alpha_H`.
    """

    n_agents: int
    diameter: int
    connectivity: float
    averaging: AveragingPlan
    leader: int
    leader_eccentricity: int
    mu: float
    eta: float
    g_max: float
    penalty_scaling: str
    update: str
    masking: str
    n_max: float | None
    key_size: int
    max_iter: int
    max_admm_iter: int
    tol: float
    right_alpha: float = 0.0
    left_alpha: float = 0.0
    l1_ratio: float = 0.0
    key_scheme: str = "djn"

    @property
    def balanced(self) -> bool:
        """Whether the agents agree on a scale of the factors for their penalties."""
        scaled = self.penalty_scaling == "data"
        return scaled and self.right_alpha > 0 and self.left_alpha > 0

    @property
    def n_averages(self) -> int:
        """Number of private averages before the first iteration."""
        return 2 * (self.penalty_scaling == "data") + self.balanced


class Report(NamedTuple):
    """An agent's account of a finished BCD iteration, for its own operator.

    Parameters
    ----------
    iteration, n_exchanges : int
        Iterations and exchanges of the left factor so far.
    H : ndarray of shape (K, F)
        Its copy of the left factor.
    squared_error : float
        ``||X - W H||^2``.
    gram, products : ndarray of shape (K, K) and (K, F), or None, default=None
        ``W^T W`` and ``W^T X``: the error of any other left factor follows.
        None where all agents have the same left factor.
    stopped : bool, default=False
        Whether the agent met the tolerance.
    final : bool, default=False
        Whether it is the agent's last.
    dither : float, default=0.0
        Sum of the squared weights with which dithers have gone into its Q.
    """

    iteration: int
    n_exchanges: int
    H: NDArray[np.floating]
    squared_error: float
    gram: NDArray[np.float64] | None = None
    products: NDArray[np.floating] | None = None
    stopped: bool = False
    final: bool = False
    dither: float = 0.0
