"""What crosses an edge for one batch, whatever the cipher."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from .exceptions import CorruptedMessageError

REQUEST, REPLY = 1, 2
KINDS = {REQUEST: "request", REPLY: "reply"}
HEADER_BYTES = 44  # in front of every batch, of ciphertexts or of bare numbers
PLAIN_VALUE_BYTES = 8  # a float64
# Of bare numbers: kind of dtype, bytes of each (0 for doubles), count
_NUMBERS = struct.Struct(">cHI")


class Payload(NamedTuple):
    """What crosses an edge for one batch.

    Parameters
    ----------
    data : bytes or ndarray
        The serialised message under Paillier; the numbers themselves otherwise.
    n_ciphertexts : int
        Ciphertexts in the message.
    n_bytes : int
        Bytes that a wire would carry, header included.
    """

    data: Any
    n_ciphertexts: int
    n_bytes: int

    def to_bytes(self) -> bytes:
        """Serialise the payload.

        Returns
        -------
        bytes
            Exactly `n_bytes` long. Bare numbers, which stand for ciphertexts, are
            filled up to what these would take.
        """
        if isinstance(self.data, bytes):
            return self.data
        written = b"" if self.data is None else _write_numbers(self.data, self.n_bytes)
        return written.ljust(self.n_bytes, b"\0")


def _write_numbers(numbers: np.ndarray, most: int) -> bytes:
    """Write bare numbers: their kind, width and count, then each in as many bytes."""
    kind = numbers.dtype.kind
    # Floats may hold integers that take fewer bytes than ciphertexts would.
    if kind != "f" or HEADER_BYTES + PLAIN_VALUE_BYTES * len(numbers) > most:
        integers = [int(number) for number in numbers]
        width = max(number.bit_length() for number in integers) // 8 + 1
        body = b"".join(n.to_bytes(width, "big", signed=True) for n in integers)
    else:
        width, body = 0, numbers.astype(">f8").tobytes()
    return _NUMBERS.pack(kind.encode(), width, len(numbers)).ljust(HEADER_BYTES) + body


def read_numbers(data: bytes) -> np.ndarray:
    """Read bare numbers as `Payload.to_bytes` writes them.

    Parameters
    ----------
    data : bytes
        The payload.

    Returns
    -------
    ndarray
        In the dtype that they had.

    Raises
    ------
    CorruptedMessageError
        If it holds no such numbers.
    """
    if not isinstance(data, bytes):
        raise CorruptedMessageError(
            f"a payload should be bytes, got {type(data).__name__}"
        )
    kind, width, count = b"", 0, 0
    if len(data) >= HEADER_BYTES:
        kind, width, count = _NUMBERS.unpack_from(data)
    end = HEADER_BYTES + (width or PLAIN_VALUE_BYTES) * count
    if kind not in (b"f", b"i", b"O") or (not width and kind != b"f"):
        raise CorruptedMessageError(f"payload of {len(data)} bytes holds no numbers")
    if end > len(data):
        raise CorruptedMessageError(
            f"payload of {len(data)} bytes, {count} numbers take {end}"
        )
    if data[_NUMBERS.size : HEADER_BYTES].strip(b" ") or data[end:].strip(b"\0"):
        raise CorruptedMessageError(
            f"payload of {len(data)} bytes holds more than its {count} numbers"
        )
    if not width:
        return np.frombuffer(data[HEADER_BYTES:end], dtype=">f8").astype(np.float64)
    integers = [
        int.from_bytes(data[start : start + width], "big", signed=True)
        for start in range(HEADER_BYTES, end, width)
    ]
    dtypes: dict[bytes, Any] = {b"f": np.float64, b"i": np.int64, b"O": object}
    try:
        return np.array(integers, dtype=dtypes[kind])
    except OverflowError as error:
        raise CorruptedMessageError(
            f"payload holds a number of {width} bytes: {error}"
        ) from error


def plain_bytes(values: np.ndarray) -> int:
    """Bytes of an unencrypted message."""
    return HEADER_BYTES + PLAIN_VALUE_BYTES * len(values)
