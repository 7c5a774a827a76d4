"""The lattice cipher, as the exchange meets it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._integers import check_dither, check_masks, check_values
from .._lattice.batch import decrypt, encrypt, respond
from .._lattice.keys import LatticePrivateKey, LatticePublicKey
from .._lattice.noise import ANSWER_BITS, answer_noise
from .._lattice.parameters import LatticeLayout
from .._lattice.payload import (
    check_header,
    header,
    key_payload,
    read_public,
    split,
)
from .._payload import REPLY, REQUEST, Payload
from .ciphers import Answers
from .fixed_point import MOST_BITS, SPARE_BITS, answer_unit, fixed_point
from .masks import MASK_BITS, MaskStream, draw_secrets


class LatticeCipher:
    """The encrypted exchange under BFV, by Microsoft SEAL.

    A ciphertext holds 8192 values, whatever the masking, and a few milliseconds
    encrypt, answer or decrypt all of them. Every answer is flooded: the owner of the
    key learns nothing of masks and values from its noise. See the page on the lattice
    cipher for the bound.

    Parameters
    ----------
    private_key : LatticePrivateKey
        The agent's own key.

    Notes
    -----
    Values of any width are exchanged: those that one plaintext modulus cannot hold
    go modulo several, a ciphertext for each.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.exchange import LatticeCipher, LatticeLayout, new_lattice_keypair
    >>> one, other = (LatticeCipher(new_lattice_keypair()) for _ in range(2))
    >>> layout = LatticeLayout(2, 24, 12, "scalar")
    >>> request = one.request(np.array([5, -7]), layout)
    >>> reply = other.reply(one.public, request, np.array([6, 0]), 1000,
    ...                     np.array([3, -4]), layout)
    >>> one.open(reply, layout)
    array([1003, 6996])
    """

    def __init__(self, private_key: LatticePrivateKey) -> None:
        if not isinstance(private_key, LatticePrivateKey):
            raise TypeError(
                f"expected a LatticePrivateKey, got {type(private_key).__name__}"
            )
        self._key = private_key
        self._n_answered = 0

    encode = staticmethod(fixed_point)
    answer_unit = staticmethod(answer_unit)
    read_public = staticmethod(read_public)

    @property
    def public(self) -> LatticePublicKey:
        """The agent's public key."""
        return self._key.public_key

    def public_payload(self) -> Payload:
        """Write the public key."""
        return key_payload(self.public)

    def widest_values(self, key_size: int) -> int:
        """Bits of the widest integers that fixed-point numbers become."""
        return MOST_BITS + SPARE_BITS

    def layout(
        self, n_values: int, value_bits: int, n_max: Any, masking: str, key_size: int
    ) -> LatticeLayout:
        """Lay out slots; keys have one size."""
        return LatticeLayout(n_values, value_bits, MASK_BITS, masking)

    def request(self, values: Any, layout: LatticeLayout) -> Payload:
        """Encrypt the negated values under one's own key.

        Parameters
        ----------
        values : array of int, shape (n_values,)
            Below ``2**value_bits`` in magnitude.
        layout : LatticeLayout
            The batch's.

        Returns
        -------
        Payload
            To be sent to every neighbour.

        Raises
        ------
        OverflowError
            A value breaks the layout's promise.
        """
        ciphertexts = encrypt(self._key, check_values(values, layout), layout)
        return self._payload(REQUEST, self.public, ciphertexts, layout)

    def reply(
        self,
        public: LatticePublicKey,
        request: Payload,
        values: Any,
        masks: Any,
        dither: Any,
        layout: LatticeLayout,
    ) -> Payload:
        """Answer a neighbour's request under the neighbour's key.

        Parameters
        ----------
        public : LatticePublicKey
            The neighbour's key.
        request : Payload
            The neighbour's request.
        values : array of int, shape (n_values,)
            This agent's values.
        masks : int or array of int, shape (n_values,)
            The secret factors G, one or one a value as the layout says.
        dither : array of int, shape (n_values,)
            Within (-G/2, G/2].
        layout : LatticeLayout
            The request's layout.

        Returns
        -------
        Payload
            Holds ``G * (u_j - u_i) + dither`` under fresh randomness and noise that
            tells nothing else.

        Raises
        ------
        OverflowError
            A value, mask or dither is out of range, or so many answers have been
            given that the flood would no longer hide what it should.
        WrongKeyError
            The request was made under another key.
        CorruptedMessageError
            The request is no valid request of this layout.
        """
        if not isinstance(public, LatticePublicKey):
            raise TypeError(f"expected a LatticePublicKey, got {public!r}")
        values = check_values(values, layout)
        masks = check_masks(masks, layout)
        dither = check_dither(dither, masks, layout)
        answer_noise(layout.plain_bits, layout.masking, layout.mask_bits)
        check_header(request.data, REQUEST, public.key_id, layout)
        self._n_answered += layout.n_reply_ciphertexts
        if self._n_answered > 1 << ANSWER_BITS:
            raise OverflowError(
                f"more than 2**{ANSWER_BITS} ciphertexts answered by one agent: the "
                "flood is not made for so many; use fewer iterations"
            )
        received = split(request.data, REQUEST, layout)
        answers = respond(public, received, values, masks, dither, layout)
        return self._payload(REPLY, public, answers, layout)

    def answer_many(
        self,
        publics: Sequence[Any],
        requests: Sequence[Payload],
        values: Any,
        streams: Sequence[MaskStream],
        layouts: Sequence[LatticeLayout],
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

    def open(self, reply: Payload, layout: LatticeLayout) -> np.ndarray:
        """Decrypt a neighbour's answer.

        Parameters
        ----------
        reply : Payload
            The neighbour's answer to this agent's request.
        layout : LatticeLayout
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
            The answer is no valid answer of this layout.
        """
        check_header(reply.data, REPLY, self.public.key_id, layout)
        return decrypt(self._key, split(reply.data, REPLY, layout), layout)

    def _payload(
        self, kind: int, public: LatticePublicKey, ciphertexts: list[bytes], layout: Any
    ) -> Payload:
        """Serialise."""
        data = header(kind, public.key_id, layout) + b"".join(ciphertexts)
        return Payload(data, len(ciphertexts), len(data))

    def __repr__(self) -> str:
        return f"LatticeCipher({self.public!r})"
