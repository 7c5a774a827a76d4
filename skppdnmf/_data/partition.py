"""Which agent holds which sample."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skppdnmf._data.graph import as_python, comes_from, is_missing, name_some
from skppdnmf._data.shapes import refuse_unread, without_label_columns
from skppdnmf._numbers import python_number

DEFAULT_N_AGENTS = 4
# With fewer agents that hold samples a sum over all hides nothing.
LEAST_HOLDERS = 3


@dataclass(frozen=True, eq=False)
class Partition:
    """Which agent holds which sample.

    Parameters
    ----------
    sample_agents : ndarray of shape (n_samples,), dtype intp
        Index of the agent that holds each sample.
    labels : list of length n_agents
        Labels of the agents; one that holds no sample is a relay.
    """

    sample_agents: NDArray[np.intp]
    labels: list[Any]

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return len(self.labels)

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """Number of samples of each agent, shape (n_agents,)."""
        return np.bincount(self.sample_agents, minlength=self.n_agents)

    @property
    def n_holders(self) -> int:
        """Number of agents that hold samples."""
        return int(np.count_nonzero(self.sizes))

    @cached_property
    def samples(self) -> tuple[NDArray[np.intp], ...]:
        """Row numbers of each agent's samples, each array in ascending order."""
        order = np.argsort(self.sample_agents, kind="stable")
        return tuple(np.split(order, np.cumsum(self.sizes)[:-1]))


def split_samples(n_samples: int, partition: Any = None) -> Partition:
    """Give each agent a block of consecutive samples.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    partition : None, int or sequence of int or of float
        None makes four agents, or as many as there are samples if fewer; an int
        that many agents, with block sizes that differ by one at most. Integers
        are block sizes and sum to `n_samples`; floats are fractions and sum to
        1, so that they fit the training part of any cross-validation. A block
        of size 0 makes a relay.

    Returns
    -------
    Partition
        With labels 0..n_agents-1.

    Raises
    ------
    ValueError
        If `partition` is none of these or does not fit `n_samples`.
    """
    if n_samples < 1:
        raise ValueError(f"n_samples={n_samples} must be at least 1 to be partitioned")
    if partition is None:
        partition = min(DEFAULT_N_AGENTS, n_samples)
    partition = python_number(partition)
    if isinstance(partition, int) and not isinstance(partition, bool):
        n_agents = int(partition)
        if n_agents < 1:
            raise ValueError(f"partition={n_agents} must be at least 1")
        if n_agents > n_samples:
            raise ValueError(
                f"partition={n_agents} exceeds n_samples={n_samples}: take fewer "
                "agents, or sizes with zeros for agents that hold nothing"
            )
        sizes = np.full(n_agents, n_samples // n_agents)
        sizes[: n_samples % n_agents] += 1
    else:
        sizes = _read_blocks(n_samples, partition)
    agents = np.repeat(np.arange(len(sizes), dtype=np.intp), sizes)
    return Partition(agents, list(range(len(sizes))))


def _read_blocks(n_samples: int, partition: Any) -> NDArray[np.intp]:
    """Block sizes of a sequence of sizes or fractions."""
    listed = _as_list(partition)
    blocks = [python_number(block) for block in listed] if listed else []
    if blocks and all(_is_integer(block) for block in blocks):
        sizes = [int(block) for block in blocks]
        negative = [f"{size} (agent {k})" for k, size in enumerate(sizes) if size < 0]
        if negative:
            raise ValueError(f"partition has negative sizes: {name_some(negative)}")
        if sum(sizes) != n_samples:
            raise ValueError(
                f"the sizes in partition sum to {sum(sizes)}, but "
                f"n_samples={n_samples}; fractions that sum to 1.0 fit any n_samples"
            )
        return np.array(sizes, dtype=np.intp)
    if blocks and all(isinstance(block, float) for block in blocks):
        fractions: list[float] = blocks
        outside = [
            f"{fraction} (agent {k})"
            for k, fraction in enumerate(fractions)
            if not 0 <= fraction <= 1
        ]
        if outside:
            raise ValueError(
                f"partition has fractions outside [0, 1]: {name_some(outside)}"
            )
        # Fractions of few digits, such as thirds in float32, miss 1 by as many.
        if abs(fsum(fractions) - 1) > max(1e-9, _rounding(partition, listed)):
            raise ValueError(
                f"the fractions in partition sum to {fsum(fractions)!r}, not to 1: "
                "divide each by their sum, or give whole numbers for sizes"
            )
        ends = np.rint(np.cumsum(fractions) * n_samples).astype(np.intp)
        # The sum may miss 1 by a rounding error; an agent of fraction 0 at the
        # end must not get the sample that this leaves over.
        ends = np.minimum(ends, n_samples)
        ends[np.flatnonzero(fractions)[-1] :] = n_samples
        return np.diff(ends, prepend=0)
    raise ValueError(
        f"partition={partition!r} must be None, a number of agents, a sequence of "
        "integer block sizes, or a sequence of float fractions"
    )


def _rounding(partition: Any, listed: Any) -> float:
    """Return by how much fractions of this precision may miss their sum."""
    kinds = [getattr(one, "dtype", None) for one in (partition, *listed)]
    precisions = [
        float(np.finfo(kind).eps)
        for kind in kinds
        if isinstance(kind, np.dtype) and kind.kind == "f"
    ]
    return len(listed) * max(precisions, default=0.0)


def assign_agents(
    agents: Any, n_samples: int, graph_labels: Sequence[Hashable] | None = None
) -> Partition:
    """Group the samples by one label each.

    Parameters
    ----------
    agents : 1-D array-like of length n_samples
        Any hashable labels: a list, an array, a pandas or polars series.
    n_samples : int
        Number of samples.
    graph_labels : sequence or None
        Labels of an explicit graph, which become the agents in this order; those
        without samples are relays. None makes an agent of each distinct label,
        sorted where the labels compare, else in order of first appearance.

    Returns
    -------
    Partition

    Raises
    ------
    ValueError
        If `agents` is not 1-D, has the wrong length, or holds a label that is
        missing, unhashable or not in the graph, or labels of different types that
        compare equal.
    """
    listed = _as_list(agents)
    if listed is None:
        shape = getattr(agents, "shape", None)
        found = type(agents).__name__ if shape is None else f"shape {tuple(shape)}"
        raise ValueError(f"agents must be 1-D, one label per sample; got {found}")
    if len(listed) != n_samples:
        raise ValueError(
            f"agents has {len(listed)} labels, but X has n_samples={n_samples}: give "
            "each sample the label of its agent"
        )
    # Hashing takes a million labels in less than a tenth of a second, and unlike
    # sorting (numpy.unique) it takes any label.
    try:
        distinct = list(dict.fromkeys(listed))
    except TypeError as error:
        raise ValueError(
            f"agents must be 1-D, one hashable label per sample: {error}"
        ) from error
    missing = [label for label in distinct if is_missing(label)]
    if missing:
        where = [str(k) for k, label in enumerate(listed) if is_missing(label)]
        raise ValueError(f"agents has missing labels, at samples {name_some(where)}")
    if len(set(map(type, listed))) > 1 or any(isinstance(d, tuple) for d in distinct):
        distinct = _check_apart(listed)
    labels = _roster(distinct, graph_labels, "agents")
    index = {label: k for k, label in enumerate(labels)}
    return Partition(
        np.fromiter(map(index.__getitem__, listed), np.intp, len(listed)), labels
    )


def assign_parts(
    numbers: NDArray[np.intp],
    part_labels: Sequence[Hashable],
    graph_labels: Sequence[Hashable] | None = None,
) -> Partition:
    """Make an agent of each labelled part, also of one without samples.

    Parameters
    ----------
    numbers : ndarray of shape (n_samples,)
        Number of the part that each sample comes from.
    part_labels : sequence
        Labels of the parts, each once.
    graph_labels : sequence or None
        As for `assign_agents`.

    Returns
    -------
    Partition

    Raises
    ------
    ValueError
        If a label is not in the graph.
    """
    labels = _roster(part_labels, graph_labels, "X")
    index = {label: k for k, label in enumerate(labels)}
    places = np.array([index[label] for label in part_labels], dtype=np.intp)
    return Partition(places[numbers], labels)


def _roster(
    distinct: Any, graph_labels: Sequence[Hashable] | None, name: str
) -> list[Any]:
    """Labels of the agents, in their order."""
    if graph_labels is None:
        labels = [as_python(label) for label in distinct]
        try:
            return sorted(labels)
        except TypeError:
            return labels
    labels = [as_python(label) for label in graph_labels]
    known = {label: label for label in labels}
    unknown = [repr(as_python(label)) for label in distinct if label not in known]
    if unknown:
        raise ValueError(
            f"{name} names {name_some(unknown)}, not in the graph, whose agents are "
            f"{name_some([repr(label) for label in labels])}"
        )
    _check_apart([*labels, *distinct], floats_apart=False)
    return labels


def _check_apart(listed: Sequence[Any], floats_apart: bool = True) -> list[Any]:
    """Return the distinct labels; refuse some that are equal but of other types."""
    kinds = dict.fromkeys(
        (_kind_of_label(label, floats_apart), label) for label in listed
    )
    first: dict[Any, Any] = {}
    for _, label in kinds:
        if label in first:
            one, other = as_python(first[label]), as_python(label)
            raise ValueError(
                f"the agents' labels hold both {one!r} ({type(one).__name__}) and "
                f"{other!r} ({type(other).__name__}), which compare equal; convert "
                "them to one type, or to text to keep them apart"
            )
        first[label] = label
    return list(first)


def _kind_of_label(label: Any, floats_apart: bool) -> Any:
    """Return what sets labels apart that compare equal: the kind of number."""
    if isinstance(label, tuple):
        return tuple(_kind_of_label(one, floats_apart) for one in label)
    if isinstance(label, (bool, np.bool_)):
        return "bool"
    if isinstance(label, Real):
        return "float" if floats_apart and not isinstance(label, Integral) else "int"
    return None


def _as_list(values: Any) -> list[Any] | None:
    """List of the entries of a sequence or 1-D array; None for anything else."""
    if isinstance(values, (str, bytes, bytearray)):
        return None
    shape = getattr(values, "shape", None)
    if shape is not None and len(shape) != 1:
        return None
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        # tolist() makes bare ints of datetime64[ns].
        return list(values)
    for convert in ("tolist", "to_list", "to_pylist"):
        if hasattr(values, convert):
            return getattr(values, convert)()
    return list(values) if isinstance(values, Sequence) else None


def _is_integer(value: Any) -> bool:
    """Whether the value is an integer and no bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_parts(X: Any) -> bool:
    """Whether X is parts, labelled or not, even such as `stack_parts` refuses."""
    if isinstance(X, Mapping):
        return not sparse.issparse(X)  # scipy's dictionary of keys is one as well
    if not isinstance(X, (list, tuple)):
        return False
    return any(_is_part(p) or _is_labelled(p) or _is_list_of_rows(p) for p in X)


def _is_labelled(part: Any) -> bool:
    """Whether it is a pair of a label and a part, as grouping a frame makes them."""
    pair = isinstance(part, (list, tuple)) and len(part) == 2
    return pair and _is_part(part[1]) and not _is_part(part[0])


def split_labels(X: Any) -> tuple[list[Any] | None, list[Any]]:
    """Return the labels of parts, None if they have none, and the parts.

    Parameters
    ----------
    X : mapping, list or tuple
        From labels to parts; pairs of a label and a part; or parts.

    Returns
    -------
    labels : list or None
        One for each part; a label that is a tuple of one entry is that entry.
    parts : list
        Frames without the columns that say the label, which grouping leaves in them.

    Raises
    ------
    ValueError
        If only some parts have labels, or labels are missing or not distinct.
    """
    if isinstance(X, Mapping):
        pairs = list(X.items())
    elif isinstance(X, (list, tuple)) and any(map(_is_labelled, X)):
        bare = [str(k) for k, part in enumerate(X) if not _is_labelled(part)]
        if bare:
            raise ValueError(
                f"parts mixes pairs (label, part) with others: {name_some(bare)}"
            )
        pairs = list(X)
    else:
        return None, list(X) if isinstance(X, (list, tuple)) else X
    keys = [as_python(key) for key, _ in pairs]
    labels = [
        as_python(key[0]) if isinstance(key, tuple) and len(key) == 1 else key
        for key in keys
    ]
    missing = [str(k) for k, label in enumerate(labels) if is_missing(label)]
    if missing:
        raise ValueError(f"parts without a label: {name_some(missing)}")
    if len(_check_apart(labels)) < len(labels):
        twice = [repr(one) for one in dict.fromkeys(labels) if labels.count(one) > 1]
        raise ValueError(f"labels of more than one part: {name_some(twice)}")
    return labels, without_label_columns(labels, [part for _, part in pairs])


def _is_part(part: Any) -> bool:
    """Whether it is a 2-D array, a sparse matrix or a frame."""
    shape = getattr(part, "shape", None)
    return isinstance(shape, tuple) and len(shape) == 2


def _is_list_of_rows(part: Any) -> bool:
    """Whether it is a list of lists or arrays, and thus no row of a matrix."""
    # The first entry says enough: a matrix as nested lists may have many.
    if not isinstance(part, (list, tuple)) or not part:
        return False
    return isinstance(part[0], (list, tuple)) or bool(getattr(part[0], "shape", ()))


def stack_parts(parts: Any) -> tuple[Any, NDArray[np.intp]]:
    """Stack the agents' data and say which row is whose.

    Scikit-learn's pipelines and searches take one X. This makes it from one
    matrix per agent, with the `agents` to pass to `fit`.

    Parameters
    ----------
    parts : list, tuple or dict of {array, sparse matrix, frame} of shape (n_i, \
            n_features)
        The samples of each agent: 2-D arrays and scipy sparse matrices or arrays
        (which may be mixed), or pandas frames alone, or polars frames alone, with
        the same columns in the same order. With labels in a dict, or as pairs of a
        label and a part, which is what ``list(frame.groupby("site"))`` holds; a
        column in which every part has nothing but its label is left out then.

    Returns
    -------
    X : ndarray, CSR matrix or array, or frame of shape (n_samples, n_features)
        The parts below one another: a frame if they are frames (with their row
        labels, in pandas), CSR if one of them is sparse, else an array.
    agents : ndarray of shape (n_samples,)
        Number of the part that each row comes from (dtype intp), or its label
        (dtype object) if the parts have labels.

    Raises
    ------
    ValueError
        If `parts` is empty or holds no parts, if a part is not 2-D, if widths or
        column names differ, if kinds of data are mixed that do not go together, or
        if labels are missing or not distinct.
    TypeError
        If a part is a lazy frame or a masked array; the message says what to do.

    Notes
    -----
    A part without rows is a relay: an agent that takes part in the exchange but
    holds no samples. No entry of `agents` names it, so `agents` alone would lose
    it. Keep it with an explicit `adjacency`, an array whose row numbers are the
    numbers of the parts.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf import stack_parts
    >>> X, agents = stack_parts([np.ones((2, 3)), np.zeros((1, 3))])
    >>> X.shape
    (3, 3)
    >>> agents
    array([0, 0, 1])
    >>> stack_parts({"north": np.ones((2, 3)), "south": np.zeros((1, 3))})[1]
    array(['north', 'north', 'south'], dtype=object)
    """
    labels, parts = split_labels(parts)
    X, numbers = stack_numbered(parts)
    if labels is None:
        return X, numbers
    named = np.empty(len(labels), dtype=object)
    named[:] = labels
    return X, named[numbers]


def stack_numbered(parts: Any) -> tuple[Any, NDArray[np.intp]]:
    """Stack parts without labels, and say from which part each row comes."""
    for part in parts if isinstance(parts, (list, tuple)) else [parts]:
        refuse_unread(part)
    if not isinstance(parts, (list, tuple)) or not parts:
        raise ValueError(
            "parts must be a list or tuple of at least one 2-D array, sparse matrix "
            f"or frame; got {type(parts).__name__}"
            + (" of length 0" if isinstance(parts, (list, tuple)) else "")
        )
    odd = [
        f"{k} ({type(part).__name__}, shape {getattr(part, 'shape', None)})"
        for k, part in enumerate(parts)
        if not _is_part(part)
    ]
    if odd:
        message = f"parts must be 2-D; these are not: {name_some(odd)}"
        if any(map(_is_list_of_rows, parts)):
            message += "; make an array of each list of rows: numpy.asarray(part)"
        raise ValueError(message)
    kinds = [_kind(part) for part in parts]
    if len(set(kinds)) > 1 and not set(kinds) <= {"sparse matrix", "array"}:
        named = [f"{kind} (part {kinds.index(kind)})" for kind in dict.fromkeys(kinds)]
        raise ValueError(f"parts mixes {name_some(named)}; convert them to one kind")
    widths = [part.shape[1] for part in parts]
    if len(set(widths)) > 1:
        named = [f"{width} (part {k})" for k, width in enumerate(widths)]
        raise ValueError(
            f"parts differ in number of columns: {name_some(named)}; all agents need "
            "the same features in the same order"
        )
    agents = np.repeat(
        np.arange(len(parts), dtype=np.intp), [part.shape[0] for part in parts]
    )
    if kinds[0].endswith("frame"):
        return _stack_frames(parts, kinds[0]), agents
    if "sparse matrix" in kinds:
        # Convert through the older class: scipy's stack then returns an array if
        # one of the sparse parts is an array, and else a matrix.
        converted: list[Any] = [
            part if kind == "sparse matrix" else sparse.csr_matrix(part)
            for part, kind in zip(parts, kinds, strict=True)
        ]
        return sparse.vstack(converted, format="csr"), agents
    return np.concatenate([np.asarray(part) for part in parts]), agents


def _kind(part: Any) -> str:
    """Name of what may not be mixed."""
    for library in ("pandas", "polars"):
        if comes_from(part, library):
            return f"{library} frame"
    return "sparse matrix" if sparse.issparse(part) else "array"


def _stack_frames(parts: Sequence[Any], kind: str) -> Any:
    """Stack frames of one library, which must have the same columns."""
    names = list(parts[0].columns)
    for k, part in enumerate(parts):
        others = list(part.columns)
        if others != names:
            differing = [
                f"{theirs!r} for {name!r}"
                for name, theirs in zip(names, others, strict=True)
                if name != theirs
            ]
            order = " (the same, in another order)" if set(others) == set(names) else ""
            raise ValueError(
                f"the columns of part {k} differ from those of part 0{order}: "
                f"{name_some(differing)}"
            )
    # Empty frames have arbitrary dtypes, which would decide those of the result.
    filled = [part for part in parts if part.shape[0]] or [parts[0]]
    if kind == "pandas frame":
        import pandas as pd

        return pd.concat(filled)
    import polars as pl

    return pl.concat(filled, how="vertical_relaxed")
