"""A federation of four sites as processes, from nothing to its last line."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from _alone import alone
from sklearn.datasets import load_digits

from skppdnmf.flare import load

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What `skppdnmf demo federation` prints, and where it has written."""
    pytest.importorskip("nvflare", reason="a federation needs skppdnmf[flare]")
    out = tmp_path_factory.mktemp("federation")
    command = ["demo", "federation", "--sites", "4", "--out", str(out)]
    with alone():
        done = subprocess.run(
            [sys.executable, "-m", "skppdnmf", *command],
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout, out


def test_the_demo_ends_at_the_bits_of_one_process(demo):
    text, _ = demo
    assert text.rstrip().endswith("bit-identical to one process: True")
    assert float(re.search(r"seconds per exchange: ([0-9.]+)", text)[1]) > 0


def test_every_site_has_its_own_results(demo):
    _, out = demo
    files = sorted((out / "sites").rglob("components.npz"))
    assert len(files) == 4
    models = [load(file.parent) for file in files]
    for model in models[1:]:
        np.testing.assert_array_equal(model.components_, models[0].components_)
    X = load_digits().data[:5]
    assert models[0].transform(X).shape == (5, 10)


def test_the_relay_has_nothing_of_the_data(demo):
    """Neither rows nor keys nor factors stand in what the relay has written."""
    _, out = demo
    components = load(next((out / "sites").rglob("components.npz")).parent).components_
    secrets = [row.tobytes() for row in components]
    secrets += [row.tobytes() for row in load_digits().data[:200].astype(np.float64)]
    secrets += [repr(float(one)).encode() for one in components[0][components[0] > 0]]
    keys = [file.read_bytes() for file in (out / "sites").rglob("*.pem")]
    written = [
        file.read_bytes()
        for file in (out / "flare").rglob("*")
        if file.is_file() and "/server/" in file.as_posix()
    ]
    assert written
    for data in written:
        assert not any(secret in data for secret in secrets)
        assert not any(key in data for key in keys)


def test_every_site_keeps_a_log_of_its_runs(demo):
    _, out = demo
    logs = sorted((out / "sites").rglob("*.jsonl"))
    assert len(logs) == 4
    for log in logs:
        *_, last = (json.loads(line) for line in log.read_text().splitlines())
        assert last["rows"] == 449 or last["rows"] == 450
