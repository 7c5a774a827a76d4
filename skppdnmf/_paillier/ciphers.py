"""Three ciphers behind one interface: none, simulated and Paillier.

An agent holds one cipher. Its `request` asks, a neighbour's `reply` answers, its
`open` reads the answer::

    request = cipher_i.request(u_i, layout)                     # E_i(-u_i)
    reply = cipher_j.reply(cipher_i.public, request, u_j, masks, dither, layout)
    masked = cipher_i.open(reply, layout)                       # G (u_j - u_i) + dither
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..exceptions import CorruptedMessageError
from .paillier_cipher import PaillierCipher
from .payload import REPLY, REQUEST, Payload, message_bytes, n_ciphertexts, plain_bytes
from .slots import (
    SlotLayout,
    answer,
    check_dither,
    check_key_size,
    check_masks,
    check_values,
    is_object,
)

__all__ = ["Cipher", "PaillierCipher", "PlainCipher", "SimulatedCipher"]


@runtime_checkable
class Cipher(Protocol):
    """What an agent needs of a cipher."""

    @property
    def public(self) -> Any:
        """What neighbours need in order to answer; holds no secret."""
        ...

    def request(self, values: Any, layout: SlotLayout) -> Payload:
        """Encrypt the negated values under one's own key."""
        ...

    def reply(
        self,
        public: Any,
        request: Payload,
        values: Any,
        masks: Any,
        dither: Any,
        layout: SlotLayout,
    ) -> Payload:
        """Answer a neighbour's request under the neighbour's key."""
        ...

    def open(self, reply: Payload, layout: SlotLayout) -> np.ndarray:
        """Read a neighbour's answer."""
        ...


def _check_length(array: Any, layout: SlotLayout | None, name: str) -> np.ndarray:
    """Return a 1-D float array of the layout's length."""
    array = np.asarray(array, dtype=np.float64)
    if array.ndim != 1 or (layout is not None and len(array) != layout.n_values):
        expected = "1-D" if layout is None else f"({layout.n_values},)"
        raise ValueError(f"{name} has shape {array.shape}, expected {expected}")
    return array


class PlainCipher:
    """No encryption and no rounding: the numbers cross as they are.

    `values` and `masks` are floats, the masks being the secret factors g
    themselves; `dither` is None. The layout only says how many values there are.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.exchange import PlainCipher
    >>> one, other = PlainCipher(), PlainCipher()
    >>> request = one.request(np.array([0.5, 1.0]))
    >>> reply = other.reply(None, request, np.array([1.0, 0.0]), 0.5)
    >>> one.open(reply)
    array([ 0.25, -0.5 ])
    """

    public = None

    def request(self, values: Any, layout: SlotLayout | None = None) -> Payload:
        """Return the negated values."""
        data = -_check_length(values, layout, "values")
        return Payload(data, 0, plain_bytes(data))

    def reply(
        self,
        public: Any,
        request: Payload,
        values: Any,
        masks: Any,
        dither: Any = None,
        layout: SlotLayout | None = None,
    ) -> Payload:
        """Return ``g * (U_j - U_i)``."""
        values = _check_length(values, layout, "values")
        if len(request.data) != len(values):
            raise CorruptedMessageError(
                f"request of {len(request.data)} values, expected {len(values)}"
            )
        data = values + request.data
        data *= masks
        return Payload(data, 0, plain_bytes(data))

    def open(self, reply: Payload, layout: SlotLayout | None = None) -> np.ndarray:
        """Return the answer."""
        return _check_length(reply.data, layout, "reply")


class SimulatedCipher:
    """The integers of the encrypted exchange, without ciphertexts.

    Every result, error and traffic figure equals `PaillierCipher`'s with a key of
    the same size. Nothing is protected.

    Parameters
    ----------
    key_size : int, default=2048
        Bits of the key to simulate.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.exchange import SimulatedCipher, SlotLayout
    >>> layout = SlotLayout(2, 24, 12, "scalar", 2048)
    >>> one, other = SimulatedCipher(2048), SimulatedCipher(2048)
    >>> request = one.request(np.array([5, -7]), layout)
    >>> reply = other.reply(None, request, np.array([6, 0]), 1000, np.array([3, -4]),
    ...                     layout)
    >>> one.open(reply, layout)
    array([1003, 6996])
    >>> reply.n_ciphertexts, reply.n_bytes
    (1, 556)
    """

    public = None

    def __init__(self, key_size: int = 2048) -> None:
        self.key_size = key_size
        self._last_layout: SlotLayout | None = None

    def _payload(self, data: np.ndarray, kind: int, layout: SlotLayout) -> Payload:
        """Wrap numbers with the traffic that their ciphertexts would cause."""
        return Payload(data, *self._sizes(kind, layout))

    def _sizes(self, kind: int, layout: SlotLayout) -> tuple[int, int]:
        """Ciphertexts and bytes of a message, remembered for the last layout."""
        if layout is not self._last_layout:
            check_key_size(self.key_size, layout)
            self._last_layout = layout
            self._last_sizes = {
                kind: (n_ciphertexts(kind, layout), message_bytes(kind, layout))
                for kind in (REQUEST, REPLY)
            }
        return self._last_sizes[kind]

    def _check(self, message: Payload, kind: int, layout: SlotLayout) -> np.ndarray:
        """Refuse a message of another layout."""
        data = message.data
        if (
            not isinstance(data, np.ndarray)
            or data.shape != (layout.n_values,)
            or message.n_bytes != self._sizes(kind, layout)[1]
        ):
            raise CorruptedMessageError(f"message of another layout than {layout}")
        return data

    def request(self, values: Any, layout: SlotLayout) -> Payload:
        """Return the negated integers; floats that hold integers stay floats."""
        check_key_size(self.key_size, layout)
        values = np.asarray(values)
        if values.dtype != np.float64:
            values = check_values(values, layout)
        return self._payload(-values, REQUEST, layout)

    def reply(
        self,
        public: Any,
        request: Payload,
        values: Any,
        masks: Any,
        dither: Any,
        layout: SlotLayout,
    ) -> Payload:
        """Return ``G * (u_j - u_i) + dither``."""
        numbers = self._check(request, REQUEST, layout)
        values = check_values(values, layout)
        masks = check_masks(masks, layout)
        dither = check_dither(dither, masks, layout)
        return self._payload(answer(values, numbers, masks, dither), REPLY, layout)

    def reply_drawn(
        self,
        request: Payload,
        values: np.ndarray,
        masks: np.ndarray,
        dithers: np.ndarray,
        layout: SlotLayout,
    ) -> Payload:
        """Answer with secrets as `draw_secrets` draws them; nothing is checked twice.

        Parameters
        ----------
        request : Payload
            The neighbour's.
        values : ndarray of shape (n_values,)
            The agent's own integers, in any dtype that holds them.
        masks, dithers : ndarray of shape (n_values,) or (1,)
            Integers held by floats.
        layout : SlotLayout
            The neighbour's.

        Returns
        -------
        Payload
            The reply that `reply` would make, its integers held by floats where
            these are exact and by Python integers elsewhere.
        """
        dtype = layout.answer_dtype
        numbers = _as_integers(self._check(request, REQUEST, layout), dtype)
        values, masks = _as_integers(values, dtype), _as_integers(masks, dtype)
        dithers = _as_integers(dithers, dtype)
        return self._payload(answer(values, numbers, masks, dithers), REPLY, layout)

    def reply_many(
        self,
        requests: list[Payload],
        values: np.ndarray,
        masks: np.ndarray,
        dithers: np.ndarray,
        layouts: list[SlotLayout],
    ) -> list[Payload]:
        """Answer several neighbours at once, as `reply_drawn` would one by one.

        Parameters
        ----------
        requests : list of n Payload
            One for each neighbour.
        values : ndarray of shape (n_values,)
            The agent's own integers, in any dtype that holds them.
        masks, dithers : ndarray of shape (n, n_values) or (n, 1)
            Integers held by floats, a row for each neighbour.
        layouts : list of n SlotLayout
            The neighbours' layouts.

        Returns
        -------
        list of n Payload
            The replies.
        """
        if not all(layout.fits_floats for layout in layouts):
            return [
                self.reply_drawn(request, values, *secrets)
                for request, *secrets in zip(
                    requests, masks, dithers, layouts, strict=True
                )
            ]
        values = _as_integers(values, np.dtype(np.float64))
        rows = np.array(
            [
                self._check(request, REQUEST, layout)
                for request, layout in zip(requests, layouts, strict=True)
            ],
            dtype=np.float64,
        )
        return [
            self._payload(row, REPLY, layout)
            for row, layout in zip(
                answer(values, rows, masks, dithers), layouts, strict=True
            )
        ]

    def open(self, reply: Payload, layout: SlotLayout) -> np.ndarray:
        """Return the integers."""
        return self._check(reply, REPLY, layout)


def _as_integers(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Hold the same integers in another dtype."""
    if array.dtype == dtype:
        return array
    if is_object(dtype) and array.dtype == np.float64:
        array = array.astype(np.int64)  # exact: floats here are at most 2**53
    return array.astype(dtype)
