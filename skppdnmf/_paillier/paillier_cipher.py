"""The encrypted exchange under Paillier."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from typing import Any

import numpy as np

from ..exceptions import CorruptedMessageError
from .batch import (
    decrypt,
    deserialise,
    encrypt,
    in_chunks,
    request_plaintexts,
    respond,
    serialise,
)
from .keys import PaillierPrivateKey, PaillierPublicKey
from .noise import NoisePool, responder_bits
from .payload import REPLY, REQUEST, Payload, check_header, header
from .slots import (
    SlotLayout,
    check_dither,
    check_key_size,
    check_masks,
    check_values,
    pack_slots,
    unpack_slots,
)


class PaillierCipher:
    """The encrypted exchange under Paillier.

    Parameters
    ----------
    private_key : PaillierPrivateKey
        The agent's own key.
    n_threads : int, default=1
        Chunks of a batch that run at the same time.
    executor : concurrent.futures.Executor, optional
        Runs the chunks; without it one chunk runs in the caller's thread and several
        in threads of their own. Decryption and scalar masking release the
        interpreter's lock and gain from threads. Noise and entrywise masking consist
        of operations too short for that and gain from processes only: agents that
        run in threads may share one ``ProcessPoolExecutor``. Its workers receive the
        private key.
    pools : iterable of NoisePool, default=()
        Noise made ahead of need, for requests (a pool of `private_key`) and for
        replies (pools of neighbours' keys and this batch's layout).
    verify_symbols : bool, default=False
        Check the Jacobi symbol of every ciphertext of an entrywise request too,
        which costs the exchange about 7 %. An honest owner's are +1; a symbol of -1
        would show the owner the parity of a mask. Scalar requests are always checked.

    Notes
    -----
    A pickled cipher holds the private key, but neither pools nor executor.

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
        executor: Executor | None = None,
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
        self._executor = executor
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

    def _run(self, function: Any, fixed: tuple[Any, ...], *lists: Any) -> list[Any]:
        """Run a batch in chunks."""
        return in_chunks(function, self._executor, self.n_threads, fixed, *lists)

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
        size = len(plaintexts)
        noise = pool.take(size) if pool else [None] * size
        ciphertexts = self._run(encrypt, (self._key,), plaintexts, noise)
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
        n_bits = responder_bits(public, layout)
        pool = self._pools.get(("responder", public.key_id))
        if pool is not None and pool.n_bits < n_bits:
            raise ValueError(
                f"the pool's noise has {pool.n_bits} bits, this layout needs {n_bits}"
            )
        noise = pool.take(size) if pool else [None] * size
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
        fixed = (public, n_bits, verify)
        answers = self._run(respond, fixed, groups, factors, plaintexts, noise)
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
        residues = self._run(decrypt, (self._key,), ciphertexts)
        values = unpack_slots(residues, self.public.n, layout)
        if values is None:
            raise CorruptedMessageError(
                f"an answer exceeds its slot of {layout.slot_bits} bits: another "
                "key's ciphertext, or not an answer to this request"
            )
        return values

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pools": {}, "_executor": None}

    def __repr__(self) -> str:
        return f"PaillierCipher({self.public!r}, n_threads={self.n_threads})"
