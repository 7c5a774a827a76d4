"""How long `transform` and a grid search take, beside scikit-learn's NMF.

    python benchmarks/bench_citizen.py

prints the time of `transform` on the digits (K = 10) with the same components for
both estimators, and that of a `GridSearchCV` over 3 x 3 x 3 values of mu, eta and
n_max with 5 folds on two cores.
"""

import argparse
import os
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

from skppdnmf import PrivateDistributedNMF

QUICK = bool(os.environ.get("SKPPDNMF_QUICK"))


def time_transform(repeats):
    """Print the time and the error of both transforms."""
    X = load_digits().data
    private = PrivateDistributedNMF(
        10, encryption="simulated", tol=0, random_state=0
    ).fit(X)
    pooled = NMF(10, max_iter=2000, random_state=0).fit(X)
    pooled.components_ = private.components_
    rows = {"NMF": pooled, "PrivateDistributedNMF": private}
    seconds = {name: [] for name in rows}
    for _ in range(repeats):
        for name, model in rows.items():
            started = time.perf_counter()
            model.transform(X)
            seconds[name].append(time.perf_counter() - started)
    print("transform of the digits, K = 10, the same components")
    for name, model in rows.items():
        error = np.linalg.norm(X - model.transform(X) @ private.components_)
        print(
            f"  {name:22} best {1e3 * min(seconds[name]):6.2f} ms, median "
            f"{1e3 * np.median(seconds[name]):6.2f} ms, ||X - W H|| = {error:.6f}"
        )
    ratio = min(seconds["PrivateDistributedNMF"]) / min(seconds["NMF"])
    print(f"  ratio of the best times: {ratio:.2f}")


def time_search(values, folds):
    """Print the time and the outcome of the grid search."""
    X = load_digits().data
    pipeline = Pipeline(
        [
            ("scale", MinMaxScaler(clip=True)),
            (
                "nmf",
                PrivateDistributedNMF(
                    10, encryption="simulated", tol=0, random_state=0
                ),
            ),
        ]
    )
    grid = {
        "nmf__mu": [0.3, 1.0, 3.0][:values],
        "nmf__eta": [0.3, 1.0, 3.0][:values],
        "nmf__n_max": [10**3, 10**4, 10**6][:values],
    }
    started = time.perf_counter()
    search = GridSearchCV(pipeline, grid, cv=folds, n_jobs=2).fit(X)
    seconds = time.perf_counter() - started
    n_fits = values**3 * folds + 1
    print(
        f"GridSearchCV, {values} x {values} x {values} values, {folds} folds, n_jobs=2"
    )
    print(
        f"  {n_fits} fits in {seconds:.1f} s; best {search.best_params_}, "
        f"score {search.best_score_:.4f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5 if QUICK else 50)
    arguments = parser.parse_args()
    time_transform(arguments.repeats)
    time_search(*((2, 2) if QUICK else (3, 5)))
