"""The attack on an agent that drops out: totals with it and without it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._views.transcript import AgentView, Label, Transcript
from .leakage import Leakage, dense, mean_sample, relative_error, repeated
from .membership import checked_references, others_samples, settings
from .noisy_pool import most_by_guarantee
from .pool import Pool

Array = NDArray[np.float64]

_SHRINKAGES = 10.0 ** np.arange(-12, 1)
_MOST = 1000  # references; more cost memory and tell hardly more


class DropoutAttack:
    """Takes the total after a dropout from that before, under the secure sum.

    With ``on_dropout="continue"`` the fit goes on without an agent. The last total with
    it and the first without it belong to left factors that differ little, and what the
    others' summands change between them is predicted from reference samples: a linear
    regression on what is known of the total after. What is left is the summand of the
    agent that has dropped out, with its name; of a single sample it is ``w w^T`` and
    ``w x^T``, from which the sample follows.

    Parameters
    ----------
    references : array-like of shape (n_references, n_features)
        Other samples of the same distribution. No more than 1,000 are used.
    random_state : int, default=0
        Seed of the split of the references.

    Notes
    -----
    The attacker is told how many samples the agent held. The guess to compare with is
    the mean of all others' samples, for a summand the mean summand of references.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.audit import DropoutAttack, record
    >>> X = np.random.default_rng(0).exponential(size=(200, 8))
    >>> model = PrivateDistributedNMF(
    ...     3, partition=[10, 10, 10, 1], protocol="secure-sum", max_iter=20, tol=0,
    ...     on_dropout="continue", random_state=0
    ... )
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # that an agent has dropped out
    ...     transcript = record(model, X[:31], dropouts={3: 15})
    >>> leakage = DropoutAttack(X[31:]).run(transcript, 0, 3)
    >>> leakage.target, leakage.recovered > 0.8
    ('samples', True)
    """

    def __init__(self, references: ArrayLike, random_state: int = 0) -> None:
        self.references = checked_references(references)
        self.random_state = random_state

    def run(self, transcript: Transcript, attacker: Label, victim: Label) -> Leakage:
        """Attack, and compare the result with the truth.

        Parameters
        ----------
        transcript : Transcript
            A fit under ``protocol="secure-sum"`` in which an agent dropped out.
        attacker : label
            Any agent that was left.
        victim : label
            The one that dropped out.

        Returns
        -------
        Leakage
            Its target is ``"samples"`` of an agent that held one, else ``"summand"``:
            both totals of its own samples.

        Raises
        ------
        ValueError
            If there is no such agent, it held nothing, or no total is known from before
            and after a dropout.
        """
        view = transcript.view(attacker)
        truth = dense(transcript.view(victim).X)
        if victim == attacker:
            raise ValueError(f"agent {attacker!r} cannot attack itself")
        if not len(truth):
            raise ValueError(f"agent {victim!r} holds no samples to be found")
        started = time.perf_counter()
        summand, details = self.reconstruct(view, len(truth))
        seconds = time.perf_counter() - started
        pool = Pool(view, len(view.sums), with_dropouts=True)
        before, after = _around(pool)
        true_summand = _summands(pool, truth, before, after)[0].sum(axis=0)
        references = self._chosen()
        mean_summand = _summands(pool, references, before, after)[0].mean(axis=0)
        error = relative_error(summand, true_summand)
        guess = len(truth) * mean_summand
        target, found = "summand", summand
        details |= {
            "summand_error": error,
            "summand_guess_error": relative_error(guess, true_summand),
            "pool": len(others_samples(transcript, attacker)),
            "seconds": seconds,
        }
        correct = true_summand
        if len(truth) == 1:
            rest = [
                dense(transcript.view(label).X)
                for label in transcript.agents
                if label != victim
            ]
            target, correct = "samples", truth
            found = details.pop("sample")[None]
            guess = repeated(mean_sample(np.vstack(rest)), 1)
        return Leakage(
            type(self).__name__,
            attacker,
            victim,
            target,
            error=relative_error(found, correct),
            guess_error=relative_error(guess, correct),
            reconstruction=np.atleast_2d(found),
            truth=np.atleast_2d(correct),
            guess=np.atleast_2d(guess),
            n_samples=len(truth),
            n_neighbours=len(transcript.public.neighbours(victim)),
            details=details,
        )

    def reconstruct(
        self, view: AgentView, n_samples: int
    ) -> tuple[Array, dict[str, Any]]:
        """Estimate the lost agent's last summand from what the attacker saw.

        Parameters
        ----------
        view : AgentView
            The attacker's.
        n_samples : int
            How many samples the lost agent held.

        Returns
        -------
        summand : ndarray
            The entries of both totals, one start after the other.
        details : dict
            With the ``sample`` whose summand it would be, if it were one, and the
            ``step`` of the last total with the agent.
        """
        if not view.sums:
            raise ValueError(
                f"protocol={view.public.protocol!r}: no agent learns totals"
            )
        if "epsilon" in most_by_guarantee(view):
            raise ValueError(
                "with epsilon no total is formed after a dropout; there is nothing to "
                "compare"
            )
        pool = Pool(view, len(view.sums), with_dropouts=True)
        before, after = _around(pool)
        n_left = pool.n_samples - n_samples
        earlier, later = _summands(pool, self._chosen(), before, after)
        change = earlier - later
        totals = [
            _flat(stage.totals.gram[starts], stage.totals.products[starts])
            for stage, starts in (
                (pool.stages[before], pool.stages[after].kept),
                (pool.stages[after], slice(None)),
            )
        ]
        unexplained = totals[1] - n_left * later.mean(axis=0)
        predicted = n_left * change.mean(axis=0)
        predicted += _regressed(later, change, unexplained, self.random_state)
        summand = totals[0] - totals[1] - predicted
        stage = pool.stages[before]
        n_starts, (_, K, F) = len(pool.stages[after].point), stage.point.shape
        sample = _sample_of(summand.reshape(n_starts, -1), K, F)
        return summand, {"sample": sample, "step": before + 1}

    def _chosen(self) -> Array:
        """Return references, not too many."""
        assert self.references is not None
        rng = np.random.default_rng(self.random_state)
        return self.references[rng.permutation(len(self.references))[:_MOST]]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({settings(self)})"


def _around(pool: Pool) -> tuple[int, int]:
    """Return the last sum before the first dropout and the first after it."""
    epochs = [stage.epoch for stage in pool.stages]
    later = [k for k, epoch in enumerate(epochs) if epoch > epochs[0]]
    if not later or not later[0]:
        raise ValueError("no agent dropped out between two totals of this fit")
    return later[0] - 1, later[0]


def _flat(gram: Array, products: Array) -> Array:
    """Return the distinct entries of totals, one start after the other."""
    rows, columns = np.triu_indices(gram.shape[-1])
    parts = [gram[:, rows, columns], products.reshape(len(products), -1)]
    return np.concatenate(parts, axis=1).ravel()


def _summands(pool: Pool, X: Array, before: int, after: int) -> tuple[Array, Array]:
    """Return each sample's summand in two sums, of the starts that are left."""
    right = pool.simulate(X)
    kept = pool.stages[after].kept
    results = []
    for W in (right[before].products[kept], right[after].products):
        rows, columns = np.triu_indices(W.shape[1])
        gram = (W[:, rows] * W[:, columns]).transpose(2, 0, 1)
        products = np.einsum("skn,nf->nskf", W, X)
        parts = [gram, products.reshape(*gram.shape[:2], -1)]
        results.append(np.concatenate(parts, axis=2).reshape(len(X), -1))
    return results[0], results[1]


def _regressed(known: Array, wanted: Array, value: Array, random_state: int) -> Array:
    """Return what a sum of deviations from the mean predicts of that of others.

    Ridge regression; two thirds of the samples fit it, the rest choose its strength.
    """
    mixed = np.random.default_rng(random_state).permutation(len(known))
    checked, fitted = np.split(mixed, [max(1, len(known) // 3)])
    known = known - known.mean(axis=0)
    wanted = wanted - wanted.mean(axis=0)
    basis = known[fitted]
    eigenvalues, axes = np.linalg.eigh(basis @ basis.T)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    answers = axes.T @ wanted[fitted]
    seen = (known[checked] @ basis.T) @ axes
    best, lowest = np.zeros(wanted.shape[1]), float(np.sum(wanted[checked] ** 2))
    value_seen = (basis @ value) @ axes
    for shrinkage in _SHRINKAGES * (eigenvalues.sum() or 1.0):
        weighted = answers / (eigenvalues + shrinkage)[:, None]
        missed = float(np.sum((seen @ weighted - wanted[checked]) ** 2))
        if missed < lowest:
            best, lowest = value_seen @ weighted, missed
    return best


def _sample_of(summands: Array, K: int, F: int) -> Array:
    """Return the sample whose summands these are, averaged over the starts."""
    rows, columns = np.triu_indices(K)
    samples = []
    for summand in summands:
        gram = np.zeros((K, K))
        gram[rows, columns] = gram[columns, rows] = summand[: len(rows)]
        products = summand[len(rows) :].reshape(K, F)
        # Of rank one: w x^T, with the length of w from w w^T.
        w = np.abs(np.linalg.svd(products)[0][:, 0])
        square = float(w @ gram @ w)
        if square > 0:
            samples.append(np.maximum(products.T @ w / square**0.5, 0.0))
    return np.mean(samples, axis=0) if samples else np.zeros(F)
