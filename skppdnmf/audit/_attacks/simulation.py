"""The attack that no mask stops: simulate the victim and correct the guess."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares

from ..._consensus.masks import MASK_BITS
from .._views.transcript import AgentView, Label
from .attack import NeighbourAttack
from .gcd import LEAST, MEAN, MOST
from .leakage import Estimate, dense, mean_sample
from .membership import checked_references
from .replay import Replay, masked_difference, own_values

Array = NDArray[np.float64]

# Secret factors, as parts of 2**MASK_BITS.
_FACTORS = (LEAST / 2**MASK_BITS, MOST / 2**MASK_BITS)
_TRIED_SAMPLES = (1, 2, 3)
_STEP = 1e-4  # of finite differences, relative
_TOLERANCE = 1e-5
_GROWTH = 3  # of the number of rounds that are fitted, from stage to stage
# A share of values this large needs factors in the range of masks: a wrong guess
# has about a quarter of them there, the right one nearly all.
_PLAUSIBLE = 0.6
_MARGIN = 0.1
# How far the answers are from the simulated ones at the truth, relative to their
# size: the standard deviation of a mask over its root mean square.
_BLUR = 0.43
_EXACT = 1e-3


class _Fit(NamedTuple):
    """A data set that explains the answers, and how well it does."""

    rows: Array
    n_rounds: int
    plausible: float
    cost: float


class SimulationAttack(NeighbourAttack):
    """Simulates the victim on guessed samples and fits them to the masked answers.

    Everything that an agent does is a function of its samples, of what is public,
    and of what its neighbours sent. Secret factors only blur the comparison of the
    simulated with the real answers. The fit starts with few rounds and takes more as
    long as it explains them. It runs the very code of an agent.

    Parameters
    ----------
    n_samples : int or None, default=None
        Number of the victim's samples if the attacker knows it; by default the
        first of 1, 2 and 3 that explains the answers.
    max_rounds : int, default=60
        Exchanges to fit.
    max_fitted : int, default=10
        Samples to fit at most; more samples are represented by so many.
    n_starts : int, default=3
        Guesses to start from: the attacker's mean sample and some of its samples.
    max_steps : int, default=25
        Steps of each least squares fit.
    target : {"auto", "samples", "moments"}, default="auto"
        As for `LeastSquaresAttack`.
    random_state : int, default=0
        Seed of the starting guesses.
    references : array-like of shape (n_references, n_features) or None, default=None
        Other samples of the same distribution. With them guesses start from these and
        are drawn towards their mean, and not from the attacker's own samples alone.

    Notes
    -----
    What other neighbours of the victim send is unknown to the attacker, which takes
    their left factors to be like its own. This explains few rounds, and the attack
    recovers accordingly less.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.audit import SimulationAttack, record
    >>> X = np.random.default_rng(0).exponential(size=(21, 8))
    >>> model = PrivateDistributedNMF(
    ...     2, partition=[10, 10, 1], adjacency="path", encryption="simulated",
    ...     max_iter=12, tol=0, random_state=4
    ... )
    >>> bool(SimulationAttack().run(record(model, X), 1, 2).recovered > 0.95)
    True
    """

    def __init__(
        self,
        n_samples: int | None = None,
        max_rounds: int = 60,
        max_fitted: int = 10,
        n_starts: int = 3,
        max_steps: int = 25,
        target: str = "auto",
        random_state: int = 0,
        references: ArrayLike | None = None,
    ) -> None:
        for name, value in (
            ("n_samples", 1 if n_samples is None else n_samples),
            ("max_rounds", max_rounds),
            ("max_fitted", max_fitted),
            ("n_starts", n_starts),
            ("max_steps", max_steps),
        ):
            if value < 1:
                raise ValueError(f"{name}={value} should be >= 1")
        self.n_samples = n_samples
        self.max_rounds = max_rounds
        self.max_fitted = max_fitted
        self.n_starts = n_starts
        self.max_steps = max_steps
        self.target = target
        self.random_state = random_state
        self.references = checked_references(references)

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
        tried = _TRIED_SAMPLES if self.n_samples is None else (self.n_samples,)
        known = dense(view.X)
        if self.references is not None:
            known = np.vstack([known, self.references])
        problem = _Problem(view, victim, known)
        best: tuple[int, _Fit] | None = None
        for n_samples in tried:
            fit = self._fit(problem, view, n_samples)
            if best is None or _better(fit, best[1]):
                best = n_samples, fit
            if fit.n_rounds >= min(self.max_rounds, problem.n_rounds):
                break
        assert best is not None
        n_samples, fit = best
        details: dict[str, Any] = {
            "n_samples": n_samples,
            "fitted": len(fit.rows),
            "rounds": fit.n_rounds,
            "plausible": fit.plausible,
            "samples": fit.rows,
        }
        samples = fit.rows if len(fit.rows) == n_samples else None
        return Estimate(samples, fit.rows.T @ fit.rows / n_samples, details)

    def _fit(self, problem: _Problem, view: AgentView, n_samples: int) -> _Fit:
        """Fit more and more rounds as long as they are explained."""
        rng = np.random.default_rng(self.random_state)
        n_rows = min(n_samples, self.max_fitted)
        size = np.sqrt(n_samples / n_rows)
        most = min(self.max_rounds, problem.n_rounds)
        stages = [1, problem.first]
        while stages[-1] < most:
            stages.append(stages[-1] * _GROWTH)
        result: _Fit | None = None
        starts = [
            size * _starting_rows(view, problem.known, n_rows, k, rng)
            for k in range(self.n_starts)
        ]
        for n_rounds in sorted({min(stage, most) for stage in stages}):
            if result is not None:
                starts = [result.rows, *starts]
            fits = []
            for rows in starts:
                fits.append(problem.fit(rows, n_rounds, n_samples, self.max_steps))
                if fits[-1].plausible >= _PLAUSIBLE:
                    break
            fit = min(fits, key=lambda fit: fit.cost)
            if result is not None and fit.plausible < _PLAUSIBLE:
                break
            result = fit
            starts = starts[-1:]  # one other guess, besides the result
        assert result is not None
        return result


class _Problem:
    """The masked answers, and how far guessed samples are from explaining them."""

    def __init__(self, view: AgentView, victim: Label, known: Array) -> None:
        self._view, self._victim = view, victim
        self.known = known
        self._answers = masked_difference(view, victim)
        self._own = own_values(view)
        self._scalar = view.public.settings.masking == "scalar"
        rms = np.sqrt(np.mean(self._answers**2, axis=(1, 2), keepdims=True))
        self._rms = np.where(rms > 0, rms, 1.0)
        self.n_rounds = len(self._answers)
        self.first = sum(one.iteration == 0 for one in view.left_rounds)

    def fit(self, rows: Array, n_rounds: int, n_samples: int, max_steps: int) -> _Fit:
        """Fit samples to the first rounds from a starting guess."""
        replay = Replay(self._view, self._victim, n_rounds)
        scale = np.maximum(rows, _MARGIN * (rows.mean() or 1.0))

        center, weight = self._prior(rows.shape[0] / n_samples)

        def residual(values: Array) -> Array:
            guess = values.reshape(rows.shape) * scale
            return np.concatenate(
                [self._residual(replay(guess)), (weight * (guess - center)).ravel()]
            )

        # Away from the bound, from which the first step would lead nowhere.
        start = np.maximum(rows / scale, 1e-3).ravel()
        fit = least_squares(
            residual,
            start,
            bounds=(0, np.inf),
            diff_step=_STEP,
            ftol=_TOLERANCE,
            xtol=_TOLERANCE,
            max_nfev=max_steps,
        )
        found = fit.x.reshape(rows.shape) * scale
        return _Fit(found, n_rounds, self._plausible(replay(found)), fit.cost)

    def _prior(self, share: float) -> tuple[Array, Array]:
        """Return the mean of the samples that are known and how much it weighs."""
        own = self.known
        if len(own) < 2:
            return np.zeros(own.shape[1]), np.zeros(own.shape[1])
        # Each fitted row stands for 1 / share samples.
        center, spread = own.mean(axis=0), own.std(axis=0)
        floor = _MARGIN * (spread.mean() or center.mean() or 1.0)
        noise = _EXACT if self._scalar else _BLUR
        root = np.sqrt(share)
        return center / root, noise * root / np.maximum(spread, floor)

    def _residual(self, U: Array) -> Array:
        """Difference between the answers and those of the simulated victim."""
        n_rounds = len(U)
        answers = self._answers[:n_rounds]
        differences = U - self._own[:n_rounds]
        factors: Any = MEAN / 2**MASK_BITS
        if self._scalar:  # one factor a round: the one that fits best
            square = np.sum(differences**2, axis=(1, 2), keepdims=True)
            inner = np.sum(differences * answers, axis=(1, 2), keepdims=True)
            square[square == 0] = 1.0
            factors = np.clip(inner / square, *_FACTORS)
        return ((answers - factors * differences) / self._rms[:n_rounds]).ravel()

    def _plausible(self, U: Array) -> float:
        """Share of the answers that a factor in the range of masks explains."""
        n_rounds = len(U)
        answers = self._answers[:n_rounds]
        differences = U - self._own[:n_rounds]
        low = (1 - _MARGIN) * _FACTORS[0] * np.abs(differences)
        high = (1 + _MARGIN) * _FACTORS[1] * np.abs(differences)
        size = np.abs(answers)
        right = (answers * differences >= 0) & (size >= low) & (size <= high)
        return float(np.mean(right))


def _better(fit: _Fit, other: _Fit) -> bool:
    """Whether a fit explains more rounds, or as many better."""
    if fit.n_rounds != other.n_rounds:
        return fit.n_rounds > other.n_rounds
    return fit.cost < other.cost


def _starting_rows(
    view: AgentView, own: Array, n_rows: int, k: int, rng: np.random.Generator
) -> Array:
    """Guess samples: the mean of known ones, or mixtures of it with these."""
    if not len(own):  # a relay knows the result at least
        public = view.public
        weights = rng.exponential(
            np.sqrt(public.scale), size=(n_rows, len(public.start))
        )
        return weights @ (public.components / public.unit)
    mean = mean_sample(own)
    if n_rows == 1 and not k:
        return mean[None, :]
    chosen = own[rng.choice(len(own), n_rows, replace=len(own) < n_rows)]
    return (chosen + mean) / 2.0 * rng.uniform(0.8, 1.25, size=chosen.shape)
