"""What the links tell, and that the attack would see more if they told more."""

import numpy as np
import pytest
from _audit import VICTIM, transcript
from _lattice_keys import need_tenseal

from skppdnmf._agent import ENVELOPE_BYTES
from skppdnmf._lattice.parameters import DEGREE, WORD_BYTES
from skppdnmf._lattice.payload import SEED_BYTES
from skppdnmf.audit import EavesdropperAttack, LinkView

KEY_SIZE = 256
POLYNOMIAL = DEGREE * WORD_BYTES


@pytest.fixture(scope="module")
def encrypted():
    return transcript(encryption="paillier", key_size=KEY_SIZE, max_iter=3)


def changed(one, change):
    """The links of a transcript with other messages from the victim."""
    letters = {
        edge: tuple(change(letter, k) for k, letter in enumerate(some))
        for edge, some in one.links.letters.items()
    }
    return LinkView(one.links.public, letters)


def with_lowest_bits(letter, bit):
    """A message whose ciphertexts are all odd or all even."""
    if not letter.n_ciphertexts:
        return letter
    data = bytearray(letter.data)
    for k in range(letter.n_ciphertexts):
        last = -1 - k * 2 * KEY_SIZE // 8
        data[last] = data[last] & 0xFE | bit
    return letter._replace(data=bytes(data))


def test_ciphertexts_tell_nothing(encrypted):
    leakage = EavesdropperAttack().run(encrypted, None, VICTIM)
    details = leakage.details
    assert leakage.attacker is None
    assert (leakage.target, leakage.guess_error) == ("links", 0.5)
    assert leakage.recovered < 0.1
    assert details["ciphertexts"] > 500
    assert details["repeated"] == 0
    assert all(len(sizes) == 1 for sizes in details["sizes"].values())
    assert abs(details["odd"] - 0.5) < 2.5 / np.sqrt(details["ciphertexts"])
    assert details["uniform"] > 1e-3


@pytest.mark.parametrize("masking", ["scalar", "entrywise"])
def test_two_known_data_sets_look_alike_but_for_headers(masking):
    common = {"encryption": "paillier", "key_size": KEY_SIZE, "masking": masking}
    one = transcript(**common, max_iter=2, seed=0)
    other = transcript(**common, max_iter=2, seed=0, data_seed=2)
    leakage = EavesdropperAttack(other).run(one, None, VICTIM)
    assert leakage.recovered < 0.25
    # The scale of the data is public, and in the headers.
    assert "scale" in leakage.details["headers_differ"]
    same = EavesdropperAttack(one).run(one, None, VICTIM)
    assert same.details["headers_differ"] == []


def test_every_agent_by_default(encrypted):
    everyone = EavesdropperAttack().run(encrypted)
    one = EavesdropperAttack().run(encrypted, 0, VICTIM)
    assert everyone.details["ciphertexts"] > one.details["ciphertexts"]
    assert everyone.victim is None


def test_bits_that_depend_on_the_data_are_seen(encrypted):
    rounds = encrypted.view(VICTIM).left_rounds
    middle = rounds[len(rounds) // 2].number
    planted = changed(
        encrypted, lambda letter, k: with_lowest_bits(letter, letter.round < middle)
    )
    assert EavesdropperAttack().read(planted, VICTIM)["error"] < 0.2


def test_repetitions_sizes_and_parities_are_seen(encrypted):
    reply = next(
        letter for letter in encrypted.link(VICTIM, 2) if letter.kind == "reply"
    )

    def repeat(letter, k):
        again = letter.kind == "reply" and letter.n_bytes == reply.n_bytes
        return letter._replace(data=reply.data) if again else letter

    repeated = EavesdropperAttack().read(changed(encrypted, repeat), VICTIM)
    assert repeated["repeated"] > 10

    def lengthen(letter, k):
        longer = letter.n_bytes + 1 if k % 7 == 0 else letter.n_bytes
        return letter._replace(n_bytes=longer)

    lengths = EavesdropperAttack().read(changed(encrypted, lengthen), VICTIM)
    assert any(len(sizes) > 1 for sizes in lengths["sizes"].values())

    even = changed(encrypted, lambda letter, k: with_lowest_bits(letter, 0))
    found = EavesdropperAttack().read(even, VICTIM)
    assert found["odd"] == 0
    assert found["uniform"] > 1e-3  # of the other bits


def test_one_request_to_all_neighbours_is_no_repetition():
    one = transcript(
        encryption="paillier", key_size=KEY_SIZE, adjacency="ring", max_iter=1
    )
    data = [
        letter.data[ENVELOPE_BYTES:]
        for edge in ((0, n) for n in one.public.neighbours(0))
        for letter in one.link(*edge)
        if letter.kind == "request" and letter.n_ciphertexts
    ]
    assert len(set(data)) == len(data) // 2
    assert EavesdropperAttack().run(one, None, 0).details["repeated"] == 0


def random_lowest_bits(one, seed):
    """Links whose ciphertexts end in random bytes, the copies of a request in equal."""
    rng = np.random.default_rng(seed)
    drawn = {}

    def change(letter, k):
        if not letter.n_ciphertexts:
            return letter
        body = letter.data[ENVELOPE_BYTES:]
        if body not in drawn:
            data = bytearray(body)
            for n in range(letter.n_ciphertexts):
                end = len(data) - n * 2 * KEY_SIZE // 8
                data[end - 8 : end] = rng.bytes(8)
            drawn[body] = bytes(data)
        return letter._replace(data=letter.data[:ENVELOPE_BYTES] + drawn[body])

    return changed(one, change)


def test_copies_of_a_request_are_no_leak():
    """Random bits tell nothing although each request goes over two links."""
    one = transcript(
        encryption="paillier", key_size=KEY_SIZE, adjacency="complete", max_iter=1
    )
    found = [
        EavesdropperAttack(random_state=seed).read(random_lowest_bits(one, seed))
        for seed in range(12)
    ]
    assert [details["error"] for details in found] == [0.5] * 12
    assert [details["repeated"] for details in found] == [0] * 12
    assert min(details["uniform"] for details in found) > 1e-3
    sent = sum(
        letter.n_ciphertexts for some in one.links.letters.values() for letter in some
    )
    assert {details["ciphertexts"] for details in found} == {sent}


def test_without_ciphertexts():
    with pytest.raises(ValueError, match='encryption="paillier"'):
        EavesdropperAttack().run(transcript())


# The lattice cipher --------------------------------------------------------------


@pytest.fixture(scope="module")
def lattice():
    need_tenseal()
    return transcript(encryption="bfv", max_iter=2, max_admm_iter=2)


def test_lattice_ciphertexts_tell_nothing(lattice):
    leakage = EavesdropperAttack().run(lattice, None, None)
    details = leakage.details
    assert details["findings"] == []
    assert details["ciphertexts"] > 100
    assert details["repeated"] == details["no_noise"] == details["same_noise"] == 0
    assert all(len(sizes) == 1 for sizes in details["sizes"].values())


@pytest.mark.parametrize(
    ("kind", "name"), [("request", "same_noise"), ("reply", "no_noise")]
)
def test_lattice_randomness_that_is_missing_is_found(lattice, kind, name):
    seed = bytes(range(SEED_BYTES))

    def bare(letter, k):
        if letter.kind != kind or not letter.n_ciphertexts:
            return letter
        data = bytearray(letter.data)
        start = len(data) % POLYNOMIAL - SEED_BYTES * (kind == "request")
        if kind == "request":
            data[start : start + SEED_BYTES] = seed
        else:
            data[start + (len(data) - start) // 2 :] = bytes((len(data) - start) // 2)
        return letter._replace(data=bytes(data))

    details = EavesdropperAttack().read(changed(lattice, bare), VICTIM)
    assert details[name] > 3
