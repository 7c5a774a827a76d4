"""
Quickstart: five agents factorise handwritten digits
====================================================

Five agents each hold a fifth of scikit-learn's handwritten digits. They find common
components without showing anyone an image: neighbours exchange Paillier ciphertexts
under 2048-bit keys. Beside them, scikit-learn's NMF on the pooled data.

The exchange protects against eavesdroppers; what a curious neighbour can infer is
another matter, see the README.
"""

# %%
# The data and the two estimators
# -------------------------------
# Each exchange is paid in ciphertexts, so this run makes forty of them instead of
# the default three hundred. ``tol=0`` runs exactly that many.

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

private = PrivateDistributedNMF(
    n_components,
    partition=5,
    max_iter=2 if QUICK else 8,
    tol=0,
    n_jobs=2,
    random_state=0,
    verbose=1,
)
started = time.perf_counter()
private.fit(X)
private_seconds = time.perf_counter() - started

pooled = NMF(n_components, init="random", max_iter=1000, random_state=0)
started = time.perf_counter()
pooled.fit(X)
pooled_seconds = time.perf_counter() - started

# %%
# Side by side
# ------------

norm = np.linalg.norm(X)
rows = [
    ("", "private", "pooled NMF"),
    (
        "relative error",
        f"{private.reconstruction_err_ / norm:.4f}",
        f"{pooled.reconstruction_err_ / norm:.4f}",
    ),
    ("consensus error", f"{private.consensus_error_:.4f}", "-"),
    ("exchanges", f"{private.n_exchanges_}", "-"),
    ("ciphertexts", f"{private.traffic_['ciphertexts']:,}", "-"),
    ("megabytes sent", f"{private.traffic_['bytes'] / 1e6:.1f}", "-"),
    ("seconds", f"{private_seconds:.1f}", f"{pooled_seconds:.1f}"),
]
for name, ours, theirs in rows:
    print(f"{name:16} {ours:>12} {theirs:>12}")

# %%
# The components and the learning curve
# -------------------------------------
# Components come in no particular order. Each pooled one is drawn below the private
# one that it is paired with; the pairs are those of greatest total cosine similarity.
# After forty exchanges not all components have found their form.

similarity = cosine_similarity(private.components_, pooled.components_)
_, partners = linear_sum_assignment(similarity, maximize=True)

figure = plt.figure(figsize=(9, 5.5), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1.2])
axes = top.subplots(2, n_components)
rows = {"private": private.components_, "pooled": pooled.components_[partners]}
for row, (name, components) in zip(axes, rows.items(), strict=True):
    ComponentsDisplay(components, image_shape=(8, 8)).plot(
        ax=row, titles=False, colorbar=False
    )
    row[0].set_ylabel(name)
top.suptitle("Components of digits that five agents do not show each other")
LearningCurveDisplay.from_estimator(
    private,
    reference={"pooled NMF": pooled.reconstruction_err_ / norm},
    errors=["shared_error", "local_error"],
    yscale="linear",
    line_kw={"marker": "o", "markersize": 4},
    ax=bottom.subplots(),
)

output = Path(os.environ.get("SKPPDNMF_OUTPUT", "output"))
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "quickstart.png", dpi=120)
print(f"figure: {output / 'quickstart.png'}")
