import pickle
import subprocess
import sys

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from skppdnmf._data.graph import GENERATORS, Network, make_network

PATH = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def path_with(*entries):
    """Path of three agents in floats, some entries replaced."""
    matrix = PATH.astype(float)
    for i, j, value in entries:
        matrix[i, j] = value
    return matrix


class TestGenerators:
    @given(st.sampled_from(GENERATORS), st.integers(1, 30), st.integers(0, 2**32 - 1))
    def test_every_generator_makes_a_connected_simple_graph(self, name, n, seed):
        matrix = make_network(name, n, seed).adjacency
        assert matrix.shape == (n, n)
        assert set(np.unique(matrix)) <= {0, 1}
        np.testing.assert_array_equal(matrix, matrix.T)
        assert not matrix.diagonal().any()
        assert nx.is_connected(nx.from_numpy_array(matrix))

    @pytest.mark.parametrize(
        ("name", "reference"),
        [
            ("ring", nx.cycle_graph),
            ("complete", nx.complete_graph),
            ("star", lambda n: nx.star_graph(n - 1)),
            ("path", nx.path_graph),
        ],
    )
    @pytest.mark.parametrize("n", [3, 4, 7])
    def test_named_graphs_are_networkx_ones(self, name, reference, n):
        expected = nx.to_numpy_array(reference(n), nodelist=range(n))
        np.testing.assert_array_equal(make_network(name, n).adjacency, expected)

    @pytest.mark.parametrize("name", GENERATORS)
    def test_one_agent_has_no_edges_and_two_have_one(self, name):
        assert make_network(name, 1).n_edges == 0
        np.testing.assert_array_equal(make_network(name, 2).adjacency, [[0, 1], [1, 0]])

    @pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 10, 101])
    def test_random_has_average_degree_three(self, n):
        expected = min(max(round(3 * n / 2), n - 1), n * (n - 1) // 2)
        assert make_network("random", n, 0).n_edges == expected

    def test_random_follows_the_seed(self):
        first, again, other = (
            make_network("random", 20, seed).adjacency for seed in (0, 0, 1)
        )
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()

    def test_random_draws_every_edge_equally_often(self):
        n, n_draws = 5, 1500
        rng = np.random.RandomState(0)
        total = sum(
            make_network("random", n, rng).adjacency.astype(int) for _ in range(n_draws)
        )
        rates = total[np.triu_indices(n, 1)] / n_draws
        # 8 of 10 pairs; the standard error of a rate is about 0.01.
        np.testing.assert_allclose(rates, 0.8, atol=0.05)

    def test_generated_graphs_have_no_labels(self):
        assert make_network("ring", 4).labels is None

    def test_unknown_name_lists_the_allowed_ones(self):
        with pytest.raises(ValueError, match="'rnig' is not one of 'random', 'ring'"):
            make_network("rnig", 4)

    @pytest.mark.parametrize("n_agents", [0, -1, 2.0, True])
    def test_n_agents_must_be_a_positive_integer(self, n_agents):
        with pytest.raises(ValueError, match=f"n_agents={n_agents}"):
            make_network("ring", n_agents)

    def test_a_name_needs_n_agents(self):
        with pytest.raises(ValueError, match="'ring' needs n_agents"):
            make_network("ring")


class TestProperties:
    @given(st.integers(1, 25), st.integers(0, 2**32 - 1))
    def test_against_networkx(self, n, seed):
        network = make_network("random", n, seed)
        graph = nx.from_numpy_array(network.adjacency)
        assert network.n_agents == n
        assert network.n_edges == graph.number_of_edges()
        assert network.mean_degree == pytest.approx(2 * graph.number_of_edges() / n)
        assert network.degrees.tolist() == [graph.degree(k) for k in range(n)]
        assert [a.tolist() for a in network.neighbours] == [
            sorted(graph.neighbors(k)) for k in range(n)
        ]
        assert network.directed_edges.tolist() == sorted(
            [i, j] for i, j in graph.to_directed().edges
        )
        eccentricity = nx.eccentricity(graph)
        assert network.eccentricities.tolist() == [eccentricity[k] for k in range(n)]
        assert network.diameter == nx.diameter(graph)

    @pytest.mark.parametrize(
        ("name", "gap"),
        [
            ("complete", 6),
            ("star", 1),
            ("path", 2 - 2 * np.cos(np.pi / 6)),
            ("ring", 2 - 2 * np.cos(2 * np.pi / 6)),
        ],
    )
    def test_spectral_gap_has_its_closed_form(self, name, gap):
        assert make_network(name, 6).spectral_gap == pytest.approx(gap)

    def test_spectral_gap_of_one_agent(self):
        assert make_network("ring", 1).spectral_gap == 0

    def test_adjacency_is_read_only(self):
        with pytest.raises(ValueError, match="read-only"):
            make_network("ring", 4).adjacency[0, 2] = 1

    def test_survives_pickling(self):
        network = make_network("random", 12, 0)
        _ = network.neighbours
        copy = pickle.loads(pickle.dumps(network))
        np.testing.assert_array_equal(copy.adjacency, network.adjacency)
        assert copy.diameter == network.diameter


class TestExplicit:
    @pytest.mark.parametrize(
        "convert",
        [
            np.asarray,
            np.ndarray.tolist,
            lambda a: a.astype(bool),
            lambda a: a.astype(float),
            lambda a: a.astype(object),
            lambda a: a.astype(np.uint64),
            sparse.coo_matrix,
            sparse.csr_array,
            sparse.lil_matrix,
            pd.DataFrame,
            nx.from_numpy_array,
        ],
    )
    def test_reads_every_form(self, convert):
        network = make_network(convert(PATH), 3)
        assert network.adjacency.dtype == np.int8
        np.testing.assert_array_equal(network.adjacency, PATH)
        assert network.labels == [0, 1, 2]
        assert all(type(label) is int for label in network.labels)

    def test_does_not_change_or_share_the_argument(self):
        matrix = PATH.astype(np.int8)
        network = make_network(matrix)
        matrix[0, 2] = 1
        assert network.adjacency[0, 2] == 0

    def test_size_is_the_graphs_where_none_is_asked(self):
        assert make_network(PATH).n_agents == 3

    @pytest.mark.parametrize(
        "graph", [[[0]], sparse.csr_array((1, 1)), nx.empty_graph(1)]
    )
    def test_one_agent(self, graph):
        assert make_network(graph, 1).n_edges == 0

    def test_frame_is_labelled_and_reordered_by_its_index(self):
        frame = pd.DataFrame(PATH, index=list("abc"), columns=list("abc"))
        network = make_network(frame[["c", "a", "b"]])
        assert network.labels == ["a", "b", "c"]
        np.testing.assert_array_equal(network.adjacency, PATH)

    def test_networkx_nodes_keep_their_order_and_names(self):
        graph = nx.Graph([("b", ("x", 1)), (("x", 1), "a")])
        network = make_network(graph)
        assert network.labels == ["b", ("x", 1), "a"]
        np.testing.assert_array_equal(network.adjacency, PATH)

    def test_networkx_subclass_multigraph_and_unit_weights(self):
        class Roads(nx.MultiGraph):
            pass

        graph = Roads()
        graph.add_edge(0, 1, weight=1.0)
        graph.add_edge(1, 2)
        np.testing.assert_array_equal(make_network(graph).adjacency, PATH)

    def test_optional_packages_are_not_imported(self):
        # Our dependencies may import one themselves, so only the difference counts.
        code = (
            "import sys, sklearn.utils, scipy.optimize, scipy.sparse.csgraph;"
            "before = set(sys.modules);"
            "import skppdnmf._data.partition, skppdnmf.datasets;"
            "from skppdnmf._data.graph import make_network;"
            "make_network('random', 5, 0);"
            "make_network([[0, 1], [1, 0]]);"
            "print({'networkx', 'pandas', 'polars'} & (set(sys.modules) - before))"
        )
        found = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert found.stdout == "set()\n"


def weighted_graph(weight):
    graph = nx.path_graph(["a", "b", "c"])
    graph.edges["b", "c"]["weight"] = weight
    return graph


class TestRefusals:
    @pytest.mark.parametrize(
        ("graph", "message"),
        [
            (np.zeros((2, 3)), r"square matrix; it has shape \(2, 3\)"),
            (sparse.coo_array((10**6, 2)), r"it has shape \(1000000, 2\)"),
            (None, "adjacency=None is not one of 'random', 'ring', .* nor a graph"),
            (5, r"adjacency=5 is not one of .* \(a square matrix of 0 and 1, "),
            ({0: [1], 1: [0]}, r"adjacency=\{0: \[1\], 1: \[0\]\} is not one of"),
            ([0, 1], r"it has shape \(2,\)"),
            ([[0, 1], [1]], r"it has shape \(2,\)"),
            ([np.zeros((2, 1)), np.zeros((2, 2))], "not a matrix"),
            (np.zeros((0, 0)), "no agents"),
            (nx.Graph(), "no agents"),
            (pd.DataFrame(), "no agents"),
            ([["a", "b"], ["b", "a"]], "must hold 0 and 1: .*'a'"),
            (np.array([["0", "1"], ["1", "0"]]), "must hold 0 and 1; its dtype"),
            (PATH * 1j, "must hold 0 and 1; its dtype is complex128"),
            (np.array([[0, "x"], [1, 0]], dtype=object), "must hold 0 and 1: .*'x'"),
            (pd.DataFrame([[0, "x"], [1, 0]]), "must hold 0 and 1: .*'x'"),
            (path_with((0, 2, np.nan)), r"missing entries \(nan\): 0 and 2"),
            (path_with((1, 1, 1), (2, 2, 3)), r"self-loops: 1 \(1\), 2 \(3\)"),
            (path_with((2, 1, -1)), r"negative weights: 1 and 2 \(-1\)"),
            (
                path_with((0, 1, 0.5), (1, 0, 0.5)),
                r"weights other than 0 and 1: 0 and 1 \(0.5\)$",
            ),
            (path_with((0, 1, np.inf)), r"other than 0 and 1: 0 and 1 \(inf\)"),
            (
                path_with((0, 2, 1), (1, 0, 0)),
                r"not symmetric: 0 and 1 \(1, back 0\), 0 and 2 \(1, back 0\)",
            ),
            (np.zeros((2, 2)), "without neighbours: 0, 1$"),
        ],
    )
    def test_message_names_agents_and_values(self, graph, message):
        with pytest.raises(ValueError, match=message):
            make_network(graph)

    def test_wrong_size_names_both(self):
        with pytest.raises(ValueError, match="has 3 agents, but the partition makes 4"):
            make_network(PATH, 4)

    def test_names_at_most_five(self):
        matrix = 1.0 - np.eye(9)
        matrix[0, 1:] = 2
        with pytest.raises(
            ValueError, match=r"0 and 1 \(2\), .*0 and 5 \(2\) and 3 more$"
        ):
            make_network(matrix)

    @pytest.mark.parametrize(("n", "ending"), [(5, "4$"), (6, "4 and 1 more$")])
    def test_says_more_only_if_there_are_more(self, n, ending):
        with pytest.raises(ValueError, match=f"0, 1, 2, 3, {ending}"):
            make_network(np.zeros((n, n)))

    def test_disconnected_names_the_smaller_components(self):
        graph = nx.disjoint_union_all([nx.path_graph(k) for k in (2, 7, 8, 3)])
        with pytest.raises(
            ValueError,
            match=r"4 components; the largest has 8 agents, cut off from it: "
            r"\[0, 1\], \[2, 3, 4, 5, 6 and 2 more\], \[17, 18, 19\]; link each",
        ):
            make_network(graph)

    def test_labels_are_used_in_messages(self):
        frame = pd.DataFrame(np.zeros((2, 2)), index=["Oslo", "Bergen"])
        frame.columns = frame.index
        with pytest.raises(ValueError, match="neighbours: 'Oslo', 'Bergen'"):
            make_network(frame)

    def test_frame_with_other_columns(self):
        frame = pd.DataFrame(PATH, index=list("abc"), columns=list("abd"))
        with pytest.raises(
            ValueError, match="only in the index: 'c'; only in the columns: 'd'"
        ):
            make_network(frame)

    @pytest.mark.parametrize("axis", ["index", "columns"])
    def test_frame_with_repeated_labels(self, axis):
        frame = pd.DataFrame(PATH, index=list("abc"), columns=list("abc"))
        setattr(frame, axis, list("aba"))
        with pytest.raises(ValueError, match=f"the {axis} of adjacency repeats 'a'"):
            make_network(frame)

    def test_frame_with_missing_entries(self):
        frame = pd.DataFrame(PATH, dtype="Int64")
        frame.iloc[0, 1] = pd.NA
        with pytest.raises(ValueError, match=r"\(nan\): 0 and 1"):
            make_network(frame)

    @pytest.mark.parametrize("label", [float("nan"), np.nan, pd.NaT, pd.NA, None])
    def test_missing_labels_are_named_with_their_place(self, label):
        message = r"missing labels: .* \(agent 1\)$"
        frame = pd.DataFrame(PATH)
        frame.index = frame.columns = pd.Index(["a", label, "c"], dtype=object)
        with pytest.raises(ValueError, match=message):
            make_network(frame)
        if label is not None:  # which networkx refuses as a node
            with pytest.raises(ValueError, match=message):
                make_network(nx.path_graph(["a", label, "c"]))

    @pytest.mark.parametrize("weight", [0.5, 2, 0, -1, float("nan"), None, "far"])
    def test_networkx_weights(self, weight):
        with pytest.raises(ValueError, match=rf"not 1.*: 'b' and 'c' \({weight}\)"):
            make_network(weighted_graph(weight))

    def test_directed_graph_names_the_one_way_edges(self):
        graph = nx.DiGraph([("a", "b"), ("b", "a"), ("b", "c")])
        with pytest.raises(ValueError, match=r"directed .*edges one way: 'b' -> 'c'$"):
            make_network(graph)
        with pytest.raises(ValueError, match="directed graph"):
            make_network(nx.path_graph(3).to_directed())

    def test_parallel_edges(self):
        graph = nx.MultiGraph([(0, 1), (0, 1), (1, 2), (1, 0)])
        with pytest.raises(ValueError, match=r"parallel edges: 0 and 1 \(3 edges\)"):
            make_network(graph)

    def test_networkx_self_loop(self):
        with pytest.raises(ValueError, match=r"self-loops: 'a' \(1\)"):
            make_network(nx.Graph([("a", "a"), ("a", "b")]))


def test_a_thousand_agents_through_every_property():
    network = make_network("random", 1000, 0)
    assert isinstance(make_network(network.adjacency, 1000), Network)
    assert network.n_edges == 1500
    assert network.diameter == network.eccentricities.max()
    assert 0 < network.spectral_gap < network.laplacian_eigenvalues[-1]
