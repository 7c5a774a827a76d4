"""What the links of a secure sum tell someone who reads all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chisquare

from ..._agent import Envelope
from ..._secure_sum.messages import SumMessage
from .._views.sums import SumLetter
from .._views.transcript import Label, LinkView

MASKED = "masked sum"
# What words hold is far shorter than they are, so that their upper bits are those of
# the stream. So many in a row come again by chance once in 10**7 audits.
_UPPER_BITS, _IN_A_ROW = 20, 3
_COMMON = 0.1  # share
# Uniform bytes look less uniform than this about once in a million audits.
_RARE = 1e-6


def sum_letters(links: LinkView, victim: Label) -> list[SumLetter]:
    """Messages from one agent, or from all, in the order of sending."""
    letters = [
        letter
        for (sender, _), some in links.letters.items()
        for letter in some
        if victim is None or sender == victim
    ]
    return sorted(letters, key=lambda letter: letter.turn)


def masked_words(letters: list[SumLetter]) -> NDArray[np.uint64]:
    """Return the words of all masked sums."""
    return _words(letters, MASKED)


def word_bits(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return the bits of each word, a row each."""
    data = np.ascontiguousarray(words, dtype="<u8").view(np.uint8)
    return np.unpackbits(data).reshape(-1, 64).astype(float)


def describe_sums(letters: list[SumLetter]) -> dict[str, Any]:
    """Count, compare sizes and test for uniformity.

    Returns
    -------
    dict
        ``words`` under masks, how many are ``repeated``, all ``sizes`` for each kind
        and number of words and keys, for each kind with words the probability that
        ``uniform`` bytes look as uneven, ``in_clear``, the kinds whose bytes are not
        uniform: whoever reads the links can read them, and of the others
        ``same_stream``, the words under a part of a stream that comes again.
    """
    sizes: dict[tuple[str, int, int], set[int]] = {}
    for letter in letters:
        key = (letter.kind, letter.n_words, letter.n_keys)
        sizes.setdefault(key, set()).add(letter.n_bytes)
    kinds = sorted({letter.kind for letter in letters if letter.n_words})
    uniform = {kind: _p_uniform(_words(letters, kind)) for kind in kinds}
    again = {kind: _under_same_stream(_words(letters, kind)) for kind in kinds}
    in_clear = [
        kind
        for kind in kinds
        # Under a stream that comes again words are uneven, too.
        if uniform[kind] < _RARE and (not again[kind] or _short(_words(letters, kind)))
    ]
    words = masked_words(letters)
    return {
        "words": len(words),
        "repeated": len(words) - len(np.unique(words)),
        "sizes": {key: sorted(some) for key, some in sizes.items()},
        "uniform": uniform,
        "in_clear": in_clear,
        "same_stream": sum(n for kind, n in again.items() if kind not in in_clear),
    }


def _short(words: NDArray[np.uint64]) -> bool:
    """Return whether many words have the same upper bits, as bare numbers have."""
    _, counts = np.unique(words >> np.uint64(64 - _UPPER_BITS), return_counts=True)
    return bool(counts.max() > _COMMON * len(words))


def _under_same_stream(words: NDArray[np.uint64]) -> int:
    """Count words whose upper bits, and those of the next ones, were there before."""
    upper = words >> np.uint64(64 - _UPPER_BITS)
    runs = np.zeros(max(0, len(upper) - _IN_A_ROW + 1), dtype=np.uint64)
    for place in range(_IN_A_ROW):
        runs <<= np.uint64(_UPPER_BITS)
        runs |= upper[place : place + len(runs)]
    return len(runs) - len(np.unique(runs))


def _words(letters: list[SumLetter], kind: str) -> NDArray[np.uint64]:
    """Return the words of all messages of a kind."""
    envelopes = [
        Envelope.from_bytes(letter.data) for letter in letters if letter.kind == kind
    ]
    parts = [
        SumMessage.from_bytes(one.body, one.kind, one.round).words for one in envelopes
    ]
    return np.concatenate([np.empty(0, dtype=np.uint64), *parts])


def _p_uniform(words: NDArray[np.uint64]) -> float:
    """Probability that uniform bytes look as uneven, the worst of the eight places."""
    by_place = np.ascontiguousarray(words, dtype="<u8").view(np.uint8).reshape(-1, 8)
    # Sixteenths: each is met often enough in a short fit, too.
    p = [
        float(chisquare(np.bincount(place >> 4, minlength=16)).pvalue)
        for place in by_place.T
    ]
    return min(1.0, 8 * min(p))
