import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skppdnmf._integers import check_dither, check_masks, check_values
from skppdnmf._paillier.slots import pack_slots, unpack_slots
from skppdnmf.exchange import SlotLayout


def layout(n_values=10, value_bits=24, mask_bits=12, masking="scalar", key_size=2048):
    return SlotLayout(n_values, value_bits, mask_bits, masking, key_size)


def modulus(key_size):
    """The smallest odd number of that many bits: the tightest modulus."""
    return 2 ** (key_size - 1) + 1


def roundtrip(numbers, slots):
    dtype = slots.bits_value_dtype
    packed = pack_slots(np.array(numbers, dtype=dtype), slots.reply_bits, slots)
    n = modulus(slots.key_size)
    return unpack_slots([p % n for p in packed], n, slots)


@pytest.mark.parametrize("masking", ["scalar", "entrywise"])
def test_layout_counts(masking):
    slots = layout(n_values=105, masking=masking)
    assert slots.slot_bits == 24 + 1 + 12 + 1 + 1
    assert slots.slots_per_plaintext == 2047 // 39
    assert slots.n_reply_ciphertexts == 3
    assert slots.n_request_ciphertexts == (3 if masking == "scalar" else 105)
    assert slots.bits_value_dtype == np.int64


def test_one_slot_or_a_clear_error():
    smallest = SlotLayout.smallest_key(80, 12)
    assert layout(value_bits=80, key_size=smallest).slots_per_plaintext == 1
    with pytest.raises(OverflowError, match=r"key_size=90.*slot_bits=95.*96 bits"):
        layout(value_bits=80, key_size=90)
    # The paper's key with six decimal digits and 12 bits of mask.
    assert layout(value_bits=24, key_size=128).slots_per_plaintext == 3


@pytest.mark.parametrize("bits", [1, 20, 33, 50, 51, 52, 200])
def test_dtype_follows_the_largest_intermediate(bits):
    slots = layout(value_bits=bits, mask_bits=12)
    assert (slots.bits_value_dtype == np.int64) == (bits + 1 + 12 <= 63)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"n_values": 0}, ValueError),
        ({"n_values": 2.0}, TypeError),
        ({"n_values": True}, TypeError),
        ({"value_bits": 0}, ValueError),
        ({"value_bits": 5000}, ValueError),
        ({"mask_bits": 63}, ValueError),
        ({"masking": "none"}, ValueError),
    ],
)
def test_invalid_layouts(change, error):
    with pytest.raises(error, match=next(iter(change))):
        layout(**change)


def test_layout_travels():
    slots = layout(n_values=np.int64(5))
    assert slots.slot_bits == 39
    copy = pickle.loads(pickle.dumps(slots))
    assert copy == slots
    assert hash(copy) == hash(slots)
    assert b"slot_bits" not in pickle.dumps(slots)
    assert copy.slots_per_plaintext == slots.slots_per_plaintext


@pytest.mark.parametrize(("value_bits", "mask_bits"), [(24, 12), (50, 12), (60, 20)])
@pytest.mark.parametrize("n_values", [1, 2, 5, 7])
def test_bounds_in_every_slot(value_bits, mask_bits, n_values):
    key_size = SlotLayout.smallest_key(value_bits, mask_bits) * 3
    slots = layout(n_values, value_bits, mask_bits, key_size=key_size)
    assert slots.slots_per_plaintext >= 2
    top = 2**slots.reply_bits - 1
    for extreme in (top, -top, 0, 1, -1):
        assert roundtrip([extreme] * n_values, slots).tolist() == [extreme] * n_values
        for position in range(n_values):
            numbers = [-extreme] * n_values
            numbers[position] = extreme
            assert roundtrip(numbers, slots).tolist() == numbers


@given(st.data())
def test_pack_and_unpack_are_inverse(data):
    value_bits = data.draw(st.integers(1, 90))
    mask_bits = data.draw(st.integers(1, 20))
    smallest = SlotLayout.smallest_key(value_bits, mask_bits)
    key_size = data.draw(st.integers(smallest, 5 * smallest))
    top = 2 ** (value_bits + mask_bits + 1) - 1
    numbers = data.draw(st.lists(st.integers(-top, top), min_size=1, max_size=12))
    slots = layout(len(numbers), value_bits, mask_bits, key_size=key_size)
    result = roundtrip(numbers, slots)
    assert result.dtype == slots.bits_value_dtype
    assert result.tolist() == numbers


def test_overflowed_slots_are_noticed():
    slots = layout(3, key_size=256)
    n = modulus(256)
    for number in (2**slots.reply_bits, -(2**slots.reply_bits) - 1):
        for position in range(3):
            assert unpack_slots([(number << (39 * position)) % n], n, slots) is None
            less = (number - (1 if number > 0 else -1)) << (39 * position)
            assert unpack_slots([less % n], n, slots) is not None
    assert unpack_slots([1 << (39 * 3)], n, slots) is None
    assert unpack_slots([n // 2], n, slots) is None


@pytest.mark.parametrize("kind", [np.int64, object])
def test_values_beyond_the_promise(kind):
    slots = layout(3, value_bits=10)
    good = np.array([1023, -1023, 0], dtype=kind)
    assert check_values(good, slots).tolist() == good.tolist()
    for worst in (1024, -1024, 2**62, -(2**63)):
        with pytest.raises(OverflowError, match=rf"{worst}.*1023.*value_bits=10"):
            check_values(np.array([0, worst, 1], dtype=kind), slots)


def test_values_of_the_wrong_kind():
    slots = layout(2)
    with pytest.raises(TypeError, match="float64"):
        check_values(np.array([1.0, 2.0]), slots)
    with pytest.raises(TypeError, match=r"0\.5"):
        check_values(np.array([1, 0.5], dtype=object), slots)
    with pytest.raises(ValueError, match=r"\(3,\).*\(2,\)"):
        check_values(np.arange(3), slots)
    with pytest.raises(ValueError, match=r"\(1, 2\)"):
        check_values(np.zeros((1, 2), dtype=int), slots)


@pytest.mark.parametrize("masking", ["scalar", "entrywise"])
@pytest.mark.parametrize("bad", [0, -1, 17])
def test_masks_out_of_range(masking, bad):
    slots = layout(3, mask_bits=4, masking=masking)
    masks = bad if masking == "scalar" else np.array([1, bad, 16])
    with pytest.raises(OverflowError, match=r"^a mask lies outside 1 <= G <= 16"):
        check_masks(masks, slots)


@pytest.mark.parametrize(
    "bad", [-98765, 98765, 98765.5, np.float64(98765), np.array([98765.0] * 3)]
)
@pytest.mark.parametrize("masking", ["scalar", "entrywise"])
def test_a_secret_stands_in_no_message(masking, bad):
    """Neither a mask nor a dither that is refused, of whatever kind."""
    slots = layout(3, mask_bits=4, masking=masking)
    entries = np.array([1, bad, 3], dtype=object) if np.isscalar(bad) else bad
    masks = 3 if masking == "scalar" else np.array([3, 3, 3])
    for tried in (bad, entries):
        with pytest.raises((OverflowError, TypeError, ValueError)) as caught:
            check_masks(tried, slots)
        assert "98765" not in str(caught.value)
        with pytest.raises((OverflowError, TypeError, ValueError)) as caught:
            check_dither(given, masks, slots)
        assert "98765" not in str(caught.value)


def test_masks_of_the_wrong_kind():
    with pytest.raises(TypeError, match="one integer"):
        check_masks(np.array([1, 2, 3]), layout(3))
    with pytest.raises(ValueError, match="shape"):
        check_masks(5, layout(3, masking="entrywise"))
    # uint64 times int64 would become float64.
    masks = check_masks(np.array([3], dtype=np.uint64), layout(1, masking="entrywise"))
    assert masks.dtype == np.int64


@pytest.mark.parametrize("mask", [1, 2, 3, 10, 16])
def test_dither_range_is_exact(mask):
    inside = range(-((mask - 1) // 2), mask // 2 + 1)
    for masking in ("scalar", "entrywise"):
        slots = layout(1, mask_bits=4, masking=masking)
        masks = mask if masking == "scalar" else np.array([mask], dtype=np.int16)
        for value in range(-10, 11):
            dither = np.array([value], dtype=np.int16)
            if value in inside:
                assert check_dither(dither, masks, slots).tolist() == [value]
            else:
                with pytest.raises(
                    OverflowError, match=r"dither lies outside \(-G/2, G/2\]"
                ):
                    check_dither(dither, masks, slots)
