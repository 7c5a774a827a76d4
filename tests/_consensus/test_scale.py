from itertools import pairwise

import numpy as np
import pytest
from _helpers import GRAPHS
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf._consensus.scale import (
    N_MAX,
    N_VALUES,
    VALUE_BITS,
    AveragingPlan,
    PrivateAverage,
    plan_averaging,
)
from skppdnmf._data.graph import make_network
from skppdnmf.exchange import DifferenceExchange, MaskStream, SimulatedCipher


def target(numbers, unit=0.0):
    """Power mean or, without a unit, geometric mean of the positive numbers."""
    if unit:
        return np.mean(np.sqrt(numbers)) ** 2
    positive = [x for x in numbers if x > 0]
    return np.exp(np.mean(np.log(positive))) if positive else 0.0


def make_averages(network, numbers, plan=None, unit=0.0):
    plan = plan or plan_averaging(network.adjacency)
    return [PrivateAverage(number, plan, unit) for number in numbers]


def metropolis(network, i):
    """Weights of agent i's edges."""
    degrees = network.degrees
    return 1.0 / (1.0 + np.maximum(degrees[i], degrees[network.neighbours[i]]))


def run(network, numbers, rng, plan=None, entrywise=True, unit=0.0):
    """All estimates after the plan's rounds, under random masks in [0.1, 1]."""
    averages = make_averages(network, numbers, plan, unit)
    while not averages[0].done:
        shape = (network.n_agents, network.n_agents, N_VALUES if entrywise else 1)
        g = rng.uniform(0.1, 1.0, shape)
        values = np.array([average.values for average in averages])
        for i, average in enumerate(averages):
            j = network.neighbours[i]
            masked = g[i, j] * g[j, i] * (values[j] - values[i])
            average.update(metropolis(network, i) @ masked)
    return np.array([average.mean() for average in averages])


def draw_numbers(rng, n, n_zeros):
    numbers = rng.lognormal(size=n)
    numbers[rng.permutation(n)[:n_zeros]] = 0.0
    return numbers


def errors(name, n, n_zeros, unit, n_trials=40):
    """Relative errors of the leader, whose estimate counts, over several trials."""
    network = make_network(name, n, 0)
    leader = int(np.argmin(network.eccentricities))
    result = []
    for seed in range(n_trials):
        rng = np.random.default_rng(seed)
        numbers = draw_numbers(rng, n, n_zeros)
        estimate = run(network, numbers, rng, entrywise=False, unit=unit)[leader]
        result.append(abs(estimate / target(numbers, unit) - 1))
    return result


@pytest.mark.parametrize("unit", [0.0, 0.7])
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(("n", "n_zeros"), [(3, 0), (6, 0), (10, 0), (6, 2), (10, 3)])
def test_estimate_is_near_the_mean(name, n, n_zeros, unit):
    found = errors(name, n, n_zeros, unit)
    assert np.median(found) < 0.02
    assert np.quantile(found, 0.9) < 0.05


@pytest.mark.parametrize("unit", [0.0, 0.7])
@pytest.mark.parametrize(("name", "n", "n_zeros"), [("path", 2, 0), ("ring", 3, 0)])
def test_every_estimate_is_near_the_mean(name, n, n_zeros, unit):
    assert max(errors(name, n, n_zeros, unit)) < 0.05


@pytest.mark.parametrize("unit", [0.0, 0.7])
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("entrywise", [True, False])
def test_random_masks_leave_no_bias(name, entrywise, unit):
    """Given rounds enough, every agent knows the mean exactly."""
    network = make_network(name, 7, 1)
    rng = np.random.default_rng(0)
    numbers = draw_numbers(rng, 7, 2)
    plan = AveragingPlan(3000, 1.0)
    np.testing.assert_allclose(
        run(network, numbers, rng, plan, entrywise, unit),
        target(numbers, unit),
        rtol=1e-8,
    )


@pytest.mark.parametrize("name", GRAPHS)
def test_momentum_keeps_the_mean(name):
    network = make_network(name, 8, 2)
    rng = np.random.default_rng(1)
    numbers = draw_numbers(rng, 8, 1)
    plan = AveragingPlan(1500, plan_averaging(network.adjacency).momentum)
    np.testing.assert_allclose(
        run(network, numbers, rng, plan), target(numbers), rtol=1e-8
    )


@given(
    st.sampled_from(GRAPHS),
    st.integers(2, 10),
    st.floats(1e-30, 1e30),
    st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=50)
def test_equivariant_under_scaling(name, n, factor, seed):
    network = make_network(name, n, seed)
    rng = np.random.default_rng(seed)
    numbers = draw_numbers(rng, n, int(rng.integers(n)))
    # Under one mask for both numbers of an agent; with a mask for each of them the
    # presence and the logarithm of agents that take no part spread differently.
    expected, scaled = (
        run(network, x, np.random.default_rng(seed), entrywise=False)
        for x in (numbers, factor * numbers)
    )
    np.testing.assert_allclose(scaled / factor, expected, rtol=1e-9)


@given(
    st.sampled_from(GRAPHS),
    st.integers(2, 10),
    st.floats(1e-30, 1e30),
    st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=30)
def test_equivariant_under_entrywise_masks_where_all_take_part(name, n, factor, seed):
    network = make_network(name, n, seed)
    numbers = draw_numbers(np.random.default_rng(seed), n, 0)
    expected, scaled = (
        run(network, x, np.random.default_rng(seed))
        for x in (numbers, factor * numbers)
    )
    np.testing.assert_allclose(scaled / factor, expected, rtol=1e-9)


def test_equivariant_where_the_share_overshoots():
    average = PrivateAverage(4.0, AveragingPlan(1, 1.0))
    scaled = PrivateAverage(4.0e30, AveragingPlan(1, 1.0))
    log = np.log2(1e30)
    average.update(np.array([0.01, 0.05]))
    scaled.update(np.array([0.01, 0.05 + 0.01 * log]))
    assert scaled.mean() == pytest.approx(1e30 * average.mean(), rel=1e-9)


@pytest.mark.parametrize("name", GRAPHS)
def test_equal_numbers_are_their_own_mean(name):
    network = make_network(name, 6, 0)
    estimates = run(network, np.full(6, 3.7e-20), np.random.default_rng(0))
    np.testing.assert_allclose(estimates, 3.7e-20, rtol=1e-12)


@pytest.mark.parametrize("name", GRAPHS)
def test_all_zero_gives_zero(name):
    network = make_network(name, 5, 0)
    estimates = run(network, np.zeros(5), np.random.default_rng(0))
    np.testing.assert_array_equal(estimates, 0.0)


@pytest.mark.parametrize("number", [0.0, 2.5e-7, 1.0, 4e20])
def test_one_agent(number):
    average = PrivateAverage(number, plan_averaging(np.zeros((1, 1))))
    assert average.done
    assert average.mean() == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("masking", ["entrywise", "scalar"])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_fixed_point_changes_little(name, masking, scale):
    """The rounds of the encrypted exchange, against the same without rounding."""
    network = make_network(name, 6, 3)
    rng = np.random.default_rng(5)
    numbers = scale * draw_numbers(rng, 6, 1)
    plan = AveragingPlan(150, 1.0)
    averages = make_averages(network, numbers, plan)
    sides = [
        DifferenceExchange(
            SimulatedCipher(256),
            int(network.degrees[i]),
            n_values=N_VALUES,
            n_max=N_MAX,
            masking=masking,
            key_size=256,
            value_bits=VALUE_BITS,
            streams=MaskStream(bytes([7, i, *range(14)])).spawn(
                int(network.degrees[i])
            ),
        )
        for i in range(6)
    ]
    place = [{int(j): k for k, j in enumerate(row)} for row in network.neighbours]
    while not averages[0].done:
        requests = [
            side.begin(average.values)
            for side, average in zip(sides, averages, strict=True)
        ]
        for i, j in network.directed_edges:
            request = requests[i][place[i][j]]
            (reply,) = sides[j].answer([(place[j][i], None, request)])
            assert sides[i].accept(place[i][j], reply) is None
        for i, (side, average) in enumerate(zip(sides, averages, strict=True)):
            average.update(side.weighted_sum(metropolis(network, i)))
            assert side.value_bits == VALUE_BITS
    for average in averages:
        assert average.mean() == pytest.approx(target(numbers), rel=0.1)


@pytest.mark.parametrize("name", GRAPHS)
def test_small_numbers_hardly_move_the_mean(name):
    network = make_network(name, 6, 0)
    numbers = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 1e-12])
    unit = run(network, numbers, np.random.default_rng(0))[0]
    assert unit < 0.05
    plan = AveragingPlan(1500, 1.0)
    found = run(network, numbers, np.random.default_rng(1), plan, unit=unit)
    np.testing.assert_allclose(found, target(numbers, unit), rtol=1e-6)
    assert target(numbers, unit) > 1.9


def test_no_number_counts_for_more_than_fits():
    average = PrivateAverage(1e30, AveragingPlan(0, 1.0), unit=1.0)
    assert 2 * np.abs(average.values).max() * N_MAX < 2**VALUE_BITS
    assert average.mean() == 2.0**22


def test_largest_double_fits_the_first_slots():
    average = PrivateAverage(1.7e308, AveragingPlan(0, 1.0))
    # Twice, for momentum may overshoot.
    assert 2 * np.abs(average.values).max() * N_MAX < 2**VALUE_BITS


@pytest.mark.parametrize("name", GRAPHS)
def test_plan_does_not_depend_on_the_numbering(name):
    network = make_network(name, 9, 0)
    plan = plan_averaging(network.adjacency)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(9)
        assert plan_averaging(network.adjacency[np.ix_(order, order)]) == plan


def test_plan_takes_longer_for_longer_paths():
    rounds = [
        plan_averaging(make_network("path", n).adjacency).n_rounds
        for n in (1, 2, 4, 8, 16, 60)
    ]
    assert rounds[0] == 0
    assert all(a <= b for a, b in pairwise(rounds))
    assert rounds[1] < rounds[2] < rounds[3]
