"""A fit that fails leaves an estimator as it was."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from skppdnmf import PrivateDistributedNMF
from skppdnmf._secure_sum.agent import SumAgent
from skppdnmf.exceptions import AgentLost, DropoutError

X = np.random.default_rng(0).random((20, 6))
INFINITE = np.where(X > 0.99, np.inf, X)
INFINITE[0, 0] = np.inf
REFUSED = {
    "another width and too few samples": (X[:1, :4], {}),
    "negative": (-X, {}),
    "infinite": (INFINITE, {}),
    "not square": (X, {"adjacency": np.ones((2, 3))}),
    "partition": (X, {"partition": [1, 2]}),
    "init": (X, {"init": np.ones((3, 3))}),
    "n_max": (X, {"n_max": 1e200}),
    "n_jobs": (X, {"n_jobs": 0}),
    "agents": ([X], {"adjacency": "none"}),
}


def make():
    return PrivateDistributedNMF(
        3, partition=4, protocol="secure-sum", max_iter=3, tol=0, random_state=0
    )


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_fit_destroys_nothing(name):
    data, parameters = REFUSED[name]
    if name.startswith("another"):
        parameters = {"partition": 5}
    fitted = make().fit(X)
    before = dict(vars(fitted))
    old = fitted.get_params()
    W = fitted.transform(X)
    with pytest.raises(ValueError if name != "n_max" else OverflowError):
        fitted.set_params(**parameters).fit(data)
    fitted.set_params(**old)
    assert vars(fitted).keys() == before.keys()
    for key, value in vars(fitted).items():
        assert value is before[key], key
    assert_array_equal(fitted.transform(X), W)
    with pytest.raises(ValueError if name != "n_max" else OverflowError):
        make().set_params(**parameters).fit(data)
    unfitted = make().set_params(**parameters)
    with pytest.raises((ValueError, OverflowError)):
        unfitted.fit(data)
    with pytest.raises(NotFittedError):
        unfitted.transform(X)


@pytest.mark.parametrize("error", [AgentLost, KeyboardInterrupt, ZeroDivisionError])
def test_neither_does_one_that_ends_on_the_way(monkeypatch, error):
    fitted = make().fit(X)
    components = fitted.components_

    def fail(agent, envelopes):
        raise error("gone")

    monkeypatch.setattr(SumAgent, "advance", fail)
    with pytest.raises((DropoutError, KeyboardInterrupt, ZeroDivisionError, AgentLost)):
        fitted.fit(X[:10, :4])
    monkeypatch.undo()
    assert fitted.components_ is components
    assert fitted.n_features_in_ == 6
    assert fitted.transform(X).shape == (20, 3)
