"""An agent that begins once its neighbours have the same features, in one order."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from .._agent import Address, Agent, Departure, Envelope, Step
from ..exceptions import CorruptedMessageError, FeatureMismatchError

# Beside the protocols' own kinds of message.
FEATURES = 253
_DIGEST_BYTES = 8
_COUNT = struct.Struct(">I")


def feature_digests(run: bytes, names: Sequence[Any], dtype: Any) -> bytes:
    """Return a digest of the type of the samples and of each feature's name.

    Parameters
    ----------
    run : bytes
        The run's 16 bytes: the same names have other digests in another run.
    names : sequence of str or int
        Names of the features; their numbers where they have none.
    dtype : dtype
        Of the samples.

    Returns
    -------
    bytes
        8 for the type and 8 for each feature, the number of features before them.
    """
    texts = [str(np.dtype(dtype)), *(f"{type(one).__name__}:{one}" for one in names)]
    digests = [
        hashlib.sha256(run + b"feature" + text.encode()).digest()[:_DIGEST_BYTES]
        for text in texts
    ]
    return _COUNT.pack(len(names)) + b"".join(digests)


class FeatureAgent:
    """Compares features with the neighbours before the agent that it wraps begins.

    No names are sent, only digests: who has the same name finds it, and who guesses a
    name can test the guess. Where they differ each site names the first column that
    does, as it has it itself.

    Parameters
    ----------
    agent : Agent
        What it wraps.
    names : sequence of str or int
        Names of its features.
    dtype : dtype
        Of its samples.
    address : Address
        Its place in the run, for the kind `FEATURES`.
    neighbours : collection of int
        With whom it compares.
    named : bool, default=True
        Whether errors may name the site's own features.
    """

    def __init__(
        self,
        agent: Agent,
        names: Sequence[Any],
        dtype: Any,
        address: Address,
        neighbours: Collection[int],
        named: bool = True,
    ) -> None:
        self.agent = agent
        self._names = list(names)
        self._digests = feature_digests(address.run, names, dtype)
        self._dtype = np.dtype(dtype)
        self._address = address
        self._missing = {int(one) for one in neighbours}
        self._named = named
        self._early: list[Envelope] = []
        self._begun = False

    @property
    def transcript(self) -> Any:
        """What the agent has been told."""
        return self.agent.transcript  # type: ignore[attr-defined]

    def start(self) -> Step:
        """Tell the neighbours what the features are.

        Returns
        -------
        Step
        """
        sent = [
            self._address.seal(other, FEATURES, 0, self._digests)
            for other in sorted(self._missing)
        ]
        return self._begin(sent)

    def advance(self, envelopes: list[Envelope]) -> Step:
        """Compare features; once all are the same, be the agent that it wraps.

        Parameters
        ----------
        envelopes : list of Envelope
            In any order.

        Returns
        -------
        Step

        Raises
        ------
        FeatureMismatchError
            If a neighbour's features are others; names the first that differs.
        CorruptedMessageError
            If an envelope is not what its sender must have sent.
        """
        rest = []
        for envelope in envelopes:
            if envelope.kind == FEATURES:
                self._address.admit([envelope])
                self._compare(envelope)
            else:
                rest.append(envelope)
        if self._begun:
            return self.agent.advance(rest)
        self._early += rest
        return self._begin([])

    def depart(self, departure: Departure) -> Step:
        """Take note that others have left.

        Parameters
        ----------
        departure : Departure
            Who has left.

        Returns
        -------
        Step
        """
        self._missing -= set(departure.agents)
        if not self._begun:
            # It takes part from the first on, to have begun when it hears of this.
            first = self._begin([], always=True)
            told = self.agent.depart(departure)
            return told._replace(envelopes=first.envelopes + told.envelopes)
        return self.agent.depart(departure)

    def stop(self) -> None:
        """Be asked to end the fit."""
        self.agent.stop()

    def _begin(self, sent: list[Envelope], always: bool = False) -> Step:
        """Let the agent begin, if all neighbours have answered."""
        if self._missing and not always:
            return Step(sent)
        self._begun = True
        step = self.agent.start()
        early, self._early = self._early, []
        if early:
            later = self.agent.advance(early)
            step = later._replace(envelopes=step.envelopes + later.envelopes)
        return step._replace(envelopes=sent + step.envelopes)

    def _compare(self, envelope: Envelope) -> None:
        """Refuse a neighbour with other features."""
        sender, body = envelope.sender, envelope.body
        if sender not in self._missing:
            raise self._address.refusal(sender, "features, which it has told before")
        if not isinstance(body, bytes):
            raise CorruptedMessageError("features that are no bytes", sender=sender)
        if len(body) < _COUNT.size + _DIGEST_BYTES or (
            len(body) != _COUNT.size + _DIGEST_BYTES * (1 + _COUNT.unpack_from(body)[0])
        ):
            raise self._address.refusal(sender, f"{len(body)} bytes of features")
        self._missing.discard(sender)
        if body != self._digests:
            raise FeatureMismatchError(self._difference(sender, body))

    def _difference(self, sender: int, other: bytes) -> str:
        """Say what differs first."""
        pair = f"{self._address.name} and {self._address.name_of(sender)}"
        size, start = _DIGEST_BYTES, _COUNT.size
        mine = [
            self._digests[k : k + size] for k in range(start, len(self._digests), size)
        ]
        theirs = [other[k : k + size] for k in range(start, len(other), size)]
        if mine[0] != theirs[0]:
            return f"{pair}: the samples are of another type than {self._dtype} here"
        counts = f"{len(mine) - 1} features here, {len(theirs) - 1} there"
        for column, (one, another) in enumerate(
            zip(mine[1:], theirs[1:], strict=False)
        ):
            if one != another:
                name = f", {self._names[column]!r} here," if self._named else ""
                return f"{pair}: column {column}{name} has another name there; {counts}"
        return f"{pair}: {counts}; as far as both go they are the same"
