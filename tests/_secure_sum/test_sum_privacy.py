"""What fits under protocol="secure-sum" keep, send and warn of."""

import pickle
import warnings

import numpy as np
import pytest
from _sums import RARE, KeyStreams, model, p_uniform
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF
from skppdnmf._federation import local as federation
from skppdnmf._secure_sum.agent import SumAgent
from skppdnmf._secure_sum.left_factor import LeftPath
from skppdnmf.exceptions import PrivacyWarning
from skppdnmf.exchange import SUM_UP, PairwiseMasks, SecureSum


@pytest.fixture(scope="module")
def X():
    return load_digits().data[:90, 10:40]


def privacy_warnings(X, **given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model(max_iter=2, **given).fit(X)
    return [str(w.message) for w in caught if w.category is PrivacyWarning]


def test_two_agents_hide_nothing(X):
    with pytest.warns(PrivacyWarning, match="two agents .* hides nothing"):
        model(partition=2, max_iter=2).fit(X)


@pytest.mark.parametrize("n_agents", [1, 3, 6])
@pytest.mark.parametrize("adjacency", ["path", "complete"])
def test_no_warning_otherwise(X, n_agents, adjacency):
    """But of who is in a pool that is small."""
    given = {"partition": n_agents, "adjacency": adjacency, "masking": "scalar"}
    found = privacy_warnings(X, **given)
    assert len(found) == (n_agents > 1)
    assert all(message.startswith("membership: all agents but") for message in found)
    assert not any("; with" in message for message in found)
    many = np.tile(X, (40, 1))
    assert privacy_warnings(many, **given) == []


def test_the_consensus_warns_of_scalar_masks_and_single_neighbours(X):
    given = {"protocol": "consensus", "encryption": None, "max_admm_iter": 1}
    scalar = privacy_warnings(X, adjacency="ring", masking="scalar", **given)
    assert len(scalar) == 1
    assert 'masking="scalar"' in scalar[0]
    assert "secure-sum" in scalar[0]
    [single] = privacy_warnings(X, adjacency="path", **given)
    assert "one neighbour: 0, 4;" in single
    assert "secure-sum" in single
    assert privacy_warnings(X, adjacency="ring", **given) == []
    assert privacy_warnings(X, partition=1, **given) == []


def walk(thing, seen=None):
    """Every object that can be reached from one, by attributes and containers."""
    seen = {} if seen is None else seen
    if id(thing) in seen or isinstance(thing, type):
        return seen
    seen[id(thing)] = thing
    if isinstance(thing, dict):
        inner = [*thing, *thing.values()]
    elif isinstance(thing, (list, tuple, set, frozenset)):
        inner = list(thing)
    else:
        inner = list(getattr(thing, "__dict__", {}).values())
    for one in inner:
        walk(one, seen)
    return seen


def test_the_fitted_estimator_holds_no_secret(X, monkeypatch):
    secrets = []
    agree = PairwiseMasks.agree

    def agree_and_note(self, public_keys, links, told):
        secrets.append(self._private)
        agree(self, public_keys, links, told)
        secrets.extend([*self._seeds.values(), *self._link_seeds.values()])

    monkeypatch.setattr(PairwiseMasks, "agree", agree_and_note)
    fitted = model(partition=4).fit(X)
    assert len(secrets) > 4 * 4
    for thing in walk(fitted).values():
        assert not isinstance(
            thing, (SumAgent, SecureSum, PairwiseMasks, LeftPath, bytes, bytearray)
        )
        if isinstance(thing, np.ndarray):
            assert thing.dtype != np.uint64
            # No right factor of the training data: only agents by samples.
            assert thing.shape[:1] != (90,) or thing is fitted.sample_agents_
    data = pickle.dumps(fitted)
    assert not any(secret in data for secret in secrets)
    assert not any(secret.hex() in repr(fitted.__dict__) for secret in secrets)
    assert not any(repr(secret) in repr(fitted.__dict__) for secret in secrets)
    restored = pickle.loads(data)
    assert_array_equal(restored.transform(X), fitted.transform(X))


def test_no_mask_comes_twice_in_fits_of_the_same_seed(X, monkeypatch):
    streams = KeyStreams(monkeypatch)
    for _ in range(2):
        model(max_iter=5, n_init=2).fit(X)
    ends = streams.check()
    assert len({key for key, _ in ends}) == 2 * 10
    assert len({place for _, place in ends}) == len(ends) == 2 * 10 * 6
    assert p_uniform([words for words, *_ in ends.values()]) > RARE


def test_fits_of_the_same_seed_send_different_words(X, monkeypatch):
    sent = []
    count = federation.Traffic.count

    def count_and_note(self, envelopes):
        sent.extend(one.body.words for one in envelopes if one.kind == SUM_UP)
        count(self, envelopes)

    monkeypatch.setattr(federation.Traffic, "count", count_and_note)
    for _ in range(2):
        model(max_iter=5).fit(X)
    words = np.concatenate(sent)
    assert len(np.unique(words)) == len(words)
    assert p_uniform(sent) > RARE


def test_keys_do_not_come_from_the_seed(X):
    """Seeding every public generator alike leaves the keys different."""
    keys = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        keys.append(PairwiseMasks(0).public_key)
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    ("partition", "n_components", "text"),
    [
        ([20, 10, 0], 2, "two agents that have samples"),
        ([30, 0, 0], 2, "one agent that has samples"),
        ([28, 1, 1], 2, "all agents but 0 have 2 samples in all"),
        ([26, 3, 1], 3, "membership: all agents but 0 have 4 samples in all"),
    ],
)
def test_where_totals_give_samples_away_a_warning_says_so(
    partition, n_components, text
):
    X = np.random.default_rng(0).random((30, 6))
    model = PrivateDistributedNMF(
        n_components, protocol="secure-sum", partition=partition, max_iter=3, tol=0
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    found = [str(w.message) for w in caught if w.category is PrivacyWarning]
    assert len(found) == (text is not None)
    assert all(text in message for message in found)
