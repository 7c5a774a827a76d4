"""Turns the texts of options into an estimator's parameters."""

from __future__ import annotations

from numbers import Real
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from sklearn.utils._param_validation import StrOptions, make_constraint

from .._estimator import PrivateDistributedNMF
from ._errors import CommandError
from ._graph import read_adjacency, read_numbers
from ._parameters import Parameter, parameters_of


class ValueType(click.ParamType):
    """Turns the text of an option into a parameter's value, and checks it.

    Parameters
    ----------
    parameter : Parameter
        Whose value it is.
    """

    def __init__(self, parameter: Parameter) -> None:
        self.parameter = parameter
        self.name = parameter.name

    def get_metavar(self, param: click.Parameter, ctx: Any = None) -> str:
        """Return what the help shows for the value.

        Parameters
        ----------
        param : click.Parameter
            The option.
        ctx : click.Context or None
            Not used.

        Returns
        -------
        str
            For example "INTEGER|none".
        """
        return self.parameter.shown

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the parameter's value.

        Parameters
        ----------
        value : str
            The text of the option.
        param : click.Parameter or None
            The option.
        ctx : click.Context or None
            Where it was given.

        Returns
        -------
        object
            Checked against the constraints.

        Raises
        ------
        CommandError
            If it is not allowed.
        """
        if not isinstance(value, str):
            return value
        if self.name == "partition":
            parsed = parse_partition(value)
        elif self.parameter.takes_array and value not in self.parameter.options:
            parsed = read_file(self.parameter, value)
        else:
            parsed = parse_value(self.parameter, value)
        allowed = [make_constraint(each) for each in self.parameter.constraints]
        if allowed and not any(each.is_satisfied_by(parsed) for each in allowed):
            named = [
                str(each)
                for each, given in zip(allowed, self.parameter.constraints, strict=True)
                if not isinstance(given, StrOptions) and given is not None
            ]
            # Sets of words are printed in an order that changes from run to run.
            words = ", ".join(self.parameter.options)
            if words:
                named.append(f"one of {words}" if "," in words else words)
            raise CommandError(
                f"{self.parameter.flag} {value}: should be {' or '.join(named)}"
            )
        return parsed


def parse_value(parameter: Parameter, text: str) -> Any:
    """Read a value as what the constraints allow.

    Parameters
    ----------
    parameter : Parameter
        Whose value it is.
    text : str
        As given.

    Returns
    -------
    object
        None, a string of the allowed ones, a bool, an int or a float; else the text
        itself, which the constraints then refuse.

    Examples
    --------
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf._cli._parameters import parameters_of
    >>> from skppdnmf._cli._values import parse_value
    >>> known = {each.name: each for each in parameters_of(PrivateDistributedNMF)}
    >>> parse_value(known["n_jobs"], "none"), parse_value(known["mu"], "1e-2")
    (None, 0.01)
    """
    unchecked = not parameter.constraints
    if text.lower() == "none" and (parameter.takes_none or unchecked):
        return None
    if text in parameter.options:
        return text
    takes_bool = unchecked or "boolean" in parameter.constraints
    if takes_bool and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if parameter.number or unchecked:
        try:
            return int(text)
        except ValueError:
            pass
    if parameter.number is Real or unchecked:
        try:
            return float(text)
        except ValueError:
            pass
    return text


def parse_partition(text: str) -> Any:
    """Read a number of agents, block sizes or fractions.

    Parameters
    ----------
    text : str
        Numbers, with commas between them, or "none".

    Returns
    -------
    None, int, list of int or list of float
        A list if there are several, or one fraction.

    Raises
    ------
    CommandError
        If it is none of these.

    Examples
    --------
    >>> from skppdnmf._cli._values import parse_partition
    >>> parse_partition("5"), parse_partition("10,20"), parse_partition("0.5,0.5")
    (5, [10, 20], [0.5, 0.5])
    """
    if text.lower() == "none":
        return None
    pieces = [piece.strip() for piece in text.split(",")]
    for kind in (int, float):
        try:
            blocks = [kind(piece) for piece in pieces]
        except ValueError:
            continue
        return blocks[0] if kind is int and len(blocks) == 1 else blocks
    raise CommandError(
        f"--partition {text}: should be a number of agents (5), block sizes "
        "(10,20,30), fractions (0.5,0.5) or none"
    )


def read_file(parameter: Parameter, text: str) -> Any:
    """Read the array that is a parameter's value.

    Parameters
    ----------
    parameter : Parameter
        Whose value it is.
    text : str
        Path of the file.

    Returns
    -------
    ndarray or pandas.DataFrame
        The array; a frame where a graph has labels.

    Raises
    ------
    CommandError
        If there is no such file or it cannot be read.
    """
    path = Path(text)
    # The path of an empty text is the current directory.
    if not text.strip() or not path.exists():
        raise CommandError(
            f"{parameter.flag} {text}: is neither one of "
            f"{', '.join(parameter.options)} nor a file"
        )
    return read_adjacency(path) if parameter.name == "adjacency" else read_numbers(path)


def parameter_options(
    estimator: type = PrivateDistributedNMF,
    defaults: dict[str, Any] | None = None,
) -> list[click.Option]:
    """Return an option for each parameter of an estimator.

    Parameters
    ----------
    estimator : type, default=PrivateDistributedNMF
        A scikit-learn estimator's class.
    defaults : dict or None, default=None
        What the help shows instead of the estimator's defaults.

    Returns
    -------
    list of click.Option
        In the order of the signature.
    """
    shown = defaults or {}
    options = []
    for parameter in parameters_of(estimator):
        default = shown.get(parameter.name, parameter.default)
        default = "none" if default is None else default
        options.append(
            click.Option(
                [parameter.flag, parameter.name],
                type=ValueType(parameter),
                help=f"{parameter.summary} [default: {default}]".strip(),
            )
        )
    return options


def given_parameters(ctx: click.Context, estimator: type) -> dict[str, Any]:
    """Return the parameters that were given on the command line.

    Parameters
    ----------
    ctx : click.Context
        Of the command.
    estimator : type
        Whose parameters they are.

    Returns
    -------
    dict
        Others keep the estimator's default.
    """
    # None is a value that can be given, so it does not tell.
    return {
        parameter.name: ctx.params[parameter.name]
        for parameter in parameters_of(estimator)
        if ctx.get_parameter_source(parameter.name)
        not in (None, ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
    }
