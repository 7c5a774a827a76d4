"""`NetworkDisplay`: the graph of the agents, with errors and traffic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse import csgraph

from skppdnmf._data.checks import validate_samples
from skppdnmf._data.graph import make_network, name_some
from skppdnmf._data.partition import (
    assign_agents,
    assign_parts,
    is_parts,
    split_labels,
    stack_numbered,
    stack_parts,
)
from skppdnmf._data.shapes import align
from skppdnmf._nmf.admm import squared_norm, squared_residual
from skppdnmf._text import format_bytes

from ._checks import (
    check_axes,
    check_choice,
    check_flags,
    check_numbers,
    check_sequence,
    check_style,
    check_text,
    require_attributes,
    require_matplotlib,
    shorten,
)
from ._style import merge_styles, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Annotation

VALUE_NAMES = {
    "error": "Relative error\nof the agent's samples",
    "distance": "Relative distance of the\nagent's copy from the mean",
    "samples": "Number of samples",
}
# Keywords that colour the nodes.
COLOUR_KEYS = {"c", "color", "facecolor", "facecolors", "fc"}
# Of new figures.
WIDTH, LEAST_HEIGHT, GREATEST_HEIGHT = 6.4, 2.6, 5.4
# Points squared, as in Axes.scatter, of the smallest and of the largest node.
NODE_SIZES = (240.0, 900.0)
# Points, of the least and of the most used edge.
EDGE_WIDTHS = (1.0, 5.0)
UNUSED = (0, (1, 2.5))
DASHES = (0, (2.5, 1.5))
# Amounts of which the least is this share of the greatest look the same.
ALIKE = 0.95
# Above this many nodes they shrink.
ROOMY = 12
LEGEND_SIZE = 9
EDGE_COLOUR = "#999999"
PLAIN_COLOUR = "#BFD7EA"
# Coordinates beyond this, or this close together, have no squared distances.
LARGEST_COORDINATE = 1e100
# Above this many nodes a single start must do.
FEW_NODES = 60
N_RANDOM_STARTS = 12
MAX_SWEEPS = 300
# A node that an edge of two others passes at this distance looks like its end.
CLOSE = 0.3
# Most characters that fit into a node.
SHORT = 2
# Points between a node and its label.
GAP = 3.0
# Mean width of a character and height of a line, over the font size.
CHARACTER, LINE = 0.6, 1.25
# What it costs to hide a node or a label, in points of hidden edges.
HIDDEN = 1000.0


class NetworkDisplay:
    """The graph of the agents.

    Nodes are agents: their colour is a value such as the error of their samples,
    their area the number of samples. Edges are as wide as the bytes that went over
    them both ways. An agent without samples, a relay, has a dashed outline.

    Made best with :meth:`~skppdnmf.plot.NetworkDisplay.from_estimator`. All parameters
    are stored as attributes.

    Parameters
    ----------
    adjacency : array-like, sparse matrix or networkx.Graph
        The graph: connected, undirected and without weights, as the estimator's.
    labels : sequence or None, default=None
        Labels of the agents; None takes those of a frame or a graph, and numbers
        the agents of a matrix.
    n_samples : array-like of shape (n_agents,) or None, default=None
        Number of samples of each.
    values : array-like of shape (n_agents,) or None, default=None
        What the colours show; nan leaves a node white.
    value_name : str, default=""
        Label of the colour bar.
    edge_bytes : array-like of shape (n_agents, n_agents) or None, default=None
        Bytes from each agent to each other.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The figure.
    ax_ : matplotlib.axes.Axes
        The axes.
    nodes_ : matplotlib.collections.PathCollection
        The agents, in their order.
    edges_ : matplotlib.collections.LineCollection
        The edges, in the order of the upper triangle of `adjacency`.
    texts_ : list of matplotlib.text.Annotation
        The labels.
    colorbar_ : matplotlib.colorbar.Colorbar or None
        The colour bar.
    legend_ : matplotlib.legend.Legend or None
        What sizes and widths mean.
    positions_ : ndarray of shape (n_agents, 2)
        Where the agents are.

    See Also
    --------
    skppdnmf.plot.LearningCurveDisplay : How the error falls.

    Examples
    --------
    >>> from skppdnmf.plot import NetworkDisplay
    >>> display = NetworkDisplay(
    ...     [[0, 1, 0], [1, 0, 1], [0, 1, 0]],
    ...     labels=["Bern", "Oslo", "Rome"],
    ...     n_samples=[20, 0, 35],
    ... ).plot()
    >>> [text.get_text() for text in display.legend_.get_texts()]
    ['20 samples', '35 samples', 'no samples']
    """

    def __init__(
        self,
        adjacency: Any,
        *,
        labels: Sequence[Any] | None = None,
        n_samples: ArrayLike | None = None,
        values: ArrayLike | None = None,
        value_name: str = "",
        edge_bytes: ArrayLike | None = None,
    ) -> None:
        self.adjacency = adjacency
        self.labels = labels
        self.n_samples = n_samples
        self.values = values
        self.value_name = value_name
        self.edge_bytes = edge_bytes

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        agents: Any = None,
        color: str | None = None,
        ax: Axes | None = None,
        layout: Any = "stress",
        cmap: Any = "viridis",
        colorbar: bool = True,
        legend: bool = True,
        node_kw: Mapping[str, Any] | None = None,
        edge_kw: Mapping[str, Any] | None = None,
        label_kw: Mapping[str, Any] | None = None,
    ) -> NetworkDisplay:
        """Draw the graph of a fitted estimator.

        Parameters
        ----------
        estimator : PrivateDistributedNMF
            A fitted estimator.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), list or \
None, default=None
            The training data, or other data with `agents` or in one part for each
            agent. None shows what the estimator knows itself.
        agents : array-like of shape (n_samples,) or None, default=None
            Label of the agent that holds each sample of X.
        color : {"error", "distance", "samples"} or None, default=None
            What the colours show: the agent's relative error when its samples are
            reconstructed with ``components_`` (needs X), the distance of its copy
            of the left factor from the mean of the copies, over the norm of the
            mean, or its number of samples. None takes "error" where X is given, else
            "distance".
        ax, layout, cmap, colorbar, legend, node_kw, edge_kw, label_kw
            As in :meth:`plot`.

        Returns
        -------
        NetworkDisplay
            The display.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If it has no graph.
        TypeError, ValueError
            If a parameter is invalid or X does not fit the estimator.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from skppdnmf import PrivateDistributedNMF
        >>> from skppdnmf.plot import NetworkDisplay
        >>> X = load_digits().data[:60]
        >>> model = PrivateDistributedNMF(
        ...     4, adjacency="ring", encryption="simulated", tol=0, random_state=0
        ... ).fit(X)
        >>> display = NetworkDisplay.from_estimator(model, X)
        >>> [text.get_text() for text in display.texts_]
        ['0', '1', '2', '3']
        """
        require_matplotlib(f"{cls.__name__}.from_estimator")
        require_attributes(
            estimator,
            cls.__name__,
            "adjacency_",
            "agent_labels_",
            "agent_components_",
            "sample_agents_",
            "traffic_",
        )
        if color is None:
            color = "distance" if X is None else "error"
        check_choice("color", color, tuple(VALUE_NAMES))
        if X is None and color == "error":
            raise ValueError("color='error' needs X, the samples to reconstruct")
        if X is None and agents is not None:
            raise ValueError("agents is given without X, whose samples it is about")
        owners = (
            estimator.sample_agents_
            if X is None
            else sample_owners(estimator, X, agents)
        )
        sizes = np.bincount(owners, minlength=len(estimator.agent_labels_))
        if color == "error":
            values = agent_errors(estimator, X, owners)
        elif color == "distance":
            values = copy_distances(estimator)
        else:
            values = sizes.astype(np.float64)
        display = cls(
            estimator.adjacency_,
            labels=list(estimator.agent_labels_),
            n_samples=sizes,
            values=values,
            value_name=VALUE_NAMES[color],
            edge_bytes=edge_bytes(estimator),
        )
        return display.plot(
            ax,
            layout=layout,
            cmap=cmap,
            colorbar=colorbar,
            legend=legend,
            node_kw=node_kw,
            edge_kw=edge_kw,
            label_kw=label_kw,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        layout: Any = "stress",
        cmap: Any = "viridis",
        colorbar: bool = True,
        legend: bool = True,
        node_kw: Mapping[str, Any] | None = None,
        edge_kw: Mapping[str, Any] | None = None,
        label_kw: Mapping[str, Any] | None = None,
    ) -> NetworkDisplay:
        """Draw the graph.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; a figure with ``layout="constrained"`` makes room for
            the colour bar and the legend. None makes a new figure.
        layout : {"stress", "circular"}, array-like of shape (n_agents, 2) or \
mapping from labels to pairs, default="stress"
            Where the agents are. "stress" sets them apart according to the hops
            between them, the same way every time.
        cmap : str or matplotlib.colors.Colormap, default="viridis"
            Colours of the values.
        colorbar : bool, default=True
            Whether to add a colour bar, where there are values.
        legend : bool, default=True
            Whether to say below the graph what sizes and widths mean.
        node_kw : mapping or None, default=None
            Keywords of `matplotlib.axes.Axes.scatter` for the agents.
        edge_kw : mapping or None, default=None
            Keywords of `matplotlib.collections.LineCollection` for the edges.
        label_kw : mapping or None, default=None
            Keywords of `matplotlib.axes.Axes.annotate` for the labels.

        Returns
        -------
        NetworkDisplay
            The display itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            If a parameter is invalid or shapes do not fit each other.
        """
        require_matplotlib(f"{type(self).__name__}.plot")
        if ax is not None:
            check_axes(ax, equal_scales=True)
        check_flags(colorbar=colorbar, legend=legend)
        check_style("node_kw", node_kw)
        check_style("edge_kw", edge_kw)
        check_style("label_kw", label_kw)
        adjacency, labels, n_samples, values, sent = self._check_data()
        n_agents = len(labels)
        positions = _place(layout, adjacency, labels)
        edges = np.argwhere(np.triu(adjacency, 1))
        both_ways = (sent + sent.T)[edges[:, 0], edges[:, 1]]
        if n_samples is None:
            areas = node_areas(np.ones(n_agents))
            is_relay = np.zeros(n_agents, dtype=bool)
        else:
            areas, is_relay = node_areas(n_samples), n_samples == 0
        # A colour of the user's takes the place of the values.
        if COLOUR_KEYS & set(node_kw or ()):
            values = None
        corners = _corners(positions)
        is_new = ax is None
        if ax is None:
            width, height = corners[1] - corners[0]
            fitting = WIDTH * height / width if len(labels) > 2 else LEAST_HEIGHT
            ax = new_axes(WIDTH, float(np.clip(fitting, LEAST_HEIGHT, GREATEST_HEIGHT)))
        self.ax_ = ax
        self.figure_ = ax.figure
        self.positions_ = positions
        ax.set_aspect("equal", adjustable="datalim")
        ax.set_axis_off()
        ax.margins(0)
        self.edges_ = draw_edges(ax, positions, edges, both_ways, edge_kw)
        self.nodes_ = draw_nodes(ax, positions, areas, values, is_relay, cmap, node_kw)
        ax.update_datalim(corners)
        ax.autoscale_view()
        self.colorbar_ = None
        if colorbar and values is not None:
            self.colorbar_ = ax.figure.colorbar(
                self.nodes_, ax=ax, label=self.value_name
            )
        self.legend_ = None
        if legend:
            self.legend_ = draw_legend(ax, n_samples, areas, both_ways, is_relay)
        # Labels are placed by the room between the nodes, which the layout decides.
        if is_new:
            cast("Figure", ax.figure).draw_without_rendering()
        else:
            ax.apply_aspect()
        self.texts_ = draw_labels(ax, positions, labels, edges, self.nodes_, label_kw)
        return self

    def _check_data(
        self,
    ) -> tuple[NDArray, list[Any], NDArray | None, NDArray | None, NDArray]:
        """Return the data as arrays, checked against each other."""
        if isinstance(self.adjacency, str):
            raise TypeError(
                f"adjacency={shorten(self.adjacency)} must be a matrix or a graph, not "
                "the name of one"
            )
        network = make_network(self.adjacency)
        n_agents = network.n_agents
        labels: list[Any] = list(network.labels or [])
        if self.labels is not None:
            labels = check_sequence("labels", self.labels, "labels, one for each agent")
        if len(labels) != n_agents:
            raise ValueError(f"labels has {len(labels)} entries for {n_agents} agents")
        check_text("value_name", self.value_name)
        n_samples = values = None
        if self.n_samples is not None:
            n_samples = check_numbers(
                "n_samples", self.n_samples, (n_agents,), nonnegative=True
            )
        if self.values is not None:
            values = check_numbers("values", self.values, (n_agents,), finite=False)
        sent = np.zeros((n_agents, n_agents))
        if self.edge_bytes is not None:
            sent = check_numbers(
                "edge_bytes", self.edge_bytes, sent.shape, nonnegative=True
            )
        return network.adjacency, labels, n_samples, values, sent


def sample_owners(estimator: Any, X: Any, agents: Any) -> NDArray[np.intp]:
    """Return the index of the agent that holds each sample of X."""
    labels = list(estimator.agent_labels_)
    if is_parts(X):
        if agents is not None:
            raise ValueError(
                f"agents is given although X is a {type(X).__name__} of {len(X)} "
                "parts, one for each agent"
            )
        if len(X) != len(labels):
            raise ValueError(
                f"X has {len(X)} parts, but the estimator has {len(labels)} agents"
            )
        names, parts = split_labels(X)
        X, owners = stack_numbered(parts)
        _count_samples(estimator, X)
        return (
            owners
            if names is None
            else assign_parts(owners, names, labels).sample_agents
        )
    n_samples = _count_samples(estimator, X)
    if agents is not None:
        agents = align(agents, X, "agents")
        return assign_agents(agents, n_samples, labels).sample_agents
    owners = estimator.sample_agents_
    if len(owners) != n_samples:
        raise ValueError(
            f"X has {n_samples} samples, but the estimator was fitted to "
            f"{len(owners)}; say with agents who holds those of other data"
        )
    return owners


def _count_samples(estimator: Any, X: Any) -> int:
    """Return the number of samples, or raise an error that names X."""
    try:
        return validate_samples(estimator, X, reset=False).shape[0]
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"X is no data for the estimator: {error}") from error


def agent_errors(
    estimator: Any, X: Any, owners: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return each agent's relative error, nan without samples, 0 for zero ones."""
    W = estimator.transform(X).astype(np.float64)
    if is_parts(X):
        X = stack_parts(X)[0]
    X = validate_samples(estimator, X, reset=False)
    H = estimator.components_.astype(np.float64)
    errors = np.full(len(estimator.agent_labels_), np.nan)
    for agent in range(len(errors)):
        rows = np.flatnonzero(owners == agent)
        if len(rows):
            norm = squared_norm(X[rows])
            residual = squared_residual(X[rows], W[rows], H)
            errors[agent] = np.sqrt(residual / norm) if norm else 0.0
    return errors


def copy_distances(estimator: Any) -> NDArray[np.float64]:
    """Return the distance of each agent's copy from the mean, over its norm."""
    copies = np.asarray(estimator.agent_components_, dtype=np.float64)
    mean = np.asarray(estimator.components_, dtype=np.float64)
    distances = np.sqrt(np.sum((copies - mean) ** 2, axis=(1, 2)))
    norm = float(np.linalg.norm(mean))
    return distances / norm if norm else distances


def edge_bytes(estimator: Any) -> NDArray[np.float64]:
    """Return the bytes of each directed edge, shape (n_agents, n_agents)."""
    place = {label: k for k, label in enumerate(estimator.agent_labels_)}
    sent = np.zeros((len(place), len(place)))
    for (sender, receiver), counts in estimator.traffic_["edges"].items():
        sent[place[sender], place[receiver]] = counts["bytes"]
    return sent


def _place(layout: Any, adjacency: NDArray, labels: list[Any]) -> NDArray[np.float64]:
    """Positions of the agents."""
    n_agents = len(labels)
    if isinstance(layout, str):
        check_choice("layout", layout, ("stress", "circular"))
        if layout == "circular":
            return circular_layout(n_agents)
        return stress_layout(adjacency)
    if isinstance(layout, Mapping):
        absent = [repr(label) for label in labels if not _is_key(label, layout)]
        if absent:
            raise ValueError(f"layout has no positions of {name_some(absent)}")
        layout = [layout[label] for label in labels]
    allowed = "'stress', 'circular', a mapping from labels to pairs or "
    positions = check_numbers("layout", layout, (n_agents, 2), alternatives=allowed)
    _check_layout(positions)
    return positions


def _is_key(label: Any, layout: Mapping[Any, Any]) -> bool:
    """Whether a label, which may not be hashable, is a key of the mapping."""
    try:
        return label in layout
    except TypeError:
        return False


def _check_layout(positions: NDArray[np.float64]) -> None:
    """Raise a ValueError unless points span a picture."""
    largest = float(np.abs(positions).max())
    if largest > LARGEST_COORDINATE:
        raise ValueError(
            f"layout has an entry of magnitude {largest:g}; at most "
            f"{LARGEST_COORDINATE:g} is allowed"
        )
    extent = float(np.ptp(positions, axis=0).max())
    if len(positions) > 1 and not extent > 1 / LARGEST_COORDINATE:
        x, y = positions[0]
        raise ValueError(f"layout puts all {len(positions)} agents at ({x:g}, {y:g})")


def _corners(positions: NDArray) -> NDArray[np.float64]:
    """Corners of the picture, with room around the outer agents."""
    gaps = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    gaps[gaps == 0] = np.inf  # to itself, or to another in the same place
    nearest = gaps.min(axis=1)
    margin = 0.6 * (float(np.median(nearest)) if len(positions) > 1 else 1.0)
    return np.array([positions.min(axis=0) - margin, positions.max(axis=0) + margin])


def circular_layout(n_nodes: int) -> NDArray[np.float64]:
    """Place the nodes on a circle from the top, neighbours in number one unit apart."""
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


def node_areas(n_samples: NDArray) -> NDArray[np.float64]:
    """Return areas of nodes in points squared, which grow with the samples."""
    shrink = min(1.0, ROOMY / len(n_samples))
    small, large = (size * shrink for size in NODE_SIZES)
    return _spread(n_samples, small, large, (small + large) / 2)


def edge_widths(sent: NDArray) -> NDArray[np.float64]:
    """Return the widths of the edges, in points, from their bytes."""
    thin, thick = EDGE_WIDTHS
    return _spread(sent, thin, thick, (thin + thick) / 3)


def _spread(
    amounts: NDArray, least: float, greatest: float, medium: float
) -> NDArray[np.float64]:
    """Sizes in proportion to amounts; medium ones where these are much the same."""
    most = amounts.max(initial=0.0)
    positive = amounts[amounts > 0]
    if len(positive) and positive.min() < ALIKE * most:
        return least + (greatest - least) * amounts / most
    # Zeros are told from the others, unless there are zeros alone.
    return np.where((amounts == 0) & (most > 0), least, medium)


def colour_limits(values: NDArray) -> tuple[float, float]:
    """Return the ends of the colour scale: the range of the values that are no nan."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    if high - low > 1e-6 * max(abs(low), abs(high)):
        return low, high
    # From 0: a scale of rounding errors would show differences that are none.
    return min(0.0, low), max(0.0, high) or (1.0 if low == 0 else 0.0)


def draw_edges(
    ax: Axes,
    positions: NDArray,
    edges: NDArray[np.intp],
    sent: NDArray,
    style: Mapping[str, Any] | None,
) -> LineCollection:
    """Draw the edges, as wide as what was sent; dotted where nothing was."""
    from matplotlib.collections import LineCollection

    some = sent.max(initial=0.0) > 0
    defaults = {
        "linewidth": edge_widths(sent),
        "color": EDGE_COLOUR,
        "linestyle": [UNUSED if some and count == 0 else "solid" for count in sent],
        "zorder": 1,
    }
    lines = LineCollection(
        list(positions[edges]), **merge_styles(LineCollection, defaults, style)
    )
    ax.add_collection(lines)
    return lines


def draw_nodes(
    ax: Axes,
    positions: NDArray,
    areas: NDArray,
    values: NDArray | None,
    is_relay: NDArray[np.bool_],
    cmap: str | Colormap,
    style: Mapping[str, Any] | None,
) -> PathCollection:
    """Draw the nodes, with dashed outlines where they are relays."""
    import matplotlib.pyplot as plt
    from matplotlib.collections import PathCollection

    defaults: dict[str, Any] = {
        "s": areas,
        "edgecolor": "black",
        "linewidth": 1.0,
        "linestyle": [DASHES if relay else "solid" for relay in is_relay],
        "zorder": 2,
    }
    if values is None:
        if not {"c", "color"} & set(style or ()):  # which it would take precedence of
            defaults["facecolor"] = [
                "white" if relay else PLAIN_COLOUR for relay in is_relay
            ]
    else:
        low, high = colour_limits(values)
        defaults |= {
            "c": np.where(np.isfinite(values), values, np.nan),
            "cmap": plt.get_cmap(cmap).with_extremes(bad="white"),
            "vmin": low,
            "vmax": high,
            "plotnonfinite": True,
        }
        if style and "norm" in style:  # which has limits of its own
            del defaults["vmin"], defaults["vmax"]
    return ax.scatter(*positions.T, **merge_styles(PathCollection, defaults, style))


def draw_legend(
    ax: Axes,
    n_samples: NDArray | None,
    areas: NDArray,
    sent: NDArray,
    is_relay: NDArray[np.bool_],
) -> Legend | None:
    """Say below the graph what areas, widths and outlines mean, if anything."""
    from matplotlib.lines import Line2D

    entries: list[tuple[Any, str]] = []
    if n_samples is not None:
        for area, text in _extremes(n_samples, areas, _name_samples, "each"):
            entries.append((_node_handle(ax, area, "solid"), text))
        if is_relay.any():
            area = float(areas[is_relay][0])
            entries.append((_node_handle(ax, area, DASHES), "no samples"))
    for width, text in _extremes(sent, edge_widths(sent), format_bytes, "on each edge"):
        entries.append((Line2D([], [], color=EDGE_COLOUR, linewidth=width), text))
    if entries and np.any(sent > 0) and np.any(sent == 0):
        line = Line2D([], [], color=EDGE_COLOUR, linewidth=1, linestyle=UNUSED)
        entries.append((line, "nothing sent"))
    if not entries:
        return None
    handles, texts = zip(*entries, strict=True)
    # Of the largest node, in units of the font size.
    diameter = np.sqrt(areas.max()) / LEGEND_SIZE
    return ax.legend(
        handles,
        texts,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=2 if len(entries) in (2, 4) else 3,
        fontsize=LEGEND_SIZE,
        frameon=False,
        scatteryoffsets=[0.5],
        handlelength=max(2.0, diameter),
        labelspacing=max(0.5, diameter - 0.7),
        borderpad=max(0.4, diameter / 2 - 0.2),
        columnspacing=1.5,
    )


def _extremes(
    amounts: NDArray, sizes: NDArray, name: Callable[[float], str], same: str
) -> list[tuple[float, str]]:
    """Size and text of the least and of the greatest positive amount."""
    positive = np.flatnonzero(amounts > 0)
    if not len(positive):
        return []
    ends = [positive[amounts[positive].argmin()], positive[amounts[positive].argmax()]]
    texts = [name(float(amounts[k])) for k in ends]
    if texts[0] == texts[1]:
        alone = len(amounts) == 1
        return [(float(sizes[ends[1]]), texts[0] if alone else f"{texts[0]} {same}")]
    if amounts[ends[0]] >= ALIKE * amounts[ends[1]]:
        return [(float(sizes[ends[1]]), " to ".join(texts))]
    return [(float(sizes[k]), text) for k, text in zip(ends, texts, strict=True)]


def _name_samples(count: float) -> str:
    """Say in words how many samples."""
    return "1 sample" if count == 1 else f"{count:,.0f} samples"


def _node_handle(ax: Axes, area: float, linestyle: Any) -> PathCollection:
    """Return a node for the legend, which is not in the axes."""
    handle = ax.scatter(
        [], [], s=area, color="white", edgecolor="black", linestyle=linestyle
    )
    handle.remove()
    return handle


class Side(NamedTuple):
    """Where a label stands beside its node, and how it is aligned."""

    direction: tuple[float, float]
    horizontal: str
    vertical: str


_SLANT = float(np.sqrt(0.5))
# In the order of preference.
SIDES = (
    Side((0.0, -1.0), "center", "top"),
    Side((0.0, 1.0), "center", "bottom"),
    Side((1.0, 0.0), "left", "center"),
    Side((-1.0, 0.0), "right", "center"),
    Side((_SLANT, -_SLANT), "left", "top"),
    Side((-_SLANT, -_SLANT), "right", "top"),
    Side((_SLANT, _SLANT), "left", "bottom"),
    Side((-_SLANT, _SLANT), "right", "bottom"),
)


def draw_labels(
    ax: Axes,
    positions: NDArray,
    labels: Sequence[Any],
    edges: NDArray[np.intp],
    nodes: PathCollection,
    style: Mapping[str, Any] | None,
) -> list[Annotation]:
    """Write the labels: into the nodes if all are short, else beside them."""
    from matplotlib import patheffects
    from matplotlib.text import Text

    texts = [str(label) for label in labels]
    size = 9 if len(texts) <= 12 else 7
    nodes.update_scalarmappable()
    radii = np.resize(np.sqrt(nodes.get_sizes()) / 2, len(texts))
    colours = np.atleast_2d(np.asarray(nodes.get_facecolor()))
    places: list[dict[str, Any]]
    if max(map(len, texts)) <= SHORT:
        places = [
            {
                "xytext": (0.0, 0.0),
                "horizontalalignment": "center",
                "verticalalignment": "center",
                "color": _readable_on(colours[k % len(colours)]),
            }
            for k in range(len(texts))
        ]
    else:
        boxes = np.array([(CHARACTER * len(text), LINE) for text in texts]) * size
        # In points: the scale of the radii and of the text.
        points = ax.transData.transform(positions) * 72.0 / ax.figure.dpi
        places = [
            {
                "xytext": (radius + GAP) * np.array(side.direction),
                "horizontalalignment": side.horizontal,
                "verticalalignment": side.vertical,
                "path_effects": [
                    patheffects.withStroke(linewidth=2.5, foreground="white")
                ],
            }
            for radius, side in zip(
                radii, choose_sides(points, radii, boxes, edges), strict=True
            )
        ]
    return [
        ax.annotate(
            text,
            position,
            textcoords="offset points",
            **merge_styles(Text, {"fontsize": size, "zorder": 3, **place}, style),
        )
        for text, position, place in zip(texts, positions, places, strict=True)
    ]


def choose_sides(
    points: NDArray, radii: NDArray, boxes: NDArray, edges: NDArray[np.intp]
) -> list[Side]:
    """Choose a side for each label, one after the other, the most crowded first.

    That where it hides least of nodes, of labels already placed and of edges. All
    lengths are in points; `boxes` are the widths and heights of the labels.
    """
    dots, dot_length = _dot_edges(points[edges])
    degrees = np.bincount(edges.ravel(), minlength=len(points))
    taken = np.empty((0, 4))
    sides: list[Side] = [SIDES[0]] * len(points)
    for node in np.argsort(-degrees, kind="stable"):
        rectangles = np.array(
            [_rectangle(points[node], radii[node], boxes[node], side) for side in SIDES]
        )
        nearest = np.clip(
            points[None], rectangles[:, None, :2], rectangles[:, None, 2:]
        )
        distance = np.linalg.norm(nearest - points[None], axis=2)
        hidden = (distance < radii[None]).sum(axis=1)
        hidden += (
            (
                (rectangles[:, None, :2] < taken[None, :, 2:])
                & (taken[None, :, :2] < rectangles[:, None, 2:])
            )
            .all(axis=2)
            .sum(axis=1)
        )
        over = (
            (rectangles[:, None, :2] < dots[None])
            & (dots[None] < rectangles[:, None, 2:])
        ).all(axis=2)
        best = int(np.argmin(HIDDEN * hidden + (over @ dot_length).round(1)))
        sides[node] = SIDES[best]
        taken = np.vstack([taken, rectangles[best]])
    return sides


def _rectangle(point: NDArray, radius: float, box: NDArray, side: Side) -> NDArray:
    """Left, bottom, right and top of a label."""
    shift = {"left": 0.0, "bottom": 0.0, "center": 0.5, "right": 1.0, "top": 1.0}
    anchor = point + (radius + GAP) * np.array(side.direction)
    corner = anchor - box * [shift[side.horizontal], shift[side.vertical]]
    return np.concatenate([corner, corner + box])


def _dot_edges(ends: NDArray) -> tuple[NDArray, NDArray]:
    """Dots along the edges, and the length for which each stands."""
    share = (np.arange(40) + 0.5)[:, None, None] / 40
    dots = ends[None, :, 0] + share * (ends[None, :, 1] - ends[None, :, 0])
    lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1) / 40
    return dots.reshape(-1, 2), np.tile(lengths, 40)


def _readable_on(colour: NDArray) -> str:
    """Black or white, whichever reads better on the colour."""
    # Relative luminance of sRGB, with the exponent that approximates its curve.
    luminance = np.array([0.2126, 0.7152, 0.0722]) @ np.asarray(colour[:3]) ** 2.2
    return "white" if luminance < 0.18 else "black"
