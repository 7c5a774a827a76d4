"""Options made from the estimator's signature, constraints and docstring."""

from numbers import Integral, Real

import click
import numpy as np
import pytest
from _cli_runner import refused, run, succeeded
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.decomposition import NMF
from sklearn.utils._param_validation import Interval, StrOptions

from skppdnmf import PrivateDistributedNMF
from skppdnmf._cli import _fit
from skppdnmf._cli._errors import CommandError
from skppdnmf._cli._parameters import parameters_of, read_summaries
from skppdnmf._cli._values import (
    ValueType,
    given_parameters,
    parameter_options,
    parse_partition,
)

PARAMETERS = {each.name: each for each in parameters_of(PrivateDistributedNMF)}
OWN_OPTIONS = {
    "file",
    "agents",
    "drop",
    "header",
    "report",
    "force",
    "out",
    "image_shape",
    "quiet",
    "strict",
    "help",
}


class Newer(BaseEstimator):
    """An estimator with parameters of every kind.

    Parameters
    ----------
    flag : bool, default=False
        Whether. And more.
    whole, half : number
        Two of
        them.
    free : object
    array : {"a"} or array-like, \\
default="a"
        One line.

    Attributes
    ----------
    other_ : int
        Not a parameter.
    """

    _parameter_constraints = {  # noqa: RUF012
        "flag": ["boolean"],
        "whole": [Interval(Integral, 1, None, closed="left"), None],
        "half": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "array": [StrOptions({"a"}), "array-like"],
    }

    def __init__(self, flag=False, *, whole=1, half=0.5, free=None, array="a"):
        self.flag = flag
        self.whole = whole
        self.half = half
        self.free = free
        self.array = array


def convert(name, text, estimator=PrivateDistributedNMF):
    known = {each.name: each for each in parameters_of(estimator)}
    return ValueType(known[name]).convert(text, None, None)


def refusal(name, text, estimator=PrivateDistributedNMF):
    with pytest.raises(CommandError) as caught:
        convert(name, text, estimator)
    assert caught.value.exit_code == 2
    return caught.value.message


def parse(args, estimator=Newer):
    """Parameters that a command with the estimator's options is given."""
    found = {}

    @click.pass_context
    def callback(ctx, **options):
        found.update(given_parameters(ctx, estimator))

    command = click.Command("x", params=parameter_options(estimator), callback=callback)
    command.main(args, standalone_mode=False)
    return found


def test_every_parameter_is_an_option_of_fit_and_audit():
    names = set(PrivateDistributedNMF().get_params())
    fit_options = {param.name for param in _fit.fit.params}
    assert names <= fit_options
    # No option of the command's own hides a parameter.
    assert not names & OWN_OPTIONS
    assert fit_options - names <= OWN_OPTIONS
    for command in ("fit", "audit"):
        shown = succeeded(command, "--help").stdout
        for parameter in PARAMETERS.values():
            assert f"{parameter.flag} " in shown


def test_every_parameter_has_a_summary():
    for parameter in PARAMETERS.values():
        assert parameter.summary.endswith("."), parameter.name
    assert PARAMETERS["mu"].summary == PARAMETERS["eta"].summary


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_every_default_can_be_given(name):
    default = PARAMETERS[name].default
    value = convert(name, "none" if default is None else str(default))
    assert value == default
    assert type(value) is type(default)


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_every_word_can_be_given(name):
    for word in PARAMETERS[name].options:
        assert convert(name, word) == (None if word == "none" else word)


def test_a_new_parameter_appears_by_itself():
    assert parse([]) == {}
    assert parse(
        ["--flag", "true", "--whole", "none", "--half", "auto", "--free", "2.5"]
    ) == {"flag": True, "whole": None, "half": "auto", "free": 2.5}
    assert parse(["--free", "word", "--whole", "3"]) == {"free": "word", "whole": 3}
    assert parse(["--free", "none"]) == {"free": None}
    shown = {option.name: option for option in parameter_options(Newer)}
    assert list(shown) == ["flag", "whole", "half", "free", "array"]
    assert shown["flag"].help == "Whether. [default: False]"
    assert shown["half"].help == "Two of them. [default: 0.5]"
    assert shown["array"].help == "One line. [default: a]"
    assert shown["free"].help == "[default: none]"


def test_another_estimator_of_scikit_learn():
    value = parse(["--beta-loss", "kullback-leibler", "--l1-ratio", "1"], NMF)
    assert value == {"beta_loss": "kullback-leibler", "l1_ratio": 1}


def test_numbers_keep_their_kind():
    assert type(convert("n_max", "1000")) is int
    assert type(convert("n_max", "1e3")) is float
    assert convert("tol", "0") == 0
    assert convert("n_jobs", "-1") == -1
    assert convert("random_state", "7") == 7


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("n_components", "0", "an int in the range [1, inf) or auto"),
        ("n_components", "2.5", "an int in the range"),
        ("n_components", "none", "or auto"),
        ("mu", "0", "a float in the range (0.0, 1e+100]"),
        ("mu", "inf", "a float in the range (0.0, 1e+100]"),
        ("mu", "nan", "a float in the range (0.0, 1e+100]"),
        ("l1_ratio", "1.5", "a float in the range [0.0, 1.0]"),
        ("masking", "Scalar", "one of entrywise, scalar"),
        ("encryption", "rsa", "one of paillier, simulated, none"),
        ("n_jobs", "all", "or none"),
        ("random_state", "-1", "or none"),
        ("key_size", "2", "an int in the range [64"),
        ("key_scheme", "rsa", "one of djn, subgroup"),
        ("partition", "5,x", "a number of agents (5), block sizes"),
        ("partition", "", "a number of agents (5), block sizes"),
        ("adjacency", "cube", "one of random, ring, complete, star, path nor a file"),
        ("init", "nndsvd", "one of ones, random nor a file"),
        ("init", "", "one of ones, random nor a file"),
        ("adjacency", "", "one of random, ring, complete, star, path nor a file"),
    ],
)
def test_values_that_are_refused(name, text, expected):
    found = refusal(name, text)
    assert found.startswith(f"{PARAMETERS[name].flag} {text}: ")
    assert expected in found
    assert "\n" not in found


@pytest.mark.parametrize(
    "name", sorted(name for name, each in PARAMETERS.items() if each.number is Real)
)
@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-1"])
def test_numbers_that_no_parameter_takes(name, text):
    assert refusal(name, text).startswith(f"{PARAMETERS[name].flag} {text}: should be")


def test_partition():
    assert parse_partition("none") is None
    assert parse_partition("5") == 5
    assert parse_partition("10, 20,30") == [10, 20, 30]
    assert parse_partition("0.5,0.5") == [0.5, 0.5]
    assert parse_partition("1,0.0") == [1.0, 0.0]
    assert parse_partition("1.0") == [1.0]


def test_files_as_values(tmp_path):
    start = np.ones((2, 3))
    np.save(tmp_path / "start.npy", start)
    sparse.save_npz(tmp_path / "graph.npz", sparse.csr_matrix([[0, 1], [1, 0]]))
    np.testing.assert_array_equal(convert("init", str(tmp_path / "start.npy")), start)
    np.testing.assert_array_equal(
        convert("adjacency", str(tmp_path / "graph.npz")), [[0, 1], [1, 0]]
    )
    np.testing.assert_array_equal(
        convert("array", str(tmp_path / "start.npy"), Newer), start
    )
    (tmp_path / "bad.csv").write_text("a\n")
    assert refusal("init", str(tmp_path / "bad.csv")).startswith(f"{tmp_path}/bad.csv")


def test_none_is_given_though_it_is_a_default():
    assert parse(["--encryption", "none"], PrivateDistributedNMF) == {
        "encryption": None
    }


def test_names_may_be_written_as_in_code(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((6, 3)))
    for flag in ("--alpha-W", "--alpha_W", "--alpha-w"):
        found = refused("fit", tmp_path / "X.npy", flag, "-1")
        assert found.startswith("--alpha-W -1: should be a float")


def test_summaries_of_docstrings_that_lack_something():
    assert read_summaries(None) == {}
    assert read_summaries("Title.\n\nReturns\n-------\nint\n    It.") == {}
    assert read_summaries("Parameters\n----------\na : int\nb : int\n    B.") == {
        "a": "",
        "b": "B.",
    }
    assert "other_" not in read_summaries(Newer.__doc__)


def test_the_help_is_in_sections():
    shown = succeeded("fit", "--help").stdout
    first, _, second = shown.partition("Parameters of the estimator:")
    assert "--agents" in first
    assert "--mu NUMBER" not in first
    assert "--mu NUMBER" in second
    assert "--agents COLUMN" not in second
    assert "[default: 1 on a terminal, else 0]" in " ".join(second.split())


def test_click_complains_in_one_line():
    assert "Missing argument" in refused("fit")
    assert "No such option" in refused("fit", "x.npy", "--mew", "1")
    assert "requires an argument" in refused("fit", "x.npy", "--mu")
    assert run("fit", "x.npy", "--mu").stdout == ""
