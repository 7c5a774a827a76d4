"""What recording a fit takes under either protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._agent import Envelope
from ..._protocol import Plan, Setting
from .._views.transcript import Label, Transcript


class Recorder(ABC):
    """Takes notes of one fit: handed to the agents when they are built."""

    def begin(
        self, setting: Setting, plan: Plan, labels: Sequence[Label], parts: list[Any]
    ) -> None:
        """Take the public facts, and what the agents hold, before they are built."""
        if len(parts) < 2:
            raise ValueError("an audit needs at least two agents, got one")
        self.setting = setting
        self.plan = plan
        self.labels = tuple(labels)
        self.parts = parts
        self.letters: list[Any] = []
        self.notes = [self.new_notes(number) for number in range(len(parts))]

    def of(self, number: int) -> Any:
        """Return what takes notes for one agent."""
        return self.notes[number]

    def sent(self, turn: int, envelope: Envelope) -> None:
        """Note an envelope as the link saw it."""
        sender, receiver = self.labels[envelope.sender], self.labels[envelope.receiver]
        self.letters.append(self.letter(turn, sender, receiver, envelope))

    def sent_by(self, label: Label) -> tuple[Any, ...]:
        """Return the letters from one agent."""
        return tuple(letter for letter in self.letters if letter.sender == label)

    def received_by(self, label: Label) -> tuple[Any, ...]:
        """Return the letters to one agent."""
        return tuple(letter for letter in self.letters if letter.receiver == label)

    @abstractmethod
    def new_notes(self, number: int) -> Any:
        """Return what takes notes for an agent."""

    @abstractmethod
    def transcript(self, model: Any) -> Transcript:
        """Put everything together once the fit is over."""

    @staticmethod
    @abstractmethod
    def letter(turn: int, sender: Label, receiver: Label, envelope: Envelope) -> Any:
        """Describe an envelope as the link saw it."""


def frozen(array: Any, dtype: Any = None) -> NDArray:
    """Copy numbers that no one changes afterwards."""
    result = np.array(array, dtype=dtype)
    result.flags.writeable = False
    return result
