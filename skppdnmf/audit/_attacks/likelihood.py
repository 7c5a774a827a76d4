"""Decides from a sum over the others' samples which samples are among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from .evidence import Evidence

Array = NDArray[np.float64]

# Shrinkage of the covariance in shares of its trace, and the pull of least squares in
# shares of the largest eigenvalue.
_SHRINKAGES = 10.0 ** np.arange(-9, 1)
_PULLS = 10.0 ** np.arange(-14, -2)
_MOST_CHECKED = 500  # references that say how well the covariance of the rest does
LEAST_REFERENCES = 4


def solve_list(evidence: Evidence, candidates: Array) -> Array:
    """Return for each candidate of a list how much of it is in the sum, 0 or 1.

    Least squares, drawn towards the share of the list that the others hold. Of several
    strengths of the pull that is taken whose answers are nearest to 0 and 1. Where the
    sum has noise, the pull is its variance over that of being a member.

    Parameters
    ----------
    evidence : Evidence
        What is known of the others' samples.
    candidates : ndarray of shape (n, F)
        The list; the others' samples are among them.

    Returns
    -------
    ndarray of shape (n,)
    """
    traces = evidence.traces(candidates)
    matrix = evidence.inner(traces, traces)
    share = min(1.0, evidence.n_samples / len(candidates))
    best, nearest = np.full(len(candidates), share), np.inf
    eigenvalues, vectors = np.linalg.eigh(matrix)
    if not eigenvalues[-1] > 0:
        return best
    left = vectors.T @ (evidence.with_sum(traces) - share * matrix.sum(axis=1))
    pulls = _PULLS * eigenvalues[-1]
    if evidence.noise:
        pulls = np.array([evidence.noise / max(share * (1.0 - share), 1e-6)])
    for pull in pulls:
        found = share + vectors @ (left / (np.maximum(eigenvalues, 0.0) + pull))
        distance = float(np.mean(np.minimum(found**2, (1.0 - found) ** 2)))
        if distance < nearest:
            best, nearest = found, distance
    return best


def decide_list(evidences: Sequence[Evidence], candidates: Array) -> Array:
    """Return for each candidate how much of it is in any of several sums.

    Parameters
    ----------
    evidences : sequence of Evidence
        Of different others.
    candidates : ndarray of shape (n, F)
        As for `solve_list`.

    Returns
    -------
    ndarray of shape (n,)
    """
    return np.sum([solve_list(one, candidates) for one in evidences], axis=0)


def judge(
    evidences: Sequence[Evidence],
    references: Array,
    random_state: int,
    samples: Array,
    instead_of: Array | None = None,
) -> Array:
    """Return logarithms of likelihood ratios from one sum or several.

    Parameters
    ----------
    evidences : sequence of Evidence
        Of different others; a sample is in one of the sums at most.
    references, random_state
        As for `LikelihoodRatio`.
    samples : ndarray of shape (n, F)
        Candidates.
    instead_of : ndarray of shape (n, F) or None, default=None
        With it, of each pair one is in a sum; without, the candidate may be in none.

    Returns
    -------
    ndarray of shape (n,)
    """
    ratios = [LikelihoodRatio(one, references, random_state) for one in evidences]
    if len(ratios) == 1 and instead_of is not None:
        return ratios[0].second(instead_of, samples)
    shares = np.array([one.n_samples for one in evidences], dtype=float)
    prior = np.log(shares / shares.sum())[:, None]

    def anywhere(rows: Array) -> Array:
        return logsumexp([one.membership(rows) for one in ratios] + prior, axis=0)

    found = anywhere(samples)
    return found if instead_of is None else found - anywhere(instead_of)


class _Seen(NamedTuple):
    """Inner products of what samples add, or of a difference, less the mean."""

    basis: Array  # in the principal axes of the basis
    checked: Array
    total: Array  # with the sum
    square: Array  # with itself
    twice_centre: Array  # what the statistic's threshold is made of
    axes_square: Array  # the same in each principal axis


class LikelihoodRatio:
    """Gaussian likelihood ratios of a sum, with moments from reference samples.

    Without a sample the sum is that of others drawn as the references were; with it,
    the sample and others. The covariance of what a sample adds comes from two thirds of
    the references; it is shrunk so that the rest, too, are told apart from candidates.

    Parameters
    ----------
    evidence : Evidence
        What is known of the others' samples.
    references : ndarray of shape (R, F)
        Samples of the same distribution, `LEAST_REFERENCES` or more.
    random_state : int
        Seed of the split.
    """

    def __init__(
        self, evidence: Evidence, references: Array, random_state: int
    ) -> None:
        self._evidence = evidence
        mixed = np.random.default_rng(random_state).permutation(len(references))
        n_checked = min(_MOST_CHECKED, len(references) // 3)
        self._checked = evidence.traces(references[mixed[:n_checked]])
        self._basis = evidence.traces(references[mixed[n_checked:]])
        self._n_basis = len(references) - n_checked
        inner = evidence.inner(self._basis, self._basis)
        self._means, self._mean = inner.mean(axis=0), float(inner.mean())
        eigenvalues, self._axes = np.linalg.eigh(
            inner - self._means[:, None] - self._means + self._mean
        )
        self._eigenvalues = np.maximum(eigenvalues, 0.0)
        checked = evidence.inner(self._basis, self._checked)
        self._checked_means = checked.mean(axis=0)
        self._checked_axes = self._in_axes(checked)
        sums = evidence.with_sum(self._basis)
        self._sum_mean = float(sums.mean())
        m = evidence.n_samples
        self._sum_axes = self._axes.T @ (
            sums - self._sum_mean - m * (self._means - self._mean)
        )

    def membership(self, samples: Array) -> Array:
        """Return the logarithm of the ratio for each sample, taken by itself.

        Parameters
        ----------
        samples : ndarray of shape (n, F)
            Candidates.

        Returns
        -------
        ndarray of shape (n,)
            The larger, the more likely it is among the others' samples.
        """
        return self._ratio(self._look(samples))

    def second(self, one: Array, other: Array) -> Array:
        """Return the logarithm of the ratio of the second of two samples to the first.

        Parameters
        ----------
        one, other : ndarray of shape (n, F)
            Of each pair one is among the others' samples.

        Returns
        -------
        ndarray of shape (n,)
            Positive where it is likelier the second.
        """
        evidence = self._evidence
        first, then = self._look(one), self._look(other)
        common = evidence.paired(evidence.traces(one), evidence.traces(other))
        # Means cancel in the difference but not in the product.
        common = common - self._mean_with(one) - self._mean_with(other) + self._mean
        return self._ratio(
            _Seen(
                then.basis - first.basis,
                then.checked - first.checked,
                then.total - first.total,
                then.square + first.square - 2.0 * common,
                then.twice_centre - first.twice_centre,
                then.axes_square - first.axes_square,
            )
        )

    def _in_axes(self, with_basis: Array) -> Array:
        """Turn inner products with the basis to its principal axes, less the means."""
        centred = with_basis - self._means[:, None] - with_basis.mean(axis=0)
        return self._axes.T @ (centred + self._mean)

    def _mean_with(self, samples: Array) -> Array:
        """Inner products of samples' traces with the mean trace."""
        traces = self._evidence.traces(samples)
        return self._evidence.inner(self._basis, traces).mean(axis=0)

    def _look(self, samples: Array) -> _Seen:
        """Compute all inner products of samples' traces."""
        evidence, m = self._evidence, self._evidence.n_samples
        traces = evidence.traces(samples)
        basis = evidence.inner(self._basis, traces)
        means = basis.mean(axis=0)
        checked = evidence.inner(self._checked, traces)
        square = evidence.paired(traces, traces) - 2.0 * means + self._mean
        axes = self._in_axes(basis)
        return _Seen(
            axes,
            checked - self._checked_means[:, None] - means + self._mean,
            evidence.with_sum(traces) - self._sum_mean - m * (means - self._mean),
            square,
            square,
            axes**2,
        )

    def _ratio(self, seen: _Seen) -> Array:
        """Return the ratios under the shrinkage that tells the most."""
        m = max(1, self._evidence.n_samples)
        best, sharpest = np.zeros(len(seen.total)), -1.0
        trace = self._eigenvalues.sum()
        if not trace > 0:
            return best
        noise_of_sum, shrinkages = self._evidence.noise, list(_SHRINKAGES * trace)
        if noise_of_sum:  # what is best if the references say all of the rest
            shrinkages.append(noise_of_sum * self._n_basis / m)
        for shrinkage in shrinkages:
            # The inverse of a covariance of low rank plus a multiple of one.
            weights = 1.0 / (shrinkage + self._eigenvalues)
            weighted = seen.basis * weights[:, None]
            shift = seen.square - np.sum(weighted * seen.basis, axis=0)
            centre = 0.5 * (seen.twice_centre - weights @ seen.axes_square)
            statistic = seen.total - self._sum_axes @ weighted
            noise = seen.checked - self._checked_axes.T @ weighted
            variance = m * np.mean(noise**2, axis=0)
            if noise_of_sum:
                squares = seen.basis**2
                length = seen.square - 2.0 * weights @ squares
                length += (weights**2 * self._eigenvalues) @ squares
                variance = variance + noise_of_sum * np.maximum(length, 0.0)
            usable = variance > 0
            variance = np.where(usable, variance, 1.0)
            sharpness = float(np.mean(np.where(usable, shift / variance**0.5, 0.0)))
            if sharpness > sharpest:
                ratio = (statistic - centre) * shift / variance
                best, sharpest = np.where(usable, ratio, 0.0), sharpness
        return best
