"""Kullback-Leibler under the secure sum beside scikit-learn's multiplicative updates.

Run ``python benchmarks/bench_divergence.py [--quick]``. Digits, sparse counts of words
as of newsgroups, and a matrix of mutation catalogues, both made here; ten agents, five
seeds. Times are medians of fits that take turns.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from skppdnmf import PrivateDistributedNMF

QUICK = "--quick" in sys.argv
EXCHANGES = 200


def make_words(n_documents=1500, n_words=3000, n_topics=20):
    """Return sparse counts of words: topics of rare words, documents of few topics."""
    rng = np.random.default_rng(0)
    usual = 1.0 / np.arange(1, n_words + 1)
    topics = rng.dirichlet(20 * usual / usual.sum() + 0.005, size=n_topics)
    shares = rng.dirichlet(np.full(n_topics, 0.1), size=n_documents)
    lengths = rng.integers(40, 200, size=n_documents)
    drawn = [
        rng.multinomial(n, p) for n, p in zip(lengths, shares @ topics, strict=True)
    ]
    return sparse.csr_matrix(np.array(drawn, dtype=float)), n_topics


def make_catalogues(n_tumours=1000, n_kinds=96, n_signatures=8):
    """Return counts of mutations by kind."""
    rng = np.random.default_rng(0)
    signatures = rng.dirichlet(np.full(n_kinds, 0.15), size=n_signatures)
    exposures = 200 * rng.gamma(0.5, size=(n_tumours, n_signatures))
    return rng.poisson(exposures @ signatures).astype(float), n_signatures


def timed(estimator, X):
    """Return a fitted estimator and the seconds that it took."""
    started = time.perf_counter()
    estimator.fit(X)
    return estimator, time.perf_counter() - started


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    data = {
        "digits": (load_digits().data, 10),
        "words, sparse": make_words(),
        "mutation catalogues": make_catalogues(),
    }
    print(f"\n## Loss and time at {EXCHANGES} exchanges over NMF(mu, 200 iterations)")
    print(f"{'':22}{'K':>4}{'loss, mean':>12}{'worst':>8}{'time':>8}{'seconds':>9}")
    for name, (X, K) in data.items():
        losses, times, ours = [], [], []
        for seed in range(2 if QUICK else 5):
            given = {"beta_loss": "kullback-leibler", "tol": 0, "random_state": seed}
            pooled, theirs = timed(
                NMF(K, solver="mu", init="random", max_iter=200, **given), X
            )
            model, seconds = timed(
                PrivateDistributedNMF(
                    K,
                    protocol="secure-sum",
                    partition=10,
                    max_iter=EXCHANGES,
                    **given,
                ),
                X,
            )
            losses.append((model.reconstruction_err_ / pooled.reconstruction_err_) ** 2)
            times.append(seconds / theirs)
            ours.append(seconds)
        print(
            f"{name:22}{K:4d}{np.mean(losses):12.4f}{max(losses):8.4f}"
            f"{np.median(times):8.2f}{np.median(ours):9.2f}"
        )


if __name__ == "__main__":
    main()
