"""What one agent, and one link, sees of the secure sum."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


class SumLetter(NamedTuple):
    """One message of the secure sum as a link carried it.

    Parameters
    ----------
    turn : int
        When it was sent; all messages of a turn are sent at the same time.
    sender, receiver : label
        Labels of the agents.
    kind : str
        ``"public keys, up"``, ``"public keys, down"``, ``"masked sum"``,
        ``"total"``, or, after a dropout, ``"last total, up"`` and ``"last total,
        down"``.
    epoch, step : int
        Dropouts so far, and the sum that the message belongs to.
    n_words, n_keys : int
        The other numbers of its header.
    n_bytes : int
        Its size on a wire.
    data : bytes
        Exactly the bytes, header included.
    """

    turn: int
    sender: Hashable
    receiver: Hashable
    kind: str
    epoch: int
    step: int
    n_words: int
    n_keys: int
    n_bytes: int
    data: bytes


@dataclass(frozen=True)
class Sum:
    """One secure sum as one agent saw it.

    Parameters
    ----------
    step : int
        0 is the setup, n the n-th iteration.
    epoch : int
        Dropouts before it.
    words : ndarray of uint64
        The agent's own summand.
    masks : ndarray of uint64
        What it added to the summand, modulo 2**64.
    point : ndarray of shape (S, K, F) or None
        The left factors for which it solved its right factors; the same for every
        agent. None in the setup.
    right : ndarray of shape (S, K, n_i) or None
        Its right factors, transposed.
    total : ndarray of uint64 or None
        The total that it learnt; None if the sum was given up.
    """

    step: int
    epoch: int
    words: Words
    masks: Words
    point: NDArray[np.float64] | None
    right: NDArray[np.float64] | None
    total: Words | None
