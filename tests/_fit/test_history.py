import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf._agent import Report, Witness
from skppdnmf._fit.history import (
    HistoryRow,
    Observer,
    as_arrays,
    consensus_error,
    fitted_attributes,
    history_row,
    mean_components,
)


def make_problem(seed=0, n_agents=4, K=3, F=6, spread=0.1):
    rng = np.random.default_rng(seed)
    base = rng.exponential(size=(K, F))
    parts = [rng.exponential(size=(rng.integers(1, 9), F)) for _ in range(n_agents)]
    rights = [rng.exponential(size=(len(X), K)) for X in parts]
    copies = [base + spread * rng.standard_normal((K, F)) for _ in range(n_agents)]
    return parts, rights, copies


def report(X, W, H, n_exchanges=5):
    return Report(
        iteration=1,
        n_exchanges=n_exchanges,
        H=H,
        squared_error=float(np.linalg.norm(X - W @ H) ** 2),
        witness=Witness(W.T @ W, W.T @ X, 0.0),
    )


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([0, 1e-6, 0.1, 3]))
@settings(deadline=None, max_examples=40)
def test_row_is_what_the_formulas_say(seed, n_agents, spread):
    parts, rights, copies = make_problem(seed, n_agents, spread=spread)
    n_exchanges = [7] * n_agents
    n_exchanges[seed % n_agents] = 11
    reports = [
        report(*args) for args in zip(parts, rights, copies, n_exchanges, strict=True)
    ]
    X, total = np.vstack(parts), sum(np.sum(X**2) for X in parts)
    row = history_row(reports, total, 2.5, 1234)

    own = np.vstack([W @ H for W, H in zip(rights, copies, strict=True)])
    mean = sum(copies) / n_agents
    shared = np.vstack(rights) @ mean
    distance = sum(np.linalg.norm(H - mean) ** 2 for H in copies) / n_agents
    assert row.local_error == pytest.approx(
        np.linalg.norm(X - own) / np.linalg.norm(X), rel=1e-9
    )
    assert row.shared_error == pytest.approx(
        np.linalg.norm(X - shared) / np.linalg.norm(X), rel=1e-9
    )
    assert row.consensus_error == pytest.approx(
        np.sqrt(distance) / np.linalg.norm(mean), rel=1e-7, abs=1e-14
    )
    assert (row.exchanges, row.seconds, row.bytes) == (11, 2.5, 1234)


def test_shared_error_of_a_tiny_residual_does_not_cancel():
    parts, rights, copies = make_problem(1, spread=1e-9)
    parts = [W @ copies[0] for W in rights]
    reports = [report(*args) for args in zip(parts, rights, copies, strict=True)]
    total = sum(np.sum(X**2) for X in parts)
    mean = np.mean(copies, axis=0)
    direct = np.vstack([X - W @ mean for X, W in zip(parts, rights, strict=True)])
    row = history_row(reports, total, 0.0, 0)
    expected = np.linalg.norm(direct) / np.sqrt(total)
    assert expected < 1e-8
    assert row.shared_error == pytest.approx(expected, rel=1e-4)


def test_zero_data_has_zero_errors():
    zero = report(np.zeros((3, 4)), np.zeros((3, 2)), np.ones((2, 4)))
    row = history_row([zero, zero], 0.0, 0.0, 0)
    assert (row.local_error, row.shared_error, row.consensus_error) == (0, 0, 0)


def test_mean_and_consensus_error_by_hand():
    copies = [np.array([[1.0, 0.0]]), np.array([[3.0, 4.0]])]
    np.testing.assert_array_equal(mean_components(copies), [[2.0, 2.0]])
    # Both copies are at distance sqrt(1 + 4) from their mean.
    assert consensus_error(copies) == pytest.approx(np.sqrt(5 / 8))


@pytest.mark.parametrize("n", [1, 3, 7])
def test_equal_copies_agree_exactly(n):
    # 0.1 * 3 / 3 is not 0.1 in floating point.
    assert consensus_error([np.full((2, 2), 0.1)] * n) == 0.0


def test_disagreement_around_zero_is_infinite():
    assert consensus_error([np.ones((1, 2)), -np.ones((1, 2))]) == float("inf")


def test_rows_become_columns():
    rows = [
        HistoryRow(5 * k, 0.1 * k, 0.2 * k, 0.3 * k, 1.5 * k, 10 * k) for k in (1, 2)
    ]
    arrays = as_arrays(rows)
    assert list(arrays) == [
        "exchanges",
        "local_error",
        "shared_error",
        "consensus_error",
        "seconds",
        "bytes",
    ]
    np.testing.assert_array_equal(arrays["exchanges"], [5, 10])
    np.testing.assert_array_equal(arrays["bytes"], [10, 20])
    np.testing.assert_allclose(arrays["seconds"], [1.5, 3.0])
    np.testing.assert_allclose(arrays["consensus_error"], [0.3, 0.6])


def test_without_witnesses_there_is_the_local_error_alone():
    parts, rights, copies = make_problem(2)
    reports = [report(*args) for args in zip(parts, rights, copies, strict=True)]
    total = sum(np.sum(X**2) for X in parts)
    full = history_row(reports, total, 0.0, 0)
    bare = [one._replace(witness=None) for one in reports]
    blind = history_row(bare, total, 0.0, 0)
    assert blind._replace(shared_error=0.0) == full._replace(shared_error=0.0)
    assert blind.shared_error == blind.local_error != full.shared_error


# The observer -------------------------------------------------------------------


def test_the_observer_counts_those_that_are_left():
    parts, rights, copies = make_problem(3, n_agents=4)
    reports = [report(*args) for args in zip(parts, rights, copies, strict=True)]
    norms = [float(np.sum(X**2)) for X in parts]
    watch = Observer(sum(norms), norms)
    gone = []
    for leaving in ([], [1], [], [0, 3]):
        gone += leaving
        given = [None if i in gone else one for i, one in enumerate(reports)]
        left = [i for i in range(4) if i not in gone]
        row = watch.note(given, 100 * len(watch.rows))
        expected = history_row(
            [reports[i] for i in left], sum(norms[i] for i in left), 0.0, row.bytes
        )
        assert row.seconds >= 0
        np.testing.assert_allclose(row._replace(seconds=0.0), expected, rtol=1e-12)
    assert [row.bytes for row in watch.rows] == [0, 100, 200, 300]
    seconds = [row.seconds for row in watch.rows]
    assert seconds == sorted(seconds)


def test_observers_of_agents_without_samples():
    zero = report(np.zeros((0, 4)), np.zeros((0, 2)), np.ones((2, 4)))
    watch = Observer(1e-300, [1e-300, 0.0])
    assert watch.note([None, zero], 0).local_error == 0.0


def test_copies_of_those_that_have_left_are_nan():
    parts, rights, copies = make_problem(4, n_agents=3)
    reports = [report(*args) for args in zip(parts, rights, copies, strict=True)]
    rows = [
        HistoryRow(5, 0.1, 0.1, 0.1, 0.0, 10),
        HistoryRow(9, 0.1, 0.1, 0.1, 0.0, 20),
    ]
    found = fitted_attributes([reports[0], None, reports[2]], rows, np.float32)
    np.testing.assert_allclose(
        found["components_"], (copies[0] + copies[2]) / 2, rtol=1e-6
    )
    np.testing.assert_allclose(found["agent_components_"][2], copies[2], rtol=1e-6)
    assert np.isnan(found["agent_components_"][1]).all()
    assert found["agent_components_"].dtype == found["components_"].dtype == np.float32
    assert found["consensus_error_"] == consensus_error([copies[0], copies[2]])
    assert (found["n_iter_"], found["n_exchanges_"]) == (2, 9)
    assert (found["n_components_"], found["n_features_in_"]) == (3, 6)
