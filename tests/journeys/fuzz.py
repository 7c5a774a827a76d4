"""Mutates messages: what is not what its sender must have sent is refused by name.

``python tests/journeys/fuzz.py --seconds 60 --seed 0`` mutates what every reader reads
and one envelope or several of whole runs, and prints how often what came of it. Case k
of a seed is always the same, keys and noise apart: ``--seed 0 --first 1234 --cases 1``
repeats one. The exit code is 1 if anything but a named error was raised.

Outcomes: *refused*, a named error; *went on*, a fit without the agent that was blamed;
*harmless*, the same as without the mutation; *unnoticed*, another result and no error.
Of the last there are some: masked words, ciphertexts and counts of another value may be
what their sender sent, and nothing authenticates them.
"""

import argparse
import contextlib
import json
import random
import struct
import sys
import time
import traceback
import warnings
from collections import Counter

import numpy as np

from skppdnmf import PrivateDistributedNMF
from skppdnmf._agent import Envelope
from skppdnmf._data.graph import make_network
from skppdnmf._federation.local import run_local
from skppdnmf._fit.protocols import protocol_of
from skppdnmf._fit.seeds import common_start, draw_seeds
from skppdnmf._paillier.payload import check_header, header, key_payload, read_public
from skppdnmf._payload import Payload, read_numbers
from skppdnmf._protocol import Hooks, Setting
from skppdnmf.exceptions import (
    CorruptedMessageError,
    CorruptedTotalError,
    DropoutError,
    DropoutWarning,
    WrongKeyError,
)
from skppdnmf.exchange import (
    Message,
    PaillierPrivateKey,
    PaillierPublicKey,
    SlotLayout,
    SumMessage,
    generate_keypair,
)

NAMED = (
    CorruptedMessageError,
    CorruptedTotalError,
    WrongKeyError,
    DropoutError,
    OverflowError,
)
REFUSED, WENT_ON, HARMLESS, UNNOTICED, UNNAMED = (
    "refused",
    "went on",
    "harmless",
    "unnoticed",
    "NOT NAMED",
)
OUTCOMES = (REFUSED, WENT_ON, HARMLESS, UNNOTICED, UNNAMED)
RUN = bytes(range(16))


# Mutations ------------------------------------------------------------------------


def flip(data, rng):
    """One bit."""
    place = rng.randrange(len(data))
    return (
        data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
    )


def overwrite(data, rng):
    """Up to eight bytes."""
    place, size = rng.randrange(len(data)), rng.randint(1, 8)
    filling = rng.choice([bytes(size), b"\xff" * size, rng.randbytes(size)])
    return data[:place] + filling[: len(data) - place] + data[place + size :]


def at_the_front(data, rng):
    """A byte of the first sixty, where headers are."""
    place = rng.randrange(min(60, len(data)))
    return data[:place] + rng.randbytes(1) + data[place + 1 :]


def cut(data, rng):
    """The end."""
    return data[: rng.randrange(len(data))]


def drop(data, rng):
    """A piece of the middle."""
    place = rng.randrange(len(data))
    return data[:place] + data[place + rng.randint(1, 16) :]


def lengthen(data, rng):
    """A piece once more, or noise."""
    place = rng.randrange(len(data) + 1)
    piece = rng.choice([data[place : place + 16], rng.randbytes(rng.randint(1, 16))])
    return data[:place] + piece + data[place:]


def number(data, rng):
    """A double or an integer that is out of the ordinary, anywhere."""
    value = rng.choice([np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308, -1e308, 5e-324])
    whole = rng.choice([0, 1, 255, 2**31, 2**32 - 1])
    packed = rng.choice(
        [struct.pack(order + "d", value) for order in "<>"]
        + [struct.pack(order + "I", whole) for order in "<>"]
    )
    # Anywhere, or where an envelope's body begins.
    place = rng.randrange(rng.choice([len(data), min(72, len(data))]))
    return data[:place] + packed + data[place + len(packed) :]


MUTATIONS = (flip, overwrite, at_the_front, cut, drop, lengthen, number)


def mutate(data, rng):
    """Another string of bytes."""
    changed = data
    while changed == data:
        changed = rng.choice(MUTATIONS)(data, rng) if data else rng.randbytes(4)
    return changed


# Readers --------------------------------------------------------------------------


def make_readers():
    """For each reader what it reads rightly, and how it is called on bytes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        public, private = generate_keypair(256)
        subgroup, subgroup_private = generate_keypair(576, scheme="subgroup")
    layout = SlotLayout(3, 24, 12, "entrywise", 256)
    words = np.arange(5, dtype=np.uint64)
    messages = [SumMessage(2, 0, 3, words), SumMessage(0, 1, 0, keys={1: bytes(32)})]
    numbers = [
        np.linspace(0.0, 1.0, 4),
        np.array([3, -4, 5]),
        np.array([2**70, -1], dtype=object),
    ]
    written = [Payload(array, 0, 400).to_bytes() for array in numbers]
    request = header(1, public.key_id, layout)
    request += bytes(layout.n_request_ciphertexts * 64)
    message = Message(1, 0, 24, 1, 2, 3.0, 40, 41, Payload(b"x" * 9, 0, 9))
    body = message.to_bytes()
    keys = [key.to_json() for key in (public, private, subgroup, subgroup_private)]

    def from_text(reader):
        return lambda data: reader(data.decode("utf-8", "surrogateescape"))

    def payload(data):
        check_header(data, 1, public.key_id, layout)

    def text(key):
        return key.encode()

    return {
        "Envelope": (
            [Envelope(RUN, 2, 0, 1, 2, 3, m.to_bytes()).to_bytes() for m in messages],
            Envelope.from_bytes,
        ),
        "Message": ([body], lambda data: Message.from_bytes(data, 1, 0)),
        "SumMessage": (
            [m.to_bytes() for m in messages],
            lambda data: SumMessage.from_bytes(data, 2, 3),
        ),
        "payload header": ([request], payload),
        "numbers": (written, read_numbers),
        "public key": (
            [key_payload(key).data for key in (public, subgroup)],
            lambda data: read_public(Payload(data, 0, len(data))),
        ),
        "public key, JSON": (
            [text(keys[0]), text(keys[2]), nested(keys[0])],
            from_text(PaillierPublicKey.from_json),
        ),
        "private key, JSON": (
            [text(keys[1]), text(keys[3]), nested(keys[1])],
            from_text(PaillierPrivateKey.from_json),
        ),
    }


def nested(key):
    """A key with an entry that is nested deeply."""
    fields = json.dumps({**json.loads(key), "n": "deep"})
    return fields.replace('"deep"', "[" * 50_000 + "]" * 50_000).encode()


def read_mutated(name, readers, rng):
    """Mutate what one reader reads."""
    samples, read = readers[name]
    # What cannot be read as JSON is refused as the ValueError that from_json promises.
    named = (*NAMED, ValueError) if "JSON" in name else NAMED
    try:
        read(mutate(rng.choice(samples), rng))
    except named as error:
        if "JSON" in name and type(error) not in (ValueError, WrongKeyError):
            raise
        return REFUSED
    return UNNOTICED


# Whole runs -----------------------------------------------------------------------

RUNS = {
    "consensus, no encryption": {"encryption": None},
    "consensus, simulated": {"encryption": "simulated"},
    "consensus, simulated, scalar": {"encryption": "simulated", "masking": "scalar"},
    "consensus, penalties": {"encryption": "simulated", "alpha_W": 0.01},
    "consensus, paillier": {
        "encryption": "paillier",
        "key_size": 256,
        "max_iter": 1,
    },
    "sums, raise": {"protocol": "secure-sum"},
    "sums, continue": {"protocol": "secure-sum", "on_dropout": "continue"},
    "sums, path": {
        "protocol": "secure-sum",
        "on_dropout": "continue",
        "adjacency": "path",
    },
}
N_AGENTS = 4


class Fit:
    """A small fit that can be run again and again with other envelopes mutated."""

    def __init__(self, parameters):
        given = {
            "partition": N_AGENTS,
            "adjacency": "ring",
            "max_iter": 2,
            "max_admm_iter": 2,
            "n_init": 2,
            "tol": 0,
            "random_state": 0,
            **parameters,
        }
        self.estimator = PrivateDistributedNMF(2, **given)
        X = np.random.default_rng(0).exponential(size=(20, 5))
        self.parts = np.split(X, [3, 8, 14])
        self.names = [f"agent {i}" for i in range(N_AGENTS)]
        self.result, self.n_sent = self.run(lambda k, data: data)

    def run(self, alter):
        """Run it; ``alter(k, data)`` returns what becomes of the k-th envelope."""
        estimator = self.estimator
        seeds = draw_seeds(estimator.random_state)
        network = make_network(estimator.adjacency, N_AGENTS, seeds.graph)
        protocol = protocol_of(estimator)
        scaling = protocol.start_scaling(estimator)
        start = common_start(estimator.init, 2, 5, seeds.start, scaling)
        plan = protocol.plan(Setting(estimator, network, start, seeds))
        agents = plan.build(self.parts, self.names, RUN, Hooks())
        counter = iter(range(10**9))
        carried = [Carried(agent, counter, alter) for agent in agents]
        outcome = run_local(
            carried, self.names, n_jobs=1, on_dropout=plan.on_dropout, serialise=True
        )
        present = [report.H for report in outcome.reports if report is not None]
        return present, next(counter)


class Carried:
    """An agent whose envelopes are altered on the way."""

    def __init__(self, agent, counter, alter):
        self.agent = agent
        self.counter = counter
        self.alter = alter
        self.stop = agent.stop

    def start(self):
        return self._altered(self.agent.start())

    def advance(self, envelopes):
        return self._altered(self.agent.advance(envelopes))

    def depart(self, departure):
        return self._altered(self.agent.depart(departure))

    def _altered(self, step):
        envelopes = [Altered(*envelope) for envelope in step.envelopes]
        for one in envelopes:
            one.data = self.alter(next(self.counter), one.data)
        return step._replace(envelopes=envelopes)


class Altered(Envelope):
    """An envelope that may say something else on the wire."""

    def __init__(self, *_):
        self.data = super().to_bytes()

    def to_bytes(self):
        return self.data


def run_mutated(fit, rng):
    """Mutate one envelope of a run or several, or replace it by one sent before."""
    first = rng.randrange(fit.n_sent)
    chosen = {first} | {
        rng.randrange(fit.n_sent) for _ in range(rng.choice([0, 0, 0, 3]))
    }
    replay = rng.random() < 0.1
    sent = []

    def alter(k, data):
        sent.append(data)
        if k not in chosen:
            return data
        return rng.choice(sent) if replay else mutate(data, rng)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Numbers that numpy cannot compute with are to be refused before it does.
        warnings.simplefilter("error", RuntimeWarning)
        try:
            result, _ = fit.run(alter)
        except NAMED:
            return REFUSED
    if any(issubclass(one.category, DropoutWarning) for one in caught):
        return WENT_ON
    same = len(result) == len(fit.result) and all(
        np.array_equal(a, b) for a, b in zip(result, fit.result, strict=True)
    )
    return HARMLESS if same else UNNOTICED


def fuzz(seed, cases=None, seconds=None, first=0, out=sys.stdout):
    """Try cases, and return how often each outcome was had, by subject."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        readers = make_readers()
        fits = {name: Fit(parameters) for name, parameters in RUNS.items()}
        subjects = [*readers, *fits]
        counts = {name: Counter() for name in subjects}
        end = None if seconds is None else time.monotonic() + seconds
        k = first
        while (cases is None or k < first + cases) and (
            end is None or time.monotonic() < end
        ):
            rng = random.Random(f"{seed} {k}")
            name = subjects[k % len(subjects)]
            try:
                if name in fits:
                    outcome = run_mutated(fits[name], rng)
                else:
                    outcome = read_mutated(name, readers, rng)
            except Exception:
                outcome = UNNAMED
                print(f"case {k} of seed {seed}, {name}:", file=out)
                print(traceback.format_exc(), file=out)
            counts[name][outcome] += 1
            k += 1
    return counts


def table(counts):
    """Counts as text."""
    width = max(map(len, counts))
    lines = [" " * width + "".join(f"{outcome:>11}" for outcome in OUTCOMES)]
    for name, found in counts.items():
        row = "".join(f"{found[outcome]:>11}" for outcome in OUTCOMES)
        lines.append(f"{name:{width}}{row}")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--cases", type=int, default=None)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    seconds = given.seconds
    if seconds is None and given.cases is None:
        seconds = 10.0
    counts = fuzz(given.seed, given.cases, seconds, given.first)
    print(table(counts))
    print(
        "unnoticed: words, ciphertexts, counts and key bytes of another value that "
        "their sender could have sent; nothing authenticates them"
    )
    return int(any(found[UNNAMED] for found in counts.values()))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
