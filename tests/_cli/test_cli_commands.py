"""The other commands, the group, and what a process returns."""

import os
import re
import signal
import subprocess
import sys

import click
import numpy as np
import pytest
from _cli_runner import refused, succeeded

import skppdnmf.audit
from skppdnmf import PrivateDistributedNMF, __main__, __version__
from skppdnmf._cli import bench, cli, demo
from skppdnmf._cli.errors import WarningLines
from skppdnmf._cli.terminal import format_table
from skppdnmf._files.errors import CommandError, describe, one_line

AUDITED = (
    *("--n-components", "2", "--partition", "6,6,1", "--adjacency", "path"),
    *("--encryption", "simulated", "--max-iter", "2", "--tol", "0"),
    *("--random-state", "0"),
)


@pytest.fixture
def data(tmp_path):
    np.save(tmp_path / "X.npy", np.random.default_rng(0).exponential(size=(13, 4)))
    return tmp_path / "X.npy"


def test_help_and_version():
    assert succeeded("--version").stdout == f"skppdnmf {__version__}\n"
    shown = succeeded().stdout
    assert shown == succeeded("--help").stdout == succeeded("-h").stdout
    for name, command in cli.commands.items():
        assert f"  {name} " in shown
        assert command.get_short_help_str(60)
        assert succeeded(name, "--help").stdout.startswith(f"Usage: cli {name}")


def test_the_help_says_what_each_protocol_sends():
    shown = " ".join(succeeded("--help").stdout.split())
    assert "ciphertexts only" not in shown
    assert "ciphertexts under --protocol consensus, the default" in shown
    assert "Under --protocol secure-sum nothing is encrypted this way" in shown


def test_wrong_usage_is_one_line():
    assert "No such command 'fot'" in refused("fot")
    assert "No such option" in refused("--bogus")
    assert "No such option" in refused("bench", "--bogus")
    assert "nexpected extra argument" in refused("bench", "more")
    assert "No such command 'more'" in refused("demo", "more")


def test_outside_of_standalone_mode_errors_are_raised(tmp_path):
    with pytest.raises(click.BadParameter, match="does not exist"):
        cli.main(["fit", str(tmp_path / "no.npy")], standalone_mode=False)
    (tmp_path / "no.npy").write_bytes(b"")
    with pytest.raises(CommandError, match="cannot be read"):
        cli.main(["fit", str(tmp_path / "no.npy")], standalone_mode=False)
    assert cli.main(["--help"], standalone_mode=False) == 0


def test_main_exits(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["skppdnmf", "--version"])
    with pytest.raises(SystemExit) as caught:
        __main__.main()
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"skppdnmf {__version__}\n"


def test_an_audit(data, tmp_path):
    limits = ("--max-seconds", "1e-9", "--max-rounds", "10")
    file = tmp_path / "r.html"
    report = ("--report", file, "--image-shape", "2x2")
    # With scalar masks, so that there is something to draw.
    result = succeeded("audit", data, *AUDITED, "--masking", "scalar", *limits, *report)
    assert "greatest common divisor" in result.stdout
    assert "The first 10 exchanges" in result.stdout
    assert "no time left of max_seconds=1e-09" in result.stdout
    assert all(line.startswith("Warning: ") for line in result.stderr.splitlines())
    page = file.read_text()
    assert "greatest common divisor" in page
    assert "<td>max_iter</td><td>2</td>" in page
    assert not re.search(r"https?://", page)
    assert page.count('src="data:image/png;base64,') == 1
    assert "exists; --force" in refused("audit", data, "--report", file)


def test_what_an_audit_is_given(data, monkeypatch):
    calls = []

    class Report:
        def __str__(self):
            return "found nothing"

    def audit_report(estimator, X, agents=None, **limits):
        calls.append((estimator, X, agents, limits))
        return Report()

    monkeypatch.setattr(skppdnmf.audit, "audit_report", audit_report)
    X = np.load(data)
    X[:, -1] = np.arange(len(X)) % 3
    np.save(data, X)
    assert succeeded("audit", data, "--mu", "2").stdout == "found nothing\n"
    limits = ("--max-seconds", "2.5", "--max-samples", "3")
    succeeded("audit", data, "--agents", "3", "--drop", "0", *limits)
    (first, X_1, agents_1, limits_1), (second, X_2, agents_2, limits_2) = calls
    assert first.get_params() == PrivateDistributedNMF(mu=2).get_params()
    assert second.get_params() == PrivateDistributedNMF().get_params()
    np.testing.assert_array_equal(X_1, X)
    np.testing.assert_array_equal(X_2, X[:, 1:-1])
    assert agents_1 is None
    assert agents_2 == X[:, -1].tolist()
    assert limits_1 == {}
    assert limits_2 == {"max_seconds": 2.5, "max_samples": 3}


def test_references_of_an_audit(data, tmp_path, monkeypatch):
    calls = []

    def audit_report(estimator, X, agents=None, **given):
        calls.append((X, agents, given["references"]))
        return "report"

    monkeypatch.setattr(skppdnmf.audit, "audit_report", audit_report)
    others = np.random.default_rng(1).exponential(size=(7, 4))
    np.save(tmp_path / "others.npy", others)
    succeeded("audit", data, "--references", tmp_path / "others.npy")
    np.testing.assert_array_equal(calls[0][2], others)
    # The column of agents, and what is dropped, is left out there, too.
    table = tmp_path / "X.csv"
    table.write_text("site,a,b,c\nx,1,2,3\ny,2,1,0\ny,2,1,4\n")
    more = tmp_path / "more.csv"
    more.write_text("site,a,b,c\n,5,6,7\n")
    succeeded(
        *("audit", table, "--agents", "site", "--drop", "b", "--references", more)
    )
    X, agents, references = calls[1]
    assert agents == ["x", "y", "y"]
    assert list(references.columns) == list(X.columns) == ["a", "c"]
    assert references.to_numpy().tolist() == [[5, 7]]
    more.write_text("site,a,d,b\nz,5,6,7\n")
    found = refused("audit", table, "--agents", "site", "--references", more)
    assert "has a column 'd' where" in found
    np.save(tmp_path / "others.npy", others[:, :3])
    found = refused("audit", data, "--references", tmp_path / "others.npy")
    assert "others.npy: has 3 features, but" in found
    assert "does not exist" in refused("audit", data, "--references", tmp_path / "no")


def test_an_audit_that_is_refused(data, tmp_path):
    assert "partition=14 exceeds" in refused("audit", data, "--partition", "14")
    assert "does not exist" in refused("audit", tmp_path / "no.npy")
    assert "has 9 pixels" in refused(
        "audit", data, "--report", tmp_path / "r.html", "--image-shape", "3x3"
    )
    assert "'--max-samples'" in refused("audit", data, "--max-samples", "0")
    assert "--agents and --partition" in refused(
        "audit", data, "--agents", "0", "--partition", "2"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nan", "'nan' is not a finite number."),
        ("inf", "'inf' is not a finite number."),
        ("1e999", "'1e999' is not a finite number."),
        ("-inf", "-inf is not in the range x>0."),
        ("0", "0.0 is not in the range x>0."),
        ("-1", "-1.0 is not in the range x>0."),
        ("soon", "'soon' is not a valid number."),
        ("", "'' is not a valid number."),
    ],
)
def test_seconds_that_are_refused(data, text, expected):
    found = refused("audit", data, "--max-seconds", text)
    assert found == f"Invalid value for '--max-seconds': {expected}"


@pytest.mark.parametrize("command", ["fit", "audit"])
@pytest.mark.parametrize("flag", ["--agents", "--drop", "--report"])
@pytest.mark.parametrize("text", ["", " "])
def test_empty_values_are_refused(data, command, flag, text):
    found = refused(command, data, flag, text)
    assert found.startswith(f"Invalid value for '{flag}': {text!r} ")
    assert refused(command, text) == (
        f"Invalid value for 'FILE': File {text!r} does not exist."
    )


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_output_is_refused(data, text):
    assert refused("fit", data, "--out", text) == (
        f"Invalid value for '--out': {text!r} is empty."
    )


def test_bench(monkeypatch):
    asked = []

    def cost(masking, key_size):
        asked.append((masking, key_size))
        return 0.125, 20.0

    monkeypatch.setattr(bench, "cost", cost)
    shown = succeeded("bench", "--quick").stdout
    assert asked == [("scalar", 2048), ("entrywise", 2048)]
    assert f"skppdnmf {__version__}" in shown
    table = [line.split() for line in shown.splitlines()]
    assert ["scalar", "2048", "0.125", "20.0"] in table
    consensus, summed, pooled = (
        float(next(line.split()[-1] for line in shown.splitlines() if name in line))
        for name in ("consensus, simulated", "secure sum", "pooled NMF")
    )
    assert pooled < consensus < 1.1 * pooled
    assert 0.99 * pooled < summed < consensus
    asked.clear()
    monkeypatch.setattr(bench, "compare", lambda max_iter: [("", f"{max_iter}")])
    assert "60" in succeeded("bench").stdout
    assert asked == [(m, k) for k in (2048, 3072) for m in ("scalar", "entrywise")]


def test_what_a_value_costs():
    # A value's share of what is sent follows from the layout: a ciphertext is twice
    # as long as its key, and an entrywise request has one for each value.
    scalar_ms, scalar_bytes = bench.cost("scalar", 512)
    entrywise_ms, entrywise_bytes = bench.cost("entrywise", 512)
    assert 0 < scalar_ms < entrywise_ms < 10
    assert 128 < entrywise_bytes < 2 * 128
    assert scalar_bytes < entrywise_bytes / 2


def test_demo():
    with_short_keys = ("--key-size", "256", "--max-iter", "1")
    result = succeeded("demo", *with_short_keys)
    seeded, short, *others = result.stderr.splitlines()
    assert seeded.startswith("Warning: random_state is an integer, from which all")
    assert short == "Warning: key_size=256 protects nothing; use 2048 or more"
    assert others == []
    rows = {line[:18].strip(): line[18:].split() for line in result.stdout.splitlines()}
    errors = [float(cell) for cell in rows["relative error"]]
    few, many, summed, pooled = errors
    assert pooled < many < 1.03 * pooled
    assert summed == pytest.approx(pooled, rel=0.005)
    assert many < few < 1.3 * pooled
    assert rows["key bits"][0] == "256"
    assert rows["iterations"][0] == "1"
    assert int(rows["ciphertexts"][0].replace(",", "")) > 1000


def test_demo_of_bad_parameters():
    assert refused("demo", "--key-size", "5") == (
        "Invalid value for '--key-size': 5 is not in the range x>=64."
    )
    assert refused("demo", "--max-iter", "0") == (
        "Invalid value for '--max-iter': 0 is not in the range x>=1."
    )


def test_defaults_of_the_demo_protect():
    defaults = {param.name: param.default for param in demo.demo.params}
    assert defaults["key_size"] >= 2048


def test_format_table():
    assert format_table([("", "a", "long"), ("row", "1.25", "2")]) == (
        "        a  long\nrow  1.25     2"
    )


def test_one_line():
    assert one_line("a\n  b\tc ") == "a b c"
    assert describe(ValueError()) == "ValueError"


def test_warnings_for_users_only(capsys):
    import warnings

    with WarningLines() as lines:
        warnings.warn("for\nusers", UserWarning, stacklevel=1)
        warnings.warn("for\nusers", UserWarning, stacklevel=1)
        warnings.warn("for developers", DeprecationWarning, stacklevel=1)
        np.float64(1) / np.float64(0)
    shown = capsys.readouterr()
    assert shown.err == "Warning: for users\n"
    assert shown.out == ""
    assert lines.saw(UserWarning)
    assert lines.saw(Warning)
    assert not lines.saw(DeprecationWarning)


@pytest.mark.journey
@pytest.mark.skipif(os.name == "nt", reason="no such signal")
def test_an_interrupted_process(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", rng.exponential(size=(200, 60)))
    command = [sys.executable, "-m", "skppdnmf", "fit", str(tmp_path / "X.npy")]
    options = ["--n-components", "20", "--verbose", "1", "--max-iter", "1000000"]
    process = subprocess.Popen(
        [*command, *options, "--encryption", "simulated", "--tol", "0"],
        stdout=subprocess.DEVNULL,
        # A shell's background jobs, and what they start, ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    # The bar of the first iterations says that it runs; it ends if the process does.
    for line in process.stderr:
        if "exchanges" in line:
            break
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    assert rest.splitlines()[-1].strip() == "Error: interrupted"
    assert "Traceback" not in rest


@pytest.mark.journey
def test_a_reader_that_goes_away():
    process = subprocess.Popen(
        [sys.executable, "-m", "skppdnmf", "fit", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) in (0, 1)
