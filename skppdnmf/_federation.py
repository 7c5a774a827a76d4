"""Runs the agents of one process and carries their messages, with joblib."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from ._agent import Agent
from ._history import HistoryRow, history_row
from ._settings import Report
from ._threads import single_threaded
from .exchange import Message

Letters = list[tuple[int, Message]]
Observer = Callable[[HistoryRow, list[Report]], bool]

# Turns of all agents shorter than this, in seconds, run in one thread: threads that
# hand the interpreter's lock to and fro would only slow them down.
_SHORT_TURN = 0.05


class Outcome(NamedTuple):
    """What a federation leaves behind; it holds no key, noise or mask.

    Parameters
    ----------
    reports : list of Report
        The agents' last reports.
    rows : list of HistoryRow
        One for each BCD iteration.
    converged : bool
        Whether every agent met the tolerance.
    traffic : Traffic
        What went over each directed edge.
    """

    reports: list[Report]
    rows: list[HistoryRow]
    converged: bool
    traffic: Traffic


class Traffic:
    """Counts messages, ciphertexts and bytes of each directed edge.

    Parameters
    ----------
    n_agents : int
        Size of the graph.

    Attributes
    ----------
    total_bytes : int
        Bytes sent so far.
    """

    def __init__(self, n_agents: int) -> None:
        # Plain lists: counting must not cost more than the messages.
        self._counts = [[[0, 0, 0] for _ in range(n_agents)] for _ in range(n_agents)]
        self.total_bytes = 0

    def count(self, sender: int, receiver: int, message: Message) -> None:
        """Count one message."""
        counts = self._counts[sender][receiver]
        payload = message.payload
        n_bytes = message.n_bytes
        counts[0] += 1
        counts[1] += payload.n_ciphertexts if payload else 0
        counts[2] += n_bytes
        self.total_bytes += n_bytes

    def summary(self, labels: Sequence[Any], order: NDArray) -> dict[str, Any]:
        """Return totals, and the same for each directed edge by its labels.

        Parameters
        ----------
        labels : sequence
            Labels of the agents.
        order : ndarray of int
            The agent of each row.

        Returns
        -------
        dict
            ``messages``, ``ciphertexts``, ``bytes`` and ``edges``.
        """
        names = ("messages", "ciphertexts", "bytes")
        place = np.argsort(order)
        edges = {}
        for i, k in enumerate(place):
            for j, m in enumerate(place):
                counts = self._counts[k][m]
                if counts[0]:
                    edges[labels[i], labels[j]] = dict(zip(names, counts, strict=True))
        totals = {name: sum(edge[name] for edge in edges.values()) for name in names}
        return {**totals, "edges": edges}


def _advance(agent: Agent, arrived: Letters | None) -> tuple[Agent, Letters]:
    """Let one agent go on, wherever this runs.

    One thread for the linear algebra: how it splits a product would otherwise
    depend on the backend, and with it the last bits of the result.
    """
    with single_threaded():
        return agent, agent.start() if arrived is None else agent.advance(arrived)


def run_federation(
    agents: list[Agent],
    squared_norm: float,
    n_jobs: int | None = None,
    prefer: str = "threads",
    observer: Observer | None = None,
) -> Outcome:
    """Run all agents to the end.

    Parameters
    ----------
    agents : list of Agent
        Agent i has number i.
    squared_norm : float
        ``||X||^2``, for the errors of the history.
    n_jobs : int or None, default=None
        Agents that run side by side. The result does not depend on it.
    prefer : {"threads", "processes"}, default="threads"
        Where they run, unless `joblib.parallel_config` has chosen a backend.
    observer : callable or None, default=None
        Called with each `HistoryRow` and the agents' reports that it sums up;
        returns True to end the fit.

    Returns
    -------
    Outcome
        The agents' reports, the history and the traffic.

    Raises
    ------
    RuntimeError
        If no agent can go on.
    """
    started = time.perf_counter()
    traffic = Traffic(len(agents))
    rows: list[HistoryRow] = []
    inboxes: list[Letters | None] = [None] * len(agents)
    pending: list[deque[Report]] = [deque() for _ in agents]
    several = min(effective_n_jobs(n_jobs), len(agents)) > 1
    backend, _ = get_active_backend(prefer=prefer)
    threads = getattr(backend, "supports_sharedmem", False)
    turn_seconds = math.inf
    # Before version 1.4 joblib took a given None for 1, whatever the context says.
    jobs = {} if n_jobs is None else {"n_jobs": n_jobs}
    with (
        single_threaded(),
        Parallel(**jobs, prefer=prefer, max_nbytes=None) as parallel,
    ):
        while True:
            turn_started = time.perf_counter()
            if several and (not threads or turn_seconds > _SHORT_TURN):
                results = parallel(
                    delayed(_advance)(agent, inbox)
                    for agent, inbox in zip(agents, inboxes, strict=True)
                )
                agents = [agent for agent, _ in results]
                outboxes = [outbox for _, outbox in results]
            else:
                outboxes = [
                    agent.start() if inbox is None else agent.advance(inbox)
                    for agent, inbox in zip(agents, inboxes, strict=True)
                ]
            turn_seconds = time.perf_counter() - turn_started
            started_now = inboxes[0] is None
            inboxes = [[] for _ in agents]
            for i, outbox in enumerate(outboxes):
                for receiver, message in outbox:
                    traffic.count(i, receiver, message)
                    inboxes[receiver].append((i, message))
            for agent, reports in zip(agents, pending, strict=True):
                reports += agent.reports
                agent.reports = []
            progress = started_now or any(outboxes)
            stop = False
            while all(pending) and not stop:
                last = [reports.popleft() for reports in pending]
                seconds = time.perf_counter() - started
                rows.append(
                    history_row(last, squared_norm, seconds, traffic.total_bytes)
                )
                progress = True
                stop = observer is not None and observer(rows[-1], last)
            if stop or all(agent.finished for agent in agents):
                break
            if not progress:
                waiting = [agent.name for agent in agents if not agent.finished]
                raise RuntimeError(f"no agent can go on; waiting: {waiting[:5]}")
    return Outcome(last, rows, all(report.stopped for report in last), traffic)
