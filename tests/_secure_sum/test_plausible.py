"""Which totals are refused: each check by a corrupted one, and no sound one by any."""

import numpy as np
import pytest
from _paths import follow, samples, set_up, solved, starts, words_of
from _sums import make_sum_agents, path_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf._secure_sum.left_factor import LeftPath
from skppdnmf._secure_sum.limbs import N_LIMBS, to_limbs
from skppdnmf._secure_sum.noisy_totals import NoisyTotals, Samples
from skppdnmf._secure_sum.plausible import check_limbs, check_setup, check_totals
from skppdnmf._secure_sum.settings import NoiseSettings
from skppdnmf._secure_sum.totals import FixedPoint, row_blocks, setup_words
from skppdnmf.exceptions import CorruptedTotalError, RepeatedSummandError


def sound(n=8, K=3, F=5, seed=0):
    """Totals of random samples and right factors, with what bounds them."""
    rng = np.random.default_rng(seed)
    W, X = rng.exponential(size=(n, K)), rng.exponential(size=(n, F))
    gram, products = (W.T @ W)[None], (W.T @ X)[None]
    gram = np.maximum(gram, gram.transpose(0, 2, 1))
    most = float(np.einsum("skk->sk", gram).max())
    return gram, products, most, float((X**2).sum())


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 30), st.integers(1, 6), st.integers(1, 6), st.integers(0, 999))
def test_totals_of_nonnegative_factors_are_accepted(n, K, F, seed):
    check_totals(*sound(n, K, F, seed))


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("gram", 0, 1), np.nan, "A is nan .* not finite"),
        (("products", 0, 1), np.inf, "B is inf .* not finite"),
        (("gram", 1, 1), -1.0, "diagonal of A is -1 .* negative"),
        (("gram", 0, 1), 0.5, "mirror image"),
        (("gram", 1, 1), 1e6, "allow in the trace"),
        (("both", 0, 1), 1e3, "product of its two on the diagonal"),
        (("products", 2, 3), -1.0, "B is -1 .* negative"),
        (("products", 2, 3), 1e6, "length of a row of B"),
    ],
)
def test_each_check_names_what_cannot_be(place, value, reason):
    gram, products, most, squared_norm = sound()
    check_totals(gram, products, most, squared_norm)
    which, row, column = place
    if which == "products":
        products[0, row, column] = value
    else:
        gram[0, row, column] = value
    if which == "both":
        gram[0, column, row] = value
    with pytest.raises(CorruptedTotalError, match=reason):
        check_totals(gram, products, most, squared_norm)


def test_residuals_may_be_negative():
    gram, products, most, squared_norm = sound()
    check_totals(gram, -products, most, squared_norm, signed=True)
    with pytest.raises(CorruptedTotalError, match="negative"):
        check_totals(gram, -products, most, squared_norm)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 1e150), min_size=1, max_size=20))
def test_first_totals_are_accepted(norms):
    check_setup(setup_words(np.array(norms)))
    weighted = [setup_words(np.array(norms)), to_limbs(np.array(norms))]
    check_setup(np.concatenate(weighted))


def test_limbs_that_no_samples_have_are_refused():
    words = setup_words(np.ones(4))
    for limb in (0, N_LIMBS - 1):
        wrong = words.copy()
        wrong[limb] = (4 << 33) + 1
        with pytest.raises(CorruptedTotalError, match=r"\|\|X\|\|\^2 has a word of"):
            check_setup(wrong)
    weights = to_limbs(np.ones(4))
    weights[0] = (4 << 33) + 1
    with pytest.raises(CorruptedTotalError, match="the weights has a word of"):
        check_setup(np.concatenate([words, weights]))
    with pytest.raises(CorruptedTotalError, match="numbers of samples is 2147483648"):
        check_limbs("||X||^2", words[:N_LIMBS], 1 << 31)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_first_totals_of_uniform_words_are_refused(seed):
    """As those are whose masks do not cancel."""
    words = np.random.default_rng(seed).integers(0, 2**64, N_LIMBS + 1, dtype=np.uint64)
    with pytest.raises(CorruptedTotalError):
        check_setup(words)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 40),
    st.sampled_from([1e-120, 1e-3, 1.0, 1e120, 1e151]),
    st.floats(0, 0.95),
    st.integers(0, 999),
)
def test_a_fit_takes_its_totals_and_no_uniform_words(K, n, scale, zeros, seed):
    """Whatever the scale of the data, and however many entries are zero."""
    X = samples(n, seed) * scale
    X[np.random.default_rng(seed).random(X.shape) < zeros] = 0.0
    path = LeftPath(starts(2, K, seed), path_settings(3, max_iter=4))
    path = follow(path, X, 3)
    rng = np.random.default_rng(seed)
    words = words_of(path, X, solved(path, X))
    noise = rng.integers(0, 2**64, len(words), dtype=np.uint64)
    with pytest.raises(CorruptedTotalError):
        path.take(noise)
    with pytest.raises(CorruptedTotalError):
        path.take(words + noise)
    path.take(words)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.floats(1e-3, 1e3), st.integers(0, 999))
def test_weighted_totals_are_accepted(n, spread, seed):
    """At right factors as large as an agent may send."""
    rng = np.random.default_rng(seed)
    X, weights = rng.exponential(size=(n, 5)), rng.uniform(1e-3, spread + 1, n)
    squared_norm = float((X**2).sum(axis=1) @ weights)
    codec = FixedPoint(3, 5, 1e6, True).bounded(squared_norm, n, float(weights.sum()))
    right = rng.exponential(size=(1, 3, n))
    columns = np.square(right[0]) @ weights
    right *= 0.999 * np.sqrt(4.0 * squared_norm / 5 / columns.max())
    blocks = row_blocks(codec.round_samples(X))
    words, _ = codec.encode(right, blocks, weights)
    codec.check_totals(codec.decode(words, 1), squared_norm)


@pytest.mark.parametrize("scale", [1e-100, 1e120])
def test_rows_of_any_scale_are_measured(scale):
    gram, products, most, squared_norm = sound()
    given_ = (gram * scale**2, products * scale**2, most * scale**2)
    check_totals(*given_, squared_norm * scale**2)
    products[0, 2, 3] *= 1e6
    with pytest.raises(CorruptedTotalError, match="length of a row of B"):
        check_totals(*given_[:1], products * scale**2, most * scale**2, 1.0 * scale**2)


def test_sums_and_errors_must_not_be_negative():
    path = set_up(
        LeftPath(starts(), path_settings(3, alpha_W=0.1, l1_ratio=1.0)), samples()
    )
    codec = path.fixed_point
    totals = codec.decode(words_of(path, samples(), solved(path, samples())), 1)
    codec.check_totals(totals, path.squared_norm, np.zeros(1))
    wrong = totals._replace(sums=-totals.sums - 1.0)
    with pytest.raises(CorruptedTotalError, match="column sums is -"):
        codec.check_totals(wrong, path.squared_norm)
    with pytest.raises(CorruptedTotalError, match="errors is -1"):
        codec.check_totals(totals, path.squared_norm, np.array([-1.0]))


NOISY = NoiseSettings(
    n_agents=3, max_iter=60, epsilon=3.0, delta=1e-5, clip=1.0, max_colluding=0
)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([1, 20, 3000]), st.booleans(), st.integers(0, 999))
def test_noise_is_allowed_for(n, nothing, seed):
    """However little there is beside it."""
    numbers = NoisyTotals(NOISY, 3, 4).of_length(6)
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n, 4)) * (not nothing)
    share = Samples.clipped(X, 1.0)
    words = numbers.encode(share, rng.exponential(size=(3, n)) * 10)
    for _ in range(2):  # agents that hold nothing
        words = words + numbers.encode(Samples.clipped(X[:0], 1.0), np.zeros((3, 0)))
    numbers.check_totals(numbers.decode(words), float(n))
    noise = rng.integers(0, 2**64, len(words), dtype=np.uint64)
    with pytest.raises(CorruptedTotalError):
        numbers.check_totals(numbers.decode(noise), float(n))


def test_a_number_of_units_that_no_noise_explains_is_refused():
    numbers = NoisyTotals(NOISY, 3, 4)
    numbers.planned(5e5)
    for n_units in (-1e6, 2.0**30):
        with pytest.raises(CorruptedTotalError, match="no noise explains"):
            numbers.planned(n_units)


def contributing(point, step):
    """An agent before it contributes to a sum at a point."""
    agent = make_sum_agents([samples(4), samples(5)], starts())[0]
    agent._sum._learnt = step - 1
    agent.path.point = point
    return agent


def test_no_agent_contributes_twice_at_one_point_in_a_round():
    agent = contributing(starts(), 3)
    agent._check_point()
    agent.path.point = starts() * 1.01
    agent._check_point()
    agent.path.point = starts()
    with pytest.raises(RepeatedSummandError, match="sum 3 at this left factor before"):
        agent._check_point()
    agent._sum._learnt += 1
    agent._check_point()


def test_zeros_tell_nothing_and_may_be_summed_again():
    agent = contributing(np.zeros_like(starts()), 1)
    agent._check_point()
    agent._check_point()
