"""Pairwise masks: what two agents add and subtract, so that the total is exact."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey,
    X25519PublicKey,
)
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from .._keystream import BLOCK_BYTES, KEY_BYTES, SLACK_BYTES, keystream
from ..exceptions import CorruptedMessageError
from .pairs import RoundOfPairs, SharedPairs

Words = NDArray[np.uint64]

PUBLIC_KEY_BYTES = 32
_PURPOSE = b"skppdnmf pairwise mask"
_LINK_PURPOSE = b"skppdnmf link"
_MOST_KEPT = 64  # ciphers, which take memory
# Words expanded and added at a time, which stay in the processor's cache.
_CHUNK_WORDS = 1 << 15
_ZEROS = bytes(8 * _CHUNK_WORDS)
_SLACK_WORDS = -(-SLACK_BYTES // 8)


class PairwiseMasks:
    """One agent's secret keys with others, and the masks that come of them.

    Each pair of agents agrees on two keys by X25519 and HKDF-SHA256. One is expanded by
    AES-128 in counter mode into 64-bit words; where the counter starts in a round is
    the BLAKE2b code, under the other key, of the round and of a digest of what they
    have been told. The agent of the lower number adds the words, the other subtracts
    them, modulo 2**64. The masks of two agents that have been told different things
    come from independent places of the stream, and do not cancel.

    Parameters
    ----------
    number : int
        The agent's number.
    shared : SharedPairs or None, default=None
        Where agents of one process leave each other what both would derive.

    Attributes
    ----------
    public_key : bytes
        32 bytes, to be sent to the others. Fresh for each object.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.exchange import PairwiseMasks
    >>> one, other = PairwiseMasks(0), PairwiseMasks(1)
    >>> one.agree({1: other.public_key})
    >>> other.agree({0: one.public_key})
    >>> masked = one.mask(np.array([1, 2], dtype=np.uint64), 7, [1])
    >>> masked + other.mask(np.array([10, 20], dtype=np.uint64), 7, [0])
    array([11, 22], dtype=uint64)
    """

    def __init__(self, number: int, shared: SharedPairs | None = None) -> None:
        self.number = number
        self._shared = shared
        private = X25519PrivateKey.generate()
        # As bytes, so that the agent can move to another process.
        self._private: bytes | None = private.private_bytes_raw()
        self.public_key = private.public_key().public_bytes_raw()
        self._seeds: dict[int, bytes] = {}
        self._place_keys: dict[int, bytes] = {}
        self._link_seeds: dict[int, bytes] = {}
        self._kept: dict[bytes, Any] = {}
        self._placers: dict[bytes, Any] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(number={self.number}, pairs={len(self._seeds)})"

    def __getstate__(self) -> dict[str, Any]:
        # Ciphers and hashes stay in their process.
        return {**self.__dict__, "_kept": {}, "_placers": {}}

    def _stream(self, key: bytes, start: bytes) -> Any:
        """Return the stream of a key from this block on."""
        cipher = self._kept.get(key)
        if cipher is not None:
            cipher.reset_nonce(start)
            return cipher
        cipher = keystream(key, start)
        # cryptography can go to another place of a stream since version 43.
        if len(self._kept) < _MOST_KEPT and hasattr(cipher, "reset_nonce"):
            self._kept[key] = cipher
        return cipher

    def _masks_with(self, others: Iterable[int], round_and_told: bytes) -> list[Any]:
        """Return the streams of pairs from where the masks of a round start."""
        # Two of q places that are L blocks long overlap with odds of q**2 L / 2**128:
        # below 2**-60 for a million rounds of a gigabyte each.
        streams = []
        for other in others:
            key = self._place_keys[other]
            placer = self._placers.get(key)
            if placer is None:
                placer = hashlib.blake2b(key=key, digest_size=BLOCK_BYTES)
                self._placers[key] = placer
            placer = placer.copy()  # which costs less than beginning with the key
            placer.update(round_and_told)
            streams.append(self._stream(self._seeds[other], placer.digest()))
        return streams

    def agree(
        self,
        public_keys: Mapping[int, bytes],
        links: Mapping[int, bytes] | None = None,
        told: bytes = b"",
    ) -> None:
        """Agree on a seed with each of these agents and forget the private key.

        Parameters
        ----------
        public_keys : mapping from int to bytes
            Numbers and public keys of those with whom masks are shared.
        links : mapping from int to bytes or None, default=None
            Of those to whom totals are sent, or from whom they come.
        told : bytes, default=b""
            Digest of what the agent has been told so far: run, facts, members, totals.

        Raises
        ------
        CorruptedMessageError
            If a public key is not one.
        """
        if self._private is None:
            raise RuntimeError(f"agent {self.number} has agreed on its seeds before")
        private = X25519PrivateKey.from_private_bytes(self._private)
        self._private = None
        # Others need not try a key of which its owner has the private half.
        shared = self._shared
        if private.public_key().public_bytes_raw() != self.public_key:
            shared = None
        links = links or {}
        for other, public_key in {**links, **public_keys}.items():
            first, second = sorted(
                [(self.number, self.public_key), (other, public_key)]
            )
            pair = told + b"".join(
                number.to_bytes(4, "big") + key for number, key in (first, second)
            )
            wanted = {}
            if other in public_keys:
                wanted[_PURPOSE + pair] = 2 * KEY_BYTES
            if other in links:
                wanted[_LINK_PURPOSE + pair] = KEY_BYTES
            keys = None if shared is None else shared.found(wanted)
            if keys is None:
                secret = _agreed(private, other, public_key)
                keys = [_derive(secret, *one) for one in wanted.items()]
                if shared is not None:
                    shared.leave(wanted, keys)
            if other in public_keys:
                self._seeds[other] = keys[0][:KEY_BYTES]
                self._place_keys[other] = keys[0][KEY_BYTES:]
            if other in links:
                self._link_seeds[other] = keys[-1]

    def hide(self, words: Words, other: int, message_number: int) -> Words:
        """Return words that only another agent can read.

        Parameters
        ----------
        words : ndarray of uint64
            A total.
        other : int
            One of the links.
        message_number : int
            Below 2**64; no two messages between the two agents have the same.

        Returns
        -------
        ndarray of uint64
            Uniform to all but the two agents.
        """
        return self._crypt(words, other, message_number)

    def reveal(self, words: Words, other: int, message_number: int) -> Words:
        """Return the words that another agent has hidden.

        Parameters
        ----------
        words, other, message_number
            As for `hide`.

        Returns
        -------
        ndarray of uint64
        """
        return self._crypt(words, other, message_number)

    def _crypt(self, words: Words, other: int, message_number: int) -> Words:
        """Encrypt or decrypt one message between two agents, which is the same."""
        nonce = message_number.to_bytes(8, "big") + bytes(8)
        cipher = self._stream(self._link_seeds[other], nonce)
        target = np.empty(len(words) + _SLACK_WORDS, dtype="<u8")
        cipher.update_into(
            words.astype("<u8", copy=False).data.cast("B"), target.data.cast("B")
        )
        return target[: len(words)]

    def mask(
        self,
        words: Words,
        round_number: int,
        others: Iterable[int],
        told: bytes = b"",
    ) -> Words:
        """Return the words with the masks of this round added, modulo 2**64.

        Parameters
        ----------
        words : ndarray of uint64
            The agent's summand.
        round_number : int
            Below 2**64. No two rounds under the same keys may have the same number:
            it selects the place in the stream, so that no word of it is used twice.
        others : iterable of int
            The agents that take part and share a key with this one.
        told : bytes, default=b""
            Digest of what the agent has been told so far. Masks cancel among those who
            have been told the same.

        Returns
        -------
        ndarray of uint64
            Uniform to all who do not know the masks.
        """
        others, masked = list(others), words.copy()
        round_and_told = round_number.to_bytes(8, "big") + told
        # Long streams cost far more than what surrounds them, and memory to leave.
        if self._shared is None or len(words) > _CHUNK_WORDS:
            self._add_masks(masked, round_and_told, others)
            return masked
        with self._shared.round(round_and_told) as left:
            rest = left.take(self.number, others, self._seeds, masked)
            self._add_masks(masked, round_and_told, rest, left)
        return masked

    def _add_masks(
        self,
        masked: Words,
        round_and_told: bytes,
        others: Collection[int],
        left: RoundOfPairs | None = None,
    ) -> None:
        """Add or subtract the masks with others, and leave them theirs."""
        if not others or not len(masked):
            return
        size = min(len(masked), _CHUNK_WORDS)
        # Several short streams stand one below the other, and are added at once.
        n_rows = min(_CHUNK_WORDS // size, len(others))
        room = np.empty(n_rows * size + _SLACK_WORDS, dtype="<u8")
        lower = [other for other in others if other < self.number]
        higher = [other for other in others if other > self.number]
        for some, adds in ((lower, False), (higher, True)):
            for first in range(0, len(some), n_rows):
                group = some[first : first + n_rows]
                ciphers = self._masks_with(group, round_and_told)
                for start in range(0, len(masked), size):
                    part = masked[start : start + size]
                    streams = _expanded(ciphers, room, part.nbytes)
                    if left is not None:
                        left.leave(self.number, group, self._seeds, streams)
                    total = np.add.reduce(streams, axis=0)
                    if adds:
                        part += total
                    else:
                        part -= total


def _expanded(ciphers: list[Any], room: Words, n_bytes: int) -> Words:
    """Return the next words of some streams, one below the other."""
    zeros, target = memoryview(_ZEROS)[:n_bytes], room.data.cast("B")
    end = n_bytes + SLACK_BYTES
    for row, cipher in enumerate(ciphers):
        # What a cipher has to have room for beyond its words is written over.
        cipher.update_into(zeros, target[row * n_bytes : row * n_bytes + end])
    n_words = n_bytes // 8
    return room[: len(ciphers) * n_words].reshape(len(ciphers), n_words)


def _agreed(private: X25519PrivateKey, other: int, public_key: bytes) -> bytes:
    """Return the secret that two agents share."""
    try:
        return private.exchange(X25519PublicKey.from_public_bytes(public_key))
    except ValueError as error:
        raise CorruptedMessageError(
            f"the public key of agent {other} is none: {error}", sender=other
        ) from error


def _derive(secret: bytes, info: bytes, n_bytes: int) -> bytes:
    """Derive keys from a secret that two agents share."""
    return HKDF(algorithm=hashes.SHA256(), length=n_bytes, salt=None, info=info).derive(
        secret
    )
