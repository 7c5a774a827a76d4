"""How long an exchange of a federation takes, and what of it is NVIDIA FLARE's.

Sites are processes of this machine, as `skppdnmf demo federation` makes them: FLARE's
server, a client for each site, and for each of these the process that runs the job. All
share the cores, which sites of their own would not. The secure sum, on the complete
graph.

"over FLARE" is the time from one exchange to the next. "own" is the processor time
that the package takes for one: all sites together, with the same seals, masks and
checkpoints, called in one process without FLARE, arithmetic included. FLARE's share is
at least what is left, as sites work at the same time where there are cores for it.

The last table says where the package's own time goes: processor time of all sites and
the relay together, of one exchange of the digits.

Run it from the project's root: ``python benchmarks/bench_federation.py [--quick]``.
"""

import argparse
import contextlib
import functools
import logging
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF
from skppdnmf._agent import Envelope
from skppdnmf._cli.demo_federation import make_sites
from skppdnmf._sealing.agent import SealedAgent
from skppdnmf._secure_sum.agent import SumAgent
from skppdnmf._secure_sum.masks import PairwiseMasks
from skppdnmf._site.folder import FILE, read_folder
from skppdnmf.flare import NMFRecipe, frames, party, results, run
from skppdnmf.flare.environment import variables
from skppdnmf.flare.follow import follow
from skppdnmf.flare.party import SiteParty
from skppdnmf.flare.run import RemoteParty, Run
from skppdnmf.flare.site import SITES_VARIABLE
from skppdnmf.flare.submit import local_env, quiet

DIGITS = "digits"
# Values of a summand: K x K and K x n_features of 8 bytes.
SIZES = {
    "1 kB": (2, 60, 40),
    "100 kB": (10, 1240, 40),
    "1 MB": (10, 12490, 20),
    "5 MB": (10, 62490, 10),
    "20 MB": (10, 249990, 5),
}
N_SITES = (2, 4, 8, 16)


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--quick", action="store_true", help="digits at four sites only"
    )
    quick = parser.parse_args().quick
    logging.disable(logging.CRITICAL)
    print(
        f"{'data':>8} {'sites':>5} {'exchanges':>9} {'over FLARE':>11} "
        f"{'own':>9} {'share of FLARE':>15}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for n_sites in (4,) if quick else (4, *(n for n in N_SITES if n != 4)):
            sizes = SIZES if n_sites == 4 and not quick else {}
            federation(Path(folder) / str(n_sites), n_sites, sizes)
        print()
        own_share(Path(folder) / "own")


def federation(root, n_sites, sizes):
    """Print a row for the digits, and for each of some sizes."""
    names = [f"site-{k + 1}" for k in range(n_sites)]
    jobs = {DIGITS: (load_digits().data, 10, 60)}
    rng = np.random.default_rng(0)
    for size, (n_components, n_features, max_iter) in sizes.items():
        samples = rng.random((12 * n_sites, n_features))
        jobs[size.replace(" ", "")] = samples, n_components, max_iter
    make_data(root / "sites", names, {name: one[0] for name, one in jobs.items()})
    env = local_env(names, root / "flare")
    with variables({SITES_VARIABLE: str(root / "sites")}), quiet():
        env.begin()
    try:
        for dataset, (_, n_components, max_iter) in jobs.items():
            recipe = a_recipe(dataset, n_components, max_iter)
            with quiet():
                recipe.export(str(root / "jobs"))
                session = env.session()
                job = session.submit_job(str(root / "jobs" / dataset))
                outcome = follow(session, job, lambda _: None)
                session.close()
            if outcome["ended"] != "finished":
                raise RuntimeError(outcome["ended"])
            over = outcome["seconds_carried"] / outcome["exchanges"]
            own = direct(root / "sites", names, recipe.spec, root / "relay")
            print(
                f"{dataset:>8} {n_sites:5} {outcome['exchanges']:9} "
                f"{1e3 * over:8.1f} ms {1e3 * own:6.1f} ms "
                f"{max(0, 1 - own / over):15.0%}",
                flush=True,
            )
    finally:
        with quiet():
            env.stop(clean_up=False)


def make_data(folder, names, data):
    """Make the sites' folders, each with its share of each data set."""
    parts = np.array_split(data[DIGITS], len(names))
    make_sites(folder, dict(zip(names, parts, strict=True)))
    for dataset, X in data.items():
        for name, part in zip(names, np.array_split(X, len(names)), strict=True):
            np.save(folder / name / f"{dataset}.npy", part)
    tables = "".join(
        f'[datasets.{dataset}]\nfile = "{dataset}.npy"\n'
        for dataset in data
        if dataset != DIGITS
    )
    for name in names:
        text = (folder / name / FILE).read_text()
        text = text.replace("\n[policy]", f"\n{tables}\n[policy]", 1)
        text = text.replace("min_sites = 3", "min_sites = 2")
        text = text.replace("_per_component = 50", "_per_component = 0")
        (folder / name / FILE).write_text(text)


def a_recipe(dataset, n_components, max_iter):
    """Return a recipe of the secure sum."""
    model = PrivateDistributedNMF(
        n_components, protocol="secure-sum", max_iter=max_iter, tol=0, random_state=0
    )
    return NMFRecipe(model, dataset, min_sites=2, name=dataset, timeout=300)


def direct(sites, names, spec, folder):
    """Return the processor time of an exchange of sites that are called directly."""
    parties = [SiteParty(read_folder(sites / name), spec.to_text()) for name in names]
    spent = []

    def caller(site):
        def call(method, *given):
            started = time.thread_time()
            answer = getattr(site, method)(*given)
            if method in ("start", "advance"):
                spent.append(time.thread_time() - started)
            return answer

        return call

    folder.mkdir(exist_ok=True)
    remote = [
        RemoteParty(name, caller(site))
        for name, site in zip(names, parties, strict=True)
    ]
    carried = Run(spec, remote, folder)
    carried.to_the_end()
    return sum(spent) / carried.progress()["exchanges"]


class Stopwatch:
    """Processor time by task, that of tasks within a task not counted twice."""

    def __init__(self):
        self.seconds = {}
        self._local = threading.local()
        self._lock = threading.Lock()

    def timed(self, function, task):
        """Return the function, its time counted for a task."""

        @functools.wraps(function)
        def wrapped(*given, **options):
            within = getattr(self._local, "within", None)
            if within is None:
                within = self._local.within = []
            within.append(0.0)
            started = time.thread_time()
            try:
                return function(*given, **options)
            finally:
                spent = time.thread_time() - started
                inner = within.pop()
                if within:
                    within[-1] += spent
                with self._lock:
                    before = self.seconds.get(task, 0.0)
                    self.seconds[task] = before + spent - inner

        return wrapped

    @contextlib.contextmanager
    def on(self, places):
        """Time the functions at some places meanwhile."""
        originals = []
        for owner, name, task in places:
            original = owner.__dict__[name]
            originals.append((owner, name, original))
            if isinstance(original, classmethod):
                wrapped = classmethod(self.timed(original.__func__, task))
            else:
                wrapped = self.timed(original, task)
            setattr(owner, name, wrapped)
        try:
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)


SERIALISE, SEAL, MASK = "serialise", "seal, sign, transcript", "mask"
REST, KEEP = "arithmetic of the fit", "checkpoint on the disk"
PLACES = [
    *((Envelope, name, SERIALISE) for name in ("to_bytes", "from_bytes")),
    *((frames.Answer, name, SERIALISE) for name in ("to_bytes", "from_bytes")),
    *((module, "join", SERIALISE) for module in (party, run)),
    (party, "split", SERIALISE),
    *((SealedAgent, name, SEAL) for name in ("start", "advance")),
    *((PairwiseMasks, name, MASK) for name in ("mask", "hide", "reveal")),
    *((SumAgent, name, REST) for name in ("start", "advance")),
    (results.Results, "note", KEEP),
]


def own_share(root):
    """Print where the package's own time of an exchange goes."""
    names = [f"site-{k + 1}" for k in range(4)]
    make_data(root / "sites", names, {DIGITS: load_digits().data})
    max_iter = 60
    spec = a_recipe(DIGITS, 10, max_iter).spec
    direct(root / "sites", names, spec, root / "relay")
    watch = Stopwatch()
    with watch.on(PLACES):
        direct(root / "sites", names, spec, root / "relay")
    own = {task: watch.seconds[task] / max_iter for task in (SERIALISE, SEAL, MASK)}
    other = {task: watch.seconds[task] / max_iter for task in (REST, KEEP)}
    print("the package's own time, of an exchange of the digits at four sites together")
    for task, seconds in own.items():
        print(f"  {task:24} {1e3 * seconds:6.2f} ms")
    print(f"  {'the protocol in all':24} {1e3 * sum(own.values()):6.2f} ms")
    for task, seconds in other.items():
        print(f"  {task:24} {1e3 * seconds:6.2f} ms")


if __name__ == "__main__":
    main()
