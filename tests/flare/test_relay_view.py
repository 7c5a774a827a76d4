"""What the relay has seen of a run, given to the audit."""

from types import SimpleNamespace

import numpy as np
from _sites import SIZES, federate, make_sites, samples
from test_party import SUMS, job

from skppdnmf import PrivateDistributedNMF
from skppdnmf._agent import Envelope
from skppdnmf._secure_sum.messages import SUM_UP, SumMessage
from skppdnmf.audit import EavesdropperAttack, LinkView, record
from skppdnmf.audit._views.sums import SumLetter

MANY = {**SUMS, "max_iter": 20}


def view_of(public, envelopes):
    """Return what a carrier has seen as a view of links.

    All that envelopes hold, whatever its kind, is read as words of masked sums, the
    first two left out: a seal's counter, which counts for all alike.
    """
    letters = {}
    for turn, one in envelopes:
        body = one.body[16 : len(one.body) // 8 * 8]
        words = np.frombuffer(body, dtype="<u8").astype(np.uint64)
        message = SumMessage(SUM_UP, 0, turn, words)
        data = one._replace(kind=SUM_UP, body=message.to_bytes()).to_bytes()
        edge = one.sender, one.receiver
        letter = SumLetter(
            turn, *edge, "masked sum", 0, turn, len(words), 0, len(data), data
        )
        letters.setdefault(edge, []).append(letter)
    return LinkView(public, {edge: tuple(some) for edge, some in letters.items()})


def relay_view(tmp_path, name, X, public):
    """Run a federation, and return all that its relay has carried of the sums."""
    seen = []
    root = make_sites(tmp_path / f"{name}-sites", X)
    run, _ = federate(
        root, job(MANY), tmp_path / name, tap=lambda turn, one: seen.append((turn, one))
    )
    run.to_the_end()
    # Hello and the last signatures are signed, not sealed: they are public.
    return view_of(public, [(turn, one) for turn, one in seen if one.kind < 250]), seen


def test_the_audit_finds_nothing_in_what_the_relay_carries(tmp_path):
    """Nor in what tells it from that of other data; bare summands are found at once."""
    X = samples(30)
    estimator = PrivateDistributedNMF(3, partition=list(SIZES), **MANY)
    bare = [record(estimator, factor * X) for factor in (1.0, 1e3)]
    public = bare[0].public
    one, seen = relay_view(tmp_path, "one", X, public)
    other, seen_there = relay_view(tmp_path, "other", 1e3 * X, public)
    details = EavesdropperAttack(SimpleNamespace(links=other)).read(one)
    assert details["words"] > 5_000
    assert details["in_clear"] == []
    assert details["repeated"] == details["same_stream"] == 0
    assert details["uniform"]["masked sum"] > 1e-6
    assert details["error"] > 0.44
    # Of sizes and headers the relay knows what it would know of any data.
    headers = [
        [(turn, *each[1:6], len(each.body)) for turn, each in envelopes]
        for envelopes in (seen, seen_there)
    ]
    assert sorted(headers[0]) == sorted(headers[1])
    # The same eyes on the same summands without masks and seals.
    open_views = [
        view_of(
            public,
            [
                (each.step, Envelope(bytes(16), 2, agent, 0, 0, 0, padded(each.words)))
                for agent in transcript.agents[1:]
                for each in transcript.view(agent).sums
            ],
        )
        for transcript in bare
    ]
    attack = EavesdropperAttack(SimpleNamespace(links=open_views[1]))
    assert attack.read(open_views[0])["uniform"]["masked sum"] < 1e-9


def padded(words):
    """Return words behind as many bytes as `view_of` leaves out."""
    return bytes(16) + np.ascontiguousarray(words, dtype="<u8").tobytes()
