"""Fits in batches: old totals count on, for a left factor that has moved."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from skppdnmf import PrivateDistributedNMF, make_paper_synthetic
from skppdnmf._secure_sum.totals import Memory

pytestmark = pytest.mark.filterwarnings("ignore::skppdnmf.PrivacyWarning")


def model(n_components=5, **parameters):
    given = {"protocol": "secure-sum", "max_iter": 5, "tol": 0, "random_state": 0}
    return PrivateDistributedNMF(n_components, **{**given, **parameters})


def batches(X, n=5):
    return np.array_split(np.arange(len(X)), n)


def in_batches(X, passes=3, n=5, **parameters):
    nmf = model(**parameters)
    for _ in range(passes):
        for rows in batches(X, n):
            nmf.partial_fit(X[rows], agents=rows % 4)
    return nmf


@pytest.mark.parametrize("seed", range(3))
def test_three_passes_are_as_good_as_one_fit(seed):
    X = make_paper_synthetic(random_state=seed)[0]
    whole = model(max_iter=60).fit(X)
    assert -in_batches(X).score(X) < 1.01 * -whole.score(X)
    # What is forgotten at once leaves the fit of the last batch.
    last = in_batches(X, forget_factor=0.0)
    assert -last.score(X) > 1.02 * -whole.score(X)


def test_totals_are_moved_to_another_left_factor():
    rng = np.random.default_rng(0)
    H, W = rng.random((3, 8)), rng.random((40, 3))
    mixing = rng.random((3, 3)) + np.eye(3)
    memory = Memory(W.T @ W, W.T @ (W @ H), 1.0, H)
    moved = memory.moved(np.linalg.solve(mixing, H))
    assert_allclose(moved.gram, (W @ mixing).T @ (W @ mixing), rtol=1e-5)
    assert_allclose(moved.products, (W @ mixing).T @ (W @ H), rtol=1e-5)
    assert_allclose(memory.moved(H).gram, memory.gram, rtol=1e-5)
    assert memory.faded(0.5).squared_norm == 0.5


def test_goes_on_from_where_it_was():
    X = make_paper_synthetic(random_state=0)[0]
    nmf = model().partial_fit(X[:100])
    first = nmf.components_.copy()
    nmf.partial_fit(X[:100])
    assert np.linalg.norm(nmf.components_ - first) < 0.5 * np.linalg.norm(first)
    again = pickle.loads(pickle.dumps(nmf)).partial_fit(X[100:])
    assert_array_equal(again.components_, nmf.partial_fit(X[100:]).components_)
    assert nmf.n_exchanges_ == 5
    # A fit begins anew, and leaves nothing to go on from.
    fresh = model().fit(X)
    assert_array_equal(nmf.fit(X).components_, fresh.components_)
    assert nmf.memory_ is None
    assert not hasattr(clone(nmf), "memory_")


@pytest.mark.parametrize("kind", ["sparse", "float32", "gaps", "weights", "known"])
def test_other_kinds_of_data(kind):
    X = make_paper_synthetic(random_state=0)[0]
    given, passed = {}, {}
    if kind == "sparse":
        X = sparse.csr_array(X)
    elif kind == "float32":
        X = X.astype(np.float32)
    elif kind == "gaps":
        X = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    elif kind == "weights":
        passed = {"sample_weight": np.arange(100) % 3}
    else:
        given = {"fixed_components": np.eye(2, 30), "normalize": "max"}
    nmf = model(**given)
    for _ in range(2):
        nmf.partial_fit(X[:100], **passed)
        nmf.partial_fit(X[100:], **passed)
    assert -1 < nmf.score(X) < 0
    if kind == "known":
        assert_array_equal(nmf.components_[:2], np.eye(2, 30))


def test_refusals():
    X = np.random.default_rng(0).random((20, 4))
    plain = PrivateDistributedNMF(2, encryption=None)
    assert not hasattr(plain, "partial_fit")
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as caught:
        plain.partial_fit(X)
    assert 'only protocol="secure-sum" forms' in str(caught.value.__cause__)
    for given, message in (
        ({"epsilon": 1.0, "delta": 1e-5, "clip": 1.0}, "partial_fit with epsilon=1"),
        ({"alpha_W": 0.1}, "partial_fit with alpha_W=0.1"),
        ({"beta_loss": 1.0}, "partial_fit with beta_loss=1.0"),
    ):
        with pytest.raises(AttributeError) as caught:
            model(2, **given).partial_fit(X)
        assert message in str(caught.value.__cause__)
    nmf = model(2).partial_fit(X)
    with pytest.raises(ValueError, match="X has 3 features"):
        nmf.partial_fit(X[:, :3])
