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

MASKINGS = ("scalar", "entrywise")
MAX_MASK_BITS = 62  # a mask fits into int64
MAX_VALUE_BITS = 4096
EXACT_BITS = 53  # integers up to 2**53 are exact in a float64
_SIGN_BITS = 1
_GUARD_BITS = 1  # lets the owner notice an answer that overflowed its slot
_SECRET = ("masks", "dither")  # their values stand in no message


def slot_width(value_bits: int, mask_bits: int) -> int:
    """Bits of one slot: a doubled value, a mask, the sign and the guard."""
    return value_bits + 1 + mask_bits + _SIGN_BITS + _GUARD_BITS


def _positive_int(name: str, value: Any) -> int:
    """Check a count; numpy integers pass, booleans do not."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}={value!r} should be an integer")
    if value < 1:
        raise ValueError(f"{name}={value} should be >= 1")
    return int(value)


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
            object.__setattr__(self, name, _positive_int(name, getattr(self, name)))
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


def as_integers(values: Any, n_values: int, name: str) -> np.ndarray:
    """Return a 1-D array of integers (a signed or unsigned dtype, or object)."""
    array = np.asarray(values)
    if array.shape != (n_values,):
        raise ValueError(f"{name} has shape {array.shape}, expected ({n_values},)")
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind == "O":
        for value in array:
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                found = type(value).__name__ if name in _SECRET else repr(value)
                raise TypeError(f"{name} should hold integers, got {found}")
        return array
    raise TypeError(f"{name} should hold integers, got dtype {array.dtype}")


def extrema(array: np.ndarray) -> tuple[int, int]:
    """Smallest and largest entry as Python integers."""
    return int(np.minimum.reduce(array)), int(np.maximum.reduce(array))


def is_object(dtype: np.dtype) -> bool:
    """Whether numbers of this dtype are Python integers."""
    return dtype.kind == "O"


def _cast(array: np.ndarray, layout: SlotLayout) -> np.ndarray:
    """Convert to the layout's dtype once the bounds have been checked."""
    if array.dtype == layout.bits_value_dtype:
        return array
    if is_object(layout.bits_value_dtype):
        return np.array([int(value) for value in array], dtype=object)
    return array.astype(layout.bits_value_dtype)


def check_values(values: Any, layout: SlotLayout, name: str = "values") -> np.ndarray:
    """Return the values in the layout's dtype, or raise if one breaks the promise."""
    array = as_integers(values, layout.n_values, name)
    low, high = extrema(array)
    if -low >> layout.value_bits > 0 or high >> layout.value_bits > 0:
        worst = high if high >= -low else low
        raise OverflowError(
            f"{name} holds {worst}, beyond the limit |u| <= {2**layout.value_bits - 1} "
            f"(value_bits={layout.value_bits})"
        )
    return _cast(array, layout)


def check_masks(masks: Any, layout: SlotLayout) -> Any:
    """Return one Python integer (scalar) or a signed integer array (entrywise)."""
    limit = 1 << layout.mask_bits
    array = None
    if layout.masking == "entrywise":
        array = as_integers(masks, layout.n_values, "masks")
        low, high = extrema(array)
    elif isinstance(masks, bool) or not isinstance(masks, int | np.integer):
        raise TypeError(
            "masks should be one integer under masking='scalar', got "
            f"{type(masks).__name__}"
        )
    else:
        low = high = int(masks)
    if low < 1 or high > limit:
        raise OverflowError(
            f"a mask lies outside 1 <= G <= {limit} (mask_bits={layout.mask_bits})"
        )
    if array is None:
        return high
    # Narrow signed masks may stay so; unsigned ones would wrap or become floats.
    if array.dtype.kind == "i" and not is_object(layout.bits_value_dtype):
        return array
    return _cast(array, layout)


def check_dither(dither: Any, masks: Any, layout: SlotLayout) -> np.ndarray:
    """Return the dither if every entry lies in (-G/2, G/2], or raise."""
    array = as_integers(dither, layout.n_values, "dither")
    low, high = extrema(array)
    half = 1 << (layout.mask_bits - 1)
    if -half <= low and high <= half:
        array = _cast(array, layout)
        if layout.masking == "scalar":
            outside = 2 * low <= -masks or 2 * high > masks
        else:
            twice = array + array
            wrong = (twice > masks) | (twice <= -masks)
            outside = bool(wrong.any())
        if not outside:
            return array
    raise OverflowError(
        f"a dither lies outside (-G/2, G/2] (mask_bits={layout.mask_bits})"
    )


def answer(values: Any, request: Any, masks: Any, dither: Any) -> np.ndarray:
    """Compute what the owner decrypts, ``G * (u_j - u_i) + dither``."""
    result = np.add(values, request)
    result *= masks
    result += dither
    return result


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
