"""The report on a fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plot import ComponentsDisplay, LearningCurveDisplay, NetworkDisplay
from ._page import Page, new_figure
from ._summary import parameter_rows, summary_rows


def fit_page(
    estimator: Any,
    X: Any,
    source: str,
    summary: dict[str, Any],
    image_shape: tuple[int, int] | None = None,
) -> str:
    """Return the HTML page on a fit.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        Fitted.
    X : {ndarray, sparse matrix, frame} of shape (n_samples, n_features)
        The training data.
    source : str
        What the page calls them.
    summary : dict
        From `summarise`.
    image_shape : tuple of int or None, default=None
        Shape of a component as an image.

    Returns
    -------
    str
        The page.
    """
    page = Page(f"Private distributed NMF of {source}")
    page.paragraph(f"skppdnmf {summary['version']}")
    if estimator.encryption != "paillier" and estimator.protocol == "consensus":
        page.paragraph(
            f"encryption={estimator.encryption!r}: nothing was encrypted. This fit "
            "shows what the encrypted one computes; it protects nothing.",
            warning=True,
        )
    page.heading("Results")
    page.table(summary_rows(summary["results"]))
    page.heading("Learning curve")
    figure, ax = new_figure(7.0, 4.2)
    LearningCurveDisplay.from_estimator(estimator, ax=ax)
    page.figure(figure, "Errors against the exchanges between neighbours")
    history = estimator.history_
    columns = [column.tolist() for column in history.values()]
    page.table(
        [
            (k, *(_number(value) for value in row))
            for k, row in enumerate(zip(*columns, strict=True), start=1)
        ],
        header=["iteration", *(name.replace("_", " ") for name in history)],
        folded="All iterations",
    )
    page.heading("Components")
    n_components = int(estimator.n_components_)
    if image_shape is None:
        figure, ax = new_figure(8.0, min(12.0, 2.2 + 0.3 * n_components))
    else:
        figure, ax = new_figure(8.0, 0.6 + 1.7 * -(-n_components // 5))
    ComponentsDisplay.from_estimator(estimator, image_shape=image_shape, ax=ax)
    page.figure(figure, "The left factor: the mean of the agents' copies")
    page.heading("Agents")
    figure, ax = new_figure(7.0, 5.2)
    NetworkDisplay.from_estimator(estimator, X, ax=ax)
    page.figure(figure, "The graph of the agents")
    sizes = np.bincount(
        estimator.sample_agents_, minlength=len(estimator.agent_labels_)
    )
    degrees = estimator.adjacency_.sum(axis=1)
    page.table(
        zip(estimator.agent_labels_, sizes, degrees, strict=True),
        header=["agent", "samples", "neighbours"],
        folded="All agents",
    )
    page.heading("Parameters")
    page.table(parameter_rows(summary["parameters"]))
    return page.render()


def _number(value: float) -> str:
    """Return a number with as many digits as people read."""
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}"
