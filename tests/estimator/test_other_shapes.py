"""Data and labels in another shape than a matrix and an array."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skppdnmf import PrivateDistributedNMF, stack_parts
from skppdnmf.plot._network import sample_owners

SITES = ["north", "south", "east"]


def model(**parameters):
    parameters = {"protocol": "secure-sum", "max_iter": 3, "tol": 0, **parameters}
    return PrivateDistributedNMF(2, random_state=0, **parameters)


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((24, 4)), columns=list("abcd"))
    X.index = [f"row {k}" for k in rng.permutation(24)]
    return X


@pytest.fixture
def site():
    return np.array(SITES)[np.arange(24) % 3]


def reference(frame, site):
    return model().fit(frame.to_numpy(), agents=site).components_


# Labels in the place of y -----------------------------------------------------------


@pytest.mark.parametrize("convert", [list, np.asarray, pd.Series, pd.Categorical])
def test_labels_in_the_place_of_y(frame, site, convert):
    for method in ("fit", "fit_transform"):
        with pytest.warns(DataConversionWarning, match=r"fit\(X, agents=labels\)"):
            getattr(model(), method)(frame, convert(site))
    with pytest.warns(DataConversionWarning, match="PrivateDistributedNMF"):
        model(protocol="consensus", encryption=None).fit(frame, np.arange(24) % 3)


def test_no_warning_where_y_is_something_else(frame, site):
    model().fit(frame, site, agents=site)  # the labels are there
    model().fit(frame, np.random.default_rng(0).random(24))  # a target
    parts = [frame[site == one] for one in SITES]
    model().fit(parts, site)


@pytest.mark.journey
def test_no_warning_in_pipelines_and_searches(frame, site):
    pipeline = make_pipeline(model(), LogisticRegression())
    pipeline.fit(frame, site)
    make_pipeline(model(), KMeans(2, n_init=1)).fit(frame, site)
    search = GridSearchCV(model(), {"n_components": [1, 2]}, cv=2, n_jobs=2)
    search.fit(frame, site)


# Series with an index ---------------------------------------------------------------


def test_series_are_aligned_by_their_index(frame, site):
    labels = pd.Series(site, index=frame.index)
    expected = model().fit(frame, agents=labels)
    assert_array_equal(expected.components_, reference(frame, site))
    shuffled = labels.sample(frac=1, random_state=0)
    with pytest.warns(DataConversionWarning, match="agents is a series .* aligned"):
        aligned = model().fit(frame, agents=shuffled)
    assert_array_equal(aligned.sample_agents_, expected.sample_agents_)
    assert_array_equal(aligned.components_, expected.components_)
    with pytest.warns(DataConversionWarning, match="aligned"):
        owners = sample_owners(aligned, frame, shuffled)
    assert_array_equal(owners, expected.sample_agents_)


def test_another_index_is_an_error(frame, site):
    with pytest.raises(ValueError, match=r"index of agents .* rows 0, 1.*to_numpy"):
        model().fit(frame, agents=pd.Series(site))
    one_other = pd.Series(site, index=[*frame.index[:-1], "row 99"])
    with pytest.raises(ValueError, match=r"has rows 'row 99'"):
        model().fit(frame, agents=one_other)
    doubled = pd.Series(site, index=[*frame.index[:-1], frame.index[0]])
    with pytest.raises(ValueError, match="labels are repeated"):
        model().fit(frame, agents=doubled)
    with pytest.raises(ValueError, match="agents has 23 labels"):
        model().fit(frame, agents=pd.Series(site, index=frame.index)[:-1])


def test_positions_count_where_one_has_no_index(frame, site):
    expected = reference(frame, site)
    shuffled = pd.Series(site, index=frame.index[::-1])
    given = [
        (frame, site),
        (frame.to_numpy(), shuffled),
        (pl.from_pandas(frame), shuffled),
        (frame, pl.Series(site)),
        (frame, pd.Categorical(site)),
    ]
    for X, agents in given:
        assert_array_equal(model().fit(X, agents=agents).components_, expected)


# Parts with labels ------------------------------------------------------------------


def with_site(frame, site):
    return frame.assign(site=site)[["a", "site", "b", "c", "d"]]


def polars_groups(frame):
    return list(pl.from_pandas(frame).group_by("site", maintain_order=True))


GROUPINGS = {
    "by a name": lambda frame: list(frame.groupby("site")),
    "by a list": lambda frame: list(frame.groupby(["site"])),
    "without the column": lambda frame: list(
        frame.drop(columns="site").groupby(frame["site"])
    ),
    "unsorted": lambda frame: list(frame.groupby("site", sort=False)),
    "tuple": lambda frame: tuple(frame.groupby("site")),
    "dict": lambda frame: dict(list(frame.groupby("site"))),
    "polars": polars_groups,
    "dict of arrays": lambda frame: {
        name: part.drop(columns="site").to_numpy()
        for name, part in frame.groupby("site")
    },
}


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("coded", [False, True])
def test_grouped_frames(frame, site, grouping, coded):
    if coded:
        site = np.array([SITES.index(one) + 10 for one in site])
    with warnings.catch_warnings():
        # Older pandas and polars say what their newer versions return.
        warnings.simplefilter("ignore")
        parts = GROUPINGS[grouping](with_site(frame, site))
    fitted = model().fit(parts)
    assert fitted.agent_labels_ == sorted(set(site.tolist()))
    assert fitted.n_features_in_ == 4
    if "arrays" not in grouping:
        assert fitted.feature_names_in_.tolist() == list("abcd")
    assert_array_equal(fitted.components_, reference(frame, site))
    # The labels of the rows, and the rows, are those of the stacked parts.
    X, agents = stack_parts(parts)
    names = np.array(fitted.agent_labels_, dtype=object)
    assert_array_equal(names[fitted.sample_agents_], agents)
    assert_array_equal(fitted.transform(parts), fitted.transform(X))
    assert fitted.score(parts) == fitted.score(X)
    assert_array_equal(model().fit_transform(parts), fitted.transform(X))
    assert_array_equal(model().fit(X, agents=agents).components_, fitted.components_)
    assert_array_equal(sample_owners(fitted, parts, None), fitted.sample_agents_)


def test_frames_grouped_by_two_columns(frame, site):
    whole = frame.assign(site=site, ward=np.arange(24) % 2)
    fitted = model().fit(list(whole.groupby(["site", "ward"])))
    assert fitted.agent_labels_ == sorted((one, k) for one in SITES for k in (0, 1))
    assert fitted.feature_names_in_.tolist() == list("abcd")


def test_a_column_of_zeros_is_data(frame):
    zeros = {0: frame.assign(a=0.0)}
    assert stack_parts(zeros)[0].shape == (24, 4)


def test_labelled_parts_on_a_graph(frame, site):
    graph = pd.DataFrame(
        1 - np.eye(4, dtype=int), index=[*SITES, "relay"], columns=[*SITES, "relay"]
    )
    parts = dict(list(frame.groupby(site)))
    fitted = model(adjacency=graph).fit(parts)
    assert fitted.agent_labels_ == [*SITES, "relay"]
    assert_array_equal(fitted.components_, reference(frame, site))
    with pytest.raises(ValueError, match=r"X names 'west', not in the graph"):
        model(adjacency=graph).fit({**parts, "west": frame})


def test_a_labelled_part_without_rows_is_a_relay(frame, site):
    parts = dict(list(frame.groupby(site)))
    fitted = model().fit({**parts, "west": frame[:0]})
    assert fitted.agent_labels_ == ["east", "north", "south", "west"]
    assert_array_equal(fitted.components_, reference(frame, site))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([("a", np.ones((2, 2))), np.ones((2, 2))], "mixes pairs .* with others: 1"),
        ([("a", np.ones((2, 2))), ("a", np.ones((2, 2)))], "more than one part: 'a'"),
        ([(None, np.ones((2, 2)))], "without a label: 0"),
        ([(1, np.ones((2, 2))), (1.0, np.ones((2, 2)))], r"1 \(int\) and 1.0 \(float"),
        ({"a": [1, 2]}, r"not: 0 \(list"),
        ({}, "got list of length 0"),
    ],
)
def test_refused_parts(parts, message):
    with pytest.raises(ValueError, match=message):
        model().fit(parts)
    with pytest.raises(ValueError, match=message):
        stack_parts(parts)


# What is refused by name ------------------------------------------------------------


@pytest.mark.parametrize(
    ("convert", "message"),
    [
        (np.ma.masked_invalid, r"MaskedArray.*X\.filled\(numpy\.nan\)"),
        (lambda X: pl.DataFrame(X).lazy(), r"lazy frame \(LazyFrame\).*X\.collect\(\)"),
        (lambda X: pd.DataFrame(X).groupby(0), r"DataFrameGroupBy; pass list\(X\)"),
        (lambda X: [np.ma.masked_equal(X, 0)], "MaskedArray"),
        (lambda X: {"a": pl.DataFrame(X).lazy(), "b": X}, "LazyFrame"),
    ],
)
def test_refused_by_name(convert, message):
    X = np.random.default_rng(0).random((12, 3))
    fitted = model().fit(X)
    for method in ("fit", "fit_transform", "transform", "score"):
        with pytest.raises(TypeError, match=message):
            getattr(fitted, method)(convert(X))


def test_refused_dask():
    dask_array = pytest.importorskip("dask.array")
    X = dask_array.ones((12, 3), chunks=3)
    with pytest.raises(TypeError, match=r"lazy dask Array; pass X\.compute\(\)"):
        model().fit(X)


# Labels that compare equal ----------------------------------------------------------


@pytest.mark.parametrize(
    "agents",
    [
        [1, 1.0, 2, 3],
        [1, True, 2, 3],
        [0.0, False, 2.0, 3.0],
        [np.int64(1), 2, 3, np.float64(1)],
        [("a", 1), ("a", True), "b", "c"],
        np.array([1, 2.0, True, "b"], dtype=object),
        pd.Series([1, 2, 1.0, True], dtype=object),
    ],
)
def test_labels_of_other_types_are_not_taken_for_one(agents):
    X = np.random.default_rng(0).random((4, 3))
    with pytest.raises(ValueError, match=r"labels hold both .* compare equal"):
        model().fit(X, agents=agents)


def test_labels_of_one_type_in_two_guises():
    X = np.random.default_rng(0).random((4, 3))
    assert model().fit(X, agents=[1, np.int32(1), 2, 3]).agent_labels_ == [1, 2, 3]
    texts = ["1", "1.0", "True", "1"]
    assert model().fit(X, agents=texts).agent_labels_ == ["1", "1.0", "True"]
    with pytest.raises(ValueError, match=r"\(int\) and (False|True) \(bool\)"):
        model(adjacency=1 - np.eye(2)).fit(X, agents=[True, False, True, False])
