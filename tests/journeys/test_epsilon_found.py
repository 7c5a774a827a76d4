"""What an attack gets of epsilon over pairs of whole fits, with noise and without."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.journey

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "bench_epsilon.py"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("bench_epsilon", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_planted_sample_is_found_no_better_than_promised(bench):
    epsilon, n_pairs = 0.8, 80
    for noise in (True, False):
        for without, with_it in bench.measure(epsilon, n_pairs, 600, noise):
            found = bench.empirical_epsilon(without, with_it, bench.DELTA)
            if noise:
                assert found <= epsilon
            else:  # as far above as so many pairs can show
                assert found > 2.2


def test_the_bound_holds_for_scores_whose_epsilon_is_known(bench):
    """Of Gaussian scores it is rarely above the truth, and not far below."""
    rng = np.random.default_rng(0)
    mu, delta = 1.5, 1e-3
    from skppdnmf._secure_sum.accountant import epsilon_of

    truth = epsilon_of(mu, delta)
    found = [
        bench.empirical_epsilon(
            rng.standard_normal(500), mu + rng.standard_normal(500), delta
        )
        for _ in range(100)
    ]
    assert np.mean(np.array(found) > truth) <= 0.05
    assert np.median(found) > 0.2 * truth
