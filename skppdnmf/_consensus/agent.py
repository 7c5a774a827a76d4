"""One agent of the consensus: what it sends and how it takes an answer.

It does no I/O (`skppdnmf._agent`). It goes on as soon as it has all it needs of its
neighbours, so envelopes may arrive in any order. A neighbour may be one round ahead and
no more: to go on it needs this agent's request and answer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._agent import Address, Departure, Envelope, Letters, Report, Step
from .._sealing.transcript import Transcript
from ..exceptions import CorruptedMessageError, DropoutError, WrongKeyError
from .balance import Balance, Levels, Pull
from .exchange import DifferenceExchange
from .factors import Factors
from .fixed_point import SPARE_BITS
from .masks import MaskStream
from .messages import KEY, KIND_NAMES, PROTOCOL_CODE, REPLY, REQUEST, WIDEN, Message
from .scale import N_MAX, N_VALUES, VALUE_BITS, PrivateAverage
from .settings import AgentSettings
from .stopping import StopCount

# Of what a neighbour has sent. Nobody who keeps to the protocol sends slots that no key
# holds.
_FAULTS = (CorruptedMessageError, OverflowError, WrongKeyError)


class Phase(Enum):
    """What an agent is doing; the paper has the left factor alone."""

    KEYS = "keys"
    BALANCE = "balance"
    GEOMETRIC_MEAN = "geometric mean"
    POWER_MEAN = "power mean"
    LEFT = "left"
    OVER = "over"


class ConsensusAgent:
    """One party of the federation.

    Parameters
    ----------
    number : int
        Its node in the graph.
    names : sequence of str
        What errors call the agents.
    X : ndarray or sparse matrix of shape (n_i, F)
        Its samples; none for a relay.
    start : ndarray of shape (K, F)
        The common start of the left factor.
    neighbours : sequence of int
        Node numbers of its neighbours.
    neighbour_degrees : sequence of int
        Their numbers of neighbours.
    settings : AgentSettings
        Common to all agents.
    make_cipher : callable
        Returns the agent's own cipher, with a key that it makes when it starts.
    stream : MaskStream or None
        Source of its masks and dithers where a study is to be reproducible; None has
        it make its own.
    run : bytes
        16 bytes that name the run.
    observed : bool, default=False
        Whether reports tell the observer of a run in one process what no operator of
        another agent may know.
    notes : object or None, default=None
        Of an audit, which is told what only this agent sees.
    """

    def __init__(
        self,
        number: int,
        names: Sequence[str],
        X: Any,
        start: NDArray[np.float64],
        neighbours: Iterable[int],
        neighbour_degrees: Iterable[int],
        settings: AgentSettings,
        make_cipher: Callable[[], Any],
        stream: MaskStream | None,
        run: bytes,
        observed: bool = False,
        notes: Any = None,
    ) -> None:
        self.number = number
        self.name = names[number]
        self.settings = settings
        self.neighbours = [int(j) for j in neighbours]
        self._place = {j: k for k, j in enumerate(self.neighbours)}
        degree = len(self.neighbours)
        self._address = Address(
            run,
            PROTOCOL_CODE,
            number,
            names,
            dict(enumerate(KIND_NAMES)),
            self.neighbours,
        )
        # The scale is what all agents are told alike.
        self.transcript = Transcript(run, b"", range(settings.n_agents))
        # Metropolis weights of the private average.
        most = np.maximum(degree, np.array(list(neighbour_degrees), dtype=float))
        self._weights = 1.0 / (1.0 + most)
        self._publics: list[Any] = [None] * degree
        self._keys_missing = set(self.neighbours)
        self._requests: set[int] = set()  # who has asked in this round
        self._inbox: Letters = []

        self.factors = Factors(X, start, degree, settings, self.name)
        self._scale = 0.0
        self._spreading = 0
        self.n_exchanges = 0
        self._observed = observed
        self._notes = notes
        self._report: Report | None = None
        self.phase = Phase.KEYS
        self._resting = False  # whether the present round exchanges no numbers

        self._make_cipher = make_cipher
        self._start = start.ravel()
        stream = stream or MaskStream()
        self._streams = [stream.spawn(degree) for _ in range(2)]
        self._left_count = StopCount(settings.diameter, degree)
        self._fit_count = StopCount(settings.diameter, degree)
        self._left_stopped = self._fit_stopped = False
        self._balance = Balance(settings)
        self._pull = Pull()

    # Envelopes -----------------------------------------------------------------

    def start(self) -> Step:
        """Make a key, solve the right factor for the common start, send the key.

        Returns
        -------
        Step
            The public key for every neighbour.
        """
        self._make_exchanges()
        factors = self.factors
        balanced = self.settings.balanced
        self._average_of(factors.balance() if balanced else factors.measure())
        payload = self.cipher.public_payload()
        if payload is None:
            self._keys_missing = set()
            return self._step([])
        message = Message(KEY, 0, payload=payload)
        return self._step([(j, message) for j in self.neighbours])

    def _make_exchanges(self) -> None:
        """Make the agent's secrets, and its side of both exchanges."""
        settings, degree = self.settings, len(self.neighbours)
        self.cipher = self._make_cipher()
        average, left = self._streams
        _, start_bits = self.cipher.encode(self._start, settings.n_max)
        shared: dict[str, Any] = {
            "n_max": settings.n_max,
            "masking": settings.masking,
            "key_size": settings.key_size,
            "name": self.name,
            "dithered": self._notes is None or self._notes.dithered,
        }
        self._average_exchange = DifferenceExchange(
            self.cipher,
            degree,
            n_values=N_VALUES,
            value_bits=VALUE_BITS,
            streams=average,
            # One mask for both numbers: they must spread alike to stay comparable.
            **{**shared, "n_max": N_MAX, "masking": "scalar"},
        )
        self._left_exchange = DifferenceExchange(
            self.cipher,
            degree,
            n_values=self._start.size,
            value_bits=start_bits + SPARE_BITS,
            streams=left,
            **shared,
        )
        self._exchange = self._average_exchange

    def advance(self, envelopes: list[Envelope]) -> Step:
        """Take envelopes and go on as far as they allow.

        At most one BCD iteration is finished in a call.

        Parameters
        ----------
        envelopes : list of Envelope
            In any order.

        Returns
        -------
        Step

        Raises
        ------
        OverflowError
            If the left factor outgrows the plaintext of the key.
        CorruptedMessageError, WrongKeyError
            If an envelope is not what a neighbour must have sent.
        """
        self._open(envelopes)
        outbox: Letters = []
        if self.phase is Phase.KEYS:
            self._take_keys()
            if self.phase is Phase.KEYS:
                return self._step(outbox)
            self._begin_averaging(outbox)
        iteration = self.factors.iteration
        self._take(outbox)
        while (
            self.phase is not Phase.OVER
            and self.factors.iteration == iteration
            and self._exchange.complete
            and len(self._requests) == len(self.neighbours)
        ):
            if self.phase is Phase.LEFT:
                self._end_left_round(outbox)
            else:
                self._end_averaging_round(outbox)
            self._take(outbox)
        return self._step(outbox)

    def depart(self, departure: Departure) -> Step:
        """Refuse to go on: a sum over neighbours lacks the one that has left.

        Parameters
        ----------
        departure : Departure
            Who has left.

        Raises
        ------
        DropoutError
            Always.
        """
        raise DropoutError(
            f"{self.name}: agents {list(departure.agents)} have left, and the "
            "consensus cannot go on without them"
        )

    def stop(self) -> None:
        """Be asked to end the fit: word of it goes to all, who end in one round."""
        self._fit_count.ask()

    @property
    def finished(self) -> bool:
        """Whether the fit is over."""
        return self.phase is Phase.OVER

    def _step(self, outbox: Letters) -> Step:
        """Put what is to be sent into envelopes."""
        report, self._report = self._report, None
        run, number = self._address.run, self.number
        envelopes = [
            Envelope(
                run, PROTOCOL_CODE, number, j, message.kind, message.round, message
            )
            for j, message in outbox
        ]
        return Step(envelopes, report, self.phase is Phase.OVER)

    def _open(self, envelopes: list[Envelope]) -> None:
        """Check envelopes at the door: from whom, in which phase, in which round."""
        self._address.admit(envelopes)
        inbox, place, asked = self._inbox, self._place, self._requests
        waiting = {(i, message.kind, message.round) for i, message in inbox}
        awaited, present = self._exchange.awaited, self._exchange.round
        running = self.phase is not Phase.KEYS and self.phase is not Phase.OVER
        for envelope in envelopes:
            _, _, sender, _, kind, round_, message = envelope
            if kind == REQUEST:
                due = round_ == present and running and sender not in asked
                # A neighbour may be ahead by a round.
                due = due or (round_ == present + 1 and self.phase is not Phase.OVER)
            elif kind == KEY:
                due = round_ == 0 and sender in self._keys_missing and not running
            else:
                due = round_ == present and running and place[sender] in awaited
            # A reply and a call for wider slots are each the one answer to a request.
            mark = sender, REPLY if kind == WIDEN else kind, round_
            if not due or mark in waiting:
                raise self._out_of_turn(envelope)
            waiting.add(mark)
            if isinstance(message, bytes):
                try:
                    message = Message.from_bytes(message, kind, round_)
                except CorruptedMessageError as error:
                    raise self._blame(sender, error) from error
            # What a request holds depends on its round, which may not have come.
            if kind != REQUEST and (message.payload is None) != (kind == WIDEN):
                raise self._address.refusal(sender, _amiss(message))
            inbox.append((sender, message))

    def _out_of_turn(self, envelope: Envelope) -> CorruptedMessageError:
        """Return the error that refuses what is not due."""
        round_ = self._exchange.round
        where = f"in phase {self.phase.value!r}"
        if self.phase is not Phase.KEYS:
            where += f", round {round_}"
        return self._address.refusal(
            envelope.sender,
            f"a {KIND_NAMES[envelope.kind]} of round {envelope.round}, not due {where}",
        )

    def _average_of(self, number: float, unit: float = 0.0) -> None:
        """Prepare a private average of what every agent has of one number."""
        self._size = number
        self._average = PrivateAverage(number, self.settings.averaging, unit)

    def _take_keys(self) -> None:
        """Collect the neighbours' public keys."""
        later = []
        for sender, message in self._inbox:
            if message.kind != KEY:
                later.append((sender, message))
                continue
            try:
                key = self.cipher.read_public(message.payload)
            except _FAULTS as error:
                raise self._blame(sender, error) from error
            self._publics[self._place[sender]] = key
            self._keys_missing.discard(sender)
        self._inbox = later
        if not self._keys_missing:
            self.phase = (
                Phase.BALANCE if self.settings.balanced else Phase.GEOMETRIC_MEAN
            )

    def _blame(self, sender: int, error: Exception) -> Exception:
        """Return the error that names the sender of what turns out to be corrupt."""
        if isinstance(error, WrongKeyError):
            name = self._address.name_of(sender)
            return WrongKeyError(
                f"{self.name}: refused from {name}: {error}", sender=sender
            )
        return self._address.refusal(sender, str(error))

    def _take(self, outbox: Letters) -> None:
        """Use the messages of the present round, keep those of later ones."""
        inbox, self._inbox = self._inbox, []
        requests = []
        for sender, message in inbox:
            if message.round != self._exchange.round:
                self._inbox.append((sender, message))
            elif message.kind == REQUEST:
                requests.append((sender, message))
            else:
                try:
                    again = self._exchange.accept(self._place[sender], message)
                except _FAULTS as error:
                    raise self._blame(sender, error) from error
                if again is not None:
                    outbox.append((sender, again))
                elif self._notes is not None:
                    integers = self._exchange.opened(self._place[sender])
                    self._notes.answer(sender, message.round, integers)
        # Answered together once all are in, which costs less than one by one.
        if requests and len(self._requests) + len(requests) == len(self.neighbours):
            self._take_requests(requests, outbox)
        else:
            self._inbox += requests

    def _take_requests(self, requests: Letters, outbox: Letters) -> None:
        """Answer neighbours and note how far they have stopped."""
        asked = []
        for sender, message in requests:
            if (message.payload is None) != self._resting:
                raise self._address.refusal(sender, _amiss(message))
            if message.payload is not None:
                k = self._place[sender]
                asked.append((k, self._publics[k], message))
        widened = set()
        for (k, _, _), reply in zip(asked, self._answers(asked), strict=True):
            outbox.append((self.neighbours[k], reply))
            if reply.kind == WIDEN:
                widened.add(k)  # the request will come again
            elif self._notes is not None:
                masks, dithers = self._exchange.secrets(k)
                self._notes.secrets(self.neighbours[k], reply.round, masks, dithers)
        for sender, message in requests:
            k = self._place[sender]
            if k not in widened:
                self._requests.add(sender)
                self._scale = self._scale or message.scale
                self._left_count.hear(k, message.left_count)
                self._fit_count.hear(k, message.fit_count)
                self._balance.hear(Levels(message.disagreement, message.movement))

    def _answers(self, asked: list[tuple[int, Any, Message]]) -> list[Message]:
        """Answer neighbours together; if a request is corrupt, find out whose."""
        try:
            return self._exchange.answer(asked)
        except _FAULTS:
            for one in asked:
                self._answer_one(one)
            raise

    def _answer_one(self, asked: tuple[int, Any, Message]) -> None:
        """Answer one neighbour, or refuse its request by its name."""
        try:
            self._exchange.answer([asked])
        except _FAULTS as error:
            raise self._blame(self.neighbours[asked[0]], error) from error

    def _begin_round(
        self, values: NDArray[np.floating], outbox: Letters, active: bool = True
    ) -> None:
        """Send the requests of a round."""
        self._requests = set()
        self._resting = not active
        counts = (self._left_count.value, self._fit_count.value)
        levels = self._balance.levels
        requests = self._exchange.begin(values, active, counts, self._scale, levels)
        outbox += zip(self.neighbours, requests, strict=True)
        if active and self.neighbours and self._notes is not None:
            self._notes.round(
                self._exchange.round,
                self.phase.value,
                self.factors.iteration,
                self._exchange.n_max,
                self._exchange.values,
                self._pull,
            )

    # The scale of the data -----------------------------------------------------

    def _begin_averaging(self, outbox: Letters) -> None:
        """Start the private average, or go on without one."""
        if self.settings.penalty_scaling == "absolute":
            self._begin_left(1.0, outbox)
        elif not self.neighbours:
            if self.settings.balanced:
                self._average_of(self.factors.measure(self._average.mean() or 1.0))
            self._begin_left(self._size or 1.0, outbox)
        else:
            self._begin_round(self._average.values, outbox)

    def _end_averaging_round(self, outbox: Letters) -> None:
        """Take a round of differences; then pass the leader's estimate on."""
        if not self._average.done:
            self._average.update(self._exchange.weighted_sum(self._weights))
            if not self._average.done:
                self._begin_round(self._average.values, outbox)
                return
            if self.number == self.settings.leader:
                self._scale = self._average.mean() or 1.0
        else:
            self._spreading += 1
        if self._spreading < self.settings.leader_eccentricity:
            self._begin_round(self._average.values, outbox, active=False)
        elif self.phase is Phase.POWER_MEAN:
            self._begin_left(self._scale, outbox)
        else:
            if self.phase is Phase.BALANCE:
                self._average_of(self.factors.measure(self._scale))
                self.phase = Phase.GEOMETRIC_MEAN
            else:
                self._average_of(self._size, unit=self._scale)
                self.phase = Phase.POWER_MEAN
            self._scale = 0.0
            self._spreading = 0
            self._begin_round(self._average.values, outbox)

    def _begin_left(self, scale: float, outbox: Letters) -> None:
        """Fix the penalties of the consensus and start the first BCD iteration."""
        self._scale = scale
        self.transcript.tell(struct.pack(">d", scale))
        self.factors.begin(scale)
        if self._notes is not None:
            self._notes.agreed(scale, self.factors.unit)
        self._left_exchange.round = self._average_exchange.round
        self._exchange = self._left_exchange
        self.phase = Phase.LEFT
        self._begin_iteration(outbox)

    # The left factor -----------------------------------------------------------

    def _begin_iteration(self, outbox: Letters) -> None:
        """Start a BCD iteration and take its first step."""
        self.factors.begin_iteration(self._pull)
        self._left_stopped = False
        self._left_count.reset()
        self._begin_left_round(outbox)

    def _begin_left_round(self, outbox: Letters) -> None:
        """Take a step of the left factor and send it."""
        self.n_exchanges += bool(self.neighbours)
        self._begin_round(self.factors.step().ravel(), outbox)

    def _end_left_round(self, outbox: Letters) -> None:
        """Accumulate the multiplier; stop, or take the next step."""
        factors = self.factors
        factors.add(self._exchange.weighted_sum())
        self._left_stopped = self._left_stopped or factors.left_converged()
        self._left_count.update(self._left_stopped)
        self._fit_count.update(self._fit_stopped)
        self._balance.end_round()
        limit = self.settings.max_admm_iter
        if factors.inner < limit and not self._left_count.all_stopped:
            self._begin_left_round(outbox)
            return
        factors.end_iteration()
        self._agree_on_pull()
        self._fit_stopped = self._fit_stopped or factors.converged()
        final = (
            factors.iteration >= self.settings.max_iter
            or self._fit_count.all_stopped
            or self._balance.given_up
        )
        returned = 0
        if final and self._balance.parted and factors.return_to_best():
            returned = self._balance.best_iteration
        self._report = factors.report(
            self.n_exchanges, self._fit_stopped, final, self._observed
        )._replace(returned=returned)
        if self._notes is not None:
            W = factors.right.W / factors.unit
            self._notes.state(factors.iteration, self._report.H, W)
        if final:
            self.phase = Phase.OVER
        else:
            self._begin_iteration(outbox)

    def _agree_on_pull(self) -> None:
        """Let the pull of the next iteration follow what all agents have seen."""
        factors, balance = self.factors, self._balance
        if not self.settings.balances:
            return
        measured, best = balance.measured, balance.best_iteration
        balance.end_iteration(factors.iteration, *factors.distances)
        if balance.best_iteration != best:
            factors.note_best()
        if balance.measured != measured:
            factors.keep_last()
        self._pull = balance.pull


def _amiss(message: Message) -> str:
    """Say that a message holds numbers, or none, where it should not."""
    held = "holds nothing" if message.payload is None else "holds numbers"
    return f"a {KIND_NAMES[message.kind]} of round {message.round} {held}"
