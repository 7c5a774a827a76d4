import numpy as np
import pytest
from _helpers import (
    GRAPHS,
    assert_same_reports,
    drive,
    make_agents,
    random_start,
    split_parts,
)
from _paillier_keys import MASKINGS
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from skppdnmf._agent import Departure, Step
from skppdnmf._data.graph import make_network
from skppdnmf._fit.history import history_row
from skppdnmf.exceptions import DropoutError
from skppdnmf.exchange import KEY, REQUEST, WIDEN

SIZES = (1, 40, 3, 12, 7)  # samples of the agents
K, F = 3, 6


# Messages in any order ----------------------------------------------------------

VARIANTS = {
    "plain": {"encryption": None},
    "scalar": {"encryption": None, "masking": "scalar"},
    "absolute": {"encryption": None, "penalty_scaling": "absolute"},
    "published": {"encryption": None, "update": "published"},
    "stopping": {"encryption": None, "tol": 0.02, "max_iter": 40, "max_admm_iter": 12},
    "simulated": {"encryption": "simulated"},
    "paillier": {"encryption": "paillier", "max_iter": 2, "max_admm_iter": 2},
}


CASES = [
    (variant, name)
    for variant in VARIANTS
    for name in (("random", "path") if variant == "paillier" else GRAPHS)
]


@pytest.mark.parametrize(("variant", "name"), CASES)
def test_order_and_delay_of_messages_do_not_show(variant, name):
    parts, start = split_parts(SIZES, F), random_start(K, F)
    expected, in_order = drive(make_agents(name, parts, start, **VARIANTS[variant]))
    for seed in range(3 if variant != "paillier" else 1):
        agents = make_agents(name, parts, start, **VARIANTS[variant])
        reports, sent = drive(agents, np.random.default_rng(seed))
        assert_same_reports(reports, expected)
        assert len(sent) == len(in_order)
        assert sum(e.n_bytes for e in sent) == sum(e.n_bytes for e in in_order)


@pytest.mark.parametrize("encryption", ["simulated", "paillier"])
def test_order_of_messages_does_not_show_while_slots_widen(encryption):
    """Tiny starts make narrow slots, which the left factor soon outgrows."""
    parts = [1000 * X for X in split_parts([1, 12, 0, 5], F)]
    parameters = {
        "encryption": encryption,
        "penalty_scaling": "absolute",
        "mu": 5.0,
        "max_iter": 2,
        "max_admm_iter": 3,
    }
    start = 1e-3 * random_start(K, F)
    expected, in_order = drive(make_agents("ring", parts, start, **parameters))
    assert any(envelope.kind == WIDEN for envelope in in_order)
    for seed in range(3):
        agents = make_agents("ring", parts, start, **parameters)
        reports, _ = drive(agents, np.random.default_rng(seed))
        assert_same_reports(reports, expected)


@pytest.mark.parametrize("masking", MASKINGS)
def test_simulated_and_encrypted_agents_are_bit_identical(masking):
    parts, start = split_parts([2, 9, 5], F), random_start(K, F)
    runs = [
        drive(
            make_agents(
                "path", parts, start, kind, masking=masking, max_iter=2, max_admm_iter=3
            )
        )
        for kind in ("simulated", "paillier")
    ]
    assert_same_reports(runs[0][0], runs[1][0])
    weights = [
        sorted((*e[2:6], e.n_bytes, e.n_ciphertexts) for e in sent) for _, sent in runs
    ]
    assert weights[0] == weights[1]


# Scale, stopping, what crosses --------------------------------------------------


@pytest.mark.parametrize("name", GRAPHS)
def test_all_agents_adopt_the_leaders_scale(name):
    parts = split_parts(SIZES, F)
    agents = make_agents(name, parts, random_start(K, F), max_iter=1)
    drive(agents)
    scales = {agent.factors.scale for agent in agents}
    assert len(scales) == 1
    sizes = [
        np.trace(agent.factors.right.W.T @ agent.factors.right.W) / K
        for agent in agents
    ]
    assert min(sizes) / 3 < scales.pop() < 3 * max(sizes)


@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize("sizes", [[8, 3, 12, 5], [8, 0, 12, 5], [0, 0, 12, 0]])
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_scale_of_the_data_does_not_show(masking, sizes, factor):
    parts, start = split_parts(sizes, F, seed=8), random_start(K, F)
    expected, scaled = (
        drive(make_agents("path", data, start, masking=masking, max_iter=10))[0]
        for data in (parts, [factor * X for X in parts])
    )
    for mine, theirs in zip(scaled, expected, strict=True):
        np.testing.assert_allclose(mine[-1].H, theirs[-1].H, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("name", GRAPHS)
def test_agents_stop_in_the_same_iteration(name):
    parts, start = split_parts(SIZES, F), random_start(K, F)
    agents = make_agents(name, parts, start, max_iter=400, max_admm_iter=10, tol=0.01)
    reports, _ = drive(agents)
    lengths = {len(history) for history in reports}
    assert len(lengths) == 1
    assert lengths.pop() < 400
    for history in reports:
        assert history[-1].stopped
        assert not history[0].stopped


def test_agents_that_stop_early_do_not_keep_the_others_from_stopping():
    parts, start = split_parts([2, 11, 1, 6], 5), random_start(K, 5)
    parameters = {"max_iter": 300, "max_admm_iter": 10, "tol": 0.02}
    reports, _ = drive(make_agents("complete", parts, start, **parameters))
    assert len(reports[0]) < 300


def test_tolerance_of_zero_runs_all_iterations():
    parts, start = split_parts([4, 5], F), random_start(K, F)
    reports, sent = drive(make_agents("path", parts, start, max_iter=3))
    assert [len(history) for history in reports] == [3, 3]
    assert reports[0][-1].n_exchanges == 3 * 5
    requests = [e for e in sent if e.sender == 0 and e.kind == REQUEST]
    assert [e.round for e in requests] == list(range(len(requests)))


def test_inner_loop_stops_early_for_all():
    parts, start = split_parts(SIZES, F), random_start(K, F)
    parameters = {"max_iter": 30, "max_admm_iter": 40, "tol": 0.05}
    reports, _ = drive(make_agents("path", parts, start, **parameters))
    exchanges = [history[-1].n_exchanges for history in reports]
    assert len(set(exchanges)) == 1
    assert exchanges[0] < len(reports[0]) * 40


@pytest.mark.parametrize("name", ["ring", "path"])
def test_a_raised_flag_does_not_undo_agreement(name):
    """One agent meets the tolerance long before the others."""
    parts, start = split_parts((1, 40, 3, 12, 7), 6), random_start(3, 6)
    reports, _ = drive(make_agents(name, parts, start, max_iter=600, tol=1e-4))
    copies = np.array([history[-1].H for history in reports])
    spread = np.linalg.norm(copies - copies.mean(axis=0)) / np.linalg.norm(copies)
    assert spread < 2e-3


def stop_early(name, n, seed, who=None, max_iter=400):
    """Ask some agents to stop, each at a time of its own; everything arrives late.

    Returns
    -------
    parts, parameters : list, dict
        Of the fit.
    reports : list of lists
        Each agent's reports.
    asked : int
        Iterations that any agent had finished when the first was asked.
    """
    rng = np.random.default_rng(seed)
    parts = split_parts(rng.integers(0, 6, size=n), 3, seed)
    parameters = {"max_iter": max_iter, "max_admm_iter": int(rng.integers(1, 5))}
    agents = make_agents(name, parts, random_start(2, 3), seed=seed, **parameters)
    who = range(n) if who == "all" else rng.permutation(n)[: rng.integers(1, n + 1)]
    times = {int(i): int(rng.integers(0, 60 * n)) for i in who}
    turn, asked = 0, None

    def ask(reports):
        nonlocal turn, asked
        for i in (i for i, when in times.items() if when == turn):
            asked = max(map(len, reports)) if asked is None else asked
            agents[i].stop()
        turn += 1

    reports, _ = drive(agents, np.random.default_rng(seed), meanwhile=ask)
    return parts, parameters, reports, asked


@pytest.mark.journey
@given(
    st.sampled_from(GRAPHS),
    st.integers(1, 6),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["all", "some"]),
)
@settings(deadline=None, max_examples=40)
def test_all_stop_in_the_same_iteration_when_some_are_asked(name, n, seed, who):
    parts, parameters, reports, asked = stop_early(name, n, seed, who)
    (length,) = {len(history) for history in reports}
    diameter = make_network(name, n, seed).diameter
    # Word reaches all, and then word of its having reached all.
    soon = -(-2 * (diameter + 1) // parameters["max_admm_iter"])
    assert length <= asked + 2 + soon < 400
    for history in reports:
        assert not any(report.stopped for report in history)
        assert [report.final for report in history] == [False] * (length - 1) + [True]
    # Nothing else has changed.
    shorter = {**parameters, "max_iter": length}
    agents = make_agents(name, parts, random_start(2, 3), seed=seed, **shorter)
    assert_same_reports(reports, drive(agents)[0])


def test_a_fit_that_is_asked_to_stop_may_have_converged():
    parts, start = split_parts(SIZES, F), random_start(K, F)
    parameters = {"max_iter": 400, "max_admm_iter": 10, "tol": 0.01}
    expected, _ = drive(make_agents("path", parts, start, **parameters))
    agents = make_agents("path", parts, start, **parameters)
    n_before = len(expected[0])

    def ask(reports):
        if len(reports[0]) == n_before - 1:
            agents[0].stop()

    reports, _ = drive(agents, meanwhile=ask)
    assert_same_reports(reports, expected)
    assert all(history[-1].stopped for history in reports)


@pytest.mark.parametrize("observed", [True, False])
def test_only_who_observes_is_told_more(observed):
    agents = make_agents(
        "path", split_parts(SIZES, F), random_start(K, F), observed=observed
    )
    reports, _ = drive(agents)
    for report in (report for history in reports for report in history):
        assert (report.witness is not None) == observed
    others = make_agents(
        "path", split_parts(SIZES, F), random_start(K, F), observed=not observed
    )
    for mine, theirs in zip(reports, drive(others)[0], strict=True):
        for one, other in zip(mine, theirs, strict=True):
            assert one[:2] == other[:2]
            np.testing.assert_array_equal(one.H, other.H)
            assert one[3:6] == other[3:6]


@pytest.mark.parametrize("penalties", [{}, {"right_alpha": 0.1, "left_alpha": 0.1}])
@pytest.mark.parametrize("name", GRAPHS)
def test_witnesses_give_the_shared_error(name, penalties):
    """The oracle has everybody's data and right factors."""
    parts = split_parts(SIZES, F, seed=3)
    agents = make_agents(name, parts, random_start(K, F), max_iter=3, **penalties)
    reports, _ = drive(agents)
    last = [history[-1] for history in reports]
    mean = np.mean([report.H for report in last], axis=0)
    X = np.vstack(parts)
    # Agents keep their right factors in the units of what they exchange.
    W = np.vstack([agent.factors.right.W / agent.factors.unit for agent in agents])
    row = history_row(last, np.sum(X**2), 0.0, 0)
    error = np.linalg.norm(X - W @ mean) / np.linalg.norm(X)
    assert row.shared_error == pytest.approx(error, rel=1e-9)
    assert row.shared_error != pytest.approx(row.local_error, rel=1e-9)
    # Nobody else can tell: without witnesses there is only the local error.
    bare = [report._replace(witness=None) for report in last]
    blind = history_row(bare, np.sum(X**2), 0.0, 0)
    assert blind.local_error == row.local_error
    assert blind.consensus_error == row.consensus_error


def test_a_departure_ends_the_fit_of_the_others():
    agents = make_agents("path", split_parts([3, 4, 5], F), random_start(K, F))
    for agent in agents:
        agent.start()
    with pytest.raises(DropoutError, match=r"agent 0: agents \[2\] have left"):
        agents[0].depart(Departure(1, (2,)))


@pytest.mark.parametrize("variant", ["plain", "simulated", "paillier"])
def test_envelopes_may_cross_a_wire(variant):
    parts, start = split_parts([3, 0, 5], F), random_start(K, F)
    parameters = {**VARIANTS[variant], "max_iter": 2, "max_admm_iter": 2}
    expected, sent = drive(make_agents("ring", parts, start, **parameters))
    agents = make_agents("ring", parts, start, **parameters)
    reports, carried = drive(agents, serialise=True)
    assert_same_reports(reports, expected)
    assert [e[2:6] for e in carried] == [e[2:6] for e in sent]


def test_reports_describe_the_agents_state():
    parts, start = split_parts([6, 9], F, seed=6), random_start(K, F)
    agents = make_agents("path", parts, start)
    reports, _ = drive(agents)
    for agent, history in zip(agents, reports, strict=True):
        last, W, H = history[-1], agent.factors.right.W, history[-1].H
        assert last.squared_error == pytest.approx(
            np.linalg.norm(agent.factors.X - W @ H) ** 2
        )
        np.testing.assert_allclose(last.witness.gram, W.T @ W)
        np.testing.assert_allclose(last.witness.products, W.T @ agent.factors.X)


def test_keys_come_first():
    agents = make_agents(
        "path", split_parts([3, 4], F), random_start(K, F), "simulated"
    )
    step = agents[0].start()
    assert [(e.receiver, e.kind, e.round) for e in step.envelopes] == [(1, KEY, 0)]
    assert agents[0].advance([]) == Step([])
    agents[1].start()
    assert agents[1].advance(step.envelopes).envelopes


def test_overflow_names_the_agent():
    """The left factor grows by 1e100 times n_max, which takes more than 240 bits."""
    parts = [1e100 * X for X in split_parts([3, 4], F)]
    agents = make_agents(
        "path",
        parts,
        random_start(K, F),
        "simulated",
        penalty_scaling="absolute",
        mu=1e-3,
        g_max=1e-3,
        eta=1e100,
    )
    with pytest.raises(OverflowError, match=r"agent [01].*key_size=256.*smaller n_max"):
        drive(agents)


def test_extreme_right_factor_is_refused():
    agents = make_agents(
        "path", [1e200 * X for X in split_parts([3], F)], random_start(K, F)
    )
    with (
        np.errstate(over="ignore"),
        pytest.raises(OverflowError, match=r"agent 0.*rescale"),
    ):
        agents[0].start()


@pytest.mark.parametrize("n", [1, 2, 6])
def test_more_components_than_samples_or_features(n):
    parts = split_parts([1] * n, 2, seed=7)
    agents = make_agents("random", parts, random_start(5, 2), max_iter=30)
    reports, _ = drive(agents)
    total = sum(history[-1].squared_error for history in reports)
    assert total < 1e-3 * sum(np.sum(X**2) for X in parts)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_and_sparsity_change_little(dtype):
    parts, start = split_parts(SIZES, F), random_start(K, F)
    for X in parts:
        X[X < 0.5] = 0
    expected, _ = drive(make_agents("ring", parts, start))
    converted = [sparse.csr_array(X.astype(dtype)) for X in parts]
    reports, _ = drive(make_agents("ring", converted, start))
    rtol = 1e-9 if dtype == np.float64 else 1e-2
    for mine, theirs in zip(reports, expected, strict=True):
        np.testing.assert_allclose(
            mine[-1].H, theirs[-1].H, rtol=rtol, atol=rtol * theirs[-1].H.max()
        )


def test_network_of_settings():
    network = make_network("path", 5)
    settings = make_agents(network, split_parts(SIZES, F), random_start(K, F))[
        0
    ].settings
    assert (settings.leader, settings.leader_eccentricity, settings.diameter) == (
        2,
        2,
        4,
    )
    eigenvalues = np.linalg.eigvalsh(
        np.diag(network.degrees.astype(float)) - network.adjacency
    )
    assert settings.connectivity == pytest.approx(
        np.sqrt(eigenvalues[1] * eigenvalues[-1])
    )
