"""Agents with the right factor held fixed agree on the pooled solution."""

import numpy as np
import pytest
from _helpers import GRAPHS, drive, make_agents, random_start, split_parts
from _paillier_keys import MASKINGS
from scipy.optimize import nnls

from skppdnmf._nmf import admm as _admm

K, F = 3, 6


@pytest.fixture
def hold_right(monkeypatch):
    """Keep each agent's right factor where it is put."""

    def hold(agents, rights):
        monkeypatch.setattr(_admm, "right_factor", lambda state, *_: state)
        for agent, W in zip(agents, rights, strict=True):
            agent.factors.right = _admm.RightState(W, W, np.zeros_like(W))
        return agents

    return hold


def fix_right(parts, n_components, seed=0, silent=()):
    """Right factors, and the pooled nonnegative least squares solution."""
    rng = np.random.default_rng([seed, 2])
    rights = [rng.exponential(size=(len(X), n_components)) for X in parts]
    for X, W in zip(parts, rights, strict=True):
        # Some components are of no use for some features: the constraint binds.
        X[:, :2] *= np.exp(-W[:, :1])
    for i in silent:
        rights[i][:] = 0
    W, X = np.vstack(rights), np.vstack(parts)
    pooled = np.column_stack([nnls(W, column)[0] for column in X.T])
    assert (pooled == 0).any()
    return rights, pooled


def distances(reports, pooled):
    return [
        np.linalg.norm(history[-1].H - pooled) / np.linalg.norm(pooled)
        for history in reports
    ]


# One BCD iteration with many ADMM iterations: the right factor is held fixed, no
# tolerance ends the loop, and extrapolation begins with the third iteration only.
LONG = {"max_iter": 1, "tol": 0.0}


@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize("name", GRAPHS)
def test_left_factors_converge_to_the_pooled_solution(name, masking, hold_right):
    parts = split_parts([1, 40, 2, 9, 20, 4], F, seed=1)
    rights, pooled = fix_right(parts, K)
    agents = make_agents(
        name,
        parts,
        random_start(K, F),
        masking=masking,
        max_admm_iter=1500,
        **LONG,
    )
    reports, _ = drive(hold_right(agents, rights))
    assert max(distances(reports, pooled)) < 1e-6


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_consensus_does_not_depend_on_the_scale(scale, hold_right):
    parts = [scale * X for X in split_parts([2, 20, 7], F, seed=2)]
    rights, pooled = fix_right(parts, K)
    rights = [np.sqrt(scale) * W for W in rights]
    agents = make_agents(
        "path",
        parts,
        np.sqrt(scale) * random_start(K, F),
        max_admm_iter=1000,
        **LONG,
    )
    reports, _ = drive(hold_right(agents, rights))
    assert max(distances(reports, pooled / np.sqrt(scale))) < 1e-6


@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize("name", ["path", "star", "random"])
def test_relays_and_silent_agents_reach_the_same_left_factor(name, masking, hold_right):
    parts = split_parts([12, 0, 7, 5, 30], F, seed=3)
    parts[3][:] = 0
    rights, pooled = fix_right(parts, K, silent=[3])
    agents = make_agents(
        name,
        parts,
        random_start(K, F),
        masking=masking,
        max_admm_iter=2500,
        **LONG,
    )
    reports, _ = drive(hold_right(agents, rights))
    assert max(distances(reports, pooled)) < 1e-6


def test_fixed_point_costs_no_more_than_its_quantum(hold_right):
    parts = split_parts([3, 10, 6], F, seed=4)
    rights, pooled = fix_right(parts, K)
    agents = make_agents(
        "path",
        parts,
        random_start(K, F),
        "simulated",
        n_max=1e9,
        max_admm_iter=600,
        **LONG,
    )
    reports, _ = drive(hold_right(agents, rights))
    assert max(distances(reports, pooled)) < 1e-6


def test_published_update_does_not_reach_consensus(hold_right):
    parts = split_parts([3, 10, 6], F, seed=4)
    rights, pooled = fix_right(parts, K)
    agents = make_agents(
        "path",
        parts,
        random_start(K, F),
        update="published",
        penalty_scaling="absolute",
        g_max=0.5,
        masking="scalar",
        max_admm_iter=1000,
        **LONG,
    )
    reports, _ = drive(hold_right(agents, rights))
    assert max(distances(reports, pooled)) > 0.05


def test_relay_and_zero_agent_in_a_whole_fit():
    parts = split_parts([12, 0, 9, 6], F, seed=5)
    parts[3][:] = 0
    agents = make_agents("star", parts, random_start(K, F), max_iter=60)
    reports, _ = drive(agents)
    copies = np.stack([history[-1].H for history in reports])
    mean = copies.mean(axis=0)
    assert np.linalg.norm(copies - mean) < 0.01 * np.linalg.norm(mean)
    assert np.isfinite(copies).all()
    assert reports[1][-1].squared_error == reports[3][-1].squared_error == 0
    # They hold their copy of the left factor nonnegative by a penalty of their own.
    for agent in (agents[1], agents[3]):
        assert 0 < agent.factors._mu < agents[0].factors._mu


def test_all_agents_without_data():
    agents = make_agents("ring", split_parts([0, 0, 0], F), random_start(K, F))
    reports, _ = drive(agents)
    for history in reports:
        assert len(history) == 4
        assert np.isfinite(history[-1].H).all()
