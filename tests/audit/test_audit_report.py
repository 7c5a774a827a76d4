"""The report on all attacks."""

import warnings

import numpy as np
import pandas as pd
import pytest
from _audit import VICTIM, data, model
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from skppdnmf import PrivateDistributedNMF
from skppdnmf._mpc.plain import PlainRun
from skppdnmf._mpc.settings import settings_of
from skppdnmf.audit import AuditReport, Leakage, audit_report, record
from skppdnmf.audit._record.mpc import of_components

CONSENSUS = ["scalar, no dither", "scalar", "entrywise"]
COLUMNS = [*CONSENSUS, "secure-sum", "mpc"]
ROWS = [
    "greatest common divisor",
    "least squares",
    "least squares, masks known",
    "joint mask fit",
    "simulation",
    "simulation, no names",
    "membership, of a list",
    "membership, single",
    "attribute",
    "dropout",
    "eavesdropper",
]
MEMBERS = ROWS[6:8]
STUDIES = ROWS[6:10]


@pytest.fixture(scope="module")
def report():
    X, agents = data()
    names = np.array(["north", "east", "south", "west"])[agents]
    return audit_report(model(masking="entrywise", seed=1), X, names, max_samples=1)


def test_table_has_both_sides_of_every_claim(report):
    table = report.table
    assert list(table) == ROWS
    assert all(list(row) == COLUMNS for row in table.values())
    summed = {name: row["secure-sum"] for name, row in table.items()}
    assert all(summed[name] is None for name in ROWS[:4])
    assert max(summed[name] for name in (*ROWS[4:6], ROWS[-1])) < 0.1
    # Who is in the pool the totals do tell, and the components much of it.
    assert summed["membership, of a list"] > 0.99
    assert summed["membership, single"] > 0.1
    assert table["membership, of a list"]["entrywise"] > 0.1
    shared = {name: row["mpc"] for name, row in table.items()}
    assert {name for name in ROWS if shared[name] is not None} == set(ROWS[4:8])
    name = "membership, of a list"
    assert shared[name] < summed[name] - 0.1
    for name in MEMBERS:
        assert {table[name][column] for column in CONSENSUS[:2]} == {None}
    table = {name: row for name, row in table.items() if name not in STUDIES}
    table = {n: {c: row[c] for c in CONSENSUS} for n, row in table.items()}
    pooled = table.pop("simulation, no names")
    assert [pooled[column] is None for column in CONSENSUS] == [True, True, False]
    shares = {name: list(row.values()) for name, row in table.items()}
    assert shares["greatest common divisor"] == [1, 0, 0]
    assert shares["least squares"][0] > 0.99
    # By luck: the mean of the masks, which it takes, may be near.
    assert max(shares["least squares"][1:]) < 0.9
    assert min(shares["least squares, masks known"]) > 0.99
    assert min(shares["joint mask fit"][:2]) > 0.99
    assert shares["joint mask fit"][2] < 0.5
    assert min(shares["simulation"]) > 0.95
    assert max(shares["eavesdropper"]) < 0.1


def test_weakest_agent_is_named_with_the_reason(report):
    assert report.weakest == "west"
    assert report.reasons == ["it holds one sample", "it has one neighbour"]
    assert report.worst.attack == "SimulationAttack"
    advice = " ".join(report.advice)
    for word in ('protocol="secure-sum"', "another neighbour", "more samples"):
        assert word in advice
    assert "masking=" not in advice  # it is entrywise already


def test_nothing_is_skipped_silently(report):
    done = {
        (r["protection"], r["attack"], r["attacker"], r["victim"])
        for r in report.to_dict()
    }
    alone = {one[1] for one in done if one[0] == "mpc"}
    left_out = {one.attack for one in report.skipped if one.protection == "mpc"}
    assert alone | left_out == set(ROWS)
    assert not alone & left_out
    skipped = {one[:4] for one in report.skipped if one.protection != "mpc"}
    done = {one for one in done if one[0] != "mpc" or one[1] in MEMBERS}
    # Under the secure sum every agent attacks every other, and all of them.
    names = ["east", "north", "south", "west"]
    summed = {
        ("secure-sum", "simulation", a, b) for a in names for b in names if a != b
    }
    summed |= {("secure-sum", "simulation, no names", a, None) for a in names}
    summed.add(("secure-sum", "eavesdropper", None, None))
    answers = {("secure-sum", attack, None, None) for attack in ROWS[:4]}
    answers |= {("secure-sum", attack, None, None) for attack in STUDIES[2:]}
    assert answers <= skipped
    studied = {
        (protection, attack)
        for protection, attack, *_ in done | skipped
        if attack in STUDIES
    }
    masked = COLUMNS[:4]
    assert studied >= {(column, attack) for column in masked for attack in STUDIES[:3]}
    members = {one for one in done if one[1] in MEMBERS}
    assert {one[:2] for one in members} == {
        (column, attack) for column in COLUMNS[2:] for attack in MEMBERS
    }
    done -= members
    skipped = {one for one in skipped if one in answers or one[1] not in STUDIES}
    # All others as a set: under the masks in use by who holds the most.
    pooled = {one for one in done | skipped if one[1] == ROWS[5]} - summed
    assert {one[0] for one in pooled} == set(CONSENSUS)
    assert {one[:2] for one in pooled & done} == {("entrywise", ROWS[5])}
    done, skipped = done - pooled, skipped - pooled
    assert {one for one in done if one[0] == "secure-sum"} == summed
    done, skipped = done - summed, skipped - answers
    assert not done & skipped
    # The path goes through the labels in their order.
    pairs = [("east", "north"), ("north", "south"), ("south", "west")]
    pairs += [(b, a) for a, b in pairs]
    expected = {
        (protection, attack, *pair)
        for protection in CONSENSUS
        for attack in ROWS[:5]
        for pair in pairs
    }
    links = {(protection, ROWS[-1], None, None) for protection in CONSENSUS}
    assert done | skipped == expected | links
    left_out = [one for one in report.skipped if one.attacker is not None]
    assert {one.attack for one in left_out} == {"simulation"}
    assert all("max_samples=1" in one.reason for one in left_out)


def test_text(report):
    text = str(report)
    for word in (*ROWS, *COLUMNS, "'west'", "it has one neighbour", "Change:"):
        assert word in text
    assert "Not run:" in text
    assert "'least squares' may succeed by luck" in text
    assert "masking='entrywise' is in use" in text
    assert max(map(len, text.splitlines())) < 160
    assert "west" in repr(report)


def test_frame(report):
    frame = report.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == len(report.to_dict())
    row = frame[
        (frame.attack == "simulation")
        & (frame.victim == "west")
        & (frame.protection == "entrywise")
    ]
    assert row.recovered.item() == report.worst.recovered


def test_scalar_masks_are_told_to_change_and_time_is_kept():
    X, agents = data()
    report = audit_report(
        model(masking="scalar", max_iter=1), X, agents, max_seconds=0.0
    )
    assert report.protection == "scalar"
    assert report.weakest == VICTIM
    assert any('masking="entrywise"' in advice for advice in report.advice)
    simulations = [one for one in report.skipped if one.attack == "simulation"]
    assert any("max_seconds=0" in one.reason for one in simulations)
    assert report.table["simulation"]["scalar"] is None
    assert "not run" in str(report)


def made_up(n_holders, summed, masking="entrywise"):
    """A report on a simulation that finds all, and a share under the secure sum."""
    leakages = {column: {row: [] for row in ROWS} for column in COLUMNS}
    common = {"guess_error": 1.0, "n_samples": 5, "n_neighbours": 2}
    one = Leakage("SimulationAttack", 0, 1, "samples", error=0.0, **common)
    leakages[masking]["simulation"] = [one]
    if summed is not None:
        one = Leakage("PooledSimulation", 0, None, "pool", error=1 - summed, **common)
        leakages["secure-sum"]["simulation, no names"] = [one]
    return AuditReport(leakages, [], masking, [], n_holders)


@pytest.mark.parametrize("masking", ["scalar", "entrywise"])
@pytest.mark.parametrize(
    ("n_holders", "summed", "is_advised", "text"),
    [
        (1, None, False, "more agents with samples: with 1, fewer than 3"),
        (2, 0.78, False, "more agents with samples: with 2, fewer than 3"),
        (2, 0.0, False, "more agents with samples: with 2, fewer than 3"),
        (3, 0.78, False, "78 % were recovered under the secure sum"),
        (3, 0.1, True, "the totals only"),
        (3, None, True, "no attack on them was run"),
    ],
)
def test_the_secure_sum_is_advised_where_it_protects(
    n_holders, summed, is_advised, text, masking
):
    report = made_up(n_holders, summed, masking)
    assert report.weakest == 1
    assert ('protocol="secure-sum"' in " ".join(report.advice)) == is_advised
    assert text in report.advice[0]
    assert ("join" in " ".join(report.advice)) == (n_holders > 2)


@pytest.mark.journey
@pytest.mark.parametrize("relay", [False, True])
def test_two_agents_with_samples_are_not_told_to_sum(relay):
    X, agents = data()
    parts = [X[agents != VICTIM], X[agents == VICTIM], *[X[:0]] * relay]
    result = audit_report(model(max_iter=1), parts, max_seconds=0.0)
    assert result.n_holders == 2
    assert result.advice
    assert 'protocol="secure-sum"' not in str(result)
    assert "more agents with samples" in result.advice[0]


@pytest.mark.journey
def test_relays_are_reported():
    X, agents = data()
    parts = [X[agents == k] for k in range(4)]
    parts[1] = parts[1][:0]
    report = audit_report(model(max_iter=1), parts, max_seconds=0.0)
    relays = [one for one in report.skipped if one.victim == 1]
    assert {one.reason for one in relays} == {"the victim holds no samples"}
    assert all(record["victim"] != 1 for record in report.to_dict())


@pytest.mark.journey
def test_digits():
    """Five agents, the last of whom holds a single digit of 4 x 4 pixels."""
    images = load_digits().images[:201]
    X = images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    agents = np.arange(len(X)) % 4
    agents[0] = 4
    estimator = PrivateDistributedNMF(
        4, adjacency="path", encryption="simulated", random_state=1
    )
    report = audit_report(estimator, X, agents, max_rounds=30, max_samples=1)
    assert report.weakest == 4
    assert report.table["least squares"]["scalar, no dither"] > 0.99
    assert report.table["joint mask fit"]["scalar"] > 0.99
    assert report.table["joint mask fit"]["entrywise"] < 0.5
    assert report.table["simulation"]["entrywise"] > 0.9


@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        (NMF(2), TypeError, "expected a PrivateDistributedNMF, got a NMF"),
        (model(encryption=None), ValueError, "nothing to audit"),
    ],
)
def test_what_cannot_be_audited(estimator, error, message):
    X, agents = data()
    with pytest.raises(error, match=message):
        audit_report(estimator, X, agents)


@pytest.mark.parametrize(
    ("limits", "error", "message"),
    [
        ({"max_seconds": float("nan")}, ValueError, "max_seconds=nan should be >= 0"),
        ({"max_seconds": -1}, ValueError, "max_seconds == -1, must be >= 0"),
        ({"max_seconds": "60"}, TypeError, "max_seconds must be an instance of"),
        ({"max_rounds": 0}, ValueError, "max_rounds == 0, must be >= 1"),
        ({"max_rounds": 2.5}, TypeError, "max_rounds must be an instance of"),
        ({"max_samples": -3}, ValueError, "max_samples == -3, must be >= 0"),
    ],
)
def test_limits_are_checked_before_any_fit(limits, error, message):
    X, agents = data()
    with pytest.raises(error, match=message):
        audit_report(model(max_iter=10**9), X, agents, **limits)


@pytest.mark.journey
def test_members_are_the_weakest_point_of_a_large_pool(report):
    """Where nobody is found by name, who is in the pool is."""
    X, agents = data(n_samples=20)
    estimator = model(protocol="secure-sum", adjacency="ring")
    result = audit_report(estimator, X, agents, max_rounds=12, max_samples=1)
    assert result.protection == "secure-sum"
    assert result.weakest is None
    assert result.worst.target == "membership"
    text = str(result)
    assert "Nothing was recovered" not in text
    assert "Weakest point: agent 0 finds out who is in the pool (30 samples)" in text
    assert "MembershipAttack, 0 on all others: membership of a list" in text
    assert "AUC 1.000" in text
    assert "half of all samples were held out" in text
    assert "protocol='secure-sum' is in use" in text
    assert result.table["simulation"]["secure-sum"] < 0.2
    assert result.table["simulation"]["entrywise"] is None  # too many samples
    assert "simulation: under" not in text
    assert "Weakest agent: 'west'" in str(report)
    assert "n_init=1" in " ".join(result.advice)


def test_nothing_recovered_is_said_of_what_was_run():
    """And what was not run is named beside it."""
    leakages = {column: {row: [] for row in ROWS} for column in COLUMNS}
    common = {"guess_error": 1.0, "n_samples": 5, "details": {"pool": 9}}
    one = Leakage("PooledSimulationAttack", 0, 1, "samples", error=1.0, **common)
    leakages["secure-sum"]["simulation"] = [one]
    result = AuditReport(leakages, [], "secure-sum", [], 3)
    assert (result.worst, result.weakest, result.reasons) == (None, None, [])
    assert "nothing" in repr(result)
    text = str(result)
    assert "Nothing was recovered by the attacks that were run" in text
    assert "Attacks on data that were run: simulation." in text
    unknown = "; ".join(["simulation, no names", *STUDIES])
    assert f"Not run, so that nothing is known of them: {unknown}." in text
    assert "Weakest" not in text


@pytest.fixture(scope="module")
def digits():
    """Digits of 8 x 8 pixels, in random order."""
    X = np.unique(load_digits().data, axis=0)
    return X[np.random.default_rng(0).permutation(len(X))]


@pytest.mark.journey
def test_a_pool_of_twice_the_components_is_a_leak(digits):
    estimator = PrivateDistributedNMF(
        5, protocol="secure-sum", max_iter=20, tol=0, random_state=0
    )
    parts = [digits[:5], digits[5:10], digits[10:15]]
    result = audit_report(
        estimator,
        parts,
        max_rounds=20,
        max_samples=1,
        max_seconds=90.0,
        references=digits[100:600],
    )
    table = {name: row["secure-sum"] for name, row in result.table.items()}
    assert table["simulation, no names"] > 0.3
    assert table["membership, of a list"] == 1
    assert table["membership, single"] > 0.5
    assert "500 references" in str(result)
    assert "Weakest" in str(result) or "without names" in str(result)


@pytest.mark.journey
def test_a_dropout_and_an_attribute_are_leaks(digits):
    rng = np.random.default_rng(0)
    X = np.c_[digits, 8.0 * rng.integers(2, size=len(digits))]
    estimator = PrivateDistributedNMF(
        5,
        protocol="secure-sum",
        on_dropout="continue",
        max_iter=30,
        tol=0,
        random_state=0,
    )
    labels = np.repeat(["a", "b", "c", "d"], [30, 10, 10, 1])
    result = audit_report(
        estimator,
        X[:51],
        labels,
        max_rounds=30,
        max_samples=1,
        max_seconds=10.0,
        references=X[100:500],
    )
    assert (result.weakest, result.worst.attack) == ("d", "DropoutAttack")
    assert "it dropped out" in " ".join(result.reasons)
    assert 'on_dropout="raise"' in result.advice[0]
    assert result.table["attribute"]["secure-sum"] > 0.2
    text = str(result)
    assert "attributes in a pool of 21" in text
    assert "DropoutAttack, a on d: samples" in text


def test_two_agents_of_a_secure_sum_are_told_apart():
    X, agents = data(n_samples=1)
    two = np.where(agents == VICTIM, "few", "many")
    estimator = model(protocol="secure-sum", max_iter=12)
    result = audit_report(estimator, X, two, max_rounds=10, max_seconds=60.0)
    assert result.weakest == "few"
    assert result.worst.attack == "PooledSimulationAttack"
    assert result.worst.recovered > 0.99
    assert "nobody but the attacker holds others" in result.reasons
    assert "another agent" in result.advice[0]


@pytest.mark.journey
def test_others_found_without_names_are_reported():
    X, agents = data(n_samples=1)
    keep = np.flatnonzero((agents == 0) | (np.arange(len(X)) % 20 == 0))
    estimator = model(n_components=4, protocol="secure-sum")
    result = audit_report(
        estimator, X[keep], agents[keep], max_rounds=12, max_seconds=30.0
    )
    assert np.bincount(agents[keep]).tolist() == [20, 1, 1, 1]
    assert result.table["simulation, no names"]["secure-sum"] > 0.9
    if result.weakest is None:
        assert "finds samples of all others, without names (3 samples)" in str(result)
    assert "outnumber the components" in " ".join(result.advice)


def test_a_secure_sum_that_cannot_be_run_is_reported():
    X, agents = data()
    estimator = model(n_max=1e14, max_iter=1)
    result = audit_report(estimator, X, agents, max_rounds=5, max_samples=1)
    assert result.table["simulation"]["secure-sum"] is None
    reasons = [one.reason for one in result.skipped if one.protection == "secure-sum"]
    assert len(reasons) == 1
    assert "too large for the secure sum" in reasons[0]
    with pytest.raises(OverflowError, match="too large"):
        audit_report(estimator.set_params(protocol="secure-sum"), X, agents)


@pytest.mark.journey
def test_shortened_simulations_are_told():
    X, agents = data()
    result = audit_report(model(), X, agents, max_samples=1, max_seconds=0.3)
    notes = " ".join(result.notes)
    simulations = [one for one in result.skipped if one.attack == "simulation"]
    late = [one for one in simulations if "max_seconds=0.3" in one.reason]
    assert late or "for want of time" in notes or "ended early" in notes


@pytest.mark.journey
def test_an_audit_does_not_warn():
    X, agents = data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        audit_report(model(masking="entrywise"), X, agents, max_rounds=5, max_samples=1)


def test_of_two_agents_none_is_told_to_find_another_neighbour():
    X = np.random.default_rng(0).exponential(size=(7, 4))
    estimator = model(2, partition=[6, 1], max_iter=2)
    given = {"max_samples": 1, "max_seconds": 3.0, "max_rounds": 5}
    result = audit_report(estimator, X, **given)
    assert result.worst.n_neighbours == 1
    advice = " ".join(result.advice)
    assert "another neighbour" not in advice
    assert "more agents with samples: with 2" in advice


def test_totals_that_the_attacks_do_not_know_are_refused():
    X = np.random.default_rng(0).exponential(size=(20, 5))
    estimator = PrivateDistributedNMF(
        2, protocol="secure-sum", partition=4, max_iter=3, tol=0, random_state=0
    )
    with pytest.raises(ValueError, match="beta_loss='kullback-leibler': the attacks"):
        audit_report(clone(estimator).set_params(beta_loss="kullback-leibler"), X)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="missing entries: the attacks on totals"):
        audit_report(estimator, X)


@pytest.fixture(scope="module")
def on_shares():
    """A fit on secret shares; the audit does without SPU."""
    X, agents = data(n_samples=20)
    estimator = model(protocol="mpc", max_iter=60)
    return audit_report(estimator, X, agents, max_rounds=12, max_samples=1)


def test_nothing_but_the_components_is_attacked_on_shares(on_shares):
    table = {name: row["mpc"] for name, row in on_shares.table.items()}
    assert {name for name in ROWS if table[name] is not None} == set(ROWS[4:8])
    summed = {name: row["secure-sum"] for name, row in on_shares.table.items()}
    # The control: the same pool by the same attacks, from the totals.
    assert summed["membership, of a list"] > table["membership, of a list"] + 0.2
    text = str(on_shares)
    assert "protocol='mpc' is in use" in text
    assert f"Attacks on data that were run: {'; '.join(ROWS[4:8])}." in text
    assert "Not run, so that nothing is known of them: attribute." in text
    assert "eavesdropper: an audit has no links between those that compute" in text
    assert "no masked answers" in text


def test_the_components_are_those_of_the_fit_on_shares():
    """By its solver, from its starts, whatever protocol records who holds what."""
    X, agents = data(n_samples=20)
    known = np.ones((1, X.shape[1]))
    given = {"max_iter": 8, "n_init": 3, "fixed_components": known}
    estimator = model(protocol="mpc", **given)
    held = [X[agents == k] for k in range(4)]
    in_clear = model(protocol="secure-sum", max_iter=1, fixed_components=known)
    found = of_components(record(in_clear, held), estimator).public
    settings = settings_of(estimator, tuple(map(len, held)), X.shape[1])
    run = PlainRun(held, found.starts, settings)
    for _ in range(8):
        run.advance()
    assert len(found.starts) == 3
    np.testing.assert_array_equal(found.starts[0], found.start)
    np.testing.assert_array_equal(found.components, run.components)
    np.testing.assert_array_equal(found.components[:1], known)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": 1.0, "delta": 1e-5, "clip": 1.0}, "epsilon=1 with protocol="),
        ({"on_dropout": "continue"}, "on_dropout='continue' with protocol="),
        ({"normalize": "max"}, "normalize='max' with protocol="),
    ],
)
def test_what_is_refused_on_shares_is_not_audited(given, message):
    X, agents = data()
    with pytest.raises(ValueError, match=message):
        audit_report(model(protocol="mpc", max_iter=2, **given), X, agents)


def test_two_agents_cannot_compute_on_shares():
    """Under another protocol that is a note, under this one an error."""
    X = np.random.default_rng(0).exponential(size=(30, 5))
    estimator = model(2, partition=2, max_iter=2)
    result = audit_report(estimator, X, max_seconds=0.0)
    reasons = [one.reason for one in result.skipped if one.protection == "mpc"]
    assert len(reasons) == 1
    assert "n_agents=2" in reasons[0]
    with pytest.raises(ValueError, match="n_agents=2"):
        audit_report(estimator.set_params(protocol="mpc"), X, max_seconds=0.0)


def test_shares_are_advised_where_fewer_members_are_found():
    leakages = {column: {row: [] for row in ROWS} for column in COLUMNS}
    for column, auc in (("secure-sum", 1.0), ("mpc", 0.6)):
        details = {"kind": "list", "pool": 30, "auc_interval": (auc, auc)}
        one = Leakage(
            "MembershipAttack", 0, None, "membership", error=1 - auc, guess_error=0.5,
            n_samples=30, details=details,
        )  # fmt: skip
        leakages[column]["membership, of a list"] = [one]
    advice = AuditReport(leakages, [], "secure-sum", [], 3).advice
    assert any('protocol="mpc"' in one and "recovered 20 %" in one for one in advice)
    leakages["mpc"]["membership, of a list"] = []
    advice = AuditReport(leakages, [], "secure-sum", [], 3).advice
    assert not any('protocol="mpc"' in one for one in advice)
