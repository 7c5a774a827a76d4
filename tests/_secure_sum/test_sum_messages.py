"""Messages of the secure sum: bytes there and back, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf._agent import ENVELOPE_BYTES
from skppdnmf.exceptions import CorruptedMessageError
from skppdnmf.exchange import (
    KEY_ENTRY_BYTES,
    KEYS_DOWN,
    KEYS_UP,
    STATE_DOWN,
    STATE_UP,
    SUM_DOWN,
    SUM_HEADER_BYTES,
    SUM_KIND_NAMES,
    SUM_UP,
    WORD_BYTES,
    SumMessage,
)

# Without the envelope's.
HEADER_BYTES = SUM_HEADER_BYTES - ENVELOPE_BYTES
KINDS = (KEYS_UP, KEYS_DOWN, SUM_UP, SUM_DOWN, STATE_UP, STATE_DOWN)


@settings(max_examples=100)
@given(
    st.sampled_from(KINDS),
    st.integers(0, 2**16 - 1),
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 2**64 - 1), max_size=20),
    st.dictionaries(
        st.integers(0, 2**32 - 1), st.binary(min_size=32, max_size=32), max_size=5
    ),
    st.booleans(),
)
def test_there_and_back(kind, epoch, step, words, keys, last):
    words_ = np.array(words, dtype=np.uint64)
    message = SumMessage(kind, epoch, step, words_, keys, last)
    data = message.to_bytes()
    assert len(data) == message.n_bytes
    assert message.n_bytes == (
        HEADER_BYTES + WORD_BYTES * len(words) + KEY_ENTRY_BYTES * len(keys)
    )
    back = SumMessage.from_bytes(data, kind, step)
    assert (back.kind, back.epoch, back.step) == (kind, epoch, step)
    assert back.last is last
    assert back.words.dtype == np.uint64
    np.testing.assert_array_equal(back.words, np.array(words, dtype=np.uint64))
    assert back.keys == keys
    assert back.n_ciphertexts == 0


def test_every_kind_has_a_name():
    assert sorted(KINDS) == list(range(len(SUM_KIND_NAMES)))


def test_words_are_little_endian():
    data = SumMessage(SUM_UP, 0, 0, np.array([1], dtype=np.uint64)).to_bytes()
    assert data[HEADER_BYTES:] == b"\x01" + bytes(7)


def test_words_that_were_read_can_be_added_to():
    message = SumMessage(SUM_UP, 0, 0, np.array([1, 2], dtype=np.uint64))
    words = SumMessage.from_bytes(message.to_bytes(), SUM_UP, 0).words
    words += np.uint64(1)
    assert words.tolist() == [2, 3]


@settings(max_examples=50)
@given(st.data())
def test_cut_or_lengthened_messages_are_refused(data):
    message = SumMessage(
        SUM_UP, 1, 2, np.arange(3, dtype=np.uint64), {4: bytes(32), 5: bytes(32)}
    ).to_bytes()
    length = data.draw(st.integers(0, len(message) - 1))
    with pytest.raises(CorruptedMessageError):
        SumMessage.from_bytes(message[:length], SUM_UP, 2)
    more = data.draw(st.binary(min_size=1, max_size=100))
    with pytest.raises(CorruptedMessageError):
        SumMessage.from_bytes(message + more, SUM_UP, 2)


@pytest.mark.parametrize("kind", [len(SUM_KIND_NAMES), 255, -1])
def test_unknown_kind_is_refused(kind):
    data = SumMessage(SUM_UP, 0, 0).to_bytes()
    with pytest.raises(
        CorruptedMessageError, match=rf"kind {kind}, the kinds are 0 to 5"
    ):
        SumMessage.from_bytes(data, kind, 0)


@pytest.mark.parametrize("flag", [2, 255])
def test_flags_that_have_no_meaning_are_refused(flag):
    data = bytearray(SumMessage(SUM_UP, 0, 0, last=True).to_bytes())
    [place] = [k for k, byte in enumerate(data) if byte]
    data[place] = flag
    with pytest.raises(CorruptedMessageError, match=rf"masked sum .* flags are {flag}"):
        SumMessage.from_bytes(bytes(data), SUM_UP, 0)


def test_two_keys_of_one_agent_are_refused():
    data = SumMessage(KEYS_UP, 0, 0, keys={1: bytes(32), 2: bytes(32)}).to_bytes()
    twice = data[:-KEY_ENTRY_BYTES] + data[HEADER_BYTES:][:KEY_ENTRY_BYTES]
    with pytest.raises(CorruptedMessageError, match="2 keys of 1 agents"):
        SumMessage.from_bytes(twice, KEYS_UP, 0)
