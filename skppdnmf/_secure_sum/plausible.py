"""Whether a total can be the sum of what agents add that keep to the protocol.

Masks of agents that have been told different things do not cancel: the total is noise,
which no check here lets through. A total that is not noise but false may pass: what an
agent's own samples say nobody else can check.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import CorruptedTotalError
from .limbs import N_LIMBS

Array = NDArray[np.float64]

# Samples of all agents, each of which adds less than this to a limb of a total.
_MOST_SAMPLES = 1 << 31
_LIMB = 1 << 33
# What double precision makes of sums of exact numbers is far less.
_ROUNDING = 1e-6
# Noise goes beyond so many standard deviations about once in 10**22 entries.
NOISE_DEVIATIONS = 10.0


def check_limbs(name: str, limbs: NDArray[np.uint64], n_samples: int) -> None:
    """Refuse a total of limbs that so many samples cannot have.

    Parameters
    ----------
    name : str
        What the total is of.
    limbs : ndarray of uint64
        The total.
    n_samples : int
        Samples of all agents.

    Raises
    ------
    CorruptedTotalError
        If so.

    Examples
    --------
    >>> from skppdnmf._secure_sum.limbs import to_limbs
    >>> from skppdnmf._secure_sum.plausible import check_limbs
    >>> check_limbs("||X||^2", to_limbs([2.0, 3.0]), 2)
    """
    if not n_samples < _MOST_SAMPLES:
        raise CorruptedTotalError(
            f"the total of the numbers of samples is {n_samples}, which is not below "
            f"{_MOST_SAMPLES}; {WHY}"
        )
    largest = int(limbs.max(initial=0))
    if largest > n_samples * _LIMB:
        raise CorruptedTotalError(
            f"the total of {name} has a word of {largest}, more than {n_samples} "
            f"samples can have; {WHY}"
        )


def check_setup(words: NDArray[np.uint64]) -> None:
    """Refuse a first total that no agents can have: norms, numbers, weights."""
    n_samples = int(words[N_LIMBS])
    check_limbs("||X||^2", words[:N_LIMBS], n_samples)
    check_limbs("the weights", words[N_LIMBS + 1 :], n_samples)


def check_totals(
    gram: Array,
    products: Array,
    most: float,
    squared_norm: float | None = None,
    *,
    noise: tuple[float, float] = (0.0, 0.0),
    signed: bool = False,
) -> None:
    """Refuse totals that cannot be of any nonnegative samples and right factors.

    Parameters
    ----------
    gram : ndarray of shape (S, K, K)
        ``A = W^T W``; symmetric, of which only one half is sent.
    products : ndarray of shape (S, K, F)
        ``B = W^T X``.
    most : float
        What an entry of the diagonal of A is at most, by the agreed ``||X||^2`` or,
        under noise, by the bound on each sample.
    squared_norm : float or None, default=None
        ``||X||^2``; None where it is not known.
    noise : (float, float), default=(0.0, 0.0)
        What noise or rounding may add to an entry of A, and of B.
    signed : bool, default=False
        Whether B may be negative: it is of residuals.

    Raises
    ------
    CorruptedTotalError
        If an entry is not finite, the diagonal or B negative, an entry off the
        diagonal too large for the two on it (Cauchy-Schwarz), or the trace larger than
        the samples allow.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._secure_sum.plausible import check_totals
    >>> W, X = np.ones((4, 2)), np.ones((4, 3))
    >>> check_totals((W.T @ W)[None], (W.T @ X)[None], most=4.0, squared_norm=12.0)
    """
    gram_noise, product_noise = noise
    diagonal = np.einsum("skk->sk", gram)
    _refuse(~np.isfinite(gram), gram, "A", "is not finite")
    _refuse(~np.isfinite(products), products, "B", "is not finite")
    _refuse(diagonal < -gram_noise, diagonal, "the diagonal of A", "is negative")
    asymmetric = gram != gram.transpose(0, 2, 1)
    _refuse(asymmetric, gram, "A", "differs from its mirror image")
    limit = most * (1.0 + _ROUNDING) + gram_noise
    reason = f"exceeds {limit:.6g}, which the samples allow in the trace"
    _refuse(diagonal > limit, diagonal, "the diagonal of A", reason)
    root = np.sqrt(np.maximum(diagonal, 0.0) + gram_noise)
    limits = root[:, :, None] * root[:, None, :] * (1.0 + _ROUNDING) + gram_noise
    reason = "exceeds the root of the product of its two on the diagonal"
    _refuse(np.abs(gram) > limits, gram, "A", reason)
    if signed:
        return
    _refuse(products < -product_noise, products, "B", "is negative")
    if squared_norm is not None:
        allowed = root * np.sqrt(squared_norm) * (1.0 + _ROUNDING) + product_noise
        # Squares of what data of any scale make would not fit into a double.
        largest = np.abs(products).max(axis=2, initial=0.0)
        shape = products / np.where(largest > 0, largest, 1.0)[:, :, None]
        lengths = largest * np.sqrt(np.einsum("skf,skf->sk", shape, shape))
        reason = "exceeds what ||X||^2 and the diagonal of A allow"
        _refuse(lengths > allowed, lengths, "the length of a row of B", reason)


WHY = (
    "an agent has sent what it must not, or agents have been told different totals or "
    "members, so that their masks do not cancel"
)


def _refuse(wrong: Any, values: Array, name: str, reason: str) -> None:
    """Name the first entry that cannot be."""
    if wrong.any():
        place = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise CorruptedTotalError(
            f"the total of {name} is {values[place]:.6g} in start {place[0]}, entry "
            f"{list(place[1:])}: it {reason}; {WHY}"
        )
