"""Runs an estimator's federation under the protocol that it names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from .._consensus.build import (
    Seeds,
    canonical_order,
    make_agents,
    make_ciphers,
    make_settings,
)
from .._consensus.settings import Report
from .._data.graph import Network, name_some
from .._data.partition import Partition
from .._federation.local import Observer, Outcome, run_federation
from .._nmf.admm import squared_norm
from .._nmf.penalties import right_penalty
from .._secure_sum.build import make_sum_agents, plan_sums, random_starts
from .._secure_sum.left_factor import PathSettings
from .._warn import warn_user
from ..exceptions import PrivacyWarning
from .callbacks import FitCallbacks
from .cost import agent_parameters, expect, warn_if_long
from .history import HistoryRow, fitted_attributes
from .progress import Progress

# With fewer agents that hold samples the secure sum hides nothing.
LEAST_HOLDERS = 3

Runner = Callable[..., tuple[Outcome, NDArray[np.intp]]]


def warn_of_leaks(
    estimator: Any, network: Network, partition: Partition, n_components: int
) -> None:
    """Warn where the settings protect less than a user may believe.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters.
    network : Network
        The graph.
    partition : Partition
        Who holds what.
    n_components : int
        Number of components.
    """
    if network.n_agents == 1:
        return
    messages = []
    labels, sizes = partition.labels, partition.sizes
    n_holders = int(np.count_nonzero(sizes))
    if estimator.protocol == "secure-sum":
        largest = int(np.argmax(sizes))
        others = int(sizes.sum() - sizes[largest])
        if n_holders == 1:
            messages.append(
                "with one agent that has samples the secure sum hides nothing: the "
                "total is its summand"
            )
        elif n_holders == 2:
            messages.append(
                "with two agents that have samples the secure sum hides nothing: each "
                "subtracts its own summand from the total and has the other's"
            )
        elif others <= n_components:
            messages.append(
                f"all agents but {labels[largest]!r} have {others} samples in all, no "
                f"more than n_components={n_components}: it can find them from the "
                "totals, though not whose they are"
            )
    else:
        sums_protect = n_holders >= LEAST_HOLDERS
        holders = "one agent" if n_holders == 1 else "two agents"
        more_holders = (
            "more agents with samples would help: the secure sum, too, hides nothing "
            f"with {holders} that hold any"
        )
        if estimator.masking == "scalar":
            way_out = 'protocol="secure-sum" protects' if sums_protect else more_holders
            messages.append(
                'masking="scalar" lets a neighbour solve for the samples of an agent '
                "that holds few, with the one unknown factor of each round; "
                f'masking="entrywise" makes that harder, {way_out}'
            )
        single = [repr(labels[k]) for k in np.flatnonzero(network.degrees == 1)]
        if single:
            way_out = 'give them more, or use protocol="secure-sum"'
            if not sums_protect:
                # Of two agents neither can be given another neighbour.
                few = network.n_agents == 2
                way_out = more_holders if few else f"give them more; {more_holders}"
            messages.append(
                f"agents with one neighbour: {name_some(single[:5], len(single))}; "
                "that neighbour knows all they receive and can reconstruct their "
                f"data from their answers; {way_out}"
            )
    for message in messages:
        warn_user(message, PrivacyWarning)


def run_consensus(
    estimator: Any,
    X: Any,
    partition: Partition,
    network: Network,
    start: NDArray[np.float64],
    seeds: Seeds,
    callbacks: FitCallbacks,
) -> tuple[Outcome, NDArray[np.intp]]:
    """Run the encrypted consensus.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters.
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Validated data.
    partition, network
        Who holds what, and the graph.
    start : ndarray of shape (K, F)
        Common start of the left factor.
    seeds : Seeds
        Of the masks.
    callbacks : FitCallbacks
        To be called after each iteration.

    Returns
    -------
    outcome : Outcome
        What the federation leaves.
    order : ndarray of int
        The agent of each report.
    """
    parts = [X[rows] for rows in partition.samples]
    order = canonical_order(parts, network.adjacency)
    network = network.permuted(order)
    settings = make_settings(network, **agent_parameters(estimator))
    expected = expect(network, settings, start, estimator.encryption, estimator.n_jobs)
    warn_if_long(expected.seconds, settings, effective_n_jobs(estimator.n_jobs))
    ciphers = make_ciphers(
        estimator.encryption,
        len(parts),
        settings.key_size,
        settings.key_scheme,
        estimator.n_jobs,
    )
    agents: Any = make_agents(
        [parts[k] for k in order],
        [f"agent {partition.labels[k]!r}" for k in order],
        network,
        start,
        settings,
        ciphers,
        seeds.masks,
    )
    if estimator._recorder is not None:
        agents = estimator._recorder.attach(agents, network, partition.labels, order)
    with Progress(estimator.verbose, settings.max_iter) as progress:
        outcome = run_federation(
            agents,
            squared_norm(X),
            estimator.n_jobs,
            expected.backend,
            _observer(progress, callbacks, order, X.dtype),
        )
    return outcome, order


def run_secure_sum(
    estimator: Any,
    X: Any,
    partition: Partition,
    network: Network,
    start: NDArray[np.float64],
    seeds: Seeds,
    callbacks: FitCallbacks,
) -> tuple[Outcome, NDArray[np.intp]]:
    """Run the secure sum.

    Parameters
    ----------
    estimator, X, partition, network, start, seeds, callbacks
        As for `run_consensus`.

    Returns
    -------
    outcome, order
        As for `run_consensus`.
    """
    parts = [X[rows] for rows in partition.samples]
    # In the order of their labels: one that followed the sizes of what they hold
    # would show in the messages. The sums are exact in any order.
    order = np.arange(len(parts))
    unused = np.flatnonzero(~start.any(axis=1))
    if unused.size:
        raise ValueError(
            f"init has rows without a positive entry: {unused[:5].tolist()}; under "
            'protocol="secure-sum" these components would stay zero'
        )
    K, F = start.shape
    degree, n_starts = plan_sums(estimator, network.n_agents, K, F)
    if not isinstance(estimator.n_init, str) and estimator.n_init > n_starts:
        warn_user(
            f"n_init={estimator.n_init} although init gives the one start; it is "
            "followed alone",
            RuntimeWarning,
        )
    agents: Any = make_sum_agents(
        parts,
        [f"agent {label!r}" for label in partition.labels],
        network,
        random_starts(start, n_starts, seeds.start),
        path_settings(estimator, network.n_agents, X.shape[1]),
        degree,
    )
    if estimator._recorder is not None:
        agents = estimator._recorder.attach(agents, network, partition.labels, order)
    with Progress(estimator.verbose, estimator.max_iter) as progress:
        outcome = run_federation(
            agents,
            squared_norm(X),
            estimator.n_jobs,
            "threads",
            _observer(progress, callbacks, order, X.dtype),
            estimator.on_dropout,
        )
    return outcome, order


def path_settings(estimator: Any, n_agents: int, n_features: int) -> PathSettings:
    """Return the estimator's parameters that the secure sum reads.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters.
    n_agents, n_features : int
        Sizes.

    Returns
    -------
    PathSettings
    """
    same = isinstance(estimator.alpha_H, str)
    return PathSettings(
        n_agents=n_agents,
        max_iter=int(estimator.max_iter),
        tol=float(estimator.tol),
        n_max=float(estimator.n_max),
        right_penalty=right_penalty(
            float(estimator.alpha_W), float(estimator.l1_ratio), n_features
        ),
        left_alpha=float(estimator.alpha_W if same else estimator.alpha_H),
        l1_ratio=float(estimator.l1_ratio),
        exact=n_agents == 1,
    )


def _observer(
    progress: Progress, callbacks: FitCallbacks, order: NDArray[np.intp], dtype: Any
) -> Observer:
    """Make what is called with the history after each iteration."""
    rows: list[HistoryRow] = []

    def observe(row: HistoryRow, reports: list[Report | None]) -> bool:
        rows.append(row)
        progress.show(row)
        return callbacks.end_iteration(
            lambda: fitted_attributes(reports, rows, order, dtype),
            all(report.final for report in reports if report is not None),
        )

    return observe


PROTOCOLS: dict[str, Runner] = {
    "consensus": run_consensus,
    "secure-sum": run_secure_sum,
}
