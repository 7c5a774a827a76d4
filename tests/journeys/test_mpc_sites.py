"""Sites in processes of their own that compute on shares, over mutual TLS."""

import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from skppdnmf._mpc.engine import require_spu
from skppdnmf.exchange import Identity, write_public_identity

try:
    require_spu()
except ImportError:
    pytest.skip("SPU (extra [mpc]) is not installed", allow_module_level=True)

pytestmark = pytest.mark.journey

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 240
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def free_ports(n):
    """Ports of which the next is free, too."""
    found = []
    while len(found) < n:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            try:
                other.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            if all(abs(port - already) > 1 for already in found):
                found.append(port)
    return found


class Sites:
    """Folders of sites, and their processes."""

    def __init__(self, folder, names=("a", "b", "c"), n_features=6):
        self.folder = folder
        self.names = names
        self.keys = {name: Identity.new() for name in names}
        self.addresses = dict(zip(names, free_ports(len(names)), strict=True))
        rng = np.random.default_rng(0)
        self.X = rng.exponential(size=(12, 2)) @ rng.exponential(size=(2, n_features))
        roster = "\n".join(
            f'{name} = "{write_public_identity(key.public)}"'
            for name, key in self.keys.items()
        )
        parts = np.array_split(self.X, len(names))
        for name, part in zip(names, parts, strict=True):
            site = folder / name
            site.mkdir()
            self.keys[name].save(site / "identity.pem")
            np.savetxt(site / "cohort.csv", part, delimiter=",")
            (site / "skppdnmf.toml").write_text(
                f'name = "{name}"\n[roster]\n{roster}\n'
                '[datasets.cohort]\nfile = "cohort.csv"\nheader = false\n'
                '[policy]\nprotocols = ["mpc"]\nmin_other_samples_per_component = 2\n'
            )
        self.processes = {}

    def job(self, name="job.toml", **given):
        values = {"n_components": 2, "max_iter": 3, "timeout": 20, **given}
        sites = "\n".join(
            f'{name} = "127.0.0.1:{port}"' for name, port in self.addresses.items()
        )
        path = self.folder / name
        path.write_text(
            f'name = "run"\ndataset = "cohort"\nparties = {list(self.names[:3])}\n'
            + "".join(f"{key} = {value}\n" for key, value in values.items())
            + f"[sites]\n{sites}\n"
        )
        return path

    def start(self, name, job):
        self.processes[name] = subprocess.Popen(
            [sys.executable, "-m", "skppdnmf", "mpc", str(job),
             "--site", str(self.folder / name)],
            env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def end(self, name):
        """Exit code, output and errors."""
        process = self.processes[name]
        output, errors = process.communicate(timeout=SECONDS)
        del self.processes[name]
        return process.returncode, output, errors

    def components(self, name):
        file = self.folder / name / "results" / "run" / "components.npz"
        return np.load(file)["components"]

    def kill(self):
        for process in self.processes.values():
            process.kill()
            process.communicate()


@pytest.fixture
def sites(tmp_path):
    made = Sites(tmp_path)
    yield made
    made.kill()


def test_the_example(tmp_path):
    path = ROOT / "examples" / "mpc" / "three_sites.py"
    done = subprocess.run(
        [sys.executable, str(path), str(tmp_path)],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS, check=True,
    )  # fmt: skip
    assert "all sites have the same components: True" in done.stdout
    assert importlib.util.find_spec("spu")
    ours, pooled = map(float, re.findall(r"error, .*: +([\d.]+)", done.stdout))
    assert ours < 1.05 * pooled


def test_more_owners_share_to_three(tmp_path):
    sites = Sites(tmp_path, ("a", "b", "c", "d"))
    job = sites.job(max_iter=40, alpha_W=0.0)
    try:
        for name in sites.names:
            sites.start(name, job)
        for name in sites.names:
            code, output, errors = sites.end(name)
            assert code == 0, errors
            assert "opened: components (12)" in output
            assert "iteration 40 of 40" in output
    finally:
        sites.kill()
    H = sites.components("a")
    for name in sites.names[1:]:
        np.testing.assert_array_equal(sites.components(name), H)
    X = sites.X
    residual = X - X @ np.linalg.pinv(H) @ H
    assert np.linalg.norm(residual) < 0.02 * np.linalg.norm(X)


def test_one_that_dies_ends_the_others_by_a_named_error(sites):
    job = sites.job(max_iter=100_000, timeout=15)
    policy = "max_iterations = 100000\n"
    for name in sites.names:
        file = sites.folder / name / "skppdnmf.toml"
        file.write_text(file.read_text() + policy)
        sites.start(name, job)
    for _ in range(2):
        assert "iteration" in sites.processes["c"].stdout.readline()
    sites.processes["c"].send_signal(signal.SIGKILL)
    died = time.monotonic()
    for name in ("a", "b"):
        code, _, errors = sites.end(name)
        assert code == 1, errors
        # Nearly always the first; SPU may end with its links.
        assert re.search(
            r"Error: DropoutError: .* nothing heard from '\w'"
            r"|Error: DropoutError: .*SPU ended by exit code",
            errors,
        )
    assert time.monotonic() - died < 90
    assert not (sites.folder / "a" / "results").exists()


def test_sites_that_have_agreed_upon_something_else_share_nothing(sites):
    jobs = dict.fromkeys(sites.names, sites.job())
    jobs["b"] = sites.job("other.toml", max_iter=4)
    for name in sites.names:
        sites.start(name, jobs[name])
    for name in sites.names:
        code, _, errors = sites.end(name)
        assert code == 1
        assert "FederationError" in errors
        assert "max_iter" in errors or "job" in errors


def test_who_has_another_key_gets_no_link(sites):
    """What the roster says is what counts: the control is every other run here."""
    job = sites.job(timeout=6)
    impostor = Identity.new()
    (sites.folder / "c" / "identity.pem").unlink()
    impostor.save(sites.folder / "c" / "identity.pem")
    file = sites.folder / "c" / "skppdnmf.toml"
    honest = write_public_identity(sites.keys["c"].public)
    file.write_text(
        file.read_text().replace(honest, write_public_identity(impostor.public))
    )
    for name in sites.names:
        sites.start(name, job)
    for name in sites.names:
        code, _, errors = sites.end(name)
        assert code == 1
        assert "DropoutError" in errors


def test_a_policy_refuses_before_any_link(sites):
    file = sites.folder / "a" / "skppdnmf.toml"
    file.write_text(file.read_text() + "max_components = 1\n")
    sites.start("a", sites.job())
    code, _, errors = sites.end("a")
    assert code == 2
    assert "max_components=1: the job has n_components=2" in errors
