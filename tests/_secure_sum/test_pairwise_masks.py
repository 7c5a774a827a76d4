"""Pairwise masks: they cancel, are what the keys say, and no word comes twice."""

import pickle
from hashlib import blake2b

import numpy as np
import pytest
from _sums import RARE, p_uniform, words_of
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf._secure_sum import masks as pairwise
from skppdnmf.exceptions import CorruptedMessageError
from skppdnmf.exchange import PUBLIC_KEY_BYTES, PairwiseMasks

CHUNK = pairwise._CHUNK_WORDS


def agreed(n_agents):
    everyone = [PairwiseMasks(i) for i in range(n_agents)]
    keys = {one.number: one.public_key for one in everyone}
    for one in everyone:
        one.agree({i: key for i, key in keys.items() if i != one.number})
    return everyone


def others(everyone, number):
    return [one.number for one in everyone if one.number != number]


@settings(max_examples=30, deadline=None)
@given(
    st.integers(2, 6),
    st.one_of(st.integers(0, 50), st.integers(CHUNK - 2, CHUNK + 2)),
    st.integers(0, 2**64 - 1),
)
def test_masks_cancel_in_the_total(n_agents, n_words, round_number):
    everyone = agreed(n_agents)
    rng = np.random.default_rng(n_words)
    summands = [words_of(rng, n_words) for _ in everyone]
    total = sum(
        one.mask(words, round_number, others(everyone, one.number))
        for one, words in zip(everyone, summands, strict=True)
    )
    np.testing.assert_array_equal(total, sum(summands))


def test_summand_is_left_alone():
    one, _ = agreed(2)
    words = np.arange(5, dtype=np.uint64)
    one.mask(words, 0, [1])
    np.testing.assert_array_equal(words, np.arange(5))


@pytest.mark.parametrize("n_words", [1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 3])
def test_stream_is_aes_in_counter_mode(n_words):
    """An independent expansion in one piece, from the place of round and transcript."""
    one, other = agreed(2)
    key, place_key = one._seeds[1], one._place_keys[1]
    assert (key, place_key) == (other._seeds[0], other._place_keys[0])
    assert len(key) == len(place_key) == 16
    assert key != place_key
    told = b"what both have been told"
    for round_number in (0, 1, 2**32 + 5, 2**64 - 1):
        said = round_number.to_bytes(8, "big") + told
        counter = blake2b(said, key=place_key, digest_size=16).digest()
        encryptor = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()
        stream = np.frombuffer(encryptor.update(bytes(8 * n_words)), dtype="<u8")
        words = words_of(np.random.default_rng(0), n_words)
        np.testing.assert_array_equal(
            one.mask(words, round_number, [1], told), words + stream
        )
        np.testing.assert_array_equal(
            other.mask(words, round_number, [0], told), words - stream
        )


def test_masks_of_those_who_have_been_told_different_things_do_not_cancel():
    one, other = agreed(2)
    zeros = np.zeros(3000, dtype=np.uint64)
    total = one.mask(zeros, 0, [1], b"a") + other.mask(zeros, 0, [0], b"b")
    assert p_uniform([total]) > RARE
    total = one.mask(zeros, 0, [1], b"a") + other.mask(zeros, 0, [0], b"a")
    assert not total.any()


def test_seeds_depend_on_what_has_been_told():
    one, other = PairwiseMasks(0), PairwiseMasks(1)
    one.agree({1: other.public_key}, {1: other.public_key}, b"a")
    other.agree({0: one.public_key}, {0: one.public_key}, b"b")
    assert one._seeds[1] != other._seeds[0]
    assert one._link_seeds[1] != other._link_seeds[0]


def test_no_word_comes_twice():
    """Over rounds, pairs, and keys made anew."""
    seen = []
    for _ in range(2):
        everyone = agreed(4)
        for one in everyone:
            for other in others(everyone, one.number):
                if other > one.number:
                    zeros = np.zeros(3000, dtype=np.uint64)
                    seen += [one.mask(zeros, r, [other]) for r in (0, 1, 2, 1 << 32)]
    words = np.concatenate(seen)
    assert len(np.unique(words)) == len(words)
    assert p_uniform(seen) > RARE


def test_rounds_do_not_overlap_however_long():
    """A round's counters start where no other round's can end."""
    one, _ = agreed(2)
    zeros = np.zeros(4 * CHUNK, dtype=np.uint64)
    first, second = one.mask(zeros, 0, [1]), one.mask(zeros, 1, [1])
    assert not np.isin(first, second).any()


def test_a_round_number_beyond_the_counter_is_refused():
    one, _ = agreed(2)
    with pytest.raises(OverflowError):
        one.mask(np.zeros(1, dtype=np.uint64), 2**64, [1])


def test_keys_are_fresh():
    keys = {PairwiseMasks(0).public_key for _ in range(20)}
    assert len(keys) == 20
    assert {len(key) for key in keys} == {PUBLIC_KEY_BYTES}


def test_the_seed_depends_on_both_keys_and_the_pair():
    everyone = agreed(5)
    seeds = {seed for one in everyone for seed in one._seeds.values()}
    assert len(seeds) == 10
    for one in everyone:
        for other in everyone:
            if one is not other:
                assert one._seeds[other.number] == other._seeds[one.number]


def test_the_private_key_is_forgotten():
    one, other = PairwiseMasks(0), PairwiseMasks(1)
    private = one._private
    assert private is not None
    one.agree({1: other.public_key})
    assert one._private is None
    assert private not in pickle.dumps(one)
    with pytest.raises(RuntimeError, match="agent 0"):
        one.agree({1: other.public_key})


def test_the_representation_shows_no_secret():
    one, _ = agreed(2)
    text = repr(one)
    assert text == "PairwiseMasks(number=0, pairs=1)"
    assert repr(one._seeds[1])[2:-1] not in text


def test_travels_to_another_process():
    one, other = agreed(2)
    words = np.arange(9, dtype=np.uint64)
    copy = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(copy.mask(words, 3, [1]), one.mask(words, 3, [1]))
    fresh = PairwiseMasks(0)
    moved = pickle.loads(pickle.dumps(fresh))
    for party in (fresh, moved):
        party.agree({1: other.public_key})
    assert fresh._seeds == moved._seeds


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), bytes(32)])
def test_what_is_no_public_key_is_refused(key):
    """The last one is a point of low order: every secret with it is the same."""
    with pytest.raises(CorruptedMessageError, match="agent 7"):
        PairwiseMasks(0).agree({7: key})


def test_totals_on_a_link_are_read_by_the_other_end_alone():
    one, other, third = (PairwiseMasks(k) for k in range(3))
    keys = {masks.number: masks.public_key for masks in (one, other, third)}
    for masks in (one, other, third):
        others = {k: key for k, key in keys.items() if k != masks.number}
        masks.agree(others, others)
    words = np.arange(40_000, dtype=np.uint64)
    hidden = one.hide(words, 1, 7)
    np.testing.assert_array_equal(other.reveal(hidden, 0, 7), words)
    assert not np.isin(third.reveal(hidden, 0, 7), words).any()
    assert not np.isin(other.reveal(hidden, 0, 8), words).any()
    # Neither is it the stream that masks a summand of the same number.
    zeros = np.zeros(5, dtype=np.uint64)
    assert not np.isin(one.hide(zeros, 1, 7), one.mask(zeros, 7, [1])).any()
