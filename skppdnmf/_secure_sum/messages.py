"""The messages of the secure sum, up and down a spanning tree."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

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

# kind, epoch, step, number of words, number of keys
_HEADER = struct.Struct("<BxHIII")
_KEY = struct.Struct("<I32s")
SUM_HEADER_BYTES = _HEADER.size
KEY_ENTRY_BYTES = _KEY.size
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

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.exchange import SUM_UP, SumMessage
    >>> message = SumMessage(SUM_UP, 0, 3, np.arange(2, dtype=np.uint64))
    >>> message.n_bytes
    32
    >>> SumMessage.from_bytes(message.to_bytes()).words
    array([0, 1], dtype=uint64)
    """

    kind: int
    epoch: int
    step: int
    words: NDArray[np.uint64] = field(
        default_factory=lambda: np.empty(0, dtype=np.uint64)
    )
    keys: dict[int, bytes] = field(default_factory=dict)

    @property
    def n_bytes(self) -> int:
        """Bytes that the message takes on a wire."""
        return (
            SUM_HEADER_BYTES
            + WORD_BYTES * self.words.size
            + KEY_ENTRY_BYTES * len(self.keys)
        )

    @property
    def n_ciphertexts(self) -> int:
        """Number of ciphertexts: none."""
        return 0

    def to_bytes(self) -> bytes:
        """Serialise the message.

        Returns
        -------
        bytes
            Exactly `n_bytes` long.
        """
        header = _HEADER.pack(
            self.kind, self.epoch, self.step, self.words.size, len(self.keys)
        )
        keys = b"".join(_KEY.pack(*item) for item in self.keys.items())
        return header + self.words.astype("<u8").tobytes() + keys

    @classmethod
    def from_bytes(cls, data: bytes) -> SumMessage:
        """Read a serialised message.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.

        Returns
        -------
        SumMessage
            The message.

        Raises
        ------
        CorruptedMessageError
            If the data is no such message.
        """
        if len(data) < SUM_HEADER_BYTES:
            raise CorruptedMessageError(
                f"message of {len(data)} bytes is shorter than its header "
                f"({SUM_HEADER_BYTES})"
            )
        kind, epoch, step, n_words, n_keys = _HEADER.unpack_from(data)
        if kind >= len(SUM_KIND_NAMES):
            raise CorruptedMessageError(
                f"message of kind {kind}, the kinds are 0 to {len(SUM_KIND_NAMES) - 1}"
            )
        expected = SUM_HEADER_BYTES + WORD_BYTES * n_words + KEY_ENTRY_BYTES * n_keys
        if len(data) != expected:
            raise CorruptedMessageError(
                f"{SUM_KIND_NAMES[kind]} of {len(data)} bytes, expected {expected}"
            )
        middle = SUM_HEADER_BYTES + WORD_BYTES * n_words
        words = np.frombuffer(data[SUM_HEADER_BYTES:middle], dtype="<u8")
        keys = dict(_KEY.iter_unpack(data[middle:]))
        if len(keys) != n_keys:
            raise CorruptedMessageError(
                f"{SUM_KIND_NAMES[kind]}: {n_keys} keys of {len(keys)} agents"
            )
        return cls(kind, epoch, step, words.astype(np.uint64), keys)
