"""Where nodes and their labels are placed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skppdnmf._data.graph import make_network
from skppdnmf.plot._labels import SIDES, _rectangle, choose_sides
from skppdnmf.plot._layout import circular_layout, stress_layout


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
