"""The exchange of differences: what a round finds, and in what numbers."""

import numpy as np
import pytest
from _difference import (
    check_differences,
    make_sides,
    make_streams,
    random_values,
    run_round,
    secret_factors,
)
from _helpers import GRAPHS
from _paillier_keys import MASKINGS
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf._data.graph import make_network
from skppdnmf.exchange import (
    REPLY,
    REQUEST,
    WIDEN,
    DifferenceExchange,
    PlainCipher,
    SimulatedCipher,
    fixed_point,
)

# One round ----------------------------------------------------------------------


@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize("kind", ["plain", "simulated", "paillier"])
@pytest.mark.parametrize("name", GRAPHS)
def test_rows_are_masked_differences(name, kind, masking):
    network = make_network(name, 4, 0)
    sides = make_sides(network, 7, kind, masking=masking)
    rng = np.random.default_rng(1)
    for _ in range(2):
        values = random_values(rng, 4, 7, 3.0)
        run_round(network, sides, values)
        check_differences(network, sides, values)


@given(
    n=st.integers(2, 5),
    name=st.sampled_from(GRAPHS),
    masking=st.sampled_from(MASKINGS),
    n_max=st.integers(0, 40).map(lambda b: 2.0**b) | st.sampled_from([1.0, 10.0**6]),
    size=st.floats(1e-3, 1e12),
    value_bits=st.integers(1, 100),
    n_values=st.integers(1, 12),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=80)
def test_any_scale_and_magnitude(
    n, name, masking, n_max, size, value_bits, n_values, seed
):
    network = make_network(name, n, seed)
    rng = np.random.default_rng(seed)
    values = random_values(rng, n, n_values, size)
    # Some agents' values are far smaller than others'.
    values *= 10.0 ** rng.integers(-6, 1, size=(n, 1))
    sides = make_sides(
        network, n_values, n_max=n_max, masking=masking, value_bits=value_bits
    )
    run_round(network, sides, values)
    check_differences(network, sides, values)


@pytest.mark.parametrize("kind", ["simulated", "paillier"])
@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize("n_max", [2.0**30, 2.0**40])
def test_python_integers(kind, masking, n_max):
    network = make_network("path", 3)
    values = np.array([[1e12, -1e12, 0.3], [-1e12, 1e12, 1e12], [0.0, 5e11, -7.25]])
    assert fixed_point(values[0], n_max)[0].dtype == object
    sides = make_sides(network, 3, kind, n_max=n_max, masking=masking)
    run_round(network, sides, values)
    check_differences(network, sides, values)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([-1, 0, 1]), st.integers(0, 48), st.sampled_from([-1, 0])
        ),
        min_size=2,
        max_size=2 * 5,
    ),
    st.sampled_from(MASKINGS),
)
@settings(deadline=None, max_examples=60)
def test_values_next_to_powers_of_two_do_not_wrap(parts, masking):
    numbers = [float(sign * (2**bits + step)) for sign, bits, step in parts]
    half = len(numbers) // 2
    values = [numbers[:half], numbers[half : 2 * half]]
    network = make_network("path", 2)
    sides = make_sides(network, half, n_max=1.0, masking=masking, value_bits=1)
    run_round(network, sides, values)
    check_differences(network, sides, values)


def test_rounding_to_the_grid_of_n_max():
    network = make_network("path", 2)
    sides = make_sides(network, 2, n_max=10.0, masking="scalar")
    run_round(network, sides, [[0.04, 0.26], [0.0, 0.34]])
    g = secret_factors(network, sides)
    row = sides[0].differences()[0] * 10 / (g[0, 1] * g[1, 0])
    # 0.04 is 0 tenths, 0.26 and 0.34 are both 3 tenths: only the dithers are left.
    assert (np.abs(row) <= 0.5).all()


def test_secrets_are_fresh_in_every_round():
    network = make_network("complete", 3)
    sides = make_sides(network, 50)
    values = np.ones((3, 50))
    seen = []
    for _ in range(3):
        run_round(network, sides, values)
        seen += list(secret_factors(network, sides).values())
        # All differences are zero: what remains is the dither, which must be there.
        assert all(side.differences().any() for side in sides)
    assert len({factor.tobytes() for factor in seen}) == len(seen) == 18
    assert all(len(np.unique(factor)) > 25 for factor in seen)


def test_scalar_masking_has_one_factor_for_each_edge():
    network = make_network("complete", 3)
    sides = make_sides(network, 50, masking="scalar")
    run_round(network, sides, np.ones((3, 50)))
    factors = secret_factors(network, sides)
    assert all(len(np.unique(factor)) == 1 for factor in factors.values())
    assert len({factor[0] for factor in factors.values()}) > 3


@pytest.mark.parametrize("masking", MASKINGS)
def test_simulated_and_encrypted_are_bit_identical(masking):
    network = make_network("random", 5, 1)
    rng = np.random.default_rng(2)
    options = {"masking": masking, "value_bits": 3, "n_max": 2.0**20, "seed": 9}
    simulated = make_sides(network, 6, "simulated", **options)
    encrypted = make_sides(network, 6, "paillier", **options)
    for size in (0.01, 30.0, 2e9):
        values = random_values(rng, 5, 6, size)
        sent = [run_round(network, sides, values) for sides in (simulated, encrypted)]
        for one, other in zip(simulated, encrypted, strict=True):
            np.testing.assert_array_equal(one.differences(), other.differences())
        weights = [
            [
                (i, j, m.kind, m.value_bits, m.n_bytes, m.n_ciphertexts)
                for i, j, m in part
            ]
            for part in sent
        ]
        assert weights[0] == weights[1]


@pytest.mark.parametrize("kind", ["plain", "simulated"])
def test_answers_together_equal_answers_one_by_one(kind):
    network = make_network("star", 5)
    values = random_values(np.random.default_rng(3), 5, 4, 100.0)
    values[1] *= 1e-4
    results = []
    for together in (False, True):
        sides = make_sides(network, 4, kind, value_bits=10)
        requests = [side.begin(v) for side, v in zip(sides, values, strict=True)]
        asked = [(k, None, requests[j][0]) for k, j in enumerate(range(1, 5))]
        if together:
            replies = sides[0].answer(asked)
        else:
            replies = [sides[0].answer([one])[0] for one in asked]
        results.append([(m.kind, m.value_bits, m.n_bytes) for m in replies])
        for reply in replies:
            if reply.kind == REPLY:
                results[-1].append(reply.payload.data.tolist())
    assert results[0] == results[1]
    widened = [result for result in results[0] if result[0] == WIDEN]
    assert len(widened) == (1 if kind == "simulated" else 0)


class NegatingCipher:
    """Sends everything with the sign turned, and is none of the known ciphers."""

    def __init__(self):
        self._inner = PlainCipher()

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def open(self, reply, layout):
        return -self._inner.open(reply, layout)

    def answer_unit(self, n_max):
        return -self._inner.answer_unit(n_max)


def test_any_cipher_of_the_protocol_will_do():
    network = make_network("path", 3)
    values = random_values(np.random.default_rng(5), 3, 4, 2.0)
    known, other = (make_sides(network, 4, "plain", seed=3) for _ in range(2))
    for side in other:
        side.cipher = NegatingCipher()
    for sides in (known, other):
        run_round(network, sides, values)
    for one, same in zip(known, other, strict=True):
        np.testing.assert_array_equal(one.differences(), same.differences())
        np.testing.assert_array_equal(one.weighted_sum(), same.weighted_sum())


def test_floats_ignore_the_fixed_point_scale():
    network = make_network("path", 3)
    values = random_values(np.random.default_rng(6), 3, 4, 2.0)
    results = []
    for n_max in (None, 10.0):
        sides = make_sides(network, 4, "plain")
        for side in sides:
            side.n_max = n_max
        run_round(network, sides, values)
        results.append([side.differences() for side in sides])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


# Rounds without values ----------------------------------------------------------


@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize("kind", ["plain", "simulated", "paillier"])
def test_rounds_without_values_give_zeros(kind, masking):
    network = make_network("complete", 4)
    sides = make_sides(network, 3, kind, masking=masking, value_bits=20)
    rng = np.random.default_rng(4)
    for active in (False, True, False):
        values = random_values(rng, 4, 3, 2.0)
        sent = run_round(network, sides, values, active)
        if active:
            check_differences(network, sides, values)
        for side in sides:
            assert side.differences().any() == side.weighted_sum().any() == active
        for _, _, message in sent:
            assert (message.payload is not None) == active
            assert message.kind == REQUEST or active


def test_requests_carry_round_and_counts():
    network = make_network("path", 3)
    side = make_sides(network, 2)[1]
    for t in range(2):
        requests = side.begin(np.ones(2), t == 0, (3, 5))
        assert [(m.round, m.left_count, m.fit_count) for m in requests] == [
            (t, 3, 5)
        ] * 2
        assert [m.payload is None for m in requests] == [t > 0] * 2


# Fixed point --------------------------------------------------------------------


@given(
    st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=8),
    st.integers(1, 2**40) | st.floats(1.0, 2.0**40),
)
@settings(deadline=None, max_examples=100)
def test_fixed_point(values, n_max):
    numbers, bits = fixed_point(np.array(values), n_max)
    expected = [round(value * float(n_max)) for value in values]
    assert [int(number) for number in numbers] == expected
    largest = max(abs(number) for number in expected)
    assert largest < 2**bits
    assert bits == 1 or largest >= 2 ** (bits - 1)
    assert numbers.dtype == (np.int64 if bits <= 62 else object)


@pytest.mark.parametrize("n_values", [3, 5000])
@pytest.mark.parametrize("masking", ["entrywise", "scalar"])
@pytest.mark.parametrize("n_max", [None, 1e6])
def test_weighted_sum_is_the_sum_of_differences(n_values, masking, n_max):
    cipher = PlainCipher if n_max is None else lambda: SimulatedCipher(2048)
    rng = np.random.default_rng(0)
    sides = [
        DifferenceExchange(
            cipher(),
            2,
            n_values=n_values,
            n_max=n_max,
            masking=masking,
            key_size=2048,
            value_bits=24,
            streams=make_streams(2, k),
        )
        for k in range(3)
    ]
    requests = [side.begin(rng.random(n_values)) for side in sides]
    others = [[1, 2], [0, 2], [0, 1]]
    for i, side in enumerate(sides):
        asked = [(k, None, requests[j][others[j].index(i)])
                 for k, j in enumerate(others[i])]  # fmt: skip
        for (_, _, _), j, reply in zip(
            asked, others[i], side.answer(asked), strict=True
        ):
            sides[j].accept(others[j].index(i), reply)
    for side in sides:
        rows = side.differences()
        np.testing.assert_allclose(side.weighted_sum(), rows.sum(axis=0), atol=1e-12)
        np.testing.assert_allclose(
            side.weighted_sum([0.5, 2.0]), 0.5 * rows[0] + 2.0 * rows[1], atol=1e-12
        )
