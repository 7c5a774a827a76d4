"""Checks of an estimator's data and parameters against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import check_non_negative, validate_data

from .graph import GENERATORS, Network, make_network
from .partition import Partition, assign_agents, assign_parts, split_samples
from .shapes import refuse_unread

_LARGEST_START = 1e100


def validate_samples(estimator: Any, X: Any, reset: bool) -> Any:
    """Return X as a float array or CSR matrix, nonnegative and, for a fit, in range.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        Whose feature names and numbers are set or compared.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Data.
    reset : bool
        Whether the estimator is being fitted. A fit squares the data; what solves each
        sample's problem by itself does not, and takes any finite number.

    Returns
    -------
    ndarray in C order, or CSR matrix or array
        float32 if X is, else float64.

    Raises
    ------
    ValueError
        If X is not 2-D, finite, real, nonnegative and, for a fit, of a magnitude that
        can be squared without overflow or underflow.
    TypeError
        If X is a lazy frame or a masked array.
    """
    name = type(estimator).__name__
    refuse_unread(X)
    X = validate_data(
        estimator,
        X,
        accept_sparse="csr",
        ensure_all_finite="allow-nan",
        dtype=[np.float64, np.float32],
        order="C",
        reset=reset,
    )
    if sparse.issparse(X) and not X.has_canonical_format:
        # Entries given in several portions count as their sum. Not in place: X may
        # still be the user's.
        X = X.copy()
        X.sum_duplicates()
    if sparse.issparse(X) and np.isnan(X.data).any():
        if not estimator.sparse_missing:
            raise ValueError(
                "Input X contains NaN although it is sparse; leave out what is missing "
                "and set sparse_missing=True, which takes what is absent for missing"
            )
        X = X.copy()
        known = np.concatenate([[0], np.cumsum(~np.isnan(X.data))])
        X.indices, X.data = (
            X.indices[~np.isnan(X.data)],
            X.data[~np.isnan(X.data)],
        )
        X.indptr = known[X.indptr].astype(X.indptr.dtype)
    # nan compares as neither.
    values = X.data if sparse.issparse(X) else X
    if (values < 0).any():
        raise ValueError(
            f"Negative values in data passed to {name} (input X). The smallest is "
            f"{np.nanmin(values):.6g}: shift or scale each feature to 0 and above, by "
            "numbers that all agents share"
        )
    if not reset:
        return X
    largest = largest_entry(X)
    # Squares of the data must stay far from the ends of the number range.
    limit = np.sqrt(np.sqrt(np.finfo(X.dtype).max))
    if largest and not 1 / limit <= largest <= limit:
        raise ValueError(
            f"the largest entry of X is {largest:g}; {name} works with "
            f"{1 / limit:.0e} to {limit:.0e} in {X.dtype}: rescale X"
        )
    return X


def largest_entry(X: Any) -> float:
    """Return the largest entry of nonnegative data, 0 if there is none."""
    values = X.data if sparse.issparse(X) else X
    return float(np.fmax.reduce(values, axis=None, initial=0.0))


def check_start(
    n_components: Any, init: Any, n_features: int, name: str
) -> tuple[int, Any]:
    """Return the number of components and the start, checked against each other.

    Parameters
    ----------
    n_components : int or "auto"
        Number of components.
    init : str or array-like of shape (K, n_features)
        Kind of start, or the start.
    n_features : int
        Number of features.
    name : str
        What errors call the estimator.

    Returns
    -------
    n_components : int
        Number of components.
    init : str or ndarray
        The start.

    Raises
    ------
    ValueError
        If a given start has another shape, a negative entry or no positive one.
    """
    if isinstance(init, str):
        return int(n_features if n_components == "auto" else n_components), init
    try:
        init = check_array(init, dtype=np.float64, input_name="init")
    except ValueError as error:
        raise ValueError(f"init is no valid start: {error}") from error
    if n_components == "auto":
        n_components = init.shape[0]
    if init.shape != (n_components, n_features):
        raise ValueError(
            f"init has shape {init.shape}, expected (n_components, "
            f"n_features)={(n_components, n_features)}"
        )
    check_non_negative(init, f"{name} (input init)")
    if not init.any():
        raise ValueError("init is all zeros; it needs a positive entry")
    if init.max() > _LARGEST_START:
        raise ValueError(
            f"the largest entry of init is {init.max():g}; at most {_LARGEST_START:g} "
            "is allowed"
        )
    return int(n_components), init


def check_fixed(
    fixed: Any, n_components: int, n_features: int, name: str
) -> NDArray[np.float64] | None:
    """Return the known components, checked against the sizes.

    Parameters
    ----------
    fixed : array-like of shape (K0, n_features) or None
        The estimator's `fixed_components`.
    n_components, n_features : int
        Sizes.
    name : str
        What errors call the estimator.

    Returns
    -------
    ndarray of shape (K0, n_features) or None

    Raises
    ------
    ValueError
        If they are of another shape, leave none to be learned, or a row has a
        negative entry or no positive one.
    """
    if fixed is None:
        return None
    try:
        fixed = check_array(fixed, dtype=np.float64, input_name="fixed_components")
    except ValueError as error:
        raise ValueError(f"fixed_components is invalid: {error}") from error
    if fixed.shape[1] != n_features:
        raise ValueError(
            f"fixed_components has {fixed.shape[1]} columns, but n_features="
            f"{n_features}"
        )
    if len(fixed) >= n_components:
        raise ValueError(
            f"fixed_components has {len(fixed)} rows, which leaves none of "
            f"n_components={n_components} to be learned"
        )
    check_non_negative(fixed, f"{name} (input fixed_components)")
    largest = fixed.max(axis=1)
    odd = np.flatnonzero((largest < 1 / _LARGEST_START) | (largest > _LARGEST_START))
    if odd.size:
        raise ValueError(
            f"fixed_components has rows whose largest entry is not between "
            f"{1 / _LARGEST_START:g} and {_LARGEST_START:g}: {odd[:5].tolist()}"
        )
    return fixed


def check_federation(
    n_samples: int,
    partition: Any,
    adjacency: Any,
    agents: Any,
    n_parts: int | None,
    seed: int,
    part_labels: list[Any] | None = None,
) -> tuple[Partition, Network]:
    """Return who holds what and the graph, checked against each other.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    partition, adjacency
        As for `PrivateDistributedNMF`.
    agents : array-like of shape (n_samples,) or None
        Label of each sample's agent.
    n_parts : int or None
        Number of parts, of which `agents` holds the numbers.
    seed : int
        Seed of a random graph.
    part_labels : list or None, default=None
        Labels of the parts, if they have any.

    Returns
    -------
    partition : Partition
        The samples of each agent.
    network : Network
        The graph.

    Raises
    ------
    ValueError
        If one of them is invalid or they do not fit each other.
    """
    generated = isinstance(adjacency, str)
    if generated and adjacency not in GENERATORS:
        make_network(adjacency, 1, seed)  # raises
    network = None if generated else make_network(adjacency)
    labels = None if network is None else network.labels
    if agents is None:
        split = split_samples(n_samples, partition)
    elif part_labels is not None:
        split = assign_parts(np.asarray(agents), part_labels, labels)
    elif n_parts is None:
        split = assign_agents(agents, n_samples, labels)
    else:
        if network is not None and network.n_agents != n_parts:
            make_network(adjacency, n_parts)  # raises
        numbers: NDArray[np.intp] = np.asarray(agents)
        split = Partition(numbers, list(labels or range(n_parts)))
    if network is None:
        network = make_network(adjacency, split.n_agents, seed)
    elif network.n_agents != split.n_agents:
        make_network(adjacency, split.n_agents)  # raises
    elif agents is None:
        split = Partition(split.sample_agents, list(labels or []))
    return split, network
