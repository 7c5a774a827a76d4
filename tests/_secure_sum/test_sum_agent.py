"""Agents of the secure sum: all alike, exact, and in step however messages travel."""

import pickle

import numpy as np
import pytest
from _helpers import GRAPHS, assert_same_reports, drive, random_start, split_parts
from _sums import make_sum_agents
from scipy import sparse
from scipy.optimize import nnls

from skppdnmf._agent import Departure
from skppdnmf._federation.memo import Memo
from skppdnmf._nmf.hals import hals
from skppdnmf._secure_sum import agent as _sum_agent
from skppdnmf._secure_sum.totals import HEADROOM
from skppdnmf.exceptions import CorruptedMessageError
from skppdnmf.exchange import N_LIMBS, SUM_DOWN, SUM_UP

SIZES = (4, 1, 9, 0, 6)


def starts(n_starts=2, K=3, seed=0):
    return np.stack([random_start(K, 6, seed + s) for s in range(n_starts)])


def run(parts=None, graph="random", rng=None, n_starts=2, **given):
    parts = split_parts(SIZES) if parts is None else parts
    agents = make_sum_agents(parts, starts(n_starts), graph, **given)
    reports, sent = drive(agents, rng)
    return agents, reports, sent


def right_factor(X, H):
    return np.array([nnls(H.T, x)[0] for x in X]).reshape(len(X), len(H))


@pytest.fixture(scope="module")
def reference():
    return run()[1]


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("degree", [2, 4])
def test_graph_and_keys_have_no_effect(reference, graph, degree):
    assert_same_reports(run(graph=graph, degree=degree)[1], reference)


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_messages_has_no_effect(reference, seed):
    reports = run(graph="path", rng=np.random.default_rng(seed))[1]
    assert_same_reports(reports, reference)


def test_a_path_for_all_and_one_for_each_are_the_same(reference):
    """Agents of one process need not compute it each."""
    memo = Memo()
    assert_same_reports(run(compute=memo)[1], reference)
    for seed in (8, 9):
        rng = np.random.default_rng(seed)
        assert_same_reports(run(graph="ring", rng=rng, compute=Memo())[1], reference)


@pytest.mark.parametrize("graph", GRAPHS)
def test_envelopes_may_travel_as_bytes(reference, graph):
    agents = make_sum_agents(split_parts(SIZES), starts(), graph)
    reports, _ = drive(agents, np.random.default_rng(1), serialise=True)
    assert_same_reports(reports, reference)


def test_agents_travel_between_turns(reference):
    """As from one process to another: pickled after each turn."""

    class Travelling:
        def __init__(self, agent):
            self.agent = agent

        def start(self):
            return self.agent.start()

        def advance(self, arrived):
            self.agent = pickle.loads(pickle.dumps(self.agent))
            return self.agent.advance(arrived)

    agents = make_sum_agents(split_parts(SIZES), starts())
    reports, _ = drive([Travelling(agent) for agent in agents])
    assert_same_reports(reports, reference)


def test_numbering_has_no_effect(reference):
    order = [3, 0, 4, 2, 1]
    parts = split_parts(SIZES)
    reports = run([parts[i] for i in order])[1]
    for place, i in enumerate(order):
        for mine, theirs in zip(reports[place], reference[i], strict=True):
            np.testing.assert_array_equal(mine.H, theirs.H)
            assert mine.squared_error == theirs.squared_error


def test_every_agent_has_the_same_left_factor(reference):
    for row in zip(*reference, strict=True):
        for report in row:
            np.testing.assert_array_equal(report.H, row[0].H)
        assert {report.n_exchanges for report in row} == {row[0].iteration}
    assert [report.final for report in reference[0]] == [False] * 11 + [True]


@pytest.mark.parametrize("kwargs", [{}, {"alpha_W": 0.05}, {"alpha_H": 0.05}])
def test_agents_follow_the_pooled_problem(kwargs):
    """Up to rounding, as one agent that holds everything does."""
    parts = split_parts(SIZES)
    pooled = run([np.concatenate(parts)], n_max=1.0, **kwargs)[1][0]
    split = run(parts, n_max=1e8, **kwargs)[1]
    assert len(pooled) == len(split[0])
    for k, whole in enumerate(pooled):
        np.testing.assert_allclose(split[0][k].H, whole.H, rtol=1e-4, atol=1e-6)
        error = sum(reports[k].squared_error for reports in split)
        assert error == pytest.approx(whole.squared_error, rel=1e-5)


def test_errors_are_those_of_the_data_and_no_less_than_the_exact_ones(reference):
    parts = split_parts(SIZES)
    for k, row in enumerate(zip(*reference, strict=True)):
        for X, report in zip(parts, row, strict=True):
            W = right_factor(X, report.H)
            exact = ((X - W @ report.H) ** 2).sum()
            assert report.squared_error >= exact - 1e-6 * (X**2).sum()
            if k == len(reference[0]) - 1:
                assert report.squared_error <= 1.01 * exact + 1e-9


def test_nothing_of_the_right_factor_is_left_behind():
    agents, _, _ = run()
    for agent in agents:
        assert agent.finished
        assert agent._W.size == agent._extrapolated.size == 0
        assert agent._share is None
        step = agent.advance([])
        assert (step.envelopes, step.report, step.finished) == ([], None, True)


def test_messages_in_each_iteration():
    _, reports, sent = run()
    n_words = 2 * (3 * 4 // 2 + 3 * 6)
    for kind in (SUM_UP, SUM_DOWN):
        steps = [envelope.body for envelope in sent if envelope.kind == kind]
        for step in range(1, 13):
            sizes = {len(m.words) for m in steps if m.step == step}
            # Two starts until a half of the twelve iterations are done.
            norm = N_LIMBS if step == 1 else 0  # of the rounded samples
            assert sizes == {norm + (n_words if step <= 3 else n_words // 2)}
            assert sum(m.step == step for m in steps) == len(SIZES) - 1
    assert len(reports[0]) == 12


def test_relays_and_agents_without_a_positive_sample():
    X = split_parts((20,))[0]
    parts = [X[:12], np.zeros((0, 6)), X[12:], np.zeros((3, 6))]
    agents, reports, _ = run(parts, "path")
    for agent, own in zip(agents, reports, strict=True):
        errors = [report.squared_error for report in own]
        assert (max(errors) == 0) == (agent.number in (1, 3))
    plain = run([X[:12], X[12:]], n_max=1e9)[1]
    np.testing.assert_allclose(
        reports[0][-1].H, plain[0][-1].H, rtol=1e-3, atol=1e-3 * reports[0][-1].H.max()
    )


def test_sparse_samples_give_the_same():
    rng = np.random.default_rng(0)
    parts = [X * (rng.random(X.shape) < 0.4) for X in split_parts((12, 7, 9))]
    dense = run(parts)[1]
    for kind in (sparse.csr_array, sparse.csr_matrix):
        reports = run([kind(X) for X in parts])[1]
        for mine, theirs in zip(reports, dense, strict=True):
            np.testing.assert_allclose(mine[-1].H, theirs[-1].H, rtol=1e-7, atol=1e-12)


def test_single_precision_is_close():
    parts = split_parts((12, 7, 9))
    double = run(parts)[1]
    single = run([X.astype(np.float32) for X in parts])[1]
    assert single[0][-1].H.dtype == np.float64
    np.testing.assert_allclose(single[0][-1].H, double[0][-1].H, rtol=1e-3, atol=1e-4)


# What may be wrong with an envelope from agent 1 to agent 0, and the refusal.
WRONG = {
    "run": ({"run": bytes(16)}, r"envelope of run 0{32}, this is 000102"),
    "protocol": ({"protocol": 1}, "envelope of protocol 1, this is 2"),
    "receiver": ({"receiver": 2}, "envelope for agent 2, this is agent 0"),
    "kind": ({"kind": 6}, "envelope of kind 6, the kinds are 0, 1, 2, 3, 4, 5"),
    "body": ({"body": b"short"}, "message of 5 bytes is shorter than its header"),
    "longer": ({"body": bytes(12)}, "public keys, up of 12 bytes, expected 11"),
    "step": ({"kind": SUM_UP, "round": 3}, "masked sum from agent 1, of step 3"),
    "epoch": ({"body": b"\x09" + bytes(10)}, "up from agent 1, of epoch 9, this is 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_envelope_is_refused_and_the_fit_goes_on(reference, name):
    """By its sender's name; those that came with it are not lost either."""
    changes, match = WRONG[name]
    agents = make_sum_agents(split_parts(SIZES), starts(), "star")
    root = agents[0]
    advance = root.advance
    met = []

    def refuse_first(envelopes):
        if envelopes and not met:
            [first] = [envelope for envelope in envelopes if envelope.sender == 1]
            wrong = first._replace(**{"body": first.body.to_bytes(), **changes})
            for given in ([wrong], [*envelopes, wrong], [wrong, *envelopes]):
                with pytest.raises(CorruptedMessageError, match=match) as caught:
                    advance(given)
                assert str(caught.value).startswith("agent 0: ")
                assert "agent 1" in str(caught.value)
                met.append(caught.value.sender)
        return advance(envelopes)

    root.advance = refuse_first
    assert_same_reports(drive(agents)[0], reference)
    assert met == [1, 1, 1]


def test_envelopes_come_from_neighbours_only():
    agents = make_sum_agents(split_parts(SIZES), starts(), "star")
    [envelope] = agents[1].start().envelopes
    agents[2].start()
    for sender in (1, 77):
        with pytest.raises(CorruptedMessageError, match="no one who writes") as caught:
            agents[2].advance([envelope._replace(sender=sender, receiver=2)])
        assert caught.value.sender == sender
    assert "refused from agent number 77" in str(caught.value)


def test_departures_are_told_in_their_order():
    agents = make_sum_agents(split_parts(SIZES), starts(), "complete")
    for agent in agents:
        agent.start()
    for number in (0, 2):
        with pytest.raises(
            ValueError, match=rf"agent 0: told of departure {number} after 0"
        ):
            agents[0].depart(Departure(number, (1,)))
    agents[0].depart(Departure(1, (1,)))
    with pytest.raises(ValueError, match="departure 1 after 1"):
        agents[0].depart(Departure(1, (2,)))


def test_an_infinite_norm_is_refused_by_name():
    parts = [np.ones((2, 6)), np.full((2, 6), 1e200)]
    agents = make_sum_agents(parts, starts())
    with pytest.raises(OverflowError, match=r"agent 1: \|\|X\|\|\^2"):
        agents[1].start()


def test_right_factors_take_up_the_scale_of_the_left_one(monkeypatch):
    """Where penalties on both make the agents choose it."""
    calls = []

    def look(gram, products, factor, sweeps):
        before = factor.copy()
        calls.append((before, hals(gram, products, factor, sweeps).copy()))
        return factor

    monkeypatch.setattr(_sum_agent, "hals", look)
    parts = split_parts((12, 8))
    agents = make_sum_agents(
        parts, starts(1), alpha_W=0.5, alpha_H=0.01, l1_ratio=0.5, max_iter=2
    )
    scales = []
    learn = _sum_agent.SumAgent._end_iteration

    def learn_and_look(self, step):
        scales.append(self.path.divisors.copy())
        return learn(self, step)

    monkeypatch.setattr(_sum_agent.SumAgent, "_end_iteration", learn_and_look)
    drive(agents)
    assert (np.abs(scales[0] - 1) > 0.05).all()
    for agent in range(2):
        (_, first), (second, _) = calls[agent], calls[2 + agent]
        np.testing.assert_array_equal(second, first / scales[0][:, :, None])


@pytest.mark.parametrize("shape", ["random", "alike", "single", "rare"])
def test_every_summand_keeps_to_the_agents_share_of_the_bound(monkeypatch, shape):
    """So that no total can wrap, whatever the start and the samples."""
    rng = np.random.default_rng(0)
    parts = split_parts((8, 3, 5))
    H = starts(2)
    if shape == "alike":
        H = np.ones_like(H) + 1e-9 * rng.random(H.shape)
    elif shape == "single":
        H = np.zeros_like(H)
        H[:, [0, 1, 2], [0, 1, 2]] = 1e-9
    elif shape == "rare":
        parts = [X * np.exp(8 * rng.standard_normal(X.shape)) for X in parts]
    agents = make_sum_agents(parts, H, max_iter=30)
    seen = []
    solve = _sum_agent.SumAgent._solve_right

    def solve_and_look(self, sweeps):
        solve(self, sweeps)
        norm = self._squared_norm
        gram, products, sums = self._share
        assert gram.max() <= HEADROOM**2 * norm / 6 * (1 + 1e-5)
        assert products.max() <= HEADROOM / np.sqrt(6) * norm * (1 + 1e-5)
        most = HEADROOM * np.sqrt(norm / 6 * self.X.shape[0])
        assert sums.max() <= most * (1 + 1e-5)
        assert min(part.min() for part in self._share) >= 0
        seen.append(gram.max() * 6 / norm)

    monkeypatch.setattr(_sum_agent.SumAgent, "_solve_right", solve_and_look)
    drive(agents)
    assert len(seen) == 3 * 30


def test_what_exceeds_the_bound_is_replaced_by_what_fits(monkeypatch):
    """With a bound so tight that extrapolated right factors break it."""
    beyond = []
    find = _sum_agent.SumAgent._beyond_bound

    def find_and_count(self, gram):
        found = find(self, gram)
        beyond.append(len(found))
        return found

    monkeypatch.setattr(_sum_agent, "HEADROOM", 0.45)
    monkeypatch.setattr(_sum_agent.SumAgent, "_beyond_bound", find_and_count)
    parts = split_parts((20, 14))
    _, reports, _ = run(parts, max_iter=40)
    assert sum(beyond) > 0
    errors = np.sum([[r.squared_error for r in own] for own in reports], axis=0)
    assert (np.diff(errors) <= 1e-6 * errors[0]).all()
    assert errors[-1] < 0.9 * errors[0]
