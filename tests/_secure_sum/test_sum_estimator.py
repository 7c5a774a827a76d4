"""The estimator under protocol="secure-sum": odd data, reports, journeys."""

import numpy as np
import pytest
from _sums import error_of, ignored, model
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skppdnmf import PrivateDistributedNMF, estimate_cost
from skppdnmf._federation import local as federation
from skppdnmf._fit.callbacks import FitCallbacks
from skppdnmf.exchange import SUM_HEADER_BYTES


@pytest.fixture(scope="module")
def X():
    return load_digits().data[:90, 10:40]


@pytest.fixture(scope="module")
def digits():
    return load_digits().data


@pytest.fixture(scope="module")
def fitted(X):
    return model().fit(X)


# Unusual federations and data ------------------------------------------------------


def test_relays_and_folds_without_an_agents_samples(X):
    path = np.eye(4, k=1) + np.eye(4, k=-1)
    agents = np.repeat([0, 1, 3], 30)  # agent 2 has none
    fitted = model(partition=None, adjacency=path, max_iter=40).fit(X, agents=agents)
    assert fitted.agent_labels_ == [0, 1, 2, 3]
    assert fitted.consensus_error_ == 0
    plain = model(partition=3, max_iter=40).fit(X)
    assert error_of(fitted, X) == pytest.approx(error_of(plain, X), rel=1e-3)


def test_agents_with_one_sample_each(X):
    X = X[:52]  # above 50 not all pairs share keys
    fitted = model(partition=52, max_iter=40).fit(X)
    plain = model(partition=1, max_iter=40).fit(X)
    assert error_of(fitted, X) == pytest.approx(error_of(plain, X), rel=1e-3)


def test_agents_and_features_that_are_zero(X):
    X = X.copy()
    X[:36] = 0
    X[:, 3] = 0
    fitted = model(max_iter=30).fit(X)
    assert not fitted.components_[:, 3].any()
    assert not fitted.transform(X)[:36].any()
    assert error_of(fitted, X) < 0.7


def test_zero_data():
    X = np.zeros((10, 4))
    fitted = model(2, tol=1e-4, max_iter=60).fit(X)
    assert fitted.reconstruction_err_ == 0
    assert fitted.n_iter_ < 60
    assert not fitted.transform(X).any()
    assert np.isfinite(fitted.components_).all()
    assert not fitted.history_["shared_error"].any()


@pytest.mark.parametrize(
    ("n_samples", "n_features", "K"), [(12, 30, 20), (40, 6, 9), (5, 5, 12)]
)
def test_more_components_than_samples_or_features(n_samples, n_features, K):
    X = np.random.default_rng(0).exponential(size=(n_samples, n_features))
    fitted = model(K, max_iter=60).fit(X)
    assert fitted.components_.shape == (K, n_features)
    assert error_of(fitted, X) < 0.05


def test_given_and_constant_starts(X):
    start = np.random.default_rng(3).exponential(size=(3, 30))
    fitted = model(init=start, max_iter=40).fit(X)
    scaled = model(init=64 * start, max_iter=40).fit(X)
    assert_array_equal(fitted.components_, scaled.components_)
    ones = model(init="ones", max_iter=40).fit(X)
    assert error_of(ones, X) < 0.5
    with pytest.warns(RuntimeWarning, match="n_init=4 although init"):
        model(init=start, n_init=4, max_iter=2).fit(X)


# What the estimator tells ----------------------------------------------------------


def test_too_few_iterations_are_warned_of(X):
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        fitted = model(tol=1e-4, max_iter=3).fit(X)
    assert fitted.n_iter_ == fitted.n_exchanges_ == 3
    model(tol=0, max_iter=3).fit(X)


def test_history(X):
    fitted = model(max_iter=25).fit(X)
    history = fitted.history_
    assert set(history) == {
        "exchanges", "local_error", "shared_error", "consensus_error", "seconds",
        "bytes",
    }  # fmt: skip
    assert {len(column) for column in history.values()} == {25}
    assert_array_equal(history["exchanges"], np.arange(1, 26))
    assert_array_equal(history["shared_error"], history["local_error"])
    assert (np.diff(history["seconds"]) > 0).all()
    assert (np.diff(history["bytes"]) >= 0).all()
    assert history["bytes"][-1] == fitted.traffic_["bytes"]


@pytest.mark.parametrize("n_max", [10**6, 10**8])
@pytest.mark.parametrize("n_init", [1, 8])
def test_errors_fall_to_the_final_one(X, n_max, n_init):
    """But for the rounding of the samples, to a millionth."""
    fitted = model(max_iter=60, n_max=n_max, n_init=n_init).fit(X)
    squared = fitted.history_["shared_error"] ** 2
    assert (np.diff(squared) <= 1e-6).all()
    final = error_of(fitted, X)
    assert -1e-6 <= squared[-1] - final**2 < 1e-3 * final**2


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"adjacency": "path", "n_init": 1},
        {"adjacency": "star", "partition": 7, "max_iter": 40, "n_init": 5},
        {"alpha_W": 0.01, "l1_ratio": 0.5, "key_degree": 2},
        {"init": "ones", "partition": 2, "max_iter": 1},
        {"partition": 60, "adjacency": "complete", "key_degree": 6, "max_iter": 2},
        {"partition": 1, "n_max": 1e18},
    ],
)
def test_traffic_is_that_of_the_messages_and_of_the_estimate(X, monkeypatch, given):
    sent = []
    count = federation.Traffic.count

    def count_and_serialise(self, envelopes):
        sent.extend(len(envelope.to_bytes()) for envelope in envelopes)
        count(self, envelopes)

    monkeypatch.setattr(federation.Traffic, "count", count_and_serialise)
    estimator = model(**given)
    estimate = estimate_cost(estimator, 30)
    fitted = estimator.fit(X)
    assert estimate.bytes == fitted.traffic_["bytes"] == sum(sent)
    assert estimate.exchanges == fitted.n_exchanges_
    assert fitted.traffic_["messages"] == len(sent)
    assert fitted.traffic_["ciphertexts"] == estimate.ciphertexts == 0
    assert estimate.exponentiations == estimate.seconds == 0
    edges = fitted.traffic_["edges"]
    for name in ("messages", "bytes"):
        total = sum(edge[name] for edge in edges.values())
        assert total == fitted.traffic_[name]
    for one, other in edges:
        assert fitted.adjacency_[one, other]


def test_transform_solves_each_sample(X, fitted):
    H = fitted.components_
    W = fitted.transform(X)
    exact = np.array([nnls(H.T, x)[0] for x in X])
    assert_allclose(W, exact, rtol=1e-6, atol=1e-8)
    assert_array_equal(model().fit_transform(X), W)
    assert_allclose(fitted.inverse_transform(W), W @ H)
    relative = np.linalg.norm(X - W @ H) / np.linalg.norm(X)
    assert fitted.score(X) == pytest.approx(-relative)
    assert_allclose(fitted.transform(X[7:8]), W[7:8])


def test_progress_is_shown(X, capsys):
    model(verbose=2, max_iter=3).fit(X)
    shown = capsys.readouterr()
    shown = shown.out + shown.err
    assert "iteration 3: 3 exchanges, error 0." in shown
    assert "consensus error 0," in shown


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_observer_may_end_the_fit(X, monkeypatch, n_jobs):
    """As callbacks do. What the agents do until all have ended is not looked at."""
    whole = model(max_iter=20).fit(X)
    seen = []

    def impatient(self, attributes, last):
        assert not last
        seen.append(attributes())
        return len(seen) >= 5

    monkeypatch.setattr(FitCallbacks, "end_iteration", impatient)
    fitted = model(max_iter=20, tol=1e-4, n_jobs=n_jobs).fit(X)
    assert fitted.n_iter_ == fitted.n_exchanges_ == len(seen) == 5
    for name in ("components_", "agent_components_", "consensus_error_", "n_iter_"):
        assert_array_equal(seen[-1][name], getattr(fitted, name))
    for name in ("shared_error", "bytes", "exchanges"):
        assert_array_equal(fitted.history_[name], whole.history_[name][:5])
    # One more sum tells everybody, and no other begins.
    n_bytes = np.diff(whole.history_["bytes"])[4:6].sum()
    assert 0 < fitted.traffic_["bytes"] - fitted.history_["bytes"][-1] <= n_bytes


def test_callbacks_see_the_fitted_model_and_may_stop(X):
    pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9")
    seen = []

    class Stop:
        def setup(self, estimator, context):
            pass

        teardown = setup

        def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
            pass

        def on_fit_task_end(
            self, estimator, context, *, X=None, y=None, fitted_estimator=None
        ):
            if context.task_name == "iteration":
                seen.append(fitted_estimator.components_)
            return len(seen) >= 4

    fitted = model(max_iter=20).set_callbacks(Stop()).fit(X)
    assert fitted.n_iter_ == len(seen) == 4
    assert_array_equal(seen[-1], fitted.components_)


# Journeys -------------------------------------------------------------------------


def test_pipeline_and_grid_search(digits):
    X, y = digits[:300], load_digits().target[:300]
    pipeline = make_pipeline(
        MinMaxScaler(),
        model(8, tol=1e-4, max_iter=60),
        StandardScaler(),
        LogisticRegression(max_iter=2000),
    )
    step = "privatedistributednmf__"
    with ignored(ConvergenceWarning):
        search = GridSearchCV(pipeline, {step + "n_components": [2, 12]}, cv=3).fit(
            X, y
        )
    assert search.best_params_[step + "n_components"] == 12
    assert search.best_score_ > 0.7
    inner = search.best_estimator_[1]
    assert inner.consensus_error_ == 0
    names = inner.get_feature_names_out()
    assert names[-1] == "privatedistributednmf11"


def test_protocols_are_alternatives_of_one_grid(X):
    search = GridSearchCV(
        PrivateDistributedNMF(
            3, partition=4, encryption="simulated", max_iter=10, tol=0, random_state=0
        ),
        {"protocol": ["consensus", "secure-sum"]},
        cv=2,
    ).fit(X)
    scores = search.cv_results_["mean_test_score"]
    assert scores[1] >= scores[0] - 1e-3
    assert np.isfinite(scores).all()


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [model(2, partition=None, max_iter=6), model(2, partition=1, max_iter=6)]
)
def test_checks(estimator, check):
    check(estimator)


@pytest.mark.journey
def test_a_thousand_agents():
    """Ten samples each, 64 features, keys with 64 others."""
    X = np.random.default_rng(0).exponential(size=(10_000, 64))
    thousand = model(5, partition=1000, n_init=1, max_iter=3)
    fitted = thousand.fit(X)
    assert fitted.n_exchanges_ == 3
    assert fitted.consensus_error_ == 0
    assert (np.diff(fitted.history_["shared_error"]) < 0).all()
    shorter, estimate = (
        estimate_cost(clone(thousand).set_params(max_iter=n), 64).bytes for n in (2, 3)
    )
    assert fitted.traffic_["bytes"] == estimate
    # Each link of the tree carries a header and the words of one start, twice.
    words = 5 * 6 // 2 + 5 * 64
    assert estimate - shorter == 2 * 999 * (SUM_HEADER_BYTES + 8 * words)


def test_exact_low_rank_data_are_followed_below_the_default_tolerance():
    rng = np.random.default_rng(0)
    X = rng.random((200, 4)) @ rng.random((4, 20))
    errors = []
    for tol in (1e-4, 1e-9):
        model = PrivateDistributedNMF(
            4, protocol="secure-sum", tol=tol, max_iter=1000, random_state=0
        ).fit(X)
        errors.append(model.reconstruction_err_ / np.linalg.norm(X))
    assert errors[1] <= errors[0] < 2e-4
    assert errors[1] < 1e-4


def test_a_start_with_an_unused_row_is_refused():
    start = np.vstack([np.zeros(6), np.ones(6)])
    model = PrivateDistributedNMF(2, protocol="secure-sum", init=start)
    with pytest.raises(ValueError, match=r"rows without a positive entry: \[0\]"):
        model.fit(np.ones((9, 6)))


def test_a_start_that_no_sample_uses_is_refused():
    """Its components would stay unused, and the fit would call itself converged."""
    X = np.random.default_rng(0).random((20, 5))
    X[:, 3:] = 0.0
    init = np.zeros((2, 5))
    init[0, 0] = init[1, 4] = 1.0
    estimator = model(2, init=init, partition=4)
    with pytest.raises(ValueError, match=r"zero in X: \[1\]; .*would stay unused"):
        estimator.fit(X)
    init[1, 1] = 1.0
    estimator.set_params(init=init).fit(X)
    assert estimator.components_.any(axis=1).all()
