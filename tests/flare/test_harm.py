"""Envelopes that are lost, doubled, delayed, reordered, damaged, or of another run."""

import re
import threading

import pytest
from _sites import NAMES, federate, last, make_job, make_sites, samples
from numpy.testing import assert_array_equal
from test_party import ALL_REHEARSE, CONSENSUS, SUMS, fails, in_one_process, job

from skppdnmf import PrivateDistributedNMF
from skppdnmf._agent import Envelope
from skppdnmf._sealing.agent import HELLO
from skppdnmf.exceptions import FederationError
from skppdnmf.flare import load
from skppdnmf.flare.frames import split

HARMS = ("drop", "duplicate", "bit", "truncate", "other run", "other kind")
NAMED = (
    "CorruptedMessageError|ForgedMessageError|ReplayedMessageError|DropoutError"
    "|TranscriptMismatchError"
)


def damaged(envelopes, harm, at=0):
    """Return the envelopes of a turn, of which one has come to harm."""
    first = envelopes[at]
    before, rest = envelopes[:at], envelopes[at + 1 :]
    one = Envelope.from_bytes(first)
    if harm == "drop":
        return before + rest
    if harm == "duplicate":
        return [first, *envelopes]
    if harm == "bit":
        flipped = bytearray(first)
        flipped[-20] ^= 4
        return [*before, bytes(flipped), *rest]
    if harm == "truncate":
        return [*before, one._replace(body=one.body[:-1]).to_bytes(), *rest]
    if harm == "other kind":
        return [*before, one._replace(kind=one.kind ^ 1).to_bytes(), *rest]
    return [*before, one._replace(run=bytes(16)).to_bytes(), *rest]


def kinds_on_the_way(mail):
    """Return where each kind of envelope is first among those of a turn."""
    found = {}
    for at, envelope in enumerate(split(mail)):
        found.setdefault(Envelope.from_bytes(envelope).kind, at)
    return found


def kinds_of(tmp_path, parameters):
    """Return all kinds of envelope that are sent in a run."""
    root = make_sites(tmp_path / "whole", None, ALL_REHEARSE)
    kinds = {}

    def meddle(name, method, given, call):
        if method == "advance":
            kinds.update(kinds_on_the_way(given[0]))
        return call(*given)

    run, _ = federate(root, job(parameters), tmp_path / "whole-relay", meddle)
    run.to_the_end()
    return sorted(kinds)


def once(kind, harm):
    """Do harm to the first envelope of a kind that any site is to be sent."""
    done = []
    lock = threading.Lock()  # sites are called at the same time

    def meddle(name, method, given, call):
        at = kinds_on_the_way(given[0]).get(kind) if method == "advance" else None
        if at is not None:
            with lock:
                first = not done
                done.append(kind)
            if first:
                return call(b"".join(damaged(split(given[0]), harm, at)))
        return call(*given)

    return meddle, done


FEW = {"max_iter": 2, "adjacency": "path"}


@pytest.mark.parametrize(
    ("parameters", "n_kinds"),
    [({**SUMS, **FEW}, 7), ({**CONSENSUS, "max_iter": 1, "adjacency": "path"}, 5)],
    ids=["sums", "consensus"],
)
def test_harm_at_every_kind_ends_the_run_by_a_named_error(
    tmp_path, parameters, n_kinds
):
    """Hello, features, keys, sums or requests and replies, final signatures."""
    kinds = kinds_of(tmp_path, parameters)
    assert len(kinds) >= n_kinds
    root = make_sites(tmp_path / "sites", None, ALL_REHEARSE)
    for kind in kinds:
        for harm in HARMS:
            meddle, done = once(kind, harm)
            run, _ = federate(root, job(parameters), tmp_path / "relay", meddle)
            with pytest.raises(FederationError, match=NAMED):
                run.to_the_end()
            assert done
            for name in NAMES:
                ended = last(root, name)
                assert ended["run"] == run.progress()["run"]
                assert (ended["event"], "Error" in ended["error"]) == ("failed", True)
            assert not list(root.glob("*/results/*/components.npz"))


@pytest.mark.parametrize(
    "parameters",
    [{**SUMS, **FEW}, {**CONSENSUS, "max_iter": 1, "adjacency": "path"}],
    ids=["sums", "consensus"],
)
@pytest.mark.parametrize("how", ["later", "reversed"])
def test_delay_at_every_kind_changes_nothing_or_is_named(tmp_path, parameters, how):
    """An envelope comes a turn later, or those of a turn the other way round."""
    X = samples()
    expected = in_one_process(X, **parameters)
    finished, lock = 0, threading.Lock()
    root = make_sites(tmp_path / "sites", X, ALL_REHEARSE)
    for kind in kinds_of(tmp_path, parameters):
        kept, done = [], []

        def meddle(name, method, given, call, kind=kind, kept=kept, done=done):
            if method != "advance":
                return call(*given)
            envelopes = split(given[0])
            here = kinds_on_the_way(given[0])
            with lock:
                if not done and kind in here:
                    done.append(name)
                    begins = True
                else:
                    begins = False
            if kept and done == [name]:
                envelopes = [kept.pop(), *envelopes]
            elif begins:
                if how == "reversed":
                    envelopes.reverse()
                else:
                    kept.append(envelopes.pop(here[kind]))
            return call(b"".join(envelopes))

        run, direct = federate(root, job(parameters), tmp_path / "relay", meddle)
        try:
            run.to_the_end()
        except FederationError as error:
            assert re.search(NAMED, str(error)), error  # noqa: PT017 - or it finishes
            continue
        assert done
        finished += 1
        folders = direct.results(run.progress()["run"])
        for k, folder in enumerate(folders.values()):
            H = load(folder).components_
            assert_array_equal(H, expected.agent_components_[k])
    assert finished >= 3


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
