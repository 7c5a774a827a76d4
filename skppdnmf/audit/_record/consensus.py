"""Takes notes of a fit under the consensus."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._agent import Envelope
from ..._consensus.balance import Pull
from ..._consensus.messages import KIND_NAMES, Message
from .._views.transcript import (
    AgentView,
    Label,
    Letter,
    Public,
    Round,
    State,
    Transcript,
)
from .recorder import Recorder, frozen


class ConsensusRecorder(Recorder):
    """Takes notes of one fit.

    Parameters
    ----------
    dither : bool
        False leaves the dither out of the answers.
    """

    def __init__(self, dither: bool) -> None:
        self.dither = dither

    def new_notes(self, number: int) -> ConsensusNotes:
        """Return what takes notes for an agent."""
        return ConsensusNotes(self.labels, self.dither)

    def transcript(self, model: Any) -> Transcript:
        """Put everything together once the fit is over."""
        one = self.notes[0]
        public = Public(
            labels=self.labels,
            adjacency=frozen(self.setting.network.adjacency),
            settings=self.plan.settings,
            start=frozen(self.setting.start),
            scale=one.scale,
            unit=one.unit,
            components=frozen(model.components_),
            protocol=model.protocol,
            encryption=model.encryption,
        )
        views = {
            label: AgentView(
                label=label,
                public=public,
                X=part,
                rounds=tuple(notes.rounds.values()),
                states=tuple(notes.states),
                sent=self.sent_by(label),
                received=self.received_by(label),
            )
            for label, part, notes in zip(
                self.labels, self.parts, self.notes, strict=True
            )
        }
        return Transcript(public, views, self.letters, model, self.dither)

    @staticmethod
    def letter(turn: int, sender: Label, receiver: Label, envelope: Envelope) -> Letter:
        """Describe an envelope as the link saw it."""
        message: Message = envelope.body
        payload = message.payload
        # Bare numbers stand for ciphertexts: nobody would see them.
        real = payload is None or isinstance(payload.data, bytes)
        return Letter(
            turn,
            sender,
            receiver,
            KIND_NAMES[envelope.kind],
            envelope.round,
            message.value_bits,
            message.left_count,
            message.fit_count,
            message.scale,
            message.disagreement,
            message.movement,
            envelope.n_ciphertexts,
            envelope.n_bytes,
            envelope.to_bytes() if real else None,
        )


class ConsensusNotes:
    """What one agent sees and nobody else.

    Parameters
    ----------
    labels : tuple
        Of the agents.
    dithered : bool
        Whether it adds dithers to its answers.
    """

    def __init__(self, labels: tuple[Label, ...], dithered: bool) -> None:
        self._labels = labels
        self.dithered = dithered
        self.scale = self.unit = 1.0
        self.rounds: dict[int, Round] = {}
        self.states: list[State] = []

    def agreed(self, scale: float, unit: float) -> None:
        """Note what the agents have agreed on before the first iteration."""
        self.scale, self.unit = scale, unit

    def round(
        self,
        number: int,
        phase: str,
        iteration: int,
        n_max: Any,
        values: Any,
        pull: Pull,
    ) -> None:
        """Note the agent's own numbers in a round."""
        self.rounds[number] = Round(
            number, phase, iteration, n_max, frozen(values), pull
        )

    def secrets(self, receiver: int, number: int, masks: Any, dithers: Any) -> None:
        """Note the secrets in an answer."""
        one, label = self.rounds[number], self._labels[receiver]
        one.masks[label] = frozen(np.atleast_1d(masks), np.int32)
        one.dithers[label] = frozen(dithers, np.int32)

    def answer(self, sender: int, number: int, integers: Any) -> None:
        """Note what a neighbour's answer holds."""
        self.rounds[number].answers[self._labels[sender]] = frozen(integers)

    def state(self, iteration: int, H: Any, W: Any) -> None:
        """Note the factors after an iteration."""
        self.states.append(State(iteration, frozen(H), frozen(W)))
