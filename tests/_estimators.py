"""A quick estimator of the consensus, for several test files."""

from skppdnmf import PrivateDistributedNMF


def model(n_components=3, **parameters):
    """An estimator with few iterations and no convergence test."""
    defaults = {"encryption": "simulated", "max_iter": 6, "tol": 0, "random_state": 0}
    return PrivateDistributedNMF(n_components, **{**defaults, **parameters})
