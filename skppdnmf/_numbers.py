"""Numbers that users give, as Python's own, before anything is computed with them.

A numpy scalar of few bits makes everything that it meets as narrow as it is: a bound
of 1e100 overflows beside a float32, and so does 200 times 784 in int16.
"""

from __future__ import annotations

from copy import copy
from numbers import Integral, Real
from typing import Any

import numpy as np


def python_number(value: Any) -> Any:
    """Return the Python number that is worth as much, or what is no number as it is.

    Parameters
    ----------
    value : object
        Whatever has been given as a parameter.

    Returns
    -------
    object
        A bool, int or float for numpy's scalars and for other real numbers such as
        fractions; anything else unchanged.

    Examples
    --------
    >>> from fractions import Fraction
    >>> import numpy as np
    >>> from skppdnmf._numbers import python_number
    >>> python_number(np.float32(0.5)), python_number(np.int8(3))
    (0.5, 3)
    >>> python_number(Fraction(1, 4)), python_number("auto")
    (0.25, 'auto')
    """
    if isinstance(value, np.bool_):
        return bool(value)
    # Of a duration numpy says that it is an integer.
    if isinstance(value, (bool, np.timedelta64)):
        return value
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def python_count(value: Any, name: str, least: int = 1) -> int:
    """Return a count as a Python integer.

    Parameters
    ----------
    value : object
        What has been given.
    name : str
        What the error calls it.
    least : int, default=1
        The least that is allowed.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If it is no integer, or less than allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._numbers import python_count
    >>> python_count(np.uint8(200), "n_features") * 784
    156800
    """
    count = python_number(value)
    if not isinstance(count, int) or isinstance(count, bool) or count < least:
        raise ValueError(f"{name}={value!r} should be an integer, {least} or more")
    return count


def with_python_numbers(estimator: Any) -> Any:
    """Return an estimator whose numeric parameters are Python's own.

    Parameters
    ----------
    estimator : BaseEstimator
        Stays as it is.

    Returns
    -------
    BaseEstimator
        The estimator itself if there is nothing to convert, else a copy.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf._numbers import with_python_numbers
    >>> with_python_numbers(PrivateDistributedNMF(mu=np.float32(0.5))).mu
    0.5
    """
    given = estimator.get_params(deep=False)
    numbers = {name: python_number(value) for name, value in given.items()}
    changed = {name: new for name, new in numbers.items() if new is not given[name]}
    if not changed:
        return estimator
    plain = copy(estimator)
    for name, value in changed.items():
        setattr(plain, name, value)
    return plain
