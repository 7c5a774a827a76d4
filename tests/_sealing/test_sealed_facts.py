"""Public facts: written alike where they are alike, named where they differ."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf.exceptions import CorruptedMessageError
from skppdnmf.exchange import Facts

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
values = st.recursive(
    scalars,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=3), v),
    max_leaves=6,
)


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=9), values, max_size=5), st.randoms())
def test_facts_survive_the_wire_in_any_order(facts, random):
    names = list(facts)
    random.shuffle(names)
    one, other = Facts(facts), Facts({name: facts[name] for name in names})
    read = Facts.from_bytes(one.to_bytes())
    assert one == other == read
    assert one.digest == other.digest == read.digest
    assert one.difference(read) is None


PAIRS = [
    (5, 6, "K: 5 here, 6 there"),
    (1.0, np.nextafter(1.0, 2.0), "K: 1.0 here, 1.0000000000000002 there"),
    (True, 1, "K: true here, 1 there"),
    ("5", 5, 'K: "5" here, 5 there'),
    ([1, [2]], [[1], 2], "K: [1,[2]] here, [[1],2] there"),
    (b"ab", b"ac", 'K: "6162" here, "6163" there'),
]


@pytest.mark.parametrize(("here", "there", "expected"), PAIRS)
def test_a_difference_is_named(here, there, expected):
    one, other = Facts({"A": 1, "K": here}), Facts({"A": 1, "K": there})
    assert one.difference(other) == expected
    assert one.digest != other.digest


@pytest.mark.parametrize(
    "there",
    [
        np.ones((3, 4), dtype=np.float32),
        np.ones((4, 3)),
        np.ones(12),
        np.full((3, 4), np.nextafter(1.0, 2.0)),
        np.ones((3, 4), dtype=np.int64),
    ],
)
def test_arrays_differ_by_type_shape_and_bits(there):
    here = np.ones((3, 4))
    assert Facts({"H": here}).difference(Facts({"H": there})).startswith('H: {"dtype":')
    assert Facts({"H": here}) == Facts({"H": np.asfortranarray(here)})


def test_scalars_of_numpy_are_scalars_and_dataclasses_mappings():
    @dataclass
    class Settings:
        K: int
        tol: float

    plain = {"settings": {"K": 5, "tol": 0.1}}
    assert Facts({"settings": Settings(np.int64(5), np.float64(0.1))}) == Facts(plain)


def test_a_fact_that_one_lacks():
    assert Facts({}).difference(Facts({"K": 1})) == "K: no such fact here, 1 there"


def test_what_has_no_one_way_to_be_written_is_refused():
    with pytest.raises(TypeError, match="a fact of type set"):
        Facts({"K": {1, 2}})


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b'{"a": 1}', b"\xff", b"[" * 60_000, b" " * (1 << 17)]
)
def test_other_bytes_are_no_facts(data):
    with pytest.raises(CorruptedMessageError, match="facts"):
        Facts.from_bytes(data)


def test_names_and_values_cannot_trade_places():
    assert json.loads(Facts({"a": "b:c"}).to_bytes()) == {"a": '"b:c"'}
    assert Facts({"a": "b", "c": "d"}).digest != Facts({"a": 'b","c":"d'}).digest
