"""What the scripts that reproduce the paper's figures share."""

import os
import warnings
from pathlib import Path

from skppdnmf import PrivateDistributedNMF
from skppdnmf.exceptions import PrivacyWarning

# The parameters of the paper's experiments (arXiv 2403.18326). Its algorithm sends 30
# encrypted left factors in each of 100 iterations of block coordinate descent.
PAPER = {
    "init": "ones",
    "penalty_scaling": "absolute",
    "mu": 0.1,
    "eta": 1.0,
    "g_max": 0.033,
    "masking": "scalar",
    "max_iter": 100,
    "max_admm_iter": 30,
}
UPDATES = {"published": "published", "corrected": "proximal"}
ERRORS = {
    "local_error": "local error: each agent's own copy",
    "shared_error": "shared error: the mean of the copies",
}


def paper_nmf(n_components, **parameters):
    """Estimator with the paper's parameters and simulated encryption.

    ``tol=0`` runs all iterations, as the paper does.
    """
    settings = {**PAPER, "encryption": "simulated", "tol": 0, **parameters}
    return PrivateDistributedNMF(n_components, **settings)


def fit(model, X, agents=None):
    """Fit without the warning that a neighbour can attack scalar masks or leaves.

    It is true, and beside the point here: the paper's figures are about convergence.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return model.fit(X, agents=agents)


def add_common_options(parser):
    """Add the options that all scripts have."""
    parser.add_argument(
        "--quick",
        action="store_true",
        default=bool(os.environ.get("SKPPDNMF_QUICK")),
        help="few trials and iterations",
    )
    parser.add_argument(
        "--jobs", type=int, default=2, help="fits side by side (default: %(default)s)"
    )


def save(figure, name):
    """Write the figure to the output folder and say where it is."""
    output = Path(os.environ.get("SKPPDNMF_OUTPUT", "output"))
    output.mkdir(parents=True, exist_ok=True)
    figure.savefig(output / name, dpi=120)
    print(f"figure: {output / name}")
