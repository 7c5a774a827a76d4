"""Transcripts: exactly what was seen, by those who saw it."""

import dataclasses

import numpy as np
import pytest
from _audit import (
    ATTACKER,
    VICTIM,
    assert_views_match_links,
    data,
    model,
    reachable,
    transcript,
)
from _paillier_keys import MASKINGS
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.decomposition import NMF

from skppdnmf import PrivateDistributedNMF
from skppdnmf._agent import Envelope
from skppdnmf.audit import NeighbourAttack, SimulationAttack, Transcript, record
from skppdnmf.exchange import MASK_BITS, Message


@pytest.mark.parametrize("masking", MASKINGS)
def test_recording_changes_nothing(masking):
    X, agents = data()
    estimator = model(masking=masking, adjacency="ring", tol=0.02, max_iter=200)
    one = record(estimator, X, agents)
    plain = clone(estimator).fit(X, agents=agents)
    assert_array_equal(one.estimator.agent_components_, plain.agent_components_)
    assert one.estimator.traffic_ == plain.traffic_
    assert not hasattr(estimator, "components_")
    assert "_recorder" not in vars(one.estimator)
    assert_array_equal(one.public.components, plain.components_)
    assert plain.n_iter_ < 200  # the agents stopped, which messages tell, too


@pytest.mark.parametrize("encryption", ["simulated", "paillier"])
@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize("dither", [True, False])
def test_answers_are_masked_differences(encryption, masking, dither):
    """The oracle: every number of every view follows from the others'."""
    one = transcript(
        masking=masking,
        encryption=encryption,
        key_size=256,
        max_iter=2,
        dither=dither,
    )
    n_answers = 0
    for receiver in one.agents:
        view = one.view(receiver)
        for sender in one.public.neighbours(receiver):
            other = {r.number: r for r in one.view(sender).rounds}
            for mine in view.rounds:
                theirs = other[mine.number]
                G, e = theirs.masks[receiver], theirs.dithers[receiver]
                expected = G * (theirs.values - mine.values) + e
                assert_array_equal(mine.answers[sender], expected)
                assert (mine.phase, mine.iteration) == (theirs.phase, theirs.iteration)
                left = mine.phase == "left"
                n = len(mine.values) if masking == "entrywise" and left else 1
                assert len(G) == n
                assert 2**MASK_BITS >= G.max() >= G.min() > 0.09 * 2**MASK_BITS
                assert np.all(e.astype(int) * 2 <= G)
                assert e.any() == dither
                n_answers += 1
    assert n_answers > 60
    assert one.dither == dither


def test_simulated_and_encrypted_fits_are_seen_alike():
    common = {"masking": "entrywise", "max_iter": 2}
    simulated = transcript(**common, encryption="simulated", key_size=256)
    encrypted = transcript(**common, encryption="paillier", key_size=256)
    for agent in simulated.agents:
        for a, b in zip(
            simulated.view(agent).rounds, encrypted.view(agent).rounds, strict=True
        ):
            assert_array_equal(a.values, b.values)
            for name in ("answers", "masks", "dithers"):
                mine, theirs = getattr(a, name), getattr(b, name)
                assert mine.keys() == theirs.keys()
                for key in mine:
                    assert_array_equal(mine[key], theirs[key])
        for a, b in zip(
            simulated.view(agent).sent, encrypted.view(agent).sent, strict=True
        ):
            assert a._replace(data=None) == b._replace(data=None)


def test_values_are_the_left_factor_of_the_source():
    one = transcript()
    view = one.view(VICTIM)
    K, F = one.public.start.shape
    last = view.left_rounds[-1]
    assert last.n_max == 1e6
    H = view.states[-1].H
    assert_array_equal(H, one.estimator.agent_components_[VICTIM])
    # At the end U, which is sent, is close to H.
    U = (last.values / last.n_max).reshape(K, F)
    assert np.linalg.norm(U - H) < 0.05 * np.linalg.norm(H)
    assert [state.iteration for state in view.states] == list(range(1, 13))
    assert view.states[-1].W.shape == (1, K)
    error = np.linalg.norm(view.X - view.states[-1].W @ H)
    assert error < 0.3 * np.linalg.norm(view.X)


def test_links_hold_the_bytes_and_nothing_else():
    one = transcript(encryption="paillier", key_size=256, max_iter=1)
    edges = {(i, j) for i in one.agents for j in one.public.neighbours(i)}
    assert set(one.links.letters) == edges
    total = 0
    for edge, letters in one.links.letters.items():
        assert one.link(*edge) == letters
        for letter in letters:
            assert (letter.sender, letter.receiver) == edge
            assert len(letter.data) == letter.n_bytes
            envelope = Envelope.from_bytes(letter.data)
            message = Message.from_bytes(envelope.body, envelope.kind, envelope.round)
            assert message.round == letter.round
            assert message.scale == letter.scale
            total += letter.n_bytes
    assert total == one.estimator.traffic_["bytes"]
    assert one.link(0, 3) == ()


def test_links_without_ciphertexts_hold_no_plaintexts():
    one = transcript()
    kinds = set()
    for letters in one.links.letters.values():
        for letter in letters:
            assert letter.data is None or not letter.n_ciphertexts
            kinds.add(letter.kind)
    assert {"key", "request", "reply"} <= kinds


def test_views_match_the_links():
    one = transcript(encryption="paillier", key_size=256, max_iter=1)
    assert_views_match_links(one)


def test_a_view_leads_to_nothing_that_others_hold():
    one = transcript(encryption="paillier", key_size=256, max_iter=1)
    secrets = one.view(VICTIM)
    found = reachable(one.view(ATTACKER))
    assert not any(isinstance(thing, Transcript) for thing in found)
    arrays = [thing for thing in found if isinstance(thing, np.ndarray)]
    forbidden = [secrets.X, *(state.W for state in secrets.states)]
    for this in secrets.left_rounds:
        forbidden += [this.values, this.masks[ATTACKER]]
        # Other numbers of the same shape that the attacker must not have.
        forbidden += [this.values / this.n_max]
    for array in arrays:
        for secret in forbidden:
            assert array.shape != secret.shape or not np.array_equal(array, secret)
    # And the test can see what is there.
    own = one.view(ATTACKER).left_rounds[0].values
    assert any(array is own for array in arrays)


def test_an_attack_is_handed_its_view_only():
    handed = []

    class Curious(NeighbourAttack):
        def reconstruct(self, *arguments, **more):
            handed.append((arguments, more))
            return SimulationAttack(1, max_rounds=1, max_steps=1).reconstruct(
                *arguments
            )

    one = transcript()
    leakage = Curious().run(one, ATTACKER, VICTIM)
    assert leakage.attack == "Curious"
    (arguments, more) = handed[0]
    assert arguments[0] is one.view(ATTACKER)
    assert arguments[1:] == (VICTIM,)
    assert more == {}


def test_numbers_of_the_agents_do_not_tell_their_sizes():
    X, agents = data()
    names = np.array(["north", "east", "south", "west"])[agents]
    one = record(model(), X, names)
    assert one.agents == list(one.estimator.agent_labels_)
    assert one.public.labels == tuple(one.agents)
    assert_array_equal(one.public.adjacency, one.estimator.adjacency_)
    for label in one.agents:
        rows = one.estimator.sample_agents_ == one.agents.index(label)
        assert_array_equal(one.view(label).X, X[rows])
        row = one.estimator.adjacency_[one.agents.index(label)]
        expected = [one.agents[k] for k in np.flatnonzero(row)]
        assert one.public.neighbours(label) == expected
        assert set(one.view(label).left_rounds[0].answers) == set(expected)


def test_what_is_public_does_not_change():
    one = transcript()
    view = one.view(ATTACKER)
    with pytest.raises(dataclasses.FrozenInstanceError):
        view.X = None
    with pytest.raises(ValueError, match="read-only"):
        view.left_rounds[0].values[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        one.public.start[0, 0] = 1


def test_masks_are_those_of_the_view():
    one = transcript()
    masks = one.masks(VICTIM, ATTACKER)
    rounds = one.view(VICTIM).rounds
    assert list(masks) == [r.number for r in rounds]
    for r in rounds:
        assert_array_equal(masks[r.number], r.masks[ATTACKER])


def test_parts_and_relays():
    X, agents = data()
    parts = [X[agents == k] for k in range(4)]
    parts.insert(1, np.empty((0, X.shape[1])))
    adjacency = np.diag(np.ones(4), 1)
    estimator = model(adjacency=adjacency + adjacency.T, max_iter=2)
    one = record(estimator, parts)
    assert one.view(1).X.shape == (0, 12)
    with pytest.raises(ValueError, match="agent 1 holds no samples to be found"):
        SimulationAttack().run(one, 0, 1)
    assert SimulationAttack(20, max_fitted=1, max_steps=1, max_rounds=1).run(
        one, 1, 0
    ).guess_error == pytest.approx(1.0)


def test_repr_tells_what_is_in_it():
    text = repr(transcript())
    assert "4 agents" in text
    assert "masking='entrywise', dither=True" in text


@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        (NMF(2), TypeError, "expected a PrivateDistributedNMF, got a NMF"),
        (model(encryption=None), ValueError, "nothing to audit"),
        (
            PrivateDistributedNMF(2, encryption="simulated", partition=1),
            ValueError,
            "at least two agents",
        ),
    ],
)
def test_what_cannot_be_recorded(estimator, error, message):
    X = np.random.default_rng(0).exponential(size=(6, 4))
    with pytest.raises(error, match=message):
        record(estimator, X)


def test_unknown_agents():
    one = transcript()
    with pytest.raises(ValueError, match=r"no agent 'x'; the agents are \[0, 1"):
        one.view("x")
    with pytest.raises(ValueError, match="no agent 9"):
        one.link(0, 9)
    with pytest.raises(ValueError, match=r"agent 0 is no neighbour of agent 3"):
        SimulationAttack().run(one, 0, 3)
    with pytest.raises(ValueError, match="no agent 7"):
        SimulationAttack().run(one, 0, 7)


def test_answers_survive_wider_slots():
    """Slots that grow are asked for again; the record has each round once."""
    X, agents = data()
    start = np.random.default_rng(0).exponential(1e-3, size=(3, 12))
    estimator = model(max_iter=2, init=start, penalty_scaling="absolute", mu=5.0)
    one = record(estimator, 1000 * X, agents)
    kinds = {
        letter.kind for letters in one.links.letters.values() for letter in letters
    }
    view = one.view(ATTACKER)
    assert "widen" in kinds
    assert len({r.number for r in view.rounds}) == len(view.rounds)
    for r in view.left_rounds:
        theirs = {t.number: t for t in one.view(VICTIM).rounds}[r.number]
        expected = theirs.masks[ATTACKER] * (theirs.values - r.values)
        expected += theirs.dithers[ATTACKER]
        assert_allclose(r.answers[VICTIM], expected, rtol=0)
