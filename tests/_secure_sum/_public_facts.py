"""What agents derive alike; in a module of its own, for other processes to import."""

import numpy as np

from skppdnmf import PrivateDistributedNMF
from skppdnmf._data.graph import make_network
from skppdnmf._fit.seeds import common_start, draw_seeds
from skppdnmf._protocol import Hooks, Setting
from skppdnmf._secure_sum.protocol import SecureSumProtocol

N_FEATURES = 7


def build(n_agents, random_state, data_seed, graph="random"):
    """Agents with data of their own, from the facts that all know."""
    estimator = PrivateDistributedNMF(
        3,
        partition=n_agents,
        protocol="secure-sum",
        key_degree=min(4, n_agents - 1),
        random_state=random_state,
    )
    seeds = draw_seeds(random_state)
    network = make_network(graph, n_agents, seeds.graph)
    start = common_start("random", 3, N_FEATURES, seeds.start, "data")
    plan = SecureSumProtocol().plan(Setting(estimator, network, start, seeds))
    rng = np.random.default_rng(data_seed)
    parts = [rng.random((int(rng.integers(1, 9)), N_FEATURES)) for _ in range(n_agents)]
    names = [f"agent {i}" for i in range(n_agents)]
    return plan.build(parts, names, bytes(16), Hooks())


def facts_of(agent, leaving=()):
    """What an agent derives of the others; all of it in plain numbers."""
    sums, path = agent._sum, agent.path
    trees = [sums._trees(frozenset(leaving[:k])) for k in range(len(leaving) + 1)]
    return {
        "keys": [peers.tolist() for peers in sums._key_graph],
        "trees": [(tree.root, tree.parents, tree.children) for tree in trees],
        "starts": path.point.tolist(),
        "settings": path.settings,
        "codec": {
            name: np.asarray(value).tolist()
            for name, value in vars(path.fixed_point).items()
        },
    }


def public_facts(n_agents, random_state, data_seed, number):
    """The facts of one agent of a run that is built here."""
    np.random.seed(data_seed)  # noqa: NPY002 - which must have no effect
    return facts_of(build(n_agents, random_state, data_seed)[number])
