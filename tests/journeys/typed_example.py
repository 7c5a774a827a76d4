"""The public API in typed code."""

import numpy as np
from numpy.typing import NDArray

from skppdnmf import (
    CostEstimate,
    PrivacyBudget,
    PrivateDistributedNMF,
    estimate_cost,
    estimate_noise,
    make_paper_synthetic,
    stack_parts,
)
from skppdnmf.audit import audit_report
from skppdnmf.exchange import PairwiseMasks
from skppdnmf.model_selection import component_curve
from skppdnmf.plot import ComponentsDisplay, LearningCurveDisplay


def show(*things: object) -> None:
    """Take anything."""


def factorise(X: NDArray[np.float64], sites: list[str]) -> NDArray[np.float64]:
    """Fit, and use what is fitted."""
    model = PrivateDistributedNMF(4, protocol="secure-sum", random_state=0)
    W: NDArray[np.float64] = model.fit_transform(X, agents=sites)
    model.fit(X, agents=sites)
    show(model.score(X), model.inverse_transform(W).shape, model.transform(X).shape)
    show(model.get_params()["n_components"], model.get_feature_names_out())
    LearningCurveDisplay.from_estimator(model)
    ComponentsDisplay(model.components_).plot()
    return W


def cost(model: PrivateDistributedNMF) -> float:
    """Return what a fit costs."""
    estimate: CostEstimate = estimate_cost(model, n_features=8)
    return estimate.seconds


def others() -> None:
    """Call the rest."""
    X, *_ = make_paper_synthetic(random_state=0)
    stacked, agents = stack_parts([X[:5], X[5:]])
    budget = PrivacyBudget(3.0, 1e-5)
    model = PrivateDistributedNMF(2, privacy_budget=budget)
    show(estimate_noise(model, n_samples=1000, n_features=8), stacked, agents)
    show(audit_report(model, X), component_curve)
    show(PairwiseMasks(0).public_key)
