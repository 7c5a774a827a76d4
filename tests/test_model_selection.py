"""How many components: the curve, its rule, its cost and its refusals."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from skppdnmf import PrivateDistributedNMF, make_paper_synthetic
from skppdnmf.model_selection import (
    ComponentCurveDisplay,
    _stability,
    component_curve,
    estimate_curve_cost,
)


def model(**parameters):
    given = {"protocol": "secure-sum", "random_state": 0, "max_iter": 40, "tol": 0}
    return PrivateDistributedNMF(**{**given, **parameters})


pytestmark = pytest.mark.filterwarnings("ignore::skppdnmf.PrivacyWarning")
QUICK = {"n_masks": 2, "n_starts": 2, "random_state": 0}


@pytest.fixture(scope="module")
def curve():
    X, agents, _, _ = make_paper_synthetic(random_state=1)
    return component_curve(
        model(), X, n_components=[3, 4, 5, 6], agents=agents, **QUICK
    )


def test_the_table(curve):
    table, display = curve[:2]
    assert isinstance(table, pd.DataFrame)
    assert table["n_components"].tolist() == [3, 4, 5, 6]
    assert curve.best_n_components == 5
    assert table["test_error"].argmin() == 2
    np.testing.assert_allclose(table["test_error"], curve.test_errors.mean(axis=1))
    np.testing.assert_allclose(
        table["test_error_se"], curve.test_errors.std(axis=1, ddof=1) / np.sqrt(2)
    )
    assert table["cosine"].between(0.5, 1 + 1e-12).all()
    assert table["silhouette"].between(-1, 1).all()
    # The true number of components returns from every start.
    assert table["cosine"][2] > 0.95
    assert isinstance(display, ComponentCurveDisplay)


def test_the_same_again(curve):
    X, agents, _, _ = make_paper_synthetic(random_state=1)
    again = component_curve(model(), X, n_components=[5], agents=agents, **QUICK)
    np.testing.assert_array_equal(again.test_errors[0], curve.test_errors[2])


@pytest.mark.journey
def test_finds_the_true_rank_of_the_papers_data():
    found = []
    for seed in range(10):
        X, agents, _, _ = make_paper_synthetic(random_state=seed)
        one = component_curve(
            model(), X, n_components=range(3, 8), agents=agents,
            n_masks=3, n_starts=2, random_state=seed,
        )  # fmt: skip
        found.append(one.best_n_components)
    assert found.count(5) >= 9, found


@pytest.mark.parametrize("kind", ["counts", "sparse", "absent", "gaps", "parts"])
def test_other_data(kind):
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(1, 1, (40, 2)) @ rng.gamma(1, 3, (2, 10))) + 1.0
    nmf = model(max_iter=10)
    if kind == "counts":
        nmf.set_params(beta_loss="kullback-leibler")
    elif kind == "sparse":
        X = sparse.csr_array(X)
    elif kind == "absent":
        nmf.set_params(sparse_missing=True)
        X = sparse.csr_array(X * (rng.random(X.shape) < 0.7))
    elif kind == "gaps":
        X[0, :3] = np.nan
    else:
        X = {"a": X[:10], "b": X[10:20], "c": X[20:]}
    found = component_curve(nmf, X, n_components=[1, 2], **QUICK)
    assert np.isfinite(found.test_errors).all()
    if kind != "absent":
        assert found.table["test_error"][1] < found.table["test_error"][0]
    assert np.isnan(found.table["silhouette"][0])


def test_the_cost_is_known_before(curve):
    X, _, _, _ = make_paper_synthetic(random_state=1)
    sizes = {"n_components": [3, 4, 5, 6], "n_masks": 2, "n_starts": 2}
    assert estimate_curve_cost(model(), X.shape[1], **sizes) == curve.cost
    assert curve.cost.fits == 16
    assert curve.cost.exchanges == 16 * 40


def test_progress(capsys):
    X = np.random.default_rng(0).random((20, 4))
    nmf = model(max_iter=2, tol=0)
    component_curve(nmf, X, n_components=[1, 2], verbose=1, **QUICK)
    shown = "".join(capsys.readouterr())
    assert "8 fits, at most 16 exchanges" in shown
    assert "8/8" in shown


def test_warnings_come_once():
    X = np.random.default_rng(0).random((20, 4))
    nmf = model(max_iter=2, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="4 of 4 fits") as caught:
        component_curve(nmf, X, n_components=[2], **QUICK)
    categories = [one.category for one in caught]
    assert len(set(categories)) == len(categories)


def test_stability_of_known_components():
    H = np.eye(3, 6)
    assert _stability([H, H[::-1]]) == pytest.approx((1.0, 1.0))
    other = np.random.default_rng(0).random((3, 6))
    cosine, silhouette = _stability([H, other])
    assert cosine < 0.9
    assert silhouette < 0.9


def test_the_display(curve):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    display = curve.display.plot()
    assert display.figure_ is display.axes_[0].figure
    _, axes = plt.subplots(2)
    assert curve.display.plot(axes).axes_[1] is axes[1]
    with pytest.raises(ValueError, match="1 Axes, expected 2"):
        curve.display.plot(axes[:1])
    with pytest.raises(ValueError, match="cosine has shape"):
        ComponentCurveDisplay([1, 2], [1, 2], [1, 2], [1], [1, 2]).plot()
    plt.close("all")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_components": [2, 2]}, "distinct integers"),
        ({"n_components": []}, "distinct integers"),
        ({"n_components": [0]}, "distinct integers"),
        ({"n_masks": 1}, "n_masks=1 should be an integer, 2 or more"),
        ({"n_starts": 1}, "n_starts=1"),
        ({"test_size": 1.5}, "test_size=1.5"),
    ],
)
def test_refused_arguments(given, message):
    with pytest.raises(ValueError, match=message):
        component_curve(model(), np.ones((8, 4)), **given)


def test_refused_estimators():
    X = np.ones((8, 4))
    with pytest.raises(ValueError, match='need protocol="secure-sum"'):
        component_curve(PrivateDistributedNMF(), X)
    with pytest.raises(ValueError, match="epsilon=1: each of its fits"):
        component_curve(model(epsilon=1.0, delta=1e-5, clip=1.0), X)
    with pytest.raises(ValueError, match="given init"):
        component_curve(model(init=np.ones((2, 4))), X)
    with pytest.raises(TypeError, match="expected a PrivateDistributedNMF"):
        component_curve(3, X)
