"""`skppdnmf fit`: what it does, prints and returns."""

import json
import subprocess
import sys
import warnings

import networkx as nx
import numpy as np
import pytest
from _cli_runner import (
    QUICK,
    SHARED,
    forbid_fit,
    own_fit,
    refused,
    run,
    samples,
    save_array,
    save_table,
    succeeded,
    table,
)
from sklearn.exceptions import ConvergenceWarning

from skppdnmf import PrivateDistributedNMF
from skppdnmf._cli.summary import summarise, summary_rows
from skppdnmf.exceptions import DropoutError

array = pytest.fixture(save_array)
sites = pytest.fixture(save_table)
no_fit = pytest.fixture(forbid_fit)


def test_graph_and_start_from_files(sites, tmp_path):
    graph = nx.relabel_nodes(nx.path_graph(3), dict(enumerate("xyz")))
    nx.to_pandas_adjacency(graph).astype(int).to_csv(tmp_path / "graph.csv")
    start = samples(2, 5, seed=4)
    np.save(tmp_path / "start.npy", start)
    options = ("--adjacency", tmp_path / "graph.csv", "--init", tmp_path / "start.npy")
    succeeded(
        "fit", sites, "--agents", "site", *QUICK, *options, "--out", tmp_path / "o"
    )
    model, _ = own_fit(
        table().drop(columns="site"), table()["site"], adjacency=graph, init=start
    )
    found = np.load(tmp_path / "o" / "components.npy")
    np.testing.assert_array_equal(found, model.components_)
    parameters = json.loads((tmp_path / "o" / "summary.json").read_text())["parameters"]
    assert parameters["init"] == start.tolist()
    assert parameters["adjacency"] == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def test_a_relay_of_the_graph(array, tmp_path):
    np.save(tmp_path / "graph.npy", np.ones((3, 3), dtype=int) - np.eye(3, dtype=int))
    (tmp_path / "agents").write_text("0\n2\n" * 9)
    succeeded(
        "fit",
        array,
        "--agents",
        tmp_path / "agents",
        "--adjacency",
        tmp_path / "graph.npy",
        *QUICK,
        "--out",
        tmp_path / "o.npz",
    )
    with np.load(tmp_path / "o.npz") as found:
        assert found["agent_labels"].tolist() == [0, 1, 2]
        assert set(found["sample_agents"]) == {0, 2}


def test_the_secure_sum(array, tmp_path):
    options = ("--protocol", "secure-sum", *QUICK)
    succeeded("fit", array, *options, "--out", tmp_path / "o.npz")
    model, W = own_fit(samples(), protocol="secure-sum")
    with np.load(tmp_path / "o.npz") as found:
        np.testing.assert_array_equal(found["W"], W)
        np.testing.assert_array_equal(found["components"], model.components_)


def test_the_summary_is_printed(array, tmp_path):
    result = succeeded("fit", array, *QUICK, "--out", tmp_path / "o.npz")
    model, _ = own_fit(samples())
    lines = dict(line.rsplit(maxsplit=1) for line in result.stdout.splitlines())
    assert lines["exchanges"] == f"{model.n_exchanges_:,}"
    assert lines["relative error"] == f"{model.history_['shared_error'][-1]:.4g}"
    assert lines["written:"] == str(tmp_path / "o.npz")
    assert result.stderr == ""
    assert succeeded("fit", array, *QUICK, "--quiet").stdout == ""


def test_a_progress_bar_on_a_terminal_only(array, monkeypatch):
    bar = "100%"
    assert bar not in succeeded("fit", array, *QUICK).stderr
    assert bar in succeeded("fit", array, *QUICK, "--verbose", "1").stderr
    monkeypatch.setattr("skppdnmf._cli.options.on_terminal", lambda: True)
    assert bar in succeeded("fit", array, *QUICK).stderr
    assert bar not in succeeded("fit", array, *QUICK, "--quiet").stderr
    assert bar not in succeeded("fit", array, *QUICK, "--verbose", "0").stderr


def test_a_fit_that_does_not_converge(array, tmp_path):
    short = (*SHARED, "--n-components", "2", "--max-iter", "1")
    result = succeeded("fit", array, *short)
    warning, *others = result.stderr.splitlines()
    assert warning.startswith("Warning: PrivateDistributedNMF did not reach tol=0.0001")
    assert not others
    strict = run("fit", array, *short, "--strict", "--out", tmp_path / "o.npz")
    assert strict.exit_code == 3
    assert strict.stderr.splitlines() == [
        warning,
        "Error: the fit did not converge (--strict)",
    ]
    assert (tmp_path / "o.npz").exists()
    converging = (*SHARED, "--n-components", "2", "--tol", "0.5", "--strict")
    assert succeeded("fit", array, *converging).stderr == ""


def test_warnings_are_single_lines_and_shown_once(array):
    encrypted = ("--key-size", "256", "--n-components", "1", "--max-iter", "1")
    result = succeeded("fit", array, *encrypted, "--tol", "0", "--partition", "3")
    lines = result.stderr.splitlines()
    assert "Warning: key_size=256 protects nothing; use 2048 or more" in lines
    assert all(line.startswith("Warning: ") for line in lines)
    assert len(set(lines)) == len(lines)


def test_filters_of_warnings_are_restored(array):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        succeeded("fit", array, *SHARED, "--n-components", "2", "--max-iter", "1")
        warnings.warn("mine", ConvergenceWarning, stacklevel=1)
    assert [str(each.message) for each in caught] == ["mine"]


DIVERGING = (
    *("--n-components", "2", "--max-iter", "60", "--tol", "0", "--random-state", "0"),
    *("--update", "published", "--penalty-scaling", "absolute"),
    *("--mu", "1e-6", "--eta", "1e-6", "--g-max", "1e4"),
)


@pytest.mark.parametrize("encryption", ["none", "simulated"])
def test_a_fit_that_fails(array, tmp_path, encryption):
    out = tmp_path / "o"
    message = refused(
        "fit", array, *DIVERGING, "--encryption", encryption, "--out", out, code=1
    )
    assert message.startswith("failed: agent ")
    assert "diverged" in message
    assert not out.exists()


def test_factors_that_are_not_finite(array, monkeypatch):
    def fit_transform(self, X, agents=None):
        self.components_ = np.full((2, X.shape[1]), np.nan)
        return np.ones((X.shape[0], 2))

    monkeypatch.setattr(PrivateDistributedNMF, "fit_transform", fit_transform)
    message = refused("fit", array, *QUICK, code=1)
    assert message.startswith("the fit failed: its factors are not finite.")


def test_not_enough_memory(array, monkeypatch):
    def fit_transform(self, X, agents=None):
        raise MemoryError

    monkeypatch.setattr(PrivateDistributedNMF, "fit_transform", fit_transform)
    assert refused("fit", array, *QUICK, code=1) == "failed: not enough memory"


def test_an_agent_that_drops_out(array, monkeypatch):
    def fit_transform(self, X, agents=None):
        raise DropoutError("agent 2 failed in iteration 3")

    monkeypatch.setattr(PrivateDistributedNMF, "fit_transform", fit_transform)
    assert refused("fit", array, *QUICK, code=1) == (
        "failed: agent 2 failed in iteration 3"
    )


def test_agents_that_dropped_out_are_named():
    model, _ = own_fit(samples())
    names = [name for name, _ in summary_rows(summarise(model, 1.0)["results"])]
    assert "dropped agents" not in names
    model.dropped_agents_ = ["x", np.int64(2)]
    results = json.loads(json.dumps(summarise(model, 1.0)))["results"]
    assert results["dropped agents"] == ["x", 2]
    assert ("dropped agents", "x, 2") in summary_rows(results)


def test_an_unexpected_error(array, monkeypatch):
    def fit_transform(self, X, agents=None):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(PrivateDistributedNMF, "fit_transform", fit_transform)
    assert refused("fit", array, *QUICK, code=1) == "RuntimeError: two lines"
    result = run("--traceback", "fit", array, *QUICK)
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1] == "Error: RuntimeError: two lines"


def test_an_interrupt(array, tmp_path, monkeypatch):
    def fit_transform(self, X, agents=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(PrivateDistributedNMF, "fit_transform", fit_transform)
    assert refused("fit", array, *QUICK, code=130) == "interrupted"


@pytest.mark.usefixtures("no_fit")
def test_bad_input_is_found_before_the_fit(array, sites, tmp_path):
    assert refused("fit", tmp_path / "no.npy") == (
        f"Invalid value for 'FILE': File '{tmp_path / 'no.npy'}' does not exist."
    )
    assert "not numeric: 'site'" in refused("fit", sites)
    assert refused("fit", sites, "--agents", "site", "--partition", "3") == (
        "--agents and --partition exclude each other"
    )


def test_what_the_estimator_refuses(array, sites, tmp_path):
    (tmp_path / "agents").write_text("a\nb\n" * 9)
    np.save(tmp_path / "graph.npy", np.array([[0, 1], [1, 0]]))
    np.save(tmp_path / "start.npy", np.ones((2, 3)))
    for options, expected in (
        (("--partition", "10,9"), "the sizes in partition sum to 19"),
        (("--partition", "19"), "partition=19 exceeds n_samples=18"),
        (("--adjacency", tmp_path / "graph.npy"), "adjacency has 2 agents"),
        (
            ("--adjacency", tmp_path / "graph.npy", "--agents", tmp_path / "agents"),
            "agents names 'a', 'b', not in the graph",
        ),
        (("--init", tmp_path / "start.npy"), "init has shape (2, 3), expected"),
    ):
        message = refused("fit", array, *QUICK, *options)
        assert expected in message
    huge = tmp_path / "huge.npy"
    np.save(huge, np.full((4, 3), 1e200))
    assert "rescale X" in refused("fit", huge, *QUICK)


@pytest.mark.journey
def test_through_a_process(sites, tmp_path):
    command = [sys.executable, "-m", "skppdnmf", "fit", str(sites), "--agents", "site"]
    done = subprocess.run(
        [*command, *QUICK, "--out", str(tmp_path / "o.npz")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    model, _ = own_fit(table().drop(columns="site"), table()["site"])
    with np.load(tmp_path / "o.npz") as found:
        np.testing.assert_array_equal(found["components"], model.components_)
    failed = subprocess.run(
        [*command, "--mu", "0"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert failed.stderr == (
        "Error: Invalid value for '--mu': 0.0 is not in the range 0<x<=1e+100.\n"
    )
