"""The contract of agents: envelopes in, steps out, and nothing else.

An agent is a state machine without input or output. `Agent.start` and `Agent.advance`
return a `Step`: envelopes to be delivered, perhaps a report for the agent's own
operator, and whether the agent has finished. Whoever carries them, one process, a
cluster or a network, reads nothing else of it and need not know what they mean.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .exceptions import CorruptedMessageError

# Messages inside of an agent: who sent them, or who is to get them.
Letters = list[tuple[int, Any]]

MAGIC = b"SKPN"
VERSION = 2
RUN_ID_BYTES = 16
# Far above any honest payload; what claims more is refused before it is read.
MAX_PAYLOAD_BYTES = 1 << 30
# magic, version, protocol, kind | run | sender, receiver, round, payload length
_HEADER = struct.Struct(">4sHBB16sIIII")
ENVELOPE_BYTES = _HEADER.size


class Body(Protocol):
    """What an envelope holds where nothing had to be serialised."""

    @property
    def n_bytes(self) -> int:
        """Bytes that `to_bytes` returns."""
        ...

    @property
    def n_ciphertexts(self) -> int:
        """Ciphertexts in it."""
        ...

    def to_bytes(self) -> bytes:
        """Serialise it."""
        ...


class Envelope(NamedTuple):
    """What one agent sends to another: a header and a payload.

    Parameters
    ----------
    run : bytes
        16 bytes that name the run.
    protocol : int
        Code of the protocol.
    sender, receiver : int
        Numbers of the agents in the roster.
    kind : int
        Kind of message, in the protocol's own numbers.
    round : int
        The exchange or the sum that it belongs to.
    body : bytes or Body
        The payload: bytes if they came over a wire, else what they would say. In one
        process nothing is serialised that would only be read again.

    Examples
    --------
    >>> from skppdnmf._agent import Envelope
    >>> envelope = Envelope(bytes(16), 1, 0, 1, kind=2, round=3, body=b"u")
    >>> data = envelope.to_bytes()
    >>> len(data) == envelope.n_bytes == 41
    True
    >>> Envelope.from_bytes(data) == envelope
    True
    """

    run: bytes
    protocol: int
    sender: int
    receiver: int
    kind: int
    round: int
    body: Any

    @property
    def n_bytes(self) -> int:
        """Bytes that the envelope takes on a wire."""
        body = self.body
        return ENVELOPE_BYTES + (
            len(body) if isinstance(body, bytes) else int(body.n_bytes)
        )

    @property
    def n_ciphertexts(self) -> int:
        """Ciphertexts in the envelope; 0 once it has been a string of bytes."""
        return 0 if isinstance(self.body, bytes) else int(self.body.n_ciphertexts)

    def to_bytes(self) -> bytes:
        """Serialise the envelope.

        Returns
        -------
        bytes
            Exactly `n_bytes` long.
        """
        body = self.body if isinstance(self.body, bytes) else self.body.to_bytes()
        header = _HEADER.pack(
            MAGIC,
            VERSION,
            self.protocol,
            self.kind,
            self.run,
            self.sender,
            self.receiver,
            self.round,
            len(body),
        )
        return header + body

    @classmethod
    def from_bytes(cls, data: bytes, sender: int | None = None) -> Envelope:
        """Read a serialised envelope, trusting nothing.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.
        sender : int or None, default=None
            From whom the carrier has it, if the carrier knows.

        Returns
        -------
        Envelope
            Its body is bytes. What they say is for the receiver to check.

        Raises
        ------
        CorruptedMessageError
            If the data is no envelope of this version or the sender is another. The
            message and `sender` name the sender, as far as it can be told.
        """
        if len(data) < ENVELOPE_BYTES:
            raise CorruptedMessageError(
                f"envelope {_from(sender)}: {len(data)} bytes are shorter than a "
                f"header ({ENVELOPE_BYTES})",
                sender=sender,
            )
        magic, version, protocol, kind, run, stated, receiver, number, length = (
            _HEADER.unpack_from(data)
        )
        source = stated if sender is None else sender
        if magic != MAGIC:
            reason = f"begins with {magic!r}, expected {MAGIC!r}"
        elif version != VERSION:
            reason = f"is of version {version}, expected {VERSION}"
        elif length > MAX_PAYLOAD_BYTES:
            reason = (
                f"claims a payload of {length} bytes; {MAX_PAYLOAD_BYTES} are allowed"
            )
        elif len(data) != ENVELOPE_BYTES + length:
            reason = (
                f"has a payload of {len(data) - ENVELOPE_BYTES} bytes, its header says "
                f"{length}"
            )
        elif stated != source:
            reason = f"claims to come from agent {stated}"
        else:
            body = bytes(data[ENVELOPE_BYTES:])
            return cls(run, protocol, stated, receiver, kind, number, body)
        raise CorruptedMessageError(
            f"envelope {_from(source)}: {reason}", sender=source
        )


def _from(sender: int | None) -> str:
    """Name a sender that may be unknown."""
    return "from an unknown sender" if sender is None else f"from agent {sender}"


class Witness(NamedTuple):
    """What only the observer of a run in one process is told of an agent.

    Parameters
    ----------
    gram, products : ndarray of shape (K, K) and (K, F)
        ``W^T W`` and ``W^T X``: the error of any other left factor follows.
    dither : float
        Sum of the squared weights with which dithers have gone into the agent's Q.
    """

    gram: NDArray[np.float64]
    products: NDArray[np.floating]
    dither: float


class Report(NamedTuple):
    """An agent's account of a finished BCD iteration, for its own operator.

    Parameters
    ----------
    iteration, n_exchanges : int
        Iterations and exchanges of the left factor so far.
    H : ndarray of shape (K, F)
        Its copy of the left factor.
    squared_error : float
        ``||X_i - W_i H||^2`` of its own samples.
    stopped : bool, default=False
        Whether the agent met the tolerance.
    final : bool, default=False
        Whether it is the agent's last.
    privacy : mapping or None, default=None
        What noise the totals have, under differential privacy.
    witness : Witness or None, default=None
        For the observer of a run in one process; None everywhere else.
    shared_error : float, default=nan
        ``||X - W H|| / ||X||`` of all agents' samples, where the protocol tells it.
    totals : object or None, default=None
        The last totals, where a later fit is to go on from them.
    returned : int, default=0
        The iteration to whose factors the agents have gone back at the end, because
        their copies had parted since.
    """

    iteration: int
    n_exchanges: int
    H: NDArray[np.floating]
    squared_error: float
    stopped: bool = False
    final: bool = False
    privacy: Mapping[str, Any] | None = None
    witness: Witness | None = None
    shared_error: float = math.nan
    totals: Any = None
    returned: int = 0


class Step(NamedTuple):
    """What an agent did with the envelopes that it was given.

    Parameters
    ----------
    envelopes : list of Envelope
        To be delivered.
    report : Report or None, default=None
        Of the BCD iteration that it finished, if it did; at most one.
    finished : bool, default=False
        Whether the fit is over for it.
    settled : bool, default=False
        Whether nothing but an envelope, or a departure, can move it on: a carrier need
        not call it before.
    """

    envelopes: list[Envelope]
    report: Report | None = None
    finished: bool = False
    settled: bool = False


class Departure(NamedTuple):
    """Agents that have left at the same time; all others are told in one order.

    Parameters
    ----------
    number : int
        1 for the first departure of the run.
    agents : tuple of int
        Who has left.
    """

    number: int
    agents: tuple[int, ...]


class Agent(Protocol):
    """One party of a run."""

    def start(self) -> Step:
        """Begin, before anything has arrived."""
        ...

    def advance(self, envelopes: list[Envelope]) -> Step:
        """Take envelopes, in any order, and go on as far as they allow.

        At most one BCD iteration is finished in a call.
        """
        ...

    def depart(self, departure: Departure) -> Step:
        """Take note that others have left."""
        ...

    def stop(self) -> None:
        """Be asked to end the fit: all agents do so in the same round, soon."""
        ...


class Address:
    """One agent's place in a run: stamps what it sends and checks what it gets.

    Parameters
    ----------
    run : bytes
        16 bytes that name the run; public.
    protocol : int
        Code of the protocol.
    number : int
        The agent's number in the roster.
    names : sequence of str
        What errors call the agents of the roster.
    kinds : mapping from int to str
        Kinds of message that the protocol knows, and what errors call them.
    correspondents : collection of int
        From whom envelopes may come.
    """

    def __init__(
        self,
        run: bytes,
        protocol: int,
        number: int,
        names: Any,
        kinds: Mapping[int, str],
        correspondents: Any,
    ) -> None:
        if len(run) != RUN_ID_BYTES:
            raise ValueError(f"run has {len(run)} bytes, expected {RUN_ID_BYTES}")
        self.run = run
        self.protocol = protocol
        self.number = number
        self.name = names[number]
        self._own = (run, protocol, number)
        self._names = names
        self._kinds = kinds
        self._correspondents = frozenset(int(one) for one in correspondents)

    def seal(self, receiver: int, kind: int, round_: int, body: Any) -> Envelope:
        """Return an envelope from this agent."""
        return Envelope(
            self.run, self.protocol, self.number, receiver, kind, round_, body
        )

    def admit(self, envelopes: Iterable[Envelope]) -> None:
        """Refuse, by the sender's name, what is not for this agent in this run."""
        own, correspondents, kinds = self._own, self._correspondents, self._kinds
        for envelope in envelopes:
            run, protocol, sender, receiver, kind, _, _ = envelope
            if (
                (run, protocol, receiver) != own
                or sender not in correspondents
                or kind not in kinds
            ):
                raise self._not_admitted(envelope)

    def _not_admitted(self, envelope: Envelope) -> CorruptedMessageError:
        """Return the error that says what is wrong with an envelope's header."""
        if envelope.sender not in self._correspondents:
            reason = "no one who writes to this agent"
        elif envelope.run != self.run:
            reason = f"of run {envelope.run.hex()}, this is {self.run.hex()}"
        elif envelope.protocol != self.protocol:
            reason = f"of protocol {envelope.protocol}, this is {self.protocol}"
        elif envelope.receiver != self.number:
            reason = f"for agent {envelope.receiver}, this is agent {self.number}"
        else:
            known = ", ".join(map(str, sorted(self._kinds)))
            reason = f"of kind {envelope.kind}, the kinds are {known}"
        return self.refusal(envelope.sender, f"envelope {reason}")

    def refusal(self, sender: int, reason: str) -> CorruptedMessageError:
        """Return the error that names the sender of what is refused, and why."""
        return CorruptedMessageError(
            f"{self.name}: refused from {self.name_of(sender)}: {reason}", sender=sender
        )

    def name_of(self, number: int) -> str:
        """Return what errors call an agent."""
        known = 0 <= number < len(self._names)
        return self._names[number] if known else f"agent number {number}"
