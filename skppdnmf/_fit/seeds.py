"""The seeds of a fit, and the start that all agents share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from .._protocol import Seeds


def draw_seeds(random_state: Any) -> Seeds:
    """Draw all seeds at once, so that none depends on which others are used.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        The estimator's. With None masks have no seed, and come from the operating
        system, not from numpy's global generator.

    Returns
    -------
    Seeds
        One set.
    """
    rng = check_random_state(random_state)
    graph, start, *masks = rng.randint(0, 2**31 - 1, size=6).tolist()
    return Seeds(graph, start, None if random_state is None else masks)


def common_start(
    init: Any, n_components: int, n_features: int, seed: int, penalty_scaling: str
) -> NDArray[np.float64]:
    """Return the start of the left factor that all agents share.

    Parameters
    ----------
    init : {"random", "ones"} or ndarray of shape (K, F)
        Kind of start, or the start itself.
    n_components, n_features : int
        K and F.
    seed : int
        Public seed of the random start, independent of the data.
    penalty_scaling : {"data", "absolute"}
        Under "data" a given start is scaled by a power of two to entries around 1,
        the range that the fixed-point numbers are made for; the right factor takes
        up the scale.

    Returns
    -------
    ndarray of shape (K, F)
        Nonnegative, not all zero.
    """
    if isinstance(init, str):
        if init == "ones":
            return np.ones((n_components, n_features))
        rng = np.random.RandomState(seed)
        return np.abs(rng.standard_normal((n_components, n_features)))
    start = np.array(init, dtype=np.float64)
    if penalty_scaling == "data":
        start = np.ldexp(start, -round(math.log2(start[start > 0].mean())))
    return start
