"""Generation of Paillier keys."""

from __future__ import annotations

from typing import Any

import gmpy2
from gmpy2 import mpz

from .._warn import warn_user
from ..exceptions import InsecureKeyWarning
from .keys import (
    SCHEMES,
    PaillierPrivateKey,
    PaillierPublicKey,
    random_unit,
    short_noise_base,
)
from .primes import MIN_KEY_SIZE, SMALLEST_SUBGROUP_KEY, find_primes

SECURE_KEY_SIZE = 2048


def _subgroup_base(p: Any, q: Any, r_p: Any, r_q: Any) -> Any:
    """Element of order r_p modulo p and r_q modulo q."""
    parts = []
    for prime, order in ((p, r_p), (q, r_q)):
        part = mpz(1)
        while part == 1:
            part = gmpy2.powmod(random_unit(prime), (prime - 1) // order, prime)
        parts.append(part)
    return parts[0] + p * ((parts[1] - parts[0]) * gmpy2.invert(p, q) % q)


def generate_keypair(
    key_size: int = 2048, scheme: str = "djn"
) -> tuple[PaillierPublicKey, PaillierPrivateKey]:
    """Generate a Paillier key pair.

    Parameters
    ----------
    key_size : int, default=2048
        Bits of the modulus, even and at least 64. Below 2048 nothing is protected.
    scheme : {"djn", "subgroup"}, default="djn"
        "djn": Damgard, Jurik and Nielsen's short-exponent noise; primes p = q = 3
        (mod 4) with gcd(p - 1, q - 1) = 2 and no small factors in (p - 1) / 2.
        "subgroup": moreover 256-bit primes divide p - 1 and q - 1, and the noise
        lives in the subgroup of their orders, so that decryption needs 256-bit
        exponents only (Paillier 1999, scheme 3). Faster, on a stronger assumption.

    Returns
    -------
    public_key : PaillierPublicKey
        For the neighbours.
    private_key : PaillierPrivateKey
        To be kept.

    Raises
    ------
    ValueError
        The size is odd or too small for the scheme.

    Warns
    -----
    InsecureKeyWarning
        The key has fewer than 2048 bits.

    Examples
    --------
    >>> from skppdnmf.exchange import generate_keypair
    >>> public, private = generate_keypair()
    >>> public.key_size, private.decrypt(public.encrypt(7))
    (2048, 7)
    """
    key_size = valid_key_size(key_size, scheme)
    if key_size < SECURE_KEY_SIZE:
        warn_insecure(key_size)
    return new_keypair(key_size, scheme)


def valid_key_size(key_size: Any, scheme: str) -> int:
    """Return the size of a key that can be generated, or raise."""
    if isinstance(key_size, bool) or not hasattr(key_size, "__index__"):
        raise TypeError(f"key_size={key_size!r} should be an integer")
    key_size = int(key_size)
    if scheme not in SCHEMES:
        raise ValueError(f"scheme={scheme!r} should be one of {SCHEMES}")
    smallest = SMALLEST_SUBGROUP_KEY if scheme == "subgroup" else MIN_KEY_SIZE
    if key_size < smallest or key_size % 2:
        raise ValueError(
            f"key_size={key_size} should be even and >= {smallest} "
            f"(the smallest that fits scheme={scheme!r})"
        )
    return key_size


def warn_insecure(key_size: int) -> None:
    """Warn of a key too short to protect anything."""
    warn_user(
        f"key_size={key_size} protects nothing; use {SECURE_KEY_SIZE} or more",
        InsecureKeyWarning,
    )


def new_keypair(
    key_size: int, scheme: str = "djn"
) -> tuple[PaillierPublicKey, PaillierPrivateKey]:
    """Generate a key pair without a word on its length."""
    primes = find_primes(key_size, scheme)
    n = primes.p * primes.q
    h = _subgroup_base(*primes) if scheme == "subgroup" else short_noise_base(n)
    public = PaillierPublicKey(n, h, scheme)
    return public, PaillierPrivateKey(public, *primes)
