"""How agents that know only their neighbours stop in the same round."""

from __future__ import annotations


class StopCount:
    """Counts the hops around an agent within which every agent has stopped.

    An agent that goes on counts 0; one that has stopped counts one more than the
    least count in its neighbourhood a round before. The counts travel on the messages,
    one hop a round. When the count exceeds the graph's diameter every agent has
    stopped, and all counts do so in the same round: the last agent to stop held
    everybody's count down to its distance until its news arrived.

    Parameters
    ----------
    diameter : int
        Diameter of the graph.
    n_neighbours : int
        Number of neighbours of the agent.

    Attributes
    ----------
    value : int
        The count that goes on the next messages.

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
        self.value = 0

    def reset(self) -> None:
        """Start again, as all agents do in the same round."""
        self.value = 0
        self._heard = [0] * len(self._heard)

    def hear(self, k: int, count: int) -> None:
        """Note neighbour k's count of this round."""
        self._heard[k] = count

    def update(self, stopped: bool) -> None:
        """Form the count of the next round."""
        self.value = 1 + min([self.value, *self._heard]) if stopped else 0

    @property
    def all_stopped(self) -> bool:
        """Whether every agent of the graph has stopped."""
        return self.value > self._diameter
