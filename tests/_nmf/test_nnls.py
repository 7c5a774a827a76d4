import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import nnls

from skppdnmf._nmf import nnls as _nnls
from skppdnmf._nmf.nnls import sample_products, solve_nnls


def draw(n, F, K, seed=0, signed=False):
    rng = np.random.default_rng(seed)
    if signed:
        return rng.standard_normal((n, F)), rng.standard_normal((K, F))
    return rng.exponential(size=(n, F)), rng.exponential(size=(K, F))


def assert_optimal(X, H, W):
    """Compare with scipy sample by sample, after scaling rows to norm one."""
    assert W.shape == (len(X), len(H))
    assert (W >= 0).all()
    norms = np.linalg.norm(H, axis=1)
    norms[norms == 0] = 1.0
    unit = H / norms[:, None]
    for x, w in zip(X, W, strict=True):
        size = np.linalg.norm(x)
        if size == 0:
            np.testing.assert_array_equal(w, 0)
            continue
        _, best = nnls(unit.T, x / size, maxiter=1000 * len(H))
        error = np.linalg.norm(x / size - (w * norms / size) @ unit)
        # Where the fit is exact, the norm of the sample is what counts.
        assert error**2 == pytest.approx(best**2, rel=1e-9, abs=1e-9)
        if best > 1e-5:
            assert error == pytest.approx(best, rel=1e-9)


shapes = st.tuples(st.integers(1, 9), st.integers(1, 12), st.integers(1, 15))


@given(shapes, st.integers(0, 2**32 - 1), st.booleans())
@settings(deadline=None, max_examples=60)
def test_equals_scipy(shape, seed, signed):
    X, H = draw(*shape, seed, signed)
    assert_optimal(X, H, solve_nnls(X, H))


@given(shapes, st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_meets_the_optimality_conditions(shape, seed):
    X, H = draw(*shape, seed, signed=True)
    W = solve_nnls(X, H)
    gradient = (W @ H - X) @ H.T
    # Relative to the norms of the sample and of the component.
    gradient /= np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(H, axis=1))
    assert (W >= 0).all()
    assert gradient.min() > -1e-7
    assert np.abs(gradient[W > 0]).max(initial=0.0) < 1e-7


@pytest.mark.parametrize("K", [13, 40])
def test_more_components_than_features(K):
    X, H = draw(20, 6, K)
    assert_optimal(X, H, solve_nnls(X, H))


def test_duplicate_rows():
    X, H = draw(15, 8, 6, seed=1)
    H[4], H[5] = H[0], 3.0 * H[1]
    assert_optimal(X, H, solve_nnls(X, H))


def test_zero_rows_get_nothing():
    X, H = draw(15, 8, 6, seed=2)
    H[[1, 4]] = 0
    W = solve_nnls(X, H)
    np.testing.assert_array_equal(W[:, [1, 4]], 0)
    assert_optimal(X, H, W)


def test_zero_feature():
    X, H = draw(10, 8, 4, seed=3)
    X[:, 2] = H[:, 2] = 0
    assert_optimal(X, H, solve_nnls(X, H))


def test_all_zero_factor_gives_zeros():
    np.testing.assert_array_equal(solve_nnls(np.ones((3, 4)), np.zeros((2, 4))), 0)


def test_zero_samples_among_others():
    X, H = draw(8, 7, 3, seed=4)
    X[[0, 5]] = 0
    W = solve_nnls(X, H)
    np.testing.assert_array_equal(W[[0, 5]], 0)
    assert_optimal(X, H, W)


def test_no_samples():
    assert solve_nnls(np.empty((0, 4)), np.ones((2, 4))).shape == (0, 2)


def test_known_solutions():
    X = np.array([[1.0, 2.0], [3.0, -1.0], [-1.0, -2.0]])
    expected = [[1, 2], [3, 0], [0, 0]]
    np.testing.assert_allclose(solve_nnls(X, np.eye(2)), expected, rtol=1e-12)


def test_finds_the_factor_of_exact_data():
    _, H = draw(1, 12, 4, seed=5)
    true, _ = draw(9, 4, 1, seed=6)
    true[::2, 1] = 0
    np.testing.assert_allclose(solve_nnls(true @ H, H), true, atol=1e-9)


@pytest.mark.parametrize(
    "convert", [sparse.csr_array, sparse.csc_array, sparse.coo_array]
)
def test_sparse_equals_dense(convert):
    X, H = draw(30, 12, 5, seed=7)
    X[X < 1.2] = 0
    np.testing.assert_allclose(
        solve_nnls(convert(X), H), solve_nnls(X, H), rtol=1e-9, atol=1e-12
    )


def test_single_precision_data():
    X, H = draw(10, 8, 3, seed=8)
    single = X.astype(np.float32)
    W = solve_nnls(single, H)
    assert W.dtype == np.float64
    np.testing.assert_array_equal(W, solve_nnls(single.astype(np.float64), H))


@pytest.mark.parametrize("exponents", [(-100, 100), (100, -100), (-60, -60), (80, 80)])
@pytest.mark.parametrize("K", [4, 12])
def test_scale_of_data_and_components(exponents, K):
    X, H = draw(10, 7, K, seed=9)
    X *= 10.0 ** exponents[0]
    H *= 10.0 ** exponents[1]
    assert_optimal(X, H, solve_nnls(X, H))


def test_components_and_samples_of_mixed_scales():
    X, H = draw(12, 9, 6, seed=10)
    X *= 10.0 ** np.linspace(-100, 100, 12)[:, None]
    H *= 10.0 ** np.array([-90, 70, 0, -30, 20, 50.0])[:, None]
    assert_optimal(X, H, solve_nnls(X, H))


@given(st.integers(-60, 60), st.integers(-60, 60), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=30)
def test_equivariant_under_powers_of_two(a, b, seed):
    X, H = draw(6, 8, 4, seed)
    expected = np.ldexp(solve_nnls(X, H), a - b)
    np.testing.assert_allclose(
        solve_nnls(np.ldexp(X, a), np.ldexp(H, b)), expected, rtol=1e-9
    )


@given(shapes, st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=60)
def test_rows_do_not_depend_on_the_batch(shape, seed, signed, is_sparse):
    X, H = draw(*shape, seed, signed)
    if is_sparse:
        X = sparse.csr_array(np.where(X > 0.7, X, 0.0))
    W = solve_nnls(X, H)
    rows = [solve_nnls(X[[i]], H)[0] for i in range(shape[0])]
    np.testing.assert_array_equal(W, rows)
    order = np.random.default_rng(seed).permutation(shape[0])
    np.testing.assert_array_equal(solve_nnls(X[order], H), W[order])


def test_large_batch_equals_its_pieces():
    X, H = draw(700, 64, 20, seed=11)
    W = solve_nnls(X, H)
    for size in (1, 3, 64, 333):
        np.testing.assert_array_equal(solve_nnls(X[:size], H), W[:size])


def test_rows_that_pivoting_leaves_do_not_depend_on_the_batch(monkeypatch):
    X, H = draw(40, 9, 12, seed=15)
    left = []
    finish = _nnls._one_by_one

    def note(W, active, *others):
        left.append(len(active))
        return finish(W, active, *others)

    monkeypatch.setattr(_nnls, "_one_by_one", note)
    monkeypatch.setattr(_nnls, "_MAX_PIVOTS", 2)
    W = solve_nnls(X, H)
    assert left[0] > 5
    for size in (1, 3, 17):
        np.testing.assert_array_equal(solve_nnls(X[:size], H), W[:size])


@pytest.mark.parametrize("K", [12, 40])
def test_both_ways_to_solve_agree(monkeypatch, K):
    """Starting from the unconstrained solution, and solving on what is positive."""
    X, H = draw(200, 60, K, seed=16)
    X[:100] = X[:100, :K] @ H  # all positive
    W = solve_nnls(X, H)
    used = (W > 0).sum(axis=1)
    assert used.min() < K / 2 < used.max()
    monkeypatch.setattr(_nnls, "_WELL_CONDITIONED", 0.0)
    direct = solve_nnls(X, H)
    np.testing.assert_allclose(W, direct, atol=1e-12 * direct.max())
    np.testing.assert_array_equal(W == 0, direct == 0)


def test_batches_of_systems_do_not_show(monkeypatch):
    X, H = draw(50, 9, 6, seed=12)
    W = solve_nnls(X, H)
    monkeypatch.setattr(_nnls, "_BATCH_DOUBLES", 7 * 36)
    np.testing.assert_array_equal(solve_nnls(X, H), W)


@pytest.mark.parametrize("small", [1e-3, 1e-12, 1e-18, 1e-30, 1e-200])
def test_penalty_on_a_vanishing_component(small):
    """It costs more than it can gain; the others are as if it were not there."""
    H = np.eye(3) + 0.1
    X = np.array([[1.0, 2.0, 0.5]])
    expected = solve_nnls(X, H[:2], l1=0.1)
    H[2] *= small
    W = solve_nnls(X, H, l1=0.1)
    np.testing.assert_allclose(W[:, :2], expected, rtol=1e-9)
    assert W[0, 2] == 0.0


def test_does_not_change_its_arguments():
    X, H = draw(5, 6, 3, seed=13)
    before = X.copy(), H.copy()
    solve_nnls(X, H)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(H, before[1])


@pytest.mark.parametrize("K", [3, 11])
def test_last_resort_equals_scipy(K):
    X, H = draw(12, 7, K, seed=14, signed=True)
    unit = H / np.linalg.norm(H, axis=1, keepdims=True)
    start = np.full((12, K), np.nan)
    rows = np.arange(0, 12, 2)
    W = _nnls._one_by_one(start, rows, sample_products(X, unit), unit @ unit.T)
    assert_optimal(X[rows], unit, W[rows])
    assert np.isnan(W[1::2]).all()
