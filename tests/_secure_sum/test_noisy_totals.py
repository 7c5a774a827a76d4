"""What one sample can change of noisy totals, and the noise on them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from skppdnmf._secure_sum.accountant import compose, delta_of
from skppdnmf._secure_sum.noisy_totals import (
    NoiseSettings,
    NoisyTotals,
    Samples,
    count_totals,
    signal_to_noise,
)
from skppdnmf.exceptions import ExcessiveNoiseError

SETTINGS = NoiseSettings(
    n_agents=6, max_iter=60, epsilon=3.0, delta=1e-5, clip=2.0, max_colluding=2
)


def numbers(K=3, F=5, n_totals=8, **changes):
    given_ = SETTINGS.__dict__ | changes
    return NoisyTotals(NoiseSettings(**given_), K, F).of_length(n_totals)


def unit_rows(K, F, seed=0):
    H = np.abs(np.random.default_rng(seed).standard_normal((K, F)))
    return H / np.linalg.norm(H, axis=1, keepdims=True)


def change_in_noise(noisy, words):
    """What a summand is in standard deviations of the honest agents' noise."""
    K = noisy.n_components
    rows, columns = np.triu_indices(K)
    scale = np.where(rows == columns, noisy.gram_scale, noisy.off_diagonal_scale)
    scale = np.append(
        scale, np.full(len(words) - len(rows), noisy.product_scale)
    ) * math.sqrt(noisy.settings.n_honest)
    return float(np.linalg.norm(words / scale))


entries = st.one_of(
    st.just(0.0),
    st.floats(0, 3),
    st.floats(1e-12, 1e-3),
    st.sampled_from([1.0, 2.0, 1e6, 1e150, 5e-324, 2.0**-16]),
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(entries, min_size=5, max_size=5),
    st.lists(entries, min_size=3, max_size=3),
    st.sampled_from([0.5, 2.0, 1e-3, 1e5]),
    st.integers(1, 40),
)
def test_no_sample_changes_more_than_the_bound(x, w, clip, n_totals):
    """Whatever right factor it is given, also one that no solver would return."""
    noisy = numbers(n_totals=n_totals, clip=clip)
    samples = Samples.clipped(np.array([x]), clip)
    words = noisy.summand(*noisy.whole(samples, np.array([w]).T))
    mu = noisy.guarantee.mu_totals / math.sqrt(n_totals)
    assert change_in_noise(noisy, words) <= mu


def test_the_bound_is_attained():
    noisy = numbers(K=2, F=2)
    samples = Samples.clipped(np.array([[5.0, 0.0]]), 2.0)
    H = np.eye(2)
    words = noisy.summand(
        *noisy.whole(samples, samples.right_factors(H, np.ones((2, 1))))
    )
    mu = noisy.guarantee.mu_totals / math.sqrt(noisy.n_totals)
    assert change_in_noise(noisy, words) == pytest.approx(mu, rel=1e-4)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 70), st.integers(0, 10**6), st.booleans(), st.booleans())
def test_others_do_not_change_by_a_bit(n, seed, is_sparse, wild):
    """Where a sample is added, the summand changes by what it is alone."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n + 1, 5)) * (rng.random((n + 1, 5)) < 0.6)
    if wild:
        X[rng.integers(n + 1)] *= 1e9
    left_out = rng.integers(n + 1)
    noisy, H = numbers(), unit_rows(3, 5, seed)

    def summand(rows):
        part = sparse.csr_array(rows) if is_sparse else rows
        samples = Samples.clipped(part, 2.0)
        W = samples.right_factors(H, np.zeros((3, len(rows))))
        return noisy.summand(*noisy.whole(samples, W))

    one = X[left_out : left_out + 1]
    np.testing.assert_array_equal(
        summand(X) - summand(np.delete(X, left_out, axis=0)), summand(one)
    )


def test_right_factors_are_nearly_best():
    rng = np.random.default_rng(0)
    H, X = unit_rows(3, 5), rng.exponential(size=(40, 5))
    from skppdnmf._nmf.nnls import solve_nnls

    W = Samples(np.ascontiguousarray(X.T)).right_factors(H, np.zeros((3, 40)))
    best = solve_nnls(X, H)
    assert np.linalg.norm(X - W.T @ H) <= 1.001 * np.linalg.norm(X - best @ H)


def test_totals_are_those_of_the_samples_but_for_noise():
    rng = np.random.default_rng(1)
    noisy, H = numbers(), unit_rows(3, 5)
    X = rng.exponential(size=(50, 5))
    X *= 0.3 / np.linalg.norm(X, axis=1, keepdims=True)  # below all bounds
    samples = Samples.clipped(X, 2.0)
    W = samples.right_factors(H, np.zeros((3, 50)))
    words = noisy.summand(*noisy.whole(samples, W)).view(np.uint64)
    totals = noisy.decode(words)
    np.testing.assert_allclose(totals.gram[0], W @ W.T, rtol=1e-3)
    np.testing.assert_allclose(totals.products[0], W @ X, rtol=1e-3)
    whole = samples.truncated(np.full(50, 1 / noisy.sample_unit))
    sparse_whole = Samples(sparse.csr_array(X)).truncated(
        np.full(50, 1 / noisy.sample_unit)
    )
    np.testing.assert_array_equal(sparse_whole.data.toarray().T, whole.data)


@pytest.mark.journey
def test_all_but_the_colluding_have_the_noise():
    K, F = 3, 4000
    noisy = numbers(K, F)
    nothing = Samples.clipped(np.zeros((0, F)), 2.0)
    words = noisy.encode(nothing, np.zeros((K, 0))).view(np.int64)
    honest = noisy.settings.n_honest
    assert honest == 4
    mu = noisy.guarantee.mu_totals / math.sqrt(noisy.n_totals)
    share = noisy.guarantee.gram_share
    needed = 2.0**36 / (mu * math.sqrt(1 - share)) / math.sqrt(honest)
    assert words[6:].std() == pytest.approx(needed, rel=0.03)
    assert noisy.product_scale >= needed
    gram = np.array(
        [noisy.encode(nothing, np.zeros((K, 0))).view(np.int64)[:6] for _ in range(400)]
    )
    diagonal = [0, 3, 5]
    deviation = gram.std(axis=0)
    assert deviation[diagonal].mean() == pytest.approx(noisy.gram_scale, rel=0.1)
    assert deviation[[1, 2, 4]].mean() == pytest.approx(
        noisy.gram_scale / math.sqrt(2), rel=0.1
    )


def test_shares_add_up_to_the_guarantee():
    noisy = numbers()
    guarantee = noisy.guarantee
    each = guarantee.mu_totals / math.sqrt(noisy.n_totals)
    mu = compose(guarantee.mu_count, *[each] * noisy.n_totals)
    assert delta_of(3.0, mu) <= 1e-5


def test_count_is_near():
    noisy = numbers()
    counts = [
        noisy.read_count(
            sum(noisy.count_words(n) for n in (100, 0, 20, 3)).astype(np.uint64)
        )
        for _ in range(300)
    ]
    deviation = noisy.count_scale * 2 / 2**32
    assert np.mean(counts) == pytest.approx(123, abs=5 * deviation / math.sqrt(300))
    assert np.std(counts) == pytest.approx(deviation, rel=0.2)


def test_number_of_totals_grows_with_the_signal():
    assert [count_totals(z, 99) for z in (3, 12, 30, 40)] == [8, 15, 30, 60]
    assert count_totals(50, 5) == 5
    few = signal_to_noise(SETTINGS.guarantee, 1000, 3, 5)
    assert signal_to_noise(SETTINGS.guarantee, 2000, 3, 5) == pytest.approx(2 * few)


@pytest.mark.parametrize("n_samples", [-40.0, 0.0, 3.0])
def test_refuses_noise(n_samples):
    noisy = NoisyTotals(SETTINGS, 3, 5)
    with pytest.raises(ExcessiveNoiseError, match=r"which takes \d+ samples") as error:
        noisy.planned(n_samples)
    with pytest.raises(OverflowError, match="about 100000000 samples"):
        noisy.planned(1e8)
    enough = int(str(error.value).split("which takes ")[1].split()[0])
    assert noisy.planned(enough + 1).n_totals > 0


def agents_summand(noisy, X, H):
    """What an agent with these samples sends, but for the noise."""
    samples = Samples.clipped(X, noisy.settings.clip)
    W = samples.right_factors(H, np.zeros((len(H), len(X))))
    return noisy.mean(noisy.summand(*noisy.whole(samples, W)), len(X))


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 50),
    st.integers(0, 10**6),
    st.sampled_from([1e-6, 1.0, 1e9]),
    st.booleans(),
)
def test_no_agent_changes_more_than_the_bound(n, seed, size, alike):
    """However many samples it has, also where they are all the same."""
    noisy = numbers(unit="agent")
    X = size * np.random.default_rng(seed).exponential(size=(n, 5))
    if alike and n:
        X[:] = X[0]
    words = agents_summand(noisy, X, unit_rows(3, 5, seed))
    mu = noisy.guarantee.mu_totals / math.sqrt(noisy.n_totals)
    assert change_in_noise(noisy, words) <= mu
    if alike and n and size == 1e9:  # its one direction counts in full
        assert change_in_noise(noisy, words) == pytest.approx(mu, rel=1e-3)


def test_a_sum_over_many_samples_would_change_more():
    """The control: without the mean the bound of an agent is exceeded at once."""
    noisy, H = numbers(unit="agent"), unit_rows(3, 5)
    samples = Samples.clipped(np.ones((20, 5)), noisy.settings.clip)
    W = samples.right_factors(H, np.zeros((3, 20)))
    words = noisy.summand(*noisy.whole(samples, W))
    mu = noisy.guarantee.mu_totals / math.sqrt(noisy.n_totals)
    assert change_in_noise(noisy, words) > 10 * mu


def test_an_agent_sends_the_mean_over_its_samples():
    noisy, H = numbers(unit="agent"), unit_rows(3, 5)
    X = 0.1 * np.random.default_rng(3).exponential(size=(7, 5))
    twice = agents_summand(noisy, np.vstack([X, X]), H)
    np.testing.assert_array_equal(agents_summand(noisy, X, H), twice)
    samples = Samples.clipped(X, noisy.settings.clip)
    W = samples.right_factors(H, np.zeros((3, 7)))
    totals = noisy.decode(agents_summand(noisy, X, H).view(np.uint64))
    np.testing.assert_allclose(totals.products[0], W @ X / 7, rtol=1e-3, atol=1e-5)
    with pytest.raises(OverflowError, match="an agent has 8388608 at most"):
        noisy.mean(np.zeros(noisy.n_words, dtype=np.int64), 1 << 24)


def test_agents_are_counted_where_they_are_the_unit():
    noisy = numbers(unit="agent", epsilon=10.0)
    words = sum(noisy.count_words(n) for n in (1000, 0, 1, 7))
    # Four agents' noise, of which some may be negative.
    assert abs(noisy.read_count(words) - 3) < 6 * noisy.count_noise
    with pytest.raises(ExcessiveNoiseError, match=r"about 3 agents say .* \d+ agents"):
        numbers(unit="agent").planned(3.0)
