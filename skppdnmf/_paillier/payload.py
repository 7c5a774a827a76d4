"""The bytes that cross an edge: ciphertexts behind one fixed header, public keys."""

from __future__ import annotations

import struct

from .._integers import MASKINGS
from .._payload import HEADER_BYTES, KINDS, REQUEST, Payload
from ..exceptions import CorruptedMessageError, WrongKeyError
from .keys import SCHEMES, PaillierPublicKey
from .slots import SlotLayout

MAGIC = b"SKPN"
VERSION = 1
# magic, version, kind, masking, 0 | key id | layout | ciphertexts
_HEADER = struct.Struct(">4sBBBB16sQHHII")
_SCHEMES = ("full", *SCHEMES)  # the first byte of a public key


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
