"""The first message over a link in each epoch: a signed key for this run alone."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise

from ..exceptions import CorruptedMessageError, ForgedMessageError
from .credentials import Credentials
from .facts import MAX_FACTS_BYTES, Facts
from .identity import SIGNATURE_BYTES

KEY_BYTES = 32
_PURPOSE = b"hello"
# epoch, number of members, bytes of the facts
_HEADER = struct.Struct(">HII")
_MEMBER = struct.Struct(">I")


@dataclass(frozen=True)
class Hello:
    """What a site says of itself before anything else.

    Parameters
    ----------
    epoch : int
        Departures so far.
    key : bytes
        A fresh X25519 public key, for this epoch of this run alone.
    members : tuple of int
        Who takes part, as far as it has been told.
    facts : Facts
        The public facts of the run, as it has them.
    signature : bytes
        By its identity, of all of it.
    """

    epoch: int
    key: bytes
    members: tuple[int, ...]
    facts: Facts
    signature: bytes

    @classmethod
    def of(
        cls,
        credentials: Credentials,
        protocol: int,
        epoch: int,
        key: bytes,
        members: tuple[int, ...],
    ) -> Hello:
        """Sign one."""
        signature = credentials.sign(_PURPOSE, *_fields(protocol, epoch, key, members))
        return cls(epoch, key, members, credentials.facts, signature)

    def verify(self, credentials: Credentials, protocol: int, sender: int) -> None:
        """Refuse it if the sender has not signed it for this run.

        Raises
        ------
        ForgedMessageError
            If so; whose facts differ is not refused here.
        """
        fields = _fields(protocol, self.epoch, self.key, self.members)
        if not credentials.is_signed(
            sender, self.signature, _PURPOSE, *fields, facts=self.facts
        ):
            names = credentials.name_of(credentials.number), credentials.name_of(sender)
            raise ForgedMessageError(
                f"{names[0]}: refused from {names[1]}: a key for the link that is not "
                "signed with its key of the roster for this run",
                sender=sender,
            )

    @property
    def n_bytes(self) -> int:
        """Bytes that `to_bytes` returns."""
        return len(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Serialise it."""
        facts = self.facts.to_bytes()
        return b"".join(
            [
                _HEADER.pack(self.epoch, len(self.members), len(facts)),
                self.key,
                _written(self.members),
                facts,
                self.signature,
            ]
        )

    @classmethod
    def from_bytes(cls, data: bytes, n_agents: int) -> Hello:
        """Read one, trusting nothing.

        Raises
        ------
        CorruptedMessageError
            If the data are none.
        """
        if len(data) < _HEADER.size:
            raise CorruptedMessageError(
                f"a hello of {len(data)} bytes is shorter than its header "
                f"({_HEADER.size})"
            )
        epoch, n_members, n_facts = _HEADER.unpack_from(data)
        if n_members > n_agents or n_facts > MAX_FACTS_BYTES:
            raise CorruptedMessageError(
                f"a hello of {n_members} members and {n_facts} bytes of facts; "
                f"{n_agents} and {MAX_FACTS_BYTES} are allowed"
            )
        ends = [_HEADER.size]
        for size in (KEY_BYTES, n_members * _MEMBER.size, n_facts, SIGNATURE_BYTES):
            ends.append(ends[-1] + size)
        if len(data) != ends[-1]:
            raise CorruptedMessageError(
                f"a hello of {len(data)} bytes, its header says {ends[-1]}"
            )
        key, members, facts, signature = (
            data[start:end] for start, end in pairwise(ends)
        )
        return cls(
            epoch,
            key,
            tuple(member for (member,) in _MEMBER.iter_unpack(members)),
            Facts.from_bytes(facts),
            signature,
        )


def _written(members: tuple[int, ...]) -> bytes:
    """Write who takes part."""
    return b"".join(map(_MEMBER.pack, members))


def _fields(
    protocol: int, epoch: int, key: bytes, members: tuple[int, ...]
) -> tuple[bytes, ...]:
    """Return what is signed, beside what every signature holds."""
    return bytes([protocol]), epoch.to_bytes(2, "big"), key, _written(members)
