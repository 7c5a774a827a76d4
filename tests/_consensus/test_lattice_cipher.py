"""The lattice cipher makes the simulated exchange's numbers, and refuses the rest."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from _difference import make_sides, run_round
from _lattice_keys import lattice_cipher, need_tenseal
from _paillier_keys import MASKINGS, expected_answer, random_batch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

need_tenseal()

from skppdnmf import PrivateDistributedNMF, estimate_cost  # noqa: E402
from skppdnmf._data.graph import make_network  # noqa: E402
from skppdnmf._lattice.parameters import DEGREE, WORD_BYTES  # noqa: E402
from skppdnmf._lattice.payload import SEED_BYTES  # noqa: E402
from skppdnmf._payload import HEADER_BYTES, Payload  # noqa: E402
from skppdnmf.exceptions import CorruptedMessageError, WrongKeyError  # noqa: E402
from skppdnmf.exchange import (  # noqa: E402
    WIDEN,
    Cipher,
    LatticeCipher,
    LatticeLayout,
    SimulatedCipher,
    SlotLayout,
    message_sizes,
)

POLYNOMIAL = DEGREE * WORD_BYTES


def exchange(batch, layout):
    """Both messages and the result, of two agents with a key each."""
    one, other = lattice_cipher(0), lattice_cipher(1)
    own, others, masks, dither = batch
    request = one.request(own, layout)
    reply = other.reply(one.public, request, others, masks, dither, layout)
    return request, reply, one.open(reply, layout)


def simulated(batch, layout):
    slots = SlotLayout(
        layout.n_values, layout.value_bits, layout.mask_bits, layout.masking, 4096
    )
    one, other = SimulatedCipher(4096), SimulatedCipher(4096)
    own, others, masks, dither = batch
    reply = other.reply(None, one.request(own, slots), others, masks, dither, slots)
    return one.open(reply, slots)


def assert_same_as_simulated(layout, seed=0):
    batch = random_batch(layout, seed)
    request, reply, result = exchange(batch, layout)
    oracle = simulated(batch, layout)
    assert result.dtype == oracle.dtype == layout.bits_value_dtype
    assert result.tolist() == oracle.tolist() == expected_answer(*batch)
    sizes = message_sizes(layout, layout.n_values)
    bare = message_sizes(None, 0).request_bytes - HEADER_BYTES
    assert len(request.data) == request.n_bytes == sizes.request_bytes - bare
    assert len(reply.data) == reply.n_bytes == sizes.reply_bytes - bare
    assert request.n_ciphertexts == sizes.request_ciphertexts
    assert reply.n_ciphertexts == sizes.reply_ciphertexts


@pytest.mark.parametrize("masking", MASKINGS)
@given(
    n_values=st.integers(1, 40) | st.integers(DEGREE - 1, DEGREE + 1),
    value_bits=st.integers(1, 60) | st.integers(900, 1002),
    mask_bits=st.integers(1, 12),
    seed=st.integers(0, 2**16),
)
@example(n_values=1, value_bits=25, mask_bits=12, seed=0)
@example(n_values=1, value_bits=26, mask_bits=12, seed=0)
@example(n_values=DEGREE + 1, value_bits=50, mask_bits=12, seed=0)
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_same_numbers_as_simulated(masking, n_values, value_bits, mask_bits, seed):
    if value_bits > 100:
        n_values = min(n_values, 3)  # dozens of ciphertexts each
    layout = LatticeLayout(n_values, value_bits, mask_bits, masking)
    assert_same_as_simulated(layout, seed)


@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize("sign", [-1, 1])
def test_extreme_values(masking, sign):
    layout = LatticeLayout(3, 25, 12, masking)
    assert layout.n_moduli == 1
    most = sign * (2**25 - 1)
    own, other = np.full(3, -most), np.full(3, most)
    masks = 2**12 if masking == "scalar" else np.full(3, 2**12)
    dither = np.full(3, 2**11)
    batch = own, other, masks, dither
    result = exchange(batch, layout)[2]
    assert result.tolist() == [2**12 * 2 * most + 2**11] * 3


def test_sizes_are_those_of_polynomials_and_a_seed():
    layout = LatticeLayout(17_689, 24, 12, "entrywise")
    sizes = message_sizes(layout, 17_689)
    bare = message_sizes(None, 0).request_bytes
    assert sizes.request_bytes - bare == 3 * (SEED_BYTES + 3 * POLYNOMIAL)
    assert sizes.reply_bytes - bare == 3 * 2 * POLYNOMIAL


def test_it_keeps_the_protocol():
    cipher = lattice_cipher()
    assert isinstance(cipher, Cipher)
    assert repr(cipher) == f"LatticeCipher({cipher.public!r})"
    assert cipher.read_public(cipher.public_payload()) == cipher.public
    again = pickle.loads(pickle.dumps(cipher))
    layout = LatticeLayout(2, 24, 12, "scalar")
    request = cipher.request(np.array([1, 2]), layout)
    arguments = np.array([3, 5]), 7, np.array([0, 1]), layout
    reply = again.reply(again.public, request, *arguments)
    assert again.open(reply, layout).tolist() == [14, 22]
    with pytest.raises(TypeError, match="expected a LatticePrivateKey, got int"):
        LatticeCipher(3)


def test_requests_and_replies_never_repeat():
    layout = LatticeLayout(4, 24, 12, "entrywise")
    batch = random_batch(layout)
    first, second = exchange(batch, layout), exchange(batch, layout)
    for one, other in zip(first[:2], second[:2], strict=True):
        assert one.data[:HEADER_BYTES] == other.data[:HEADER_BYTES]
        words = [
            np.frombuffer(x.data[HEADER_BYTES + SEED_BYTES :], "u1")
            for x in (one, other)
        ]
        assert (words[0] == words[1]).mean() < 0.1


@pytest.mark.parametrize("masking", MASKINGS)
def test_an_exchange_in_which_values_outgrow_their_slots(masking):
    network = make_network("path", 3, 0)
    values = np.array([[1.0, -2.0], [3e15, 0.5], [0.25, -1e9]])
    found = []
    for kind in ("bfv", "simulated"):
        sides = make_sides(network, 2, kind, masking=masking, key_size=4096)
        for scale in (1e-12, 1.0):
            sent = run_round(network, sides, scale * values)
        assert any(message.kind == WIDEN for *_, message in sent)
        found.append([side.differences() for side in sides])
    for one, other in zip(*found, strict=True):
        assert (one == other).all()
        assert np.abs(one).max() > 0


def test_nothing_imports_seal_before_it_is_needed():
    code = (
        "import sys, skppdnmf.exchange, skppdnmf.audit, skppdnmf._cli.main;"
        "sys.exit('tenseal' in sys.modules or 'zstandard' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Refusals ------------------------------------------------------------------------


LAYOUT = LatticeLayout(4, 24, 12, "entrywise")


@pytest.fixture(scope="module")
def messages():
    batch = random_batch(LAYOUT)
    return batch, *exchange(batch, LAYOUT)[:2]


def altered(payload, place, data):
    """Put other bytes at a place of the message."""
    old = payload.data
    new = old[:place] + data + old[place + len(data) :]
    return Payload(new, payload.n_ciphertexts, len(new))


CHANGES = [
    (0, b"SKPN", "not a message of format"),
    (4, b"\x09", "version 9"),
    (5, b"\x03", "expected a re.*got"),
    (6, b"\x00", "another layout"),
    (7, b"\x01", "byte 7 of a message is 1"),
    (31, b"\x05", "n_values': 5"),
    (33, b"\x19", "value_bits': 25"),
    (36, b"\x10\x00", "degree': 4096"),
    (38, b"\x00\x3c", "plain_bits': 60"),
    (43, b"\x02", "n_ciphertexts': 2"),
]


@pytest.mark.parametrize("kind", ["request", "reply"])
@pytest.mark.parametrize(("place", "data", "match"), CHANGES)
def test_headers_that_do_not_fit(messages, kind, place, data, match):
    refused(messages, kind, lambda payload: altered(payload, place, data), match)


def refused(messages, kind, change, match, error=CorruptedMessageError):
    """Have a changed message read by whom it is for."""
    (_, others, masks, dither), request, reply = messages
    one, other = lattice_cipher(0), lattice_cipher(1)
    call, arguments = one.open, (change(reply), LAYOUT)
    if kind == "request":
        call = other.reply
        arguments = one.public, change(request), others, masks, dither, LAYOUT
    with pytest.raises(error, match=match):
        call(*arguments)


@pytest.mark.parametrize("kind", ["request", "reply"])
@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda data: data[:20], "shorter than its header"),
        (lambda data: data[:-1], "bytes, expected"),
        (lambda data: data + b"\0", "bytes, expected"),
        (lambda data: 5, "should be bytes, got int"),
        # A residue beyond its prime.
        (lambda data: data[:-8] + b"\xff" * 8, "ciphertext 0 .* is none"),
    ],
)
def test_malformed_messages(messages, kind, change, match):
    refused(messages, kind, lambda p: Payload(change(p.data), 1, 0), match)


@pytest.mark.parametrize("kind", ["request", "reply", "key"])
def test_mutations_are_refused_by_name_or_read(messages, kind):
    (_, others, masks, dither), request, reply = messages
    one, other = lattice_cipher(0), lattice_cipher(1)
    rng = np.random.default_rng(0)
    data = {"request": request, "reply": reply, "key": one.public_payload()}[kind].data
    refused = 0
    for _ in range(60):
        # Mostly in front, where everything but residues is.
        limit = int(rng.choice([len(data), HEADER_BYTES + SEED_BYTES]))
        place, width = rng.integers(limit), rng.integers(1, 9)
        filling = rng.choice([bytes(8), b"\xff" * 8, rng.bytes(8)])
        changed = bytearray(data)
        changed[place : place + width] = bytes(filling)[:width].ljust(width, b"\0")
        payload = Payload(bytes(changed), 1, len(changed))
        try:
            if kind == "key":
                one.read_public(payload)
            elif kind == "reply":
                one.open(payload, LAYOUT)
            else:
                other.reply(one.public, payload, others, masks, dither, LAYOUT)
        except (CorruptedMessageError, WrongKeyError):
            refused += 1
    assert refused > 10


def test_a_seed_that_is_none(messages):
    def change(payload):
        return altered(payload, HEADER_BYTES, bytes(SEED_BYTES))

    refused(messages, "request", change, "ciphertext 0 of a request is none")


def test_a_transparent_answer(messages):
    def change(payload):
        place = HEADER_BYTES + POLYNOMIAL
        return altered(payload, place, bytes(POLYNOMIAL))

    refused(messages, "reply", change, "ciphertext 0 of a reply is transparent")


@pytest.mark.parametrize("kind", ["request", "reply"])
def test_messages_for_another_key(messages, kind):
    name = lattice_cipher(2).public.key_id
    match = f"message for key {name.hex()}"
    change = lambda payload: altered(payload, 8, name)
    refused(messages, kind, change, match, WrongKeyError)


def test_an_answer_under_another_key_that_claims_to_be_under_this(messages):
    batch = messages[0]
    own, others, masks, dither = batch
    foreign = lattice_cipher(2)
    request = foreign.request(own, LAYOUT)
    reply = lattice_cipher(1).reply(
        foreign.public, request, others, masks, dither, LAYOUT
    )
    forged = altered(reply, 8, lattice_cipher(0).public.key_id)
    refused(messages, "reply", lambda _: forged, "slots beyond the 4 values|exceeds")


def test_arguments_out_of_range(messages):
    (_, others, masks, dither), request, _ = messages
    one, other = lattice_cipher(0), lattice_cipher(1)
    with pytest.raises(OverflowError, match="values holds 16777216"):
        one.request(np.full(4, 2**24), LAYOUT)
    for batch, match in (
        ((others * 2**20, masks, dither), "values holds"),
        ((others, masks * 0, dither), "a mask lies outside"),
        ((others, masks, dither + 2**12), "a dither lies outside"),
    ):
        with pytest.raises(OverflowError, match=match):
            other.reply(one.public, request, *batch, LAYOUT)
    with pytest.raises(TypeError, match="expected a LatticePublicKey"):
        other.reply(None, request, others, masks, dither, LAYOUT)


def test_more_answers_than_the_flood_is_made_for(messages, monkeypatch):
    (_, others, masks, dither), request, _ = messages
    monkeypatch.setattr("skppdnmf._consensus.lattice_cipher.ANSWER_BITS", 1)
    one, other = lattice_cipher(0), lattice_cipher(1)
    given = one.public, request, others, masks, dither, LAYOUT
    for _ in range(2):
        other.reply(*given)
    with pytest.raises(OverflowError, match=r"more than 2\*\*1 ciphertexts"):
        other.reply(*given)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"masking": "both"}, "masking='both'"),
        ({"n_values": 0}, "n_values=0"),
        ({"mask_bits": 63}, "mask_bits=63 should be <= 62"),
        ({"value_bits": 5000}, "value_bits=5000 should be <= 4096"),
    ],
)
def test_layouts_that_are_none(parameters, match):
    given = {"n_values": 4, "value_bits": 24, "mask_bits": 12, "masking": "scalar"}
    with pytest.raises(ValueError, match=match):
        LatticeLayout(**{**given, **parameters})


# Whole fits ----------------------------------------------------------------------


X = np.random.default_rng(0).exponential(size=(12, 6))


@pytest.mark.parametrize("masking", MASKINGS)
def test_a_fit_is_the_simulated_one_and_costs_what_was_estimated(masking):
    parameters = {
        "partition": 3,
        "adjacency": "path",
        "masking": masking,
        "max_iter": 2,
        "max_admm_iter": 2,
        "tol": 0,
        "random_state": 0,
    }
    fits = [
        PrivateDistributedNMF(2, encryption=encryption, **parameters).fit(X)
        for encryption in ("bfv", "simulated")
    ]
    real, oracle = fits
    assert (real.components_ == oracle.components_).all()
    for one, other in zip(
        real.agent_components_, oracle.agent_components_, strict=True
    ):
        assert (one == other).all()
    cost = estimate_cost(real, X.shape[1])
    assert real.traffic_["bytes"] == cost.bytes
    assert real.traffic_["ciphertexts"] == cost.ciphertexts
    assert cost.seconds > 0


@pytest.mark.parametrize("missing", ["tenseal.sealapi", "zstandard"])
def test_absence_names_the_extra(missing, monkeypatch):
    import importlib

    from skppdnmf._lattice import seal

    original = importlib.import_module

    def fail(name, *rest):
        if name == missing:
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(importlib, "import_module", fail)
    seal._zstandard.cache_clear()
    model = PrivateDistributedNMF(2, partition=3, encryption="bfv", tol=0)
    with pytest.raises(ImportError, match=r"install skppdnmf\[lattice\]"):
        model.fit(X)
