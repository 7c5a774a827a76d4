"""Options made from an estimator's parameters, of which new ones appear by themselves.

Names and defaults come from the constructor's signature, what values are allowed
from `_parameter_constraints`, and the help from the class's docstring.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from .._data.graph import GENERATORS


@dataclass(frozen=True)
class Parameter:
    """One parameter of an estimator.

    Parameters
    ----------
    name : str
        Its name.
    default : object
        Its default.
    constraints : list
        Scikit-learn's; empty if the estimator checks the parameter elsewhere.
    summary : str
        The first sentence of its documentation.
    """

    name: str
    default: Any
    constraints: list[Any]
    summary: str

    @property
    def flag(self) -> str:
        """The option's name."""
        return "--" + self.name.replace("_", "-")

    @property
    def options(self) -> list[str]:
        """The words that are allowed."""
        if self.name == "adjacency":
            return list(GENERATORS)
        words = [
            word
            for constraint in self.constraints
            if isinstance(constraint, StrOptions)
            for word in sorted(constraint.options)
        ]
        return words + ["none"] * self.takes_none

    @property
    def takes_none(self) -> bool:
        """Whether None is allowed."""
        return None in self.constraints or "random_state" in self.constraints

    @property
    def number(self) -> Any:
        """The kind of number that is allowed, Integral or Real."""
        kinds = [
            constraint.type if isinstance(constraint, Interval) else constraint
            for constraint in self.constraints
            if isinstance(constraint, (Interval, type))
        ]
        numbers = [kind for kind in kinds if issubclass(kind, Real)]
        if any(not issubclass(kind, Integral) for kind in numbers):
            return Real
        named = any(
            constraint in ("random_state", "verbose")
            for constraint in self.constraints
            if isinstance(constraint, str)
        )
        return Integral if numbers or named else None

    @property
    def takes_array(self) -> bool:
        """Whether an array is allowed."""
        return self.name == "adjacency" or "array-like" in self.constraints

    @property
    def shown(self) -> str:
        """What the help shows for a value."""
        if self.name == "partition":
            return "INTEGER|SIZES|FRACTIONS|none"
        kinds = {Integral: ["INTEGER"], Real: ["NUMBER"]}.get(self.number, [])
        return "|".join(kinds + self.options + ["FILE"] * self.takes_array) or "VALUE"


def parameters_of(estimator: type) -> list[Parameter]:
    """Return an estimator's parameters in the order of its signature.

    Parameters
    ----------
    estimator : type
        A scikit-learn estimator's class.

    Returns
    -------
    list of Parameter
        One for each.
    """
    constraints = getattr(estimator, "_parameter_constraints", {})
    summaries = read_summaries(estimator.__doc__)
    signature = inspect.signature(estimator.__init__)  # type: ignore[misc]
    found = []
    for name, parameter in list(signature.parameters.items())[1:]:
        allowed = constraints.get(name, "no_validation")
        found.append(
            Parameter(
                name,
                parameter.default,
                [] if allowed == "no_validation" else list(allowed),
                summaries.get(name, ""),
            )
        )
    return found


def read_summaries(docstring: str | None) -> dict[str, str]:
    r"""Return the first sentence that a numpydoc docstring has on each parameter.

    Parameters
    ----------
    docstring : str or None
        Of a class or a function.

    Returns
    -------
    dict
        From names to sentences.

    Examples
    --------
    >>> from skppdnmf._cli._parameters import read_summaries
    >>> read_summaries("Parameters\n----------\na, b : int\n    One. Two.")
    {'a': 'One.', 'b': 'One.'}
    """
    text = inspect.cleandoc((docstring or "").replace("\\\n", ""))
    section = re.search(r"^Parameters\n-+\n(.*?)(?=\n\S+\n-+\n|\Z)", text, re.M | re.S)
    if section is None:
        return {}
    entries = re.findall(
        r"^(\w[\w, ]*?) : [^\n]*\n((?:[ \t]+[^\n]*\n|\n)*)", section[1] + "\n", re.M
    )
    summaries = {}
    for names, description in entries:
        sentence = re.split(r"(?<=\.)\s", " ".join(description.split()), maxsplit=1)[0]
        for name in names.split(","):
            summaries[name.strip()] = sentence.replace("`", "")
    return summaries
