"""The relay of a run: it carries sealed envelopes between sites, and ends the run.

It holds no data and no key, and reads of an envelope only who it is from and for. It
does not know how sites are called; `skppdnmf.flare.relay` is where FLARE does.
"""

from __future__ import annotations

import json
import secrets
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from .._agent import RUN_ID_BYTES, Departure, Envelope, Report, Step
from .._federation.local import Answer as Turn
from .._federation.local import Call, run_agents, take_turn
from .._fit.protocols import PROTOCOLS
from ..exceptions import (
    AgentLost,
    CorruptedMessageError,
    DropoutError,
    DropoutWarning,
    FederationError,
)
from .frames import Answer, Failure, join
from .job import JobSpec
from .results import COMPONENTS, mean_of

# Topic of the command by which a submitter follows a run.
PROGRESS = "skppdnmf.progress"
OUTCOME = "outcome.json"
_NOTHING = np.empty((0, 0))


class RemoteParty:
    """A site, as the loop that carries envelopes sees an agent.

    Parameters
    ----------
    name : str
        Of the site.
    call : callable
        ``call(method, *bytes)`` returns the site's answer, or raises what FLARE raises
        when there is none.
    """

    def __init__(self, name: str, call: Callable[..., bytes]) -> None:
        self.name = name
        self._call = call
        # Whether nothing but an envelope can move the site on.
        self._settled = False
        self._finished = False
        self.lost = False

    def ask(self, method: str, *given: bytes) -> bytes:
        """Call the site; a site that cannot be reached is lost."""
        try:
            answer = self._call(method, *given)
        except Exception as error:
            self.lost = True
            raise AgentLost(f"{self.name} cannot be reached ({error})") from error
        if not isinstance(answer, bytes):
            self.lost = True
            raise AgentLost(f"{self.name} answers with a {type(answer).__name__}")
        return answer

    def start(self) -> Step:
        """Let the site's agent begin."""
        return self._take(self.ask("start"))

    def advance(self, envelopes: list[Envelope]) -> Step:
        """Hand envelopes to the site."""
        if self._settled and not envelopes:
            return Step([], finished=self._finished)
        return self._take(self.ask("advance", join(envelopes)))

    def depart(self, departure: Departure) -> Step:
        """Tell the site who has left."""
        order = json.dumps({"number": departure.number, "agents": departure.agents})
        return self._take(self.ask("depart", order.encode()))

    def stop(self) -> None:
        """Do nothing: the relay asks nobody to end before the end."""

    def _take(self, data: bytes) -> Step:
        """Read an answer."""
        answer = Answer.from_bytes(data)
        if answer.failure is not None:
            raise error_of(self.name, answer.failure)
        report = None
        if answer.iteration:
            report = Report(
                answer.iteration,
                answer.n_exchanges,
                _NOTHING,
                np.nan,
                shared_error=answer.error,
            )
        self._settled = report is None
        self._finished = answer.finished
        envelopes = [Envelope.from_bytes(one) for one in answer.envelopes]
        return Step(envelopes, report, answer.finished)


def error_of(name: str, failure: Failure) -> Exception:
    """Return the error that a site's failure means for the run."""
    text = f"{name}: {failure.error}: {failure.message}"
    if failure.error == "DropoutError":
        return DropoutError(text)
    if failure.sender is not None and failure.error in _BLAMED:
        return CorruptedMessageError(text, sender=failure.sender)
    return FederationError(text)


_BLAMED = ("CorruptedMessageError", "ForgedMessageError", "ReplayedMessageError")


def describe(error: Exception) -> str:
    """Return an error's name and message; of a run's, which names another, that."""
    if type(error) is FederationError:
        return str(error)
    return f"{type(error).__name__}: {error}"


class Run:
    """One run, as its relay sees it.

    Parameters
    ----------
    spec : JobSpec
        The job.
    parties : sequence of RemoteParty
        The sites, in the order of their numbers.
    folder : Path
        Where the outcome goes.
    tap : callable or None, default=None
        Shown every envelope: an audit's.
    """

    def __init__(
        self,
        spec: JobSpec,
        parties: Sequence[RemoteParty],
        folder: Path,
        tap: Callable[[int, Envelope], None] | None = None,
    ) -> None:
        self._spec = spec
        self._parties = list(parties)
        self._folder = folder
        self._tap = tap
        self._pool = ThreadPoolExecutor(max(1, len(parties)))
        self._started = time.perf_counter()
        self._state: dict[str, Any] = {
            "run": secrets.token_hex(RUN_ID_BYTES),
            "sites": [party.name for party in parties],
            "iteration": 0,
            "exchanges": 0,
            "max_iter": spec.parameters["max_iter"],
            "error": None,
            "bytes": 0,
            "seconds": 0.0,
            "seconds_carried": 0.0,
            "ended": None,
        }

    def progress(self, *_: Any) -> dict[str, Any]:
        """Return how far the run is, for whoever has submitted it."""
        return dict(self._state)

    def to_the_end(self) -> None:
        """Run: offer, prepare, carry, finish.

        Raises
        ------
        FederationError
            If the run has failed.
        """
        failure: Exception | None = None
        try:
            order = {key: self._state[key] for key in ("run", "sites")}
            answers = self._all("offer", json.dumps(order).encode())
            # The last iteration that all have; 0 where there is nothing to go on from.
            begin = min(answer.iteration for answer in answers)
            order = {"iteration": begin} if begin else {}
            self._all("prepare", json.dumps(order).encode())
            self._carry()
        except Exception as error:
            failure = error
        reason = None if failure is None else describe(failure)
        returned = self._finish(reason)
        self._state["seconds"] = time.perf_counter() - self._started
        self._state["ended"] = reason or "finished"
        (self._folder / OUTCOME).write_text(json.dumps(self._state, indent=1) + "\n")
        self._pool.shutdown(wait=False, cancel_futures=True)
        if failure is not None:
            raise FederationError(reason) from failure
        if returned:
            (self._folder / COMPONENTS).write_bytes(mean_of(returned))

    def _all(self, method: str, *given: bytes) -> list[Answer]:
        """Ask all sites, and return their answers; one that refuses ends the run."""
        calls = [self._pool.submit(one.ask, method, *given) for one in self._parties]
        answers: list[Answer] = []
        failures: list[Exception] = []
        for party, call in zip(self._parties, calls, strict=True):
            try:
                answer = Answer.from_bytes(call.result())
                answers.append(answer)
                if answer.failure is not None:
                    failures.append(error_of(party.name, answer.failure))
            except Exception as error:  # noqa: PERF203 - there are a few sites
                failures.append(error)
        if failures:
            told = "; ".join(map(describe, failures))
            raise FederationError(told) from failures[0]
        return answers

    def _carry(self) -> None:
        """Carry envelopes until all sites have finished."""
        parameters = self._spec.parameters
        agrees = PROTOCOLS[parameters["protocol"]].agrees
        started = time.perf_counter()

        def observe(reports: Sequence[Report | None], n_bytes: int) -> bool:
            present = [report for report in reports if report is not None]
            error = present[0].shared_error
            self._state.update(
                iteration=max(report.iteration for report in present),
                exchanges=max(report.n_exchanges for report in present),
                error=float(error) if np.isfinite(error) else None,
                bytes=n_bytes,
                seconds=time.perf_counter() - self._started,
                seconds_carried=time.perf_counter() - started,
                sites=[
                    party.name
                    for party, report in zip(self._parties, reports, strict=True)
                    if report is not None
                ],
            )
            return False

        with warnings.catch_warnings():
            # Each site's log says who has left.
            warnings.simplefilter("ignore", DropoutWarning)
            run_agents(
                self._parties,
                [party.name for party in self._parties],
                self._take_turns,
                observer=observe,
                on_dropout=parameters["on_dropout"] if agrees else None,
                check_departure=self._check_departure,
                tap=self._tap,
            )

    def _take_turns(self, calls: list[Call]) -> list[Turn]:
        """Let all sites take their turns at the same time."""
        futures = [self._pool.submit(take_turn, *call) for call in calls]
        return [future.result() for future in futures]

    def _check_departure(self, left: list[int]) -> None:
        """Refuse to go on with fewer sites than the job allows."""
        if len(left) < self._spec.min_sites:
            raise DropoutError(
                f"{len(left)} sites are left, fewer than "
                f"min_sites={self._spec.min_sites}"
            )

    def _finish(self, error: str | None) -> list[bytes]:
        """Tell the sites how the run has ended; return what they may return."""
        order = json.dumps({"error": error}).encode()
        calls = [
            self._pool.submit(party.ask, "finish", order)
            for party in self._parties
            if not party.lost
        ]
        returned = []
        for call in calls:
            try:
                returned.append(call.result())
            except AgentLost:  # noqa: PERF203 - it has nothing to be told any more
                continue
        return [one for one in returned if one]
