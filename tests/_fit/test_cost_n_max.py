"""The estimate refuses the `n_max` that the fit refuses, where it knows the samples."""

import re

import numpy as np
import pytest
from _estimators import model as consensus_model

from skppdnmf import PrivateDistributedNMF, estimate_cost

X = np.random.default_rng(0).exponential(size=(60, 6))


def model(partition, n_max, **parameters):
    return PrivateDistributedNMF(
        2,
        protocol="secure-sum",
        partition=partition,
        n_max=n_max,
        max_iter=1,
        tol=0,
        random_state=0,
        **parameters,
    )


def refusal(call):
    try:
        call()
    except (OverflowError, ValueError) as error:
        return type(error), str(error)
    return None


@pytest.mark.parametrize("n_max", [0.5, 1, 1e6, 1.5e9, 1.6e9, 1e12, 1e30, np.inf])
@pytest.mark.parametrize(
    "partition", [[20, 30, 10], np.array([60, 0, 0]), (30, 30), [60]]
)
def test_block_sizes_are_checked_as_in_the_fit(partition, n_max):
    estimator = model(partition, n_max)
    found = refusal(lambda: estimate_cost(estimator, 6))
    assert found == refusal(lambda: estimator.fit(X))
    if n_max == 1e12 and len(partition) > 1:
        assert found is not None
        assert "with n_samples=60, n_components=2 and n_features=6" in found[1]
    if n_max == 1e12 and len(partition) == 1:  # alone, an agent does not round
        assert found is None


def test_given_graph_start_and_penalty():
    estimator = model(
        [20, 30, 10],
        1e12,
        adjacency=1 - np.eye(3),
        init=np.ones((2, 6)),
        alpha_W=0.1,
        l1_ratio=0.5,
    )
    with pytest.raises(OverflowError, match=r"n_max=1e\+12 is too large"):
        estimate_cost(estimator, 6)
    with pytest.raises(OverflowError, match="n_components=4"):
        estimate_cost(estimator.set_params(init="random"), 6, n_components=4)


@pytest.mark.parametrize("partition", [None, 3, [0.5, 0.25, 0.25]])
def test_nothing_is_refused_without_a_number_of_samples(partition):
    large = estimate_cost(model(partition, 1e12), 6)
    assert large == estimate_cost(model(partition, 1e6), 6)
    with pytest.raises(ValueError, match="n_max"):
        estimate_cost(model(partition, 0.5), 6)


def test_the_largest_that_is_named_is_allowed():
    with pytest.raises(OverflowError, match="the largest is n_max=") as caught:
        estimate_cost(model([20, 30, 10], 1e12), 6)
    largest = float(str(caught.value).rpartition("=")[2])
    assert estimate_cost(model([20, 30, 10], largest), 6).exchanges == 1
    with pytest.raises(OverflowError):
        estimate_cost(model([20, 30, 10], 1.01 * largest), 6)


# Consensus: the start has to fit into a plaintext of the key ----------------------


def refusals(key_size, n_max):
    """What the fits and the estimates with ciphertexts and without them refuse."""
    said = set()
    for encryption in ("simulated", "paillier"):
        estimator = consensus_model(
            2,
            partition=3,
            adjacency="path",
            n_max=n_max,
            key_size=key_size,
            encryption=encryption,
            max_iter=1,
            max_admm_iter=1,
        )
        said.add(refusal(lambda e=estimator: estimate_cost(e, 6)))
        said.add(refusal(lambda e=estimator: e.fit(X)))
    return said


def test_a_key_too_small_is_refused_alike():
    ((kind, message),) = refusals(512, 1e200)
    assert kind is OverflowError
    for part in ("n_max=1e+200", "key_size=512 holds 2**496", "or a smaller n_max"):
        assert part in message
    assert "slot_bits" not in message


@pytest.mark.filterwarnings("ignore::skppdnmf.exceptions.InsecureKeyWarning")
def test_the_key_that_is_named_is_allowed():
    """Even where it leaves no room for the bits that slots have to spare."""
    ((_, message),) = refusals(64, 1e17)
    least = int(re.search(r"Use key_size=(\d+) or more", message)[1])
    assert 64 < least <= 80
    assert refusals(least, 1e17) == {None}
