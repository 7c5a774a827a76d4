"""What a fit will cost, before it is run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._consensus.build import common_start, draw_seeds, make_settings
from .._consensus.settings import AgentSettings
from .._data.checks import check_start
from .._data.graph import Network, make_network
from .._data.partition import DEFAULT_N_AGENTS, split_samples
from .._paillier.keys import valid_key_size
from .._secure_sum.build import plan_sums
from .._secure_sum.key_graph import check_key_degree
from .._secure_sum.totals import FixedPoint
from .._warn import warn_user
from ..exceptions import CostWarning
from .timing import Expectation, time_work
from .work import Work, count_sum_work, count_work, left_layout

LONG_FIT_SECONDS = 600.0
# Fits below this by the rough measure are not worth a calibration.
_SHORT_FIT_SECONDS = 60.0
# Seconds per value and directed edge that no machine in use exceeds at 2048 bits.
_SLOW_VALUE = 2e-3


@dataclass(frozen=True)
class CostEstimate:
    """The expected cost of a fit that runs all its iterations.

    Parameters
    ----------
    exchanges : int
        Exchanges of the left factor between neighbours.
    ciphertexts : int
        Ciphertexts sent over all links.
    exponentiations : int
        Encryptions, blindings, powers by a mask and decryptions.
    bytes : int
        Bytes sent over all links.
    seconds : float
        Time of the encrypted exchange on this machine, with the estimator's
        `n_jobs`; local algebra, which encryption dwarfs, is not in it.

    Examples
    --------
    >>> from skppdnmf import PrivateDistributedNMF, estimate_cost
    >>> cost = estimate_cost(PrivateDistributedNMF(5, protocol="secure-sum"), 30)
    >>> cost.exchanges, cost.ciphertexts
    (60, 0)
    """

    exchanges: int
    ciphertexts: int
    exponentiations: int
    bytes: int
    seconds: float


def estimate_cost(
    estimator: Any, n_features: int, n_components: int | None = None
) -> CostEstimate:
    """Estimate what ``estimator.fit`` will cost, before it is run.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With the parameters to be used. The agents are counted from `adjacency` or
        `partition`; the random graph is the one that `fit` would draw if
        `random_state` is an int.
    n_features : int
        Number of features of the data.
    n_components : int or None, default=None
        Number of components; by default the estimator's.

    Returns
    -------
    CostEstimate
        Exchanges, ciphertexts, exponentiations, bytes and seconds if all
        iterations are run. Counts are exact unless the left factor outgrows its
        slots. `seconds` is 0 without encryption (`encryption` "simulated" or None,
        or `protocol` "secure-sum").

    Raises
    ------
    TypeError
        If `estimator` is not a `PrivateDistributedNMF`.
    ValueError
        If the graph or `n_features` is invalid, or `key_size` does not fit
        `key_scheme`.
    OverflowError
        If a value does not fit the key or, under "secure-sum", a total 64 bits.
        The latter depends on the number of samples: `n_max` is checked as in `fit`
        if `partition` gives block sizes, and is not checked otherwise.

    Notes
    -----
    With N agents, E directed edges, V = K n_features values, k slots in a plaintext
    and T rounds of averaging (one ciphertext each way), X = max_iter max_admm_iter
    exchanges cost, per exchange, N V encryptions under entrywise masks (N ceil(V/k)
    under scalar ones), and for each directed edge ceil(V/k) replies and decryptions.

    Examples
    --------
    >>> from skppdnmf import PrivateDistributedNMF, estimate_cost
    >>> estimator = PrivateDistributedNMF(10, partition=5, encryption="simulated")
    >>> estimate_cost(estimator, n_features=64).exchanges
    300
    """
    # By what is read of it: its class is of a layer above this one.
    if not hasattr(estimator, "protocol") or not hasattr(estimator, "adjacency"):
        raise TypeError(
            f"expected a PrivateDistributedNMF, got a {type(estimator).__name__}"
        )
    if not isinstance(n_features, Integral) or n_features < 1:
        raise ValueError(f"n_features={n_features!r} should be an integer, 1 or more")
    if n_components is not None:
        estimator = clone(estimator).set_params(n_components=n_components)
    estimator._validate_params()
    n_components, init = check_start(
        estimator.n_components, estimator.init, n_features, type(estimator).__name__
    )
    seeds = draw_seeds(estimator.random_state)
    network, n_samples = _federation_of(estimator, seeds.graph)
    start = common_start(
        init, n_components, n_features, seeds.start, estimator.penalty_scaling
    )
    if estimator.protocol == "secure-sum":
        work = _sum_work(estimator, network, n_samples, n_components, n_features)
        return CostEstimate(work.exchanges, 0, 0, work.bytes, 0.0)
    settings = make_settings(network, **agent_parameters(estimator))
    work = count_work(network, settings, start, estimator.encryption)
    if estimator.encryption is not None and network.n_agents > 1:
        valid_key_size(settings.key_size, settings.key_scheme)
    seconds = 0.0
    if estimator.encryption == "paillier" and network.n_agents > 1:
        expected = time_work(work, network, settings, start, estimator.n_jobs)
        seconds = expected.seconds
    return CostEstimate(
        work.exchanges,
        work.ciphertexts,
        work.encryptions + 2 * work.replies + work.powers,
        work.bytes,
        seconds,
    )


def _sum_work(
    estimator: Any,
    network: Network,
    n_samples: int | None,
    n_components: int,
    n_features: int,
) -> Work:
    """Count what the secure sum sends."""
    degree, n_starts = plan_sums(estimator, network.n_agents, n_components, n_features)
    check_key_degree(network.n_agents, degree)
    fixed_point = FixedPoint(
        n_components,
        n_features,
        # Alone, an agent does not round.
        1.0 if network.n_agents == 1 else float(estimator.n_max),
        with_sums=estimator.alpha_W > 0 and estimator.l1_ratio > 0,
    )
    if n_samples is not None:
        fixed_point.check(n_samples)
    words = fixed_point.words_per_start
    return count_sum_work(network, words, n_starts, int(estimator.max_iter))


def agent_parameters(estimator: Any) -> dict[str, Any]:
    """Return the estimator's parameters that all agents share, as they use them."""
    same = estimator.alpha_H == "same"
    return {
        "mu": float(estimator.mu),
        "eta": float(estimator.eta),
        "g_max": float(estimator.g_max),
        "penalty_scaling": estimator.penalty_scaling,
        "update": estimator.update,
        "masking": estimator.masking,
        "n_max": None if estimator.encryption is None else float(estimator.n_max),
        "key_size": int(estimator.key_size),
        "key_scheme": estimator.key_scheme,
        "max_iter": int(estimator.max_iter),
        "max_admm_iter": int(estimator.max_admm_iter),
        "tol": float(estimator.tol),
        "right_alpha": float(estimator.alpha_W),
        "left_alpha": float(estimator.alpha_W if same else estimator.alpha_H),
        "l1_ratio": float(estimator.l1_ratio),
    }


def _federation_of(estimator: Any, seed: int) -> tuple[Network, int | None]:
    """Return the graph, and the number of samples where block sizes tell it."""
    partition = estimator.partition
    n_samples = None
    if partition is None:
        n_agents = (
            None if not isinstance(estimator.adjacency, str) else DEFAULT_N_AGENTS
        )
    elif isinstance(partition, Integral):
        # Enough samples for any number of agents.
        n_agents = split_samples(max(1, int(partition)), partition).n_agents
    else:
        if all(isinstance(block, Integral) for block in partition):
            n_samples = max(1, int(sum(partition)))
        n_agents = split_samples(n_samples or 1000, partition).n_agents
    return make_network(estimator.adjacency, n_agents, seed), n_samples


def expect(
    network: Network,
    settings: AgentSettings,
    start: NDArray[np.float64],
    encryption: str | None,
    n_jobs: int | None,
) -> Expectation:
    """Return what to expect of a fit, measured only where it may be long."""
    if encryption is not None and network.n_agents > 1:
        left_layout(settings, start)  # simulated keys refuse what real ones do
        valid_key_size(settings.key_size, settings.key_scheme)
    if encryption != "paillier" or network.n_agents == 1:
        return Expectation(0.0, "threads")
    work = count_work(network, settings, start, encryption)
    rough = work.values * _SLOW_VALUE * (settings.key_size / 2048) ** 2
    if rough < _SHORT_FIT_SECONDS:
        return Expectation(rough, "threads")
    return time_work(work, network, settings, start, n_jobs)


def warn_if_long(seconds: float, settings: AgentSettings, jobs: int) -> None:
    """Warn before a fit that is expected to take more than ten minutes."""
    if seconds <= LONG_FIT_SECONDS:
        return
    faster = [
        'protocol="secure-sum" (which also protects more)',
        'encryption="simulated" (the same result, for studies)',
    ]
    if settings.masking == "entrywise":
        faster.append('masking="scalar" (protects less)')
    if jobs < (os.cpu_count() or 1):
        faster.append(f"n_jobs={os.cpu_count()}")
    faster += [
        "a joblib cluster backend",
        "fewer exchanges (max_iter)",
        "fewer components",
    ]
    warn_user(
        f"this fit is expected to take {seconds / 60:.0f} minutes of encryption; "
        f"faster would be: {', '.join(faster)}",
        CostWarning,
    )
