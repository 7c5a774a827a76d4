"""Transcripts of the secure sum: what was summed, and by whom it was seen."""

import numpy as np
import pytest
from _audit import SIZES, SUM, assert_views_match_links, pooled, reachable, sum_message
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skppdnmf._secure_sum.agent import SumAgent
from skppdnmf._secure_sum.left_factor import LeftPath
from skppdnmf.audit import GcdAttack, SimulationAttack, Transcript, record
from skppdnmf.audit._attacks.pool import Pool
from skppdnmf.exceptions import AgentLost, DropoutWarning
from skppdnmf.exchange import PairwiseMasks, SecureSum


@pytest.fixture(scope="module")
def one():
    return pooled(SIZES)


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
        start = LeftPath(view.public.starts.copy(), view.public.settings)
        path = start.set_up(view.sums[0].total)
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
            message = sum_message(letter)
            assert (message.step, message.epoch) == (letter.step, letter.epoch)
            assert (len(message.words), len(message.keys)) == letter[6:8]
            total += letter.n_bytes
    assert total == one.estimator.traffic_["bytes"]
    assert_views_match_links(one)


def test_what_goes_up_is_masked_and_what_comes_down_is_hidden(one):
    n_masked = 0
    for agent in one.agents:
        view = one.view(agent)
        for letter in view.sent:
            this = view.sums[letter.step]
            words = sum_message(letter).words
            if letter.kind == "masked sum":
                below = [
                    sum_message(other).words
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

    def agree_and_note(self, public_keys, links=None, told=b""):
        secrets.append(self._private)
        agree(self, public_keys, links, told)
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
    own = sum_message(attacker.sent[-1]).words.tobytes()
    assert any(own in some for some in data)


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
            raise AgentLost("gone")
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
