"""Scikit-learn's own checks of an estimator, and how it looks and travels."""

import pickle
import warnings
from functools import partial
from itertools import product

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from _estimators import model as quick
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from skppdnmf import PrivateDistributedNMF
from skppdnmf._fit.callbacks import CallbackSupportMixin

SETTINGS = [
    PrivateDistributedNMF(
        2,
        encryption="simulated",
        masking=masking,
        partition=partition,
        max_iter=8,
        tol=0,
    )
    for masking, partition in product(["entrywise", "scalar"], [1, 2, None])
]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        *SETTINGS,
        PrivateDistributedNMF(2, encryption=None, alpha_W=0.01, max_iter=10, tol=0),
    ]
)
def test_checks(estimator, check):
    check(estimator)


@pytest.mark.journey
@pytest.mark.filterwarnings("ignore")
def test_checks_with_ciphers():
    estimator = PrivateDistributedNMF(
        2, partition=2, key_size=128, max_iter=1, max_admm_iter=1, tol=0
    )
    results = check_estimator(estimator, on_skip=None)
    skipped = {r["check_name"] for r in results if r["status"] != "passed"}
    assert skipped <= {"check_array_api_input"}
    assert len(results) > 40


@pytest.fixture(scope="module")
def X():
    return load_digits().data[:80, 10:30]


model = partial(quick, max_iter=4)


def test_tags():
    tags = get_tags(model())
    assert tags.input_tags.positive_only
    assert tags.input_tags.sparse
    assert tags.transformer_tags.preserves_dtype == ["float64", "float32"]
    assert not tags.target_tags.required


def test_bases_are_mixins_in_order():
    bases = PrivateDistributedNMF.__mro__
    assert bases.index(ClassNamePrefixFeaturesOutMixin) < bases.index(BaseEstimator)
    assert bases.index(CallbackSupportMixin) < bases.index(BaseEstimator)
    ours = [b for b in bases if b.__module__.startswith("skppdnmf")]
    stand_in = CallbackSupportMixin.__module__.startswith("skppdnmf")
    assert len(ours) == 1 + stand_in


def test_html_links_to_the_documentation(X):
    estimator = model()
    link = "skppdnmf.PrivateDistributedNMF.html"
    assert estimator._get_doc_link().endswith(link)
    assert link in estimator_html_repr(estimator)
    pipeline = make_pipeline(MinMaxScaler(), estimator)
    html = estimator_html_repr(pipeline)
    assert link in html
    assert "PrivateDistributedNMF" in html
    fitted = pipeline.fit(X)
    assert link in estimator_html_repr(fitted)


def test_repr_shows_what_was_set():
    assert repr(model(2, mu=3.0)) == (
        "PrivateDistributedNMF(encryption='simulated', max_iter=4, mu=3.0,\n"
        "                      n_components=2, random_state=0, tol=0)"
    )


@pytest.mark.parametrize("method", ["fit_transform", "transform"])
def test_set_output_to_pandas(X, method):
    frame = pd.DataFrame(X, index=[f"s{k}" for k in range(len(X))])
    frame.columns = [f"f{k}" for k in range(X.shape[1])]
    estimator = model().set_output(transform="pandas")
    W = estimator.fit_transform(frame)
    if method == "transform":
        W = estimator.transform(frame)
    names = [f"privatedistributednmf{k}" for k in range(3)]
    assert isinstance(W, pd.DataFrame)
    assert list(W.columns) == names == list(estimator.get_feature_names_out())
    assert list(W.index) == list(frame.index)
    assert_array_equal(W.to_numpy(), model().fit_transform(X))
    estimator.set_output(transform="default")
    assert isinstance(estimator.transform(frame), np.ndarray)


def test_set_output_to_pandas_of_parts(X):
    W = model().set_output(transform="pandas").fit_transform([X[:50], X[50:]])
    assert W.shape == (80, 3)
    assert list(W.index) == list(range(80))


@pytest.mark.parametrize("as_frame", [True, False])
def test_set_output_to_polars(X, as_frame):
    data = pl.DataFrame(X, schema=[f"f{k}" for k in range(X.shape[1])])
    estimator = model().set_output(transform="polars")
    W = estimator.fit_transform(data if as_frame else X)
    assert isinstance(W, pl.DataFrame)
    assert W.columns == [f"privatedistributednmf{k}" for k in range(3)]
    assert_array_equal(W.to_numpy(), model().fit_transform(X))


def test_clone_copies_all_parameters_and_nothing_fitted(X):
    changed = model(
        4,
        partition=[30, 50],
        adjacency=np.array([[0, 1], [1, 0]]),
        mu=2.0,
        n_max=1e4,
        masking="scalar",
        init=np.ones((4, 20)),
        alpha_W=0.1,
        alpha_H=0.2,
        l1_ratio=0.3,
    )
    copy = clone(changed.fit(X))
    assert set(copy.get_params()) == set(changed.get_params())
    for name, value in changed.get_params().items():
        assert_array_equal(copy.get_params()[name], value)
    assert not hasattr(copy, "components_")
    assert_array_equal(copy.fit(X).components_, changed.components_)


@pytest.mark.parametrize("dump", ["pickle", "joblib"])
@pytest.mark.parametrize("encryption", ["paillier", "simulated"])
def test_a_dump_works_and_holds_no_secret(X, tmp_path, dump, encryption):
    part = X[:, :5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model(2, encryption=encryption, key_size=256, max_iter=2).fit(part)
    path = tmp_path / "model"
    if dump == "pickle":
        path.write_bytes(pickle.dumps(fitted))
        again = pickle.loads(path.read_bytes())
    else:
        joblib.dump(fitted, path)
        again = joblib.load(path)
    assert_array_equal(again.transform(part), fitted.transform(part))
    for name, value in vars(fitted).items():
        if isinstance(value, (int, float, np.ndarray)):
            assert_array_equal(getattr(again, name), value)
    content = path.read_bytes()
    for word in (b"Paillier", b"Cipher", b"Generator", b"nmf._agent", b"nmf.exchange"):
        assert word not in content
