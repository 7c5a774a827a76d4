import numpy as np
import pytest
from _paillier_keys import cipher, keypair
from hypothesis import given, settings
from hypothesis import strategies as st

from skppdnmf.exceptions import CorruptedMessageError, WrongKeyError
from skppdnmf.exchange import (
    KEY,
    REPLY,
    REQUEST,
    WIDEN,
    Message,
    PaillierCipher,
    PaillierPrivateKey,
    PaillierPublicKey,
    Payload,
    PlainCipher,
    SimulatedCipher,
    SlotLayout,
    public_payload,
    read_public,
)

KINDS = (KEY, REQUEST, REPLY, WIDEN)
HEADER = 16


def read(data, message):
    """What arrives of a message whose envelope says of what kind and round it is."""
    return Message.from_bytes(data, message.kind, message.round, message.n_ciphertexts)


@st.composite
def messages(draw):
    data = draw(st.binary(max_size=60))
    payload = Payload(data, draw(st.integers(0, 100)), len(data)) if data else None
    return Message(
        draw(st.sampled_from(KINDS)),
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(0, 2**16 - 1)),
        draw(st.integers(0, 2**16 - 1)),
        draw(st.integers(0, 2**16 - 1)),
        draw(st.floats(0, allow_infinity=False)),
        draw(st.integers(0, 255)),
        draw(st.integers(0, 255)),
        payload,
    )


@given(messages())
@settings(deadline=None, max_examples=100)
def test_round_trip_and_exact_size(message):
    data = message.to_bytes()
    payload_bytes = len(message.payload.data) if message.payload else 0
    assert len(data) == message.n_bytes == HEADER + payload_bytes
    for buffer in (data, bytearray(data)):
        assert read(buffer, message) == message


def test_counts_of_a_message_without_payload():
    message = Message(REQUEST, 7, left_count=2, fit_count=1)
    assert (message.n_bytes, message.n_ciphertexts) == (HEADER, 0)
    assert read(message.to_bytes(), message) == message


@pytest.mark.parametrize("size", range(HEADER))
def test_shorter_than_a_header(size):
    data = Message(WIDEN, 3, 30).to_bytes()[:size]
    with pytest.raises(CorruptedMessageError, match=f"{size} bytes.*header.*{HEADER}"):
        Message.from_bytes(data, WIDEN, 3)


@pytest.mark.parametrize("kind", [-1, 4, 5, 255])
def test_unknown_kind(kind):
    data = Message(KEY, 0).to_bytes()
    with pytest.raises(CorruptedMessageError, match=f"kind {kind}.*0 to 3"):
        Message.from_bytes(data, kind, 0)


@pytest.mark.parametrize("scale", [-1.0, -1e-300, np.inf, -np.inf, np.nan])
def test_a_scale_that_nobody_can_have_agreed_on(scale):
    data = Message(REQUEST, 0, scale=scale).to_bytes()
    with pytest.raises(CorruptedMessageError, match=f"request with scale {scale}"):
        Message.from_bytes(data, REQUEST, 0)


LAYOUT = SlotLayout(5, 20, 12, "entrywise", 256)
VALUES = np.array([1, -2, 3, 0, 5])


@pytest.mark.parametrize("kind", [REQUEST, REPLY, KEY])
def test_what_stands_for_ciphertexts_takes_as_many_bytes(kind):
    payloads = {
        REQUEST: SimulatedCipher(256).request(VALUES, LAYOUT),
        REPLY: PlainCipher().request(VALUES.astype(float)),
        KEY: public_payload(SimulatedCipher(256)),
    }
    message = Message(kind, 0, payload=payloads[kind])
    data = message.to_bytes()
    assert len(data) == message.n_bytes == HEADER + payloads[kind].n_bytes
    arrived = read(data, message)
    assert (arrived.n_bytes, arrived.n_ciphertexts) == (
        message.n_bytes,
        message.n_ciphertexts,
    )


def test_encrypted_request_crosses_a_wire():
    one, other = cipher(number=0), cipher(number=1)
    message = Message(REQUEST, 4, 20, payload=one.request(VALUES, LAYOUT))
    arrived = read(message.to_bytes(), message)
    assert arrived == message
    masks, dither = np.full(5, 1000), np.zeros(5, dtype=int)
    reply = Message(
        REPLY,
        4,
        20,
        payload=other.reply(
            one.public, arrived.payload, 2 * VALUES, masks, dither, LAYOUT
        ),
    )
    returned = read(reply.to_bytes(), reply)
    np.testing.assert_array_equal(one.open(returned.payload, LAYOUT), 1000 * VALUES)


@pytest.mark.parametrize("cut", [1, 64, 5 * 64, 5 * 64 + 10])
def test_truncated_payload_is_refused_by_the_cipher(cut):
    one, other = cipher(number=0), cipher(number=1)
    data = Message(REQUEST, 0, 20, payload=one.request(VALUES, LAYOUT)).to_bytes()
    arrived = Message.from_bytes(data[:-cut], REQUEST, 0, 5)
    masks, dither = np.full(5, 1000), np.zeros(5, dtype=int)
    with pytest.raises(CorruptedMessageError, match="bytes"):
        other.reply(one.public, arrived.payload, VALUES, masks, dither, LAYOUT)


# Public keys --------------------------------------------------------------------


def full_cipher():
    public, private = keypair()
    return PaillierCipher(
        PaillierPrivateKey(PaillierPublicKey(public.n), private.p, private.q)
    )


@pytest.mark.parametrize("make", [cipher, full_cipher], ids=["djn", "full"])
def test_public_key_round_trip(make):
    sender = make()
    payload = public_payload(sender)
    assert payload.n_bytes == len(payload.data) == 1 + 2 * 256 // 8
    assert payload.n_ciphertexts == 0
    sent = Message(KEY, 0, payload=payload)
    message = read(sent.to_bytes(), sent)
    key = read_public(message.payload)
    assert key == sender.public
    assert (key.key_id, key.scheme) == (sender.public.key_id, sender.public.scheme)


def test_public_key_payload_holds_no_secret():
    _, private = keypair()
    data = public_payload(cipher()).data
    for prime in (private.p, private.q):
        assert int(prime).to_bytes(16, "big") not in data


def test_simulated_key_weighs_as_much_as_a_real_one():
    simulated = public_payload(SimulatedCipher(256))
    assert simulated.n_bytes == public_payload(cipher()).n_bytes
    assert read_public(simulated) is None


def test_no_key_without_encryption():
    assert public_payload(PlainCipher()) is None
    assert read_public(None) is None


def key_bytes(scheme, n, h, width=32):
    return (
        bytes([scheme]) + int(n).to_bytes(width, "big") + int(h).to_bytes(width, "big")
    )


N, H = (int(x) for x in (keypair()[0].n, keypair()[0].h))


@pytest.mark.parametrize(
    "data",
    [
        b"\x01",
        key_bytes(1, N, H)[:-1],
        key_bytes(1, N, H) + b"\0",
        key_bytes(3, N, H),
        key_bytes(255, N, H),
    ],
    ids=["one byte", "cut", "one byte more", "scheme 3", "scheme 255"],
)
def test_no_key_at_all(data):
    with pytest.raises(CorruptedMessageError, match=f"{len(data)} bytes is no public"):
        read_public(Payload(data, 0, len(data)))


@pytest.mark.parametrize(
    "data",
    [
        key_bytes(1, N - 1, H),
        key_bytes(1, N, 0),
        key_bytes(1, N, 1),
        key_bytes(1, N, N + 2),
        key_bytes(0, N, H),
        key_bytes(1, 0, H),
        key_bytes(1, 35, 4, width=1),
        key_bytes(1, N, int(keypair()[1].p)),
    ],
    ids=[
        "even n",
        "no h",
        "h is one",
        "h above n",
        "full with h",
        "zero n",
        "short n",
        "h no unit",
    ],
)
def test_corrupted_keys(data):
    with pytest.raises(CorruptedMessageError, match="no public key: "):
        read_public(Payload(data, 0, len(data)))


def test_empty_key():
    with pytest.raises(CorruptedMessageError, match="0 bytes"):
        read_public(Payload(b"", 0, 0))


@given(st.integers(0, 8 * 65 - 1))
@settings(deadline=None, max_examples=60)
def test_a_flipped_bit_never_yields_the_same_key(bit):
    data = bytearray(public_payload(cipher()).data)
    data[bit // 8] ^= 1 << bit % 8
    try:
        key = read_public(Payload(bytes(data), 0, len(data)))
    except CorruptedMessageError:
        return
    assert key.key_id != cipher().public.key_id
    # Under a key misread like this the owner's messages are refused by name.
    if key.key_size == 256:
        with pytest.raises(WrongKeyError, match="key"):
            cipher(number=1).reply(
                key,
                cipher().request(VALUES, LAYOUT),
                VALUES,
                np.full(5, 1000),
                np.zeros(5, dtype=int),
                LAYOUT,
            )
