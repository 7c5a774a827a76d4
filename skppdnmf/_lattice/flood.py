"""Uniform integers, far wider than a word, as residues modulo each prime."""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

from .._keystream import BLOCK_BYTES, KEY_BYTES, SLACK_BYTES, keystream
from .parameters import COEFFICIENT_BITS

_WORD_BITS = 30  # of the digits that a number is drawn in
_LOW = np.uint64((1 << _WORD_BITS) - 1)
_SHIFT = np.uint64(_WORD_BITS)
_MOST_EXCESS_BITS = 24  # a prime lies at most so far below a power of 2


def random_digits(count: int, bits: int) -> NDArray[np.uint64]:
    """Draw numbers below ``2**bits``, as digits of 30 bits.

    Parameters
    ----------
    count : int
        How many numbers.
    bits : int
        Their width.

    Returns
    -------
    ndarray of shape (n_digits, count), dtype uint64
        The highest digits first. Drawn by AES under a fresh key of the operating
        system.
    """
    n_digits = -(-bits // _WORD_BITS)
    size = 4 * n_digits * count
    buffer = np.empty(size + SLACK_BYTES, dtype=np.uint8)
    encryptor = keystream(secrets.token_bytes(KEY_BYTES), bytes(BLOCK_BYTES))
    encryptor.update_into(bytes(size), buffer)
    digits = buffer[:size].view("<u4").reshape(n_digits, count).astype(np.uint64)
    digits &= _LOW
    digits[0] &= np.uint64((1 << (bits - _WORD_BITS * (n_digits - 1))) - 1)
    return digits


def residues(digits: NDArray[np.uint64], prime: int) -> NDArray[np.uint64]:
    """Return the numbers of some digits modulo a prime of 60 bits.

    Parameters
    ----------
    digits : ndarray of shape (n_digits, count)
        As `random_digits` returns them.
    prime : int
        Just below ``2**60``.

    Returns
    -------
    ndarray of shape (count,), dtype uint64
    """
    excess = (1 << COEFFICIENT_BITS[0]) - prime
    if not 0 < excess < 1 << _MOST_EXCESS_BITS:
        raise ValueError(f"prime {prime} does not lie just below 2**60")
    result = digits[0].copy()
    high = np.empty_like(result)
    for digit in digits[1:]:
        # 2**30 (2**30 high + low) is excess high + 2**30 low modulo the prime, and
        # stays below 2**61 without being reduced.
        np.right_shift(result, _SHIFT, out=high)
        high *= np.uint64(excess)
        result &= _LOW
        result <<= _SHIFT
        result += high
        result += digit
    result -= (result >= np.uint64(prime)) * np.uint64(prime)
    return result


def draw_flood(
    count: int, flood_bits: int, primes: tuple[int, ...]
) -> NDArray[np.uint64]:
    """Draw uniform integers in ``[-2**flood_bits, 2**flood_bits)``.

    Parameters
    ----------
    count : int
        How many.
    flood_bits : int
        Half their width.
    primes : tuple of int
        The data primes of the coefficient modulus.

    Returns
    -------
    ndarray of shape (n_primes, count), dtype uint64
        Their residues.
    """
    digits = random_digits(count, flood_bits + 1)
    rows = np.empty((len(primes), count), dtype=np.uint64)
    for row, prime in zip(rows, primes, strict=True):
        row[:] = residues(digits, prime)
        # Less the half: they are centred.
        row += np.uint64(prime - pow(2, flood_bits, prime))
        row -= (row >= np.uint64(prime)) * np.uint64(prime)
    return rows
