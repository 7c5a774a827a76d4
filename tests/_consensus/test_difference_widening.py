"""The exchange of differences: values that outgrow their slots, or their key."""

import numpy as np
import pytest
from _difference import check_differences, make_sides, run_round
from _paillier_keys import MASKINGS

from skppdnmf._data.graph import make_network
from skppdnmf.exceptions import CorruptedMessageError
from skppdnmf.exchange import REQUEST, WIDEN

# Widening -----------------------------------------------------------------------


@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize("kind", ["simulated", "paillier"])
def test_outgrown_slots_are_widened(kind, masking):
    network = make_network("path", 3)
    sides = make_sides(network, 3, kind, masking=masking, value_bits=4, n_max=10.0)
    small, large = np.full(3, 0.7), np.array([2e6, -2e6, 0.1])

    sent = run_round(network, sides, [small] * 3)
    assert all(message.kind != WIDEN for *_, message in sent)
    values = [small, large, small]
    sent = run_round(network, sides, values)
    check_differences(network, sides, values)
    edges = [(i, j) for i, j, message in sent if message.kind == WIDEN]
    assert sorted(edges) == [(1, 0), (1, 2)]
    # Both neighbours asked again, in slots that hold 2e7, below 2**25.
    for j in (0, 2):
        asked = [m.value_bits for i, _, m in sent if i == j and m.kind == REQUEST]
        assert len(asked) == 2
        assert asked[0] == 4
        assert asked[1] >= 25

    sent = run_round(network, sides, values)
    check_differences(network, sides, values)
    assert all(message.kind != WIDEN for *_, message in sent)


def test_growing_values_do_not_widen_in_every_round():
    network = make_network("path", 2)
    sides = make_sides(network, 1, value_bits=4, n_max=1.0)
    n_widened = 0
    for t in range(30):
        values = [[1.0], [2.0**t]]
        sent = run_round(network, sides, values)
        check_differences(network, sides, values)
        n_widened += sum(message.kind == WIDEN for *_, message in sent)
    assert 1 <= n_widened <= 11


def test_a_neighbour_cannot_call_for_the_same_slots_for_ever():
    """Each call is answered by a request with fresh noise: it must ask for more."""
    network = make_network("path", 2)
    one, other = make_sides(network, 2, value_bits=4, n_max=1.0)
    (request,) = one.begin(np.array([3.0, -1.0]))
    other.begin(np.array([1e5, 1.0]))
    (widen,) = other.answer([(0, None, request)])
    assert one.accept(0, widen).value_bits == widen.value_bits
    for bits in (widen.value_bits, widen.value_bits - 1, 0):
        with pytest.raises(CorruptedMessageError, match=f"slots of {bits} bits"):
            one.accept(0, widen._replace(value_bits=bits))


def test_widen_is_answered_by_the_request_alone():
    network = make_network("path", 2)
    one, other = make_sides(network, 2, value_bits=4, n_max=1.0)
    (request,) = one.begin(np.array([3.0, -1.0]))
    other.begin(np.array([1e5, 1.0]))
    (widen,) = other.answer([(0, None, request)])
    assert (widen.kind, widen.payload, widen.round) == (WIDEN, None, 0)
    again = one.accept(0, widen)
    assert not one.complete
    assert (again.kind, again.value_bits) == (REQUEST, widen.value_bits)
    (reply,) = other.answer([(0, None, again)])
    assert one.accept(0, reply) is None
    assert one.complete


# What does not fit --------------------------------------------------------------

LARGEST = 64 - 16  # bits of the widest values that a key of 64 bits holds


@pytest.mark.parametrize("kind", ["simulated", "paillier"])
@pytest.mark.parametrize("masking", MASKINGS)
def test_the_widest_values_still_fit(kind, masking):
    network = make_network("path", 2)
    options = {"n_max": 1.0, "masking": masking, "key_size": 64}
    most = 2.0**LARGEST - 1
    for value_bits in (1, LARGEST - 2, LARGEST, LARGEST + 2):
        sides = make_sides(network, 2, kind, value_bits=value_bits, **options)
        for values in ([[most, -most], [-most, most]], [[1.0, 0.0], [most, 1.0]]):
            run_round(network, sides, values)
            check_differences(network, sides, values)


@pytest.mark.parametrize("kind", ["simulated", "paillier"])
@pytest.mark.parametrize("bits", [LARGEST + 1, LARGEST + 2, LARGEST + 15])
def test_overflow_says_what_to_change(kind, bits):
    network = make_network("path", 2)
    options = {"n_max": 100.0, "masking": "scalar"}
    values = np.array([0.0, 2.0 ** (bits - 1) / 100.0])
    side = make_sides(network, 2, kind, key_size=64, **options)[1]
    with pytest.raises(OverflowError) as caught:
        side.begin(values)
    message = str(caught.value)
    for part in (
        "agent 1",
        f"{bits} bits",
        "n_max=100",
        "key_size=64",
        f"2**{LARGEST}.",
        "smaller n_max",
    ):
        assert part in message
    # The key that the message asks for is large enough, and none below it is.
    advised = int(message.split("Use key_size=")[1].split()[0])
    sides = make_sides(network, 2, key_size=advised, **options)
    run_round(network, sides, [np.zeros(2), values])
    check_differences(network, sides, [np.zeros(2), values])
    side = make_sides(network, 2, key_size=advised - 2, **options)[0]
    with pytest.raises(OverflowError, match="agent 0"):
        side.begin(values)


def test_overflow_of_a_key_that_holds_nothing():
    side = make_sides(make_network("path", 2), 1, key_size=16)[0]
    with pytest.raises(OverflowError, match=r"agent 0.*key_size=16 holds no value"):
        side.begin(np.ones(1))


@pytest.mark.parametrize("value", [1e301, -1e301, 1e305])  # n_max * 1e305 is inf
def test_values_out_of_range(value):
    side = make_sides(make_network("path", 2), 2, n_max=1e6, key_size=4096)[0]
    with pytest.raises(
        OverflowError, match=r"agent 0.*n_max=1e\+06.*smaller n_max"
    ) as caught:
        side.begin(np.array([1.0, value]))
    assert "diverged" not in str(caught.value)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("other", [1.0, np.inf, 1e305])
def test_values_of_an_iteration_that_diverged(value, other):
    side = make_sides(make_network("path", 2), 2, n_max=1e6, key_size=4096)[0]
    name = "nan" if np.isnan(value) else "inf"
    for values in ([value, other], [other, value]):
        with pytest.raises(
            OverflowError, match=f"agent 0: .* is {name}: .* diverged.*mu, eta, g_max"
        ) as caught:
            side.begin(np.array(values))
        assert "n_max" not in str(caught.value)  # no scale would hold it
