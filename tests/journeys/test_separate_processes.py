"""Agents in processes of their own that share nothing but sealed envelopes' bytes."""

import multiprocessing
import traceback

import numpy as np
import pytest
from _recorded_fits import SIZES, samples
from numpy.testing import assert_array_equal

from skppdnmf import PrivateDistributedNMF
from skppdnmf._agent import Envelope
from skppdnmf._data.graph import make_network
from skppdnmf._fit.facts import public_facts
from skppdnmf._fit.protocols import protocol_of
from skppdnmf._fit.seeds import common_start, draw_seeds
from skppdnmf._nmf.threads import single_threaded
from skppdnmf._protocol import Hooks, Setting
from skppdnmf._sealing.agent import FINAL
from skppdnmf.exchange import (
    SEALED_BYTES,
    Credentials,
    Identity,
    Roster,
    SealedAgent,
)

RUN = bytes(range(16))
SECONDS = 120
IDENTITIES = {k: Identity(bytes([k + 1]) * 32) for k in range(len(SIZES))}


def site(number, parameters, shape, X, pipe):
    """One party: builds the public facts for itself, holds its own samples alone."""
    try:
        with single_threaded():
            estimator = PrivateDistributedNMF(4, **parameters)
            seeds = draw_seeds(estimator.random_state)
            network = make_network(estimator.adjacency, len(SIZES), seeds.graph)
            protocol = protocol_of(estimator)
            start = common_start(
                estimator.init, 4, shape, seeds.start, protocol.start_scaling(estimator)
            )
            plan = protocol.plan(Setting(estimator, network, start, seeds))
            names = [f"agent {k}" for k in range(len(SIZES))]
            roster = Roster({f"site {k}": one.public for k, one in IDENTITIES.items()})
            facts = public_facts(
                Setting(estimator, network, start, seeds), protocol, plan
            )
            credentials = Credentials(IDENTITIES[number], roster, RUN, facts)
            hooks = Hooks(observed=False, credentials=lambda _: credentials)
            agent = SealedAgent(
                plan.build_one(number, X, names, RUN, hooks),
                credentials,
                network.neighbours[number].tolist(),
                protocol.code,
            )
            step = agent.start()
            while True:
                report = step.report
                pipe.send(
                    (
                        [envelope.to_bytes() for envelope in step.envelopes],
                        report if report is None else report.H.tobytes(),
                        report is not None and report.witness is not None,
                        step.finished,
                    )
                )
                arrived = pipe.recv()
                if arrived is None:
                    return
                step = agent.advance([Envelope.from_bytes(data) for data in arrived])
    except Exception:
        pipe.send(traceback.format_exc())


def carry(parameters, X):
    """Start a process for each agent and carry bytes among them, unread."""
    context = multiprocessing.get_context("spawn")
    ends = np.cumsum([0, *SIZES])
    pipes, processes = [], []
    for i in range(len(SIZES)):
        ours, theirs = context.Pipe()
        part = X[ends[i] : ends[i + 1]]
        process = context.Process(
            target=site, args=(i, parameters, X.shape[1], part, theirs), daemon=True
        )
        process.start()
        pipes.append(ours)
        processes.append(process)
    lefts = [None] * len(SIZES)
    n_reports, n_bytes = [0] * len(SIZES), 0
    try:
        while True:
            boxes = [[] for _ in SIZES]
            over = []
            for i, pipe in enumerate(pipes):
                assert pipe.poll(SECONDS), f"agent {i} does not answer"
                said = pipe.recv()
                assert not isinstance(said, str), said
                data, H, witnessed, finished = said
                assert not witnessed
                over.append(finished)
                if H is not None:
                    n_reports[i] += 1
                    lefts[i] = H
                for one in data:
                    envelope = Envelope.from_bytes(one)
                    if envelope.kind < FINAL:
                        n_bytes += len(one) - SEALED_BYTES
                    # The carrier reads the receiver off the header, and no more.
                    boxes[envelope.receiver].append(one)
            done = all(over)
            for pipe, box in zip(pipes, boxes, strict=True):
                pipe.send(None if done else box)
            if done:
                return lefts, n_reports, n_bytes
    finally:
        for process in processes:
            process.join(10)
            process.kill()


@pytest.mark.parametrize(
    "parameters",
    [
        {"protocol": "secure-sum", "adjacency": "ring"},
        {"encryption": "paillier", "key_size": 256, "max_iter": 2},
        *(
            pytest.param(parameters, marks=pytest.mark.journey)
            for parameters in (
                {"protocol": "secure-sum", "n_init": 2, "alpha_W": 0.01},
                {"encryption": "simulated", "adjacency": "ring"},
                {"encryption": None, "adjacency": "complete", "masking": "scalar"},
            )
        ),
    ],
    ids=lambda parameters: " ".join(map(str, parameters.values())),
)
@pytest.mark.filterwarnings("ignore::skppdnmf.exceptions.InsecureKeyWarning")
def test_same_bits_as_in_one_process(parameters):
    """Nothing but bytes goes from one to another, and the result is the same."""
    parameters = {"max_iter": 5, "tol": 0, "random_state": 0, **parameters}
    X = samples()
    model = PrivateDistributedNMF(4, partition=SIZES, **parameters).fit(X)
    lefts, n_reports, n_bytes = carry(parameters, X)
    assert n_reports == [model.n_iter_] * len(SIZES)
    for left, copy in zip(lefts, model.agent_components_, strict=True):
        assert_array_equal(np.frombuffer(left).reshape(copy.shape), copy)
    assert n_bytes == model.traffic_["bytes"]
