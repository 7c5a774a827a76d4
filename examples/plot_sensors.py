"""
Sensors with gaps
=================

Four towns measure air quality every hour. Sensors fail, and one town never records
some hours. A day of a sensor is a sample, and an hour that was not recorded is nan:
under the secure sum the towns factorise what has been observed, and fill the gaps,
while nobody learns what was measured where, nor what is missing where.
"""

# %%
# Days made up for the purpose
# ----------------------------
# Traffic, heating, industry and sunlight have a profile of 24 hours each. Gaps are
# hours at random, whole nights at a worn battery, and hours that a town never records.

import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import NMF

from skppdnmf import PrivateDistributedNMF
from skppdnmf.exceptions import PrivacyWarning

# Few days make a small pool: a list of candidates tells who is in it.
warnings.simplefilter("ignore", PrivacyWarning)
QUICK = bool(os.environ.get("SKPPDNMF_QUICK"))
rng = np.random.default_rng(0)
hours = np.arange(24)


def bump(centre, width):
    """Return a daily profile around an hour."""
    distance = np.minimum(abs(hours - centre), 24 - abs(hours - centre))
    return np.exp(-((distance / width) ** 2))


profiles = np.array(
    [bump(8, 1.5) + 0.8 * bump(18, 2), bump(22, 3), bump(11, 4), bump(14, 2.5)]
)
towns = np.repeat(["north", "east", "south", "west"], 120)
whole = rng.exponential(size=(480, 4)) @ profiles
whole *= 1 + 0.02 * rng.standard_normal(whole.shape)
whole = np.maximum(whole, 0)
gaps = rng.random(whole.shape) < 0.4
gaps[np.ix_(rng.random(480) < 0.2, hours < 6)] = True  # worn batteries
gaps[np.ix_(towns == "west", (hours > 18) & (hours < 21))] = True  # never recorded
X = np.where(gaps, np.nan, whole)
print(f"missing: {gaps.mean():.0%}")

# %%
# Fitted to what was observed
# ---------------------------
# The error is that of the missing hours, which here are known.


def gap_error(filled):
    """Return the relative error of the missing entries."""
    return np.linalg.norm((filled - whole)[gaps]) / np.linalg.norm(whole[gaps])


model = PrivateDistributedNMF(
    4,
    protocol="secure-sum",
    max_iter=60 if QUICK else 200,
    tol=0,
    random_state=0,
)
W = model.fit_transform(X, agents=towns)
filled = model.inverse_transform(W)
print(f"factorisation of what nobody shows: {gap_error(filled):.3f}")

# %%
# Scikit-learn's NMF does not take nan. What one can do instead: zeros for the gaps, or
# the mean of what the sensor has recorded on that day.

zeros = NMF(4, init="nndsvda", max_iter=1000, random_state=0)
pooled = zeros.inverse_transform(zeros.fit_transform(np.nan_to_num(X)))
print(f"gaps as zeros, pooled NMF: {gap_error(pooled):.3f}")
means = np.broadcast_to(np.nanmean(X, axis=1, keepdims=True), X.shape)
print(f"daily mean of the sensor: {gap_error(means):.3f}")

figure, axes = plt.subplots(1, 3, figsize=(11, 3), sharey=True, layout="constrained")
for ax, day in zip(axes, (0, 200, 470), strict=True):
    ax.plot(hours, whole[day], color="0.6", label="true")
    ax.plot(hours, filled[day], "--", label="filled")
    ax.plot(hours, X[day], "k.", label="observed")
    ax.set(title=f"a day in {towns[day]}", xlabel="hour")
axes[0].legend()
output = Path(os.environ.get("SKPPDNMF_OUTPUT", "output"))
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "sensors.png", dpi=150)
print(f"figure: {output / 'sensors.png'}")
