"""The same exchange, number by number, with `phe`: an oracle and a baseline."""

from __future__ import annotations

from typing import Any

import numpy as np
import phe

from .._integers import check_dither, check_masks, check_values
from .._payload import HEADER_BYTES, Payload
from .payload import ciphertext_bytes
from .slots import SlotLayout


class PheCipher:
    """One ciphertext for every number, every step left to `phe`.

    Parameters
    ----------
    private_key : phe.PaillierPrivateKey
        The agent's own key.

    Examples
    --------
    >>> import numpy as np, phe
    >>> from skppdnmf.exchange import SlotLayout
    >>> from skppdnmf._paillier.phe_reference import PheCipher
    >>> cipher = PheCipher(phe.generate_paillier_keypair(n_length=256)[1])
    >>> layout = SlotLayout(2, 24, 12, "entrywise", 256)
    >>> request = cipher.request(np.array([5, -7]), layout)
    >>> masks, dither = np.array([1000, 2000]), np.array([3, -4])
    >>> reply = cipher.reply(cipher.public, request, np.array([6, 0]), masks, dither,
    ...                      layout)
    >>> cipher.open(reply, layout)
    array([ 1003, 13996])
    """

    def __init__(self, private_key: phe.PaillierPrivateKey) -> None:
        self._key = private_key

    @property
    def public(self) -> phe.PaillierPublicKey:
        """The agent's public key."""
        return self._key.public_key

    def _payload(self, numbers: list[phe.EncryptedNumber], key_size: int) -> Payload:
        """Count what the numbers would take on a wire."""
        size = HEADER_BYTES + len(numbers) * ciphertext_bytes(key_size)
        return Payload(numbers, len(numbers), size)

    def request(self, values: Any, layout: SlotLayout) -> Payload:
        """Encrypt the negated values one by one."""
        numbers = check_values(values, layout).tolist()
        encrypted = [self.public.encrypt(-value) for value in numbers]
        return self._payload(encrypted, layout.key_size)

    def reply(
        self,
        public: phe.PaillierPublicKey,
        request: Payload,
        values: Any,
        masks: Any,
        dither: Any,
        layout: SlotLayout,
    ) -> Payload:
        """Multiply, add and blind one by one."""
        values = check_values(values, layout)
        masks = check_masks(masks, layout)
        dither = check_dither(dither, masks, layout)
        factors = np.broadcast_to(masks, values.shape).tolist()
        own = (values * masks + dither).tolist()
        answers = []
        for number, factor, addend in zip(request.data, factors, own, strict=True):
            answered = number * factor + addend
            answered.obfuscate()
            answers.append(answered)
        return self._payload(answers, layout.key_size)

    def open(self, reply: Payload, layout: SlotLayout) -> np.ndarray:
        """Decrypt one by one."""
        numbers = [self._key.decrypt(number) for number in reply.data]
        return np.array(numbers, dtype=layout.bits_value_dtype)
