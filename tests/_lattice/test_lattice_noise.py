"""The bound on an answer's noise, the flood that hides it, and why it is needed."""

from fractions import Fraction
from math import prod

import numpy as np
import pytest
from _lattice_keys import lattice_key, need_tenseal, noise_of, polynomials
from scipy.stats import kstest

from skppdnmf._lattice.flood import draw_flood, random_digits, residues
from skppdnmf._lattice.noise import (
    ANSWER_BITS,
    DISTANCE_BITS,
    MOST_NOISE,
    answer_noise,
    bound_noise,
)
from skppdnmf._lattice.parameters import (
    DEGREE,
    N_DATA_PRIMES,
    LatticeLayout,
    coefficient_primes,
    kept_primes,
    plain_moduli,
)

USED = [(40, "entrywise"), (40, "scalar"), (60, "scalar")]
MASK_BITS = 12


@pytest.mark.parametrize(("plain_bits", "masking"), USED)
def test_the_flood_hides_all_answers_and_leaves_a_budget(plain_bits, masking):
    bound = answer_noise(plain_bits, masking, MASK_BITS)
    moved = Fraction(bound.answer, 2 * 2**bound.flood_bits)
    assert moved * DEGREE * 2**ANSWER_BITS <= Fraction(1, 2**DISTANCE_BITS)
    q, t = prod(coefficient_primes()[:-1]), plain_moduli(plain_bits, 1)[0]
    assert 2 * t * (bound.answer + 2**bound.flood_bits) < q
    assert bound.budget_bits >= 1
    assert bound.sent_budget_bits >= 1


def test_parameters_that_leave_no_room_are_refused():
    primes, norm = coefficient_primes(), DEGREE * 2**39
    modulus = plain_moduli(40, 1)[0]
    bound_noise(primes, 1, modulus, norm)
    with pytest.raises(ValueError, match=r"60 bits.*flood of 1[0-9]{2} bits leaves -"):
        bound_noise(primes, 1, plain_moduli(60, 1)[0], norm)
    with pytest.raises(ValueError, match="after the switch to 1 primes"):
        bound_noise(primes, 1, plain_moduli(60, 1)[0], 2**MASK_BITS)
    with pytest.raises(ValueError, match="noise budget"):
        bound_noise(primes[1:], 1, modulus, norm)
    with pytest.raises(ValueError, match="noise budget"):
        bound_noise(primes, 1, modulus, norm, answer_bits=ANSWER_BITS + 8)


@pytest.mark.parametrize("prime", coefficient_primes()[:N_DATA_PRIMES])
@pytest.mark.parametrize("bits", [1, 30, 31, 60, 94, 134])
def test_residues_are_those_of_the_numbers(prime, bits):
    digits = random_digits(200, bits)
    assert digits[0].max() < 2 ** (bits - 30 * (len(digits) - 1))
    numbers = [0] * 200
    for digit in digits.tolist():
        numbers = [n * 2**30 + d for n, d in zip(numbers, digit, strict=True)]
    assert residues(digits, prime).tolist() == [n % prime for n in numbers]


def test_residues_of_a_prime_far_from_a_power_of_two():
    with pytest.raises(ValueError, match="prime 65537 does not lie just below"):
        residues(random_digits(3, 40), 65537)


def test_the_flood_is_uniform_and_the_same_number_modulo_each_prime():
    primes, bits = coefficient_primes()[:N_DATA_PRIMES], 133
    rows = draw_flood(4000, bits, primes)
    q, numbers = prod(primes), np.zeros(4000, dtype=object)
    for row, prime in zip(rows, primes, strict=True):
        rest = q // prime
        numbers += row.astype(object) * (rest * pow(rest, -1, prime))
    numbers %= q
    numbers[numbers > q // 2] -= q
    assert max(numbers) < 2**bits
    assert min(numbers) >= -(2**bits)
    uniform = (numbers / 2**bits).astype(float)
    assert kstest(uniform, "uniform", args=(-1, 2)).pvalue > 1e-6
    assert len({*numbers.tolist()}) == 4000


# What the owner of the key sees --------------------------------------------------


@pytest.fixture(scope="module")
def asked():
    """A request of known values, as the neighbour gets it."""
    need_tenseal()
    from skppdnmf._lattice.batch import encrypt

    layout = LatticeLayout(DEGREE, 24, MASK_BITS, "entrywise")
    return layout, encrypt(lattice_key(), np.arange(DEGREE), layout)[0]


def answer_to(asked, masks, flooded):
    """An answer before its switch to fewer primes, under masks of one's choice."""
    from skppdnmf._lattice.batch import masked
    from skppdnmf._lattice.seal import ring

    layout, request = asked
    here = ring(layout.moduli[0])
    own = np.zeros(DEGREE, dtype=np.int64)
    given = here, lattice_key().public_key, here.read_seeded(request), masks, own
    return here, masked(*given, layout, flooded)


ONES = np.ones(DEGREE, dtype=np.int64)
MIXED = np.random.default_rng(0).integers(413, 4094, DEGREE)


def test_fresh_noise_is_what_the_bound_takes_it_for(asked):
    from skppdnmf._lattice.seal import ring

    layout, request = asked
    here = ring(layout.moduli[0])
    noise = noise_of(lattice_key(), here.plain_modulus, here.read_seeded(request))
    assert 8 < np.abs(noise).max() <= MOST_NOISE + 1
    # A centred binomial of 42 bits.
    assert noise.astype(float).std() == pytest.approx((42 / 4) ** 0.5, rel=0.05)
    fresh = here.api.Ciphertext()
    encryptor = lattice_key().public_key.encryptor(here.plain_modulus)
    encryptor.encrypt(here.encode(np.arange(DEGREE)), fresh)
    noise = noise_of(lattice_key(), here.plain_modulus, fresh)
    assert np.abs(noise).max() <= (DEGREE + 1) // 2 + 3


def test_noise_tells_the_masks_apart_without_the_flood_and_not_with_it(asked):
    layout = asked[0]
    bound = answer_noise(layout.plain_bits, layout.masking, MASK_BITS)
    found = {}
    for flooded in (True, False):
        for name, masks in (("ones", ONES), ("mixed", MIXED)):
            here, answer = answer_to(asked, masks, flooded)
            noise = noise_of(lattice_key(), here.plain_modulus, answer)
            assert np.abs(noise).max() <= bound.answer + flooded * 2**bound.flood_bits
            found[flooded, name] = noise.astype(float)
    assert kstest(found[False, "ones"], found[False, "mixed"]).pvalue < 1e-100
    assert (
        np.abs(found[False, "mixed"]).max() > 2**16 * np.abs(found[False, "ones"]).max()
    )
    assert kstest(found[True, "ones"], found[True, "mixed"]).pvalue > 1e-4
    width = 2.0**bound.flood_bits
    for name in ("ones", "mixed"):
        uniform = kstest(found[True, name] / width, "uniform", args=(-1, 2))
        assert uniform.pvalue > 1e-4


def test_fresh_encryption_hides_what_the_second_polynomial_would_confirm(asked):
    from skppdnmf._lattice.seal import ring

    layout, request = asked
    here = ring(layout.moduli[0])
    # The owner tries masks: those that were used give the answer's own polynomial.
    bare = here.read_seeded(request)
    here.evaluator.multiply_plain_inplace(bare, here.encode(MIXED))
    again = here.read_seeded(request)
    here.evaluator.multiply_plain_inplace(again, here.encode(MIXED))
    seconds = [polynomials(here, one)[1] for one in (bare, again)]
    assert (seconds[0] == seconds[1]).all()
    answers = [answer_to(asked, MIXED, True)[1] for _ in range(2)]
    fresh = [polynomials(here, one)[1] for one in answers]
    for one, other in ((fresh[0], seconds[0]), (fresh[0], fresh[1])):
        assert (one == other).mean() < 0.01
        difference = one[0].astype(float) / coefficient_primes()[0]
        assert kstest(difference, "uniform").pvalue > 1e-4


@pytest.mark.parametrize(("plain_bits", "masking"), USED)
def test_answers_on_the_wire_keep_the_promised_budget(plain_bits, masking):
    need_tenseal()
    from skppdnmf._lattice.batch import encrypt, respond
    from skppdnmf._lattice.seal import ring

    layout = LatticeLayout(5, 24 if plain_bits == 40 else 45, MASK_BITS, masking)
    assert layout.plain_bits == plain_bits
    key, values = lattice_key(), np.arange(5)
    masks = 4093 if masking == "scalar" else np.full(5, 4093)
    request = encrypt(key, values, layout)
    public = key.public_key
    (data,) = respond(public, request, -values, masks, values, layout)
    here = ring(layout.moduli[0])
    kept = kept_primes(plain_bits)
    noise = noise_of(key, here.plain_modulus, here.read(data, kept))
    promised = answer_noise(plain_bits, masking, MASK_BITS).sent_budget_bits
    limit = prod(coefficient_primes()[:kept]) / (2 * here.plain_modulus)
    assert np.abs(noise).max() * 2**promised <= limit
