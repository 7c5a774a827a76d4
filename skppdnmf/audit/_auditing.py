"""Runs all attacks on a federation, under all protections."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Hashable
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._estimator import PrivateDistributedNMF
from ..exceptions import InsecureKeyWarning
from ._eavesdropper import EavesdropperAttack
from ._gcd import GcdAttack
from ._leakage import Leakage
from ._least_squares import JointMaskAttack, LeastSquaresAttack
from ._record import check_estimator, record
from ._replay import Replay
from ._report import (
    ATTACKS,
    EAVESDROPPER,
    EQUATIONS,
    GCD,
    JOINT,
    KNOWN,
    PROTECTIONS,
    SIMULATION,
    AuditReport,
    Skipped,
)
from ._simulation import SimulationAttack
from ._transcript import Label, Transcript

_STUDY_KEY = 256
_JOINT_STARTS = {True: 30, False: 4}  # whether the victim has one neighbour
_TYPICAL_STEPS = 30  # of all stages of a simulation together
_SIMULATED_ROUNDS = (60, 20, 5)  # the most that there is time for


def audit_report(
    estimator: Any,
    X: Any,
    agents: Any = None,
    *,
    max_rounds: int = 60,
    max_samples: int = 10,
    max_seconds: float = 60.0,
    random_state: int = 0,
) -> AuditReport:
    """Run all attacks of every agent on its neighbours, under all protections.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        Is cloned, not changed. It is fitted once for each kind of protection.
    X, agents
        As for `PrivateDistributedNMF.fit`.
    max_rounds : int, default=60
        Exchanges of the left factor to record; a fit is cut short there.
    max_samples : int, default=10
        The simulation is run against victims with so many samples at most.
    max_seconds : float, default=60
        Time for all simulations. The protection in use and the victims with the
        fewest neighbours and samples come first; where time runs short fewer
        exchanges are fitted, and what is left over is reported as not run.
    random_state : int, default=0
        Seed of the attacks.

    Returns
    -------
    AuditReport
        What was recovered, and what was not run. The attackers are told how many
        samples their victims hold.

    Raises
    ------
    TypeError, ValueError
        As in `record`.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.audit import audit_report
    >>> X = np.random.default_rng(0).exponential(size=(21, 6))
    >>> model = PrivateDistributedNMF(
    ...     2, partition=[10, 10, 1], adjacency="path", encryption="simulated",
    ...     max_iter=3, tol=0, random_state=0
    ... )
    >>> report = audit_report(model, X, max_samples=1)
    >>> report.weakest, report.reasons
    (2, ['it holds one sample', 'it has one neighbour'])
    """
    estimator = _study(estimator, max_rounds)
    deadline = _Deadline(max_seconds)
    leakages: dict[str, dict[str, list[Leakage]]] = {}
    skipped: list[Skipped] = []
    n_rounds = 0
    # First what is in use, should time run short.
    own = estimator.masking
    for protection in sorted(PROTECTIONS, key=lambda name: name != own):
        masking, dither = PROTECTIONS[protection]
        model = clone(estimator).set_params(masking=masking)
        transcript = _quiet_record(model, X, agents, dither)
        audit = _Audit(transcript, protection, max_samples, deadline, random_state)
        leakages[protection] = audit.run()
        skipped += audit.skipped
        n_rounds = max(n_rounds, len(transcript.view(transcript.agents[0]).left_rounds))
    leakages = {protection: leakages[protection] for protection in PROTECTIONS}
    _eavesdrop(estimator, X, agents, leakages, random_state)
    notes = [
        f"The first {n_rounds} exchanges of the left factor were recorded; longer "
        "fits leak more.",
        "The attackers were told the number of their victims' samples.",
        f"The links were read in one iteration under keys of {_STUDY_KEY} bits.",
        "Other attacks may recover more: a low share is no guarantee.",
    ]
    return AuditReport(leakages, skipped, estimator.masking, notes)


def _study(estimator: PrivateDistributedNMF, max_rounds: int) -> PrivateDistributedNMF:
    """Return the estimator cut to the rounds that are recorded."""
    check_estimator(estimator)
    max_iter = math.ceil(max_rounds / int(estimator.max_admm_iter))
    return clone(estimator).set_params(
        max_iter=min(estimator.max_iter, max_iter), encryption="simulated", verbose=0
    )


def _quiet_record(
    model: PrivateDistributedNMF, X: Any, agents: Any, dither: bool
) -> Transcript:
    """Record, without the warnings that a study does not call for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", InsecureKeyWarning)
        return record(model, X, agents, dither=dither)


def _eavesdrop(
    estimator: PrivateDistributedNMF,
    X: Any,
    agents: Any,
    leakages: dict[str, dict[str, list[Leakage]]],
    random_state: int,
) -> None:
    """Read the links of a short encrypted fit, for each kind of masking."""
    for protection, (masking, dither) in PROTECTIONS.items():
        model = clone(estimator).set_params(
            masking=masking, encryption="paillier", key_size=_STUDY_KEY, max_iter=1
        )
        transcript = _quiet_record(model, X, agents, dither)
        attack = EavesdropperAttack(random_state=random_state)
        leakages[protection][EAVESDROPPER].append(attack.run(transcript))


class _Deadline:
    """Seconds left for simulations, over all protections."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.left = seconds


class _Audit:
    """All attacks on one transcript."""

    def __init__(
        self,
        transcript: Transcript,
        protection: str,
        max_samples: int,
        deadline: _Deadline,
        random_state: int,
    ) -> None:
        self.transcript = transcript
        self.protection = protection
        self.max_samples = max_samples
        self.deadline = deadline
        self.random_state = random_state
        self.skipped: list[Skipped] = []
        self.results: dict[str, list[Leakage]] = {attack: [] for attack in ATTACKS}

    def run(self) -> dict[str, list[Leakage]]:
        """Run all, the weakest victims first."""
        for attacker, victim in self._pairs():
            n_samples = self._size(victim)
            if not n_samples:
                for attack in ATTACKS[:-1]:
                    self._skip(attack, attacker, victim, "the victim holds no samples")
                continue
            single = len(self.transcript.public.neighbours(victim)) == 1
            attacks: dict[str, Any] = {
                GCD: GcdAttack(),
                EQUATIONS: LeastSquaresAttack(n_samples=n_samples),
                KNOWN: LeastSquaresAttack("known", n_samples=n_samples),
                JOINT: JointMaskAttack(
                    n_samples=n_samples,
                    n_starts=_JOINT_STARTS[single],
                    random_state=self.random_state,
                ),
            }
            for name, attack in attacks.items():
                leakage = attack.run(self.transcript, attacker, victim)
                self.results[name].append(leakage)
            self._simulate(attacker, victim, n_samples)
        return self.results

    def _pairs(self) -> list[tuple[Hashable, Hashable]]:
        """All ordered pairs of neighbours."""
        public = self.transcript.public
        pairs = [
            (attacker, victim)
            for victim in public.labels
            for attacker in public.neighbours(victim)
        ]
        return sorted(
            pairs,
            key=lambda pair: (len(public.neighbours(pair[1])), self._size(pair[1])),
        )

    def _size(self, agent: Label) -> int:
        """Return the number of an agent's samples."""
        return self.transcript.view(agent).X.shape[0]

    def _simulate(self, attacker: Label, victim: Label, n_samples: int) -> None:
        """Run the simulation if it can be afforded."""
        if n_samples > self.max_samples:
            reason = (
                f"the victim holds more samples than max_samples={self.max_samples}"
            )
            self._skip(SIMULATION, attacker, victim, reason)
            return
        started = time.perf_counter()
        n_rounds = self._affordable(attacker, victim, n_samples)
        if n_rounds:
            attack = SimulationAttack(
                n_samples=n_samples,
                max_rounds=n_rounds,
                max_fitted=self.max_samples,
                random_state=self.random_state,
            )
            leakage = attack.run(self.transcript, attacker, victim)
            self.results[SIMULATION].append(leakage)
        else:
            reason = f"no time left of max_seconds={self.deadline.seconds:g}"
            self._skip(SIMULATION, attacker, victim, reason)
        self.deadline.left -= time.perf_counter() - started

    def _affordable(self, attacker: Label, victim: Label, n_samples: int) -> int:
        """Return for how many rounds there is time; 0 if for none."""
        view = self.transcript.view(attacker)
        n_values = n_samples * view.public.components.shape[1]
        guess = view.public.components[:1]
        for n_rounds in _SIMULATED_ROUNDS:
            replay = Replay(view, victim, n_rounds)
            started = time.perf_counter()
            replay(guess)
            once = time.perf_counter() - started
            if once * n_values * _TYPICAL_STEPS <= self.deadline.left:
                return n_rounds
        return 0

    def _skip(self, attack: str, attacker: Label, victim: Label, reason: str) -> None:
        """Note what is not run."""
        self.skipped.append(Skipped(self.protection, attack, attacker, victim, reason))
