"""Ring, moduli and layout of the lattice cipher; nothing here needs SEAL."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import gmpy2
import numpy as np

from .._integers import MASKINGS, MAX_MASK_BITS, MAX_VALUE_BITS, positive_int

DEGREE = 8192  # of the ring; slots of a ciphertext
# The last prime is SEAL's special one. 218 bits are the most that the homomorphic
# encryption standard allows at this degree for 128-bit security.
COEFFICIENT_BITS = (60, 60, 60, 38)
N_DATA_PRIMES = 3
WORD_BYTES = 8  # a residue modulo one of the primes
# Plaintext moduli of 40 bits leave room for the flood under entrywise masks. A scalar
# mask adds less noise, so that wider moduli fit, and fewer of them hold wide values.
NARROW_BITS, WIDE_BITS = 40, 60
_SIGN_BITS = 1


def _primes(bits: int, count: int, but: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Return the largest primes of so many bits that are 1 modulo twice the degree."""
    step = 2 * DEGREE
    candidate = (1 << bits) - step + 1
    found: list[int] = []
    while len(found) < count:
        if gmpy2.is_prime(candidate) and candidate not in but:
            found.append(candidate)
        candidate -= step
    return tuple(found)


@lru_cache
def coefficient_primes() -> tuple[int, ...]:
    """Return the primes of the coefficient modulus, SEAL's special one last.

    Returns
    -------
    tuple of int
        Each 1 modulo ``2 * DEGREE``.
    """
    wide = _primes(COEFFICIENT_BITS[0], N_DATA_PRIMES)
    return wide + _primes(COEFFICIENT_BITS[-1], 1)


@lru_cache
def plain_moduli(bits: int, reply_bits: int) -> tuple[int, ...]:
    """Return plaintext moduli whose product holds signed answers.

    Parameters
    ----------
    bits : int
        Of each modulus.
    reply_bits : int
        Answers are below ``2**reply_bits`` in magnitude.

    Returns
    -------
    tuple of int
        As few as do, the largest first.

    Examples
    --------
    >>> from skppdnmf._lattice.parameters import plain_moduli
    >>> len(plain_moduli(40, 38)), len(plain_moduli(40, 39))
    (1, 2)
    """
    count = -(-(reply_bits + _SIGN_BITS) // bits)
    while True:
        moduli = _primes(bits, count, but=coefficient_primes())
        if prod(moduli) >> (reply_bits + _SIGN_BITS):
            return moduli
        count += 1


@dataclass(frozen=True)
class LatticeLayout:
    """The slots of one batch of integers under the lattice cipher.

    Values that one plaintext modulus cannot hold are exchanged modulo several, a
    ciphertext for each, and put together by the Chinese remainder theorem.

    Parameters
    ----------
    n_values : int
        Number of values in the batch.
    value_bits : int
        Both sides promise ``|u| < 2**value_bits``.
    mask_bits : int
        Every mask G satisfies ``1 <= G <= 2**mask_bits``.
    masking : {"scalar", "entrywise"}
        One mask for the whole batch, or one for every value.

    Examples
    --------
    >>> from skppdnmf.exchange import LatticeLayout
    >>> layout = LatticeLayout(17_689, 24, 12, "entrywise")
    >>> layout.n_batches, layout.n_moduli, layout.n_reply_ciphertexts
    (3, 1, 3)
    >>> LatticeLayout(17_689, 40, 12, "entrywise").n_moduli
    2
    >>> LatticeLayout(17_689, 40, 12, "scalar").n_moduli
    1
    """

    n_values: int
    value_bits: int
    mask_bits: int
    masking: str

    def __post_init__(self) -> None:
        for name in ("n_values", "value_bits", "mask_bits"):
            object.__setattr__(self, name, positive_int(name, getattr(self, name)))
        if self.masking not in MASKINGS:
            raise ValueError(f"masking={self.masking!r} should be one of {MASKINGS}")
        for name, most in (
            ("mask_bits", MAX_MASK_BITS),
            ("value_bits", MAX_VALUE_BITS),
        ):
            if getattr(self, name) > most:
                raise ValueError(f"{name}={getattr(self, name)} should be <= {most}")

    @cached_property
    def reply_bits(self) -> int:
        """Every answer is below ``2**reply_bits`` in magnitude."""
        return self.value_bits + 1 + self.mask_bits

    @cached_property
    def bits_value_dtype(self) -> np.dtype:
        """int64 where every intermediate fits, object (Python integers) elsewhere."""
        return np.dtype(np.int64 if self.reply_bits <= 63 else object)

    @cached_property
    def plain_bits(self) -> int:
        """Bits of each plaintext modulus."""
        narrow = len(plain_moduli(NARROW_BITS, self.reply_bits)) == 1
        return NARROW_BITS if narrow or self.masking == "entrywise" else WIDE_BITS

    @cached_property
    def moduli(self) -> tuple[int, ...]:
        """The plaintext moduli."""
        return plain_moduli(self.plain_bits, self.reply_bits)

    @property
    def n_moduli(self) -> int:
        """Plaintext moduli that an answer needs."""
        return len(self.moduli)

    @property
    def n_batches(self) -> int:
        """Polynomials that the values fill, for each modulus."""
        return -(-self.n_values // DEGREE)

    @property
    def n_request_ciphertexts(self) -> int:
        """Ciphertexts in one request."""
        return self.n_batches * self.n_moduli

    @property
    def n_reply_ciphertexts(self) -> int:
        """Ciphertexts in one reply."""
        return self.n_request_ciphertexts

    @cached_property
    def n_kept_primes(self) -> int:
        """Primes of the coefficient modulus that an answer is switched to."""
        return kept_primes(self.plain_bits)

    def __getstate__(self) -> dict[str, Any]:
        # The derived numbers are cached in __dict__ and need not travel.
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def kept_primes(plain_bits: int) -> int:
    """Return to how many primes answers are switched before they are sent."""
    return 1 if plain_bits == NARROW_BITS else 2
