"""What the attacks on a neighbour recover, and what they do not: both sides."""

import numpy as np
import pytest
from _audit import ATTACKER, VICTIM, attack, data, model, transcript
from numpy.testing import assert_allclose

from skppdnmf._consensus.factors import Factors
from skppdnmf.audit import (
    GcdAttack,
    JointMaskAttack,
    LeastSquaresAttack,
    SimulationAttack,
    record,
)
from skppdnmf.audit._attacks.equations import FirstIteration
from skppdnmf.audit._attacks.gcd import scalar_mask
from skppdnmf.audit._attacks.leakage import score
from skppdnmf.audit._attacks.replay import Replay, own_values
from skppdnmf.exchange import (
    MASK_BITS,
    MaskStream,
    SlotLayout,
    draw_secrets,
    mask_range,
)

SEEDS = (0, 2, 3)
MASK_UNIT = 2.0**12


def left_factors(one):
    """The victim's own U of each exchange: the truth."""
    return own_values(one.view(VICTIM))


# The greatest common divisor ----------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_gcd_finds_every_mask_without_dither_and_none_with_it(seed):
    without = attack(GcdAttack(), seed=seed, masking="scalar", dither=False)
    assert without.details == {"found": 60, "rounds": 60}
    assert (without.error, without.recovered) == (0.0, 1.0)
    with_it = attack(GcdAttack(), seed=seed, masking="scalar")
    assert with_it.details == {"found": 0, "rounds": 60}
    assert (with_it.error, with_it.recovered) == (1.0, 0.0)


def test_gcd_finds_no_entrywise_mask_even_without_dither():
    leakage = attack(GcdAttack(), masking="entrywise", dither=False)
    assert leakage.details["found"] == 0


def test_gcd_tells_the_masks_themselves():
    leakage = attack(GcdAttack(), masking="scalar", dither=False)
    one = transcript(masking="scalar", dither=False)
    left = [r.number for r in one.view(VICTIM).left_rounds]
    masks = one.masks(VICTIM, ATTACKER)
    assert [int(masks[n][0]) for n in left] == leakage.reconstruction.tolist()


def test_gcd_takes_only_what_can_be_a_mask():
    least, most = mask_range(MASK_BITS)
    possible = [
        factor
        for factor in range(1, 2**MASK_BITS + 2)
        if scalar_mask(np.array([factor * -7.0, factor * 5.0])) == factor
    ]
    assert possible == list(range(least, most + 1, 2))
    leakage = attack(GcdAttack(), masking="scalar")
    assert leakage.guess_error == 1 - 1 / len(possible)
    drawn, _ = draw_secrets(
        [MaskStream()], SlotLayout(2000, 24, MASK_BITS, "entrywise", 2048)
    )
    assert {int(mask) for mask in drawn[0]} <= set(possible)


# Least squares ------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("masks", "setting"),
    [
        ("found", {"masking": "scalar", "dither": False}),
        ("known", {"masking": "scalar"}),
        ("known", {"masking": "entrywise"}),
    ],
)
def test_least_squares_recovers_a_sample_under_known_masks(masks, setting, seed):
    leakage = attack(LeastSquaresAttack(masks), seed=seed, **setting)
    assert leakage.target == "samples"
    assert leakage.error < 0.01
    assert leakage.recovered > 0.95
    assert leakage.guess_error > 0.2


@pytest.mark.parametrize("masking", ["entrywise", "scalar"])
def test_least_squares_fails_under_masks_that_it_does_not_know(masking):
    """Entrywise masks, and scalar ones that the dither hides.

    By luck it may find a part, for the mean of the masks is not always far off.
    """
    leakages = [
        attack(LeastSquaresAttack(n_samples=1), seed=seed, masking=masking)
        for seed in range(5)
    ]
    assert np.median([one.error / one.guess_error for one in leakages]) > 0.75
    if masking == "entrywise":
        assert sum(one.error > 0.5 * one.guess_error for one in leakages) >= 3
    assert min(one.error for one in leakages) > 0.05
    assert {one.details["found"] for one in leakages} == {0}


@pytest.mark.parametrize("n_samples", [2, 3])
def test_least_squares_finds_all_moments_of_few_samples(n_samples):
    known = LeastSquaresAttack("known", n_samples=n_samples)
    leakage = attack(known, n_samples=n_samples)
    assert leakage.target == "moments"
    # As many samples as components: nothing of them is out of sight.
    assert leakage.error < 0.02


def test_least_squares_sees_the_projection_of_many_samples():
    """The oracle: ``B^T A^+ B`` with the victim's true right factor."""
    leakage = attack(LeastSquaresAttack("known", n_samples=20), n_samples=20)
    one = transcript(n_samples=20)
    replay = Replay(one.view(ATTACKER), VICTIM, 1)
    assert replay.n_rounds == 1
    X = one.view(VICTIM).X
    W = first_right_factor(one)
    projected = X.T @ W @ np.linalg.pinv(W.T @ W) @ W.T @ X / 20
    assert_allclose(leakage.reconstruction, projected, rtol=1e-3, atol=1e-3)
    assert 0.001 < leakage.error < 0.2


def first_right_factor(one):
    """The victim's W for the common start, as it solved for it."""
    public = one.public
    n_neighbours = len(public.neighbours(VICTIM))
    X = one.view(VICTIM).X
    factors = Factors(X, public.start, n_neighbours, public.settings, "victim")
    factors.measure(public.unit)
    return factors.right.W


def test_equations_hold_for_the_true_masks():
    one = transcript(masking="scalar")
    view = one.view(ATTACKER)
    equations = FirstIteration(view, VICTIM)
    masks = one.masks(VICTIM, ATTACKER)
    factors = np.array([masks[r.number][0] for r in view.left_rounds[:5]]) / MASK_UNIT
    solution = equations.solve(factors)
    assert np.linalg.norm(solution.residual) < 1e-3
    W = first_right_factor(one)
    assert_allclose(solution.A, W.T @ W, atol=1e-3 * np.max(W.T @ W))
    wrong = equations.solve(factors[::-1])
    assert np.linalg.norm(wrong.residual) > 0.05


@pytest.mark.parametrize(
    "parameters",
    [
        {"update": "published"},
        {"penalty_scaling": "absolute", "mu": 0.5, "g_max": 1.0},
        {"alpha_W": 0.01, "alpha_H": 5.0, "l1_ratio": 0.5},
        {"init": "random", "max_admm_iter": 3},
    ],
    ids=["published", "absolute", "regularised", "three rounds"],
)
def test_equations_of_other_settings(parameters):
    leakage = attack(
        LeastSquaresAttack("known", n_samples=1), max_iter=1, seed=2, **parameters
    )
    assert leakage.error < 0.02


def test_one_round_is_not_enough():
    leakage = attack(LeastSquaresAttack("known"), max_iter=1, max_admm_iter=1)
    assert "one round" in leakage.details["failed"]
    assert leakage.recovered == 0
    leakage = attack(JointMaskAttack(), max_iter=1, max_admm_iter=1)
    assert "fewer equations" in leakage.details["failed"]


# The joint fit ------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_joint_fit_recovers_under_scalar_masks_with_dither_only(seed):
    scalar = attack(JointMaskAttack(), seed=seed, masking="scalar")
    assert scalar.error < 0.01
    one = transcript(seed=seed, masking="scalar")
    masks = one.masks(VICTIM, ATTACKER)
    truth = [masks[r.number][0] for r in one.view(ATTACKER).left_rounds[:5]]
    assert_allclose(scalar.details["factors"], truth, rtol=1e-3)


def test_joint_fit_fails_under_entrywise_masks():
    """One run may come near by luck: for masks it cannot know it takes any."""
    shares = []
    for seed in range(6):
        leakage = attack(JointMaskAttack(8, n_samples=1), seed=seed)
        shares.append(leakage.error / leakage.guess_error)
    assert np.median(shares) > 0.9


def test_joint_fit_finds_moments_of_many_samples_under_scalar_masks():
    leakage = attack(JointMaskAttack(n_samples=20), n_samples=20, masking="scalar")
    assert leakage.recovered > 0.9


# The simulation -----------------------------------------------------------------


@pytest.mark.parametrize("masking", ["entrywise", "scalar"])
def test_replay_of_the_truth_is_the_victim(masking):
    one = transcript(masking=masking)
    replay = Replay(one.view(ATTACKER), VICTIM)
    U = replay(one.view(VICTIM).X)
    truth = left_factors(one)
    assert U.shape == truth.shape == (60, 3, 12)
    assert np.abs(U - truth).max() < 1e-3 * np.abs(truth).max()
    wrong = replay(1.1 * one.view(VICTIM).X)
    assert np.abs(wrong - truth).max() > 1e-2 * np.abs(truth).max()


@pytest.mark.parametrize(
    "parameters",
    [
        {"tol": 0.1, "max_iter": 40, "max_admm_iter": 12},
        {"alpha_W": 0.01, "alpha_H": 0.02, "l1_ratio": 0.5},
        {"penalty_scaling": "absolute"},
        {"update": "published"},
    ],
    ids=["tolerance", "regularised", "absolute", "published"],
)
def test_replay_under_other_settings(parameters):
    X, agents = data()
    one = record(model(**parameters), X, agents)
    view = one.view(ATTACKER)
    U = Replay(view, VICTIM)(one.view(VICTIM).X)
    truth = left_factors(one)
    if "tol" in parameters:  # some loops ended before their limit
        counts = np.bincount([r.iteration for r in view.left_rounds])
        assert 1 < counts.min() < counts.max() == 12
    assert np.abs(U - truth).max() < 1e-3 * np.abs(truth).max()


@pytest.mark.parametrize("seed", SEEDS)
def test_simulation_recovers_a_sample_under_entrywise_masks(seed):
    leakage = attack(SimulationAttack(n_samples=1), seed=seed, masking="entrywise")
    assert leakage.target == "samples"
    assert leakage.error < 0.05
    assert leakage.recovered > 0.9
    assert leakage.details["rounds"] == 60


def test_simulation_fits_scalar_masks_exactly():
    errors = [
        attack(SimulationAttack(1, max_rounds=20), seed=seed, masking="scalar").error
        for seed in range(5)
    ]
    assert np.median(errors) < 1e-4
    assert max(errors) < 0.05


def test_simulation_finds_out_that_there_is_one_sample():
    leakage = attack(SimulationAttack())
    assert leakage.details["n_samples"] == 1
    assert leakage.error < 0.05


def test_references_stand_in_for_samples_of_its_own():
    """An attacker without samples starts from those of others."""
    X, agents = data(1)
    agents[agents == ATTACKER] = 0  # a relay
    graph = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    estimator = model(2, masking="entrywise", adjacency=graph)
    one = record(estimator.set_params(max_iter=20), X, agents)
    simulation = SimulationAttack(1, references=X[:60])
    leakage = simulation.run(one, ATTACKER, VICTIM)
    blind = SimulationAttack(1).run(one, ATTACKER, VICTIM)
    assert leakage.error < 0.1
    assert leakage.error <= blind.error + 0.02
    assert "references=<60x12>" in repr(simulation)


@pytest.mark.journey
def test_simulation_finds_moments_but_not_the_samples_of_several():
    one = transcript(n_samples=4, n_components=2)
    view = one.view(ATTACKER)
    simulation = SimulationAttack(n_samples=4, max_rounds=45, n_starts=1, max_steps=15)
    found = simulation.reconstruct(view, VICTIM)
    moments = score("simulation", one, view, VICTIM, found)
    assert moments.target == "moments"
    assert moments.recovered > 0.8
    samples = score("simulation", one, view, VICTIM, found, "samples")
    assert samples.error > 3 * moments.error


def test_fewer_rounds_leak_less():
    few = [attack(SimulationAttack(1, max_rounds=1), seed=seed).error for seed in SEEDS]
    many = [
        attack(SimulationAttack(1, max_rounds=30, n_starts=1), seed=seed).error
        for seed in SEEDS
    ]
    assert np.median(few) > 0.05 > 5 * np.median(many)


@pytest.mark.parametrize("adjacency", ["ring", "complete"])
def test_more_neighbours_leak_less(adjacency):
    """Of a second neighbour's messages the attacker sees nothing."""
    simulation = SimulationAttack(1, n_starts=1)
    several = [
        attack(simulation, seed=seed, adjacency=adjacency).recovered for seed in SEEDS
    ]
    assert np.median(several) < 0.7
    joint = JointMaskAttack(4, n_samples=1)
    several = [
        attack(joint, seed=seed, adjacency=adjacency, masking="scalar").recovered
        for seed in SEEDS
    ]
    assert np.median(several) < 0.9


def test_the_prior_does_not_stand_for_the_data():
    """Answers of another victim lead away from this one's sample."""
    here, there = transcript(seed=0), transcript(seed=0, data_seed=2)
    found = SimulationAttack(1).reconstruct(there.view(ATTACKER), VICTIM).samples
    truth = here.view(VICTIM).X
    assert np.linalg.norm(found - truth) > 0.2 * np.linalg.norm(truth)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LeastSquaresAttack("guessed"), "masks='guessed' should be"),
        (lambda: JointMaskAttack(0), "n_starts=0 should be >= 1"),
        (lambda: SimulationAttack(0), "n_samples=0 should be >= 1"),
        (lambda: SimulationAttack(max_rounds=0), "max_rounds=0 should be >= 1"),
    ],
)
def test_invalid_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_unknown_targets():
    with pytest.raises(ValueError, match="target='all' should be one of"):
        attack(LeastSquaresAttack(target="all"))


def test_reprs_tell_the_parameters():
    assert repr(GcdAttack()) == "GcdAttack()"
    text = repr(LeastSquaresAttack("known", n_samples=2))
    assert text == "LeastSquaresAttack(masks='known', n_samples=2, target='auto')"
