"""AES-128 in counter mode, the source of all masks."""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

KEY_BYTES = 16
BLOCK_BYTES = 16
# Before version 43 cryptography asked for so many bytes more than it writes.
SLACK_BYTES = BLOCK_BYTES - 1


def keystream(key: bytes, nonce: bytes) -> Any:
    """Return the encryptor of a key that counts from this block on."""
    return Cipher(algorithms.AES(key), modes.CTR(nonce)).encryptor()
