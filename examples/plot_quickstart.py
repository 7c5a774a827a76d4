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
from pathlib import Path

import matplotlib as mpl
import numpy as np

if not os.environ.get("DISPLAY"):
    mpl.use("Agg")
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from skppdnmf import PrivateDistributedNMF

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

figure = plt.figure(figsize=(9, 5.5), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1.2])
axes = top.subplots(2, n_components)
for row, components, name in zip(
    axes,
    (private.components_, pooled.components_),
    ("private", "pooled"),
    strict=True,
):
    for ax, component in zip(row, components, strict=True):
        ax.imshow(component.reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
    row[0].set_ylabel(name)
top.suptitle("Components of digits that five agents do not show each other")
ax = bottom.subplots()
history = private.history_
ax.plot(history["exchanges"], history["shared_error"], "o-", label="shared components")
ax.plot(history["exchanges"], history["local_error"], ".:", label="own components")
ax.axhline(pooled.reconstruction_err_ / norm, color="gray", ls="--", label="pooled NMF")
ax.set(xlabel="encrypted exchanges", ylabel="relative error")
ax.legend()

output = Path(os.environ.get("SKPPDNMF_OUTPUT", "output"))
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "quickstart.png", dpi=120)
print(f"figure: {output / 'quickstart.png'}")
