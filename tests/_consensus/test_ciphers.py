import pickle
from fractions import Fraction

import numpy as np
import phe
import pytest
from _paillier_keys import (
    MASKINGS,
    cipher,
    expected_answer,
    keypair,
    random_batch,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skppdnmf._paillier.payload import message_bytes
from skppdnmf._paillier.phe_reference import PheCipher
from skppdnmf._payload import Payload, plain_bytes, read_numbers
from skppdnmf.exceptions import CorruptedMessageError, WrongKeyError
from skppdnmf.exchange import (
    Cipher,
    PaillierCipher,
    PaillierPrivateKey,
    PlainCipher,
    SimulatedCipher,
    SlotLayout,
)


def exchange(one, other, batch, layout):
    """Both messages and the result of one exchange."""
    own, others, masks, dither = batch
    request = one.request(own, layout)
    reply = other.reply(one.public, request, others, masks, dither, layout)
    return request, reply, one.open(reply, layout)


def simulate(batch, layout):
    sides = SimulatedCipher(layout.key_size), SimulatedCipher(layout.key_size)
    return exchange(*sides, batch, layout)


def assert_same_as_simulated(batch, layout, scheme="djn"):
    sides = (cipher(layout.key_size, scheme, number) for number in (0, 1))
    messages = exchange(*sides, batch, layout)
    oracle = simulate(batch, layout)
    assert messages[2].dtype == oracle[2].dtype == layout.bits_value_dtype
    assert messages[2].tolist() == oracle[2].tolist() == expected_answer(*batch)
    for real, simulated in zip(messages[:2], oracle[:2], strict=True):
        assert real.n_bytes == simulated.n_bytes == len(real.data)
        assert real.n_ciphertexts == simulated.n_ciphertexts
    return messages


def test_plain_cipher_computes_on_floats():
    own, other = np.array([0.1, 1e-323, 3.0]), np.array([0.4, 0.0, 1.0])
    layout = SlotLayout(3, 24, 12, "entrywise", 2048)
    for masks in (0.5, np.array([0.5, 1.0, 0.25])):
        batch = own, other, masks, None
        request, reply, result = exchange(PlainCipher(), PlainCipher(), batch, layout)
        assert result.tolist() == (masks * (other - own)).tolist()
        assert request.n_ciphertexts == reply.n_ciphertexts == 0
        assert request.n_bytes == reply.n_bytes == 44 + 3 * 8
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        PlainCipher().request(own[:2], layout)
    short = PlainCipher().request(own[:2])
    with pytest.raises(CorruptedMessageError, match="2 values, expected 3"):
        PlainCipher().reply(None, short, other, 0.5, None, layout)


def test_ciphers_keep_the_protocol():
    for side in (PlainCipher(), SimulatedCipher(256), cipher(256)):
        assert isinstance(side, Cipher)
    assert PlainCipher().public is SimulatedCipher(256).public is None
    assert cipher(256).public == keypair(256)[0]


@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize(
    ("key_size", "scheme"),
    [(128, "djn"), (256, "djn"), (512, "djn"), (576, "subgroup"), (1024, "djn")],
)
@pytest.mark.parametrize("n_values", [1, 2, 7, 31])
def test_paillier_equals_simulated(masking, key_size, scheme, n_values):
    layout = SlotLayout(n_values, 24, 12, masking, key_size)
    assert_same_as_simulated(random_batch(layout, n_values), layout, scheme)


@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize("scheme", ["djn", "subgroup"])
def test_paillier_equals_simulated_at_full_size(masking, scheme):
    layout = SlotLayout(60, 24, 12, masking, 2048)
    assert_same_as_simulated(random_batch(layout), layout, scheme)


@pytest.mark.parametrize("masking", MASKINGS)
def test_bounds_in_every_slot(masking):
    layout = SlotLayout(7, 24, 12, masking, 256)
    assert layout.slots_per_plaintext == 6
    top = 2**24 - 1
    mask = 2**12 if masking == "scalar" else np.full(7, 2**12)
    for sign in (1, -1):
        # From one extreme to the other, in one slot or in all, with extreme dithers.
        for positions in ([k] for k in range(7)):
            one = np.zeros(7, dtype=np.int64)
            one[positions] = sign * top
            dither = np.where(one < 0, 2**11, -(2**11) + 1)
            assert_same_as_simulated((one, -one, mask, dither), layout)
        full = np.full(7, sign * top)
        dither = np.full(7, 2**11 if sign < 0 else -(2**11) + 1)
        assert_same_as_simulated((full, -full, mask, dither), layout)
        half = np.where(np.arange(7) % 2, full, -full)
        assert_same_as_simulated((half, -half, mask, dither), layout)
    zero = np.zeros(7, dtype=np.int64)
    result = assert_same_as_simulated((zero, zero, mask, zero), layout)[2]
    assert not result.any()


@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize("n_max_bits", [0, 1, 10, 20, 40, 52, 70])
def test_value_bits_of_every_scale(masking, n_max_bits):
    # n_max = 2**n_max_bits, and U up to 16.
    layout = SlotLayout(5, n_max_bits + 4, 12, masking, 256)
    assert_same_as_simulated(random_batch(layout), layout)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_shape_and_magnitude(data):
    masking = data.draw(st.sampled_from(MASKINGS))
    value_bits = data.draw(st.integers(1, 80))
    mask_bits = data.draw(st.integers(1, 30))
    n_values = data.draw(st.integers(1, 9))
    layout = SlotLayout(n_values, value_bits, mask_bits, masking, 256)
    top = 2**value_bits - 1
    values = st.lists(st.integers(-top, top), min_size=n_values, max_size=n_values)
    own, other = (np.array(data.draw(values), dtype=object) for _ in range(2))
    count = 1 if masking == "scalar" else n_values
    factors = data.draw(
        st.lists(st.integers(1, 2**mask_bits), min_size=count, max_size=count)
    )
    every = factors * (n_values if count == 1 else 1)
    dither = [data.draw(st.integers(-((g - 1) // 2), g // 2)) for g in every]
    masks = factors[0] if masking == "scalar" else np.array(factors)
    batch = own, other, masks, np.array(dither)
    assert_same_as_simulated(batch, layout)


@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize("key_size", [256, 512])
def test_phe_agrees(masking, key_size):
    private = keypair(key_size)[1]
    layout = SlotLayout(5, 24, 12, masking, key_size)
    batch = random_batch(layout)
    theirs = PheCipher(private.to_phe())
    request, reply, result = exchange(theirs, theirs, batch, layout)
    assert result.tolist() == simulate(batch, layout)[2].tolist()
    assert request.n_ciphertexts == reply.n_ciphertexts == 5
    # And phe reads what we send.
    ours, answered, _ = exchange(cipher(key_size), cipher(key_size), batch, layout)
    for message in (ours, answered):
        width = key_size // 4
        ciphertexts = [
            int.from_bytes(message.data[start : start + width], "big")
            for start in range(44, message.n_bytes, width)
        ]
        for ciphertext in ciphertexts:
            expected = private.decrypt(ciphertext) % private.public_key.n
            assert theirs._key.raw_decrypt(ciphertext) == expected


def test_key_of_phe_without_short_noise():
    public = phe.PaillierPublicKey(4294967357 * 4294967371)
    taken = PaillierPrivateKey.from_phe(
        phe.PaillierPrivateKey(public, 4294967357, 4294967371)
    )
    assert taken.public_key.scheme == "full"
    for masking in MASKINGS:
        layout = SlotLayout(4, 24, 12, masking, taken.public_key.key_size)
        batch = random_batch(layout)
        side = PaillierCipher(taken)
        result = exchange(side, side, batch, layout)[2]
        assert result.tolist() == expected_answer(*batch)


@pytest.mark.parametrize("masking", MASKINGS)
def test_same_errors_as_simulated(masking):
    layout = SlotLayout(3, 10, 4, masking, 256)
    own = other = np.array([1, 2, 3])
    masks = 4 if masking == "scalar" else np.array([4, 4, 4])
    big = np.array([1, 2**10, 3])
    mask = 17 if masking == "scalar" else np.array([4, 17, 4])
    zero = np.zeros(3, dtype=int)
    for side in (SimulatedCipher(256), cipher(256)):
        request = side.request(own, layout)
        with pytest.raises(OverflowError, match=r"1024.*1023"):
            side.request(big, layout)
        with pytest.raises(OverflowError, match=r"1024.*1023"):
            side.reply(side.public, request, big, masks, zero, layout)
        with pytest.raises(OverflowError, match=r"mask lies outside 1 <= G <= 16"):
            side.reply(side.public, request, other, mask, zero, layout)
        with pytest.raises(OverflowError, match="a dither lies outside"):
            side.reply(side.public, request, other, masks, zero + 3, layout)
        another = SlotLayout(3, 10, 4, masking, 512)
        with pytest.raises(ValueError, match="key_size=512, the key has 256"):
            side.request(own, another)
        different = SlotLayout(2, 10, 4, masking, 256)
        fewer = masks if masking == "scalar" else masks[:2]
        with pytest.raises(CorruptedMessageError, match="another layout"):
            side.reply(side.public, request, other[:2], fewer, zero[:2], different)
        reply = side.reply(side.public, request, other, masks, zero, layout)
        with pytest.raises(CorruptedMessageError, match="another layout"):
            side.open(reply, different)


def test_a_request_is_no_reply():
    layout = SlotLayout(3, 10, 4, "scalar", 256)
    one = cipher(256)
    request, reply, _ = exchange(one, one, random_batch(layout), layout)
    with pytest.raises(CorruptedMessageError, match="expected a reply, got 'request'"):
        one.open(request, layout)
    _, other, masks, dither = random_batch(layout)
    with pytest.raises(CorruptedMessageError, match="expected a request, got 'reply'"):
        one.reply(one.public, reply, other, masks, dither, layout)


@pytest.mark.parametrize("masking", MASKINGS)
def test_wrong_key(masking):
    layout = SlotLayout(3, 24, 12, masking, 256)
    one, other = cipher(256), cipher(256, number=1)
    own, values, masks, dither = random_batch(layout)
    request, reply, _ = exchange(one, other, (own, values, masks, dither), layout)
    ids = one.public.key_id.hex(), other.public.key_id.hex()
    with pytest.raises(
        WrongKeyError, match=f"for key {ids[0]}, but this is key {ids[1]}"
    ):
        other.reply(other.public, request, values, masks, dither, layout)
    with pytest.raises(WrongKeyError, match=ids[1]):
        other.open(reply, layout)
    with pytest.raises(TypeError, match="PaillierPublicKey"):
        other.reply(None, request, values, masks, dither, layout)
    with pytest.raises(TypeError, match="PaillierPrivateKey"):
        PaillierCipher(one.public)


@pytest.mark.parametrize("masking", MASKINGS)
def test_noise_from_pools(masking):
    layout = SlotLayout(13, 24, 12, masking, 256)
    batch = random_batch(layout)
    one, other = cipher(256), cipher(256, number=1)
    pools = one.noise_pool(), other.noise_pool(one.public, layout)
    assert pools[0] is one.noise_pool()
    assert pools[1] is other.noise_pool(one.public, layout)
    for pool in pools:
        pool.fill(50)
    assert exchange(one, other, batch, layout)[2].tolist() == expected_answer(*batch)
    assert len(pools[0]) == 50 - layout.n_request_ciphertexts
    assert len(pools[1]) == 50 - layout.n_reply_ciphertexts
    with pytest.raises(ValueError, match="needs the layout"):
        other.noise_pool(one.public)


def test_noise_is_as_long_as_the_masks_ask():
    # Noise for smaller masks would not drown larger ones.
    layout, smaller = (SlotLayout(13, 24, bits, "scalar", 256) for bits in (12, 2))
    one, other = cipher(256), cipher(256, number=1)
    pool, short = (other.noise_pool(one.public, each) for each in (layout, smaller))
    assert pool.n_bits == short.n_bits + 10
    short.fill(50)
    exchange(one, other, random_batch(layout), layout)
    assert len(short) == 50
    # Widths of values have no part in it; another neighbour's key has its own pool.
    wider = SlotLayout(13, 30, 12, "scalar", 256)
    assert other.noise_pool(one.public, wider) is pool
    assert other.noise_pool(cipher(256, number=2).public, layout) is not pool
    # An agent's replies under its own key are no requests.
    assert one.noise_pool(one.public, layout) is not one.noise_pool()


def test_cipher_travels_without_pools():
    layout = SlotLayout(5, 24, 12, "scalar", 256)
    batch = random_batch(layout)
    private = keypair(256)[1]
    one = PaillierCipher(private, verify_symbols=True)
    one.noise_pool().fill(3)
    copy = pickle.loads(pickle.dumps(one))
    assert len(copy.noise_pool()) == 0
    assert len(one.noise_pool()) == 3
    request = one.request(batch[0], layout)
    reply = copy.reply(one.public, request, *batch[1:], layout)
    assert copy.open(reply, layout).tolist() == expected_answer(*batch)
    assert copy.verify_symbols
    for secret in (private.p, private.q):
        assert str(secret) not in repr(one)
    assert repr(one).startswith("PaillierCipher(PaillierPublicKey(key_size=256")


@pytest.mark.parametrize("masking", MASKINGS)
def test_one_crafted_request_reads_masks_and_left_factor(masking):
    """By a neighbour that breaks the protocol, where the answer is opened rightly.

    It asks for wide slots and sends numbers far beyond any left factor.
    """
    layout = SlotLayout(4, 60, 12, masking, 576)
    _, _, masks, dither = random_batch(layout)
    left = np.array([3, -70_000, 2**22, 0])
    large = 1 << 59
    for attacker, victim in [
        (SimulatedCipher(576), SimulatedCipher(576)),
        (cipher(576), cipher(576, number=1)),
    ]:
        request = attacker.request(np.full(4, -large), layout)
        reply = victim.reply(attacker.public, request, left, masks, dither, layout)
        for k, answer in enumerate(map(int, attacker.open(reply, layout))):
            mask = masks if masking == "scalar" else int(masks[k])
            found = round(Fraction(answer, large))
            assert found == mask
            assert round(Fraction(answer - found * large, found)) == left[k]


def on_a_wire(numbers, n_bytes):
    return Payload(Payload(np.array(numbers), 0, n_bytes).to_bytes(), 0, n_bytes)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300, -1e121])
def test_numbers_one_cannot_compute_with_are_refused_without_encryption(bad):
    side = PlainCipher()
    values = np.array([1.0, 2.0])
    good = on_a_wire([1e77, -3.0], plain_bytes(values))
    np.testing.assert_array_equal(side.open(good), [1e77, -3.0])
    for numbers in ([bad, 1.0], [1.0, bad]):
        message = on_a_wire(numbers, plain_bytes(values))
        with pytest.raises(CorruptedMessageError, match="payload holds"):
            side.open(message)
        with pytest.raises(CorruptedMessageError, match="payload holds"):
            side.reply(None, message, values, 0.5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.5, 2.0**40, -(2.0**40)])
@pytest.mark.parametrize("masking", MASKINGS)
def test_simulated_numbers_that_no_ciphertext_holds_are_refused(masking, bad):
    layout = SlotLayout(2, 24, 12, masking, 256)
    side = SimulatedCipher(256)
    _, values, masks, dither = random_batch(layout)
    sizes = {kind: message_bytes(kind, layout) for kind in (1, 2)}
    assert side.open(on_a_wire([2.0**36, 5.0], sizes[2]), layout)[0] == 2.0**36
    with pytest.raises(CorruptedMessageError, match="payload holds"):
        side.open(on_a_wire([bad, 1.0], sizes[2]), layout)
    with pytest.raises(CorruptedMessageError, match="payload holds"):
        side.reply(None, on_a_wire([bad, 1.0], sizes[1]), values, masks, dither, layout)


@pytest.mark.parametrize("place", [9, 35, -1])
def test_filler_around_bare_numbers_is_checked(place):
    data = bytearray(Payload(np.array([1.0, 2.0]), 0, 200).to_bytes())
    np.testing.assert_array_equal(read_numbers(bytes(data)), [1.0, 2.0])
    data[place] ^= 1
    with pytest.raises(CorruptedMessageError, match="more than its 2 numbers"):
        read_numbers(bytes(data))
