"""What recording a fit takes under either protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._data.graph import Network
from .._views.transcript import Label, Transcript


class Recorder(ABC):
    """Wraps the agents of one fit and gathers what they saw."""

    def __init__(self) -> None:
        self.agents: list[Any] = []
        self.letters: list[Any] = []

    def attach(
        self,
        agents: list[Any],
        network: Network,
        labels: Sequence[Label],
        order: NDArray[np.intp],
    ) -> list[Any]:
        """Return agents that behave alike and are recorded."""
        if len(agents) < 2:
            raise ValueError("an audit needs at least two agents, got one")
        # Views number the agents as the user does: the order in which they run
        # follows from their data.
        self.order = order
        self.user_labels = tuple(labels)
        self.labels = tuple(labels[k] for k in order)
        place = np.argsort(order)
        self.adjacency = frozen(np.asarray(network.adjacency)[np.ix_(place, place)])
        self.agents = self.wrap(agents)
        return self.agents

    @abstractmethod
    def wrap(self, agents: list[Any]) -> list[Any]:
        """Return recorded agents."""

    @abstractmethod
    def transcript(self, model: Any) -> Transcript:
        """Put everything together once the fit is over."""


class RecordedAgent(ABC):
    """An agent whose messages are noted."""

    def __init__(self, agent: Any, recorder: Recorder) -> None:
        self.agent = agent
        self.recorder = recorder
        self.label = recorder.labels[agent.number]
        self.sent: list[Any] = []
        self.received: list[Any] = []
        self.turn = -1

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.agent.name

    @property
    def finished(self) -> bool:
        """Whether the agent has finished."""
        return self.agent.finished

    @property
    def squared_norm(self) -> float:
        """The agent's ``||X_i||^2``."""
        return self.agent.squared_norm

    @property
    def reports(self) -> list[Any]:
        """The agent's reports that nobody has taken yet."""
        return self.agent.reports

    @reports.setter
    def reports(self, reports: list[Any]) -> None:
        self.agent.reports = reports

    def start(self) -> list[tuple[int, Any]]:
        """As the agent's."""
        return self.send(self.agent.start())

    def advance(self, arrived: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
        """As the agent's."""
        for sender, message in arrived:
            other = self.recorder.labels[sender]
            # The turn in which the neighbour sent it.
            self.received.append(self.letter(self.turn, other, self.label, message))
            self.note_arrival(sender, message)
        return self.send(self.go_on(arrived))

    def send(self, outbox: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
        """Note what goes out."""
        self.turn += 1
        for receiver, message in outbox:
            other = self.recorder.labels[receiver]
            letter = self.letter(self.turn, self.label, other, message)
            self.sent.append(letter)
            self.recorder.letters.append(letter)
            self.note_departure(other, message)
        return outbox

    def go_on(self, arrived: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
        """Let the agent take its messages."""
        return self.agent.advance(arrived)

    def note_arrival(self, sender: int, message: Any) -> None:
        """Note more of a message than the link saw."""
        return

    def note_departure(self, receiver: Label, message: Any) -> None:
        """Note more of a message than the link saw."""
        return

    @staticmethod
    @abstractmethod
    def letter(turn: int, sender: Label, receiver: Label, message: Any) -> Any:
        """Describe a message as the link saw it."""


def frozen(array: Any, dtype: Any = None) -> NDArray:
    """Copy numbers that no one changes afterwards."""
    result = np.array(array, dtype=dtype)
    result.flags.writeable = False
    return result
