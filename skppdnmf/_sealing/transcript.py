"""What an agent has been told so far, as one digest that grows with it."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

DIGEST_BYTES = 32
_PURPOSE = b"skppdnmf transcript 1\0"
_START, _MEMBERS, _TOLD, _DIGEST = (bytes([code]) for code in range(4))
_NUMBER = struct.Struct(">I")


class Position(NamedTuple):
    """How far a transcript has come.

    Parameters
    ----------
    epoch : int
        Departures so far.
    n_told : int
        Things told to all so far: totals, or what the protocol has instead.
    """

    epoch: int
    n_told: int


class Transcript:
    r"""A hash chain over the run, its facts, its members, and all totals.

    Members and totals are chained apart, since agents may hear of a departure before
    or after the last total:

    .. math::

        M_0 = h(s, m_0), \; M_e = h(M_{e-1}, m_e), \quad
        T_0 = h(s), \; T_n = h(T_{n-1}, t_n), \quad
        D(e, n) = h(s, e, M_e, n, T_n)

    with h SHA-256 under a prefix of its own for each use, and s the hash of the run
    and the facts.

    Parameters
    ----------
    run : bytes
        16 bytes that name the run.
    facts : bytes
        Hash of its public facts.
    members : iterable of int
        Who takes part.

    Attributes
    ----------
    position : Position
        How far it has come.

    Examples
    --------
    >>> from skppdnmf._sealing.transcript import Transcript
    >>> one, other = (Transcript(bytes(16), b"facts", range(3)) for _ in "ab")
    >>> one.tell(b"total"), one.depart([0, 1])
    (None, None)
    >>> other.depart([0, 1]), other.tell(b"total")
    (None, None)
    >>> one.digest() == other.digest()
    True
    """

    def __init__(self, run: bytes, facts: bytes, members: Iterable[int]) -> None:
        self._start = _hash(_START, run, hashlib.sha256(facts).digest())
        self._members = [_hash(_MEMBERS, self._start, _written(members))]
        self._told = [_hash(_TOLD, self._start)]

    @property
    def position(self) -> Position:
        """How far it has come."""
        return Position(len(self._members) - 1, len(self._told) - 1)

    def depart(self, members: Iterable[int]) -> None:
        """Note who takes part from now on."""
        self._members.append(_hash(_MEMBERS, self._members[-1], _written(members)))

    def tell(self, data: Any) -> None:
        """Note what all have been told: bytes, or an array that is contiguous."""
        self._told.append(_hash(_TOLD, self._told[-1], data))

    def reaches(self, position: Position) -> bool:
        """Return whether it has come as far."""
        epoch, n_told = self.position
        return position.epoch <= epoch and position.n_told <= n_told

    def digest(self, position: Position | None = None) -> bytes:
        """Return the digest of all up to a position; all, without one.

        Returns
        -------
        bytes
            32 bytes.
        """
        epoch, n_told = self.position if position is None else position
        return _hash(
            _DIGEST,
            self._start,
            _NUMBER.pack(epoch),
            self._members[epoch],
            _NUMBER.pack(n_told),
            self._told[n_told],
        )


def _written(members: Iterable[int]) -> bytes:
    """Write who takes part."""
    return b"".join(map(_NUMBER.pack, sorted(map(int, members))))


def _hash(*parts: Any) -> bytes:
    """Hash parts of which all but the last have one length."""
    *head, last = parts
    digest = hashlib.sha256(b"".join((_PURPOSE, *head)))
    digest.update(last)
    return digest.digest()
