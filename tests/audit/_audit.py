"""Federations that several tests of the audit record."""

import gc
import types
import warnings
from functools import cache

import numpy as np

from skppdnmf import PrivateDistributedNMF
from skppdnmf._agent import Envelope
from skppdnmf.audit import record
from skppdnmf.exceptions import InsecureKeyWarning
from skppdnmf.exchange import SumMessage

ATTACKER, VICTIM = 2, 3
SUM = "secure-sum"
SIZES = (9, 4, 7, 2, 6)  # samples of the agents of a secure sum


def data(n_samples=1, n_components=3, seed=0):
    """Low-rank samples of four agents; the last one's number is given."""
    rng = np.random.default_rng(seed)
    n = 60 + n_samples
    H = rng.exponential(size=(n_components, 12))
    X = rng.gamma(1.0, size=(n, n_components)) @ H
    X += 0.1 * rng.exponential(size=X.shape)
    return X, np.minimum(np.arange(n) // 20, VICTIM)


def model(n_components=3, seed=0, **parameters):
    """An estimator of a path, at whose end the victim is."""
    parameters = {
        "adjacency": "path",
        "encryption": "simulated",
        "max_iter": 12,
        "tol": 0,
        **parameters,
    }
    return PrivateDistributedNMF(n_components, random_state=seed, **parameters)


@cache
def transcript(
    n_samples=1, n_components=3, seed=0, dither=True, data_seed=None, **parameters
):
    """A recorded fit, kept for other tests."""
    X, agents = data(n_samples, n_components, seed if data_seed is None else data_seed)
    estimator = model(n_components, seed, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureKeyWarning)
        return record(estimator, X, agents, dither=dither)


def attack(one, **setting):
    """Run an attack of the victim's neighbour."""
    return one.run(transcript(**setting), ATTACKER, VICTIM)


def pooled(sizes, n_components=3, seed=0, fit=True, **parameters):
    """A recorded fit of the secure sum, agent k with ``sizes[k]`` samples."""
    rng = np.random.default_rng(seed)
    H = rng.exponential(size=(4, 12))
    X = rng.gamma(1.0, size=(sum(sizes), 4)) @ H
    X += 0.1 * rng.exponential(size=X.shape)
    agents = np.repeat(np.arange(len(sizes)), sizes)
    estimator = model(
        n_components, seed, **{"protocol": SUM, "adjacency": "random", **parameters}
    )
    return record(estimator, X, agents) if fit else (estimator, X, agents)


def sum_message(letter):
    """What a letter of the secure sum holds."""
    envelope = Envelope.from_bytes(letter.data)
    return SumMessage.from_bytes(envelope.body, envelope.kind, envelope.round)


def assert_views_match_links(one):
    """Every agent has seen the messages of its own links, and no other."""
    for agent in one.agents:
        view = one.view(agent)
        others = one.public.neighbours(agent)
        sent = [letter for other in others for letter in one.link(agent, other)]
        received = [letter for other in others for letter in one.link(other, agent)]
        assert sorted(view.sent) == sorted(sent)
        assert sorted(view.received) == sorted(received)


def reachable(root):
    """All objects that a program can get at from another, modules left aside."""
    seen, todo = {}, [root]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(
            one, (type, types.ModuleType, types.FunctionType)
        ):
            continue
        seen[id(one)] = one
        todo += gc.get_referents(one)
    return list(seen.values())
