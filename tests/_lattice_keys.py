"""Lattice keys shared by tests, and what only the owner of a key can compute."""

from functools import cache
from math import prod

import numpy as np
import pytest
from scipy.signal import fftconvolve

from skppdnmf._lattice.parameters import DEGREE, N_DATA_PRIMES, coefficient_primes
from skppdnmf._lattice.seal import ring
from skppdnmf.exchange import LatticeCipher, new_lattice_keypair

LIMB_BITS = 20  # sums of 8192 limbs stay exact in a double


def need_tenseal():
    for name in ("tenseal", "zstandard"):
        pytest.importorskip(name, reason="the lattice cipher needs skppdnmf[lattice]")


@cache
def lattice_key(number=0):
    """A key pair; another `number` is another key."""
    return new_lattice_keypair()


def lattice_cipher(number=0):
    return LatticeCipher(lattice_key(number))


def coefficients(plain):
    """Coefficients of a plaintext, below the modulus."""
    count = plain.coeff_count()
    found = [plain.data(k) for k in range(count)]
    return found + [0] * (DEGREE - count)


def polynomials(here, ciphertext):
    """Residues of both polynomials: shape (2, n_primes, DEGREE)."""
    words = np.frombuffer(here.write(ciphertext), dtype=">u8").astype(np.uint64)
    return words.reshape(2, -1, DEGREE)


@cache
def secret(key, modulus):
    """The secret polynomial, by decrypting what has it for its message."""
    here = ring(modulus)
    primes = coefficient_primes()[:N_DATA_PRIMES]
    words = np.zeros((2, N_DATA_PRIMES, DEGREE), dtype=">u8")
    words[1, :, 0] = [prod(primes) // modulus % prime for prime in primes]
    plain = here.api.Plaintext()
    ciphertext = here.read(words.tobytes(), N_DATA_PRIMES)
    key.tools(modulus).decryptor.decrypt(ciphertext, plain)
    found = np.array(coefficients(plain))
    found[found == modulus - 1] = -1
    assert set(found.tolist()) == {-1, 0, 1}
    return found


def noise_of(key, modulus, ciphertext):
    """Every coefficient's noise, as Python integers."""
    here = ring(modulus)
    primes = coefficient_primes()[: ciphertext.coeff_modulus_size()]
    q = prod(primes)
    s = secret(key, modulus).astype(float)
    first, second = polynomials(here, ciphertext)
    phase = np.zeros(DEGREE, dtype=object)
    for prime, c0, c1 in zip(primes, first, second, strict=True):
        row = c0.astype(object)
        for limb in range(3):
            part = (c1 >> np.uint64(LIMB_BITS * limb)) & np.uint64(2**LIMB_BITS - 1)
            product = np.rint(fftconvolve(part.astype(float), s)).astype(np.int64)
            wrapped = product[:DEGREE].copy()
            wrapped[:-1] -= product[DEGREE:]  # x**DEGREE is -1
            row = row + wrapped.astype(object) * (1 << LIMB_BITS * limb)
        rest = q // prime
        phase += row % prime * (rest * pow(rest, -1, prime))
    plain = here.api.Plaintext()
    key.tools(modulus).decryptor.decrypt(ciphertext, plain)
    message = np.array(coefficients(plain), dtype=object)
    noise = (phase - (message * q + modulus // 2) // modulus) % q
    noise[noise > q // 2] -= q
    return noise
