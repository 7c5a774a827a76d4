"""The commonest slips: what the page quotes is said, and it names the mend."""

import warnings

import numpy as np
import pytest
from _pages import DOCS, blocks

from skppdnmf import PrivateDistributedNMF

X = np.random.default_rng(0).random((40, 6))


def secure_sum(**given):
    return PrivateDistributedNMF(2, protocol="secure-sum", random_state=0, **given)


def consensus(**given):
    return PrivateDistributedNMF(2, encryption="simulated", random_state=0, **given)


PAIRS = np.kron(np.eye(2, dtype=int), [[0, 1], [1, 0]])
NOISE = {"epsilon": 3.0, "delta": 1e-5, "clip": 3.0}
# What is done, in the order of the page, and words of the mend.
SLIPS = {
    "negative": (lambda: secure_sum().fit(X - 0.5), "shift or scale each feature"),
    "missing": (
        lambda: consensus().fit(np.where(X < 0.1, np.nan, X)),
        'protocol="secure-sum" fits the observed',
    ),
    "labels": (
        lambda: secure_sum().fit(X, agents=["a", "b"]),
        "give each sample the label of its agent",
    ),
    "y": (lambda: secure_sum().fit(X, np.repeat(["a", "b"], 20)), "agents=labels"),
    "fractions": (
        lambda: secure_sum(partition=[0.5, 0.3]).fit(X),
        "divide each by their sum",
    ),
    "parts": (lambda: secure_sum().fit([X, X[:, :5]]), "the same features"),
    "agents": (lambda: secure_sum(partition=50).fit(X), "take fewer agents"),
    "graph": (
        lambda: secure_sum(adjacency=PAIRS).fit(X, agents=np.arange(40) % 4),
        "link each of these",
    ),
    "delta": (lambda: secure_sum(epsilon=3.0).fit(X), "needs both"),
    "noise": (
        lambda: secure_sum(**NOISE).fit(X[:8]),  # far fewer than the noise takes
        "fewer components or a larger epsilon",
    ),
    "two": (lambda: secure_sum(partition=2).fit(X), "let a third take part"),
    "convergence": (lambda: consensus(max_iter=3).fit(X), "Increase max_iter"),
}
QUOTED = [
    text.strip()
    for info, text, _ in blocks(DOCS / "user_guide" / "troubleshooting.md")
    if info == "text"
]


def test_every_slip_has_its_section():
    assert len(QUOTED) == len(SLIPS) >= 10


@pytest.mark.parametrize(("name", "quoted"), list(zip(SLIPS, QUOTED, strict=False)))
def test_a_slip_is_answered_by_what_mends_it(name, quoted):
    slip, mend = SLIPS[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            slip()
        except Exception as error:
            said = [str(error)]
        else:
            said = [str(one.message) for one in caught]
    (message,) = [text for text in said if text.startswith(quoted)]
    assert mend in message
