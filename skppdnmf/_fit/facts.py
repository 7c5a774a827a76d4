"""The public facts of a fit, which all its sites must have alike."""

from __future__ import annotations

from typing import Any

from .._agent import VERSION
from .._protocol import FitProtocol, Plan, Setting

# What a site may choose for itself, and what is written out below as it comes to.
_NOT_SHARED = frozenset(
    {
        "adjacency",
        "callbacks",
        "init",
        "n_components",
        "n_jobs",
        "partition",
        "privacy_budget",
        "random_state",
        "verbose",
    }
)


def public_facts(
    setting: Setting, protocol: FitProtocol, plan: Plan, **more: Any
) -> dict[str, Any]:
    """Return by name what all sites of a run must have alike before they begin.

    Parameters
    ----------
    setting : Setting
        Of the fit.
    protocol : FitProtocol
        The estimator's.
    plan : Plan
        What the protocol has made of the setting.
    **more
        Others, such as the dtype of the samples or a digest of the features' names.

    Returns
    -------
    dict
        For `skppdnmf.exchange.Credentials`.
    """
    parameters = setting.estimator.get_params(deep=False)
    facts = {
        f"parameter {name}": value
        for name, value in parameters.items()
        if name not in _NOT_SHARED
    }
    n_starts, n_components, n_features = plan.starts.shape
    return {
        **facts,
        "protocol": protocol.name,
        "protocol code": protocol.code,
        "envelope version": VERSION,
        "graph": setting.network.adjacency,
        "n_agents": setting.network.n_agents,
        "n_components": n_components,
        "n_features": n_features,
        "n_starts": n_starts,
        "starts": plan.starts,
        "public seed": setting.seeds.start,
        "settings": plan.settings,
        **more,
    }
