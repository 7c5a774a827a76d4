"""Runs all attacks on a federation, under all protections."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Hashable, Mapping
from numbers import Integral, Real
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_scalar

from .._estimator import PrivateDistributedNMF
from .._fit.protocols import protocol_of
from .._nmf.beta import beta_of
from .._numbers import python_number
from ..exceptions import (
    DropoutWarning,
    ExcessiveNoiseError,
    InsecureKeyWarning,
    PrivacyWarning,
)
from ._attacks.eavesdropper import EavesdropperAttack
from ._attacks.gcd import GcdAttack
from ._attacks.leakage import Leakage
from ._attacks.least_squares import JointMaskAttack, LeastSquaresAttack
from ._attacks.membership import checked_references
from ._attacks.pooled_simulation import PooledSimulationAttack
from ._attacks.replay import Replay
from ._attacks.simulation import SimulationAttack
from ._record.mpc import check_mpc, of_components
from ._record.record import check_estimator, record
from ._report import (
    ANSWER_ATTACKS,
    ATTACKS,
    COLUMNS,
    DROPOUT,
    EAVESDROPPER,
    EQUATIONS,
    GCD,
    JOINT,
    KNOWN,
    ON_SHARES,
    POOL,
    PROTECTIONS,
    SECURE_SUM,
    SHARES,
    SIMULATION,
    AuditReport,
    Skipped,
)
from ._study import STUDIES, Study, as_given, split
from ._sum_auditing import Deadline, SumAudit
from ._views.transcript import Label, Transcript

_STUDY_KEY = 256
_NO_NOISE = {"epsilon": None, "delta": None, "privacy_unit": "sample"}
_JOINT_STARTS = {True: 30, False: 4}  # whether the victim has one neighbour
_TYPICAL_STEPS = 30  # of all stages of a simulation together
# Of all others, from gradients: starts, and the share of the time that is left.
_POOLED_STARTS, _POOLED_TIME = 4, 0.1
_SHARES_ITERATIONS = 60  # the most, if the estimator has another protocol
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
    references: ArrayLike | None = None,
) -> AuditReport:
    """Run all attacks of every agent, under all protections.

    Under the consensus each agent attacks its neighbours, under the secure sum all
    others. Under secure multi-party computation there are the components alone, from
    which samples, members and an attribute are looked for; they are those of the same
    iterations in floating point, so that SPU is not needed. What has nothing to attack
    there is listed as not run.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        Is cloned, not changed. It is fitted once for each kind of protection. With
        `epsilon` the totals have its noise, of which the attacks take account. An
        audit sees all data and tells of them; its fits are not paid from
        `privacy_budget`, and its report is to be guarded like the data.
    X, agents
        As for `PrivateDistributedNMF.fit`.
    max_rounds : int, default=60
        Exchanges of the left factor to record; a fit is cut short there.
    max_samples : int, default=10
        The simulation of a neighbour is run against victims with so many samples at
        most.
    max_seconds : float, default=60
        Time for all simulations. The protection in use comes first, then the secure
        sum, and the victims with the fewest neighbours and samples; where time runs
        short fewer exchanges are fitted, and what is left over is reported as not
        run.
    random_state : int, default=0
        Seed of the attacks.
    references : array-like of shape (n_references, n_features) or None, default=None
        Other samples of the same distribution that no agent holds, some hundreds if
        possible: what an attacker knows beforehand, and what it is to tell from
        members. Without them half of each agent's samples are held out for that, and
        members, attributes and dropouts are looked for in a fit of the other half:
        pools are half as large there as in fact, and leak more.

    Returns
    -------
    AuditReport
        What was recovered, and what was not run. The attackers are told how many
        samples their victims hold. All others' samples as a set (but under the secure
        sum, where every agent looks for them), members, an attribute (the first feature
        that takes just two values) and an agent that drops out (under
        ``on_dropout="continue"``) are looked for by the agent that holds the most.

    Raises
    ------
    TypeError, ValueError
        As in `record`; if `beta_loss` is not the Frobenius norm or entries of X are
        missing, as the attacks on totals do not know these; or if `max_rounds` is not
        an integer of at least 1, `max_samples` not one of at least 0, or `max_seconds`
        not a number of at least 0.
    ExcessiveNoiseError
        If the estimator's `epsilon` is too small for so many samples.

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
    check_estimator(estimator)
    max_rounds, max_samples, max_seconds = map(
        python_number, (max_rounds, max_samples, max_seconds)
    )
    if beta_of(estimator.beta_loss) != 2:
        raise ValueError(
            f"beta_loss={estimator.beta_loss!r}: the attacks on totals know those of "
            "the Frobenius norm alone; that they would find nothing here would mean "
            "nothing"
        )
    check_scalar(max_rounds, "max_rounds", Integral, min_val=1)
    check_scalar(max_samples, "max_samples", Integral, min_val=0)
    check_scalar(max_seconds, "max_seconds", Real, min_val=0)
    if math.isnan(max_seconds):
        raise ValueError(f"max_seconds={max_seconds} should be >= 0")
    deadline = Deadline(max_seconds)
    known = checked_references(references)
    leakages: dict[str, dict[str, list[Leakage]]] = {}
    skipped: list[Skipped] = []
    notes: list[str] = []
    n_rounds: dict[str, int] = {}
    n_holders = 0
    protocol = protocol_of(estimator)
    if protocol.name == SHARES:
        check_mpc(estimator)
    own = protocol.name if protocol.agrees else estimator.masking
    # First what is in use, should time run short, and what would be the way out.
    for protection in sorted(
        COLUMNS, key=lambda name: (name != own, name != SECURE_SUM, name != SHARES)
    ):
        audit: SumAudit | _Audit
        found: dict[str, list[Leakage]]
        try:
            model, dither = _study(estimator, protection, max_rounds)
            transcript = _quiet_record(model, X, agents, dither)
            if protection == SHARES:
                on_shares = _on_shares(estimator, max_rounds)
                transcript = of_components(transcript, on_shares)
        except (OverflowError, ValueError) as error:
            if protection == own:
                raise
            # Other protections need not fit the parameters.
            leakages[protection] = {attack: [] for attack in ATTACKS}
            skipped.append(Skipped(protection, SIMULATION, None, None, str(error)))
            continue
        view = transcript.view(transcript.agents[0])
        n_holders = sum(
            transcript.view(agent).X.shape[0] > 0 for agent in transcript.agents
        )
        if protection == SHARES:
            found = {attack: [] for attack in ATTACKS}
            skipped += _study_pool(
                model, transcript, protection, known, deadline, found, random_state
            )
            skipped += _pooled(
                transcript, protection, known, deadline, found, random_state
            )
            skipped += [
                Skipped(protection, attack, None, None, reason)
                for attack, reason in ON_SHARES.items()
            ]
            leakages[protection] = found
            continue
        if protection == SECURE_SUM:
            audit = SumAudit(transcript, deadline, random_state, known)
            n_rounds["secure sum"] = len(view.sums) - 1
        else:
            audit = _Audit(
                transcript, protection, max_samples, deadline, random_state, known
            )
            n_rounds["consensus"] = len(view.left_rounds)
        # What takes little time comes before simulations, which take all there is.
        found = {attack: [] for attack in STUDIES}
        if protection in (own, SECURE_SUM):
            skipped += _study_pool(
                model, transcript, protection, known, deadline, found, random_state
            )
        else:
            reason = "looked for under the masks in use, and under the secure sum"
            skipped += [
                Skipped(protection, attack, None, None, reason)
                for attack in (*STUDIES, POOL)
                if attack != DROPOUT
            ]
        if protection == own and protection != SECURE_SUM:
            found |= {POOL: []}
            skipped += _pooled(
                transcript, protection, known, deadline, found, random_state
            )
        leakages[protection] = audit.run() | found
        if protection != SECURE_SUM:
            _eavesdrop(model, X, agents, dither, leakages[protection], random_state)
        skipped += audit.skipped
        notes += audit.notes
    leakages = {protection: leakages[protection] for protection in COLUMNS}
    notes = [
        *(
            f"The first {n} exchanges of the left factor were recorded ({name}); "
            "longer fits leak more."
            for name, n in n_rounds.items()
        ),
        "The attackers were told the number of their victims' samples.",
        "Membership and attributes: the share is twice the area under the ROC curve, "
        "or the rate, above a half.",
        _about_references(known),
        *_about_noise(estimator),
        "The consensus's links were read in one iteration under keys of "
        f"{_STUDY_KEY} bits.",
        f"One run of {EQUATIONS!r} may succeed by luck: for masks it does not know "
        "it takes their mean, which may be near.",
        "A share that comes again in fits with other seeds is no luck.",
        *notes,
        "Other attacks may recover more: a low share is no guarantee.",
    ]
    return AuditReport(leakages, skipped, own, notes, n_holders)


def _about_noise(estimator: PrivateDistributedNMF) -> list[str]:
    """Say what the guarantee says, and that attacks are no measure of it."""
    if estimator.epsilon is None:
        return []
    return [
        f"secure-sum: totals have the noise of epsilon={estimator.epsilon:g}, "
        f"delta={estimator.delta:g}; the attackers know their own alone. The audit "
        "itself is not covered: guard its report like the data."
    ]


def _about_references(references: Any) -> str:
    """Say where the samples came from that are in no pool."""
    if references is None:
        return (
            "Without references half of all samples were held out: members, attributes "
            "and dropouts were looked for in pools half as large."
        )
    return f"{len(references)} references stand for what an attacker knows beforehand."


def _study_pool(
    model: PrivateDistributedNMF,
    transcript: Transcript,
    protection: str,
    references: Any,
    deadline: Deadline,
    results: dict[str, list[Leakage]],
    random_state: int,
) -> list[Skipped]:
    """Look for members, an attribute and a lost agent; return what was not run."""
    parts = split(transcript, references, random_state)

    def refit(some: list[Any], dropouts: Mapping[Label, int]) -> Transcript:
        X, agents, parameters = as_given(transcript, some)
        again = clone(model).set_params(**parameters)
        recorded = _quiet_record(again, X, agents, True, dropouts)
        if protection != SHARES:
            return recorded
        return of_components(recorded, transcript.estimator)

    study = Study(protection, parts, refit, model.on_dropout, deadline, random_state)
    if deadline.left > 0 and parts.held_out:
        started = time.perf_counter()
        try:
            transcript = refit(parts.parts, {})
        except ExcessiveNoiseError as error:
            reason = f"give references=, half of the samples are too few: {error}"
            return [Skipped(protection, name, None, None, reason) for name in STUDIES]
        deadline.left -= time.perf_counter() - started
    study.run(transcript, results)
    return study.skipped


def _pooled(
    transcript: Transcript,
    protection: str,
    references: Any,
    deadline: Deadline,
    results: dict[str, list[Leakage]],
    random_state: int,
) -> list[Skipped]:
    """Simulate all others from what the agent with the most samples learns of them.

    Returns what was not run. From the components alone nothing else can be said of
    single agents.
    """
    sizes = {label: transcript.view(label).X.shape[0] for label in transcript.agents}
    attacker = max(sizes, key=lambda label: sizes[label])
    named = [label for label in sizes if sizes[label] and label != attacker]
    targets: list[Label] = [None]
    if protection == SHARES:
        targets = [*named, None]
    names = {True: POOL, False: SIMULATION}
    reason = deadline.reason if named else "no agent but the attacker holds samples"
    if not named or deadline.left <= 0:
        return [
            Skipped(protection, names[victim is None], attacker, victim, reason)
            for victim in targets
        ]
    started = time.perf_counter()
    attack = PooledSimulationAttack(
        n_starts=_POOLED_STARTS,
        max_seconds=_POOLED_TIME * deadline.left,
        random_state=random_state,
        references=references,
    )
    for one in attack.run_many(transcript, attacker, targets):
        results[names[one.victim is None]].append(one)
    deadline.left -= time.perf_counter() - started
    return []


def _study(
    estimator: PrivateDistributedNMF, protection: str, max_rounds: int
) -> tuple[PrivateDistributedNMF, bool]:
    """Return the estimator under a protection, cut to the rounds that are recorded."""
    model = clone(estimator).set_params(verbose=0)
    model.set_params(privacy_budget=None)
    if protection == SECURE_SUM:
        max_iter = estimator.max_iter
        if estimator.epsilon is None:  # with it the noise depends on the number
            max_iter = min(max_iter, max_rounds)
        return model.set_params(protocol=SECURE_SUM, max_iter=max_iter), True
    if protection == SHARES:
        # For who holds what; the factorisation itself is the estimator's.
        public = ("partition", "adjacency", "init", "random_state", "fixed_components")
        given = {name: getattr(model, name) for name in public}
        K = model.n_components
        return PrivateDistributedNMF(K, protocol=SECURE_SUM, max_iter=1, **given), True
    masking, dither = PROTECTIONS[protection]
    max_iter = math.ceil(max_rounds / int(estimator.max_admm_iter))
    model.set_params(
        protocol="consensus",
        masking=masking,
        max_iter=min(estimator.max_iter, max_iter),
        encryption="simulated",
        **_NO_NOISE,
    )
    return model, dither


def _on_shares(
    estimator: PrivateDistributedNMF, max_rounds: int
) -> PrivateDistributedNMF:
    """Return the estimator as it would factorise on secret shares."""
    if protocol_of(estimator).name == SHARES:
        return estimator
    # Other protocols end by `tol`, and may have iterations without end.
    n_iterations = min(estimator.max_iter, max(max_rounds, _SHARES_ITERATIONS))
    model = clone(estimator).set_params(protocol=SHARES, max_iter=n_iterations)
    return model.set_params(on_dropout="raise")


def _quiet_record(
    model: PrivateDistributedNMF,
    X: Any,
    agents: Any,
    dither: bool,
    dropouts: Mapping[Label, int] | None = None,
) -> Transcript:
    """Record, without the warnings that a study does not call for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", InsecureKeyWarning)
        warnings.simplefilter("ignore", PrivacyWarning)
        warnings.simplefilter("ignore", DropoutWarning)
        return record(model, X, agents, dither=dither, dropouts=dropouts)


def _eavesdrop(
    model: PrivateDistributedNMF,
    X: Any,
    agents: Any,
    dither: bool,
    results: dict[str, list[Leakage]],
    random_state: int,
) -> None:
    """Read the links of a short encrypted fit."""
    model = clone(model).set_params(
        encryption="paillier", key_size=_STUDY_KEY, max_iter=1
    )
    transcript = _quiet_record(model, X, agents, dither)
    attack = EavesdropperAttack(random_state=random_state)
    results[EAVESDROPPER].append(attack.run(transcript))


class _Audit:
    """All attacks on one transcript."""

    def __init__(
        self,
        transcript: Transcript,
        protection: str,
        max_samples: int,
        deadline: Deadline,
        random_state: int,
        references: Any,
    ) -> None:
        self.transcript = transcript
        self.references = references
        self.protection = protection
        self.max_samples = max_samples
        self.deadline = deadline
        self.random_state = random_state
        self._n_rounds = len(transcript.view(transcript.agents[0]).left_rounds)
        self.skipped: list[Skipped] = []
        self.notes: list[str] = []
        self._n_short = 0
        self.results: dict[str, list[Leakage]] = {attack: [] for attack in ATTACKS}

    def run(self) -> dict[str, list[Leakage]]:
        """Run all, the weakest victims first."""
        for attacker, victim in self._pairs():
            n_samples = self._size(victim)
            if not n_samples:
                for name in (*ANSWER_ATTACKS, SIMULATION):
                    self._skip(name, attacker, victim, "the victim holds no samples")
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
        if self._n_short:
            self.notes.append(
                f"{self.protection}: {self._n_short} of "
                f"{len(self.results[SIMULATION])} simulations used fewer exchanges "
                "than were recorded, for want of time: "
                f"max_seconds={self.deadline.seconds:g}."
            )
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
                references=self.references,
            )
            leakage = attack.run(self.transcript, attacker, victim)
            self.results[SIMULATION].append(leakage)
            most = min(_SIMULATED_ROUNDS[0], self._n_rounds)
            self._n_short += n_rounds < most
        else:
            self._skip(SIMULATION, attacker, victim, self.deadline.reason)
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
