"""Where agents had best run, how long a fit will take, and who is told."""

import os
import warnings

import numpy as np
import pytest

from skppdnmf import CostWarning, PrivateDistributedNMF
from skppdnmf._consensus import cost
from skppdnmf._consensus.protocol import Consensus
from skppdnmf._consensus.settings import settings_of
from skppdnmf._data.graph import make_network
from skppdnmf._protocol import Setting
from skppdnmf.exchange import SlotLayout

START = np.ones((2, 5))


@pytest.fixture
def without_calibration(monkeypatch):
    def fail(layout, key_scheme):
        raise AssertionError("calibrated")

    monkeypatch.setattr(cost, "calibrate", fail)


def setting_of(n_agents=3, start=START, **parameters):
    """A fit of a path that exchanges ten values over four directed edges."""
    defaults = {"masking": "entrywise", "max_admm_iter": 1, "n_jobs": 2}
    estimator = PrivateDistributedNMF(**{**defaults, **parameters})
    return Setting(estimator, make_network("path", n_agents, 0), start, None)


# 40 values an exchange: 2000 exchanges are worth processes where masks are entrywise.
@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"max_iter": 2000}, "processes"),
        ({"max_iter": 2000, "n_jobs": 8}, "processes"),
        ({"max_iter": 2000, "n_jobs": -1}, "processes"),
        ({"max_iter": 200, "max_admm_iter": 10}, "processes"),
        ({"max_iter": 2000, "n_jobs": 1}, "threads"),
        ({"max_iter": 2000, "n_jobs": None}, "threads"),
        ({"max_iter": 1}, "threads"),
        ({"max_iter": 1000}, "threads"),
        ({"max_iter": 2000, "masking": "scalar"}, "threads"),
        ({"max_iter": 20000, "masking": "scalar"}, "processes"),
        ({"max_iter": 2000, "key_size": 1024}, "threads"),
        ({"max_iter": 8000, "key_size": 1024}, "processes"),
        ({"max_iter": 500, "key_size": 4096}, "processes"),
        ({"max_iter": 10**6, "encryption": "simulated"}, "threads"),
        ({"max_iter": 10**6, "encryption": None}, "threads"),
        ({"max_iter": 10**6, "n_agents": 1}, "threads"),
    ],
)
def test_backend_is_chosen_without_calibration(
    parameters, expected, without_calibration, monkeypatch
):
    monkeypatch.setattr(cost, "effective_n_jobs", lambda n: 8 if n == -1 else n or 1)
    plan = Consensus().plan(setting_of(**parameters))
    assert plan.backend == expected


@pytest.mark.parametrize("encrypted", [True, False])
@pytest.mark.parametrize("n_jobs", [None, 1, 2])
@pytest.mark.parametrize("masking", ["entrywise", "scalar"])
def test_longer_fits_never_go_back_to_threads(
    masking, n_jobs, encrypted, without_calibration
):
    setting = setting_of(masking=masking)
    settings = settings_of(setting.estimator, setting.network)
    found = [
        cost.preferred_backend(settings, 10**k, encrypted, n_jobs) for k in range(9)
    ]
    assert found[0] == "threads"
    assert found == sorted(found, reverse=True)
    assert ("processes" in found) == (encrypted and n_jobs == 2)


# Seconds ------------------------------------------------------------------------


def seconds(monkeypatch, n_jobs, backend, times=(0.01, 0.01, 0.01, 1.0), **parameters):
    monkeypatch.setattr(cost, "calibrate", lambda *given: cost.UnitTimes(*times))
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    setting = setting_of(**parameters)
    settings = settings_of(setting.estimator, setting.network)
    work = cost.count_work(setting.network, settings, START, "paillier")
    return work, cost.time_work(work, settings, START, n_jobs, backend)


def test_processes_share_all_of_a_long_fit(monkeypatch):
    _, one = seconds(monkeypatch, 1, "threads", max_iter=2000)
    _, threads = seconds(monkeypatch, 2, "threads", max_iter=2000)
    _, processes = seconds(monkeypatch, 2, "processes", max_iter=2000)
    assert processes < threads < one
    assert processes < 0.6 * one
    # As many as there are agents, and no more.
    assert seconds(monkeypatch, 3, "processes", max_iter=2000) == seconds(
        monkeypatch, 8, "processes", max_iter=2000
    )


def test_processes_do_not_pay_for_a_short_fit(monkeypatch):
    _, threads = seconds(monkeypatch, 2, "threads", max_iter=1)
    _, processes = seconds(monkeypatch, 2, "processes", max_iter=1)
    assert threads < processes


@pytest.mark.parametrize("operation", range(4))
@pytest.mark.parametrize("masking", ["entrywise", "scalar"])
@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_seconds_are_those_of_each_operation(monkeypatch, backend, masking, operation):
    times = np.eye(4)[operation]
    options = {"masking": masking, "max_iter": 50}
    work, found = seconds(monkeypatch, 2, backend, times, **options)
    idle = seconds(monkeypatch, 2, backend, np.zeros(4), **options)[1]
    count = [work.encryptions, work.replies, work.replies, 3][operation]
    # Threads take turns at short operations, and share long ones.
    shared = operation == 2 or (masking == "scalar" and operation == 1)
    shared = operation < 3 and (shared or backend == "processes")
    assert found - idle == pytest.approx(count / (2 if shared else 1))
    assert idle == (0 if backend == "threads" else cost._PROCESSES_START)


KEY_SIZES = {"djn": 256, "subgroup": 1024}


@pytest.mark.parametrize("key_scheme", KEY_SIZES)
@pytest.mark.parametrize("masking", ["entrywise", "scalar"])
def test_calibration_times_every_operation(masking, key_scheme):
    layout = SlotLayout(40, 24, 12, masking, KEY_SIZES[key_scheme])
    times = cost.calibrate(layout, key_scheme)
    assert all(0 < one < 60 for one in times)  # seconds, also on a busy machine


# Long fits ----------------------------------------------------------------------


def warn(setting, n_jobs=1):
    settings = settings_of(setting.estimator, setting.network)
    cost.warn_if_long(setting.network, settings, START, n_jobs, "threads")


def test_warning_names_what_would_be_faster(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    setting = setting_of(max_iter=1000)
    monkeypatch.setattr(cost, "time_work", lambda *arguments: 3600.0)
    with pytest.warns(CostWarning) as caught:
        warn(setting)
    text = str(caught[0].message)
    first = text.split("faster would be: ")[1]
    assert first.startswith('encryption="bfv"')
    for part in (
        "60 minutes",
        "secure-sum",
        "simulated",
        "scalar",
        "n_jobs=8",
        "cluster",
        "max_iter",
        "components",
    ):
        assert part in text
    with pytest.warns(CostWarning) as caught:
        warn(setting_of(max_iter=1000, masking="scalar"), n_jobs=8)
    for part in ("n_jobs", 'masking="scalar"'):
        assert part not in str(caught[0].message)
    # The lattice cipher is no advice to one who has it.
    lattice = setting_of(max_iter=1000, encryption="bfv")
    settings = settings_of(lattice.estimator, lattice.network)
    with pytest.warns(CostWarning) as caught:
        cost.warn_if_long(lattice.network, settings, START, 1, "threads", "bfv")
    assert "bfv" not in str(caught[0].message)
    monkeypatch.setattr(cost, "time_work", lambda *arguments: 599.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn(setting)


def test_what_is_short_by_any_measure_is_not_timed(without_calibration):
    warn(setting_of(max_iter=100))
    with pytest.raises(AssertionError, match="calibrated"):
        warn(setting_of(max_iter=1000))


@pytest.mark.parametrize(
    "parameters", [{"encryption": "simulated"}, {"encryption": None}, {"n_agents": 1}]
)
def test_without_ciphertexts_nothing_takes_long(parameters, without_calibration):
    setting = setting_of(max_iter=10**6, **parameters)
    protocol = Consensus()
    protocol.warn_of_cost(setting, protocol.plan(setting))
    assert protocol.cost(setting, None).seconds == 0
