"""Secure multi-party computation, as a fit meets it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._agent import Report
from .._data.graph import Network
from .._data.partition import Partition
from .._nmf.admm import squared_norm, squared_residual
from .._nmf.nnls import solve_nnls
from .._nmf.penalties import Penalty, right_penalty
from .._protocol import Computed, Cost, Link, Plan, Setting, Watch
from .._warn import warn_user
from ..exceptions import CostWarning
from .cost import computation, links, shared_bytes
from .engine import (
    Simulator,
    account_of,
    factorised,
    inputs_of,
    make_programs,
    require_spu,
)
from .plain import PlainRun
from .privacy import privacy_messages
from .ranges import check_ranges, check_result
from .settings import N_PARTIES, MpcSettings, count_starts, settings_of
from .solver import components_of

PROTOCOL_CODE = 3
# Numbers in the products of an iteration, all starts together, for a second of two
# cores: measured by benchmarks/bench_mpc.py, and the seconds of its rounds.
_PER_SECOND, _ROUNDS_SECOND, _COMPILING = 2.5e6, 0.03, 3.0
_LONG = 600.0
_REASON = (
    "; how far one sample can move the components of a fit has no useful bound, so "
    "that noise on them, added once, would drown them"
)


class MpcProtocol:
    """The whole factorisation on secret shares; only the components are opened."""

    name = "mpc"
    code = PROTOCOL_CODE
    has_agents = False
    agrees = True
    adds_noise = False
    sums = False
    fixes = True
    no_noise = _REASON

    def start_scaling(self, estimator: Any) -> str:
        """Return how a given start is scaled: to entries around 1."""
        return "data"

    def privacy(
        self, estimator: Any, network: Network, partition: Partition, n_components: int
    ) -> list[str]:
        """Return what the parameters protect less than a user may believe."""
        return privacy_messages(estimator, partition, n_components)

    def plan(self, setting: Setting) -> Plan:
        """Return a fit, ready to be run, or refuse it."""
        estimator, network = setting.estimator, setting.network
        require_spu()
        check_parties(estimator, network.n_agents)
        n_init = estimator.n_init
        random = isinstance(estimator.init, str) and estimator.init == "random"
        if not isinstance(n_init, str) and n_init > 1 and not random:
            warn_user(
                f"n_init={n_init} although init gives the one start; it is followed "
                "alone",
                RuntimeWarning,
            )

        def run(parts: Sequence[Any], names: Sequence[str], watch: Watch) -> Computed:
            return _simulated(setting, parts, watch)

        return Plan(None, setting.start[None], "threads", None, run=run)

    def check_data(self, setting: Setting, X: Any) -> None:
        """Refuse data whose numbers the ring might not hold."""
        K, F = setting.start.shape
        check_ranges(X.shape[0], F, K)

    def warn_of_cost(self, setting: Setting, plan: Plan) -> None:
        """Say nothing here: what it takes depends on the number of samples."""

    def cost(self, setting: Setting, n_samples: int | None) -> Cost:
        """Return what a fit sends; `exchanges` are rounds of the parties."""
        if n_samples is None:
            raise ValueError(
                'protocol="mpc": what a fit costs depends on the number of samples; '
                "give block sizes as partition"
            )
        estimator = setting.estimator
        K, F = setting.start.shape
        check_ranges(n_samples, F, K)
        sizes = _sizes(estimator.partition)
        settings = settings_of(estimator, tuple(size for size in sizes if size), F)
        n_starts = count_starts(estimator, n_samples, F, K)
        n_agents = setting.network.n_agents
        sent = computation(settings, F, K, n_starts)
        n_bytes = sent.bytes + sum(
            n_bytes for _, _, _, n_bytes in _inputs_and_result(sizes, F, K, n_agents)
        )
        seconds = _seconds(settings, F, K, n_starts)
        return Cost(sent.rounds, 0, 0, n_bytes, seconds)

    def encrypts(self, estimator: Any) -> bool:
        """Return False: shares do without ciphertexts."""
        return False

    def protects(self, estimator: Any) -> bool:
        """Return True: links carry shares."""
        return True

    def in_clear(self, estimator: Any) -> bool:
        """Return False: links carry shares."""
        return False

    def protection(self, estimator: Any) -> str:
        """Return what a fit has protected, and what not, in a few sentences."""
        return (
            "Protected, as long as no two of the three agents collude: everything but "
            "the components. Not protected: what the components tell, of small pools "
            "above all."
        )

    def advice(self, estimator: Any) -> str:
        """Return nothing else."""
        return ""

    def remarks(self, estimator: Any, reports: Sequence[Report | None]) -> list[str]:
        """Return nothing: nobody sees how far the iteration has come."""
        return []


def _sizes(partition: Any) -> tuple[int, ...]:
    """Return block sizes, which `n_samples` is only known from."""
    return tuple(int(size) for size in partition)


def check_parties(estimator: Any, n_agents: int) -> None:
    """Refuse fewer agents than compute, and parameters that cannot go with shares.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters.
    n_agents : int
        How many there are.

    Raises
    ------
    ValueError
        If there are fewer than three, fits are to go on without one, or there are
        known components and penalties.
    """
    if n_agents < N_PARTIES:
        raise ValueError(
            f'n_agents={n_agents} with protocol="mpc": {N_PARTIES} agents '
            "compute, of whom no two collude; one that computes need not hold "
            "samples"
        )
    if estimator.on_dropout != "raise":
        raise ValueError(
            f'on_dropout={estimator.on_dropout!r} with protocol="mpc": the shares '
            "of one that computes are lost with it"
        )
    penalised = estimator.alpha_W or (estimator.alpha_H != "same" and estimator.alpha_H)
    if estimator.fixed_components is not None and penalised:
        raise ValueError(
            f"fixed_components with alpha_W={estimator.alpha_W:g}, alpha_H="
            f'{estimator.alpha_H!r} and protocol="mpc": beside known components '
            "penalties depend on the scale of the data, which stays secret there"
        )


def common_starts(setting: Setting, n_samples: int) -> NDArray[np.float64]:
    """Return the starts that all agents share.

    Parameters
    ----------
    setting : Setting
        The fit's public facts.
    n_samples : int
        Of all agents.

    Returns
    -------
    ndarray of shape (S, K, F)
    """
    K, F = setting.start.shape
    n_starts = count_starts(setting.estimator, n_samples, F, K)
    fixed = setting.estimator.fixed_components
    n_fixed = 0 if fixed is None else len(fixed)
    return random_starts(setting.start, n_starts, setting.seeds.start, n_fixed)


def random_starts(
    first: NDArray[np.float64], n_starts: int, seed: int, n_fixed: int = 0
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
    n_fixed : int, default=0
        How many components are known beforehand, the first rows of all starts.

    Returns
    -------
    ndarray of shape (S, K, F)
    """
    rng = np.random.RandomState(seed)
    drawn = np.abs(rng.standard_normal((n_starts, *first.shape)))
    drawn[0] = first
    drawn[:, :n_fixed] = first[:n_fixed]
    return drawn


def _seconds(
    settings: MpcSettings, n_features: int, n_components: int, n_starts: int
) -> float:
    """Return about how long a fit takes in one process, on two cores."""
    size = sum(settings.sizes) * n_features * n_components
    several = settings.n_side_by_side if n_starts > 1 else 0
    n_iterations = settings.n_iterations + several * (n_starts - 1)
    return _COMPILING + n_iterations * (_ROUNDS_SECOND + 2.0 * size / _PER_SECOND)


def _inputs_and_result(
    sizes: Sequence[int], n_features: int, n_components: int, n_agents: int
) -> list[Link]:
    """Return what is sent for the shares of the samples, and for the result."""
    sent = []
    for i, size in enumerate(sizes):
        if size:
            n_bytes = shared_bytes(size * n_features + 1)
            sent += [Link(i, j, 2, n_bytes) for j in range(N_PARTIES) if j != i]
    n_bytes = shared_bytes(n_components * n_features)
    for j in range(N_PARTIES):
        sent += [Link(j, i, 1, n_bytes) for i in range(n_agents) if i != j]
    return sent


def _simulated(setting: Setting, parts: Sequence[Any], watch: Watch) -> Computed:
    """Run all parties in this process."""
    estimator = setting.estimator
    K, F = setting.start.shape
    dense = [part.toarray() if sparse.issparse(part) else part for part in parts]
    holders = [part for part in dense if part.shape[0]]
    sizes = tuple(part.shape[0] for part in dense)
    settings = settings_of(estimator, tuple(map(len, holders)), F)
    starts = common_starts(setting, sum(sizes))
    seconds = _seconds(settings, F, K, len(starts))
    if seconds > _LONG:
        warn_user(
            f"about {seconds / 60:.0f} minutes on two cores; less are n_init=1, fewer "
            "iterations or fewer samples",
            CostWarning,
        )
    programs = make_programs(settings, starts)
    sent = computation(settings, F, K, len(starts))
    ends = _inputs_and_result(sizes, F, K, len(parts))
    plain = PlainRun(holders, starts, settings)
    X = np.concatenate(holders)
    norm = squared_norm(X)
    account: dict[str, int] = {}

    def report(iteration: int, H: NDArray[np.float64], final: bool) -> Report:
        rounds = sent.rounds * iteration // settings.n_iterations
        kept = {"opened": dict(account)} if final else None
        return Report(iteration, rounds, H, np.nan, True, final, kept)

    def after(iteration: int) -> bool:
        error = plain.advance()
        if iteration == settings.n_iterations:
            return False
        n_bytes = sent.bytes * iteration // settings.n_iterations
        # Of the observer, who alone knows anything before the end.
        one = report(iteration, plain.components, False)
        return watch([one] * len(parts), n_bytes, error)

    with Simulator() as simulator:
        for i, part in enumerate(holders):
            samples, exponent = inputs_of(part)
            simulator.share(f"samples {i}", samples)
            simulator.share(f"exponent {i}", exponent)
        opened = factorised(simulator, programs, settings, after)
        account.update(account_of(simulator.opened))
    check_result(opened["left"])
    fixed = settings.fixed_of(starts)
    H = components_of(opened["left"][0], opened.get("scale"), X.size, fixed)
    penalty = right_penalty(float(estimator.alpha_W), float(estimator.l1_ratio), F)
    n_iterations = plain.n_iterations
    error = _error(X, H, penalty, norm)
    n_bytes = sent.bytes + sum(link.n_bytes for link in ends)
    last = [report(n_iterations, H, True)] * len(parts)
    watch(last, n_bytes, error)
    over = [Link(i, j, *counts) for (i, j), counts in links(sent).items()]
    return Computed(last, [*over, *ends])


def _error(
    X: NDArray[Any], H: NDArray[np.float64], penalty: Penalty, norm: float
) -> float:
    """Return the error of the components, relative to the data."""
    W = solve_nnls(X, H, *penalty)
    return float(np.sqrt(squared_residual(X, W, H) / (norm or 1.0)))
