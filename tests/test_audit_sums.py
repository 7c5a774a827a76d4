"""Transcripts of the secure sum: a view is a function of the totals."""

from itertools import pairwise

import numpy as np
import pytest
from _audit import SUM, pooled, reachable
from _sums import RARE, p_uniform
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn.base import clone

from skppdnmf._left_path import LeftPath
from skppdnmf._sum_agent import SumAgent
from skppdnmf.audit import (
    EavesdropperAttack,
    GcdAttack,
    LinkView,
    SimulationAttack,
    Transcript,
    record,
)
from skppdnmf.audit._pool import Pool
from skppdnmf.exceptions import DropoutWarning
from skppdnmf.exchange import PairwiseMasks, SecureSum, SumMessage

SIZES = (9, 4, 7, 2, 6)


@pytest.fixture(scope="module")
def one():
    return pooled(SIZES)


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


def test_recording_changes_nothing(one):
    estimator, X, agents = pooled(SIZES, fit=False)
    plain = clone(estimator).fit(X, agents=agents)
    assert_array_equal(one.estimator.components_, plain.components_)
    assert_array_equal(one.public.components, plain.components_)
    assert one.estimator.traffic_["bytes"] == plain.traffic_["bytes"]
    for name in ("shared_error", "bytes"):
        assert_array_equal(one.estimator.history_[name], plain.history_[name])
    assert not hasattr(estimator, "components_")
    assert "5 agents, 13 sums" in repr(one)


def test_views_hold_summands_masks_and_totals(one):
    """The oracle: summands add up to the total, masks to nothing."""
    views = [one.view(agent) for agent in one.agents]
    assert [this.step for this in views[0].sums] == list(range(13))
    for sums in zip(*(view.sums for view in views), strict=True):
        for this in sums:
            assert_array_equal(this.total, sums[0].total)
            if this.point is not None:
                assert_array_equal(this.point, sums[0].point)
        assert_array_equal(sum(this.words for this in sums), sums[0].total)
        assert not sum(this.masks for this in sums).any()
        assert all(this.masks.any() for this in sums)
    # In numbers: the agent's own products, up to the rounding of its factors.
    for view in views:
        path = LeftPath(view.public.starts.copy(), view.public.settings)
        path.set_up(view.sums[0].total)
        first = view.sums[1]
        W = first.right * np.sqrt(np.mean(first.point**2, axis=2))[:, :, None]
        words = first.words[-path.n_words :]
        share = path.fixed_point.decode(words, len(first.point))
        assert_allclose(share.products, W @ view.X, rtol=1e-4, atol=1e-3)
        assert_allclose(share.gram, W @ W.transpose(0, 2, 1), rtol=1e-4, atol=1e-3)


def test_links_hold_the_bytes_and_nothing_else(one):
    total = 0
    for edge, letters in one.links.letters.items():
        assert one.public.adjacency[edge]
        for letter in letters:
            assert (letter.sender, letter.receiver) == edge
            assert len(letter.data) == letter.n_bytes
            message = SumMessage.from_bytes(letter.data)
            assert (message.step, message.epoch) == (letter.step, letter.epoch)
            assert (len(message.words), len(message.keys)) == letter[6:8]
            total += letter.n_bytes
    assert total == one.estimator.traffic_["bytes"]
    for agent in one.agents:
        view = one.view(agent)
        neighbours = one.public.neighbours(agent)
        sent = [letter for n in neighbours for letter in one.link(agent, n)]
        received = [letter for n in neighbours for letter in one.link(n, agent)]
        assert sorted(view.sent) == sorted(sent)
        assert sorted(view.received) == sorted(received)


def test_what_goes_up_is_masked_and_what_comes_down_is_hidden(one):
    n_masked = 0
    for agent in one.agents:
        view = one.view(agent)
        for letter in view.sent:
            this = view.sums[letter.step]
            words = SumMessage.from_bytes(letter.data).words
            if letter.kind == "masked sum":
                below = [
                    SumMessage.from_bytes(other.data).words
                    for other in view.received
                    if (other.kind, other.step) == ("masked sum", letter.step)
                ]
                assert_array_equal(words, sum(below, this.words + this.masks))
                n_masked += 1
            elif letter.kind == "total":
                assert not np.isin(words, this.total).any()
    assert n_masked == 4 * 13


def test_keys_are_public_and_their_graph_too(one):
    keys = one.view(0).public_keys
    assert set(keys) == set(one.agents)
    assert all(one.view(agent).public_keys == keys for agent in one.agents)
    graph = one.public.key_graph
    assert list(graph) == one.agents
    assert all(agent in graph[peer] for agent in graph for peer in graph[agent])


def test_a_view_leads_to_nothing_that_others_hold(monkeypatch):
    secrets = []
    agree = PairwiseMasks.agree

    def agree_and_note(self, public_keys, links=None):
        secrets.append(self._private)
        agree(self, public_keys, links)
        secrets.extend(self._link_seeds.values())
        secrets.extend(self._seeds.values())

    monkeypatch.setattr(PairwiseMasks, "agree", agree_and_note)
    one = pooled(SIZES)
    attacker, victim = one.view(0), one.view(3)
    found = reachable(attacker)
    forbidden = (Transcript, SumAgent, SecureSum, PairwiseMasks, LeftPath)
    assert not any(isinstance(thing, forbidden) for thing in found)
    data = [bytes(thing) for thing in found if isinstance(thing, (bytes, bytearray))]
    assert len(secrets) >= 10
    assert not any(secret in some for secret in secrets for some in data)
    arrays = [thing for thing in found if isinstance(thing, np.ndarray)]
    hidden = [victim.X, victim.X.T]
    for this in victim.sums:
        hidden += [this.words, this.masks, *([this.right] if this.step else [])]
        assert not any(this.words.tobytes() in some for some in data)
    for array in arrays:
        for secret in hidden:
            assert array.shape != secret.shape or not np.array_equal(array, secret)
    # And the test can see what is there.
    assert any(array is attacker.sums[1].words for array in arrays)
    own = SumMessage.from_bytes(attacker.sent[-1].data).words.tobytes()
    assert any(own in some for some in data)


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
        SumMessage.from_bytes(letter.data).words
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
            words = SumMessage.from_bytes(letter.data).words
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
        message = SumMessage.from_bytes(letter.data)
        words = summands[letter.sender][letter.step].words
        stripped = SumMessage(message.kind, message.epoch, message.step, words)
        return letter._replace(data=stripped.to_bytes())

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


def test_attacks_on_answers_do_not_apply(one):
    for attack in (SimulationAttack(), GcdAttack()):
        with pytest.raises(ValueError, match=r"protocol='secure-sum': .*Pooled"):
            attack.run(one, 0, one.public.neighbours(0)[0])


def test_one_agent_cannot_be_recorded():
    estimator, X, _ = pooled((6,), fit=False, partition=1)
    assert estimator.protocol == SUM
    with pytest.raises(ValueError, match="at least two agents"):
        record(estimator, X)


def test_a_dropout_is_recorded(monkeypatch):
    """Sums that are given up have no total; later ones have fresh masks."""
    advance = SumAgent.advance

    def fail(self, arrived):
        if self.X.shape[0] == 2 and self.path.iteration == 4:
            raise ConnectionError("gone")
        return advance(self, arrived)

    monkeypatch.setattr(SumAgent, "advance", fail)
    estimator, X, agents = pooled(
        SIZES, fit=False, adjacency="complete", on_dropout="continue"
    )
    with pytest.warns(DropoutWarning, match="agent 3 dropped out"):
        one = record(estimator, X, agents)
    view = one.view(0)
    epochs = {this.epoch for this in view.sums}
    assert epochs == {0, 1}
    assert [this.step for this in view.sums if this.total is not None] == list(
        range(13)
    )
    late = [a for a in one.agents if a != 3]
    for step in range(6, 13):
        sums = [
            next(
                this
                for this in one.view(a).sums
                if (this.step, this.epoch) == (step, 1)
            )
            for a in late
        ]
        assert_array_equal(sum(this.words for this in sums), sums[0].total)
    assert one.links.letters
    # Only the sums of all agents are attacked.
    pool = Pool(view, 99)
    assert pool.n_samples == sum(SIZES) - SIZES[0]
    assert 4 <= len(pool.stages) < 12
