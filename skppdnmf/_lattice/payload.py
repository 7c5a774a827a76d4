"""The bytes that cross an edge under the lattice cipher: batches and public keys."""

from __future__ import annotations

import struct

from .._integers import MASKINGS
from .._payload import HEADER_BYTES, KINDS, REQUEST, Payload
from ..exceptions import CorruptedMessageError, WrongKeyError
from .keys import PUBLIC_WORDS_BYTES, LatticePublicKey
from .parameters import DEGREE, N_DATA_PRIMES, WORD_BYTES, LatticeLayout

MAGIC = b"SKPL"
VERSION = 1
KEY = 3  # a kind beside requests and replies
# SEAL's header of a seed, the generator's kind and 512 bits
SEED_BYTES = 81
# magic, version, kind, masking, 0 | key id | layout | degree, modulus | ciphertexts
_HEADER = struct.Struct(">4sBBBB16sQHHHHI")
assert _HEADER.size == HEADER_BYTES
# magic, version, kind, degree
_KEY_HEADER = struct.Struct(">4sBBH")
PUBLIC_BYTES = _KEY_HEADER.size + PUBLIC_WORDS_BYTES


def ciphertext_bytes(kind: int, layout: LatticeLayout) -> int:
    """Size of one ciphertext of a request or of a reply."""
    polynomial = DEGREE * WORD_BYTES
    if kind == REQUEST:  # the second polynomial is a seed
        return SEED_BYTES + N_DATA_PRIMES * polynomial
    return 2 * layout.n_kept_primes * polynomial


def message_bytes(kind: int, layout: LatticeLayout) -> int:
    """Exact size of a message; it depends on the layout only."""
    return HEADER_BYTES + layout.n_reply_ciphertexts * ciphertext_bytes(kind, layout)


def header(kind: int, key_id: bytes, layout: LatticeLayout) -> bytes:
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
        DEGREE,
        layout.plain_bits,
        layout.n_reply_ciphertexts,
    )


def check_header(data: bytes, kind: int, key_id: bytes, layout: LatticeLayout) -> None:
    """Refuse, by name, what is not this kind of message for this key and layout."""
    if not isinstance(data, bytes):
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
    expected = {
        "n_values": layout.n_values,
        "value_bits": layout.value_bits,
        "mask_bits": layout.mask_bits,
        "degree": DEGREE,
        "plain_bits": layout.plain_bits,
        "n_ciphertexts": layout.n_reply_ciphertexts,
    }
    found = dict(zip(expected, numbers, strict=True))
    if masking != MASKINGS.index(layout.masking) or found != expected:
        raise CorruptedMessageError(f"message of another layout than {layout}: {found}")
    if len(data) != message_bytes(kind, layout):
        raise CorruptedMessageError(
            f"{KINDS[kind]} of {len(data)} bytes, expected "
            f"{message_bytes(kind, layout)}"
        )


def split(data: bytes, kind: int, layout: LatticeLayout) -> list[bytes]:
    """Take a checked message apart, a string of bytes for each ciphertext."""
    width = ciphertext_bytes(kind, layout)
    return [
        data[start : start + width] for start in range(HEADER_BYTES, len(data), width)
    ]


def key_payload(key: LatticePublicKey) -> Payload:
    """Write a public key."""
    data = _KEY_HEADER.pack(MAGIC, VERSION, KEY, DEGREE) + key.words
    return Payload(data, 0, len(data))


def read_public(payload: Payload | None) -> LatticePublicKey:
    """Read a neighbour's public key.

    Parameters
    ----------
    payload : Payload
        What `key_payload` returned at the neighbour.

    Returns
    -------
    LatticePublicKey

    Raises
    ------
    CorruptedMessageError
        If the payload is no key for the parameters in use.
    """
    data = payload.data if payload else None
    if not isinstance(data, bytes) or len(data) < _KEY_HEADER.size:
        raise CorruptedMessageError("a message that is no public key of BFV")
    found = _KEY_HEADER.unpack_from(data)
    if found != (MAGIC, VERSION, KEY, DEGREE):
        raise CorruptedMessageError(
            f"a message of {len(data)} bytes is no public key of BFV: {found}, "
            f"expected {(MAGIC, VERSION, KEY, DEGREE)}"
        )
    try:
        return LatticePublicKey(data[_KEY_HEADER.size :])
    except ValueError as error:
        raise CorruptedMessageError(f"no public key of BFV: {error}") from error
