"""How many components, and batches, on the command line."""

import re

import numpy as np
import pandas as pd
import pytest
from _cli_runner import refused, run, samples, save_table, succeeded, table
from numpy.testing import assert_allclose, assert_array_equal

from skppdnmf import PrivateDistributedNMF
from skppdnmf.model_selection import component_curve

SEED = ("--random-state", "3", "--tol", "0", "--max-iter", "5")
CURVE = (*SEED, "--n-masks", "2", "--n-starts", "2")


def own(**parameters):
    return PrivateDistributedNMF(
        protocol="secure-sum", max_iter=5, tol=0, random_state=3, **parameters
    )


def test_a_curve_is_that_of_the_function(tmp_path):
    out, report = tmp_path / "curve.csv", tmp_path / "curve.html"
    shown = succeeded(
        *("component-curve", save_table(tmp_path), "--agents", "site", *CURVE),
        *("--n-components", "1-3", "--out", out, "--report", report),
    ).stdout
    frame = table()
    expected = component_curve(
        own(),
        frame[list("abcde")],
        n_components=[1, 2, 3],
        agents=frame["site"].tolist(),
        n_masks=2,
        n_starts=2,
        random_state=3,
    )
    assert_allclose(pd.read_csv(out), expected.table)
    chosen = [line for line in shown.splitlines() if line.endswith("chosen")]
    assert [int(line.split()[0]) for line in chosen] == [expected.best_n_components]
    page = report.read_text(encoding="utf-8")
    assert page.count("<img ") == 1
    assert f"{expected.best_n_components} components" in page


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--n-components", "3-2"), "no number"),
        (("--n-components", "2,2"), "one twice"),
        (("--n-components", "two"), "2-12"),
        (("--n-components", "0-2"), "2-12"),
        (("--protocol", "consensus"), 'needs? protocol="secure-sum"'),
        (("--out", "curve.txt"), "does not end with .csv"),
        (("--test-size", "1"), "test-size"),
    ],
)
def test_refused_curves(tmp_path, given, said):
    start = ("component-curve", save_table(tmp_path), "--agents", "site", *CURVE)
    message = refused(*start, *given)
    assert re.search(said, message), message


def test_batches_are_those_of_partial_fit(tmp_path):
    model = tmp_path / "model.npz"
    frame = table()
    halves = frame[:9], frame[9:]
    expected = own(n_components=2)
    for k, half in enumerate(halves):
        half.to_csv(tmp_path / f"{k}.csv", index=False)
        given = ("--n-components", "2") if not k else ()
        shown = succeeded(
            *("partial-fit", tmp_path / f"{k}.csv", "--agents", "site", *SEED, *given),
            *("--model", model, "--out", tmp_path / f"out{k}.npz"),
        ).stdout
        assert ("begun" if not k else "replaced") in shown
        expected.partial_fit(half[list("abcde")], agents=half["site"].tolist())
    found = np.load(tmp_path / "out1.npz")
    assert_array_equal(found["components"], expected.components_)
    with np.load(model) as archive:
        assert set(archive.files) == {
            *("gram", "products", "squared_norm", "H", "feature_names")
        }
        for name in ("gram", "products", "H"):
            assert_array_equal(archive[name], getattr(expected.memory_, name))


def test_refused_batches(tmp_path):
    data, model = save_table(tmp_path), tmp_path / "model.npz"
    start = ("partial-fit", data, "--agents", "site", *SEED, "--model", model)
    assert "totals to go on from" in refused(*start, "--protocol", "consensus")
    assert "stay true" in refused(*start, "--beta-loss", "kullback-leibler")
    succeeded(*start, "--n-components", "2")
    assert "--n-components 3 although" in refused(*start, "--n-components", "3")
    other = table().rename(columns={"a": "z"})
    other.to_csv(tmp_path / "other.csv", index=False)
    shown = run(*start[:1], tmp_path / "other.csv", *start[2:])
    assert shown.exit_code == 2
    assert "feature names" in shown.stderr
    before = model.read_bytes()
    assert "--model" in refused(*start[:-1], tmp_path / "model.txt")
    np.savez(model, H=samples())
    assert "has no gram, products, squared_norm" in refused(*start)
    model.write_bytes(before[:100])
    assert "cannot be read" in refused(*start)
