"""
Quickstart: five agents factorise handwritten digits
====================================================

Five agents each hold a fifth of scikit-learn's handwritten digits. They find common
components without showing anyone an image: neighbours exchange ciphertexts of a
lattice cipher, until they have converged. Beside them, the secure sum, and
scikit-learn's NMF on the pooled data.

The exchange protects against eavesdroppers; what a curious neighbour can infer is
another matter, see the README. The secure sum protects against neighbours, too.
"""

# %%
# The data and the three estimators
# ---------------------------------
# ``encryption="bfv"`` needs ``pip install skppdnmf[lattice]``. Without it,
# ``encryption="paillier"`` computes the same, bit for bit, and takes far longer.

import os
import time
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np

if not os.environ.get("DISPLAY"):
    mpl.use("Agg")
import matplotlib.pyplot as plt
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.metrics.pairwise import cosine_similarity

from skppdnmf import PrivateDistributedNMF
from skppdnmf.plot import ComponentsDisplay, LearningCurveDisplay

# These images are public: here it does no harm that masks follow from the seed.
warnings.filterwarnings("ignore", "random_state is an integer")

QUICK = bool(os.environ.get("SKPPDNMF_QUICK"))
X = load_digits().data
n_components = 10

estimators = {
    "encrypted": PrivateDistributedNMF(
        n_components,
        partition=5,
        encryption="bfv",
        max_iter=2 if QUICK else 100,
        tol=0 if QUICK else 3e-3,
        n_jobs=None if QUICK else 2,
        random_state=3,
        verbose=1,
    ),
    "secure sum": PrivateDistributedNMF(
        n_components, partition=5, protocol="secure-sum", random_state=3
    ),
    "pooled": NMF(n_components, init="random", max_iter=1000, random_state=0),
}
seconds = {}
for name, estimator in estimators.items():
    started = time.perf_counter()
    estimator.fit(X)
    seconds[name] = time.perf_counter() - started

# %%
# Side by side
# ------------

norm = np.linalg.norm(X)
pooled_error = estimators["pooled"].reconstruction_err_


def describe(name):
    """Return a column of the table."""
    estimator = estimators[name]
    error = estimator.reconstruction_err_
    column = [f"{error / norm:.4f}", f"{100 * (error / pooled_error - 1):+.2f}"]
    if name == "pooled":
        return [*column, "-", "-", "-", "-", f"{seconds[name]:.1f}"]
    traffic = estimator.traffic_
    return [
        *column,
        f"{estimator.consensus_error_:.5f}",
        f"{estimator.n_exchanges_}",
        f"{traffic['ciphertexts']:,}" if name == "encrypted" else "-",
        f"{traffic['bytes'] / 1e6:.1f}",
        f"{seconds[name]:.1f}",
    ]


names = [
    "relative error",
    "% above pooled",
    "consensus error",
    "exchanges",
    "ciphertexts",
    "megabytes sent",
    "seconds",
]
print(f"{'':16}" + "".join(f" {name:>12}" for name in estimators))
for name, *cells in zip(names, *map(describe, estimators), strict=True):
    print(f"{name:16}" + "".join(f" {cell:>12}" for cell in cells))

# %%
# The components and the learning curve
# -------------------------------------
# Components come in no particular order. Those of the secure sum and of the pooled data
# are drawn below the encrypted one that they are paired with; the pairs are those of
# greatest total cosine similarity, which stands below each.

encrypted = estimators["encrypted"].components_
figure = plt.figure(figsize=(9, 7.5), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[1.6, 1])
axes = top.subplots(3, n_components)
for row, (name, estimator) in zip(axes, estimators.items(), strict=True):
    similarity = cosine_similarity(encrypted, estimator.components_)
    _, partners = linear_sum_assignment(similarity, maximize=True)
    ComponentsDisplay(estimator.components_[partners], image_shape=(8, 8)).plot(
        ax=row, titles=False, colorbar=False
    )
    row[0].set_ylabel(name)
    if name != "encrypted":
        cosines = similarity[np.arange(n_components), partners]
        for ax, cosine in zip(row, cosines, strict=True):
            ax.set_xlabel(f"{cosine:.3f}", fontsize="small")
        print(f"cosines, {name:11}", *(f"{cosine:.3f}" for cosine in cosines))
top.suptitle("Components of digits that five agents do not show each other")
LearningCurveDisplay.from_estimator(
    estimators["encrypted"],
    reference={"pooled NMF": pooled_error / norm},
    errors=["shared_error", "local_error"],
    yscale="linear",
    line_kw={"marker": "o", "markersize": 4},
    ax=bottom.subplots(),
)

output = Path(os.environ.get("SKPPDNMF_OUTPUT", "output"))
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "quickstart.png", dpi=120)
print(f"figure: {output / 'quickstart.png'}")
