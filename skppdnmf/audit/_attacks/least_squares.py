"""Attacks by the victim's update equations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from ..._consensus.masks import MASK_BITS
from .._views.transcript import AgentView, Label, Transcript
from .attack import NeighbourAttack
from .equations import FirstIteration, data_from
from .gcd import LEAST, MEAN, MOST, scalar_mask
from .leakage import Estimate

# A residual this small cannot be chance.
_EXACT = 1e-4
_MAX_STEPS = 30
_HOPELESS_STARTS = 3


class LeastSquaresAttack(NeighbourAttack):
    """Solves the victim's update equations of the first iteration for its data.

    The secret factors are those that `GcdAttack` reads off the answers, and the mean
    of all possible factors where it reads none. Of a victim with other neighbours,
    whose messages the attacker does not see, the equations hold only roughly.

    Parameters
    ----------
    masks : {"found", "known"}, default="found"
        "known" grants the attacker the victim's factors, which it has no means to
        see: an upper bound on what anyone could do who finds them.
    n_samples : int or None, default=None
        Number of the victim's samples if the attacker knows it. By default the rank
        that it finds, or its own number.
    target : {"auto", "samples", "moments"}, default="auto"
        What is to be recovered: by default the sample of a victim that has one, and
        the mean of ``x x^T`` over the samples of any other.

    Notes
    -----
    One run may succeed by luck where the attack knows no factors: the mean that it
    takes may be near those that were drawn. The 5 % from which an `AuditReport` calls
    an agent weak are within such chance. Luck does not explain a share that fits with
    other seeds repeat, as they often do for a victim with few samples.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.audit import LeastSquaresAttack, record
    >>> X = np.random.default_rng(0).exponential(size=(21, 8))
    >>> model = PrivateDistributedNMF(
    ...     2, partition=[10, 10, 1], adjacency="path", encryption="simulated",
    ...     max_iter=1, tol=0, random_state=0
    ... )
    >>> transcript = record(model, X)
    >>> bool(LeastSquaresAttack("known").run(transcript, 1, 2).recovered > 0.99)
    True
    >>> bool(LeastSquaresAttack().run(transcript, 1, 2).recovered < 0.5)
    True
    """

    def __init__(
        self, masks: str = "found", n_samples: int | None = None, target: str = "auto"
    ) -> None:
        if masks not in ("found", "known"):
            raise ValueError(f"masks={masks!r} should be 'found' or 'known'")
        self.masks = masks
        self.n_samples = n_samples
        self.target = target

    def _granted(
        self, transcript: Transcript, attacker: Label, victim: Label
    ) -> dict[str, Any]:
        if self.masks == "found":
            return {}
        return {"masks": transcript.masks(victim, attacker)}

    def reconstruct(
        self,
        view: AgentView,
        victim: Label,
        masks: dict[int, NDArray[np.float64]] | None = None,
    ) -> Estimate:
        """Estimate the victim's data from what the attacker saw.

        Parameters
        ----------
        view : AgentView
            The attacker's.
        victim : label
            Its neighbour.
        masks : dict or None, default=None
            The victim's factors for each exchange, if the attacker is granted them.

        Returns
        -------
        Estimate
        """
        equations = FirstIteration(view, victim)
        rounds = view.left_rounds[: equations.n_rounds]
        found = 0
        factors = []
        for one in rounds:
            if masks is not None:
                factor = np.asarray(masks[one.number], dtype=np.float64)
                found += 1
            else:
                divisor = scalar_mask(one.answers[victim])
                found += divisor is not None
                factor = np.array([divisor or MEAN], dtype=np.float64)
            factors.append(
                factor.reshape(view.public.start.shape if len(factor) > 1 else (1, 1))
            )
        shape = np.broadcast_shapes(*(factor.shape for factor in factors))
        array = np.array([np.broadcast_to(factor, shape) for factor in factors])
        details: dict[str, Any] = {"found": found, "rounds": len(rounds)}
        if len(rounds) < 2:
            details["failed"] = "one round leaves B unknown: max_admm_iter is 1"
            return Estimate(details=details)
        solution = equations.solve(array / 2**MASK_BITS)
        details["residual"] = float(np.linalg.norm(solution.residual))
        return data_from(view, solution, self.n_samples, details)


class JointMaskAttack(NeighbourAttack):
    """Fits the unknown scalar masks of the first iteration together with the data.

    For given factors the update equations are linear in the data; the factors, one
    number for each round, are those that leave the least residual. Entrywise masks
    are more unknowns than there are equations: there the attack fits one factor for
    each round, from few starts, and fails.

    Parameters
    ----------
    n_starts : int, default=30
        Points to start from, the first one the mean of all possible factors. Stops
        as soon as the equations hold exactly.
    n_samples : int or None, default=None
        As for `LeastSquaresAttack`.
    target : {"auto", "samples", "moments"}, default="auto"
        As for `LeastSquaresAttack`.
    random_state : int, default=0
        Seed of the other starting points.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.audit import JointMaskAttack, record
    >>> X = np.random.default_rng(0).exponential(size=(21, 8))
    >>> model = PrivateDistributedNMF(
    ...     2, partition=[10, 10, 1], adjacency="path", encryption="simulated",
    ...     masking="scalar", max_iter=1, tol=0, random_state=0
    ... )
    >>> bool(JointMaskAttack().run(record(model, X), 1, 2).recovered > 0.99)
    True
    """

    def __init__(
        self,
        n_starts: int = 30,
        n_samples: int | None = None,
        target: str = "auto",
        random_state: int = 0,
    ) -> None:
        if n_starts < 1:
            raise ValueError(f"n_starts={n_starts} should be >= 1")
        self.n_starts = n_starts
        self.n_samples = n_samples
        self.target = target
        self.random_state = random_state

    def reconstruct(self, view: AgentView, victim: Label) -> Estimate:
        """Estimate the victim's data from what the attacker saw.

        Parameters
        ----------
        view : AgentView
            The attacker's.
        victim : label
            Its neighbour.

        Returns
        -------
        Estimate
        """
        equations = FirstIteration(view, victim)
        n_rounds = equations.n_rounds
        details: dict[str, Any] = {"rounds": n_rounds}
        if n_rounds < 3:
            details["failed"] = f"{n_rounds} rounds: fewer equations than unknowns"
            return Estimate(details=details)
        least, most = LEAST / 2**MASK_BITS, MOST / 2**MASK_BITS
        rng = np.random.default_rng(self.random_state)
        n_starts = self.n_starts
        if view.public.settings.masking == "entrywise":
            n_starts = min(n_starts, _HOPELESS_STARTS)
        best = None
        for start in range(n_starts):
            factors = rng.uniform(least, most, n_rounds)
            if not start:
                factors = np.full(n_rounds, MEAN / 2**MASK_BITS)
            fit = least_squares(
                lambda factors: equations.solve(factors).residual,
                factors,
                bounds=(least, most),
                x_scale=most - least,
                max_nfev=_MAX_STEPS,
            )
            if best is None or fit.cost < best.cost:
                best = fit
            if best.cost <= _EXACT**2:
                break
        assert best is not None
        details["starts"] = start + 1
        details["factors"] = best.x * 2**MASK_BITS
        details["residual"] = float(np.sqrt(2.0 * best.cost))
        return data_from(view, equations.solve(best.x), self.n_samples, details)
