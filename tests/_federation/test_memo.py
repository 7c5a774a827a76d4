"""The memo: computed once in a process, with the same result for all."""

import pickle
import threading
from collections import Counter

import joblib
import numpy as np
import pytest
from _helpers import assert_same_reports, drive, random_start, split_parts
from _sums import RandomOrder, Reporting, make_sum_agents

from skppdnmf import PrivateDistributedNMF
from skppdnmf._federation import local
from skppdnmf._federation.local import run_local
from skppdnmf._federation.memo import Memo
from skppdnmf._protocol import call
from skppdnmf._secure_sum.left_factor import LeftPath

SIZES = (4, 1, 9, 0, 6)
MAX_ITER = 8


def make(compute=call, graph="complete", **given):
    starts = np.stack([random_start(3, 6, seed) for seed in range(2)])
    return make_sum_agents(
        split_parts(SIZES), starts, graph, compute, max_iter=MAX_ITER, **given
    )


class Point:
    """What a pure function makes the next of."""

    def __init__(self, number):
        self.number = number

    def next(self, words, fresh=False):
        return Point(self.number + words.sum() + fresh)


# The memo by itself -----------------------------------------------------------------


def test_the_same_arguments_give_the_same_object():
    memo, point, words = Memo(), Point(1), np.arange(3)
    result = memo(Point.next, point, words, False)
    assert result.number == 4
    assert memo(Point.next, point, words, False) is result
    assert memo(Point.next, point, words.copy(), False) is result


@pytest.mark.parametrize(
    ("words", "fresh", "expected"),
    [
        (np.array([0, 1, 3]), False, 5),
        (np.arange(3), True, 5),
        (np.arange(4), False, 7),
        (np.array([0, 1]), False, 2),
    ],
)
def test_other_arguments_are_computed(words, fresh, expected):
    memo, point = Memo(), Point(1)
    first = memo(Point.next, point, np.arange(3), False)
    other = memo(Point.next, point, words, fresh)
    assert other.number == expected
    assert memo(Point.next, point, np.arange(3), False) is first
    assert memo(Point.next, point, words, fresh) is other


def test_another_state_is_another_result_however_equal():
    memo, words = Memo(), np.arange(3)
    points = [Point(1), Point(1)]
    results = [memo(Point.next, point, words) for point in points]
    assert results[0] is not results[1]
    assert [result.number for result in results] == [4, 4]


def test_a_state_whose_place_in_memory_is_taken_anew_is_not_taken_for_another():
    memo, words = Memo(), np.arange(3)
    for number in range(200):
        assert memo(Point.next, Point(number), words).number == number + 3


def test_another_function_is_another_result():
    memo, data = Memo(), [3, 1, 2]
    assert memo(sorted, data) == [1, 2, 3]
    assert memo(sum, data) == 6
    assert memo(sorted, data) == [1, 2, 3]


def test_what_is_long_past_is_forgotten():
    memo, point = Memo(), Point(0)
    words = np.ones(1, dtype=int)
    for _ in range(50):
        point = memo(Point.next, point, words)
    assert point.number == 50
    assert len(memo._known) <= 5


def test_an_error_is_raised_each_time_and_remembered_never():
    memo, calls = Memo(), []

    def fail_once(state):
        calls.append(state)
        if len(calls) == 1:
            raise ZeroDivisionError
        return state

    state = object()
    with pytest.raises(ZeroDivisionError):
        memo(fail_once, state)
    assert memo(fail_once, state) is state
    assert memo(fail_once, state) is state
    assert len(calls) == 2


def test_a_memo_that_moves_is_empty():
    memo, point = Memo(), Point(1)
    memo(sorted, [1])
    assert memo._known
    moved = pickle.loads(pickle.dumps(memo))
    assert type(moved) is Memo
    assert moved._known == {}
    # Agents that travel together still share one.
    one, other = pickle.loads(pickle.dumps([memo, memo]))
    assert one is other
    assert one(Point.next, point, np.arange(2)).number == 2


def test_threads_get_what_was_put_down_first():
    memo, point = Memo(), Point(1)
    barrier = threading.Barrier(8)
    calls, results = Counter(), [None] * 8

    def following(state, words):
        calls["all"] += 1
        return state.next(words)

    def work(k):
        barrier.wait()
        results[k] = memo(following, point, np.arange(5))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls["all"] <= 8
    assert {result.number for result in results} == {11}
    assert len({id(result) for result in results}) == 1


# Agents that share it ---------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch):
    """How often a step of the path is computed."""
    calls = Counter()
    for name in ("set_up", "take"):
        genuine = getattr(LeftPath, name)

        def counting(path, *given, name=name, genuine=genuine):
            calls[name] += 1
            return genuine(path, *given)

        monkeypatch.setattr(LeftPath, name, counting)
    return calls


def shared(memo, **given):
    """Agents that begin at one path, as those of one process do."""
    agents = make(memo, **given)
    for agent in agents:
        agent.path = agents[0].path
    return agents


@pytest.mark.parametrize("graph", ["path", "star", "complete"])
def test_agents_compute_a_common_path_once(counted, graph):
    reports, _ = drive(shared(Memo(), graph=graph))
    assert counted == {"set_up": 1, "take": MAX_ITER}
    counted.clear()
    alone, _ = drive(make(graph=graph))
    assert counted == {"set_up": len(SIZES), "take": MAX_ITER * len(SIZES)}
    assert_same_reports(reports, alone)
    for row in zip(*reports, strict=True):
        assert len({id(report.H) for report in row}) == 1


def test_an_estimators_agents_compute_it_once(counted):
    X = np.concatenate(split_parts(SIZES))
    model = PrivateDistributedNMF(
        2, partition=5, protocol="secure-sum", max_iter=6, tol=0, random_state=0
    )
    model.fit(X)
    assert counted == {"set_up": 1, "take": 6}


def test_agents_of_different_paths_share_nothing_and_agree(counted):
    memo = Memo()
    reports, _ = drive(make(memo))
    assert counted["take"] == MAX_ITER * len(SIZES)
    assert_same_reports(reports, drive(shared(Memo()))[0])


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_give_the_same_reports(monkeypatch, n_jobs):
    monkeypatch.setattr(local, "_SHORT_TURN", 0.0)
    names = [f"agent {i}" for i in range(len(SIZES))]
    expected = run_local(make(), names, n_jobs=1).reports
    for _ in range(3):
        with joblib.parallel_config("threading"):
            found = run_local(shared(Memo()), names, n_jobs=n_jobs).reports
        assert_same_reports([found], [expected])


@pytest.mark.parametrize("seed", range(10))
def test_departures_give_the_same_reports(seed):
    """Where agents that leave have learnt what the others never do."""
    rng = np.random.default_rng(seed)
    leaving = [(int(rng.integers(20, 120)), {int(rng.integers(5))}) for _ in range(2)]
    found = []
    for agents in (shared(Memo()), make(), make(Memo())):
        parties = [Reporting(agent) for agent in agents]
        run = RandomOrder(parties, np.random.default_rng(seed))
        run.run(leaving)
        found.append([party.reports for party in parties])
        assert len(run.departures) > 0
    assert_same_reports(found[0], found[1])
    assert_same_reports(found[0], found[2])
