"""A fit in this process: what is handed to the loop, and what is made of it."""

import warnings

import numpy as np
import pytest
from _estimators import model
from joblib import parallel_config

from skppdnmf import PrivateDistributedNMF
from skppdnmf._fit import run
from skppdnmf._fit.protocols import PROTOCOLS
from skppdnmf.exceptions import PrivacyWarning

WITH_AGENTS = [name for name, one in PROTOCOLS.items() if one.has_agents]
X = np.random.default_rng(0).exponential(size=(24, 5))


@pytest.fixture
def calls(monkeypatch):
    """What the loop is called with in each fit, and what it returned."""
    seen, genuine = [], run.run_local

    def spy(agents, names, **given):
        outcome = genuine(agents, names, **given)
        seen.append((agents, names, given, outcome))
        return outcome

    monkeypatch.setattr(run, "run_local", spy)
    return seen


def run_ids(agents):
    return {agent._address.run for agent in agents}


@pytest.mark.parametrize("protocol", WITH_AGENTS)
def test_each_run_has_an_id_of_its_own(calls, protocol):
    """Also where everything else is reproducible."""
    for _ in range(3):
        model(protocol=protocol, random_state=0).fit(X)
    ids = [run_ids(agents) for agents, *_ in calls]
    assert all(len(one) == 1 for one in ids)
    assert len(set.union(*ids)) == 3
    assert all(len(one) == 16 for one in set.union(*ids))


@pytest.mark.parametrize("protocol", WITH_AGENTS)
def test_errors_call_agents_by_their_labels(calls, protocol):
    model(protocol=protocol).fit(X, agents=["b", "a", "c"] * 8)
    ((_, names, *_),) = calls
    assert names == ["agent 'a'", "agent 'b'", "agent 'c'"]


@pytest.mark.parametrize("on_dropout", ["raise", "continue"])
def test_who_may_drop_out(calls, on_dropout):
    for protocol in WITH_AGENTS:
        model(protocol=protocol, on_dropout=on_dropout).fit(X)
    given = [arguments["on_dropout"] for _, _, arguments, _ in calls]
    # The consensus cannot do without anybody.
    assert dict(zip(WITH_AGENTS, given, strict=True)) == {
        "consensus": None, "secure-sum": on_dropout
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore::skppdnmf.exceptions.InsecureKeyWarning")
@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_agents_run_where_the_plan_says(calls, backend, monkeypatch):
    monkeypatch.setattr(
        "skppdnmf._consensus.protocol.preferred_backend", lambda *arguments: backend
    )
    fitted = model(2, partition=3, max_iter=1, n_jobs=2).fit(X)
    ((_, _, given, _),) = calls
    assert (given["prefer"], given["n_jobs"]) == (backend, 2)
    assert given["tap"] is None
    expected = model(2, partition=3, max_iter=1).fit(X)
    np.testing.assert_array_equal(fitted.components_, expected.components_)


@pytest.mark.parametrize("protocol", WITH_AGENTS)
def test_history_is_the_observers(calls, protocol):
    fitted = model(protocol=protocol, partition=[3, 9, 12], max_iter=5).fit(X)
    ((*_, outcome),) = calls
    assert fitted.history_["bytes"][-1] == outcome.traffic.total_bytes
    assert not outcome.converged
    assert fitted.dropped_agents_ == outcome.membership.gone == []
    for report, copy in zip(outcome.reports, fitted.agent_components_, strict=True):
        assert report.iteration == fitted.n_iter_ == 5
        np.testing.assert_array_equal(report.H, copy)


@pytest.mark.parametrize("protocol", WITH_AGENTS)
def test_backend_of_the_user_comes_first(protocol):
    """Agents go to other processes and come back, with their envelopes."""
    expected = model(protocol=protocol, max_iter=3).fit(X)
    with parallel_config("loky", n_jobs=2):
        spread = model(protocol=protocol, max_iter=3).fit(X)
    np.testing.assert_array_equal(spread.components_, expected.components_)
    for column in ("local_error", "shared_error", "consensus_error", "bytes"):
        np.testing.assert_array_equal(
            spread.history_[column], expected.history_[column]
        )


@pytest.mark.parametrize("protocol", WITH_AGENTS)
def test_one_agent_has_nobody_to_hide_from(protocol):
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        PrivateDistributedNMF(
            2, protocol=protocol, masking="scalar", partition=1, max_iter=1, tol=0
        ).fit(X)
