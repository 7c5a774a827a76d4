"""One process runs the agents: outcome, traffic, observing, backends, the wire."""

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
from _sums import make_sum_agents
from scipy import sparse

from skppdnmf import PrivateDistributedNMF
from skppdnmf._agent import Envelope, Report, Step
from skppdnmf._federation import local
from skppdnmf._federation.local import run_local
from skppdnmf._federation.memo import Memo
from skppdnmf._fit.history import Observer, history_row
from skppdnmf.exceptions import AgentLost, CorruptedMessageError, DropoutError

SIZES = (2, 11, 1, 6)
K, F = 3, 5


def build(name="random", encryption=None, sizes=SIZES, **parameters):
    return make_agents(
        name, split_parts(sizes, F), random_start(K, F), encryption, **parameters
    )


SQUARED_NORMS = [np.sum(X**2) for X in split_parts(SIZES, F)]
SQUARED_NORM = sum(SQUARED_NORMS)


def names_of(agents):
    return [f"agent {i}" for i in range(len(agents))]


def run(agents, observer=None, **given):
    """The outcome, and what an observer makes of the reports."""
    watch = Observer(SQUARED_NORM, SQUARED_NORMS[: len(agents)])

    def observe(reports, n_bytes):
        row = watch.note(reports, n_bytes)
        return observer is not None and observer(row, reports)

    outcome = run_local(agents, names_of(agents), observer=observe, **given)
    return outcome, watch.rows


def assert_same_outcome(one, other):
    (one, rows), (other, other_rows) = one, other
    here, other_here = (
        [[] if report is None else [report] for report in outcome.reports]
        for outcome in (one, other)
    )
    assert_same_reports(here, other_here)
    assert one.converged == other.converged
    assert len(rows) == len(other_rows)
    for mine, theirs in zip(rows, other_rows, strict=True):
        assert mine._replace(seconds=0.0) == theirs._replace(seconds=0.0)
    order = np.arange(len(one.reports))
    assert one.traffic.summary(order) == other.traffic.summary(order)
    assert one.membership.departures == other.membership.departures


# The outcome --------------------------------------------------------------------


@pytest.mark.parametrize("encryption", [None, "simulated"])
@pytest.mark.parametrize("name", GRAPHS)
def test_runs_the_agents_as_any_driver_does(name, encryption):
    reports, _ = drive(build(name, encryption))
    outcome, rows = run(build(name, encryption))
    assert_same_reports([h[-1:] for h in reports], [[r] for r in outcome.reports])
    assert len(rows) == len(reports[0]) == 4
    assert not outcome.converged
    for k, row in enumerate(rows):
        expected = history_row([h[k] for h in reports], SQUARED_NORM, 0.0, row.bytes)
        assert row._replace(seconds=0.0) == expected
    seconds = [row.seconds for row in rows]
    assert seconds == sorted(seconds)
    assert seconds[0] > 0
    assert outcome.membership.present == [0, 1, 2, 3]
    assert outcome.membership.departures == []


def test_convergence_is_reported():
    outcome, rows = run(build("ring", max_iter=500, max_admm_iter=10, tol=0.05))
    assert outcome.converged
    assert len(rows) < 500
    assert all(report.stopped for report in outcome.reports)


def test_one_agent_sends_nothing():
    outcome, rows = run(build("path", sizes=[7]))
    assert len(rows) == 4
    assert outcome.traffic.summary(["a"]) == {
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
    outcome, rows = run(build(name, encryption, **parameters))
    expected = defaultdict(lambda: np.zeros(3, dtype=int))
    for envelope in sent:
        size = envelope.n_bytes
        assert size == len(envelope.to_bytes())
        edge = f"agent {envelope.sender}", f"agent {envelope.receiver}"
        expected[edge] += [1, envelope.n_ciphertexts, size]

    labels = [f"agent {i}" for i in range(4)]
    summary = outcome.traffic.summary(labels)
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
    assert rows[-1].bytes == summary["bytes"]
    assert rows[0].bytes < rows[1].bytes


def test_a_tap_is_shown_every_envelope_in_its_turn():
    taken = []
    outcome, _ = run(build("ring"), tap=lambda *shown: taken.append(shown))
    turns = [turn for turn, _ in taken]
    assert turns == sorted(turns)
    assert set(turns) == set(range(min(turns), max(turns) + 1))
    summary = outcome.traffic.summary(range(4))
    assert summary["messages"] == len(taken)
    assert summary["bytes"] == sum(envelope.n_bytes for _, envelope in taken)
    # What is sent in a turn arrives in the next.
    _, sent = drive(build("ring"))

    def what(envelopes):
        return sorted((e.sender, e.receiver, e.kind, e.round) for e in envelopes)

    assert what(sent) == what([envelope for _, envelope in taken])


# The wire -----------------------------------------------------------------------


def sum_agents(graph, kind="dense", n_agents=5, **given):
    """Agents of the secure sum; what is common is computed once, as in a fit."""
    rng = np.random.default_rng(1)
    parts = split_parts((6, 3, 9, 0, 4, 5, 2)[:n_agents])
    if kind == "sparse":
        parts = [sparse.csr_array(X * (rng.random(X.shape) < 0.5)) for X in parts]
    elif kind == "single":
        parts = [X.astype(np.float32) for X in parts]
    starts = np.stack([random_start(3, 6, seed) for seed in range(2)])
    return make_sum_agents(parts, starts, graph, Memo(), max_iter=6, **given)


class Leaving:
    """An agent that is lost in one of its turns."""

    def __init__(self, agent, turn):
        self.agent = agent
        self.turn = turn

    def start(self):
        return self.agent.start()

    def advance(self, envelopes):
        self.turn -= 1
        if self.turn == 0:
            raise AgentLost(f"{self.agent.name} is gone")
        return self.agent.advance(envelopes)

    def depart(self, departure):
        return self.agent.depart(departure)

    def stop(self):
        self.agent.stop()


@pytest.mark.filterwarnings("ignore::skppdnmf.exceptions.DropoutWarning")
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("kind", ["dense", "sparse", "single"])
@pytest.mark.parametrize("penalty", [0.0, 0.05])
def test_the_secure_sum_over_a_wire_is_the_same_to_the_last_bit(graph, kind, penalty):
    given = {"alpha_W": penalty, "alpha_H": penalty, "l1_ratio": 0.5}
    one = run(sum_agents(graph, kind, **given))
    other = run(sum_agents(graph, kind, **given), serialise=True)
    assert len(one[1]) == 6
    assert_same_outcome(one, other)


@pytest.mark.filterwarnings("ignore::skppdnmf.exceptions.DropoutWarning")
@pytest.mark.parametrize(
    "moments", [{1: 2}, {0: 4}, {2: 7}, {1: 5, 3: 5}, {4: 3, 0: 9}]
)
@pytest.mark.parametrize("kind", ["dense", "single"])
def test_so_it_is_when_agents_leave(moments, kind):
    outcomes = []
    for serialise in (False, True):
        agents = sum_agents("complete", kind)
        for i, turn in moments.items():
            agents[i] = Leaving(agents[i], turn)
        outcomes.append(run(agents, serialise=serialise, on_dropout="continue"))
    assert outcomes[0][0].membership.gone == sorted(moments)
    assert_same_outcome(*outcomes)


@pytest.mark.parametrize("encryption", [None, "simulated", "paillier"])
def test_so_is_the_consensus(encryption):
    parameters = {"max_iter": 2, "max_admm_iter": 3}
    one = run(build("ring", encryption, **parameters))
    other = run(build("ring", encryption, **parameters), serialise=True)
    assert_same_outcome(one, other)


# Observing ----------------------------------------------------------------------


@pytest.mark.parametrize("serialise", [False, True])
@pytest.mark.parametrize("n_iter", [1, 3])
@pytest.mark.parametrize("kind", ["consensus", "secure sum"])
def test_observer_can_stop(n_iter, kind, serialise):
    """The outcome is that of the iteration at which it did, whatever follows."""
    seen = []

    def observe(row, reports):
        assert {report.n_exchanges for report in reports} == {row.exchanges}
        seen.append(row)
        return len(seen) == n_iter

    def make():
        # The balance of the penalties looks ahead to max_iter: the same for both.
        if kind == "consensus":
            return build(max_iter=12)
        agents = sum_agents("ring", n_agents=4)
        for agent in agents:  # the same path, whenever it ends
            assert agent.path.settings.max_iter == 6
        return agents

    agents = make()
    outcome, rows = run(agents, observe, serialise=serialise)
    assert rows == seen
    assert len(seen) == n_iter
    assert {report.iteration for report in outcome.reports} == {n_iter}
    assert not any(report.final for report in outcome.reports)
    assert not outcome.converged
    # They have all ended, in the same round.
    assert all(agent.finished for agent in agents)
    reports, _ = drive(make())
    assert_same_reports(
        [[report] for report in outcome.reports],
        [[h[n_iter - 1]._replace(final=False)] for h in reports],
    )


@pytest.mark.filterwarnings("ignore::skppdnmf.exceptions.DropoutWarning")
@pytest.mark.parametrize("graph", ["complete", "ring"])
@pytest.mark.parametrize("who", range(5))
@pytest.mark.parametrize("asked", ["all", "one"])
def test_agents_may_leave_while_all_are_asked_to_stop(graph, who, asked):
    """Whenever one leaves, the others end in the same round, and the outcome is theirs.

    With `asked` only one is told to stop, as a callback of its operator would have it.
    """
    after = 0
    for turn in range(1, 16):
        agents = sum_agents(graph)
        inner = list(agents)
        agents[who] = Leaving(agents[who], turn)
        for i, agent in enumerate(inner):
            if asked == "one" and i != (who + 2) % 5:
                agent.stop = lambda: None
        outcome, rows = run(
            agents,
            lambda _, reports: reports[(who + 1) % 5].iteration == 2,
            on_dropout="continue",
        )
        gone = outcome.membership.gone
        assert gone in ([], [who])
        after += outcome.reports[who] is None and len(rows) == 2
        assert len(rows) == 2
        left = [outcome.reports[i] for i in range(5) if i not in gone]
        assert [report is None for report in outcome.reports] == [
            i in gone for i in range(5)
        ]
        assert {report.iteration for report in left} == {2}
        for report in left:
            np.testing.assert_array_equal(report.H, left[0].H)
        ends = [inner[i].path for i in range(5) if i not in gone]
        assert all(inner[i].finished for i in range(5) if i not in gone)
        assert len({path.iteration for path in ends}) == 1
        assert ends[0].iteration in (2, 3, 4)
    assert after > 0


def test_observer_that_returns_false_changes_nothing():
    seen = []
    _, rows = run(build(), lambda row, _: bool(seen.append(row)))
    assert rows == seen
    assert len(seen) == 4


def test_the_observer_is_shown_bytes_as_they_are_sent():
    shown = []
    outcome, rows = run(build("star"), tap=lambda _, e: shown.append(e.n_bytes))
    assert rows[-1].bytes == sum(shown) == outcome.traffic.total_bytes
    assert rows[0].bytes in np.cumsum(shown)


# Backends -----------------------------------------------------------------------


@pytest.mark.parametrize("encryption", [None, "simulated", "paillier"])
def test_threads_give_the_same_outcome(encryption, monkeypatch):
    # However short a turn, the agents share it among the threads.
    monkeypatch.setattr(local, "_SHORT_TURN", 0.0)
    parameters = {"max_iter": 2, "max_admm_iter": 2}
    one = run(build("ring", encryption, **parameters))
    two = run(build("ring", encryption, **parameters), n_jobs=2)
    assert_same_outcome(one, two)


class Fake:
    """An agent that does nothing of itself."""

    def start(self):
        return Step([])

    def advance(self, envelopes):
        return Step([])

    def depart(self, departure):
        return Step([])

    def stop(self):
        pass


class Reporter(Fake):
    """A fake agent that reports the process it runs in, and then is finished."""

    def advance(self, envelopes):
        report = Report(1, os.getpid(), np.zeros((1, 1)), 0.0, True)
        return Step([], report, True)


@pytest.mark.journey
def test_processes_give_the_same_outcome():
    with joblib.parallel_config(backend="loky", n_jobs=2):
        outcome = run_local([Reporter(), Reporter()], ["a", "b"])
        assert outcome.converged
        assert os.getpid() not in {report.n_exchanges for report in outcome.reports}
        for encryption in (None, "simulated"):
            spread = run(build("random", encryption, max_iter=3))
            one = run(build("random", encryption, max_iter=3), n_jobs=1)
            assert_same_outcome(one, spread)
        spread, one = (run(sum_agents("random"), n_jobs=n_jobs) for n_jobs in (None, 1))
        assert_same_outcome(one, spread)


# What goes wrong ----------------------------------------------------------------


class Finished(Fake):
    """A fake agent that has nothing to wait for."""

    def advance(self, envelopes):
        return Step([], finished=True)


@pytest.mark.parametrize("receiver", [3, 2**32 - 1])
@pytest.mark.parametrize("serialise", [False, True])
def test_an_envelope_for_nobody_is_refused_by_its_senders_name(receiver, serialise):
    class Lost(Fake):
        def start(self):
            return Step([Envelope(bytes(16), 1, 2, receiver, 0, 0, b"")])

    agents = [Fake(), Fake(), Lost()]
    match = f"^envelope from agent 2 for agent {receiver}, there are 3"
    with pytest.raises(CorruptedMessageError, match=match) as caught:
        run_local(agents, names_of(agents), serialise=serialise)
    assert caught.value.sender == 2


@pytest.mark.parametrize("serialise", [False, True])
def test_an_envelope_in_anothers_name_is_refused_by_its_own_senders(serialise):
    class Pretender(Fake):
        def start(self):
            return Step([Envelope(bytes(16), 1, 0, 1, 0, 0, b"")])

    agents = [Fake(), Fake(), Pretender()]
    match = "^envelope from agent 2.* claims to come from agent 0"
    with pytest.raises(CorruptedMessageError, match=match) as caught:
        run_local(agents, names_of(agents), serialise=serialise)
    assert caught.value.sender == 2


def test_agents_that_wait_for_each_other():
    agents = [Fake() for _ in range(7)]
    agents[1] = Finished()
    with pytest.raises(DropoutError, match=r"no agent can go on") as caught:
        run_local(agents, names_of(agents))
    message = str(caught.value)
    assert "'agent 0', 'agent 2'" in message
    assert "agent 1" not in message


def test_a_silent_neighbour_halts_the_others():
    agents = build("path", sizes=[3, 4])
    agents[1] = Fake()
    with pytest.raises(RuntimeError, match="the silent one"):
        run_local(agents, ["agent 0", "the silent one"])


class Failing(Fake):
    """A fake agent that reports for ever, until an error is raised."""

    def __init__(self, error=None, turn=3):
        self.error = error
        self.turn = turn
        self.turns = 0

    def advance(self, envelopes):
        self.turns += 1
        if self.error is not None and self.turns == self.turn:
            raise self.error
        report = Report(self.turns, 0, np.zeros((1, 1)), 0.0)
        return Step([], report, self.turns == 5)


BUGS = [ZeroDivisionError("a bug"), OSError("a disk is full"), ValueError("words")]


@pytest.mark.parametrize("error", BUGS)
@pytest.mark.parametrize("policy", [None, "raise", "continue"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_fault_of_the_program_is_no_departure(error, policy, n_jobs, monkeypatch):
    monkeypatch.setattr(local, "_SHORT_TURN", 0.0)
    agents = [Failing(), Failing(error), Failing()]
    with pytest.raises(type(error), match=str(error)):
        run_local(agents, names_of(agents), n_jobs=n_jobs, on_dropout=policy)


def test_neither_is_one_in_another_process():
    agents = [Failing(), Failing(BUGS[0]), Failing()]
    with (
        joblib.parallel_config("loky", n_jobs=2),
        pytest.raises(ZeroDivisionError, match="a bug"),
    ):
        run_local(agents, names_of(agents), on_dropout="continue")


@pytest.mark.parametrize(
    "error", [AgentLost("gone"), CorruptedMessageError("bad", sender=0)]
)
def test_agents_that_cannot_do_without_each_other_end_with_the_error_itself(error):
    agents = [Failing(), Failing(error), Failing()]
    with pytest.raises(type(error), match=str(error)):
        run_local(agents, names_of(agents), on_dropout=None)


@pytest.mark.parametrize("sender", [None, 7])
@pytest.mark.parametrize("policy", ["raise", "continue"])
def test_what_is_corrupt_by_nobody_there_ends_the_fit(sender, policy):
    error = CorruptedMessageError("bad", sender=sender)
    agents = [Failing(), Failing(error), Failing()]
    with pytest.raises(CorruptedMessageError, match="bad"):
        run_local(agents, names_of(agents), on_dropout=policy)


@pytest.mark.parametrize("policy", [None, "raise", "continue"])
@pytest.mark.parametrize(
    "error", [AgentLost("gone"), CorruptedMessageError("bad", sender=0)]
)
def test_what_is_refused_before_the_start_is_no_departure(error, policy):
    class Unwilling(Fake):
        def start(self):
            raise error

    agents = [Failing(), Unwilling()]
    with pytest.raises(type(error), match=str(error)):
        run_local(agents, names_of(agents), on_dropout=policy)


class Chatty(Failing):
    """One that sends an envelope a turn."""

    def __init__(self, sender, receiver, error=None):
        super().__init__(error)
        self.envelope = Envelope(bytes(16), 1, sender, receiver, 0, 0, b"x")
        self.got = []

    def advance(self, envelopes):
        self.got += [(self.turns, envelope.sender) for envelope in envelopes]
        return super().advance(envelopes)._replace(envelopes=[self.envelope])


def test_nothing_arrives_of_those_that_have_left_nor_goes_to_them():
    """Agent 1 refuses in its third turn what agent 0 has sent."""
    refusal = CorruptedMessageError("bad", sender=0)
    agents = [Chatty(0, 2), Chatty(1, 0, refusal), Chatty(2, 1)]
    with pytest.warns(UserWarning, match="agent 0 dropped out"):
        outcome = run_local(agents, names_of(agents), on_dropout="continue")
    assert outcome.membership.gone == [0]
    assert [turn for turn, sender in agents[2].got if sender == 0] == [1, 2]
    assert agents[0].turns == 3
    # They have been sent all the same.
    edges = outcome.traffic.summary(range(3))["edges"]
    assert edges[0, 2]["messages"] == 3
    assert edges[1, 0]["messages"] == 4


def test_more_jobs_than_agents_are_no_more_than_agents():
    X = np.random.default_rng(0).random((12, 5))
    fits = [
        PrivateDistributedNMF(
            2, partition=3, protocol="secure-sum", max_iter=2, tol=0, random_state=0,
            n_jobs=n_jobs,
        ).fit(X).components_
        for n_jobs in (1, 10**6)
    ]  # fmt: skip
    np.testing.assert_array_equal(*fits)
