"""The rows of frames keep their labels, also where each agent has a frame."""

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal, assert_index_equal
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skppdnmf import PrivateDistributedNMF

NAMES = [f"f{k}" for k in range(5)]
SIZES = (4, 3, 5)
METHODS = ("fit_transform", "transform")


def model():
    return PrivateDistributedNMF(
        2, adjacency="ring", encryption=None, max_iter=2, tol=0, random_state=0
    )


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    return [rng.exponential(size=(size, 5)) for size in SIZES]


def frames(arrays, index):
    """One frame for each agent, with these labels of all rows."""
    whole = pd.DataFrame(np.concatenate(arrays), index=index, columns=NAMES)
    starts = np.cumsum([0, *SIZES])
    return [whole.iloc[a:b] for a, b in pairwise(starts)]


def apply(estimator, method, X):
    if method == "fit_transform":
        return estimator.fit_transform(X)
    return estimator.fit(X).transform(X)


INDICES = {
    "strings": pd.Index([f"s{k}" for k in range(12)], name="patient"),
    "repeated": pd.Index([*range(4), *range(3), *range(5)]),
    "dates": pd.date_range("2020-01-01", periods=12),
    "pairs": pd.MultiIndex.from_product([["a", "b"], range(6)], names=["site", "no"]),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_rows_of_stacked_frames_keep_their_labels(arrays, method, index):
    parts = frames(arrays, index)
    W = apply(model().set_output(transform="pandas"), method, parts)
    assert_index_equal(W.index, pd.concat(parts).index)
    assert list(W.columns) == ["privatedistributednmf0", "privatedistributednmf1"]
    assert_array_equal(W.to_numpy(), apply(model(), method, arrays))


@pytest.mark.parametrize("method", METHODS)
def test_as_of_the_frame_that_they_make(arrays, method):
    parts = tuple(frames(arrays, INDICES["strings"]))
    estimator = model().set_output(transform="pandas").fit(parts)
    one = estimator.transform(pd.concat(parts))
    assert_frame_equal(apply(estimator, method, parts), one)


@pytest.mark.parametrize("method", METHODS)
def test_an_agent_without_samples_adds_no_label(arrays, method):
    parts = frames(arrays, INDICES["strings"])
    parts.insert(1, parts[0].iloc[:0])
    estimator = model().set_output(transform="pandas")
    W = apply(estimator, method, parts)
    assert_index_equal(W.index, INDICES["strings"])
    assert len(estimator.agent_labels_) == 4


@pytest.mark.parametrize("method", METHODS)
def test_arrays_and_sparse_parts_are_numbered(arrays, method):
    for parts in (arrays, [sparse.csr_matrix(part) for part in arrays]):
        W = apply(model().set_output(transform="pandas"), method, parts)
        assert_index_equal(W.index, pd.RangeIndex(12))


@pytest.mark.parametrize("method", METHODS)
def test_without_a_container_it_is_an_array(arrays, method):
    parts = frames(arrays, INDICES["strings"])
    W = apply(model(), method, parts)
    assert type(W) is np.ndarray
    assert_array_equal(W, apply(model(), method, arrays))


@pytest.mark.parametrize("method", METHODS)
def test_polars(arrays, method):
    in_polars = [pl.DataFrame(part, schema=NAMES) for part in arrays]
    for parts in (in_polars, frames(arrays, INDICES["strings"])):
        W = apply(model().set_output(transform="polars"), method, parts)
        assert isinstance(W, pl.DataFrame)
        assert W.columns == ["privatedistributednmf0", "privatedistributednmf1"]
        assert_array_equal(W.to_numpy(), apply(model(), method, arrays))


def test_by_the_context_and_in_a_pipeline(arrays):
    parts = frames(arrays, INDICES["strings"])
    with sklearn.config_context(transform_output="pandas"):
        assert_index_equal(model().fit_transform(parts).index, INDICES["strings"])
    pipeline = make_pipeline(model(), FunctionTransformer())
    W = pipeline.set_output(transform="pandas").fit_transform(parts)
    assert_index_equal(W.index, INDICES["strings"])


def test_subclasses_may_turn_the_container_off(arrays):
    class Bare(PrivateDistributedNMF, auto_wrap_output_keys=None):
        pass

    parts = frames(arrays, INDICES["strings"])
    estimator = Bare(2, encryption=None, max_iter=2, tol=0, random_state=0)
    with sklearn.config_context(transform_output="pandas"):
        assert type(estimator.fit(parts).transform(parts)) is np.ndarray
