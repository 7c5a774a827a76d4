"""The report on all attacks."""

import numpy as np
import pandas as pd
import pytest
from _audit import VICTIM, data, model
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from skppdnmf import PrivateDistributedNMF
from skppdnmf.audit import audit_report

COLUMNS = ["scalar, no dither", "scalar", "entrywise"]
ROWS = [
    "greatest common divisor",
    "least squares",
    "least squares, masks known",
    "joint mask fit",
    "simulation",
    "eavesdropper",
]


@pytest.fixture(scope="module")
def report():
    X, agents = data()
    names = np.array(["north", "east", "south", "west"])[agents]
    return audit_report(model(masking="entrywise"), X, names, max_samples=1)


def test_table_has_both_sides_of_every_claim(report):
    table = report.table
    assert list(table) == ROWS
    assert all(list(row) == COLUMNS for row in table.values())
    shares = {name: list(row.values()) for name, row in table.items()}
    assert shares["greatest common divisor"] == [1, 0, 0]
    assert shares["least squares"][0] > 0.99
    assert max(shares["least squares"][1:]) < 0.5
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
    skipped = {one[:4] for one in report.skipped}
    assert not done & skipped
    # The path goes through the labels in their order.
    pairs = [("east", "north"), ("north", "south"), ("south", "west")]
    pairs += [(b, a) for a, b in pairs]
    expected = {
        (protection, attack, *pair)
        for protection in COLUMNS
        for attack in ROWS[:-1]
        for pair in pairs
    }
    links = {(protection, ROWS[-1], None, None) for protection in COLUMNS}
    assert done | skipped == expected | links
    assert {one.attack for one in report.skipped} == {"simulation"}
    assert all("max_samples=1" in one.reason for one in report.skipped)


def test_text(report):
    text = str(report)
    for word in (*ROWS, *COLUMNS, "'west'", "it has one neighbour", "Change:"):
        assert word in text
    assert "Not run:" in text
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


def test_relays_are_reported():
    X, agents = data()
    parts = [X[agents == k] for k in range(4)]
    parts[1] = parts[1][:0]
    report = audit_report(model(max_iter=1), parts, max_seconds=0.0)
    relays = [one for one in report.skipped if one.victim == 1]
    assert {one.reason for one in relays} == {"the victim holds no samples"}
    assert all(record["victim"] != 1 for record in report.to_dict())


def test_digits():
    """Five agents, the last of whom holds a single digit of 4 x 4 pixels."""
    images = load_digits().images[:201]
    X = images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    agents = np.arange(len(X)) % 4
    agents[0] = 4
    estimator = PrivateDistributedNMF(
        4, adjacency="path", encryption="simulated", random_state=0
    )
    report = audit_report(estimator, X, agents, max_rounds=30, max_samples=1)
    assert report.weakest == 4
    assert report.table["least squares"]["scalar, no dither"] > 0.99
    assert report.table["joint mask fit"]["scalar"] > 0.99
    assert report.table["joint mask fit"]["entrywise"] < 0.1
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
