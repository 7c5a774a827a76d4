"""Bounds of the numbers on shares."""

import numpy as np
import pytest
from _shares import needs_spu

from skppdnmf._mpc import engine
from skppdnmf._mpc.ranges import (
    FRACTION_BITS,
    PRODUCT_BITS,
    bounds,
    check_ranges,
    check_result,
    factor_bound,
)


def test_what_it_is_made_for_fits():
    for sizes in ((500, 64, 10), (200, 30, 4), (2429, 361, 49), (100_000, 1000, 20)):
        check_ranges(*sizes)


def test_what_may_not_fit_is_refused_by_name():
    with pytest.raises(OverflowError, match=r"of n_samples=1000000000, .*may be up to"):
        check_ranges(10**9, 100, 1000)


def test_bounds_grow_with_the_sizes():
    small, large = bounds(10, 10, 2), bounds(1000, 10, 2)
    assert small.keys() == large.keys()
    assert all(large[name] >= small[name] for name in small)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0, 2.0 * factor_bound()])
def test_a_result_outside_of_its_bounds_is_an_error(wrong):
    left = np.ones((4, 2))
    check_result(left)
    left[1, 1] = wrong
    with pytest.raises(OverflowError, match=r"entries from .* has overflowed"):
        check_result(left)


@needs_spu
@pytest.mark.parametrize("size", [0.99, 2.02])
def test_products_hold_what_they_are_said_to(size):
    """At the edge: below the bound a product is right, beyond its bits it is not."""
    one = np.array([2.0 ** (PRODUCT_BITS // 2)], dtype=np.float32)
    other = np.array([size * 2.0 ** (PRODUCT_BITS - PRODUCT_BITS // 2)])
    other = other.astype(np.float32)
    program = engine._compiled(lambda a, b: a * b, [one, other], ["a", "b"], ["c"])
    with engine.Simulator() as simulator:
        simulator.share("a", one)
        simulator.share("b", other)
        simulator.run(program)
        found = simulator.open("c")
    assert np.allclose(found, one * other, rtol=1e-5) == (size < 1)


@needs_spu
def test_reciprocals_hold_at_both_ends_of_the_row_sums():
    values = np.array([2.0**-12, 1.0, 2.0 ** (FRACTION_BITS - 1) * 0.99])
    values = values.astype(np.float32)
    program = engine._compiled(lambda a: 1.0 / a, [values], ["a"], ["b"])
    with engine.Simulator() as simulator:
        simulator.share("a", values)
        simulator.run(program)
        found = simulator.open("b")
    np.testing.assert_allclose(found, 1 / values, rtol=1e-4, atol=2.0**-38)
