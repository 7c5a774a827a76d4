"""What the benchmarks compare with: scikit-learn's NMF on the pooled data."""

import warnings
from pathlib import Path

import numpy as np
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

CBCL = Path(__file__).resolve().parents[2] / "shared" / "data" / "cbcl.npz"


def best_pooled_error(X, n_components, n_runs=3):
    """Relative error of the best of several converged scikit-learn runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        errors = [
            NMF(n_components, init=init, random_state=0, max_iter=5000, tol=1e-6)
            .fit(X)
            .reconstruction_err_
            for init in ("nndsvda", "random", "nndsvdar")[:n_runs]
        ]
        errors.append(
            NMF(n_components, init="random", random_state=1, max_iter=5000, tol=1e-6)
            .fit(X)
            .reconstruction_err_
        )
    return min(errors) / np.linalg.norm(X)


def relative_error(model, X):
    """Relative error of a fitted estimator's shared components."""
    return model.reconstruction_err_ / np.linalg.norm(X)
