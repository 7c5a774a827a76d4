r"""What noise a guarantee takes, and what guarantee noise gives.

All totals of a fit together are one Gaussian mechanism: one that adds Gaussian noise of
standard deviation s to something that one sample changes by at most d is mu-Gaussian
differentially private with mu = d / s, and several are with the root of the sum of
their mu^2, also where each depends on what the ones before it have told (Dong, Roth,
Su 2022). It is (epsilon, delta)-differentially private for (Balle and Wang 2018)

.. math:: \delta = \Phi(-\epsilon / \mu + \mu / 2)
    - e^\epsilon \Phi(-\epsilon / \mu - \mu / 2).

The noise is not Gaussian but a sum of discrete Gaussians. What is summed is whole, so
that a Gaussian rounded to whole numbers would give the same guarantee; `remainder`
bounds how far what is drawn is from that. It is far below any delta, and added to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.optimize import brentq
from scipy.special import log_ndtr

# Of delta, at most, for noise that is no rounded Gaussian.
_LARGEST_REMAINDER = 0.01
_LARGEST_MU = 1e3


def delta_of(epsilon: float, mu: float) -> float:
    """Return the least delta of a mu-Gaussian mechanism.

    Parameters
    ----------
    epsilon : float
        0 or more.
    mu : float
        0 or more.

    Returns
    -------
    float

    Examples
    --------
    >>> from skppdnmf._secure_sum.accountant import delta_of
    >>> round(delta_of(1.0, 1.0), 4)
    0.1269
    """
    if mu == 0:
        return 0.0
    upper = float(log_ndtr(-epsilon / mu + mu / 2))
    lower = epsilon + float(log_ndtr(-epsilon / mu - mu / 2))
    return max(0.0, -math.exp(upper) * math.expm1(lower - upper))


def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest mu of which a mechanism is (epsilon, delta)-private.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        Between 0 and 1.

    Returns
    -------
    float

    Examples
    --------
    >>> from skppdnmf._secure_sum.accountant import delta_of, mu_of
    >>> mu = mu_of(3.0, 1e-5)
    >>> round(delta_of(3.0, mu) / 1e-5, 6)
    1.0
    """
    if delta_of(epsilon, _LARGEST_MU) <= delta:
        return _LARGEST_MU
    mu = brentq(lambda mu: delta_of(epsilon, mu) - delta, 0.0, _LARGEST_MU, xtol=1e-13)
    while delta_of(epsilon, mu) > delta:  # the root may lie on the wrong side
        mu *= 1.0 - 1e-12
    return float(mu)


def epsilon_of(mu: float, delta: float) -> float:
    """Return the least epsilon of a mu-Gaussian mechanism.

    Parameters
    ----------
    mu : float
        0 or more.
    delta : float
        Between 0 and 1.

    Returns
    -------
    float

    Examples
    --------
    >>> from skppdnmf._secure_sum.accountant import epsilon_of, mu_of
    >>> round(epsilon_of(mu_of(3.0, 1e-5), 1e-5), 6)
    3.0
    """
    if delta_of(0.0, mu) <= delta:
        return 0.0
    largest = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1.0
    epsilon = brentq(
        lambda epsilon: delta_of(epsilon, mu) - delta, 0.0, largest, xtol=1e-13
    )
    return float(epsilon)


def compose(*mus: float) -> float:
    """Return the mu of several mechanisms together."""
    return math.sqrt(math.fsum(mu * mu for mu in mus))


def distance_of_sum(scale: float, n_summands: int) -> float:
    """Bound how far a sum of discrete Gaussians is from a discrete Gaussian.

    Theorem of Kairouz, Liu and Steinke (2021) on the sum's probabilities.

    Parameters
    ----------
    scale : float
        Of each summand, 1/2 or more.
    n_summands : int
        How many.

    Returns
    -------
    float
        Largest difference of the logarithms of two probabilities, which bounds the
        total variation as well.
    """
    if not scale >= 0.5:
        raise ValueError(f"scale={scale:g} should be >= 0.5")
    factor = 2.0 * math.pi**2 * scale**2
    # The terms grow, and all of them are below the limit.
    terms = [math.exp(-factor * k / (k + 1)) for k in range(1, min(n_summands, 64))]
    rest = max(0, n_summands - 64) * math.exp(-factor * 64 / 65)
    return 10.0 * (math.fsum(terms) + rest)


def distance_of_rounded(scale: float) -> float:
    """Bound the total variation of a discrete and of a rounded Gaussian, scale >= 1.

    The mean of the density over a unit interval differs from its middle by at most
    1/24 of the second derivative's largest value there, and these sum to less than
    twice the integral of its absolute value, 0.97 / scale^2.
    """
    return 0.125 / scale**2


def remainder(epsilon: float, n_draws: int, scale: float, n_summands: int) -> float:
    """Return what is to be added to delta since the noise is no rounded Gaussian.

    Parameters
    ----------
    epsilon : float
        Of the guarantee.
    n_draws : int
        Whole numbers to which noise is added, in all totals.
    scale : float
        Of one agent's noise, in units; the least, if there are several.
    n_summands : int
        Agents whose noise counts.

    Returns
    -------
    float
    """
    total = scale * math.sqrt(n_summands)
    distance = distance_of_sum(scale, n_summands) + distance_of_rounded(total)
    return (1.0 + math.exp(min(epsilon, 700.0))) * n_draws * distance


@dataclass(frozen=True)
class Guarantee:
    """What is promised, and how the promise is spent.

    Parameters
    ----------
    epsilon, delta : float
        Of the whole fit.
    mu : float
        Of the whole fit as a Gaussian mechanism.
    mu_count, mu_totals : float
        The shares of the number of samples, and of all totals.
    gram_share : float
        Share of ``W^T W`` in ``mu_totals**2``.
    """

    epsilon: float
    delta: float
    mu: float
    mu_count: float
    mu_totals: float
    gram_share: float

    @classmethod
    def of(
        cls,
        epsilon: float,
        delta: float,
        gram_share: float,
        count_share: float,
    ) -> Guarantee:
        """Return the noise that a guarantee allows to be spent.

        Parameters
        ----------
        epsilon, delta : float
            Of the whole fit.
        gram_share : float
            Share of ``W^T W`` in the square of mu, of what the totals get.
        count_share : float
            Share of the number of samples in the square of mu.

        Returns
        -------
        Guarantee
        """
        mu = mu_of(epsilon, delta * (1.0 - _LARGEST_REMAINDER))
        return cls(
            epsilon,
            delta,
            mu,
            mu * math.sqrt(count_share),
            mu * math.sqrt(1.0 - count_share),
            gram_share,
        )

    def check(self, n_draws: int, scale: float, n_summands: int) -> None:
        """Refuse noise too far from a rounded Gaussian for the guarantee.

        Parameters
        ----------
        n_draws, scale, n_summands
            As for `remainder`.

        Raises
        ------
        ValueError
            If the remainder exceeds its share of delta.
        """
        rest = remainder(self.epsilon, n_draws, scale, n_summands)
        if not rest <= _LARGEST_REMAINDER * self.delta:
            raise ValueError(
                f"delta={self.delta:g} is too small for integer noise of scale "
                f"{scale:.3g} at epsilon={self.epsilon:g}: the noise is no Gaussian "
                f"by up to {rest:.3g}"
            )
