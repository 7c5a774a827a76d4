"""Runs the command line within the process, for several test files."""

import inspect

import numpy as np
import pandas as pd
from click.testing import CliRunner

from skppdnmf import PrivateDistributedNMF
from skppdnmf._cli import cli

SHARED = ("--encryption", "simulated", "--random-state", "3")
QUICK = (*SHARED, "--n-components", "2", "--max-iter", "4", "--tol", "0")


def samples(n_samples=18, n_features=5, seed=0):
    return np.random.default_rng(seed).exponential(size=(n_samples, n_features))


def table():
    frame = pd.DataFrame(samples(), columns=list("abcde"))
    frame.insert(2, "site", ["x", "y", "z"] * 6)
    return frame


def save_array(tmp_path):
    """Write the samples; the file."""
    np.save(tmp_path / "X.npy", samples())
    return tmp_path / "X.npy"


def save_table(tmp_path):
    """Write the table; the file."""
    table().to_csv(tmp_path / "sites.csv", index=False)
    return tmp_path / "sites.csv"


def forbid_fit(monkeypatch):
    """Make every fit that starts fail."""

    def never(self, X, agents=None):
        raise AssertionError("the fit has started")

    monkeypatch.setattr(PrivateDistributedNMF, "fit_transform", never)


def own_fit(X, agents=None, **parameters):
    parameters = {
        "encryption": "simulated",
        "random_state": 3,
        "n_components": 2,
        "max_iter": 4,
        "tol": 0,
        **parameters,
    }
    model = PrivateDistributedNMF(**parameters)
    return model, model.fit_transform(X, agents=agents)


def run(*args, **kwargs):
    """Result of a command; its stdout and stderr are apart."""
    # Click 8.2 keeps them apart without being asked.
    apart = "mix_stderr" in inspect.signature(CliRunner).parameters
    runner = CliRunner(**({"mix_stderr": False} if apart else {}))
    return runner.invoke(cli, [str(arg) for arg in args], **kwargs)


def refused(*args, code=2):
    """Message of a command that must fail in one line and print nothing else."""
    result = run(*args)
    assert result.exit_code == code, (result.exit_code, result.stderr, result.exception)
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("Error: ")
    return lines[0].removeprefix("Error: ")


def succeeded(*args):
    """Result of a command that must not fail."""
    result = run(*args)
    assert result.exit_code == 0, (result.stderr, result.exception)
    return result
