"""Data on which the consensus falls short of the secure sum, and by how much.

Run ``python benchmarks/bench_hard_data.py [--quick]``. Fits are "simulated"; errors are
over those of NMF on the pooled data with the same objective.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from skppdnmf import PrivateDistributedNMF

QUICK = "--quick" in sys.argv
K = 6
ITERATIONS = (60,) if QUICK else (60, 240)


def fits(X, **parameters):
    """Return fits of both protocols by name."""
    protocols = {
        f"consensus, {max_iter} iterations": {
            "encryption": "simulated",
            "max_iter": max_iter,
        }
        for max_iter in ITERATIONS
    }
    protocols["secure sum, 60 iterations"] = {"protocol": "secure-sum"}
    for name, protocol in protocols.items():
        yield (
            name,
            PrivateDistributedNMF(
                K, partition=5, tol=0, random_state=0, **protocol, **parameters
            ).fit(X),
        )


def print_zero_feature(X) -> None:
    """Print the largest component entry of a feature that is zero everywhere."""
    X = X.copy()
    X[:, 20] = 0.0
    print("\n## A feature of zeros: its largest entry over the components' largest")
    for name, model in fits(X):
        H = model.components_
        print(f"{name:26} {H[:, 20].max() / H.max():.1e}")


def print_one_sided(X) -> None:
    """Print the objective with a penalty on the right factor alone."""
    print("\n## A penalty on the right factor alone: alpha_W=0.01, alpha_H=0")
    print("objective over that of the secure sum, and the error over ||X||")
    rows = []
    for name, model in fits(X, alpha_W=0.01, alpha_H=0.0):
        W, H = model.transform(X), model.components_
        objective = 0.5 * np.sum((X - W @ H) ** 2)
        objective += 0.5 * 0.01 * X.shape[1] * np.sum(W**2)
        error = np.linalg.norm(X - W @ H) / np.linalg.norm(X)
        rows.append((name, objective, error))
    for name, objective, error in rows:
        print(f"{name:26} {objective / rows[-1][1]:.3f}  {error:.4f}")


def print_large_sample(X) -> None:
    """Print errors where one sample is far larger than all others."""
    print("\n## One sample 100,000 times as large: error over that of pooled NMF")
    X = X.copy()
    X[0] *= 1e5
    pooled = NMF(K, init="nndsvda", max_iter=2000, tol=1e-6).fit(X)
    reference = float(pooled.reconstruction_err_)
    print(f"{'pooled NMF':26} 1.00, {reference / np.linalg.norm(X):.1e} of ||X||")
    for name, model in fits(X):
        error = model.reconstruction_err_
        print(f"{name:26} {error / reference:.2f}")


def main() -> None:
    """Print everything."""
    warnings.simplefilter("ignore")
    X = load_digits().data[:300]
    X = X[:, X.any(axis=0)]
    print_zero_feature(X)
    print_one_sided(X)
    print_large_sample(X)


if __name__ == "__main__":
    main()
