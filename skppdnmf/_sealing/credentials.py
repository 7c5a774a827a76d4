"""What an agent signs with, whom it believes, and to which run that applies."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any

from .._agent import RUN_ID_BYTES
from ..exceptions import ForgedMessageError
from .facts import Facts
from .identity import SIGNATURE_BYTES, Identity, Roster, verify_signature
from .transcript import SharedHashes, Transcript

# Version of all that is signed, sealed or derived in this room.
SEALING_VERSION = 1


class Verified:
    """Signatures that this process has found good, so that each is checked once.

    Agents that share a process see the same signatures.
    """

    def __init__(self) -> None:
        self._known: set[tuple[bytes, bytes, bytes]] = set()

    def __reduce__(self) -> tuple[type[Verified], tuple[()]]:
        return Verified, ()

    def __call__(self, public: bytes, signature: bytes, message: bytes) -> bool:
        """Return whether a signature is good, checked or remembered."""
        mark = public, signature, message
        if mark in self._known:
            return True
        good = verify_signature(public, signature, message)
        if good:
            self._known.add(mark)
        return good


class Credentials:
    """One site's part in one run: its key, the others', the run and its facts.

    Whatever it signs begins with the purpose of the signature, the run, the hash of
    the public facts (which hold the roster) and the signer's number, so that no
    signature says anything elsewhere.

    Parameters
    ----------
    identity : Identity
        The site's own.
    roster : Roster
        All sites' public keys, in the order of their numbers.
    run : bytes
        16 random bytes that name the run.
    facts : mapping from str to object
        The run's public facts; the roster and the version of the seals are added.
    verified : Verified or None, default=None
        What agents of one process share.
    hashes : SharedHashes or None, default=None
        Likewise, for their transcripts.

    Attributes
    ----------
    number : int
        The site's own.
    names : tuple of str
        What errors call the sites.
    facts : Facts
        With the roster.

    Raises
    ------
    ValueError
        If the identity is not in the roster, or the run is not named by 16 bytes.

    Examples
    --------
    >>> from skppdnmf.exchange import Credentials, Identity, Roster
    >>> identities = [Identity.new(), Identity.new()]
    >>> roster = Roster({"a": identities[0].public, "b": identities[1].public})
    >>> a, b = (Credentials(one, roster, bytes(16), {"K": 5}) for one in identities)
    >>> b.verify(0, a.sign(b"purpose", b"words"), b"purpose", b"words")
    """

    def __init__(
        self,
        identity: Identity,
        roster: Roster,
        run: bytes,
        facts: Mapping[str, Any],
        verified: Verified | None = None,
        hashes: SharedHashes | None = None,
    ) -> None:
        if len(run) != RUN_ID_BYTES:
            raise ValueError(f"run has {len(run)} bytes, expected {RUN_ID_BYTES}")
        self.identity = identity
        self.roster = roster
        self.run = run
        self.number = roster.number_of(identity.public)
        self.names = tuple(f"agent {name!r}" for name in roster.names)
        known = {"roster": roster.to_text(), "sealing version": SEALING_VERSION}
        taken = sorted(known.keys() & facts.keys())
        if taken:
            raise ValueError(f"facts {taken} are added by the credentials themselves")
        self.facts = Facts({**facts, **known})
        self._verified = Verified() if verified is None else verified
        self._hashes = hashes
        self._beginnings: dict[bytes, bytes] = {}  # of what is signed, by purpose

    def of(self, identity: Identity, number: int) -> Credentials:
        """Return those of another site of the same process."""
        other = copy(self)
        other.identity, other.number = identity, number
        return other

    def sign(self, purpose: bytes, *fields: bytes) -> bytes:
        """Sign fields for one purpose.

        Parameters
        ----------
        purpose : bytes
            What the signature says.
        *fields : bytes
            What it says it of.

        Returns
        -------
        bytes
            64 bytes.
        """
        return self.identity.sign(
            self._statement(self.number, purpose, fields, self.facts)
        )

    def is_signed(
        self,
        number: int,
        signature: bytes,
        purpose: bytes,
        *fields: bytes,
        facts: Facts | None = None,
    ) -> bool:
        """Return whether a site has signed fields for one purpose in this run.

        Under these facts, or under others that it is said to have.
        """
        if not 0 <= number < len(self.roster) or len(signature) != SIGNATURE_BYTES:
            return False
        facts = self.facts if facts is None else facts
        statement = self._statement(number, purpose, fields, facts)
        return self._verified(self.roster.keys[number], signature, statement)

    def verify(
        self, number: int, signature: bytes, purpose: bytes, *fields: bytes
    ) -> None:
        """Refuse what a site has not signed.

        Parameters
        ----------
        number : int
            The site that is said to have signed it.
        signature, purpose, *fields
            As for `sign`.

        Raises
        ------
        ForgedMessageError
            If the signature is not that of the roster's key.
        """
        if not self.is_signed(number, signature, purpose, *fields):
            raise ForgedMessageError(
                f"{self.names[self.number]}: what is said to be signed by "
                f"{self.name_of(number)} ({purpose.decode()}) is not signed with its "
                "key of the roster, for this run and these facts",
                sender=number,
            )

    def name_of(self, number: int) -> str:
        """Return what errors call a site."""
        known = 0 <= number < len(self.names)
        return self.names[number] if known else f"agent number {number}"

    def transcript(self, members: Iterable[int] | None = None) -> Transcript:
        """Return the transcript of the run before anything has been told."""
        everybody: Iterable[int] = range(len(self.roster))
        members = everybody if members is None else members
        return Transcript(self.run, self.facts.digest, members, self._hashes)

    def _statement(
        self, number: int, purpose: bytes, fields: Sequence[bytes], facts: Facts
    ) -> bytes:
        """Write what is signed; every part with its length, so that none can shift."""
        begin = self._beginnings.get(purpose) if facts is self.facts else None
        if begin is None:
            version = bytes([SEALING_VERSION])
            begin = _written((b"skppdnmf", version, purpose, self.run, facts.digest))
            if facts is self.facts:
                self._beginnings[purpose] = begin
        return begin + _written((number.to_bytes(4, "big"), *fields))


def _written(parts: Iterable[bytes]) -> bytes:
    """Write parts, each with its length."""
    return b"".join([len(part).to_bytes(4, "big") + part for part in parts])


class LocalCredentials:
    """Identities made on the fly for agents that share a process, when first asked for.

    They remember together what has been verified.

    Parameters
    ----------
    names : sequence of str
        Of the agents, each another.
    run : bytes
        16 bytes that name the run.
    facts : mapping from str to object or None, default=None
        The run's public facts; none where nobody could have others.

    Examples
    --------
    >>> from skppdnmf._sealing.credentials import LocalCredentials
    >>> credentials = LocalCredentials(["a", "b"], bytes(16))
    >>> credentials(1).number, credentials(1) is credentials(1)
    (1, True)
    """

    def __init__(
        self, names: Sequence[str], run: bytes, facts: Mapping[str, Any] | None = None
    ) -> None:
        self._names = list(names)
        self._run = run
        self._facts = facts or {}
        self._made: list[Credentials] = []

    def __call__(self, number: int) -> Credentials:
        """Return the credentials of one agent."""
        if not self._made:
            identities = [Identity.new() for _ in self._names]
            roster = Roster(
                {
                    name: one.public
                    for name, one in zip(self._names, identities, strict=True)
                }
            )
            first = Credentials(
                identities[0], roster, self._run, self._facts, hashes=SharedHashes()
            )
            self._made = [first.of(one, i) for i, one in enumerate(identities)]
        return self._made[number]


def new_run() -> bytes:
    """Return a random name for a run."""
    return secrets.token_bytes(RUN_ID_BYTES)
