"""Weights, known components and gaps on the command line."""

import numpy as np
import pandas as pd
import pytest
from _cli_runner import refused, samples, succeeded, table
from numpy.testing import assert_allclose
from scipy import sparse

from skppdnmf import PrivateDistributedNMF

SUMS = (
    *("--protocol", "secure-sum", "--n-components", "2", "--max-iter", "5"),
    *("--tol", "0", "--random-state", "3"),
)


def own(X, **parameters):
    given = {"protocol": "secure-sum", "max_iter": 5, "tol": 0, "random_state": 3}
    return PrivateDistributedNMF(2, **{**given, **parameters})


def components(out):
    return np.load(out)["components"]


WEIGHTS = np.arange(18) % 4 + 0.5


@pytest.mark.parametrize("source", ["column", "text", "array"])
def test_weights(tmp_path, source):
    frame = table()
    given = tmp_path / "weights"
    if source == "column":
        given = "mass"
        frame["mass"] = WEIGHTS
    elif source == "text":
        given.write_text("\n".join(map(str, WEIGHTS)))
    else:
        given = tmp_path / "weights.npy"
        np.save(given, WEIGHTS)
    frame.to_csv(tmp_path / "data.csv", index=False)
    succeeded(
        *("fit", tmp_path / "data.csv", "--agents", "site", *SUMS),
        *("--sample-weight", given, "--out", tmp_path / "out.npz"),
    )
    expected = own(None).fit(
        samples(), agents=frame["site"].tolist(), sample_weight=WEIGHTS
    )
    assert_allclose(components(tmp_path / "out.npz"), expected.components_)


def test_refused_weights(tmp_path):
    frame = table().assign(mass=[-1.0] + [1.0] * 17)
    frame.to_csv(tmp_path / "data.csv", index=False)
    start = ("fit", tmp_path / "data.csv", "--agents", "site", *SUMS)
    assert "-1 (row 0)" in refused(*start, "--sample-weight", "mass")
    assert "nor is there such a file" in refused(*start, "--sample-weight", "no")
    (tmp_path / "few").write_text("1\n2\n")
    table().to_csv(tmp_path / "data.csv", index=False)
    assert "has 2 weights" in refused(*start, "--sample-weight", tmp_path / "few")


def test_known_components(tmp_path):
    known = np.array([[1.0, 2.0, 0.0, 4.0, 1.0]])
    pd.DataFrame(known).to_csv(tmp_path / "known.csv", index=False, header=False)
    np.save(tmp_path / "X.npy", samples())
    succeeded(
        *("fit", tmp_path / "X.npy", *SUMS, "--normalize", "components"),
        *("--fixed-components", tmp_path / "known.csv"),
        *("--out", tmp_path / "out.npz"),
    )
    found = components(tmp_path / "out.npz")
    assert_allclose(found[0], known[0] / 8)
    assert_allclose(found.sum(axis=1), 1)


def test_empty_cells_are_missing(tmp_path):
    X = samples()
    X[0, 0] = X[5, 2] = np.nan
    frame = table()
    frame[list("abcde")] = X
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    start = ("fit", tmp_path / "gaps.csv", "--agents", "site")
    succeeded(*start, *SUMS, "--out", tmp_path / "out.npz")
    expected = own(None).fit(X, agents=frame["site"].tolist())
    assert_allclose(components(tmp_path / "out.npz"), expected.components_)
    assert "missing or infinite" in refused(*start, "--protocol", "consensus")


def test_absent_entries_of_a_sparse_file(tmp_path):
    X = sparse.csr_array(samples() * (samples(seed=1) < 1))
    sparse.save_npz(tmp_path / "X.npz", X)
    start = ("fit", tmp_path / "X.npz", *SUMS, "--out", tmp_path / "out.npz")
    succeeded(*start, "--sparse-missing", "true")
    expected = own(None, sparse_missing=True).fit(X)
    assert_allclose(components(tmp_path / "out.npz"), expected.components_)
