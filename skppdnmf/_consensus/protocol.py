"""The consensus, as a fit meets it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

from .._agent import Agent, Report
from .._data.graph import Network
from .._data.partition import Partition
from .._paillier.keys import SECURE_KEY_SIZE, warn_insecure
from .._protocol import Cost, Hooks, Plan, Setting
from .advice import advice, dither_message, dither_share, parted_message
from .build import cipher_maker, make_agents
from .ciphers import Cipher
from .cost import (
    count_work,
    lattice_backend,
    left_layout,
    preferred_backend,
    time_work,
    warn_if_long,
)
from .messages import PROTOCOL_CODE
from .privacy import privacy_messages
from .settings import AgentSettings, settings_of


class Consensus:
    """The paper's protocol: consensus ADMM by encrypted exchange among neighbours."""

    name = "consensus"
    code = PROTOCOL_CODE
    has_agents = True
    agrees = False
    adds_noise = False
    sums = False
    fixes = False
    no_noise = ""

    def start_scaling(self, estimator: Any) -> str:
        """Return how a given start is scaled: as the penalties."""
        return estimator.penalty_scaling

    def privacy(
        self, estimator: Any, network: Network, partition: Partition, n_components: int
    ) -> list[str]:
        """Return what the parameters protect less than a user may believe."""
        # Of simulated encryption nobody expects secrets.
        encrypted = self.encrypts(estimator)
        seeded = encrypted and isinstance(estimator.random_state, Integral)
        masking = estimator.masking
        return privacy_messages(network, partition, masking, seeded, encrypted)

    def plan(self, setting: Setting) -> Plan:
        """Return a fit, ready to be run, or refuse it."""
        estimator, network = setting.estimator, setting.network
        settings = settings_of(estimator, network)
        make_cipher = self._checked_cipher(setting, settings)
        backend = self._backend(setting, settings)
        short = (
            estimator.encryption == "paillier" and settings.key_size < SECURE_KEY_SIZE
        )

        def build(
            parts: Sequence[Any],
            names: Sequence[str],
            run: bytes,
            hooks: Hooks,
            numbers: Sequence[int] | None = None,
        ) -> list[Agent]:
            if self._encrypted(setting) and short:
                # Once, and not in a worker where no one sees it.
                warn_insecure(settings.key_size)
            return list(
                make_agents(
                    parts,
                    names,
                    network,
                    setting.start,
                    settings,
                    make_cipher,
                    setting.seeds.masks,
                    run,
                    hooks.observed,
                    hooks.recorder,
                    numbers,
                )
            )

        return Plan(settings, setting.start[None], backend, None, build)

    def check_data(self, setting: Setting, X: Any) -> None:
        """Refuse nothing: any start can be moved."""

    def warn_of_cost(self, setting: Setting, plan: Plan) -> None:
        """Warn of a fit that will take long."""
        if self._encrypted(setting):
            warn_if_long(
                setting.network,
                plan.settings,
                setting.start,
                setting.estimator.n_jobs,
                plan.backend,
                setting.estimator.encryption,
            )

    def cost(self, setting: Setting, n_samples: int | None) -> Cost:
        """Return what a fit takes; the number of samples has no effect."""
        settings = settings_of(setting.estimator, setting.network)
        self._checked_cipher(setting, settings)
        start, n_jobs = setting.start, setting.estimator.n_jobs
        work = count_work(
            setting.network, settings, start, setting.estimator.encryption
        )
        seconds = 0.0
        if self._encrypted(setting):
            backend = self._backend(setting, settings)
            seconds = time_work(
                work, settings, start, n_jobs, backend, setting.estimator.encryption
            )
        return Cost(
            work.exchanges,
            work.ciphertexts,
            work.encryptions + 2 * work.replies + work.powers,
            work.bytes,
            seconds,
        )

    def encrypts(self, estimator: Any) -> bool:
        """Return whether ciphertexts are made."""
        return estimator.encryption in ("paillier", "bfv")

    def protects(self, estimator: Any) -> bool:
        """Return whether links hide what they carry: simulated ciphertexts do not."""
        return self.encrypts(estimator)

    def in_clear(self, estimator: Any) -> bool:
        """Return whether neighbours read each other's left factors."""
        return estimator.encryption is None

    def protection(self, estimator: Any) -> str:
        """Return what a fit has protected, and what not, in a few sentences."""
        return (
            "Protected: the left factors on their way, from eavesdroppers. Not "
            "protected: agents of few samples or one neighbour, whose data a curious "
            "neighbour can reconstruct from the masked differences that it decrypts."
        )

    def advice(self, estimator: Any) -> str:
        """Return what else to change where a fit has not reached its tolerance."""
        return advice(estimator)

    def remarks(self, estimator: Any, reports: Sequence[Report | None]) -> list[str]:
        """Say so where dithers have added up to something, or the copies parted."""
        parted = parted_message(reports)
        if estimator.encryption is None:
            return parted
        share = dither_share(reports, estimator.n_max)
        message = dither_message(share, estimator.n_max, estimator.n_exchanges_)
        return [*parted, message] if message else parted

    def _encrypted(self, setting: Setting) -> bool:
        """Whether there are ciphertexts."""
        return self.encrypts(setting.estimator) and setting.network.n_agents > 1

    @staticmethod
    def _checked_cipher(
        setting: Setting, settings: AgentSettings
    ) -> Callable[[], Cipher]:
        """Return what makes ciphers; simulated keys refuse what real ones do."""
        encryption, n_agents = setting.estimator.encryption, setting.network.n_agents
        make_cipher = cipher_maker(
            encryption, n_agents, settings.key_size, settings.key_scheme
        )
        if encryption is not None and n_agents > 1:
            left_layout(settings, setting.start, encryption)
        return make_cipher

    def _backend(self, setting: Setting, settings: AgentSettings) -> str:
        """Return where agents that run side by side had best do so."""
        encryption, n_jobs = setting.estimator.encryption, setting.estimator.n_jobs
        if encryption == "bfv" and self._encrypted(setting):
            work = count_work(setting.network, settings, setting.start, encryption)
            return lattice_backend(work, settings, n_jobs)
        n_values = (
            2
            * setting.network.n_edges
            * setting.start.size
            * settings.max_iter
            * settings.max_admm_iter
        )
        return preferred_backend(settings, n_values, self._encrypted(setting), n_jobs)
