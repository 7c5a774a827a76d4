import os
from collections import defaultdict

import joblib
import numpy as np
import pytest
from _helpers import (
    GRAPHS,
    assert_same_reports,
    drive,
    make_agents,
    random_start,
    split_parts,
)

from skppdnmf._consensus.settings import Report
from skppdnmf._federation import local as _federation
from skppdnmf._federation.local import Traffic, run_federation
from skppdnmf._fit.history import history_row
from skppdnmf.exchange import REQUEST, Message, Payload

SIZES = (2, 11, 1, 6)
K, F = 3, 5


def build(name="random", encryption=None, sizes=SIZES, **parameters):
    return make_agents(
        name, split_parts(sizes, F), random_start(K, F), encryption, **parameters
    )


SQUARED_NORM = sum(np.sum(X**2) for X in split_parts(SIZES, F))


def assert_same_outcome(one, other):
    assert_same_reports([[r] for r in one.reports], [[r] for r in other.reports])
    assert one.converged == other.converged
    assert len(one.rows) == len(other.rows)
    for mine, theirs in zip(one.rows, other.rows, strict=True):
        assert mine._replace(seconds=0.0) == theirs._replace(seconds=0.0)
    order = np.arange(len(one.reports))
    assert one.traffic.summary(order, order) == other.traffic.summary(order, order)


# The outcome --------------------------------------------------------------------


@pytest.mark.parametrize("encryption", [None, "simulated"])
@pytest.mark.parametrize("name", GRAPHS)
def test_runs_the_agents_as_any_driver_does(name, encryption):
    reports, _ = drive(build(name, encryption))
    outcome = run_federation(build(name, encryption), SQUARED_NORM)
    assert_same_reports([h[-1:] for h in reports], [[r] for r in outcome.reports])
    assert len(outcome.rows) == len(reports[0]) == 4
    assert not outcome.converged
    for k, row in enumerate(outcome.rows):
        expected = history_row([h[k] for h in reports], SQUARED_NORM, 0.0, row.bytes)
        assert row._replace(seconds=0.0) == expected
    seconds = [row.seconds for row in outcome.rows]
    assert seconds == sorted(seconds)
    assert seconds[0] > 0


def test_convergence_is_reported():
    outcome = run_federation(
        build("ring", max_iter=500, max_admm_iter=10, tol=0.05), SQUARED_NORM
    )
    assert outcome.converged
    assert len(outcome.rows) < 500
    assert all(report.stopped for report in outcome.reports)


def test_one_agent_sends_nothing():
    outcome = run_federation(build("path", sizes=[7]), 1.0)
    assert len(outcome.rows) == 4
    assert outcome.traffic.summary(["a"], np.array([0])) == {
        "messages": 0,
        "ciphertexts": 0,
        "bytes": 0,
        "edges": {},
    }


# Traffic ------------------------------------------------------------------------


@pytest.mark.parametrize("encryption", [None, "simulated", "paillier"])
@pytest.mark.parametrize("name", ["path", "complete"])
def test_traffic_is_the_sum_of_the_messages(name, encryption):
    parameters = {"max_iter": 2, "max_admm_iter": 2}
    _, sent = drive(build(name, encryption, **parameters))
    outcome = run_federation(build(name, encryption, **parameters), SQUARED_NORM)
    expected = defaultdict(lambda: np.zeros(3, dtype=int))
    for i, j, message in sent:
        size = message.n_bytes
        if encryption == "paillier":
            assert size == len(message.to_bytes())
        expected[f"agent {i}", f"agent {j}"] += [1, message.n_ciphertexts, size]

    labels = [f"agent {i}" for i in range(4)]
    summary = outcome.traffic.summary(labels, np.arange(4))
    assert summary["edges"].keys() == expected.keys()
    for edge, counts in summary["edges"].items():
        assert list(counts) == ["messages", "ciphertexts", "bytes"]
        assert list(counts.values()) == expected[edge].tolist()
    for k, count in enumerate(("messages", "ciphertexts", "bytes")):
        total = sum(edge[count] for edge in summary["edges"].values())
        assert summary[count] == total == sum(c[k] for c in expected.values())
    assert outcome.traffic.total_bytes == summary["bytes"]
    assert (summary["ciphertexts"] > 0) == (encryption is not None)
    # The last iteration ends with the last message.
    assert outcome.rows[-1].bytes == summary["bytes"]
    assert outcome.rows[0].bytes < outcome.rows[1].bytes


def test_traffic_by_label_follows_the_order_of_the_agents():
    traffic = Traffic()
    payload = Payload(b"12345", 2, 5)
    traffic.count(0, 1, Message(REQUEST, 0, payload=payload))
    traffic.count(0, 1, Message(REQUEST, 1))
    traffic.count(2, 0, Message(REQUEST, 0, payload=payload))
    # Agent k of the run is the one that carries label order[k].
    summary = traffic.summary(["x", "y", "z"], np.array([2, 0, 1]))
    size = Message(REQUEST, 1).n_bytes
    assert summary["edges"] == {
        ("z", "x"): {"messages": 2, "ciphertexts": 2, "bytes": 2 * size + 5},
        ("y", "z"): {"messages": 1, "ciphertexts": 2, "bytes": size + 5},
    }
    assert summary["messages"] == 3
    assert summary["bytes"] == traffic.total_bytes == 3 * size + 10


# Observing ----------------------------------------------------------------------


@pytest.mark.parametrize("n_iter", [1, 3])
def test_observer_can_stop(n_iter):
    seen = []

    def observer(row, reports):
        assert [report.n_exchanges for report in reports] == [row.exchanges] * len(
            reports
        )
        seen.append(row)
        return len(seen) == n_iter

    outcome = run_federation(build(max_iter=50), SQUARED_NORM, observer=observer)
    assert outcome.rows == seen
    assert len(seen) == n_iter
    assert {report.iteration for report in outcome.reports} == {n_iter}
    whole = run_federation(build(max_iter=n_iter), SQUARED_NORM)
    assert not any(report.final for report in outcome.reports)
    assert_same_reports(
        [[report] for report in outcome.reports],
        [[report._replace(final=False)] for report in whole.reports],
    )


def test_observer_that_returns_false_changes_nothing():
    seen = []
    outcome = run_federation(
        build(), SQUARED_NORM, observer=lambda row, _: bool(seen.append(row))
    )
    assert outcome.rows == seen
    assert len(seen) == 4


# Backends -----------------------------------------------------------------------


@pytest.mark.parametrize("encryption", [None, "simulated", "paillier"])
def test_threads_give_the_same_outcome(encryption, monkeypatch):
    # However short a turn, the agents share it among the threads.
    monkeypatch.setattr(_federation, "_SHORT_TURN", 0.0)
    parameters = {"max_iter": 2, "max_admm_iter": 2}
    one = run_federation(build("ring", encryption, **parameters), SQUARED_NORM)
    two = run_federation(
        build("ring", encryption, **parameters), SQUARED_NORM, n_jobs=2
    )
    assert_same_outcome(one, two)


class Reporter:
    """A fake agent that reports the process it runs in, and then is finished."""

    def __init__(self, name):
        self.name = name
        self.reports = []
        self.finished = False

    def start(self):
        return []

    def advance(self, arrived):
        zero = np.zeros((1, 1))
        self.reports.append(Report(1, os.getpid(), zero, 0.0, zero, zero, True))
        self.finished = True
        return []


def test_processes_give_the_same_outcome():
    with joblib.parallel_config(backend="loky", n_jobs=2):
        outcome = run_federation([Reporter("a"), Reporter("b")], 1.0)
        assert os.getpid() not in {report.n_exchanges for report in outcome.reports}
        for encryption in (None, "simulated"):
            agents = build("random", encryption, max_iter=3)
            spread = run_federation(agents, SQUARED_NORM)
            one = run_federation(
                build("random", encryption, max_iter=3), SQUARED_NORM, n_jobs=1
            )
            assert_same_outcome(one, spread)


# Nothing moves ------------------------------------------------------------------


class Silent:
    """A fake agent that waits for ever."""

    def __init__(self, name):
        self.name = name
        self.reports = []
        self.finished = False

    def start(self):
        return []

    def advance(self, arrived):
        return []


def test_agents_that_wait_for_each_other():
    agents = [Silent(f"agent {i}") for i in range(7)]
    agents[1].finished = True
    with pytest.raises(RuntimeError, match=r"no agent can go on") as caught:
        run_federation(agents, 1.0)
    message = str(caught.value)
    assert "'agent 0', 'agent 2'" in message
    assert "agent 1" not in message


def test_a_silent_neighbour_halts_the_others():
    agents = build("path", sizes=[3, 4])
    agents[1] = Silent("the silent one")
    with pytest.raises(RuntimeError, match="the silent one"):
        run_federation(agents, 1.0)
