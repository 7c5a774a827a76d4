"""Reads secret factors off single answers."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..._consensus.masks import MASK_BITS, mask_range
from .._views.transcript import AgentView, Label, Transcript
from .attack import attacker_view
from .leakage import Leakage

# Masks are the odd numbers from the least to the largest.
LEAST, MOST = mask_range(MASK_BITS)
MEAN = (LEAST + MOST) / 2
N_MASKS = (MOST - LEAST) // 2 + 1


def common_divisor(numbers: Iterable[float]) -> int:
    """Return the greatest common divisor of integers, zero if all are zero."""
    return math.gcd(*(abs(int(number)) for number in numbers))


class GcdAttack:
    """Finds scalar masks as the common divisor of the numbers in one answer.

    Without dither all K * F numbers of an answer share the victim's secret factor G,
    which is then all but surely their greatest common divisor. The target are the
    victim's masks of all exchanges of the left factor. Entrywise masks have no
    common divisor; a dither leaves none.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.audit import GcdAttack, record
    >>> X = np.random.default_rng(0).exponential(size=(12, 6))
    >>> model = PrivateDistributedNMF(
    ...     2, partition=3, adjacency="path", masking="scalar", encryption="simulated",
    ...     max_iter=2, tol=0, random_state=0
    ... )
    >>> print(GcdAttack().run(record(model, X, dither=False), 1, 0))
    GcdAttack, 1 on 0: masks with error 0 %, guessing 1e+02 %: 100 % recovered
    >>> GcdAttack().run(record(model, X), 1, 0).details["found"]
    0
    """

    def run(self, transcript: Transcript, attacker: Label, victim: Label) -> Leakage:
        """Attack, and compare the result with the truth.

        Parameters
        ----------
        transcript : Transcript
            A recorded fit.
        attacker, victim : label
            Two neighbours.

        Returns
        -------
        Leakage
            Its error is the share of rounds in which the factor was not found; its
            details have ``"found"`` and ``"rounds"``.

        Raises
        ------
        ValueError
            If the two are not neighbours, or the victim holds no samples.
        """
        view = attacker_view(transcript, attacker, victim)
        found = self.find(view, victim)
        masks = transcript.masks(victim, attacker)
        truth = [masks[number] for number in found]
        right = [
            factor is not None and bool(np.all(mask == factor))
            for factor, mask in zip(found.values(), truth, strict=True)
        ]
        n_rounds = len(found)
        one_each = all(len(mask) == 1 for mask in truth)
        return Leakage(
            type(self).__name__,
            attacker,
            victim,
            "masks",
            error=1.0 - sum(right) / max(1, n_rounds),
            guess_error=1.0 - 1.0 / N_MASKS,
            reconstruction=np.array([factor or 0 for factor in found.values()]),
            truth=np.concatenate(truth) if truth and one_each else None,
            n_samples=transcript.view(victim).X.shape[0],
            n_neighbours=len(transcript.public.neighbours(victim)),
            details={"found": sum(right), "rounds": n_rounds},
        )

    def find(self, view: AgentView, victim: Label) -> dict[int, int | None]:
        """Return the factor of each exchange of the left factor.

        Parameters
        ----------
        view : AgentView
            The attacker's.
        victim : label
            Its neighbour.

        Returns
        -------
        dict
            From numbers of exchanges to factors; None where the common divisor can
            be no mask.
        """
        return {
            one.number: scalar_mask(one.answers[victim])
            for one in view.left_rounds
            if victim in one.answers
        }

    def __repr__(self) -> str:
        return "GcdAttack()"


def scalar_mask(answer: NDArray[np.float64]) -> int | None:
    """Return the common divisor of an answer if it can be a mask."""
    factor = common_divisor(answer.tolist())
    return factor if LEAST <= factor <= MOST and factor % 2 else None
