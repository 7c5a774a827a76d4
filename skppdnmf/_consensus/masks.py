"""Secret factors and dithers, drawn by the million."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._keystream import BLOCK_BYTES, KEY_BYTES, SLACK_BYTES, keystream
from .._lattice.parameters import LatticeLayout
from .._paillier.slots import SlotLayout

Floats = NDArray[np.float64]

MASK_BITS = 12  # of the masks of an exchange
LEAST_MASK = 0.1  # masks come from [0.1, 1] times the largest
# Mean of g_ij g_ji, both uniform on [0.1, 1].
MEAN_MASK_PRODUCT = 0.55**2
MEAN_SQUARED_MASK = 0.37  # of one of them: (1 - 0.1**3) / (3 * 0.9)
MOST_DRAWN_BITS = 12  # of a mask: one word of 32 bits serves for it and its dither
_WORD_BYTES = 4
_BLOCK_WORDS = BLOCK_BYTES // _WORD_BYTES
_WORDS = 2.0**32
# Words drawn at a time, whose intermediate results stay in the processor's cache.
_BLOCK = 32768
_ZEROS = memoryview(bytes(_WORD_BYTES * _BLOCK))


class MaskStream:
    """Random words for the masks of one edge: AES-128 in counter mode.

    Parameters
    ----------
    key : bytes or None, default=None
        16 bytes: from a seed where a study is to be reproducible, and by default
        from the operating system.

    Examples
    --------
    >>> from skppdnmf.exchange import MaskStream
    >>> one, same = MaskStream(bytes(16)), MaskStream(bytes(16))
    >>> bool((one.words(5) == same.words(5)).all())
    True
    >>> bool((MaskStream().words(5) == MaskStream().words(5)).all())
    False
    """

    def __init__(self, key: bytes | None = None) -> None:
        if key is None:
            key = secrets.token_bytes(KEY_BYTES)
        if len(key) != KEY_BYTES:
            raise ValueError(f"key has {len(key)} bytes, expected {KEY_BYTES}")
        self._key = key
        self._n_blocks = 0
        self._encryptor: Any = None

    @classmethod
    def from_seed(cls, seed: np.random.SeedSequence) -> MaskStream:
        """Return the stream of a seed."""
        return cls(seed.generate_state(KEY_BYTES // _WORD_BYTES, np.uint32).tobytes())

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_encryptor": None}  # it stays in its process

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def spawn(self, count: int) -> list[MaskStream]:
        """Return further streams, whose keys are drawn from this one."""
        n_words = KEY_BYTES // _WORD_BYTES
        return [MaskStream(self.words(n_words).tobytes()) for _ in range(count)]

    def words(self, size: int) -> NDArray[np.int32]:
        """Draw uniform 32-bit words.

        Parameters
        ----------
        size : int
            Their number.

        Returns
        -------
        ndarray of shape (size,), dtype int32
            Signed, which converts to floats in half the time.
        """
        if self._encryptor is None:
            nonce = self._n_blocks.to_bytes(BLOCK_BYTES, "big")
            self._encryptor = keystream(self._key, nonce)
        # Whole blocks of the cipher, so that a copy can go on from any draw.
        n_blocks = -(-size * _WORD_BYTES // BLOCK_BYTES)
        n_bytes = n_blocks * BLOCK_BYTES
        buffer = np.empty(n_bytes + SLACK_BYTES, dtype=np.uint8)
        if n_bytes <= len(_ZEROS):
            self._encryptor.update_into(_ZEROS[:n_bytes], buffer)
        else:
            for start in range(0, n_bytes, len(_ZEROS)):
                self._encryptor.update_into(_ZEROS[: n_bytes - start], buffer[start:])
        self._n_blocks += n_blocks
        return buffer[: size * _WORD_BYTES].view("<i4")


def draw_secrets(
    streams: Sequence[MaskStream], layout: SlotLayout | LatticeLayout
) -> tuple[Floats, Floats]:
    """Draw the secret factors and the dithers of a batch for each of several edges.

    Parameters
    ----------
    streams : sequence of n MaskStream
        One for each edge.
    layout : SlotLayout or LatticeLayout
        Says how many values there are, and whether one mask serves them all or each
        has its own.

    Returns
    -------
    masks : ndarray of shape (n, n_values), or (n, 1) under scalar masking
        Odd numbers G from `mask_range`, held by floats.
    dithers : ndarray of shape (n, n_values)
        Whole numbers within (-G/2, G/2), held by floats.

    Notes
    -----
    A random word w in [-2**31, 2**31) stands for ``x = n_masks * w / 2**32``. The
    whole number nearest to x selects the mask G, and x less this number, times G and
    rounded, is the dither. G is odd, so that as many dithers are below zero as above.
    This is exact in double precision. Masks are uniform up to a factor within
    ``1 +- 2**-21`` and dithers, for a given mask, up to one within ``1 +- 2**-9``.
    Under scalar masking the mask has a word of its own.

    Examples
    --------
    >>> from skppdnmf.exchange import MaskStream, SlotLayout, draw_secrets
    >>> layout = SlotLayout(1000, 24, 12, "entrywise", 2048)
    >>> masks, dithers = draw_secrets([MaskStream(), MaskStream()], layout)
    >>> masks.shape, bool((masks >= 413).all() and (masks <= 4093).all())
    ((2, 1000), True)
    >>> bool((2 * abs(dithers) < masks).all())
    True
    """
    n, size = len(streams), layout.n_values
    if n > 1 and n * size > _BLOCK:  # long rows one by one
        rows = [draw_secrets([stream], layout) for stream in streams]
        masks, dithers = (np.concatenate(part) for part in zip(*rows, strict=True))
        return masks, dithers
    draw = _draw_scalar if layout.masking == "scalar" else _draw_entrywise
    return draw(streams, size, *mask_range(layout.mask_bits))


def _draw_entrywise(
    streams: Sequence[MaskStream], size: int, least: int, most: int
) -> tuple[Floats, Floats]:
    """Draw a mask and a dither from each word."""
    n = len(streams)
    masks, dithers = np.empty((n, size)), np.empty((n, size))
    for start in range(0, size, _BLOCK):
        span = slice(start, start + _BLOCK)
        G, x = masks[:, span], dithers[:, span]
        for row, stream in zip(x, streams, strict=True):
            row[:] = stream.words(len(row))
        _split(x, least, most, out=G)
        x *= G
        np.rint(x, out=x)
    return masks, dithers


def _draw_scalar(
    streams: Sequence[MaskStream], size: int, least: int, most: int
) -> tuple[Floats, Floats]:
    """Draw a mask from the cipher's first block and a dither from each word after."""
    n = len(streams)
    masks, dithers = np.empty((n, 1)), np.empty((n, size))
    for start in range(0, size, _BLOCK):
        x = dithers[:, start : start + _BLOCK]
        ahead = 0 if start else _BLOCK_WORDS
        drawn = [stream.words(ahead + x.shape[1]) for stream in streams]
        if not start:
            masks[:, 0] = [words[0] for words in drawn]
            _split(masks, least, most, out=masks)
        x[:] = [words[ahead:] for words in drawn]
        # A little less: the least word must not lie halfway between dithers.
        x *= (1.0 - 1.0 / _WORDS) / _WORDS
        x *= masks
        np.rint(x, out=x)
    return masks, dithers


@lru_cache
def mask_range(mask_bits: int) -> tuple[int, int]:
    """Return the least and the largest mask, odd numbers.

    They are about 0.1 and 1 times ``2**mask_bits``. Both are 1 modulo 4 and their
    number is too, so that the one word that lies halfway between two masks, the
    least, is rounded to one of them, and its dither to one below half of it.

    Parameters
    ----------
    mask_bits : int
        At most `MOST_DRAWN_BITS`.

    Returns
    -------
    least, most : int

    Examples
    --------
    >>> from skppdnmf.exchange import mask_range
    >>> mask_range(12)
    (413, 4093)
    """
    mask_bits = int(mask_bits)
    if not 1 <= mask_bits <= MOST_DRAWN_BITS:
        raise ValueError(
            f"mask_bits={mask_bits} should be in 1 <= mask_bits <= {MOST_DRAWN_BITS} "
            "to be drawn"
        )
    least = -(-(1 << mask_bits) // round(1 / LEAST_MASK))
    least += (1 - least) % 4
    most = 1 << mask_bits
    return least, most - (most - least) % 8


def _split(words: Floats, least: int, most: int, out: Floats) -> None:
    """Turn signed words into masks and, in place, what is left for the dithers."""
    words *= ((most - least) // 2 + 1) / _WORDS
    if out is words:
        np.rint(words, out=words)
    else:
        np.rint(words, out=out)
        words -= out
    out *= 2.0
    out += 0.5 * (least + most)


def integer_secrets(
    stream: MaskStream, layout: SlotLayout | LatticeLayout
) -> tuple[int | NDArray[np.int64], NDArray[np.int64]]:
    """Draw the secret factors and the dithers of one reply, as ciphers take them.

    Parameters
    ----------
    stream : MaskStream
        That of the edge.
    layout : SlotLayout or LatticeLayout
        As in `draw_secrets`.

    Returns
    -------
    masks : int or ndarray of shape (n_values,)
        One mask under scalar masking.
    dither : ndarray of shape (n_values,)

    Examples
    --------
    >>> from skppdnmf.exchange import MaskStream, SlotLayout, integer_secrets
    >>> mask, dither = integer_secrets(
    ...     MaskStream(), SlotLayout(3, 24, 12, "scalar", 2048))
    >>> 410 <= mask <= 4096, dither.shape, dither.dtype
    (True, (3,), dtype('int64'))
    """
    masks, dithers = draw_secrets([stream], layout)
    whole = masks[0].astype(np.int64)
    mask = int(whole[0]) if layout.masking == "scalar" else whole
    return mask, dithers[0].astype(np.int64)


def draw_factors(streams: Sequence[MaskStream], n_values: int, masking: str) -> Floats:
    """Draw secret factors that are not rounded, for an exchange without encryption.

    Parameters
    ----------
    streams : sequence of n MaskStream
        One for each edge.
    n_values : int
        Values of a batch.
    masking : {"entrywise", "scalar"}
        Whether each value has its own factor.

    Returns
    -------
    ndarray of shape (n, n_values), or (n, 1) under scalar masking
        Uniform in [0.1, 1).

    Examples
    --------
    >>> from skppdnmf.exchange import MaskStream, draw_factors
    >>> factors = draw_factors([MaskStream()], 4, "entrywise")
    >>> factors.shape, bool((factors >= 0.1).all() and (factors < 1.0).all())
    ((1, 4), True)
    """
    size = n_values if masking == "entrywise" else 1
    factors = np.array([stream.words(size) for stream in streams], dtype=np.float64)
    factors *= (1.0 - LEAST_MASK) / _WORDS
    factors += LEAST_MASK + 0.5 * (1.0 - LEAST_MASK)
    return factors
