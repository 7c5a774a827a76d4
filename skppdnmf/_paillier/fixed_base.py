"""Powers of one base modulo m**2, by tables; and the tables' memory.

An element x of the units modulo m**2 is written as ``x = t * (1 + m * s)`` with
``0 < t < m``. Products of such x need a product of the short t's, at half the
width, and a sum of the s's. m is the modulus n, or one of its primes.

The rows of a table hold the base to the powers ``d * 2**(window * row)``; a power
with an exponent of L bits then costs ``L / window`` multiplications by half-width
numbers. For 2048-bit keys, memory and multiplications of the owner's two tables
(modulo p**2 and q**2, exponents of 1,024 bits) and of a responder's (modulo n**2,
1,100 bits):

======  ==================  ==================
window  owner               responder
======  ==================  ==================
4        3.0 MiB,  2 x 256   2.7 MiB,  275
5        4.8 MiB,  2 x 205   4.3 MiB,  220
6        8.0 MiB,  2 x 171   7.2 MiB,  184
7       13.8 MiB,  2 x 147  12.3 MiB,  158
8       24.0 MiB,  2 x 128  21.6 MiB,  138
9       42.8 MiB,  2 x 114  38.4 MiB,  123
10      77.2 MiB,  2 x 103  68.8 MiB,  110
======  ==================  ==================

By default a key gets window 8: beyond it memory doubles for a tenth of the time.
"""

from __future__ import annotations

import multiprocessing
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import gmpy2
import numpy as np
from gmpy2 import mpz

MAX_WINDOW = 12
_MIN_WINDOW = 3
_OBJECT_BYTES = 64  # of an mpz, besides its digits: object, allocation, reference
_BUILD_COST = 1.5  # of a table entry, in multiplications


def table_bytes(window: int, n_bits: int, modulus_bits: int) -> int:
    """Memory of a table for exponents of `n_bits`."""
    rows = -(-n_bits // window)
    return (rows << window) * 2 * (modulus_bits // 8 + _OBJECT_BYTES)


def choose_window(n_bits: int, modulus_bits: int, uses: int, max_bytes: int) -> int:
    """Window of least total work for `uses` powers within the memory given."""

    def work(window: int) -> float:
        return -(-n_bits // window) * ((1 << window) * _BUILD_COST + uses)

    fitting = [
        window
        for window in range(_MIN_WINDOW, MAX_WINDOW + 1)
        if table_bytes(window, n_bits, modulus_bits) <= max_bytes
    ]
    return min(fitting or [_MIN_WINDOW], key=work)


def random_digits(n_bits: int, window: int, count: int) -> list[list[int]]:
    """Digits of `count` secret random exponents, one list for every row."""
    rows = -(-n_bits // window)
    words = np.frombuffer(secrets.token_bytes(2 * rows * count), dtype=np.uint16)
    digits = words.reshape(rows, count) & np.uint16((1 << window) - 1)
    digits[-1] &= np.uint16((1 << (n_bits - window * (rows - 1))) - 1)
    return digits.tolist()


class FixedBase:
    """Powers of one base modulo ``modulus**2`` for exponents of any length.

    Rows are added as longer exponents come up; instances may be shared by threads.
    """

    def __init__(self, base: Any, modulus: Any, window: int) -> None:
        self.modulus = mpz(modulus)
        self.square = self.modulus * self.modulus
        self.window = window
        self.residues: list[list[Any]] = []
        self.logs: list[list[Any]] = []
        self._next = mpz(base) % self.square
        self._lock = threading.Lock()

    @property
    def n_bytes(self) -> int:
        """Memory in use."""
        entry = 2 * (self.modulus.bit_length() // 8 + _OBJECT_BYTES)
        return (len(self.residues) << self.window) * entry

    def _add_row(self) -> None:
        """Append the row of the next digit."""
        m = self.modulus
        carry, first = gmpy2.f_divmod(self._next, m)
        first_inverse = gmpy2.invert(first, m)
        first_log = carry * first_inverse % m
        residue, inverse, log = mpz(1), mpz(1), mpz(0)
        residues, logs = [residue], [log]
        for _ in range((1 << self.window) - 1):
            # t * t' = r + q m = r (1 + m q / r): the carry joins the logarithms.
            carry, residue = gmpy2.f_divmod(residue * first, m)
            inverse = inverse * first_inverse % m
            log = (log + first_log + carry * inverse) % m
            residues.append(residue)
            logs.append(log)
        self._next = gmpy2.powmod(self._next, 1 << self.window, self.square)
        self.logs.append(logs)
        self.residues.append(residues)

    def extend(self, rows: int) -> None:
        """Make sure that there are rows enough."""
        if len(self.residues) < rows:
            with self._lock:
                while len(self.residues) < rows:
                    self._add_row()

    def powers(self, digits: list[list[int]]) -> tuple[list[Any], list[Any]]:
        """Multiply the entries of the digits: lists a, s of ``a * (1 + m s)``.

        All powers advance row by row, so that one row at a time is in the cache,
        and two rows share one reduction.
        """
        self.extend(len(digits))
        square = self.square
        products = [mpz(1)] * len(digits[0])
        sums = [mpz(0)] * len(digits[0])
        last = len(digits) - 1
        for i in range(0, last, 2):
            row, next_row = self.residues[i : i + 2]
            log, next_log = self.logs[i : i + 2]
            pair = (digits[i], digits[i + 1])
            products = [
                x * (row[d] * next_row[e]) % square
                for x, d, e in zip(products, *pair, strict=True)
            ]
            sums = [
                s + (log[d] + next_log[e]) for s, d, e in zip(sums, *pair, strict=True)
            ]
        if last % 2 == 0:
            row, log = self.residues[last], self.logs[last]
            pairs = zip(products, digits[last], strict=True)
            products = [x * row[d] % square for x, d in pairs]
            sums = [s + log[d] for s, d in zip(sums, digits[last], strict=True)]
        return products, sums


class TableCache:
    """Tables by key, least recently used first out, within a memory budget.

    One per process. A newcomer takes at most a quarter of what is free, so that
    many keys get smaller tables instead of evicting one another; tables left idle
    for a minute count as free.
    """

    def __init__(
        self,
        budget: int = 512 << 20,
        most: int = 32 << 20,
        idle_seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget = budget
        self.most = most
        self.idle_seconds = idle_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, tuple[Any, int, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def n_bytes(self) -> int:
        """Memory promised to the tables at hand."""
        return sum(size for _, size, _ in self._entries.values())

    def clear(self) -> None:
        """Forget every table."""
        with self._lock:
            self._entries.clear()

    def get(self, key: Hashable, build: Callable[[int], tuple[Any, int]]) -> Any:
        """Return the tables of a key; `build(max_bytes)` makes them and their size."""
        with self._lock:
            now = self._clock()
            if key in self._entries:
                value, size, _ = self._entries.pop(key)
                self._entries[key] = (value, size, now)
                return value
            busy = sum(
                size
                for _, size, used in self._entries.values()
                if now - used < self.idle_seconds
            )
            value, size = build(min(self.most, max(0, self.budget - busy) // 4))
            while self._entries and self.n_bytes + size > self.budget:
                self._entries.popitem(last=False)
            self._entries[key] = (value, size, now)
            return value


def _default_budget() -> int:
    """Memory for the tables of this process.

    joblib takes a worker process that grows by 300 MB for a leak and restarts it,
    whereupon it would make all tables anew.
    """
    main = multiprocessing.current_process().name == "MainProcess"
    return (512 if main else 192) << 20


TABLES = TableCache(_default_budget())
