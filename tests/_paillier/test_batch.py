import math
import random
from dataclasses import replace

import gmpy2
import numpy as np
import pytest
from _paillier_keys import MASKINGS, cipher, expected_answer, keypair, random_batch
from hypothesis import given
from hypothesis import strategies as st

from skppdnmf._paillier.batch import multi_power
from skppdnmf._paillier.noise import embed, owner_noise
from skppdnmf._paillier.payload import ciphertext_bytes
from skppdnmf._payload import HEADER_BYTES
from skppdnmf.exceptions import CorruptedMessageError
from skppdnmf.exchange import SlotLayout


def ciphertexts_of(message, key_size):
    width = ciphertext_bytes(key_size)
    starts = range(HEADER_BYTES, message.n_bytes, width)
    return [int.from_bytes(message.data[k : k + width], "big") for k in starts]


def with_ciphertext(message, index, number, key_size):
    """The message with one ciphertext replaced."""
    width = ciphertext_bytes(key_size)
    start = HEADER_BYTES + index * width
    body = int(number).to_bytes(width, "big")
    return message._replace(
        data=message.data[:start] + body + message.data[start + width :]
    )


@given(
    st.lists(
        st.tuples(st.integers(1, 10**6), st.integers(0, 5000)), min_size=1, max_size=60
    )
)
def test_multi_power(pairs):
    modulus = 10**9 + 7
    bases, exponents = zip(*pairs, strict=True)
    expected = 1
    for base, exponent in pairs:
        expected = expected * pow(base, exponent, modulus) % modulus
    result = multi_power([gmpy2.mpz(b) for b in bases], exponents, modulus)
    assert result % modulus == expected


@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize(("key_size", "scheme"), [(256, "djn"), (576, "subgroup")])
def test_no_ciphertext_comes_twice(masking, key_size, scheme):
    layout = SlotLayout(20, 24, 12, masking, key_size)
    own, values, masks, dither = random_batch(layout)
    one, other = cipher(key_size, scheme), cipher(key_size, scheme, 1)
    requests = [one.request(own, layout) for _ in range(2)]
    replies = [
        other.reply(one.public, requests[0], values, masks, dither, layout)
        for _ in range(2)
    ]
    assert requests[0].data[:HEADER_BYTES] == requests[1].data[:HEADER_BYTES]
    messages = [ciphertexts_of(m, key_size) for m in requests + replies]
    numbers = [number for message in messages for number in message]
    assert len(set(numbers)) == len(numbers)
    results = [one.open(reply, layout).tolist() for reply in replies]
    assert results[0] == results[1] == expected_answer(own, values, masks, dither)
    # Everything is under Jacobi symbol +1, so that no symbol tells a parity.
    symbols = {gmpy2.jacobi(c, int(one.public.n)) for c in numbers}
    assert symbols == {1}


def noise_of(ciphertext, private):
    """What the owner finds by dividing the plaintext out."""
    public = private.public_key
    plaintext = private.decrypt(ciphertext)
    return (
        ciphertext
        * gmpy2.invert(1 + plaintext * public.n, public.n_square)
        % (public.n_square)
    )


def find_mask(reply_noise, request_noise, mask_bits, n_square):
    """The brute-force attack: which small power of its own noise does it see?"""
    power = gmpy2.mpz(1)
    for mask in range(1, 2**mask_bits + 1):
        power = power * request_noise % n_square
        if power == reply_noise:
            return mask
    return None


def test_fresh_noise_defeats_brute_force():
    layout = SlotLayout(3, 24, 10, "scalar", 256)
    own, values, mask, dither = random_batch(layout)
    one, other = cipher(256), cipher(256, number=1)
    private = keypair(256)[1]
    public, n_square = private.public_key, private.public_key.n_square
    request = one.request(own, layout)
    (asked,) = ciphertexts_of(request, 256)
    request_noise = noise_of(asked, private)

    (answered,) = ciphertexts_of(
        other.reply(public, request, values, mask, dither, layout), 256
    )
    assert find_mask(noise_of(answered, private), request_noise, 10, n_square) is None

    addend = private.decrypt(answered) - mask * private.decrypt(asked)
    careless = pow(asked, mask, int(n_square)) * (1 + addend * public.n) % n_square
    assert private.decrypt(careless) == private.decrypt(answered)
    found = find_mask(noise_of(careless, private), request_noise, 10, n_square)
    assert found == mask


@pytest.mark.parametrize("key_size", [256, 512])
def test_gcd_finds_the_mask_without_dither_only(key_size):
    layout = SlotLayout(40, 24, 12, "scalar", key_size)
    one, other = cipher(key_size), cipher(key_size, number=1)
    for seed in range(5):
        own, values, mask, dither = random_batch(layout, seed)
        request = one.request(own, layout)
        found = []
        for noise in (np.zeros(40, dtype=np.int64), dither):
            reply = other.reply(one.public, request, values, mask, noise, layout)
            found.append(math.gcd(*one.open(reply, layout).tolist()))
        assert found[0] == mask
        assert found[1] == 1


@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize("scheme", ["djn", "subgroup"])
def test_corrupted_ciphertexts(masking, scheme):
    key_size = 576 if scheme == "subgroup" else 256
    layout = SlotLayout(20, 24, 12, masking, key_size)
    own, values, masks, dither = random_batch(layout)
    one, other = cipher(key_size, scheme), cipher(key_size, scheme, 1)
    private = keypair(key_size, scheme)[1]
    n = int(private.public_key.n)
    request = one.request(own, layout)
    reply = other.reply(one.public, request, values, masks, dither, layout)
    largest = 256 ** ciphertext_bytes(key_size) - 1
    cases = {0: "zero", n * n: "n[*][*]2", n * n + 1: "n[*][*]2", largest: "n[*][*]2"}
    cases |= {n: "", int(private.p): "", 7 * int(private.q): "", n * (n - 1): ""}
    for bad, reason in cases.items():
        for index in (0, request.n_ciphertexts - 1):
            broken = with_ciphertext(request, index, bad, key_size)
            with pytest.raises(
                CorruptedMessageError, match=reason or "coprime|symbol 0"
            ):
                other.reply(one.public, broken, values, masks, dither, layout)
        for index in range(reply.n_ciphertexts):
            broken = with_ciphertext(reply, index, bad, key_size)
            with pytest.raises(CorruptedMessageError, match=reason or "coprime"):
                one.open(broken, layout)


@pytest.mark.parametrize("masking", MASKINGS)
def test_truncated_and_other_data(masking):
    layout = SlotLayout(9, 24, 12, masking, 256)
    own, values, masks, dither = random_batch(layout)
    one = cipher(256)
    request = one.request(own, layout)
    reply = one.reply(one.public, request, values, masks, dither, layout)
    assert reply.n_bytes == HEADER_BYTES + 2 * 64
    changes = {
        "shorter than its header": lambda data: data[: HEADER_BYTES - 1],
        "bytes, expected": lambda data: data[:-1],
        r"bytes, expected \d+": lambda data: data + b"\0",
        "not a message": lambda data: b"XXXX" + data[4:],
        "version 1": lambda data: data[:4] + b"\2" + data[5:],
        "byte 7 of a message is 1, expected 0": lambda data: (
            data[:7] + b"\1" + data[8:]
        ),
        "another layout": lambda data: data[:6] + bytes([data[6] ^ 1]) + data[7:],
        "should be bytes": lambda data: None,
    }
    for reason, change in changes.items():
        with pytest.raises(CorruptedMessageError, match=reason):
            one.open(reply._replace(data=change(reply.data)), layout)
        broken = request._replace(data=change(request.data))
        with pytest.raises(CorruptedMessageError, match=reason):
            one.reply(one.public, broken, values, masks, dither, layout)
    for name, other in (
        ("n_values", replace(layout, n_values=8)),
        ("value_bits", replace(layout, value_bits=25)),
        ("mask_bits", replace(layout, mask_bits=11)),
    ):
        with pytest.raises(CorruptedMessageError, match=f"another layout.*{name}"):
            one.open(reply, other)


def test_body_of_another_key():
    layout = SlotLayout(20, 24, 12, "scalar", 256)
    own, values, masks, dither = random_batch(layout)
    one, other = cipher(256), cipher(256, number=1)
    messages = [
        side.reply(
            side.public, side.request(own, layout), values, masks, dither, layout
        )
        for side in (one, other)
    ]
    data = messages[0].data[:HEADER_BYTES] + messages[1].data[HEADER_BYTES:]
    with pytest.raises(CorruptedMessageError):
        one.open(messages[0]._replace(data=data), layout)


def test_subgroup_owner_refuses_noise_of_other_schemes():
    layout = SlotLayout(2, 24, 12, "scalar", 576)
    public, private = keypair(576, "subgroup")
    one = cipher(576, "subgroup")
    own, values, masks, dither = random_batch(layout)
    reply = one.reply(public, one.request(own, layout), values, masks, dither, layout)
    theirs = public.to_phe().raw_encrypt(5)
    with pytest.raises(CorruptedMessageError, match="scheme='subgroup'"):
        one.open(with_ciphertext(reply, 0, theirs, 576), layout)
    assert private.decrypt(theirs) == 5


@pytest.mark.parametrize("masking", MASKINGS)
def test_symbols_that_would_show_a_parity(masking):
    layout = SlotLayout(4, 24, 12, masking, 256)
    own, values, masks, dither = random_batch(layout)
    one, other = cipher(256), cipher(256, number=1, verify_symbols=True)
    private = keypair(256)[1]
    n = private.public_key.n
    request = one.request(own, layout)
    unit = next(x for x in range(2, 100) if gmpy2.jacobi(x, n) == -1)
    crafted = ciphertexts_of(request, 256)[0] * pow(unit, int(n), int(n * n)) % (n * n)
    broken = with_ciphertext(request, 0, crafted, 256)
    assert private.decrypt(crafted) == private.decrypt(ciphertexts_of(request, 256)[0])
    with pytest.raises(CorruptedMessageError, match="Jacobi symbol -1"):
        other.reply(one.public, broken, values, masks, dither, layout)
    # The honest request passes the same check.
    reply = other.reply(one.public, request, values, masks, dither, layout)
    assert one.open(reply, layout).tolist() == expected_answer(
        own, values, masks, dither
    )


@pytest.mark.parametrize("masking", MASKINGS)
def test_seeds_change_results_but_never_ciphertexts(masking):
    layout = SlotLayout(10, 24, 12, masking, 256)
    one, other = cipher(256), cipher(256, number=1)
    runs = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        own, values, masks, dither = random_batch(layout, seed=0)
        request = one.request(own, layout)
        reply = other.reply(one.public, request, values, masks, dither, layout)
        runs.append((request.data, reply.data, one.open(reply, layout).tolist()))
    assert runs[0][2] == runs[1][2]
    for first, second in zip(runs[0][:2], runs[1][:2], strict=True):
        width = ciphertext_bytes(256)
        for start in range(HEADER_BYTES, len(first), width):
            assert first[start : start + width] != second[start : start + width]


def test_embedding_adds_plaintexts():
    public, private = keypair(256)
    for a, s in owner_noise(private, 3):
        for plaintext in (0, 5, -5, int(public.n // 2)):
            assert private.decrypt(embed(a, s + plaintext, public.n)) == plaintext
