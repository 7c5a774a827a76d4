"""Who takes part in a run, and who has left, in one order for all."""

from __future__ import annotations

from collections.abc import Iterable

from .._agent import Departure


class Membership:
    """The roster of a run, less those that have left.

    Parameters
    ----------
    n_agents : int
        Size of the roster.

    Attributes
    ----------
    present : list of int
        Who takes part, in the order of the roster.
    departures : list of Departure
        Who has left, in the order in which all others are told.

    Examples
    --------
    >>> from skppdnmf._federation.membership import Membership
    >>> membership = Membership(4)
    >>> membership.leave([3, 1])
    Departure(number=1, agents=(1, 3))
    >>> membership.present, membership.gone
    ([0, 2], [1, 3])
    """

    def __init__(self, n_agents: int) -> None:
        self.n_agents = n_agents
        self.present = list(range(n_agents))
        self.departures: list[Departure] = []

    @property
    def gone(self) -> list[int]:
        """Who has left."""
        return sorted(set(range(self.n_agents)) - set(self.present))

    def leave(self, agents: Iterable[int]) -> Departure:
        """Take agents off the roster that have left at the same time.

        Parameters
        ----------
        agents : iterable of int
            Who takes part no longer.

        Returns
        -------
        Departure
            To be told to all that are left.

        Raises
        ------
        ValueError
            If one of them does not take part.
        """
        leaving = sorted(set(agents))
        unknown = [agent for agent in leaving if agent not in self.present]
        if unknown or not leaving:
            raise ValueError(f"agents {unknown} do not take part in the run")
        self.present = [agent for agent in self.present if agent not in leaving]
        departure = Departure(len(self.departures) + 1, tuple(leaving))
        self.departures.append(departure)
        return departure
