"""Accuracy of the consensus protocol against scikit-learn's NMF.

Prints, for many kinds of data and for 100, 300 and 900 exchanges, the error with the
shared components over that of the same start run to convergence by one agent, and the
consensus error; where NMF itself needs thousands of iterations, over the median error
of scikit-learn's. Then the published update with the paper's parameters.

Run it from the project's root: ``python benchmarks/bench_accuracy.py [--quick]``.
"""

import argparse
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from skppdnmf import PrivateDistributedNMF, make_paper_synthetic

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


def expression(seed):
    """Samples like gene expression: few, broad, of heavy-tailed noise; four agents."""
    rng = np.random.default_rng(1)
    H = rng.lognormal(0, 1.5, (3, 2000))
    W = rng.dirichlet([0.5] * 3, 38) * rng.lognormal(0, 0.3, (38, 1))
    X = np.maximum(100 * (W @ H) * rng.lognormal(0, 1.0, (38, 2000)), 20)
    return X, blocks(X, 4), 3, {}


def blocks(X, n_agents):
    """Contiguous blocks of samples, as even as can be."""
    parts = np.array_split(np.arange(len(X)), n_agents)
    return np.repeat(np.arange(n_agents), [len(part) for part in parts])


def even_digits(seed):
    """Digits dealt to ten agents."""
    X = load_digits().data
    return X, blocks(X, 10), 10, {}


def digits_by_class(scaled=False, adjacency="random"):
    """Digits of which every agent has one class, perhaps in a unit of its own."""

    def make(seed):
        X, labels = load_digits(return_X_y=True)
        if scaled:
            X = X * 10.0 ** (labels[:, None] / 3)
        return X, labels, 10, {"adjacency": adjacency}

    return make


def synthetic(seed):
    """The paper's synthetic data."""
    X, agents, *_ = make_paper_synthetic(random_state=seed)
    return X, agents, 5, {}


def measured(load, n_components):
    """A small set of scikit-learn's as it comes, in five blocks."""

    def make(seed):
        X = load().data
        return X, blocks(X, 5), n_components, {}

    return make


KINDS = {
    "expression-like": expression,
    "digits, even": even_digits,
    "digits by class": digits_by_class(),
    "digits by class, ring": digits_by_class(adjacency="ring"),
    "digits by class, scaled": digits_by_class(scaled=True),
    "paper's synthetic": synthetic,
}
# Where pooled NMF itself needs thousands of iterations, it is compared with that.
SLOW_KINDS = {
    "iris": measured(load_iris, 3),
    "wine": measured(load_wine, 3),
    "breast cancer": measured(load_breast_cancer, 5),
}
EXCHANGES = (100, 300, 900)


def reference(make, seed, slow):
    """Error of the same start run to convergence by one agent, or of NMF."""
    X, _, n_components, _ = make(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if slow:
            pooled = NMF(n_components, init="random", max_iter=200, random_state=seed)
            return pooled.fit(X).reconstruction_err_
        one = simulated(n_components, partition=1, random_state=seed)
        one.set_params(max_iter=1500, max_admm_iter=10)
        return one.fit(X).reconstruction_err_


def outcome(make, seed, n_exchanges):
    """Error and consensus error after so many exchanges."""
    X, agents, n_components, parameters = make(seed)
    model = simulated(n_components, random_state=seed, **parameters)
    model.set_params(max_iter=n_exchanges // model.max_admm_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of leaves of the graph
        model.fit(X, agents=agents)
    return model.reconstruction_err_, model.consensus_error_


def accuracy(kinds, n_seeds, slow=False):
    """One row for each kind of data and number of exchanges."""
    seeds = range(n_seeds)
    run = Parallel(n_jobs=2)
    for name, make in kinds.items():
        best = np.array(run(delayed(reference)(make, seed, slow) for seed in seeds))
        for n_exchanges in EXCHANGES:
            found = run(delayed(outcome)(make, seed, n_exchanges) for seed in seeds)
            errors, consensus = np.array(found).T
            # The median of a lot against that of another, where starts differ.
            ratios = errors / (np.median(best) if slow else best)
            print(
                f"{name:24} {n_exchanges:4} {np.median(ratios):8.4f} "
                f"{ratios.max():8.4f} {np.median(consensus):10.5f} "
                f"{consensus.max():10.5f}",
                flush=True,
            )


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


def main():
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="fewer seeds and trials")
    quick = parser.parse_args().quick
    n_seeds = 2 if quick else 8
    head = (
        f"{'':24} {'exch':>4} {'median':>8} {'worst':>8} "
        f"{'consensus':>10} {'worst':>10}"
    )
    print(
        f"error over that of the same start run to convergence by one agent, "
        f"{n_seeds} seeds\n{head}"
    )
    accuracy(KINDS, n_seeds)
    print(f"\nerror over the median of NMF(init='random', max_iter=200)\n{head}")
    accuracy(SLOW_KINDS, n_seeds, slow=True)
    print()
    published(1 if quick else 5)


if __name__ == "__main__":
    main()
