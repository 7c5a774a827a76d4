"""The messages of the secure sum, up and down a spanning tree."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .._agent import ENVELOPE_BYTES
from ..exceptions import CorruptedMessageError

KEYS_UP, KEYS_DOWN, SUM_UP, SUM_DOWN, STATE_UP, STATE_DOWN = range(6)
SUM_KIND_NAMES = (
    "public keys, up",
    "public keys, down",
    "masked sum",
    "total",
    "last total, up",
    "last total, down",
)

PROTOCOL_CODE = 2  # in the envelopes' headers
# epoch, flags, number of words, number of keys; kind and step are the envelope's
_HEADER = struct.Struct("<HBII")
_LAST, _SIGNED = 1, 2
_KEY = struct.Struct("<I32s")
# Of a message without words and keys, its envelope included.
SUM_HEADER_BYTES = ENVELOPE_BYTES + _HEADER.size
KEY_ENTRY_BYTES = _KEY.size
# With a key that is signed goes the digest of what its owner has been told, and the
# signature.
TOLD_BYTES = 32
SIGNED_BYTES = TOLD_BYTES + 64
WORD_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class SumMessage:
    """One message of the secure sum from an agent to its neighbour in the tree.

    Parameters
    ----------
    kind : int
        ``KEYS_UP``, ``KEYS_DOWN`` (public keys), ``SUM_UP`` (masked partial sum),
        ``SUM_DOWN`` (total), or, after a dropout, ``STATE_UP``, ``STATE_DOWN``
        (the last total that an agent below, or everybody, has learnt).
    epoch : int
        Number of dropouts so far.
    step : int
        The sum that the message belongs to: 0 is the setup, n the n-th iteration.
    words : ndarray of uint64
        Masked words or a total.
    keys : dict from int to bytes
        Public keys by the agents' numbers.
    signed : dict from int to bytes
        What goes with each of them where they are signed: 32 bytes, the digest of what
        the owner has been told, and 64 bytes, the signature.
    last : bool, default=False
        Whether an agent below, or, with a total, any agent, was asked to end the fit:
        no sum follows this one.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.exchange import SUM_UP, SumMessage
    >>> message = SumMessage(SUM_UP, 0, 3, np.arange(2, dtype=np.uint64))
    >>> message.n_bytes
    27
    >>> SumMessage.from_bytes(message.to_bytes(), kind=SUM_UP, step=3).words
    array([0, 1], dtype=uint64)
    """

    kind: int
    epoch: int
    step: int
    words: NDArray[np.uint64] = field(
        default_factory=lambda: np.empty(0, dtype=np.uint64)
    )
    keys: dict[int, bytes] = field(default_factory=dict)
    last: bool = False
    signed: dict[int, bytes] = field(default_factory=dict)

    def with_words(self, words: NDArray[np.uint64]) -> SumMessage:
        """Return the message with other words."""
        return SumMessage(
            self.kind, self.epoch, self.step, words, self.keys, self.last, self.signed
        )

    @property
    def n_bytes(self) -> int:
        """Bytes that the message takes in an envelope."""
        return (
            _HEADER.size
            + WORD_BYTES * self.words.size
            + KEY_ENTRY_BYTES * len(self.keys)
            + SIGNED_BYTES * len(self.signed)
        )

    @property
    def n_ciphertexts(self) -> int:
        """Number of ciphertexts: none."""
        return 0

    def to_bytes(self) -> bytes:
        """Serialise the message without kind and step, which an envelope carries.

        Returns
        -------
        bytes
            Exactly `n_bytes` long.
        """
        flags = _LAST * self.last + _SIGNED * bool(self.signed)
        header = _HEADER.pack(self.epoch, flags, self.words.size, len(self.keys))
        keys = b"".join(_KEY.pack(*item) for item in self.keys.items())
        signed = b"".join(self.signed[number] for number in self.keys if self.signed)
        return header + self.words.astype("<u8").tobytes() + keys + signed

    @classmethod
    def from_bytes(cls, data: bytes, kind: int, step: int) -> SumMessage:
        """Read a serialised message.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.
        kind, step : int
            As in the envelope.

        Returns
        -------
        SumMessage
            The message.

        Raises
        ------
        CorruptedMessageError
            If the data is no such message.
        """
        if len(data) < _HEADER.size:
            raise CorruptedMessageError(
                f"message of {len(data)} bytes is shorter than its header "
                f"({_HEADER.size})"
            )
        if not 0 <= kind < len(SUM_KIND_NAMES):
            raise CorruptedMessageError(
                f"message of kind {kind}, the kinds are 0 to {len(SUM_KIND_NAMES) - 1}"
            )
        epoch, flags, n_words, n_keys = _HEADER.unpack_from(data)
        if flags > _LAST + _SIGNED or (flags & _SIGNED and not n_keys):
            raise CorruptedMessageError(
                f"{SUM_KIND_NAMES[kind]} of {n_keys} keys whose flags are {flags}"
            )
        entry = KEY_ENTRY_BYTES + bool(flags & _SIGNED) * SIGNED_BYTES
        expected = _HEADER.size + WORD_BYTES * n_words + entry * n_keys
        if len(data) != expected:
            raise CorruptedMessageError(
                f"{SUM_KIND_NAMES[kind]} of {len(data)} bytes, expected {expected}"
            )
        middle = _HEADER.size + WORD_BYTES * n_words
        words = np.frombuffer(data[_HEADER.size : middle], dtype="<u8")
        end = middle + KEY_ENTRY_BYTES * n_keys
        keys = dict(_KEY.iter_unpack(data[middle:end]))
        if len(keys) != n_keys:
            raise CorruptedMessageError(
                f"{SUM_KIND_NAMES[kind]}: {n_keys} keys of {len(keys)} agents"
            )
        signed = {
            number: data[end + SIGNED_BYTES * place :][:SIGNED_BYTES]
            for place, number in enumerate(keys)
            if flags & _SIGNED
        }
        last = bool(flags & _LAST)
        return cls(kind, epoch, step, words.astype(np.uint64), keys, last, signed)
