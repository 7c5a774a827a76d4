"""Why the built-in penalties are what they are.

Fits digits (ten agents) with one constant of the algorithm changed at a time and
prints the medians over graphs and starts: the relative error over the best pooled
run and the consensus error after 300 exchanges, for samples dealt out evenly and
for samples sorted by class, which makes the agents disagree.

Run it from the project's root: ``python benchmarks/bench_penalties.py [--quick]``.
"""

import argparse
import contextlib
from unittest import mock

import numpy as np
from _reference import best_pooled_error, relative_error
from joblib import Parallel, delayed
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF
from skppdnmf._consensus import factors

VARIANTS = {
    "as built": {},
    "UNIT_PENALTY = 1": {"UNIT_PENALTY": 1.0},
    "UNIT_PENALTY = 0.1": {"UNIT_PENALTY": 0.1},
    "PROXIMAL_WEIGHT = 1 (the bound)": {"PROXIMAL_WEIGHT": 1.0},
    "PROXIMAL_WEIGHT = 0.7": {"PROXIMAL_WEIGHT": 0.7},
    "no extrapolation": {"_EXTRAPOLATION": 0.0},
    "extrapolation at any disagreement": {"_EXTRAPOLATION_DISAGREEMENT": 1e9},
    "right factor to 0.001 from the start": {"_FIRST_RIGHT_TOL": 1e-3},
    "right factor to 0.01 throughout": {
        "_FIRST_RIGHT_TOL": 1e-2,
        "_LAST_RIGHT_TOL": 1e-2,
    },
}


def fit(constants, parameters, X, seed):
    """One fit under changed constants."""
    with contextlib.ExitStack() as stack:
        for name, value in constants.items():
            stack.enter_context(mock.patch.object(factors, name, value))
        model = PrivateDistributedNMF(
            10,
            partition=10,
            encryption="simulated",
            tol=0,
            random_state=seed,
            **parameters,
        ).fit(X)
    return relative_error(model, X), model.consensus_error_


def main():
    """Run all variants."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="two seeds")
    n_seeds = 2 if parser.parse_args().quick else 10
    digits = load_digits()
    even = digits.data
    by_class = even[np.argsort(digits.target, kind="stable")]
    best = best_pooled_error(even, 10)
    print(f"{'':36} {'dealt out evenly':>20} {'sorted by class':>20}")
    print(f"{'':36} {'error':>9} {'consensus':>10} {'error':>9} {'consensus':>10}")
    splits = [
        (f"max_admm_iter = {k}", {}, {"max_admm_iter": k, "max_iter": 300 // k})
        for k in (2, 3, 4, 8, 15)
    ]
    scales = [(f"g_max = {g}", {}, {"g_max": g}) for g in (0.5, 2.0)]
    for name, constants, parameters in [
        *((name, constants, {}) for name, constants in VARIANTS.items()),
        *splits,
        *scales,
    ]:
        figures = []
        for X in (even, by_class):
            results = Parallel(n_jobs=2)(
                delayed(fit)(constants, parameters, X, seed) for seed in range(n_seeds)
            )
            error, consensus = np.median(np.array(results), axis=0)
            figures += [error / best, consensus]
        print(
            f"{name:36} {figures[0]:9.4f} {figures[1]:10.4f} "
            f"{figures[2]:9.4f} {figures[3]:10.4f}"
        )


if __name__ == "__main__":
    main()
