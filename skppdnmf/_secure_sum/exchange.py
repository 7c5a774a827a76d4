"""One agent's side of the secure sum: masked summands up a tree, the total down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..exceptions import CorruptedMessageError, DropoutError
from .key_graph import keys_connected
from .masks import PairwiseMasks
from .messages import (
    KEYS_DOWN,
    KEYS_UP,
    STATE_DOWN,
    STATE_UP,
    SUM_DOWN,
    SUM_KIND_NAMES,
    SUM_UP,
    SumMessage,
)

Words = NDArray[np.uint64]
Letters = list[tuple[int, SumMessage]]

_KINDS = {
    "keys": (KEYS_UP, KEYS_DOWN),
    "sum": (SUM_UP, SUM_DOWN),
    "state": (STATE_UP, STATE_DOWN),
}
_TOTALS = (SUM_DOWN, STATE_UP, STATE_DOWN)  # what links hide from others
_EPOCH_BITS = 32
_KIND_BITS = 61
_NO_WORDS = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Tree:
    """A spanning tree of the agents.

    Parameters
    ----------
    root : int
        The agent at which the sum comes together.
    parents : dict from int to int
        Of every agent but the root.
    children : dict from int to list of int
        Of every agent, the root first, parents before children.
    """

    root: int
    parents: dict[int, int]
    children: dict[int, list[int]]


class Total(NamedTuple):
    """A total that an agent has learnt.

    Parameters
    ----------
    step : int
        Number of the sum, counted from 0.
    words : ndarray of uint64
        The sum of all agents' words, modulo 2**64.
    fresh : bool
        Whether it is the first over another set of agents.
    """

    step: int
    words: Words
    fresh: bool


class SecureSum:
    """Sums words over all agents, one sum after the other, without showing a summand.

    Each agent adds its pairwise masks to its summand and the partial sums of its
    children in the tree, and sends the result to its parent. In the total, which
    comes down from the root, the masks cancel. Does no I/O: messages in, messages
    out.

    Parameters
    ----------
    number : int
        The agent's number.
    name : str
        How errors call it.
    trees : callable
        Returns the `Tree` of all agents but a frozenset of those that have dropped
        out; the same for every agent.
    key_graph : list of ndarray of int
        For each agent those with whom it shares a key.
    neighbours : sequence of int or None, default=None
        The agent's neighbours in the graph, to whom it may have to send a total;
        None for everybody.

    Attributes
    ----------
    n_rounds : int
        Sums in which the agent has taken part, those given up included.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.exchange import SecureSum, Tree
    >>> tree = Tree(0, {1: 0}, {0: [1], 1: []})
    >>> keys = [np.array([1]), np.array([0])]
    >>> sums = [SecureSum(i, f"agent {i}", lambda _: tree, keys) for i in (0, 1)]
    >>> waiting = []
    >>> for i, one in enumerate(sums):
    ...     waiting += [(i, *letter) for letter in one.start(np.full(2, i + 1, "u8"))]
    >>> totals = []
    >>> while waiting:
    ...     sender, receiver, message = waiting.pop(0)
    ...     letters, total = sums[receiver].advance([(sender, message)])
    ...     waiting += [(receiver, *letter) for letter in letters]
    ...     totals += [total.words] if total else []
    >>> totals
    [array([3, 3], dtype=uint64), array([3, 3], dtype=uint64)]
    """

    def __init__(
        self,
        number: int,
        name: str,
        trees: Callable[[frozenset[int]], Tree],
        key_graph: list[NDArray[np.intp]],
        neighbours: Sequence[int] | None = None,
    ) -> None:
        self.number = number
        self.name = name
        self._trees = trees
        self._key_graph = key_graph
        self._neighbours = neighbours
        self._dropped: frozenset[int] = frozenset()
        self._epoch = 0
        self._tree = trees(self._dropped)
        self._inbox: Letters = []
        self._outbox: Letters = []
        self._phase = "idle"
        self._words = self._last = _NO_WORDS
        self._learnt = -1
        self._fresh = False
        self._news: Total | None = None
        self._over = False
        self.n_rounds = 0

    @property
    def alone(self) -> bool:
        """Whether there is nobody to sum with."""
        return len(self._tree.children) == 1

    def start(self, words: Words) -> Letters:
        """Agree on keys, then sum these words.

        Parameters
        ----------
        words : ndarray of uint64
            The agent's first summand.

        Returns
        -------
        list of (int, SumMessage)
            Receivers and messages.
        """
        self._words = words
        self._begin_keys()
        return self._sent()

    def begin(self, words: Words) -> Letters:
        """Go on with the next sum.

        Parameters
        ----------
        words : ndarray of uint64
            The agent's summand; as many for every agent.

        Returns
        -------
        list of (int, SumMessage)
            Receivers and messages.
        """
        self._words = words
        self._begin_sum()
        return self._sent()

    def end(self) -> None:
        """Begin no further sum, as all agents agree to in the same round."""
        self._over = True

    def advance(self, arrived: Letters) -> tuple[Letters, Total | None]:
        """Take messages and go on as far as they allow.

        Parameters
        ----------
        arrived : list of (int, SumMessage)
            Senders and messages.

        Returns
        -------
        letters : list of (int, SumMessage)
            Receivers and messages.
        total : Total or None
            The next total, if it is there; call `begin` before the next `advance`,
            unless the sums are over.

        Raises
        ------
        CorruptedMessageError
            If a message is not what a neighbour in the tree must have sent.
        """
        self._inbox += arrived
        progress = True
        while progress and self._news is None:
            progress = False
            for place, (sender, message) in enumerate(self._inbox):
                if message.epoch < self._epoch or self._is_due(message):
                    del self._inbox[place]
                    if message.epoch == self._epoch:
                        self._take(sender, message)
                    progress = True
                    break
        news, self._news = self._news, None
        return self._sent(), news

    def drop(self, *others: int) -> tuple[Letters, Total | None]:
        """Take note that others have dropped out: the present sum is void.

        The agents first bring each other to the last total that any of them has
        learnt, so that no two totals of the same summands are ever formed, and then
        begin the next sum anew, without the others and with fresh masks.

        Parameters
        ----------
        *others : int
            Numbers of agents that have dropped out at the same time. All agents
            must be told the same, in the same order.

        Returns
        -------
        letters, total
            As for `advance`.

        Raises
        ------
        DropoutError
            If the agents that are left cannot reach each other, or share too few
            keys.
        """
        self._dropped |= set(others)
        self._epoch += 1
        self._tree = self._trees(self._dropped)
        if self._parent is None:  # one look at the whole key graph is enough
            self._check_keys()
        self._open("state")
        return self.advance([])

    def _check_keys(self) -> None:
        """Refuse to go on if some could learn the totals of a part of the others."""
        peers = {member: set(self._peers(member)) for member in self._tree.children}
        if not keys_connected(peers):
            raise DropoutError(
                f"the {len(peers)} agents that are left share too few keys; set a "
                "larger key_degree"
            )

    # Rounds --------------------------------------------------------------------

    def _peers(self, agent: int) -> list[int]:
        """Those present with whom an agent shares a key."""
        return [p for p in map(int, self._key_graph[agent]) if p not in self._dropped]

    def _begin_keys(self) -> None:
        """Make a key pair and send the public key."""
        self._masks = PairwiseMasks(self.number)
        self._keys = {self.number: self._masks.public_key}
        self._open("keys")

    def _begin_sum(self) -> None:
        """Mask the summand of the next sum."""
        self.n_rounds += not self.alone
        number = (self._epoch << _EPOCH_BITS) + self._learnt + 1
        self._partial = self._masks.mask(self._words, number, self._peers(self.number))
        self._open("sum")

    def _open(self, phase: str) -> None:
        """Begin a round of this phase."""
        self._phase = phase
        self._state = self._learnt + 1, self._last
        self._waiting = set(self._tree.children[self.number])
        if not self._waiting:
            self._close()

    def _is_due(self, message: SumMessage) -> bool:
        """Whether the message belongs to the present round."""
        if message.epoch != self._epoch or self._phase not in _KINDS:
            return False
        if message.kind not in _KINDS[self._phase]:
            return False
        return self._phase != "sum" or message.step == self._learnt + 1

    def _take(self, sender: int, message: SumMessage) -> None:
        """Use one message of the present round."""
        up, _ = _KINDS[self._phase]
        kind = SUM_KIND_NAMES[message.kind]
        expected = self._waiting if message.kind == up else {self._parent}
        if sender not in expected:
            raise CorruptedMessageError(
                f"{self.name}: {kind} from agent {sender}, expected it from "
                f"{sorted(map(str, expected))}"
            )
        if self._phase == "sum" and len(message.words) != len(self._words):
            raise CorruptedMessageError(
                f"{self.name}: {kind} of {len(message.words)} words, expected "
                f"{len(self._words)}"
            )
        if message.kind in _TOTALS and len(message.words):
            number = _message_number(message)
            words = self._masks.reveal(message.words, sender, number)
            message = replace(message, words=words)
        if message.kind != up:
            self._end(message)
            return
        self._waiting.discard(sender)
        if self._phase == "keys":
            self._keys.update(message.keys)
        elif self._phase == "sum":
            self._partial += message.words
        elif message.step > self._state[0]:
            self._state = message.step, message.words
        if not self._waiting:
            self._close()

    @property
    def _parent(self) -> int | None:
        """The parent in the tree; None for the root."""
        return self._tree.parents.get(self.number)

    def _close(self) -> None:
        """All below have sent: send it up, or down from the root."""
        up, down = _KINDS[self._phase]
        step, words, keys = self._learnt + 1, _NO_WORDS, {}
        if self._phase == "keys":
            keys = self._keys
        elif self._phase == "sum":
            words = self._partial
        else:
            step, words = self._state
        if self._parent is None:
            self._end(SumMessage(down, self._epoch, step, words, keys))
        else:
            message = SumMessage(up, self._epoch, step, words, keys)
            if up == STATE_UP:
                message = self._hidden(message, self._parent)
            self._outbox.append((self._parent, message))

    def _end(self, message: SumMessage) -> None:
        """Pass on what came from the root, and use it."""
        for child in self._tree.children[self.number]:
            self._outbox.append((child, self._hidden(message, child)))
        if message.kind == KEYS_DOWN:
            self._agree(message.keys)
        elif message.kind == SUM_DOWN:
            self._learn(message.words)
        else:
            self._resume(message.step - 1, message.words)

    def _hidden(self, message: SumMessage, receiver: int) -> SumMessage:
        """Return a message whose total only the receiver can read."""
        if message.kind not in _TOTALS or not len(message.words):
            return message
        number = _message_number(message)
        words = self._masks.hide(message.words, receiver, number)
        return replace(message, words=words)

    def _agree(self, keys: dict[int, bytes]) -> None:
        """Agree on seeds with those with whom the key graph says so."""
        missing = [peer for peer in self._peers(self.number) if peer not in keys]
        if missing:
            raise CorruptedMessageError(
                f"{self.name}: no public key of agents {missing[:5]}"
            )
        links = keys if self._neighbours is None else self._neighbours
        self._masks.agree(
            {peer: keys[peer] for peer in self._peers(self.number)},
            {int(k): keys[k] for k in links if k in keys and k != self.number},
        )
        self._keys = {}
        self._begin_sum()

    def _learn(self, words: Words) -> None:
        """Note a total."""
        self._learnt += 1
        self._last = words
        self._phase = "idle"
        self._news = Total(self._learnt, words, self._fresh)
        self._fresh = False

    def _resume(self, learnt: int, words: Words) -> None:
        """After a dropout: take the last total if it was missed, and begin anew."""
        if learnt < 0:
            self._begin_keys()
        elif learnt > self._learnt:
            self._learn(words)
            self._fresh = True
        else:
            self._fresh = True
            self._phase = "idle"
            if not self._over:
                self._begin_sum()

    def _sent(self) -> Letters:
        """Return what is to be sent, once."""
        outbox, self._outbox = self._outbox, []
        return outbox


def _message_number(message: SumMessage) -> int:
    """Return a number that no other message over the same link has."""
    kind, epoch = message.kind << _KIND_BITS, message.epoch << _EPOCH_BITS
    return kind + epoch + message.step
