"""Three ciphers behind one interface: none, simulated and Paillier.

An agent holds one cipher. Its `request` asks, a neighbour's `reply` answers, its
`open` reads the answer::

    request = cipher_i.request(u_i, layout)                     # E_i(-u_i)
    reply = cipher_j.reply(cipher_i.public, request, u_j, masks, dither, layout)
    masked = cipher_i.open(reply, layout)                       # G (u_j - u_i) + dither
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..exceptions import CorruptedMessageError
from ._batch import (
    check_symbols,
    check_units,
    decrypt,
    deserialise,
    encrypt,
    in_threads,
    request_plaintexts,
    respond_entrywise,
    respond_scalar,
    serialise,
)
from ._keys import PaillierPrivateKey, PaillierPublicKey
from ._noise import Noise, NoisePool, owner_noise, responder_bits, responder_noise
from ._slots import (
    SlotLayout,
    answer,
    check_dither,
    check_masks,
    check_values,
    pack_slots,
    unpack_slots,
)
from ._wire import (
    REPLY,
    REQUEST,
    Payload,
    check_header,
    header,
    message_bytes,
    n_ciphertexts,
    plain_bytes,
)


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

    def _payload(self, data: np.ndarray, kind: int, layout: SlotLayout) -> Payload:
        """Wrap numbers with the traffic that their ciphertexts would cause."""
        return Payload(data, n_ciphertexts(kind, layout), message_bytes(kind, layout))

    def _check(self, message: Payload, kind: int, layout: SlotLayout) -> np.ndarray:
        """Refuse a message of another layout."""
        check_key_size(self.key_size, layout)
        data = message.data
        if (
            not isinstance(data, np.ndarray)
            or data.shape != (layout.n_values,)
            or message.n_bytes != message_bytes(kind, layout)
        ):
            raise CorruptedMessageError(f"message of another layout than {layout}")
        return data

    def request(self, values: Any, layout: SlotLayout) -> Payload:
        """Return the negated integers."""
        check_key_size(self.key_size, layout)
        return self._payload(-check_values(values, layout), REQUEST, layout)

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

    def open(self, reply: Payload, layout: SlotLayout) -> np.ndarray:
        """Return the integers."""
        return self._check(reply, REPLY, layout)


def check_key_size(key_size: int, layout: SlotLayout) -> None:
    """Raise if a layout was made for keys of another size."""
    if key_size != layout.key_size:
        raise ValueError(
            f"layout for key_size={layout.key_size}, the key has {key_size}"
        )


class PaillierCipher:
    """The encrypted exchange under Paillier.

    Parameters
    ----------
    private_key : PaillierPrivateKey
        The agent's own key.
    n_threads : int, default=1
        Threads for one batch. Agents that already run in threads of their own need
        no more: long operations release the interpreter's lock.
    pools : iterable of NoisePool, default=()
        Noise made ahead of need, for requests (a pool of `private_key`) and for
        replies (pools of neighbours' keys and this batch's layout).
    verify_symbols : bool, default=False
        Check the Jacobi symbol of every ciphertext of an entrywise request too,
        which costs the exchange about 7 %. An honest owner's are +1; a symbol of -1
        would show the owner the parity of a mask. Scalar requests are always checked.

    Notes
    -----
    A pickled cipher holds the private key, but no pools.

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

    def __init__(
        self,
        private_key: PaillierPrivateKey,
        n_threads: int = 1,
        pools: Iterable[NoisePool] = (),
        verify_symbols: bool = False,
    ) -> None:
        if not isinstance(private_key, PaillierPrivateKey):
            raise TypeError(
                f"expected a PaillierPrivateKey, got {type(private_key).__name__}"
            )
        if n_threads < 1:
            raise ValueError(f"n_threads={n_threads} should be >= 1")
        self._key = private_key
        self.n_threads = n_threads
        self.verify_symbols = verify_symbols
        self._pools = {(pool.role, pool.public_key.key_id): pool for pool in pools}

    @property
    def public(self) -> PaillierPublicKey:
        """The agent's public key."""
        return self._key.public_key

    @property
    def key_size(self) -> int:
        """Bits of the agent's key."""
        return self.public.key_size

    def _payload(
        self, kind: int, public: PaillierPublicKey, numbers: list[Any], layout: Any
    ) -> Payload:
        """Serialise."""
        data = header(kind, public.key_id, layout)
        data += serialise(numbers, public.key_size)
        return Payload(data, len(numbers), len(data))

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
        pool = self._pools.get(("owner", self.public.key_id))

        def work(chunk: list[Any]) -> list[Any]:
            size = len(chunk)
            noise = pool.take(size) if pool else owner_noise(self._key, size)
            return encrypt(chunk, noise, self.public)

        ciphertexts = in_threads(work, self.n_threads, plaintexts)
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
        scalar = layout.masking == "scalar"
        if scalar or self.verify_symbols:
            check_symbols(received, public)
        own = values * masks
        own += dither
        plaintexts = pack_slots(own, layout.reply_bits, layout)
        n_bits = responder_bits(public, layout)
        pool = self._pools.get(("responder", public.key_id))
        if pool is not None and pool.n_bits < n_bits:
            raise ValueError(
                f"the pool's noise has {pool.n_bits} bits, this layout needs {n_bits}"
            )

        def noise(size: int) -> list[Noise]:
            return pool.take(size) if pool else responder_noise(public, size, n_bits)

        def work(chunk: list[Any], plaintexts: list[Any], *masked: Any) -> list[Any]:
            fresh = noise(len(chunk))
            if scalar:
                return respond_scalar(chunk, masks, plaintexts, fresh, public)
            return respond_entrywise(chunk, *masked, plaintexts, fresh, public)

        lists = [received, plaintexts]
        if not scalar:
            count = layout.slots_per_plaintext
            numbers = masks.tolist()
            starts = range(0, layout.n_values, count)
            lists[0] = [received[start : start + count] for start in starts]
            lists.append([numbers[start : start + count] for start in starts])
        answers = in_threads(work, self.n_threads, *lists)
        # An answer is a product of powers of all it came from: if it is a unit, so
        # was every ciphertext of the request.
        check_units(answers, public)
        return self._payload(REPLY, public, answers, layout)

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
        residues = in_threads(
            lambda c: decrypt(c, self._key), self.n_threads, ciphertexts
        )
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
        return f"PaillierCipher({self.public!r}, n_threads={self.n_threads})"
