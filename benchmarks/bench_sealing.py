"""What seals, identities and transcripts cost: by exchange, and in one process.

Run ``python benchmarks/bench_sealing.py [--quick]``. Ten agents hold scikit-learn's
digits. Fits with sealed agents, whose identities and memories are each one's own, and
with the same agents bare take turns in one process; both carry envelopes as bytes.
"""

from __future__ import annotations

import gc
import sys
import time
import warnings
from contextlib import contextmanager
from unittest import mock

import numpy as np
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF
from skppdnmf._fit import run as running
from skppdnmf._protocol import nobody
from skppdnmf._sealing.transcript import Transcript
from skppdnmf._secure_sum.totals import FixedPoint
from skppdnmf.exchange import SEALED_BYTES, Credentials, Identity, Roster, SealedAgent

QUICK = "--quick" in sys.argv
N_AGENTS = 10
_ZEROS = bytes(32)
CODES = {"consensus": 1, "secure-sum": 2}
# Of the facts of a fit; how many there are does not matter after the first message.
FACTS = {"n_components": 10, "n_features": 64, "dtype": "float64"}


class Sites:
    """Credentials of sites, none of which knows what another has verified."""

    def __init__(self, names, run):
        identities = [Identity.new() for _ in names]
        roster = Roster(
            {name: one.public for name, one in zip(names, identities, strict=True)}
        )
        self.own = [Credentials(one, roster, run, FACTS) for one in identities]

    def __call__(self, number):
        """Return those of one site."""
        return self.own[number]


class Sealing:
    """Has a fit's agents carried as bytes, behind seals or bare, and takes the time."""

    def __init__(self, protocol, sealed):
        self.protocol, self.sealed = protocol, sealed
        self.sites = None

    def credentials(self, names, run):
        """Make those of the sites, if there are any."""
        self.sites = Sites(names, run) if self.sealed else nobody
        return self.sites

    def run(self, agents, names, **given):
        """Run the agents as the fit would, behind seals if they are to be."""
        if self.sealed:
            agents = [
                SealedAgent(
                    agent,
                    self.sites(i),
                    sorted(agent._address._correspondents),
                    CODES[self.protocol],
                )
                for i, agent in enumerate(agents)
            ]
        return self.genuine(agents, names, serialise=True, **given)

    def fit(self, X, max_iter):
        """Fit, and return seconds of the processor, and the estimator."""
        given = {"encryption": "simulated"} if self.protocol == "consensus" else {}
        model = PrivateDistributedNMF(
            10,
            protocol=self.protocol,
            partition=N_AGENTS,
            max_iter=max_iter,
            tol=0,
            random_state=0,
            n_jobs=1,
            **given,
        )
        self.genuine = running.run_local
        with (
            mock.patch.object(running, "run_local", self.run),
            mock.patch.object(running, "LocalCredentials", self.credentials),
        ):
            return clocked(lambda: model.fit(X)), model


def clocked(call):
    """Return the seconds of the processor that a call takes."""
    gc.collect()
    started = time.process_time()
    call()
    return time.process_time() - started


def print_sites(X, protocol, short, long, repeats):
    """Print what seals cost by exchange and agent, and before the first exchange."""
    seconds = {}
    models = {}
    for _ in range(repeats):
        for sealed in (False, True):
            for max_iter in (short, long):
                sealing = Sealing(protocol, sealed)
                one, model = sealing.fit(X, max_iter)
                seconds.setdefault((sealed, max_iter), []).append(one)
                models[sealed, max_iter] = model
    least = {key: min(ones) for key, ones in seconds.items()}
    exchanges = [models[True, n].n_exchanges_ for n in (short, long)]
    added = [least[True, n] - least[False, n] for n in (short, long)]
    slope = (added[1] - added[0]) / (exchanges[1] - exchanges[0])
    before = added[0] - slope * exchanges[0]
    sealed, bare = models[True, long], models[False, long]
    same = np.array_equal(sealed.components_, bare.components_)
    handled = 2e-6 * bare.traffic_["bytes"] / exchanges[1] / N_AGENTS
    print(
        f"{protocol:12}{exchanges[1]:10d}{least[False, long]:10.3f}"
        f"{least[True, long]:10.3f}{1e3 * slope / N_AGENTS:12.3f}"
        f"{1e3 * added[1] / exchanges[1] / N_AGENTS:12.3f}"
        f"{1e3 * before / N_AGENTS:10.1f}{SEALED_BYTES:8d}"
        f"{handled:8.3f}{'yes' if same else 'no':>8}"
    )


def _nothing(*_, **__):
    """Note and check nothing; cheaper than a mock that counts its calls."""


def _digest(*_):
    """Have everybody be told the same."""
    return _ZEROS


@contextmanager
def unprotected():
    """Fits of one process without identities, transcripts and checks of totals."""
    with (
        mock.patch.object(running, "LocalCredentials", return_value=nobody),
        mock.patch.object(Transcript, "tell", _nothing),
        mock.patch.object(Transcript, "digest", _digest),
        mock.patch.object(FixedPoint, "check_totals", _nothing),
    ):
        yield


def print_one_process(X, repeats):
    """Print the ratio of default fits with and without, one after the other."""
    ratios = []
    least = [np.inf, np.inf]
    for turn in range(repeats):
        pair = [0.0, 0.0]
        for place in (0, 1) if turn % 2 else (1, 0):
            model = PrivateDistributedNMF(
                10, protocol="secure-sum", partition=N_AGENTS, tol=0, random_state=turn
            )
            if place:
                pair[1] = clocked(lambda m=model: m.fit(X))
            else:
                with unprotected():
                    pair[0] = clocked(lambda m=model: m.fit(X))
        ratios.append(pair[1] / pair[0])
        least = [min(a, b) for a, b in zip(least, pair, strict=True)]
    print(
        f"{model.n_exchanges_} exchanges: {least[1]:.3f} s, without {least[0]:.3f} s; "
        f"ratio: median {np.median(ratios):.3f}, of the least {least[1] / least[0]:.3f}"
    )


def main():
    """Print both tables."""
    warnings.simplefilter("ignore")
    X = load_digits().data
    repeats = 2 if QUICK else 7
    print("## Sealed sites beside bare agents: seconds of the processor")
    print(
        f"{'protocol':12}{'exchanges':>10}{'bare':>10}{'sealed':>10}"
        f"{'ms each':>12}{'with keys':>12}{'keys, ms':>10}"
        f"{'bytes':>8}{'MB':>8}{'same':>8}"
    )
    print_sites(X, "secure-sum", 20, 120, repeats)
    print_sites(X, "consensus", 2, 12, 2 if QUICK else 3)
    print(
        "ms each: by exchange and agent; with keys: as well what agents do before the"
    )
    print("first exchange (keys, ms, by agent), divided among the exchanges; bytes: by")
    print(
        "envelope; MB: that an agent seals and opens in an exchange; same: whether the"
    )
    print("components are, to the last bit")
    print("\n## A default fit of one process, with identities, transcripts and checks")
    print_one_process(X, 5 if QUICK else 21)


if __name__ == "__main__":
    main()
