"""One agent's side of the encrypted exchange: masked differences, round by round."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import CorruptedMessageError
from .ciphers import SHORT_ROW, Cipher
from .fixed_point import widened
from .masks import MaskStream
from .messages import REPLY, REQUEST, WIDEN, Message


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
        Fixed-point scale; `PlainCipher`, which does not round, ignores it.
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
    dithered : bool, default=True
        False leaves the dither out of the answers, to study what it is good for.

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
    >>> requests = [side.begin(u)[0] for side, u in zip(sides, values)]
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
        dithered: bool = True,
    ) -> None:
        self.cipher = cipher
        self.n_neighbours = n_neighbours
        self.n_values = n_values
        self.n_max = n_max
        self.masking = masking
        self.key_size = key_size
        self._widest = cipher.widest_values(key_size)
        self.value_bits = max(1, min(value_bits, self._widest))
        self._streams = list(streams)
        self.name = name
        self._dithered = dithered
        self.round = -1
        self._waiting: set[int] = set()
        self._layouts: dict[int, Any] = {}

    def _layout(self, value_bits: int) -> Any:
        """Lay out slots for values of this width, or say whose values fit none."""
        layout = self._layouts.get(value_bits)
        if layout is None:
            try:
                layout = self.cipher.layout(
                    self.n_values, value_bits, self.n_max, self.masking, self.key_size
                )
            except OverflowError as error:
                raise OverflowError(f"{self.name}: {error}") from error
            self._layouts[value_bits] = layout
        return layout

    def begin(
        self,
        values: NDArray[np.floating],
        active: bool = True,
        counts: tuple[int, int] = (0, 0),
        scale: float = 0.0,
        levels: tuple[int, int] = (0, 0),
    ) -> list[Message]:
        """Start a round with the agent's values.

        Parameters
        ----------
        values : ndarray of shape (n_values,)
            The agent's U.
        active : bool, default=True
            False only sends the counts along; all differences are then zero.
        counts : tuple of two ints, default=(0, 0)
            The stopping counts to send along.
        scale : float, default=0.0
            The scale to send along.
        levels : tuple of two ints, default=(0, 0)
            The levels of disagreement and movement to send along.

        Returns
        -------
        list of n_neighbours messages
            The requests, the same for all neighbours.

        Raises
        ------
        OverflowError
            If the values fit no slot of a plaintext.
        """
        self.round += 1
        self._active = active and self.n_neighbours > 0
        self._waiting = set(range(self.n_neighbours)) if active else set()
        self._answers: list[Any] = [None] * self.n_neighbours
        self._masks: list[Any] = [None] * self.n_neighbours
        self._dithers: list[Any] = [None] * self.n_neighbours
        self._along = (*counts, scale, *levels)
        if not self._active:
            resting = Message(REQUEST, self.round, 0, *self._along)
            return [resting] * self.n_neighbours
        try:
            self._values, self._needed_bits = self.cipher.encode(values, self.n_max)
        except OverflowError as error:
            raise OverflowError(f"{self.name}: {error}") from error
        if self._needed_bits > self.value_bits:
            self.value_bits = widened(self._needed_bits, self._widest)
        self._sent_bits = [self.value_bits] * self.n_neighbours
        return [self._request()] * self.n_neighbours

    def _request(self) -> Message:
        """Encrypt the values in slots of the current width."""
        payload = self.cipher.request(self._values, self._layout(self.value_bits))
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
        needed = self._needed_bits
        fits = [needed <= request.value_bits for _, _, request in asked]
        if all(fits):
            return self._replies(asked)
        replies = iter(
            self._replies([one for one, fit in zip(asked, fits, strict=True) if fit])
        )
        width = widened(self._needed_bits, self._widest)
        return [
            next(replies) if fit else Message(WIDEN, self.round, width) for fit in fits
        ]

    def _replies(self, asked: list[tuple[int, Any, Message]]) -> list[Message]:
        """Answer neighbours whose slots hold this agent's values."""
        if not asked:
            return []
        requests: list[Any] = [request.payload for _, _, request in asked]
        payloads, masks, dithers = self.cipher.answer_many(
            [public for _, public, _ in asked],
            requests,
            self._values,
            [self._streams[k] for k, _, _ in asked],
            [self._layout(request.value_bits) for _, _, request in asked],
            self._dithered,
        )
        for (k, _, _), row, dither in zip(asked, masks, dithers, strict=True):
            self._masks[k], self._dithers[k] = row, dither
        return [
            Message(REPLY, self.round, request.value_bits, payload=payload)
            for (_, _, request), payload in zip(asked, payloads, strict=True)
        ]

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

        Raises
        ------
        CorruptedMessageError
            If the reply is none to this round's request, or asks for slots no wider
            than it got.
        """
        if reply.kind == WIDEN:
            if reply.value_bits <= self._sent_bits[k]:
                raise CorruptedMessageError(
                    f"a call for slots of {reply.value_bits} bits in answer to slots "
                    f"of {self._sent_bits[k]}"
                )
            self.value_bits = max(self.value_bits, reply.value_bits)
            self._sent_bits[k] = self.value_bits
            return self._request()
        payload: Any = reply.payload
        self._answers[k] = self.cipher.open(payload, self._layout(reply.value_bits))
        self._waiting.discard(k)
        return None

    @property
    def values(self) -> Any:
        """The agent's own numbers u of this round."""
        return self._values

    def secrets(self, k: int) -> tuple[Any, Any]:
        """Return the masks and dithers with which neighbour k was answered."""
        return self._masks[k], self._dithers[k]

    def opened(self, k: int) -> Any:
        """Return what neighbour k's answer of this round says."""
        return self._answers[k]

    @property
    def awaited(self) -> Set[int]:
        """Neighbours whose answer of this round is still to come."""
        return self._waiting

    @property
    def complete(self) -> bool:
        """Whether every neighbour that was asked has answered."""
        return not self._waiting

    def differences(self) -> NDArray[np.float64]:
        """Return what the round brought.

        Returns
        -------
        ndarray of shape (n_neighbours, n_values)
            Row k is ``g_ij g_ji (u_j - u_i)``, both factors in [0.1, 1], for the
            k-th neighbour j; zero after a round that was not active.
        """
        result = np.zeros((self.n_neighbours, self.n_values))
        if not self._active:
            return result
        for answer, masks, row in zip(self._answers, self._masks, result, strict=True):
            np.multiply(_floats(answer), masks, out=row)
        result *= self.cipher.answer_unit(self.n_max)
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
        if not self._active:
            return np.zeros(self.n_values)
        if self.n_values <= SHORT_ROW and self.n_neighbours > 1:
            answers = _floats(np.array(self._answers))
            answers *= np.array(self._masks)
            if weights is None:
                total = answers.sum(axis=0)
            else:
                total = np.asarray(weights) @ answers
        else:
            total = None
            for k in range(self.n_neighbours):
                part = _floats(self._answers[k]) * self._masks[k]
                if weights is not None:
                    part *= weights[k]
                total = part if total is None else np.add(total, part, out=total)
        total *= self.cipher.answer_unit(self.n_max)
        return total


def _floats(answers: NDArray) -> NDArray[np.float64]:
    """Convert integers to the nearest floats."""
    return answers.astype(np.float64, copy=False)
