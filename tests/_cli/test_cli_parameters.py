"""Options made from the table of the estimator's parameters."""

import contextlib
import re

import click
import numpy as np
import pytest
from _cli_runner import refused, run, succeeded
from scipy import sparse
from sklearn.utils._param_validation import make_constraint

from skppdnmf import PrivateDistributedNMF
from skppdnmf._cli import fit
from skppdnmf._cli.options import PARAMETERS, estimator_options
from skppdnmf._files.errors import CommandError

DEFAULTS = PrivateDistributedNMF().get_params()
# An object that several fits share, which one command has no use for.
OBJECTS = {"privacy_budget"}
OPTIONS = {option.name: option for option in estimator_options()}
CONSTRAINTS = PrivateDistributedNMF._parameter_constraints
OWN_OPTIONS = {
    "file",
    "agents",
    "drop",
    "header",
    "report",
    "force",
    "out",
    "image_shape",
    "sample_weight",
    "quiet",
    "strict",
    "help",
}


def convert(name, text):
    return PARAMETERS[name][0].convert(text, OPTIONS[name], None)


def refusal(name, text):
    with pytest.raises(click.BadParameter) as caught:
        convert(name, text)
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.format_message()
    return caught.value.format_message()


def words_of(taken):
    """The words that a type takes."""
    if isinstance(taken, click.Choice):
        return list(taken.choices)
    return [word for each in getattr(taken, "types", ()) for word in words_of(each)]


def test_every_parameter_has_an_entry_and_every_entry_a_parameter():
    assert set(PARAMETERS) == set(DEFAULTS) - OBJECTS
    assert list(OPTIONS) == list(PARAMETERS)


def test_every_parameter_is_an_option_of_fit_and_audit():
    names = set(DEFAULTS) - OBJECTS
    fit_options = {param.name for param in fit.fit.params}
    assert names <= fit_options
    # No option of the command's own hides a parameter.
    assert not names & OWN_OPTIONS
    assert fit_options - names <= OWN_OPTIONS
    for command in ("fit", "audit"):
        shown = succeeded(command, "--help").stdout
        for option in OPTIONS.values():
            assert f"{option.opts[0]} " in shown


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_the_help_has_text_type_and_default(name):
    text = PARAMETERS[name][1]
    assert text.endswith(".")
    context = click.Context(click.Command("x"))
    flag, shown = OPTIONS[name].get_help_record(context)
    assert flag.startswith(f"--{name.replace('_', '-')} ")
    assert len(flag.split()) > 1
    assert shown.startswith(text)
    default = "none" if DEFAULTS[name] is None else str(DEFAULTS[name])
    if name == "verbose":
        default = "(1 on a terminal, else 0)"
    assert re.search(rf"\[default: {re.escape(default)}[];]", shown)


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_every_default_can_be_given(name):
    default = DEFAULTS[name]
    value = convert(name, "none" if default is None else str(default))
    assert value == default
    assert type(value) is type(default)


@pytest.mark.parametrize("name", sorted(set(PARAMETERS) - {"verbose"}))
def test_the_default_is_the_estimators(name):
    context = click.Context(click.Command("x"))
    default = OPTIONS[name].get_default(context)
    value = OPTIONS[name].type_cast_value(context, default)
    assert value == DEFAULTS[name]
    assert type(value) is type(DEFAULTS[name])


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_every_word_can_be_given(name):
    for word in words_of(PARAMETERS[name][0]):
        assert convert(name, word) == (None if word == "none" else word)


NUMBERS = ("-1", "0", "0.5", "1", "1.5", "2", "63", "64", "4294967295", "4294967296")
LARGE = ("1e3", "1e100", "1.1e100", "1e300", "1.1e300", "1e999", "inf", "-inf", "nan")
WORDS = {word for taken, _ in PARAMETERS.values() for word in words_of(taken)}
PROBES = (*NUMBERS, *LARGE, *sorted(WORDS), "NONE", "Auto", "Scalar", "word", "", " ")


def meanings(text):
    """What a text may stand for."""
    yield None if text.lower() == "none" else text
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            yield kind(text)


@pytest.mark.parametrize(
    "name", sorted(k for k, v in CONSTRAINTS.items() if v != "no_validation")
)
def test_what_the_estimator_takes_can_be_given_and_nothing_else(name):
    constraints = [make_constraint(each) for each in CONSTRAINTS[name]]

    def is_allowed(value):
        return any(each.is_satisfied_by(value) for each in constraints)

    for text in PROBES:
        if any(map(is_allowed, meanings(text))):
            assert is_allowed(convert(name, text)), text
        else:
            flag = "--" + name.replace("_", "-")
            assert refusal(name, text).startswith(f"Invalid value for '{flag}': ")


def test_numbers_keep_their_kind():
    assert type(convert("n_max", "1000")) is int
    assert type(convert("n_max", "1e3")) is float
    assert convert("tol", "0") == 0
    assert convert("n_jobs", "-1") == -1
    assert convert("random_state", "7") == 7


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("n_components", "0", "0 is not in the range x>=1. '0' is not 'auto'."),
        ("n_components", "2.5", "'2.5' is not a valid integer range."),
        ("n_components", "none", "'none' is not 'auto'."),
        ("mu", "0", "0.0 is not in the range 0<x<=1e+100."),
        ("mu", "inf", "inf is not in the range 0<x<=1e+100."),
        ("mu", "nan", "'nan' is not a finite number."),
        ("tol", "inf", "'inf' is not a finite number."),
        ("l1_ratio", "1.5", "1.5 is not in the range 0<=x<=1."),
        ("masking", "Scalar", "'Scalar' is not one of 'entrywise', 'scalar'."),
        (
            "encryption",
            "rsa",
            "'rsa' is not one of 'paillier', 'bfv', 'simulated'. 'rsa' is not 'none'.",
        ),
        ("n_jobs", "all", "'all' is not a valid integer. 'all' is not 'none'."),
        ("random_state", "-1", "-1 is not in the range 0<=x<=4294967295."),
        ("key_size", "2", "2 is not in the range x>=64."),
        ("key_scheme", "rsa", "'rsa' is not one of 'djn', 'subgroup'."),
        ("partition", "5,x", "'5,x' is not a number of agents (5), block sizes"),
        ("partition", "", "'' is not a number of agents (5), block sizes"),
        (
            "adjacency",
            "cube",
            "'cube' is not one of 'random', 'ring', 'complete', 'star', 'path'. "
            "File 'cube' does not exist.",
        ),
        ("init", "nndsvd", "'nndsvd' is not one of 'random', 'ones'. File 'nndsvd'"),
        ("init", "", "'' is not one of 'random', 'ones'. File '' does not exist."),
        ("adjacency", "", "File '' does not exist."),
    ],
)
def test_values_that_are_refused(name, text, expected):
    found = refusal(name, text)
    assert found.startswith(f"Invalid value for '--{name.replace('_', '-')}': ")
    assert expected in found


def test_partition():
    def parse(text):
        return convert("partition", text)

    assert parse("none") is None
    assert parse("5") == 5
    assert parse("10, 20,30") == [10, 20, 30]
    assert parse("0.5,0.5") == [0.5, 0.5]
    assert parse("1,0.0") == [1.0, 0.0]
    assert parse("1.0") == [1.0]


def test_files_as_values(tmp_path):
    start = np.ones((2, 3))
    np.save(tmp_path / "start.npy", start)
    sparse.save_npz(tmp_path / "graph.npz", sparse.csr_matrix([[0, 1], [1, 0]]))
    np.testing.assert_array_equal(convert("init", str(tmp_path / "start.npy")), start)
    np.testing.assert_array_equal(
        convert("adjacency", str(tmp_path / "graph.npz")), [[0, 1], [1, 0]]
    )
    (tmp_path / "bad.csv").write_text("a\n")
    with pytest.raises(CommandError, match=r"bad\.csv: holds no rows of numbers"):
        convert("init", str(tmp_path / "bad.csv"))


def test_what_the_estimator_is_given(tmp_path, monkeypatch):
    given = []

    def fit_transform(self, X, agents=None):
        given.append(self.get_params())
        raise ValueError("enough")

    monkeypatch.setattr(PrivateDistributedNMF, "fit_transform", fit_transform)
    np.save(tmp_path / "X.npy", np.ones((6, 3)))
    refused("fit", tmp_path / "X.npy")
    refused("fit", tmp_path / "X.npy", "--encryption", "none", "--mu", "2")
    assert given == [DEFAULTS, {**DEFAULTS, "encryption": None, "mu": 2}]


def test_names_may_be_written_as_in_code(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((6, 3)))
    for flag in ("--alpha-W", "--alpha_W", "--alpha-w"):
        assert refused("fit", tmp_path / "X.npy", flag, "-1") == (
            "Invalid value for '--alpha-W': -1.0 is not in the range x>=0."
        )


def test_words_may_not_be_written_otherwise(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((6, 3)))
    for option in (
        ("--masking", "Scalar"),
        ("--protocol", "secure_sum"),
        ("--n-init", "AUTO"),
        ("--adjacency", "Ring"),
    ):
        assert f"'{option[1]}' is not " in refused("fit", tmp_path / "X.npy", *option)


def test_the_help_is_in_sections():
    shown = succeeded("fit", "--help").stdout
    first, _, second = shown.partition("Parameters of the estimator:")
    assert "--agents" in first
    assert "--mu NUMBER" not in first
    assert "--mu NUMBER" in second
    assert "--agents COLUMN" not in second
    assert "[default: (1 on a terminal, else 0); x>=0]" in " ".join(second.split())


def test_click_complains_in_one_line():
    assert "Missing argument" in refused("fit")
    assert "No such option" in refused("fit", "x.npy", "--mew", "1")
    assert "requires an argument" in refused("fit", "x.npy", "--mu")
    assert run("fit", "x.npy", "--mu").stdout == ""
