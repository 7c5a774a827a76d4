"""The secure sum, as a fit meets it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._agent import Agent, Report
from .._data.graph import Network
from .._data.partition import LEAST_HOLDERS, Partition
from .._nmf.observed import zero_filled
from .._protocol import Cost, Hooks, Plan, Setting
from .._warn import warn_user
from .beta_totals import BetaNumbers
from .build import make_sum_agents
from .cost import count_bytes, count_bytes_of
from .key_graph import check_key_degree
from .messages import PROTOCOL_CODE
from .noisy_totals import NoisyTotals, count_totals
from .privacy import privacy_messages
from .settings import (
    NoiseSettings,
    PathSettings,
    StartCost,
    count_fixed,
    count_starts,
    noise_settings_of,
    noisy_start,
    plan_sums,
    random_starts,
    settings_of,
)
from .totals import FixedPoint


class SecureSumProtocol:
    """Network-wide totals under pairwise masks."""

    name = "secure-sum"
    code = PROTOCOL_CODE
    has_agents = True
    agrees = True
    adds_noise = True
    sums = True
    fixes = True
    no_noise = ""

    def start_scaling(self, estimator: Any) -> str:
        """Return how a given start is scaled: to entries around 1."""
        return "data"

    def privacy(
        self, estimator: Any, network: Network, partition: Partition, n_components: int
    ) -> list[str]:
        """Return what the parameters protect less than a user may believe."""
        if estimator.epsilon is not None:
            return []  # the noise hides what small pools and few holders do not
        return privacy_messages(estimator, partition, n_components)

    def plan(self, setting: Setting) -> Plan:
        """Return a fit, ready to be run, or refuse it."""
        estimator, network, start = setting.estimator, setting.network, setting.start
        unused = np.flatnonzero(~start.any(axis=1))
        if unused.size and setting.memory is None:
            raise ValueError(
                f"init has rows without a positive entry: {unused[:5].tolist()}; under "
                f'protocol="{self.name}" these components would stay zero'
            )
        settings: PathSettings | NoiseSettings
        if estimator.epsilon is None:
            settings = settings_of(
                estimator,
                network.n_agents,
                start.shape[1],
                setting.weighted,
                setting.missing,
            )
        else:
            settings = noise_settings_of(estimator, network.n_agents)
        degree, n_starts = plan_sums(estimator, network.n_agents, *start.shape)
        if setting.memory is not None:
            n_starts = 1
        elif not isinstance(estimator.n_init, str) and estimator.n_init > n_starts:
            reason = "init gives the one start; it"
            if estimator.epsilon is not None:
                reason = "starts would have to share the noise; one"
            warn_user(
                f"n_init={estimator.n_init} although {reason} is followed alone",
                RuntimeWarning,
            )
        if isinstance(settings, PathSettings):
            adapts = isinstance(estimator.n_init, str) and n_starts > 1
            settings = replace(
                settings,
                remembers=setting.remembers,
                auto_peers=degree if adapts else None,
            )
        starts = random_starts(start, n_starts, setting.seeds.start)
        if isinstance(settings, PathSettings):
            starts[:, : settings.n_fixed] = start[: settings.n_fixed]
        if isinstance(settings, NoiseSettings):
            starts = noisy_start(estimator, start)[None]

        def build(
            parts: Sequence[Any],
            names: Sequence[str],
            run: bytes,
            hooks: Hooks,
            numbers: Sequence[int] | None = None,
        ) -> list[Agent]:
            if isinstance(settings, PathSettings) and settings.beta == 2:
                # Of all that are here; all check it once more when the sum is known.
                n_samples = sum(part.shape[0] for part in parts)
                FixedPoint.of(settings, *start.shape).check(n_samples)
            return list(
                make_sum_agents(
                    parts,
                    names,
                    network,
                    starts,
                    settings,
                    degree,
                    setting.seeds.start,
                    run,
                    hooks.compute,
                    hooks.recorder,
                    numbers,
                    hooks.credentials,
                    setting.memory,
                    hooks.share,
                    hooks.together,
                )
            )

        return Plan(settings, starts, "threads", estimator.on_dropout, build)

    def check_data(self, setting: Setting, X: Any) -> None:
        """Refuse a start with rows that no sample would ever use."""
        if setting.memory is not None:
            return
        used = np.asarray(zero_filled(X).sum(axis=0)).ravel() > 0
        dead = np.flatnonzero(~setting.start[:, used].any(axis=1))
        dead = dead[dead >= count_fixed(setting.estimator)]
        if dead.size and used.any():
            raise ValueError(
                f"init has rows whose positive entries all lie on features that are "
                f"zero in X: {dead[:5].tolist()}; under "
                f'protocol="{self.name}" these components would stay unused'
            )

    def warn_of_cost(self, setting: Setting, plan: Plan) -> None:
        """Say nothing: sums cost about what copying does."""

    def cost(self, setting: Setting, n_samples: int | None) -> Cost:
        """Return what a fit sends; `n_max` is checked where the samples are counted."""
        estimator, network, start = setting.estimator, setting.network, setting.start
        if estimator.epsilon is not None:
            return self._noisy_cost(setting, n_samples)
        settings = settings_of(estimator, network.n_agents, start.shape[1])
        degree, n_starts = plan_sums(estimator, network.n_agents, *start.shape)
        check_key_degree(network.n_agents, degree)
        numbers: FixedPoint | BetaNumbers
        if settings.beta != 2:
            numbers = BetaNumbers(settings, *start.shape)
        else:
            numbers = FixedPoint.of(settings, *start.shape)
            if n_samples is not None:
                numbers.check(n_samples)
                if isinstance(estimator.n_init, str):
                    K, F = start.shape
                    cost = StartCost.of(K, F, network.n_agents, degree, n_samples)
                    n_starts = min(n_starts, count_starts("auto", cost))
        n_bytes = count_bytes(
            network, numbers.words_per_start, n_starts, settings.max_iter
        )
        exchanges = settings.max_iter if network.n_agents > 1 else 0
        return Cost(exchanges, 0, 0, n_bytes, 0.0)

    def _noisy_cost(self, setting: Setting, n_samples: int | None) -> Cost:
        """Return what a fit with noise takes, at most if samples are not counted."""
        estimator, network, start = setting.estimator, setting.network, setting.start
        settings = noise_settings_of(estimator, network.n_agents)
        degree, _ = plan_sums(estimator, network.n_agents, *start.shape)
        check_key_degree(network.n_agents, degree)
        numbers = NoisyTotals(settings, *start.shape)
        n_totals = count_totals(math.inf, settings.max_iter)
        if n_samples is not None:
            n_totals = numbers.planned(n_samples).n_totals
        n_bytes = count_bytes_of(network, 1 + n_totals * numbers.n_words, n_totals + 1)
        return Cost(n_totals, 0, 0, n_bytes, 0.0)

    def encrypts(self, estimator: Any) -> bool:
        """Return False: masks do without ciphertexts."""
        return False

    def protects(self, estimator: Any) -> bool:
        """Return True: links carry masked sums and encrypted totals."""
        return True

    def in_clear(self, estimator: Any) -> bool:
        """Return False: links carry masked sums and encrypted totals."""
        return False

    def protection(self, estimator: Any) -> str:
        """Return what a fit has protected, and what not, in a few sentences."""
        if len(np.unique(estimator.sample_agents_)) < LEAST_HOLDERS:
            return (
                "Protected: the links, from eavesdroppers. Not protected: the samples "
                "of two agents from each other, for each subtracts its own share."
            )
        kept = (
            "Protected: who holds what. Links carried masked sums and encrypted "
            "totals, and each agent learnt the totals of all agents alone. "
        )
        if estimator.epsilon is None:
            return kept + (
                "Not protected: who is in the pool, for the totals tell it, and the "
                "samples of small pools; epsilon adds noise that bounds both."
            )
        what = {"sample": "sample", "agent": "agent's samples"}
        return kept + (
            f"The totals had noise: epsilon={estimator.epsilon:g}, "
            f"delta={estimator.delta:g} bound what they, and the components, tell of "
            f"any one {what[estimator.privacy_unit]}. Not protected: what is common "
            "to many, and a sample that is fitted again without accounting for it."
        )

    def advice(self, estimator: Any) -> str:
        """Return nothing else."""
        return ""

    def remarks(self, estimator: Any, reports: Sequence[Report | None]) -> list[str]:
        """Return nothing: sums are exact."""
        return []
