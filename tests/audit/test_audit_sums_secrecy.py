"""What the secure sum hides: a view is a function of the totals, words of nothing."""

from itertools import pairwise

import numpy as np
import pytest
from _audit import SIZES, pooled, sum_message
from _sums import RARE, p_uniform
from numpy.testing import assert_array_equal
from scipy import sparse, stats
from sklearn.base import clone

from skppdnmf._agent import Envelope
from skppdnmf.audit import EavesdropperAttack, LinkView, record
from skppdnmf.exchange import SumMessage


def unmasked(view):
    """Everything in a view but masks, keys, and words under masks; exact bytes."""
    public = view.public
    seen = [
        public.labels,
        public.adjacency.tobytes(),
        public.settings,
        public.starts.tobytes(),
        public.components.tobytes(),
        view.X.tobytes() if isinstance(view.X, np.ndarray) else view.X.data.tobytes(),
    ]
    for this in view.sums:
        arrays = this.words, this.total, this.point, this.right
        seen += [this.step, this.epoch]
        seen += [None if array is None else array.tobytes() for array in arrays]
    return seen


def pattern(view):
    """Headers and sizes of all messages; no words are in clear."""
    return [letter[:-1] for letters in (view.sent, view.received) for letter in letters]


def moved(agents, keep, rng):
    """Deal the samples of all agents but one out again; each gets some."""
    agents = agents.copy()
    others = np.setdiff1d(agents, [keep])
    rows = np.flatnonzero(agents != keep)
    dealt = np.concatenate([others, rng.choice(others, len(rows) - len(others))])
    agents[rows] = rng.permutation(dealt)
    return agents


@pytest.mark.parametrize(
    ("graph", "parameters"),
    [
        ("random", {}),
        ("path", {"n_init": 1}),
        ("ring", {"n_init": 3, "alpha_W": 0.05, "l1_ratio": 0.5}),
        ("star", {"n_init": 3, "tol": 1e-2, "max_iter": 100}),
        ("complete", {"n_init": 2, "n_max": 1e3}),
    ],
)
@pytest.mark.parametrize("attacker", [0, 3])
def test_views_do_not_tell_who_of_the_others_holds_what(graph, parameters, attacker):
    """Bit for bit the same, however the others' samples are dealt out."""
    estimator, X, agents = pooled(SIZES, fit=False, adjacency=graph, **parameters)
    first = record(estimator, X, agents)
    rng = np.random.default_rng(7)
    for _ in range(3):
        other_agents = moved(agents, attacker, rng)
        assert not np.array_equal(agents, other_agents)
        second = record(estimator, X, other_agents)
        one, other = first.view(attacker), second.view(attacker)
        assert unmasked(one) == unmasked(other)
        # Keys and what depends on them are fresh.
        assert one.public_keys != other.public_keys
        for this, that in zip(one.sums, other.sums, strict=True):
            assert (this.masks != that.masks).all()


@pytest.mark.parametrize("convert", [sparse.csr_array, np.float32], ids=["csr", "f4"])
def test_the_same_for_sparse_and_single_precision_data(convert):
    estimator, X, agents = pooled(SIZES, fit=False)
    X = convert(np.where(X > np.median(X), X, 0.0))
    first = record(estimator, X, agents)
    second = record(estimator, X, moved(agents, 0, np.random.default_rng(1)))
    assert unmasked(first.view(0)) == unmasked(second.view(0))


def test_some_others_may_hold_nothing():
    estimator, X, agents = pooled(SIZES, fit=False, adjacency="ring")
    parts = [X[agents == k] for k in range(5)]
    first = record(clone(estimator), parts)
    gathered = [parts[0], X[agents != 0], *[X[:0]] * 3]
    second = record(clone(estimator), gathered)
    assert unmasked(first.view(0)) == unmasked(second.view(0))


def test_the_pattern_of_messages_does_not_tell_either():
    for graph in ("ring", "complete", "random"):
        estimator, X, agents = pooled(SIZES, fit=False, adjacency=graph)
        first = record(estimator, X, agents)
        second = record(estimator, X, moved(agents, 0, np.random.default_rng(2)))
        assert pattern(first.view(0)) == pattern(second.view(0))


def test_where_it_ends():
    """Own samples and the pooled data are seen; who else holds what is not."""
    estimator, X, agents = pooled(SIZES, fit=False)
    view = record(estimator, X, agents).view(0)
    # The attacker gives a sample to another: its own summands change, no total does.
    given = agents.copy()
    given[np.flatnonzero(agents == 0)[0]] = 1
    other = record(estimator, X, given).view(0)
    assert unmasked(view) != unmasked(other)
    for this, that in zip(view.sums, other.sums, strict=True):
        assert_array_equal(this.total, that.total)
        assert not np.array_equal(this.words, that.words)
    # Another value in one of another's samples changes every total.
    changed = X.copy()
    changed[-1, 0] += 1e-3
    other = record(estimator, changed, agents).view(0)
    for this, that in pairwise((view, other)):
        for one, two in zip(this.sums, that.sums, strict=True):
            assert not np.array_equal(one.total, two.total)


def masked_words(one):
    """Words of all messages under masks."""
    return [
        sum_message(letter).words
        for letters in one.links.letters.values()
        for letter in letters
        if letter.kind == "masked sum"
    ]


def test_masked_words_are_uniform_whatever_the_data():
    estimator, X, agents = pooled(SIZES, fit=False, n_init=8)
    byte_counts = []
    for data in (np.zeros_like(X), X, 1e70 * X):
        one = record(estimator, data, agents)
        words = masked_words(one)
        assert sum(map(len, words)) > 5_000
        assert p_uniform(words) > RARE
        data = np.concatenate(words).view(np.uint8)
        byte_counts.append(np.bincount(data, minlength=256))
        # The same words without masks are nothing like it.
        bare = [this.words for agent in one.agents for this in one.view(agent).sums]
        assert p_uniform(bare) < RARE
    for some, others in pairwise(byte_counts):
        assert stats.chi2_contingency([some, others])[1] > RARE


def test_masked_words_do_not_follow_the_words_below():
    one = pooled(SIZES, n_init=8)
    words = np.concatenate([this.words for this in one.view(3).sums])
    masks = np.concatenate([this.masks for this in one.view(3).sums])
    n = len(words)
    bits = (
        np.unpackbits(words.view(np.uint8)),
        np.unpackbits((words + masks).view(np.uint8)),
    )
    equal = np.count_nonzero(bits[0] == bits[1])
    # Hoeffding's bound on bits that agree by chance.
    assert 2 * np.exp(-2 * (equal - 32 * n) ** 2 / (64 * n)) > RARE


def test_an_eavesdropper_finds_nothing_in_masked_sums():
    one = pooled(SIZES, n_init=8)
    leakage = EavesdropperAttack().run(one)
    details = leakage.details
    assert leakage.recovered < 0.12
    assert details["words"] > 5_000
    assert details["repeated"] == 0
    assert all(len(sizes) == 1 for sizes in details["sizes"].values())
    assert details["uniform"]["masked sum"] > 1e-6
    other = record(*scaled(1e3, n_init=8))
    game = EavesdropperAttack(other).run(one)
    assert game.recovered < 0.12
    # An agent's messages alone; the root sends none under masks.
    for agent in one.agents:
        alone = EavesdropperAttack().run(one, None, agent)
        assert alone.recovered < 0.2
        assert alone.n_samples == SIZES[agent]


def scaled(factor, **parameters):
    """The same federation with other data."""
    estimator, X, agents = pooled(SIZES, seed=1, fit=False, **parameters)
    return estimator, factor * X, agents


def test_an_eavesdropper_is_told_what_is_not_masked():
    """Whatever crosses a link bare is found, by its bytes alone."""
    one = pooled(SIZES)
    details = EavesdropperAttack().run(one).details
    bare = {}
    for letters in one.links.letters.values():
        for letter in letters:
            words = sum_message(letter).words
            total = one.view(0).sums[letter.step].total
            if len(words):
                equal = np.array_equal(words, total)
                bare[letter.kind] = bare.get(letter.kind, False) or equal
    assert details["in_clear"] == sorted(kind for kind, yes in bare.items() if yes)
    # A masked sum that lost its masks would be found, and told apart.
    summands = {agent: one.view(agent).sums for agent in one.agents}

    def strip(letter):
        if letter.kind != "masked sum":
            return letter
        message = sum_message(letter)
        words = summands[letter.sender][letter.step].words
        stripped = SumMessage(message.kind, message.epoch, message.step, words)
        envelope = Envelope.from_bytes(letter.data)
        bare = envelope._replace(body=stripped.to_bytes())
        return letter._replace(data=bare.to_bytes())

    letters = {
        edge: tuple(strip(letter) for letter in some)
        for edge, some in one.links.letters.items()
    }
    found = EavesdropperAttack().read(LinkView(one.links.public, letters))
    assert "masked sum" in found["in_clear"]
    game = EavesdropperAttack(record(*scaled(1e-3))).read(
        LinkView(one.links.public, letters)
    )
    assert game["error"] < 0.3
