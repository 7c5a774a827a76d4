"""What all attacks on a federation recovered, in a table and in words."""

from __future__ import annotations

from typing import Any, NamedTuple

from ._leakage import Leakage
from ._transcript import Label

# Columns of the table: masking, and whether answers are dithered.
PROTECTIONS = {
    "scalar, no dither": ("scalar", False),
    "scalar": ("scalar", True),
    "entrywise": ("entrywise", True),
}
GCD = "greatest common divisor"
KNOWN = "least squares, masks known"
EQUATIONS = "least squares"
JOINT = "joint mask fit"
SIMULATION = "simulation"
EAVESDROPPER = "eavesdropper"
ATTACKS = (GCD, EQUATIONS, KNOWN, JOINT, SIMULATION, EAVESDROPPER)

_FEW = 30  # samples


class Skipped(NamedTuple):
    """An attack that was not run, and why."""

    protection: str
    attack: str
    attacker: Label
    victim: Label
    reason: str


class AuditReport:
    """What all attacks recovered.

    Made by `audit_report`; prints itself as a table with what to change.

    Parameters
    ----------
    leakages : dict
        For each protection and attack a list of `Leakage`.
    skipped : list of Skipped
        What was not run.
    masking : str
        The estimator's own.
    notes : list of str
        How the audit was run.

    Attributes
    ----------
    leakages, skipped, notes
        As given.
    protection : str
        The column that is the estimator's own setting.
    table : dict of dict
        For each attack and protection the greatest recovered share of any pair, None
        where nothing was run.
    worst : Leakage or None
        The greatest leak of data under the estimator's own setting; where there is
        none, one from the agent with the fewest neighbours and samples.
    weakest : label or None
        Its victim.
    reasons, advice : list of str
        Why that agent is weak, and what to change.
    """

    def __init__(
        self,
        leakages: dict[str, dict[str, list[Leakage]]],
        skipped: list[Skipped],
        masking: str,
        notes: list[str],
    ) -> None:
        self.leakages = leakages
        self.skipped = skipped
        self.notes = notes
        self.protection = masking
        self.table = {
            attack: {
                protection: max(
                    (one.recovered for one in leakages[protection][attack]),
                    default=None,
                )
                for protection in leakages
            }
            for attack in ATTACKS
        }
        data = [
            one
            for attack, some in leakages[masking].items()
            if attack not in (GCD, KNOWN, EAVESDROPPER)
            for one in some
        ]
        # Where nothing was recovered, the one that is worst protected.
        self.worst = max(
            data,
            key=lambda one: (one.recovered, -one.n_neighbours, -one.n_samples),
            default=None,
        )
        self.weakest = None if self.worst is None else self.worst.victim
        self.reasons = _reasons(self.worst)
        self.advice = _advice(self.worst, masking)

    def to_dict(self) -> list[dict[str, Any]]:
        """Return one record for each attack that was run.

        Returns
        -------
        list of dict
            Names, figures and the pair; no arrays.
        """
        return [
            {
                "protection": protection,
                "attack": attack,
                "attacker": one.attacker,
                "victim": one.victim,
                "target": one.target,
                "error": one.error,
                "guess_error": one.guess_error,
                "recovered": one.recovered,
                "n_samples": one.n_samples,
                "n_neighbours": one.n_neighbours,
            }
            for protection, attacks in self.leakages.items()
            for attack, some in attacks.items()
            for one in some
        ]

    def to_frame(self) -> Any:
        """Return the records of `to_dict` as a pandas frame.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ImportError
            Without pandas.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas: install skppdnmf[graph]; to_dict does not"
            ) from error
        return pd.DataFrame(self.to_dict())

    def __str__(self) -> str:
        columns = list(self.leakages)
        lines = [
            "Greatest recovered share of any agent's data (0 % is no better than a "
            "guess),",
            f"by attack and protection; masking={self.protection!r} is in use:",
            "",
            f"{'':28}" + "".join(f"{name:>19}" for name in columns),
        ]
        for attack, row in self.table.items():
            lines.append(
                f"{attack:28}"
                + "".join(f"{_percent(row[name]):>19}" for name in columns)
            )
        lines.append("")
        if self.worst is None:
            lines.append("No attack on an agent's data was run.")
        else:
            if not self.worst.recovered:
                lines.append("No attack on data that was run did better than guessing.")
            lines += [
                f"Weakest agent: {self.weakest!r} ({'; '.join(self.reasons)}).",
                f"  {self.worst}",
            ]
        lines += [f"  Change: {advice}" for advice in self.advice]
        lines += ["", *self.notes]
        if self.skipped:
            lines.append("Not run:")
            reasons: dict[tuple[str, str], list[Skipped]] = {}
            for one in self.skipped:
                reasons.setdefault((one.attack, one.reason), []).append(one)
            for (attack, reason), some in reasons.items():
                pairs = sorted({f"{one.attacker} on {one.victim}" for one in some})
                more = f" and {len(pairs) - 4} more" if len(pairs) > 4 else ""
                which = ", ".join(pairs[:4]) + more
                lines.append(f"  {attack}: {which}: {reason}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        worst = "nothing" if self.worst is None else f"{self.worst}"
        return f"<AuditReport: {worst}>"


def _percent(share: float | None) -> str:
    """Print a cell of the table."""
    return "not run" if share is None else f"{100 * share:.0f} %"


def _reasons(worst: Leakage | None) -> list[str]:
    """Say why the victim of a leak is weak."""
    if worst is None:
        return []
    few = f"it holds {worst.n_samples} samples"
    reasons = ["it holds one sample" if worst.n_samples == 1 else few]
    n_neighbours = worst.n_neighbours
    one = "it has one neighbour"
    reasons.append(one if n_neighbours == 1 else f"it has {n_neighbours} neighbours")
    return reasons


def _advice(worst: Leakage | None, masking: str) -> list[str]:
    """Say what to change."""
    if worst is None:
        return []
    advice = ['protocol="secure-sum": neighbours then learn the totals only']
    if masking == "scalar":
        advice.append('masking="entrywise": stops the attacks that are not simulations')
    if worst.n_neighbours == 1:
        advice.append(
            "another neighbour for this agent: a single one knows all that it receives"
        )
    if worst.n_samples < _FEW:
        advice.append("more samples for this agent, or let it join with another")
    return advice
