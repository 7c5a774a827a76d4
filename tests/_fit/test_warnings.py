"""Warnings point to the user's line, whoever is between it and the package."""

import linecache
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skppdnmf import (
    CostWarning,
    DropoutWarning,
    PrivacyWarning,
    PrivateDistributedNMF,
    _warn,
    estimate_cost,
)
from skppdnmf._consensus import cost
from skppdnmf._secure_sum.agent import SumAgent
from skppdnmf._warn import warn_user
from skppdnmf.exceptions import AgentLost

X = np.random.default_rng(0).exponential(size=(24, 5))


def leak(monkeypatch):
    return {"adjacency": "path", "encryption": None}


def leak_of_a_sum(monkeypatch):
    return {"protocol": "secure-sum", "partition": 2}


def no_convergence(monkeypatch):
    return {"encryption": None, "tol": 1e-12}


def one_start(monkeypatch):
    return {"protocol": "secure-sum", "init": "ones", "n_init": 3}


def long_fit(monkeypatch):
    monkeypatch.setattr(cost, "_SHORT_FIT_SECONDS", 0.0)
    monkeypatch.setattr(cost, "time_work", lambda *arguments: 3600.0)
    return {"key_size": 64, "max_iter": 1, "max_admm_iter": 1}


def dropout(monkeypatch):
    advance = SumAgent.advance

    def fail(self, arrived):
        if self.number == 1 and self.path.iteration == 1:
            raise AgentLost("gone")
        return advance(self, arrived)

    monkeypatch.setattr(SumAgent, "advance", fail)
    return {
        "protocol": "secure-sum",
        "partition": 4,
        "adjacency": "complete",
        "on_dropout": "continue",
    }


# What sets the parameters that bring about a warning, and what it says.
WARNINGS = [
    (leak, PrivacyWarning, "agents with one neighbour"),
    (leak_of_a_sum, PrivacyWarning, "with two agents"),
    (no_convergence, ConvergenceWarning, "did not reach tol"),
    (one_start, RuntimeWarning, "n_init=3"),
    (long_fit, CostWarning, "expected to take"),
    (dropout, DropoutWarning, "dropped out"),
]


# The one line of each that calls for the fit ends with the mark.
def fit(estimator):
    estimator.fit(X)  # here


def fit_by_keyword(estimator):
    estimator.fit(X=X, agents=None)  # here


def fit_transform(estimator):
    estimator.fit_transform(X)  # here


def fit_parts(estimator):
    n_parts = estimator.partition or 4
    estimator.fit_transform(np.array_split(X, n_parts))  # here


def pipeline(estimator):
    make_pipeline(FunctionTransformer(), estimator).fit(X)  # here


def within_a_pipeline(estimator):
    make_pipeline(estimator, FunctionTransformer()).fit_transform(X)  # here


def search(estimator):
    GridSearchCV(estimator, {"mu": [1.0]}, cv=2, n_jobs=1).fit(X)  # here


def from_a_subclass(estimator):
    class Louder(PrivateDistributedNMF):
        def fit(self, X, y=None):
            return super().fit(X)  # here

    Louder(**estimator.get_params()).fit(X)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("make", "category", "message"), WARNINGS)
@pytest.mark.parametrize(
    "call",
    [
        fit,
        fit_by_keyword,
        fit_transform,
        fit_parts,
        pipeline,
        within_a_pipeline,
        search,
        from_a_subclass,
    ],
)
def test_warnings_point_to_the_line_that_fits(
    call, make, category, message, monkeypatch
):
    parameters = make(monkeypatch)
    estimator = PrivateDistributedNMF(
        2, **{"max_iter": 3, "tol": 0, "random_state": 0, **parameters}
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(estimator)
    ours = [one for one in caught if one.category is category]
    ours = [one for one in ours if message in str(one.message)]
    assert ours
    for one in ours:
        assert one.filename == __file__
        assert linecache.getline(one.filename, one.lineno).endswith("# here\n")


def test_an_estimate_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate_cost(PrivateDistributedNMF(2, key_size=256, adjacency="path"), 5)


def calls(names):
    """A function of the last module, which calls that before it; the first warns."""
    inner, body = None, "warn_user('text', UserWarning)"
    for name in names:
        space = {"__name__": name, "warn_user": warn_user, "inner": inner}
        exec(compile(f"def call():\n    {body}\n", f"<{name}>", "exec"), space)
        inner, body = space["call"], "inner()"
    return inner


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["skppdnmf._estimator"], __file__),
        (["skppdnmf._estimator", "sklearn.base", "joblib.memory"], __file__),
        (["skppdnmf", "sklearn", "joblib"], __file__),
        (
            ["skppdnmf._a", "sklearn_extra.wrapper", "sklearn.base"],
            "<sklearn_extra.wrapper>",
        ),
        (["skppdnmf._a", "skppdnmf_plugin", "sklearn.base"], "<skppdnmf_plugin>"),
        (["skppdnmf._a", "users", "sklearn.base", "joblib.parallel"], "<users>"),
    ],
)
def test_the_innermost_line_of_somebody_else(names, expected):
    call = calls(names)
    with pytest.warns(UserWarning, match="text") as caught:
        call()
    assert caught[0].filename == expected


def test_where_nobody_else_calls(monkeypatch):
    # As in a worker whose outermost line is one of those passed over.
    monkeypatch.setattr(_warn, "_package", lambda namespace: "joblib")
    with pytest.warns(UserWarning, match="text") as caught:
        warn_user("text", UserWarning)
    assert len(caught) == 1


def test_namespaces_without_a_name():
    code = compile("warn_user('text', UserWarning)", "<nameless>", "exec")
    with pytest.warns(UserWarning, match="text") as caught:
        exec(code, {"warn_user": warn_user})
    assert caught[0].filename == "<nameless>"
