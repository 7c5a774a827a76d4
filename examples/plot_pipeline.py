"""
In place of NMF in a pipeline with a classifier
===============================================

A classifier of handwritten digits that works on NMF features, once with scikit-learn's
NMF, which needs all images in one place, and once with `PrivateDistributedNMF`, for
which five sites keep theirs. The rest of the pipeline stays as it is.

Only the factorisation is distributed here: the classifier sees the right factor and the
labels of all samples. Where these may not be pooled either, each site trains its own
classifier on its own rows of the right factor; the features have the same meaning
everywhere.
"""

# %%
# Two pipelines that differ in one step
# -------------------------------------

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skppdnmf import PrivateDistributedNMF

QUICK = bool(os.environ.get("SKPPDNMF_QUICK"))
X, y = load_digits(return_X_y=True)


def classifier(factorisation):
    """Make a pipeline that tells digits from the factorisation's features."""
    return make_pipeline(
        factorisation, StandardScaler(), LogisticRegression(max_iter=2000)
    )


def pooled_nmf(n_components):
    """Make scikit-learn's NMF, with iterations enough to converge."""
    return NMF(n_components, init="nndsvda", max_iter=4000, random_state=0)


def private_nmf(n_components, **parameters):
    """Make the same factorisation of data that stay where they are."""
    return PrivateDistributedNMF(
        n_components,
        adjacency="ring",
        encryption="simulated",
        max_iter=20 if QUICK else 60,
        tol=0,
        random_state=0,
        **parameters,
    )


# %%
# Which agent holds which sample
# ------------------------------
# Cross-validation hands `fit` a part of the samples, so somebody has to hand it the
# same part of the agents' labels. With scikit-learn's metadata routing a pipeline does
# so: the step requests ``agents``, the caller passes them in ``params``.

sites = np.random.default_rng(0).choice(
    ["north", "east", "south", "west", "harbour"],
    size=len(X),
    p=[0.4, 0.3, 0.15, 0.1, 0.05],
)
folds = StratifiedKFold(5, shuffle=True, random_state=0)

with sklearn.config_context(enable_metadata_routing=True):
    routed = cross_validate(
        classifier(private_nmf(20).set_fit_request(agents=True)),
        X,
        y,
        cv=folds,
        params={"agents": sites},
        return_estimator=True,
    )
first = routed["estimator"][0][0]
print("training samples of each site in the first fold:")
for label, held in zip(
    first.agent_labels_, np.bincount(first.sample_agents_), strict=True
):
    print(f"  {label:8} {held:5}")
print(f"accuracy with routed labels: {routed['test_score'].mean():.3f}")

# %%
# Fractions instead of labels need no routing: they fit any number of samples, so each
# fold is split among the agents in the same proportions.

fractions = private_nmf(20, partition=[0.4, 0.3, 0.15, 0.1, 0.05])
print(
    "accuracy with fractions:     "
    f"{cross_val_score(classifier(fractions), X, y, cv=folds).mean():.3f}"
)

# %%
# Accuracy against the number of components
# -----------------------------------------

counts = [5, 10, 20, 30] if QUICK else [5, 10, 15, 20, 30, 40]
kinds = ["NMF, pooled", "PrivateDistributedNMF, five sites"]
scores = {}
for count in counts:
    scores[kinds[0], count] = cross_val_score(
        classifier(pooled_nmf(count)), X, y, cv=folds
    )
    with sklearn.config_context(enable_metadata_routing=True):
        scores[kinds[1], count] = cross_val_score(
            classifier(private_nmf(count).set_fit_request(agents=True)),
            X,
            y,
            cv=folds,
            params={"agents": sites},
        )
print(f"{'components':>10} " + " ".join(f"{name:>34}" for name in kinds))
for count in counts:
    cells = [
        f"{scores[name, count].mean():.3f} +- {scores[name, count].std():.3f}"
        for name in kinds
    ]
    print(f"{count:10} " + " ".join(f"{cell:>34}" for cell in cells))

# %%
# The two agree within the spread of the folds.

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for shift, (name, marker) in enumerate(zip(kinds, "os", strict=True)):
    ax.errorbar(
        np.array(counts) + 0.4 * (shift - 0.5),
        [scores[name, count].mean() for count in counts],
        [scores[name, count].std() for count in counts],
        marker=marker,
        capsize=3,
        label=name,
    )
ax.set(
    xlabel="number of components",
    ylabel="accuracy (mean and deviation of 5 folds)",
    title="Digits classified by logistic regression on NMF features",
)
ax.legend(loc="lower right")

output = Path(os.environ.get("SKPPDNMF_OUTPUT", "output"))
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "pipeline.png", dpi=120)
print(f"figure: {output / 'pipeline.png'}")
