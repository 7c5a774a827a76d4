"""Runs the attacks that need samples beyond the pool: references and non-members."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._attacks.attribute import AttributeAttack
from ._attacks.dropout import DropoutAttack
from ._attacks.leakage import Leakage, dense
from ._attacks.membership import MembershipAttack, equals_a_row
from ._report import ATTRIBUTE, DROPOUT, LIST, MEMBERSHIP, SECURE_SUM, Skipped
from ._sum_auditing import Deadline
from ._views.transcript import Label, Transcript

Array = NDArray[np.float64]

_MOST_JUDGED = 200  # members, and as many others
_MOST_REFERENCES = 600
_LONGEST_LIST = 1500
_FEWEST = 10  # references that say anything of a covariance, or candidates
_FEWEST_HOLDERS = 4  # so that three are left after a dropout
STUDIES = (LIST, MEMBERSHIP, ATTRIBUTE, DROPOUT)

# Fits to parts of the data, and lets agents drop out.
Refit = Callable[[list[Any], Mapping[Label, int]], Transcript]


class Split(NamedTuple):
    """Samples to fit, and others that are in no pool.

    Parameters
    ----------
    parts : list of ndarray
        What each agent fits.
    references, others : ndarray
        What the attacker knows of the distribution, and what it is to tell from
        members.
    held_out : bool
        Whether they were taken from the agents' own samples.
    """

    parts: list[Array]
    references: Array
    others: Array
    held_out: bool


def split(transcript: Transcript, references: Any, random_state: int) -> Split:
    """Divide references, or hold out half of each agent's samples.

    Parameters
    ----------
    transcript : Transcript
        A fit of all samples.
    references : ndarray of shape (n_references, F) or None
        Samples that are in no pool.
    random_state : int
        Seed.

    Returns
    -------
    Split
    """
    rng = np.random.default_rng(random_state)
    parts = [dense(transcript.view(label).X) for label in transcript.agents]
    held_out = references is None
    if held_out:
        kept, free = [], []
        for part in parts:
            mixed = rng.permutation(len(part))
            n_kept = -(-len(part) // 2)
            kept.append(part[np.sort(mixed[:n_kept])])
            free.append(part[mixed[n_kept:]])
        parts, others = kept, np.vstack(free)
    else:
        others = dense(references)
    others = others[~equals_a_row(others, np.vstack(parts))]
    others = others[rng.permutation(len(others))]
    n_judged = min(_MOST_JUDGED, len(others) // 2 if held_out else len(others) // 3)
    known = others[n_judged:][:_MOST_REFERENCES]
    return Split(parts, known, others[:n_judged], held_out)


class Study:
    """Membership, attributes and dropouts under one protection.

    Parameters
    ----------
    protection : str
        Its column.
    parts : Split
        Samples.
    refit : callable
        Fits parts under the protection.
    on_dropout : str
        The estimator's.
    deadline : Deadline
        Time that is left.
    random_state : int
        Seed.

    Attributes
    ----------
    skipped : list of Skipped
        What was not run.
    """

    def __init__(
        self,
        protection: str,
        parts: Split,
        refit: Refit,
        on_dropout: str,
        deadline: Deadline,
        random_state: int,
    ) -> None:
        self.protection = protection
        self.split = parts
        self.refit = refit
        self.on_dropout = on_dropout
        self.deadline = deadline
        self.random_state = random_state
        self.skipped: list[Skipped] = []

    def run(self, transcript: Transcript, results: dict[str, list[Leakage]]) -> None:
        """Run all, of the agent that holds the most; the results are added to.

        Parameters
        ----------
        transcript : Transcript
            A fit of the parts.
        results : dict
            For each attack a list of what was recovered.
        """
        sizes = {
            label: transcript.view(label).X.shape[0] for label in transcript.agents
        }
        attacker = max(sizes, key=lambda label: sizes[label])
        for name, attack in (
            (LIST, self._list),
            (MEMBERSHIP, self._single),
            (ATTRIBUTE, self._attribute),
            (DROPOUT, self._dropout),
        ):
            started = time.perf_counter()
            found: Leakage | str = self.deadline.reason
            if self.deadline.left > 0:
                found = attack(transcript, attacker)
            if isinstance(found, str):
                self.skipped.append(Skipped(self.protection, name, None, None, found))
            else:
                results[name].append(found)
            self.deadline.left -= time.perf_counter() - started

    def _references(self, transcript: Transcript, attacker: Label) -> Array:
        """Return what the attacker knows of the distribution: its samples, too."""
        own = dense(transcript.view(attacker).X)
        return np.vstack([own[:_MOST_REFERENCES], self.split.references])

    def _others(self, transcript: Transcript, attacker: Label) -> Array:
        """Return the others' samples, in random order."""
        parts = zip(transcript.agents, self.split.parts, strict=True)
        others = np.vstack([part for label, part in parts if label != attacker])
        return np.random.default_rng(self.random_state).permutation(others)

    def _few(self, transcript: Transcript, attacker: Label) -> str:
        """Say why candidates cannot be judged, if so."""
        if not len(self._others(transcript, attacker)):
            return "no agent but the attacker holds samples"
        if len(self.split.others) < _FEWEST:
            return (
                f"{len(self.split.others)} samples that are in no pool, fewer than "
                f"{_FEWEST}; give references="
            )
        return ""

    def _list(self, transcript: Transcript, attacker: Label) -> Leakage | str:
        """Decide a list of candidates."""
        members = self._others(transcript, attacker)
        if reason := self._few(transcript, attacker):
            return reason
        if len(members) > _LONGEST_LIST - _FEWEST:
            return f"{len(members)} members make too long a list for an audit"
        others = np.vstack([self.split.others, self.split.references])
        candidates = np.vstack([members, others[: _LONGEST_LIST - len(members)]])
        return MembershipAttack().run(transcript, attacker, candidates)

    def _single(self, transcript: Transcript, attacker: Label) -> Leakage | str:
        """Judge candidates one by one."""
        references = self._references(transcript, attacker)
        if reason := self._few(transcript, attacker):
            return reason
        members = self._others(transcript, attacker)[:_MOST_JUDGED]
        candidates = np.vstack([members, self.split.others])
        attack = MembershipAttack(references, random_state=self.random_state)
        return attack.run(transcript, attacker, candidates)

    def _attribute(self, transcript: Transcript, attacker: Label) -> Leakage | str:
        """Read the first feature that takes two values."""
        everything = np.vstack(self.split.parts)
        references = self._references(transcript, attacker)
        members = self._others(transcript, attacker)[:_MOST_JUDGED]
        for feature in range(everything.shape[1]):
            values = np.unique(everything[:, feature])
            if len(values) == 2:
                break
        else:
            return "no feature of X takes just two values"
        if not len(members) or len(references) < _FEWEST:
            return self._few(transcript, attacker) or "too few references"
        versions = []
        for value in values:
            version = members.copy()
            version[:, feature] = value
            versions.append(version)
        everyone = self._others(transcript, attacker)
        known = [equals_a_row(version, everyone) for version in versions]
        clear = known[0] != known[1]  # both are there of some
        if not clear.any():
            return "every sample is there with both values"
        attack = AttributeAttack(references, random_state=self.random_state)
        return attack.run(transcript, attacker, versions[0][clear], versions[1][clear])

    def _dropout(self, transcript: Transcript, attacker: Label) -> Leakage | str:
        """Let the agent with the fewest samples drop out half-way."""
        if self.protection != SECURE_SUM:
            return "agents drop out of a secure sum only"
        if self.on_dropout != "continue":
            return f"on_dropout={self.on_dropout!r}: no total is formed without one"
        sizes = {
            label: len(part)
            for label, part in zip(transcript.agents, self.split.parts, strict=True)
        }
        holders = [label for label in sizes if sizes[label]]
        if len(holders) < _FEWEST_HOLDERS:
            return f"{len(holders)} agents hold samples, fewer than {_FEWEST_HOLDERS}"
        references = self._references(transcript, attacker)
        if len(references) < _FEWEST:
            return f"{len(references)} references, fewer than {_FEWEST}"
        victim = min(
            (label for label in holders if label != attacker),
            key=lambda label: sizes[label],
        )
        n_sums = len(transcript.view(attacker).sums) - 1
        if n_sums < 3:
            return "the fit is too short"
        lost = self.refit(list(self.split.parts), {victim: max(1, n_sums // 2)})
        attack = DropoutAttack(references, random_state=self.random_state)
        return attack.run(lost, attacker, victim)


def as_given(
    transcript: Transcript, parts: list[Any]
) -> tuple[Any, list[Label] | None, dict[str, Any]]:
    """Return parts as X, agents and parameters of a fit with the same labels.

    Parameters
    ----------
    transcript : Transcript
        A fit of all samples.
    parts : list of ndarray
        What each agent is to fit.

    Returns
    -------
    X, agents, parameters
    """
    labels = transcript.agents
    if all(len(part) for part in parts):
        agents = [
            label for label, part in zip(labels, parts, strict=True) for _ in part
        ]
        return np.vstack(parts), agents, {"partition": None}
    return parts, None, {"partition": None}
