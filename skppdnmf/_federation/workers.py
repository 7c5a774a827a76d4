"""Worker processes in which agents stay, so that envelopes alone travel.

joblib hands a task to whichever worker is free, and its agent with it: keys, factors
and samples would cross between processes in every turn. Here each worker is a pool of
one process, and an agent keeps its place.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any

from joblib.externals.loky.backend import get_context

from .._agent import Departure, Step
from .._nmf.threads import single_threaded
from .turns import Answer, Call, take_turn

_executors: dict[int, ProcessPoolExecutor] = {}
_seated: dict[tuple[str, int], Any] = {}  # in a worker: its agents


class Seat:
    """Stands for an agent that lives in a worker.

    Parameters
    ----------
    run : str
        Name of the run.
    number : int
        The agent's.
    executor : Executor
        The worker.
    """

    def __init__(self, run: str, number: int, executor: Any) -> None:
        self.key = run, number
        self.executor = executor

    def depart(self, departure: Departure) -> Step:
        """Tell the agent who has left."""
        return self._tell("depart", departure)

    def stop(self) -> None:
        """Ask the agent to end the fit."""
        self._tell("stop")

    def _tell(self, method: str, *given: Any) -> Any:
        """Call a method of the agent."""
        return self.executor.submit(_call, self.key, method, given).result()


class Workers:
    """Lets agents take their turns, each in the worker where it has its place.

    Parameters
    ----------
    n_workers : int
        Number of processes. They are kept for the next fit.
    loads : sequence of float
        How much work each agent has, so that workers have about the same.

    Examples
    --------
    >>> from skppdnmf._federation.workers import places
    >>> places([3.0, 1.0, 2.0, 2.0], 2)
    [0, 0, 1, 1]
    """

    def __init__(self, n_workers: int, loads: Sequence[float]) -> None:
        self._run = uuid.uuid4().hex
        self._places = places(loads, n_workers)
        self._executors = [_executor(place) for place in range(n_workers)]
        self._new = set(range(len(loads)))

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, BrokenProcessPool):
            _executors.clear()
            return
        for executor in self._executors:
            executor.submit(_forget, self._run)

    def __call__(self, calls: list[Call]) -> list[Answer]:
        """Let the agents take a turn each.

        Parameters
        ----------
        calls : list of (agent or Seat, list of Envelope or None, bool)
            In the first turn agents, in the order of `loads`; then their seats.

        Returns
        -------
        list of (Seat, Step, exception or None)
            In the order of the calls.
        """
        tasks: dict[int, list[tuple[int, Any]]] = {}
        seats = []
        for index, (party, arrived, may_leave) in enumerate(calls):
            agent = None
            if not isinstance(party, Seat):
                home = self._executors[self._places[index]]
                party, agent = Seat(self._run, index, home), party
            seats.append(party)
            place = self._executors.index(party.executor)
            task = party.key, agent, arrived, may_leave
            tasks.setdefault(place, []).append((index, task))
        waiting: list[tuple[list[int], Future]] = []
        for place, some in tasks.items():
            future = self._executors[place].submit(_turns, [task for _, task in some])
            waiting.append(([index for index, _ in some], future))
        answers: list[Any] = [None] * len(calls)
        for indices, future in waiting:
            for index, (step, error) in zip(indices, future.result(), strict=True):
                answers[index] = seats[index], step, error
        return answers


def places(loads: Sequence[float], n_workers: int) -> list[int]:
    """Spread agents over workers, the busiest first, each where least is to do.

    Parameters
    ----------
    loads : sequence of float
        Work of each agent.
    n_workers : int
        Number of workers.

    Returns
    -------
    list of int
        The worker of each agent.
    """
    totals = [0.0] * n_workers
    found = [0] * len(loads)
    for index in sorted(range(len(loads)), key=lambda i: -loads[i]):
        found[index] = totals.index(min(totals))
        totals[found[index]] += loads[index]
    return found


def _executor(place: int) -> ProcessPoolExecutor:
    """Return a worker of this process, started when it is first needed.

    Processes start as joblib's do, so that a script need not guard its main part. But
    joblib's own pools replace a process whose memory grows or that has been idle, and
    with it would go its agents.
    """
    if place not in _executors:
        _executors[place] = ProcessPoolExecutor(1, mp_context=get_context("loky"))
    return _executors[place]


def _turns(tasks: list[tuple[Any, Any, Any, bool]]) -> list[tuple[Step, Any]]:
    """In a worker: let some agents take their turns."""
    results = []
    with single_threaded():
        for key, agent, arrived, may_leave in tasks:
            if agent is not None:
                _seated[key] = agent
            _, step, error = take_turn(_seated[key], arrived, may_leave)
            results.append((step, error))
    return results


def _call(key: tuple[str, int], method: str, given: tuple[Any, ...]) -> Any:
    """In a worker: call a method of an agent."""
    return getattr(_seated[key], method)(*given)


def _forget(run: str) -> None:
    """In a worker: let the agents of a run go."""
    for key in [key for key in _seated if key[0] == run]:
        del _seated[key]
