"""How agents that know only their neighbours stop in the same round."""

from __future__ import annotations

# Added to a count by who knows that the fit is to end; counts stay far below.
_ASKED = 1 << 15


class StopCount:
    """Counts the hops around an agent within which every agent has stopped.

    An agent that goes on counts 0; one that has stopped counts one more than the
    least count in its neighbourhood a round before. The counts travel on the messages,
    one hop a round. When the count exceeds the graph's diameter every agent has
    stopped, and all counts do so in the same round: the last agent to stop held
    everybody's count down to its distance until its news arrived.

    One agent that is asked to stop is enough: word of it travels along with the counts,
    and who hears it has stopped as well.

    Parameters
    ----------
    diameter : int
        Diameter of the graph.
    n_neighbours : int
        Number of neighbours of the agent.

    Examples
    --------
    >>> from skppdnmf._consensus.stopping import StopCount
    >>> left, right = StopCount(1, 1), StopCount(1, 1)
    >>> for _ in range(2):
    ...     left.hear(0, right.value)
    ...     right.hear(0, left.value)
    ...     left.update(True), right.update(True)
    (None, None)
    (None, None)
    >>> left.all_stopped, right.all_stopped
    (True, True)
    """

    def __init__(self, diameter: int, n_neighbours: int) -> None:
        self._diameter = diameter
        self._heard = [0] * n_neighbours
        self._count = 0
        self._asked = False

    @property
    def value(self) -> int:
        """What goes on the next messages: the count, and whether to end the fit."""
        return self._count + _ASKED * self._asked

    def reset(self) -> None:
        """Start again, as all agents do in the same round."""
        self._count = 0
        self._heard = [0] * len(self._heard)

    def ask(self) -> None:
        """Ask all agents to stop."""
        self._asked = True

    def hear(self, k: int, value: int) -> None:
        """Note what neighbour k's message of this round says."""
        if value >= _ASKED:
            self._asked = True
            value -= _ASKED
        self._heard[k] = value

    def update(self, stopped: bool) -> None:
        """Form the count of the next round; beyond the diameter it says no more."""
        count = 1 + min([self._count, *self._heard])
        stopped = stopped or self._asked
        self._count = min(count, self._diameter + 1) if stopped else 0

    @property
    def all_stopped(self) -> bool:
        """Whether every agent of the graph has stopped."""
        return self._count > self._diameter
