"""One limit of the linear algebra's threads for the process."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from numpy.testing import assert_array_equal
from threadpoolctl import ThreadpoolController, threadpool_limits

from skppdnmf import PrivateDistributedNMF
from skppdnmf._nmf.threads import single_threaded


def blas_threads():
    controller = ThreadpoolController().select(user_api="blas")
    return {library.num_threads for library in controller.lib_controllers}


@pytest.fixture
def two_threads():
    """A process whose linear algebra has been set to two threads."""
    with threadpool_limits(limits=2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("the linear algebra's number of threads cannot be set")
        yield


class Holder(threading.Thread):
    """A thread that takes the limit and gives it back when it is told to."""

    def __init__(self, fails=False):
        super().__init__()
        self.taken, self.told, self.fails = threading.Event(), threading.Event(), fails

    def run(self):
        try:
            with single_threaded():
                self.taken.set()
                self.told.wait(30)
                if self.fails:
                    raise FloatingPointError
        except FloatingPointError:
            pass

    def take(self):
        self.start()
        assert self.taken.wait(30)

    def give_back(self):
        self.told.set()
        self.join()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_last_restores_what_the_first_has_found(two_threads, order):
    holders = [Holder(fails=i == 1) for i in range(3)]
    for holder in holders:
        holder.take()
    for i in order:
        assert blas_threads() == {1}
        holders[i].give_back()
    assert blas_threads() == {2}


def test_a_limit_in_another_thread_is_no_hindrance():
    """The first thread that sets a limit is alive while another one needs its own."""
    with threadpool_limits(limits=2, user_api="blas"):
        holder = Holder()
        holder.take()
        assert blas_threads() == {1}
        holder.give_back()
        assert blas_threads() == {2}
    holder = Holder()
    holder.take()
    with single_threaded():
        pass
    assert blas_threads() == {1}
    holder.give_back()
    with threadpool_limits(limits=2, user_api="blas"):
        assert blas_threads() == {2}


def test_nested_contexts_are_one(two_threads):
    with single_threaded(), single_threaded():
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_an_exception_of_a_fit_leaves_no_limit(two_threads):
    with pytest.raises(ValueError, match="NaN"):
        PrivateDistributedNMF(2, partition=2).fit(np.full((20, 4), np.nan))

    assert blas_threads() == {2}


@pytest.mark.parametrize("protocol", ["consensus", "secure-sum"])
@pytest.mark.parametrize("pool", ["threading", "concurrent.futures"])
def test_beside_others_all_numbers_are_as_alone(two_threads, protocol, pool):
    X = np.abs(np.random.default_rng(0).normal(size=(120, 96)))

    def results(seed):
        model = PrivateDistributedNMF(
            6,
            partition=3,
            protocol=protocol,
            encryption="simulated",
            max_iter=3,
            tol=0,
            random_state=seed,
        ).fit(X)
        W = model.transform(X)
        return model.components_, W, model.inverse_transform(W), model.score(X)

    alone = [results(seed) for seed in range(2)]
    if pool == "threading":
        calls = (delayed(results)(i % 2) for i in range(6))
        beside = Parallel(n_jobs=3, backend="threading")(calls)
    else:
        with ThreadPoolExecutor(3) as executor:
            beside = list(executor.map(results, [0, 1] * 3))
    for i, numbers in enumerate(beside):
        for one, other in zip(numbers, alone[i % 2], strict=True):
            assert_array_equal(one, other)
    assert blas_threads() == {2}
