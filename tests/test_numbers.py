"""Numbers of every type mean what they are worth, or are refused by name."""

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skppdnmf import (
    InsecureKeyWarning,
    PrivacyBudget,
    PrivacyWarning,
    PrivateDistributedNMF,
    estimate_cost,
    estimate_noise,
    make_paper_synthetic,
)
from skppdnmf._data.graph import make_network
from skppdnmf._data.partition import split_samples
from skppdnmf._numbers import python_count, python_number
from skppdnmf.audit import audit_report
from skppdnmf.exchange import (
    fixed_point,
    generate_keypair,
    key_degree,
    make_key_graph,
    mask_range,
    value_layout,
)

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "float32", "float64"]
X = np.abs(np.random.default_rng(0).normal(size=(24, 8)))


def fitted(**given):
    model = PrivateDistributedNMF(
        **{
            "n_components": 2,
            "partition": 3,
            "encryption": "simulated",
            "max_iter": 2,
            "tol": 0,
            "random_state": 0,
            **given,
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (ConvergenceWarning))
        warnings.simplefilter("ignore", PrivacyWarning)
        return model.fit(X).components_


def cost(**given):
    return estimate_cost(
        PrivateDistributedNMF(2, protocol="secure-sum", key_degree=2, partition=4),
        **{"n_features": 100, **given},
    )


def noise(**given):
    model = PrivateDistributedNMF(
        2, protocol="secure-sum", epsilon=4, delta=1e-5, clip=10
    )
    return estimate_noise(model, **{"n_samples": 120, "n_features": 100, **given})


def synthetic(**given):
    sizes = {"n_samples": 100, "min_samples": 2, "max_samples": 100}
    return make_paper_synthetic(0, **{**sizes, **given})[0]


def audited(**given):
    model = PrivateDistributedNMF(
        2,
        partition=3,
        encryption="simulated",
        masking="scalar",
        max_iter=2,
        tol=0,
        random_state=0,
    )
    limits = {"max_rounds": 2, "max_samples": 0, "max_seconds": 0}
    return str(audit_report(model, X, **{**limits, **given}))


def spent(**given):
    budget = PrivacyBudget(**{"epsilon": 4, "delta": 0.5, **given})
    return budget.epsilon, budget.delta


# What takes the number, its name, and what it is worth: 100 fits int8, and its
# products do not.
COUNTS = [
    (fitted, "n_components", 2),
    (fitted, "partition", 3),
    (fitted, "max_iter", 2),
    (fitted, "max_admm_iter", 3),
    (fitted, "random_state", 1),
    (fitted, "n_jobs", 1),
    (cost, "n_features", 100),
    (cost, "n_components", 3),
    (noise, "n_samples", 120),
    (noise, "n_features", 100),
    (noise, "n_components", 3),
    (synthetic, "n_features", 100),
    (synthetic, "n_samples", 100),
    (synthetic, "n_components", 100),
    (synthetic, "n_agents", 10),
    (synthetic, "min_samples", 10),
    (synthetic, "max_samples", 100),
]
NUMBERS = [
    (fitted, "mu", 1),
    (fitted, "eta", 1),
    (fitted, "g_max", 1),
    (fitted, "n_max", 100),
    (fitted, "tol", 0),
    (fitted, "alpha_W", 0.5),
    (fitted, "alpha_H", 0.5),
    (fitted, "l1_ratio", 0.5),
    (synthetic, "left_mean", 0.5),
    (synthetic, "right_mean", 0.5),
    (synthetic, "noise_variance", 0.5),
    (spent, "epsilon", 4),
    (spent, "delta", 0.5),
]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(("function", "name", "value"), COUNTS)
def test_counts_of_any_width_are_what_they_are_worth(function, name, value, dtype):
    assert_array_equal(
        function(**{name: np.dtype(dtype).type(value)}), function(**{name: value})
    )


@pytest.mark.parametrize("kind", [*FLOATS, "fraction"])
@pytest.mark.parametrize(("function", "name", "value"), NUMBERS)
def test_numbers_of_any_precision_are_what_they_are_worth(function, name, value, kind):
    number = Fraction(value) if kind == "fraction" else np.dtype(kind).type(value)
    assert_array_equal(function(**{name: number}), function(**{name: value}))


@pytest.mark.parametrize("number", [np.array(1), np.array(1.0), Decimal(1)])
@pytest.mark.parametrize(
    ("function", "name"),
    [
        (function, name)
        for function, name, _ in COUNTS + NUMBERS
        if function in (fitted, cost, synthetic)
    ],
)
def test_what_is_no_number_is_refused_by_name(function, name, number):
    with pytest.raises((TypeError, ValueError), match=name):
        function(**{name: number})


@pytest.mark.journey
def test_limits_of_an_audit_are_what_they_are_worth():
    narrow = audited(
        max_rounds=np.int8(2), max_samples=np.uint8(0), max_seconds=np.float16(0)
    )
    assert narrow == audited()
    for name in ("max_rounds", "max_samples", "max_seconds"):
        with pytest.raises(TypeError, match=name):
            audited(**{name: Decimal(1)})


@pytest.mark.parametrize("dtype", INTEGERS)
def test_sizes_add_up_beyond_their_width(dtype):
    sizes = np.array([100, 100, 100], dtype=dtype)
    assert split_samples(300, sizes).n_agents == 3
    model = PrivateDistributedNMF(2, protocol="secure-sum", partition=sizes)
    assert estimate_cost(model, 10) == estimate_cost(
        PrivateDistributedNMF(2, protocol="secure-sum", partition=[100] * 3), 10
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("fractions", [[0.1, 0.2, 0.3, 0.4], [1 / 3] * 3, [0.7, 0.3]])
def test_fractions_may_miss_one_by_their_precision(dtype, fractions):
    exact = split_samples(60, fractions).sample_agents
    narrow = np.array(fractions, dtype=dtype)
    for given in (narrow, list(narrow)):
        assert_array_equal(split_samples(60, given).sample_agents, exact)


def test_fractions_that_miss_one_by_more_are_refused():
    for fractions in ([0.3, 0.6], np.array([0.333, 0.333, 0.333], np.float32)):
        with pytest.raises(ValueError, match=r"sum to 0\.(8|9)99"):
            split_samples(60, fractions)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_exchange_takes_integers_of_any_width(dtype):
    number = np.dtype(dtype).type
    assert mask_range(number(12)) == mask_range(12)
    assert key_degree(number(100)) == key_degree(100)
    assert value_layout(number(100), number(30), 1e6, "entrywise", 2048) == (
        value_layout(100, 30, 1e6, "entrywise", 2048)
    )
    graphs = [make_key_graph(n, 4, np.random.default_rng(0)) for n in (number(9), 9)]
    for one, other in zip(*graphs, strict=True):
        assert_array_equal(one, other)
    assert make_network("ring", number(100)).n_agents == 100
    if dtype not in ("int8", "uint8"):
        with pytest.warns(InsecureKeyWarning, match="key_size=256 "):
            public, _ = generate_keypair(number(256))
        assert public.key_size == 256


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_scale_of_fixed_point_is_a_number_of_any_precision(dtype):
    values = np.array([500.25, -800.0])
    integers, bits = fixed_point(values, np.dtype(dtype).type(1000.0))
    assert_array_equal(integers, [500250, -800000])
    assert bits == 20


def test_numbers_that_are_python_numbers_stay():
    for value in (1, 0.5, True, None, "auto", Decimal(1)):
        assert python_number(value) is value
    assert python_number(np.timedelta64(3, "s")) == np.timedelta64(3, "s")
    assert python_number(np.bool_(True)) is True


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3", None, np.float64(3)])
def test_counts_that_are_none_are_refused(value):
    with pytest.raises(ValueError, match=r"n=.* should be an integer, 1 or more"):
        python_count(value, "n")
