"""How many integers fit into one plaintext, and how they get in and out.

A Paillier plaintext of 2048 bits holds dozens of fixed-point numbers. A layout
fixes, for one batch, how wide the slots are and how many share a plaintext. Both
ends of an edge must use the same layout. Nothing here encrypts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gmpy2
import numpy as np

from .._integers import (
    EXACT_BITS,
    MASKINGS,
    MAX_MASK_BITS,
    MAX_VALUE_BITS,
    is_object,
    positive_int,
)

_SIGN_BITS = 1
_GUARD_BITS = 1  # lets the owner notice an answer that overflowed its slot


def slot_width(value_bits: int, mask_bits: int) -> int:
    """Bits of one slot: a doubled value, a mask, the sign and the guard."""
    return value_bits + 1 + mask_bits + _SIGN_BITS + _GUARD_BITS


@dataclass(frozen=True)
class SlotLayout:
    """The slots of one batch of integers.

    Parameters
    ----------
    n_values : int
        Number of values in the batch.
    value_bits : int
        Both sides promise ``|u| < 2**value_bits``.
    mask_bits : int
        Every mask G satisfies ``1 <= G <= 2**mask_bits``; at most 62.
    masking : {"scalar", "entrywise"}
        One mask for the whole batch, or one for every value.
    key_size : int
        Bits of the Paillier modulus.

    Raises
    ------
    OverflowError
        Not even one slot fits into a plaintext; the message has the smallest key
        that would do.

    Notes
    -----
    An answer ``G * (u_j - u_i) + dither`` is below ``2**(value_bits + 1 +
    mask_bits)`` in magnitude. A slot adds a sign bit and a guard bit. All slots of
    a plaintext together stay below ``2**(key_size - 1)``, hence below the modulus.

    Examples
    --------
    >>> from skppdnmf.exchange import SlotLayout
    >>> layout = SlotLayout(640, value_bits=24, mask_bits=12, masking="scalar",
    ...                     key_size=2048)
    >>> layout.slot_bits, layout.slots_per_plaintext, layout.n_reply_ciphertexts
    (39, 52, 13)
    >>> layout.smallest_key(24, 12)
    40
    """

    n_values: int
    value_bits: int
    mask_bits: int
    masking: str
    key_size: int

    def __post_init__(self) -> None:
        for name in ("n_values", "value_bits", "mask_bits", "key_size"):
            object.__setattr__(self, name, positive_int(name, getattr(self, name)))
        if self.masking not in MASKINGS:
            raise ValueError(f"masking={self.masking!r} should be one of {MASKINGS}")
        for name, most in (
            ("mask_bits", MAX_MASK_BITS),
            ("value_bits", MAX_VALUE_BITS),
        ):
            if getattr(self, name) > most:
                raise ValueError(f"{name}={getattr(self, name)} should be <= {most}")
        if self.slot_bits > self.key_size - 1:
            smallest = self.smallest_key(self.value_bits, self.mask_bits)
            raise OverflowError(
                f"key_size={self.key_size} holds no slot of slot_bits={self.slot_bits} "
                f"(value_bits={self.value_bits}, mask_bits={self.mask_bits}); "
                f"the smallest key that holds one has {smallest} bits"
            )

    @staticmethod
    def smallest_key(value_bits: int, mask_bits: int) -> int:
        """Return the smallest (even) key size that holds one slot.

        Parameters
        ----------
        value_bits, mask_bits : int
            As for `SlotLayout`.

        Returns
        -------
        int
            The key size in bits.
        """
        least = slot_width(value_bits, mask_bits) + 1
        return least + least % 2

    @cached_property
    def slot_bits(self) -> int:
        """Width of one slot in bits."""
        return slot_width(self.value_bits, self.mask_bits)

    @cached_property
    def slots_per_plaintext(self) -> int:
        """Number of values that share one plaintext."""
        return (self.key_size - 1) // self.slot_bits

    @cached_property
    def n_reply_ciphertexts(self) -> int:
        """Ciphertexts in one reply."""
        return -(-self.n_values // self.slots_per_plaintext)

    @cached_property
    def n_request_ciphertexts(self) -> int:
        """Ciphertexts in one request."""
        if self.masking == "entrywise":
            return self.n_values
        return self.n_reply_ciphertexts

    @cached_property
    def bits_value_dtype(self) -> np.dtype:
        """int64 where every intermediate fits, object (Python integers) elsewhere."""
        return np.dtype(np.int64 if self.reply_bits <= 63 else object)

    @cached_property
    def fits_floats(self) -> bool:
        """Whether every intermediate is an integer that a float64 holds exactly."""
        return self.reply_bits <= EXACT_BITS

    @cached_property
    def reply_bits(self) -> int:
        """Every answer is below ``2**reply_bits`` in magnitude."""
        return self.value_bits + 1 + self.mask_bits

    @cached_property
    def answer_dtype(self) -> np.dtype:
        """What holds an answer without rounding and computes it fastest."""
        return np.dtype(np.float64) if self.fits_floats else self.bits_value_dtype

    def __getstate__(self) -> dict[str, Any]:
        # The derived numbers are cached in __dict__ and need not travel.
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def check_key_size(key_size: int, layout: SlotLayout) -> None:
    """Raise if a layout was made for keys of another size."""
    if key_size != layout.key_size:
        raise ValueError(
            f"layout for key_size={layout.key_size}, the key has {key_size}"
        )


def pack_slots(values: np.ndarray, bits: int, layout: SlotLayout) -> list[Any]:
    """Pack signed integers below ``2**bits`` into one signed mpz per plaintext."""
    width, count = layout.slot_bits, layout.slots_per_plaintext
    offset = 1 << bits
    if is_object(values.dtype):
        shifted = [int(value) + offset for value in values]
    else:  # modulo 2**64, where every shifted value has its place
        shifted = (values.view(np.uint64) + np.uint64(offset)).tolist()
    full = repeated_offset(offset, width, count)
    packed = []
    for start in range(0, layout.n_values, count):
        chunk = shifted[start : start + count]
        if len(chunk) < count:
            full = repeated_offset(offset, width, len(chunk))
        packed.append(gmpy2.pack(chunk, width) - full)
    return packed


def repeated_offset(offset: int, width: int, count: int) -> Any:
    """Return the same offset in each of `count` slots."""
    return gmpy2.pack([offset] * count, width)


def unpack_slots(plaintexts: Sequence[Any], modulus: Any, layout: SlotLayout) -> Any:
    """Read signed integers back from residues; None if one overflowed its slot."""
    width, count = layout.slot_bits, layout.slots_per_plaintext
    offset = 1 << layout.reply_bits
    full = repeated_offset(offset, width, count)
    slots: list[Any] = []
    left = layout.n_values
    for residue in plaintexts:
        here = min(count, left)
        if here < count:
            full = repeated_offset(offset, width, here)
        total = residue + full
        if total >= modulus:
            total -= modulus
        chunk = gmpy2.unpack(total, width)
        if len(chunk) > here:
            return None
        slots += chunk
        slots += [gmpy2.mpz(0)] * (here - len(chunk))
        left -= here
    if max(slots) >= 2 * offset:
        return None
    numbers = list(map(int, slots))
    if is_object(layout.bits_value_dtype):
        return np.array(numbers, dtype=object) - offset
    return (np.array(numbers, dtype=np.uint64) - np.uint64(offset)).view(np.int64)
