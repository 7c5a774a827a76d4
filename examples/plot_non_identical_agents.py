"""
Agents that hold different things
=================================

Five agents hold handwritten digits, but each has seen two of the ten digits only. An
agent that factorises its own images finds components that cannot draw the others'.
Together, without showing each other an image, they find components of all ten: the
reason to federate.
"""

# %%
# Each agent has two digits
# -------------------------
# The agents use the secure sum: in every iteration each of them learns two totals over
# all agents and nothing else of the others.

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from skppdnmf import PrivateDistributedNMF

QUICK = bool(os.environ.get("SKPPDNMF_QUICK"))
X, digit = load_digits(return_X_y=True)
agents = np.array(["0, 1", "2, 3", "4, 5", "6, 7", "8, 9"])[digit // 2]
n_components = 15

shared = PrivateDistributedNMF(
    n_components,
    protocol="secure-sum",
    adjacency="ring",
    max_iter=30 if QUICK else 100,
    tol=0,
    random_state=0,
).fit(X, agents=agents)


def pooled_nmf(X):
    """scikit-learn's NMF, converged."""
    return NMF(n_components, init="nndsvda", max_iter=4000, random_state=0).fit(X)


alone = {name: pooled_nmf(X[agents == name]) for name in shared.agent_labels_}
models = {f"agent {name} alone": model for name, model in alone.items()}
models["five agents, private"] = shared
models["pooled NMF"] = pooled_nmf(X)

# %%
# Whose components draw which digits?
# -----------------------------------
# The relative error of each digit with each set of components.


def relative_errors(model):
    """Relative error of the images of each digit, then of all."""
    residual = X - model.inverse_transform(model.transform(X))
    groups = [digit == d for d in range(10)] + [np.full(len(X), True)]
    return [np.linalg.norm(residual[g]) / np.linalg.norm(X[g]) for g in groups]


errors = np.array([relative_errors(model) for model in models.values()])
print(
    f"{'relative error of digit':24}" + "".join(f"{d:>6}" for d in range(10)) + "   all"
)
for name, row in zip(models, errors, strict=True):
    print(f"{name:24}" + "".join(f"{value:6.2f}" for value in row))
print(
    f"{shared.n_exchanges_} exchanges, {shared.traffic_['bytes'] / 1e6:.1f} MB in all"
)

# %%
# Light cells below: an agent alone does well on its own two digits and badly on the
# others. The shared components do about as well on every digit as those of pooled data.
# Agent "0, 1" cannot draw a 4 or a 7, having no component for their strokes.

figure = plt.figure(figsize=(9, 9), layout="constrained")
top, middle, bottom = figure.subfigures(3, 1, height_ratios=[1.5, 1, 1.2])
ax = top.subplots()
image = ax.imshow(errors, cmap="viridis_r", aspect="auto")
threshold = (errors.min() + errors.max()) / 2
for (i, j), value in np.ndenumerate(errors):
    color = "white" if value > threshold else "black"
    ax.text(j, i, f"{value:.2f}", ha="center", va="center", color=color, fontsize=8)
ax.axhline(len(alone) - 0.5, color="white", lw=3)
ax.axvline(9.5, color="white", lw=3)
ax.set(
    xticks=range(11),
    xticklabels=[*map(str, range(10)), "all"],
    yticks=range(len(models)),
    yticklabels=list(models),
    xlabel="digit",
)
figure.colorbar(image, ax=ax, label="relative error")


def draw_row(axes, images, label):
    """Draw images of 8 x 8 pixels side by side."""
    for ax, image in zip(axes, images, strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0)
        ax.set(xticks=[], yticks=[])
    axes[0].set_ylabel(label, rotation=0, ha="right", va="center")


rows = {
    "agent 0, 1\nalone": alone["0, 1"],
    "five agents,\nprivate": shared,
    "pooled\nNMF": models["pooled NMF"],
}
axes = middle.subplots(len(rows), n_components)
for ax_row, (label, model) in zip(axes, rows.items(), strict=True):
    draw_row(ax_row, model.components_, label)
middle.suptitle("components")

samples = X[[np.flatnonzero(digit == d)[0] for d in range(10)]]
axes = bottom.subplots(len(rows) + 1, 10)
draw_row(axes[0], samples, "images")
for ax_row, (label, model) in zip(axes[1:], rows.items(), strict=True):
    draw_row(ax_row, model.inverse_transform(model.transform(samples)), label)
bottom.suptitle("an image of each digit, drawn with these components")

output = Path(os.environ.get("SKPPDNMF_OUTPUT", "output"))
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "non_identical_agents.png", dpi=120)
print(f"figure: {output / 'non_identical_agents.png'}")
