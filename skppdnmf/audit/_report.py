"""What all attacks on a federation recovered, in a table and in words."""

from __future__ import annotations

import textwrap
from typing import Any, NamedTuple

from .._fit.run import LEAST_HOLDERS
from ._attacks.leakage import Leakage
from ._views.transcript import Label

# Columns of the table under the consensus: masking, and whether answers are dithered.
PROTECTIONS = {
    "scalar, no dither": ("scalar", False),
    "scalar": ("scalar", True),
    "entrywise": ("entrywise", True),
}
SECURE_SUM = "secure-sum"  # its other column
SHARES = "mpc"  # nothing but the components
COLUMNS = (*PROTECTIONS, SECURE_SUM, SHARES)
GCD = "greatest common divisor"
KNOWN = "least squares, masks known"
EQUATIONS = "least squares"
JOINT = "joint mask fit"
SIMULATION = "simulation"
POOL = "simulation, no names"  # all others' samples, as a set
LIST = "membership, of a list"
MEMBERSHIP = "membership, single"
ATTRIBUTE = "attribute"
DROPOUT = "dropout"
EAVESDROPPER = "eavesdropper"
ANSWER_ATTACKS = (GCD, EQUATIONS, KNOWN, JOINT)
ATTACKS = (
    *ANSWER_ATTACKS,
    SIMULATION,
    POOL,
    LIST,
    MEMBERSHIP,
    ATTRIBUTE,
    DROPOUT,
    EAVESDROPPER,
)

# What is not run where the components alone are seen, and why.
ON_SHARES = {
    **dict.fromkeys(
        ANSWER_ATTACKS, "on secret shares neighbours send no masked answers"
    ),
    EAVESDROPPER: "an audit has no links between those that compute",
}
# Attacks on what is not there to be attacked.
_ELSEWHERE = {
    SECURE_SUM: ANSWER_ATTACKS,
    SHARES: (*ANSWER_ATTACKS, DROPOUT, EAVESDROPPER),
}
_FEW = 30  # samples
_ROWS = (
    "those of all agents but any one should outnumber the components, else single rows "
    "can be told from the totals; many more make that harder, not impossible"
)
_WIDTH = 150
# A smaller recovered share may be chance, the more so where means are compared.
_NOTHING, _CHANCE = 0.05, 0.2


class Skipped(NamedTuple):
    """An attack that was not run, and why; no agents where it has no meaning."""

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
    protection : str
        The column that is the estimator's own setting.
    notes : list of str
        How the audit was run.
    n_holders : int
        Number of agents that hold samples.

    Attributes
    ----------
    leakages, skipped, protection, notes, n_holders
        As given.
    table : dict of dict
        For each attack and protection the greatest recovered share of any pair, None
        where nothing was run.
    worst : Leakage or None
        The greatest leak of data under the estimator's own setting, of an agent if
        there is one; None if no attack that was run recovered 5 % or more, or 20 %
        under the secure sum, where the best that can be said of an agent is a mean.
        Members count as found where the interval of the area under the ROC curve is
        above a half, attributes where chance is three standard errors away.
    weakest : label or None
        Its victim; None also if samples were found without names, or who is in the
        pool.
    reasons, advice : list of str
        Why that agent is weak, and what to change.
    """

    def __init__(
        self,
        leakages: dict[str, dict[str, list[Leakage]]],
        skipped: list[Skipped],
        protection: str,
        notes: list[str],
        n_holders: int,
    ) -> None:
        self.leakages = leakages
        self.skipped = skipped
        self.notes = notes
        self.protection = protection
        self.n_holders = n_holders
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
            for attack, some in leakages[protection].items()
            if attack not in (GCD, KNOWN, EAVESDROPPER)
            for one in some
        ]
        self._least = _NOTHING if protection in PROTECTIONS else _CHANCE
        self._found = [one for one in data if _is_found(one, self._least)]
        self.worst = max(
            self._found,
            key=lambda one: (
                one.victim is not None,
                one.recovered,
                -one.n_neighbours,
                -one.n_samples,
            ),
            default=None,
        )
        self.weakest = None if self.worst is None else self.worst.victim
        self.reasons = _reasons(self.worst)
        summed = [self.table[attack].get(SECURE_SUM) for attack in (SIMULATION, POOL)]
        summed_share = max((one for one in summed if one is not None), default=None)
        pairs = [(one.attacker, one.victim) for one in data]
        pairs += [(one.attacker, one.victim) for one in skipped]
        known = {label for pair in pairs for label in pair if label is not None}
        n_agents = max(n_holders, len(known))
        self.advice = _advice(self.worst, protection, n_holders, n_agents, summed_share)
        self.advice += self._advice_on_shares()

    def _advice_on_shares(self) -> list[str]:
        """Say whether fewer members would be found from the components alone."""
        name = {"list": LIST, "single": MEMBERSHIP}
        if self.worst is None or self.worst.target != "membership":
            return []
        row = name[self.worst.details["kind"]]
        share = self.table[row].get(SHARES)
        if self.protection == SHARES or share is None:
            return []
        if share > self.worst.recovered - _CHANCE:
            return []
        return [
            f'protocol="mpc": from the components alone the same attack ({row}) '
            f"recovered {100 * share:.0f} %"
        ]

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
        name = "masking" if self.protection in PROTECTIONS else "protocol"
        lines = [
            "Greatest recovered share of any agent's data (0 % is no better than a "
            "guess),",
            f"by attack and protection; {name}={self.protection!r} is in use:",
            "",
            f"{'':28}" + "".join(f"{column:>19}" for column in columns),
        ]
        for attack in self.table:
            cells = (self._cell(attack, column) for column in columns)
            lines.append(f"{attack:28}" + "".join(f"{cell:>19}" for cell in cells))
        lines.append("")
        for line in self._verdict():
            lines += textwrap.wrap(line, _WIDTH, subsequent_indent="    ")
        lines += [f"  Change: {advice}" for advice in self.advice]
        lines += ["", *self.notes]
        if self.skipped:
            lines.append("Not run:")
            reasons: dict[tuple[str, str], list[Skipped]] = {}
            for one in self.skipped:
                reasons.setdefault((one.attack, one.reason), []).append(one)
            lines += [_skipped(*key, some) for key, some in reasons.items()]
        return "\n".join(lines)

    def _cell(self, attack: str, column: str) -> str:
        """Print a cell of the table."""
        share = self.table[attack][column]
        if share is not None:
            return f"{100 * share:.0f} %"
        elsewhere = _ELSEWHERE.get(column, (DROPOUT,))
        return "-" if attack in elsewhere else "not run"

    def _verdict(self) -> list[str]:
        """Say what the links leak, and who is weak, if anybody was found to be."""
        return [*self._of_links(), *self._of_agents()]

    def _of_links(self) -> list[str]:
        """Say what an eavesdropper on the links found under the estimator's setting."""
        lines = [
            f"  {finding}"
            for one in self.leakages[self.protection][EAVESDROPPER]
            for finding in one.details.get("findings", ())
        ]
        return ["The links leak to whoever reads them:", *lines] if lines else []

    def _of_agents(self) -> list[str]:
        """Say what the weakest point is, and by which attacks."""
        run = [
            attack
            for attack in ATTACKS
            if attack not in (GCD, KNOWN, EAVESDROPPER)
            and self.leakages[self.protection][attack]
        ]
        missing = [
            attack
            for attack in ATTACKS
            if attack not in (GCD, KNOWN, EAVESDROPPER)
            and attack not in run
            and self._cell(attack, self.protection) != "-"
        ]
        lines = []
        if not run:
            lines.append("No attack on an agent's data was run.")
        elif self.worst is None:
            lines.append(
                "Nothing was recovered by the attacks that were run: none did better "
                f"than guessing by {100 * self._least:.0f} % or more."
            )
        else:
            lines += self._of_worst(self.worst)
        if run:
            lines.append(f"Attacks on data that were run: {'; '.join(run)}.")
        if missing:
            lines.append(
                f"Not run, so that nothing is known of them: {'; '.join(missing)}."
            )
        return lines

    def _of_worst(self, worst: Leakage) -> list[str]:
        """Say what was recovered, the worst first."""
        why = "; ".join(self.reasons)
        if self.weakest is not None:
            lines = [f"Weakest agent: {self.weakest!r} ({why}).", f"  {worst}"]
        elif worst.target == "pool":
            lines = [
                f"Agent {worst.attacker!r} finds samples of all others, without names "
                f"({why}).",
                f"  {worst}",
            ]
        else:
            what = "who is in the pool"
            if worst.target == "attribute":
                what = "a value of a sample in the pool"
            lines = [
                f"Weakest point: agent {worst.attacker!r} finds out {what} ({why}).",
                f"  {worst}",
            ]
        for attack in (POOL, LIST, MEMBERSHIP, ATTRIBUTE, DROPOUT):
            some = self.leakages[self.protection][attack]
            found = [one for one in some if any(one is other for other in self._found)]
            if found and not any(one is worst for one in some):
                lines.append(f"  {max(found, key=lambda one: one.recovered)}")
        return lines

    def __repr__(self) -> str:
        worst = "nothing" if self.worst is None else f"{self.worst}"
        return f"<AuditReport: {worst}>"


def _is_found(one: Leakage, least: float) -> bool:
    """Return whether something was recovered that chance does not explain."""
    if one.target == "membership":
        return bool(one.details["auc_interval"][0] > 0.5)
    if one.target == "attribute":
        return one.error < 0.5 - 1.5 / one.details["decided"] ** 0.5
    return one.recovered >= least


def _skipped(attack: str, reason: str, some: list[Skipped]) -> str:
    """Say for whom an attack was not run."""
    pairs = [
        f"{one.attacker} on {'all others' if one.victim is None else one.victim}"
        for one in some
        if one.attacker is not None
    ]
    pairs = sorted(set(pairs))
    more = f" and {len(pairs) - 4} more" if len(pairs) > 4 else ""
    which = f" {', '.join(pairs[:4])}{more}:" if pairs else ""
    return f"  {attack}:{which} {reason}"


def _reasons(worst: Leakage | None) -> list[str]:
    """Say why the victim of a leak is weak."""
    if worst is None:
        return []
    few = f"it holds {worst.n_samples} samples"
    reasons = ["it holds one sample" if worst.n_samples == 1 else few]
    pool = worst.details.get("pool")
    if pool is not None:
        if worst.victim is None:
            return ["one sample" if pool == 1 else f"{pool} samples"]
        if worst.attack == "DropoutAttack":
            return [*reasons, "it dropped out, and the totals go on without it"]
        if pool == worst.n_samples:
            return [*reasons, "nobody but the attacker holds others"]
        return [*reasons, f"all but the attacker hold {pool}"]
    n_neighbours = worst.n_neighbours
    one = "it has one neighbour"
    reasons.append(one if n_neighbours == 1 else f"it has {n_neighbours} neighbours")
    return reasons


def _advice(
    worst: Leakage | None,
    protection: str,
    n_holders: int,
    n_agents: int,
    summed_share: float | None,
) -> list[str]:
    """Say what to change."""
    if protection == SHARES:
        if worst is None:
            return []
        return [
            "more samples: it is the components themselves that tell of the pool, "
            "whatever the protocol"
        ]
    if protection == SECURE_SUM:
        if worst is None:
            return []
        advice = []
        if worst.details["pool"] == worst.n_samples and worst.victim is not None:
            advice.append(
                "another agent with samples: with two, each subtracts its own summand "
                "and has the other's"
            )
        if worst.attack == "DropoutAttack":
            advice.append('on_dropout="raise": totals with and without it tell of it')
        if "epsilon" in worst.details:
            advice.append(
                f"an epsilon below {worst.details['epsilon']:g}: it leaves a test of "
                f"membership an area of {worst.details['most_auc']:.3f}"
            )
        elif worst.target in ("membership", "attribute"):
            advice.append(
                "epsilon: nothing but noise hides members from who has a list of "
                "candidates; n_init=1, with fewer totals, tells a little less"
            )
        advice.append(f"more samples: {_ROWS}")
        return advice
    sums_protect = n_holders >= LEAST_HOLDERS
    advice = [_advice_on_sums(n_holders, summed_share)]
    if protection == "scalar":
        advice.append(
            'masking="entrywise": weakens the attacks that are not simulations'
        )
    if worst is None:
        return advice
    # Of two agents there is nobody who could be another.
    if worst.n_neighbours == 1 and n_agents > 2:
        advice.append(
            "another neighbour for this agent: a single one knows all that it receives"
        )
    if worst.n_samples < _FEW:
        # Of two holders that join one is left, from whom the other hides nothing.
        join = ", or let it join with another" if sums_protect else ""
        advice.append(f"more samples for this agent{join}")
    return advice


def _advice_on_sums(n_holders: int, share: float | None) -> str:
    """Say whether the secure sum would help, by what was recovered there."""
    if n_holders < LEAST_HOLDERS:
        return (
            f"more agents with samples: with {n_holders}, fewer than {LEAST_HOLDERS}, "
            "the secure sum hides nothing either"
        )
    advice = 'protocol="secure-sum": each agent then learns the totals only'
    if share is None:
        return f"{advice} (no attack on them was run)"
    if share < _CHANCE:
        return advice
    return (
        f"more samples: {_ROWS}: {100 * share:.0f} % were recovered under the secure "
        "sum here"
    )
