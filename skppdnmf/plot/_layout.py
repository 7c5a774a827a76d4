"""Where to draw the nodes of a graph: deterministic, with numpy alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

# Above this many nodes a single start must do.
FEW_NODES = 60
N_RANDOM_STARTS = 12
MAX_SWEEPS = 300
# A node that an edge of two others passes at this distance looks like its end.
CLOSE = 0.3


def circular_layout(n_nodes: int) -> NDArray[np.float64]:
    """Place the nodes on a circle, neighbours in number one unit apart.

    Parameters
    ----------
    n_nodes : int
        Number of nodes.

    Returns
    -------
    ndarray of shape (n_nodes, 2)
        Clockwise from the top; two nodes side by side, one in the origin.
    """
    if n_nodes == 1:
        return np.zeros((1, 2))
    if n_nodes == 2:
        return np.array([[-0.5, 0.0], [0.5, 0.0]])
    angles = np.pi / 2 - 2 * np.pi * np.arange(n_nodes) / n_nodes
    radius = 0.5 / np.sin(np.pi / n_nodes)
    return radius * np.column_stack([np.cos(angles), np.sin(angles)])


def stress_layout(adjacency: NDArray) -> NDArray[np.float64]:
    """Place nodes as far apart as there are hops between them, as near as may be.

    Minimises ``sum_ij (|p_i - p_j| / d_ij - 1)^2``, d the hops, by majorisation
    from several starts. Of the minima it takes one where no edge passes over a
    third node, if there is one, and the lowest of those.

    Parameters
    ----------
    adjacency : ndarray of shape (n_nodes, n_nodes)
        The graph, which is connected.

    Returns
    -------
    ndarray of shape (n_nodes, 2)
        Positions around the origin, in hops; the longest extent is horizontal.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.plot._layout import stress_layout
    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> np.abs(stress_layout(path).round(3))
    array([[1., 0.],
           [0., 0.],
           [1., 0.]])
    """
    n_nodes = len(adjacency)
    hops = csgraph.shortest_path(
        sparse.csr_matrix(adjacency), method="D", unweighted=True
    )
    circle = circular_layout(n_nodes)
    # In a complete graph, which all small ones are, no node belongs in the middle.
    if n_nodes < 3 or hops.max() == 1:
        return circle
    rng = np.random.default_rng(0)
    starts = [circle, _classical_scaling(hops)]
    if n_nodes <= FEW_NODES:
        # Off the plane's symmetries, which majorisation cannot leave.
        starts += [
            np.sqrt(n_nodes) * rng.standard_normal((n_nodes, 2))
            for _ in range(N_RANDOM_STARTS)
        ]
    weights = 1.0 / np.maximum(hops, 1.0) ** 2
    np.fill_diagonal(weights, 0.0)
    edges = np.argwhere(np.triu(adjacency))
    best, least = circle, (n_nodes * len(edges), np.inf)
    for start in starts:
        positions = _majorise(start, hops, weights)
        # Rounded, so that the last bits do not decide between mirror images.
        cost = (_count_hidden(positions, edges), round(_stress(positions, hops), 6))
        if cost < least:
            best, least = positions, cost
    return _lay_flat(best)


def _distances(positions: NDArray) -> NDArray:
    """Distances between all pairs."""
    return np.linalg.norm(positions[:, None] - positions[None], axis=2)


def _stress(positions: NDArray, hops: NDArray) -> float:
    """Sum of the squared relative errors of the distances."""
    off = ~np.eye(len(hops), dtype=bool)
    return float(np.sum((_distances(positions)[off] / hops[off] - 1.0) ** 2))


def _classical_scaling(hops: NDArray) -> NDArray:
    """Two leading coordinates of classical multidimensional scaling."""
    n_nodes = len(hops)
    centring = np.eye(n_nodes) - 1.0 / n_nodes
    values, vectors = np.linalg.eigh(-0.5 * centring @ hops**2 @ centring)
    # The circle parts nodes of the same coordinates, which majorisation would not.
    scaled = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0))
    return scaled + 1e-6 * circular_layout(n_nodes)


def _majorise(start: NDArray, hops: NDArray, weights: NDArray) -> NDArray:
    """Positions of a local minimum of the stress (de Leeuw's Guttman transform)."""
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    positions = start
    for _ in range(MAX_SWEEPS):
        distances = _distances(positions)
        np.fill_diagonal(distances, 1.0)
        ratios = -weights * hops / np.maximum(distances, 1e-9)
        np.fill_diagonal(ratios, 0.0)
        np.fill_diagonal(ratios, -ratios.sum(axis=1))
        moved = inverse @ (ratios @ positions)
        done = np.abs(moved - positions).max() < 1e-5
        positions = moved
        if done:
            break
    return positions


def _count_hidden(positions: NDArray, edges: NDArray[np.intp]) -> int:
    """Count the nodes that lie on an edge of two others."""
    ends, others = positions[edges[:, 0]], positions[edges[:, 1]]
    along = others - ends
    squares = np.maximum(np.sum(along**2, axis=1), 1e-12)
    offsets = positions[:, None] - ends[None]
    share = np.clip(np.sum(offsets * along[None], axis=2) / squares, 0.0, 1.0)
    gaps = np.linalg.norm(offsets - share[:, :, None] * along[None], axis=2)
    own = (np.arange(len(positions))[:, None, None] == edges[None]).any(axis=2)
    return int(np.sum((gaps < CLOSE) & ~own))


def _lay_flat(positions: NDArray) -> NDArray:
    """Centre, turn the longest extent horizontal, and fix the mirror image."""
    centred = positions - positions.mean(axis=0)
    _, values, axes = np.linalg.svd(centred, full_matrices=False)
    if values[0] - values[1] > 1e-3 * values[0]:
        centred = centred @ axes.T
    # The first agents to the left and to the top.
    order = np.arange(len(centred)) - (len(centred) - 1) / 2
    signs = np.where(order @ centred * np.array([1.0, -1.0]) < 0, -1.0, 1.0)
    return centred * signs
