"""What the agents of the secure sum agree upon beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data.partition import LEAST_HOLDERS
from .._nmf.beta import beta_of
from .._nmf.penalties import Penalty, left_weight, right_penalty
from .accountant import Guarantee
from .key_graph import key_degree

# By default as many starts are followed as keep an exchange within these milliseconds,
# of all agents together, and megabytes, of a link to and fro.
_MOST_STARTS = 8
_DIVERGENCE_STARTS = 4
_MOST_MILLISECONDS = 40.0
_MOST_MEGABYTES = 4.0
# Of one core of the years around 2020: multiplications and additions of large matrices,
# and of coordinate descent, and bytes of masks, in a millisecond.
_MATRIX_SPEED = 1e7
_DESCENT_SPEED = 4e6
_MASK_SPEED = 4e6
# Passes over the left factor bring more than passes over the right one, which have
# fewer iterations to go in.
LEFT_SWEEPS = 8
# Of the square of mu: what W^T W gets of the totals', and the number of samples or of
# agents of all. There are far fewer agents, and their number needs more.
GRAM_SHARE = 0.12
COUNT_SHARE = {"sample": 0.0025, "agent": 0.03}


@dataclass(frozen=True)
class PathSettings:
    """What all agents have agreed upon; everything here is public.

    Parameters
    ----------
    n_agents, max_iter, tol, n_max
        As for `PrivateDistributedNMF`.
    right_penalty : Penalty
        On each sample's right factor.
    left_alpha, l1_ratio : float
        Penalty on the left factor.
    n_fixed : int, default=0
        Rows of the left factor, the first, that stay as they are.
    weighted : bool, default=False
        Whether samples have weights.
    missing : bool, default=False
        Whether entries may be missing.
    beta : float, default=2.0
        Of the divergence.
    extrapolates : bool, default=True
        Whether the left factor is extrapolated, under another divergence.
    remembers : bool, default=False
        Whether the last report holds the totals.
    auto_peers : int or None, default=None
        With how many others an agent shares a key, where the number of starts follows
        from what one costs; None where it is given.
    """

    n_agents: int
    max_iter: int
    tol: float
    n_max: float
    right_penalty: Penalty
    left_alpha: float
    l1_ratio: float
    n_fixed: int = 0
    weighted: bool = False
    missing: bool = False
    beta: float = 2.0
    extrapolates: bool = True
    remembers: bool = False
    auto_peers: int | None = None

    @property
    def exact(self) -> bool:
        """Whether nothing is rounded: an agent alone has no need to."""
        return self.n_agents == 1


@dataclass(frozen=True)
class NoiseSettings:
    """What all agents have agreed upon under differential privacy; public.

    Parameters
    ----------
    n_agents, max_iter, epsilon, delta, clip
        As for `PrivateDistributedNMF`.
    max_colluding : int
        Agents whose noise is not counted on.
    unit : {"sample", "agent"}, default="sample"
        Of what one more or less is hidden: a sample, or all samples of an agent.
    """

    n_agents: int
    max_iter: int
    epsilon: float
    delta: float
    clip: float
    max_colluding: int
    unit: str = "sample"

    @property
    def n_honest(self) -> int:
        """Agents whose noise together is enough."""
        return self.n_agents - self.max_colluding

    @property
    def guarantee(self) -> Guarantee:
        """What is promised."""
        count_share = COUNT_SHARE[self.unit]
        return Guarantee.of(self.epsilon, self.delta, GRAM_SHARE, count_share)


def noise_settings_of(estimator: Any, n_agents: int) -> NoiseSettings:
    """Return the estimator's parameters that fits with noise read.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters.
    n_agents : int
        Number of agents.

    Returns
    -------
    NoiseSettings

    Raises
    ------
    ValueError
        If there are too few agents, or too few who do not collude.
    """
    if n_agents < LEAST_HOLDERS:
        raise ValueError(
            f"epsilon={estimator.epsilon:g} with n_agents={n_agents}: noise is shared "
            f"among {LEAST_HOLDERS} agents or more"
        )
    most = estimator.max_colluding
    most = max(1, n_agents // 3) if most is None else int(most)
    if most >= n_agents:
        raise ValueError(
            f"max_colluding={most} should be < n_agents={n_agents}: somebody's noise "
            "must count"
        )
    return NoiseSettings(
        n_agents=n_agents,
        max_iter=int(estimator.max_iter),
        epsilon=float(estimator.epsilon),
        delta=float(estimator.delta),
        clip=float(estimator.clip),
        max_colluding=most,
        unit=estimator.privacy_unit,
    )


def count_fixed(estimator: Any) -> int:
    """Return how many components are known beforehand."""
    fixed = estimator.fixed_components
    return 0 if fixed is None else len(fixed)


def settings_of(
    estimator: Any,
    n_agents: int,
    n_features: int,
    weighted: bool = False,
    missing: bool = False,
) -> PathSettings:
    """Return the estimator's parameters that the secure sum reads.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters.
    n_agents, n_features : int
        Sizes.
    weighted, missing : bool, default=False
        Whether samples have weights, and whether entries may be missing.

    Returns
    -------
    PathSettings
    """
    return PathSettings(
        n_agents=n_agents,
        max_iter=int(estimator.max_iter),
        tol=float(estimator.tol),
        n_max=float(estimator.n_max),
        right_penalty=right_penalty(
            float(estimator.alpha_W), float(estimator.l1_ratio), n_features
        ),
        left_alpha=left_weight(estimator.alpha_W, estimator.alpha_H),
        l1_ratio=float(estimator.l1_ratio),
        n_fixed=count_fixed(estimator),
        weighted=weighted,
        missing=missing,
        beta=beta_of(estimator.beta_loss),
    )


class StartCost(NamedTuple):
    """What one start adds to an exchange, estimated.

    Parameters
    ----------
    milliseconds : float
        Of all agents together: masks, left factor and right factors.
    megabytes : float
        That a link carries, to and fro.
    """

    milliseconds: float
    megabytes: float

    @classmethod
    def of(
        cls,
        n_components: int,
        n_features: int,
        n_agents: int,
        n_peers: int,
        n_samples: int = 0,
    ) -> StartCost:
        """Estimate it from public numbers.

        Parameters
        ----------
        n_components, n_features, n_agents : int
            K, F and N.
        n_peers : int
            With how many others each agent shares a key.
        n_samples : int, default=0
            Of all agents, where they are counted.

        Returns
        -------
        StartCost

        Examples
        --------
        >>> from skppdnmf._secure_sum.settings import StartCost
        >>> cost = StartCost.of(20, 200, n_agents=20, n_peers=19, n_samples=200_000)
        >>> round(cost.milliseconds), round(cost.megabytes, 2)
        (378, 0.07)
        """
        K, F, N = n_components, n_features, n_agents
        n_bytes = 8 * (K * (K + 1) // 2 + K * F)
        left = 2 * LEFT_SWEEPS * K * K * F
        # H X^T, W^T X, W^T W and two sweeps over W.
        right = n_samples * K * (4 * F + 6 * K)
        masks = N * n_peers * n_bytes / _MASK_SPEED
        milliseconds = masks + N * left / _DESCENT_SPEED + right / _MATRIX_SPEED
        return cls(milliseconds, 2e-6 * n_bytes)


def count_starts(n_init: int | str, cost: StartCost) -> int:
    """Return how many random starts are followed side by side.

    Parameters
    ----------
    n_init : int or "auto"
        The estimator's.
    cost : StartCost
        Of one.

    Returns
    -------
    int
        Under "auto" 1 to 8, as many as keep to 40 ms of all agents together and to
        4 MB of a link in each exchange.

    Examples
    --------
    >>> from skppdnmf._secure_sum.settings import StartCost, count_starts
    >>> digits = StartCost.of(10, 64, 10, 9, 1797)
    >>> faces = StartCost.of(49, 361, 10, 9, 2429)
    >>> count_starts("auto", digits), count_starts("auto", faces)
    (8, 1)
    """
    if not isinstance(n_init, str):
        return int(n_init)
    within = min(
        _MOST_MILLISECONDS / cost.milliseconds, _MOST_MEGABYTES / cost.megabytes
    )
    return max(1, min(_MOST_STARTS, int(within)))


def plan_sums(
    estimator: Any, n_agents: int, n_components: int, n_features: int
) -> tuple[int, int]:
    """Return what the estimator's parameters come to for a federation of this size.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters.
    n_agents, n_components, n_features : int
        Sizes.

    Returns
    -------
    degree : int
        With how many others each agent shares a key.
    n_starts : int
        Starts that are followed side by side, at most; one where `init` gives it or
        each would have to share the noise.
    """
    degree = estimator.key_degree
    degree = key_degree(n_agents) if degree is None else int(degree)
    random = isinstance(estimator.init, str) and estimator.init == "random"
    if estimator.epsilon is not None or not random:
        return degree, 1
    if beta_of(estimator.beta_loss) != 2 and isinstance(estimator.n_init, str):
        # Multiplicative steps end where the start has them; few are left soon.
        return degree, _DIVERGENCE_STARTS
    cost = StartCost.of(n_components, n_features, n_agents, min(degree, n_agents - 1))
    return degree, count_starts(estimator.n_init, cost)


def random_starts(
    first: NDArray[np.float64], n_starts: int, seed: int
) -> NDArray[np.float64]:
    """Return the first start and others drawn as it was.

    Parameters
    ----------
    first : ndarray of shape (K, F)
        The common start.
    n_starts : int
        Number of starts.
    seed : int
        Public seed of the random start.

    Returns
    -------
    ndarray of shape (n_starts, K, F)
    """
    rng = np.random.RandomState(seed)
    drawn = np.abs(rng.standard_normal((n_starts, *first.shape)))
    drawn[0] = first
    return drawn


def noisy_start(estimator: Any, first: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the start of a fit with noise, which has few totals to go.

    Rows drawn at random point nearly the same way, and the more so the more features
    there are; their cubes less.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters.
    first : ndarray of shape (K, F)
        The common start.

    Returns
    -------
    ndarray of shape (K, F)
    """
    random = isinstance(estimator.init, str) and estimator.init == "random"
    return first**3 if random else first
