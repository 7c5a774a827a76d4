"""Default fits of ordinary data do not warn; those that are cut short do."""

import warnings

import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from skppdnmf import PrivacyWarning, PrivateDistributedNMF

DATA = {
    "digits": (load_digits, 10),
    "iris": (load_iris, 3),
    "wine": (load_wine, 3),
    "breast cancer": (load_breast_cancer, 5),
}
PROTOCOLS = {
    "consensus": {"encryption": "simulated"},
    "secure-sum": {"protocol": "secure-sum"},
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", DATA)
def test_a_default_fit_does_not_warn(name, protocol):
    load, n_components = DATA[name]
    model = PrivateDistributedNMF(n_components, random_state=0, **PROTOCOLS[protocol])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)
        model.fit(load().data)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("max_iter", [1, 3])
def test_a_fit_that_is_cut_short_warns(max_iter, protocol):
    model = PrivateDistributedNMF(10, random_state=0, **PROTOCOLS[protocol])
    model.set_params(max_iter=max_iter)
    with pytest.warns(ConvergenceWarning, match=f"max_iter={max_iter} iterations"):
        model.fit(load_digits().data)


def test_copies_that_stand_apart_warn():
    model = PrivateDistributedNMF(
        3, encryption="simulated", g_max=0.001, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="consensus_error_"):
        model.fit(load_iris().data)
    assert model.consensus_error_ > 0.01
