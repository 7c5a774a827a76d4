"""Records a fit: who saw what."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..._consensus.agent import Agent
from ..._consensus.ciphers import Cipher, PaillierCipher, SimulatedCipher
from ..._consensus.messages import KIND_NAMES, REPLY, Message
from ..._estimator import PrivateDistributedNMF
from ..._paillier.payload import Payload
from ...exceptions import PrivacyWarning
from .._views.transcript import (
    AgentView,
    Label,
    Letter,
    Public,
    Round,
    State,
    Transcript,
)
from .recorder import RecordedAgent, Recorder, frozen
from .secure_sum import SumRecorder

Letters = list[tuple[int, Message]]


def record(
    estimator: PrivateDistributedNMF, X: Any, agents: Any = None, *, dither: bool = True
) -> Transcript:
    """Fit an estimator and note what every agent and every link saw.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        Is cloned, not changed. The agents of the clone run one after the other,
        which does not change the result.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or list
        Data, as for `PrivateDistributedNMF.fit`.
    agents : array-like of shape (n_samples,) or None, default=None
        Label of the agent that holds each sample.
    dither : bool, default=True
        False leaves the dither out of the answers, as the paper prints the protocol.
        For studying what the dither is good for; an estimator always adds it. Has no
        meaning under ``protocol="secure-sum"``.

    Returns
    -------
    Transcript
        What everybody saw. Under ``encryption="simulated"`` it holds the same
        numbers as under ``"paillier"``, but no bytes on the links. Under
        ``protocol="secure-sum"`` each view has its `sums`.

    Raises
    ------
    TypeError
        If `estimator` is no `PrivateDistributedNMF`.
    ValueError
        If `encryption` is None under the consensus, which hides nothing that could be
        audited, or there is one agent only; and as in `PrivateDistributedNMF.fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.audit import record
    >>> X = np.random.default_rng(0).exponential(size=(12, 6))
    >>> model = PrivateDistributedNMF(
    ...     2, partition=3, encryption="simulated", max_iter=2, tol=0, random_state=0
    ... )
    >>> record(model, X)
    Transcript(3 agents, ... exchanges, ... messages, encryption='simulated',
    masking='entrywise', dither=True)
    """
    check_estimator(estimator)
    model = clone(estimator).set_params(n_jobs=1)
    recorder: Recorder = _RECORDERS[model.protocol](dither)
    model._recorder = recorder
    try:
        with warnings.catch_warnings():
            # The audit says more than they do.
            warnings.simplefilter("ignore", PrivacyWarning)
            model.fit(X, agents=agents)
    finally:
        del model._recorder
    return recorder.transcript(model)


def check_estimator(estimator: Any) -> None:
    """Refuse what cannot be recorded."""
    if not isinstance(estimator, PrivateDistributedNMF):
        raise TypeError(
            f"expected a PrivateDistributedNMF, got a {type(estimator).__name__}"
        )
    if estimator.protocol == "consensus" and estimator.encryption is None:
        raise ValueError(
            "encryption=None: neighbours read each other's left factors, there is "
            'nothing to audit; use encryption="simulated" or "paillier"'
        )


class _Recorder(Recorder):
    """Wraps the agents of the consensus."""

    def __init__(self, dither: bool) -> None:
        super().__init__()
        self.dither = dither

    def wrap(self, agents: list[Agent]) -> list[Any]:
        """Return recorded agents."""
        self.start = frozen(agents[0].factors.left.U)
        return [_RecordedAgent(agent, self) for agent in agents]

    def transcript(self, model: PrivateDistributedNMF) -> Transcript:
        """Put everything together once the fit is over."""
        one = self.agents[0].agent
        public = Public(
            labels=self.user_labels,
            adjacency=self.adjacency,
            settings=replace(one.settings, leader=int(self.order[one.settings.leader])),
            start=self.start,
            scale=one.factors.scale,
            unit=one.factors.unit,
            components=frozen(model.components_),
            protocol=model.protocol,
            encryption=model.encryption,
        )
        views = {
            label: AgentView(
                label=label,
                public=public,
                X=recorded.agent.factors.X,
                rounds=tuple(recorded.rounds.values()),
                states=tuple(recorded.states),
                sent=tuple(recorded.sent),
                received=tuple(recorded.received),
            )
            for label, recorded in zip(self.labels, self.agents, strict=True)
        }
        return Transcript(public, views, self.letters, model, self.dither)


class _RecordedAgent(RecordedAgent):
    """An agent whose messages, masks and decrypted answers are noted."""

    recorder: _Recorder

    def __init__(self, agent: Agent, recorder: _Recorder) -> None:
        super().__init__(agent, recorder)
        self.rounds: dict[int, Round] = {}
        self.states: list[State] = []
        self._arrived: dict[int, tuple[int, Message]] = {}
        self._answered: dict[int, tuple[Any, Any]] = {}
        tap = _tapped(agent.cipher, self)
        agent.cipher = tap
        agent._average_exchange.cipher = agent._left_exchange.cipher = tap

    def note_arrival(self, sender: int, message: Message) -> None:
        """Note whose answer this is until it is decrypted."""
        if message.kind == REPLY:
            self._arrived[id(message.payload)] = (sender, message)

    def go_on(self, arrived: Letters) -> Letters:
        """Let the agent take its messages, and note the end of an iteration."""
        factors = self.agent.factors
        iteration = factors.iteration
        outbox = self.agent.advance(arrived)
        if factors.iteration > iteration:
            self._note_state()
        return outbox

    def note_departure(self, receiver: Label, message: Message) -> None:
        """Note the masks of an answer."""
        if message.kind == REPLY:
            masks, dither = self._answered.pop(id(message.payload))
            one = self.rounds[message.round]
            one.masks[receiver] = frozen(np.atleast_1d(masks), np.int32)
            one.dithers[receiver] = frozen(dither, np.int32)

    def _note_state(self) -> None:
        """Note the factors after an iteration."""
        factors = self.agent.factors
        # H from the report: the next iteration has begun to change the agent's.
        H = self.agent.reports[-1].H
        W = factors.right.W / factors.unit
        self.states.append(State(factors.iteration, frozen(H), frozen(W)))

    @staticmethod
    def letter(turn: int, sender: Label, receiver: Label, message: Message) -> Letter:
        """Describe a message as the link saw it."""
        payload = message.payload
        # Bare numbers stand for ciphertexts: nobody would see them.
        real = payload is None or isinstance(payload.data, bytes)
        return Letter(
            turn,
            sender,
            receiver,
            KIND_NAMES[message.kind],
            message.round,
            message.value_bits,
            message.left_count,
            message.fit_count,
            message.scale,
            message.n_ciphertexts,
            message.n_bytes,
            message.to_bytes() if real else None,
        )

    # Called by the tapped cipher ------------------------------------------------

    def note_values(self, values: Any) -> None:
        """Note the integers of a request."""
        exchange = self.agent._exchange
        number = exchange.round
        if number not in self.rounds:  # else the same again in wider slots
            n_max = float(exchange.n_max or 1.0)
            self.rounds[number] = Round(
                number,
                self.agent.phase,
                self.agent.factors.iteration,
                n_max,
                frozen(values),
            )

    def note_reply(self, payload: Payload, masks: Any, dither: Any) -> None:
        """Note the secrets of an answer until it is sent."""
        self._answered[id(payload)] = (masks, dither)

    def note_answer(self, payload: Payload, integers: Any) -> None:
        """Note what a neighbour's answer holds."""
        sender, message = self._arrived.pop(id(payload))
        label = self.recorder.labels[sender]
        self.rounds[message.round].answers[label] = frozen(integers)


class _Tap:
    """Part of a cipher that notes the numbers before and after it."""

    _agent: _RecordedAgent

    def request(self, values: Any, layout: Any) -> Payload:
        """Encrypt, and note the values."""
        self._agent.note_values(values)
        return super().request(values, layout)  # type: ignore[misc]

    def reply(
        self,
        public: Any,
        request: Payload,
        values: Any,
        masks: Any,
        dither: Any,
        layout: Any,
    ) -> Payload:
        """Answer, and note masks and dither."""
        if not self._agent.recorder.dither:
            dither = np.zeros_like(dither)
        payload = super().reply(  # type: ignore[misc]
            public, request, values, masks, dither, layout
        )
        self._agent.note_reply(payload, masks, dither)
        return payload

    def open(self, reply: Payload, layout: Any) -> NDArray:
        """Decrypt, and note the answer."""
        integers = super().open(reply, layout)  # type: ignore[misc]
        self._agent.note_answer(reply, integers)
        return integers


class _PaillierTap(_Tap, PaillierCipher):
    """Notes what an agent encrypts and decrypts."""


class _SimulatedTap(_Tap, SimulatedCipher):
    """Notes what an agent would encrypt and decrypt."""

    def reply_drawn(
        self, request: Any, values: Any, masks: Any, dithers: Any, layout: Any
    ) -> Payload:
        """Answer a neighbour, and note masks and dither."""
        if not self._agent.recorder.dither:
            dithers = np.zeros_like(dithers)
        payload = super().reply_drawn(request, values, masks, dithers, layout)
        self._agent.note_reply(payload, masks, dithers)
        return payload

    def reply_many(
        self, requests: Any, values: Any, masks: Any, dithers: Any, layouts: Any
    ) -> list[Payload]:
        """Answer several neighbours one by one, and note masks and dithers."""
        rows = zip(requests, masks, dithers, layouts, strict=True)
        return [self.reply_drawn(row[0], values, *row[1:]) for row in rows]


def _tapped(cipher: Cipher, agent: _RecordedAgent) -> Any:
    """Return the same cipher, recorded."""
    kind = _PaillierTap if isinstance(cipher, PaillierCipher) else _SimulatedTap
    tap = kind.__new__(kind)
    tap.__dict__.update(cipher.__dict__, _agent=agent)
    return tap


_RECORDERS: dict[str, Any] = {
    "consensus": _Recorder,
    "secure-sum": lambda dither: SumRecorder(),
}
