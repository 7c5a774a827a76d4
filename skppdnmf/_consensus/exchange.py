"""One agent's side of the encrypted exchange: masked differences, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._paillier.ciphers import Cipher, SimulatedCipher
from .._paillier.payload import Payload
from .._paillier.slots import SlotLayout, slot_width
from .fixed_point import SPARE_BITS, fixed_point, largest_magnitude
from .masks import MaskStream, draw_factors, draw_secrets
from .messages import REPLY, REQUEST, WIDEN, Message

MASK_BITS = 12
_SHORT_ROW = 2048  # rows up to this length are handled together


def value_layout(
    n_values: int, value_bits: int, n_max: float, masking: str, key_size: int
) -> SlotLayout:
    """Lay out slots for an agent's values, or say what to change if none fits.

    Parameters
    ----------
    n_values : int
        Number of values of an agent.
    value_bits : int
        Width of the values in bits.
    n_max : float
        Fixed-point scale, which errors name.
    masking : {"entrywise", "scalar"}
        As for `DifferenceExchange`.
    key_size : int
        Bits of the keys.

    Returns
    -------
    SlotLayout
        With masks of ``MASK_BITS`` bits.

    Raises
    ------
    OverflowError
        If the values fit no slot of a plaintext.

    Examples
    --------
    >>> from skppdnmf.exchange import value_layout
    >>> value_layout(640, 24, 1e6, "scalar", 2048).slots_per_plaintext
    52
    """
    try:
        return SlotLayout(n_values, value_bits, MASK_BITS, masking, key_size)
    except (OverflowError, ValueError) as error:
        most = _widest_values(key_size)
        limit = f"2**{most}" if most > 0 else "no value at all"
        raise OverflowError(
            f"values of {value_bits} bits (n_max={n_max:g} times entries of the left "
            f"factor of up to 2**{value_bits} / n_max) do not fit into a slot; "
            f"key_size={key_size} holds {limit}. Use "
            f"key_size={SlotLayout.smallest_key(value_bits, MASK_BITS)} or more, or a "
            "smaller n_max"
        ) from error


def with_spare(bits: int, key_size: int) -> int:
    """Return the slots' width for values, with spare bits where they fit.

    Parameters
    ----------
    bits : int
        What the values need.
    key_size : int
        Bits of the keys.

    Returns
    -------
    int
        At least `bits`, even where these do not fit.

    Examples
    --------
    >>> from skppdnmf.exchange import with_spare
    >>> with_spare(40, 2048), with_spare(40, 56)
    (42, 40)
    """
    return max(bits, min(bits + SPARE_BITS, _widest_values(key_size)))


def _widest_values(key_size: int) -> int:
    """Bits of the widest values whose slot fits into a plaintext."""
    return key_size - 1 - slot_width(0, MASK_BITS)


class DifferenceExchange:
    """Learns ``g_ij g_ji (u_j - u_i)`` of every neighbour, one round at a time.

    Both ends of an edge hold a secret factor g in [0.1, 1]; neither learns the
    other's, nor the other's values. Lines 10 to 16 of the paper's algorithm, with
    integer masks, dither and fresh randomness in every reply. Does no I/O: it makes
    messages and takes them.

    Parameters
    ----------
    cipher : Cipher
        The agent's own cipher.
    n_neighbours : int
        Neighbours are numbered 0 to n_neighbours - 1 here.
    n_values : int
        Number of values of an agent.
    n_max : float or None
        Fixed-point scale; None exchanges floats (with `PlainCipher`).
    masking : {"entrywise", "scalar"}
        One secret factor for each value, or one for each round.
    key_size : int
        Bits of all agents' keys.
    value_bits : int
        Width at which the values start, in bits.
    streams : sequence of n_neighbours MaskStream
        Sources of masks and dithers, one for each edge, so that nothing depends on
        the order in which neighbours ask.
    name : str, default="agent"
        How errors call this agent.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.exchange import (
    ...     DifferenceExchange, MaskStream, SimulatedCipher
    ... )
    >>> sides = [DifferenceExchange(SimulatedCipher(2048), 1, n_values=3, n_max=1e6,
    ...                             masking="scalar", key_size=2048, value_bits=22,
    ...                             streams=[MaskStream()])
    ...          for _ in range(2)]
    >>> values = np.array([[1.0, 2.0, 0.0], [1.5, 1.0, 0.0]])
    >>> requests = [side.begin(u, [True])[0] for side, u in zip(sides, values)]
    >>> replies = [side.answer([(0, None, requests[1 - k])])[0]
    ...            for k, side in enumerate(sides)]
    >>> for k, side in enumerate(sides):
    ...     _ = side.accept(0, replies[1 - k])
    >>> np.round(sides[0].differences() / sides[0].differences()[0, 0], 2) + 0.0
    array([[ 1., -2.,  0.]])
    """

    def __init__(
        self,
        cipher: Cipher,
        n_neighbours: int,
        *,
        n_values: int,
        n_max: float | None,
        masking: str,
        key_size: int,
        value_bits: int,
        streams: Sequence[MaskStream],
        name: str = "agent",
    ) -> None:
        self.cipher = cipher
        self.n_neighbours = n_neighbours
        self.n_values = n_values
        self.n_max = n_max
        self.masking = masking
        self.key_size = key_size
        self.value_bits = max(1, min(value_bits, _widest_values(key_size)))
        self._streams = list(streams)
        self.name = name
        self.round = -1
        self._waiting: set[int] = set()
        self._layouts: dict[int, SlotLayout] = {}

    def _layout(self, value_bits: int) -> SlotLayout:
        """Slots for values of this width; an error that says what to change."""
        layout = self._layouts.get(value_bits)
        if layout is None:
            layout = self._layouts[value_bits] = self._make_layout(value_bits)
        return layout

    def _make_layout(self, value_bits: int) -> SlotLayout:
        """Lay out slots, or say whose values fit none."""
        assert self.n_max is not None
        try:
            return value_layout(
                self.n_values, value_bits, self.n_max, self.masking, self.key_size
            )
        except OverflowError as error:
            raise OverflowError(f"{self.name}: {error}") from error

    def begin(
        self,
        values: NDArray[np.floating],
        active: Sequence[bool],
        counts: tuple[int, int] = (0, 0),
        scale: float = 0.0,
    ) -> list[Message]:
        """Start a round with the agent's values.

        Parameters
        ----------
        values : ndarray of shape (n_values,)
            The agent's U.
        active : sequence of n_neighbours bool
            Which neighbours take part; the others' differences are zero.
        counts : tuple of two ints, default=(0, 0)
            The stopping counts to send along.
        scale : float, default=0.0
            The scale to send along.

        Returns
        -------
        list of n_neighbours messages
            The requests; one that carries the counts only for a neighbour that
            takes no part.

        Raises
        ------
        OverflowError
            If the values fit no slot of a plaintext.
        """
        self.round += 1
        self._active = [k for k in range(self.n_neighbours) if active[k]]
        self._waiting = set(self._active)
        self._answers: list[Any] = [None] * self.n_neighbours
        self._masks: list[Any] = [None] * self.n_neighbours
        self._along = (*counts, scale)
        resting = Message(REQUEST, self.round, 0, *self._along)
        requests = [resting] * self.n_neighbours
        if not self._active:
            return requests
        try:
            if self.n_max is None:
                largest_magnitude(values)
                self._values: Any = values
            else:
                self._values, self._needed_bits = fixed_point(
                    values, self.n_max, isinstance(self.cipher, SimulatedCipher)
                )
        except OverflowError as error:
            raise OverflowError(f"{self.name}: {error}") from error
        if self.n_max is not None:
            if self._needed_bits > self.value_bits:
                self.value_bits = with_spare(self._needed_bits, self.key_size)
            self._layout(self.value_bits)  # or say now that nothing fits
        request = self._request()
        for k in self._active:
            requests[k] = request
        return requests

    def _request(self) -> Message:
        """Encrypt the values in slots of the current width."""
        layout = None if self.n_max is None else self._layout(self.value_bits)
        payload = self.cipher.request(self._values, layout)  # type: ignore[arg-type]
        return Message(
            REQUEST, self.round, self.value_bits, *self._along, payload=payload
        )

    def answer(self, asked: list[tuple[int, Any, Message]]) -> list[Message]:
        """Answer neighbours' requests of this round.

        Parameters
        ----------
        asked : list of (int, object, Message)
            Number of the neighbour, its public key, and its request.

        Returns
        -------
        list of Message
            The replies, each a ``WIDEN`` where this agent's values do not fit the
            neighbour's slots.
        """
        fits = [
            self.n_max is None or self._needed_bits <= request.value_bits
            for *_, request in asked
        ]
        if all(fits):
            return self._replies(asked)
        replies = iter(
            self._replies([one for one, fit in zip(asked, fits, strict=True) if fit])
        )
        width = with_spare(self._needed_bits, self.key_size)
        return [
            next(replies) if fit else Message(WIDEN, self.round, width) for fit in fits
        ]

    def _replies(self, asked: list[tuple[int, Any, Message]]) -> list[Message]:
        """Answer neighbours whose slots hold this agent's values."""
        cipher = self.cipher
        # Long rows are masked one by one, while they are in the processor's cache.
        together = (
            len(asked) > 1
            and isinstance(cipher, SimulatedCipher)
            and self.n_values <= _SHORT_ROW
        )
        if together:
            payloads = self._masked_together(cipher, asked)  # type: ignore[arg-type]
        else:
            payloads = [self._masked(*one) for one in asked]
        return [
            Message(REPLY, self.round, request.value_bits, payload=payload)
            for (*_, request), payload in zip(asked, payloads, strict=True)
        ]

    def _masked_together(
        self, cipher: SimulatedCipher, asked: list[tuple[int, Any, Message]]
    ) -> list[Payload]:
        """Mask and blind the differences for several neighbours at once."""
        layouts = [self._layout(request.value_bits) for *_, request in asked]
        streams = [self._streams[k] for k, *_ in asked]
        masks, dithers = draw_secrets(streams, layouts[0])
        for (k, *_), row in zip(asked, masks, strict=True):
            self._masks[k] = row
        requests: list[Any] = [request.payload for *_, request in asked]
        return cipher.reply_many(requests, self._values, masks, dithers, layouts)

    def _masked(self, k: int, public: Any, message: Message) -> Payload:
        """Mask and blind the differences for one neighbour."""
        cipher, request = self.cipher, message.payload
        assert request is not None
        if self.n_max is None:
            (masks,) = draw_factors([self._streams[k]], self.n_values, self.masking)
            self._masks[k] = masks
            return cipher.reply(public, request, self._values, masks, None, None)  # type: ignore[arg-type]
        layout = self._layout(message.value_bits)
        (masks,), (dithers,) = draw_secrets([self._streams[k]], layout)
        self._masks[k] = masks
        if isinstance(cipher, SimulatedCipher):
            return cipher.reply_drawn(request, self._values, masks, dithers, layout)
        factors = masks.astype(np.int64)
        return cipher.reply(
            public,
            request,
            self._values,
            int(factors[0]) if self.masking == "scalar" else factors,
            dithers.astype(np.int64),
            layout,
        )

    def accept(self, k: int, reply: Message) -> Message | None:
        """Take neighbour k's reply.

        Parameters
        ----------
        k : int
            Number of the neighbour.
        reply : Message
            A ``REPLY`` or a ``WIDEN``.

        Returns
        -------
        Message or None
            The request again, in wider slots, if the neighbour asked for them.
        """
        if reply.kind == WIDEN:
            self.value_bits = max(self.value_bits, reply.value_bits)
            return self._request()
        layout = None if self.n_max is None else self._layout(reply.value_bits)
        self._answers[k] = self.cipher.open(reply.payload, layout)  # type: ignore[arg-type]
        self._waiting.discard(k)
        return None

    @property
    def complete(self) -> bool:
        """Whether every active neighbour has answered."""
        return not self._waiting

    def differences(self) -> NDArray[np.float64]:
        """Return what the round brought.

        Returns
        -------
        ndarray of shape (n_neighbours, n_values)
            Row k is ``g_ij g_ji (u_j - u_i)``, both factors in [0.1, 1], for the
            k-th neighbour j; zero where the neighbour took no part.
        """
        result = np.zeros((self.n_neighbours, self.n_values))
        scale = 1.0 if self.n_max is None else 0.25**MASK_BITS / self.n_max
        for k in self._active:
            np.multiply(_floats(self._answers[k]), self._masks[k], out=result[k])
        result *= scale
        return result

    def weighted_sum(self, weights: Sequence[float] | None = None) -> NDArray:
        """Return the sum of the neighbours' differences.

        Parameters
        ----------
        weights : sequence of n_neighbours floats or None, default=None
            One for each neighbour; 1 by default.

        Returns
        -------
        ndarray of shape (n_values,)
            ``sum_j weight_j g_ij g_ji (u_j - u_i)``.
        """
        if self.n_values <= _SHORT_ROW and len(self._active) > 1:
            answers = _floats(np.array([self._answers[k] for k in self._active]))
            answers *= np.array([self._masks[k] for k in self._active])
            if weights is None:
                total = answers.sum(axis=0)
            else:
                total = np.take(weights, self._active) @ answers
        else:
            total = None
            for k in self._active:
                part = _floats(self._answers[k]) * self._masks[k]
                if weights is not None:
                    part *= weights[k]
                total = part if total is None else np.add(total, part, out=total)
            if total is None:
                return np.zeros(self.n_values)
        if self.n_max is not None:
            total *= 0.25**MASK_BITS / self.n_max
        return total


def _floats(answers: NDArray) -> NDArray[np.float64]:
    """Convert integers to the nearest floats."""
    return answers.astype(np.float64, copy=False)
