"""The attack on the totals: what it finds, of whom, and where that ends."""

import numpy as np
import pytest
from _audit import SUM, data, model, pooled
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF
from skppdnmf.audit import AgentView, EavesdropperAttack, PooledSimulationAttack, record
from skppdnmf.audit._attacks.gradient_fit import GradientFit
from skppdnmf.audit._attacks.gradients import GradientEvidence, Point
from skppdnmf.audit._attacks.leakage import in_order_of
from skppdnmf.audit._attacks.pool import Pool
from skppdnmf.audit._record.mpc import of_components


def others(one, attacker):
    """All samples that the attacker does not hold."""
    return np.vstack([one.view(a).X for a in one.agents if a != attacker])


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"n_init": 1},
        {"n_init": 3, "alpha_W": 0.02, "alpha_H": 0.02, "l1_ratio": 0.5},
    ],
)
def test_the_others_samples_explain_the_totals(parameters):
    """The oracle: simulated on the truth, the pool's summands are the others'."""
    one = pooled((8, 3, 5), **parameters)
    pool = Pool(one.view(0), 99)
    truth = others(one, 0)
    assert pool.n_samples == 8
    assert pool.squared_norm == pytest.approx(np.sum(truth**2))
    assert len(pool.stages) == 12
    wrong = truth[:, ::-1]
    for right, bad, stage in zip(
        pool.simulate(truth), pool.simulate(wrong), pool.stages, strict=True
    ):
        for (W, V), X, close in ((right, truth, True), (bad, wrong, False)):
            for found, total in (
                (W @ W.transpose(0, 2, 1), stage.totals.gram),
                (V @ X, stage.totals.products),
            ):
                off = np.linalg.norm(found - total) / np.linalg.norm(total)
                assert off < 1e-4 if close else off > 1e-2


@pytest.mark.parametrize("seed", range(3))
def test_with_two_agents_nothing_is_hidden(seed):
    one = pooled((20, 1), seed=seed)
    leakage = PooledSimulationAttack().run(one, 0, 1)
    assert (leakage.target, leakage.n_samples) == ("samples", 1)
    assert leakage.error < 0.01
    assert leakage.recovered > 0.99
    few = PooledSimulationAttack(target="samples").run(
        pooled((20, 3), n_components=4, seed=seed), 0, 1
    )
    assert few.recovered > 0.99
    many = PooledSimulationAttack().run(pooled((20, 30), seed=seed), 0, 1)
    assert many.target == "moments"
    assert many.recovered > 0.6


def test_a_pool_smaller_than_k_is_found_without_names():
    """Every sample of three others, but not whose it is."""
    named = []
    for seed in range(4):
        one = pooled((20, 1, 1, 1), n_components=4, seed=seed)
        *each, everyone = PooledSimulationAttack().run_many(one, 0, [1, 2, 3, None])
        assert (everyone.victim, everyone.target) == (None, "pool")
        assert everyone.n_samples == 3
        assert everyone.recovered > 0.99
        assert "PooledSimulationAttack, 0 on all others: pool" in str(everyone)
        found = everyone.reconstruction
        assert_allclose(found, others(one, 0), rtol=0.02, atol=0.02 * found.mean())
        named += [leakage.recovered for leakage in each]
        # The same is said of each.
        assert_array_equal(each[0].reconstruction, each[1].reconstruction)
    # One of three: a third of each is in the mean of all.
    assert np.mean(named) < 0.4


@pytest.mark.parametrize("sizes", [(20, 1, 39), (20, 1, 20, 19), (12, 3, 30, 3)])
def test_of_a_named_agent_in_a_large_pool_nothing_is_found(sizes):
    """By all trials together: single samples are closer to either mean by chance."""
    errors = []
    for seed in range(12):
        one = pooled(sizes, n_components=4, seed=seed)
        norm = np.linalg.norm(one.view(1).X)
        for attacker in (0, 2):
            named, everyone = PooledSimulationAttack().run_many(
                one, attacker, [1, None]
            )
            assert everyone.recovered < 0.1
            assert named.target == "samples"
            own = named.details["own_guess_error"]
            errors.append(norm * np.array([named.error, named.guess_error, own]))
    error, guess, own = np.linalg.norm(errors, axis=0)
    # Against the mean of all other samples, and against the attacker's own mean.
    assert 1 - error / guess < 0.06
    assert 1 - error / own < 0.06


@pytest.mark.journey
def test_the_share_of_one_among_m():
    """What the mean tells of one of m samples is about one m-th."""
    means = []
    for m in (2, 4, 8):
        shares = []
        for seed in range(8):
            one = pooled((20, 1, m - 1), n_components=4, seed=seed)
            leakage = PooledSimulationAttack(n_starts=2).run(one, 0, 1)
            rest = np.vstack([one.view(0).X, one.view(2).X]).mean(axis=0)
            truth = one.view(1).X[0]
            mean = others(one, 0).mean(axis=0)
            best = np.linalg.norm(mean - truth) / np.linalg.norm(rest - truth)
            shares.append(leakage.recovered)
            if m == 2:  # the set was found, and with it its mean
                assert leakage.recovered == pytest.approx(max(0, 1 - best), abs=0.1)
        means.append(np.mean(shares))
        assert means[-1] < 1.5 / m
    assert means[-1] < means[0]


def test_an_attack_does_not_depend_on_who_of_the_others_holds_what():
    estimator, X, agents = pooled((10, 2, 3, 2), fit=False)
    attack = PooledSimulationAttack(n_starts=1, max_steps=10)
    first = attack.reconstruct(record(estimator, X, agents).view(0))
    dealt = agents.copy()
    dealt[10:] = [3, 1, 2, 2, 1, 1, 3]
    second = attack.reconstruct(record(estimator, X, dealt).view(0))
    assert_array_equal(first.samples, second.samples)


def test_second_moments_of_the_pool_are_known():
    """A victim with half of the pool's samples is half known by its moments."""
    attack = PooledSimulationAttack(target="moments")
    shares = [
        attack.run(pooled((20, 20, 20), seed=seed), 0, 1).recovered for seed in range(4)
    ]
    assert 0.1 < np.mean(shares) < 0.8
    one = pooled((20, 2, 78))
    assert attack.run(one, 0, 1).recovered < 0.1


def test_a_relay_attacks_too():
    _, X, agents = pooled((20, 1), fit=False)
    estimator, *_ = pooled((1,), n_components=4, fit=False, adjacency="path")
    parts = [X[agents == 1], X[:0], X[:0]]
    one = record(estimator, parts)
    leakage = PooledSimulationAttack().run(one, 2, 0)
    assert leakage.error < 0.01
    assert leakage.details["own_guess_error"] == pytest.approx(1.0)
    with pytest.raises(ValueError, match="agent 1 holds no samples to be found"):
        PooledSimulationAttack().run(one, 0, 1)
    with pytest.raises(ValueError, match="no agent but 0 holds samples"):
        PooledSimulationAttack().run(one, 0)


def test_an_attack_is_handed_its_view_only(monkeypatch):
    handed = []
    reconstruct = PooledSimulationAttack.reconstruct

    def note(self, *given):
        handed.append(given)
        return reconstruct(self, *given)

    monkeypatch.setattr(PooledSimulationAttack, "reconstruct", note)
    one = pooled((10, 1))
    PooledSimulationAttack().run(one, 0, 1)
    assert handed == [(one.view(0), {1: 1})]  # and how many samples others hold
    assert isinstance(handed[0][0], AgentView)


def test_time_is_kept_and_told():
    one = pooled((10, 5, 5))
    leakage = PooledSimulationAttack(max_seconds=0.0).run(one, 0, 1)
    assert leakage.details["cut"]
    assert leakage.details["seconds"] < 0.5
    assert not PooledSimulationAttack(max_steps=1).run(one, 0, 1).details["cut"]


def test_data_without_anything_in_them():
    estimator, X, agents = pooled((6, 3, 2), fit=False)
    X[:, 0] = 0.0
    X[8] = 0.0
    one = record(estimator, X, agents)
    leakage = PooledSimulationAttack(max_steps=3, n_starts=1).run(one, 0, 2)
    assert np.isfinite(leakage.error)
    one = record(estimator, np.zeros_like(X), agents)
    leakage = PooledSimulationAttack().run(one, 0, 2)
    assert (leakage.error, leakage.recovered) == (0, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one: PooledSimulationAttack().run(one, 0, 0), "cannot attack itself"),
        (lambda one: PooledSimulationAttack().run(one, 7, 0), "no agent 7"),
        (lambda one: PooledSimulationAttack().run(one, 0, "x"), "no agent 'x'"),
        (lambda one: PooledSimulationAttack(max_sums=0), "max_sums=0 should be >= 1"),
        (lambda one: PooledSimulationAttack(target="pool"), "target='pool' should be"),
    ],
)
def test_what_cannot_be_attacked(call, message):
    with pytest.raises(ValueError, match=message):
        call(pooled((4, 3), max_iter=1))


def test_repr_and_others():
    assert "max_fitted=12" in repr(PooledSimulationAttack())
    # What reads the links only has no attack on a view.
    assert not hasattr(EavesdropperAttack, "reconstruct")


@pytest.mark.journey
def test_references_bring_a_pool_of_twice_the_components_to_light():
    """From its own samples an attacker does not find it."""
    X = load_digits().images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    X = np.unique(X, axis=0)
    K = 4
    blind, informed = [], []
    for seed in range(3):
        mixed = X[np.random.default_rng(seed).permutation(len(X))]
        own, pool, references = np.split(mixed, [10, 10 + 2 * K])
        model = PrivateDistributedNMF(
            K, protocol="secure-sum", max_iter=20, tol=0, random_state=seed
        )
        one = record(model, [own, pool[:K], pool[K:]])
        settings = {"n_starts": 4, "max_steps": 40}
        for some, given in ((blind, None), (informed, references[:600])):
            attack = PooledSimulationAttack(**settings, references=given)
            some.append(attack.run(one, 0).recovered)
    assert np.mean(informed) > np.mean(blind) + 0.15
    assert max(informed) > 0.5
    assert "references=<600x16>" in repr(attack)


def test_with_references_more_samples_are_fitted():
    one = pooled((10, 8, 8))
    references = np.random.default_rng(0).exponential(size=(50, 12))
    attack = PooledSimulationAttack(n_starts=1, max_steps=1, references=references)
    assert attack.run(one, 0).details["fitted"] == 16
    few = PooledSimulationAttack(n_starts=1, max_steps=1, references=references[:5])
    assert few.run(one, 0).details["fitted"] == 16
    assert PooledSimulationAttack(max_steps=1).run(one, 0).details["fitted"] == 4


def test_gradients_that_are_exact_give_the_samples():
    """The control of what fails below: many points, nothing blurred."""
    rng = np.random.default_rng(3)
    H = rng.exponential(size=(3, 8))
    X = rng.gamma(1.0, size=(20, 3)) @ H + 0.1 * rng.exponential(size=(20, 8))
    points = []
    for _ in range(8):
        solved, left = H * rng.uniform(0.5, 1.5, (2, *H.shape))
        used = np.ones(H.shape, dtype=bool)
        point = Point(solved, left, used, np.zeros(H.size))
        total = GradientEvidence([point], 2).traces(X[:2])[0].sum(axis=0)
        points.append(point._replace(total=total))
    problem = GradientFit(GradientEvidence(points, 2), 2)
    found = problem.run(X[:2] * rng.uniform(0.8, 1.25, (2, 8)), 80)
    assert found.misfit < 1e-4
    assert_allclose(in_order_of(found.rows, X[:2]), X[:2], rtol=0.02)


@pytest.mark.parametrize("protocol", ["consensus", "mpc"])
def test_pools_of_other_protocols_are_attacked_and_hold(protocol):
    """Three samples that the totals of the secure sum give away whole."""
    X, agents = data()
    keep = np.flatnonzero((agents == 0) | (np.arange(len(X)) % 20 == 0))
    given = {"adjacency": "complete", "max_iter": 12}
    attack = PooledSimulationAttack(n_starts=4)
    in_clear = model(protocol=SUM, **given)
    summed = record(in_clear, X[keep], agents[keep])
    other = of_components(summed, model(protocol="mpc", **given))
    if protocol == "consensus":
        other = record(model(**given), X[keep], agents[keep])
    assert attack.run(summed, 0).recovered > 0.9
    leakage = attack.run(other, 0)
    assert (leakage.target, leakage.details["pool"]) == ("pool", 3)
    assert leakage.recovered < 0.4
