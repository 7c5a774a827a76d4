"""Agents that drop out: at any moment, one or several, and what the others learn."""

import math
import warnings
from collections import Counter, defaultdict
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from _helpers import GRAPHS
from _sums import exact_sum, ignored
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from skppdnmf import PrivateDistributedNMF
from skppdnmf._data.graph import make_network
from skppdnmf._federation import local
from skppdnmf._fit import run as run_module
from skppdnmf._secure_sum.agent import SumAgent
from skppdnmf._secure_sum.left_factor import LeftPath
from skppdnmf.exceptions import (
    AgentLost,
    CorruptedMessageError,
    DropoutError,
    DropoutWarning,
    PrivacyWarning,
)
from skppdnmf.exchange import (
    KEYS_DOWN,
    KEYS_UP,
    STATE_UP,
    PairwiseMasks,
    SecureSum,
    SumMessage,
)

N_AGENTS = 5
ITERATIONS = 4
ROOT = 0  # of the tree, where all are neighbours or in a ring
N_WORDS = 3 + 2 * 7  # of a summand, for each start


def data(n_samples=40, n_features=7, rank=3, seed=0):
    rng = np.random.default_rng(seed)
    left = rng.exponential(size=(rank, n_features))
    return rng.exponential(size=(n_samples, rank)) @ left + 0.1 * rng.exponential(
        size=(n_samples, n_features)
    )


@pytest.fixture(autouse=True)
def everybody_has_every_turn(monkeypatch):
    """Calls of `advance` are counted: those with nothing to do are called as well."""
    monkeypatch.setattr(local, "is_idle", lambda *_: False)


class Faults:
    """Lets agents fail at chosen calls, and takes note of what everybody learns.

    `at` maps agents' names to calls of `advance`, counted from 1. An agent that
    fails "after" the call has done its work, but nothing of it is sent. `corrupt` maps
    names to calls from which on what they send first, or all, goes through `damage`.
    """

    def __init__(
        self, at, when="before", error=AgentLost, corrupt=(), damage=None, all_=False
    ):
        self.at = at
        self.when = when
        self.error = error
        self.corrupt = dict(corrupt)
        self.damage = damage
        self.all = all_
        self.damaged = defaultdict(int)
        self.calls = defaultdict(int)
        self.summands = {}
        self.learnt = defaultdict(list)
        self.learnt_at = {}
        self.genuine = (
            SumAgent.advance, SumAgent._learn, SecureSum.start, SecureSum.begin
        )  # fmt: skip

    def __enter__(self):
        faults = self
        advance, learn, start, begin = self.genuine

        def advance_or_fail(agent, arrived):
            faults.calls[agent.name] += 1
            failing = faults.at.get(agent.name) == faults.calls[agent.name]
            if failing and faults.when == "before":
                raise faults.error(f"{agent.name} is gone")
            step = advance(agent, arrived)
            if failing:
                raise faults.error(f"{agent.name} is gone")
            return faults.damage_some(agent.name, step)

        def learn_and_note(agent, total):
            faults.learnt[agent.name].append((total.step, total.words.tolist()))
            faults.learnt_at[agent.name, total.step] = faults.calls[agent.name]
            return learn(agent, total)

        def start_and_note(one, words):
            faults.summands[one.name, 0, 0] = words.copy()
            return start(one, words)

        def begin_and_note(one, words):
            step = one._learnt + 1
            faults.check_new(one, words)
            faults.summands[one.name, step, one._epoch] = words.copy()
            return begin(one, words)

        SumAgent.advance, SumAgent._learn = advance_or_fail, learn_and_note
        SecureSum.start, SecureSum.begin = start_and_note, begin_and_note
        return self

    def check_new(self, one, words):
        """What is summed has not been summed before, but for the setup."""
        for (name, step, _), known in self.summands.items():
            again = name == one.name and step == one._learnt + 1 > 0
            same = again and np.array_equal(known[-len(words) :], words)
            assert not same, "the same summand in two sums"

    def damage_some(self, name, step):
        """Damage what a corrupt agent sends."""
        due = self.corrupt.get(name, math.inf) <= self.calls[name]
        if not due or not step.envelopes or (self.damaged[name] and not self.all):
            return step
        self.damaged[name] += 1
        return step._replace(envelopes=list(map(self.damage, step.envelopes)))

    def __exit__(self, *error):
        SumAgent.advance, SumAgent._learn, SecureSum.start, SecureSum.begin = (
            self.genuine
        )

    def check_totals(self, labels, dropped):
        """One total of each sum, exactly that of all or of those that are left."""
        names = [f"agent {label!r}" for label in labels]
        left = [f"agent {x!r}" for x in labels if x not in dropped]
        n_steps = {len(self.learnt[name]) for name in left}
        assert len(n_steps) == 1
        last_size = len(names)
        for step in range(n_steps.pop()):
            found = {tuple(self.learnt[name][step][1]) for name in left}
            assert len(found) == 1, "two totals of the same summands"
            assert {self.learnt[name][step][0] for name in left} == {step}
            total = list(found.pop())
            members = self.members(total, step, names, left)
            assert members is not None, "a total of no set of agents"
            assert members <= last_size
            last_size = members
        return last_size

    def members(self, total, step, names, left):
        """Number of agents over which a total is: those left and some others."""
        for epoch in sorted({e for _, other, e in self.summands if other == step}):
            there = [n for n in names if (n, step, epoch) in self.summands]
            if not set(left) <= set(there):
                continue
            others = [name for name in there if name not in left]
            for mask in range(1 << len(others)):
                some = [name for k, name in enumerate(others) if mask >> k & 1]
                summands = [self.summands[name, step, epoch] for name in left + some]
                same_length = len({len(s) for s in summands}) == 1
                if same_length and exact_sum(summands) == total:
                    return len(summands)
        return None


def estimator(**given):
    parameters = {
        "n_components": 2,
        "partition": N_AGENTS,
        "adjacency": "complete",
        "protocol": "secure-sum",
        "on_dropout": "continue",
        "n_init": 2,
        "max_iter": ITERATIONS,
        "tol": 0,
        "random_state": 0,
        "n_jobs": 1,
    }
    return PrivateDistributedNMF(**{**parameters, **given})


def check_fit(model, X, dropped):
    assert sorted(model.dropped_agents_) == dropped
    assert model.consensus_error_ == 0.0
    for k, label in enumerate(model.agent_labels_):
        copy = model.agent_components_[k]
        if label in dropped:
            assert np.isnan(copy).all()
        else:
            np.testing.assert_array_equal(copy, model.components_)
    assert np.isfinite(model.components_).all()
    assert model.n_iter_ == len(model.history_["shared_error"]) == model.max_iter
    left = ~np.isin(model.sample_agents_, dropped)
    # The last row is the error of those that are left, with their own right factors.
    exact = -model.score(X[left])
    assert model.history_["shared_error"][-1] >= exact * (1 - 1e-5)
    assert model.history_["shared_error"][-1] < 0.6


def count_calls(X, **given):
    with Faults({}) as faults:
        estimator(**given).fit(X)
    return dict(faults.calls)


@pytest.mark.parametrize("adjacency", ["path", "ring", "star", "complete"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_agent_may_drop_out_at_any_moment(adjacency, when):
    """Every agent at every one of its turns: root, inner agents and leaves."""
    X = data()
    calls = count_calls(X, adjacency=adjacency)
    graph = nx.from_numpy_array(make_network(adjacency, N_AGENTS).adjacency)
    sizes = set()
    for label in range(N_AGENTS):
        rest = graph.subgraph(set(graph) - {label})
        for call in range(1, calls[f"agent {label}"] + 1):
            model = estimator(adjacency=adjacency)
            with Faults({f"agent {label}": call}, when) as faults:
                if not nx.is_connected(rest):
                    with (
                        pytest.raises(DropoutError, match=f"agent {label} dropped out"),
                        ignored(DropoutWarning),
                    ):
                        model.fit(X)
                    continue
                with pytest.warns(DropoutWarning, match=f"agent {label} dropped out"):
                    model.fit(X)
            check_fit(model, X, [label])
            sizes.add(faults.check_totals(range(N_AGENTS), [label]))
    # Some dropped out so late that the last total was still over all.
    assert sizes == {N_AGENTS - 1, N_AGENTS}


@pytest.mark.parametrize("adjacency", GRAPHS)
def test_without_a_dropout_the_policy_has_no_effect(adjacency):
    X = data()
    one = estimator(adjacency=adjacency).fit(X)
    other = estimator(adjacency=adjacency, on_dropout="raise").fit(X)
    np.testing.assert_array_equal(one.components_, other.components_)
    assert one.dropped_agents_ == other.dropped_agents_ == []


@pytest.mark.parametrize("call", [1, 2, 5, 9])
def test_raise_ends_the_fit_by_name(call):
    model = estimator(on_dropout="raise")
    with (
        Faults({"agent 3": call}),
        pytest.raises(DropoutError, match=r"^agent 3 dropped out .*agent 3 is gone"),
    ):
        model.fit(data())
    assert not hasattr(model, "components_")


@pytest.mark.parametrize("moments", [(3, 3), (3, 4), (5, 5), (5, 6), (6, 9), (1, 2)])
@pytest.mark.parametrize("when", ["before", "after"])
def test_two_dropouts_together_or_in_a_row(moments, when):
    X = data()
    for pair in [(0, 1), (2, 4), (1, 3)]:
        model = estimator()
        at = {f"agent {label}": m for label, m in zip(pair, moments, strict=True)}
        if moments[0] == 3 and ROOT in pair:
            # The root may have learnt the first total, which cannot be had otherwise.
            refused = r"^agent 0, agent 1 dropped out in the first sum"
            with (
                Faults(at, when),
                pytest.raises(DropoutError, match=refused),
                ignored(DropoutWarning),
            ):
                model.fit(X)
            continue
        with Faults(at, when) as faults, pytest.warns(DropoutWarning):
            model.fit(X)
        check_fit(model, X, sorted(pair))
        assert faults.check_totals(range(N_AGENTS), pair) == N_AGENTS - 2


def test_two_dropouts_at_once_are_reported_together():
    with (
        Faults({"agent 1": 4, "agent 2": 4}),
        pytest.warns(DropoutWarning) as caught,
    ):
        estimator().fit(data())
    [message] = [str(w.message) for w in caught if w.category is DropoutWarning]
    assert "agent 1" in message
    assert "agent 2" in message
    assert "the other 3 agents" in message


def test_the_end_of_a_path_may_drop_out_at_once():
    """Told of one after the other, the agents would find the graph in pieces."""
    X = data()
    model = estimator(adjacency="path")
    with Faults({"agent 3": 4, "agent 4": 4}) as faults, pytest.warns(DropoutWarning):
        model.fit(X)
    check_fit(model, X, [3, 4])
    faults.check_totals(range(N_AGENTS), [3, 4])


def test_all_but_three_may_drop_out_one_after_the_other():
    X = data()
    at = {f"agent {label}": 5 + label for label in (1, 3)}
    model = estimator(max_iter=8)
    with Faults(at) as faults, pytest.warns(DropoutWarning):
        model.fit(X)
    check_fit(model, X, [1, 3])
    assert faults.check_totals(range(N_AGENTS), [1, 3]) == 3


def test_if_all_fail_their_own_error_is_raised():
    at = {f"agent {label}": 3 for label in range(N_AGENTS)}
    with Faults(at), pytest.raises(AgentLost, match="is gone"):
        estimator().fit(data())


def test_a_dropout_that_parts_the_graph_is_named():
    with (
        Faults({"agent 2": 4}),
        pytest.raises(DropoutError, match=r"agent 2 dropped out .*not connected"),
        ignored(DropoutWarning),
    ):
        estimator(adjacency="path").fit(data())


@pytest.mark.parametrize("policy", ["raise", "continue"])
@pytest.mark.parametrize("error", [ZeroDivisionError, OSError, ValueError])
@pytest.mark.parametrize("call", [1, 4, 9])
def test_a_fault_of_the_program_is_no_dropout(policy, error, call):
    model = estimator(on_dropout=policy)
    with (
        Faults({"agent 3": call}, error=error),
        pytest.raises(error, match="agent 3 is gone") as caught,
    ):
        model.fit(data())
    assert caught.type is error
    assert not hasattr(model, "components_")


def other_words(envelope):
    """One word more, or no keys at all; a state of a sum that nobody has learnt."""
    body = envelope.body
    if body.kind in (KEYS_UP, KEYS_DOWN):
        return envelope._replace(body=replace(body, keys={}))
    return envelope._replace(
        body=replace(body, words=np.append(body.words, body.words))
    )


DAMAGES = {
    "run": lambda e: e._replace(run=bytes(16)),
    "kind": lambda e: e._replace(kind=9),
    "rubbish": lambda e: e._replace(body=b"rubbish"),
    "epoch": lambda e: e._replace(body=replace(e.body, epoch=99)),
    "words": other_words,
}


@pytest.mark.parametrize("adjacency", ["complete", "ring"])
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("all_", [False, True])
def test_a_corrupt_message_makes_its_sender_leave(adjacency, damage, all_):
    """At any moment, whoever it is; and the others have their own totals."""
    X = data()
    calls = count_calls(X, adjacency=adjacency)
    sizes = set()
    for label in range(N_AGENTS):
        for call in range(1 + label % 3, calls[f"agent {label}"] + 1, 3):
            model = estimator(adjacency=adjacency)
            faults = Faults(
                {},
                corrupt={f"agent {label}": call},
                damage=DAMAGES[damage],
                all_=all_,
            )
            with faults, warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.fit(X)
            found = [str(w.message) for w in caught if w.category is DropoutWarning]
            if not faults.damaged:  # it had nothing more to send
                assert found == []
                continue
            [message] = found
            assert message.startswith(f"agent {label} dropped out")
            check_fit(model, X, [label])
            sizes.add(faults.check_totals(range(N_AGENTS), [label]))
    # Where all are neighbours of the root, the last total over all comes from it alone.
    last = {N_AGENTS} if adjacency == "ring" else set()
    assert sizes == {N_AGENTS - 1} | last


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("label", range(N_AGENTS))
def test_under_raise_a_corrupt_message_ends_the_fit_by_its_senders_name(damage, label):
    model = estimator(on_dropout="raise")
    with (
        Faults({}, corrupt={f"agent {label}": 3}, damage=DAMAGES[damage]),
        pytest.raises(DropoutError, match=rf"^agent {label} dropped out") as caught,
    ):
        model.fit(data())
    assert isinstance(caught.value.__cause__, CorruptedMessageError)
    assert caught.value.__cause__.sender == label
    assert not hasattr(model, "components_")


def test_a_public_key_that_is_none_makes_its_agent_leave(monkeypatch):
    """Not those who find out that it is none."""
    X = data()
    genuine = PairwiseMasks.__init__

    def init(self, number, *shared):
        genuine(self, number, *shared)
        if number == 2:
            self.public_key = bytes(32)

    monkeypatch.setattr(PairwiseMasks, "__init__", init)
    model = estimator()
    with Faults({}) as faults, pytest.warns(DropoutWarning, match="agent 2 dropped"):
        model.fit(X)
    check_fit(model, X, [2])
    assert faults.check_totals(range(N_AGENTS), [2]) == N_AGENTS - 1


def test_a_state_that_cannot_be_makes_its_sender_leave_when_that_shows(monkeypatch):
    """Sent before anybody has left, and taken when the next is told of it."""
    X = data()
    depart = SumAgent.depart
    early = []

    def send_early(envelope):
        return envelope._replace(
            kind=STATE_UP, round=9, body=SumMessage(STATE_UP, 1, 9)
        )

    def note(agent, departure):
        try:
            return depart(agent, departure)
        except CorruptedMessageError as error:
            early.append((agent.name, error.sender))
            raise

    monkeypatch.setattr(SumAgent, "depart", note)
    model = estimator()
    faults = Faults({"agent 4": 5}, corrupt={"agent 1": 4}, damage=send_early)
    with faults, pytest.warns(DropoutWarning) as caught:
        model.fit(X)
    assert early == [("agent 0", 1)]
    messages = [str(w.message) for w in caught if w.category is DropoutWarning]
    assert messages[0].startswith("agent 4 dropped out")
    assert messages[1].startswith("agent 1 dropped out")
    assert "last total, up from agent 1, of step 9, expected" in messages[1]
    check_fit(model, X, [1, 4])
    assert faults.check_totals(range(N_AGENTS), [1, 4]) == N_AGENTS - 2


def test_what_is_refused_at_the_start_is_no_dropout():
    with pytest.raises(OverflowError, match="n_max"):
        estimator(n_max=1e18).fit(data())


def test_result_is_the_factorisation_of_those_that_are_left():
    X = data(100)
    model = estimator(n_components=3, max_iter=80, n_init=6)
    with Faults({"agent 1": 12}), pytest.warns(DropoutWarning):
        model.fit(X)
    left = X[model.sample_agents_ != 1]
    with ignored(ConvergenceWarning):
        best = min(
            NMF(3, init="random", max_iter=2000, tol=1e-6, random_state=seed)
            .fit(left)
            .reconstruction_err_
            for seed in range(3)
        )
    error = -model.score(left) * np.linalg.norm(left)
    assert error < 1.002 * best
    history = model.history_["shared_error"]
    assert history[-1] == pytest.approx(error / np.linalg.norm(left), rel=1e-3)


@pytest.mark.journey
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_path_of_ones_own_gives_the_same(monkeypatch, when):
    """What a failed agent has learnt last must not reach the others by their memo."""
    X = data()
    shared = {}
    keys = [(label, call) for label in range(N_AGENTS) for call in (2, 3, 5, 6, 7)]

    def fit(label, call):
        model = estimator(adjacency="star")
        with (
            Faults({f"agent {label}": call}, when),
            ignored(DropoutWarning),
        ):
            try:
                return model.fit(X)
            except DropoutError:
                return None

    for key in keys:
        shared[key] = fit(*key)
    computed = Counter()

    def apart():
        def compute(function, *given):
            computed[function.__name__] += 1
            return function(*given)

        return compute

    monkeypatch.setattr(run_module, "Memo", apart)
    compared = 0
    for key in keys:
        alone = fit(*key)
        assert (alone is None) == (shared[key] is None)
        if alone is not None:
            np.testing.assert_array_equal(alone.components_, shared[key].components_)
            compared += 1
    assert compared == 20
    # By each for itself.
    assert computed["take"] > 20 * (N_AGENTS - 1) * ITERATIONS


def test_a_dropout_while_agents_run_in_threads():
    from joblib import parallel_config

    X = data()
    with Faults({"agent 3": 6}), pytest.warns(DropoutWarning):
        expected = estimator().fit(X)
    model = estimator(n_jobs=2)
    with (
        parallel_config("threading"),
        Faults({"agent 3": 6}),
        pytest.warns(DropoutWarning),
    ):
        model.fit(X)
    np.testing.assert_array_equal(model.components_, expected.components_)


def test_history_counts_those_that_are_left():
    X = data()
    model = estimator(max_iter=10)
    with Faults({"agent 0": 8}) as faults, pytest.warns(DropoutWarning):
        model.fit(X)
    before = sum(step < 10 for step, _ in faults.learnt["agent 0"])
    rows = model.history_["exchanges"]
    assert (np.diff(rows) >= 1).all()
    # The sum that was given up counts, too.
    assert rows[-1] == model.n_exchanges_ == 11
    assert 1 < before < 10
    assert model.history_["bytes"][-1] == model.traffic_["bytes"]


def sums_again(monkeypatch):
    """Have the round that was given up summed again at the same point."""
    monkeypatch.setattr(SumAgent, "_another_summand", lambda agent: agent._words)
    monkeypatch.setattr(LeftPath, "move_on", lambda path, _: path)
    monkeypatch.setattr(Faults, "check_new", lambda *_: None)


def told_apart(step, label, adjacency="complete"):
    """What a lost root and a survivor find together, and the summand of the victim.

    The root leaves with the victim when it has learnt the total of a step; what the
    survivor learns next, and the root's own summand, are subtracted.
    """
    with Faults({}) as quiet:
        estimator(adjacency=adjacency, max_iter=12).fit(data())
    root = f"agent {ROOT}"
    first = [call for (_, other), call in quiet.learnt_at.items() if other == step]
    call = quiet.learnt_at[root, step]
    assert call == min(first)
    victim = f"agent {label}"
    with Faults({root: call, victim: call}, "after") as faults, ignored(DropoutWarning):
        estimator(adjacency=adjacency, max_iter=12).fit(data())
    survivor = next(n for n in faults.learnt if n not in (root, victim))
    [before] = [words for other, words in faults.learnt[root] if other == step]
    [after] = [words for other, words in faults.learnt[survivor] if other == step]
    own, truth = faults.summands[root, step, 0], faults.summands[victim, step, 0]
    difference = np.array(before, dtype=np.uint64) - own
    n_words = len(after)
    found = difference[-n_words:] - np.array(after, dtype=np.uint64)
    return found.view(np.int64), truth[-n_words:].view(np.int64)


@pytest.mark.parametrize("adjacency", ["complete", "ring"])
@pytest.mark.parametrize("step", [1, 2, 3, 5, 8, 11])
def test_a_round_that_is_given_up_is_not_summed_again(adjacency, step):
    found, truth = told_apart(step, 1, adjacency)
    # Nor is the norm of the rounded samples, before the words of the first iteration.
    assert len(found) % N_WORDS == 0
    assert not (found == truth)[truth != 0].any()
    # It is nearly the same as with the total before, which is known to all.
    assert np.linalg.norm(found - truth) > 0.02 * np.linalg.norm(truth)


@pytest.mark.parametrize("step", [1, 2, 5, 11])
def test_summed_again_it_would_show_the_summand_of_another(monkeypatch, step):
    """Bit for bit: what the test above finds impossible."""
    sums_again(monkeypatch)
    found, truth = told_apart(step, 1)
    np.testing.assert_array_equal(found, truth)


@pytest.mark.parametrize("n_agents", [3, 4, 5])
@pytest.mark.parametrize("call", [2, 5, 9])
def test_two_that_are_left_would_hide_nothing_from_each_other(n_agents, call):
    """Of three holders none may leave, of four one, of five two."""
    names = [f"agent {k}" for k in range(1, n_agents - 1)]
    for n_lost, name in enumerate(names, 1):
        at = {name: call + 2 * k for k, name in enumerate(names[:n_lost])}
        model = estimator(partition=n_agents, max_iter=12)
        with Faults(at), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if n_agents - n_lost >= 3:
                model.fit(data())
            else:
                refused = rf"^{name} dropped out and the fit cannot go on: n_holders=2"
                with pytest.raises(DropoutError, match=refused):
                    model.fit(data())
                assert not hasattr(model, "components_")
        found = [w for w in caught if w.category is DropoutWarning]
        assert len(found) == min(n_lost, n_agents - 3)


def test_relays_do_not_count_as_holders():
    model = estimator(partition=[0, 10, 15, 15, 0])
    refused = "agent 2 dropped out .* n_holders=2 agents that have samples are left"
    with Faults({"agent 2": 5}), pytest.raises(DropoutError, match=refused):
        model.fit(data())


def test_two_that_begin_alone_are_warned():
    with pytest.warns(PrivacyWarning, match="two agents that have samples"):
        estimator(partition=2).fit(data())


def test_what_two_would_learn_of_each_other(monkeypatch):
    """The positive control: let them go on, and each later sum shows a summand."""
    monkeypatch.setattr(run_module, "_check_departure", lambda *_: None)
    with Faults({"agent 1": 5}) as faults, ignored(DropoutWarning):
        estimator(partition=3).fit(data())
    shown = 0
    for step, words in faults.learnt["agent 0"]:
        if ("agent 0", step, 1) in faults.summands:
            own = faults.summands["agent 0", step, 1]
            other = np.array(words, dtype=np.uint64) - own
            np.testing.assert_array_equal(other, faults.summands["agent 2", step, 1])
            shown += 1
    assert shown >= 2
