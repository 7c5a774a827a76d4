"""The accountant against closed forms, brute force and another library."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skppdnmf._secure_sum.accountant import (
    Guarantee,
    compose,
    delta_of,
    distance_of_rounded,
    distance_of_sum,
    epsilon_of,
    mu_of,
    remainder,
)


def discrete(scale, reach):
    """Probabilities of a discrete Gaussian."""
    k = np.arange(-reach, reach + 1, dtype=float)
    weight = np.exp(-(k**2) / (2 * scale**2))
    return weight / weight.sum()


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
def test_closed_form_by_integration(mu, epsilon):
    x, step = np.linspace(-12, 16, 400_001, retstep=True)
    excess = stats.norm.pdf(x, mu) - math.exp(epsilon) * stats.norm.pdf(x)
    integral = np.maximum(excess, 0).sum() * step
    assert delta_of(epsilon, mu) == pytest.approx(integral, rel=1e-6, abs=1e-10)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 20), st.floats(-12, -1))
def test_mu_and_epsilon_are_inverse(epsilon, exponent):
    delta = 10.0**exponent
    mu = mu_of(epsilon, delta)
    assert delta_of(epsilon, mu) <= delta
    assert delta_of(epsilon, mu * 1.0001) > delta
    assert epsilon_of(mu, delta) == pytest.approx(epsilon, rel=1e-5, abs=1e-6)


def test_composition_of_many():
    assert compose(3.0, 4.0) == 5.0
    assert compose(*[0.1] * 30) == pytest.approx(0.1 * math.sqrt(30))


def test_against_dp_accounting():
    accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant

    for n_totals, noise in ((8, 10.0), (30, 40.0)):
        accountant = PLDAccountant()
        event = accounting.GaussianDpEvent(noise)
        accountant.compose(event, n_totals)
        mu = math.sqrt(n_totals) / noise
        assert accountant.get_epsilon(1e-5) == pytest.approx(
            epsilon_of(mu, 1e-5), rel=1e-2
        )


@pytest.mark.parametrize("scale", [4, 8, 20])
@pytest.mark.parametrize("n_totals", [1, 2])
def test_brute_force_of_discrete_noise(scale, n_totals):
    # A pair of entries that one sample changes by 3 and 1, n_totals times.
    shifts = [3, 1] * n_totals
    epsilon = 0.5
    losses, weights = np.zeros(1), np.ones(1)
    k = np.arange(-12 * scale, 12 * scale + 1, dtype=float)
    for shift in shifts:
        loss = (shift**2 - 2 * k * shift) / (2.0 * scale**2)
        losses = np.add.outer(losses, loss).ravel()
        weights = np.multiply.outer(weights, discrete(scale, 12 * scale)).ravel()
        losses = np.round(losses * 2 * scale**2).astype(np.int64)
        losses, place = np.unique(losses, return_inverse=True)
        weights = np.bincount(place, weights)
        losses = losses / (2.0 * scale**2)
    exact = float(weights @ np.maximum(-np.expm1(epsilon - losses), 0.0))
    mu = math.sqrt(sum(shift**2 for shift in shifts)) / scale
    claimed = delta_of(epsilon, mu) + remainder(epsilon, len(shifts), scale, 1)
    assert exact <= claimed
    assert exact == pytest.approx(delta_of(epsilon, mu), rel=0.2, abs=1e-4)


@pytest.mark.parametrize("scale", [1.0, 1.5, 3.0, 10.0])
def test_rounded_gaussian_is_near(scale):
    reach = int(40 * scale)
    k = np.arange(-reach, reach + 1)
    rounded = stats.norm.cdf((k + 0.5) / scale) - stats.norm.cdf((k - 0.5) / scale)
    total_variation = 0.5 * np.abs(rounded - discrete(scale, reach)).sum()
    bound = distance_of_rounded(scale)
    assert bound / 30 < total_variation <= bound


@pytest.mark.parametrize(("scale", "n"), [(0.5, 2), (0.7, 3), (1.0, 2), (1.0, 5)])
def test_sum_of_discrete_gaussians_is_near(scale, n):
    one = discrete(scale, 40)
    total = one
    for _ in range(n - 1):
        total = np.convolve(total, one)
    reach = len(total) // 2
    whole = discrete(scale * math.sqrt(n), reach)
    middle = slice(reach - 8, reach + 9)
    ratio = np.abs(np.log(total[middle] / whole[middle])).max()
    assert ratio <= distance_of_sum(scale, n) + 1e-12


def test_distance_of_many_summands():
    exact = 10 * sum(
        math.exp(-2 * math.pi**2 * 0.25 * k / (k + 1)) for k in range(1, 200)
    )
    assert exact <= distance_of_sum(0.5, 200) <= 1.1 * exact
    with pytest.raises(ValueError, match=r"scale=0\.4"):
        distance_of_sum(0.4, 2)


def test_a_guarantee_adds_up():
    guarantee = Guarantee.of(3.0, 1e-5, gram_share=0.2, count_share=0.01)
    assert compose(guarantee.mu_count, guarantee.mu_totals) == pytest.approx(
        guarantee.mu
    )
    rest = remainder(3.0, 30 * 700, 2.0**32, 7)
    assert delta_of(3.0, guarantee.mu) + rest <= 1e-5
    guarantee.check(30 * 700, 2.0**32, 7)
    with pytest.raises(ValueError, match="delta=1e-05 is too small"):
        guarantee.check(30 * 700, 100.0, 7)
