"""Known components, weights of samples, and normalised results, under secure sums."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import non_negative_factorization
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils import estimator_checks

from skppdnmf import PrivateDistributedNMF, estimate_cost
from skppdnmf._fit.history import component_scales

PENALTIES = {"none": {}, "l2": {"alpha_W": 0.02}, "l1": {"alpha_W": 0.02}}
PENALTIES["l1"]["l1_ratio"] = 1.0


def model(n_components=4, **parameters):
    given = {"protocol": "secure-sum", "max_iter": 20, "tol": 0, "random_state": 0}
    return PrivateDistributedNMF(n_components, **{**given, **parameters})


@pytest.fixture(scope="module")
def X():
    return load_digits().data[:120, 8:28]


@pytest.fixture(scope="module")
def weights():
    return np.random.default_rng(0).integers(0, 4, size=120)


@pytest.fixture(scope="module")
def known(X):
    return model(2).fit(X[60:]).components_


# Weights ----------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("partition", [1, 4])
def test_a_weight_counts_samples(X, weights, penalty, partition):
    site = np.arange(len(X)) % partition
    given = PENALTIES[penalty]
    weighted = model(**given).fit(X, agents=site, sample_weight=weights)
    repeated = model(**given).fit(
        np.repeat(X, weights, axis=0), agents=np.repeat(site, weights)
    )
    atol = 1e-3 * repeated.components_.max()
    assert_allclose(weighted.components_, repeated.components_, atol=atol)
    assert weighted.reconstruction_err_ == pytest.approx(
        repeated.reconstruction_err_, rel=1e-4
    )
    # Without them the result is another.
    plain = model(**given).fit(X, agents=site).components_
    assert np.abs(plain - weighted.components_).max() > 10 * atol


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_weight_of_zero_is_absence(X, weights, penalty):
    given = PENALTIES[penalty]
    some = weights > 0
    site = np.arange(len(X)) % 4
    zeros = model(**given).fit(X, agents=site, sample_weight=weights)
    absent = model(**given).fit(X[some], agents=site[some], sample_weight=weights[some])
    assert_array_equal(zeros.components_, absent.components_)
    assert zeros.reconstruction_err_ == pytest.approx(absent.reconstruction_err_)
    assert zeros.sample_agents_.shape == (120,)


def test_an_agent_whose_samples_weigh_nothing_is_a_relay(X):
    site = np.arange(len(X)) % 4
    weighted = model().fit(X, agents=site, sample_weight=site < 3)
    without = model().fit(X[site < 3], agents=site[site < 3])
    assert weighted.agent_labels_ == [0, 1, 2, 3]
    assert_allclose(weighted.components_, without.components_, rtol=1e-6)


def test_who_holds_what_does_not_show(X, weights):
    fits = [
        model().fit(X, agents=np.arange(len(X)) % n, sample_weight=weights + 0.25)
        for n in (3, 7)
    ]
    assert_array_equal(fits[0].components_, fits[1].components_)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_the_scale_of_weights_is_nothing_without_penalties(X, weights, scale):
    one = model().fit(X, sample_weight=weights * 1.0)
    other = model().fit(X, sample_weight=weights * scale)
    assert_allclose(one.components_, other.components_, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("convert", [sparse.csr_array, np.float32])
def test_weights_of_other_data(X, weights, convert):
    fitted = model().fit(convert(X), sample_weight=weights)
    assert_allclose(
        fitted.components_, model().fit(X, sample_weight=weights).components_, atol=1e-2
    )
    weighted = fitted.score(convert(X), sample_weight=weights)
    assert weighted == pytest.approx(-fitted.history_["local_error"][-1], abs=1e-3)


@pytest.mark.parametrize(
    ("sample_weight", "message"),
    [
        (np.full(120, -1.0), "Negative values"),
        (np.full(119, 1.0), r"sample_weight.shape == \(119,\)"),
        (np.zeros(120), "(?i)zero"),
        (np.full(120, np.nan), "NaN"),
        (np.full(120, 1e-300), "1e-300 to 1e-300; .* is allowed"),
    ],
)
def test_refused_weights(X, sample_weight, message):
    with pytest.raises(ValueError, match=message):
        model().fit(X, sample_weight=sample_weight)


def test_weights_are_aligned_by_their_index(X, weights):
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(20)])
    series = pd.Series(weights, index=frame.index).sample(frac=1, random_state=0)
    with pytest.warns(DataConversionWarning, match="sample_weight is a series"):
        aligned = model().fit(frame, sample_weight=series)
    expected = model().fit(frame, sample_weight=weights)
    assert_array_equal(aligned.components_, expected.components_)


def test_weights_are_routed(X, weights):
    site = np.arange(len(X)) % 4
    with sklearn.config_context(enable_metadata_routing=True):
        nmf = model(max_iter=5).set_fit_request(agents=True, sample_weight=True)
        pipeline = make_pipeline(MaxAbsScaler(), nmf)
        pipeline.fit(X, agents=site, sample_weight=weights)
        scaled = MaxAbsScaler().fit_transform(X)
        alone = model(max_iter=5).fit(scaled, agents=site, sample_weight=weights)
        assert_array_equal(pipeline[-1].components_, alone.components_)
        nmf.set_score_request(sample_weight=True)
        search = GridSearchCV(nmf, {"n_components": [1, 3]}, cv=3)
        search.fit(X, agents=site, sample_weight=weights + 1)
    assert search.best_params_ == {"n_components": 3}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "check",
    [
        "check_sample_weights_pandas_series",
        "check_sample_weights_not_an_array",
        "check_sample_weights_list",
        "check_sample_weights_not_overwritten",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ],
)
@pytest.mark.parametrize("n_agents", [1, None])
def test_checks_of_scikit_learn(check, n_agents):
    if not hasattr(estimator_checks, check):
        pytest.skip("of another scikit-learn")
    nmf = model(2, partition=n_agents, max_iter=6)
    getattr(estimator_checks, check)("PrivateDistributedNMF", nmf)


def test_other_arguments_are_unknown(X):
    with pytest.raises(TypeError, match="weights"):
        model().fit(X, weights=X[:, 0])


# Known components -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("given", [{}, {"alpha_W": 0.01}, {"init": "ones"}])
def test_known_components_stay(X, known, dtype, given):
    fixed = known * 1.2345
    fitted = model(fixed_components=fixed, **given).fit(X.astype(dtype))
    assert_array_equal(fitted.components_[:2], fixed.astype(dtype))
    assert not np.allclose(
        fitted.components_[2:], model(**given).fit(X).components_[2:]
    )
    assert_array_equal(fitted.agent_components_[1, :2], fixed.astype(dtype))
    assert fitted.transform(X).shape == (120, 4)


def test_the_others_are_learned_as_well_as_can_be():
    rng = np.random.default_rng(0)
    H = rng.exponential(size=(5, 30)) * (rng.random((5, 30)) < 0.5)
    X = rng.exponential(size=(200, 5)) @ H + 0.01 * rng.random((200, 30))
    fitted = model(5, fixed_components=H[:3], max_iter=60).fit(X)
    cosines = fitted.components_[3:] @ H[3:].T
    cosines /= np.linalg.norm(fitted.components_[3:], axis=1)[:, None]
    cosines /= np.linalg.norm(H[3:], axis=1)
    assert (cosines.max(axis=1) > 0.99).all()
    # Learned rows are stationary: with the right factor fixed, none could be better.
    W = fitted.transform(X)
    gradient = (W.T @ (W @ fitted.components_ - X))[3:]
    scale = np.abs(W.T @ X).max()
    assert np.abs(gradient * fitted.components_[3:]).max() < 0.02 * scale
    assert gradient.min() > -0.01 * scale


def test_known_components_do_not_depend_on_their_scale(X, known):
    one = model(fixed_components=known).fit(X)
    other = model(fixed_components=known * [[1e-6], [1e6]]).fit(X)
    assert_allclose(one.components_[2:], other.components_[2:], rtol=1e-3, atol=1e-6)


def test_all_starts_hold_them(X, known):
    first = model(fixed_components=known, n_init=4).fit(X)
    assert_array_equal(first.components_[:2], known)


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        (np.ones((1, 19)), "has 19 columns, but n_features=20"),
        (np.ones((4, 20)), "4 rows, which leaves none of n_components=4"),
        (-np.ones((1, 20)), "Negative values"),
        (np.zeros((1, 20)), r"rows whose largest entry is not between .*\[0\]"),
        (np.ones(20), "fixed_components is invalid"),
        ([[np.nan] * 20], "fixed_components is invalid"),
    ],
)
def test_refused_components(X, fixed, message):
    with pytest.raises(ValueError, match=message):
        model(fixed_components=fixed).fit(X)


def test_what_they_cost(known):
    assert estimate_cost(model(fixed_components=known), 20) == estimate_cost(
        model(), 20
    )


# Normalised results -----------------------------------------------------------------


@pytest.mark.parametrize("normalize", ["components", "max"])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_rows_are_scaled_and_the_product_stays(X, normalize, penalty):
    given = PENALTIES[penalty]
    plain = model(**given).fit(X)
    scaled = model(normalize=normalize, **given).fit(X)
    H = scaled.components_
    sizes = H.sum(axis=1) if normalize == "components" else H.max(axis=1)
    assert_allclose(sizes, 1.0)
    assert_allclose(H * scaled.component_scales_[:, None], plain.components_)
    assert_array_equal(scaled.agent_components_[0], H)
    product = scaled.inverse_transform(scaled.transform(X))
    assert_allclose(product, plain.inverse_transform(plain.transform(X)), atol=1e-6)
    assert scaled.reconstruction_err_ == pytest.approx(plain.reconstruction_err_)
    assert scaled.score(X) == pytest.approx(plain.score(X))
    assert_array_equal(clone(scaled).fit_transform(X), scaled.transform(X))


def test_a_row_of_zeros_stays():
    scales = component_scales(np.array([[0.0, 0.0], [0.5, 0.25]]), "max")
    assert_array_equal(scales, [1.0, 0.5])


def test_known_components_keep_their_direction(X, known):
    fitted = model(fixed_components=known, normalize="components").fit(X)
    assert_allclose(fitted.components_[:2], known / known.sum(axis=1, keepdims=True))


def test_normalising_costs_no_privacy(X):
    rng = np.random.default_rng(0)
    X = rng.random((4000, 6)) / 3
    private = model(2, epsilon=8.0, delta=1e-5, clip=1.0, normalize="components")
    assert_allclose(private.fit(X).components_.sum(axis=1), 1.0)


# Refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fixed_components", "normalize", "sample_weight"])
def test_refused_without_sums(X, known, name):
    given = {"fixed_components": known, "normalize": "max", "sample_weight": X[:, 0]}
    parameters = {} if name == "sample_weight" else {name: given[name]}
    passed = {"sample_weight": given[name]} if name == "sample_weight" else {}
    refused = model(protocol="consensus", encryption=None, **parameters)
    with pytest.raises(ValueError, match=f'{name}.*only protocol="secure-sum"'):
        refused.fit(X, **passed)
    if name != "normalize":
        noisy = model(epsilon=1.0, delta=1e-5, clip=1.0, **parameters)
        with pytest.raises(ValueError, match=f"{name} with epsilon=1"):
            noisy.fit(X, **passed)


def test_pooled_as_scikit_learn_has_it(X, known):
    """With all but the right factor given, scikit-learn's is the same problem."""
    fitted = model(fixed_components=known, max_iter=60).fit(X)
    W, _, _ = non_negative_factorization(
        X, H=fitted.components_, n_components=4, update_H=False, max_iter=2000, tol=1e-8
    )
    assert_allclose(fitted.transform(X), W, atol=1e-3 * W.max())
