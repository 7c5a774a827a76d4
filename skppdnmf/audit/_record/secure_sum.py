"""Records a fit under the secure sum: who saw what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._secure_sum.exchange import SecureSum
from ..._secure_sum.masks import PairwiseMasks
from ..._secure_sum.messages import SUM_KIND_NAMES, SumMessage
from .._views.sums import Sum, SumLetter
from .._views.transcript import AgentView, Label, Public, Transcript
from .recorder import RecordedAgent, Recorder, frozen


class SumRecorder(Recorder):
    """Wraps the agents of one fit and gathers what they saw."""

    def wrap(self, agents: list[Any]) -> list[Any]:
        """Return recorded agents."""
        self.starts = frozen(agents[0].path.point)
        self.settings = agents[0].path.settings
        self._points: dict[int, NDArray[np.float64]] = {}
        self.key_graph = {
            self.labels[number]: tuple(self.labels[peer] for peer in peers)
            for number, peers in enumerate(agents[0]._sum._key_graph)
        }
        return [_RecordedSumAgent(agent, self) for agent in agents]

    def point(self, step: int, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """Keep one copy of what all agents have alike."""
        known = self._points.get(step)
        if known is None or not np.array_equal(known, point):
            known = self._points[step] = frozen(point)
        return known

    def transcript(self, model: Any) -> Transcript:
        """Put everything together once the fit is over."""
        public = Public(
            labels=self.user_labels,
            adjacency=self.adjacency,
            settings=self.settings,
            start=self.starts[0],
            scale=1.0,
            unit=1.0,
            components=frozen(model.components_),
            protocol=model.protocol,
            encryption=None,
            starts=self.starts,
            key_graph={label: self.key_graph[label] for label in self.user_labels},
        )
        views = {
            label: AgentView(
                label=label,
                public=public,
                X=recorded.X,
                rounds=(),
                states=(),
                sent=tuple(recorded.sent),
                received=tuple(recorded.received),
                sums=tuple(recorded.sums),
                public_keys=dict(recorded.public_keys),
            )
            for label, recorded in zip(self.labels, self.agents, strict=True)
        }
        return Transcript(public, views, self.letters, model, False)


class _RecordedSumAgent(RecordedAgent):
    """An agent whose messages, summands and totals are noted."""

    recorder: SumRecorder

    def __init__(self, agent: Any, recorder: SumRecorder) -> None:
        super().__init__(agent, recorder)
        self.X = agent.X  # before it is rounded
        self.sums: list[Sum] = []
        self.public_keys: dict[Label, bytes] = {}
        tap = _Tap.__new__(_Tap)
        tap.__dict__.update(agent._sum.__dict__, recorded=self)
        agent._sum = tap

    def drop(self, *others: int) -> list[tuple[int, Any]]:
        """As the agent's; its messages go with those of the turn before."""
        self.turn -= 1
        return self.send(self.agent.drop(*others))

    @staticmethod
    def letter(turn: int, sender: Label, receiver: Label, message: Any) -> SumLetter:
        """Describe a message as the link saw it."""
        one: SumMessage = message
        return SumLetter(
            turn,
            sender,
            receiver,
            SUM_KIND_NAMES[one.kind],
            one.epoch,
            one.step,
            one.words.size,
            len(one.keys),
            one.n_bytes,
            one.to_bytes(),
        )

    # Called by the tapped sums ---------------------------------------------------

    def note_keys(self, keys: dict[int, bytes]) -> None:
        """Note everybody's public keys."""
        labels = self.recorder.labels
        self.public_keys = {labels[number]: key for number, key in keys.items()}

    def note_summand(self, step: int, epoch: int, words: Any, masked: Any) -> None:
        """Note a summand and the masks on it."""
        point = right = None
        if step:
            point = self.recorder.point(step, self.agent.path.point)
            right = frozen(self.agent._extrapolated)
        self.sums.append(
            Sum(step, epoch, frozen(words), frozen(masked - words), point, right, None)
        )

    def note_total(self, step: int, words: Any) -> None:
        """Note a total; after a dropout it may be one that others have learnt."""
        place = max(k for k, one in enumerate(self.sums) if one.step == step)
        one = self.sums[place]
        self.sums[place] = Sum(
            step, one.epoch, one.words, one.masks, one.point, one.right, frozen(words)
        )


class _Tap(SecureSum):
    """Sums, and notes the words before masking and in total."""

    recorded: _RecordedSumAgent

    def _begin_sum(self) -> None:
        """Mask, and note the summand."""
        masks: Any = self._masks
        self._masks = _NotedMasks(masks, self._note)  # type: ignore[assignment]
        try:
            super()._begin_sum()
        finally:
            self._masks = masks

    def _note(self, words: Any, masked: Any) -> None:
        """Note a summand before anything is added to it."""
        step, epoch = self._learnt + 1, self._epoch
        self.recorded.note_summand(step, epoch, words, masked)

    def _agree(self, keys: dict[int, bytes]) -> None:
        """Agree on seeds, and note the public keys."""
        self.recorded.note_keys(keys)
        super()._agree(keys)

    def _learn(self, words: Any) -> None:
        """Learn a total, and note it."""
        super()._learn(words)
        self.recorded.note_total(self._learnt, words)


class _NotedMasks:
    """Masks a summand and shows the result."""

    def __init__(self, masks: PairwiseMasks, note: Callable[[Any, Any], None]) -> None:
        self._masks = masks
        self._note = note

    def mask(self, words: Any, *given: Any) -> Any:
        """As `PairwiseMasks.mask`."""
        result = self._masks.mask(words, *given)
        self._note(words, result)
        return result
