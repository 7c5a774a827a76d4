"""Paillier keys shared by the tests of the exchange; small, hence quick."""

import warnings
from functools import cache

import numpy as np

from skppdnmf.exceptions import InsecureKeyWarning
from skppdnmf.exchange import (
    MaskStream,
    PaillierCipher,
    generate_keypair,
    integer_secrets,
)

MASKINGS = ("scalar", "entrywise")


def keypair(key_size=256, scheme="djn", number=0):
    """The public and the private key; another `number` is another key."""
    return _keypair(key_size, scheme, number)


@cache
def _keypair(key_size, scheme, number):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureKeyWarning)
        return generate_keypair(key_size, scheme)


def cipher(key_size=256, scheme="djn", number=0, **options):
    return PaillierCipher(keypair(key_size, scheme, number)[1], **options)


def random_batch(layout, seed=0):
    """Random values of both sides, masks and dithers."""
    rng = np.random.default_rng(seed)
    limit = 2**layout.value_bits - 1
    if layout.value_bits <= 62:
        own, other = rng.integers(-limit, limit, (2, layout.n_values), endpoint=True)
    else:
        words = rng.integers(-(2**31), 2**31, (2, layout.n_values)).astype(object)
        own, other = words * (limit // 2**32)
    key = np.random.default_rng(seed).bytes(16)
    return own, other, *integer_secrets(MaskStream(key), layout)


def expected_answer(own, other, masks, dither):
    """The oracle, in Python integers."""
    factors = np.broadcast_to(np.asarray(masks, dtype=object), len(own))
    numbers = zip(own.tolist(), other.tolist(), factors, dither.tolist(), strict=True)
    return [int(g) * (v - u) + d for u, v, g, d in numbers]
