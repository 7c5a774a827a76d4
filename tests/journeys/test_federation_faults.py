"""Four sites as processes, one of which comes to harm; or the relay, or a link.

Always: the run ends by a named error at every site that is left, or goes on without;
the last left factor that was agreed is on every site's disk; no process is left over.
"""

import json
import os
import queue
import re
import selectors
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from _alone import alone
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF
from skppdnmf._cli.demo_federation import make_sites
from skppdnmf.flare import load

pytest.importorskip("nvflare", reason="a federation needs skppdnmf[flare]")
psutil = pytest.importorskip("psutil")
pytestmark = pytest.mark.journey

HERE = Path(__file__).parent
NAMES = ("site-1", "site-2", "site-3", "site-4")
N_SAMPLES, K = 440, 2
# Seconds that a site may take for an answer, and that a run may take in all: a machine
# under load starts processes slowly.
TIMEOUT, DEADLINE = 12.0, 240.0
SUMS = {
    "n_components": K,
    "protocol": "secure-sum",
    "max_iter": 6,
    "tol": 0,
    "random_state": 0,
}
CONTINUE = {**SUMS, "on_dropout": "continue"}
CONSENSUS = {
    "n_components": K,
    "protocol": "consensus",
    "encryption": "simulated",
    "max_iter": 2,
    "tol": 0,
    "random_state": 0,
}
KILL, STOP = "SIGKILL", "SIGSTOP"
# By data set: what happens, and the job.
PLANS = {
    "setup": ({"who": "site-2", "place": "setup", "signal": KILL}, SUMS),
    "sum": ({"who": "site-2", "place": "sum", "time": 12, "signal": KILL}, SUMS),
    "between": ({"who": "site-2", "place": "between", "time": 2, "signal": KILL}, SUMS),
    "end": ({"who": "site-2", "place": "end", "signal": KILL}, SUMS),
    "relay": ({"who": "server", "place": "turn", "time": 14, "signal": KILL}, SUMS),
    "stop": ({"who": "site-3", "place": "sum", "time": 12, "signal": STOP}, SUMS),
    "without": (
        {"who": "site-2", "place": "sum", "time": 12, "signal": KILL},
        CONTINUE,
    ),
    "quiet": ({"who": "site-3", "place": "sum", "time": 12, "signal": STOP}, CONTINUE),
    "version": ({"who": "site-3", "place": "version"}, SUMS),
    "data": ({}, SUMS),
    "consensus": ({}, CONSENSUS),
}


class Link:
    """Carries bytes between a site and the server, until it does so no more.

    It closes nothing then: neither side can tell, but by the silence.
    """

    def __init__(self, port):
        self._target = port
        self._listener = socket.create_server(("localhost", 0))
        self.port = self._listener.getsockname()[1]
        self.open = threading.Event()
        self.open.set()
        self._kept = []
        self._ended = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self._ended:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(("localhost", self._target))
            except OSError:
                continue
            self._kept += [near, far]
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _carry(self, near, far):
        with selectors.DefaultSelector() as both:
            both.register(near, selectors.EVENT_READ, far)
            both.register(far, selectors.EVENT_READ, near)
            while not self._ended:
                for key, _ in both.select(0.5):
                    self.open.wait()
                    try:
                        data = key.fileobj.recv(1 << 16)
                        key.data.sendall(data)
                    except OSError:
                        data = b""
                    if not data:
                        near.close()
                        far.close()
                        return

    def close(self):
        self._ended = True
        self.open.set()
        for one in [self._listener, *self._kept]:
            one.close()


class Federation:
    """Sites as processes, whose runs begin when they are asked for."""

    def __init__(self, root):
        self.root = root
        self.sites = root / "sites"
        self.X = load_digits().data[:N_SAMPLES]
        self.parts = dict(zip(NAMES, np.array_split(self.X, len(NAMES)), strict=True))
        make_sites(self.sites, self.parts)
        self._name_data_sets()
        self.faults = root / "faults.json"
        self.faults.write_text(
            json.dumps({name: one for name, (one, _) in PLANS.items()})
        )
        self.link = Link(8002)
        self._told = {}
        self._lines = queue.Queue()
        self._driver = subprocess.Popen(
            [
                sys.executable,
                str(HERE / "_federation.py"),
                str(root / "flare"),
                "site-4",
                str(self.link.port),
                *NAMES,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "SKPPDNMF_SITES": str(self.sites),
                "FAULTS": str(self.faults),
                "PYTHONPATH": os.pathsep.join(
                    [str(HERE / "_faults"), os.environ.get("PYTHONPATH", "")]
                ),
            },
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def begin(self):
        """Wait for the sites, and hand in the jobs."""
        told = self._lines.get(timeout=DEADLINE)
        assert "ready" in told, told
        self.places = told["ready"]
        for name, (_, parameters) in PLANS.items():
            self.submit(name, parameters)

    def _name_data_sets(self):
        """Give the digits as many names as there are faults."""
        for name in NAMES:
            file = self.sites / name / "skppdnmf.toml"
            text = file.read_text()
            tables = "".join(
                f'[datasets.{one}]\nfile = "{self._file(one, name)}"\n'
                for one in [*PLANS, "again", "dark", "whole", "server"]
            )
            text = text.replace("\n[policy]", f"\n{tables}\n[policy]", 1)
            text = text.replace('["secure-sum"]', '["secure-sum", "consensus"]')
            text = text.replace("unprotected = false", "unprotected = true")
            file.write_text(text)
        faulty = self.parts["site-3"].copy()
        faulty[3, 4] = np.nan
        np.save(self.sites / "site-3" / "faulty.npy", faulty)

    @staticmethod
    def _file(dataset, name):
        faulty = {"site-2": "vanished.npy", "site-3": "faulty.npy"}
        return faulty.get(name, "digits.npy") if dataset == "data" else "digits.npy"

    def _listen(self):
        for line in self._driver.stdout:
            self._lines.put(json.loads(line))
        self._lines.put({"job": "none", "ended": "the driver has ended"})

    def submit(self, dataset, parameters, **options):
        seeded = parameters["protocol"] == "consensus"
        options = {
            "dataset": dataset,
            "timeout": TIMEOUT,
            "min_sites": 3,
            "seeded_masks": seeded,
            **options,
        }
        order = {"parameters": parameters, "options": options}
        self._driver.stdin.write(json.dumps(order) + "\n")
        self._driver.stdin.flush()

    def outcome(self, dataset):
        """Wait for a run to end, and return how."""
        deadline = time.monotonic() + DEADLINE
        while dataset not in self._told:
            told = self._lines.get(timeout=deadline - time.monotonic())
            self._told[told["job"]] = told
        return self._told[dataset]

    def last(self, name, dataset):
        """Wait for a site to have ended a run, and return what it has noted of it."""
        deadline = time.monotonic() + 6 * TIMEOUT
        while True:
            text = (self.sites / name / "log.jsonl").read_text()
            lines = [json.loads(line) for line in text.splitlines()]
            found = [one for one in lines if one.get("dataset") == dataset]
            if found and found[-1]["event"] in ("failed", "finished"):
                return found[-1]
            assert time.monotonic() < deadline, found[-1:]
            time.sleep(0.2)

    def fails(self, dataset, match, lost):
        """Check that all sites but those that are lost end by a named error."""
        ended = self.outcome(dataset)["ended"]
        for name in NAMES:
            if name not in lost:
                done = self.last(name, dataset)
                assert done["event"] == "failed"
                assert re.search(match, done["error"]), done["error"]
        return ended

    def folder(self, name, dataset):
        (run,) = {
            one["run"]
            for site in NAMES
            for one in map(
                json.loads, (self.sites / site / "log.jsonl").read_text().splitlines()
            )
            if one.get("dataset") == dataset
        }
        return self.sites / name / "results" / run

    def checkpoints(self, dataset, names=NAMES):
        """Return what sites can start again from, once it is known to be common."""
        kept = []
        for name in names:
            with np.load(self.folder(name, dataset) / "checkpoint.npz") as archive:
                kept.append(dict(archive))
        first = min(int(one["iteration"]) for one in kept)
        assert first >= 1
        same = [
            one["components" if int(one["iteration"]) == first else "before"]
            for one in kept
        ]
        for other in same[1:]:
            assert_array_equal(other, same[0])
        return same[0]

    def struck(self, dataset):
        """Return the process that has come to harm."""
        return int(Path(f"{self.faults}.{dataset}").read_text())

    def processes(self, *of):
        """Return the processes of this federation, those of jobs if so asked."""
        found = []
        for one in psutil.process_iter(["cmdline"]):
            command = " ".join(one.info["cmdline"] or [])
            if str(self.root) in command and any(kind in command for kind in of):
                found.append(one)
        return found

    def end(self):
        """Stop the sites, and return the processes that are left."""
        self.link.open.set()
        self._driver.stdin.close()
        try:
            self._driver.wait(timeout=120)
        except subprocess.TimeoutExpired:
            self._driver.kill()
            self._driver.wait()
        deadline = time.monotonic() + 60
        while (left := self.processes("")) and time.monotonic() < deadline:
            time.sleep(0.5)
        described = [" ".join(one.info["cmdline"]) for one in left]
        for one in left:
            one.kill()
        self._listener.join(timeout=60)
        self._driver.stdout.close()
        self.link.close()
        return described


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    with alone():
        found = Federation(tmp_path_factory.mktemp("faults"))
        try:
            found.begin()
            yield found
        finally:
            left = found.end()
    assert not left


@pytest.mark.parametrize("dataset", ["setup", "sum", "between"])
def test_kill_of_a_site_ends_the_run_by_its_name(federation, dataset):
    """`kill -9` in the setup, in a sum and between sums."""
    ended = federation.fails(dataset, "site-2 .*cannot be reached", ["site-2"])
    assert "site-2" in ended
    assert not psutil.pid_exists(federation.struck(dataset))
    if dataset != "setup":
        federation.checkpoints(dataset)


def test_kill_of_a_site_at_the_end_takes_nothing_from_the_others(federation):
    assert federation.outcome("end")["ended"] == "finished"
    assert not psutil.pid_exists(federation.struck("end"))
    left = federation.checkpoints("end")
    for name in NAMES:
        done = (federation.folder(name, "end") / "components.npz").exists()
        assert done == (name != "site-2")
        if done:
            H = load(federation.folder(name, "end")).components_
            assert_array_equal(H, left)


@pytest.mark.parametrize(
    ("dataset", "lost"), [("without", "site-2"), ("quiet", "site-3")]
)
def test_the_others_go_on_without_a_site(federation, dataset, lost):
    """That was killed, or that does not answer."""
    outcome = federation.outcome(dataset)
    assert outcome["ended"] == "finished"
    others = [name for name in NAMES if name != lost]
    assert outcome["sites"] == others
    federation.struck(dataset)
    models = [load(federation.folder(name, dataset)) for name in others]
    for model, name in zip(models, others, strict=True):
        assert_array_equal(model.components_, models[0].components_)
        assert federation.last(name, dataset)["members"] == others
    federation.checkpoints(dataset, others)


def test_a_site_that_stops_answering_ends_the_run(federation):
    federation.fails("stop", "site-3 cannot be reached .*timed out", ["site-3"])
    federation.struck("stop")
    federation.checkpoints("stop")


def test_kill_of_the_relay_is_noted_at_every_site(federation):
    reason = "RelayLostError: site-.(: FLARE has ended| has heard nothing)"
    ended = federation.fails("relay", reason, [])
    assert "FLARE ended the job" in ended
    assert not psutil.pid_exists(federation.struck("relay"))
    federation.checkpoints("relay")


def test_data_that_vanish_or_are_faulty_end_the_run_before_it_begins(federation):
    ended = federation.fails("data", "site-[23].*CommandError", ["site-2", "site-3"])
    assert "site-2" in ended
    assert "site-3" in ended
    assert "no such file" in federation.last("site-2", "data")["error"]
    assert "missing" in federation.last("site-3", "data")["error"]


def test_another_version_of_the_protocol_is_refused_by_name(federation):
    federation.fails("version", "site-3: ProtocolVersionError", ["site-3"])
    assert "'0.9'" in federation.outcome("version")["ended"]


def test_the_consensus_is_that_of_one_process_bit_for_bit(federation):
    assert federation.outcome("consensus")["ended"] == "finished"
    sizes = [len(part) for part in federation.parts.values()]
    model = PrivateDistributedNMF(**CONSENSUS, partition=sizes).fit(federation.X)
    for k, name in enumerate(NAMES):
        here = load(federation.folder(name, "consensus"))
        assert_array_equal(here.components_, model.agent_components_[k])


def test_a_run_that_died_starts_again_from_where_it_was(federation):
    """With fresh keys, as another run, from the last iteration that all have."""
    federation.outcome("between")
    left = federation.checkpoints("between")
    died = federation.folder("site-1", "between").name
    federation.submit("again", SUMS, resume=died)
    outcome = federation.outcome("again")
    assert outcome["ended"] == "finished"
    assert outcome["run"] != died
    sizes = [len(part) for part in federation.parts.values()]
    model = PrivateDistributedNMF(**{**SUMS, "init": left}, partition=sizes)
    expected = model.fit(federation.X).components_
    for name in NAMES:
        assert_array_equal(load(federation.folder(name, "again")).components_, expected)


def test_a_link_that_goes_dead_without_closing_ends_the_run(federation):
    """The run is under way when the link of site-4 falls silent."""
    for name in PLANS:
        federation.outcome(name)
    federation.submit("dark", {**SUMS, "max_iter": 200})
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        try:
            if (federation.folder("site-4", "dark") / "checkpoint.npz").exists():
                break
        except ValueError:
            time.sleep(0.05)
    federation.link.open.clear()
    federation.fails("dark", "site-4 .*cannot be reached", ["site-4"])
    assert "RelayLostError" in federation.last("site-4", "dark")["error"]
    federation.checkpoints("dark")
    federation.link.open.set()


def certificate(folder):
    """Return a TLS context of a site, as its startup kit has it."""
    context = ssl.create_default_context(cafile=str(folder / "rootCA.pem"))
    context.check_hostname = False
    context.load_cert_chain(folder / "client.crt", folder / "client.key")
    return context


def greet(context):
    """Greet the server, which must answer."""
    with (
        socket.create_connection(("localhost", 8002), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname="server") as sealed,
    ):
        sealed.sendall(b"GET / HTTP/1.1\r\nHost: server\r\n\r\n")
        if not sealed.recv(100):
            raise ConnectionError("the server has closed the connection")


def test_a_certificate_of_another_authority_is_refused(federation, tmp_path):
    kit = Path(federation.places["site-1"]) / "startup"
    greet(certificate(kit))
    other_authority(tmp_path, kit)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        greet(certificate(tmp_path))


def other_authority(folder, kit):
    """Write a kit whose certificate says the same, signed by somebody else."""
    from datetime import datetime, timedelta, timezone

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    real = x509.load_pem_x509_certificate((kit / "client.crt").read_bytes())
    root = x509.load_pem_x509_certificate((kit / "rootCA.pem").read_bytes())
    keys = [rsa.generate_private_key(65537, 2048) for _ in range(2)]
    now = datetime.now(timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(real.subject)
        .issuer_name(root.subject)
        .public_key(keys[0].public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(keys[1], hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    (folder / "client.crt").write_bytes(made.public_bytes(encoding))
    (folder / "client.key").write_bytes(
        keys[0].private_bytes(
            encoding,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    (folder / "rootCA.pem").write_bytes((kit / "rootCA.pem").read_bytes())


def test_no_process_of_a_job_is_left_over(federation):
    """A process that was stopped is not left stopped, either."""
    for name in PLANS:
        federation.outcome(name)
    deadline = time.monotonic() + 60
    while (
        left := federation.processes("worker_process", "runner_process")
    ) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert not [" ".join(one.info["cmdline"]) for one in left]
