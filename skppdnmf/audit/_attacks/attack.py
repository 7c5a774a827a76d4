"""What all attacks of one agent on a neighbour share."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any

from .._views.transcript import AgentView, Label, Transcript
from .leakage import Estimate, Leakage, score
from .membership import settings


class NeighbourAttack(ABC):
    """An honest but curious agent that tries to find its neighbour's data.

    Subclasses see an `AgentView` in `reconstruct`, never the transcript: they cannot
    read what the attacker did not see.
    """

    target = "auto"

    def run(self, transcript: Transcript, attacker: Label, victim: Label) -> Leakage:
        """Attack, and compare the result with the truth.

        Parameters
        ----------
        transcript : Transcript
            A recorded fit.
        attacker, victim : label
            Two neighbours.

        Returns
        -------
        Leakage
            What was recovered.

        Raises
        ------
        ValueError
            If the two are not neighbours, the victim holds no samples, or the fit was
            under ``protocol="secure-sum"``.
        """
        view = attacker_view(transcript, attacker, victim)
        started = time.perf_counter()
        granted = self._granted(transcript, attacker, victim)
        estimate = self.reconstruct(view, victim, **granted)
        seconds = time.perf_counter() - started
        name = type(self).__name__
        leakage = score(name, transcript, view, victim, estimate, self.target)
        leakage.details["seconds"] = seconds
        return leakage

    def _granted(
        self, transcript: Transcript, attacker: Label, victim: Label
    ) -> dict[str, Any]:
        """Return what the auditor tells the attacker on top of its view, by name."""
        return {}

    @abstractmethod
    def reconstruct(self, view: AgentView, victim: Label) -> Estimate:
        """Estimate the victim's data from what the attacker saw.

        Parameters
        ----------
        view : AgentView
            The attacker's.
        victim : label
            Its neighbour.

        Returns
        -------
        Estimate
        """

    def __repr__(self) -> str:
        return f"{type(self).__name__}({settings(self)})"


def attacker_view(transcript: Transcript, attacker: Label, victim: Label) -> AgentView:
    """Return the attacker's view of a neighbour that has something to lose."""
    view = transcript.view(attacker)
    if view.sums:
        raise ValueError(
            f"protocol={view.public.protocol!r}: neighbours send no masked answers; "
            "PooledSimulationAttack attacks the totals"
        )
    victims = view.public.neighbours(attacker)
    if victim not in victims:
        transcript.view(victim)  # raises if there is no such agent
        raise ValueError(
            f"agent {attacker!r} is no neighbour of agent {victim!r}; "
            f"its neighbours are {victims}"
        )
    if not transcript.view(victim).X.shape[0]:
        raise ValueError(f"agent {victim!r} holds no samples to be found")
    return view
