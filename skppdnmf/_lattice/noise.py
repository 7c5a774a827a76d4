"""How much noise an answer has, how wide a flood hides it, and what is left.

A ciphertext ``(c0, c1)`` of the message m has the phase ``c0 + c1 s = (q / t) m + e``
modulo q: s is the secret key, t the plaintext modulus, and e the noise, which whoever
holds s can compute. It must not tell what an answer was made from.
`docs/lattice.md` derives what is computed here.
"""

from __future__ import annotations

from functools import lru_cache
from math import log2, prod
from typing import NamedTuple

from .parameters import (
    DEGREE,
    N_DATA_PRIMES,
    coefficient_primes,
    kept_primes,
    plain_moduli,
)

MOST_NOISE = 21  # of SEAL's fresh noise, a centred binomial of 42 bits
DISTANCE_BITS = 40  # statistical distance over all answers below 2**-40
ANSWER_BITS = 24  # ciphertexts that an agent may answer in one fit, as a power of 2
# Coefficients of a secret key are -1, 0 or 1: that of a rounding error times it.
_ROUNDING = (1 + DEGREE) // 2 + 1


class NoiseBound(NamedTuple):
    """What noise an answer can have; all bounds hold for certain.

    Parameters
    ----------
    answer : int
        Bound on what depends on masks and values, before the flood.
    flood_bits : int
        The flood is uniform on ``[-2**flood_bits, 2**flood_bits)``.
    budget_bits : float
        What is left, before the switch to fewer primes, until decryption would fail.
    sent_budget_bits : float
        What is left after it.
    """

    answer: int
    flood_bits: int
    budget_bits: float
    sent_budget_bits: float


def bound_noise(
    primes: tuple[int, ...],
    kept: int,
    plain_modulus: int,
    mask_norm: int,
    answer_bits: int = ANSWER_BITS,
) -> NoiseBound:
    """Bound the noise of answers and choose a flood that hides it.

    Parameters
    ----------
    primes : tuple of int
        Of the coefficient modulus, SEAL's special one last.
    kept : int
        Primes that an answer is switched to before it is sent.
    plain_modulus : int
        The plaintext modulus t.
    mask_norm : int
        Bound on the sum of the magnitudes of a mask polynomial's coefficients.
    answer_bits : int, default=ANSWER_BITS
        So many ciphertexts, as a power of 2, may be answered.

    Returns
    -------
    NoiseBound

    Raises
    ------
    ValueError
        If noise and flood do not fit the parameters.

    Examples
    --------
    >>> from skppdnmf._lattice.noise import answer_noise
    >>> bound = answer_noise(40, "entrywise", mask_bits=12)
    >>> bound.answer < 2**57, bound.flood_bits
    (True, 133)
    """
    q, sent = prod(primes[:-1]), prod(primes[:kept])
    # Fresh noise, and the message's own rounding, times the mask.
    masked = mask_norm * (MOST_NOISE + 1)
    # Encrypted under the public key with the special prime, then divided by it.
    zero = (2 * DEGREE + 1) * MOST_NOISE // primes[-1] + 1 + _ROUNDING
    answer = masked + zero + 1  # 1: rounding of the added plaintext, and of (q / t) m
    coefficients = DEGREE << answer_bits
    # A shift by d moves a uniform number on 2 F values by a distance of d / (2 F).
    width = answer * coefficients << (DISTANCE_BITS - 1)
    flood_bits = (width - 1).bit_length()
    noise = (1 << flood_bits) + answer
    noise_sent = -(-noise * sent // q) + _ROUNDING
    budget = log2(q) - log2(2 * plain_modulus * noise)
    sent_budget = log2(sent) - log2(2 * plain_modulus * noise_sent)
    if min(budget, sent_budget) < 1.0:
        raise ValueError(
            f"a plaintext modulus of {plain_modulus.bit_length()} bits with a flood of "
            f"{flood_bits} bits leaves {budget:.1f} bits of noise budget, and "
            f"{sent_budget:.1f} after the switch to {kept} primes; 1 is the least"
        )
    return NoiseBound(answer, flood_bits, budget, sent_budget)


@lru_cache
def answer_noise(plain_bits: int, masking: str, mask_bits: int) -> NoiseBound:
    """Bound the noise for the parameters in use.

    Parameters
    ----------
    plain_bits : int
        Bits of the plaintext moduli.
    masking : {"scalar", "entrywise"}
        A mask of its own for each value is a polynomial of coefficients below t / 2.
    mask_bits : int
        Of the masks.

    Returns
    -------
    NoiseBound

    Raises
    ------
    ValueError
        If they do not fit.
    """
    # Its polynomial has no larger coefficients than the largest modulus allows.
    plain_modulus = plain_moduli(plain_bits, 1)[0]
    norm = 1 << mask_bits
    if masking == "entrywise":
        norm = DEGREE * (plain_modulus // 2)
    primes = coefficient_primes()
    if len(primes) != N_DATA_PRIMES + 1:
        raise ValueError(f"{len(primes)} primes, expected {N_DATA_PRIMES + 1}")
    return bound_noise(primes, kept_primes(plain_bits), plain_modulus, norm)
