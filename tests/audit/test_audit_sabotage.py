"""Broken protections: each is found, and said in the verdict of the report."""

import warnings

import gmpy2
import numpy as np
import pytest
from _audit import SIZES, data, model, pooled

from skppdnmf import _keystream
from skppdnmf._paillier.noise import NoisePool
from skppdnmf._secure_sum import masks as masks_module
from skppdnmf.audit import EavesdropperAttack, audit_report, record
from skppdnmf.exceptions import InsecureKeyWarning
from skppdnmf.exchange import PairwiseMasks


def no_masks(monkeypatch):
    """Masks are removed."""
    monkeypatch.setattr(PairwiseMasks, "mask", lambda self, words, *_: words.copy())


def no_hiding(monkeypatch):
    """Totals go bare."""
    for name in ("hide", "reveal"):
        monkeypatch.setattr(PairwiseMasks, name, lambda self, words, *_: words.copy())


def repeated_stream(monkeypatch):
    """Every sum lies under the same stream, whatever has been told."""
    mask = PairwiseMasks.mask
    monkeypatch.setattr(
        PairwiseMasks,
        "mask",
        lambda self, words, number, others, told: mask(self, words, 7, others),
    )


def counter_reset(monkeypatch):
    """The counter begins anew in the middle of the fit."""
    mask = PairwiseMasks.mask
    monkeypatch.setattr(
        PairwiseMasks,
        "mask",
        lambda self, words, number, others, told: mask(self, words, number % 3, others),
    )


def counter_reset_in_a_message(monkeypatch):
    """The counter of the cipher begins anew with each part of a message."""
    keystream = _keystream.keystream

    class Again:
        def __init__(self, key, nonce):
            self.made = key, nonce

        def update_into(self, source, target):
            return keystream(*self.made).update_into(source, target)

    monkeypatch.setattr(masks_module, "keystream", Again)
    monkeypatch.setattr(masks_module, "_CHUNK_WORDS", 32)


def repeated_link_stream(monkeypatch):
    """Every total is hidden by the same stream."""
    crypt = PairwiseMasks._crypt
    monkeypatch.setattr(
        PairwiseMasks,
        "_crypt",
        lambda self, words, other, number: crypt(self, words, other, 3),
    )


def same_noise(monkeypatch):
    """The first noise of each pool is taken again and again."""
    take = NoisePool.take

    def again(self, count):
        if not hasattr(self, "_first"):
            self._first = take(self, 1)[0]
        return [self._first] * count

    monkeypatch.setattr(NoisePool, "take", again)


def no_noise(monkeypatch):
    """Ciphertexts are 1 + m n."""
    take = NoisePool.take

    def nothing(self, count):
        n = self.public_key.n
        return [(gmpy2.mpz(1), n) for _ in take(self, count)]

    monkeypatch.setattr(NoisePool, "take", nothing)


SUMS = [
    (no_masks, "in clear: masked sum"),
    (no_hiding, "in clear: total"),
    (repeated_stream, "words under a stream that comes again"),
    (counter_reset, "words under a stream that comes again"),
    (counter_reset_in_a_message, "words under a stream that comes again"),
    (repeated_link_stream, "words under a stream that comes again"),
]
CIPHERTEXTS = [
    (same_noise, "ciphertexts with the noise of another"),
    (no_noise, "ciphertexts without noise"),
]


def encrypted():
    """A short encrypted fit."""
    X, agents = data()
    estimator = model(encryption="paillier", key_size=256, max_iter=1, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureKeyWarning)
        return record(estimator, X, agents)


@pytest.mark.parametrize(("sabotage", "text"), SUMS)
def test_a_broken_sum_is_found(monkeypatch, sabotage, text):
    sabotage(monkeypatch)
    leakage = EavesdropperAttack().run(pooled(SIZES))
    assert leakage.recovered == 1
    assert any(text in finding for finding in leakage.details["findings"])


@pytest.mark.parametrize(("sabotage", "text"), CIPHERTEXTS)
def test_broken_encryption_is_found(monkeypatch, sabotage, text):
    sabotage(monkeypatch)
    leakage = EavesdropperAttack().run(encrypted())
    assert leakage.recovered == 1
    assert any(text in finding for finding in leakage.details["findings"])


def test_nothing_is_found_where_nothing_is_broken():
    """The other side of every sabotage, over many fits."""
    for seed in range(8):
        found = EavesdropperAttack(random_state=seed).run(pooled(SIZES, seed=seed))
        assert found.details["findings"] == []
        assert found.details["same_stream"] == 0
    details = EavesdropperAttack().run(encrypted()).details
    assert (details["findings"], details["no_noise"]) == ([], 0)
    assert details["same_noise"] == 0


def test_noise_in_common_is_what_equal_residues_show(monkeypatch):
    """The oracle: the quotient modulo n**2 is one plus a multiple of n."""
    same_noise(monkeypatch)
    one = encrypted()
    from skppdnmf.audit._attacks.eavesdropper import (
        _ciphertexts,
        _letters,
        _moduli,
        _without_copies,
    )

    n = _moduli(one.links)[3]
    requests = [
        int.from_bytes(cipher.data, "big")
        for cipher in _ciphertexts(_without_copies(_letters(one.links, 3)))
        if cipher.letter.kind == "request"
    ]
    quotient = requests[0] * gmpy2.invert(requests[-1], n**2) % n**2
    assert quotient % n == 1
    assert quotient != 1  # they hold other numbers


@pytest.mark.parametrize(("sabotage", "text"), SUMS)
def test_the_verdict_on_a_sum_says_so(monkeypatch, sabotage, text):
    sabotage(monkeypatch)
    estimator, X, agents = pooled(SIZES[:3], fit=False, adjacency="path")
    report = audit_report(estimator, X, agents, max_rounds=5, max_seconds=0.0)
    assert any(text in line for line in report._verdict())
    assert "The links leak" in str(report)
    assert report.table["eavesdropper"]["secure-sum"] == 1


@pytest.mark.parametrize(("sabotage", "text"), CIPHERTEXTS)
def test_the_verdict_on_ciphertexts_says_so(monkeypatch, sabotage, text):
    sabotage(monkeypatch)
    X, agents = data()
    estimator = model(masking="entrywise", max_iter=1, n_jobs=1)
    report = audit_report(estimator, X, agents, max_rounds=5, max_seconds=0.0)
    assert any(text in line for line in report._verdict())
    assert "The links leak" in str(report)


@pytest.mark.journey
def test_sound_links_are_not_blamed():
    estimator, X, agents = pooled(SIZES, fit=False)
    report = audit_report(estimator, X, agents, max_rounds=9, max_seconds=0.0)
    assert "The links leak" not in str(report)
    assert np.isclose(report.table["eavesdropper"]["secure-sum"], 0, atol=0.12)
