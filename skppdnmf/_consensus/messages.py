"""The messages that agents send to their neighbours."""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

from .._agent import ENVELOPE_BYTES
from .._lattice import payload as lattice_payload
from .._lattice.parameters import LatticeLayout
from .._paillier.payload import message_bytes
from .._paillier.slots import SlotLayout
from .._payload import HEADER_BYTES, PLAIN_VALUE_BYTES, Payload
from .._payload import REPLY as REPLY_PAYLOAD
from .._payload import REQUEST as REQUEST_PAYLOAD
from ..exceptions import CorruptedMessageError

KEY, REQUEST, REPLY, WIDEN = range(4)
KIND_NAMES = ("key", "request", "reply", "widen")

PROTOCOL_CODE = 1  # in the envelopes' headers
# value bits, the two stopping counts, the two levels, the scale; kind and round are
# the envelope's
_HEADER = struct.Struct(">HHHBBd")


class Message(NamedTuple):
    """One message from an agent to a neighbour.

    Parameters
    ----------
    kind : int
        ``KEY`` (a public key), ``REQUEST``, ``REPLY`` or ``WIDEN`` (a reply that asks
        for wider slots).
    round : int
        The exchange that the message belongs to.
    value_bits : int, default=0
        Width of the sender's slots, or the width that ``WIDEN`` asks for.
    left_count, fit_count : int, default=0
        How many hops around the sender every agent has stopped its left-factor
        loop, and its fit; 2**15 more where it knows that the fit is to end.
    scale : float, default=0.0
        The agreed scale of the penalties, once the sender knows it.
    disagreement, movement : int, default=0
        The largest levels that the sender has heard of (`skppdnmf._consensus.balance`).
    payload : Payload or None, default=None
        Numbers or ciphertexts; None where only the counts travel.

    Examples
    --------
    >>> from skppdnmf.exchange import Message
    >>> message = Message(1, round=3, left_count=2)
    >>> message.n_bytes
    16
    >>> Message.from_bytes(message.to_bytes(), kind=1, round=3) == message
    True
    """

    kind: int
    round: int
    value_bits: int = 0
    left_count: int = 0
    fit_count: int = 0
    scale: float = 0.0
    disagreement: int = 0
    movement: int = 0
    payload: Payload | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes that the message takes on a wire."""
        return _HEADER.size + (self.payload.n_bytes if self.payload else 0)

    @property
    def n_ciphertexts(self) -> int:
        """Ciphertexts in the message."""
        return self.payload.n_ciphertexts if self.payload else 0

    def to_bytes(self) -> bytes:
        """Serialise the message without kind and round, which an envelope carries.

        Returns
        -------
        bytes
            Exactly `n_bytes` long.
        """
        header = _HEADER.pack(
            self.value_bits,
            self.left_count,
            self.fit_count,
            self.disagreement,
            self.movement,
            self.scale,
        )
        return header + self.payload.to_bytes() if self.payload else header

    @classmethod
    def from_bytes(
        cls, data: bytes, kind: int, round: int, n_ciphertexts: int = 0
    ) -> Message:
        """Read a serialised message.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.
        kind, round : int
            As in the envelope.
        n_ciphertexts : int, default=0
            Ciphertexts in the payload, for the traffic count.

        Returns
        -------
        Message
            The message.

        Raises
        ------
        CorruptedMessageError
            If the data is shorter than a header, of no known kind, or has a scale that
            no agent can have agreed on.
        """
        if len(data) < _HEADER.size:
            raise CorruptedMessageError(
                f"message of {len(data)} bytes is shorter than its header "
                f"({_HEADER.size})"
            )
        if not 0 <= kind < len(KIND_NAMES):
            raise CorruptedMessageError(
                f"message of kind {kind}, the kinds are 0 to {len(KIND_NAMES) - 1}"
            )
        value_bits, left, fit, apart, moved, scale = _HEADER.unpack_from(data)
        if not 0.0 <= scale < math.inf:
            raise CorruptedMessageError(
                f"{KIND_NAMES[kind]} with scale {scale}, expected a finite number >= 0"
            )
        body = bytes(data[_HEADER.size :])
        payload = Payload(body, n_ciphertexts, len(body)) if body else None
        return cls(kind, round, value_bits, left, fit, scale, apart, moved, payload)


class MessageSizes(NamedTuple):
    """Ciphertexts and bytes of one request and of one reply."""

    request_ciphertexts: int
    reply_ciphertexts: int
    request_bytes: int
    reply_bytes: int


# Of a message without payload, its envelope included.
BARE_MESSAGE_BYTES = ENVELOPE_BYTES + _HEADER.size


def message_sizes(
    layout: SlotLayout | LatticeLayout | None, n_values: int
) -> MessageSizes:
    """Return what the messages of one exchange over one edge take.

    Parameters
    ----------
    layout : SlotLayout, LatticeLayout or None
        The slots; None without encryption.
    n_values : int
        Number of values.

    Returns
    -------
    MessageSizes
        Envelopes included.

    Examples
    --------
    >>> from skppdnmf.exchange import message_sizes
    >>> message_sizes(None, 100)
    MessageSizes(request_ciphertexts=0, reply_ciphertexts=0, request_bytes=900, \
reply_bytes=900)
    """
    if layout is None:
        plain = BARE_MESSAGE_BYTES + HEADER_BYTES + PLAIN_VALUE_BYTES * n_values
        return MessageSizes(0, 0, plain, plain)
    if isinstance(layout, LatticeLayout):
        request_bytes = lattice_payload.message_bytes(REQUEST_PAYLOAD, layout)
        reply_bytes = lattice_payload.message_bytes(REPLY_PAYLOAD, layout)
    else:
        request_bytes = message_bytes(REQUEST_PAYLOAD, layout)
        reply_bytes = message_bytes(REPLY_PAYLOAD, layout)
    return MessageSizes(
        layout.n_request_ciphertexts,
        layout.n_reply_ciphertexts,
        BARE_MESSAGE_BYTES + request_bytes,
        BARE_MESSAGE_BYTES + reply_bytes,
    )
