"""The communication graph: validation, generators, neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from reprlib import repr as short_repr
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from sklearn.utils import check_random_state

from skppdnmf._numbers import python_count

GENERATORS = ("random", "ring", "complete", "star", "path")


@dataclass(frozen=True, eq=False)
class Network:
    """Connected undirected graph of agents.

    Build it with `make_network`, which validates; the constructor does not.

    Parameters
    ----------
    adjacency : ndarray of shape (n_agents, n_agents), dtype int8
        Symmetric, 0 and 1, zero diagonal. Dense: a thousand agents take 1 MB.
    labels : list of length n_agents or None
        Labels of the agents; None where the graph was generated and the
        partition decides what the agents are called.
    """

    adjacency: NDArray[np.int8]
    labels: list[Hashable] | None = None

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return self.adjacency.shape[0]

    @cached_property
    def degrees(self) -> NDArray[np.intp]:
        """Number of neighbours of each agent, shape (n_agents,)."""
        return self.adjacency.sum(axis=1, dtype=np.intp)

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return int(self.degrees.sum()) // 2

    @property
    def mean_degree(self) -> float:
        """Mean number of neighbours."""
        return float(self.degrees.mean())

    @cached_property
    def directed_edges(self) -> NDArray[np.intp]:
        """Rows (sender, receiver) in lexicographic order, shape (2 n_edges, 2)."""
        return np.argwhere(self.adjacency)

    @cached_property
    def neighbours(self) -> tuple[NDArray[np.intp], ...]:
        """The neighbours of each agent, each array in ascending order."""
        stops = np.cumsum(self.degrees)[:-1]
        return tuple(np.split(self.directed_edges[:, 1].copy(), stops))

    @cached_property
    def eccentricities(self) -> NDArray[np.intp]:
        """Hops from each agent to the one farthest from it, shape (n_agents,)."""
        hops = csgraph.shortest_path(
            sparse.csr_matrix(self.adjacency), method="D", unweighted=True
        )
        return hops.max(axis=1).astype(np.intp)

    @property
    def diameter(self) -> int:
        """Hops between the two agents farthest apart."""
        return int(self.eccentricities.max())

    @cached_property
    def laplacian_eigenvalues(self) -> NDArray[np.float64]:
        """Eigenvalues of the graph Laplacian, ascending, shape (n_agents,)."""
        laplacian = np.diag(self.degrees.astype(float)) - self.adjacency
        return np.linalg.eigvalsh(laplacian)

    @property
    def spectral_gap(self) -> float:
        """Smallest nonzero Laplacian eigenvalue; 0 for one agent alone."""
        return 0.0 if self.n_agents == 1 else float(self.laplacian_eigenvalues[1])


def make_network(
    adjacency: Any, n_agents: int | None = None, random_state: Any = None
) -> Network:
    """Generate or validate the graph.

    Parameters
    ----------
    adjacency : {"random", "ring", "complete", "star", "path"} or graph
        "random" is connected, of average degree 3 where that many agents allow
        it (a uniformly drawn spanning tree plus uniformly drawn further edges);
        the hub of "star" is agent 0. A graph is a square array-like, a scipy
        sparse matrix or array, a pandas square frame (labels from its index) or
        an undirected networkx graph (labels are its nodes). The labels of an
        array are its row numbers.
    n_agents : int or None
        Number of agents. None takes the number an explicit graph has.
    random_state : int, RandomState instance or None
        For "random" alone.

    Returns
    -------
    Network

    Raises
    ------
    ValueError
        For an unknown name, or a graph that is empty, not square, directed,
        asymmetric, weighted, disconnected, of the wrong size, or that has
        missing entries, missing labels, self-loops, parallel edges or isolated
        agents. The message names the agents.
    """
    if n_agents is not None:
        n_agents = python_count(n_agents, "n_agents")
    if isinstance(adjacency, str):
        if adjacency not in GENERATORS:
            raise ValueError(_not_a_graph(adjacency))
        if n_agents is None:
            raise ValueError(f"adjacency={adjacency!r} needs n_agents")
        return Network(_frozen(_generate(adjacency, int(n_agents), random_state)))
    matrix, labels = _read_graph(adjacency)
    _check_labels(labels)
    _check_matrix(matrix, labels, n_agents)
    return Network(_frozen(matrix.astype(np.int8)), labels)


def name_some(items: Sequence[str], total: int | None = None, limit: int = 5) -> str:
    """Join at most `limit` items, and say how many of `total` are left out."""
    left_out = (len(items) if total is None else total) - min(len(items), limit)
    return ", ".join(items[:limit]) + (f" and {left_out} more" if left_out else "")


def comes_from(obj: Any, library: str) -> bool:
    """Whether a class of `obj` is defined in `library`, which is not imported."""
    return any(
        base.__module__.partition(".")[0] == library for base in type(obj).__mro__
    )


def as_python(label: Any) -> Any:
    """Turn a numpy scalar into the Python one, where none of it is lost."""
    # item() makes a bare int of datetime64[ns].
    if isinstance(label, np.generic) and label.dtype.kind not in "mM":
        return label.item()
    return label


def _frozen(matrix: NDArray[np.int8]) -> NDArray[np.int8]:
    """Make the array read-only: cached properties depend on it."""
    matrix.setflags(write=False)
    return matrix


def _generate(name: str, n_agents: int, random_state: Any) -> NDArray[np.int8]:
    """Adjacency matrix of a named graph."""
    matrix = np.zeros((n_agents, n_agents), dtype=np.int8)
    agents = np.arange(n_agents)
    if name == "random":
        rows, columns = _random_edges(n_agents, check_random_state(random_state))
    elif name == "complete":
        rows, columns = np.triu_indices(n_agents, 1)
    elif name == "star":
        rows, columns = np.zeros_like(agents[1:]), agents[1:]
    elif name == "ring" and n_agents > 2:
        rows, columns = agents, np.roll(agents, -1)
    else:
        rows, columns = agents[:-1], agents[1:]
    matrix[rows, columns] = matrix[columns, rows] = 1
    return matrix


def _random_edges(
    n_agents: int, rng: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Edges of a connected graph of average degree 3, each once."""
    # Aldous (1990): joining agent k to min(k - 1, uniform) and then renumbering
    # at random draws every labelled tree with equal probability.
    children = np.arange(1, n_agents)
    parents = np.minimum(rng.randint(n_agents, size=n_agents - 1), children - 1)
    order = rng.permutation(n_agents)
    ends = np.sort(np.stack([order[children], order[parents]]), axis=0)

    n_pairs = n_agents * (n_agents - 1) // 2
    n_edges = min(max(round(3 * n_agents / 2), n_agents - 1), n_pairs)
    free = np.triu(np.ones((n_agents, n_agents), dtype=bool), 1)
    free[ends[0], ends[1]] = False
    further = rng.choice(
        np.flatnonzero(free), size=n_edges - (n_agents - 1), replace=False
    )
    rows, columns = np.divmod(further, n_agents)
    return np.concatenate([ends[0], rows]), np.concatenate([ends[1], columns])


def _read_graph(graph: Any) -> tuple[NDArray[np.float64], list[Hashable]]:
    """Square float matrix and labels of an explicit graph."""
    if comes_from(graph, "networkx"):
        return _read_networkx(graph)
    if comes_from(graph, "pandas") and hasattr(graph, "columns"):
        return _read_pandas(graph)
    # Before the conversion, for a long sparse matrix might not fit in memory.
    is_sparse: bool = sparse.issparse(graph)
    if is_sparse:
        _check_square(graph.shape)
    # As objects, rows of unequal length make the same 1-D array in every numpy.
    dtype = object if isinstance(graph, (list, tuple)) else None
    try:
        matrix = graph.toarray() if is_sparse else np.asarray(graph, dtype=dtype)
    except ValueError as error:
        raise ValueError(f"adjacency is not a matrix: {error}") from error
    if matrix.ndim == 0:
        raise ValueError(_not_a_graph(graph))
    _check_square(matrix.shape)
    return _as_float(matrix), list(range(matrix.shape[0]))


def _not_a_graph(adjacency: Any) -> str:
    """Say that this is no graph, and what is."""
    allowed = ", ".join(map(repr, GENERATORS))
    return (
        f"adjacency={short_repr(adjacency)} is not one of {allowed}, nor a graph "
        "(a square matrix of 0 and 1, a pandas frame of one, a networkx graph)"
    )


def _check_labels(labels: Sequence[Any]) -> None:
    """Refuse labels that are None, nan, NaT or pandas.NA, which no sample can have."""
    missing = [
        f"{label!r} (agent {k})" for k, label in enumerate(labels) if is_missing(label)
    ]
    if missing:
        raise ValueError(f"adjacency has missing labels: {name_some(missing)}")


def is_missing(label: Any) -> bool:
    """Whether the label is None, nan, NaT or pandas.NA."""
    if label is None:
        return True
    try:
        return bool(label != label)
    except TypeError:  # pandas.NA has no truth value
        return True


def _check_square(shape: tuple[int, ...]) -> None:
    """Refuse what is not a square matrix of at least one agent."""
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"adjacency must be a square matrix; it has shape {shape}")
    if shape[0] == 0:
        raise ValueError("adjacency has no agents (shape (0, 0))")


def _as_float(matrix: NDArray[Any]) -> NDArray[np.float64]:
    """Convert to float, refusing what is no number."""
    if matrix.dtype.kind not in "biufO":
        raise ValueError(f"adjacency must hold 0 and 1; its dtype is {matrix.dtype}")
    try:
        return matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"adjacency must hold 0 and 1: {error}") from error


def _read_pandas(frame: Any) -> tuple[NDArray[np.float64], list[Hashable]]:
    """Matrix of a square frame, columns put in the order of its index."""
    _check_square(frame.shape)
    for axis, index in (("index", frame.index), ("columns", frame.columns)):
        if not index.is_unique:
            repeated = index[index.duplicated()].unique().tolist()
            raise ValueError(
                f"the {axis} of adjacency repeats {name_some(_reprs(repeated))}"
            )
    order = frame.columns.get_indexer(frame.index)
    if (order < 0).any():
        rows_only = frame.index[order < 0].tolist()
        columns_only = frame.columns[~frame.columns.isin(frame.index)].tolist()
        raise ValueError(
            "index and columns of adjacency must be the same agents; only in the "
            f"index: {name_some(_reprs(rows_only))}; only in the columns: "
            f"{name_some(_reprs(columns_only))}"
        )
    try:
        matrix = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(f"adjacency must hold 0 and 1: {error}") from error
    return matrix[:, order], [as_python(label) for label in frame.index.tolist()]


def _read_networkx(graph: Any) -> tuple[NDArray[np.float64], list[Hashable]]:
    """Matrix of an undirected networkx graph, agents in the order of its nodes."""
    nodes = list(graph.nodes)
    _check_square((len(nodes), len(nodes)))
    if graph.is_directed():
        one_way = [(u, v) for u, v in graph.edges() if not graph.has_edge(v, u)]
        arrows = [f"{u!r} -> {v!r}" for u, v in one_way[:5]]
        raise ValueError(
            "adjacency is a directed graph, but neighbours exchange both ways; use "
            f"graph.to_undirected(); edges one way: {name_some(arrows, len(one_way))}"
            if one_way
            else "adjacency is a directed graph; use graph.to_undirected()"
        )
    edges = list(graph.edges(data="weight", default=1))
    if graph.is_multigraph():
        counts = Counter(frozenset((u, v)) for u, v, _ in edges)
        parallel = [
            f"{' and '.join(_reprs(list(pair)))} ({count} edges)"
            for pair, count in counts.items()
            if count > 1
        ]
        if parallel:
            raise ValueError(f"adjacency has parallel edges: {name_some(parallel)}")
    # A matrix could not tell an edge of weight 0 from no edge.
    weighted = [f"{u!r} and {v!r} ({w})" for u, v, w in edges if w != 1]
    if weighted:
        raise ValueError(
            "adjacency has edges whose weight is not 1, and agents are neighbours or "
            f"not: {name_some(weighted)}"
        )
    position = {node: k for k, node in enumerate(nodes)}
    matrix = np.zeros((len(nodes), len(nodes)))
    for u, v, _ in edges:
        matrix[position[u], position[v]] = matrix[position[v], position[u]] = 1
    return matrix, [as_python(node) for node in nodes]


def _check_matrix(
    matrix: NDArray[np.float64], labels: list[Hashable], n_agents: int | None
) -> None:
    """Refuse a matrix that is not the adjacency of a connected simple graph."""
    size = matrix.shape[0]
    if n_agents is not None and size != n_agents:
        raise ValueError(
            f"adjacency has {size} agents, but the partition makes {n_agents}; "
            f"partition={size} or one label a sample (agents) would fit it"
        )
    _refuse_pairs("missing entries (nan)", np.isnan(matrix), matrix, labels)
    loops = np.flatnonzero(matrix.diagonal())
    if loops.size:
        named = [f"{labels[k]!r} ({matrix[k, k]:g})" for k in loops[:5]]
        raise ValueError(f"adjacency has self-loops: {name_some(named, loops.size)}")
    _refuse_pairs("negative weights", matrix < 0, matrix, labels)
    _refuse_pairs(
        "weights other than 0 and 1", (matrix != 0) & (matrix != 1), matrix, labels
    )
    rows, columns = np.nonzero(np.triu(matrix != matrix.T, 1))
    if rows.size:
        named = [
            f"{labels[i]!r} and {labels[j]!r} ({matrix[i, j]:g}, back {matrix[j, i]:g})"
            for i, j in zip(rows[:5], columns[:5], strict=True)
        ]
        raise ValueError(f"adjacency is not symmetric: {name_some(named, rows.size)}")
    if size == 1:
        return
    isolated = np.flatnonzero(~matrix.any(axis=1))
    if isolated.size:
        named = [repr(labels[k]) for k in isolated[:5]]
        raise ValueError(
            f"adjacency leaves agents without neighbours: "
            f"{name_some(named, isolated.size)}"
        )
    n_parts, part = csgraph.connected_components(sparse.csr_matrix(matrix))
    if n_parts > 1:
        sizes = np.bincount(part)
        largest = int(sizes.argmax())
        named = []
        for k in [k for k in range(n_parts) if k != largest][:5]:
            members = _reprs([labels[m] for m in np.flatnonzero(part == k)])
            named.append(f"[{name_some(members)}]")
        raise ValueError(
            f"adjacency is disconnected, {n_parts} components; the largest has "
            f"{sizes[largest]} agents, cut off from it: {name_some(named, n_parts - 1)}"
            "; link each of these to an agent of it"
        )


def _refuse_pairs(
    fault: str,
    mask: NDArray[np.bool_],
    matrix: NDArray[np.float64],
    labels: list[Hashable],
) -> None:
    """Raise if the mask is true anywhere, naming each unordered pair once."""
    rows, columns = np.nonzero(np.triu(mask | mask.T))
    if rows.size:
        named = [
            f"{labels[i]!r} and {labels[j]!r} "
            f"({matrix[i, j] if mask[i, j] else matrix[j, i]:g})"
            for i, j in zip(rows[:5], columns[:5], strict=True)
        ]
        raise ValueError(f"adjacency has {fault}: {name_some(named, rows.size)}")


def _reprs(labels: Sequence[Any]) -> list[str]:
    """Labels as they are written in code."""
    return [repr(label) for label in labels]
