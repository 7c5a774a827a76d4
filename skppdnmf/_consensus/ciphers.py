"""Ciphers behind one interface: none, simulated and Paillier.

An agent holds one cipher. Its `request` asks, a neighbour's `reply` answers, its
`open` reads the answer::

    request = cipher_i.request(u_i, layout)                     # E_i(-u_i)
    reply = cipher_j.reply(cipher_i.public, request, u_j, masks, dither, layout)
    masked = cipher_i.open(reply, layout)                       # G (u_j - u_i) + dither

Everything in which encrypted exchanges differ is a method of the cipher: how values
become numbers, how wide these may be, what secrets mask them, what an answer is worth
and how a public key travels. `DifferenceExchange` asks no cipher what it is; another
scheme is another class, as in `lattice_cipher`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .._integers import (
    MAX_VALUE_BITS,
    answer,
    check_dither,
    check_masks,
    check_values,
    is_object,
)
from .._paillier.batch import (
    decrypt,
    deserialise,
    encrypt,
    request_plaintexts,
    respond,
    serialise,
)
from .._paillier.keys import PaillierPrivateKey, PaillierPublicKey
from .._paillier.noise import NoisePool, responder_bits
from .._paillier.payload import (
    check_header,
    header,
    key_payload,
    message_bytes,
    n_ciphertexts,
    public_bytes,
    read_public,
)
from .._paillier.slots import SlotLayout, check_key_size, pack_slots, unpack_slots
from .._payload import REPLY, REQUEST, Payload, plain_bytes, read_numbers
from ..exceptions import CorruptedMessageError
from .fixed_point import (
    answer_unit,
    fixed_point,
    largest_magnitude,
    value_layout,
    widest_values,
)
from .masks import MaskStream, draw_factors, draw_secrets

SHORT_ROW = 2048  # rows up to this length are handled together


class Answers(NamedTuple):
    """An agent's replies, and the secrets in them, for each of several neighbours.

    Parameters
    ----------
    payloads : list of Payload
        The replies.
    masks : list of ndarray of shape (n_values,) or (1,)
        Secret factors as floats.
    dithers : list of ndarray of shape (n_values,)
        What was added to each number.
    """

    payloads: list[Payload]
    masks: list[NDArray[np.float64]]
    dithers: list[NDArray[np.float64]]


@runtime_checkable
class Cipher(Protocol):
    """What an agent needs of a cipher."""

    @property
    def public(self) -> Any:
        """What neighbours need in order to answer; holds no secret."""
        ...

    def public_payload(self) -> Payload | None:
        """Write what neighbours need; None if they need nothing."""
        ...

    def read_public(self, payload: Payload | None) -> Any:
        """Read what a neighbour's `public_payload` has written."""
        ...

    def encode(self, values: Any, n_max: Any) -> tuple[Any, int]:
        """Turn floats into the numbers to exchange, and say what bits they need."""
        ...

    def widest_values(self, key_size: int) -> int:
        """Bits of the widest numbers that keys of this size hold."""
        ...

    def layout(
        self, n_values: int, value_bits: int, n_max: Any, masking: str, key_size: int
    ) -> Any:
        """Lay out numbers of so many bits; an OverflowError if they do not fit."""
        ...

    def request(self, values: Any, layout: Any) -> Payload:
        """Encrypt the negated numbers under one's own key."""
        ...

    def reply(
        self,
        public: Any,
        request: Payload,
        values: Any,
        masks: Any,
        dither: Any,
        layout: Any,
    ) -> Payload:
        """Answer a neighbour's request under the neighbour's key."""
        ...

    def answer_many(
        self,
        publics: Sequence[Any],
        requests: Sequence[Payload],
        values: Any,
        streams: Sequence[MaskStream],
        layouts: Sequence[Any],
        dithered: bool = True,
    ) -> Answers:
        """Answer several neighbours with secrets drawn from the edges' streams.

        Without dither only to study what it is good for.
        """
        ...

    def open(self, reply: Payload, layout: Any) -> np.ndarray:
        """Read a neighbour's answer."""
        ...

    def answer_unit(self, n_max: Any) -> float:
        """Return what a unit of an opened answer times one's own mask is worth."""
        ...


class PlainLayout(NamedTuple):
    """What an exchange of floats has instead of slots."""

    n_values: int
    masking: str


# Without encryption; beyond the magnitudes that data may have, and far from overflow.
_LARGEST_NUMBER = 1e120


def _check_length(array: Any, layout: Any, name: str) -> np.ndarray:
    """Return a 1-D float array of the layout's length."""
    array = np.asarray(array, dtype=np.float64)
    if array.ndim != 1 or (layout is not None and len(array) != layout.n_values):
        expected = "1-D" if layout is None else f"({layout.n_values},)"
        raise ValueError(f"{name} has shape {array.shape}, expected {expected}")
    return array


def _numbers(payload: Payload) -> Any:
    """Return bare numbers, read where they came over a wire."""
    data = payload.data
    if not isinstance(data, bytes):
        return data
    numbers = read_numbers(data)
    _check_magnitude(numbers, _LARGEST_NUMBER)
    return numbers


def _check_magnitude(numbers: np.ndarray, most: Any) -> None:
    """Refuse numbers from a wire with which one cannot go on computing."""
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        raise CorruptedMessageError("payload holds numbers that are not finite")
    largest = max((abs(number) for number in numbers.tolist()), default=0)
    if largest > most:
        raise CorruptedMessageError(
            f"payload holds a number of magnitude 2**{math.log2(largest):.0f}, at most "
            f"2**{math.log2(most):.0f} is possible"
        )


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

    def public_payload(self) -> None:
        """Return None: there is no key to send."""

    def read_public(self, payload: Payload | None) -> None:
        """Return None: there is no key to read."""

    def encode(self, values: Any, n_max: Any = None) -> tuple[Any, int]:
        """Return finite values as they are, which need no slots."""
        largest_magnitude(values)
        return values, 0

    def widest_values(self, key_size: int) -> int:
        """Return the most that a message can name."""
        return MAX_VALUE_BITS

    def layout(
        self, n_values: int, value_bits: int, n_max: Any, masking: str, key_size: int
    ) -> PlainLayout:
        """Say how many values there are, and whether one mask serves them all."""
        return PlainLayout(n_values, masking)

    def answer_unit(self, n_max: Any) -> float:
        """Return 1: nothing was scaled."""
        return 1.0

    def request(self, values: Any, layout: Any = None) -> Payload:
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
        layout: Any = None,
    ) -> Payload:
        """Return ``g * (U_j - U_i)``."""
        values = _check_length(values, layout, "values")
        asked = _numbers(request)
        if len(asked) != len(values):
            raise CorruptedMessageError(
                f"request of {len(asked)} values, expected {len(values)}"
            )
        data = values + asked
        data *= masks
        return Payload(data, 0, plain_bytes(data))

    def answer_many(
        self,
        publics: Sequence[Any],
        requests: Sequence[Payload],
        values: Any,
        streams: Sequence[MaskStream],
        layouts: Sequence[PlainLayout],
        dithered: bool = True,
    ) -> Answers:
        """Answer one by one, with secret factors that are not rounded."""
        payloads, drawn = [], []
        edges = zip(publics, requests, streams, layouts, strict=True)
        for public, request, stream, layout in edges:
            (masks,) = draw_factors([stream], *layout)
            reply = self.reply(public, request, values, masks, None, layout)
            payloads.append(reply)
            drawn.append(masks)
        return Answers(payloads, drawn, [np.zeros(1)] * len(drawn))

    def open(self, reply: Payload, layout: Any = None) -> np.ndarray:
        """Return the answer."""
        answers = _numbers(reply)
        if layout is not None and len(answers) != layout.n_values:
            raise CorruptedMessageError(
                f"reply of {len(answers)} values, expected {layout.n_values}"
            )
        return _check_length(answers, layout, "reply")


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
    widest_values = staticmethod(widest_values)
    layout = staticmethod(value_layout)
    answer_unit = staticmethod(answer_unit)

    def __init__(self, key_size: int = 2048) -> None:
        self.key_size = key_size
        self._last_layout: SlotLayout | None = None

    def public_payload(self) -> Payload:
        """Return a payload that weighs as much as a real key."""
        return Payload(None, 0, public_bytes(self.key_size))

    def read_public(self, payload: Payload | None) -> None:
        """Return None: a simulated key says nothing."""

    def encode(self, values: Any, n_max: Any) -> tuple[Any, int]:
        """Round to fixed point; integers stay in floats where these are exact."""
        return fixed_point(values, n_max, floats=True)

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
        from_wire = not isinstance(data, np.ndarray)
        if from_wire:
            data = read_numbers(data)
        if (
            data.shape != (layout.n_values,)
            or message.n_bytes != self._sizes(kind, layout)[1]
        ):
            raise CorruptedMessageError(f"message of another layout than {layout}")
        if from_wire:
            bits = layout.value_bits if kind == REQUEST else layout.reply_bits
            _check_magnitude(data, 1 << bits)
            if data.dtype.kind == "f" and (data != np.rint(data)).any():
                raise CorruptedMessageError("payload holds numbers that are not whole")
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

    def answer_many(
        self,
        publics: Sequence[Any],
        requests: Sequence[Payload],
        values: Any,
        streams: Sequence[MaskStream],
        layouts: Sequence[SlotLayout],
        dithered: bool = True,
    ) -> Answers:
        """Answer several neighbours, together where that is faster."""
        if len(requests) > 1 and len(values) <= SHORT_ROW:
            masks, dithers = draw_secrets(streams, layouts[0])
            if not dithered:
                dithers[:] = 0.0
            payloads = self.reply_many(requests, values, masks, dithers, layouts)
            return Answers(payloads, list(masks), list(dithers))
        # Long rows are masked one by one, while they are in the processor's cache.
        payloads, drawn, added = [], [], []
        for stream, request, layout in zip(streams, requests, layouts, strict=True):
            (row,), (dither,) = draw_secrets([stream], layout)
            if not dithered:
                dither[:] = 0.0
            payloads.append(self.reply_drawn(request, values, row, dither, layout))
            drawn.append(row)
            added.append(dither)
        return Answers(payloads, drawn, added)

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
        requests: Sequence[Payload],
        values: np.ndarray,
        masks: np.ndarray,
        dithers: np.ndarray,
        layouts: Sequence[SlotLayout],
    ) -> list[Payload]:
        """Answer several neighbours at once, as `reply_drawn` would one by one.

        Parameters
        ----------
        requests : sequence of n Payload
            One for each neighbour.
        values : ndarray of shape (n_values,)
            The agent's own integers, in any dtype that holds them.
        masks, dithers : ndarray of shape (n, n_values) or (n, 1)
            Integers held by floats, a row for each neighbour.
        layouts : sequence of n SlotLayout
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


class PaillierCipher:
    """The encrypted exchange under Paillier.

    Parameters
    ----------
    private_key : PaillierPrivateKey
        The agent's own key.
    verify_symbols : bool, default=False
        Check the Jacobi symbol of every ciphertext of an entrywise request too,
        which costs the exchange about 7 %. An honest owner's are +1; a symbol of -1
        would show the owner the parity of a mask. Scalar requests are always checked.

    Notes
    -----
    All noise comes from the pools of `noise_pool`. A pickled cipher holds the private
    key, but no pool: noise must be used once.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skppdnmf.exchange import PaillierCipher, SlotLayout, generate_keypair
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     one = PaillierCipher(generate_keypair(256)[1])
    ...     other = PaillierCipher(generate_keypair(256)[1])
    >>> layout = SlotLayout(2, 24, 12, "scalar", 256)
    >>> request = one.request(np.array([5, -7]), layout)
    >>> reply = other.reply(one.public, request, np.array([6, 0]), 1000,
    ...                     np.array([3, -4]), layout)
    >>> one.open(reply, layout)
    array([1003, 6996])
    """

    widest_values = staticmethod(widest_values)
    layout = staticmethod(value_layout)
    answer_unit = staticmethod(answer_unit)

    def __init__(
        self,
        private_key: PaillierPrivateKey,
        verify_symbols: bool = False,
    ) -> None:
        if not isinstance(private_key, PaillierPrivateKey):
            raise TypeError(
                f"expected a PaillierPrivateKey, got {type(private_key).__name__}"
            )
        self._key = private_key
        self.verify_symbols = verify_symbols
        self._pools: dict[tuple[bytes, int], NoisePool] = {}

    @property
    def public(self) -> PaillierPublicKey:
        """The agent's public key."""
        return self._key.public_key

    @property
    def key_size(self) -> int:
        """Bits of the agent's key."""
        return self.public.key_size

    def public_payload(self) -> Payload:
        """Write the public key."""
        return key_payload(self.public)

    def read_public(self, payload: Payload | None) -> PaillierPublicKey | None:
        """Read a neighbour's public key; a CorruptedMessageError if it is none.

        All agents have keys of one size.
        """
        key = read_public(payload)
        if key is not None and key.key_size != self.key_size:
            raise CorruptedMessageError(
                f"a key of {key.key_size} bits, agreed are {self.key_size}"
            )
        return key

    def encode(self, values: Any, n_max: Any) -> tuple[Any, int]:
        """Round to fixed point."""
        return fixed_point(values, n_max)

    def _payload(
        self, kind: int, public: PaillierPublicKey, numbers: list[Any], layout: Any
    ) -> Payload:
        """Serialise."""
        data = header(kind, public.key_id, layout)
        data += serialise(numbers, public.key_size)
        return Payload(data, len(numbers), len(data))

    def noise_pool(
        self, public: PaillierPublicKey | None = None, layout: SlotLayout | None = None
    ) -> NoisePool:
        """Return the pool that noise is taken from, which may be filled ahead of need.

        Parameters
        ----------
        public : PaillierPublicKey, optional
            A neighbour's key, for replies; without it the pool is that of the
            agent's own requests.
        layout : SlotLayout, optional
            That of the replies, whose masks the noise must drown.

        Returns
        -------
        NoisePool
            The same for all layouts that need exponents of the same length.
        """
        if public is None:
            place = (self.public.key_id, 0)
        elif layout is None:
            raise ValueError("a pool for replies needs the layout of its messages")
        else:
            place = (public.key_id, responder_bits(public, layout))
        pool = self._pools.get(place)
        if pool is None:
            pool = NoisePool(public or self._key, layout=layout)
            # Another thread may have made one: whose noise is taken must be one only.
            pool = self._pools.setdefault(place, pool)
        return pool

    def request(self, values: Any, layout: SlotLayout) -> Payload:
        """Encrypt the negated values under one's own key.

        Parameters
        ----------
        values : array of int, shape (n_values,)
            Below ``2**value_bits`` in magnitude.
        layout : SlotLayout
            Must be made for keys of this size.

        Returns
        -------
        Payload
            To be sent to every neighbour.

        Raises
        ------
        OverflowError
            A value breaks the layout's promise.
        """
        check_key_size(self.key_size, layout)
        plaintexts = request_plaintexts(check_values(values, layout), layout)
        noise = self.noise_pool().take(len(plaintexts))
        ciphertexts = encrypt(self.public, plaintexts, noise)
        return self._payload(REQUEST, self.public, ciphertexts, layout)

    def reply(
        self,
        public: PaillierPublicKey,
        request: Payload,
        values: Any,
        masks: Any,
        dither: Any,
        layout: SlotLayout,
    ) -> Payload:
        """Answer a neighbour's request under the neighbour's key.

        Parameters
        ----------
        public : PaillierPublicKey
            The neighbour's key.
        request : Payload
            The neighbour's request.
        values : array of int, shape (n_values,)
            This agent's values.
        masks : int or array of int, shape (n_values,)
            The secret factors G, one or one a value as the layout says.
        dither : array of int, shape (n_values,)
            Within (-G/2, G/2].
        layout : SlotLayout
            The request's layout.

        Returns
        -------
        Payload
            Holds ``G * (u_j - u_i) + dither`` with this agent's fresh noise.

        Raises
        ------
        OverflowError
            A value, mask or dither is out of range.
        WrongKeyError
            The request was made under another key.
        CorruptedMessageError
            The request is no valid request of this layout.
        """
        if not isinstance(public, PaillierPublicKey):
            raise TypeError(f"expected a PaillierPublicKey, got {public!r}")
        check_key_size(public.key_size, layout)
        values = check_values(values, layout)
        masks = check_masks(masks, layout)
        dither = check_dither(dither, masks, layout)
        check_header(request.data, REQUEST, public.key_id, layout)
        received = deserialise(request.data, public)
        own = values * masks
        own += dither
        plaintexts = pack_slots(own, layout.reply_bits, layout)
        size = len(plaintexts)
        noise = self.noise_pool(public, layout).take(size)
        verify = self.verify_symbols
        if layout.masking == "scalar":
            verify = True
            groups = [[ciphertext] for ciphertext in received]
            factors = [masks] * size
        else:
            count = layout.slots_per_plaintext
            starts = range(0, layout.n_values, count)
            groups = [received[start : start + count] for start in starts]
            numbers = masks.tolist()
            factors = [numbers[start : start + count] for start in starts]
        answers = respond(public, verify, groups, factors, plaintexts, noise)
        return self._payload(REPLY, public, answers, layout)

    def answer_many(
        self,
        publics: Sequence[Any],
        requests: Sequence[Payload],
        values: Any,
        streams: Sequence[MaskStream],
        layouts: Sequence[SlotLayout],
        dithered: bool = True,
    ) -> Answers:
        """Answer several neighbours one by one, each under its own key."""
        payloads, drawn, added = [], [], []
        edges = zip(publics, requests, streams, layouts, strict=True)
        for public, request, stream, layout in edges:
            (masks,), (dithers,) = draw_secrets([stream], layout)
            if not dithered:
                dithers[:] = 0.0
            whole = masks.astype(np.int64)
            factors = int(whole[0]) if layout.masking == "scalar" else whole
            dither = dithers.astype(np.int64)
            reply = self.reply(public, request, values, factors, dither, layout)
            payloads.append(reply)
            drawn.append(masks)
            added.append(dithers)
        return Answers(payloads, drawn, added)

    def open(self, reply: Payload, layout: SlotLayout) -> np.ndarray:
        """Decrypt a neighbour's answer.

        Parameters
        ----------
        reply : Payload
            The neighbour's answer to this agent's request.
        layout : SlotLayout
            The request's layout.

        Returns
        -------
        ndarray of shape (n_values,)
            Signed integers: int64, or Python integers where the layout says so.

        Raises
        ------
        WrongKeyError
            The answer was made under another key.
        CorruptedMessageError
            The answer is no valid answer of this layout, or a value overflowed its
            slot.
        """
        check_key_size(self.key_size, layout)
        check_header(reply.data, REPLY, self.public.key_id, layout)
        ciphertexts = deserialise(reply.data, self.public)
        residues = decrypt(self._key, ciphertexts)
        values = unpack_slots(residues, self.public.n, layout)
        if values is None:
            raise CorruptedMessageError(
                f"an answer exceeds its slot of {layout.slot_bits} bits: another "
                "key's ciphertext, or not an answer to this request"
            )
        return values

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pools": {}}

    def __repr__(self) -> str:
        return f"PaillierCipher({self.public!r})"


def public_payload(cipher: Cipher) -> Payload | None:
    """Return the message that tells neighbours an agent's public key.

    Parameters
    ----------
    cipher : Cipher
        The agent's cipher.

    Returns
    -------
    Payload or None
        None without encryption. Simulated keys take as many bytes as real ones.

    Examples
    --------
    >>> from skppdnmf.exchange import SimulatedCipher, public_payload
    >>> public_payload(SimulatedCipher(2048)).n_bytes
    513
    """
    return cipher.public_payload()
