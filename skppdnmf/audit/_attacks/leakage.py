"""How much an attack has recovered, against guessing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from .._views.transcript import AgentView, Label, Transcript

TARGETS = ("auto", "samples", "moments")  # of an agent, to choose from
ABOUT_ALL = ("pool", "membership", "attribute")  # without a victim


class Estimate(NamedTuple):
    """What an attack brings home, before anybody compares it with the truth.

    Parameters
    ----------
    samples : ndarray of shape (n, F) or None
        The victim's samples, in any order.
    moments : ndarray of shape (F, F) or None
        Mean of ``x x^T`` over the victim's samples.
    details : dict
        Whatever else it found out.
    """

    samples: NDArray[np.float64] | None = None
    moments: NDArray[np.float64] | None = None
    details: dict[str, Any] = {}  # noqa: RUF012 - a NamedTuple, never changed


@dataclass(frozen=True)
class Leakage:
    """How much an attack has recovered.

    Parameters
    ----------
    attack : str
        Name of the attack.
    attacker, victim : label or None
        The agents; no attacker for an eavesdropper, no victim for all others at
        once.
    target : str
        What was to be recovered: ``"samples"`` of the victim, ``"moments"``, the mean
        of ``x x^T`` over them, ``"summand"``, what it added to a secure sum,
        ``"pool"``, all others' samples without names, ``"masks"``, its secret factors,
        ``"links"``, anything from the links, ``"membership"``, whether a sample is
        among the others', or ``"attribute"``, a value of such a sample.
    error, guess_error : float
        Relative error of the reconstruction, and of the best guess without the
        transcript: the mean of the attacker's own samples for each sample, their
        second moments for moments. Under the secure sum those of everybody but the
        victim, see `PooledSimulationAttack`.
    reconstruction, truth, guess : ndarray or None
        What the attack found, what it should have found, and the guess.
    n_samples, n_neighbours : int
        Of the victim.
    details : dict
        Figures of the attack's own.

    Examples
    --------
    >>> from skppdnmf.audit import Leakage
    >>> print(Leakage("GuessAttack", "a", "b", "samples", error=0.1, guess_error=0.4))
    GuessAttack, a on b: samples with error 10 %, guessing 40 %: 75 % recovered
    """

    attack: str
    attacker: Label
    victim: Label
    target: str
    error: float
    guess_error: float
    reconstruction: NDArray | None = None
    truth: NDArray | None = None
    guess: NDArray | None = None
    n_samples: int = 0
    n_neighbours: int = 0
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def recovered(self) -> float:
        """Recovered share, ``1 - error / guess_error`` within [0, 1]."""
        if not self.guess_error > 0:
            return 0.0
        return float(np.clip(1.0 - self.error / self.guess_error, 0.0, 1.0))

    def __str__(self) -> str:
        who = "links" if self.attacker is None else f"{self.attacker}"
        whom = "all others" if self.target in ABOUT_ALL else f"{self.victim}"
        if self.target == "membership":
            return f"{self.attack}, {who} on {whom}: {_in_areas(self.details)}"
        if self.target == "attribute":
            return (
                f"{self.attack}, {who} on {whom}: {self.details['decided']} attributes "
                f"in a pool of {self.details['pool']}, "
                f"{100 * self.details['right']:.0f} % right (guessing 50 %); from the "
                f"components alone {100 * self.details['components_right']:.0f} %"
            )
        return (
            f"{self.attack}, {who} on {whom}: {self.target} with error "
            f"{100 * self.error:.2g} %, guessing {100 * self.guess_error:.2g} %: "
            f"{100 * self.recovered:.3g} % recovered"
        )


def _in_areas(details: dict[str, Any]) -> str:
    """Say how well members were told from others."""
    low, high = details["auc_interval"]
    kind = "a list of candidates" if details["kind"] == "list" else "single candidates"
    return (
        f"membership of {kind} in a pool of {details['pool']} with AUC "
        f"{details['auc']:.3f} ({low:.3f} to {high:.3f}), "
        f"{100 * details['true_positives']:.0f} % found at 1 % false positives; from "
        f"the components alone AUC {details['components_auc']:.3f}{_most(details)}"
    )


def _most(details: dict[str, Any]) -> str:
    """Say what a guarantee leaves, if there is one."""
    if "most_auc" not in details:
        return ""
    return f"; epsilon={details['epsilon']:g} leaves {details['most_auc']:.3f} at most"


def dense(X: Any) -> NDArray[np.float64]:
    """Return data as a dense float64 array."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def mean_moments(X: Any) -> NDArray[np.float64]:
    """Return the mean of ``x x^T`` over the samples; zero if there is none."""
    X = dense(X)
    return X.T @ X / max(1, len(X))


def mean_sample(X: Any) -> NDArray[np.float64]:
    """Return the mean sample; zero if there is none."""
    X = dense(X)
    return X.sum(axis=0) / max(1, len(X))


def relative_error(estimate: NDArray, truth: NDArray) -> float:
    """Return the distance from the truth over its norm; 0 if that is zero."""
    return float(np.linalg.norm(estimate - truth) / (np.linalg.norm(truth) or np.inf))


def in_order_of(samples: NDArray, truth: NDArray) -> NDArray[np.float64]:
    """Sort samples, which have no order, so that they come closest to the truth."""
    distances = ((truth[:, None, :] - samples[None, :, :]) ** 2).sum(axis=2)
    rows, columns = linear_sum_assignment(distances)
    result = np.empty_like(truth)
    result[rows] = samples[columns]
    return result


def score(
    attack: str,
    transcript: Transcript,
    attacker: AgentView,
    victim: Label,
    estimate: Estimate,
    target: str = "auto",
) -> Leakage:
    """Compare what an attack brought home with the truth.

    Parameters
    ----------
    attack : str
        Its name.
    transcript : Transcript
        Where the truth is.
    attacker : AgentView
        Whose samples make the guess.
    victim : label
        Whose data were to be recovered.
    estimate : Estimate
        The attack's result.
    target : {"auto", "samples", "moments"}, default="auto"
        "auto" takes the sample itself of a victim that holds one, and the second
        moments otherwise: several samples are found as an unordered set at best.

    Returns
    -------
    Leakage

    Raises
    ------
    ValueError
        If the target is unknown.
    """
    if target not in TARGETS:
        raise ValueError(f"target={target!r} should be one of {TARGETS}")
    X = dense(transcript.view(victim).X)
    n_samples = len(X)
    samples, moments = estimate.samples, estimate.moments
    if target == "auto":
        target = "samples" if n_samples == 1 else "moments"
    reconstruction: NDArray | None
    if target == "samples":
        truth = X
        guess = repeated(mean_sample(attacker.X), n_samples)
        reconstruction = None
        if samples is not None and len(samples) == n_samples:
            reconstruction = in_order_of(samples, truth)
    else:
        truth, guess = mean_moments(X), mean_moments(attacker.X)
        reconstruction = moments
        if reconstruction is None and samples is not None:
            reconstruction = mean_moments(samples)
    guess_error = relative_error(guess, truth) if truth.any() else 0.0
    error = guess_error
    if reconstruction is not None and truth.any():
        error = relative_error(reconstruction, truth)
    return Leakage(
        attack,
        attacker.label,
        victim,
        target,
        error,
        guess_error,
        reconstruction,
        truth,
        guess,
        n_samples,
        len(transcript.public.neighbours(victim)),
        dict(estimate.details),
    )


def score_pooled(
    attack: str,
    transcript: Transcript,
    attacker: AgentView,
    victim: Label,
    estimate: Estimate,
    target: str,
) -> Leakage:
    """Compare what was found of all others' samples with one agent's or with all.

    Parameters
    ----------
    attack, transcript, attacker, estimate
        As for `score`; the estimate is of all others' samples, with their ``mean`` in
        its details.
    victim : label or None
        Whose data to compare it with; None for all others' samples as a set.
    target : {"auto", "samples", "moments"}
        Of the victim; see `PooledSimulationAttack`.

    Returns
    -------
    Leakage
    """
    own = dense(attacker.X)
    hidden = [victim]
    if victim is None:
        hidden = [agent for agent in transcript.agents if agent != attacker.label]
    truth = np.vstack([dense(transcript.view(agent).X) for agent in hidden])
    details = dict(estimate.details)
    reconstruction: NDArray | None = estimate.samples
    guess = repeated(mean_sample(own), len(truth))
    n_neighbours = 0
    if victim is None:
        target = "pool"
        drawn = np.resize(own, truth.shape) if len(own) else guess
        guesses = [guess, in_order_of(drawn, truth)]
        guess = min(guesses, key=lambda one: float(np.linalg.norm(one - truth)))
    else:
        n_neighbours = len(transcript.public.neighbours(victim))
        details["own_guess_error"] = relative_error(guess, truth)
        others = [transcript.view(a).X for a in transcript.agents if a != victim]
        rest = np.vstack([dense(X) for X in others])
        guess = repeated(mean_sample(rest), len(truth))
        if target == "auto":
            alone = details["pool"] == len(truth) > 1
            target = "moments" if alone else "samples"
        if reconstruction is None or len(reconstruction) != len(truth):
            # Nothing says which of them are the victim's.
            reconstruction = repeated(details["mean"], len(truth))
        if target == "moments":
            own_guess = relative_error(mean_moments(own), mean_moments(truth))
            details["own_guess_error"] = own_guess
            truth, guess = mean_moments(truth), mean_moments(rest)
            reconstruction = estimate.moments
    if reconstruction is not None and target != "moments":
        reconstruction = in_order_of(reconstruction, truth)
    guess_error = error = relative_error(guess, truth)
    if reconstruction is not None:
        error = relative_error(reconstruction, truth)
    n_samples = sum(transcript.view(agent).X.shape[0] for agent in hidden)
    return Leakage(
        attack,
        attacker.label,
        victim,
        target,
        error,
        guess_error,
        reconstruction,
        truth,
        guess,
        n_samples,
        n_neighbours,
        details,
    )


def repeated(sample: NDArray, n: int) -> NDArray[np.float64]:
    """Return the same sample n times."""
    return np.repeat(sample[None, :], n, axis=0)
