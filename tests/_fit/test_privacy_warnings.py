"""What the privacy warnings name and advise."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from skppdnmf import PrivateDistributedNMF
from skppdnmf._consensus.privacy import MANY as NEIGHBOUR_MANY
from skppdnmf._consensus.privacy import MEMBERSHIP_AREAS as NEIGHBOUR_AREAS
from skppdnmf._secure_sum.privacy import MANY, MEMBERSHIP_AREAS
from skppdnmf.exceptions import PrivacyWarning

RECORDED = Path(__file__).parents[2] / "docs" / "benchmarks" / "bench_membership.txt"


def warned(partition, masking):
    """The privacy warnings of a fit on a path."""
    X = np.random.default_rng(0).random((30, 6))
    model = PrivateDistributedNMF(
        2,
        partition=partition,
        adjacency="path",
        masking=masking,
        encryption="simulated",
        max_iter=1,
        tol=0,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    return [str(w.message) for w in caught if w.category is PrivacyWarning]


@pytest.mark.parametrize(("masking", "n_messages"), [("scalar", 2), ("entrywise", 1)])
@pytest.mark.parametrize(
    ("partition", "holders", "more_neighbours"),
    [
        ([15, 15], "two agents", False),
        ([15, 15, 0], "two agents", True),
        ([15, 0, 0, 15], "two agents", True),
        ([30, 0], "one agent", False),
        ([10, 10, 10], None, True),
        ([10, 10, 10, 0], None, True),
    ],
)
def test_the_secure_sum_is_advised_to_three_that_hold_samples(
    partition, holders, more_neighbours, masking, n_messages
):
    messages = warned(partition, masking)
    assert len(messages) == n_messages
    for message in messages:
        assert ('protocol="secure-sum"' in message) == (holders is None)
        if holders is not None:
            assert "more agents with samples would help" in message
            assert f"hides nothing with {holders} that hold any" in message
    assert "one neighbour" in messages[-1]
    assert ("give them more" in messages[-1]) == more_neighbours


def warnings_of(model, X):
    """The privacy warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    return [str(w.message) for w in caught if w.category is PrivacyWarning]


def summed(n_samples=60, **parameters):
    """The one warning of a secure sum, or none."""
    X = np.random.default_rng(0).random((n_samples, 6))
    parameters = {"partition": 4, "max_iter": 2, "tol": 0, **parameters}
    model = PrivateDistributedNMF(2, protocol="secure-sum", **parameters)
    found = warnings_of(model, X)
    assert len(found) <= 1
    return "".join(found)


@pytest.mark.parametrize(
    ("n_samples", "area", "several", "pool"),
    [
        (20, "1.00", "0.99", 20),
        (60, "0.88", "0.95", 100),
        (600, "0.67", "0.73", 500),
        (1200, "0.67", "0.73", 500),
    ],
)
def test_membership_is_named_with_the_measured_figure(n_samples, area, several, pool):
    others = n_samples - n_samples // 4
    one = summed(n_samples, n_init=1)
    assert f"have {others} samples in all" in one
    assert f"AUC of {area} in a pool of {pool}" in one
    assert "starts" not in one
    more = summed(n_samples, n_init=8)
    assert f"{several} with eight starts, and n_init=8" in more
    start = np.random.default_rng(1).random((2, 6))
    assert summed(n_samples, init=start) == one


def test_the_figures_are_those_of_the_benchmark():
    """Of the recorded table, at every pool."""
    rows = {}
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        match = re.match(r" +(\d+)  n_init=(\d)  +([\d.]+) \(", line)
        if match:
            rows[int(match[1]), int(match[2])] = float(match[3])
    named = {
        (pool, n_init): area
        for pool, areas in MEMBERSHIP_AREAS.items()
        for n_init, area in zip((1, 8), areas, strict=True)
    }
    beyond = {key: area for key, area in rows.items() if key not in named}
    assert {key: rows[key] for key in named} == named
    assert beyond
    assert all(pool > MANY and area < 0.6 for (pool, _), area in beyond.items())


def test_large_pools_are_not_warned_of():
    assert summed(3000) == ""


def test_few_keys_and_dropouts_are_points_of_the_same_warning():
    large = {"n_samples": 3000, "partition": 6}
    keys = summed(**large, key_degree=2)
    assert keys.startswith("with key_degree=2, below the default of 5, 2 agents")
    assert summed(**large, key_degree=5) == ""
    lost = summed(**large, on_dropout="continue")
    assert lost.startswith('with on_dropout="continue" the totals before and after')
    assert summed(**large, on_dropout="raise") == ""
    every = summed(60, partition=6, key_degree=2, on_dropout="continue")
    for word in ("membership", "key_degree=2", "on_dropout"):
        assert word in every


@pytest.mark.parametrize(
    ("encryption", "random_state", "warns"),
    [
        ("paillier", 0, True),
        ("paillier", np.int64(7), True),
        ("paillier", None, False),
        ("simulated", 0, False),
        (None, 0, False),
    ],
)
def test_a_seed_of_real_masks_is_named(encryption, random_state, warns):
    X = np.random.default_rng(0).random((30, 6))
    model = PrivateDistributedNMF(
        2,
        partition=3,
        adjacency="ring",
        encryption=encryption,
        key_size=256,
        max_iter=1,
        max_admm_iter=1,
        tol=0,
        random_state=random_state,
    )
    found = [one for one in warnings_of(model, X) if "membership" not in one]
    assert len(found) == warns
    assert all("random_state is an integer" in message for message in found)


@pytest.mark.parametrize(
    ("n_samples", "encryption", "said"),
    [
        (24, "paillier", "have 16 samples in all"),
        (24, "paillier", "AUC of 0.97 in a pool of 20"),
        (150, "paillier", "AUC of 0.78 in a pool of 100"),
        (900, "paillier", "AUC of 0.64 in a pool of 500"),
        (1800, "paillier", None),
        (24, "simulated", None),
    ],
)
def test_membership_is_named_under_the_consensus(n_samples, encryption, said):
    model = PrivateDistributedNMF(
        2,
        partition=3,
        adjacency="ring",
        encryption=encryption,
        key_size=256,
        max_iter=1,
        max_admm_iter=1,
        tol=0,
    )
    found = warnings_of(model, np.random.default_rng(0).random((n_samples, 4)))
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


def test_the_figures_of_the_consensus_are_those_of_the_benchmark():
    rows = {}
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        match = re.match(r" +(\d+)  consensus  +([\d.]+) \(", line)
        if match:
            rows[int(match[1])] = float(match[2])
    assert {pool: rows.pop(pool) for pool in NEIGHBOUR_AREAS} == NEIGHBOUR_AREAS
    assert all(pool > NEIGHBOUR_MANY and area < 0.6 for pool, area in rows.items())


def test_the_masks_of_a_secure_sum_follow_from_no_seed():
    assert "random_state" not in summed(60, random_state=0)
