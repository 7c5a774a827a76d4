"""
The cost of privacy
===================

What the same factorisation costs under the two protocols, with both kinds of masks and
with longer keys: bytes, seconds and error, beside NMF on pooled data, which costs
nothing and protects nothing.
"""

# %%
# The federation
# --------------
# Five agents on a ring hold the handwritten digits. The encrypted consensus makes 300
# exchanges. Simulated encryption computes the same numbers and counts the same bytes
# as the real one; what it saves, the seconds, `estimate_cost` knows beforehand.

import os
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from skppdnmf import PrivateDistributedNMF, estimate_cost
from skppdnmf.exceptions import PrivacyWarning
from skppdnmf.plot import LearningCurveDisplay

# Scalar masks protect less, of which `fit` warns; here they are only to be counted.
warnings.simplefilter("ignore", PrivacyWarning)

QUICK = bool(os.environ.get("SKPPDNMF_QUICK"))
X = load_digits().data
norm = np.linalg.norm(X)
consensus = {
    "adjacency": "ring",
    "partition": 5,
    "tol": 0,
    "random_state": 0,
}

# %%
# Key sizes and masks
# -------------------
# Under scalar masks many values share a ciphertext on both ways; under entrywise masks
# each value has its own on the way out. The longer the key, the dearer a ciphertext,
# but the more values fit into it.

key_sizes = [2048, 3072] if QUICK else [2048, 3072, 4096]
maskings = ["entrywise", "scalar"]
costs = {
    (masking, key_size): estimate_cost(
        PrivateDistributedNMF(10, masking=masking, key_size=key_size, **consensus),
        n_features=X.shape[1],
    )
    for masking in maskings
    for key_size in key_sizes
}
print("expected cost of 300 exchanges of the encrypted consensus, one thread")
print(f"{'masks':10} {'key':>5} {'ciphertexts':>12} {'megabytes':>10} {'seconds':>8}")
for (masking, key_size), cost in costs.items():
    print(
        f"{masking:10} {key_size:5} {cost.ciphertexts:12,} {cost.bytes / 1e6:10.1f} "
        f"{cost.seconds:8.0f}"
    )

# %%
# Is the estimate right? A small fit with real keys and ciphertexts:

print("\na small fit, 2048-bit keys")
print(f"{'masks':10} {'':9} {'ciphertexts':>12} {'megabytes':>10} {'seconds':>8}")
for masking in maskings:
    small = PrivateDistributedNMF(
        2 if QUICK else 4,
        masking=masking,
        max_iter=1 if QUICK else 3,
        **{**consensus, "partition": 3},
    )
    cost = estimate_cost(small, n_features=X.shape[1])
    print(
        f"{masking:10} {'estimate':9} {cost.ciphertexts:12,} {cost.bytes / 1e6:10.2f} "
        f"{cost.seconds:8.1f}"
    )
    started = time.perf_counter()
    small.fit(X)
    seconds = time.perf_counter() - started
    print(
        f"{'':10} {'measured':9} {small.traffic_['ciphertexts']:12,} "
        f"{small.traffic_['bytes'] / 1e6:10.2f} {seconds:8.1f}"
    )

# %%
# Two protocols
# -------------
# The secure sum adds up masked summands modulo 2^64 in place of ciphertexts. It follows
# the path of pooled NMF, so it needs fewer exchanges, and each of them costs about as
# much as copying the arrays. It also protects more: an agent learns totals over all
# agents only, whereas under the consensus protocol a neighbour can work out the data of
# an agent that holds few samples.

fits = {
    f"consensus, {masking} masks": PrivateDistributedNMF(
        10, masking=masking, encryption="simulated", **consensus
    )
    for masking in maskings
}
fits["secure sum"] = PrivateDistributedNMF(10, protocol="secure-sum", **consensus)
seconds = {}
for name, model in fits.items():
    started = time.perf_counter()
    model.fit(X)
    seconds[name] = time.perf_counter() - started
    if model.protocol == "consensus":
        seconds[name] += costs[model.masking, 2048].seconds
started = time.perf_counter()
pooled = NMF(10, init="nndsvda", max_iter=1000, random_state=0).fit(X)
pooled_seconds = time.perf_counter() - started
pooled_error = pooled.reconstruction_err_ / norm

print(f"\n{'':27} {'exchanges':>9} {'megabytes':>10} {'seconds':>8} {'error':>7}")
for name, model in fits.items():
    print(
        f"{name:27} {model.n_exchanges_:9} {model.traffic_['bytes'] / 1e6:10.1f} "
        f"{seconds[name]:8.1f} {model.reconstruction_err_ / norm:7.4f}"
    )
print(f"{'pooled NMF':27} {0:9} {0:10} {pooled_seconds:8.1f} {pooled_error:7.4f}")

# %%
# The seconds of the consensus protocol are those of its local algebra, measured, and of
# 2048-bit encryption on one thread, estimated.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.6), layout="constrained")
display = LearningCurveDisplay.from_estimator(
    fits,
    reference={"pooled NMF": pooled_error},
    x="bytes",
    xscale="log",
    errors="shared_error",
    ax=right,
)
right.set_xlabel("sent by all agents (2048-bit keys)")

colors = [line.get_color() for line in display.lines_[:, 0]]
places = np.arange(len(key_sizes))
for shift, masking, color in zip((-0.2, 0.2), maskings, colors, strict=False):
    bars = left.bar(
        places + shift,
        [costs[masking, key_size].seconds for key_size in key_sizes],
        width=0.38,
        color=color,
        label=f"consensus, {masking} masks",
    )
    left.bar_label(bars, fmt="%.0f s", fontsize=8)
left.axhline(seconds["secure sum"], color=colors[2], label="secure sum, no such key")
left.axhline(pooled_seconds, color="black", ls="--", label="pooled NMF")
left.set(
    xlabel="bits of the Paillier key",
    ylabel="seconds of a fit",
    xticks=places,
    xticklabels=[str(key_size) for key_size in key_sizes],
    yscale="log",
)
left.set_ylim(top=100 * left.get_ylim()[1])
left.legend(fontsize=8, loc="upper left")

output = Path(os.environ.get("SKPPDNMF_OUTPUT", "output"))
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "cost_of_privacy.png", dpi=120)
print(f"figure: {output / 'cost_of_privacy.png'}")
