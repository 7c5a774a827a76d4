"""Kills or stops a process of a federation at the very place that a test names.

Python itself finds this at the start of each process, by way of PYTHONPATH. The file in
the environment variable FAULTS says what is to happen in the runs of each data set: to
which site, or the relay ("server"), where, how often it comes by there before, and with
which signal.
"""

import functools
import json
import os
import signal
import sys
from pathlib import Path

FAULTS = os.environ.get("FAULTS")


def struck(method, whose, place, after=False):
    """Return a method before which, or after which, its process comes to harm."""
    calls = []

    @functools.wraps(method)
    def wrapped(self, *given):
        who, dataset = whose(self)
        plan = json.loads(Path(FAULTS).read_text()).get(dataset, {})
        calls.append(place)
        now = (
            plan.get("who") == who
            and plan["place"] == place
            and len(calls) == plan.get("time", 1)
        )
        if now and not after:
            strike(dataset, plan)
        result = method(self, *given)
        if now and after:
            strike(dataset, plan)
        return result

    return wrapped


def strike(dataset, plan):
    """Send this process the signal that is planned; note it before."""
    Path(f"{FAULTS}.{dataset}").write_text(str(os.getpid()))
    os.kill(os.getpid(), getattr(signal, plan["signal"]))


def prepare():
    """Put the places where faults happen into the package."""
    from skppdnmf.flare import job, party, results, run

    def of_site(self):
        spec = getattr(self, "spec", None)
        return self.folder.name, None if spec is None else spec.dataset

    def of_results(self):
        return self.folder.parent.parent.name, self._spec.dataset

    def of_relay(self):
        return "server", self._spec.dataset

    for kind, name, whose, place, after in (
        (party.SiteParty, "_prepare", of_site, "setup", False),
        (party.SiteParty, "advance", of_site, "sum", False),
        (results.Results, "note", of_results, "between", True),
        (party.SiteParty, "finish", of_site, "end", False),
        (run.Run, "_take_turns", of_relay, "turn", False),
    ):
        setattr(kind, name, struck(getattr(kind, name), whose, place, after))
    read = job.JobSpec.from_text

    def from_text(text):
        # What a site says whose package is older.
        plan = json.loads(Path(FAULTS).read_text()).get(json.loads(text)["dataset"], {})
        mine = Path.cwd().name == plan.get("who") and plan["place"] == "version"
        job.PROTOCOL_VERSION = "0.9" if mine else now
        return read(text)

    now = job.PROTOCOL_VERSION
    job.JobSpec.from_text = staticmethod(from_text)


# In the processes of a job, not in those that start them.
if FAULTS and {"worker", "runner"} & {
    one.rsplit(".", 1)[-1].split("_")[0] for one in sys.orig_argv
}:
    prepare()
