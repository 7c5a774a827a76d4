"""What a site answers to the relay: envelopes, how far it is, or why it ends."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable
from typing import NamedTuple

from .._agent import ENVELOPE_BYTES, MAX_PAYLOAD_BYTES, Envelope
from ..exceptions import CorruptedMessageError

_MAGIC = b"SKPF"
# magic, flags, iteration, exchanges, relative error
_HEADER = struct.Struct(">4sBIId")
_FINISHED, _REPORTED, _FAILED = 1, 2, 4
_LENGTH = struct.Struct(">I")
_LENGTH_AT = ENVELOPE_BYTES - _LENGTH.size


class Failure(NamedTuple):
    """Why a site ends, as far as others may know.

    Parameters
    ----------
    error : str
        Name of the exception.
    message : str
        What others may know of it.
    sender : int or None
        Whose envelope it was, if it was one.
    """

    error: str
    message: str
    sender: int | None


class Answer(NamedTuple):
    """A site's answer.

    Parameters
    ----------
    envelopes : list of bytes
        To be delivered, unread but for their headers.
    iteration, n_exchanges : int
        Of the iteration that was finished; 0 if none was.
    error : float
        Relative error of all samples, where it is known and may be told.
    finished : bool
        Whether the fit is over for the site.
    failure : Failure or None
        Why it ends before its time.
    """

    envelopes: list[bytes]
    iteration: int = 0
    n_exchanges: int = 0
    error: float = math.nan
    finished: bool = False
    failure: Failure | None = None

    def to_bytes(self) -> bytes:
        """Serialise it."""
        flags = _FINISHED * self.finished | _REPORTED * (self.iteration > 0)
        body = b"".join(self.envelopes)
        if self.failure is not None:
            flags |= _FAILED
            body = json.dumps(self.failure._asdict()).encode()
        numbers = self.iteration, self.n_exchanges, self.error
        return _HEADER.pack(_MAGIC, flags, *numbers) + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Answer:
        """Read it.

        Raises
        ------
        CorruptedMessageError
            If the data are none.
        """
        if len(data) < _HEADER.size or not data.startswith(_MAGIC):
            raise CorruptedMessageError(f"{len(data)} bytes that are no answer")
        _, flags, iteration, n_exchanges, error = _HEADER.unpack_from(data)
        body = data[_HEADER.size :]
        if flags & _FAILED:
            return cls([], failure=_failure(body))
        finished = bool(flags & _FINISHED)
        envelopes = split(body)
        return cls(envelopes, iteration, n_exchanges, error, finished)


def _failure(body: bytes) -> Failure:
    """Read why a site ends; a text of anybody's choice, so that little is believed."""
    try:
        read = json.loads(body)
        sender = read["sender"]
        return Failure(
            str(read["error"])[:100],
            str(read["message"])[:2000],
            None if sender is None else int(sender),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptedMessageError(f"a failure that is none: {error!r}") from error


def join(envelopes: Iterable[Envelope]) -> bytes:
    """Serialise envelopes, one after the other."""
    return b"".join(envelope.to_bytes() for envelope in envelopes)


def split(data: bytes) -> list[bytes]:
    """Return the bytes of each of several envelopes, found by their lengths.

    Parameters
    ----------
    data : bytes
        What `join` returned.

    Returns
    -------
    list of bytes

    Raises
    ------
    CorruptedMessageError
        If the last is not whole.

    Examples
    --------
    >>> from skppdnmf._agent import Envelope
    >>> from skppdnmf.flare.frames import join, split
    >>> envelopes = [Envelope(bytes(16), 1, 0, 1, 2, 3, body) for body in (b"", b"u")]
    >>> [len(each) for each in split(join(envelopes))]
    [40, 41]
    """
    found, start = [], 0
    while start < len(data):
        if start + ENVELOPE_BYTES > len(data):
            raise CorruptedMessageError("an envelope whose header is not whole")
        (length,) = _LENGTH.unpack_from(data, start + _LENGTH_AT)
        end = start + ENVELOPE_BYTES + length
        if length > MAX_PAYLOAD_BYTES or end > len(data):
            raise CorruptedMessageError(
                f"an envelope that claims {length} bytes of payload; "
                f"{len(data) - start - ENVELOPE_BYTES} follow"
            )
        found.append(data[start:end])
        start = end
    return found
