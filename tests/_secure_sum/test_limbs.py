"""Numbers in words: exact sums, and refusal of what could wrap."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skppdnmf.exchange import N_LIMBS, from_limbs, to_limbs

DOUBLES = st.floats(0, allow_nan=False, allow_infinity=False)


def as_fraction(limbs):
    whole = sum(int(limb) << (32 * k) for k, limb in enumerate(limbs))
    return Fraction(whole, 2**1074)


@settings(max_examples=300)
@given(DOUBLES)
@example(0.0)
@example(5e-324)
@example(2.2250738585072014e-308)
@example(2.225073858507201e-308)
@example(1.7976931348623157e308)
@example(1.0)
@example(0.1)
def test_limbs_hold_every_double(value):
    limbs = to_limbs(value)
    assert limbs.shape == (N_LIMBS,)
    assert limbs.dtype == np.uint64
    assert int(limbs.max()) < 2**32
    assert as_fraction(limbs) == Fraction(value)
    assert from_limbs(limbs) == value


@settings(max_examples=200)
@given(st.lists(DOUBLES, min_size=1, max_size=20))
def test_sums_of_limbs_are_exact_and_rounded_once(values):
    total = sum(to_limbs(value) for value in values)
    exact = sum(map(Fraction, values))
    assert as_fraction(total) == exact
    try:
        nearest = exact.numerator / exact.denominator
    except OverflowError:
        with pytest.raises(OverflowError):
            from_limbs(total)
        return
    assert from_limbs(total) == nearest


@settings(max_examples=200)
@given(st.lists(DOUBLES, max_size=30))
def test_limbs_of_an_array_are_those_of_its_sum(values):
    limbs = to_limbs(np.array(values))
    assert as_fraction(limbs) == sum(map(Fraction, values))
    # However they are grouped: not even carries tell.
    half = len(values) // 2
    apart = to_limbs(np.array(values[:half])) + to_limbs(np.array(values[half:]))
    np.testing.assert_array_equal(apart, limbs)


def test_limbs_of_many_equal_doubles():
    """Whose mantissas together need more than 64 bits."""
    value = float(2**53 - 1)
    limbs = to_limbs(np.full(100_000, value))
    assert as_fraction(limbs) == 100_000 * Fraction(value)


def test_two_thousand_million_agents_do_not_carry_over():
    """2**31 times the double whose limbs are all ones."""
    value = float(2**53 - 1) * 2.0**11
    total = to_limbs(value) * np.uint64(2**31)
    assert from_limbs(total) == value * 2.0**31


@pytest.mark.parametrize("value", [-1.0, -5e-324, math.inf, math.nan])
def test_limbs_refuse_what_they_cannot_hold(value):
    with pytest.raises(OverflowError, match="finite"):
        to_limbs(value)
    with pytest.raises(OverflowError, match="finite"):
        to_limbs(np.array([1.0, value]))
