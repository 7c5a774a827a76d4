"""Time of the consensus protocol, with simulated ciphertexts.

Prints the wall time and the error of the CBCL faces beside scikit-learn's NMF by turns
(where the file is at hand), and the time of the paper's first experiment.

Run it from the project's root: ``python benchmarks/bench_faces.py [--quick]``.
"""

import argparse
import time
import warnings

import numpy as np
from _reference import CBCL
from bench_accuracy import PUBLISHED, simulated
from joblib import Parallel, delayed
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from skppdnmf import load_cbcl, make_paper_synthetic


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
    """Run both parts."""
    warnings.simplefilter("ignore")  # of maskings and graphs that leak
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="fewer seeds and trials")
    quick = parser.parse_args().quick
    cbcl(1 if quick else 7)
    trials(4 if quick else 100)


if __name__ == "__main__":
    main()
