import pickle
import random
import threading

import gmpy2
import numpy as np
import pytest
from _paillier_keys import keypair

from skppdnmf._paillier.fixed_base import (
    FixedBase,
    TableCache,
    choose_window,
    random_digits,
    table_bytes,
)
from skppdnmf._paillier.noise import embed, owner_noise, responder_bits, responder_noise
from skppdnmf.exchange import (
    TABLES,
    NoisePool,
    PaillierPrivateKey,
    PaillierPublicKey,
    SlotLayout,
)

KEYS = [(256, "djn"), (576, "subgroup"), (256, "full")]


def make_keys(key_size, scheme):
    """As `keypair`, and moreover without a noise base."""
    if scheme != "full":
        return keypair(key_size, scheme)
    private = keypair(key_size)[1]
    public = PaillierPublicKey(private.public_key.n)
    return public, PaillierPrivateKey(public, private.p, private.q)


def as_number(noise, public):
    return embed(*noise, public.n)


def is_residue(x, private):
    """Whether x is an n-th power, that is an encryption of zero."""
    return 0 < x < private.public_key.n_square and private.decrypt(x) == 0


@pytest.mark.parametrize("window", [1, 3, 8])
@pytest.mark.parametrize("n_bits", [1, 8, 29, 64])
def test_fixed_base_powers(window, n_bits):
    public, private = keypair(128)
    for modulus in (public.n, private.p):
        table = FixedBase(public.noise_base, modulus, window)
        digits = random_digits(n_bits, window, 4)
        products, sums = table.powers(digits)
        for k in range(4):
            exponent = sum(row[k] << (window * i) for i, row in enumerate(digits))
            assert exponent < 2**n_bits
            expected = pow(public.noise_base, exponent, modulus**2)
            assert embed(products[k], sums[k], modulus) == expected


def test_tables_grow_with_the_exponents():
    public, _ = keypair(128)
    table = FixedBase(public.noise_base, public.n, 4)
    table.powers([[1], [2]])
    assert len(table.residues) == 2
    (product,), (total,) = table.powers([[0], [0], [3]])
    assert embed(product, total, public.n) == pow(
        public.noise_base, 3 << 8, public.n**2
    )
    assert table.n_bytes == 3 * 16 * 2 * (16 + 64)


def test_digits_use_all_the_bits_asked_for():
    digits = np.array(random_digits(21, 8, 4000))
    assert digits.shape == (3, 4000)
    assert digits.max(axis=1).tolist() == [255, 255, 31]
    assert abs(digits[0].mean() - 127.5) < 8


def test_window_follows_memory_and_use():
    windows = [
        choose_window(1024, 2048, uses, 2**40) for uses in (1, 100, 10**4, 10**7)
    ]
    assert windows == sorted(windows)
    assert windows[0] < windows[-1]
    small = choose_window(1024, 2048, 10**7, 4 << 20)
    assert small < windows[-1]
    assert (
        table_bytes(small, 1024, 2048) <= 4 << 20 < table_bytes(small + 1, 1024, 2048)
    )


def test_cache_keeps_its_budget_and_the_latest():
    now = [0.0]
    cache = TableCache(budget=100, most=40, idle_seconds=60, clock=lambda: now[0])
    offered = []

    def build(size):
        def run(max_bytes):
            offered.append(max_bytes)
            return object(), size

        return run

    first = cache.get("a", build(40))
    assert cache.get("a", build(40)) is first
    cache.get("b", build(40))
    assert offered == [25, 15]
    cache.get("a", build(40))
    cache.get("c", build(20))
    cache.get("d", build(20))
    assert cache.n_bytes <= 100
    assert cache.get("a", build(40)) is first  # b was the least recently used
    offered.clear()
    now[0] = 100.0
    cache.get("e", build(10))
    assert offered == [25]  # idle tables count as free
    cache.clear()
    assert len(cache) == 0


@pytest.mark.parametrize(("key_size", "scheme"), KEYS)
def test_noise_is_an_encryption_of_zero(key_size, scheme):
    public, private = make_keys(key_size, scheme)
    items = owner_noise(private, 5) + responder_noise(public, 5, 300)
    numbers = [as_number(item, public) for item in items]
    assert all(is_residue(x, private) for x in numbers)
    assert len(set(numbers)) == 10
    if scheme != "full":
        assert {gmpy2.jacobi(x % public.n, public.n) for x in numbers} == {1}


def test_subgroup_noise_stays_in_the_subgroup():
    public, private = keypair(576, "subgroup")
    for item in owner_noise(private, 3) + responder_noise(public, 3, 700):
        x = as_number(item, public)
        assert pow(x, private.r_p, private.p_square) == 1
        assert pow(x, private.r_q, private.q_square) == 1


@pytest.mark.parametrize("masking", ["scalar", "entrywise"])
@pytest.mark.parametrize(("key_size", "scheme"), KEYS[:2])
def test_responder_drowns_the_owner(masking, key_size, scheme):
    public, _ = make_keys(key_size, scheme)
    layout = SlotLayout(20, 24, 12, masking, key_size)
    owner = public.owner_bits
    assert owner == (512 if scheme == "subgroup" else key_size // 2)
    terms = layout.slots_per_plaintext if masking == "entrywise" else 1
    largest = terms * (2**owner - 1) * 2**layout.mask_bits
    assert responder_bits(public, layout) - largest.bit_length() >= 63
    assert 2 ** responder_bits(public, layout) >= largest * 2**64


def test_seeds_do_not_reach_the_noise():
    public, private = keypair(256)
    drawn = []
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        drawn += owner_noise(private, 2) + responder_noise(public, 2, 200)
    assert len({as_number(item, public) for item in drawn}) == 8


def test_tables_are_shared_by_copies_of_a_key():
    TABLES.clear()
    public, _ = keypair(256)
    responder_noise(public, 1, 200)
    assert len(TABLES) == 1
    copy = pickle.loads(pickle.dumps(public))
    assert "noise_base" not in vars(copy)
    responder_noise(copy, 1, 200)
    assert len(TABLES) == 1
    assert "noise_base" not in vars(copy)  # the table was found, not rebuilt
    assert len(pickle.dumps(public)) < 400


def test_pool_hands_out_every_item_once():
    public, private = keypair(256)
    pool = NoisePool(private, capacity=60)
    taken = []
    lock = threading.Lock()

    def fill():
        for _ in range(4):
            pool.fill(16)

    def take():
        for _ in range(8):
            items = pool.take(7)
            with lock:
                taken.extend(items)

    threads = [threading.Thread(target=run) for run in (fill, take, fill, take)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 2 * 8 * 7
    assert len(pool) <= 60
    taken += pool.take(len(pool))
    numbers = [as_number(item, public) for item in taken]
    assert len(set(numbers)) == len(numbers)
    assert all(is_residue(x, private) for x in numbers)


def test_pool_respects_its_capacity():
    public, private = keypair(256)
    pool = NoisePool(private, capacity=40)
    assert pool.fill(10) == 10
    assert pool.fill() == 30
    assert pool.fill(5) == 0
    assert len(pool) == 40
    assert len(pool.take(45)) == 45
    assert len(pool) == 0
    layout = SlotLayout(5, 24, 12, "scalar", 256)
    assert NoisePool(public, layout=layout).n_bits == responder_bits(public, layout)


def test_a_forked_pool_is_empty(monkeypatch):
    public, private = keypair(256)
    pool = NoisePool(private, capacity=20)
    pool.fill(8)
    kept = {as_number(item, public) for item in pool._items}
    monkeypatch.setattr("os.getpid", lambda: -1)  # as a child sees it
    assert len(pool) == 0
    taken = {as_number(item, public) for item in pool.take(8)}
    assert not kept & taken
    assert pool.fill() == 20


def test_pools_that_cannot_be():
    public, private = keypair(256)
    with pytest.raises(ValueError, match="capacity=0"):
        NoisePool(private, capacity=0)
    with pytest.raises(ValueError, match="layout"):
        NoisePool(public)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(NoisePool(private))
    pool = NoisePool(private)
    pool.fill(1)
    assert repr(pool) == "NoisePool(role='owner', 1 of 1024 items)"
