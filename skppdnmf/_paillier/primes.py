"""Primes for Paillier keys, found by sieving the candidate and its half at once."""

from __future__ import annotations

import secrets
from functools import lru_cache
from typing import Any, NamedTuple

import gmpy2
import numpy as np
from gmpy2 import mpz

MIN_KEY_SIZE = 64
SUBGROUP_BITS = 256
# A prime p = 2 r k + 1 of the subgroup scheme needs room for a cofactor k.
_COFACTOR_BITS = 32
SMALLEST_SUBGROUP_KEY = 2 * (SUBGROUP_BITS + _COFACTOR_BITS)
_SIEVE_BITS = 16  # (p - 1) / 2 has no prime factor below 2**16 (small keys: less)
_WINDOW = 1 << 16
_CLOSE_BITS = 100  # |p - q| is at least this many bits short of p, no more
_TESTS = 40  # Miller-Rabin rounds behind gmpy2's BPSW test


class Primes(NamedTuple):
    """The secret primes of a key; r_p and r_q are 0 unless the scheme has them."""

    p: Any
    q: Any
    r_p: Any
    r_q: Any


@lru_cache(maxsize=8)
def small_primes(limit: int) -> np.ndarray:
    """Odd primes below `limit`."""
    sieve = np.ones(limit, dtype=bool)
    sieve[:2] = False
    for i in range(2, int(limit**0.5) + 1):
        if sieve[i]:
            sieve[i * i :: i] = False
    primes = np.flatnonzero(sieve)
    return primes[primes > 2]


def sieve_limit(n_bits: int) -> int:
    """Bound below which (p - 1) / 2 of an `n_bits` prime has no factor."""
    return 1 << min(_SIEVE_BITS, n_bits // 4)


def _survivors(start: Any, step: Any, limit: int, count: int) -> np.ndarray:
    """Find the i where neither start + step * i nor its half has small factors."""
    alive = np.ones(count, dtype=bool)
    for prime in small_primes(limit).tolist():
        slope = int(step % prime)
        if slope == 0:
            continue
        inverse = pow(slope, -1, prime)
        first = int(start % prime)
        # p = 0 and p = 1 (mod prime) are struck out together.
        alive[(-first * inverse) % prime :: prime] = False
        alive[((1 - first) * inverse) % prime :: prime] = False
    return np.flatnonzero(alive)


def _shuffled(indices: np.ndarray) -> list[int]:
    """Order the indices at random, from the operating system's entropy."""
    words = np.frombuffer(secrets.token_bytes(8 * len(indices)), dtype=np.uint64)
    return indices[np.argsort(words)].tolist()


def _random_start(n_bits: int) -> Any:
    """Random number whose two top bits are set, so that p * q keeps its length."""
    return mpz(secrets.randbits(n_bits - 2)) | mpz(3) << (n_bits - 2)


def find_prime(n_bits: int, divisor: Any = 1) -> Any:
    """Find a prime p = 3 (mod 4) with (p - 1) / 2 a multiple of an odd `divisor`.

    The two top bits of p are set, and (p - 1) / (2 * divisor) has no small factors.
    """
    step = 4 * mpz(divisor)
    room = n_bits - step.bit_length()
    count = min(_WINDOW, 1 << max(4, room))
    limit = sieve_limit(n_bits if divisor == 1 else room + 2)
    while True:
        start = _random_start(n_bits)
        start += (1 + step // 2 - start) % step  # p = 1 + 2 * divisor (mod 4 * divisor)
        for index in _shuffled(_survivors(start, step, limit, count)):
            candidate = start + step * index
            if candidate.bit_length() == n_bits and gmpy2.is_prime(candidate, _TESTS):
                return candidate


def _random_prime(n_bits: int) -> Any:
    """Random prime of exactly `n_bits`, for a subgroup's order."""
    while True:
        candidate = _random_start(n_bits) | 1
        if gmpy2.is_prime(candidate, _TESTS):
            return candidate


def rough_half(p: Any) -> bool:
    """Whether (p - 1) / 2 is odd and without small factors."""
    half = (p - 1) // 2
    if half % 2 == 0:
        return False
    limit = sieve_limit(p.bit_length())
    return all(half % prime for prime in small_primes(limit).tolist())


def meets_conditions(p: Any, q: Any) -> bool:
    """Whether two primes carry short-exponent (DJN) noise."""
    return (
        p != q
        and p % 4 == 3
        and q % 4 == 3
        and gmpy2.gcd(p - 1, q - 1) == 2
        and rough_half(p)
        and rough_half(q)
    )


def _far_apart(p: Any, q: Any, n_bits: int) -> bool:
    """Whether Fermat's method is hopeless against p * q."""
    return abs(p - q).bit_length() > max(0, n_bits - _CLOSE_BITS)


def find_primes(key_size: int, scheme: str) -> Primes:
    """Find the primes of a key of exactly `key_size` bits."""
    n_bits = key_size // 2
    while True:
        r_p = r_q = mpz(0)
        if scheme == "subgroup":
            r_p, r_q = _random_prime(SUBGROUP_BITS), _random_prime(SUBGROUP_BITS)
        p, q = find_prime(n_bits, r_p or 1), find_prime(n_bits, r_q or 1)
        if gmpy2.gcd(p - 1, q - 1) == 2 and _far_apart(p, q, n_bits):
            return Primes(p, q, r_p, r_q)
