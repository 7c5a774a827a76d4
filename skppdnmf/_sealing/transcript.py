"""What an agent has been told so far, as one digest that grows with it."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

DIGEST_BYTES = 32
_PURPOSE = b"skppdnmf transcript 1\0"
_START, _MEMBERS, _TOLD, _DIGEST = (bytes([code]) for code in range(4))
_NUMBER = struct.Struct(">I")
# Bytes from which on hashing costs more than comparing.
_LONG = 1 << 14


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
    hashes : SharedHashes or None, default=None
        What agents of one process share, who are told the same.

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

    def __init__(
        self,
        run: bytes,
        facts: bytes,
        members: Iterable[int],
        hashes: SharedHashes | None = None,
    ) -> None:
        self._hashes = hashes
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
        last = self._told[-1]
        if self._hashes is not None and isinstance(data, np.ndarray):
            self._told.append(self._hashes(last, data))
        else:
            self._told.append(_hash(_TOLD, last, data))

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


class SharedHashes:
    """The last link of the chain of totals, hashed once for agents of one process.

    Comparing a long total with the one that was hashed takes a quarter of the time or
    less. An agent that moves to another process begins anew.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._sealing.transcript import SharedHashes
    >>> hashes = SharedHashes()
    >>> total = np.ones(3000)
    >>> hashes(bytes(32), total) is hashes(bytes(32), total.copy())
    True
    >>> hashes(bytes(32), total) == hashes(bytes(32), 2 * total)
    False
    """

    def __init__(self) -> None:
        self._known: tuple[bytes, Any, bytes] | None = None

    def __reduce__(self) -> tuple[type[SharedHashes], tuple[()]]:
        return SharedHashes, ()

    def __call__(self, last: bytes, data: NDArray[Any]) -> bytes:
        """Return the link after another, computed or remembered."""
        if data.nbytes < _LONG:
            return _hash(_TOLD, last, data)
        known = self._known
        if known is not None and known[0] == last:
            before = known[1]
            # Bits are compared: zeros of either sign are not the same, nor is nan.
            if np.array_equal(before, _bits(data)):
                return known[2]
        digest = _hash(_TOLD, last, data)
        self._known = last, _bits(data).copy(), digest
        return digest


def _bits(data: NDArray[Any]) -> NDArray[Any]:
    """Return what is hashed of an array that is contiguous."""
    return data.reshape(-1).view(np.uint64 if data.itemsize == 8 else np.uint8)


def _written(members: Iterable[int]) -> bytes:
    """Write who takes part."""
    return b"".join(map(_NUMBER.pack, sorted(map(int, members))))


def _hash(*parts: Any) -> bytes:
    """Hash parts of which all but the last have one length."""
    *head, last = parts
    digest = hashlib.sha256(b"".join((_PURPOSE, *head)))
    digest.update(last)
    return digest.digest()
