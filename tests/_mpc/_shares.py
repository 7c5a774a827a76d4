"""Helpers shared by the tests of secure multi-party computation."""

import numpy as np
import pytest

from skppdnmf._mpc import engine
from skppdnmf._mpc.plain import PlainRun
from skppdnmf._mpc.settings import MpcSettings
from skppdnmf._mpc.solver import Penalties

try:
    engine.require_spu()
    INSTALLED = True
except ImportError:
    INSTALLED = False

needs_spu = pytest.mark.skipif(
    not INSTALLED, reason="SPU (extra [mpc]) is not installed"
)


def parts_of(sizes=(12, 9, 14), n_features=8, rank=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(sum(sizes), rank)) @ rng.exponential(
        size=(rank, n_features)
    )
    return np.split(X, np.cumsum(sizes)[:-1])


def starts_of(n_starts, n_components=3, n_features=8, seed=0):
    rng = np.random.default_rng([seed, 1])
    return np.abs(rng.standard_normal((n_starts, n_components, n_features)))


def settings_for(parts, n_iterations=5, n_side_by_side=2, penalties=None, n_fixed=0):
    sizes = tuple(len(part) for part in parts)
    given = penalties or Penalties()
    return MpcSettings(sizes, n_iterations, n_side_by_side, given, n_fixed)


def simulated(parts, starts, settings, configure=None):
    """The opened values, and the account, of a run on shares."""
    programs = engine.make_programs(settings, starts)
    with engine.Simulator(configure) as simulator:
        for i, part in enumerate(parts):
            samples, exponent = engine.inputs_of(part)
            simulator.share(f"samples {i}", samples)
            simulator.share(f"exponent {i}", exponent)
        opened = engine.factorised(simulator, programs, settings)
        return opened, simulator.opened


def plain(parts, starts, settings):
    """The same in floating point."""
    run = PlainRun(parts, starts, settings)
    for _ in range(settings.n_iterations):
        run.advance()
    return run


def distance(found, expected):
    """Relative to the norm."""
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)
