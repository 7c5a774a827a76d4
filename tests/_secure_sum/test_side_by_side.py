"""Right factors that are swept side by side are those of agents that sweep alone."""

import gc
import pickle
import weakref

import numpy as np
import pytest

from skppdnmf import PrivateDistributedNMF
from skppdnmf._secure_sum import build
from skppdnmf._secure_sum import side_by_side as module
from skppdnmf._secure_sum.side_by_side import SideBySide


@pytest.fixture
def X():
    rng = np.random.default_rng(3)
    return rng.exponential(size=(60, 3)) @ rng.exponential(size=(3, 7))


def fit(X, **given):
    parameters = {"partition": [9, 9, 0, 9, 20, 13], "max_iter": 12, "tol": 0}
    parameters |= {"protocol": "secure-sum", "random_state": 0, **given}
    return PrivateDistributedNMF(3, **parameters).fit(X)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"n_init": 1, "adjacency": "path"},
        {"alpha_W": 0.01, "l1_ratio": 0.5},
        {"alpha_W": 0.0, "alpha_H": 0.01},
        {"n_jobs": 2, "partition": 6},
    ],
)
@pytest.mark.parametrize("together", [1 << 16, 100])
def test_components_and_history_are_those_of_agents_alone(
    X, given, together, monkeypatch
):
    monkeypatch.setattr(module, "_TOGETHER", together)
    found = fit(X, **given)
    monkeypatch.setattr(build, "SideBySide", lambda: None)
    alone = fit(X, **given)
    np.testing.assert_array_equal(found.components_, alone.components_)
    for name in ("local_error", "shared_error", "bytes"):
        np.testing.assert_array_equal(found.history_[name], alone.history_[name])


def test_agents_take_what_was_swept_for_them(X, monkeypatch):
    swept, alone = [], []
    genuine = SideBySide.take

    def noting(beside, agent, path, sweeps):
        W = genuine(beside, agent, path, sweeps)
        (alone if W is None else swept).append(agent.number)
        return W

    monkeypatch.setattr(SideBySide, "take", noting)
    fit(X, n_init=1)
    # By themselves at the first point alone.
    assert sorted(alone) == list(range(6))
    assert sorted(swept) == sorted(11 * list(range(6)))


class Party:
    """An agent with one sample of two components."""

    def __init__(self, number, beside):
        self.number, self.n_solved = number, 1
        self.start = np.ones((1, 2, 1))
        beside.join(self)

    def next_sweeps(self, path):
        return np.full((1, 2, 1), self.number + 2.0), self.start


class Point:
    gram = np.eye(2)[None]


def test_what_was_swept_for_another_state_is_not_taken():
    beside, point = SideBySide(), Point()
    first, second, third = (Party(i, beside) for i in range(3))
    assert (beside.take(first, point, 2) == 2.0).all()
    assert (first.start == 1.0).all()
    assert beside.take(first, point, 2) is None  # once
    second.n_solved += 1
    assert beside.take(second, point, 2) is None
    assert beside.take(third, point, 1) is None
    assert (beside.take(third, Point(), 2) == 4.0).all()


def test_agents_that_are_let_go_are_forgotten():
    beside = SideBySide()
    first, second = Party(0, beside), Party(1, beside)
    gone = weakref.ref(second)
    gc.disable()
    try:
        del second
        assert gone() is None
    finally:
        gc.enable()
    assert beside.take(first, Point(), 2) is not None
    assert pickle.loads(pickle.dumps(beside)) is None
