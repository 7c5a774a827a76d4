"""Runs the attack on the totals for every agent of a federation."""

from __future__ import annotations

import time
from typing import Any

from ._attacks.eavesdropper import EavesdropperAttack
from ._attacks.leakage import Leakage, dense
from ._attacks.pooled_simulation import PooledSimulationAttack
from ._report import (
    ANSWER_ATTACKS,
    ATTACKS,
    EAVESDROPPER,
    POOL,
    SECURE_SUM,
    SIMULATION,
    Skipped,
)
from ._views.transcript import Label, Transcript

_MANY, _TIMES = 100, 5  # own samples that do for references
_NO_ANSWERS = "under the secure sum neighbours send no masked answers"


class Deadline:
    """Seconds left for simulations, over all protections."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.left = seconds

    @property
    def reason(self) -> str:
        """Why something is not run."""
        return f"no time left of max_seconds={self.seconds:g}"


class SumAudit:
    """All attacks on one transcript of the secure sum.

    Parameters
    ----------
    transcript : Transcript
        The fit.
    deadline : Deadline
        Time that is left; shared evenly among the attackers.
    random_state : int
        Seed of the attacks.
    references : ndarray of shape (n_references, F) or None, default=None
        Samples to start simulations from.

    Attributes
    ----------
    skipped : list of Skipped
        What was not run.
    notes : list of str
        How it was run.
    """

    def __init__(
        self,
        transcript: Transcript,
        deadline: Deadline,
        random_state: int,
        references: Any = None,
    ) -> None:
        self.transcript = transcript
        self.deadline = deadline
        self.random_state = random_state
        self.references = references
        self.skipped = [
            Skipped(SECURE_SUM, attack, None, None, _NO_ANSWERS)
            for attack in ANSWER_ATTACKS
        ]
        self.notes: list[str] = []

    def run(self) -> dict[str, list[Leakage]]:
        """Run all, those first to whom the fewest samples are unknown."""
        transcript = self.transcript
        results: dict[str, list[Leakage]] = {attack: [] for attack in ATTACKS}
        holders = [label for label in transcript.agents if self._size(label)]
        # Who holds the most knows the most of the rest.
        attackers = sorted(transcript.agents, key=lambda label: -self._size(label))
        n_cut = 0
        for place, attacker in enumerate(attackers):
            victims: list[Label] = [label for label in holders if label != attacker]
            if not victims:
                continue
            if self.deadline.left <= 0:
                self._skip(attacker, victims)
                continue
            started = time.perf_counter()
            attack = PooledSimulationAttack(
                max_seconds=self.deadline.left / (len(attackers) - place),
                random_state=self.random_state,
                references=self._known_to(attacker, holders),
            )
            named = attack.run_many(transcript, attacker, [*victims, None])
            results[POOL].append(named.pop())
            results[SIMULATION] += named
            n_cut += named[0].details["cut"]
            self.deadline.left -= time.perf_counter() - started
        if n_cut:
            self.notes.append(
                f"secure-sum: {n_cut} of {len(attackers)} simulations of all others "
                f"were ended early, of max_seconds={self.deadline.seconds:g}."
            )
        links = EavesdropperAttack(random_state=self.random_state).run(transcript)
        results[EAVESDROPPER].append(links)
        if links.details["in_clear"]:
            self.notes.append(
                "secure-sum: who reads the links reads in clear: "
                f"{', '.join(links.details['in_clear'])}; the eavesdropper's share is "
                "of the masked sums."
            )
        return results

    def _known_to(self, attacker: Label, holders: list[Label]) -> Any:
        """Return references, or an agent's own samples where they are many."""
        if self.references is not None:
            return self.references
        n_others = sum(self._size(label) for label in holders if label != attacker)
        if self._size(attacker) < max(_MANY, _TIMES * n_others):
            return None
        return dense(self.transcript.view(attacker).X)

    def _size(self, agent: Label) -> int:
        """Return the number of an agent's samples."""
        return self.transcript.view(agent).X.shape[0]

    def _skip(self, attacker: Label, victims: list[Label]) -> None:
        """Note what there is no time for."""
        reason = self.deadline.reason
        self.skipped += [
            Skipped(SECURE_SUM, SIMULATION, attacker, victim, reason)
            for victim in victims
        ]
        self.skipped.append(Skipped(SECURE_SUM, POOL, attacker, None, reason))
