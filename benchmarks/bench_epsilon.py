"""What an attacker really gets of a guarantee, over hundreds of pairs of whole fits.

One of each pair is of a pool, the other of the pool and one sample more, which is as
far as a sample can be from what the others are like. An agent records what it sees of
each fit and scores the sample: "knows the rest", an attacker that knows all other
samples and takes off what they add; "audit", `MembershipAttack` with references. From
the scores follows a lower bound of epsilon: the logarithm of the ratio of the rates at
which both kinds of fits exceed a threshold, at the ends of their intervals (Clopper and
Pearson, 95 % for all thresholds together). It is to stay below what is claimed. With
the noise switched off it has to be far above, or the attack would be no measure; how
far, the number of pairs limits.

Run it from the project's root: ``python benchmarks/bench_epsilon.py [--quick]``; with
--pairs a number of pairs.
"""

import argparse
import math
import os
import warnings
from unittest import mock

import numpy as np
from scipy import stats

from skppdnmf import PrivateDistributedNMF
from skppdnmf._secure_sum import noisy_totals
from skppdnmf.audit import MembershipAttack, record
from skppdnmf.audit._attacks.evidence import SumEvidence
from skppdnmf.audit._attacks.noisy_pool import NoisyPool

K, F, N_AGENTS, DELTA = 2, 4, 4, 1e-3
PLANTED = np.eye(F)[:1]
QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 1.0)


def pool_of(n, seed):
    """Samples of unit norm that hardly have the planted one's feature."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n, F)) * [0.05, 1.0, 1.0, 1.0]
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def scores_of(epsilon, pool, references, planted, seed):
    """Record a fit and score the planted sample by both attackers."""
    parts = np.array_split(pool, N_AGENTS)
    if planted:
        parts[-1] = np.vstack([parts[-1], PLANTED])
    model = PrivateDistributedNMF(
        K,
        protocol="secure-sum",
        adjacency="complete",
        epsilon=epsilon,
        delta=DELTA,
        clip=1.0,
        max_colluding=1,
        max_iter=8,
        random_state=seed,
    )
    view = record(model, parts).view(0)
    n_others = sum(map(len, parts[1:]))
    evidence = SumEvidence(NoisyPool(view, n_others=n_others))
    trace = evidence.traces(PLANTED)
    rest = evidence.traces(np.vstack(np.array_split(pool, N_AGENTS)[1:]))
    knowing = evidence.with_sum(trace) - evidence.inner(rest, trace).sum(axis=0)
    sizes = dict(zip((1, 2, 3), map(len, parts[1:]), strict=True))
    audit = MembershipAttack(references).decide(view, PLANTED, sizes)
    return knowing[0], audit[0]


def empirical_epsilon(without, with_it, delta):
    """Return a lower bound of epsilon, with a confidence of 95 %."""
    n, best = len(without), 0.0
    level = 0.025 / (2 * len(QUANTILES))
    for out, members in ((without, with_it), (-with_it, -without)):
        for threshold in np.quantile(out, QUANTILES):
            true, false = (members > threshold).sum(), (out > threshold).sum()
            least = stats.beta.ppf(level, true, n - true + 1) if true else 0.0
            most = stats.beta.ppf(1 - level, false + 1, n - false)
            if least > delta:
                best = max(best, math.log((least - delta) / most))
    return best


def measure(epsilon, n_pairs, n_pool, noise):
    """Return the scores of all pairs, of shape (attackers, 2, pairs)."""
    references = pool_of(300, 1)
    pool = pool_of(n_pool, 0)

    def silence(scale, size):
        return np.zeros(size, dtype=np.int64)

    drawn = noisy_totals.discrete_gaussian if noise else silence
    with mock.patch.object(noisy_totals, "discrete_gaussian", drawn):
        found = [
            [scores_of(epsilon, pool, references, planted, 0) for _ in range(n_pairs)]
            for planted in (False, True)
        ]
    return np.transpose(found, (2, 0, 1))


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="60 pairs, one epsilon")
    parser.add_argument("--pairs", type=int, help="number of pairs")
    given = parser.parse_args()
    quick = given.quick or os.environ.get("SKPPDNMF_QUICK") == "1"
    n_pairs = given.pairs or (60 if quick else 500)
    warnings.simplefilter("ignore")
    print(f"{n_pairs} pairs of fits, delta {DELTA:g}, pool 600, K = {K}, {F} features")
    print(
        f"{'epsilon':>8}{'noise':>8}{'attacker':>18}{'epsilon found':>15}"
        f"{'AUC':>8}{'at most':>9}"
    )
    for epsilon in (1.0,) if quick else (1.0, 2.0):
        mu = noisy_totals.NoiseSettings(
            N_AGENTS, 8, epsilon, DELTA, 1.0, 1
        ).guarantee.mu
        for noise in (True, False):
            scores = measure(epsilon, n_pairs, 600, noise)
            for name, (without, with_it) in zip(
                ("knows the rest", "audit"), scores, strict=True
            ):
                found = empirical_epsilon(without, with_it, DELTA)
                auc = stats.mannwhitneyu(with_it, without).statistic / n_pairs**2
                most = stats.norm.cdf(mu / math.sqrt(2)) if noise else 1.0
                print(
                    f"{epsilon:>8g}{'on' if noise else 'off':>8}{name:>18}"
                    f"{found:>15.2f}{auc:>8.3f}{most:>9.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
