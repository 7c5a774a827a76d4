"""Runs the agents of one process and carries their messages, with joblib."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from .._consensus.agent import Agent
from .._consensus.messages import Message
from .._consensus.settings import Report
from .._fit.history import HistoryRow, history_row
from .._nmf.threads import single_threaded
from .._secure_sum.agent import SumAgent
from .._secure_sum.messages import SumMessage
from .._warn import warn_user
from ..exceptions import DropoutError, DropoutWarning, PrivacyWarning

Letters = list[tuple[int, Any]]
Observer = Callable[[HistoryRow, list[Report | None]], bool]

# Turns of all agents shorter than this, in seconds, run in one thread: threads that
# hand the interpreter's lock to and fro would only slow them down.
_SHORT_TURN = 0.05


class Outcome(NamedTuple):
    """What a federation leaves behind; it holds no key, noise or mask.

    Parameters
    ----------
    reports : list of Report or None
        The agents' last reports; None of those that have dropped out.
    rows : list of HistoryRow
        One for each BCD iteration.
    converged : bool
        Whether every agent met the tolerance.
    traffic : Traffic
        What went over each directed edge.
    dropped : list of int
        Agents that have dropped out.
    """

    reports: list[Report | None]
    rows: list[HistoryRow]
    converged: bool
    traffic: Traffic
    dropped: list[int]


class Traffic:
    """Counts messages, ciphertexts and bytes of each directed edge.

    Attributes
    ----------
    total_bytes : int
        Bytes sent so far.
    """

    def __init__(self) -> None:
        # Plain lists: counting must not cost more than the messages.
        self._counts: dict[tuple[int, int], list[int]] = {}
        self.total_bytes = 0

    def count(self, sender: int, receiver: int, message: Message | SumMessage) -> None:
        """Count one message."""
        counts = self._counts.setdefault((sender, receiver), [0, 0, 0])
        n_bytes = message.n_bytes
        counts[0] += 1
        counts[1] += message.n_ciphertexts
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
        counted = sorted(
            (int(order[sender]), int(order[receiver]), counts)
            for (sender, receiver), counts in self._counts.items()
        )
        edges = {
            (labels[i], labels[j]): dict(zip(names, counts, strict=True))
            for i, j, counts in counted
        }
        totals = {name: sum(edge[name] for edge in edges.values()) for name in names}
        return {**totals, "edges": edges}


def _advance(
    agent: Any, arrived: Letters | None, may_fail: bool
) -> tuple[Any, Letters, Exception | None]:
    """Let one agent go on, wherever this runs.

    One thread for the linear algebra: how it splits a product would otherwise
    depend on the backend, and with it the last bits of the result.
    """
    with single_threaded():
        return _turn(agent, arrived, may_fail)


def _drop_out(
    agents: list[Any], present: set[int], failures: dict[int, Exception], policy: str
) -> dict[int, Letters]:
    """Tell the agents that are present who has failed; return what they send."""
    names = ", ".join(sorted(agents[i].name for i in failures))
    first = next(iter(failures.values()))
    if policy == "raise" or len(failures) == len(present):
        if len(failures) == len(present):
            raise first
        raise DropoutError(
            f"{names} dropped out and the round was given up ({first}); nothing that "
            'was sent shows a summand. on_dropout="continue" goes on without'
        ) from first
    present.difference_update(failures)
    warn_user(
        f"{names} dropped out and the round was given up ({first}); the fit goes on "
        f"with the other {len(present)} agents and fresh masks",
        DropoutWarning,
    )
    try:
        letters = {i: agents[i].drop(*failures) for i in sorted(present)}
    except DropoutError as error:
        raise DropoutError(
            f"{names} dropped out and the fit cannot go on: {error}"
        ) from error
    if sum(agents[i].X.shape[0] > 0 for i in present) == 2:
        warn_user(
            "two agents that have samples are left, and the secure sum hides nothing "
            "of one from the other: each subtracts its own summand from the total",
            PrivacyWarning,
        )
    return letters


def run_federation(
    parties: Sequence[Agent] | Sequence[SumAgent],
    squared_norm: float,
    n_jobs: int | None = None,
    prefer: str = "threads",
    observer: Observer | None = None,
    on_dropout: str | None = None,
) -> Outcome:
    """Run all agents to the end.

    Parameters
    ----------
    parties : sequence of Agent or of SumAgent
        Agent i has number i.
    squared_norm : float
        ``||X||^2``, for the errors of the history.
    n_jobs : int or None, default=None
        Agents that run side by side. The result does not depend on it.
    prefer : {"threads", "processes"}, default="threads"
        Where they run, unless `joblib.parallel_config` has chosen a backend.
    observer : callable or None, default=None
        Called with each `HistoryRow` and the agents' reports that it sums up (None
        of those that have dropped out); returns True to end the fit.
    on_dropout : {"raise", "continue"} or None, default=None
        What to do when an agent raises an exception, which stands for its failing
        or leaving: end the fit by a `DropoutError`, or go on without it. None for
        agents that cannot do without each other: the exception itself.

    Returns
    -------
    Outcome
        The agents' reports, the history and the traffic.

    Raises
    ------
    RuntimeError
        If no agent can go on.
    DropoutError
        If an agent dropped out and the fit cannot, or may not, go on.
    """
    started = time.perf_counter()
    agents: list[Any] = list(parties)
    traffic = Traffic()
    rows: list[HistoryRow] = []
    present = set(range(len(agents)))
    inboxes: list[Letters | None] = [None] * len(agents)
    pending: list[deque[Report]] = [deque() for _ in agents]
    several = min(effective_n_jobs(n_jobs), len(agents)) > 1
    backend, _ = get_active_backend(prefer=prefer)
    threads = getattr(backend, "supports_sharedmem", False)
    turn_seconds = math.inf
    # Before version 1.4 joblib took a given None for 1, whatever the context says.
    jobs = {} if n_jobs is None else {"n_jobs": n_jobs}
    may_fail = on_dropout is not None
    with (
        single_threaded(),
        Parallel(**jobs, prefer=prefer, max_nbytes=None) as parallel,
    ):
        while True:
            turn_started = time.perf_counter()
            side_by_side = several and (not threads or turn_seconds > _SHORT_TURN)
            turns = sorted(present)
            calls = ((agents[i], inboxes[i], may_fail) for i in turns)
            if side_by_side:
                results = parallel(delayed(_advance)(*call) for call in calls)
            else:
                results = [_turn(*call) for call in calls]
            turn_seconds = time.perf_counter() - turn_started
            outboxes: dict[int, Letters] = {}
            failures: dict[int, Exception] = {}
            for i, (agent, outbox, error) in zip(turns, results, strict=True):
                agents[i] = agent
                outboxes[i] = outbox
                if error is not None:
                    failures[i] = error
            started_now = inboxes[0] is None
            if failures and on_dropout is not None:
                answers = _drop_out(agents, present, failures, on_dropout)
                for i, letters in answers.items():
                    outboxes[i] = outboxes[i] + letters
                squared_norm -= sum(agents[i].squared_norm for i in failures)
                squared_norm = max(0.0, squared_norm)
            inboxes = [[] for _ in agents]
            for i in turns:
                for receiver, message in outboxes[i]:
                    traffic.count(i, receiver, message)
                    if receiver in present:
                        inboxes[receiver].append((i, message))  # type: ignore[union-attr]
            for i in present:
                pending[i] += agents[i].reports
                agents[i].reports = []
            progress = started_now or bool(failures) or any(outboxes.values())
            stop = False
            while all(pending[i] for i in present) and not stop:
                last = [pending[i].popleft() for i in sorted(present)]
                seconds = time.perf_counter() - started
                rows.append(
                    history_row(last, squared_norm, seconds, traffic.total_bytes)
                )
                progress = True
                everyone = _of_all(last, present, len(agents))
                stop = observer is not None and observer(rows[-1], everyone)
            if stop or all(agents[i].finished for i in present):
                break
            if not progress:
                waiting = [agents[i].name for i in present if not agents[i].finished]
                raise RuntimeError(f"no agent can go on; waiting: {waiting[:5]}")
    dropped = sorted(set(range(len(agents))) - present)
    converged = all(report.stopped for report in last)
    return Outcome(everyone, rows, converged, traffic, dropped)


def _of_all(
    reports: list[Report], present: set[int], n_agents: int
) -> list[Report | None]:
    """Return reports by the agents' numbers, None for those that are gone."""
    everyone: list[Report | None] = [None] * n_agents
    for i, report in zip(sorted(present), reports, strict=True):
        everyone[i] = report
    return everyone


def _turn(
    agent: Any, arrived: Letters | None, may_fail: bool
) -> tuple[Any, Letters, Exception | None]:
    """As `_advance`, where the linear algebra has one thread already.

    What an agent refuses before it has begun is no dropout.
    """
    try:
        outbox = agent.start() if arrived is None else agent.advance(arrived)
    except Exception as error:
        if not may_fail or arrived is None:
            raise
        return agent, [], error
    return agent, outbox, None
