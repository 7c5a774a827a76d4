"""Threads that share work: order, errors, work within work, and how many there are."""

import pickle
import threading
import time

import joblib
import numpy as np
import pytest

from skppdnmf import PrivateDistributedNMF
from skppdnmf._federation import local
from skppdnmf._federation.helpers import Helpers
from skppdnmf._nmf import blocks
from skppdnmf._nmf.threads import in_turn


def test_results_are_in_the_order_of_the_items_and_threads_take_part():
    threads = set()
    both = threading.Barrier(2, timeout=30)

    def square(item):
        if item < 2:
            both.wait()  # passed only if two threads have an item
        threads.add(threading.get_ident())
        return item * item

    with Helpers(2) as helpers:
        assert helpers.share(square, range(50)) == [k * k for k in range(50)]
    assert len(threads) == 2


def test_work_within_work_is_done():
    """Nobody waits for work that nobody does, however it is nested."""
    with Helpers(3) as helpers:

        def inner(item):
            return sum(helpers.share(lambda k: k * item, range(20)))

        for _ in range(20):
            assert helpers.share(inner, range(12)) == [190 * k for k in range(12)]


def test_the_first_error_is_raised_and_no_further_item_begun():
    done = []

    def fail(item):
        if item == 3:
            raise ZeroDivisionError("the fourth")
        time.sleep(1e-3)
        done.append(item)

    with Helpers(2) as helpers:
        with pytest.raises(ZeroDivisionError, match="the fourth"):
            helpers.share(fail, range(1000))
        assert len(done) < 10
        assert helpers.share(abs, [-1, -2]) == [1, 2]


def test_an_interrupt_ends_the_work():
    def interrupt(item):
        raise KeyboardInterrupt

    with Helpers(2) as helpers, pytest.raises(KeyboardInterrupt):
        helpers.share(interrupt, range(5))
    assert not [t for t in threading.enumerate() if t.name.startswith("skppdnmf")]


@pytest.mark.parametrize(
    ("n_jobs", "backend", "expected"),
    [(None, "threading", 1), (3, "threading", 3), (10**6, "threading", None)],
)
def test_as_many_as_joblib_would_start(n_jobs, backend, expected):
    with joblib.parallel_config(backend):
        helpers = Helpers.of(n_jobs, 5)
    if expected is None:
        assert 5 <= helpers.n_threads <= max(5, joblib.cpu_count())
    else:
        assert helpers.n_threads == expected


def test_processes_have_no_helpers():
    with joblib.parallel_config("loky"):
        assert Helpers.of(4, 5).n_threads == 1
    assert Helpers.of(4, 5, "processes").n_threads == 1
    assert pickle.loads(pickle.dumps(Helpers(4))).n_threads == 1


def test_turns_are_taken_one_by_one():
    inside = []

    def enter(item):
        with in_turn():
            inside.append(item)
            time.sleep(1e-3)
            assert inside == [item]
            inside.clear()

    with Helpers(4) as helpers:
        helpers.share(enter, range(12))


@pytest.mark.parametrize("n_agents", [1, 3])
@pytest.mark.parametrize("given", [{}, {"alpha_W": 0.01, "l1_ratio": 0.5}])
def test_results_depend_on_blocks_and_not_on_jobs(monkeypatch, n_agents, given):
    """Agents of several blocks, shared by two threads: the same to the last bit."""
    monkeypatch.setattr(blocks, "_ROWS", 64)
    monkeypatch.setattr(local, "_SHORT_TURN", 0.0)
    rng = np.random.default_rng(0)
    X = rng.random((500, 3)) @ rng.random((3, 9)) + 0.1 * rng.random((500, 9))
    fits = [
        PrivateDistributedNMF(
            3,
            protocol="secure-sum",
            partition=n_agents,
            max_iter=25,
            tol=0,
            random_state=0,
            n_jobs=n_jobs,
            **given,
        ).fit(X)
        for n_jobs in (1, 2)
    ]
    one, two = fits
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(
        one.history_["shared_error"], two.history_["shared_error"]
    )
    assert one.reconstruction_err_ == two.reconstruction_err_


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_change_no_more_than_rounding(monkeypatch, weighted):
    """With several blocks of rows results are those of one, nearly."""
    rng = np.random.default_rng(0)
    X = rng.random((600, 3)) @ rng.random((3, 9)) + 0.1 * rng.random((600, 9))
    weights = {"sample_weight": rng.integers(1, 4, 600)} if weighted else {}
    model = PrivateDistributedNMF(
        3, protocol="secure-sum", partition=3, max_iter=25, tol=0, random_state=0
    )
    whole = model.fit(X, **weights).components_
    monkeypatch.setattr(blocks, "_ROWS", 64)
    np.testing.assert_allclose(model.fit(X, **weights).components_, whole, rtol=1e-6)
