"""Keys of either scheme: the same result, sizes that fit, and who reads it."""

import pickle
import warnings

import numpy as np
import pytest
from _estimators import model
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skppdnmf import PrivateDistributedNMF, estimate_cost
from skppdnmf._consensus.build import cipher_maker

pytestmark = pytest.mark.filterwarnings(
    "ignore::skppdnmf.exceptions.InsecureKeyWarning"
)
SMALLEST = 576
TOO_SMALL = "key_size=512 should be even and >= 576 .*'subgroup'"


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).random((12, 5))


@pytest.mark.parametrize("masking", ["entrywise", "scalar"])
def test_results_do_not_depend_on_the_scheme(X, masking):
    fits = [
        model(
            2,
            partition=3,
            encryption=encryption,
            key_size=SMALLEST,
            key_scheme=scheme,
            masking=masking,
            max_iter=2,
        ).fit(X)
        for encryption in ("paillier", "simulated")
        for scheme in ("djn", "subgroup")
    ]
    for fitted in fits[1:]:
        for name in ("components_", "agent_components_"):
            assert_array_equal(getattr(fitted, name), getattr(fits[0], name))
        assert fitted.traffic_ == fits[0].traffic_
    again = pickle.loads(pickle.dumps(fits[1]))
    assert again.key_scheme == "subgroup"
    assert_array_equal(again.transform(X), fits[0].transform(X))


def test_keys_are_of_the_scheme():
    for scheme in ("djn", "subgroup"):
        make_cipher = cipher_maker("paillier", 2, SMALLEST, scheme)
        one, other = make_cipher(), make_cipher()
        assert one.public != other.public
        for cipher in (one, other):
            assert cipher.public.scheme == scheme
            assert cipher.key_size == SMALLEST


@pytest.mark.parametrize("encryption", ["paillier", "simulated"])
def test_keys_too_small_for_the_scheme(X, encryption):
    small = model(
        2, partition=3, encryption=encryption, key_size=512, key_scheme="subgroup"
    )
    with pytest.raises(ValueError, match=TOO_SMALL):
        small.fit(X)
    with pytest.raises(ValueError, match=TOO_SMALL):
        estimate_cost(small, 5)


@pytest.mark.parametrize(
    "parameters",
    [{"encryption": None}, {"protocol": "secure-sum"}, {"partition": 1}],
    ids=["no encryption", "secure sum", "one agent"],
)
def test_fits_without_keys_do_not_read_it(X, parameters):
    options = {"partition": 3, "key_size": 64, "max_iter": 2, **parameters}
    components = [
        model(2, key_scheme=scheme, **options).fit(X).components_
        for scheme in ("djn", "subgroup")
    ]
    assert_array_equal(*components)


def test_it_is_a_parameter_like_the_others():
    assert PrivateDistributedNMF().key_scheme == "djn"
    estimator = model(2, key_scheme="subgroup")
    assert clone(estimator).get_params()["key_scheme"] == "subgroup"
    assert "key_scheme='subgroup'" in repr(estimator)


def test_expected_time_is_that_of_the_scheme():
    seconds = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scheme in ("djn", "subgroup"):
            estimator = PrivateDistributedNMF(
                10, partition=4, masking="scalar", key_scheme=scheme, random_state=0
            )
            seconds[scheme] = estimate_cost(estimator, 100).seconds
    assert 0 < seconds["subgroup"] < 0.8 * seconds["djn"]
