"""Keys of links and of masks are swapped; somebody speaks as another.

With the positive control: where nobody verifies signatures, all is read.
"""

from dataclasses import replace

import numpy as np
import pytest
from _hostile import Ledger, carry, switch_off
from _sealed import CODES, FACTS, IDENTITIES, SIZES, credentials_of, plain_agents
from _sealed import sealed_agents as agents_of
from _sums import RARE, p_uniform

from skppdnmf._sealing.agent import _SAID, FINAL, HELLO
from skppdnmf._sealing.hello import Hello
from skppdnmf._sealing.links import SEALED, Links
from skppdnmf._sealing.transcript import Position
from skppdnmf.exceptions import ForgedMessageError
from skppdnmf.exchange import KEYS_DOWN, SUM_UP, PairwiseMasks, SealedAgent

A, B = 0, 1
RING = {0: [1, 3], 1: [0, 2], 2: [1, 3], 3: [0, 2]}
MEMBERS = (0, 1, 2, 3)
# Not in the roster, and that of site 2.
STRANGER, MEMBER = IDENTITIES[7], IDENTITIES[2]


def ledgers():
    return [
        SealedAgent(Ledger(i, others), credentials_of(i, 4), others, 3)
        for i, others in RING.items()
    ]


class Middle:
    """Whoever sits between A and B, and is B to A and A to B.

    It signs its keys with a key of its own, if it has one, else leaves the signature
    of the one whose key it swaps.
    """

    def __init__(self, protocol, identity=None, both=True):
        self.protocol, self.identity, self.both = protocol, identity, both
        # By whom it speaks to, as the other one.
        self.links = {
            one: Links(self.as_(other), protocol, 0, MEMBERS, [one])
            for one, other in ((A, B), (B, A))
        }
        self.read = []

    def as_(self, number):
        return credentials_of(number, 4).of(self.identity or STRANGER, number)

    def __call__(self, envelope):
        sender, receiver = envelope.sender, envelope.receiver
        if {sender, receiver} != {A, B}:
            return [envelope]
        if envelope.kind == HELLO:
            return [self.swapped(envelope)]
        if not self.both:
            return [envelope]
        content = self.links[sender].open(envelope)
        said, payload = content[: _SAID.size], content[_SAID.size :]
        if envelope.kind != FINAL:
            self.read.append((sender, payload))
        plain = envelope._replace(protocol=envelope.protocol & ~SEALED, body=payload)
        return [self.links[receiver].seal(plain, said)]

    def swapped(self, envelope):
        sender, receiver = envelope.sender, envelope.receiver
        if not self.both and sender != A:
            return envelope
        hello = Hello.from_bytes(envelope.body, 4)
        self.links[sender].connect(sender, hello.key)
        key = self.links[receiver].key
        swapped = replace(hello, key=key)
        if self.identity is not None:
            own = self.as_(sender)
            swapped = Hello.of(own, self.protocol, 0, key, MEMBERS)
        return envelope._replace(body=swapped.to_bytes())


@pytest.mark.parametrize("protocol", CODES)
@pytest.mark.parametrize("identity", [None, STRANGER, MEMBER])
@pytest.mark.parametrize("both", [True, False])
def test_swapped_keys_of_a_link_are_refused(protocol, identity, both):
    """By whoever gets one, before anything else has gone over the link."""
    middle = Middle(CODES[protocol], identity, both)
    run = carry(agents_of(protocol, signed=True), middle)
    refused = [A, B] if both else [B]
    assert run.refused == dict.fromkeys(refused, ForgedMessageError)
    assert run.finished == []
    assert middle.read == []


@pytest.mark.parametrize("identity", [None, STRANGER, MEMBER])
def test_without_signatures_whoever_swaps_both_keys_reads_all(identity, monkeypatch):
    switch_off(monkeypatch, "signatures")
    middle = Middle(3, identity)
    run = carry(ledgers(), middle)
    assert run.finished == [0, 1, 2, 3]
    amounts = [(sender, int.from_bytes(data, "big")) for sender, data in middle.read]
    expected = [(i, 1000 * i + k) for i in (A, B) for k in range(Ledger.AMOUNTS)]
    assert sorted(amounts) == expected


@pytest.mark.parametrize("protocol", CODES)
def test_without_signatures_it_reads_what_protocols_say(protocol, monkeypatch):
    switch_off(monkeypatch, "signatures")
    middle = Middle(CODES[protocol])
    run = carry(agents_of(protocol, signed=True), middle)
    assert run.finished == [0, 1, 2, 3]
    assert len(middle.read) > 4


def test_one_swapped_key_helps_nobody_even_without_signatures(monkeypatch):
    """The keys of a link depend on both public keys, as either end has them."""
    switch_off(monkeypatch, "signatures")
    run = carry(ledgers(), Middle(3, both=False))
    assert run.refused == {A: ForgedMessageError, B: ForgedMessageError}


# Keys of masks: in the tree of a star agent 0 sends all keys down, and hears all words.
GRAPH, SWAPPER, VICTIM, PEER = "star", 0, 2, 1
SWAPS = {
    "one of a pair": {(VICTIM, PEER)},
    "both of a pair": {(VICTIM, PEER), (PEER, VICTIM)},
    "all that one site gets": {(VICTIM, k) for k in range(4) if k != VICTIM},
    "the key of a site itself": {(VICTIM, VICTIM)},
}


class Swapper:
    """A root that gives some others' keys of its own: ``(who gets it, whose)``."""

    def __init__(self, agent, swaps):
        self.agent, self.swaps = agent, swaps
        self.own = {}
        self.heard = {}
        self.keys = {}

    def start(self):
        return self.agent.start()

    def advance(self, envelopes):
        for one in envelopes:
            if one.kind == SUM_UP and one.sender == VICTIM:
                words = np.frombuffer(one.body[11:], dtype="<u8")
                self.heard[one.round] = words
        step = self.agent.advance(envelopes)
        return step._replace(envelopes=[self.changed(one) for one in step.envelopes])

    def changed(self, envelope):
        if envelope.kind != KEYS_DOWN:
            return envelope
        self.keys = dict(envelope.body.keys)
        keys = dict(envelope.body.keys)
        for receiver, whose in sorted(self.swaps):
            if receiver == envelope.receiver:
                mine = self.own[receiver, whose] = PairwiseMasks(whose)
                keys[whose] = mine.public_key
        return envelope._replace(body=replace(envelope.body, keys=keys))

    def unmasked(self, step):
        """The victim's words of a sum, less all masks that it can know."""
        words, told = self.heard[step].copy(), self.agent.transcript
        for (receiver, whose), mine in self.own.items():
            if receiver == VICTIM and whose != VICTIM:
                if mine._private is not None:
                    start = told.digest(Position(0, 0))
                    mine.agree({VICTIM: self.keys[VICTIM]}, told=start)
                digest = told.digest(Position(0, step))
                words += mine.mask(np.zeros_like(words), step, [VICTIM], digest)
        return words


def swapping(swaps):
    own = [credentials_of(i, len(SIZES), FACTS) for i in range(len(SIZES))]
    agents = plain_agents("secure-sum", graph=GRAPH, credentials=own.__getitem__)
    agents[SWAPPER] = Swapper(agents[SWAPPER], SWAPS[swaps])
    return agents


@pytest.mark.parametrize("swaps", SWAPS)
def test_swapped_keys_of_masks_are_refused(swaps):
    """By each site that gets one, and before it has sent a summand."""
    agents = swapping(swaps)
    run = carry(agents)
    refused = {receiver for receiver, _ in SWAPS[swaps]}
    assert run.refused == dict.fromkeys(refused, ForgedMessageError)
    assert agents[SWAPPER].heard == {}
    assert not [one for one in run.sent if one.kind == SUM_UP and one.sender in refused]


def test_without_signatures_a_site_whose_keys_are_all_swapped_is_read(monkeypatch):
    """The positive control: its words, less masks that are all the root's, are its."""
    switch_off(monkeypatch, "signatures")
    agents = swapping("all that one site gets")
    carry(agents)
    root, victim = agents[SWAPPER], agents[VICTIM]
    np.testing.assert_array_equal(root.unmasked(0), victim._setup())
    assert p_uniform([root.heard[0]]) > RARE


def test_without_signatures_a_pair_that_is_swapped_hides_the_rest(monkeypatch):
    """Masks with the others are still on."""
    switch_off(monkeypatch, "signatures")
    agents = swapping("both of a pair")
    carry(agents)
    assert p_uniform([agents[SWAPPER].unmasked(0)]) > RARE
    assert (agents[SWAPPER].unmasked(0) != agents[VICTIM]._setup()).any()
