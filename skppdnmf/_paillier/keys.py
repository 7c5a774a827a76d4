"""Paillier keys: their making, JSON, and conversion from and to `phe`."""

from __future__ import annotations

import hashlib
import json
import secrets
from functools import cached_property
from typing import Any

import gmpy2
import phe
from gmpy2 import mpz

from .._warn import warn_user
from ..exceptions import CorruptedMessageError, InsecureKeyWarning, WrongKeyError
from .primes import (
    MIN_KEY_SIZE,
    SMALLEST_SUBGROUP_KEY,
    SUBGROUP_BITS,
    find_primes,
    meets_conditions,
)

SCHEMES = ("djn", "subgroup")
SECURE_KEY_SIZE = 2048
KEY_ID_BYTES = 16
_PUBLIC_FORMAT = "skppdnmf-paillier-public-key"
_PRIVATE_FORMAT = "skppdnmf-paillier-private-key"
_VERSION = 1


def random_unit(n: Any) -> Any:
    """Uniform element of the units modulo n."""
    while True:
        x = mpz(secrets.randbelow(int(n)))
        if gmpy2.gcd(x, n) == 1:
            return x


def short_noise_base(n: Any) -> Any:
    """Return -x**2: a generator of short-exponent noise, of Jacobi symbol +1."""
    return -(random_unit(n) ** 2) % n


def _read_json(text: str, expected: str) -> dict[str, Any]:
    """Parse a key and check its format."""
    try:
        fields = json.loads(text)
        found = (fields["format"], fields["version"])
    except (json.JSONDecodeError, RecursionError, KeyError, TypeError) as error:
        raise ValueError(f"not a key of format {expected!r}: {error}") from error
    if found != (expected, _VERSION):
        raise ValueError(f"key of format {found}, expected {(expected, _VERSION)}")
    return fields


def _hex(fields: dict[str, Any], name: str) -> Any:
    """Read a hexadecimal number."""
    try:
        return mpz(int(fields[name], 16))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"key has no hexadecimal {name!r}") from error


class PaillierPublicKey:
    """The public half of a Paillier key; safe to send, print and pickle.

    Parameters
    ----------
    n : int
        The modulus.
    h : int, optional
        Base of the noise, a unit modulo n of Jacobi symbol +1. Without it noise is
        full-length ``r**n``: correct with any Paillier modulus, and slow.
    scheme : {"djn", "subgroup", "full"}, optional
        How noise is made. By default "djn" with h and "full" without.

    Attributes
    ----------
    key_size : int
        Bits of n.
    key_id : bytes
        16 bytes that name the key: a digest of n, h and scheme.

    Examples
    --------
    >>> import warnings
    >>> from skppdnmf.exchange import PaillierPublicKey, generate_keypair
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     public, private = generate_keypair(256)
    >>> PaillierPublicKey.from_json(public.to_json()) == public
    True
    >>> private.decrypt(public.encrypt(-12))
    -12
    """

    def __init__(self, n: Any, h: Any = None, scheme: str | None = None) -> None:
        self.n = mpz(n)
        self.h = None if h is None else mpz(h)
        self.scheme = scheme or ("full" if h is None else "djn")
        if self.scheme not in (*SCHEMES, "full"):
            raise ValueError(f"scheme={scheme!r} should be one of {(*SCHEMES, 'full')}")
        if (self.h is None) != (self.scheme == "full"):
            raise ValueError(f"scheme={self.scheme!r} with h={self.h}")
        if self.n < 1 << (MIN_KEY_SIZE - 1) or self.n % 2 == 0:
            raise ValueError(
                f"n={self.n} should be odd and have at least {MIN_KEY_SIZE} bits"
            )
        if self.h is not None and not (
            1 < self.h < self.n and gmpy2.jacobi(self.h, self.n) == 1
        ):
            raise ValueError("h should be a unit modulo n of Jacobi symbol +1")

    @cached_property
    def key_size(self) -> int:
        """Bits of the modulus."""
        return self.n.bit_length()

    @cached_property
    def n_square(self) -> Any:
        """Modulus of the ciphertexts."""
        return self.n * self.n

    @cached_property
    def noise_base(self) -> Any:
        """Return h**n modulo n**2; None under full-length noise."""
        if self.h is None:
            return None
        return gmpy2.powmod(self.h, self.n, self.n_square)

    @cached_property
    def owner_bits(self) -> int:
        """Length of the owner's noise exponent."""
        if self.scheme == "subgroup":
            return 2 * SUBGROUP_BITS
        return (self.key_size + 1) // 2

    @cached_property
    def key_id(self) -> bytes:
        """The name of the key on the wire."""
        text = f"{self.scheme}:{self.n:x}:{self.h or 0:x}"
        return hashlib.sha256(text.encode()).digest()[:KEY_ID_BYTES]

    def encrypt(self, value: int) -> Any:
        """Encrypt one signed integer.

        Parameters
        ----------
        value : int
            Below n / 2 in magnitude.

        Returns
        -------
        mpz
            The ciphertext.

        Raises
        ------
        OverflowError
            The value is too large for the key.
        """
        value = int(value)
        if 2 * abs(value) >= self.n:
            raise OverflowError(
                f"value={value} exceeds the limit |value| <= {self.n // 2}"
            )
        if self.noise_base is None:
            noise = gmpy2.powmod(random_unit(self.n), self.n, self.n_square)
        else:
            alpha = secrets.randbits(self.owner_bits)
            noise = gmpy2.powmod(self.noise_base, alpha, self.n_square)
        return (1 + value * self.n) * noise % self.n_square

    def to_phe(self) -> phe.PaillierPublicKey:
        """Return the key for `phe`, which knows neither h nor scheme."""
        return phe.PaillierPublicKey(int(self.n))

    @classmethod
    def from_phe(cls, key: phe.PaillierPublicKey) -> PaillierPublicKey:
        """Take over a key of `phe`; its noise is full-length."""
        return cls(key.n)

    def _fields(self) -> dict[str, Any]:
        """Everything that is public, as JSON types."""
        return {
            "scheme": self.scheme,
            "n": f"{self.n:x}",
            "h": None if self.h is None else f"{self.h:x}",
            "key_id": self.key_id.hex(),
        }

    def to_json(self) -> str:
        """Return the key as JSON with hexadecimal numbers."""
        return json.dumps(
            {"format": _PUBLIC_FORMAT, "version": _VERSION, **self._fields()}
        )

    @classmethod
    def from_json(cls, text: str) -> PaillierPublicKey:
        """Read a key from JSON.

        Raises
        ------
        ValueError
            The text is no such key.
        WrongKeyError
            The key is not the one that its identifier names.
        """
        return cls._from_fields(_read_json(text, _PUBLIC_FORMAT))

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> PaillierPublicKey:
        """Build and compare with the stated identifier."""
        h = None if fields.get("h") is None else _hex(fields, "h")
        key = cls(_hex(fields, "n"), h, fields.get("scheme"))
        stated = fields.get("key_id")
        if stated != key.key_id.hex():
            raise WrongKeyError(f"key_id {stated} stands beside {key!r}")
        return key

    def __reduce__(self) -> tuple[Any, ...]:
        h = None if self.h is None else int(self.h)
        return type(self), (int(self.n), h, self.scheme)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PaillierPublicKey):
            return NotImplemented
        return (self.n, self.h, self.scheme) == (other.n, other.h, other.scheme)

    def __hash__(self) -> int:
        return hash(self.key_id)

    def __repr__(self) -> str:
        return (
            f"PaillierPublicKey(key_size={self.key_size}, scheme={self.scheme!r}, "
            f"key_id='{self.key_id.hex()}')"
        )


class PaillierPrivateKey:
    """The private half of a Paillier key. Its pickle and JSON hold the secret primes.

    Parameters
    ----------
    public_key : PaillierPublicKey
        The public half.
    p, q : int
        The primes, two different ones. The attribute `p` is the smaller one.
    r_p, r_q : int, default=0
        Orders of the noise modulo p and q, under ``scheme="subgroup"`` only.

    Raises
    ------
    WrongKeyError
        If these are no primes, or not those of the public key.

    Examples
    --------
    >>> import warnings
    >>> from skppdnmf.exchange import generate_keypair
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     public, private = generate_keypair(256)
    >>> private.to_phe().public_key.n == public.n
    True
    """

    def __init__(
        self, public_key: PaillierPublicKey, p: Any, q: Any, r_p: Any = 0, r_q: Any = 0
    ) -> None:
        self.public_key = public_key
        # In order: tables of a key's noise are shared by all copies of the key.
        (self.p, self.r_p), (self.q, self.r_q) = sorted(
            ((mpz(p), mpz(r_p)), (mpz(q), mpz(r_q)))
        )
        if self.p * self.q != public_key.n or self.p < 2:
            raise WrongKeyError("the primes do not belong to the public key")
        if self.p == self.q:
            raise WrongKeyError("p and q are the same prime")
        for name, number in (("p", p), ("q", q)):
            if not gmpy2.is_prime(mpz(number)):
                raise WrongKeyError(f"{name} is not prime")
        if public_key.scheme == "subgroup":
            for prime, order in ((self.p, self.r_p), (self.q, self.r_q)):
                if order < 2 or gmpy2.powmod(public_key.h, order, prime) != 1:
                    raise WrongKeyError("the orders do not belong to the public key")

    def exponent(self, prime: Any) -> Any:
        """Exponent that removes the noise modulo the square of p or q."""
        if self.public_key.scheme == "subgroup":
            return self.r_p if prime == self.p else self.r_q
        return prime - 1

    @cached_property
    def p_square(self) -> Any:
        """The square of p."""
        return self.p * self.p

    @cached_property
    def q_square(self) -> Any:
        """The square of q."""
        return self.q * self.q

    @cached_property
    def p_inverse(self) -> Any:
        """Inverse of p modulo q."""
        return gmpy2.invert(self.p, self.q)

    @cached_property
    def p_square_inverse(self) -> Any:
        """Inverse of p**2 modulo q**2."""
        return gmpy2.invert(self.p_square, self.q_square)

    @cached_property
    def scales(self) -> tuple[Any, Any]:
        """Factors that turn the two logarithms into residues of the plaintext."""
        p, q = self.p, self.q
        return (
            gmpy2.invert(self.exponent(p) * q, p),
            gmpy2.invert(self.exponent(q) * p, q),
        )

    def decrypt(self, ciphertext: Any) -> int:
        """Decrypt one signed integer, whoever made its noise.

        Parameters
        ----------
        ciphertext : int
            Of this key, by this package or by `phe`.

        Returns
        -------
        int
            The plaintext, centred around zero.

        Raises
        ------
        CorruptedMessageError
            The number is no ciphertext of any key of this size.
        """
        ciphertext = mpz(ciphertext)
        n = self.public_key.n
        if not 0 < ciphertext < n * n or gmpy2.gcd(ciphertext, n) != 1:
            raise CorruptedMessageError("not a unit modulo n**2, hence no ciphertext")
        halves = []
        for prime, other in ((self.p, self.q), (self.q, self.p)):
            power = gmpy2.powmod(ciphertext, prime - 1, prime * prime)
            halves.append(
                (power - 1) // prime * gmpy2.invert(-other, prime) % prime,
            )
        return int(centre(self.join(*halves), n))

    def join(self, m_p: Any, m_q: Any) -> Any:
        """Chinese remainder of a plaintext."""
        return m_p + self.p * ((m_q - m_p) * self.p_inverse % self.q)

    def join_square(self, c_p: Any, c_q: Any) -> Any:
        """Chinese remainder of a ciphertext."""
        lift = (c_q - c_p) * self.p_square_inverse % self.q_square
        return c_p + self.p_square * lift

    def to_phe(self) -> phe.PaillierPrivateKey:
        """Return the key for `phe`."""
        return phe.PaillierPrivateKey(
            self.public_key.to_phe(), int(self.p), int(self.q)
        )

    @classmethod
    def from_phe(cls, key: phe.PaillierPrivateKey) -> PaillierPrivateKey:
        """Take over a key of `phe`.

        Its noise has short exponents if its primes allow it and is full-length
        (slower) otherwise. In the first case the public half carries a base that
        `phe` does not know: give neighbours ``result.public_key``.
        """
        p, q = mpz(key.p), mpz(key.q)
        h = short_noise_base(p * q) if meets_conditions(p, q) else None
        return cls(PaillierPublicKey(p * q, h), p, q)

    def to_json(self) -> str:
        """Return the key as JSON, secret primes included."""
        secret = {name: f"{getattr(self, name):x}" for name in ("p", "q", "r_p", "r_q")}
        return json.dumps(
            {
                "format": _PRIVATE_FORMAT,
                "version": _VERSION,
                **self.public_key._fields(),
                **secret,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> PaillierPrivateKey:
        """Read a key from JSON; errors as for `PaillierPublicKey.from_json`."""
        fields = _read_json(text, _PRIVATE_FORMAT)
        secret = [_hex(fields, name) for name in ("p", "q", "r_p", "r_q")]
        return cls(PaillierPublicKey._from_fields(fields), *secret)

    def __reduce__(self) -> tuple[Any, ...]:
        secret = tuple(int(x) for x in (self.p, self.q, self.r_p, self.r_q))
        return type(self), (self.public_key, *secret)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PaillierPrivateKey):
            return NotImplemented
        return self.public_key == other.public_key

    def __hash__(self) -> int:
        return hash(self.public_key)

    def __repr__(self) -> str:
        return f"PaillierPrivateKey({self.public_key!r})"


def centre(residue: Any, n: Any) -> Any:
    """Map a residue modulo n to the signed integer nearest to zero."""
    return residue - n if 2 * residue > n else residue


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
    """Generate a key pair without a word on its length.

    Raises
    ------
    ValueError
        The size is odd or too small for the scheme.
    """
    key_size = valid_key_size(key_size, scheme)
    primes = find_primes(key_size, scheme)
    n = primes.p * primes.q
    h = _subgroup_base(*primes) if scheme == "subgroup" else short_noise_base(n)
    public = PaillierPublicKey(n, h, scheme)
    return public, PaillierPrivateKey(public, *primes)
