"""What the agents of a factorisation on shares agree upon beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._nmf.penalties import left_weight, right_penalty
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
    """

    sizes: tuple[int, ...]
    n_iterations: int
    n_side_by_side: int
    penalties: Penalties


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
    l1_ratio = float(estimator.l1_ratio)
    right = right_penalty(float(estimator.alpha_W), l1_ratio, n_features)
    left = left_weight(estimator.alpha_W, estimator.alpha_H) * sum(sizes)
    n_iterations = int(estimator.max_iter)
    return MpcSettings(
        sizes,
        n_iterations,
        -(-n_iterations // 4),
        Penalties(right.l1, right.l2, left * l1_ratio, left * (1.0 - l1_ratio)),
    )


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
