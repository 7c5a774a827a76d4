"""Accuracy and speed of the consensus protocol against scikit-learn's NMF.

Prints, for digits, the paper's synthetic data and (where the file is at hand) the
CBCL faces: relative error with the shared components over the best of several
converged scikit-learn runs, and the consensus error. Then the published update with
the paper's parameters, and the time of the paper's first experiment.

Run it from the project's root: ``python benchmarks/bench_accuracy.py [--quick]``.
"""

import argparse
import time
import warnings

import numpy as np
from _reference import CBCL, best_pooled_error, relative_error
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from skppdnmf import PrivateDistributedNMF, load_cbcl, make_paper_synthetic

PUBLISHED = {
    "update": "published",
    "init": "ones",
    "penalty_scaling": "absolute",
    "mu": 0.1,
    "eta": 1.0,
    "g_max": 0.033,
    "masking": "scalar",
    "max_iter": 100,
    "max_admm_iter": 30,
}


def simulated(n_components, **parameters):
    """Estimator with simulated encryption and a fixed number of exchanges."""
    return PrivateDistributedNMF(
        n_components, encryption="simulated", tol=0, **parameters
    )


def table_row(name, results):
    """Print medians and worst values of (error ratio, consensus error)."""
    results = np.array(results)
    median, worst = np.median(results, axis=0), results.max(axis=0)
    print(
        f"{name:34} {median[0]:8.4f} {worst[0]:8.4f} {median[1]:10.5f} {worst[1]:10.5f}"
    )


def digits(n_seeds):
    """Ten agents, average degree 3, defaults."""
    X = load_digits().data
    best = best_pooled_error(X, 10)
    for max_iter in (60, 180):
        results = []
        for seed in range(n_seeds):
            model = simulated(10, partition=10, max_iter=max_iter, random_state=seed)
            model.fit(X)
            results.append((relative_error(model, X) / best, model.consensus_error_))
        table_row(f"digits, K=10, {model.n_exchanges_} exchanges", results)


def synthetic(n_seeds):
    """The paper's synthetic data, defaults."""
    data = [make_paper_synthetic(random_state=seed)[:2] for seed in range(n_seeds)]
    best = [best_pooled_error(X, 5) for X, _ in data]
    for max_iter in (60, 180):
        results = []
        for seed, (X, agents) in enumerate(data):
            model = simulated(5, max_iter=max_iter, random_state=seed)
            model.fit(X, agents=agents)
            ratio = relative_error(model, X) / best[seed]
            results.append((ratio, model.consensus_error_))
        table_row(f"synthetic, K=5, {model.n_exchanges_} exchanges", results)


def published(n_seeds):
    """The printed update: small local error, no consensus."""
    print("\npublished update, the paper's parameters, synthetic data, 3,000 exchanges")
    print(f"{'seed':>4} {'local error':>12} {'shared error':>13} {'consensus':>10}")
    for seed in range(n_seeds):
        X, agents, *_ = make_paper_synthetic(random_state=seed)
        model = simulated(5, random_state=seed, **PUBLISHED).fit(X, agents=agents)
        local, shared = (
            model.history_[name][-1] for name in ("local_error", "shared_error")
        )
        print(f"{seed:4} {local:12.4f} {shared:13.4f} {model.consensus_error_:10.4f}")


def cbcl(n_seeds):
    """Faces, 49 components, against scikit-learn in the same run."""
    print()
    if not CBCL.is_file():
        print("CBCL: no file at hand, left out")
        return
    X = load_cbcl(CBCL)
    seconds, errors, consensus = [], [], []
    for seed in range(n_seeds):  # by turns, as machines are shared
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            pooled = NMF(49, max_iter=200, random_state=seed).fit(X)
        middle = time.perf_counter()
        model = simulated(49, partition=10, random_state=seed).fit(X)
        seconds.append((time.perf_counter() - middle, middle - started))
        errors.append(model.reconstruction_err_ / pooled.reconstruction_err_)
        consensus.append(model.consensus_error_)
    own, pooled_seconds = np.median(seconds, axis=0)
    ratios = [ours / theirs for ours, theirs in seconds]
    print(
        f"CBCL, K=49, {model.n_exchanges_} exchanges, {n_seeds} seeds by turns: "
        f"{np.median(ratios):.2f} times the wall time of NMF(49, max_iter=200) "
        f"({min(ratios):.2f} to {max(ratios):.2f}; {own:.1f} s against "
        f"{pooled_seconds:.1f} s),\n{np.median(errors):.4f} times its error (worst "
        f"{max(errors):.4f}), consensus error {np.median(consensus):.4f}"
    )


def _trial(seed):
    """One trial of the paper's first experiment."""
    X, agents, *_ = make_paper_synthetic(random_state=seed)
    model = simulated(5, random_state=seed, **PUBLISHED).fit(X, agents=agents)
    return model.n_exchanges_


def trials(n_trials):
    """Time the paper's first experiment on two cores."""
    started = time.perf_counter()
    exchanges = sum(Parallel(n_jobs=2)(delayed(_trial)(k) for k in range(n_trials)))
    seconds = time.perf_counter() - started
    print(
        f"\n{n_trials} trials of the paper's first experiment ({exchanges:,} exchanges)"
        f" on two cores: {seconds:.0f} s"
    )


def main():
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="fewer seeds and trials")
    quick = parser.parse_args().quick
    print(f"{'':34} {'error over pooled':>17} {'consensus error':>21}")
    print(f"{'':34} {'median':>8} {'worst':>8} {'median':>10} {'worst':>10}")
    digits(2 if quick else 5)
    synthetic(3 if quick else 10)
    published(1 if quick else 5)
    cbcl(1 if quick else 7)
    trials(4 if quick else 100)


if __name__ == "__main__":
    main()
