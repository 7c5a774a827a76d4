"""What two agents of one process derive alike is derived once."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


class SharedPairs:
    """Where agents of one process leave each other keys and masks.

    Both ends of a pair derive the same keys from the same public facts, and expand the
    same streams under them. Whoever comes first leaves the other its part, which is
    taken only for exactly what the other would have derived: the same keys, the same
    round, the same digest of what has been told. An agent that moves to another
    process leaves this behind, and derives everything itself.

    Examples
    --------
    >>> from skppdnmf._secure_sum.pairs import SharedPairs
    >>> shared = SharedPairs()
    >>> shared.found([b"a pair"]) is None
    True
    >>> shared.leave([b"a pair"], [b"its key"])
    >>> shared.found([b"a pair"])
    [b'its key']
    """

    def __init__(self) -> None:
        self._keys: dict[bytes, bytes] = {}
        self._round = RoundOfPairs(b"")
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()

    def found(self, wanted: Collection[bytes]) -> list[bytes] | None:
        """Return keys that the other end has derived, once; None if it has not."""
        keys = [self._keys.get(one) for one in wanted]
        if None in keys:
            return None
        # There is nobody else who would ask for them.
        return [self._keys.pop(one) for one in wanted]

    def leave(self, wanted: Collection[bytes], keys: Collection[bytes]) -> None:
        """Leave keys by all that they follow from, the public keys among it."""
        self._keys.update(zip(wanted, keys, strict=True))

    @contextmanager
    def round(self, round_and_told: bytes) -> Iterator[RoundOfPairs]:
        """Have what was left in a round, while no other agent has it.

        Parameters
        ----------
        round_and_told : bytes
            The round, and what the agents have been told.
        """
        with self._lock:
            if self._round.name != round_and_told:
                self._round = RoundOfPairs(round_and_told)
            yield self._round


class RoundOfPairs:
    """The masks that agents have left each other in one round.

    Parameters
    ----------
    name : bytes
        Of the round.
    """

    def __init__(self, name: bytes) -> None:
        self.name = name
        # For each agent the sum of its masks so far, and the keys that they are from.
        self._left: dict[int, tuple[Words, dict[int, bytes]]] = {}

    def take(
        self,
        number: int,
        others: Sequence[int],
        seeds: Mapping[int, bytes],
        masked: Words,
    ) -> Sequence[int]:
        """Add what others have left an agent to its words.

        Parameters
        ----------
        number : int
            The agent.
        others : sequence of int
            With whom it shares masks in the round.
        seeds : mapping from int to bytes
            That it shares with them, and with more perhaps.
        masked : ndarray of uint64
            Its words.

        Returns
        -------
        sequence of int
            Those of the others whose masks are to be added still: all, if one who has
            left something means another round than the agent does.
        """
        words, known = self._left.pop(number, (masked, {}))
        rest = [other for other in others if other not in known]
        fits = len(rest) + len(known) == len(others) and len(words) == len(masked)
        if not known or not fits or not known.items() <= seeds.items():
            return others
        masked += words
        return rest

    def leave(
        self,
        number: int,
        others: Sequence[int],
        seeds: Mapping[int, bytes],
        streams: Words,
    ) -> None:
        """Leave others their part: who has the higher number subtracts the stream.

        Parameters
        ----------
        number : int
            Who leaves it.
        others : sequence of int
            To whom, all of a higher or all of a lower number.
        seeds : mapping from int to bytes
            That it shares with them, and with more perhaps.
        streams : ndarray of uint64 of shape (len(others), n_words)
            What has been expanded with each.
        """
        left = self._left
        add = np.subtract if others[0] > number else np.add
        for other, stream in zip(others, streams, strict=True):
            if other not in left:
                left[other] = np.zeros_like(stream), {}
            words, known = left[other]
            add(words, stream, words)
            known[number] = seeds[other]
