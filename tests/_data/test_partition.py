import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from skppdnmf._data.partition import assign_agents, is_parts, split_samples, stack_parts


class TestSplitSamples:
    @pytest.mark.parametrize("n_samples", [1, 3, 4, 10])
    def test_none_makes_four_agents_or_fewer(self, n_samples):
        split = split_samples(n_samples)
        assert split.labels == list(range(min(4, n_samples)))

    @given(st.data(), st.integers(1, 200))
    def test_int_makes_near_equal_blocks(self, data, n_samples):
        n_agents = data.draw(st.integers(1, n_samples))
        split = split_samples(n_samples, np.int64(n_agents))
        expected = [
            k
            for k, block in enumerate(np.array_split(np.arange(n_samples), n_agents))
            for _ in block
        ]
        assert split.sample_agents.dtype == np.intp
        assert split.sample_agents.tolist() == expected
        assert split.n_agents == n_agents

    @given(st.lists(st.integers(0, 20), min_size=1).filter(any))
    def test_sizes_are_taken_as_given(self, sizes):
        split = split_samples(sum(sizes), sizes)
        assert split.sizes.tolist() == sizes
        assert (np.diff(split.sample_agents) >= 0).all()

    @given(
        st.lists(st.integers(0, 50), min_size=1, max_size=20).filter(any),
        st.integers(1, 500),
    )
    def test_fractions_are_met_within_one_sample(self, weights, n_samples):
        fractions = np.array(weights) / sum(weights)
        split = split_samples(n_samples, fractions)
        assert split.n_agents == len(weights)
        assert split.sample_agents.shape == (n_samples,)
        assert np.abs(split.sizes - fractions * n_samples).max() <= 1 + 1e-9
        assert not split.sizes[fractions == 0].any()

    @pytest.mark.parametrize(
        "partition", [(3, 1), np.array([3, 1]), [0.75, 0.25], pd.Series([0.75, 0.25])]
    )
    def test_reads_every_sequence(self, partition):
        assert split_samples(4, partition).sample_agents.tolist() == [0, 0, 0, 1]

    @pytest.mark.parametrize(
        ("partition", "message"),
        [
            (6, "partition=6 exceeds n_samples=5"),
            (0, "partition=0 must be at least 1"),
            (-1, "partition=-1 must be at least 1"),
            (True, "partition=True must be"),
            (2.0, "partition=2.0 must be"),
            (np.float64(2), r"partition=.*2.0.* must be"),
            ("5", "partition='5' must be"),
            (["2", "3"], r"partition=\['2', '3'\] must be"),
            ([], r"partition=\[\] must be"),
            ({2, 3}, r"partition=\{2, 3\} must be"),
            ([[2, 3]], "must be None"),
            (np.array([[2, 3]]), "must be None"),
            ([4, True], r"partition=\[4, True\] must be"),
            ([0.5, 1], r"partition=\[0.5, 1\] must be"),
            ([None, 5], "must be None"),
            ([2, 2], "sum to 4, but n_samples=5; fractions"),
            ([6, -1], r"negative sizes: -1 \(agent 1\)"),
            ([0.5, 0.4], "fractions in partition sum to 0.9, not to 1"),
            ([1.5, -0.5], r"outside \[0, 1\]: 1.5 \(agent 0\), -0.5 \(agent 1\)"),
            ([float("nan"), 1.0], r"outside \[0, 1\]: nan \(agent 0\)"),
        ],
    )
    def test_refusals_carry_the_values(self, partition, message):
        with pytest.raises(ValueError, match=message):
            split_samples(5, partition)

    def test_no_samples(self):
        with pytest.raises(ValueError, match="n_samples=0"):
            split_samples(0)


class TestPartition:
    @given(st.lists(st.integers(0, 4), min_size=1))
    def test_samples_and_sizes_belong_to_each_agent(self, agents):
        partition = assign_agents(agents, len(agents), range(5))
        for k in range(5):
            expected = [row for row, agent in enumerate(agents) if agent == k]
            assert partition.samples[k].tolist() == expected
            assert partition.sizes[k] == len(expected)


WORDS = ["b", "a", "b", "c"]


class TestAssignAgents:
    @pytest.mark.parametrize(
        "agents",
        [
            WORDS,
            tuple(WORDS),
            np.array(WORDS),
            np.array(WORDS, dtype=object),
            list(np.array(WORDS)),
            pd.Series(WORDS, index=[3, 2, 1, 0]),
            pd.Series(WORDS).astype("category"),
            pd.Categorical(WORDS),
            pd.Index(WORDS),
            pl.Series(WORDS),
            pl.Series(WORDS, dtype=pl.Categorical),
        ],
    )
    def test_reads_every_sequence(self, agents):
        partition = assign_agents(agents, 4)
        assert partition.labels == ["a", "b", "c"]
        assert all(type(label) is str for label in partition.labels)
        assert partition.sample_agents.dtype == np.intp
        assert partition.sample_agents.tolist() == [1, 0, 1, 2]

    @pytest.mark.parametrize(
        ("agents", "labels"),
        [
            (np.array([3, 1, 3]), [1, 3]),
            ([np.int64(3), 1, 3], [1, 3]),
            ([2.5, 1, 2.5], [1, 2.5]),
            ([(1, "x"), (0, "y"), (1, "x")], [(0, "y"), (1, "x")]),
            (["b", 1, "a"], ["b", 1, "a"]),
            ([True, False, True], [False, True]),
            (range(3), [0, 1, 2]),
        ],
    )
    def test_labels_are_sorted_where_they_compare(self, agents, labels):
        partition = assign_agents(agents, 3)
        assert partition.labels == labels
        assert not any(isinstance(label, np.generic) for label in partition.labels)
        assert [partition.labels[k] for k in partition.sample_agents] == list(agents)

    def test_times_stay_times(self):
        days = np.array(["2024-01-02", "2024-01-01"], dtype="datetime64[ns]")
        assert assign_agents(days, 2).labels == [days[1], days[0]]
        assert assign_agents(pd.Series(days), 2).labels == [
            pd.Timestamp("2024-01-01"),
            pd.Timestamp("2024-01-02"),
        ]

    @given(st.lists(st.one_of(st.integers(), st.text()), min_size=1))
    def test_every_sample_gets_its_own_label(self, agents):
        partition = assign_agents(agents, len(agents))
        assert [partition.labels[k] for k in partition.sample_agents] == agents
        assert set(partition.labels) == set(agents)
        assert len(partition.labels) == len(set(agents))

    @pytest.mark.parametrize(
        ("agents", "message"),
        [
            (["a", "b"], "agents has 2 labels, but X has n_samples=3"),
            (np.zeros((3, 1)), r"must be 1-D.*shape \(3, 1\)"),
            (pd.DataFrame({"a": [1, 2, 3]}), r"must be 1-D.*shape \(3, 1\)"),
            (pl.DataFrame({"a": [1, 2, 3]}), r"must be 1-D.*shape \(3, 1\)"),
            (np.array(1), r"must be 1-D.*shape \(\)"),
            ([[1], [2], [3]], "must be 1-D.*unhashable"),
            ("abc", "must be 1-D.*got str"),
            ({1, 2, 3}, "must be 1-D.*got set"),
            (None, "must be 1-D.*got NoneType"),
            (["a", None, None], "missing labels, at samples 1, 2$"),
            ([0.0, np.nan, 1.0], "missing labels, at samples 1"),
            (np.array([np.nan, 0, 1]), "missing labels, at samples 0"),
            (pd.Series(["a", "b", None]), "missing labels, at samples 2"),
            (pd.Series([1, None, 2], dtype="Int64"), "missing labels, at samples 1"),
            (pl.Series([None, 1, 2]), "missing labels, at samples 0"),
            (
                np.array(["NaT", "2024-01-01", "NaT"], dtype="datetime64[ns]"),
                "missing labels, at samples 0, 2",
            ),
            (pd.Categorical(["a", None, "b"]), "missing labels, at samples 1"),
        ],
    )
    def test_refusals(self, agents, message):
        with pytest.raises(ValueError, match=message):
            assign_agents(agents, 3)

    def test_graph_labels_give_the_order_and_the_relays(self):
        partition = assign_agents(["c", "a", "c"], 3, ["b", "c", "a"])
        assert partition.labels == ["b", "c", "a"]
        assert partition.sample_agents.tolist() == [1, 2, 1]
        assert partition.sizes.tolist() == [0, 2, 1]

    @pytest.mark.parametrize("agents", [[2, 0, 2], [2.0, 0.0, 2.0]])
    def test_numbers_match_row_numbers(self, agents):
        partition = assign_agents(np.array(agents), 3, range(4))
        assert partition.labels == [0, 1, 2, 3]
        assert partition.sample_agents.tolist() == [2, 0, 2]

    @pytest.mark.parametrize("agents", ["xya", ["x", "y", "a"], np.array(list("xya"))])
    def test_label_absent_from_the_graph(self, agents):
        message = (
            "names 'x', 'y', not in the graph, whose agents are "
            "'a', 'b', 'c', 'd', 'e' and 1 more$"
        )
        with pytest.raises(ValueError, match=message):
            assign_agents(list(agents), 3, "abcdef")

    @pytest.mark.parametrize("dtype", [np.int64, np.float64, "U", object])
    def test_a_million_samples_are_quick(self, dtype):
        agents = np.arange(10**6) % 10
        start = time.perf_counter()
        partition = assign_agents(agents.astype(dtype), 10**6)
        # Measured at 0.1 s; numpy.unique takes ten times that on strings.
        assert time.perf_counter() - start < 5
        assert_array_equal(partition.sample_agents, agents)


class TestStackParts:
    def test_arrays(self):
        parts = [np.full((n, 2), n) for n in (2, 0, 3)]
        X, agents = stack_parts(parts)
        assert_array_equal(X, np.concatenate(parts))
        assert agents.dtype == np.intp
        assert agents.tolist() == [0, 0, 2, 2, 2]

    def test_an_empty_part_is_a_relay_of_an_explicit_graph(self):
        _, agents = stack_parts([np.ones((2, 2)), np.ones((0, 2))])
        assert assign_agents(agents, 2, range(2)).sizes.tolist() == [2, 0]

    @pytest.mark.parametrize(
        ("convert", "expected"),
        [
            ((sparse.csr_matrix, sparse.coo_matrix), sparse.csr_matrix),
            ((sparse.csr_array, sparse.csc_matrix), sparse.csr_array),
            ((np.asarray, sparse.csc_matrix), sparse.csr_matrix),
            ((sparse.csc_array, np.asarray), sparse.csr_array),
        ],
    )
    def test_sparse(self, convert, expected):
        dense = [np.eye(3), np.zeros((0, 3)), np.arange(6.0).reshape(2, 3)]
        first, second = convert
        X, agents = stack_parts([first(dense[0]), first(dense[1]), second(dense[2])])
        assert X.format == "csr"
        # Before 1.11 scipy stacked arrays into a matrix.
        assert type(X) is expected or not hasattr(sparse, "sparray")
        assert_array_equal(X.toarray(), np.concatenate(dense))
        assert agents.tolist() == [0, 0, 0, 2, 2]

    def test_pandas(self):
        parts = [
            pd.DataFrame({"u": [1, 2], "v": [3.0, 4.0]}, index=["a", "b"]),
            pd.DataFrame({"u": [], "v": []}, dtype=object),
            pd.DataFrame({"u": [5], "v": [6.0]}, index=["c"]),
        ]
        X, agents = stack_parts(parts)
        expected = pd.DataFrame(
            {"u": [1, 2, 5], "v": [3.0, 4.0, 6.0]}, index=["a", "b", "c"]
        )
        pd.testing.assert_frame_equal(X, expected)
        assert agents.tolist() == [0, 0, 2]

    def test_polars(self):
        parts = [
            pl.DataFrame({"u": [1, 2], "v": [3.0, 4.0]}),
            pl.DataFrame({"u": [5.5], "v": [6]}),
        ]
        X, agents = stack_parts(parts)
        assert X.equals(pl.DataFrame({"u": [1.0, 2.0, 5.5], "v": [3.0, 4.0, 6.0]}))
        assert agents.tolist() == [0, 0, 1]

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    def test_only_empty_frames(self, frame):
        X, agents = stack_parts([frame({"u": []}), frame({"u": []})])
        assert X.shape == (0, 1)
        assert agents.shape == (0,)

    @pytest.mark.parametrize(
        ("parts", "message"),
        [
            ([], "got list of length 0"),
            (np.ones((2, 2, 2)), "got ndarray"),
            ([[1, 2], [3, 4]], r"not: 0 \(list, shape None\), 1 \(list, shape None\)"),
            (
                [[[1, 2]], np.ones((1, 2)), [[3, 4]]],
                r"not: 0 \(list, shape None\), 2 \(list, .*; .*numpy\.asarray",
            ),
            ([np.ones((2, 2)), np.ones(2)], r"not: 1 \(ndarray, shape \(2,\)\)$"),
            (
                [np.ones((1, 2)), np.ones((1, 3))],
                r"number of columns: 2 \(part 0\), 3 \(part 1\)",
            ),
            (
                [sparse.csr_array((1, 2)), np.ones((1, 3))],
                r"number of columns: 2 \(part 0\), 3 \(part 1\)",
            ),
            (
                [pd.DataFrame({"a": [1]}), np.ones((1, 1))],
                r"mixes pandas frame \(part 0\), array \(part 1\)",
            ),
            (
                [sparse.csr_array((1, 1)), pl.DataFrame({"a": [1]})],
                r"mixes sparse matrix \(part 0\), polars frame \(part 1\)",
            ),
            (
                [pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]})],
                r"mixes pandas frame \(part 0\), polars frame \(part 1\)",
            ),
        ],
    )
    def test_refusals_name_the_parts(self, parts, message):
        with pytest.raises(ValueError, match=message):
            stack_parts(parts)

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    def test_other_column_names(self, frame):
        first = frame({"a": [1], "b": [2]})
        with pytest.raises(
            ValueError, match=r"of part 1 differ .* part 0: 'c' for 'b'"
        ):
            stack_parts([first, frame({"a": [1], "c": [2]})])
        with pytest.raises(
            ValueError, match=r"part 0 \(the same, in another order\): "
        ):
            stack_parts([first, frame({"b": [1], "a": [2]})])


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        ([np.ones((2, 2))], True),
        ((np.ones((2, 2)), sparse.csr_matrix((1, 2))), True),
        ([sparse.coo_array((1, 2)), np.ones((0, 2))], True),
        ([pd.DataFrame({"a": [1]})], True),
        ([pl.DataFrame({"a": [1]})], True),
        ([], False),
        ([[1, 2], [3, 4]], False),
        # Lists of rows are parts, which `stack_parts` refuses.
        ([[[1, 2]], [[3, 4]]], True),
        ([[1, 2], [[3, 4]]], True),
        ([[np.ones(2)], []], True),
        (((1, 2), (3, np.float64(4))), False),
        ([[1, np.array(2)], [np.array(3), 4]], False),
        ([[], []], False),
        ([np.ones(2), np.ones(2)], False),
        ([np.ones((2, 2)), np.ones(2)], True),  # and `stack_parts` names the second
        ([pd.Series([1])], False),
        ([np.ones((2, 2, 2))], False),
        (np.ones((2, 2, 2)), False),
        (pd.DataFrame({"a": [1]}), False),
        (sparse.csr_array((1, 2)), False),
        (None, False),
    ],
)
def test_is_parts(X, expected):
    assert is_parts(X) is expected
