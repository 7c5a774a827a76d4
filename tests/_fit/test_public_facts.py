"""What sites must have alike before they begin."""

import numpy as np
import pytest

from skppdnmf import PrivateDistributedNMF
from skppdnmf._data.graph import make_network
from skppdnmf._fit.facts import public_facts
from skppdnmf._fit.protocols import protocol_of
from skppdnmf._fit.seeds import common_start, draw_seeds
from skppdnmf._protocol import Setting
from skppdnmf.exchange import Facts

BASE = {"protocol": "secure-sum", "random_state": 0, "max_iter": 3}


def facts_of(n_components=3, n_features=6, n_agents=4, graph="ring", **parameters):
    estimator = PrivateDistributedNMF(n_components, **{**BASE, **parameters})
    seeds = draw_seeds(estimator.random_state)
    protocol = protocol_of(estimator)
    start = common_start(
        estimator.init,
        n_components,
        n_features,
        seeds.start,
        protocol.start_scaling(estimator),
    )
    network = make_network(graph, n_agents, seeds.graph)
    setting = Setting(estimator, network, start, seeds)
    return Facts(public_facts(setting, protocol, protocol.plan(setting)))


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"n_components": 4}, "n_components"),
        ({"n_features": 7}, "n_features"),
        ({"n_agents": 5}, "n_agents"),
        ({"graph": "path"}, "graph"),
        ({"max_iter": 4}, "parameter max_iter"),
        ({"tol": 1e-3}, "parameter tol"),
        ({"n_init": 2}, "parameter n_init"),
        ({"key_degree": 2}, "parameter key_degree"),
        ({"on_dropout": "continue"}, "parameter on_dropout"),
        ({"random_state": 1}, "public seed"),
        ({"init": np.ones((3, 6))}, "starts"),
        ({"protocol": "consensus"}, "parameter protocol"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_difference_is_found(changed, named):
    one, other = facts_of(), facts_of(**changed)
    assert one.difference(other) is not None
    assert one.shown.get(named) != other.shown.get(named)


def test_what_a_site_may_choose_is_no_fact():
    assert facts_of() == facts_of(n_jobs=2, verbose=1)
    assert facts_of() == facts_of(random_state=np.int64(0))
