"""
An audit: what neighbours can find out
======================================

Before data that matter are handed to the consensus protocol, its leaks can be measured:
`skppdnmf.audit` runs the attacks of an honest but curious neighbour on what that
neighbour really sees. Here four clinics on a path, the last of which has a single
patient, whose record is the image of a digit.
"""

# %%
# All attacks, under all protections
# ----------------------------------
# `audit_report` fits the estimator once for each kind of masks and lets every agent
# attack its neighbours. An attack sees what its agent saw, never the victim's secrets;
# the truth serves only to score it.

import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF
from skppdnmf.audit import SimulationAttack, audit_report, record
from skppdnmf.exceptions import PrivacyWarning

# `fit` warns of agents with one neighbour and of scalar masks; the audit shows why.
warnings.simplefilter("ignore", PrivacyWarning)

QUICK = bool(os.environ.get("SKPPDNMF_QUICK"))
n_others = 20
X = load_digits().data[: 3 * n_others + 1]
partition = [n_others, n_others, n_others, 1]
neighbour, victim = 2, 3
estimator = PrivateDistributedNMF(
    4,
    partition=partition,
    adjacency="path",
    encryption="simulated",
    max_iter=8,
    tol=0,
    random_state=0,
)
report = audit_report(estimator, X, max_rounds=40, max_samples=1)
print(report)

# %%
# Encryption does its part: who only listens on the links learns nothing. A neighbour
# decrypts the answers to its own requests, though, and masks do not hide enough. The
# cheap attacks recover little under entrywise masks, but an agent's answers follow from
# its data, so the neighbour can guess the data, simulate the agent, and mend the guess
# until the answers fit.
#
# More neighbours
# ---------------
# A second neighbour's answers influence the victim's, and the attacker does not know
# them. That makes the simulation less exact, not harmless.

graphs = ["path", "ring"] if QUICK else ["path", "ring", "complete"]
by_graph = {}
for graph in graphs:
    transcript = record(estimator.set_params(adjacency=graph), X)
    attack = SimulationAttack(n_samples=1, random_state=0)
    by_graph[graph] = attack.run(transcript, neighbour, victim)
    print(f"{graph:9} {by_graph[graph]}")

# %%
# The pictures
# ------------


def on_victim(protection, attack):
    """Pick what the neighbour recovered of the clinic with one patient."""
    results = report.leakages[protection][attack]
    return next(result for result in results if result.victim == victim)


attacks = ["least squares", "joint mask fit", "simulation"]
rows = {
    f"{masks} masks": [(attack, on_victim(masks, attack)) for attack in attacks]
    for masks in ("scalar", "entrywise")
}
rows["entrywise masks,\nother graphs"] = [
    (f"simulation, {graph}", leakage) for graph, leakage in by_graph.items()
]
figure, axes = plt.subplots(3, 5, figsize=(9, 6.4), layout="constrained")
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
    ax.set_frame_on(False)


def show(ax, image, title):
    """Draw an image of a digit, or a blank where the attack found none."""
    if image is None:
        image = np.zeros(64)
    ax.imshow(np.reshape(image, (8, 8)), cmap="gray_r", vmin=0, vmax=16)
    ax.set_title(title, fontsize=9)
    ax.set_frame_on(True)


for ax_row, (label, results) in zip(axes, rows.items(), strict=True):
    leakage = results[0][1]
    show(ax_row[0], leakage.truth, "the patient's record")
    show(ax_row[1], leakage.guess, "guess without attack")
    ax_row[0].set_ylabel(label)
    for ax, (name, leakage) in zip(ax_row[2:], results, strict=False):
        title = f"{name}:\n{leakage.recovered:.0%} recovered"
        show(ax, leakage.reconstruction, title)

output = Path(os.environ.get("SKPPDNMF_OUTPUT", "output"))
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "audit.png", dpi=120)
print(f"figure: {output / 'audit.png'}")

# %%
# What to do
# ----------
# Where single agents hold few samples, ``protocol="secure-sum"`` gives each agent the
# totals over all agents in place of answers of its neighbours. It is as accurate and
# far cheaper, see :ref:`sphx_glr_auto_examples_plot_cost_of_privacy.py`.
