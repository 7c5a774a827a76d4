"""The links of one agent in one epoch: keys that two sites share, and counters."""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey,
    X25519PublicKey,
)
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .._agent import VERSION, Envelope
from ..exceptions import CorruptedMessageError, ForgedMessageError, ReplayedMessageError
from .credentials import SEALING_VERSION, Credentials

# Sealed envelopes are of a protocol of their own, so that nobody takes one for another.
SEALED = 0x80
_PURPOSE = b"skppdnmf link"
_KEY_BYTES = 32
_TAG_BYTES = 16
# epoch, counter
_PREFIX = struct.Struct(">HQ")
# version of envelopes and of seals | protocol, kind | run | sender, receiver, round |
# epoch, counter | hash of the public facts
_ASSOCIATED = struct.Struct(">HBBB16sIIIHQ32s")
# What a sealed payload is longer by.
SEAL_BYTES = _PREFIX.size + _TAG_BYTES


class Links:
    """One agent's links to its neighbours between two departures.

    Each link has an AES-256-GCM key for each direction, from X25519 keys that are made
    for this epoch and forgotten with it. The counter of envelopes in a direction is
    the nonce; it and all that the envelope says in clear are authenticated.

    Parameters
    ----------
    credentials : Credentials
        The site's part in the run.
    protocol : int
        Code of the protocol.
    epoch : int
        Departures so far.
    members : tuple of int
        Who takes part.
    neighbours : collection of int
        With whom there will be keys; the private key is forgotten then.

    Attributes
    ----------
    key : bytes
        The public key, for the hello.
    """

    def __init__(
        self,
        credentials: Credentials,
        protocol: int,
        epoch: int,
        members: tuple[int, ...],
        neighbours: Collection[int],
    ) -> None:
        self.epoch = epoch
        self._missing = set(neighbours)
        self.members = members
        self._credentials = credentials
        self._protocol = protocol
        private = X25519PrivateKey.generate()
        # As bytes, so that the agent can move to another process.
        self._private = private.private_bytes_raw()
        self.key = private.public_key().public_bytes_raw()
        # Keys and counters of what is sent and of what is received.
        self._sending: dict[int, tuple[bytes, int]] = {}
        self._receiving: dict[int, tuple[bytes, int]] = {}
        self._ciphers: dict[bytes, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ciphers": {}}

    def __contains__(self, other: int) -> bool:
        return other in self._sending

    def connect(self, other: int, key: bytes) -> None:
        """Agree on keys with a neighbour, once.

        Raises
        ------
        ReplayedMessageError
            If there are keys already: they are never overwritten.
        CorruptedMessageError
            If its public key is none.
        """
        if other in self:
            raise ReplayedMessageError(
                f"{self._name(other)} has sent a key for the link before in epoch "
                f"{self.epoch}",
                sender=other,
            )
        private = X25519PrivateKey.from_private_bytes(self._private)
        try:
            secret = private.exchange(X25519PublicKey.from_public_bytes(key))
        except ValueError as error:
            raise CorruptedMessageError(
                f"the key of {self._name(other)} for the link is none: {error}",
                sender=other,
            ) from error
        number, roster = self._credentials.number, self._credentials.roster
        ends = sorted([(number, self.key), (other, key)])
        info = b"".join(
            [
                _PURPOSE,
                bytes([SEALING_VERSION, self._protocol]),
                self._credentials.run,
                self._credentials.facts.digest,
                self.epoch.to_bytes(2, "big"),
                *(one.to_bytes(4, "big") + roster.keys[one] + k for one, k in ends),
                *(member.to_bytes(4, "big") for member in self.members),
            ]
        )
        both = HKDF(
            algorithm=hashes.SHA256(), length=2 * _KEY_BYTES, salt=None, info=info
        ).derive(secret)
        upwards, downwards = both[:_KEY_BYTES], both[_KEY_BYTES:]
        if number > other:
            upwards, downwards = downwards, upwards
        self._sending[other] = upwards, 0
        self._receiving[other] = downwards, 0
        self._missing.discard(other)
        if not self._missing:
            self._private = b""

    def seal(self, envelope: Envelope, beneath: bytes) -> Envelope:
        """Return an envelope that only its receiver can open.

        Parameters
        ----------
        envelope : Envelope
            To a neighbour with whom there are keys.
        beneath : bytes
            What goes under the seal before the payload.

        Returns
        -------
        Envelope
        """
        body = envelope.body
        if not isinstance(body, bytes):
            body = body.to_bytes()
        key, counter = self._sending[envelope.receiver]
        self._sending[envelope.receiver] = key, counter + 1
        sealed = self._cipher(key).encrypt(
            _nonce(counter), beneath + body, self._associated(envelope, counter)
        )
        return envelope._replace(
            protocol=envelope.protocol | SEALED,
            body=_PREFIX.pack(self.epoch, counter) + sealed,
        )

    def open(self, envelope: Envelope) -> bytes:
        """Return what is under the seal of the next envelope from a neighbour.

        Raises
        ------
        ForgedMessageError
            If the seal does not fit: any bit of the envelope is another.
        ReplayedMessageError
            If it is not the next one from this neighbour.
        """
        _, counter = _PREFIX.unpack_from(envelope.body)
        key, expected = self._receiving[envelope.sender]
        try:
            content = self._cipher(key).decrypt(
                _nonce(counter),
                memoryview(envelope.body)[_PREFIX.size :],  # not copied
                self._associated(envelope, counter),
            )
        except InvalidTag as error:
            raise ForgedMessageError(
                "the seal does not fit: it is not what this agent sent over this link",
                sender=envelope.sender,
            ) from error
        if counter != expected:
            reason = "has come before"
            if counter > expected:
                reason = f"comes before {expected}, which is missing"
            raise ReplayedMessageError(
                f"envelope {counter} of epoch {self.epoch} {reason}",
                sender=envelope.sender,
            )
        self._receiving[envelope.sender] = key, counter + 1
        return content

    def _cipher(self, key: bytes) -> Any:
        """Return the cipher of a key, which does not move to another process."""
        cipher = self._ciphers.get(key)
        if cipher is None:
            cipher = self._ciphers[key] = AESGCM(key)
        return cipher

    def _associated(self, envelope: Envelope, counter: int) -> bytes:
        """Write what must not be changed: all that is in clear, and the facts."""
        return _ASSOCIATED.pack(
            VERSION,
            SEALING_VERSION,
            envelope.protocol & ~SEALED,
            envelope.kind,
            envelope.run,
            envelope.sender,
            envelope.receiver,
            envelope.round,
            self.epoch,
            counter,
            self._credentials.facts.digest,
        )

    def _name(self, number: int) -> str:
        """Return what errors call a neighbour."""
        return self._credentials.name_of(number)


def epoch_of(envelope: Envelope) -> int:
    """Return the epoch that a sealed envelope names.

    Raises
    ------
    CorruptedMessageError
        If it is too short to be sealed.
    """
    if not isinstance(envelope.body, bytes) or len(envelope.body) < SEAL_BYTES:
        raise CorruptedMessageError(
            "a payload too short to be sealed", sender=envelope.sender
        )
    return int(_PREFIX.unpack_from(envelope.body)[0])


def _nonce(counter: int) -> bytes:
    """Return the nonce of an envelope, which its key never sees again."""
    return counter.to_bytes(12, "big")
