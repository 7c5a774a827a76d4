"""Reads what a site holds of a data set."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._files.errors import CommandError
from .._files.samples import read_data
from .._files.tables import find_column
from .folder import SiteFolder
from .policy import DataSet


class SiteSamples(NamedTuple):
    """What a site holds of a data set.

    Parameters
    ----------
    X : ndarray, CSR array or pandas.DataFrame of shape (n_samples, n_features)
        Nonnegative numbers, nan where one is missing; a frame where the columns have
        names.
    weights : ndarray of shape (n_samples,) or None
        Of the samples, if the data set has any.
    """

    X: Any
    weights: NDArray[np.float64] | None


def read_samples(folder: SiteFolder, dataset: str) -> SiteSamples:
    """Read what a site holds of a data set.

    Parameters
    ----------
    folder : SiteFolder
        The site's.
    dataset : str
        Name of the data set.

    Returns
    -------
    SiteSamples

    Raises
    ------
    CommandError
        If the site has no such data set, or its file cannot be read or is not what
        the folder says.
    """
    if dataset not in folder.datasets:
        known = ", ".join(map(repr, folder.datasets)) or "none"
        raise CommandError(f"{folder.name} has no data set {dataset!r}; it has {known}")
    given = folder.datasets[dataset]
    path = folder.path / given.file
    if not path.is_file():
        raise CommandError(f"{path}: there is no such file")
    if len(given.where) > 1:
        raise CommandError(
            f"datasets.{dataset}.where names {len(given.where)} columns; one is allowed"
        )
    column = next(iter(given.where), None)
    weight = given.sample_weight
    if weight is not None and (folder.path / weight).is_file():
        weight = str(folder.path / weight)
    data = read_data(
        path,
        agents=column,
        drop=given.drop,
        header=given.header,
        sample_weight=weight,
        allow_missing=given.missing,
    )
    X = data.X
    weights = None if data.weights is None else np.array(data.weights)
    if column is not None:
        wanted = str(given.where[column])
        kept = [k for k, label in enumerate(data.agents or []) if str(label) == wanted]
        rows = np.array(kept, dtype=np.intp)
        X, weights = _rows(X, rows), None if weights is None else weights[rows]
    if given.columns:
        X = _columns(X, given, dataset)
    if given.rows is not None:
        rows = _range(given.rows, X.shape[0], f"datasets.{dataset}.rows")
        X, weights = _rows(X, rows), None if weights is None else weights[rows]
    if not X.shape[0]:
        raise CommandError(f"datasets.{dataset}: no rows of {path} are left")
    return SiteSamples(X, weights)


def _rows(X: Any, kept: Any) -> Any:
    """Return some rows of samples."""
    return X.iloc[kept].reset_index(drop=True) if hasattr(X, "iloc") else X[kept]


def _columns(X: Any, given: DataSet, dataset: str) -> Any:
    """Return the columns that are named, in their order."""
    names = list(X.columns) if hasattr(X, "columns") else list(range(X.shape[1]))
    places = []
    for name in given.columns:
        place = find_column(names, name)
        if place is None:
            raise CommandError(f"datasets.{dataset}.columns: there is no {name!r}")
        places.append(place)
    if hasattr(X, "iloc"):
        return X.iloc[:, places]
    return sparse.csr_array(X[:, places]) if sparse.issparse(X) else X[:, places]


def _range(text: str, n_rows: int, key: str) -> Any:
    """Return the rows of a range such as "0:500"."""
    found = re.fullmatch(r"(\d*):(\d*)", text)
    if found is None:
        raise CommandError(f'{key} should be a range such as "0:500", not {text!r}')
    start = int(found[1] or 0)
    stop = int(found[2] or n_rows)
    if not start < stop <= n_rows:
        raise CommandError(f"{key}={text!r} is not among the {n_rows} rows of the file")
    return np.arange(start, stop)
