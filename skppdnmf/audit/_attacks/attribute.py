"""The attack on an attribute: which of two values a known sample has."""

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
from .leakage import Leakage
from .likelihood import judge
from .membership import (
    checked_references,
    equals_a_row,
    others_samples,
    settings,
    sizes_of_others,
)
from .noisy_pool import most_by_guarantee
from .verdicts import describe

Array = NDArray[np.float64]


class AttributeAttack:
    """Decides which of two versions of a sample is among those of all other agents.

    The attacker knows that a sample is there, and all of it but a binary attribute: a
    diagnosis, say. It forms the sample with either value and compares the likelihoods
    of what it knows of the others, as `MembershipAttack` does.

    Parameters
    ----------
    references : array-like of shape (n_references, n_features)
        Other samples of the same distribution.
    max_sums : int or None, default=None
        As for `MembershipAttack`.
    random_state : int, default=0
        Seed of the split of the references.

    Notes
    -----
    The error is the share of samples decided wrongly. Guessing errs in half of all
    cases; whoever knows how common each value is, or what else it goes with, errs less.
    The details hold the share ``right``, ``auc`` with its ``auc_interval``,
    ``true_positives`` at 1 % false ones where both values occur, and the same from the
    components alone under ``components_right`` and so on.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.audit import AttributeAttack, record
    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(size=(200, 8))
    >>> X[:, 7] = 3.0 * rng.integers(2, size=200)
    >>> model = PrivateDistributedNMF(
    ...     3, partition=[4, 4, 4], protocol="secure-sum", max_iter=12, tol=0,
    ...     random_state=0
    ... )
    >>> transcript = record(model, X[:12])
    >>> without, with_it = X[4:12].copy(), X[4:12].copy()
    >>> without[:, 7], with_it[:, 7] = 0.0, 3.0
    >>> leakage = AttributeAttack(X[12:]).run(transcript, 0, without, with_it)
    >>> leakage.details["right"] > 0.7  # guessing is right in half of all cases
    True
    """

    def __init__(
        self, references: ArrayLike, max_sums: int | None = None, random_state: int = 0
    ) -> None:
        if max_sums is not None and max_sums < 1:
            raise ValueError(f"max_sums={max_sums} should be >= 1")
        self.references = checked_references(references)
        self.max_sums = max_sums
        self.random_state = random_state

    def run(
        self,
        transcript: Transcript,
        attacker: Label,
        without: ArrayLike,
        with_it: ArrayLike,
    ) -> Leakage:
        """Attack, and compare the result with the truth.

        Parameters
        ----------
        transcript : Transcript
            A fit under any protocol.
        attacker : label
            Any agent.
        without, with_it : array-like of shape (n, n_features)
            Samples with one value of the attribute and with the other. Of each pair one
            is another agent's.

        Returns
        -------
        Leakage
            Its target is ``"attribute"``.

        Raises
        ------
        ValueError
            If there is no such agent, or of a pair neither or both are other agents'
            samples.
        """
        view = transcript.view(attacker)
        one = check_array(without, dtype=np.float64, input_name="without")
        other = check_array(with_it, dtype=np.float64, input_name="with_it")
        if one.shape != other.shape:
            raise ValueError(
                f"without has shape {one.shape}, with_it has shape {other.shape}"
            )
        truth = others_samples(transcript, attacker)
        has_it = equals_a_row(other, truth)
        unclear = np.flatnonzero(has_it == equals_a_row(one, truth))
        if unclear.size:
            raise ValueError(
                f"of the pairs {unclear[:5].tolist()} not just one sample is among "
                f"those of other agents than {attacker!r}"
            )
        started = time.perf_counter()
        sizes = sizes_of_others(transcript, attacker)
        scores = self.decide(view, one, other, sizes)
        seconds = time.perf_counter() - started
        alone = self._scores([evidence_of_components(view, len(truth))], one, other)
        right = float(np.mean((scores > 0) == has_it))
        details: dict[str, Any] = {
            "pool": len(truth),
            "decided": len(one),
            **most_by_guarantee(view),
            "right": right,
            "components_right": float(np.mean((alone > 0) == has_it)),
            "seconds": seconds,
        }
        if has_it.any() and not has_it.all():
            details.update(describe(scores, has_it))
            details.update(describe(alone, has_it, "components_"))
        return Leakage(
            type(self).__name__,
            attacker,
            None,
            "attribute",
            error=1.0 - right,
            guess_error=0.5,
            n_samples=len(truth),
            details=details,
        )

    def decide(
        self,
        view: AgentView,
        without: Array,
        with_it: Array,
        sizes: Mapping[Label, int],
    ) -> Array:
        """Score pairs from what the attacker saw.

        Parameters
        ----------
        view : AgentView
            The attacker's.
        without, with_it : ndarray of shape (n, n_features)
            As for `run`.
        sizes : dict from label to int
            How many samples each of the others holds.

        Returns
        -------
        ndarray of shape (n,)
            Logarithms of ratios of likelihoods: positive for the other value.
        """
        evidences = evidence_of(view, sizes, self.max_sums)
        return self._scores(evidences, without, with_it)

    def _scores(
        self, evidences: Sequence[Evidence], without: Array, with_it: Array
    ) -> Array:
        """Score pairs from sums."""
        assert self.references is not None
        seed = self.random_state
        return judge(evidences, self.references, seed, with_it, instead_of=without)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({settings(self)})"
