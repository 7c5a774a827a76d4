"""Encrypts, answers and decrypts batches of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._integers import extrema, is_object
from .._payload import KINDS, REPLY, REQUEST
from ..exceptions import CorruptedMessageError
from .flood import draw_flood
from .keys import LatticePrivateKey, LatticePublicKey
from .noise import answer_noise
from .parameters import DEGREE, N_DATA_PRIMES, LatticeLayout, coefficient_primes
from .seal import Ring, ring


def _residues(values: np.ndarray, modulus: int) -> NDArray[np.int64]:
    """Return integers modulo a plaintext modulus."""
    if not is_object(values.dtype):
        low, high = extrema(values)
        if -modulus < low and high < modulus:  # no division is needed
            values = values.astype(np.int64)
            return values + (values < 0) * np.int64(modulus) if low < 0 else values
    return (values % modulus).astype(np.int64)


def _pieces(layout: LatticeLayout) -> list[slice]:
    """Say which values each polynomial holds."""
    return [
        slice(start, min(start + DEGREE, layout.n_values))
        for start in range(0, layout.n_values, DEGREE)
    ]


def encrypt(
    key: LatticePrivateKey, values: np.ndarray, layout: LatticeLayout
) -> list[bytes]:
    """Encrypt negated integers under one's own secret key.

    Parameters
    ----------
    key : LatticePrivateKey
        One's own.
    values : ndarray of shape (n_values,)
        Integers within the layout's bounds.
    layout : LatticeLayout
        The batch's.

    Returns
    -------
    list of bytes
        A ciphertext for each piece of the values and each plaintext modulus.
    """
    written = []
    for piece in _pieces(layout):
        for modulus in layout.moduli:
            here = ring(modulus)
            plain = here.encode(_residues(-values[piece], modulus))
            fresh = key.tools(modulus).encryptor.encrypt_symmetric(plain)
            written.append(here.write_seeded(fresh))
    return written


def respond(
    public: LatticePublicKey,
    request: Sequence[bytes],
    values: np.ndarray,
    masks: Any,
    dither: np.ndarray,
    layout: LatticeLayout,
) -> list[bytes]:
    """Compute ``G * (u_j - u_i) + dither`` on a neighbour's ciphertexts.

    Parameters
    ----------
    public : LatticePublicKey
        The neighbour's key.
    request : sequence of bytes
        The neighbour's ciphertexts of ``-u_i``.
    values, dither : ndarray of shape (n_values,)
        One's own integers and what is added to each answer.
    masks : int or ndarray of shape (n_values,)
        The secret factors.
    layout : LatticeLayout
        The request's.

    Returns
    -------
    list of bytes
        As many ciphertexts, in fewer primes.

    Raises
    ------
    CorruptedMessageError
        If SEAL reads no valid ciphertext.
    """
    own = values * masks + dither
    waiting = iter(request)
    written: list[bytes] = []
    for piece in _pieces(layout):
        part = masks if layout.masking == "scalar" else masks[piece]
        for modulus in layout.moduli:
            here = ring(modulus)
            asked = _read(here, next(waiting), REQUEST, len(written), layout)
            answer = masked(here, public, asked, part, own[piece], layout)
            here.evaluator.mod_switch_to_inplace(
                answer, here.levels[layout.n_kept_primes]
            )
            written.append(here.write(answer))
    return written


def masked(
    here: Ring,
    public: LatticePublicKey,
    asked: Any,
    masks: Any,
    own: np.ndarray,
    layout: LatticeLayout,
    flooded: bool = True,
) -> Any:
    """Mask one ciphertext, add the own part under fresh randomness, and flood.

    Without the flood only to show what it is good for.
    """
    modulus = here.plain_modulus
    noise = answer_noise(layout.plain_bits, layout.masking, layout.mask_bits)
    if layout.masking == "scalar":
        factor = here.constant(masks)
    else:
        factor = here.encode(_residues(masks, modulus))
    here.evaluator.multiply_plain_inplace(asked, factor)
    # Encrypted anew: the second polynomial would show the owner the mask.
    fresh = here.api.Ciphertext()
    public.encryptor(modulus).encrypt(here.encode(_residues(own, modulus)), fresh)
    here.evaluator.add_inplace(asked, fresh)
    if flooded:
        primes = coefficient_primes()[:N_DATA_PRIMES]
        rows = draw_flood(DEGREE, noise.flood_bits, primes)
        here.evaluator.add_inplace(asked, here.transparent(rows))
    return asked


def decrypt(
    key: LatticePrivateKey, reply: Sequence[bytes], layout: LatticeLayout
) -> np.ndarray:
    """Decrypt a neighbour's answers.

    Parameters
    ----------
    key : LatticePrivateKey
        One's own.
    reply : sequence of bytes
        The neighbour's ciphertexts.
    layout : LatticeLayout
        The batch's.

    Returns
    -------
    ndarray of shape (n_values,)
        Signed integers, int64 or Python integers as the layout says.

    Raises
    ------
    CorruptedMessageError
        If a ciphertext is none, hides nothing, or holds what no answer holds.
    """
    waiting = iter(reply)
    result = np.empty(layout.n_values, dtype=layout.bits_value_dtype)
    index = 0
    for piece in _pieces(layout):
        size = piece.stop - piece.start
        rows = []
        for modulus in layout.moduli:
            here = ring(modulus)
            answer = _read(here, next(waiting), REPLY, index, layout)
            index += 1
            plain = here.api.Plaintext()
            key.tools(modulus).decryptor.decrypt(answer, plain)
            numbers = here.decode(plain)
            if numbers[size:].any():
                raise CorruptedMessageError(
                    f"slots beyond the {size} values of ciphertext {index - 1} hold "
                    "numbers: another key's ciphertext, or no answer to this request"
                )
            rows.append(numbers[:size])
        result[piece] = combine(rows, layout)
    most = 1 << layout.reply_bits
    if bool((result >= most).any() or (result <= -most).any()):
        raise CorruptedMessageError(
            f"an answer exceeds {layout.reply_bits} bits: another key's ciphertext, or "
            "not an answer to this request"
        )
    return result


def combine(rows: Sequence[NDArray[np.int64]], layout: LatticeLayout) -> np.ndarray:
    """Put integers together from their residues, by Garner's method.

    Parameters
    ----------
    rows : sequence of n_moduli ndarray
        Residues, centred or not.
    layout : LatticeLayout
        Says the moduli.

    Returns
    -------
    ndarray
        The integers of least magnitude: Python's where there are several moduli.
    """
    if len(rows) == 1:
        return rows[0]
    total = rows[0].astype(object)
    product = layout.moduli[0]
    for row, modulus in zip(rows[1:], layout.moduli[1:], strict=True):
        inverse = pow(product, -1, modulus)
        total = total + product * ((row.astype(object) - total) * inverse % modulus)
        product *= modulus
    total %= product
    total[total > product // 2] -= product
    most = 1 << layout.reply_bits
    if not is_object(layout.bits_value_dtype):
        # Beyond an int64 is beyond an answer, too.
        total = np.array([min(max(one, -most), most) for one in total], dtype=np.int64)
    return total


def _read(here: Ring, data: bytes, kind: int, index: int, layout: LatticeLayout) -> Any:
    """Read one ciphertext, or refuse it by its number."""
    try:
        if kind == REQUEST:
            ciphertext = here.read_seeded(data)
        else:
            ciphertext = here.read(data, layout.n_kept_primes)
    except ValueError as error:
        raise CorruptedMessageError(
            f"ciphertext {index} of a {KINDS[kind]} is none of these parameters: "
            f"{error}"
        ) from error
    if ciphertext.is_transparent():
        raise CorruptedMessageError(
            f"ciphertext {index} of a {KINDS[kind]} is transparent: it hides nothing"
        )
    return ciphertext
