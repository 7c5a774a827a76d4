"""What agents of the secure sum agree upon beforehand."""

from dataclasses import replace

import numpy as np
import pytest
from _sums import path_settings
from hypothesis import given
from hypothesis import strategies as st

from skppdnmf import PrivateDistributedNMF
from skppdnmf._secure_sum.left_factor import LeftPath
from skppdnmf._secure_sum.settings import (
    StartCost,
    count_starts,
    plan_sums,
    random_starts,
    settings_of,
)
from skppdnmf._secure_sum.totals import setup_words
from skppdnmf.exchange import key_degree


def estimator(**given):
    return PrivateDistributedNMF(3, protocol="secure-sum", **given)


sizes = st.tuples(
    st.integers(1, 100),
    st.integers(1, 2000),
    st.integers(1, 100),
    st.integers(0, 100),
    st.integers(0, 10**6),
)


@given(sizes, st.integers(0, 4))
def test_starts_are_one_to_eight_and_fewer_where_one_costs_more(sizes, place):
    cost = StartCost.of(*sizes)
    n_starts = count_starts("auto", cost)
    assert 1 <= n_starts <= 8
    if n_starts > 1:
        assert n_starts * cost.milliseconds <= 40
        assert n_starts * cost.megabytes <= 4
    larger = [size + (place == k) for k, size in enumerate(sizes)]
    assert StartCost.of(*larger).milliseconds >= cost.milliseconds
    assert count_starts("auto", StartCost.of(*larger)) <= n_starts
    assert count_starts(5, cost) == 5


@pytest.mark.parametrize(("n_samples", "expected"), [(900, 3), (100_000, 1)])
def test_starts_follow_from_the_number_of_samples_once_it_is_known(n_samples, expected):
    """All agents learn it with the first sum, and the left factor is not small."""
    settings = path_settings(20, n_features=200, auto_peers=19)
    path = LeftPath(random_starts(np.ones((20, 200)), 8, 0), settings)
    words = setup_words(np.ones(n_samples))
    after = path.set_up(words)
    assert after.n_starts == len(after.point) == len(after.gram) == expected
    assert path.n_starts == 8
    given = replace(settings, auto_peers=None)
    assert LeftPath(path.point, given).set_up(words).n_starts == 8


def test_binary_images_get_several_starts_and_much_data_one():
    images = StartCost.of(17, 1024, 5, 4, 256)
    assert count_starts("auto", images) >= 4
    assert count_starts("auto", StartCost.of(20, 200, 20, 19, 200_000)) == 1


@pytest.mark.parametrize("n_agents", [1, 2, 10, 60])
def test_keys_and_starts_of_an_estimator(n_agents):
    degree, n_starts = plan_sums(estimator(), n_agents, 3, 20)
    assert degree == key_degree(n_agents)
    assert n_starts == 8
    assert plan_sums(estimator(key_degree=2, n_init=3), n_agents, 3, 20) == (2, 3)
    # What is given is followed alone.
    for init in ("ones", np.ones((3, 20))):
        assert plan_sums(estimator(init=init, n_init=3), n_agents, 3, 20)[1] == 1


@pytest.mark.parametrize("n_starts", [1, 4])
def test_starts_begin_with_the_common_one_and_follow_from_the_seed(n_starts):
    first = np.full((2, 5), 7.0)
    starts = random_starts(first, n_starts, seed=3)
    assert starts.shape == (n_starts, 2, 5)
    np.testing.assert_array_equal(starts[0], first)
    np.testing.assert_array_equal(random_starts(first, n_starts, seed=3), starts)
    assert (starts >= 0).all()
    others = random_starts(first, n_starts, seed=4)
    assert (others[1:] != starts[1:]).all()
    assert len({start.tobytes() for start in starts}) == n_starts


def test_settings_are_the_estimators():
    given = {"max_iter": 7, "tol": 0.1, "n_max": 10**5, "l1_ratio": 0.25}
    settings = settings_of(estimator(alpha_W=0.5, alpha_H=0.2, **given), 4, 6)
    assert {name: getattr(settings, name) for name in given} == given
    assert isinstance(settings.n_max, float)
    assert settings.n_agents == 4
    assert not settings.exact
    assert settings.left_alpha == 0.2
    assert settings.right_penalty == (0.5 * 6 * 0.25, 0.5 * 6 * 0.75)
    same = settings_of(estimator(alpha_W=0.5), 1, 6)
    assert same.left_alpha == 0.5
    assert same.exact
