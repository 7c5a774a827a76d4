"""Totals in words: exact whatever the order, in units of the data, never wrapping."""

import math
import re

import numpy as np
import pytest
from _sums import path_settings
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from skppdnmf import PrivateDistributedNMF
from skppdnmf._secure_sum import totals as module
from skppdnmf._secure_sum.totals import (
    HEADROOM,
    SETUP_WORDS,
    FixedPoint,
    _as_integers,
    read_setup,
    row_blocks,
    setup_words,
)
from skppdnmf.exchange import SecureSum


def fixed_point(K, F, n_max=1e6, with_sums=True, squared_norm=1e3, n_samples=20):
    return FixedPoint(K, F, n_max, with_sums).bounded(squared_norm, n_samples)


def problem(n_starts, K, F, n_samples=20, seed=0):
    """Samples, right factors that fit them about, and their codec."""
    rng = np.random.default_rng(seed)
    H = rng.exponential(size=(n_starts, K, F))
    H /= np.sqrt((H**2).mean(axis=2, keepdims=True))
    W = rng.exponential(size=(n_starts, K, n_samples)) / K
    X = np.einsum("skn,skf->nf", W, H) / n_starts
    return X, W, fixed_point(K, F, 1e6, True, float((X**2).sum()), n_samples)


def encode(codec, X, W):
    return codec.encode(W, row_blocks(codec.round_samples(X)))


@settings(max_examples=50)
@given(st.lists(st.lists(st.floats(0, 1e150), max_size=6), min_size=1, max_size=6))
def test_setup_is_exact(agents):
    total = sum(setup_words(np.array(norms)) for norms in agents)
    assert len(total) == SETUP_WORDS
    norm, n_samples = read_setup(total)
    assert norm == math.fsum(norm for norms in agents for norm in norms)
    assert n_samples == sum(map(len, agents))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 4),
    st.booleans(),
)
def test_words_are_the_products_of_whole_numbers(n_starts, K, F, n_agents, with_sums):
    X, W, codec = problem(n_starts, K, F)
    codec.with_sums = with_sums
    whole_X = [[round(x / codec.sample_unit) for x in row] for row in X.tolist()]
    rows = np.array_split(np.arange(len(X)), n_agents)
    encoded = [encode(codec, X[r], W[:, :, r]) for r in rows]
    total = sum(words for words, _ in encoded)
    whole = [
        [[round(w / codec.right_unit) for w in row] for row in one]
        for one in W.tolist()
    ]

    def inner(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    columns = list(zip(*whole_X, strict=True))
    expected = [
        inner(a, b) for one in whole for k, a in enumerate(one) for b in one[k:]
    ]
    expected += [inner(row, x) for one in whole for row in one for x in columns]
    if with_sums:
        expected += [sum(row) for one in whole for row in one]
    assert total.view(np.int64).tolist() == expected
    assert len(total) == n_starts * codec.words_per_start
    # What agents take for their share is what they have sent, and so is the total.
    totals = codec.decode(total, n_starts)
    for name in ("gram", "products", "sums"):
        shares = sum(getattr(share, name) for _, share in encoded)
        decoded = getattr(totals, name)
        if name == "sums" and not with_sums:
            assert not decoded.any()
        else:
            np.testing.assert_allclose(decoded, shares, rtol=1e-13)
    np.testing.assert_array_equal(totals.gram, totals.gram.transpose(0, 2, 1))


def test_bounds_make_new_numbers_and_leave_those_without_as_they_were():
    codec = FixedPoint(2, 3, 1e6, True)
    bounded = codec.bounded(1e3, 20)
    assert (codec.right_unit, codec.sample_unit) == (1.0, 1.0)
    assert min(bounded.right_unit, bounded.sample_unit) > 0
    other = bounded.bounded(4e3, 20)
    assert other.sample_unit == pytest.approx(2 * bounded.sample_unit)
    assert other.right_unit == pytest.approx(2 * bounded.right_unit)
    assert vars(codec.bounded(1e3, 20)).keys() == vars(bounded).keys()
    assert bounded.sample_unit == codec.bounded(1e3, 20).sample_unit
    for with_penalty in (True, False):
        settings = path_settings(3, 0.1, 0.0, float(with_penalty), n_max=1e4)
        made = FixedPoint.of(settings, 2, 3)
        assert (made.n_components, made.n_features, made.n_max) == (2, 3, 1e4)
        assert made.with_sums == with_penalty
    # Alone, an agent rounds nothing and asks for no room.
    assert FixedPoint.of(path_settings(1, n_max=1e300), 2, 3).n_max == 1.0


def test_totals_are_those_of_the_data_to_the_resolution():
    X, W, codec = problem(2, 3, 8, n_samples=50)
    _, share = encode(codec, X, W)
    norm = (X**2).sum()
    np.testing.assert_allclose(
        share.gram, W @ W.transpose(0, 2, 1), atol=1e-5 * norm / 8
    )
    np.testing.assert_allclose(share.products, W @ X, rtol=1e-5)
    np.testing.assert_allclose(share.sums, W.sum(axis=2), rtol=1e-4)
    for s in range(2):
        H = np.random.default_rng(s).exponential(size=(3, 8))
        H /= np.sqrt((H**2).mean(axis=1, keepdims=True))
        exact = ((X - W[s].T @ H) ** 2).sum()
        ours = norm - 2 * np.vdot(share.products[s], H)
        ours += np.vdot(share.gram[s] @ H, H)
        # To first order in the step of W, which is no minimiser here.
        assert abs(ours - exact) < 2e-6 * norm


def test_the_gram_matrix_is_that_of_right_factors():
    """Hence no worse than semidefinite, and zero only where the products are, too."""
    X, W, _ = problem(1, 4, 6, n_samples=30)
    W[0, 1] *= 1e-9
    codec = fixed_point(4, 6, 10, True, float((X**2).sum()), 30)
    _, share = encode(codec, X, W)
    assert np.linalg.eigvalsh(share.gram[0]).min() >= -1e-12 * share.gram.max()
    assert not share.gram[0, 1].any()
    assert not share.products[0, 1].any()
    assert share.gram[0, 0, 0] > 0


@pytest.mark.parametrize("exponent", [-40, -1, 1, 30])
def test_words_are_in_units_of_the_data(exponent):
    factor = 2.0**exponent
    X, W, codec = problem(2, 3, 4)
    words, _ = encode(codec, X, W)
    scaled = fixed_point(3, 4, squared_norm=float((X**2).sum()) * factor**2)
    others, _ = encode(scaled, factor * X, factor * W)
    np.testing.assert_array_equal(words, others)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_samples_give_the_same_words(kind):
    X, W, codec = problem(2, 3, 9, n_samples=40)
    X *= np.random.default_rng(0).random(X.shape) < 0.3
    rounded = codec.round_samples(kind(X))
    assert sparse.issparse(rounded)
    words, _ = codec.encode(W, row_blocks(rounded))
    np.testing.assert_array_equal(words, encode(codec, X, W)[0])


def test_rounding_leaves_the_samples_alone():
    X, _, codec = problem(1, 2, 3)
    for data in (X, sparse.csr_array(X)):
        before = data.copy()
        rounded = codec.round_samples(data)
        assert (abs(before - data)).sum() == 0
        values = rounded.data if sparse.issparse(rounded) else rounded
        np.testing.assert_array_equal(values, np.rint(values))
    single = codec.round_samples(X.astype(np.float32))
    assert single.dtype == np.float64


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(0, 52), st.booleans())
def test_products_with_each_block_are_exact(n_rows, bits, is_sparse):
    rng = np.random.default_rng(n_rows)
    X = np.floor(rng.random((n_rows, 3)) * 2.0**bits)
    data = sparse.csr_array(X) if is_sparse else X
    blocks = row_blocks(data)
    stacked = np.vstack([b.toarray() if is_sparse else b for b in blocks])
    np.testing.assert_array_equal(stacked, X)
    if bits <= 30:
        right = module._LARGEST_RIGHT
        for block in blocks:
            column = block.sum(axis=0).max(initial=0.0)
            assert column * right <= 2.0**53 or block.shape[0] == 1
    if bits == 0:
        assert len(blocks) == 1


def test_order_and_partition_have_no_effect(monkeypatch):
    """Also where the products do not fit a double in one piece."""
    X, W, codec = problem(1, 3, 5, n_samples=64)
    X[0] *= 1e3
    codec = codec.bounded(float((X**2).sum()), 64)
    words, _ = encode(codec, X, W)
    order = np.random.default_rng(0).permutation(64)
    shuffled, _ = encode(codec, X[order], W[:, :, order])
    np.testing.assert_array_equal(shuffled, words)
    monkeypatch.setattr(module, "_LARGEST_RIGHT", 2.0**30 / 1e6)
    blocks = row_blocks(codec.round_samples(X))
    assert len(blocks) > 4
    np.testing.assert_array_equal(codec.encode(W, blocks)[0], words)


def largest_n_max(K, F, n_samples):
    with pytest.raises(OverflowError) as caught:
        FixedPoint(K, F, 1e300, False).check(n_samples)
    found = re.search(
        rf"n_max=1e\+300 is too large .*n_samples={n_samples}, n_components={K} and "
        rf"n_features={F} .*largest is n_max=(\S+)$",
        str(caught.value),
    )
    assert found is not None
    return float(found[1])


@pytest.mark.parametrize(("K", "F"), [(1, 1), (5, 64), (49, 361)])
@pytest.mark.parametrize("n_samples", [1, 20, 1000])
def test_totals_at_their_bound_do_not_wrap_at_the_largest_n_max(K, F, n_samples):
    """All right factors in one column, along the samples: Cauchy and Schwarz."""
    largest = largest_n_max(K, F, n_samples)
    X = np.zeros((n_samples, F))
    X[:, 0] = 3.0
    norm = float((X**2).sum())
    codec = fixed_point(K, F, largest, True, norm, n_samples)
    W = np.zeros((1, K, n_samples))
    W[0, 0] = HEADROOM * 3.0 / math.sqrt(F)
    words, share = encode(codec, X, W)
    totals = codec.decode(words, 1)
    expected = HEADROOM**2 * norm / F
    assert totals.gram[0, 0, 0] == pytest.approx(expected, rel=1e-6)
    expected = HEADROOM * norm / math.sqrt(F)
    assert totals.products[0, 0, 0] == pytest.approx(expected, rel=1e-6)
    expected = n_samples * HEADROOM * 3.0 / math.sqrt(F)
    assert totals.sums[0, 0] == pytest.approx(expected, rel=1e-6)
    assert share.gram.min() >= 0
    assert np.abs(words.view(np.int64)).max() <= 2**62


@settings(max_examples=60)
@given(st.integers(1, 500), st.integers(1, 5000), st.integers(1, 10**7))
def test_the_largest_n_max_that_is_named_is_accepted(K, F, n_samples):
    largest = largest_n_max(K, F, n_samples)
    if largest < 1:
        return
    FixedPoint(K, F, largest, True).check(n_samples)
    # Norms of a column of right factors and of the samples, in their units.
    right = HEADROOM * largest / 16 * math.sqrt(n_samples * K)
    assert max(right, math.sqrt(n_samples * F) * 2.0**20) * right <= 2.0**62
    with pytest.raises(OverflowError, match="too large"):
        FixedPoint(K, F, largest * 1.02, True).check(n_samples)


def test_a_fit_refuses_it_before_anything_is_sent(monkeypatch):
    def never(*args):
        raise AssertionError("something was sent")

    monkeypatch.setattr(SecureSum, "start", never)
    estimator = PrivateDistributedNMF(
        2, partition=3, protocol="secure-sum", n_max=1e18, random_state=0
    )
    with pytest.raises(OverflowError, match=r"n_max=1e\+18 .* largest is n_max="):
        estimator.fit(np.ones((6, 4)))


def test_a_mean_entry_is_a_sixteenth_of_n_max():
    """Of right factors that share the norm that the samples allow them."""
    X = np.ones((30, 9))
    codec = fixed_point(4, 9, 1e6, True, 270.0, 30)
    W = np.full((1, 4, 30), math.sqrt(270.0 / 9 / (30 * 4)))
    words, _ = encode(codec, X, W)
    sums = words.view(np.int64)[-4:]
    np.testing.assert_allclose(sums / 30, 1e6 / 16, rtol=1e-4)
    np.testing.assert_allclose(codec.round_samples(X), 2.0**20, rtol=1e-6)


def test_zero_data_has_a_unit():
    codec = fixed_point(2, 3, squared_norm=0.0, n_samples=0)
    words, share = encode(codec, np.zeros((4, 3)), np.zeros((1, 2, 4)))
    assert not words.any()
    assert not any(total.any() for total in share)
    assert not any(total.any() for total in codec.decode(words, 1))


def test_an_agent_without_samples_adds_nothing():
    codec = fixed_point(2, 3)
    for X in (np.zeros((0, 3)), sparse.csr_array((0, 3))):
        words, _ = encode(codec, X, np.zeros((2, 2, 0)))
        assert len(words) == 2 * codec.words_per_start
        assert not words.any()


@pytest.mark.parametrize("value", [np.nan, np.inf, 2.0**62 * 1.001, -(2.0**63)])
def test_a_summand_that_could_wrap_is_refused(value):
    with pytest.raises(OverflowError, match="could wrap"):
        _as_integers(np.array([0.0, value]))
    assert _as_integers(np.array([2.0**62]))[0] == 2**62
