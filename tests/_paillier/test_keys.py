import json
import pickle
import warnings

import gmpy2
import phe
import pytest
from _paillier_keys import expected_answer, keypair, random_batch

from skppdnmf._paillier.primes import sieve_limit, small_primes
from skppdnmf.exceptions import CorruptedMessageError, InsecureKeyWarning, WrongKeyError
from skppdnmf.exchange import (
    PaillierCipher,
    PaillierPrivateKey,
    PaillierPublicKey,
    SlotLayout,
    generate_keypair,
    new_keypair,
)

SIZES = [(64, "djn"), (66, "djn"), (128, "djn"), (256, "djn"), (512, "djn")]
SIZES += [(576, "subgroup"), (640, "subgroup"), (2048, "djn"), (2048, "subgroup")]


def phe_keypair(p, q):
    public = phe.PaillierPublicKey(p * q)
    return public, phe.PaillierPrivateKey(public, p, q)


@pytest.mark.parametrize(("key_size", "scheme"), SIZES)
def test_generated_primes(key_size, scheme):
    public, private = keypair(key_size, scheme)
    p, q = private.p, private.q
    assert public.n == p * q
    assert public.n.bit_length() == public.key_size == key_size
    assert gmpy2.is_prime(p)
    assert gmpy2.is_prime(q)
    assert p % 4 == q % 4 == 3
    assert gmpy2.gcd(p - 1, q - 1) == 2
    limit = sieve_limit(key_size // 2) if scheme == "djn" else 16
    for prime in small_primes(limit).tolist():
        assert (p - 1) % prime
        assert (q - 1) % prime
    assert gmpy2.jacobi(public.h, public.n) == 1
    for value in (0, 1, -1, 12345, int(public.n // 2), -int(public.n // 2)):
        assert private.decrypt(public.encrypt(value)) == value


def test_subgroup_orders():
    public, private = keypair(576, "subgroup")
    for prime, order in ((private.p, private.r_p), (private.q, private.r_q)):
        assert order.bit_length() == 256
        assert gmpy2.is_prime(order)
        assert (prime - 1) % order == 0
        assert gmpy2.powmod(public.h, order, prime) == 1
        assert public.h % prime != 1


@pytest.mark.parametrize(
    ("key_size", "scheme", "smallest"),
    [(62, "djn", 64), (257, "djn", 64), (512, "subgroup", 576), (-2, "djn", 64)],
)
def test_sizes_that_cannot_be(key_size, scheme, smallest):
    with pytest.raises(ValueError, match=rf"key_size={key_size}.*>= {smallest}"):
        generate_keypair(key_size, scheme)


def test_other_arguments_that_cannot_be():
    with pytest.raises(ValueError, match="scheme='rsa'"):
        generate_keypair(2048, "rsa")
    for wrong in (2048.0, True, "2048"):
        with pytest.raises(TypeError, match="key_size"):
            generate_keypair(wrong)


def test_short_keys_warn_once_at_the_caller():
    with pytest.warns(InsecureKeyWarning, match="key_size=256") as record:
        generate_keypair(256)
    assert len(record) == 1
    assert record[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        generate_keypair(2048)


def test_keys_differ():
    assert keypair(256)[0] != keypair(256, number=1)[0]
    assert keypair(256)[0].key_id != keypair(256, number=1)[0].key_id
    assert len(keypair(256)[0].key_id) == 16


def test_value_too_large_for_the_key():
    public, _ = keypair(64)
    with pytest.raises(OverflowError, match="exceeds the limit"):
        public.encrypt(public.n // 2 + 1)


@pytest.mark.parametrize(("key_size", "scheme"), [(256, "djn"), (576, "subgroup")])
def test_phe_and_we_read_each_other(key_size, scheme):
    public, private = keypair(key_size, scheme)
    phe_private = private.to_phe()
    for value in (0, 77, -77, 10**12):
        number = phe.EncryptedNumber(public.to_phe(), int(public.encrypt(value)))
        assert phe_private.decrypt(number) == value
        theirs = phe_private.public_key.encrypt(value)
        assert private.decrypt(theirs.ciphertext()) == value
    assert PaillierPublicKey.from_phe(public.to_phe()).scheme == "full"
    assert PaillierPublicKey.from_phe(public.to_phe()).n == public.n


def test_phe_key_whose_primes_allow_short_noise():
    _, private = keypair(256)
    taken = PaillierPrivateKey.from_phe(private.to_phe())
    assert taken.public_key.scheme == "djn"
    assert gmpy2.jacobi(taken.public_key.h, taken.public_key.n) == 1
    # The base is new, and so is the key's name: noise is not interchangeable.
    assert taken.public_key.key_id != private.public_key.key_id
    assert taken.decrypt(taken.public_key.encrypt(-9)) == -9


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (4294967357, 4294967371),  # p = 1 (mod 4)
        (4294967291, 4294967291 + 80),  # small factors in (p - 1) / 2
    ],
)
def test_phe_key_whose_primes_forbid_short_noise(p, q):
    q = int(gmpy2.next_prime(q))
    _, phe_private = phe_keypair(p, q)
    taken = PaillierPrivateKey.from_phe(phe_private)
    assert taken.public_key.scheme == "full"
    assert taken.public_key.h is None
    assert taken.decrypt(taken.public_key.encrypt(-9)) == -9


def test_decrypting_what_is_no_ciphertext():
    public, private = keypair(256)
    n = int(public.n)
    for bad in (0, -1, n, n * n, n * n + 1, int(private.p), 5 * int(private.q)):
        with pytest.raises(CorruptedMessageError, match="no ciphertext"):
            private.decrypt(bad)


@pytest.mark.parametrize(("key_size", "scheme"), [(256, "djn"), (576, "subgroup")])
def test_json_and_pickle(key_size, scheme):
    public, private = keypair(key_size, scheme)
    for restored in (
        PaillierPublicKey.from_json(public.to_json()),
        pickle.loads(pickle.dumps(public)),
    ):
        assert restored == public
        assert hash(restored) == hash(public)
        assert restored.scheme == scheme
    ciphertext = public.encrypt(-5)
    for restored in (
        PaillierPrivateKey.from_json(private.to_json()),
        pickle.loads(pickle.dumps(private)),
    ):
        assert restored == private
        assert (restored.r_p, restored.r_q) == (private.r_p, private.r_q)
        assert restored.decrypt(ciphertext) == -5
    full = PaillierPublicKey(public.n)
    assert PaillierPublicKey.from_json(full.to_json()) == full


def test_json_that_is_no_key():
    public, private = keypair(256)
    fields = json.loads(public.to_json())
    assert int(fields["n"], 16) == public.n
    other = keypair(256, number=1)[0]
    for change in ({"key_id": other.key_id.hex()}, {"n": f"{other.n:x}", "h": "4"}):
        with pytest.raises(WrongKeyError, match="key_id"):
            PaillierPublicKey.from_json(json.dumps({**fields, **change}))
    deep = "[" * 100_000
    for text in ("{}", "[]", "no", private.to_json(), deep, '{"format": ' + deep):
        with pytest.raises(ValueError, match="format"):
            PaillierPublicKey.from_json(text)
    with pytest.raises(ValueError, match="hexadecimal 'n'"):
        PaillierPublicKey.from_json(json.dumps({**fields, "n": "xyz"}))
    secret = {**json.loads(private.to_json()), "p": "11"}
    with pytest.raises(WrongKeyError, match="primes"):
        PaillierPrivateKey.from_json(json.dumps(secret))


def test_keys_that_do_not_belong_together():
    private = keypair(256)[1]
    with pytest.raises(WrongKeyError, match="primes"):
        PaillierPrivateKey(keypair(256, number=1)[0], private.p, private.q)
    with pytest.raises(WrongKeyError, match="primes"):
        PaillierPrivateKey(private.public_key, private.public_key.n, 1)
    public, private = keypair(576, "subgroup")
    with pytest.raises(WrongKeyError, match="orders"):
        PaillierPrivateKey(public, private.p, private.q, private.r_q, private.r_p)


@pytest.mark.parametrize(("key_size", "scheme"), [(256, "djn"), (576, "subgroup")])
def test_primes_in_either_order_are_the_same_key(key_size, scheme):
    public, private = keypair(key_size, scheme)
    swapped = PaillierPrivateKey(public, private.q, private.p, private.r_q, private.r_p)
    names = ("p", "q", "r_p", "r_q")
    assert private.p < private.q
    assert [getattr(swapped, name) for name in names] == [
        getattr(private, name) for name in names
    ]
    fields = json.loads(private.to_json())
    fields["p"], fields["q"] = fields["q"], fields["p"]
    fields["r_p"], fields["r_q"] = fields["r_q"], fields["r_p"]
    read = PaillierPrivateKey.from_json(json.dumps(fields))
    # They share one table of noise powers, made by whichever comes first.
    layout = SlotLayout(9, 24, 12, "entrywise", key_size)
    batch = random_batch(layout)
    for owner in (private, swapped, read):
        one = PaillierCipher(owner)
        reply = one.reply(public, one.request(batch[0], layout), *batch[1:], layout)
        for other in (private, swapped, read):
            opened = PaillierCipher(other).open(reply, layout)
            assert opened.tolist() == expected_answer(*batch)


def test_primes_that_are_none():
    p, q, r = (int(gmpy2.next_prime(2**bits)) for bits in (40, 41, 42))
    public = PaillierPublicKey(p * q * r)
    for wrong, numbers in (("p", (p * q, r)), ("q", (r, p * q))):
        with pytest.raises(WrongKeyError, match=f"^{wrong} is not prime"):
            PaillierPrivateKey(public, *numbers)
    with pytest.raises(WrongKeyError, match="same prime"):
        PaillierPrivateKey(PaillierPublicKey(q * q), q, q)
    for sign in (1, -1):
        with pytest.raises(WrongKeyError, match="primes"):
            PaillierPrivateKey(public, sign, sign * p * q * r)


def test_public_keys_that_cannot_be():
    n = keypair(256)[0].n
    with pytest.raises(ValueError, match="odd"):
        PaillierPublicKey(n + 1)
    with pytest.raises(ValueError, match="at least 64 bits"):
        PaillierPublicKey(15)
    with pytest.raises(ValueError, match="scheme='djn' with h=None"):
        PaillierPublicKey(n, None, "djn")
    with pytest.raises(ValueError, match="scheme='rsa'"):
        PaillierPublicKey(n, 2, "rsa")
    bad = next(h for h in range(2, 100) if gmpy2.jacobi(h, n) == -1)
    for h in (0, 1, n, bad):
        with pytest.raises(ValueError, match="h should be"):
            PaillierPublicKey(n, h)


def test_nothing_public_holds_a_secret():
    for scheme, size in (("djn", 256), ("subgroup", 576)):
        public, private = keypair(size, scheme)
        private.decrypt(public.encrypt(3))
        assert private.p not in vars(public).values()
        pickled = pickle.dumps(public)
        texts = (repr(public), repr(private), public.to_json(), str(private))
        for secret in filter(None, (private.p, private.q, private.r_p, private.r_q)):
            width = (secret.bit_length() + 7) // 8
            assert int(secret).to_bytes(width, "little") not in pickled
            for text in texts:
                assert str(secret) not in text
                assert f"{secret:x}" not in text
            assert f"{secret:x}" in private.to_json()


def test_no_key_of_a_size_that_does_not_fit_is_looked_for():
    with pytest.raises(ValueError, match="key_size=512 should be even and >= 576"):
        new_keypair(512, "subgroup")
