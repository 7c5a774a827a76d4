"""One agent: what it holds, what it sends and how it takes an answer.

An agent does no I/O. `Agent.advance` takes the messages that have arrived and
returns those to send; whoever carries them (one process, a cluster, a network) need
not know what they mean. An agent goes on as soon as it has all it needs of its
neighbours, so messages may arrive in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .ciphers import Cipher
from .exchange import DifferenceExchange
from .factors import Factors
from .fixed_point import starting_bits
from .masks import MaskStream
from .messages import KEY, REQUEST, WIDEN, Message
from .scale import N_MAX, N_VALUES, VALUE_BITS, PrivateAverage
from .settings import AgentSettings, Report
from .stopping import StopCount


class Agent:
    """One party of the federation.

    Parameters
    ----------
    number : int
        Its node in the graph.
    name : str
        How errors call it.
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
    cipher : Cipher
        The agent's own.
    stream : MaskStream
        Source of its masks and dithers.
    """

    def __init__(
        self,
        number: int,
        name: str,
        X: Any,
        start: NDArray[np.float64],
        neighbours: Iterable[int],
        neighbour_degrees: Iterable[int],
        settings: AgentSettings,
        cipher: Cipher,
        stream: MaskStream,
    ) -> None:
        self.number = number
        self.name = name
        self.settings = settings
        self.cipher = cipher
        self.neighbours = [int(j) for j in neighbours]
        self._place = {j: k for k, j in enumerate(self.neighbours)}
        degree = len(self.neighbours)
        # Metropolis weights of the private average.
        most = np.maximum(degree, np.array(list(neighbour_degrees), dtype=float))
        self._weights = 1.0 / (1.0 + most)
        self._publics: list[Any] = [None] * degree
        self._keys_missing = degree
        self._inbox: list[tuple[int, Message]] = []

        self.factors = Factors(X, start, degree, settings, name)
        self._scale = 0.0
        self._spreading = 0
        self.n_exchanges = 0
        self.reports: list[Report] = []
        self.finished = False
        self.phase = "keys"

        shared: dict[str, Any] = {
            "n_max": settings.n_max,
            "masking": settings.masking,
            "key_size": settings.key_size,
            "name": name,
        }
        self._average_exchange = DifferenceExchange(
            cipher,
            degree,
            n_values=N_VALUES,
            value_bits=VALUE_BITS,
            streams=stream.spawn(degree),
            # One mask for both numbers: they must spread alike to stay comparable.
            **{**shared, "n_max": settings.n_max and N_MAX, "masking": "scalar"},
        )
        self._left_exchange = DifferenceExchange(
            cipher,
            degree,
            n_values=start.size,
            value_bits=starting_bits(start, settings.n_max),
            streams=stream.spawn(degree),
            **shared,
        )
        self._exchange = self._average_exchange
        self._left_count = StopCount(settings.diameter, degree)
        self._fit_count = StopCount(settings.diameter, degree)
        self._left_stopped = self._fit_stopped = False

    # Messages ------------------------------------------------------------------

    def start(self) -> list[tuple[int, Message]]:
        """Solve the right factor for the common start and send the public key.

        Returns
        -------
        list of (int, Message)
            Receivers and messages.
        """
        factors = self.factors
        balanced = self.settings.balanced
        self._average_of(factors.balance() if balanced else factors.measure())
        payload = self.cipher.public_payload()
        if payload is None:
            self._keys_missing = 0
            return []
        message = Message(KEY, 0, payload=payload)
        return [(j, message) for j in self.neighbours]

    def advance(self, arrived: list[tuple[int, Message]]) -> list[tuple[int, Message]]:
        """Take messages and go on as far as they allow.

        At most one BCD iteration is finished in a call; its report is then the last
        of `reports`, for the agent's operator to take.

        Parameters
        ----------
        arrived : list of (int, Message)
            Senders and messages, in any order.

        Returns
        -------
        list of (int, Message)
            Receivers and messages.

        Raises
        ------
        OverflowError
            If the left factor outgrows the plaintext of the key.
        CorruptedMessageError, WrongKeyError
            If a message is not what a neighbour must have sent.
        """
        self._inbox += arrived
        outbox: list[tuple[int, Message]] = []
        if self.phase == "keys":
            self._take_keys()
            if self.phase == "keys":
                return outbox
            self._begin_averaging(outbox)
        iteration = self.factors.iteration
        self._take(outbox)
        while (
            not self.finished
            and self.factors.iteration == iteration
            and self._exchange.complete
            and self._heard == len(self.neighbours)
        ):
            if self.phase == "left":
                self._end_left_round(outbox)
            else:
                self._end_averaging_round(outbox)
            self._take(outbox)
        return outbox

    def _average_of(self, number: float, unit: float = 0.0) -> None:
        """Prepare a private average of what every agent has of one number."""
        self._size = number
        self._average = PrivateAverage(number, self.settings.averaging, unit)

    def _take_keys(self) -> None:
        """Collect the neighbours' public keys."""
        later = []
        for sender, message in self._inbox:
            if message.kind == KEY:
                self._publics[self._place[sender]] = self.cipher.read_public(
                    message.payload
                )
                self._keys_missing -= 1
            else:
                later.append((sender, message))
        self._inbox = later
        if not self._keys_missing:
            self.phase = "balance" if self.settings.balanced else "geometric mean"

    def _take(self, outbox: list[tuple[int, Message]]) -> None:
        """Use the messages of the present round, keep those of later ones."""
        inbox, self._inbox = self._inbox, []
        requests = []
        for sender, message in inbox:
            if message.round != self._exchange.round:
                self._inbox.append((sender, message))
            elif message.kind == REQUEST:
                requests.append((sender, message))
            else:
                again = self._exchange.accept(self._place[sender], message)
                if again is not None:
                    outbox.append((sender, again))
        # Answered together once all are in, which costs less than one by one.
        if requests and self._heard + len(requests) == len(self.neighbours):
            self._take_requests(requests, outbox)
        else:
            self._inbox += requests

    def _take_requests(
        self,
        requests: list[tuple[int, Message]],
        outbox: list[tuple[int, Message]],
    ) -> None:
        """Answer neighbours and note how far they have stopped."""
        asked = [
            (k, self._publics[k], message)
            for k, message in (
                (self._place[sender], message) for sender, message in requests
            )
            if message.payload is not None
        ]
        widened = set()
        for (k, *_), reply in zip(asked, self._exchange.answer(asked), strict=True):
            outbox.append((self.neighbours[k], reply))
            if reply.kind == WIDEN:
                widened.add(k)  # the request will come again
        for sender, message in requests:
            k = self._place[sender]
            if k not in widened:
                self._heard += 1
                self._scale = self._scale or message.scale
                self._left_count.hear(k, message.left_count)
                self._fit_count.hear(k, message.fit_count)

    def _begin_round(
        self,
        values: NDArray[np.floating],
        active: bool,
        outbox: list[tuple[int, Message]],
    ) -> None:
        """Send the requests of a round."""
        self._heard = 0
        counts = (self._left_count.value, self._fit_count.value)
        requests = self._exchange.begin(values, active, counts, self._scale)
        outbox += zip(self.neighbours, requests, strict=True)

    # The scale of the data -----------------------------------------------------

    def _begin_averaging(self, outbox: list[tuple[int, Message]]) -> None:
        """Start the private average, or go on without one."""
        if self.settings.penalty_scaling == "absolute":
            self._begin_left(1.0, outbox)
        elif not self.neighbours:
            if self.settings.balanced:
                self._average_of(self.factors.measure(self._average.mean() or 1.0))
            self._begin_left(self._size or 1.0, outbox)
        else:
            self._begin_round(self._average.values, True, outbox)

    def _end_averaging_round(self, outbox: list[tuple[int, Message]]) -> None:
        """Take a round of differences; then pass the leader's estimate on."""
        if not self._average.done:
            self._average.update(self._exchange.weighted_sum(self._weights))
            if not self._average.done:
                self._begin_round(self._average.values, True, outbox)
                return
            if self.number == self.settings.leader:
                self._scale = self._average.mean() or 1.0
        else:
            self._spreading += 1
        if self._spreading < self.settings.leader_eccentricity:
            self._begin_round(self._average.values, False, outbox)
        elif self.phase == "power mean":
            self._begin_left(self._scale, outbox)
        else:
            if self.phase == "balance":
                self._average_of(self.factors.measure(self._scale))
                self.phase = "geometric mean"
            else:
                self._average_of(self._size, unit=self._scale)
                self.phase = "power mean"
            self._scale = 0.0
            self._spreading = 0
            self._begin_round(self._average.values, True, outbox)

    def _begin_left(self, scale: float, outbox: list[tuple[int, Message]]) -> None:
        """Fix the penalties of the consensus and start the first BCD iteration."""
        self._scale = scale
        self.factors.begin(scale)
        self._left_exchange.round = self._average_exchange.round
        self._exchange = self._left_exchange
        self.phase = "left"
        self._begin_iteration(outbox)

    # The left factor -----------------------------------------------------------

    def _begin_iteration(self, outbox: list[tuple[int, Message]]) -> None:
        """Start a BCD iteration and take its first step."""
        self.factors.begin_iteration()
        self._left_stopped = False
        self._left_count.reset()
        self._begin_left_round(outbox)

    def _begin_left_round(self, outbox: list[tuple[int, Message]]) -> None:
        """Take a step of the left factor and send it."""
        self.n_exchanges += bool(self.neighbours)
        self._begin_round(self.factors.step().ravel(), True, outbox)

    def _end_left_round(self, outbox: list[tuple[int, Message]]) -> None:
        """Accumulate the multiplier; stop, or take the next step."""
        factors = self.factors
        factors.add(self._exchange.weighted_sum())
        self._left_stopped = self._left_stopped or factors.left_converged()
        self._left_count.update(self._left_stopped)
        self._fit_count.update(self._fit_stopped)
        limit = self.settings.max_admm_iter
        if factors.inner < limit and not self._left_count.all_stopped:
            self._begin_left_round(outbox)
            return
        factors.end_iteration()
        self._fit_stopped = self._fit_stopped or factors.converged()
        self.finished = (
            factors.iteration >= self.settings.max_iter or self._fit_count.all_stopped
        )
        self.reports.append(
            factors.report(self.n_exchanges, self._fit_stopped, self.finished)
        )
        if not self.finished:
            self._begin_iteration(outbox)
