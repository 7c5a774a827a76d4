"""The bytes that cross an edge: ciphertexts behind one fixed header, public keys."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from ..exceptions import CorruptedMessageError, WrongKeyError
from .keys import SCHEMES, PaillierPublicKey
from .slots import MASKINGS, SlotLayout

MAGIC = b"SKPN"
VERSION = 1
REQUEST, REPLY = 1, 2
KINDS = {REQUEST: "request", REPLY: "reply"}
# magic, version, kind, masking, 0 | key id | layout | ciphertexts
_HEADER = struct.Struct(">4sBBBB16sQHHII")
HEADER_BYTES = _HEADER.size
PLAIN_VALUE_BYTES = 8  # a float64
# Of bare numbers: kind of dtype, bytes of each (0 for doubles), count
_NUMBERS = struct.Struct(">cHI")
_SCHEMES = ("full", *SCHEMES)  # the first byte of a public key


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


def ciphertext_bytes(key_size: int) -> int:
    """Width of one serialised ciphertext: that of n**2."""
    return 2 * (-(-key_size // 8))


def n_ciphertexts(kind: int, layout: SlotLayout) -> int:
    """Ciphertexts of a request or a reply."""
    if kind == REQUEST:
        return layout.n_request_ciphertexts
    return layout.n_reply_ciphertexts


def message_bytes(kind: int, layout: SlotLayout) -> int:
    """Exact size of a message; it depends on the layout only."""
    return HEADER_BYTES + n_ciphertexts(kind, layout) * ciphertext_bytes(
        layout.key_size
    )


def header(kind: int, key_id: bytes, layout: SlotLayout) -> bytes:
    """Serialise everything that both sides must agree upon."""
    return _HEADER.pack(
        MAGIC,
        VERSION,
        kind,
        MASKINGS.index(layout.masking),
        0,
        key_id,
        layout.n_values,
        layout.value_bits,
        layout.mask_bits,
        layout.key_size,
        n_ciphertexts(kind, layout),
    )


def check_header(data: bytes, kind: int, key_id: bytes, layout: SlotLayout) -> None:
    """Refuse, by name, what is not this kind of message for this key and layout."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise CorruptedMessageError(
            f"a {KINDS[kind]} should be bytes, got {type(data).__name__}"
        )
    if len(data) < HEADER_BYTES:
        raise CorruptedMessageError(
            f"message of {len(data)} bytes is shorter than its header ({HEADER_BYTES})"
        )
    magic, version, got_kind, masking, filler, got_id, *numbers = _HEADER.unpack_from(
        data
    )
    if magic != MAGIC or version != VERSION:
        raise CorruptedMessageError(
            f"not a message of format {MAGIC!r} version {VERSION}: "
            f"{magic!r} version {version}"
        )
    if filler:
        raise CorruptedMessageError(f"byte 7 of a message is {filler}, expected 0")
    if got_id != key_id:
        raise WrongKeyError(
            f"message for key {got_id.hex()}, but this is key {key_id.hex()}"
        )
    if got_kind != kind:
        raise CorruptedMessageError(
            f"expected a {KINDS[kind]}, got {KINDS.get(got_kind, got_kind)!r}"
        )
    expected = [
        layout.n_values,
        layout.value_bits,
        layout.mask_bits,
        layout.key_size,
        n_ciphertexts(kind, layout),
    ]
    if masking != MASKINGS.index(layout.masking) or numbers != expected:
        names = ("n_values", "value_bits", "mask_bits", "key_size", "n_ciphertexts")
        found = dict(zip(names, numbers, strict=True))
        raise CorruptedMessageError(f"message of another layout than {layout}: {found}")
    if len(data) != message_bytes(kind, layout):
        raise CorruptedMessageError(
            f"{KINDS[kind]} of {len(data)} bytes, expected "
            f"{message_bytes(kind, layout)}"
        )


def plain_bytes(values: np.ndarray) -> int:
    """Bytes of an unencrypted message."""
    return HEADER_BYTES + PLAIN_VALUE_BYTES * len(values)


def key_payload(key: PaillierPublicKey) -> Payload:
    """Write a public key: its scheme, n and h, in a fixed number of bytes."""
    width = _number_bytes(key.key_size)
    data = (
        bytes([_SCHEMES.index(key.scheme)])
        + int(key.n).to_bytes(width, "big")
        + int(key.h or 0).to_bytes(width, "big")
    )
    return Payload(data, 0, len(data))


def read_public(payload: Payload | None) -> PaillierPublicKey | None:
    """Read a neighbour's public key.

    Parameters
    ----------
    payload : Payload
        What `public_payload` returned at the neighbour.

    Returns
    -------
    PaillierPublicKey or None
        None if the key was a simulated one.

    Raises
    ------
    CorruptedMessageError
        If the payload is no key.
    """
    data = payload.data if payload else None
    if data is None:
        return None
    width, odd = divmod(len(data) - 1, 2)
    if odd or width < 1 or data[0] >= len(_SCHEMES):
        raise CorruptedMessageError(f"a message of {len(data)} bytes is no public key")
    n = int.from_bytes(data[1 : 1 + width], "big")
    h = int.from_bytes(data[1 + width :], "big")
    try:
        return PaillierPublicKey(n, h or None, _SCHEMES[data[0]])
    except ValueError as error:
        raise CorruptedMessageError(f"no public key: {error}") from error


def public_bytes(key_size: int) -> int:
    """Bytes of a public key on the wire."""
    return 1 + 2 * _number_bytes(key_size)


def _number_bytes(key_size: int) -> int:
    """Bytes of a number below the modulus."""
    return -(-key_size // 8)
