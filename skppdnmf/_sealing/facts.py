"""The public facts of a run, which all its sites must have alike."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..exceptions import CorruptedMessageError

_PURPOSE = b"skppdnmf facts 1\0"
_LONGEST = 120  # characters of a value that is shown; of longer ones the hash
# Of all facts in one message: far more than any run has.
MAX_FACTS_BYTES = 1 << 16


class Facts:
    """Public facts by name, written so that equal facts are equal bytes.

    Parameters
    ----------
    values : mapping from str to object
        Numbers, strings, None, arrays, bytes, dataclasses, and lists and mappings of
        them. Of what is long only the SHA-256 is kept.

    Attributes
    ----------
    shown : dict from str to str
        The facts as they are compared and shown: JSON, or its hash.
    digest : bytes
        SHA-256 of all of them.

    Examples
    --------
    >>> from skppdnmf.exchange import Facts
    >>> here, there = Facts({"K": 5, "F": 64}), Facts({"F": 64, "K": 6})
    >>> here.difference(there)
    'K: 5 here, 6 there'
    >>> Facts({"F": 64, "K": 5}).digest == here.digest
    True
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.shown = {name: _shown(values[name]) for name in sorted(values)}
        self.digest = hashlib.sha256(_PURPOSE + self.to_bytes()).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Facts) and self.shown == other.shown

    def __hash__(self) -> int:
        return hash(self.digest)

    def difference(self, other: Facts) -> str | None:
        """Name the first fact that differs, and both values.

        Parameters
        ----------
        other : Facts
            Another site's.

        Returns
        -------
        str or None
            None if all are the same.
        """
        for name in sorted({*self.shown, *other.shown}):
            here = self.shown.get(name, "no such fact")
            there = other.shown.get(name, "no such fact")
            if here != there:
                return f"{name}: {here} here, {there} there"
        return None

    def to_bytes(self) -> bytes:
        """Serialise the facts as they are shown."""
        return json.dumps(self.shown, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Facts:
        """Read another site's facts.

        Raises
        ------
        CorruptedMessageError
            If the data are none.
        """
        if len(data) > MAX_FACTS_BYTES:
            raise CorruptedMessageError(
                f"facts of {len(data)} bytes; {MAX_FACTS_BYTES} are allowed"
            )
        try:
            shown = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise CorruptedMessageError(f"facts that are no JSON: {error}") from error
        if not isinstance(shown, dict) or not all(
            isinstance(text, str) for text in shown.values()
        ):
            raise CorruptedMessageError("facts that are no strings by name")
        facts = cls({})
        facts.shown = dict(sorted(shown.items()))
        facts.digest = hashlib.sha256(_PURPOSE + facts.to_bytes()).digest()
        return facts


def _shown(value: Any) -> str:
    """Write a value, or the hash of what is written."""
    text = json.dumps(
        _plain(value), sort_keys=True, separators=(",", ":"), allow_nan=True
    )
    if len(text) <= _LONGEST:
        return text
    return f"sha256 {hashlib.sha256(text.encode()).hexdigest()}"


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; floats keep all their bits."""
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        return {
            "dtype": array.dtype.newbyteorder("<").str,
            "shape": list(value.shape),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, bytes):
        return value.hex()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a fact of type {type(value).__name__} has no one way to write it")
