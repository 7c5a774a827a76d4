"""The attack on totals before and after a dropout."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF
from skppdnmf.audit import DropoutAttack, record
from skppdnmf.exceptions import DropoutError, DropoutWarning

SIZES = (40, 20, 20)


def lost(n_lost=1, seed=0, at=30, on_dropout="continue", **parameters):
    """A fit of digits whose last agent drops out, and samples that nobody holds."""
    X = load_digits().images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    X = np.unique(X, axis=0)[np.random.default_rng(seed).permutation(1500)]
    parts = np.split(X[: sum(SIZES) + n_lost], np.cumsum(SIZES))
    model = PrivateDistributedNMF(
        4,
        protocol="secure-sum",
        adjacency="complete",
        on_dropout=on_dropout,
        max_iter=40,
        tol=0,
        random_state=seed,
        **parameters,
    )
    return record(model, parts, dropouts={3: at}), X[300:1100]


@pytest.mark.journey
@pytest.mark.parametrize("n_init", [1, "auto"])
def test_the_sample_of_a_lost_agent_is_found_with_its_name(n_init):
    shares = []
    for seed in range(3):
        with pytest.warns(DropoutWarning, match="agent 3 dropped out"):
            transcript, references = lost(seed=seed, n_init=n_init)
        leakage = DropoutAttack(references).run(transcript, 0, 3)
        assert (leakage.victim, leakage.target) == (3, "samples")
        shares.append(leakage.recovered)
        assert leakage.details["step"] == 30
    assert np.median(shares) > 0.9
    assert min(shares) > 0.5


def test_while_several_starts_are_followed():
    with pytest.warns(DropoutWarning):
        transcript, references = lost(at=12, n_init=4)
    leakage = DropoutAttack(references).run(transcript, 1, 3)
    assert leakage.recovered > 0.4
    assert "DropoutAttack, 1 on 3: samples" in str(leakage)


def test_the_summand_of_many_samples_is_found():
    with pytest.warns(DropoutWarning):
        transcript, references = lost(n_lost=30)
    leakage = DropoutAttack(references).run(transcript, 0, 3)
    assert leakage.target == "summand"
    assert leakage.error < 0.05
    assert leakage.error < leakage.guess_error / 3


def test_without_a_dropout_there_is_nothing_to_compare():
    with pytest.warns(DropoutWarning):
        transcript, references = lost()
    attack = DropoutAttack(references)
    with pytest.raises(ValueError, match="cannot attack itself"):
        attack.run(transcript, 0, 0)
    with pytest.raises(ValueError, match="no agent 9"):
        attack.run(transcript, 0, 9)
    whole, _ = lost(at=99)
    with pytest.raises(ValueError, match="no agent dropped out"):
        attack.run(whole, 0, 3)
    assert repr(attack).startswith("DropoutAttack(references=<800x16>")


def test_dropouts_to_record_are_checked():
    with pytest.raises(DropoutError):
        lost(on_dropout="raise")
    X = np.random.default_rng(0).random((9, 4))
    model = PrivateDistributedNMF(2, partition=3, max_iter=3)
    with pytest.raises(ValueError, match="no agent 'x'; the agents are"):
        record(model.set_params(protocol="secure-sum"), X, dropouts={"x": 1})
    model.set_params(protocol="consensus", encryption="simulated")
    with pytest.raises(ValueError, match="not under protocol='consensus'"):
        record(model, X, dropouts={0: 1})
