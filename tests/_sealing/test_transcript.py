"""Transcripts: equal for those who were told the same, else not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skppdnmf._sealing.transcript import Position, SharedHashes, Transcript

news = st.lists(
    st.tuples(st.just("tell"), st.binary(max_size=4))
    | st.tuples(st.just("depart"), st.sets(st.integers(0, 5))),
    max_size=6,
)


def told(news, run=bytes(16), facts=b"facts", members=range(6)):
    transcript = Transcript(run, facts, members)
    for kind, what in news:
        getattr(transcript, kind)(what)
    return transcript


def split(news):
    return tuple([what for kind, what in news if kind == k] for k in ("tell", "depart"))


@given(news, news)
def test_digests_are_equal_if_and_only_if_totals_and_members_are(one, other):
    """Departures and totals in whatever order of the two kinds."""
    same = split(one) == split(other)
    assert (told(one).digest() == told(other).digest()) == same
    if same:
        assert told(one).position == told(other).position


@given(news)
def test_a_position_keeps_its_digest(news):
    transcript = Transcript(bytes(16), b"facts", range(6))
    digests = {transcript.position: transcript.digest()}
    for kind, what in news:
        getattr(transcript, kind)(what)
        digests[transcript.position] = transcript.digest()
    assert len(set(digests.values())) == len(digests)
    for position, digest in digests.items():
        assert transcript.reaches(position)
        assert transcript.digest(position) == digest
    epoch, n_told = transcript.position
    assert not transcript.reaches(Position(epoch + 1, 0))
    assert not transcript.reaches(Position(0, n_told + 1))


@pytest.mark.parametrize(
    "changed", [{"run": b"\1" + bytes(15)}, {"facts": b"other"}, {"members": range(5)}]
)
def test_run_facts_and_members_are_in_it(changed):
    news = [("tell", b"total")]
    assert told(news).digest() != told(news, **changed).digest()


def test_arrays_are_told_as_their_bytes():
    words = np.arange(3, dtype="<u8")
    assert (
        told([("tell", words)]).digest() == told([("tell", words.tobytes())]).digest()
    )


@pytest.mark.parametrize("n_words", [0, 5, 5000])
def test_agents_of_one_process_hash_a_total_once_and_a_changed_one_anew(n_words):
    shared = SharedHashes()
    totals = [np.arange(n_words, dtype="<u8") for _ in range(3)]
    if n_words:
        totals[1][-1] ^= np.uint64(1)
    for order in ([0, 0, 1, 0], [0, 1, 1, 2], [1, 0]):
        apart, together = (
            [Transcript(bytes(16), b"facts", range(3), one) for _ in order]
            for one in (None, shared)
        )
        for _ in range(2):
            for place, which in enumerate(order):
                apart[place].tell(totals[which])
                given = totals[which].copy()
                together[place].tell(given)
                given[:] = 7  # what is done to it afterwards is nothing to the others
        for one, other in zip(apart, together, strict=True):
            assert one.digest() == other.digest()
