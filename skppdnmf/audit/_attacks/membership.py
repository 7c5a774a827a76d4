"""The attack on membership: which samples are among the others'."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from .._views.transcript import AgentView, Label, Transcript
from .evidence import Evidence, evidence_of
from .gradients import evidence_of_components
from .leakage import Leakage, dense
from .likelihood import LEAST_REFERENCES, decide_list, judge
from .noisy_pool import most_by_guarantee
from .verdicts import describe

Array = NDArray[np.float64]


class MembershipAttack:
    """Decides which candidates are among the samples of all other agents.

    What an agent knows, less its own part, is a sum over the others' samples of known
    functions of each: under the secure sum the totals, since every agent can follow the
    left factors; under the consensus the gradient at the end of each iteration, which
    the masked answers of its neighbours add up to, nearly: an agent with the attacker
    as its only neighbour is attacked apart from the others.

    Parameters
    ----------
    references : array-like of shape (n_references, n_features) or None, default=None
        Other samples of the same distribution. With them each candidate is judged by
        itself, by the ratio of Gaussian likelihoods of the sum with and without it.
        Without, the candidates are a list that contains all others' samples, and all
        are decided at once, by least squares with a weight for each.
    max_sums : int or None, default=None
        Totals to use, or iterations under the consensus. None takes 20, or all totals
        where they have noise.
    random_state : int, default=0
        Seed of the split of the references.

    Notes
    -----
    The error is one minus the area under the ROC curve (AUC), so that guessing errs by
    a half. The details hold ``auc`` with its ``auc_interval`` of 95 % (DeLong),
    ``true_positives`` at 1 % false ones, for a list ``decided``, the share of
    candidates decided rightly, and the same figures from the published components
    alone (and the attacker's samples) under ``components_auc`` and so on: what no
    protocol that publishes the components could hide. Under differential privacy
    ``most_auc`` is the largest area that the guarantee leaves to any test.

    The attacker is told how many samples the others hold. Penalties are left aside
    where the gradient is taken.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.audit import MembershipAttack, record
    >>> X = np.random.default_rng(0).exponential(size=(60, 8))
    >>> model = PrivateDistributedNMF(
    ...     3, partition=3, protocol="secure-sum", max_iter=12, tol=0, random_state=0
    ... )
    >>> transcript = record(model, X[:30])
    >>> leakage = MembershipAttack().run(transcript, 0, X[10:])
    >>> leakage.details["decided"]  # 20 members of 50 candidates
    1.0
    """

    def __init__(
        self,
        references: ArrayLike | None = None,
        max_sums: int | None = None,
        random_state: int = 0,
    ) -> None:
        if max_sums is not None and max_sums < 1:
            raise ValueError(f"max_sums={max_sums} should be >= 1")
        self.references = checked_references(references)
        self.max_sums = max_sums
        self.random_state = random_state

    def run(
        self, transcript: Transcript, attacker: Label, candidates: ArrayLike
    ) -> Leakage:
        """Attack, and compare the result with the truth.

        Parameters
        ----------
        transcript : Transcript
            A fit under any protocol.
        attacker : label
            Any agent.
        candidates : array-like of shape (n, n_features)
            Samples to decide upon. Members are those that equal a sample of another
            agent.

        Returns
        -------
        Leakage
            Its target is ``"membership"``.

        Raises
        ------
        ValueError
            If there is no such agent, or not a member and a non-member among the
            candidates.
        """
        view = transcript.view(attacker)
        samples = check_array(candidates, dtype=np.float64, input_name="candidates")
        truth = others_samples(transcript, attacker)
        member = equals_a_row(samples, truth)
        if member.all() or not member.any():
            raise ValueError(
                f"{member.sum()} of {len(member)} candidates are samples of other "
                f"agents than {attacker!r}; an attack is judged by both, members and "
                "others"
            )
        started = time.perf_counter()
        scores = self.decide(view, samples, sizes_of_others(transcript, attacker))
        seconds = time.perf_counter() - started
        alone = self._scores([evidence_of_components(view, len(truth))], samples)
        details: dict[str, Any] = {
            "kind": "list" if self.references is None else "single",
            "pool": len(truth),
            "candidates": len(samples),
            **most_by_guarantee(view),
            **describe(scores, member),
            **describe(alone, member, "components_"),
            "seconds": seconds,
        }
        if self.references is None:
            details["decided"] = float(np.mean((scores > 0.5) == member))
        return Leakage(
            type(self).__name__,
            attacker,
            None,
            "membership",
            error=1.0 - details["auc"],
            guess_error=0.5,
            n_samples=len(truth),
            details=details,
        )

    def decide(
        self, view: AgentView, candidates: Array, sizes: Mapping[Label, int]
    ) -> Array:
        """Score candidates from what the attacker saw.

        Parameters
        ----------
        view : AgentView
            The attacker's.
        candidates : ndarray of shape (n, n_features)
            Samples to decide upon.
        sizes : dict from label to int
            How many samples each of the others holds; under the secure sum their
            total, which the totals tell, makes all the difference.

        Returns
        -------
        ndarray of shape (n,)
            The larger, the likelier the candidate is a member: for a list its weight, 0
            or 1, else the logarithm of the ratio of likelihoods.
        """
        return self._scores(evidence_of(view, sizes, self.max_sums), candidates)

    def _scores(self, evidences: Sequence[Evidence], candidates: Array) -> Array:
        """Score candidates from sums."""
        if self.references is None:
            return decide_list(evidences, candidates)
        return judge(evidences, self.references, self.random_state, candidates)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({settings(self)})"


def settings(attack: Any) -> str:
    """Return an attack's parameters, with arrays as their shapes."""
    given = {
        name: f"<{'x'.join(map(str, value.shape))}>"
        if isinstance(value, np.ndarray)
        else repr(value)
        for name, value in vars(attack).items()
    }
    return ", ".join(f"{name}={value}" for name, value in given.items())


def checked_references(references: ArrayLike | None) -> Array | None:
    """Return references as an array, or refuse them."""
    if references is None:
        return None
    return check_array(
        references,
        dtype=np.float64,
        ensure_min_samples=LEAST_REFERENCES,
        input_name="references",
    )


def others_samples(transcript: Transcript, attacker: Label) -> Array:
    """Return all samples that the attacker does not hold: the truth."""
    others = [label for label in transcript.agents if label != attacker]
    return np.vstack([dense(transcript.view(label).X) for label in others])


def sizes_of_others(transcript: Transcript, attacker: Label) -> dict[Label, int]:
    """Return how many samples each of the others holds, as attackers are told."""
    return {
        label: transcript.view(label).X.shape[0]
        for label in transcript.agents
        if label != attacker
    }


def equals_a_row(samples: Array, rows: Array) -> NDArray[np.bool_]:
    """Return which samples are equal to a row."""
    known = {row.tobytes() for row in np.ascontiguousarray(rows) + 0.0}
    found = [row.tobytes() in known for row in np.ascontiguousarray(samples) + 0.0]
    return np.array(found, dtype=bool)
