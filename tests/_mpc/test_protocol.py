"""Secure multi-party computation, as an estimator meets it."""

import sys

import numpy as np
import pytest
from _shares import needs_spu, parts_of
from scipy import sparse

from skppdnmf import PrivateDistributedNMF, estimate_cost
from skppdnmf._data.partition import split_samples
from skppdnmf._mpc import engine
from skppdnmf._mpc.protocol import MpcProtocol
from skppdnmf.audit import record
from skppdnmf.audit._record.mpc import of_components
from skppdnmf.exceptions import PrivacyWarning
from skppdnmf.plot import LearningCurveDisplay

X = np.concatenate(parts_of())


def model(n_components=3, **given):
    parameters = {
        "protocol": "mpc", "partition": [12, 9, 14], "max_iter": 4, "n_init": 1,
        "random_state": 0,
    }  # fmt: skip
    return PrivateDistributedNMF(n_components, **{**parameters, **given})


@pytest.fixture
def no_spu(monkeypatch):
    monkeypatch.setitem(sys.modules, "spu", None)


def test_without_spu_an_error_says_what_it_needs(no_spu):
    with pytest.raises(ImportError, match=r"3\.10 and 3\.11.*numpy below 2.*gigabyte"):
        model().fit(X)


def test_nothing_else_imports_spu_or_jax(no_spu):
    """Neither is needed for the other protocols, nor for what is asked beforehand."""
    assert estimate_cost(model(), 8).bytes > 0
    assert PrivateDistributedNMF(2, protocol="secure-sum", partition=3).fit(X)


@needs_spu
def test_it_is_fitted_like_the_others():
    fitted = model(max_iter=60, n_init=2).fit(X)
    W = fitted.transform(X)
    assert np.linalg.norm(X - W @ fitted.components_) < 0.05 * np.linalg.norm(X)
    assert fitted.n_iter_ == 60
    assert fitted.consensus_error_ == 0
    assert (fitted.agent_components_ == fitted.components_).all()
    opened = {"index of the best start": 1, "components": fitted.components_.size}
    assert fitted.privacy_ == {"opened": opened}
    cost = estimate_cost(fitted, 8)
    assert (cost.exchanges, cost.bytes) == (
        fitted.n_exchanges_, fitted.traffic_["bytes"],
    )  # fmt: skip
    assert cost.seconds > 0


@needs_spu
def test_the_history_has_no_errors_but_the_observers():
    history = model().fit(X).history_
    assert np.isnan(history["local_error"]).all()
    assert np.isnan(history["shared_error"]).all()
    assert (np.diff(history["observed_error"]) < 0).all()
    assert (np.diff(history["bytes"]) > 0).all()
    display = LearningCurveDisplay(history).plot(errors=["shared_error"])
    np.testing.assert_array_equal(
        display.lines_[0, 0].get_ydata(), history["observed_error"]
    )


@needs_spu
def test_who_holds_what_does_not_matter():
    one = model().fit(X).components_
    other = model(partition=[1, 0, 3, 31]).fit(X).components_
    np.testing.assert_allclose(other, one, rtol=1e-3, atol=1e-5)


@needs_spu
def test_sparse_samples_and_relays():
    one = model(partition=[20, 15, 0]).fit(X).components_
    other = model(partition=[20, 15, 0]).fit(sparse.csr_array(X)).components_
    np.testing.assert_allclose(other, one, rtol=1e-3, atol=1e-5)


@needs_spu
def test_penalties_of_the_estimator():
    plain = model(max_iter=60).fit(X)
    bare = model(max_iter=60, alpha_W=0.5, l1_ratio=1.0).fit(X)
    assert bare.reconstruction_err_ > plain.reconstruction_err_
    assert bare.privacy_["opened"]["scale"] == 2


@needs_spu
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"partition": 2}, ValueError, "n_agents=2 .*3 agents compute"),
        ({"on_dropout": "continue"}, ValueError, "on_dropout='continue'"),
        (
            {"epsilon": 1.0, "delta": 1e-5, "clip": 1.0},
            ValueError,
            "noise on them, added once, would drown them",
        ),
        ({"normalize": "max"}, ValueError, "normalize='max' with protocol=\"mpc\""),
        ({"beta_loss": 1}, ValueError, 'beta_loss=1 with protocol="mpc"'),
        (
            {"fixed_components": np.ones((1, 8)), "alpha_W": 0.1},
            ValueError,
            "fixed_components with alpha_W=0.1",
        ),
    ],
)
def test_what_it_does_not_do_is_refused_by_name(given, error, message):
    with pytest.raises(error, match=message):
        model(**given).fit(X)


@needs_spu
def test_known_components_stay_as_they_are():
    known = np.random.default_rng(3).exponential(size=(1, 8)) * 1e4
    given = {"fixed_components": known, "max_iter": 40, "n_init": 2}
    fitted = model(**given).fit(X)
    np.testing.assert_array_equal(fitted.components_[:1], known)
    pooled = model(**{**given, "protocol": "secure-sum", "n_init": 8}).fit(X)
    assert fitted.reconstruction_err_ < 1.02 * pooled.reconstruction_err_
    free = model(max_iter=40).fit(X)
    assert free.reconstruction_err_ < 0.9 * fitted.reconstruction_err_


@needs_spu
def test_weights_and_gaps_are_refused_by_name():
    with pytest.raises(ValueError, match='sample_weight with protocol="mpc"'):
        model().fit(X, sample_weight=np.ones(len(X)))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model().fit(np.where(np.eye(*X.shape) > 0, np.nan, X))


@needs_spu
def test_a_given_start_is_followed_alone():
    start = np.ones((3, 8)) + np.eye(3, 8)
    with pytest.warns(RuntimeWarning, match="n_init=2 although init"):
        fitted = model(init=start, n_init=2).fit(X)
    assert "index of the best start" not in fitted.privacy_["opened"]


def test_costs_need_the_number_of_samples():
    with pytest.raises(ValueError, match="give block sizes as partition"):
        estimate_cost(model(partition=3), 8)
    one, more = estimate_cost(model(), 8), estimate_cost(model(max_iter=8), 8)
    assert more.exchanges > 1.5 * one.exchanges


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([40, 2, 1], "the components can be these samples"),
        ([40, 20, 10], r"membership: .*AUC of 0\.77 in a pool of 100"),
        ([600, 600, 600], None),
    ],
)
def test_what_the_components_tell_is_warned_of(sizes, message):
    partition = split_samples(sum(sizes), sizes)
    found = MpcProtocol().privacy(model(), None, partition, 3)
    if message is None:
        assert found == []
    else:
        with pytest.raises(PrivacyWarning, match=message):
            raise PrivacyWarning(found[0])


@needs_spu
def test_an_overflow_is_an_error_by_name(monkeypatch):
    genuine = engine.Simulator.open

    def wrong(self, name):
        return genuine(self, name) + 2.0**40

    monkeypatch.setattr(engine.Simulator, "open", wrong)
    fitted = model().fit
    with pytest.raises(OverflowError, match="has overflowed"):
        fitted(X)


@needs_spu
def test_a_recorded_fit_holds_nothing_but_its_result():
    """And an audit in floating point attacks the very same components."""
    estimator = model(n_init=2)
    transcript = record(estimator, X)
    public = transcript.public
    for view in map(transcript.view, transcript.agents):
        assert sum(map(len, (view.rounds, view.sums, view.sent, view.received))) == 0
    assert "the components alone" in repr(transcript)
    in_clear = record(model(protocol="secure-sum", n_init=1, tol=0), X)
    found = of_components(in_clear, estimator).public
    np.testing.assert_allclose(found.components, public.components, rtol=1e-3)
    with pytest.raises(ValueError, match="agents drop out of a secure sum only"):
        record(estimator, X, dropouts={0: 1})
