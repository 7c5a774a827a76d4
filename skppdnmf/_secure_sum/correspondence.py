"""An agent's side of the envelopes: from what arrives to totals, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._agent import Address, Departure, Envelope, Letters, Report, Step
from ..exceptions import CorruptedMessageError
from .exchange import SecureSum, Total
from .messages import PROTOCOL_CODE, SUM_KIND_NAMES, SumMessage


class Learnt(NamedTuple):
    """What an agent makes of a total.

    Parameters
    ----------
    words : ndarray of uint64, or None
        Its next summand; None at the end.
    report : Report or None, default=None
        Of the iteration that the total has ended.
    """

    words: NDArray[np.uint64] | None
    report: Report | None = None


class Correspondence:
    """Opens envelopes, carries the sums on, and seals what is to be sent.

    Parameters
    ----------
    number : int
        The agent's node in the graph.
    names : sequence of str
        What errors call the agents.
    secure_sum : SecureSum
        Its side of the sums.
    correspondents : collection of int
        From whom envelopes may come.
    run : bytes
        16 bytes that name the run.

    Attributes
    ----------
    finished : bool
        Whether the fit is over.
    n_departures : int
        Departures that the agent has been told of.
    """

    def __init__(
        self,
        number: int,
        names: Sequence[str],
        secure_sum: SecureSum,
        correspondents: Sequence[int],
        run: bytes,
    ) -> None:
        self.name = names[number]
        self.address = Address(
            run,
            PROTOCOL_CODE,
            number,
            names,
            dict(enumerate(SUM_KIND_NAMES)),
            correspondents,
        )
        self._sum = secure_sum
        # What an agent has done stays to be told if it then refuses a message.
        self._outbox: Letters = []
        self._report: Report | None = None
        self.n_departures = 0
        # Whether nothing but an envelope can move the agent on.
        self._settled = False
        self.finished = False

    def start(self, words: NDArray[np.uint64]) -> Step:
        """Begin the first sum; the first envelopes carry public keys."""
        self._outbox += self._sum.start(words)
        return self._step()

    def advance(
        self,
        envelopes: list[Envelope],
        learn: Callable[[Total], Learnt],
        another: Callable[[], NDArray[np.uint64]],
    ) -> Step:
        """Take envelopes and go on as far as they allow, one iteration at most."""
        if self._settled and not envelopes:
            # Most turns of most agents of a large federation.
            return Step([], None, self.finished, True)
        self._settled = False
        self.address.admit(envelopes)
        arrived = [self._opened(envelope) for envelope in envelopes]
        self._go_on(*self._sum.advance(arrived), learn, another)
        return self._step()

    def depart(
        self,
        departure: Departure,
        learn: Callable[[Total], Learnt],
        another: Callable[[], NDArray[np.uint64]],
    ) -> Step:
        """Take note that others have left: the present sum is void."""
        self._settled = False
        if departure.number != self.n_departures + 1:
            raise ValueError(
                f"{self.name}: told of departure {departure.number} after "
                f"{self.n_departures}"
            )
        self.n_departures += 1
        self._go_on(*self._sum.drop(*departure.agents), learn, another)
        return self._step()

    def _opened(self, envelope: Envelope) -> tuple[int, SumMessage]:
        """Read the message of an envelope that has been admitted."""
        message = envelope.body
        if isinstance(message, bytes):
            try:
                message = SumMessage.from_bytes(message, envelope.kind, envelope.round)
            except CorruptedMessageError as error:
                raise self.address.refusal(envelope.sender, str(error)) from error
        return envelope.sender, message

    def _step(self) -> Step:
        """Put what is to be sent into envelopes."""
        seal = self.address.seal
        outbox, self._outbox = self._outbox, []
        report, self._report = self._report, None
        return Step(
            [seal(j, message.kind, message.step, message) for j, message in outbox],
            report,
            self.finished,
            self._settled,
        )

    def _go_on(
        self,
        letters: Letters,
        total: Total | None,
        learn: Callable[[Total], Learnt],
        another: Callable[[], NDArray[np.uint64]],
    ) -> None:
        """Learn from totals and begin the next sums, one iteration at most."""
        self._outbox += letters
        while total is not None or self._sum.awaits_summand:
            learnt = Learnt(another()) if total is None else learn(total)
            words, self._report = learnt
            if words is None:
                self.finished = True
                self._sum.end()
            else:
                self._outbox += self._sum.begin(words)
            if self._report is not None:
                break
            letters, total = self._sum.advance([])
            self._outbox += letters
        self._settled = self._report is None
