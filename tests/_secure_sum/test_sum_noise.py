"""The sampler of discrete Gaussians: its distribution and its source."""

import numpy as np
import pytest
from scipy import stats

from skppdnmf._secure_sum.noise import LARGEST_SCALE, discrete_gaussian, os_words


def seeded(seed):
    """A source that a test can repeat."""
    rng = np.random.default_rng(seed)
    return lambda n: rng.integers(0, 2**64, size=n, dtype=np.uint64)


def chi_square(draws, scale):
    """The p value of draws against exact probabilities, few tail cells joined."""
    reach = 12 * scale
    support = np.arange(-reach, reach + 1)
    weight = np.exp(-(support.astype(float) ** 2) / (2 * scale**2))
    expected = len(draws) * weight / weight.sum()
    counts = np.bincount(draws + reach, minlength=len(support))
    inner = expected >= 8
    f_obs = np.append(counts[inner], counts[~inner].sum())
    f_exp = np.append(expected[inner], expected[~inner].sum())
    return stats.chisquare(f_obs, f_exp * f_obs.sum() / f_exp.sum()).pvalue


@pytest.mark.parametrize("scale", [1, 2, 3, 7, 40])
def test_probabilities(scale):
    draws = discrete_gaussian(scale, 200_000, seeded(scale))
    assert chi_square(draws, scale) > 1e-3


def test_chi_square_finds_a_slightly_wrong_scale():
    assert chi_square(discrete_gaussian(41, 400_000, seeded(1)), 40) < 1e-6


@pytest.mark.parametrize("scale", [1 << 20, (1 << 36) + 12345, LARGEST_SCALE])
def test_large_scales_are_gaussian(scale):
    draws = discrete_gaussian(scale, 100_000, seeded(3)) / scale
    assert stats.kstest(draws, "norm").pvalue > 1e-3


def test_low_bits_are_uniform():
    draws = discrete_gaussian(1 << 36, 64_000, seeded(4))
    assert stats.chisquare(np.bincount(draws % 64)).pvalue > 1e-3


def test_draws_are_independent_of_their_place():
    draws = discrete_gaussian(100, 100_000, seeded(5))
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.02
    first, second = np.split(draws, 2)
    assert stats.ks_2samp(first, second).pvalue > 1e-3


def test_comes_from_the_operating_system_by_default():
    one, other = discrete_gaussian(1 << 30, 50), discrete_gaussian(1 << 30, 50)
    assert not np.array_equal(one, other)
    assert len(np.unique(os_words(1000))) == 1000


@pytest.mark.parametrize("size", [0, 1, 5])
def test_sizes(size):
    draws = discrete_gaussian(5, size)
    assert draws.shape == (size,)
    assert draws.dtype == np.int64


@pytest.mark.parametrize("scale", [0, -1, LARGEST_SCALE + 1])
def test_scale_out_of_range(scale):
    with pytest.raises(ValueError, match=f"scale={scale}"):
        discrete_gaussian(scale, 3)
