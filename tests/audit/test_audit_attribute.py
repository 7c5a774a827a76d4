"""The attack on a binary attribute of a known sample."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF
from skppdnmf.audit import AttributeAttack, record

VALUE = 8.0


def attributed(n_pool, seed=0, **parameters):
    """Digits of 4 x 4 pixels with a coin tossed for each; the pool and all else."""
    X = load_digits().images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    X = np.unique(X, axis=0)
    rng = np.random.default_rng(seed)
    X = np.c_[X, VALUE * rng.integers(2, size=len(X))]
    own, pool, rest = np.split(X[rng.permutation(len(X))], [20, 20 + n_pool])
    parameters = {"protocol": "secure-sum", "max_iter": 12, "tol": 0, **parameters}
    model = PrivateDistributedNMF(4, random_state=seed, **parameters)
    parts = [own, pool[: n_pool // 2], pool[n_pool // 2 :]]
    return record(model, parts), pool, rest[:700]


def versions(pool):
    """Each sample without and with the attribute."""
    without, with_it = pool.copy(), pool.copy()
    without[:, -1], with_it[:, -1] = 0.0, VALUE
    return without, with_it


@pytest.mark.journey
def test_a_coin_is_read_in_small_pools_and_less_in_large_ones():
    shares = []
    for n_pool in (10, 400):
        right = []
        for seed in range(3):
            transcript, pool, references = attributed(n_pool, seed)
            leakage = AttributeAttack(references).run(transcript, 0, *versions(pool))
            assert leakage.target == "attribute"
            assert leakage.error == pytest.approx(1 - leakage.details["right"])
            right.append(leakage.details["right"])
        shares.append(np.mean(right))
    assert shares[0] > 0.75
    assert shares[1] < shares[0] - 0.1


def test_the_attribute_of_nobody_is_not_read():
    """The negative control: samples that are in no pool, guessed by a coin."""
    transcript, pool, references = attributed(30)
    without, with_it = versions(references[400:])
    scores = AttributeAttack(references[:400]).decide(
        transcript.view(0), without, with_it, {1: len(pool)}
    )
    right = np.mean((scores > 0) == (references[400:, -1] > 0))
    assert abs(right - 0.5) < 3 * 0.5 / 300**0.5


@pytest.mark.journey
def test_swapped_versions_are_answered_the_other_way_round():
    transcript, pool, references = attributed(12)
    attack = AttributeAttack(references)
    view, (without, with_it) = transcript.view(0), versions(pool)
    one = attack.decide(view, without, with_it, {1: 6, 2: 6})
    other = attack.decide(view, with_it, without, {1: 6, 2: 6})
    np.testing.assert_allclose(one, -other, rtol=1e-6)


def test_what_cannot_be_decided():
    transcript, pool, references = attributed(12)
    attack = AttributeAttack(references)
    without, with_it = versions(pool)
    with pytest.raises(ValueError, match=r"pairs \[0, 1"):
        attack.run(transcript, 0, references[:2], references[2:4])
    with pytest.raises(ValueError, match=r"shape \(12, 17\), with_it has shape \(3"):
        attack.run(transcript, 0, without, with_it[:3])
    with pytest.raises(ValueError, match="max_sums=0"):
        AttributeAttack(references, max_sums=0)
    assert "<700x17>" in repr(attack)
