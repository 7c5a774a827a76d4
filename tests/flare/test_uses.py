"""Weights, gaps and other divergences, as each site's folder declares them."""

import numpy as np
import pytest
from _sites import (
    NAMES,
    SIZES,
    events,
    federate,
    last,
    make_job,
    make_sites,
    samples,
    split,
)
from numpy.testing import assert_array_equal
from test_party import SUMS, fails, in_one_process, job

from skppdnmf import PrivateDistributedNMF
from skppdnmf.exceptions import FederationError
from skppdnmf.flare import load


def declare(root, name, lines):
    """Add lines to a site's data set."""
    file = root / name / "skppdnmf.toml"
    text = file.read_text().replace("[policy]", f"{lines}\n[policy]", 1)
    file.write_text(text)


def run_all(tmp_path, root, spec):
    run, direct = federate(root, spec, tmp_path / "relay")
    run.to_the_end()
    folders = direct.results(run.progress()["run"])
    first, *others = [load(folder) for folder in folders.values()]
    for other in others:
        assert_array_equal(other.components_, first.components_)
    return first, folders


def test_weights_are_a_column_that_a_site_names(tmp_path):
    """A site without weights counts each of its samples as one."""
    X = samples()
    root = make_sites(tmp_path / "sites", X)
    weights = np.random.default_rng(3).integers(0, 4, size=len(X)).astype(float)
    parts = split(weights)
    parts[1][:] = 1.0
    for name, part, own in zip(NAMES, split(X), parts, strict=True):
        if name == "site-2":
            continue
        np.save(root / name / "cohort.npy", np.column_stack([part, own]))
        declare(root, name, 'sample_weight = "12"')
    model, folders = run_all(tmp_path, root, job(weighted=True))
    expected = PrivateDistributedNMF(3, partition=list(SIZES), **SUMS)
    expected.fit(X, sample_weight=np.concatenate(parts))
    assert_array_equal(model.components_, expected.components_)
    for name, own in zip(NAMES, parts, strict=True):
        # A sample of no weight is as good as absent, but in what the site keeps.
        assert last(root, name)["rows"] == np.count_nonzero(own)
        assert np.load(folders[name] / "right_factor.npy").shape == (len(own), 3)


def test_weights_that_a_job_does_not_ask_for_are_not_left_out(tmp_path):
    root = make_sites(tmp_path / "sites")
    declare(root, "site-3", 'sample_weight = "11"')
    (root / "site-3" / "cohort.npy").unlink()
    run, _ = federate(root, job(), tmp_path / "relay")
    fails(run, "site-3 has weights for 'cohort', and the job asks for none")
    assert "begun" not in [one["event"] for one in events(root, "site-1")]


def test_gaps_are_filled_where_a_site_declares_them(tmp_path):
    X = samples()
    X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    X[sum(SIZES[:3]) :] = samples()[sum(SIZES[:3]) :]  # site-4 has all
    root = make_sites(tmp_path / "sites", X)
    for name in NAMES[:3]:
        declare(root, name, "missing = true")
    model, folders = run_all(tmp_path, root, job(missing=True))
    assert_array_equal(model.components_, in_one_process(X, **SUMS).components_)
    W = np.load(folders["site-1"] / "right_factor.npy")
    assert_array_equal(W, model.transform(split(X)[0]))


@pytest.mark.parametrize(
    ("declared", "asked", "reason"),
    [
        (True, False, "entries are missing, and the job takes none"),
        (False, True, "entries that are missing or infinite"),
    ],
)
def test_gaps_need_both_the_job_and_the_site(tmp_path, declared, asked, reason):
    X = samples()
    X[3, 4] = np.nan
    root = make_sites(tmp_path / "sites", X)
    if declared:
        declare(root, "site-1", "missing = true")
    run, _ = federate(root, job(missing=asked), tmp_path / "relay")
    with pytest.raises(FederationError, match="site-1"):
        run.to_the_end()
    assert reason in last(root, "site-1")["error"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"beta_loss": "kullback-leibler"},
        {"beta_loss": 1.5, "alpha_H": 0.01},
        {"fixed_components": np.ones((1, 12))},
        {"epsilon": 6.0, "delta": 1e-3, "clip": 30.0, "max_iter": 2},
    ],
    ids=["counts", "beta", "known component", "noise"],
)
def test_other_uses_over_the_same_sites(tmp_path, parameters):
    X = np.round(4 * samples()) + 1
    root = make_sites(tmp_path / "sites", X)
    given = {**SUMS, "max_iter": 4, **parameters}
    spec = make_job(PrivateDistributedNMF(3, **given))
    model, _ = run_all(tmp_path, root, spec)
    assert np.isfinite(model.components_).all()
    if "epsilon" not in parameters:  # noise is never the same twice
        expected = in_one_process(X, **given)
        assert_array_equal(model.components_, expected.components_)


@pytest.mark.parametrize(
    ("parameters", "given", "match"),
    [
        ({"protocol": "consensus"}, {"weighted": True}, "sample_weight with protocol"),
        ({"protocol": "consensus"}, {"missing": True}, "missing=True: with protocol"),
        ({"epsilon": 1.0, "delta": 1e-5, "clip": 1.0}, {"weighted": True}, "epsilon=1"),
    ],
)
def test_a_job_that_cannot_be_is_refused_before_it_is_sent(parameters, given, match):
    model = PrivateDistributedNMF(3, **{**SUMS, **parameters})
    with pytest.raises(ValueError, match=match):
        make_job(model, **given).estimator()
