"""Integer noise of differential privacy: discrete Gaussians, drawn exactly.

The sampler is that of Canonne, Kamath and Steinke (NeurIPS 2020, Algorithms 1 to 3) in
whole numbers throughout, for many draws at once: no logarithm or root of floating point
leaves a trace in the lowest bits, and nothing is rounded.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
# Returns so many uniform words of 64 bits.
Source = Callable[[int], NDArray[np.uint64]]

# Of the standard deviation, so that a draw and all on the way to it fit 63 bits.
LARGEST_SCALE = 1 << 50
_WORD_BYTES = 8


def os_words(n_words: int) -> NDArray[np.uint64]:
    """Return words from the operating system's randomness.

    Parameters
    ----------
    n_words : int
        How many.

    Returns
    -------
    ndarray of uint64, shape (n_words,)
    """
    return np.frombuffer(secrets.token_bytes(_WORD_BYTES * n_words), dtype=np.uint64)


def discrete_gaussian(scale: int, size: int, source: Source = os_words) -> Integers:
    """Draw integers k with probability proportional to ``exp(-k^2 / (2 scale^2))``.

    Parameters
    ----------
    scale : int
        The parameter sigma, 1 or more; the standard deviation to within rounding.
    size : int
        How many.
    source : callable, default=os_words
        Where randomness comes from.

    Returns
    -------
    ndarray of int64, shape (size,)

    Raises
    ------
    ValueError
        If the scale is not between 1 and `LARGEST_SCALE`.

    Examples
    --------
    >>> from skppdnmf._secure_sum.noise import discrete_gaussian
    >>> draws = discrete_gaussian(1000, 10_000)
    >>> bool(950 < draws.std() < 1050)
    True
    """
    if not 1 <= scale <= LARGEST_SCALE:
        raise ValueError(f"scale={scale} should be between 1 and {LARGEST_SCALE}")
    drawn: list[Integers] = []
    missing = size
    while missing > 0:
        # A little more than two in five proposals are taken.
        some = _proposals(scale, 2 * missing + missing // 2 + 16, source)[:missing]
        drawn.append(some)
        missing -= len(some)
    return np.concatenate(drawn) if drawn else np.empty(0, dtype=np.int64)


def _proposals(scale: int, size: int, source: Source) -> Integers:
    """Draw from the discrete Laplace distribution and keep what the Gaussian takes."""
    low = _uniform(scale, size, source)
    low = low[_bernoulli_exp(low, scale, source)]
    high = _geometric(len(low), source)
    negative = _uniform(2, len(low), source) == 1
    once = ~(negative & (low == 0) & (high == 0))  # zero has no sign
    low, high, negative = low[once], high[once], negative[once]
    # To be taken with probability exp(-(y - scale)^2 / (2 scale^2)) for the magnitude
    # y = low + scale * high, whose square is split up so that no factor is large.
    rest = np.where(high == 0, scale - low, low)
    taken = _bernoulli_exp_half_square(rest, scale, source)
    further = np.maximum(high - 1, 0)
    taken &= _all_of(further, lambda i: _bernoulli_exp(low[i], scale, source))
    taken &= _all_of(further**2, lambda i: _bernoulli_exp_half(len(i), source))
    whole = low + scale * high
    return np.where(negative, -whole, whole)[taken]


def _uniform(bound: int, size: int, source: Source) -> Integers:
    """Draw integers from 0 to below a bound."""
    largest = np.uint64((1 << 64) // bound * bound - 1)
    drawn = np.empty(size, dtype=np.uint64)
    missing = np.arange(size)
    while missing.size:
        words = source(missing.size)
        drawn[missing] = words % np.uint64(bound)
        missing = missing[words > largest]
    return drawn.astype(np.int64)


def _alternate(
    size: int, trial: Callable[[int, NDArray[np.intp]], Booleans]
) -> Booleans:
    """Return True with probability ``exp(-g)``; trial k succeeds with ``g / k``."""
    result = np.zeros(size, dtype=bool)
    going = np.arange(size)
    k = 1
    while going.size:
        passed = trial(k, going)
        result[going[~passed]] = k % 2 == 1
        going = going[passed]
        k += 1
    return result


def _bernoulli_exp(part: Integers, whole: int, source: Source) -> Booleans:
    """Return True with probability ``exp(-part / whole)``, 0 <= part <= whole."""

    def trial(k: int, going: NDArray[np.intp]) -> Booleans:
        passed = _uniform(whole, going.size, source) < part[going]
        return passed & (_uniform(k, going.size, source) == 0)

    return _alternate(len(part), trial)


def _bernoulli_exp_half_square(part: Integers, whole: int, source: Source) -> Booleans:
    """Return True with probability ``exp(-(part / whole)^2 / 2)``."""

    def trial(k: int, going: NDArray[np.intp]) -> Booleans:
        passed = _uniform(whole, going.size, source) < part[going]
        passed &= _uniform(whole, going.size, source) < part[going]
        return passed & (_uniform(2 * k, going.size, source) == 0)

    return _alternate(len(part), trial)


def _bernoulli_exp_half(size: int, source: Source) -> Booleans:
    """Return True with probability ``exp(-1/2)``."""
    return _alternate(size, lambda k, going: _uniform(2 * k, going.size, source) == 0)


def _geometric(size: int, source: Source) -> Integers:
    """Draw v with probability proportional to ``exp(-v)``."""
    drawn = np.zeros(size, dtype=np.int64)
    going = np.arange(size)
    while going.size:
        passed = _alternate(
            going.size, lambda k, left: _uniform(k, left.size, source) == 0
        )
        going = going[passed]
        drawn[going] += 1
    return drawn


def _all_of(counts: Integers, draw: Callable[[NDArray[np.intp]], Booleans]) -> Booleans:
    """Return whether so many independent draws all come out True."""
    result = np.ones(len(counts), dtype=bool)
    going = np.flatnonzero(counts > 0)
    done = 0
    while going.size:
        passed = draw(going)
        result[going[~passed]] = False
        done += 1
        going = going[passed & (counts[going] > done)]
    return result
