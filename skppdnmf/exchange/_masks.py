"""Secret factors and dithers, drawn by the million."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from ._slots import SlotLayout

_LEAST = 0.1  # masks come from [0.1, 1] times the largest
_WORD_BITS = 32
_MAX_SHIFT_BITS = 16  # up to here the bias of the multiply-shift is below 2**-16


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


def draw_masks(rng: np.random.Generator, layout: SlotLayout) -> Any:
    """Draw the secret factors of one batch.

    Parameters
    ----------
    rng : numpy.random.Generator
        Seeded for a reproducible study, or `system_generator`.
    layout : SlotLayout
        Says whether one mask serves the batch or every value has its own.

    Returns
    -------
    int or ndarray of shape (n_values,)
        Uniform integers from ``0.1 * 2**mask_bits`` (rounded up) to
        ``2**mask_bits``, both included. An array has the narrowest signed dtype.

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
    dtype = _mask_dtype(layout.mask_bits)
    return rng.integers(least, most, size=layout.n_values, dtype=dtype, endpoint=True)


def draw_dither(rng: np.random.Generator, masks: Any, layout: SlotLayout) -> np.ndarray:
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

    Returns
    -------
    ndarray of shape (n_values,) or (n, n_values / n)
        In the narrowest signed dtype.

    Notes
    -----
    For ``mask_bits <= 16`` a 32-bit random word is multiplied by G and shifted; the
    probability of each integer is then off by a factor within ``1 +- G / 2**32``,
    at most ``2**-16``. The range is exact. Wider masks take numpy's unbiased draw.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.exchange import SlotLayout, draw_dither
    >>> layout = SlotLayout(1000, 24, 12, "scalar", 2048)
    >>> dither = draw_dither(np.random.default_rng(0), 5, layout)
    >>> np.unique(dither)
    array([-2, -1,  0,  1,  2], dtype=int16)
    """
    dtype = _mask_dtype(layout.mask_bits)
    size = layout.n_values
    wide = layout.mask_bits > _MAX_SHIFT_BITS
    factors: Any = np.asarray(masks).astype(np.int64 if wide else dtype)
    shape = (len(factors), -1) if factors.ndim == 2 else (size,)
    if wide:
        full = np.broadcast_to(factors, np.empty(size).reshape(shape).shape)
        drawn = rng.integers(0, full, dtype=np.int64)
        return (drawn - (factors - 1) // 2).astype(dtype)
    raw = rng.integers(0, 2**64, size=-(-size // 2), dtype=np.uint64)
    product = raw.view(np.uint32)[:size].astype(np.uint64).reshape(shape)
    product *= factors.astype(np.uint64)
    product >>= np.uint64(_WORD_BITS)
    drawn = product.astype(dtype)
    drawn -= (factors - 1) >> 1
    return drawn
