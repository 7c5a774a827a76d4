"""
Grid search over mu, eta and n_max
==================================

The penalties ``mu`` and ``eta`` and the fixed-point scale ``n_max`` are chosen by
scikit-learn's `GridSearchCV`, as for any estimator. With ``encryption="simulated"``
each candidate gives exactly the result that it would give with ciphertexts, so the
choice holds for the encrypted fit, at a cost of seconds.
"""

# %%
# The search
# ----------
# The data are the paper's synthetic ones: 200 samples of 30 features, held by ten
# agents on a ring. The number of exchanges is small on purpose: with many, most
# penalties do. Two scores: minus the relative error of samples that were left out, and
# minus the consensus error, which says how far the agents are from sharing one left
# factor.

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from matplotlib.colors import LogNorm
from sklearn.model_selection import GridSearchCV, KFold

from skppdnmf import PrivateDistributedNMF, make_paper_synthetic

QUICK = bool(os.environ.get("SKPPDNMF_QUICK"))
X, agents, *_ = make_paper_synthetic(random_state=0)


def held_out(estimator, X, y=None):
    """Minus the relative error of samples that were left out."""
    return estimator.score(X)


def consensus(estimator, X, y=None):
    """Minus the distance of the agents' copies of the left factor."""
    return -estimator.consensus_error_


mus = np.logspace(-2, 2, 3 if QUICK else 5)
etas = np.logspace(-2, 2, 3 if QUICK else 5)
scales = [30, 10**6] if QUICK else [30, 300, 10**6]
estimator = PrivateDistributedNMF(
    5,
    adjacency="ring",
    encryption="simulated",
    max_iter=20,
    tol=0,
    random_state=0,
)
with sklearn.config_context(enable_metadata_routing=True):
    search = GridSearchCV(
        estimator.set_fit_request(agents=True),
        {"mu": mus, "eta": etas, "n_max": scales},
        scoring={"error": held_out, "consensus": consensus},
        refit="error",
        cv=KFold(2 if QUICK else 3, shuffle=True, random_state=0),
        n_jobs=2,
    ).fit(X, agents=agents)
print(f"{len(search.cv_results_['params'])} candidates, {search.n_splits_} folds each")
best = search.best_params_
print(
    f"best: mu={best['mu']:g}, eta={best['eta']:g}, n_max={best['n_max']:g}, "
    f"held-out error {-search.best_score_:.4f}"
)

# %%
# Heat maps
# ---------
# `GridSearchCV` lists candidates in the order of the sorted parameter names.

TICKS = [0.003, 0.01, 0.03, 0.1, 0.15, 0.2]
shape = (len(etas), len(mus), len(scales))
rows = {
    "relative error of left-out samples": -search.cv_results_["mean_test_error"],
    "consensus error": -search.cv_results_["mean_test_consensus"],
}
figure, axes = plt.subplots(
    2,
    len(scales),
    figsize=(2.2 * len(scales) + 2, 5.4),
    sharex=True,
    sharey=True,
    layout="constrained",
)
for ax_row, (name, values) in zip(axes, rows.items(), strict=True):
    values = values.reshape(shape)
    norm = LogNorm(values.min(), values.max())
    for k, ax in enumerate(ax_row):
        image = ax.imshow(values[:, :, k], norm=norm, cmap="viridis", origin="lower")
        for (i, j), value in np.ndenumerate(values[:, :, k]):
            color = "black" if norm(value) > 0.5 else "white"
            ax.text(
                j, i, f"{value:.3f}", color=color, ha="center", va="center", fontsize=7
            )
    ticks = [tick for tick in TICKS if values.min() <= tick <= values.max()]
    bar = figure.colorbar(image, ax=ax_row, label=name, ticks=ticks, format="%g")
    bar.ax.minorticks_off()
for ax, scale in zip(axes[0], scales, strict=True):
    ax.set_title(f"n_max = {scale:,}")
for ax in axes[1]:
    ax.set(xlabel="mu", xticks=range(len(mus)), xticklabels=[f"{mu:g}" for mu in mus])
for ax in axes[:, 0]:
    ax.set(
        ylabel="eta", yticks=range(len(etas)), yticklabels=[f"{eta:g}" for eta in etas]
    )

output = Path(os.environ.get("SKPPDNMF_OUTPUT", "output"))
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "grid_search.png", dpi=120)
print(f"figure: {output / 'grid_search.png'}")

# %%
# The defaults ``mu=1`` and ``eta=1`` lie in a flat valley. Penalties are relative to
# the scale of the data: other units would not move it. ``eta`` matters at the ends.
# ``n_max`` need only be large enough: once rounding no longer shows, more digits change
# nothing.
