"""`agents` through pipelines, searches and other meta-estimators."""

from functools import partial

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import sklearn
from _estimators import model as quick
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler

from skppdnmf import stack_parts

NAMES = ["north", "east", "south", "west"]
GRID = {
    "nmf__mu": [0.5, 2.0],
    "nmf__eta": [1.0],
    "nmf__n_max": [10**3, 10**6],
    "nmf__n_components": [2, 5],
}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:160], y[:160]


@pytest.fixture(scope="module")
def X(digits):
    return digits[0]


@pytest.fixture(scope="module")
def agents():
    return np.array(NAMES)[np.arange(160) % 7 % 4]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


model = partial(quick, max_iter=4)


def scaled(nmf):
    return Pipeline([("scale", MinMaxScaler(clip=True)), ("nmf", nmf)])


def test_direct_calls_need_no_routing(X, agents):
    one = model().fit(X, agents=agents)
    with sklearn.config_context(enable_metadata_routing=True):
        assert_array_equal(model().fit(X, agents=agents).components_, one.components_)
        requested = model().set_fit_request(agents=True)
        other = requested.fit(X, agents=agents)
    assert_array_equal(other.components_, one.components_)
    assert other.agent_labels_ == sorted(NAMES)


def test_requests_are_declared():
    requests = model().get_metadata_routing()
    assert requests.fit.requests == {"agents": None, "sample_weight": None}
    assert requests.score.requests == {"sample_weight": None}
    assert requests.transform.requests == {}


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_pipeline_passes_agents_on(X, agents, method):
    pipeline = scaled(model().set_fit_request(agents=True))
    W = getattr(pipeline, method)(X, agents=agents)
    scaled_X = MinMaxScaler(clip=True).fit_transform(X)
    alone = model().fit(scaled_X, agents=agents)
    assert_array_equal(pipeline[-1].components_, alone.components_)
    assert pipeline[-1].agent_labels_ == sorted(NAMES)
    if method == "fit_transform":
        assert_array_equal(W, alone.transform(scaled_X))
    # As a step that is not the last it is fitted through fit_transform.
    longer = make_pipeline(
        MinMaxScaler(clip=True),
        model().set_fit_request(agents=True),
        FunctionTransformer(np.sqrt),
    )
    longer.fit(X, agents=agents)
    assert_array_equal(longer[1].components_, alone.components_)


@pytest.mark.usefixtures("routing")
def test_agents_without_a_request_are_an_error(X, agents):
    with pytest.raises(UnsetMetadataPassedError, match="agents"):
        scaled(model()).fit(X, agents=agents)
    ignored = scaled(model().set_fit_request(agents=False)).fit
    with pytest.raises(TypeError, match="agents"):
        ignored(X, agents=agents)


def test_pipeline_without_routing_passes_agents_by_prefix(X, agents):
    pipeline = scaled(model()).fit(X, nmf__agents=agents)
    assert pipeline[-1].agent_labels_ == sorted(NAMES)
    whole = GridSearchCV(pipeline, {"nmf__mu": [0.5, 2.0]}, cv=2)
    whole.fit(X, nmf__agents=agents)
    assert np.isfinite(whole.cv_results_["mean_test_score"]).all()
    assert whole.best_estimator_[-1].agent_labels_ == sorted(NAMES)


@pytest.mark.journey
@pytest.mark.parametrize("route", [True, False])
def test_grid_search_in_a_pipeline(X, agents, route):
    with sklearn.config_context(enable_metadata_routing=route):
        nmf = model()
        passed = {}
        if route:
            nmf.set_fit_request(agents=True)
            passed = {"agents": agents}
        search = GridSearchCV(scaled(nmf), GRID, cv=3, n_jobs=2).fit(X, **passed)
    scores = search.cv_results_["mean_test_score"]
    assert len(scores) == 8
    assert ((scores < 0) & (scores > -1)).all()
    # More components describe even unseen samples better.
    assert search.best_params_["nmf__n_components"] == 5
    assert search.best_score_ == scores.max()
    labels = sorted(NAMES) if route else list(range(4))
    assert search.best_estimator_[-1].agent_labels_ == labels


@pytest.mark.usefixtures("routing")
def test_cross_val_score_with_agents_and_weights(X, agents):
    nmf = model().set_fit_request(agents=True, sample_weight=False)
    nmf.set_score_request(sample_weight=True)
    weight = np.linspace(0.0, 1.0, len(X))
    params = {"agents": agents, "sample_weight": weight}
    scores = cross_val_score(nmf, X, cv=4, params=params)
    assert np.isfinite(scores).all()
    unweighted = cross_val_score(
        model().set_fit_request(agents=True), X, cv=4, params={"agents": agents}
    )
    assert not np.allclose(scores, unweighted)
    train, test = np.arange(40, 160), np.arange(40)
    fitted = model().fit(X[train], agents=agents[train])
    assert_allclose(scores[0], fitted.score(X[test], sample_weight=weight[test]))


@pytest.mark.parametrize("route", [True, False])
def test_scores_through_a_pipeline_are_finite(X, route):
    with sklearn.config_context(enable_metadata_routing=route):
        # Version 1.6.0 does not take None here under routing.
        scores = cross_val_score(
            scaled(model()), X, cv=3, error_score="raise", params={}
        )
    assert np.isfinite(scores).all()


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("explicit", [True, False])
def test_group_folds_remove_whole_agents(X, agents, explicit):
    graph = nx.cycle_graph(NAMES) if explicit else "ring"
    result = cross_validate(
        model(adjacency=graph).set_fit_request(agents=True),
        X,
        cv=GroupKFold(n_splits=4),
        params={"agents": agents, "groups": agents},
        return_estimator=True,
        return_indices=True,
    )
    assert np.isfinite(result["test_score"]).all()
    removed = set()
    for fitted, train in zip(
        result["estimator"], result["indices"]["train"], strict=True
    ):
        left = set(agents[train])
        assert len(left) == 3
        removed |= set(NAMES) - left
        if explicit:  # the removed agent stays as a relay
            assert fitted.agent_labels_ == NAMES
            (relay,) = set(range(4)) - set(fitted.sample_agents_.tolist())
            assert NAMES[relay] not in left
            edges = fitted.traffic_["edges"]
            assert sum(NAMES[relay] in edge for edge in edges) == 4
            assert fitted.adjacency_.shape == (4, 4)
        else:
            assert fitted.agent_labels_ == sorted(left)
            assert fitted.adjacency_.shape == (3, 3)
        assert fitted.consensus_error_ < 0.5
    assert removed == set(NAMES)


@pytest.mark.parametrize("route", [True, False])
def test_in_front_of_a_classifier(digits, agents, route):
    X, y = digits
    with sklearn.config_context(enable_metadata_routing=route):
        nmf = model(12, max_iter=15)
        passed = {}
        if route:
            nmf.set_fit_request(agents=True)
            passed = {"params": {"agents": agents}}
        pipeline = make_pipeline(
            MinMaxScaler(clip=True),
            nmf,
            MinMaxScaler(),
            LogisticRegression(C=100.0, max_iter=1000),
        )
        folds = StratifiedKFold(4, shuffle=True, random_state=0)
        scores = cross_val_score(pipeline, X, y, cv=folds, **passed)
    assert scores.mean() > 0.75


@pytest.mark.usefixtures("routing")
def test_column_transformer(X, agents):
    names = [f"p{k}" for k in range(64)]
    frame = pd.DataFrame(X, columns=names)
    frame["site"] = agents
    columns = ColumnTransformer(
        [
            ("top", model(2).set_fit_request(agents=True), names[:32]),
            (
                "bottom",
                model(3).set_fit_request(agents=True),
                names[32:],
            ),
        ]
    )
    W = columns.fit_transform(frame, agents=frame["site"])
    assert W.shape == (160, 5)
    assert_array_equal(W[:, :2], model(2).fit_transform(X[:, :32], agents=agents))
    assert_array_equal(columns.transform(frame), W)
    assert list(columns.get_feature_names_out()) == [
        "top__privatedistributednmf0",
        "top__privatedistributednmf1",
        *(f"bottom__privatedistributednmf{k}" for k in range(3)),
    ]


@pytest.mark.usefixtures("routing")
def test_feature_union_and_nested_pipelines(X, agents):
    union = FeatureUnion(
        [
            ("private", scaled(model(2).set_fit_request(agents=True))),
            ("pooled", PCA(3, svd_solver="full")),
        ]
    )
    nested = make_pipeline(FunctionTransformer(np.sqrt), make_pipeline(union))
    W = nested.fit_transform(X, agents=agents)
    inner = MinMaxScaler(clip=True).fit_transform(np.sqrt(X))
    assert_array_equal(W[:, :2], model(2).fit_transform(inner, agents=agents))
    assert W.shape == (160, 5)


def test_a_search_without_metadata_splits_into_blocks(X):
    search = GridSearchCV(
        model(partition=[0.7, 0.2, 0.1]), {"mu": [0.5, 2.0], "g_max": [0.5, 1.0]}, cv=3
    ).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    counts = np.bincount(search.best_estimator_.sample_agents_)
    assert_array_equal(counts, [112, 32, 16])


@pytest.mark.usefixtures("routing")
def test_stacked_parts_go_through_a_search(X):
    stacked, owner = stack_parts([X[:70], X[70:130], X[130:]])
    search = GridSearchCV(
        scaled(model(partition=9).set_fit_request(agents=True)),
        {"nmf__n_components": [2, 4]},
        cv=StratifiedKFold(3).split(stacked, owner),
    ).fit(stacked, agents=owner)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert_array_equal(search.best_estimator_[-1].sample_agents_, owner)
