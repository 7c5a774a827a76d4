"""What a fit that has not converged says, and whether the advice helps."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skppdnmf import PrivateDistributedNMF
from skppdnmf._agent import Report, Witness
from skppdnmf._consensus import protocol as _protocol
from skppdnmf._consensus.advice import dither_message, dither_share


@pytest.fixture
def X():
    return np.random.default_rng(0).exponential(size=(30, 8))


def fit(X, **parameters):
    """A fitted estimator and what it warned of."""
    parameters = {"encryption": "simulated", "random_state": 0, **parameters}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        fitted = PrivateDistributedNMF(3, **parameters).fit(X)
    said = [str(one.message) for one in caught if one.category is ConvergenceWarning]
    return fitted, " ".join(said)


@pytest.mark.parametrize("factor", [1e-1, 1e-2, 1e-3, 1e-6])
def test_an_agent_with_small_data_does_not_loosen_the_others_links(X, factor):
    X[:8] *= factor
    fitted, _ = fit(X, max_iter=180, tol=0)
    assert fitted.consensus_error_ < 1e-3
    one, _ = fit(X, max_iter=180, tol=0, partition=1)
    assert fitted.history_["shared_error"][-1] < 1.01 * one.history_["shared_error"][-1]


def test_weak_links_are_told_to_pull_harder(X):
    fitted, said = fit(X, g_max=0.01, max_iter=100)
    assert fitted.consensus_error_ > 0.1
    assert "raise g_max" in said
    better, said = fit(X, g_max=1.0, max_iter=100)
    assert better.consensus_error_ < 1e-3
    assert "g_max" not in said


@pytest.mark.journey
def test_a_tolerance_below_the_rounding_names_n_max(X):
    _, said = fit(X, tol=1e-8, n_max=1e6, max_iter=150)
    assert "n_max=1e+06 rounds the left factor" in said
    _, said = fit(X, tol=1e-8, n_max=1e10, max_iter=150)
    assert "n_max" not in said


def test_zero_components_name_the_penalty(X):
    fitted, said = fit(X, alpha_W=1, l1_ratio=0.5, max_iter=5)
    assert not fitted.components_.any()
    assert "lower alpha_W or alpha_H" in said


@pytest.mark.parametrize("n_iter", [60, 500])
def test_expected_dither_is_what_accumulates(X, n_iter, monkeypatch):
    agents, make = [], _protocol.make_agents

    def kept(*arguments):
        agents[:] = make(*arguments)
        return agents

    monkeypatch.setattr(_protocol, "make_agents", kept)
    fit(X, n_max=100, max_iter=n_iter, tol=0)
    reports = [agent.factors.report(0, False, True, True) for agent in agents]
    total = sum(agent.factors.left.Q for agent in agents)
    data = sum(one.witness.products for one in reports)
    share = np.linalg.norm(total) / np.linalg.norm(data)
    assert dither_share(reports, 100.0) == pytest.approx(share, rel=0.5)


@pytest.mark.journey
def test_dithers_that_add_up_are_told(X):
    fitted, said = fit(X, n_max=10, max_iter=500, tol=0)
    assert "n_max=10 is small for 2500 exchanges" in said
    better, said = fit(X, n_max=1e4, max_iter=500, tol=0)
    assert said == ""
    assert better.history_["shared_error"][-1] < fitted.history_["shared_error"][-1]


def test_advised_n_max_is_enough():
    assert dither_message(0.04, 100, 5) == ""
    said = dither_message(0.4, 100, 5)
    assert "use n_max=1000 or more" in said


def test_nothing_accumulates_without_fixed_point_numbers():
    zero, one = np.zeros((2, 2)), np.ones((2, 2))
    report = Report(1, 1, zero, 0.0)
    full = report._replace(witness=Witness(one, one, 1.0))
    empty = report._replace(witness=Witness(one, zero, 1.0))
    assert dither_share([full], 10.0) > 0
    assert dither_share([full], None) == 0.0
    assert dither_share([empty], 10.0) == 0.0
    assert dither_share([None, report], 10.0) == 0.0
