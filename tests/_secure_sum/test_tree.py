"""Spanning trees: breadth first from the middle, with and without all agents."""

import networkx as nx
import numpy as np
import pytest
from _helpers import GRAPHS
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf._data.graph import make_network
from skppdnmf._secure_sum.tree import SpanningTrees
from skppdnmf.exceptions import DropoutError


def check_tree(tree, graph):
    """The tree spans the graph by shortest paths from an agent in its middle."""
    eccentricities = nx.eccentricity(graph)
    least = min(eccentricities.values())
    middle = [i for i in graph if eccentricities[i] == least]
    total = {i: sum(nx.single_source_shortest_path_length(graph, i).values())
             for i in middle}  # fmt: skip
    assert tree.root == min(middle, key=lambda i: (total[i], i))
    assert set(tree.children) == set(graph)
    assert set(tree.parents) == set(graph) - {tree.root}
    hops = nx.single_source_shortest_path_length(graph, tree.root)
    order = {agent: place for place, agent in enumerate(tree.children)}
    for child, parent in tree.parents.items():
        assert graph.has_edge(child, parent)
        assert hops[child] == hops[parent] + 1
        assert child in tree.children[parent]
        assert order[parent] < order[child]
    assert sum(map(len, tree.children.values())) == len(graph) - 1


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(GRAPHS), st.integers(1, 25), st.integers(0, 5), st.data())
def test_tree_of_those_that_are_left(kind, n_agents, seed, data):
    network = make_network(kind, n_agents, seed)
    trees = SpanningTrees(network)
    graph = nx.from_numpy_array(network.adjacency)
    check_tree(trees(frozenset()), graph)
    dropped = data.draw(st.sets(st.integers(0, n_agents - 1), max_size=n_agents - 1))
    graph.remove_nodes_from(dropped)
    if nx.is_connected(graph):
        check_tree(trees(frozenset(dropped)), graph)
    else:
        with pytest.raises(DropoutError, match="are left is not connected"):
            trees(frozenset(dropped))


def test_the_root_is_in_the_middle_and_not_where_most_agents_are():
    graph = nx.path_graph(8)
    graph.add_edges_from((0, leaf) for leaf in range(8, 20))
    trees = SpanningTrees(make_network(graph))
    check_tree(trees(frozenset()), graph)
    assert trees(frozenset()).root == 3


def test_among_several_in_the_middle_the_root_is_near_most_agents():
    graph = nx.path_graph(6)
    graph.add_edges_from((4, leaf) for leaf in range(6, 9))
    assert SpanningTrees(make_network(graph))(frozenset()).root == 3


def test_a_tree_is_grown_once():
    trees = SpanningTrees(make_network("ring", 6))
    assert trees(frozenset({2})) is trees(frozenset({2}))
    assert trees(frozenset({2})) is not trees(frozenset({3}))


def test_pieces_are_no_tree():
    trees = SpanningTrees(make_network("path", 5))
    with pytest.raises(DropoutError, match="the 4 agents that are left"):
        trees(frozenset({1}))
    with pytest.raises(DropoutError, match="the 3 agents that are left"):
        trees(frozenset({1, 3}))
    assert trees(frozenset({0, 4})).root == 2
    assert trees(frozenset({0, 1, 2, 3})).children == {4: []}


def test_numbers_are_whole_and_plain():
    tree = SpanningTrees(make_network("random", 9, 1))(frozenset({0}))
    for number in [tree.root, *tree.children, *tree.parents.values()]:
        assert type(number) is int
    assert not any(isinstance(i, np.integer) for c in tree.children.values() for i in c)
