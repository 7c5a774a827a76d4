"""What the agents of the consensus agree upon beforehand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._data.graph import Network
from .._nmf.penalties import left_weight
from .scale import AveragingPlan, plan_averaging


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
    n_max: float
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
    def balances(self) -> bool:
        """Whether the pull of the links follows what the agents see."""
        scaled = self.penalty_scaling == "data"
        return scaled and self.update == "proximal" and self.n_agents > 1

    @property
    def n_averages(self) -> int:
        """Number of private averages before the first iteration."""
        return 2 * (self.penalty_scaling == "data") + self.balanced


def settings_of(estimator: Any, network: Network) -> AgentSettings:
    """Return what all agents agree upon: parameters, and what the graph tells.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters.
    network : Network
        The graph.

    Returns
    -------
    AgentSettings
    """
    return AgentSettings(
        **graph_facts(network),
        mu=float(estimator.mu),
        eta=float(estimator.eta),
        g_max=float(estimator.g_max),
        penalty_scaling=estimator.penalty_scaling,
        update=estimator.update,
        masking=estimator.masking,
        n_max=float(estimator.n_max),
        key_size=int(estimator.key_size),
        key_scheme=estimator.key_scheme,
        max_iter=int(estimator.max_iter),
        max_admm_iter=int(estimator.max_admm_iter),
        tol=float(estimator.tol),
        right_alpha=float(estimator.alpha_W),
        left_alpha=left_weight(estimator.alpha_W, estimator.alpha_H),
        l1_ratio=float(estimator.l1_ratio),
    )


def graph_facts(network: Network) -> dict[str, Any]:
    """Return the fields of `AgentSettings` that follow from the public graph."""
    eigenvalues = network.laplacian_eigenvalues
    connectivity = 1.0
    if network.n_agents > 1:
        product = float(eigenvalues[1] * eigenvalues[-1])
        connectivity = float(f"{math.sqrt(product):.10g}")
    return {
        "n_agents": network.n_agents,
        "diameter": network.diameter,
        "connectivity": connectivity,
        "averaging": plan_averaging(network.adjacency),
        "leader": int(np.argmin(network.eccentricities)),
        "leader_eccentricity": int(network.eccentricities.min()),
    }
