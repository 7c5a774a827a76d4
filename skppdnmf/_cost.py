"""What a fit will cost: counted from formulas, timed by a short calibration."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from ._agent import AgentSettings
from ._assembly import common_start, draw_seeds, make_settings
from ._averaging import N_VALUES, VALUE_BITS
from ._network import Network, make_network
from ._partition import DEFAULT_N_AGENTS
from .exceptions import CostWarning
from .exchange import (
    BARE_MESSAGE_BYTES,
    MASK_BITS,
    PaillierCipher,
    SlotLayout,
    draw_dither,
    draw_masks,
    message_sizes,
    new_keypair,
    public_bytes,
    starting_bits,
)

LONG_FIT_SECONDS = 600.0
# Fits below this by the rough measure are not worth a calibration.
_SHORT_FIT_SECONDS = 60.0
# Seconds that worker processes take to start and to import what they need.
_PROCESSES_START = 4.0
# Slots of this many values are enough to time; repeated until the clock is sure.
_CALIBRATION_SECONDS = 0.25
# Seconds per value and directed edge that no machine in use exceeds at 2048 bits.
_SLOW_VALUE = 2e-3


class Work(NamedTuple):
    """Ciphertext operations of a fit.

    Parameters
    ----------
    exchanges : int
        Exchanges of the left factor.
    encryptions : int
        Ciphertexts that agents make for their requests.
    replies : int
        Ciphertexts that agents make for their replies; as many are decrypted.
    powers : int
        Ciphertexts raised to a mask.
    ciphertexts, bytes : int
        What crosses the links.
    values : int
        Values times directed edges times exchanges.
    """

    exchanges: int
    encryptions: int
    replies: int
    powers: int
    ciphertexts: int
    bytes: int
    values: int


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
    """

    exchanges: int
    ciphertexts: int
    exponentiations: int
    bytes: int
    seconds: float


class Expectation(NamedTuple):
    """Seconds of a fit, and joblib's kind of backend with which it takes them."""

    seconds: float
    backend: str


class UnitTimes(NamedTuple):
    """Seconds of one operation on one ciphertext, and of an agent's set-up."""

    encryption: float
    reply: float
    decryption: float
    setup: float


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
        slots. `seconds` is 0 without encryption (`encryption` "simulated" or None).

    Raises
    ------
    ValueError
        If the graph or `n_features` is invalid.
    OverflowError
        If a value does not fit the key.

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
    if n_features < 1:
        raise ValueError(f"n_features={n_features} should be at least 1")
    seeds = draw_seeds(check_random_state(estimator.random_state))
    network = make_network(estimator.adjacency, _count_agents(estimator), seeds.graph)
    init = estimator.init
    if not isinstance(init, str):
        init = np.asarray(init, dtype=float)
        n_components = len(init)
    if n_components is None:
        n_components = estimator.n_components
    if n_components == "auto":
        n_components = n_features
    start = common_start(
        init, int(n_components), n_features, seeds.start, estimator.penalty_scaling
    )
    settings = make_settings(network, **agent_parameters(estimator))
    work = count_work(network, settings, start, estimator.encryption)
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
        "max_iter": int(estimator.max_iter),
        "max_admm_iter": int(estimator.max_admm_iter),
        "tol": float(estimator.tol),
        "right_alpha": float(estimator.alpha_W),
        "left_alpha": float(estimator.alpha_W if same else estimator.alpha_H),
        "l1_ratio": float(estimator.l1_ratio),
    }


def _count_agents(estimator: Any) -> int | None:
    """Agents by the graph, or by the partition where the graph is generated."""
    if not isinstance(estimator.adjacency, str):
        return None
    partition = estimator.partition
    if partition is None:
        return DEFAULT_N_AGENTS
    return partition if isinstance(partition, int) else len(partition)


def _left_layout(settings: AgentSettings, start: NDArray[np.float64]) -> SlotLayout:
    """Slots with which the left factor's exchange starts."""
    return SlotLayout(
        start.size,
        starting_bits(start, settings.n_max),
        MASK_BITS,
        settings.masking,
        settings.key_size,
    )


def count_work(
    network: Network,
    settings: AgentSettings,
    start: NDArray[np.float64],
    encryption: str | None,
) -> Work:
    """Count the operations of a fit that runs all its iterations.

    Parameters
    ----------
    network : Network
        The graph.
    settings : AgentSettings
        Common to all agents.
    start : ndarray of shape (K, F)
        Common start of the left factor.
    encryption : {"paillier", "simulated"} or None
        Kind of cipher.

    Returns
    -------
    Work
        Simulated ciphertexts count as real ones.
    """
    exchanges = settings.max_iter * settings.max_admm_iter
    n_edges = 2 * network.n_edges
    averaged = settings.penalty_scaling == "data" and network.n_agents > 1
    rounds = settings.averaging.n_rounds if averaged else 0
    spreading = settings.leader_eccentricity if averaged else 0
    batches: list[tuple[int, SlotLayout | None, int]] = [
        (rounds, None, N_VALUES),
        (exchanges if n_edges else 0, None, start.size),
    ]
    if encryption is not None and n_edges:
        average = SlotLayout(
            N_VALUES, VALUE_BITS, MASK_BITS, "scalar", settings.key_size
        )
        batches = [
            (rounds, average, N_VALUES),
            (exchanges, _left_layout(settings, start), start.size),
        ]
    encryptions = replies = powers = ciphertexts = n_bytes = 0
    for repeats, layout, n_values in batches:
        sizes = message_sizes(layout, n_values)
        encryptions += repeats * network.n_agents * sizes.request_ciphertexts
        replies += repeats * n_edges * sizes.reply_ciphertexts
        powers += repeats * n_edges * sizes.request_ciphertexts
        ciphertexts += (
            repeats * n_edges * (sizes.request_ciphertexts + sizes.reply_ciphertexts)
        )
        n_bytes += repeats * n_edges * (sizes.request_bytes + sizes.reply_bytes)
    n_bytes += spreading * n_edges * BARE_MESSAGE_BYTES
    if encryption is not None:
        key_bytes = BARE_MESSAGE_BYTES + public_bytes(settings.key_size)
        n_bytes += n_edges * key_bytes
    return Work(
        exchanges if n_edges else 0,
        encryptions,
        replies,
        powers,
        ciphertexts,
        n_bytes,
        exchanges * n_edges * start.size,
    )


def time_work(
    work: Work,
    network: Network,
    settings: AgentSettings,
    start: NDArray[np.float64],
    n_jobs: int | None,
) -> Expectation:
    """Return how long the ciphertexts of a fit take on this machine.

    Parameters
    ----------
    work : Work
        The operations.
    network, settings, start
        As in `count_work`.
    n_jobs : int or None
        As for joblib.

    Returns
    -------
    Expectation
        Seconds, and where the agents had best run.
    """
    times = calibrate(_left_layout(settings, start))
    jobs = min(effective_n_jobs(n_jobs), network.n_agents, os.cpu_count() or 1)
    locked = work.encryptions * times.encryption
    free = work.replies * times.decryption
    # A scalar mask is one long operation, which lets other threads run; entrywise
    # ones are many short ones, which do not.
    if settings.masking == "entrywise":
        locked += work.replies * times.reply
    else:
        free += work.replies * times.reply
    setup = network.n_agents * times.setup
    threads = locked + free / jobs + setup
    if jobs == 1:
        return Expectation(threads, "threads")
    # Every process makes the tables of all keys that it meets.
    processes = (locked + free) / jobs + setup + _PROCESSES_START
    if processes < threads:
        return Expectation(processes, "processes")
    return Expectation(threads, "threads")


def calibrate(layout: SlotLayout) -> UnitTimes:
    """Time the operations on a few ciphertexts under a fresh key.

    Parameters
    ----------
    layout : SlotLayout
        Of the left factor's exchange; only its slots and key size matter.

    Returns
    -------
    UnitTimes
        Seconds per ciphertext of each operation; a reply's includes its share of
        raising the request to the masks. The set-up is an agent's key and tables.
    """
    started = time.perf_counter()
    private = new_keypair(layout.key_size)[1]
    few = SlotLayout(
        2 * layout.slots_per_plaintext,
        layout.value_bits,
        layout.mask_bits,
        layout.masking,
        layout.key_size,
    )
    cipher = PaillierCipher(private)
    rng = np.random.default_rng(0)
    values = np.zeros(few.n_values, dtype=few.bits_value_dtype)
    masks = draw_masks(rng, few)
    dither = draw_dither(rng, masks, few)
    arguments = (values, masks, dither, few)
    request = cipher.request(values, few)
    cipher.open(cipher.reply(cipher.public, request, *arguments), few)
    setup = time.perf_counter() - started

    def seconds(call: Any, *args: Any) -> float:
        """Mean time of a call."""
        count, begun = 0, time.perf_counter()
        while (passed := time.perf_counter() - begun) < _CALIBRATION_SECONDS:
            call(*args)
            count += 1
        return passed / count

    reply = cipher.reply(cipher.public, request, *arguments)
    return UnitTimes(
        seconds(cipher.request, values, few) / few.n_request_ciphertexts,
        seconds(cipher.reply, cipher.public, request, *arguments)
        / few.n_reply_ciphertexts,
        seconds(cipher.open, reply, few) / few.n_reply_ciphertexts,
        setup,
    )


def expect(
    network: Network,
    settings: AgentSettings,
    start: NDArray[np.float64],
    encryption: str | None,
    n_jobs: int | None,
) -> Expectation:
    """Return what to expect of a fit, measured only where it may be long."""
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
    faster = ['encryption="simulated" (the same result, for studies)']
    if settings.masking == "entrywise":
        faster.append('masking="scalar" (protects less)')
    if jobs < (os.cpu_count() or 1):
        faster.append(f"n_jobs={os.cpu_count()}")
    faster += [
        "a joblib cluster backend",
        "fewer exchanges (max_iter)",
        "fewer components",
    ]
    warnings.warn(
        f"this fit is expected to take {seconds / 60:.0f} minutes of encryption; "
        f"faster would be: {', '.join(faster)}",
        CostWarning,
        stacklevel=5,
    )
