"""Sites with folders of their own, and a relay that calls them in this process."""

import json

import numpy as np

from skppdnmf._sealing.identity import Identity, write_public
from skppdnmf._site.folder import FILE, read_folder
from skppdnmf.flare.job import JobSpec, parameters_of
from skppdnmf.flare.party import SiteParty
from skppdnmf.flare.run import RemoteParty, Run

NAMES = ("site-1", "site-2", "site-3", "site-4")
SIZES = (30, 41, 22, 37)
# What tests of a few samples need that a site would not allow.
POLICY = {"min_other_samples_per_component": 1}


def samples(n_features=12, seed=0):
    rng = np.random.default_rng(seed)
    W = rng.exponential(size=(sum(SIZES), 3))
    return W @ rng.exponential(size=(3, n_features))


def split(X):
    return np.split(X, np.cumsum(SIZES)[:-1])


def make_sites(root, X=None, policies=None, data=None):
    """Make a folder for each site; policies and data by name, where others."""
    parts = split(samples()) if X is None else X if isinstance(X, list) else split(X)
    keys = {}
    for name, part in zip(NAMES, parts, strict=True):
        folder = root / name
        folder.mkdir(parents=True)
        identity = Identity.new()
        identity.save(folder / "identity.pem")
        keys[name] = write_public(identity.public)
        np.save(folder / "cohort.npy", (data or {}).get(name, part))
    for name in NAMES:
        policy = {**POLICY, **(policies or {}).get(name, {})}
        lines = [f'name = "{name}"', "[roster]"]
        lines += [f'{other} = "{key}"' for other, key in keys.items() if other != name]
        lines += ["[datasets.cohort]", 'file = "cohort.npy"', "[policy]"]
        lines += [f"{rule} = {json.dumps(value)}" for rule, value in policy.items()]
        (root / name / FILE).write_text("\n".join(lines) + "\n")
    return root


def make_job(estimator, **given):
    given = {"dataset": "cohort", "min_sites": 3, "timeout": 5.0, **given}
    return JobSpec(parameters_of(estimator), **given)


class Direct:
    """Calls sites in this process, in bytes.

    `meddle(name, method, given, call)` returns the answer that arrives, or raises.
    """

    def __init__(self, root, spec, meddle=None):
        self.root = root
        self.parties = {
            name: SiteParty(read_folder(root / name), spec.to_text()) for name in NAMES
        }
        self._meddle = meddle or (lambda name, method, given, call: call(*given))

    def remote(self):
        return [RemoteParty(name, self._caller(name)) for name in self.parties]

    def _caller(self, name):
        def call(method, *given):
            return self._meddle(
                name, method, given, getattr(self.parties[name], method)
            )

        return call

    def results(self, run):
        return {name: self.root / name / "results" / run for name in self.parties}


def federate(root, spec, folder, meddle=None, tap=None):
    """Return a run over direct calls, and who is called."""
    direct = Direct(root, spec, meddle)
    folder.mkdir(exist_ok=True)
    return Run(spec, direct.remote(), folder, tap), direct


def events(root, name):
    text = (root / name / "log.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def last(root, name):
    return events(root, name)[-1]
