"""
Spectra with known end members
==============================

Three laboratories measure mixtures of minerals. The spectra of two minerals are in a
public library, others are not. The laboratories look for the unknown ones together,
with ``fixed_components`` for the known ones, and nobody shows a measurement.
"""

# %%
# Mixtures made up for the purpose
# --------------------------------
# Each mineral has a few bands. The laboratories measure with different care: the weight
# of a measurement is the inverse of its variance.

import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF

from skppdnmf import PrivateDistributedNMF
from skppdnmf.exceptions import PrivacyWarning

# Few measurements make a small pool: a list of candidates tells who is in it.
warnings.simplefilter("ignore", PrivacyWarning)
QUICK = bool(os.environ.get("SKPPDNMF_QUICK"))
rng = np.random.default_rng(0)
channels = np.linspace(0, 1, 120)


def mineral(*bands):
    """Return a spectrum with bands at these places."""
    return sum(h * np.exp(-(((channels - c) / w) ** 2)) for c, w, h in bands)


spectra = np.array(
    [
        mineral((0.15, 0.05, 1.0), (0.55, 0.04, 0.6)),
        mineral((0.30, 0.06, 0.8), (0.80, 0.05, 1.0)),
        mineral((0.42, 0.04, 1.0), (0.70, 0.08, 0.5)),
        mineral((0.20, 0.03, 0.5), (0.62, 0.05, 0.9), (0.92, 0.03, 0.7)),
    ]
)
noise = {"north": 0.01, "east": 0.03, "south": 0.10}
X, agents, weights = [], [], []
for name, level in noise.items():
    mixtures = rng.dirichlet(np.full(4, 0.7), size=150) @ spectra
    X.append(np.maximum(mixtures + level * rng.standard_normal(mixtures.shape), 0))
    agents += [name] * 150
    weights += [0.01**2 / level**2] * 150
X = np.concatenate(X)

# %%
# Two known, two unknown
# ----------------------
# The known spectra come out as they went in; ``normalize="max"`` scales all to a
# largest entry of one.

model = PrivateDistributedNMF(
    4,
    protocol="secure-sum",
    fixed_components=spectra[:2],
    normalize="max",
    max_iter=100 if QUICK else 300,
    tol=0,
    random_state=0,
).fit(X, agents=agents, sample_weight=weights)


def cosines(found, true):
    """Cosines of the best match of each true spectrum."""
    table = (true / np.linalg.norm(true, axis=1)[:, None]) @ (
        found / np.linalg.norm(found, axis=1)[:, None]
    ).T
    return table[linear_sum_assignment(-table)]


known = spectra[:2] / spectra[:2].max(axis=1)[:, None]
print("known spectra kept:", np.array_equal(model.components_[:2], known))
fixed = cosines(model.components_[2:], spectra[2:])
print("unknown spectra, with the known fixed:", *(f"{c:.4f}" for c in fixed))

# %%
# Beside NMF on the pooled measurements, which can neither be told what is known nor how
# good each measurement is.

pooled = NMF(4, init="random", max_iter=1000, random_state=0).fit(X)
free = cosines(pooled.components_, spectra)[2:]
print("unknown spectra, pooled NMF:", *(f"{c:.4f}" for c in free))

figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), sharey=True, layout="constrained")
for ax, k in zip(axes, (2, 3), strict=True):
    best = np.argmax(model.components_[2:] @ spectra[k]) + 2
    ax.plot(channels, spectra[k] / spectra[k].max(), color="0.5", label="true")
    ax.plot(channels, model.components_[best], "--", label="found")
    ax.set(title=f"unknown mineral {k - 1}", xlabel="channel")
axes[0].legend()
output = Path(os.environ.get("SKPPDNMF_OUTPUT", "output"))
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "spectra.png", dpi=150)
print(f"figure: {output / 'spectra.png'}")
