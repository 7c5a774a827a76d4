"""A carrier that does as it likes, and measures that can be switched off."""

from copy import copy
from typing import NamedTuple

from _helpers import RUN

from skppdnmf._agent import Envelope, Step
from skppdnmf._sealing.agent import HELLO, SealedAgent
from skppdnmf._sealing.credentials import Credentials
from skppdnmf._sealing.facts import Facts
from skppdnmf._sealing.hello import Hello
from skppdnmf._sealing.links import Links
from skppdnmf._sealing.transcript import Transcript
from skppdnmf._secure_sum import exchange
from skppdnmf._secure_sum.agent import SumAgent
from skppdnmf._secure_sum.points import SummedPoints
from skppdnmf._secure_sum.totals import FixedPoint
from skppdnmf.exchange import PairwiseMasks

_IDLE = 4


class Run(NamedTuple):
    """What became of a run: who refused what, who finished, and what was sent."""

    refused: dict[int, type]
    errors: dict[int, Exception]
    finished: list[int]
    sent: list[Envelope]
    reports: list[list]


def carry(agents, meddle=lambda envelope: [envelope], then=None):
    """Carry envelopes as bytes until nothing moves any more.

    An agent that refuses something ends; the others are told nothing of it.

    Parameters
    ----------
    agents : sequence of Agent
    meddle : callable
        Returns what is delivered instead of an envelope, perhaps to others. If it has
        a method ``release``, that returns what is delivered when nothing moves.
    then : mapping from int to list of (int, callable, ...)
        By turns: whose call is made, beside `advance`, and what is given to it.
    """
    boxes, reports = [[] for _ in agents], [[] for _ in agents]
    errors, finished, sent = {}, set(), []
    then, turn, idle = dict(then or {}), 0, 0

    def post(i, step):
        reports[i] += [] if step.report is None else [step.report]
        finished.update([i] if step.finished else [])
        for envelope in step.envelopes:
            genuine = Envelope.from_bytes(envelope.to_bytes())
            sent.append(genuine)
            for one in meddle(genuine):
                boxes[one.receiver].append(one)

    def attempt(i, call, *given):
        try:
            return call(*given)
        except (ValueError, RuntimeError) as error:
            errors[i] = error
            finished.discard(i)
            return Step([])

    while idle < _IDLE or turn <= max(then, default=0):
        assert turn < 1000, "for ever"
        before = len(sent), sum(map(len, boxes)), sum(map(len, reports))
        steps = []
        for i, agent in enumerate(agents):
            if i not in errors:
                box, boxes[i] = boxes[i], []
                call = [agent.advance, box] if turn else [agent.start]
                steps.append((i, attempt(i, *call)))
        for i, *call in then.pop(turn, []):
            if i not in errors:
                steps.append((i, attempt(i, *call)))
        for i, step in steps:
            post(i, step)
        after = len(sent), sum(map(len, boxes)), sum(map(len, reports))
        idle = idle + 1 if before == after else 0
        for one in getattr(meddle, "release", list)() if idle == 1 else ():
            boxes[one.receiver].append(one)
            idle = 0
        turn += 1
    kinds = {i: type(error) for i, error in errors.items()}
    return Run(kinds, errors, sorted(finished), sent, reports)


class OnLink:
    """Changes one sealed envelope from one agent to another, the first by default.

    `change(envelope, earlier)` returns what is delivered instead; None holds it back
    until the next over this link has gone.
    """

    def __init__(self, sender, receiver, change, place=1):
        self.link = sender, receiver
        self.change, self.place = change, place
        self.past, self.held = [], []
        self.done = False

    def __call__(self, envelope):
        if (envelope.sender, envelope.receiver) != self.link or envelope.kind == HELLO:
            return [envelope]
        self.past.append(envelope)
        if len(self.past) - 1 != self.place:
            held, self.held = self.held, []
            return [envelope, *held]
        self.done = True
        changed = self.change(envelope, self.past[:-1])
        if changed is None:
            self.held, changed = [envelope], []
        return changed


class Ledger:
    """An agent of no protocol: sends amounts to its neighbours, and takes any.

    It has no door of its own, so that what keeps an amount out is the seal.
    """

    AMOUNTS = 5

    def __init__(self, number, neighbours, run=RUN):
        self.number, self.neighbours, self.run = number, neighbours, run
        self.left = list(range(self.AMOUNTS))
        self.taken = []

    def depart(self, departure):
        """Take note that others have left: they are sent nothing any more."""
        gone = departure.agents
        self.neighbours = [one for one in self.neighbours if one not in gone]
        return Step([])

    def start(self):
        return self.advance([])

    def advance(self, envelopes):
        self.taken += [
            (one.sender, int.from_bytes(one.body, "big")) for one in envelopes
        ]
        amounts, self.left = self.left[:1], self.left[1:]
        sent = [
            Envelope(
                self.run,
                3,
                self.number,
                j,
                0,
                k,
                (1000 * self.number + k).to_bytes(8, "big"),
            )
            for k in amounts
            for j in self.neighbours
        ]
        over = len(self.taken) >= self.AMOUNTS * len(self.neighbours)
        return Step(sent, None, over and not self.left)


class Nothing:
    """A cipher that hides and authenticates nothing."""

    def encrypt(self, nonce, data, associated):
        return data + bytes(16)

    def decrypt(self, nonce, data, associated):
        return bytes(data)[:-16]


def _open_any(genuine):
    def open_(self, envelope):
        key, _ = self._receiving[envelope.sender]
        counter = int.from_bytes(envelope.body[2:10], "big")
        self._receiving[envelope.sender] = key, counter
        return genuine(self, envelope)

    return open_


def _facts_of_one_digest(genuine):
    def init(self, values):
        genuine(self, values)
        self.digest = bytes(32)

    return init


def _without_members(genuine, place):
    """Have a function be given no members, at a place among its arguments."""

    def call(*given):
        return genuine(*given[:place], (), *given[place + 1 :])

    return call


def _of_the_round_alone(genuine):
    def mask(self, words, number, others, told=b""):
        return genuine(self, words, number % 2**32, others)

    return mask


def _told_nothing(genuine):
    return lambda self, keys, links=None, told=b"": genuine(self, keys, links)


def _first_masks(genuine):
    """Have an agent keep the keys of its first masks."""
    kept = {}

    def make(number, *shared):
        if number not in kept:
            kept[number] = genuine(number, *shared)
        masks = copy(kept[number])
        masks._seeds, masks._link_seeds = {}, {}
        return masks

    return make


def _nothing(*_, **__):
    return None


def switch_off(monkeypatch, *measures):
    """Switch measures off, for a positive control."""
    off = {
        "seals": [(Links, "_cipher", lambda self, key: Nothing())],
        "counters": [(Links, "open", _open_any(Links.open))],
        "signatures": [(Credentials, "is_signed", lambda *_, **__: True)],
        "facts": [
            (Facts, "difference", _nothing),
            (Facts, "__init__", _facts_of_one_digest(Facts.__init__)),
        ],
        "transcript": [(Transcript, "tell", _nothing)],
        "comparison": [
            (SealedAgent, "_compare", _nothing),
            (SealedAgent, "_compare_statements", _nothing),
        ],
        "signed members": [
            (Links, "__init__", _without_members(Links.__init__, 4)),
            (Hello, "of", _without_members(Hello.of, 4)),
        ],
        "least numbers": [(SealedAgent, "_check_members", _nothing)],
        "check of totals": [(FixedPoint, "check_totals", _nothing)],
        "another point": [
            (SummedPoints, "add", _nothing),
            (SumAgent, "_another_summand", lambda self: self._words),
        ],
        "another stream": [
            (PairwiseMasks, "mask", _of_the_round_alone(PairwiseMasks.mask)),
            (PairwiseMasks, "agree", _told_nothing(PairwiseMasks.agree)),
        ],
        "another key": [(exchange, "PairwiseMasks", _first_masks(PairwiseMasks))],
        "masks": [(PairwiseMasks, "mask", lambda self, words, *_: words.copy())],
    }
    for measure in measures:
        for change in off[measure]:
            monkeypatch.setattr(*change)
