"""Encryption noise: random n-th residues modulo n**2, fresh for every ciphertext.

Damgard, Jurik and Nielsen replace the textbook noise ``r**n`` by ``h**(n * alpha)``
with a short random exponent alpha. The owner of a key works modulo p**2 and q**2;
a responder knows only n, and its exponent is longer, so that it drowns what the
owner could learn from the size of ``G * alpha_owner + alpha_responder``.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import Any

import gmpy2
from gmpy2 import mpz

from .fixed_base import TABLES, FixedBase, choose_window, random_digits, table_bytes
from .keys import PaillierPrivateKey, PaillierPublicKey, random_unit
from .primes import SUBGROUP_BITS
from .slots import SlotLayout

EXPECTED_USES = 4096  # ciphertexts per key, where nobody knows better
DROWNING_BITS = 64
_RESPONDER_RESERVE_BITS = DROWNING_BITS + 16

# A noise is a pair (a, s) that stands for a * (1 + n * s) modulo n**2.
Noise = tuple[Any, Any]


def responder_bits(public_key: PaillierPublicKey, layout: SlotLayout) -> int:
    """Length of a responder's exponent.

    It exceeds that of the owner's exponents, raised to the masks and multiplied
    together, by 64 bits: whatever the owner subtracts, the rest looks the same.
    """
    together = 0
    if layout.masking == "entrywise":
        together = layout.slots_per_plaintext.bit_length()
    return public_key.owner_bits + layout.mask_bits + together + DROWNING_BITS


def _full_noise(public_key: PaillierPublicKey, count: int) -> list[Noise]:
    """Textbook noise, for a key without a noise base."""
    units = [random_unit(public_key.n) for _ in range(count)]
    powers = gmpy2.powmod_base_list(units, public_key.n, public_key.n_square)
    return [(x, mpz(0)) for x in powers]


def _public_tables(public_key: PaillierPublicKey, uses: int) -> FixedBase:
    """Tables modulo n**2, from the cache."""
    n_bits = public_key.owner_bits + _RESPONDER_RESERVE_BITS

    def build(max_bytes: int) -> tuple[FixedBase, int]:
        size = public_key.key_size
        window = choose_window(n_bits, size, uses, max_bytes)
        table = FixedBase(public_key.noise_base, public_key.n, window)
        return table, table_bytes(window, n_bits, size)

    return TABLES.get((public_key.key_id, "responder"), build)


def _owner_tables(private_key: PaillierPrivateKey, uses: int) -> tuple[FixedBase, ...]:
    """Tables modulo p**2 and q**2, from the cache."""
    public_key = private_key.public_key
    n_bits = owner_prime_bits(public_key)

    def build(max_bytes: int) -> tuple[tuple[FixedBase, ...], int]:
        size = public_key.key_size // 2
        window = choose_window(n_bits, size, uses, max_bytes // 2)
        primes = (private_key.p, private_key.q)
        tables = tuple(FixedBase(public_key.noise_base, m, window) for m in primes)
        return tables, 2 * table_bytes(window, n_bits, size)

    return TABLES.get((public_key.key_id, "owner"), build)


def owner_prime_bits(public_key: PaillierPublicKey) -> int:
    """Length of the owner's exponent modulo one prime."""
    if public_key.scheme == "subgroup":
        return SUBGROUP_BITS
    return public_key.owner_bits


def responder_noise(
    public_key: PaillierPublicKey, count: int, n_bits: int, uses: int = EXPECTED_USES
) -> list[Noise]:
    """Fresh noise under somebody else's key, exponents of `n_bits`."""
    if public_key.scheme == "full":
        return _full_noise(public_key, count)
    table = _public_tables(public_key, uses)
    products, sums = table.powers(random_digits(n_bits, table.window, count))
    return list(zip(products, sums, strict=True))


def owner_noise(
    private_key: PaillierPrivateKey, count: int, uses: int = EXPECTED_USES
) -> list[Noise]:
    """Fresh noise under one's own key, by the Chinese remainder theorem."""
    public_key = private_key.public_key
    if public_key.scheme == "full":
        halves = []
        for m in (private_key.p, private_key.q):
            units = [random_unit(m) for _ in range(count)]
            halves.append(gmpy2.powmod_base_list(units, m, m * m))
    else:
        tables = _owner_tables(private_key, uses)
        n_bits = owner_prime_bits(public_key)
        digits = random_digits(n_bits, tables[0].window, count)
        halves = []
        for table in tables:
            if table is tables[1] and public_key.scheme == "subgroup":
                # One exponent of 512 bits, reduced modulo either order.
                digits = random_digits(n_bits, table.window, count)
            m = table.modulus
            halves.append(
                [embed(a, s, m) for a, s in zip(*table.powers(digits), strict=True)]
            )
    return [
        (private_key.join_square(*pair), mpz(0)) for pair in zip(*halves, strict=True)
    ]


def embed(a: Any, s: Any, m: Any) -> Any:
    """Return ``a * (1 + m * s)`` modulo m**2 for 0 < a < m**2."""
    carry, residue = gmpy2.f_divmod(a, m)
    return residue + (carry + residue * (s % m)) % m * m


class NoisePool:
    """Noise computed ahead of need, for one key and one role.

    Any number of threads may fill and draw at the same time. Every item is handed
    out once. A pool cannot be pickled, and a process that is forked forgets what its
    parent's pools hold: two copies would hand out the same noise.

    Parameters
    ----------
    key : PaillierPrivateKey or PaillierPublicKey
        A private key: noise for one's own requests. A public key: noise for replies
        under a neighbour's key.
    capacity : int, default=1024
        Items held at most.
    layout : SlotLayout, optional
        Required with a public key: the noise of replies must fit their masks.

    Examples
    --------
    >>> import warnings
    >>> from skppdnmf.exchange import NoisePool, generate_keypair
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     public, private = generate_keypair(256)
    >>> pool = NoisePool(private, capacity=10)
    >>> pool.fill()
    10
    >>> len(pool.take(4)), len(pool)
    (4, 6)
    """

    _CHUNK = 32

    def __init__(
        self,
        key: PaillierPrivateKey | PaillierPublicKey,
        capacity: int = 1024,
        layout: SlotLayout | None = None,
    ) -> None:
        if capacity < 1:
            raise ValueError(f"capacity={capacity} should be >= 1")
        self.capacity = int(capacity)
        self._private = key if isinstance(key, PaillierPrivateKey) else None
        self.public_key: PaillierPublicKey = (
            key.public_key if isinstance(key, PaillierPrivateKey) else key
        )
        self.n_bits = 0
        if self._private is None:
            if layout is None:
                raise ValueError("a pool for replies needs the layout of its messages")
            self.n_bits = responder_bits(self.public_key, layout)
        self._items: deque[Noise] = deque()
        self._process = os.getpid()
        self._pending = 0
        self._lock = threading.Lock()

    @property
    def role(self) -> str:
        """Whose noise this is, "owner" or "responder"."""
        return "responder" if self._private is None else "owner"

    def __len__(self) -> int:
        self._forget_after_fork()
        return len(self._items)

    def _forget_after_fork(self) -> None:
        """Drop what another process holds too and will hand out."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._items.clear()
            self._pending = 0

    def _make(self, count: int) -> list[Noise]:
        """Compute noise now."""
        if self._private is not None:
            return owner_noise(self._private, count)
        return responder_noise(self.public_key, count, self.n_bits)

    def fill(self, count: int | None = None) -> int:
        """Compute up to `count` items, as many as there is room for by default.

        Returns
        -------
        int
            The number of items added.
        """
        added = 0
        while count is None or added < count:
            wanted = self._CHUNK if count is None else min(self._CHUNK, count - added)
            with self._lock:
                self._forget_after_fork()
                room = self.capacity - len(self._items) - self._pending
                wanted = min(wanted, room)
                if wanted <= 0:
                    break
                self._pending += wanted
            items: list[Noise] = []
            try:
                items = self._make(wanted)
            finally:
                with self._lock:
                    self._pending -= wanted
                    self._items.extend(items)
            added += wanted
        return added

    def take(self, count: int) -> list[Noise]:
        """Hand out `count` items, computing those that are missing."""
        with self._lock:
            self._forget_after_fork()
            ready = min(count, len(self._items))
            items = [self._items.popleft() for _ in range(ready)]
        if ready < count:
            items += self._make(count - ready)
        return items

    def __reduce__(self) -> Any:
        raise TypeError("a NoisePool cannot be pickled: its noise must be used once")

    def __repr__(self) -> str:
        return f"NoisePool(role={self.role!r}, {len(self)} of {self.capacity} items)"
