"""
How fast agents agree on different graphs
=========================================

The agents exchange their left factors with their neighbours only, so news from one end
of the graph takes several exchanges to reach the other. How fast they agree depends on
the spectral gap, the smallest nonzero eigenvalue of the graph's Laplacian: it is small
where the graph is long or has bottlenecks.
"""

# %%
# Five graphs of twelve agents
# ----------------------------
# The same digits, the same start, the same penalties; only the graph differs.

import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF
from skppdnmf.exceptions import PrivacyWarning

# Agents with a single neighbour, as at the ends of a path, have to fear it; `fit` warns
# of that. Here we only count exchanges.
warnings.simplefilter("ignore", PrivacyWarning)

QUICK = bool(os.environ.get("SKPPDNMF_QUICK"))
X = load_digits().data
n_agents = 12
graphs = ["path", "ring", "random", "star", "complete"]
seeds = range(2 if QUICK else 10)


def spectral_gap(adjacency):
    """Smallest nonzero eigenvalue of the Laplacian of a connected graph."""
    laplacian = np.diag(adjacency.sum(axis=1)) - adjacency
    return np.linalg.eigvalsh(laplacian)[1]


fits = {
    graph: [
        PrivateDistributedNMF(
            10,
            partition=n_agents,
            adjacency=graph,
            encryption="simulated",
            max_iter=90,
            tol=0,
            random_state=seed,
        ).fit(X)
        for seed in seeds
    ]
    for graph in graphs
}

# %%
# How many exchanges until the copies of the left factor differ from their mean by less
# than one per cent of its norm, and from then on?

target = 0.01


def exchanges_needed(model):
    """Exchanges after which the consensus error stays below the target."""
    above = np.flatnonzero(model.history_["consensus_error"] >= target)
    last = above[-1] + 1 if above.size else 0
    exchanges = model.history_["exchanges"]
    return exchanges[last] if last < len(exchanges) else np.inf


gaps = {g: np.array([spectral_gap(m.adjacency_) for m in fits[g]]) for g in graphs}
needed = {g: np.array([exchanges_needed(m) for m in fits[g]]) for g in graphs}
norm = np.linalg.norm(X)
header = ("graph", "edges", "spectral gap", "exchanges", "consensus error", "error")
print("{:9} {:>6} {:>13} {:>10} {:>16} {:>7}".format(*header))
for graph in graphs:
    models = fits[graph]
    print(
        f"{graph:9} {models[0].adjacency_.sum() // 2:6} {np.median(gaps[graph]):13.3f} "
        f"{np.median(needed[graph]):10.0f} "
        f"{np.median([m.consensus_error_ for m in models]):16.5f} "
        f"{np.median([m.reconstruction_err_ for m in models]) / norm:7.4f}"
    )
print(
    f"medians of {len(seeds)} starts; exchanges: until the consensus error stays below "
    f"{target:g}; errors: after {fits['path'][0].n_exchanges_} exchanges"
)

# %%
# The picture
# -----------

figure = plt.figure(figsize=(9.5, 6), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[1, 2.4])
angles = 2 * np.pi * np.arange(n_agents) / n_agents
circle = np.column_stack([np.sin(angles), np.cos(angles)])
colors = dict(
    zip(graphs, plt.rcParams["axes.prop_cycle"].by_key()["color"], strict=False)
)
for ax, graph in zip(top.subplots(1, len(graphs)), graphs, strict=True):
    places = circle.copy()
    if graph == "star":
        places[0] = 0
    for i, j in np.argwhere(np.triu(fits[graph][0].adjacency_)):
        ax.plot(*places[[i, j]].T, color="0.7", lw=0.8, zorder=1)
    ax.scatter(*places.T, s=25, color=colors[graph], zorder=2)
    ax.set(title=graph, aspect="equal", xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))
    ax.axis("off")

left, right = bottom.subplots(1, 2)
for graph in graphs:
    curves = np.array([m.history_["consensus_error"] for m in fits[graph]])
    exchanges = fits[graph][0].history_["exchanges"]
    left.plot(exchanges, np.median(curves, axis=0), color=colors[graph], label=graph)
    right.plot(
        gaps[graph], needed[graph], "o", color=colors[graph], alpha=0.6, label=graph
    )
left.axhline(target, color="gray", lw=0.8, ls="--")
left.set(
    xlabel="exchanges",
    ylabel=f"consensus error (median of {len(seeds)} starts)",
    yscale="log",
)
left.legend()
right.set(
    xlabel="spectral gap of the graph",
    ylabel=f"exchanges until consensus error < {target:g}",
    xscale="log",
    yscale="log",
)
for axis in (right.xaxis, right.yaxis):
    axis.set_major_formatter("{x:g}")
right.yaxis.set_minor_formatter("{x:g}")

output = Path(os.environ.get("SKPPDNMF_OUTPUT", "output"))
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "topologies.png", dpi=120)
print(f"figure: {output / 'topologies.png'}")

# %%
# The gap is not all. The star's is greater than that of these random graphs, yet the
# star needs more exchanges: all its news passes through one agent. Every edge costs
# ciphertexts in every exchange, so the random graphs, with 18 edges, buy agreement more
# cheaply than the complete graph with its 66.
