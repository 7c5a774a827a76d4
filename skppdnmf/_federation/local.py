"""Runs the agents of one process and carries their envelopes, with joblib."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import BACKENDS, get_active_backend

from .._agent import Agent, Departure, Envelope, Report, Step
from .._nmf.threads import single_threaded
from .._warn import warn_user
from ..exceptions import (
    AgentLost,
    CorruptedMessageError,
    DropoutError,
    DropoutWarning,
)
from .helpers import Helpers
from .membership import Membership
from .traffic import Traffic
from .turns import Answer, Call, take_turn
from .workers import Workers

Reports = list[Report | None]
Observer = Callable[[Reports, int], bool]

# A turn of all agents is shared among threads once it has computed so many seconds, and
# only if agents take two fifths of that each: threads that hand the interpreter's lock
# to and fro would slow down those that hardly compute.
_SHORT_TURN = 0.005


class Outcome(NamedTuple):
    """What a run leaves behind; it holds no key, noise or mask.

    Parameters
    ----------
    reports : list of Report or None
        The agents' reports on the iteration with which the fit ends; None of those
        that have left.
    converged : bool
        Whether every agent met the tolerance.
    traffic : Traffic
        What went over each directed edge.
    membership : Membership
        Who took part to the end.
    """

    reports: Reports
    converged: bool
    traffic: Traffic
    membership: Membership


def run_local(
    agents: Sequence[Agent],
    names: Sequence[str],
    *,
    n_jobs: int | None = None,
    prefer: str = "threads",
    loads: Sequence[float] | None = None,
    helpers: Helpers | None = None,
    **given: Any,
) -> Outcome:
    """Run all agents to the end, with joblib.

    Parameters
    ----------
    agents, names
        As for `run_agents`.
    n_jobs : int or None, default=None
        Agents that run side by side. The result does not depend on it.
    prefer : {"threads", "processes"}, default="threads"
        Where they run, unless `joblib.parallel_config` has chosen a backend. In
        processes of this machine each agent stays where it is.
    loads : sequence of float or None, default=None
        How much work each agent has beside the others; all the same by default.
    helpers : Helpers or None, default=None
        Threads that the agents share their work with already.
    **given
        Other parameters of `run_agents`.

    Returns
    -------
    Outcome
        The agents' reports and the traffic.

    Raises
    ------
    DropoutError, CorruptedMessageError
        As `run_agents` does.
    """
    # More than there are agents would only make workers that have nothing to do.
    n_workers = min(effective_n_jobs(n_jobs), len(agents))
    backend, _ = get_active_backend(prefer=prefer)
    if n_workers > 1 and type(backend) is BACKENDS["loky"]:
        with Workers(n_workers, loads or [1.0] * len(agents)) as workers:
            return run_agents(agents, names, workers, **given)
    if n_workers == 1 or type(backend) is BACKENDS["threading"]:
        with single_threaded(), ExitStack() as stack:
            if helpers is None:
                helpers = stack.enter_context(Helpers.of(n_jobs, len(agents), prefer))
            return run_agents(agents, names, _Turns(helpers), **given)
    with (
        single_threaded(),
        Parallel(n_jobs=n_workers, prefer=prefer, max_nbytes=None) as parallel,
    ):

        def take_turns(calls: list[Call]) -> list[Answer]:
            return parallel(delayed(_advance)(*call) for call in calls)

        return run_agents(agents, names, take_turns, **given)


class _Turns:
    """Lets agents take their turns in threads of this process."""

    def __init__(self, helpers: Helpers) -> None:
        self._helpers = helpers

    def __call__(self, calls: list[Call]) -> list[Answer]:
        """Return the agents' answers, in the order of the calls."""
        answers: list[Answer] = []
        if self._helpers.n_threads == 1:
            return [take_turn(*call) for call in calls]
        started, n_busy = time.thread_time(), 0
        for place, call in enumerate(calls, 1):
            answers.append(take_turn(*call))
            n_busy += call[1] != []
            seconds = time.thread_time() - started
            if seconds > _SHORT_TURN and seconds > n_busy * _SHORT_TURN * 0.4:
                rest = calls[place:]
                return answers + self._helpers.share(
                    lambda call: take_turn(*call), rest
                )
        return answers


def run_agents(
    agents: Sequence[Agent],
    names: Sequence[str],
    take_turns: Callable[[list[Call]], list[Answer]],
    *,
    observer: Observer | None = None,
    on_dropout: str | None = None,
    check_departure: Callable[[list[int]], None] | None = None,
    tap: Callable[[int, Envelope], None] | None = None,
    serialise: bool = False,
) -> Outcome:
    """Run all agents to the end, whoever lets them take their turns.

    Parameters
    ----------
    agents : sequence of Agent
        Agent i has number i. The loop takes their steps and reads nothing else.
    names : sequence of str
        What errors call them.
    take_turns : callable
        Returns what `take_turn` returns for each of a list of its arguments, in
        their order.
    observer : callable or None, default=None
        Called with the agents' reports on each iteration (None of those that have
        left) and the bytes sent so far; returns True to ask the agents to end the fit.
        They do so in the same round, a little later; what they report after that is
        not looked at.
    on_dropout : {"raise", "continue"} or None, default=None
        What to do when an agent is lost (`AgentLost`) or sends what it must not
        (`CorruptedMessageError`): end the fit by a `DropoutError`, or go on without
        it. None for agents that cannot do without each other: the exception itself.
        Any other exception is a fault of the program and ends the fit.
    check_departure : callable or None, default=None
        Called with those that would be left before others are told that agents have
        left; raises `DropoutError` if the fit may not go on with them.
    tap : callable or None, default=None
        Called with the number of the turn and each envelope that is sent in it.
    serialise : bool, default=False
        Whether to carry every envelope as the bytes that a wire would carry.

    Returns
    -------
    Outcome
        The agents' reports and the traffic.

    Raises
    ------
    DropoutError
        If an agent was lost and the fit cannot, or may not, go on, or if all wait for
        each other.
    CorruptedMessageError
        If what was sent is no envelope, is for nobody in the run, or says that it is
        from another agent.
    """
    parties: list[Any] = list(agents)
    traffic = Traffic()
    membership = Membership(len(parties))
    inboxes: list[list[Envelope]] = [[] for _ in parties]
    pending: list[deque[Report]] = [deque() for _ in parties]
    finished = [False] * len(parties)
    settled = [False] * len(parties)
    last: Reports = [None] * len(parties)
    may_leave = on_dropout is not None
    stopping = False
    turn = 0
    while True:
        present = membership.present
        if turn:
            present = [i for i in present if not is_idle(settled[i], inboxes[i])]
        # Before the first turn nobody has had anything: then agents start.
        calls = [(parties[i], inboxes[i] if turn else None, may_leave) for i in present]
        results = take_turns(calls)
        steps: list[tuple[int, Step]] = []
        failures: dict[int, Exception] = {}
        for i, (party, step, error) in zip(present, results, strict=True):
            parties[i] = party
            steps.append((i, step))
            if error is not None:
                _blame(failures, i, error, membership)
        progress = not turn or bool(failures)
        if failures and on_dropout is not None:
            steps += _part(
                names, parties, membership, failures, on_dropout, check_departure
            )
        inboxes = [[] for _ in parties]
        here = set(membership.present)
        for i, step in steps:
            sent = step.envelopes
            if sent:
                progress = True
                if tap is not None:
                    for envelope in sent:
                        tap(turn, envelope)
                traffic.count(sent)
                if serialise:
                    sent = [Envelope.from_bytes(one.to_bytes(), i) for one in sent]
                # Of those that have left nothing arrives any more.
                _deliver(sent, i, names, inboxes, here if i in here else set())
            finished[i] = step.finished
            settled[i] = step.settled
            if step.report is not None:
                progress = True
                if i in here:
                    pending[i].append(step.report)
        if failures:  # everybody is asked anew
            settled = [False] * len(parties)
        turn += 1
        while all(pending[i] for i in membership.present) and not stopping:
            last = [None] * len(parties)
            for i in membership.present:
                last[i] = pending[i].popleft()
            progress = True
            if observer is not None and observer(last, traffic.total_bytes):
                stopping = True
                for i in membership.present:
                    parties[i].stop()
        if all(finished[i] for i in membership.present):
            break
        if not progress:
            waiting = [names[i] for i in membership.present if not finished[i]]
            raise DropoutError(f"no agent can go on; waiting: {waiting[:5]}")
    for i in membership.gone:  # also after the observer has had enough
        last[i] = None
    converged = all(report.stopped for report in last if report is not None)
    return Outcome(last, converged, traffic, membership)


def is_idle(settled: bool, arrived: list[Envelope]) -> bool:
    """Whether an agent could do nothing in a turn: most of a large federation.

    Parameters
    ----------
    settled : bool
        Whether it has said so.
    arrived : list of Envelope
        For it, since.
    """
    return settled and not arrived


def _deliver(
    envelopes: list[Envelope],
    sender: int,
    names: Sequence[str],
    inboxes: list[list[Envelope]],
    here: set[int],
) -> None:
    """Put envelopes where those that are to have them find them, if they are here."""
    for envelope in envelopes:
        _, _, stated, receiver, _, _, _ = envelope
        if stated != sender:
            raise CorruptedMessageError(
                f"envelope from {names[sender]} claims to come from agent {stated}",
                sender=sender,
            )
        if receiver in here:
            inboxes[receiver].append(envelope)
        elif not 0 <= receiver < len(names):
            raise CorruptedMessageError(
                f"envelope from {names[sender]} for agent {receiver}, there are "
                f"{len(names)}",
                sender=sender,
            )


def _advance(
    party: Any, arrived: list[Envelope] | None, may_leave: bool
) -> tuple[Any, Step, Exception | None]:
    """Let one agent go on, wherever this runs.

    One thread for the linear algebra: how it splits a product would otherwise
    depend on the backend, and with it the last bits of the result.
    """
    with single_threaded():
        return take_turn(party, arrived, may_leave)


def _blame(
    failures: dict[int, Exception], i: int, error: Exception, membership: Membership
) -> None:
    """Note who has left: the agent itself, or whoever sent it what is corrupt."""
    if isinstance(error, CorruptedMessageError):
        if error.sender is None or error.sender not in membership.present:
            raise error
        i = error.sender
    failures.setdefault(i, error)


def _leave(
    names: Sequence[str],
    membership: Membership,
    failures: dict[int, Exception],
    policy: str,
    check: Callable[[list[int]], None] | None,
) -> None:
    """Take agents off the roster, or give up."""
    who = ", ".join(sorted(names[i] for i in failures))
    first = next(iter(failures.values()))
    if len(failures) == len(membership.present):
        raise first
    if policy == "raise":
        raise DropoutError(
            f"{who} dropped out and the round was given up ({first}); nothing that "
            'was sent shows a summand. on_dropout="continue" goes on without'
        ) from first
    if check is not None:
        try:
            check([i for i in membership.present if i not in failures])
        except DropoutError as error:
            raise DropoutError(
                f"{who} dropped out and the fit cannot go on: {error}"
            ) from error
    membership.leave(failures)
    warn_user(
        f"{who} dropped out and the round was given up ({first}); the fit goes on "
        f"with the other {len(membership.present)} agents and fresh masks",
        DropoutWarning,
    )


def _part(
    names: Sequence[str],
    parties: list[Any],
    membership: Membership,
    failures: dict[int, Exception],
    policy: str,
    check: Callable[[list[int]], None] | None,
) -> list[tuple[int, Step]]:
    """Go on without some, and without those that are found lost then.

    Returns what those that are left do.
    """
    steps: list[tuple[int, Step]] = []
    while failures:
        _leave(names, membership, failures, policy, check)
        told, failures = _tell(names, parties, membership, failures)
        steps += told
    return steps


def _tell(
    names: Sequence[str],
    parties: list[Any],
    membership: Membership,
    failures: dict[int, Exception],
) -> tuple[list[tuple[int, Step]], dict[int, Exception]]:
    """Tell those that are left who has left; return what they do, and who is lost."""
    departure = membership.departures[-1]
    steps: list[tuple[int, Step]] = []
    lost: dict[int, Exception] = {}
    try:
        for i in membership.present:
            step, error = _depart(parties[i], departure)
            steps.append((i, step))
            if error is not None:
                _blame(lost, i, error, membership)
    except DropoutError as error:
        who = ", ".join(sorted(names[i] for i in failures))
        raise DropoutError(
            f"{who} dropped out and the fit cannot go on: {error}"
        ) from error
    return steps, lost


def _depart(party: Any, departure: Departure) -> tuple[Step, Exception | None]:
    """Tell one agent who has left."""
    try:
        return party.depart(departure), None
    except (AgentLost, CorruptedMessageError) as error:
        return Step([]), error
