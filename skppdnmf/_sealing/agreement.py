"""What all sites of a run have agreed on, signed by each."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..exceptions import CorruptedMessageError
from .credentials import Credentials
from .identity import SIGNATURE_BYTES
from .transcript import DIGEST_BYTES, Position

_PURPOSE = b"agreement"
# number, things told to all
_ENTRY = struct.Struct(f">II{DIGEST_BYTES}s{SIGNATURE_BYTES}s")
_FIELDS = struct.Struct(">HI")


class Statement(NamedTuple):
    """What one site signs at the end.

    Parameters
    ----------
    n_told : int
        Totals that it has been told, or what the protocol has instead.
    digest : bytes
        Of its transcript.
    signature : bytes
        By its identity.
    """

    n_told: int
    digest: bytes
    signature: bytes


@dataclass(frozen=True)
class Agreement:
    """The signatures of all sites under one digest of all that they were told.

    It is kept with the result: each site can show what all agreed on.

    Parameters
    ----------
    run : bytes
        16 bytes that name the run.
    facts : dict from str to str
        Its public facts, the roster's hash among them.
    position : Position
        Departures, and totals told.
    digest : bytes
        Of the transcript.
    statements : dict from int to Statement
        By the numbers of all sites that took part to the end.

    Examples
    --------
    >>> from skppdnmf.exchange import Agreement
    >>> Agreement.from_json(Agreement(bytes(16)).to_json()) == Agreement(bytes(16))
    True
    """

    run: bytes
    facts: dict[str, str] = field(default_factory=dict)
    position: Position = field(default_factory=lambda: Position(0, 0))
    digest: bytes = bytes(DIGEST_BYTES)
    statements: dict[int, Statement] = field(default_factory=dict)

    def verify(self, credentials: Credentials) -> list[str]:
        """Return the names of the sites that have signed it.

        Parameters
        ----------
        credentials : Credentials
            Of any site of the run, which may have been made anew for this.

        Returns
        -------
        list of str
            In the order of the roster.

        Raises
        ------
        ForgedMessageError
            If a signature is not that of the roster's key, for the run and the facts
            of the credentials.
        """
        for number, statement in sorted(self.statements.items()):
            check(credentials, number, self.position.epoch, statement)
        return [
            credentials.roster.names[number]
            for number, statement in sorted(self.statements.items())
            if (statement.n_told, statement.digest)
            == (self.position.n_told, self.digest)
        ]

    def to_json(self) -> str:
        """Write it as text."""
        return json.dumps(
            {
                "run": self.run.hex(),
                "facts": self.facts,
                "epoch": self.position.epoch,
                "told": self.position.n_told,
                "digest": self.digest.hex(),
                "signatures": {
                    str(number): one.signature.hex()
                    for number, one in sorted(self.statements.items())
                },
            },
            indent=1,
        )

    @classmethod
    def from_json(cls, text: str) -> Agreement:
        """Read what `to_json` has written.

        Raises
        ------
        ValueError
            If the text is none.
        """
        try:
            read = json.loads(text)
            digest = bytes.fromhex(read["digest"])
            position = Position(int(read["epoch"]), int(read["told"]))
            return cls(
                bytes.fromhex(read["run"]),
                dict(read["facts"]),
                position,
                digest,
                {
                    int(number): Statement(
                        position.n_told, digest, bytes.fromhex(signature)
                    )
                    for number, signature in read["signatures"].items()
                },
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no agreement of sites: {error!r}") from error


def state(credentials: Credentials, position: Position, digest: bytes) -> Statement:
    """Sign what a site has been told."""
    signature = credentials.sign(_PURPOSE, _FIELDS.pack(*position), digest)
    return Statement(position.n_told, digest, signature)


def check(
    credentials: Credentials, number: int, epoch: int, statement: Statement
) -> None:
    """Refuse a statement that its site has not signed."""
    fields = _FIELDS.pack(epoch, statement.n_told)
    credentials.verify(number, statement.signature, _PURPOSE, fields, statement.digest)


def statements_to_bytes(statements: Mapping[int, Statement]) -> bytes:
    """Serialise statements for a message."""
    return b"".join(_ENTRY.pack(number, *one) for number, one in statements.items())


def statements_from_bytes(data: bytes) -> dict[int, Statement]:
    """Read the statements of a message.

    Raises
    ------
    CorruptedMessageError
        If the data are none, or two are of the same site.
    """
    if not data or len(data) % _ENTRY.size:
        raise CorruptedMessageError(
            f"{len(data)} bytes of final signatures, expected a multiple of "
            f"{_ENTRY.size}"
        )
    read: dict[int, Any] = {}
    for number, *statement in _ENTRY.iter_unpack(data):
        if number in read:
            raise CorruptedMessageError(f"two final signatures of site {number}")
        read[number] = Statement(*statement)
    return read
