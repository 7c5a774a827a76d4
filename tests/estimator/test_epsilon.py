"""Fits with differential privacy: what they promise, release and refuse."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.decomposition import NMF
from sklearn.model_selection import GridSearchCV, KFold

from skppdnmf import (
    ExcessiveNoiseError,
    PrivacyBudget,
    PrivacyBudgetError,
    PrivateDistributedNMF,
    estimate_cost,
    estimate_noise,
)
from skppdnmf._secure_sum import noisy_agent, noisy_totals
from skppdnmf._secure_sum.accountant import compose, delta_of, epsilon_of


def model(n_components=3, **changes):
    given = {
        "protocol": "secure-sum",
        "partition": 4,
        "epsilon": 3.0,
        "delta": 1e-5,
        "clip": 1.0,
        "random_state": 0,
    }
    return PrivateDistributedNMF(n_components, **(given | changes))


def low_rank(n, K=3, F=8, seed=0):
    """Samples of unit norm that K components explain nearly."""
    rng = np.random.default_rng(seed)
    H = rng.exponential(size=(K, F)) * (rng.random((K, F)) < 0.5) + 0.02
    X = rng.dirichlet(np.full(K, 0.5), size=n) @ H + 0.02 * rng.random((n, F))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


X = low_rank(4000)


def test_comes_near_the_pooled_factorisation():
    fitted = model(epsilon=8.0, partition=5).fit(X)
    pooled = NMF(3, init="nndsvda", max_iter=500, random_state=0).fit(X)
    error = -fitted.score(X) * np.linalg.norm(X)
    guess = np.linalg.norm(X - X.mean(axis=0))
    assert error - pooled.reconstruction_err_ < 0.1 * (
        guess - pooled.reconstruction_err_
    )


def test_small_pools_and_few_holders_are_covered():
    agents = np.repeat(["a", "b", "c"], [2000, 1999, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(partition=None).fit(X, agents=agents)


@pytest.mark.journey
def test_more_epsilon_less_error():
    # Noise cannot bring the count of 1,000 below what epsilon=1 needs.
    few = X[:1000]
    errors = [
        np.median(
            [-model(epsilon=e, random_state=s).fit(few).score(few) for s in range(5)]
        )
        for e in (1.0, 20.0)
    ]
    assert errors[0] > 1.2 * errors[1]


def test_nothing_else_is_released():
    fitted = model().fit(X)
    assert math.isnan(fitted.reconstruction_err_)
    for name in ("local_error", "shared_error"):
        assert np.isnan(fitted.history_[name]).all()
    np.testing.assert_allclose(np.linalg.norm(fitted.components_, axis=1), 1.0)
    assert fitted.components_.min() > 0
    assert fitted.consensus_error_ == 0.0


def test_account_of_the_fit():
    fitted = model(partition=6, max_colluding=2).fit(X)
    told = fitted.privacy_
    assert (told["epsilon"], told["delta"], told["clip"]) == (3.0, 1e-5, 1.0)
    assert told["neighbours"] == "one sample more or less"
    assert told["n_totals"] == fitted.n_iter_ == 60
    assert (told["n_honest"], told["max_colluding"]) == (4, 2)
    assert told["share"]["gram"] + told["share"]["products"] == 1.0
    # The noise of the honest alone gives the guarantee.
    part = math.sqrt(4 / 6)
    mus = [told["sensitivity"]["n_samples"] / (told["noise"]["n_samples"] * part)]
    for name in ("gram", "products"):
        mu = told["sensitivity"][name] / (told["noise"][name] * part)
        mus += [mu] * told["n_totals"]
    assert delta_of(3.0, compose(*mus)) <= 1e-5
    assert epsilon_of(compose(*mus), 1e-5) == pytest.approx(3.0, rel=0.01)
    assert told["mu"] == pytest.approx(compose(*mus), rel=1e-6)
    assert abs(told["n_samples"] - 4000) < 6 * told["noise"]["n_samples"]
    expected = stats.norm.cdf(told["mu"] / math.sqrt(2))
    assert told["membership_auc"] == pytest.approx(expected)


def test_without_epsilon_there_is_no_account():
    fitted = model().fit(X)
    fitted.set_params(epsilon=None, delta=None).fit(X[:100])
    assert fitted.privacy_ is None
    assert fitted.reconstruction_err_ > 0


def test_noise_is_not_seeded():
    one, other = (model().fit(X).components_ for _ in range(2))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("kind", [sparse.csr_array, np.float32])
def test_kinds_of_samples(kind):
    fitted = model().fit(kind(X))
    assert fitted.score(X) > -0.5
    if kind is np.float32:
        assert fitted.components_.dtype == np.float32


def test_longer_samples_are_shortened():
    wild = X.copy()
    wild[:20] *= 1e6
    np.random.default_rng(0).shuffle(wild)
    assert model(epsilon=8.0).fit(wild).score(X) > -0.35


def test_tolerance_and_starts_are_not_looked_at():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model(tol=0.5).fit(X).n_iter_ == 60
    with pytest.warns(RuntimeWarning, match="n_init=4 although starts would have to"):
        model(n_init=4).fit(X)
    assert model(max_iter=3).fit(X).n_iter_ == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocol": "consensus"}, 'protocol="secure-sum" adds the noise'),
        ({"delta": None}, "epsilon=3 without delta"),
        ({"clip": None}, "epsilon=3 without clip"),
        ({"alpha_W": 0.1}, r"alpha_W=0\.1 and alpha_H='same' with epsilon=3"),
        ({"alpha_H": 0.1}, r"alpha_W=0 and alpha_H=0\.1"),
        ({"on_dropout": "continue"}, "on_dropout='continue' with epsilon=3"),
        ({"partition": 2}, "n_agents=2"),
        ({"max_colluding": 4}, "max_colluding=4 should be < n_agents=4"),
        ({"epsilon": None}, "delta=1e-05 although epsilon=None"),
        (
            {"epsilon": None, "delta": None, "privacy_budget": PrivacyBudget(1, 1e-5)},
            "privacy_budget=",
        ),
        ({"epsilon": 0.0}, "'epsilon' parameter"),
        ({"delta": 0.0}, "'delta' parameter"),
        ({"delta": 1.0}, "'delta' parameter"),
        ({"clip": 0.0}, "'clip' parameter"),
        ({"max_colluding": 0}, "'max_colluding' parameter"),
        ({"delta": 1e-30}, "delta=1e-30 is too small for integer noise"),
    ],
)
def test_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        model(**changes).fit(X)


def test_refuses_where_noise_exceeds_the_signal():
    with pytest.raises(ExcessiveNoiseError, match=r"at epsilon=0\.1.*which takes"):
        model(epsilon=0.1).fit(X[:200])


def test_estimate_before_any_data():
    estimator = model(epsilon=1.0)
    few, many = (estimate_noise(estimator, n, 8) for n in (30, 40_000))
    assert not few.feasible
    assert many.feasible
    assert few.n_totals < many.n_totals == 60
    assert few.excess_error > 1 > 0.05 > many.excess_error
    fitted = estimator.fit(low_rank(40_000))
    assert many.product_noise == pytest.approx(fitted.privacy_["noise"]["products"])
    assert many.mu == fitted.privacy_["mu"]
    with pytest.raises(ValueError, match="epsilon=None"):
        estimate_noise(PrivateDistributedNMF(3), 100, 8)
    with pytest.raises(ValueError, match="n_samples=0"):
        estimate_noise(estimator, 0, 8)
    assert estimate_noise(estimator, 40_000, 8, 5).signal_to_noise < (
        many.signal_to_noise
    )


def test_cost_is_what_is_sent():
    estimator = model(partition=[1000, 1000, 1000, 1000])
    cost = estimate_cost(estimator, 8)
    fitted = estimator.fit(X)
    assert cost.exchanges == fitted.n_exchanges_ == 60
    assert cost.bytes == fitted.traffic_["bytes"]


def test_budget_is_shared_and_refuses():
    budget = PrivacyBudget(3.0, 1e-5)
    estimator = model(epsilon=1.0, delta=1e-6, privacy_budget=budget)
    assert clone(estimator).privacy_budget is budget
    assert copy.deepcopy(budget) is budget
    estimator.fit(X)
    clone(estimator).fit(X)
    assert budget.n_fits == 2
    assert 1.0 < budget.spent_epsilon < 2.0
    estimator.set_params(epsilon=3.0, delta=1e-5)
    with pytest.raises(PrivacyBudgetError, match=r"2 fits have spent epsilon=1\."):
        estimator.fit(X)
    assert budget.n_fits == 2
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(budget)


def test_budget_of_one_fit_is_enough_for_it():
    budget = PrivacyBudget(1.0, 1e-5)
    budget.spend(1.0, 1e-5)
    with pytest.raises(PrivacyBudgetError):
        budget.spend(1e-3, 1e-9)
    with pytest.raises(PrivacyBudgetError):
        PrivacyBudget(10.0, 1e-5).spend(0.1, 2e-3)


@pytest.mark.parametrize("given", [(0, 0.1), (math.inf, 0.1), (1, 0), (1, 1)])
def test_budget_out_of_range(given):
    with pytest.raises(ValueError, match="should be"):
        PrivacyBudget(*given)


@pytest.mark.journey
def test_grid_search_spends():
    budget = PrivacyBudget(3.0, 1e-5)
    estimator = model(epsilon=0.9, delta=1e-6, privacy_budget=budget)
    search = GridSearchCV(
        estimator, {"n_components": [2, 3]}, cv=KFold(2), error_score="raise"
    )
    search.fit(X)
    assert budget.n_fits == 5  # two folds of two, and the best again
    with pytest.raises(PrivacyBudgetError):
        search.set_params(cv=KFold(5)).fit(X)


def lengths_of_totals(monkeypatch, samples, n_fits, noise):
    """A likelihood-ratio statistic of a planted sample, over fits of few totals.

    An attacker that knows all other samples, and the path, subtracts what these
    contribute and projects the rest on what the planted sample would add.
    """
    K, F = 2, 4
    planted = np.array([[1.0, 0.0, 0.0, 0.0]])
    settings = noisy_totals.NoiseSettings(4, 8, 3.0, 1e-3, 1.0, 1)
    numbers = noisy_totals.NoisyTotals(settings, K, F).of_length(1)
    H = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.6, 0.8, 0.0]])
    scores = []
    if not noise:
        monkeypatch.setattr(
            noisy_totals,
            "discrete_gaussian",
            lambda scale, size: np.zeros(size, dtype=np.int64),
        )

    def summand(rows):
        part = noisy_totals.Samples.clipped(rows, 1.0)
        W = part.right_factors(H, np.zeros((K, len(rows))))
        return part, W

    alone = numbers.summand(*numbers.whole(*summand(planted))).astype(float)
    others = sum(
        numbers.summand(*numbers.whole(*summand(rows)))
        for rows in np.array_split(samples, 3)
    )
    for member in np.repeat([False, True], n_fits):
        parts = [*np.array_split(samples, 3), planted if member else planted[:0]]
        total = sum(numbers.encode(*summand(rows)).view(np.int64) for rows in parts)
        scores.append(float((total - others) @ alone / (alone @ alone)))
    return np.split(np.array(scores), 2)


def empirical_epsilon(out, members, delta):
    """A lower bound of epsilon from a threshold test, with 95 % confidence."""
    best = 0.0
    for threshold in np.quantile(out, [0.5, 0.8, 0.9, 0.95]):
        true, false = (members > threshold).sum(), (out > threshold).sum()
        n = len(out)
        least = stats.beta.ppf(0.025, true, n - true + 1)
        most = stats.beta.ppf(0.975, false + 1, n - false)
        if least > delta:
            best = max(best, math.log((least - delta) / most))
    return best


@pytest.mark.journey
def test_a_planted_sample_is_found_no_better_than_promised(monkeypatch):
    samples = low_rank(60, 2, 4)
    out, members = lengths_of_totals(monkeypatch, samples, 500, noise=True)
    assert empirical_epsilon(out, members, 1e-3) <= 3.0
    # Much of what is promised can be had: the bound is not idle.
    assert stats.mannwhitneyu(members, out).pvalue < 1e-6
    out, members = lengths_of_totals(monkeypatch, samples, 500, noise=False)
    assert empirical_epsilon(out, members, 1e-3) > 4.5


def test_relays_add_noise(monkeypatch):
    """Agents without samples count among the honest, and add their share."""
    fitted = model(partition=None, adjacency="complete")
    agents = np.repeat(["a", "b", "c"], [2000, 1999, 1])
    fitted.fit(X, agents=agents)
    drawn = []
    genuine = noisy_agent.Samples.clipped.__func__

    def look(cls, part, clip):
        drawn.append(part.shape[0])
        return genuine(cls, part, clip)

    monkeypatch.setattr(noisy_agent.Samples, "clipped", classmethod(look))
    fitted.set_params(adjacency=np.ones((4, 4)) - np.eye(4))
    fitted.fit(X, agents=np.repeat([0, 1, 3], [2000, 1999, 1]))
    assert drawn == [2000, 1999, 0, 1]
    assert fitted.privacy_["n_honest"] == 3


def test_the_unit_may_be_an_agent():
    sizes = 3 + np.arange(90) % 40
    parts = np.split(low_rank(sizes.sum(), 2, 4), np.cumsum(sizes)[:-1])
    fitted = model(
        2, partition=None, epsilon=20.0, privacy_unit="agent", key_degree=6, max_iter=8
    )
    told = fitted.fit(parts).privacy_
    assert (told["unit"], told["neighbours"]) == (
        "agent",
        "all samples of one agent more or less",
    )
    assert "n_samples" not in told
    assert abs(told["n_agents"] - 90) < 6 * told["noise"]["n_agents"]
    part = math.sqrt(told["n_honest"] / 90)
    mus = [told["sensitivity"]["n_agents"] / (told["noise"]["n_agents"] * part)]
    for name in ("gram", "products"):
        mu = told["sensitivity"][name] / (told["noise"][name] * part)
        mus += [mu] * told["n_totals"]
    assert told["mu"] == pytest.approx(compose(*mus), rel=1e-6)
    everything = np.vstack(parts)
    assert fitted.score(everything) > -0.3
    # The price: as many samples are enough by far where each stands for itself.
    one = estimate_noise(model(2, epsilon=20.0), len(everything), 4)
    other = estimate_noise(fitted.set_params(partition=90), len(everything), 4)
    assert one.signal_to_noise > 5 * other.signal_to_noise
    assert other.product_noise == pytest.approx(told["noise"]["products"])


def test_few_agents_are_refused_as_a_unit():
    with pytest.raises(ExcessiveNoiseError, match=r"agents say of .* agents, fewer"):
        model(privacy_unit="agent").fit(X)
    with pytest.raises(ValueError, match="privacy_unit='agent' although epsilon=None"):
        model(epsilon=None, delta=None, privacy_unit="agent").fit(X)


def test_a_budget_is_of_one_unit():
    budget = PrivacyBudget(3.0, 1e-5)
    budget.spend(0.5, 1e-6, "agent")
    with pytest.raises(PrivacyBudgetError, match="take a budget for each"):
        budget.spend(0.5, 1e-6)
    assert budget.n_fits == 1
