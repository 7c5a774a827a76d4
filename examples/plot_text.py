"""
Topics of documents that several sources keep to themselves
===========================================================

Four newsrooms look for the topics of their archives. None shows its documents to the
others; each counts its own words over an agreed vocabulary, in a sparse matrix, and
together they factorise the counts. Counts have no constant noise, so the loss is the
Kullback-Leibler divergence, for which the secure sum adds up expected counts. The left
factor holds the topics, which all share; an agent's right factor says what its own
documents are about, and stays with it.
"""

# %%
# A corpus made up for the purpose
# --------------------------------
# Five topics, given by words that become rarer along the list, and words that occur
# everywhere. Each newsroom has its own emphasis.

import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.decomposition import NMF
from sklearn.feature_extraction.text import CountVectorizer

from skppdnmf import PrivateDistributedNMF
from skppdnmf.exceptions import PrivacyWarning

# The totals tell who has a document whether it is in one of the archives.
warnings.simplefilter("ignore", PrivacyWarning)
QUICK = bool(os.environ.get("SKPPDNMF_QUICK"))
TOPICS = {
    "weather": "rain wind storm snow cloud sun frost flood forecast degrees coast",
    "football": "goal match team coach league season striker penalty fans stadium win",
    "finance": "bank market shares profit rate bonds investors inflation loan growth",
    "cooking": "butter flour oven onion garlic salt recipe bake sauce sugar dough pan",
    "space": "rocket orbit moon launch satellite crew mission engine station planet",
}
COMMON = (
    "people city year report week said first new time day place plan house work news"
)
EMPHASIS = {  # documents, and how many parts of them each topic has
    "Coast Gazette": (150, [6, 2, 1, 1, 0]),
    "Sports Daily": (250, [1, 8, 1, 0, 0]),
    "City Journal": (200, [1, 1, 7, 0, 1]),
    "Weekend": (100, [1, 1, 0, 5, 3]),
}
rng = np.random.default_rng(0)


def write_document(emphasis):
    """Draw the words of a document about one or two topics."""
    shares = rng.dirichlet(0.3 * np.array(emphasis) + 1e-3)
    words = []
    for topic in rng.choice(list(TOPICS), size=rng.integers(30, 80), p=shares):
        listed = (TOPICS[topic] if rng.random() < 0.7 else COMMON).split()
        weights = 1 / np.arange(2, len(listed) + 2)
        words.append(rng.choice(listed, p=weights / weights.sum()))
    return " ".join(words)


# %%
# The vocabulary has to be the same for all. Collecting it from all archives would show
# something of each, so it comes from a public collection.

public = [write_document([1, 1, 1, 1, 1]) for _ in range(200)]
vectorizer = CountVectorizer().fit(public)
archives = {
    name: vectorizer.transform([write_document(parts) for _ in range(count)])
    for name, (count, parts) in EMPHASIS.items()
}
for name, part in archives.items():
    n_documents, n_words = part.shape
    filled = part.nnz / (n_documents * n_words)
    print(f"{name:14} {n_documents} documents, {n_words} words, {filled:.0%} filled")

# %%
# One matrix per agent
# --------------------
# A list of matrices gives each agent its own. They stay sparse: the model is formed
# where there are counts alone. Each topic sums to one: the shares of its words.

N_COMPONENTS = len(TOPICS) + 1  # one more for the words that occur everywhere
model = PrivateDistributedNMF(
    N_COMPONENTS,
    protocol="secure-sum",
    n_init=8,
    beta_loss="kullback-leibler",
    normalize="components",
    max_iter=60 if QUICK else 200,
    tol=0,
    random_state=0,
).fit(list(archives.values()))
words = vectorizer.get_feature_names_out()

for topic in model.components_:
    print(" ".join(words[np.argsort(topic)[:-8:-1]]))

# %%
# The square root of twice the divergence beside that of NMF on the pooled counts:

pooled = NMF(
    N_COMPONENTS,
    beta_loss="kullback-leibler",
    solver="mu",
    init="nndsvda",
    max_iter=200 if QUICK else 2000,
    tol=0 if QUICK else 1e-6,
    random_state=0,
)
pooled.fit(sparse.vstack(list(archives.values())).astype(float))
print(
    f"private {model.reconstruction_err_:.3f}, pooled {pooled.reconstruction_err_:.3f}"
)

# %%
# What each newsroom writes about
# -------------------------------
# Each agent works this out from its own right factor: since every topic sums to one, an
# entry is the number of words that a document owes to a topic.

about = np.array([model.transform(part).mean(axis=0) for part in archives.values()])
about /= about.sum(axis=1, keepdims=True)
order = np.argsort(about.argmax(axis=0), kind="stable")

figure = plt.figure(figsize=(11, 5.6), layout="constrained")
top, bottom = figure.subfigures(2, 1)
top.suptitle("The words of greatest weight in each topic")
for number, (ax, k) in enumerate(
    zip(top.subplots(1, N_COMPONENTS), order, strict=True), 1
):
    best = np.argsort(model.components_[k])[:-9:-1]
    ax.barh(words[best], model.components_[k, best])
    ax.invert_yaxis()
    ax.set(title=f"topic {number}", xlim=(0, 0.35))
    ax.tick_params(axis="y", length=0)

ax = bottom.subplots()
image = ax.imshow(about[:, order], cmap="Blues", vmin=0, vmax=1, aspect="auto")
for (i, j), value in np.ndenumerate(about[:, order]):
    color = "white" if value > 0.5 else "black"
    ax.text(j, i, f"{value:.0%}", ha="center", va="center", color=color)
ax.set(
    xticks=range(N_COMPONENTS),
    xticklabels=[f"topic {number}" for number in range(1, N_COMPONENTS + 1)],
    yticks=range(len(archives)),
    yticklabels=list(archives),
    title="Share of the topics in each archive, worked out by its owner",
)

output = Path(os.environ.get("SKPPDNMF_OUTPUT", "output"))
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "text.png", dpi=120)
print(f"figure: {output / 'text.png'}")
