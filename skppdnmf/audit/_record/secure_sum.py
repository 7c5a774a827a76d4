"""Takes notes of a fit under the secure sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._agent import Envelope
from ..._protocol import Plan, Setting
from ..._secure_sum.key_graph import key_graph_of
from ..._secure_sum.messages import SUM_KIND_NAMES, SumMessage
from ..._secure_sum.settings import plan_sums
from ...exceptions import AgentLost
from .._views.sums import Sum, SumLetter
from .._views.transcript import AgentView, Label, Public, Transcript
from .recorder import Recorder, frozen


class SumRecorder(Recorder):
    """Takes notes of one fit.

    Parameters
    ----------
    dropouts : dict from label to int
        Agents that drop out after so many iterations.
    """

    def __init__(self, dropouts: Mapping[Label, int]) -> None:
        self._points: dict[int, NDArray[np.float64]] = {}
        self._dropouts = dropouts

    def begin(
        self, setting: Setting, plan: Plan, labels: Sequence[Label], parts: list[Any]
    ) -> None:
        """Take the public facts, and refuse dropouts of nobody."""
        for label in self._dropouts:
            if label not in labels:
                raise ValueError(
                    f"dropouts: no agent {label!r}; the agents are {list(labels)}"
                )
        super().begin(setting, plan, labels, parts)

    def new_notes(self, number: int) -> SumNotes:
        """Return what takes notes for an agent."""
        return SumNotes(self, self._dropouts.get(self.labels[number]))

    def point(self, step: int, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """Keep one copy of what all agents have alike."""
        known = self._points.get(step)
        if known is None or not np.array_equal(known, point):
            known = self._points[step] = frozen(point)
        return known

    def key_graph(self) -> dict[Label, tuple[Label, ...]]:
        """Return with whom each agent shares a key, as everybody can derive it."""
        setting, n_agents = self.setting, len(self.labels)
        degree, _ = plan_sums(setting.estimator, n_agents, *setting.start.shape)
        graph = key_graph_of(n_agents, degree, setting.seeds.start)
        return {
            label: tuple(self.labels[peer] for peer in peers)
            for label, peers in zip(self.labels, graph, strict=True)
        }

    def transcript(self, model: Any) -> Transcript:
        """Put everything together once the fit is over."""
        starts = frozen(self.plan.starts)
        public = Public(
            labels=self.labels,
            adjacency=frozen(self.setting.network.adjacency),
            settings=self.plan.settings,
            start=starts[0],
            scale=1.0,
            unit=1.0,
            components=frozen(model.components_),
            protocol=model.protocol,
            encryption=None,
            starts=starts,
            key_graph=self.key_graph(),
        )
        views = {
            label: AgentView(
                label=label,
                public=public,
                X=part,
                rounds=(),
                states=(),
                sent=self.sent_by(label),
                received=self.received_by(label),
                sums=tuple(notes.sums),
                public_keys={
                    self.labels[number]: key
                    for number, key in notes.public_keys.items()
                },
            )
            for label, part, notes in zip(
                self.labels, self.parts, self.notes, strict=True
            )
        }
        return Transcript(public, views, self.letters, model, False)

    @staticmethod
    def letter(
        turn: int, sender: Label, receiver: Label, envelope: Envelope
    ) -> SumLetter:
        """Describe an envelope as the link saw it."""
        message: SumMessage = envelope.body
        return SumLetter(
            turn,
            sender,
            receiver,
            SUM_KIND_NAMES[envelope.kind],
            message.epoch,
            envelope.round,
            message.words.size,
            len(message.keys),
            envelope.n_bytes,
            envelope.to_bytes(),
        )


class SumNotes:
    """What one agent sees and nobody else.

    Parameters
    ----------
    recorder : SumRecorder
        Keeps what all agents have alike.
    last_iteration : int or None
        After which the agent is to drop out.
    """

    def __init__(self, recorder: SumRecorder, last_iteration: int | None) -> None:
        self._recorder = recorder
        self._last_iteration = last_iteration
        self.sums: list[Sum] = []
        self.public_keys: dict[int, bytes] = {}
        self._point: Any = None
        self._right: Any = None

    def keys(self, keys: dict[int, bytes]) -> None:
        """Note everybody's public keys."""
        self.public_keys = dict(keys)

    def right_factors(self, point: Any, right: Any) -> None:
        """Note the right factors behind the next summand."""
        self._point, self._right = point, right

    def summand(self, step: int, epoch: int, words: Any, masked: Any) -> None:
        """Note a summand and the masks on it, unless the agent is to drop out."""
        if self._last_iteration is not None and step > self._last_iteration:
            raise AgentLost("it was to drop out here")
        point = right = None
        if step:
            point = self._recorder.point(step, self._point)
            right = frozen(self._right)
        masks = frozen(masked - words)
        self.sums.append(Sum(step, epoch, frozen(words), masks, point, right, None))

    def total(self, step: int, words: Any) -> None:
        """Note a total; after a dropout it may be one that others have learnt."""
        place = max(k for k, one in enumerate(self.sums) if one.step == step)
        one = self.sums[place]
        self.sums[place] = Sum(
            step, one.epoch, one.words, one.masks, one.point, one.right, frozen(words)
        )
