"""One agent's side of the secure sum: masked summands up a tree, the total down.

The stages are those of Bonawitz et al. (CCS 2017) as far as both have them: keys are
advertised, masked inputs collected. Nothing is unmasked by others: when an agent is
lost a sum is void, the agents bring each other to the last total, advertise new keys
and begin anew, with other summands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence, Set
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._agent import RUN_ID_BYTES, Letters
from .._sealing.credentials import Credentials
from .._sealing.transcript import Transcript
from ..exceptions import (
    CorruptedMessageError,
    DropoutError,
    ForgedMessageError,
    RepeatedSummandError,
    TranscriptMismatchError,
)
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
    TOLD_BYTES,
    SumMessage,
)
from .pairs import SharedPairs
from .tree import Tree

Words = NDArray[np.uint64]


class Stage(Enum):
    """What an agent is doing."""

    IDLE = "between sums"
    ADVERTISE_KEYS = "advertise keys"
    COLLECT_MASKED_INPUTS = "collect masked inputs"
    RECOVER_TOTAL = "recover the last total"


_KINDS = {
    Stage.ADVERTISE_KEYS: (KEYS_UP, KEYS_DOWN),
    Stage.COLLECT_MASKED_INPUTS: (SUM_UP, SUM_DOWN),
    Stage.RECOVER_TOTAL: (STATE_UP, STATE_DOWN),
}
_TOTALS = (SUM_DOWN, STATE_UP, STATE_DOWN)  # what links hide from others
_EPOCH_BITS = 32
_KIND_BITS = 61
_NO_WORDS = np.empty(0, dtype=np.uint64)
_PURPOSE = b"mask key"


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
    last : bool
        Whether an agent was asked to end the fit, so that no sum follows.
    """

    step: int
    words: Words
    fresh: bool
    last: bool = False


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
    notes : object or None, default=None
        Of an audit, which is told of keys, summands and totals.
    credentials : Credentials or None, default=None
        With which the agent signs its keys and verifies the others'; None takes them
        unsigned.
    pairs : SharedPairs or None, default=None
        Where agents of one process leave each other what both would derive.

    Attributes
    ----------
    transcript : Transcript
        What the agent has been told: members and totals.
    n_rounds : int
        Sums in which the agent has taken part, those given up included.
    awaits_summand : bool
        Whether a sum was given up and `begin` is due, with another summand.
    fresh : bool
        Whether the next total is the first over another set of agents.
    lost : frozenset of int
        Who has been lost in the course of the present sum.
    exposed : bool
        Whether one of several that were lost may know the total over them: the same
        summands must not be summed again.

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
        notes: Any = None,
        credentials: Credentials | None = None,
        pairs: SharedPairs | None = None,
    ) -> None:
        everybody = range(len(key_graph))
        if credentials is None:
            self.transcript = Transcript(bytes(RUN_ID_BYTES), b"", everybody)
        else:
            self.transcript = credentials.transcript(everybody)
        self._credentials = credentials
        self._pairs = pairs
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
        self.stage = Stage.IDLE
        self._words = self._last = _NO_WORDS
        self._stopping = self._last_of_all = False
        self._learnt = -1
        # Epoch and number of the last sum to which it has contributed.
        self._contributed = 0, -1
        self._to_resume: Total | None = None
        self.fresh = False
        self.awaits_summand = False
        self.lost: frozenset[int] = frozenset()
        # Whether one of them was the root, after this agent's summand had gone up.
        self._lost_root = False
        self._news: Total | None = None
        self._over = False
        self._notes = notes
        self.n_rounds = 0

    @property
    def alone(self) -> bool:
        """Whether there is nobody to sum with."""
        return len(self._tree.children) == 1

    @property
    def next_step(self) -> int:
        """Number of the next sum."""
        return self._learnt + 1

    @property
    def exposed(self) -> bool:
        """Whether the same summands must not be summed again."""
        return self._lost_root and len(self.lost) > 1

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

        Raises
        ------
        RepeatedSummandError
            If the agent has contributed to this sum: it does so once.
        """
        if self.stage is not Stage.IDLE or self._over:
            raise RepeatedSummandError(
                f"{self.name}: a summand in stage {self.stage.value!r}; it contributes "
                "once to each sum, and to none after the last"
            )
        self._words = words
        self.awaits_summand = False
        self._begin_sum()
        return self._sent()

    def end(self) -> None:
        """Begin no further sum, as all agents agree to in the same round."""
        self._over = True

    def stop(self) -> None:
        """Ask all agents to take the next total for the last."""
        self._stopping = True

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
            unless the sums are over. Call it as well if `awaits_summand`.

        Raises
        ------
        CorruptedMessageError
            If a message is not what a neighbour in the tree must have sent, or not
            when it can have been; nothing has been taken then.
        """
        admitted = list(self._inbox)
        for sender, message in arrived:
            self._admit(sender, message, admitted)
            admitted.append((sender, message))
        self._inbox = admitted
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
        learnt. Then they advertise new keys, under which all sign who is left, and
        await a summand for the next sum. One that was lost may have learnt the total of
        the sum that was given up: the difference of two totals of the same summands
        would tell it the summand of any other that was lost.

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
        summing = self.stage is Stage.COLLECT_MASKED_INPUTS
        if self._tree.root in others and summing and not self._waiting:
            self._lost_root = True
        self.lost |= set(others)
        self._dropped |= set(others)
        self._epoch += 1
        self._tree = self._trees(self._dropped)
        self.transcript.depart(self._tree.children)
        if self._parent is None:  # one look at the whole key graph is enough
            self._check_keys()
        self._open(Stage.RECOVER_TOTAL)
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
        return [p for p in self._key_graph[agent].tolist() if p not in self._dropped]

    def _begin_keys(self) -> None:
        """Make a key pair and send the public key."""
        self._masks = PairwiseMasks(self.number, self._pairs)
        public_key = self._masks.public_key
        self._keys, self._signed = {self.number: public_key}, {}
        if self._credentials is not None:
            told = self.transcript.digest()
            signature = self._credentials.sign(_PURPOSE, told, public_key)
            self._signed = {self.number: told + signature}
        self._open(Stage.ADVERTISE_KEYS)

    def _begin_sum(self) -> None:
        """Mask the summand of the next sum."""
        self.n_rounds += not self.alone
        mark = self._epoch, self._learnt + 1
        if mark <= self._contributed:
            raise RepeatedSummandError(
                f"{self.name}: has contributed to sum {mark} before"
            )
        self._contributed = mark
        number = (self._epoch << _EPOCH_BITS) + self._learnt + 1
        self._partial = self._masks.mask(
            self._words, number, self._peers(self.number), self.transcript.digest()
        )
        if self._notes is not None:
            self._notes.summand(
                self._learnt + 1, self._epoch, self._words, self._partial
            )
        self._open(Stage.COLLECT_MASKED_INPUTS)

    def _open(self, stage: Stage) -> None:
        """Begin a round of this stage."""
        self.stage = stage
        self._state = self._learnt + 1, self._last, self._last_of_all
        self._waiting = set(self._tree.children[self.number])
        if not self._waiting:
            self._close()

    def _admit(self, sender: int, message: SumMessage, inbox: Letters) -> None:
        """Refuse at the door what cannot be due: by sender, stage, step or size."""
        if message.epoch < self._epoch:
            return  # of a sum that is void since
        if any(
            other == sender and (one.kind, one.epoch) == (message.kind, message.epoch)
            for other, one in inbox
        ):
            raise self._refusal(sender, message, "which it has sent before")
        if message.epoch > self._epoch:
            # From one who has heard of a departure before this agent has, and who
            # cannot go on without this agent; the rest is checked when it is taken.
            if message.kind != STATE_UP or message.epoch > len(self._key_graph):
                raise self._refusal(
                    sender, message, f"of epoch {message.epoch}, this is {self._epoch}"
                )
            return
        if self._is_early(message):
            self._check_sender(sender, message, self._tree.children[self.number])
            return
        if not self._is_due(message):
            raise self._refusal(
                sender,
                message,
                f"of step {message.step}, not due in stage {self.stage.value!r}, step "
                f"{self._learnt + 1}",
            )
        self._check(sender, message)

    def _is_due(self, message: SumMessage) -> bool:
        """Whether the message belongs to the present round."""
        if message.epoch != self._epoch or self.stage is Stage.IDLE:
            return False
        if message.kind not in _KINDS[self.stage]:
            return False
        summing = self.stage is Stage.COLLECT_MASKED_INPUTS
        return not summing or message.step == self._learnt + 1

    def _is_early(self, message: SumMessage) -> bool:
        """Whether it is a child's summand of the sum that this agent begins next."""
        idle = self.stage is Stage.IDLE and not self._over
        return idle and message.kind == SUM_UP and message.step == self._learnt + 1

    def _take(self, sender: int, message: SumMessage) -> None:
        """Use one message of the present round."""
        up, _ = _KINDS[self.stage]
        if self.stage is not Stage.ADVERTISE_KEYS:
            # What came early could not be checked at the door; keys never do.
            self._check(sender, message)
        if message.kind in _TOTALS and len(message.words):
            number = _message_number(message)
            words = self._links.reveal(message.words, sender, number)
            message = message.with_words(words)
        if message.kind != up:
            self._end(message)
            return
        self._waiting.discard(sender)
        self._stopping |= message.last and message.kind == SUM_UP
        if self.stage is Stage.ADVERTISE_KEYS:
            self._keys.update(message.keys)
            self._signed.update(message.signed)
        elif self.stage is Stage.COLLECT_MASKED_INPUTS:
            self._partial += message.words
        elif message.step > self._state[0]:
            self._state = message.step, message.words, message.last
        if not self._waiting:
            self._close()

    def _check(self, sender: int, message: SumMessage) -> None:
        """Refuse what is due but not from this sender, or not as it is."""
        self._check_sender(sender, message, self._waiting)
        if self.stage is Stage.ADVERTISE_KEYS:
            self._check_advertised(sender, message)
        elif self.stage is Stage.COLLECT_MASKED_INPUTS:
            self._check_length(sender, message)
        else:
            self._check_state(sender, message)

    def _check_sender(
        self, sender: int, message: SumMessage, waiting: Collection[int]
    ) -> None:
        """Refuse what comes from another than a child, or the parent, in the tree."""
        up = message.kind in (KEYS_UP, SUM_UP, STATE_UP)
        parent = [] if self._parent is None else [self._parent]
        expected = waiting if up else parent
        if sender not in expected:
            raise self._refusal(sender, message, f"expected it from {sorted(expected)}")
        if not up and waiting:
            raise self._refusal(
                sender, message, f"although {sorted(waiting)} have not sent theirs"
            )

    def _check_advertised(self, sender: int, message: SumMessage) -> None:
        """Refuse the keys of others than all who are below the sender, or than all."""
        children = self._tree.children
        expected: Set[int] = children.keys()
        if message.kind == KEYS_UP:
            below = [sender]
            for agent in below:
                below += children[agent]
            expected = set(below)
        missing = sorted(expected - message.keys.keys())
        if missing:
            raise self._refusal(
                sender, message, f"no public key of agents {missing[:5]}"
            )
        others = sorted(message.keys.keys() - expected)
        if others:
            raise self._refusal(
                sender,
                message,
                f"public keys of agents {others[:5]}, not theirs to send",
            )
        # What has gone up from here comes down as it was, the agent's own key first.
        changed = [
            agent
            for agent, key in self._keys.items()
            if message.keys.get(agent, key) != key
        ]
        if changed:
            raise ForgedMessageError(
                f"{self.name}: {SUM_KIND_NAMES[message.kind]} from agent {sender}, "
                f"another public key of agents {sorted(changed)[:5]} than they sent",
                sender=sender,
            )
        if self._credentials is not None:
            used: Set[int] = expected
            if message.kind == KEYS_DOWN and not self._epoch:
                used = set(self._peers(self.number)) | set(self._linked(message.keys))
            self._verify(sender, message, used - {self.number})

    def _verify(
        self, sender: int, message: SumMessage, agents: Collection[int]
    ) -> None:
        """Refuse keys that their owners have not signed for what all were told."""
        credentials = self._credentials
        assert credentials is not None
        told = self.transcript.digest()
        for agent in sorted(agents):
            entry = message.signed.get(agent, b"")
            here, signature = entry[:TOLD_BYTES], entry[TOLD_BYTES:]
            if not credentials.is_signed(
                agent, signature, _PURPOSE, here, message.keys[agent]
            ):
                raise ForgedMessageError(
                    f"{self.name}: {SUM_KIND_NAMES[message.kind]} from agent {sender}, "
                    f"a key of {credentials.name_of(agent)} that is not signed with "
                    "its key of the roster for this run",
                    sender=sender,
                )
            if here != told:
                raise TranscriptMismatchError(
                    f"{self.name} and {credentials.name_of(agent)} have not been told "
                    f"of the same members and totals by epoch {self._epoch}",
                    sender=agent,
                )

    def _check_state(self, sender: int, message: SumMessage) -> None:
        """Refuse a total that nobody can have learnt: agents are at most one apart."""
        step = self._learnt + 1
        least = step if message.kind == STATE_DOWN else step - 1
        if not least <= message.step <= step + 1:
            raise self._refusal(
                sender,
                message,
                f"of step {message.step}, expected {least} to {step + 1}",
            )
        if message.step > step:
            self._check_length(sender, message)

    def _check_length(self, sender: int, message: SumMessage) -> None:
        """Refuse words that are not as many as this agent's."""
        if len(message.words) != len(self._words):
            raise self._refusal(
                sender,
                message,
                f"of {len(message.words)} words, expected {len(self._words)}",
            )

    def _refusal(
        self, sender: int, message: SumMessage, reason: str
    ) -> CorruptedMessageError:
        """Return the error that refuses a message by its sender's name."""
        kind = SUM_KIND_NAMES[message.kind]
        return CorruptedMessageError(
            f"{self.name}: {kind} from agent {sender}, {reason}", sender=sender
        )

    @property
    def _parent(self) -> int | None:
        """The parent in the tree; None for the root."""
        return self._tree.parents.get(self.number)

    def _close(self) -> None:
        """All below have sent: send it up, or down from the root."""
        up, down = _KINDS[self.stage]
        step, words, keys, last = self._learnt + 1, _NO_WORDS, {}, False
        signed: dict[int, bytes] = {}
        if self.stage is Stage.ADVERTISE_KEYS:
            keys, signed = self._keys, self._signed
        elif self.stage is Stage.COLLECT_MASKED_INPUTS:
            words, last = self._partial, self._stopping
        else:
            step, words, last = self._state
        if self._parent is None:
            self._end(SumMessage(down, self._epoch, step, words, keys, last, signed))
        else:
            message = SumMessage(up, self._epoch, step, words, keys, last, signed)
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
            self._learn(message.words, message.last)
        else:
            self._resume(message.step - 1, message.words, message.last)

    def _hidden(self, message: SumMessage, receiver: int) -> SumMessage:
        """Return a message whose total only the receiver can read."""
        if message.kind not in _TOTALS or not len(message.words):
            return message
        number = _message_number(message)
        words = self._links.hide(message.words, receiver, number)
        return message.with_words(words)

    def _agree(self, keys: dict[int, bytes]) -> None:
        """Agree on seeds with those with whom the key graph says so."""
        if self._notes is not None:
            self._notes.keys(keys)
        self._masks.agree(
            {peer: keys[peer] for peer in self._peers(self.number)},
            {k: keys[k] for k in self._linked(keys)} if self._learnt < 0 else {},
            self.transcript.digest(),
        )
        if self._learnt < 0:
            # Later departures find some agents with newer keys than others: totals
            # go under those of the first sum, which all have who have learnt any.
            self._links = self._masks
        self._keys, self._signed = {}, {}
        resumed, self._to_resume = self._to_resume, None
        if not self._epoch:
            self._begin_sum()
        elif resumed is not None:
            self._news = resumed
            self.stage = Stage.IDLE
        else:
            self._await_summand()

    def _linked(self, keys: Collection[int]) -> list[int]:
        """Those to whom the agent may have to send a total, of those who have keys."""
        links = keys if self._neighbours is None else self._neighbours
        return [int(k) for k in links if k in keys and k != self.number]

    def _learn(self, words: Words, last: bool) -> None:
        """Note a total."""
        self._learnt += 1
        self.transcript.tell(np.ascontiguousarray(words, dtype="<u8"))
        self._last, self._last_of_all = words, last
        self.stage = Stage.IDLE
        self._news = Total(self._learnt, words, self.fresh, last)
        self.fresh = False
        self.lost, self._lost_root = frozenset(), False
        if self._notes is not None:
            self._notes.total(self._learnt, words)

    def _resume(self, learnt: int, words: Words, last: bool) -> None:
        """After a dropout: take the last total if it was missed, and begin anew."""
        if learnt > self._learnt:
            self._learn(words, last)
            # What is made of it waits for the new keys.
            self._to_resume, self._news = self._news, None
        self.fresh = learnt >= 0
        self._begin_keys()

    def _await_summand(self) -> None:
        """Have another summand made for the sum that was given up."""
        self.stage = Stage.IDLE
        self.awaits_summand = not self._over

    def _sent(self) -> Letters:
        """Return what is to be sent, once."""
        outbox, self._outbox = self._outbox, []
        return outbox


def _message_number(message: SumMessage) -> int:
    """Return a number that no other message over the same link has."""
    kind, epoch = message.kind << _KIND_BITS, message.epoch << _EPOCH_BITS
    return kind + epoch + message.step
