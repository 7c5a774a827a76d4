"""Attacks on totals that have the noise of differential privacy."""

import numpy as np
import pytest

from skppdnmf import PrivateDistributedNMF
from skppdnmf._secure_sum import noisy_totals
from skppdnmf.audit import (
    AttributeAttack,
    DropoutAttack,
    MembershipAttack,
    PooledSimulationAttack,
    audit_report,
    record,
)
from skppdnmf.audit._attacks.noisy_pool import NoisyPool

K, F, POOL = 3, 8, 500


def samples_of(n, seed):
    rng = np.random.default_rng(seed)
    H = np.random.default_rng(9).exponential(size=(K + 1, F))
    X = rng.dirichlet(np.full(K + 1, 0.4), size=n) @ H
    X += 0.3 * rng.exponential(size=(n, F))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def model(**changes):
    given = {
        "protocol": "secure-sum",
        "adjacency": "complete",
        "epsilon": 3.0,
        "delta": 1e-5,
        "clip": 0.9,  # so that samples are shortened, too
        "random_state": 0,
    }
    return PrivateDistributedNMF(K, **(given | changes))


OWN, MEMBERS, OTHERS, KNOWN = np.split(
    samples_of(20 + POOL + 200 + 300, 0), np.cumsum([20, POOL, 200])
)


def transcript(members=MEMBERS, n_parts=4, **changes):
    return record(model(**changes), [OWN, *np.array_split(members, n_parts)])


def silenced(monkeypatch):
    """Switch the noise off, as the attacker knows."""
    monkeypatch.setattr(NoisyPool, "noise", 0.0)
    monkeypatch.setattr(
        noisy_totals,
        "discrete_gaussian",
        lambda scale, size: np.zeros(size, dtype=np.int64),
    )


def judged(one):
    candidates = np.vstack([MEMBERS[:200], OTHERS])
    return MembershipAttack(KNOWN).run(one, 0, candidates).details


@pytest.mark.parametrize("unit", ["sample", "agent"])
def test_the_others_samples_explain_the_totals(monkeypatch, unit):
    """The oracle: without noise what samples would add is what the others added."""
    silenced(monkeypatch)
    if unit == "agent":
        monkeypatch.setattr(noisy_totals, "LEAST_RATIO", 0.0)
        monkeypatch.setattr(noisy_totals, "_DOUBT", 0.0)
    one = transcript(privacy_unit=unit, max_iter=6)
    pool = NoisyPool(one.view(0), n_others=POOL)
    assert len(pool.stages) == 6
    for right, stage in zip(pool.simulate(MEMBERS), pool.stages, strict=True):
        W, V = right
        # Of agents' means the attacker knows by what its own is shortened.
        close = 1e-4 if unit == "sample" else 0.05
        for found, total in (
            (W @ W.transpose(0, 2, 1), stage.totals.gram),
            (V @ MEMBERS, stage.totals.products),
        ):
            off = np.linalg.norm(found - total) / np.linalg.norm(total)
            assert off < close
        V = pool.simulate(OTHERS)[0].products * (POOL / len(OTHERS))
        assert np.linalg.norm(V @ OTHERS - total) > 0.02 * np.linalg.norm(total)


def test_sums_are_chosen_from_all():
    one = transcript(max_iter=9)
    chosen = NoisyPool(one.view(0), 3)
    every = NoisyPool(one.view(0))
    assert len(every.stages) == one.estimator.n_iter_
    for stage, place in zip(chosen.stages, (0, 4, 8), strict=True):
        np.testing.assert_array_equal(stage.point, every.stages[place].point)
    assert (
        abs(every.n_samples - POOL) < 6 * one.estimator.privacy_["noise"]["n_samples"]
    )


def test_noise_hides_members_and_its_absence_does_not(monkeypatch):
    members = MEMBERS[:100]
    candidates = np.vstack([members, OTHERS])

    def found():
        one = transcript(members, epsilon=8.0, n_parts=3, max_iter=60)
        return MembershipAttack().run(one, 0, candidates).details

    noisy = found()
    assert noisy["epsilon"] == 8.0
    assert noisy["auc"] < 0.75
    assert noisy["auc_interval"][0] <= noisy["most_auc"]
    silenced(monkeypatch)
    assert found()["auc"] > 0.97


def test_single_candidates_stay_below_what_the_guarantee_leaves():
    details = judged(transcript(epsilon=1.0))
    assert details["auc_interval"][0] <= details["most_auc"] < 0.6


def test_attributes_and_pools_under_noise():
    X = samples_of(POOL + 300, 1)
    X[:, -1] = 0.5 * np.random.default_rng(1).integers(2, size=len(X))
    members, known = X[:POOL], X[POOL:]
    one = transcript(members, epsilon=8.0)
    without, with_it = members[:100].copy(), members[:100].copy()
    without[:, -1], with_it[:, -1] = 0.0, 0.5
    leakage = AttributeAttack(known).run(one, 0, without, with_it)
    assert 0.3 < leakage.details["right"] < 0.75
    attack = PooledSimulationAttack(references=known, max_seconds=2.0)
    leakage = attack.run(one, 0)
    assert leakage.recovered < 0.2
    # What they find of the mean, which noise is not to hide.
    mean = leakage.details["mean"]
    assert np.corrcoef(mean, members.mean(axis=0))[0, 1] > 0.9
    with pytest.raises(ValueError, match="no total is formed after a dropout"):
        DropoutAttack(known).run(one, 0, 1)


@pytest.mark.journey
def test_a_report_on_noisy_totals():
    X = np.vstack([OWN, MEMBERS])
    given = {"max_rounds": 5, "max_samples": 1, "max_seconds": 60.0}
    report = audit_report(model(partition=3), X, references=KNOWN, **given)
    found = report.leakages["secure-sum"]
    for attack in ("membership, of a list", "membership, single"):
        assert found[attack][0].details["epsilon"] == 3.0
    assert found["simulation, no names"]
    single = str(found["membership, single"][0])
    assert single.endswith("epsilon=3 leaves 0.694 at most")
    text = str(report)
    assert "totals have the noise of epsilon=3" in text
    assert "on_dropout='raise': no total is formed without one" in text
    assert not any("n_init" in advice for advice in report.advice)


@pytest.mark.journey
def test_a_pool_that_is_too_small_when_halved_is_said(monkeypatch):
    silenced(monkeypatch)  # so that the numbers of samples are what they are
    X = np.vstack([OWN, MEMBERS])[:200]
    given = {"max_rounds": 5, "max_samples": 1, "max_seconds": 3.0}
    report = audit_report(model(partition=3), X, **given)
    reasons = {one.reason for one in report.skipped if one.protection == "secure-sum"}
    assert any("half of the samples are too few: at epsilon=3" in r for r in reasons)
    assert not report.leakages["secure-sum"]["membership, single"]
