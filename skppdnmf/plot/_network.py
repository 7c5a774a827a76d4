"""`NetworkDisplay`: the graph of the agents, with errors and traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skppdnmf._data.graph import make_network, name_some

from ._agents import agent_errors, copy_distances, edge_bytes, sample_owners
from ._checks import (
    check_axes,
    check_choice,
    check_colour_map,
    check_flags,
    check_numbers,
    check_places,
    check_sequence,
    check_style,
    check_text,
    shorten,
)
from ._graph_drawing import draw_edges, draw_legend, draw_nodes, node_areas
from ._labels import draw_labels
from ._layout import circular_layout, stress_layout
from ._support import new_axes, require_attributes, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.figure import Figure
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
        check_colour_map("cmap", cmap)
        check_flags(colorbar=colorbar, legend=legend)
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

        corners = _corners(positions)
        # A colour of the user's takes the place of the values.
        if isinstance(node_kw, Mapping) and COLOUR_KEYS & set(node_kw):
            values = None

        def lines(on: Axes) -> LineCollection:
            return draw_edges(on, positions, edges, both_ways, edge_kw)

        def dots(on: Axes) -> PathCollection:
            return draw_nodes(on, positions, areas, values, is_relay, cmap, node_kw)

        def words(on: Axes, nodes: PathCollection) -> list[Annotation]:
            return draw_labels(on, positions, labels, edges, nodes, label_kw)

        check_style("edge_kw", edge_kw, lines)
        check_style("node_kw", node_kw, dots)
        check_style("label_kw", label_kw, lambda scratch: words(scratch, dots(scratch)))
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
        self.edges_ = lines(ax)
        self.nodes_ = dots(ax)
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
        self.texts_ = words(ax, self.nodes_)
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
    check_places("layout", positions)
    return positions


def _is_key(label: Any, layout: Mapping[Any, Any]) -> bool:
    """Whether a label, which may not be hashable, is a key of the mapping."""
    try:
        return label in layout
    except TypeError:
        return False


def _corners(positions: NDArray) -> NDArray[np.float64]:
    """Corners of the picture, with room around the outer agents."""
    gaps = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    gaps[gaps == 0] = np.inf  # to itself, or to another in the same place
    nearest = gaps.min(axis=1)
    margin = 0.6 * (float(np.median(nearest)) if len(positions) > 1 else 1.0)
    return np.array([positions.min(axis=0) - margin, positions.max(axis=0) + margin])
