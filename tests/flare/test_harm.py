"""Envelopes that are lost, doubled, delayed, reordered, damaged, or of another run."""

import pytest
from _sites import NAMES, federate, last, make_job, make_sites, samples
from numpy.testing import assert_array_equal
from test_party import ALL_REHEARSE, CONSENSUS, SUMS, fails, in_one_process, job

from skppdnmf import PrivateDistributedNMF
from skppdnmf._agent import Envelope
from skppdnmf._sealing.agent import HELLO
from skppdnmf.flare import load
from skppdnmf.flare.frames import split


def damaged(envelopes, harm):
    """Return the envelopes of a turn, of which the first has come to harm."""
    first, *rest = envelopes
    one = Envelope.from_bytes(first)
    if harm == "drop":
        return rest
    if harm == "duplicate":
        return [first, *envelopes]
    if harm == "bit":
        flipped = bytearray(first)
        flipped[-20] ^= 4
        return [bytes(flipped), *rest]
    if harm == "truncate":
        return [one._replace(body=one.body[:-1]).to_bytes(), *rest]
    return [one._replace(run=bytes(16)).to_bytes(), *rest]


@pytest.mark.parametrize("parameters", [SUMS, CONSENSUS], ids=["sums", "consensus"])
@pytest.mark.parametrize("at", [0, 1, 2, 5], ids=lambda at: f"turn {at}")
@pytest.mark.parametrize("harm", ["drop", "duplicate", "bit", "truncate", "other run"])
def test_harm_ends_the_run_by_a_named_error(tmp_path, parameters, at, harm):
    """To a hello, to features, to keys, and to what follows."""
    root = make_sites(tmp_path / "sites", None, ALL_REHEARSE)
    turns = []

    def meddle(name, method, given, call):
        if name == "site-2" and method == "advance" and given[0]:
            turns.append(given)
            if len(turns) == at + 1:
                return call(b"".join(damaged(split(given[0]), harm)))
        return call(*given)

    run, _ = federate(root, job(parameters), tmp_path / "relay", meddle)
    fails(
        run,
        "CorruptedMessageError|ForgedMessageError|ReplayedMessageError|DropoutError"
        "|TranscriptMismatchError",
    )
    assert len(turns) > at
    for name in NAMES:
        done = last(root, name)
        assert done["event"] == "failed"
        assert "Error" in done["error"]
        assert not list((root / name / "results").glob("*/components.npz"))


def held_back(of, until):
    """Hold back what one site sends to site-2 until it has sent more, or a turn."""
    kept = []

    def meddle(name, method, given, call):
        if name != "site-2" or method != "advance" or kept[1:]:
            return call(*given)
        envelopes = split(given[0])
        senders = [Envelope.from_bytes(one).sender for one in envelopes]
        if not kept:
            if of in senders and Envelope.from_bytes(envelopes[0]).kind != HELLO:
                kept.append(envelopes.pop(senders.index(of)))
        elif until == "a turn":
            envelopes.insert(0, kept[0])
            kept.append(None)
        elif of in senders:
            envelopes.append(kept[0])
            kept.append(None)
        return call(b"".join(envelopes))

    return meddle, kept


def test_what_overtakes_what_was_sent_before_it_is_refused(tmp_path):
    root = make_sites(tmp_path / "sites", None, ALL_REHEARSE)
    meddle, kept = held_back(0, "more")
    run, _ = federate(root, job(CONSENSUS), tmp_path / "relay", meddle)
    fails(run, "ReplayedMessageError: .*site-2.*refused from .*site-1")
    assert kept[1:]


def test_what_is_late_changes_nothing(tmp_path):
    X = samples()
    root = make_sites(tmp_path / "sites", X)
    meddle, kept = held_back(0, "a turn")
    path = {**SUMS, "adjacency": "path"}
    run, direct = federate(root, job(path), tmp_path / "relay", meddle)
    run.to_the_end()
    assert kept[1:]
    here = load(direct.results(run.progress()["run"])["site-3"])
    assert_array_equal(here.components_, in_one_process(X, **path).components_)


@pytest.mark.parametrize("gone", range(1, 14, 3))
@pytest.mark.parametrize("on_dropout", ["raise", "continue"])
def test_a_site_lost_at_any_time_ends_it_or_is_done_without(tmp_path, gone, on_dropout):
    """In the setup, in a sum, between sums and near the end: never is it left open."""
    root = make_sites(tmp_path / "sites")
    estimator = PrivateDistributedNMF(
        3, **{**SUMS, "max_iter": 4}, on_dropout=on_dropout
    )
    calls = []

    def meddle(name, method, given, call):
        if name == "site-1":
            calls.append(method)
            if len(calls) > gone:
                raise TimeoutError("gone")
        return call(*given)

    run, direct = federate(root, make_job(estimator), tmp_path / "relay", meddle)
    try:
        run.to_the_end()
        state = run.progress()["ended"]
    except Exception as error:
        state = f"{type(error).__name__}: {error}"
    finished = state == "finished"
    if on_dropout == "raise":
        assert "site-1 cannot be reached" in state
    else:
        assert finished or "dropped out" in state or "cannot be reached" in state
    folders = direct.results(run.progress()["run"])
    for name in NAMES[1:]:
        done = last(root, name)
        assert done["event"] == ("finished" if finished else "failed")
        assert finished == (folders[name] / "components.npz").exists()
        if not finished:
            assert "site-1" in done["error"]
