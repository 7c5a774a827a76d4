"""Membership: found where the totals tell it, not where nothing is told."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from skppdnmf import PrivateDistributedNMF
from skppdnmf.audit import AgentView, MembershipAttack, record
from skppdnmf.audit._attacks.evidence import evidence_of
from skppdnmf.audit._attacks.gradients import evidence_of_neighbour, sides
from skppdnmf.audit._attacks.likelihood import LikelihoodRatio, solve_list
from skppdnmf.audit._attacks.verdicts import area, true_positives

N_POOL, N_OWN = 30, 20
SIZES = {1: 15, 2: 15}


def digits(n_pool=N_POOL, seed=0, **parameters):
    """A fit of three agents, 4 x 4 pixels: the transcript, its pool and all else."""
    X = load_digits().images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    X = np.unique(X, axis=0)
    mixed = X[np.random.default_rng(seed).permutation(len(X))]
    pool, own, rest = np.split(mixed, [n_pool, n_pool + N_OWN])
    half = n_pool // 2
    parameters = {"protocol": "secure-sum", "max_iter": 12, "tol": 0, **parameters}
    model = PrivateDistributedNMF(4, random_state=seed, **parameters)
    return record(model, [own, pool[:half], pool[half:]]), pool, rest


@pytest.fixture(scope="module")
def one():
    return digits()


@pytest.mark.parametrize("n_init", [1, "auto"])
def test_each_candidate_of_a_list_is_decided_rightly(n_init):
    transcript, pool, rest = digits(n_init=n_init)
    candidates = np.vstack([rest[:90], pool])
    leakage = MembershipAttack().run(transcript, 0, candidates)
    assert leakage.details["decided"] == 1
    assert leakage.details["auc"] == 1
    assert leakage.details["kind"] == "list"
    assert (leakage.target, leakage.victim, leakage.recovered) == (
        "membership",
        None,
        1,
    )
    weights = MembershipAttack().decide(transcript.view(0), candidates, SIZES)
    assert_allclose(weights, np.repeat([0, 1], [90, N_POOL]), atol=0.05)


def test_single_candidates_are_told_apart(one):
    transcript, pool, rest = one
    candidates = np.vstack([pool, rest[:100]])
    leakage = MembershipAttack(rest[100:700]).run(transcript, 0, candidates)
    details = leakage.details
    assert details["kind"] == "single"
    assert details["auc"] > 0.85
    assert details["auc_interval"][0] < details["auc"] <= details["auc_interval"][1]
    # The totals tell more than the components alone.
    assert details["components_auc"] < details["auc"]
    assert details["true_positives"] > 0.1
    for word in ("AUC", "1 % false positives", "components alone", "pool of 30"):
        assert word in str(leakage)
    assert "<600x16>" in repr(MembershipAttack(rest[100:700]))


@pytest.mark.journey
def test_larger_pools_tell_less_of_a_candidate():
    areas = []
    for n_pool in (20, 80, 320):
        transcript, pool, rest = digits(n_pool)
        candidates = np.vstack([pool[:100], rest[:100]])
        leakage = MembershipAttack(rest[100:700]).run(transcript, 0, candidates)
        areas.append(leakage.details["auc"])
    assert areas == sorted(areas, reverse=True)
    assert areas[0] > 0.9


def test_who_is_in_no_pool_is_not_found(one):
    """The negative control: two halves of the samples that nobody holds."""
    transcript, _, rest = one
    scores = MembershipAttack(rest[400:1000]).decide(
        transcript.view(0), rest[:400], SIZES
    )
    member = np.repeat([True, False], 200)
    value, low, high = area(scores, member)
    assert low < 0.5 < high
    assert abs(value - 0.5) < 0.1


@pytest.mark.journey
def test_a_neighbour_under_the_consensus():
    """The components, and its own samples, tell more of small pools than of large."""
    means = []
    for n_pool in (10, 200):
        areas = []
        for seed in range(8):
            transcript, pool, rest = digits(
                n_pool,
                seed=seed,
                protocol="consensus",
                encryption="simulated",
                adjacency="complete",
                max_iter=60,
            )
            candidates = np.vstack([pool[:100], rest[:100]])
            attack = MembershipAttack(rest[100:700])
            details = attack.run(transcript, 0, candidates).details
            areas.append(details["auc"])
        means.append(np.mean(areas))
    assert means[0] > 0.6
    assert means[1] < means[0]


@pytest.mark.journey
@pytest.mark.parametrize("adjacency", ["complete", "path"])
def test_answers_under_the_consensus_tell_more_than_the_components(adjacency):
    gained = []
    for seed in range(3):
        X = np.random.default_rng(seed).permutation(load_digits().data)
        own, pool, rest = X[:N_OWN], X[N_OWN:420], X[420:1620]
        model = PrivateDistributedNMF(
            10, adjacency=adjacency, encryption="simulated", tol=0, random_state=seed
        )
        transcript = record(model, [own, pool[:200], pool[200:]])
        candidates = np.vstack([pool[100:300], rest[:200]])
        details = MembershipAttack(rest[200:]).run(transcript, 0, candidates).details
        gained.append(details["auc"] - details["components_auc"])
    assert np.mean(gained) > 0.01


def test_a_neighbour_knows_the_gradient_over_all_others():
    """The oracle: gradients at the ends of iterations against the multipliers."""
    transcript, pool, rest = digits(
        protocol="consensus", encryption="simulated", adjacency="complete", max_iter=90
    )
    [evidence] = evidence_of_neighbour(transcript.view(0), SIZES, 4)
    for traces, others, point in zip(
        evidence.traces(pool),
        evidence.traces(rest[:N_POOL]),
        evidence._points,
        strict=True,
    ):
        total = point.total / point.deviation
        off = np.linalg.norm(traces.sum(axis=0) - total)
        wrong = np.linalg.norm(others.sum(axis=0) - total)
        assert off < 0.5 * wrong


def test_sides_are_those_that_the_agent_separates():
    X = np.random.default_rng(0).exponential(size=(12, 5))
    edges = np.zeros((5, 5))
    for i, j in ((0, 1), (1, 2), (2, 3), (2, 4), (3, 4)):
        edges[i, j] = edges[j, i] = 1
    model = PrivateDistributedNMF(
        2, partition=5, adjacency=edges, encryption="simulated", max_iter=8, tol=0
    )
    transcript = record(model.set_params(random_state=0), X)
    found = [[sorted(one) for one in sides(transcript.view(i))] for i in range(5)]
    assert found == [
        [[1, 2, 3, 4]],
        [[0], [2, 3, 4]],
        [[0, 1], [3, 4]],
        [[0, 1, 2, 4]],
        [[0, 1, 2, 3]],
    ]
    sizes = {0: 3, 1: 0, 2: 2, 4: 0, 3: 0}
    assert [e.n_samples for e in evidence_of_neighbour(transcript.view(1), sizes)] == [
        3,
        2,
    ]
    assert len(evidence_of_neighbour(transcript.view(2), sizes)) == 1


def test_the_ratio_is_that_of_normal_distributions():
    """The oracle: samples that are what is summed, of a known covariance."""

    class Plain:
        n_samples = 7
        noise = 0.0

        def __init__(self, total):
            self.total = total

        def traces(self, X):
            return X

        def inner(self, one, other):
            return one @ other.T

        def paired(self, one, other):
            return np.sum(one * other, axis=1)

        def with_sum(self, one):
            return one @ self.total

    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    references = rng.normal(size=(1500, 3)) @ root + 5.0
    covariance = root.T @ root
    mean = np.full(3, 5.0)
    samples = rng.normal(size=(50, 3)) @ root + 5.0
    total = samples[:7].sum(axis=0)
    found = LikelihoodRatio(Plain(total), references, 0)
    # With the sample, the six others' mean is that of the references.
    spread = multivariate_normal(cov=7 * covariance)
    expected = [
        spread.logpdf(total - 7 * mean - (x - mean)) - spread.logpdf(total - 7 * mean)
        for x in samples
    ]
    # As near as the mean of 1,000 references, taken seven times, allows.
    assert np.corrcoef(found.membership(samples), expected)[0, 1] > 0.98
    assert_allclose(found.membership(samples), expected, atol=0.4)
    # Of two samples: the difference of the two.
    expected = np.array(expected)
    second = found.second(samples[:25], samples[25:])
    assert np.corrcoef(second, expected[25:] - expected[:25])[0, 1] > 0.98


def test_traces_add_up_to_the_sum(one):
    transcript, pool, _ = one
    [evidence] = evidence_of(transcript.view(0), SIZES, 12)
    traces = evidence.traces(pool)
    inner = evidence.inner(traces, traces)
    assert_allclose(evidence.with_sum(traces), inner.sum(axis=1), rtol=1e-4)
    assert_allclose(evidence.paired(traces, traces), inner.diagonal(), rtol=1e-10)
    assert_allclose(solve_list(evidence, pool), np.ones(N_POOL), atol=1e-2)


def test_an_attack_is_handed_its_view_only(one, monkeypatch):
    transcript, pool, rest = one
    handed = []
    decide = MembershipAttack.decide

    def note(self, *given):
        handed.append(given)
        return decide(self, *given)

    monkeypatch.setattr(MembershipAttack, "decide", note)
    MembershipAttack().run(transcript, 0, np.vstack([pool, rest[:5]]))
    [(view, _, sizes)] = handed
    assert isinstance(view, AgentView)
    assert view.label == 0
    assert sizes == SIZES


def test_areas_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.integers(0, 9, size=60).astype(float)
        member = rng.random(60) < 0.4
        value, low, high = area(scores, member)
        assert value == pytest.approx(roc_auc_score(member, scores))
        assert low < value < high
    assert area(np.array([1.0, 0.0]), np.array([True, False])) == (1.0, 0.0, 1.0)


def test_intervals_hold_the_true_area():
    """Of 95 %, for two normal distributions whose area is known."""
    rng = np.random.default_rng(1)
    member = np.arange(200) < 80
    held = 0
    for _ in range(400):
        _, low, high = area(rng.normal(size=200) + member, member)
        held += low < 0.7602 < high
    assert 0.91 < held / 400 < 0.985


def test_true_positives_allow_one_false_in_a_hundred():
    scores = np.concatenate([[5.0, 3.0, 0.5], [4.0], np.zeros(99)])
    member = np.arange(103) < 3
    assert true_positives(scores, member) == 1.0
    assert true_positives(scores[:-1], member[:-1]) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, p, r: MembershipAttack(max_sums=0), "max_sums=0 should be >= 1"),
        (lambda t, p, r: MembershipAttack(r[:2]), "2 sample"),
        (lambda t, p, r: MembershipAttack().run(t, 9, p), "no agent 9"),
        (lambda t, p, r: MembershipAttack().run(t, 0, p), "30 of 30 candidates"),
        (lambda t, p, r: MembershipAttack().run(t, 0, r[:9]), "0 of 9 candidates"),
    ],
)
def test_what_cannot_be_decided(one, call, message):
    with pytest.raises(ValueError, match=message):
        call(*one)
