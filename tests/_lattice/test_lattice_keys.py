import pickle

import numpy as np
import pytest
from _lattice_keys import lattice_key, need_tenseal

need_tenseal()

from skppdnmf._lattice.keys import PUBLIC_WORDS_BYTES, LatticePublicKey  # noqa: E402
from skppdnmf._lattice.parameters import plain_moduli  # noqa: E402
from skppdnmf._lattice.payload import (  # noqa: E402
    PUBLIC_BYTES,
    key_payload,
    read_public,
)
from skppdnmf._payload import Payload  # noqa: E402
from skppdnmf.exceptions import CorruptedMessageError  # noqa: E402


def test_a_public_key_travels():
    key = lattice_key().public_key
    payload = key_payload(key)
    assert payload.n_bytes == len(payload.data) == PUBLIC_BYTES
    assert payload.n_ciphertexts == 0
    again = read_public(payload)
    assert again == key
    assert hash(again) == hash(key)
    assert again.key_id == key.key_id
    other = lattice_key(1).public_key
    assert other != key
    assert other.key_id != key.key_id


def test_keys_are_pickled_without_the_tools_of_their_process():
    key = lattice_key()
    key.tools(plain_moduli(40, 1)[0])
    again = pickle.loads(pickle.dumps(key))
    assert again == key
    assert hash(again) == hash(key)
    assert key != lattice_key(1)
    assert key != 1
    assert key.public_key != 1


def test_what_is_shown_of_a_private_key_is_public():
    key = lattice_key()
    assert repr(key) == f"LatticePrivateKey({key.public_key.key_id.hex()})"
    assert repr(key.public_key) == f"LatticePublicKey({key.public_key.key_id.hex()})"


def corrupted(change):
    words = np.frombuffer(lattice_key().public_key.words, dtype="<u8").copy()
    change(words)
    return words.tobytes()


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (lambda: b"", f"0 bytes, expected {PUBLIC_WORDS_BYTES}"),
        (lambda: lattice_key().public_key.words[:-1], "bytes, expected"),
        (lambda: bytes(PUBLIC_WORDS_BYTES), "a polynomial of it is zero"),
        (lambda: corrupted(lambda w: w[len(w) // 2 :].fill(0)), "is zero"),
        (lambda: corrupted(lambda w: w[: len(w) // 2].fill(0)), "is zero"),
        # Beyond its prime.
        (lambda: corrupted(lambda w: w[:1].fill(2**63)), "invalid"),
    ],
)
def test_what_is_no_public_key(words, match):
    with pytest.raises(ValueError, match=match):
        LatticePublicKey(words())


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:3],
        lambda data: b"SKPN" + data[4:],
        lambda data: data[:4] + b"\2" + data[5:],
        lambda data: data[:6] + (4096).to_bytes(2, "big") + data[8:],
        lambda data: data[:-8],
        lambda data: data + bytes(8),
        lambda data: data[:8] + b"\xff" * 8 + data[16:],
        lambda data: None,
    ],
)
def test_what_is_no_message_with_a_key(change):
    data = change(key_payload(lattice_key().public_key).data)
    with pytest.raises(CorruptedMessageError, match="public key of BFV"):
        read_public(Payload(data, 0, len(data or b"")))
    with pytest.raises(CorruptedMessageError, match="no public key of BFV"):
        read_public(None)
