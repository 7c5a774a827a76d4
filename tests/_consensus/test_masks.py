import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf._integers import check_dither, check_masks
from skppdnmf.exchange import (
    MaskStream,
    SlotLayout,
    draw_factors,
    draw_secrets,
    integer_secrets,
    mask_range,
    system_generator,
)

KEY = bytes(range(16))


class FixedWords:
    """A stream of given words."""

    def __init__(self, words):
        self.rest = np.asarray(words, dtype=np.int32)

    def words(self, size):
        drawn, self.rest = self.rest[:size], self.rest[size:]
        return drawn


def layout(n_values, masking="entrywise", mask_bits=12):
    return SlotLayout(n_values, 24, mask_bits, masking, 2048)


def halfway_words(n_masks):
    """Words on either side of every border between two masks, and the ends."""
    borders = (np.arange(-(n_masks // 2) - 1, n_masks // 2 + 1) + 0.5) * 2**32 / n_masks
    words = np.concatenate([np.floor(borders), np.ceil(borders)])
    ends = [-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1]
    return np.concatenate([words.clip(-(2**31), 2**31 - 1), ends])


@pytest.mark.parametrize("mask_bits", range(1, 13))
def test_masks_and_dithers_of_the_words_at_the_borders(mask_bits):
    least, most = mask_range(mask_bits)
    n_masks = (most - least) // 2 + 1
    words = halfway_words(n_masks)
    slots = layout(len(words), mask_bits=mask_bits)
    (masks,), (dithers,) = draw_secrets([FixedWords(words)], slots)
    assert masks.min() == least
    assert masks.max() == most
    assert (masks % 2 == 1).all()
    assert (2 * abs(dithers) < masks).all()
    # The same in exact arithmetic.
    for word, mask, dither in zip(words.tolist(), masks, dithers, strict=True):
        numerator = int(word) * n_masks  # of a fraction over 2**32
        index = round_half_even(numerator, 2**32)
        assert mask == 2 * index + (least + most) // 2
        rest = (numerator - index * 2**32) * int(mask)
        assert dither == round_half_even(rest, 2**32)


def round_half_even(numerator, denominator):
    quotient, rest = divmod(numerator, denominator)
    return quotient + (
        2 * rest > denominator or (2 * rest == denominator and quotient % 2)
    )


@pytest.mark.parametrize("word", [-(2**31), 2**31 - 1, 0])
def test_dithers_of_scalar_masks_at_the_ends(word):
    """Of every mask."""
    least, most = mask_range(12)
    n_masks = (most - least) // 2 + 1
    for index in range(-(n_masks // 2), n_masks // 2 + 1):
        # The mask takes a block of the cipher, four words.
        words = [round(index * 2**32 / n_masks), 0, 0, 0, word]
        (mask,), (dither,) = draw_secrets([FixedWords(words)], layout(1, "scalar"))
        assert mask == 2 * index + (least + most) // 2
        assert 2 * abs(dither[0]) < mask[0]


@pytest.mark.parametrize("mask_bits", [5, 8, 12])
def test_masks_are_uniform(mask_bits):
    least, most = mask_range(mask_bits)
    masks, _ = draw_secrets([MaskStream(KEY)], layout(400_000, mask_bits=mask_bits))
    values, counts = np.unique(masks, return_counts=True)
    assert values.tolist() == list(range(least, most + 1, 2))
    expected = 400_000 / len(values)
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert abs(chi_square - len(values)) < 6 * np.sqrt(2 * len(values))


@pytest.mark.parametrize("masking", ["scalar", "entrywise"])
def test_dithers_cover_their_range_evenly(masking):
    streams = MaskStream(KEY).spawn(40)
    masks, dithers = draw_secrets(streams, layout(20_000, masking, mask_bits=6))
    masks = np.broadcast_to(masks, dithers.shape)
    for mask in np.unique(masks):
        values, counts = np.unique(dithers[masks == mask], return_counts=True)
        half = (mask - 1) // 2
        assert values.tolist() == np.arange(-half, half + 1).tolist()
        expected = counts.sum() / mask
        assert (abs(counts - expected) < 6 * np.sqrt(expected)).all()


@given(
    st.integers(1, 3), st.integers(1, 70_000), st.sampled_from(["scalar", "entrywise"])
)
@settings(deadline=None, max_examples=25)
def test_draws_are_those_of_each_stream_alone(n, size, masking):
    """However many edges and values are drawn at once."""
    slots = layout(size, masking)
    streams = MaskStream(KEY).spawn(n)
    masks, dithers = draw_secrets(streams, slots)
    for stream, row, dither in zip(
        MaskStream(KEY).spawn(n), masks, dithers, strict=True
    ):
        alone = integer_secrets(stream, slots)
        np.testing.assert_array_equal(
            alone[0], row if masking == "entrywise" else row[0]
        )
        np.testing.assert_array_equal(alone[1], dither)
        check_dither(alone[1], check_masks(alone[0], slots), slots)


@pytest.mark.parametrize("mask_bits", [13, 62])
def test_masks_too_wide_to_draw(mask_bits):
    with pytest.raises(ValueError, match=rf"mask_bits={mask_bits} .*<= 12"):
        draw_secrets([MaskStream(KEY)], layout(3, mask_bits=mask_bits))


def test_factors():
    factors = draw_factors(MaskStream(KEY).spawn(3), 50_000, "entrywise")
    assert factors.shape == (3, 50_000)
    assert factors.min() >= 0.1
    assert factors.max() < 1.0
    assert abs(factors.mean() - 0.55) < 0.005
    assert draw_factors(MaskStream(KEY).spawn(3), 7, "scalar").shape == (3, 1)


def test_streams_are_reproducible_where_keyed_and_not_elsewhere():
    seed = np.random.SeedSequence(3)
    one, same = MaskStream.from_seed(seed), MaskStream.from_seed(seed)
    np.testing.assert_array_equal(one.words(9), same.words(9))
    other = MaskStream.from_seed(np.random.SeedSequence(4))
    assert one.words(9).tolist() != other.words(9).tolist()
    np.random.seed(0)  # noqa: NPY002
    first = MaskStream().words(9).tolist()
    np.random.seed(0)  # noqa: NPY002
    assert first != MaskStream().words(9).tolist()


def test_a_stream_goes_on_after_its_pickle():
    stream = MaskStream(KEY)
    stream.words(5)
    copy = pickle.loads(pickle.dumps(stream))
    np.testing.assert_array_equal(copy.words(70_000), stream.words(70_000))
    np.testing.assert_array_equal(copy.words(3), stream.words(3))


def test_no_word_is_drawn_twice():
    stream = MaskStream(KEY)
    words = np.concatenate([stream.words(size) for size in (1, 5, 1000, 40_000, 3)])
    pairs = words[:-1].astype(np.int64) * 2**32 + words[1:]
    assert len(np.unique(pairs)) == len(pairs)
    first, second = stream.spawn(2)
    assert first.words(9).tolist() != second.words(9).tolist()


def test_keys_of_the_wrong_length_and_secrets_in_repr():
    with pytest.raises(ValueError, match="key has 5 bytes, expected 16"):
        MaskStream(b"short")
    assert repr(MaskStream(KEY)) == "MaskStream()"


def test_system_generators_differ():
    np.random.seed(0)  # noqa: NPY002
    one = system_generator().integers(2**62)
    np.random.seed(0)  # noqa: NPY002
    assert one != system_generator().integers(2**62)
