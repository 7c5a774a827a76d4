"""Keys of the lattice cipher: words that every plaintext modulus can use."""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from typing import Any, NamedTuple

from .parameters import DEGREE, NARROW_BITS, WORD_BYTES, plain_moduli
from .seal import N_KEY_PRIMES, ring

KEY_ID_BYTES = 16
PUBLIC_WORDS_BYTES = 2 * N_KEY_PRIMES * DEGREE * WORD_BYTES
# Public keys whose SEAL objects a process keeps.
_MOST_KEPT = 64


class LatticePublicKey:
    """What neighbours encrypt with.

    Parameters
    ----------
    words : bytes
        Residues of both polynomials, as SEAL orders them.

    Raises
    ------
    ValueError
        If they are no public key.
    """

    def __init__(self, words: bytes) -> None:
        if len(words) != PUBLIC_WORDS_BYTES:
            raise ValueError(f"{len(words)} bytes, expected {PUBLIC_WORDS_BYTES}")
        half = PUBLIC_WORDS_BYTES // 2
        if not any(words[:half]) or not any(words[half:]):
            raise ValueError("a polynomial of it is zero")
        self.words = words
        self.key_id = hashlib.sha256(words).digest()[:KEY_ID_BYTES]
        self.encryptor(plain_moduli(NARROW_BITS, 1)[0])  # SEAL refuses what is none

    def encryptor(self, plain_modulus: int) -> Any:
        """Return SEAL's encryptor under this key."""
        return _encryptor(self.words, plain_modulus)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LatticePublicKey):
            return NotImplemented
        return self.words == other.words

    def __hash__(self) -> int:
        return hash(self.key_id)

    def __repr__(self) -> str:
        return f"LatticePublicKey({self.key_id.hex()})"


class LatticePrivateKey:
    """A key pair; its `repr` shows the public part alone.

    Parameters
    ----------
    public_key : LatticePublicKey
        The public part.
    words : bytes
        Residues of the secret polynomial, as SEAL orders them.
    """

    def __init__(self, public_key: LatticePublicKey, words: bytes) -> None:
        self.public_key = public_key
        self._words = words
        self._tools: dict[int, Tools] = {}

    def tools(self, plain_modulus: int) -> Tools:
        """Return SEAL's encryptor and decryptor under this key."""
        tools = self._tools.get(plain_modulus)
        if tools is None:
            here = ring(plain_modulus)
            secret = here.secret_key(self._words)
            tools = self._tools[plain_modulus] = Tools(
                here.api.Encryptor(here.context, secret),
                here.api.Decryptor(here.context, secret),
            )
        return tools

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tools": {}}  # SEAL's objects stay in their process

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LatticePrivateKey):
            return NotImplemented
        return hmac.compare_digest(self._words, other._words)

    def __hash__(self) -> int:
        return hash(self.public_key)

    def __repr__(self) -> str:
        return f"LatticePrivateKey({self.public_key.key_id.hex()})"


class Tools(NamedTuple):
    """What the owner of a key computes with."""

    encryptor: Any
    decryptor: Any


@lru_cache(maxsize=_MOST_KEPT)
def _encryptor(words: bytes, plain_modulus: int) -> Any:
    """Make the encryptor of a public key."""
    here = ring(plain_modulus)
    return here.api.Encryptor(here.context, here.public_key(words))


def new_lattice_keypair() -> LatticePrivateKey:
    """Make a key pair.

    Returns
    -------
    LatticePrivateKey
        With its `public_key`. The secret polynomial has coefficients -1, 0 and 1.

    Raises
    ------
    ImportError
        If TenSEAL is not installed.
    """
    public, secret = ring(plain_moduli(NARROW_BITS, 1)[0]).new_keys()
    return LatticePrivateKey(LatticePublicKey(public), secret)
