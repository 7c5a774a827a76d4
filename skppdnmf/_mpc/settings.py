"""What the agents of a factorisation on shares agree upon beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._nmf.penalties import left_penalty, left_weight, right_penalty
from .solver import Penalties

N_PARTIES = 3  # that compute
# Starts by default, where the product of the three sizes is at most this.
_STARTS, _SMALL = 4, 1 << 19


@dataclass(frozen=True)
class MpcSettings:
    """What all agents have agreed upon; everything here is public.

    Parameters
    ----------
    sizes : tuple of int
        Numbers of the agents' samples.
    n_iterations : int
        How many there are.
    n_side_by_side : int
        How many of them follow all starts.
    penalties : Penalties
        In units of the data.
    n_fixed : int, default=0
        How many components are known beforehand: the first rows of all starts.
    """

    sizes: tuple[int, ...]
    n_iterations: int
    n_side_by_side: int
    penalties: Penalties
    n_fixed: int = 0

    def fixed_of(self, starts: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the known components, if there are any."""
        return starts[0, : self.n_fixed] if self.n_fixed else None


def settings_of(estimator: Any, sizes: tuple[int, ...], n_features: int) -> MpcSettings:
    """Return the estimator's parameters that the computation reads.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters.
    sizes : tuple of int
        Numbers of the agents' samples.
    n_features : int
        F.

    Returns
    -------
    MpcSettings
    """
    penalties = penalties_of(
        float(estimator.alpha_W),
        estimator.alpha_H,
        float(estimator.l1_ratio),
        sum(sizes),
        n_features,
    )
    n_iterations = int(estimator.max_iter)
    fixed = estimator.fixed_components
    n_fixed = 0 if fixed is None else len(fixed)
    several = side_by_side(n_iterations)
    return MpcSettings(sizes, n_iterations, several, penalties, n_fixed)


def side_by_side(n_iterations: int) -> int:
    """Return how many iterations follow all starts."""
    return -(-n_iterations // 4)


def penalties_of(
    alpha_W: float,
    alpha_H: float | str,
    l1_ratio: float,
    n_samples: int,
    n_features: int,
) -> Penalties:
    """Return the weights of scikit-learn's penalties.

    Parameters
    ----------
    alpha_W, alpha_H, l1_ratio
        As for `PrivateDistributedNMF`.
    n_samples, n_features : int
        Sizes.

    Returns
    -------
    Penalties

    Examples
    --------
    >>> from skppdnmf._mpc.settings import penalties_of
    >>> penalties_of(0.5, "same", 0.5, 4, 2)
    Penalties(right_l1=0.5, right_l2=0.5, left_l1=1.0, left_l2=1.0)
    """
    right = right_penalty(alpha_W, l1_ratio, n_features)
    left = left_penalty(left_weight(alpha_W, alpha_H), l1_ratio, n_samples)
    return Penalties(right.l1, right.l2, left.l1, left.l2)


def count_starts(
    estimator: Any, n_samples: int, n_features: int, n_components: int
) -> int:
    """Return how many random starts are followed side by side.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters.
    n_samples, n_features, n_components : int
        Sizes.

    Returns
    -------
    int

    Examples
    --------
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf._mpc.settings import count_starts
    >>> count_starts(PrivateDistributedNMF(), 500, 64, 10)
    4
    """
    if not isinstance(estimator.init, str) or estimator.init != "random":
        return 1
    if not isinstance(estimator.n_init, str):
        return int(estimator.n_init)
    return _STARTS if n_samples * n_features * n_components <= _SMALL else 1
