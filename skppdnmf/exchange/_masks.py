"""Secret factors and dithers, drawn by the million."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from ._slots import SlotLayout

_LEAST = 0.1  # masks come from [0.1, 1] times the largest
_MAX_FLOAT_BITS = 14  # up to here single precision floats draw with little bias
_BLOCK = 32768


def system_generator() -> np.random.Generator:
    """Return a numpy generator with a 256-bit seed from the operating system.

    Masks and dithers drawn from it depend on no seed that a program can fix. The
    generator expands its seed by numpy's Philox, which passes statistical tests but
    is not a cryptographic generator; keys and encryption noise never come from it.

    Returns
    -------
    numpy.random.Generator
        A fresh generator.

    Examples
    --------
    >>> from skppdnmf.exchange import system_generator
    >>> system_generator().integers(2) in (0, 1)
    True
    """
    return np.random.Generator(np.random.Philox(secrets.randbits(256)))


def _mask_dtype(mask_bits: int) -> Any:
    """Narrowest signed dtype that holds ``2**mask_bits``."""
    return np.int16 if mask_bits <= 14 else np.int32 if mask_bits <= 30 else np.int64


def draw_masks(rng: np.random.Generator, layout: SlotLayout, dtype: Any = None) -> Any:
    """Draw the secret factors of one batch.

    Parameters
    ----------
    rng : numpy.random.Generator
        Seeded for a reproducible study, or `system_generator`.
    layout : SlotLayout
        Says whether one mask serves the batch or every value has its own.
    dtype : dtype or None, default=None
        Of the array; by default the narrowest signed integer. A floating dtype
        holds the same integers, for arithmetic that converts less.

    Returns
    -------
    int or ndarray of shape (n_values,)
        Integers from ``0.1 * 2**mask_bits`` (rounded up) to ``2**mask_bits``, both
        included, uniform up to the bias that `draw_dither` states. An array has the
        narrowest signed dtype.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.exchange import SlotLayout, draw_masks
    >>> layout = SlotLayout(5, 24, 12, "entrywise", 2048)
    >>> masks = draw_masks(np.random.default_rng(0), layout)
    >>> masks.dtype, bool((masks >= 410).all() and (masks <= 4096).all())
    (dtype('int16'), True)
    """
    most = 1 << layout.mask_bits
    least = -(-most // round(1 / _LEAST))
    if layout.masking == "scalar":
        return int(rng.integers(least, most, endpoint=True))
    size = layout.n_values
    dtype = np.dtype(dtype or _mask_dtype(layout.mask_bits))
    if layout.mask_bits > _MAX_FLOAT_BITS:
        wide = rng.integers(least, most, size=size, dtype=np.int64, endpoint=True)
        return wide.astype(dtype, copy=False)
    masks = np.empty(size, dtype=dtype)
    for span in _blocks(size):
        drawn = _below(rng, span.stop - span.start, most - least + 1)
        drawn += np.float32(least)
        masks[span] = drawn
    return masks


def _below(rng: np.random.Generator, size: int, bounds: Any) -> np.ndarray:
    """Random integers in [0, bound), as single precision floats."""
    words = rng.bit_generator.random_raw(-(-size // 2)).view(np.uint32)[:size]
    words >>= np.uint32(8)
    uniform = words.astype(np.float32)
    # Exact: a power of two.
    uniform *= np.multiply(bounds, 2.0**-24, dtype=np.float32)
    return np.floor(uniform, out=uniform)


def _blocks(size: int) -> list[slice]:
    """Spans of arrays that stay in the processor's cache."""
    return [slice(start, min(start + _BLOCK, size)) for start in range(0, size, _BLOCK)]


def draw_dither(
    rng: np.random.Generator, masks: Any, layout: SlotLayout, dtype: Any = None
) -> np.ndarray:
    """Draw the dithers of one batch, uniform integers in (-G/2, G/2].

    Parameters
    ----------
    rng : numpy.random.Generator
        As in `draw_masks`.
    masks : int or ndarray of shape (n_values,) or (n, 1)
        The masks G of the batch; n of them, in a column, each serve a row of the
        result.
    layout : SlotLayout
        The layout the masks were drawn for.
    dtype : dtype or None, default=None
        As in `draw_masks`.

    Returns
    -------
    ndarray of shape (n_values,) or (n, n_values / n)
        In the narrowest signed dtype.

    Notes
    -----
    For ``mask_bits <= 14`` a random single precision float in [0, 1) is multiplied
    by G and rounded down; the probability of each integer is then off by a factor
    within ``1 +- G / 2**24``, at most ``2**-10``. The range is exact: the largest
    float below 1 times G rounds to a float below G. Wider masks take numpy's
    unbiased draw.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.exchange import SlotLayout, draw_dither
    >>> layout = SlotLayout(1000, 24, 12, "scalar", 2048)
    >>> dither = draw_dither(np.random.default_rng(0), 5, layout)
    >>> np.unique(dither)
    array([-2, -1,  0,  1,  2], dtype=int16)
    """
    size = layout.n_values
    dtype = np.dtype(dtype or _mask_dtype(layout.mask_bits))
    factors = np.asarray(masks)
    shape = (len(factors), -1) if factors.ndim == 2 else (size,)
    if layout.mask_bits > _MAX_FLOAT_BITS:
        full = np.broadcast_to(factors, np.empty(size).reshape(shape).shape)
        full = full.astype(np.int64)
        drawn = rng.integers(0, full, dtype=np.int64)
        return (drawn - (full - 1) // 2).astype(dtype)
    if factors.ndim == 2 and size <= _BLOCK:
        # One draw for short rows.
        flat = np.repeat(factors.ravel(), size // len(factors))
        return draw_dither(rng, flat, layout, dtype).reshape(shape)
    dither = np.empty(size, dtype=dtype).reshape(shape)
    # A column of masks serves rows, which are then the blocks.
    spans: Any = range(len(factors)) if factors.ndim == 2 else _blocks(size)
    for span in spans:
        here = factors[span] if factors.ndim else factors
        row = dither[span]
        drawn = _below(rng, len(row), here)
        # Single precision holds these integers exactly.
        half = np.multiply(here, np.float32(0.5), dtype=np.float32)
        half -= np.float32(0.5)
        drawn -= np.floor(half)
        row[...] = drawn
    return dither
