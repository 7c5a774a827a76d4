"""The attack on what all others add up to: simulate them as one pool of samples."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls
from sklearn.cluster import KMeans

from .._views.transcript import AgentView, Label, Transcript
from .evidence import Evidence, SumEvidence, evidence_of, pool_of
from .gradient_fit import GradientFit
from .gradients import GradientEvidence
from .leakage import TARGETS, Estimate, Leakage, dense, score_pooled
from .membership import checked_references, settings, sizes_of_others
from .noisy_pool import NoisyPool
from .pool import Pool
from .pool_fit import EXPLAINED, Fit, PoolFit

Array = NDArray[np.float64]

_FEW = 4  # samples that stand for many
_MOST_REFERENCES = 1200
_MOST_FROM_REFERENCES = 40  # samples
_RANK = 1e-12  # smaller eigenvalues, in shares of the largest, are noise


class _Found(NamedTuple):
    """Samples that stand for those of some of the others."""

    fit: Fit
    n_samples: int
    n_sums: int


class PooledSimulationAttack:
    """Fits a data set of all other agents to what their samples add up to.

    Under the secure sum these are the totals, from which the attacker subtracts its own
    summand, under the consensus the gradients at the end of iterations, which follow
    from the answers of its neighbours, and otherwise the one at the components. It
    knows how many samples the others hold, simulates them on a guess, and mends the
    guess until it explains the sums. The result is a set of samples without names:
    of a single agent the attacker can say no more than their mean, unless all of them
    are that agent's.

    Parameters
    ----------
    max_sums : int, default=20
        Sums to use; under noise spread over all.
    max_fitted : int, default=12
        Samples to fit at most; more samples are represented by four, fitted once,
        which say nothing of each. With references it is at least 40.
    n_starts : int, default=12
        Guesses to start from, mixtures of the attacker's mean and its samples, or
        combinations of references.
    max_steps : int, default=60
        Steps of each fit.
    max_seconds : float or None, default=None
        No step is begun after so many seconds.
    target : {"auto", "samples", "moments"}, default="auto"
        What to score of a named victim: its samples, or the mean of ``x x^T`` over
        them. "auto" takes the samples, but the moments where the victim holds several
        and nobody else but the attacker holds any. The moments of the pool are known,
        and an agent's are like them the more the larger its share in the pool.
    random_state : int, default=0
        Seed of the guesses.
    references : array-like of shape (n_references, n_features) or None, default=None
        Other samples of the same distribution. Nonnegative least squares finds weights
        with which they come close to the totals; the guesses are those of positive
        weight, gathered into as many groups as there are samples to be found.

    Notes
    -----
    The guess to compare with is the mean of all agents' samples but the victim's,
    which is more than any agent knows: what follows from others' data alone is no
    leak of the victim's. One sample among m of others has a share of 1 / m in their
    mean, and this share is recovered of it by whoever learns the mean. For the whole
    pool as a set without names (no victim) the guess is what the attacker has itself,
    its mean for every sample or its samples, whichever comes closer in the best
    order. Compared in the best order, even wrong samples may come closer.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.audit import PooledSimulationAttack, record
    >>> X = np.random.default_rng(0).exponential(size=(12, 8))
    >>> model = PrivateDistributedNMF(
    ...     3, partition=[10, 1, 1], protocol="secure-sum", max_iter=12, tol=0,
    ...     random_state=0
    ... )
    >>> transcript = record(model, X)
    >>> attack = PooledSimulationAttack()
    >>> bool(attack.run(transcript, 0).recovered > 0.95)  # both, without names
    True
    >>> bool(attack.run(transcript, 0, 1).recovered < 0.6)
    True
    """

    def __init__(
        self,
        max_sums: int = 20,
        max_fitted: int = 12,
        n_starts: int = 12,
        max_steps: int = 60,
        max_seconds: float | None = None,
        target: str = "auto",
        random_state: int = 0,
        references: ArrayLike | None = None,
    ) -> None:
        for name, value in (
            ("max_sums", max_sums),
            ("max_fitted", max_fitted),
            ("n_starts", n_starts),
            ("max_steps", max_steps),
        ):
            if value < 1:
                raise ValueError(f"{name}={value} should be >= 1")
        if target not in TARGETS:
            raise ValueError(f"target={target!r} should be one of {TARGETS}")
        self.max_sums = max_sums
        self.max_fitted = max_fitted
        self.n_starts = n_starts
        self.max_steps = max_steps
        self.max_seconds = max_seconds
        self.target = target
        self.random_state = random_state
        self.references = checked_references(references)

    def run(
        self, transcript: Transcript, attacker: Label, victim: Label = None
    ) -> Leakage:
        """Attack, and compare the result with the truth.

        Parameters
        ----------
        transcript : Transcript
            A fit under any protocol.
        attacker : label
            Any agent.
        victim : label or None, default=None
            Any other; None for the set of all others' samples, without names.

        Returns
        -------
        Leakage
            Its target is ``"samples"`` or ``"moments"`` of the victim, ``"pool"``
            without one.

        Raises
        ------
        ValueError
            If there is no such agent, the attacker is the victim, or there are no
            samples to be found.
        """
        return self.run_many(transcript, attacker, [victim])[0]

    def run_many(
        self, transcript: Transcript, attacker: Label, victims: list[Label]
    ) -> list[Leakage]:
        """Attack once and compare the result with several truths.

        Parameters
        ----------
        transcript, attacker
            As for `run`.
        victims : list of label or None
            As for `run`.

        Returns
        -------
        list of Leakage
            One for each victim.

        Raises
        ------
        ValueError
            As in `run`.
        """
        view = transcript.view(attacker)
        for victim in victims:
            _check_victim(transcript, attacker, victim)
        started = time.perf_counter()
        estimate = self.reconstruct(view, sizes_of_others(transcript, attacker))
        estimate.details["seconds"] = time.perf_counter() - started
        name = type(self).__name__
        return [
            score_pooled(name, transcript, view, victim, estimate, self.target)
            for victim in victims
        ]

    def reconstruct(
        self, view: AgentView, sizes: Mapping[Label, int] | None = None
    ) -> Estimate:
        """Estimate all others' samples from what the attacker saw.

        Parameters
        ----------
        view : AgentView
            The attacker's.
        sizes : dict from label to int or None, default=None
            How many samples each of the others holds; totals tell it anyway.

        Returns
        -------
        Estimate
            Samples only if as many were fitted as there are.
        """
        deadline = math.inf
        if self.max_seconds is not None:
            deadline = time.perf_counter() + self.max_seconds
        rng = np.random.default_rng(self.random_state)
        found: list[_Found] = []
        if view.sums:
            pool = pool_of(view, self.max_sums)
            found.append(self._found(view, SumEvidence(pool), pool, rng, deadline))
        else:
            evidences = evidence_of(view, sizes or {}, self.max_sums)
            found += [self._found(view, e, None, rng, deadline) for e in evidences]
        n_samples = sum(one.n_samples for one in found)
        shares = [one.n_samples / n_samples for one in found]
        rows = [one.fit.rows for one in found]
        pairs = list(zip(shares, rows, strict=True))
        moments = [share * part.T @ part / len(part) for share, part in pairs]
        details: dict[str, Any] = {
            "pool": n_samples,
            "fitted": sum(map(len, rows)),
            "sums": max(one.n_sums for one in found),
            "misfit": max(one.fit.misfit for one in found),
            "mean": sum(share * part.mean(axis=0) for share, part in pairs),
            "cut": time.perf_counter() > deadline,
        }
        complete = all(one.n_samples == len(one.fit.rows) for one in found)
        return Estimate(np.vstack(rows) if complete else None, sum(moments), details)

    def _found(
        self,
        view: AgentView,
        evidence: Evidence,
        pool: Pool | NoisyPool | None,
        rng: np.random.Generator,
        deadline: float,
    ) -> _Found:
        """Fit the samples of all others, or of those that the attacker separates."""
        n_samples = evidence.n_samples
        most = self.max_fitted
        if self.references is not None:
            most = max(most, _MOST_FROM_REFERENCES)
        complete = n_samples <= most
        n_rows = n_samples if complete else min(most, _FEW)
        problem: PoolFit | GradientFit
        squared_norm = None
        if pool is not None:
            problem, n_sums = PoolFit(pool, n_rows), len(pool.stages)
            squared_norm = pool.squared_norm
        else:
            assert isinstance(evidence, GradientEvidence)
            problem, n_sums = GradientFit(evidence, n_rows), len(evidence.totals())
        weighted = None
        if self.references is not None:
            chosen = rng.permutation(len(self.references))[:_MOST_REFERENCES]
            weighted = _weighted(evidence, self.references[chosen])
        best: Fit | None = None
        for _ in range(self.n_starts if complete else 1):
            if weighted is None:
                rows = _starting_rows(view, n_samples, squared_norm, n_rows, rng)
            else:
                rows = _gathered(*weighted, n_rows, rng)
            fit = problem.run(rows, self.max_steps, deadline)
            if best is None or fit.misfit < best.misfit:
                best = fit
            if best.misfit < EXPLAINED or time.perf_counter() > deadline:
                break
        assert best is not None
        return _Found(best, n_samples, n_sums)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({settings(self)})"


def _check_victim(transcript: Transcript, attacker: Label, victim: Label) -> None:
    """Refuse a victim of whom nothing can be found."""
    if victim is None:
        others = [label for label in transcript.agents if label != attacker]
        if not any(transcript.view(label).X.shape[0] for label in others):
            raise ValueError(f"no agent but {attacker!r} holds samples to be found")
        return
    if victim == attacker:
        raise ValueError(f"agent {attacker!r} cannot attack itself")
    if not transcript.view(victim).X.shape[0]:
        raise ValueError(f"agent {victim!r} holds no samples to be found")


def _weighted(evidence: Evidence, references: Array) -> tuple[Array, Array]:
    """Return the references that come closest to the sums, and their weights."""
    traces = evidence.traces(references)
    eigenvalues, axes = np.linalg.eigh(evidence.inner(traces, traces))
    used = eigenvalues > _RANK * eigenvalues[-1]
    roots = np.sqrt(eigenvalues[used])
    target = (axes[:, used].T @ evidence.with_sum(traces)) / roots
    weights, _ = nnls((axes[:, used] * roots).T, target, maxiter=30 * len(references))
    positive = weights > 0
    if not positive.any():
        return references, np.ones(len(references))
    return references[positive], weights[positive]


def _gathered(
    rows: Array, weights: Array, n_rows: int, rng: np.random.Generator
) -> Array:
    """Gather samples with weights into groups, and return the means of these."""
    if len(rows) < n_rows:
        more = rng.choice(len(rows), n_rows - len(rows))
        rows, weights = np.vstack([rows, rows[more]]), np.append(weights, weights[more])
    # Duplicates would leave groups empty.
    rows = rows * rng.uniform(0.999, 1.001, size=rows.shape)
    groups = KMeans(n_rows, n_init=1, random_state=int(rng.integers(2**31)))
    centres = groups.fit(rows, sample_weight=weights).cluster_centers_
    return np.maximum(centres, 1e-3 * centres.mean())


def _starting_rows(
    view: AgentView,
    n_samples: int,
    squared_norm: float | None,
    n_rows: int,
    rng: np.random.Generator,
) -> Array:
    """Guess samples of the pool's size: mixtures of the attacker's, or components."""
    own = dense(view.X)
    if own.any():
        chosen = own[rng.choice(len(own), n_rows, replace=len(own) < n_rows)]
        rows = (chosen + own.mean(axis=0)) / 2.0
    else:
        components = view.public.components
        rows = rng.exponential(size=(n_rows, len(components))) @ components
    rows = rows * rng.uniform(0.8, 1.25, size=rows.shape)
    rows = np.maximum(rows, 1e-3 * rows.mean())
    if squared_norm is None:
        return rows
    share = n_samples / n_rows
    size = math.sqrt(max(squared_norm, 0.0) / share)
    return rows * (size / (np.linalg.norm(rows) or 1.0))
