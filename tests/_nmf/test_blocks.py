"""Blocks of rows: what they hold, and that results do not depend on who takes them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skppdnmf._nmf.blocks import one_by_one, row_slices
from skppdnmf._nmf.hals import hals
from skppdnmf._nmf.nnls import solve_nnls
from skppdnmf._nmf.threads import single_threaded


@given(st.integers(0, 200_000))
def test_blocks_are_all_rows_once_and_of_like_size(n_rows):
    slices = row_slices(n_rows)
    assert slices[0].start == 0
    assert slices[-1].stop == n_rows
    assert all(a.stop == b.start for a, b in pairwise(slices))
    sizes = [rows.stop - rows.start for rows in slices]
    assert max(sizes) <= 4096
    assert min(sizes) > 0 or n_rows == 0
    assert max(sizes) - min(sizes) <= 64 * len(sizes)


def test_few_rows_are_one_block():
    assert row_slices(4096) == [slice(0, 4096)]
    assert len(row_slices(4097)) == 2


def test_coordinate_descent_by_blocks_is_the_same_to_the_last_bit():
    """A row's result does not depend on the block that it is in."""
    rng = np.random.default_rng(0)
    H = rng.random((1, 7, 30))
    n = 9001
    products, start = rng.random((2, 1, 7, n)) * 40
    gram = H @ H.transpose(0, 2, 1)
    with single_threaded():
        whole = hals(gram, products, start.copy(), 3)
        for rows in row_slices(n):
            block = products[:, :, rows].copy(), start[:, :, rows].copy()
            np.testing.assert_array_equal(hals(gram, *block, 3), whole[:, :, rows])


@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_least_squares_by_blocks_are_the_same_to_the_last_bit(l1):
    rng = np.random.default_rng(0)
    X, H = rng.random((5000, 12)), rng.random((5, 12))
    W = solve_nnls(X, H, l1)
    backwards = solve_nnls(X, H, l1, share=lambda f, i: one_by_one(f, list(i)[::-1]))
    np.testing.assert_array_equal(W, backwards)
    np.testing.assert_array_equal(W[4990:], solve_nnls(X[4990:], H, l1))
