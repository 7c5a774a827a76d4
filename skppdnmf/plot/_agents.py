"""What a fitted estimator says of each agent and edge."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skppdnmf._data.checks import validate_samples
from skppdnmf._data.partition import assign_agents, is_parts, stack_parts
from skppdnmf._nmf.admm import squared_norm, squared_residual

from ._checks import shorten


def agent_index(estimator: Any, agent: Any) -> int:
    """Return the row of an agent in ``agent_components_``.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        A fitted estimator.
    agent : hashable
        One of its ``agent_labels_``.

    Returns
    -------
    int
        Its place among the labels.

    Raises
    ------
    ValueError
        If there is no such agent.
    """
    labels = list(estimator.agent_labels_)
    # Labels are hashable, and what is not may not compare to a single truth value.
    if not isinstance(agent, Hashable) or agent not in labels:
        some = ", ".join(map(repr, labels[:8])) + (", ..." if len(labels) > 8 else "")
        raise ValueError(f"agent={shorten(agent)} is not one of {some}")
    return labels.index(agent)


def sample_owners(estimator: Any, X: Any, agents: Any) -> NDArray[np.intp]:
    """Return the index of the agent that holds each sample of X.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        A fitted estimator.
    X : {array-like, sparse matrix} or list of parts
        The training data, or other data with `agents` or in parts.
    agents : array-like of shape (n_samples,) or None
        Labels of the agents.

    Returns
    -------
    ndarray of shape (n_samples,)
        Places among ``agent_labels_``.

    Raises
    ------
    ValueError
        If X is no data for the estimator, has as many samples as neither the
        training data nor `agents`, or has not a part for each agent.
    """
    labels = list(estimator.agent_labels_)
    if is_parts(X):
        if agents is not None:
            raise ValueError(
                f"agents is given although X is a {type(X).__name__} of {len(X)} "
                "parts, one for each agent"
            )
        if len(X) != len(labels):
            raise ValueError(
                f"X has {len(X)} parts, but the estimator has {len(labels)} agents"
            )
        X, owners = stack_parts(X)
        _count_samples(estimator, X)
        return owners
    n_samples = _count_samples(estimator, X)
    if agents is not None:
        return assign_agents(agents, n_samples, labels).sample_agents
    owners = estimator.sample_agents_
    if len(owners) != n_samples:
        raise ValueError(
            f"X has {n_samples} samples, but the estimator was fitted to "
            f"{len(owners)}; say with agents who holds those of other data"
        )
    return owners


def _count_samples(estimator: Any, X: Any) -> int:
    """Return the number of samples, or raise an error that names X."""
    try:
        return validate_samples(estimator, X, reset=False).shape[0]
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"X is no data for the estimator: {error}") from error


def agent_errors(
    estimator: Any, X: Any, owners: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return each agent's relative error with the shared components.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        A fitted estimator.
    X : {array-like, sparse matrix} or list of parts
        Samples.
    owners : ndarray of shape (n_samples,)
        Index of the agent that holds each.

    Returns
    -------
    ndarray of shape (n_agents,)
        ``||X_i - W_i components_|| / ||X_i||`` with the W of ``transform``; nan for
        an agent without samples, 0 for one whose samples are zero.
    """
    W = estimator.transform(X).astype(np.float64)
    if is_parts(X):
        X = stack_parts(X)[0]
    X = validate_samples(estimator, X, reset=False)
    H = estimator.components_.astype(np.float64)
    errors = np.full(len(estimator.agent_labels_), np.nan)
    for agent in range(len(errors)):
        rows = np.flatnonzero(owners == agent)
        if len(rows):
            norm = squared_norm(X[rows])
            residual = squared_residual(X[rows], W[rows], H)
            errors[agent] = np.sqrt(residual / norm) if norm else 0.0
    return errors


def copy_distances(estimator: Any) -> NDArray[np.float64]:
    """Return the distance of each agent's copy from the mean, over its norm."""
    copies = np.asarray(estimator.agent_components_, dtype=np.float64)
    mean = np.asarray(estimator.components_, dtype=np.float64)
    distances = np.sqrt(np.sum((copies - mean) ** 2, axis=(1, 2)))
    norm = float(np.linalg.norm(mean))
    return distances / norm if norm else distances


def edge_bytes(estimator: Any) -> NDArray[np.float64]:
    """Return the bytes of each directed edge, shape (n_agents, n_agents)."""
    place = {label: k for k, label in enumerate(estimator.agent_labels_)}
    sent = np.zeros((len(place), len(place)))
    for (sender, receiver), counts in estimator.traffic_["edges"].items():
        sent[place[sender], place[receiver]] = counts["bytes"]
    return sent
