"""Runs a fit of all agents in this process, and watches it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._agent import Report
from .._data.partition import LEAST_HOLDERS, Partition
from .._data.weights import WeightedSamples, scale_rows
from .._federation.helpers import Helpers
from .._federation.local import Outcome, run_local
from .._federation.membership import Membership
from .._federation.memo import Memo
from .._federation.traffic import Traffic
from .._nmf.admm import squared_norm
from .._nmf.beta import BetaSamples, beta_of
from .._nmf.observed import zero_filled
from .._protocol import Computed, FitProtocol, Hooks, Plan, Setting
from .._sealing.credentials import LocalCredentials, new_run
from .._warn import warn_user
from ..exceptions import DropoutError, PrivacyWarning
from .callbacks import FitCallbacks
from .history import HistoryRow, Observer, fitted_attributes
from .progress import Progress


class Fit(NamedTuple):
    """What a fit leaves behind.

    Parameters
    ----------
    outcome : Outcome
        Of the run.
    rows : list of HistoryRow
        What the observer saw.
    """

    outcome: Outcome
    rows: list[HistoryRow]


def warn_of_leaks(
    protocol: FitProtocol, setting: Setting, partition: Partition
) -> None:
    """Warn where the settings protect less than a user may believe.

    Parameters
    ----------
    protocol : FitProtocol
        The estimator's.
    setting : Setting
        The fit's public facts.
    partition : Partition
        Who holds what.
    """
    if setting.network.n_agents == 1:
        return
    for message in protocol.privacy(
        setting.estimator, setting.network, partition, len(setting.start)
    ):
        warn_user(message, PrivacyWarning)


def run_fit(
    setting: Setting,
    plan: Plan,
    X: Any,
    partition: Partition,
    callbacks: FitCallbacks,
    recorder: Any = None,
    weights: NDArray[np.float64] | None = None,
) -> Fit:
    """Run a plan on the data of all agents.

    Parameters
    ----------
    setting : Setting
        The fit's public facts.
    plan : Plan
        What the protocol has made of them.
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Validated data.
    partition : Partition
        Who holds what.
    callbacks : FitCallbacks
        To be called after each iteration.
    recorder : object or None, default=None
        Of an audit: handed to the agents when they are built, and shown every envelope.
    weights : ndarray of shape (n_samples,) or None, default=None
        Of the samples, above 0.

    Returns
    -------
    Fit
    """
    estimator = setting.estimator
    parts = [_rows_of(X, rows) for rows in partition.samples]
    norms = _sizes(setting, parts, partition, weights)
    if weights is not None:
        parts = [
            WeightedSamples(part, weights[rows])
            for part, rows in zip(parts, partition.samples, strict=True)
        ]
    names = [f"agent {label!r}" for label in partition.labels]
    if recorder is not None:
        recorder.begin(setting, plan, partition.labels, parts)
    plain = weights is None and beta_of(estimator.beta_loss) == 2
    watch = Observer(squared_norm(zero_filled(X)) if plain else sum(norms), norms)
    max_iter = int(estimator.max_iter)
    n_agents = setting.network.n_agents
    with (
        Progress(estimator.verbose, max_iter) as progress,
        Helpers.of(estimator.n_jobs, n_agents, plan.backend) as helpers,
    ):

        def observe(
            reports: Sequence[Report | None], n_bytes: int, error: float = math.nan
        ) -> bool:
            progress.show(watch.note(reports, n_bytes, error))
            return callbacks.end_iteration(
                lambda: fitted_attributes(
                    reports, watch.rows, X.dtype, estimator.normalize
                ),
                all(report.final for report in reports if report is not None),
            )

        if plan.run is not None:
            outcome = _outcome(plan.run(parts, names, observe))
            return Fit(outcome, watch.rows)
        assert plan.build is not None
        run = new_run()
        hooks = Hooks(
            Memo(),
            recorder,
            LocalCredentials(names, run),
            share=helpers.share,
            together=True,
        )
        agents = plan.build(parts, names, run, hooks)
        outcome = run_local(
            agents,
            names,
            n_jobs=estimator.n_jobs,
            prefer=plan.backend,
            helpers=helpers,
            # Each answers as many as it asks; its own steps are little beside that.
            loads=[1.0 + degree for degree in setting.network.degrees.tolist()],
            observer=observe,
            on_dropout=plan.on_dropout,
            check_departure=lambda left: _check_departure(partition, left),
            tap=None if recorder is None else recorder.sent,
        )
    return Fit(outcome, watch.rows)


def _rows_of(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return an agent's samples, as a view where they follow each other."""
    size = len(rows)
    if size and rows[-1] - rows[0] == size - 1 and (np.diff(rows) == 1).all():
        return X[rows[0] : rows[0] + size]
    return X[rows]


def _outcome(computed: Computed) -> Outcome:
    """Return what a run leaves behind that was not carried by the loop."""
    traffic = Traffic()
    for link in computed.links:
        traffic.add(*link)
    return Outcome(
        list(computed.reports), True, traffic, Membership(len(computed.reports))
    )


def _sizes(
    setting: Setting,
    parts: list[Any],
    partition: Partition,
    weights: NDArray[np.float64] | None,
) -> list[float]:
    """Return what errors are relative to, for each agent."""
    return [
        reference_size(setting, part, None if weights is None else weights[rows])
        for part, rows in zip(parts, partition.samples, strict=True)
    ]


def reference_size(
    setting: Setting, X: Any, weights: NDArray[np.float64] | None
) -> float:
    """Return what the error of an agent is relative to.

    Parameters
    ----------
    setting : Setting
        Of the fit.
    X : ndarray or sparse matrix of shape (n_i, n_features)
        The agent's samples.
    weights : ndarray of shape (n_i,) or None
        Their weights.

    Returns
    -------
    float
        The square of the samples' norm, or their divergence from their means.
    """
    beta = beta_of(setting.estimator.beta_loss)
    if beta != 2:
        own = np.ones(X.shape[0]) if weights is None else weights
        samples = BetaSamples.of(X, beta, setting.missing)
        return float(samples.null_divergences() @ own)
    if weights is None:
        return squared_norm(zero_filled(X))
    return squared_norm(scale_rows(zero_filled(X), np.sqrt(weights)))


def _check_departure(partition: Partition, left: list[int]) -> None:
    """Refuse to go on where too few agents are left for a sum to hide anything."""
    n_holders = sum(bool(partition.sizes[i]) for i in left)
    if n_holders < LEAST_HOLDERS:
        raise DropoutError(
            f"n_holders={n_holders} agents that have samples are left, at least "
            f"{LEAST_HOLDERS} are needed: of two, each subtracts its own summand from "
            "a total and has the other's"
        )
