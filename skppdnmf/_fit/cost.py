"""What a fit will cost, before it is run."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from sklearn.base import clone

from .._data.checks import check_start
from .._data.graph import Network, make_network
from .._data.partition import DEFAULT_N_AGENTS, split_samples
from .._numbers import python_count, with_python_numbers
from .._protocol import Setting
from .protocols import protocol_of
from .seeds import common_start, draw_seeds


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
        slots; with `epsilon`, and under "secure-sum" with ``n_init="auto"``, they are
        the most, as the number of totals, or of starts, follows from that of the
        samples, unless `partition` gives block sizes. `seconds` is 0 without
        encryption (`encryption` "simulated" or None, or `protocol` "secure-sum").

    Raises
    ------
    TypeError
        If `estimator` is not a `PrivateDistributedNMF`.
    ValueError
        If the graph or `n_features` is invalid.
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
    Under ``encryption="bfv"`` k is 8192 under either masking, and what is counted as
    exponentiations are encryptions, products, sums and decryptions of ciphertexts.

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
    n_features = python_count(n_features, "n_features")
    if n_components is not None:
        estimator = clone(estimator).set_params(n_components=n_components)
    estimator._validate_params()
    estimator = with_python_numbers(estimator)
    n_components, init = check_start(
        estimator.n_components, estimator.init, n_features, type(estimator).__name__
    )
    seeds = draw_seeds(estimator.random_state)
    network, n_samples = _federation_of(estimator, seeds.graph)
    protocol = protocol_of(estimator)
    start = common_start(
        init, n_components, n_features, seeds.start, protocol.start_scaling(estimator)
    )
    cost = protocol.cost(Setting(estimator, network, start, seeds), n_samples)
    return CostEstimate(*cost)


def count_agents(estimator: Any) -> int:
    """Return how many agents the estimator's parameters make, as far as they tell."""
    network, _ = _federation_of(estimator, draw_seeds(0).graph)
    return network.n_agents


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
            n_samples = max(1, sum(map(int, partition)))
        n_agents = split_samples(n_samples or 1000, partition).n_agents
    return make_network(estimator.adjacency, n_agents, seed), n_samples
