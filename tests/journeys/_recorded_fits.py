"""Fits whose results are kept to the last bit, and how they are made.

Under the consensus agents are numbered in the order of the roster, and masks follow
the numbers. The parts here are held in ascending order of size unless a case is about
numbering.
"""

import hashlib
import warnings

import numpy as np
from scipy import sparse
from sklearn.model_selection import GridSearchCV, cross_val_score

from skppdnmf import PrivateDistributedNMF

SIZES = [4, 7, 9, 15, 20]
FRACTIONS = [0.1, 0.15, 0.2, 0.25, 0.3]
SEED = 3


def environment():
    """A digest of how this machine's linear algebra rounds."""
    rng = np.random.default_rng(0)
    digest = hashlib.sha256(np.__version__.encode())
    for size in (3, 5, 7, 12, 31, 64):
        A, B = rng.standard_normal((2, size, size))
        for array in (A @ B, A.T @ A, np.linalg.inv(A), np.einsum("ij,kj->ik", A, B)):
            digest.update(np.ascontiguousarray(array).tobytes())
            digest.update((array.astype(np.float32) @ array.astype("f4")).tobytes())
    return digest.hexdigest()


def samples(n_samples=55, n_features=12, rank=4, seed=SEED):
    """Nonnegative samples of low rank and noise."""
    rng = np.random.default_rng(seed)
    left = rng.exponential(size=(rank, n_features)) * (
        rng.random((rank, n_features)) < 0.7
    )
    right = rng.exponential(size=(n_samples, rank))
    return right @ left + 0.1 * rng.exponential(size=(n_samples, n_features))


def thinned(X):
    """A sparse matrix of about half the entries."""
    return sparse.csr_matrix(np.where(X > np.median(X), X, 0.0))


def relays():
    """A graph of five, of whom the first holds nothing."""
    adjacency = np.zeros((5, 5), dtype=int)
    for i, j in [(0, 1), (0, 2), (1, 3), (2, 4), (3, 4)]:
        adjacency[i, j] = adjacency[j, i] = 1
    return adjacency


def consensus(**parameters):
    """The consensus with few iterations."""
    defaults = {
        "encryption": "simulated",
        "partition": SIZES,
        "max_iter": 12,
        "tol": 0,
        "random_state": SEED,
    }
    return PrivateDistributedNMF(4, **{**defaults, **parameters})


def secure_sum(**parameters):
    """The secure sum with few iterations."""
    defaults = {
        "protocol": "secure-sum",
        "partition": SIZES,
        "max_iter": 24,
        "tol": 0,
        "random_state": SEED,
    }
    return PrivateDistributedNMF(4, **{**defaults, **parameters})


def _fit(estimator, X, agents=None):
    """What a fit leaves."""
    model = estimator.fit(X, agents=agents)
    history = model.history_
    return {
        "components": model.components_,
        "copies": model.agent_components_,
        "counts": np.array([model.n_iter_, model.n_exchanges_]),
        "errors": np.array(
            [
                history["local_error"],
                history["shared_error"],
                history["consensus_error"],
            ]
        ),
        "reconstruction": np.array([model.reconstruction_err_]),
    }


def _scores(search, X):
    """What a cross-validation leaves."""
    return {"scores": np.asarray(search(X), dtype=float)}


def _grid(X):
    """Scores of a search over mu and n_max."""
    search = GridSearchCV(
        consensus(partition=FRACTIONS, max_iter=6),
        {"mu": [0.5, 1.0], "n_max": [1e4, 1e6]},
        cv=2,
    )
    return search.fit(X).cv_results_["mean_test_score"]


def _with_faults(estimator, X, failing):
    """A fit during which agents are lost."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with failing():
            return _fit(estimator, X)


def cases(failing):
    """Every recorded fit by name, as a function of nothing.

    Parameters
    ----------
    failing : callable
        ``failing(at)`` is a context in which agents are lost: names to the calls of
        `advance`, counted from 1, before which they fail.
    """
    X = samples()
    broad = samples(30, 25, 3, SEED + 1)
    labels = np.repeat(list("abcde"), SIZES)
    shuffled = np.random.default_rng(SEED).permutation(len(X))
    init = np.random.default_rng(SEED).exponential(size=(4, X.shape[1]))
    every = {
        # The consensus.
        "ring": lambda: _fit(consensus(adjacency="ring"), X),
        "path": lambda: _fit(consensus(adjacency="path"), X),
        "star": lambda: _fit(consensus(adjacency="star"), X),
        "complete": lambda: _fit(consensus(adjacency="complete"), X),
        "scalar": lambda: _fit(consensus(masking="scalar"), X),
        "scalar path": lambda: _fit(consensus(masking="scalar", adjacency="path"), X),
        "no encryption": lambda: _fit(consensus(encryption=None), X),
        "no encryption scalar": lambda: _fit(
            consensus(encryption=None, masking="scalar"), X
        ),
        "paillier": lambda: _fit(
            consensus(encryption="paillier", key_size=256, max_iter=2), X
        ),
        "paillier scalar": lambda: _fit(
            consensus(
                encryption="paillier", key_size=256, masking="scalar", max_iter=3
            ),
            X,
        ),
        "wide": lambda: _fit(consensus(n_max=1e14), X),
        "widening": lambda: _fit(consensus(penalty_scaling="absolute", mu=0.1), 40 * X),
        "published": lambda: _fit(
            consensus(update="published", penalty_scaling="absolute", g_max=0.1), X
        ),
        "ones": lambda: _fit(consensus(init="ones"), X),
        "init": lambda: _fit(consensus(init=init), X),
        "penalties": lambda: _fit(consensus(alpha_W=0.01, l1_ratio=0.3), X),
        "left penalty": lambda: _fit(consensus(alpha_W=0.0, alpha_H=0.01), X),
        "sparse": lambda: _fit(consensus(), thinned(X)),
        "float32": lambda: _fit(consensus(), X.astype(np.float32)),
        "labels": lambda: _fit(
            consensus(partition=None), X[shuffled], agents=labels[shuffled]
        ),
        "relay": lambda: _fit(
            consensus(partition=[0, 5, 10, 15, 25], adjacency=relays()), X
        ),
        "tolerance": lambda: _fit(consensus(tol=1e-2, max_iter=200), X),
        "jobs": lambda: _fit(consensus(n_jobs=2), X),
        "alone": lambda: _fit(consensus(partition=1), X),
        "two": lambda: _fit(consensus(partition=[20, 35]), X),
        "wide data": lambda: _fit(consensus(partition=[8, 10, 12]), broad),
        "cross-validation": lambda: _scores(
            lambda X: cross_val_score(consensus(partition=FRACTIONS), X, cv=3), X
        ),
        "search": lambda: _scores(_grid, X),
        # The secure sum.
        "sums": lambda: _fit(secure_sum(), X),
        "sums ring": lambda: _fit(secure_sum(adjacency="ring"), X),
        "sums path": lambda: _fit(secure_sum(adjacency="path", n_init=3), X),
        "sums star": lambda: _fit(secure_sum(adjacency="star", n_init=1), X),
        "sums complete": lambda: _fit(secure_sum(adjacency="complete", n_max=1e4), X),
        "sums few keys": lambda: _fit(secure_sum(key_degree=2), X),
        "sums penalties": lambda: _fit(secure_sum(alpha_W=0.01, l1_ratio=0.3), X),
        "sums left penalty": lambda: _fit(secure_sum(alpha_W=0.0, alpha_H=0.01), X),
        "sums sparse": lambda: _fit(secure_sum(), thinned(X)),
        "sums float32": lambda: _fit(secure_sum(), X.astype(np.float32)),
        "sums init": lambda: _fit(secure_sum(init=init), X),
        "sums labels": lambda: _fit(
            secure_sum(partition=None), X[shuffled], agents=labels[shuffled]
        ),
        "sums unordered": lambda: _fit(secure_sum(partition=[20, 4, 15, 7, 9]), X),
        "sums relay": lambda: _fit(
            secure_sum(partition=[0, 5, 10, 15, 25], adjacency=relays()), X
        ),
        "sums tolerance": lambda: _fit(secure_sum(tol=1e-3, max_iter=300), X),
        "sums jobs": lambda: _fit(secure_sum(n_jobs=2), X),
        "sums alone": lambda: _fit(secure_sum(partition=1), X),
        "sums wide data": lambda: _fit(secure_sum(partition=[8, 10, 12]), broad),
        "sums cross-validation": lambda: _scores(
            lambda X: cross_val_score(secure_sum(partition=FRACTIONS), X, cv=3), X
        ),
    }
    for name, at in {
        "dropout": {"agent 3": 20},
        "early dropout": {"agent 0": 2},
        "two dropouts": {"agent 1": 17, "agent 4": 35},
        "joint dropout": {"agent 1": 25, "agent 4": 25},
    }.items():
        every["sums " + name] = lambda at=at: _with_faults(
            secure_sum(adjacency="complete", on_dropout="continue"),
            X,
            lambda: failing(at),
        )
    return every


def renumbered():
    """Fits whose agents were once numbered by what they hold, by name."""
    X = samples()
    partitions = {
        "descending": SIZES[::-1],
        "unordered": [20, 4, 15, 7, 9],
        "alike": [11] * 5,
    }
    return {
        f"{name} {masking} {seed}": lambda sizes=sizes, masking=masking, seed=seed: (
            _fit(
                consensus(
                    partition=sizes,
                    adjacency="ring",
                    masking=masking,
                    max_iter=60,
                    random_state=seed,
                ),
                X,
            )
        )
        for name, sizes in partitions.items()
        for masking in ("entrywise", "scalar")
        for seed in range(3)
    }
