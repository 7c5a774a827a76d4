import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from skppdnmf import PrivateDistributedNMF
from skppdnmf._consensus.agent import ConsensusAgent
from skppdnmf._consensus.balance import HIGHEST_LEVEL, Balance, Levels, level
from skppdnmf._consensus.settings import AgentSettings
from skppdnmf._data.graph import make_network
from skppdnmf.audit import record


def settings(network=None, **changes):
    """What agents agree upon, as far as the balance reads it."""
    network = network or make_network("path", 2)
    return AgentSettings(
        **{
            "n_agents": network.n_agents,
            "diameter": network.diameter,
            "connectivity": 1.0,
            "averaging": None,
            "leader": 0,
            "leader_eccentricity": 1,
            "mu": 1.0,
            "eta": 1.0,
            "g_max": 1.0,
            "penalty_scaling": "data",
            "update": "proximal",
            "masking": "entrywise",
            "n_max": 1e6,
            "key_size": 2048,
            "max_iter": 200,
            "max_admm_iter": 5,
            "tol": 0.0,
            **changes,
        }
    )


def run(network, distances, n_rounds=5, **changes):
    """Balances of all agents after iterations with these distances of each agent."""
    sides = [Balance(settings(network, **changes)) for _ in range(network.n_agents)]
    for iteration, row in enumerate(distances, start=1):
        for _ in range(n_rounds):
            sent = [side.levels for side in sides]
            for i, side in enumerate(sides):
                for j in network.neighbours[i]:
                    side.hear(sent[j])
            for side in sides:
                side.end_round()
        for side, (apart, moved) in zip(sides, row, strict=True):
            side.end_iteration(iteration, apart, moved)
    return sides


@given(st.floats(0, allow_infinity=True), st.floats(0, allow_infinity=True))
def test_levels_are_bytes_in_the_order_of_sizes(one, other):
    low, high = sorted([one, other])
    assert 0 <= level(low) <= level(high) <= HIGHEST_LEVEL
    assert (level(low) == 0) == (low == 0)


@given(st.floats(2.0**-40, 2.0**10))
def test_a_level_is_a_quarter_of_an_octave(size):
    assert abs(2.0 ** ((level(size) - 200) / 4) / size - 1) < 0.1


@pytest.mark.parametrize("kind", ["path", "ring", "star", "complete"])
@pytest.mark.parametrize("n_rounds", [1, 3, 5])
def test_all_agents_draw_the_same_conclusion(kind, n_rounds):
    rng = np.random.default_rng(0)
    network = make_network(kind, 8)
    distances = rng.lognormal(-3, 2, (30, 8, 2))
    for n_iter in (5, 17, 30):
        sides = run(network, distances[:n_iter], n_rounds)
        assert len({side.pull for side in sides}) == 1
        assert len({side.best_iteration for side in sides}) == 1
        assert len({side.given_up for side in sides}) == 1
    assert sides[0].pull.strength != 1.0


def test_nothing_is_concluded_before_all_have_heard():
    network = make_network("path", 8)
    far = np.full((2, 8, 2), [0.5, 0.01])
    assert {side.pull.strength for side in run(network, far, 3)} == {1.0}
    assert {side.pull.strength for side in run(network, far, 7)} != {1.0}


def test_far_copies_pull_harder_and_close_ones_less():
    network = make_network("ring", 4)
    far, close = (np.full((20, 4, 2), [apart, 0.1]) for apart in (0.5, 0.01))
    assert run(network, far)[0].pull.strength > 4
    assert run(network, close)[0].pull.strength < 0.25


def test_towards_the_end_copies_are_to_be_closer():
    network = make_network("ring", 4)
    same = np.full((40, 4, 2), [0.06, 0.1])
    early = run(network, same, max_iter=1000)[0].pull.strength
    late = run(network, same, max_iter=45)[0].pull.strength
    assert early == pytest.approx(1.0, abs=0.3)
    assert late > 1.5 * early


@pytest.mark.parametrize("apart", [0.0, 1e300, float("inf")])
def test_pull_stays_within_bounds(apart):
    network = make_network("ring", 4)
    strength = run(network, np.full((190, 4, 2), [apart, 1e-9]))[0].pull.strength
    assert 2.0**-5 <= strength <= 2.0**7


@pytest.mark.parametrize(
    "changes", [{"penalty_scaling": "absolute"}, {"update": "published"}]
)
def test_fixed_penalties_stay_fixed(changes):
    network = make_network("ring", 4)
    side = run(network, np.full((20, 4, 2), [0.5, 0.1]), **changes)[0]
    assert side.pull.strength == 1.0
    assert side.levels == Levels()


def parting(n_iter, after=20):
    """Distances of copies that agree and then part for good."""
    rows = np.full((n_iter, 4, 2), [1e-3, 1e-3])
    rows[after:, 1, 0] = 0.3
    return rows


def test_copies_that_part_are_answered_and_then_given_up():
    network = make_network("ring", 4)
    before = run(network, parting(21))[0]
    assert before.pull.extrapolated
    assert not before.parted
    after = run(network, parting(22))[0]
    assert after.parted
    assert not after.pull.extrapolated
    assert after.pull.strength > 1.9 * before.pull.strength
    assert not run(network, parting(60))[0].given_up
    last = run(network, parting(70))[0]
    assert last.given_up
    assert last.best_iteration == 20


def test_copies_that_come_together_again_are_not_given_up():
    rows = parting(90)
    rows[30:40] = rows[60:70] = rows[0]
    side = run(make_network("ring", 4), rows)[0]
    assert not side.given_up
    assert side.parted


def test_small_disagreement_is_no_parting():
    rows = parting(60)
    rows[20:, :, 0] = 8e-3  # eight times as much, and still below 1 %
    side = run(make_network("ring", 4), rows)[0]
    assert not side.parted
    assert side.pull.extrapolated


def parted_fit(monkeypatch, after):
    """A fit whose agents believe that they part after so many iterations."""
    measure = Balance.end_iteration
    kept = []

    def believed(self, iteration, apart, moved):
        measure(self, iteration, 0.5 if iteration > after else 1e-4, moved)

    monkeypatch.setattr(Balance, "end_iteration", believed)
    monkeypatch.setattr(
        ConsensusAgent,
        "_begin_iteration",
        lambda self, outbox, begin=ConsensusAgent._begin_iteration: (
            kept.append((self.number, self.factors.iteration, self.factors._H)),
            begin(self, outbox),
        )[1],
    )
    X = np.random.default_rng(0).exponential(size=(30, 8))
    model = PrivateDistributedNMF(
        3, partition=3, encryption="simulated", tol=0, max_iter=100, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="copies of the left factor parted"):
        model.fit(X)
    return model, kept


def test_fit_ends_with_the_factors_that_agreed_best(monkeypatch):
    model, kept = parted_fit(monkeypatch, after=25)
    assert model.n_iter_ < 100
    copies = [H for _, iteration, H in kept if iteration == 25]
    np.testing.assert_array_equal(
        np.sort(model.agent_components_, 0), np.sort(copies, 0)
    )
    np.testing.assert_allclose(model.components_, np.mean(copies, axis=0))


def test_links_pull_harder_where_agents_differ():
    """Samples like gene expression, of which every agent has few."""
    rng = np.random.default_rng(1)
    H = rng.lognormal(0, 1.5, (3, 300))
    W = rng.dirichlet([0.5] * 3, 38) * rng.lognormal(0, 0.3, (38, 1))
    X = np.maximum(100 * (W @ H) * rng.lognormal(0, 1.0, (38, 300)), 20)
    model = PrivateDistributedNMF(
        3, partition=4, encryption="simulated", tol=0, random_state=0
    ).fit(X)
    assert model.consensus_error_ < 1e-3


def test_record_tells_what_was_agreed():
    X = np.random.default_rng(0).exponential(size=(24, 8))
    model = PrivateDistributedNMF(
        3, partition=3, encryption="simulated", tol=0, max_iter=10, random_state=0
    )
    transcript = record(model, X)
    pulls = [
        [one.pull for one in transcript.view(label).left_rounds]
        for label in transcript.agents
    ]
    assert pulls[0] == pulls[1] == pulls[2]
    assert len(set(pulls[0])) > 5


@pytest.mark.parametrize(("n_max", "stays"), [(30, True), (1e6, False)])
def test_rounding_is_no_reason_to_pull(n_max, stays):
    X = np.random.default_rng(0).exponential(size=(30, 8))
    model = PrivateDistributedNMF(
        3, partition=3, encryption="simulated", tol=0, random_state=0, n_max=n_max
    )
    rounds = record(model, X).view(0).left_rounds
    late = {one.pull.strength for one in rounds if one.iteration >= 40}
    assert (len(late) == 1) == stays
