"""What `skppdnmf fit` writes loads back and equals the estimator's own fit."""

import json
import os

import numpy as np
import pytest
from _cli_runner import (
    QUICK,
    forbid_fit,
    own_fit,
    refused,
    samples,
    save_array,
    save_table,
    succeeded,
    table,
)
from scipy import sparse

from skppdnmf._cli import outputs

array = pytest.fixture(save_array)
sites = pytest.fixture(save_table)
no_fit = pytest.fixture(forbid_fit)


def assert_same_history(found, model):
    assert list(found) == list(model.history_)
    for name, column in model.history_.items():
        if name == "seconds":  # differ from run to run
            assert np.all(np.diff(found[name]) > 0)
        else:
            np.testing.assert_array_equal(found[name], column)


def test_a_directory_holds_the_fit_to_the_last_bit(sites, tmp_path):
    out = tmp_path / "deep" / "out"
    succeeded("fit", sites, "--agents", "site", *QUICK, "--out", out)
    model, W = own_fit(table().drop(columns="site"), table()["site"])
    for name, expected in (
        ("W", W),
        ("components", model.components_),
        ("sample_agents", model.sample_agents_),
        ("adjacency", model.adjacency_),
    ):
        np.testing.assert_array_equal(np.load(out / f"{name}.npy"), expected)
    labels = json.loads((out / "agent_labels.json").read_text())
    assert labels == model.agent_labels_ == ["x", "y", "z"]
    components = np.genfromtxt(out / "components.csv", delimiter=",", names=True)
    assert components.dtype.names == tuple("abcde")
    lines = (out / "components.csv").read_text().splitlines()[1:]
    np.testing.assert_array_equal(
        [[float(cell) for cell in line.split(",")] for line in lines],
        model.components_,
    )
    header, *rows = (out / "history.csv").read_text().splitlines()
    columns = zip(
        *([float(cell) for cell in row.split(",")] for row in rows), strict=True
    )
    assert_same_history(dict(zip(header.split(","), columns, strict=True)), model)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["parameters"] == {**model.get_params()}
    results = summary["results"]
    assert results["reconstruction error"] == model.reconstruction_err_
    assert results["exchanges"] == model.n_exchanges_
    assert results["bytes"] == model.traffic_["bytes"]
    assert (results["agents"], results["samples"], results["features"]) == (3, 18, 5)


def test_an_archive_holds_the_fit_to_the_last_bit(array, tmp_path):
    out = tmp_path / "out.npz"
    succeeded("fit", array, "--partition", "10,8", *QUICK, "--out", out)
    model, W = own_fit(samples(), partition=[10, 8])
    with np.load(out, allow_pickle=False) as found:
        np.testing.assert_array_equal(found["W"], W)
        np.testing.assert_array_equal(found["components"], model.components_)
        np.testing.assert_array_equal(found["sample_agents"], model.sample_agents_)
        np.testing.assert_array_equal(found["adjacency"], model.adjacency_)
        assert found["agent_labels"].tolist() == [0, 1]
        assert "feature_names" not in found
        history = {
            name.removeprefix("history_"): found[name]
            for name in found
            if name.startswith("history_")
        }
        assert_same_history(history, model)
        assert json.loads(str(found["summary"]))["parameters"]["partition"] == [10, 8]


def test_an_archive_of_a_table_has_the_names(sites, tmp_path):
    succeeded("fit", sites, "--agents", "site", *QUICK, "--out", tmp_path / "o.npz")
    with np.load(tmp_path / "o.npz", allow_pickle=False) as found:
        assert found["feature_names"].tolist() == list("abcde")
        assert found["agent_labels"].tolist() == ["x", "y", "z"]


def test_sparse_and_single_precision(tmp_path):
    X = samples() * (samples(seed=1) < 1)
    sparse.save_npz(tmp_path / "s.npz", sparse.csr_matrix(X))
    np.save(tmp_path / "f.npy", X.astype(np.float32))
    for name, given in (
        ("s.npz", sparse.csr_array(X)),
        ("f.npy", X.astype(np.float32)),
    ):
        out = tmp_path / f"of_{name}.npz"
        succeeded("fit", tmp_path / name, *QUICK, "--out", out)
        model, W = own_fit(given)
        with np.load(out) as found:
            np.testing.assert_array_equal(found["components"], model.components_)
            assert found["components"].dtype == model.components_.dtype
            np.testing.assert_array_equal(found["W"], W)


def test_single_precision_components_as_text(tmp_path):
    frame = table().drop(columns="site").astype(np.float32)
    frame.to_parquet(tmp_path / "f.parquet")
    succeeded("fit", tmp_path / "f.parquet", *QUICK, "--out", tmp_path / "out")
    model, _ = own_fit(frame)
    assert model.components_.dtype == np.float32
    lines = (tmp_path / "out" / "components.csv").read_text().splitlines()[1:]
    found = [[float(cell) for cell in line.split(",")] for line in lines]
    np.testing.assert_array_equal(np.float32(found), model.components_)


@pytest.mark.usefixtures("no_fit")
def test_existing_results_are_not_replaced(array, tmp_path):
    (tmp_path / "o.npz").write_bytes(b"mine")
    assert refused("fit", array, *QUICK, "--out", tmp_path / "o.npz") == (
        f"{tmp_path / 'o.npz'}: exists; --force replaces it"
    )
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "W.npy").write_bytes(b"mine")
    assert refused("fit", array, *QUICK, "--out", tmp_path / "o") == (
        f"{tmp_path / 'o'}: holds W.npy already; --force replaces them"
    )
    assert (tmp_path / "o.npz").read_bytes() == b"mine"
    assert (tmp_path / "o" / "W.npy").read_bytes() == b"mine"


def test_force_replaces_results_and_nothing_else(array, sites, tmp_path):
    out = tmp_path / "o"
    succeeded("fit", sites, "--agents", "site", *QUICK, "--out", out)
    (out / "notes.txt").write_text("mine")
    assert (out / "components.csv").exists()
    succeeded("fit", array, *QUICK, "--mu", "2", "--out", out, "--force")
    model, _ = own_fit(samples(), mu=2)
    found = np.load(out / "components.npy")
    np.testing.assert_array_equal(found, model.components_)
    # One of the table's fit would contradict the rest.
    assert not (out / "components.csv").exists()
    assert (out / "notes.txt").read_text() == "mine"
    left = {file.name for file in out.iterdir()}
    assert left == {*outputs.FOLDER_FILES, "notes.txt"}
    (tmp_path / "o.npz").write_bytes(b"mine")
    succeeded("fit", array, *QUICK, "--out", tmp_path / "o.npz", "--force")
    assert "W" in np.load(tmp_path / "o.npz")


def test_a_directory_without_results_is_used(array, tmp_path):
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "notes.txt").write_text("mine")
    succeeded("fit", array, *QUICK, "--out", tmp_path / "o")
    assert (tmp_path / "o" / "W.npy").exists()


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize("name", ["o.txt", "o.CSV", "o.csv.gz", "o.npy", "o.html"])
def test_a_directory_is_not_named_like_a_file(array, tmp_path, name):
    expected = (
        f"Invalid value for '--out': '{tmp_path / name}' is named like a file; the "
        "output is a directory or a new .npz file."
    )
    assert refused("fit", array, *QUICK, "--out", tmp_path / name) == expected
    assert not (tmp_path / name).exists()
    (tmp_path / name).write_text("mine")
    for force in ((), ("--force",)):
        out = ("--out", tmp_path / name, *force)
        assert refused("fit", array, *QUICK, *out) == expected
    assert (tmp_path / name).read_text() == "mine"


def test_directories_may_have_dots(array, tmp_path):
    (tmp_path / "o.txt").mkdir()
    for name in ("o.txt", "run-0.5"):
        succeeded("fit", array, *QUICK, "--out", tmp_path / name)
        assert (tmp_path / name / "W.npy").exists()


@pytest.mark.usefixtures("no_fit")
def test_outputs_that_cannot_be_written(array, tmp_path, monkeypatch):
    file, folder = tmp_path / "file", tmp_path / "o.npz"
    file.write_text("")
    folder.mkdir()
    assert refused("fit", array, *QUICK, "--out", file) == (
        f"Invalid value for '--out': Directory '{file}' is a file."
    )
    assert f"cannot be made, {file} is not a directory" in refused(
        "fit", array, *QUICK, "--out", file / "deep" / "o"
    )
    assert f"cannot be made, {file} is not a directory" in refused(
        "fit", array, *QUICK, "--out", file / "o.npz"
    )
    assert refused("fit", array, *QUICK, "--out", folder) == (
        f"Invalid value for '--out': File '{folder}' is a directory."
    )
    # The data can still be read.
    monkeypatch.setattr(outputs.os, "access", lambda path, mode: mode == os.R_OK)
    for out in ("new", "new.npz", "new/deep"):
        assert f"no permission to write to {tmp_path}" in refused(
            "fit", array, *QUICK, "--out", tmp_path / out
        )
    assert not (tmp_path / "new").exists()


def test_a_disk_that_fills_up(array, tmp_path, monkeypatch):
    def savez(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    (tmp_path / "o.npz").write_bytes(b"mine")
    monkeypatch.setattr(np, "savez", savez)
    out = tmp_path / "o.npz"
    assert refused("fit", array, *QUICK, "--out", out, "--force", code=1) == (
        f"{out}: cannot be written: No space left on device"
    )
    assert out.read_bytes() == b"mine"
    assert {file.name for file in tmp_path.iterdir()} == {"X.npy", "o.npz"}
