"""The graph of the agents: sizes, widths, colours, labels."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF
from skppdnmf._data.graph import make_network
from skppdnmf.plot import NetworkDisplay
from skppdnmf.plot._network import (
    EDGE_WIDTHS,
    SIDES,
    _rectangle,
    agent_errors,
    choose_sides,
    circular_layout,
    colour_limits,
    copy_distances,
    edge_widths,
    node_areas,
    sample_owners,
    stress_layout,
)

# What small graphs leak is not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:agents with one neighbour")

X = load_digits().data[:120]
CITIES = ["Bergen", "Helsinki", "Oslo", "Tampere"]
TRIANGLE = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]])


def model(X=X, agents=None, **parameters):
    defaults = {"encryption": "simulated", "max_iter": 3, "tol": 0, "random_state": 0}
    return PrivateDistributedNMF(4, **{**defaults, **parameters}).fit(X, agents=agents)


@pytest.fixture(scope="module")
def fitted():
    return model(partition=[10, 20, 60, 30])


@pytest.fixture(scope="module")
def owners():
    return np.random.default_rng(0).choice(CITIES, p=[0.1, 0.2, 0.4, 0.3], size=120)


@pytest.fixture(scope="module")
def cities(owners):
    """A fit with names and a relay."""
    graph = nx.Graph([(city, "relay station") for city in CITIES])
    return model(agents=owners, adjacency=graph)


def texts(display):
    return [text.get_text() for text in display.legend_.get_texts()]


def oracle(fitted, X, owner_of):
    """Relative error of the samples of each agent that has some."""
    W = fitted.transform(X)
    residual = np.linalg.norm(X - W @ fitted.components_, axis=1) ** 2
    squares = np.linalg.norm(X, axis=1) ** 2
    return [
        np.sqrt(residual[owner_of == k].sum() / squares[owner_of == k].sum())
        for k in np.unique(owner_of)
    ]


def test_colours_are_the_errors_of_the_agents(fitted):
    display = NetworkDisplay.from_estimator(fitted, X)
    expected = oracle(fitted, X, np.repeat(range(4), [10, 20, 60, 30]))
    assert_allclose(display.nodes_.get_array(), expected)
    assert_allclose(display.nodes_.get_clim(), (min(expected), max(expected)))
    label = display.colorbar_.ax.get_ylabel()
    assert label == "Relative error\nof the agent's samples"
    assert_array_equal(display.n_samples, [10, 20, 60, 30])
    assert [text.get_text() for text in display.texts_] == ["0", "1", "2", "3"]
    display.figure_.canvas.draw()


def test_without_samples_colours_are_distances_from_the_mean(fitted):
    display = NetworkDisplay.from_estimator(fitted)
    mean = fitted.components_
    expected = [
        np.linalg.norm(copy - mean) / np.linalg.norm(mean)
        for copy in fitted.agent_components_
    ]
    assert_allclose(display.nodes_.get_array(), expected)
    assert_allclose(
        np.sqrt(np.mean(copy_distances(fitted) ** 2)), fitted.consensus_error_
    )
    sizes = NetworkDisplay.from_estimator(fitted, color="samples")
    assert_array_equal(sizes.nodes_.get_array(), [10, 20, 60, 30])
    assert sizes.colorbar_.ax.get_ylabel() == "Number of samples"


def test_sizes_grow_with_the_samples_and_widths_with_the_bytes():
    sent = np.array([[0, 5e6, 0], [1e6, 0, 2e6], [0, 0, 0]])
    display = NetworkDisplay(TRIANGLE, n_samples=[5, 10, 20], edge_bytes=sent).plot()
    areas = display.nodes_.get_sizes()
    assert areas[0] < areas[1] < areas[2]
    # Upper triangle: 0-1, 0-2, 1-2, both ways together.
    widths = display.edges_.get_linewidths()
    assert_allclose(widths, edge_widths(np.array([6e6, 0, 2e6])))
    assert widths[0] > widths[2] > widths[1]
    dashes = [pattern for _, pattern in display.edges_.get_linestyles()]
    assert dashes[0] is None
    assert dashes[2] is None
    assert dashes[1] is not None  # nothing sent
    assert texts(display) == [
        "5 samples",
        "20 samples",
        "2.0 MB",
        "6.0 MB",
        "nothing sent",
    ]
    assert display.colorbar_ is None


def test_amounts_that_are_much_the_same_are_one_entry():
    sent = np.array([[0, 2_160_000, 2_200_000], [0, 0, 2_190_000], [0, 0, 0]])
    display = NetworkDisplay(TRIANGLE, n_samples=[50, 50, 51], edge_bytes=sent).plot()
    assert texts(display) == ["50 samples to 51 samples", "2.2 MB on each edge"]
    sent[0, 1] = 2_100_000
    display = NetworkDisplay(TRIANGLE, n_samples=[9, 9, 9], edge_bytes=sent).plot()
    assert texts(display) == ["9 samples each", "2.1 MB to 2.2 MB"]


def test_edges_join_their_agents(fitted):
    display = NetworkDisplay.from_estimator(fitted)
    pairs = np.argwhere(np.triu(fitted.adjacency_))
    segments = display.edges_.get_segments()
    assert len(segments) == len(pairs) == fitted.adjacency_.sum() // 2
    for segment, pair in zip(segments, pairs, strict=True):
        assert_allclose(segment, display.positions_[pair])
    assert_allclose(display.nodes_.get_offsets(), display.positions_)
    total = np.triu(display.edge_bytes + display.edge_bytes.T).sum()
    assert total == fitted.traffic_["bytes"]


def test_relay_and_names(cities, owners):
    display = NetworkDisplay.from_estimator(cities, X)
    labels = cities.agent_labels_
    relay = labels.index("relay station")
    assert [text.get_text() for text in display.texts_] == labels
    assert np.isnan(display.values[relay])
    assert display.n_samples[relay] == 0
    assert "no samples" in texts(display)
    patterns = [pattern for _, pattern in display.nodes_.get_linestyles()]
    assert [pattern is not None for pattern in patterns] == [
        label == "relay station" for label in labels
    ]
    display.figure_.canvas.draw()
    assert_array_equal(display.nodes_.get_facecolors()[relay], [1, 1, 1, 1])
    expected = oracle(cities, X, np.array([labels.index(owner) for owner in owners]))
    known = [k for k in range(5) if k != relay]
    assert_allclose(display.values[known], expected)


def test_labels_do_not_overlap(cities):
    display = NetworkDisplay.from_estimator(cities, X)
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.texts_]
    for k, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[k + 1 :])
        centres = display.ax_.transData.transform(display.positions_)
        assert not any(box.contains(*centre) for centre in centres)


@pytest.mark.parametrize("n_agents", [1, 2])
def test_one_and_two_agents(n_agents):
    fitted = model(partition=n_agents)
    display = NetworkDisplay.from_estimator(fitted, X)
    display.figure_.canvas.draw()
    assert len(display.texts_) == n_agents
    assert len(display.edges_.get_segments()) == n_agents - 1
    samples = {1: "120 samples", 2: "60 samples each"}[n_agents]
    assert texts(display)[0] == samples
    # Room around the agents.
    low, high = display.ax_.get_xlim()
    assert low < display.positions_[:, 0].min() - 0.5
    assert high > display.positions_[:, 0].max() + 0.5


def test_copies_that_agree_exactly():
    display = NetworkDisplay(TRIANGLE, values=np.zeros(3), value_name="distance").plot()
    display.figure_.canvas.draw()
    assert display.nodes_.get_clim() == (0, 1)
    assert len({tuple(colour) for colour in display.nodes_.get_facecolors()}) == 1


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        ([0.2, 0.3, np.nan], (0.2, 0.3)),
        ([0.4, 0.4, 0.4 + 1e-12], (0, 0.4)),
        ([0.0, 0.0], (0, 1)),
        ([-2.0, -2.0], (-2, 0)),
        ([np.nan], (0, 1)),
    ],
)
def test_colour_limits(values, limits):
    assert_allclose(colour_limits(np.array(values)), limits)


def test_areas_and_widths_of_equal_amounts():
    assert len(set(node_areas(np.array([7, 7, 7])))) == 1
    assert len(set(node_areas(np.zeros(3)))) == 1
    assert len(set(edge_widths(np.array([5.0, 5.1])))) == 1
    widths = edge_widths(np.array([5.0, 0.0, 5.1]))
    assert widths[0] == widths[2] > widths[1]
    low, high = EDGE_WIDTHS
    assert low < edge_widths(np.array([5.0, 5.0]))[0] < high
    assert edge_widths(np.zeros(0)).shape == (0,)
    assert node_areas(np.arange(60)).max() < node_areas(np.arange(6)).max()


def test_parts_frames_sparse_and_other_samples():
    parts = [X[:30], X[30:50], X[50:]]
    fitted = model(parts)
    expected = oracle(fitted, X, np.repeat(range(3), [30, 20, 70]))
    for data in (parts, X, X.tolist(), sparse.csr_matrix(X)):
        owners = sample_owners(fitted, data, None)
        assert_allclose(agent_errors(fitted, data, owners), expected, rtol=1e-6)

    names = [f"pixel {k}" for k in range(64)]
    frame = pd.DataFrame(X, columns=names)
    framed = model(frame, agents=np.repeat(["a", "b"], 60))
    display = NetworkDisplay.from_estimator(framed, frame)
    assert np.isfinite(display.values).all()

    # Other samples, of which agent "a" has none.
    display = NetworkDisplay.from_estimator(framed, frame[:20], agents=["b"] * 20)
    assert_array_equal(display.n_samples, [0, 20])
    assert np.isnan(display.values[0])


def test_samples_of_zeros_have_no_error():
    data = X.copy()
    data[:30] = 0
    fitted = model(data, partition=4)
    errors = agent_errors(fitted, data, fitted.sample_agents_)
    assert errors[0] == 0
    assert (errors[1:] > 0).all()


def test_layouts():
    positions = {"a": (0, 0), "b": (3, 1), "c": (2, 5)}
    display = NetworkDisplay(TRIANGLE, labels=list("cab"))
    display.plot(layout=positions)
    assert_array_equal(display.positions_, [(2, 5), (0, 0), (3, 1)])
    display.plot(layout=[(0, 0), (1, 0), (0, 1)])
    assert_array_equal(display.positions_, [(0, 0), (1, 0), (0, 1)])
    display.plot(layout="circular")
    assert_allclose(np.linalg.norm(display.positions_, axis=1), np.sqrt(1 / 3))


def test_axes_of_the_user(fitted):
    figure, (left, right) = plt.subplots(1, 2, layout="constrained", figsize=(9, 4))
    display = NetworkDisplay.from_estimator(fitted, X, ax=left)
    assert display.ax_ is left
    assert display.figure_ is figure
    figure.canvas.draw()
    legend = display.legend_.get_window_extent()
    assert legend.y0 >= 0
    assert not legend.overlaps(right.get_window_extent())
    NetworkDisplay.from_estimator(fitted, X, ax=figure.subfigures().subplots())


def test_parts_can_be_left_out(fitted):
    display = NetworkDisplay.from_estimator(fitted, X, legend=False, colorbar=False)
    assert display.legend_ is None
    assert display.colorbar_ is None
    assert NetworkDisplay([[0]]).plot().legend_ is None


def test_styles(fitted):
    display = NetworkDisplay.from_estimator(
        fitted,
        X,
        cmap="magma",
        node_kw={"lw": 3},
        edge_kw={"lw": 7, "color": "red"},
        label_kw={"size": 4},
    )
    assert display.nodes_.get_linewidths()[0] == 3
    assert display.nodes_.get_cmap().name == "magma"
    assert set(display.edges_.get_linewidths()) == {7}
    assert_array_equal(display.edges_.get_colors()[0], [1, 0, 0, 1])
    assert {text.get_fontsize() for text in display.texts_} == {4}
    # A colour of the user's replaces the values, and with them the bar.
    plain = NetworkDisplay.from_estimator(fitted, X, node_kw={"color": "red"})
    assert plain.colorbar_ is None
    assert_array_equal(plain.nodes_.get_facecolors()[0], [1, 0, 0, 1])
    norm = mpl.colors.LogNorm(0.01, 1)
    scaled = NetworkDisplay.from_estimator(fitted, X, node_kw={"norm": norm})
    assert scaled.nodes_.norm is norm


def test_labels_in_nodes_contrast_with_them():
    display = NetworkDisplay(TRIANGLE, values=[0.0, 0.5, 1.0]).plot()
    colours = [text.get_color() for text in display.texts_]
    assert colours[0] == "white"  # on viridis' dark blue
    assert colours[2] == "black"  # on its yellow


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"color": "error"}, "color='error' needs X"),
        ({"color": "bytes"}, "color='bytes' is not one of"),
        ({"agents": [0] * 120}, "agents is given without X"),
        ({"X": X[:50]}, "X has 50 samples, but the estimator was fitted to 120"),
        ({"X": [X[:60], X[60:]]}, "X has 2 parts, but the estimator has 4 agents"),
        ({"X": X, "agents": [9] * 120}, "agents names 9, not in the graph"),
        ({"X": [X] * 4, "agents": [0]}, "X is a list of 4 parts"),
        ({"layout": "spring"}, "layout='spring' is not one of"),
        ({"layout": np.zeros((3, 2))}, r"layout has shape \(3, 2\)"),
        ({"layout": {0: (0, 0), 1: (1, 1), 2: (2, 0)}}, "no positions of 3"),
    ],
)
def test_bad_arguments_are_refused_before_a_figure_is_made(fitted, arguments, message):
    with pytest.raises(ValueError, match=message):
        NetworkDisplay.from_estimator(fitted, **arguments)
    assert not plt.get_fignums()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"adjacency": np.ones((2, 3))}, r"it has shape \(2, 3\)"),
        ({"adjacency": np.ones((0, 0))}, r"adjacency has no agents \(shape \(0, 0\)\)"),
        ({"labels": ["a"]}, "labels has 1 entries for 3 agents"),
        ({"n_samples": [1, 2]}, r"n_samples has shape \(2,\), expected \(3,\)"),
        ({"values": [[1, 2, 3]]}, r"values has shape \(1, 3\)"),
        ({"edge_bytes": [1, 2, 3]}, r"edge_bytes has shape \(3,\), expected \(3, 3\)"),
    ],
)
def test_data_are_checked_against_each_other(data, message):
    with pytest.raises(ValueError, match=message):
        NetworkDisplay(**{"adjacency": TRIANGLE, **data}).plot()


# Where nodes and their labels are placed ----------------------------------------


def distances(positions):
    return np.linalg.norm(positions[:, None] - positions[None], axis=2)


@pytest.mark.parametrize("n_nodes", [2, 3, 5, 12])
def test_circle_sets_neighbours_one_apart(n_nodes):
    positions = circular_layout(n_nodes)
    steps = np.linalg.norm(positions - np.roll(positions, -1, axis=0), axis=1)
    assert_allclose(steps, 1)
    assert_allclose(positions.mean(axis=0), 0, atol=1e-12)
    if n_nodes > 2:
        assert_allclose(np.ptp(np.linalg.norm(positions, axis=1)), 0, atol=1e-12)


def test_single_node_is_in_the_origin():
    assert_array_equal(circular_layout(1), [[0, 0]])
    assert_array_equal(stress_layout(np.zeros((1, 1))), [[0, 0]])


def test_path_is_a_horizontal_line_in_hops():
    positions = stress_layout(make_network("path", 9).adjacency)
    hops = np.abs(np.subtract.outer(np.arange(9), np.arange(9)))
    assert_allclose(distances(positions), hops, atol=1e-2)
    assert_allclose(positions[:, 1], 0, atol=1e-3)
    assert positions[0, 0] < positions[8, 0]


def test_hub_of_a_star_is_in_the_middle():
    positions = stress_layout(make_network("star", 9).adjacency)
    spokes = np.linalg.norm(positions[1:] - positions[0], axis=1)
    assert np.ptp(spokes) < 0.15 * spokes.mean()
    assert distances(positions[1:])[~np.eye(8, dtype=bool)].min() > 0.5


@pytest.mark.parametrize("name", ["ring", "complete"])
def test_symmetric_graphs_are_circles(name):
    positions = stress_layout(make_network(name, 8).adjacency)
    radii = np.linalg.norm(positions - positions.mean(axis=0), axis=1)
    assert np.ptp(radii) < 1e-2 * radii.mean()


@pytest.mark.parametrize("seed", range(8))
def test_random_graphs_are_drawn_apart_and_the_same_every_time(seed):
    adjacency = make_network("random", 12, seed).adjacency
    positions = stress_layout(adjacency)
    assert_array_equal(positions, stress_layout(adjacency))
    apart = distances(positions)
    assert apart[~np.eye(12, dtype=bool)].min() > 0.2
    # Neighbours are nearer than others: it shows the graph.
    linked = apart[adjacency == 1].mean()
    other = apart[(adjacency == 0) & ~np.eye(12, dtype=bool)].mean()
    assert linked < 0.7 * other
    assert np.ptp(positions[:, 0]) > 0.8 * np.ptp(positions[:, 1])


# Graphs whose layout of least stress has a node on an edge of two others.
@pytest.mark.parametrize("seed", [0, 1, 2, 5, 6, 7, 9, 11])
def test_no_edge_passes_over_a_third_node(seed):
    adjacency = make_network("random", 10, seed).adjacency
    positions = stress_layout(adjacency)
    steps = np.linspace(0, 1, 200)[:, None]
    for i, j in np.argwhere(np.triu(adjacency)):
        line = positions[i] + steps * (positions[j] - positions[i])
        for k in set(range(10)) - {i, j}:
            assert np.linalg.norm(line - positions[k], axis=1).min() > 0.29


def test_a_large_graph_is_laid_out():
    positions = stress_layout(make_network("random", 150, 0).adjacency)
    assert np.isfinite(positions).all()
    assert distances(positions)[~np.eye(150, dtype=bool)].min() > 1e-3


def overlap(one, other):
    return bool((one[:2] < other[2:]).all() and (other[:2] < one[2:]).all())


@pytest.mark.parametrize("seed", range(6))
def test_labels_hide_no_node_and_no_label(seed):
    adjacency = make_network("random", 8, seed).adjacency
    points = 90.0 * stress_layout(adjacency)
    radii = np.full(8, 10.0)
    boxes = np.tile([60.0, 11.0], (8, 1))
    edges = np.argwhere(np.triu(adjacency))
    sides = choose_sides(points, radii, boxes, edges)
    places = [
        _rectangle(point, radius, box, side)
        for point, radius, box, side in zip(points, radii, boxes, sides, strict=True)
    ]
    for k, place in enumerate(places):
        for m in range(8):
            nearest = np.clip(points[m], place[:2], place[2:])
            assert np.linalg.norm(nearest - points[m]) >= radii[m]
            assert m == k or not overlap(place, places[m])


def test_a_label_avoids_the_edges():
    # Edges leave the first node downwards and upwards: its label stands aside.
    points = np.array([[0.0, 0.0], [0.0, -100.0], [0.0, 100.0]])
    sides = choose_sides(
        points,
        np.full(3, 8.0),
        np.tile([30.0, 10.0], (3, 1)),
        np.array([[0, 1], [0, 2]]),
    )
    assert sides[0] == SIDES[2]
    assert sides[1] == SIDES[0]
    assert sides[2] == SIDES[1]


def test_a_rectangle_is_beside_its_node():
    for side in SIDES:
        left, bottom, right, top = _rectangle(
            np.array([5.0, 7.0]), 4.0, np.array([20.0, 6.0]), side
        )
        assert (right - left, top - bottom) == pytest.approx((20, 6))
        nearest = np.clip([5.0, 7.0], [left, bottom], [right, top])
        assert np.linalg.norm(nearest - [5.0, 7.0]) >= 4.0
