"""Programs on secret shares, run by SPU."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from _shares import (
    distance,
    needs_spu,
    parts_of,
    plain,
    settings_for,
    simulated,
    starts_of,
)

from skppdnmf._mpc import engine
from skppdnmf._mpc.cost import computation
from skppdnmf._mpc.solver import Penalties, fixed_columns

pytestmark = needs_spu
PENALTIES = Penalties(0.01, 0.02, 0.03, 0.04)


@pytest.mark.parametrize(
    ("n_starts", "penalties", "opened"),
    [
        (1, Penalties(), {"components": 24}),
        (3, Penalties(), {"index of the best start": 1, "components": 24}),
        (1, PENALTIES, {"scale": 2, "components": 24}),
        (2, PENALTIES,
         {"index of the best start": 1, "scale": 2, "components": 24}),
    ],
)  # fmt: skip
def test_shares_come_to_the_same_and_nothing_else_is_opened(
    n_starts, penalties, opened
):
    parts, starts = parts_of(), starts_of(n_starts)
    settings = settings_for(parts, 5, 2, penalties)
    found, account = simulated(parts, starts, settings)
    expected = plain(parts, starts, settings)
    assert distance(found["left"][0], expected._state.left[0]) < 1e-4
    assert int(found.get("index", 0)) == expected.index
    assert engine.account_of(account) == opened


def test_known_components_on_shares():
    parts, starts = parts_of(), starts_of(2)
    starts[:, :2] = 1e3 * starts[0, :2]
    settings = settings_for(parts, 5, 2, n_fixed=2)
    found, _ = simulated(parts, starts, settings)
    expected = plain(parts, starts, settings)
    assert distance(found["left"][0], expected._state.left[0]) < 1e-4
    np.testing.assert_allclose(
        found["left"][0][:, :2], fixed_columns(starts, 2), atol=1e-6
    )


def test_ten_seeds_come_to_the_same():
    """In floating point and on shares; whole fits are benchmarks/bench_mpc.py's."""
    parts = parts_of((9, 8, 7), 6)
    settings = settings_for(parts, 8)
    for seed in range(10):
        starts = starts_of(1, 3, 6, seed)
        found, _ = simulated(parts, starts, settings)
        expected = plain(parts, starts, settings)
        assert distance(found["left"][0].T, expected.components) < 1e-3


@pytest.mark.parametrize("scales", [(1, 1e-3, 1e5), (0, 1, 1), (1e-30, 1e30, 1)])
def test_agents_of_any_scale(scales):
    parts = [part * scale for part, scale in zip(parts_of(), scales, strict=True)]
    starts, settings = starts_of(1), settings_for(parts, 3)
    found, _ = simulated(parts, starts, settings)
    expected = plain(parts, starts, settings)
    assert distance(found["left"][0], expected._state.left[0]) < 1e-4


def test_no_data_at_all():
    parts = [np.zeros((4, 8))] * 3
    found, _ = simulated(parts, starts_of(1), settings_for(parts, 2))
    assert np.isfinite(found["left"]).all()


SCRIPT = """
import sys
sys.path[:0] = {path}
from _shares import *
import jax.numpy as jnp
from spu import experimental
def trace(rank, config):
    config.enable_action_trace = True
from skppdnmf._mpc import engine
engine._quieten(engine.require_spu())
import spu
options = spu.libspu.logging.LogOptions()
options.system_log_path, options.trace_log_path = {log!r}, {log!r} + ".trace"
spu.libspu.logging.setup_logging(options)
if {reveal}:
    program = engine._compiled(lambda a: experimental.reveal_impl.reveal(a) * 1.0,
                               [np.ones(3, np.float32)], ["a"], ["b"])
    with engine.Simulator(trace) as simulator:
        simulator.share("a", np.ones(3, np.float32))
        simulator.run(program)
else:
    parts, penalties = parts_of(), Penalties(0.01, 0.02, 0.03, 0.04)
    simulated(parts, starts_of(2), settings_for(parts, 3, 2, penalties), trace)
"""


def opening_actions(tmp_path, reveal):
    """SPU's own trace: its actions that turn a secret into a public value."""
    log = str(tmp_path / "log")
    script = SCRIPT.format(path=[os.path.dirname(__file__)], log=log, reveal=reveal)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    text = done.stdout + done.stderr
    for file in tmp_path.iterdir():
        text += file.read_text(errors="replace")
    assert "[TR] [B]" in text, text[:2000]
    return [
        line
        for line in text.splitlines()
        if any(f"{kind}2p" in line for kind in ("s", "a", "b", "v"))
    ]


def test_spus_own_trace_shows_no_opening(tmp_path):
    assert opening_actions(tmp_path, False) == []


def test_an_opening_would_be_seen(tmp_path):
    assert opening_actions(tmp_path, True)


COUNT = """
import sys
sys.path[:0] = {path}
from _shares import *
def count(rank, config):
    config.enable_pphlo_profile = True
from skppdnmf._mpc import engine
engine._quieten(engine.require_spu())
import spu
options = spu.libspu.logging.LogOptions()
options.system_log_path = {log!r}
spu.libspu.logging.setup_logging(options)
parts = parts_of()
simulated(parts, starts_of({n_starts}), settings_for(parts, 4, 2), count)
"""


@pytest.mark.parametrize("n_starts", [1, 3])
def test_what_is_sent_is_what_spu_counts(tmp_path, n_starts):
    log = str(tmp_path / "log")
    script = COUNT.format(path=[os.path.dirname(__file__)], log=log, n_starts=n_starts)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    counts = np.array(
        [
            [int(number) for number in found]
            for found in re.findall(
                r"send bytes (\d+), recv bytes \d+, send actions (\d+), recv actions"
                r" (\d+)",
                "\n".join(
                    line for line in done.stdout.splitlines() if "Link details" in line
                ),
            )
        ]
    )
    sent = computation(settings_for(parts_of(), 4, 2), 8, 3, n_starts)
    n_bytes, n_messages, n_received = counts.sum(axis=0)
    assert sent.bytes == pytest.approx(n_bytes, rel=0.03)
    assert sent.messages == pytest.approx(n_messages, rel=0.05)
    # Of three parties; who reshuffles in a truncation is drawn at random.
    assert sent.rounds == pytest.approx(n_received / 3, rel=0.1)
