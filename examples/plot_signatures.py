"""
Mutational signatures across hospitals
======================================

Tumours carry mutations of 96 kinds, in proportions that processes such as tobacco
smoke or ageing leave behind: signatures. Five hospitals have too few tumours each to
find them all. Together they factorise the counts under the Kullback-Leibler divergence,
with the signatures that are known from the literature fixed.
"""

# %%
# Catalogues made up for the purpose
# ----------------------------------
# Six signatures, of which each hospital sees its own mixture; two are known.

import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF

from skppdnmf import PrivateDistributedNMF
from skppdnmf.exceptions import PrivacyWarning

# Few tumours make a small pool: a list of candidates tells who is in it.
warnings.simplefilter("ignore", PrivacyWarning)
QUICK = bool(os.environ.get("SKPPDNMF_QUICK"))
rng = np.random.default_rng(0)
signatures = rng.dirichlet(np.full(96, 0.15), size=6)
catalogues = []
for _ in range(5):
    usual = rng.dirichlet(np.full(6, 0.8))
    exposures = rng.gamma(6 * usual + 0.05, size=(60, 6)) * 400
    catalogues.append(rng.poisson(exposures @ signatures))
X = np.concatenate(catalogues).astype(float)

# %%
# One hospital alone, and all together
# ------------------------------------
# The rows of ``components_`` sum to one, as signatures do.


def cosines(found, true):
    """Return the cosines of the best match of each true signature."""
    table = (true / np.linalg.norm(true, axis=1)[:, None]) @ (
        found / np.linalg.norm(found, axis=1)[:, None]
    ).T
    return table[linear_sum_assignment(-table)]


parameters = {
    "solver": "mu",
    "beta_loss": "kullback-leibler",
    "init": "random",
    "max_iter": 500,
    "tol": 0,
    "random_state": 0,
}
alone = NMF(6, **parameters).fit(catalogues[0])
print(f"one hospital alone: {cosines(alone.components_, signatures).min():.3f}")
model = PrivateDistributedNMF(
    6,
    protocol="secure-sum",
    beta_loss="kullback-leibler",
    fixed_components=signatures[:2],
    normalize="components",
    max_iter=200 if QUICK else 500,
    tol=0,
    random_state=0,
).fit(catalogues)
together = cosines(model.components_, signatures)
print(f"all hospitals, two known: {together.min():.3f}")
pooled = NMF(6, **parameters).fit(X)
print(f"pooled NMF: {cosines(pooled.components_, signatures).min():.3f}")

# %%
# Whether a tumour smoked
# -----------------------
# Exposures are the right factor; each hospital works out those of its own tumours.

exposures = model.transform(catalogues[0])
figure, axes = plt.subplots(1, 2, figsize=(11, 3), layout="constrained")
order = np.argsort(model.components_ @ signatures[2])
axes[0].bar(np.arange(96), model.components_[order[-1]], color="C0", label="found")
axes[0].plot(np.arange(96), signatures[2], "k.", label="true")
axes[0].set(title="a signature that was not known", xlabel="kind of mutation")
axes[0].legend()
share = exposures / exposures.sum(axis=1, keepdims=True)
image = axes[1].imshow(share.T, aspect="auto", cmap="Blues", vmin=0, vmax=1)
axes[1].set(title="exposures of one hospital's tumours", xlabel="tumour", ylabel="k")
figure.colorbar(image, ax=axes[1])
output = Path(os.environ.get("SKPPDNMF_OUTPUT", "output"))
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "signatures.png", dpi=150)
print(f"figure: {output / 'signatures.png'}")
