"""One agent of the secure sum under differential privacy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._agent import Departure, Envelope, Report, Step
from .._protocol import call
from .._sealing.transcript import Transcript
from ..exceptions import DropoutError
from .correspondence import Correspondence, Learnt
from .exchange import SecureSum, Total
from .noisy_path import NoisyPath
from .noisy_totals import Samples
from .privacy import privacy_account


class NoisyAgent:
    """One party of the federation that adds noise to what it sums.

    Parameters
    ----------
    number : int
        Its node in the graph.
    names : sequence of str
        What errors call the agents.
    X : ndarray or sparse matrix of shape (n_i, F)
        Its samples; none for a relay, which adds noise all the same.
    path : NoisyPath
        Where all agents start.
    secure_sum : SecureSum
        Its side of the sums.
    correspondents : collection of int
        From whom envelopes may come.
    run : bytes
        16 bytes that name the run.
    compute : callable, default=call
        As in `skppdnmf._protocol.Hooks`: what all agents compute alike goes through it.
    notes : object or None, default=None
        Of an audit, which is told of the right factors behind each summand.
    """

    def __init__(
        self,
        number: int,
        names: Sequence[str],
        X: Any,
        path: NoisyPath,
        secure_sum: SecureSum,
        correspondents: Sequence[int],
        run: bytes,
        compute: Callable[..., Any] = call,
        notes: Any = None,
    ) -> None:
        self.number = number
        self.name = names[number]
        self.path = path
        self._samples = Samples.clipped(X, path.settings.clip)
        self._compute = compute
        self._notes = notes
        self._post = Correspondence(number, names, secure_sum, correspondents, run)
        self._sum = secure_sum
        self._W = np.zeros((len(path.H), self._samples.n_samples))

    @property
    def transcript(self) -> Transcript:
        """What the agent has been told."""
        return self._sum.transcript

    @property
    def finished(self) -> bool:
        """Whether the fit is over."""
        return self._post.finished

    @property
    def n_samples(self) -> float:
        """Samples of all agents, with noise; 0 where they are not counted."""
        by_sample = self.path.settings.unit == "sample"
        return self.path.n_units if by_sample else 0.0

    def start(self) -> Step:
        """Begin; the first envelopes carry public keys."""
        words = self.path.numbers.count_words(self._samples.n_samples)
        return self._post.start(words)

    def advance(self, envelopes: list[Envelope]) -> Step:
        """Take envelopes and go on as far as they allow, one iteration at most."""
        return self._post.advance(envelopes, self._learn, self._another_summand)

    def depart(self, departure: Departure) -> Step:
        """Take note that others have left: the present sum is void."""
        return self._post.depart(departure, self._learn, self._another_summand)

    def stop(self) -> None:
        """Be asked to end the fit: the next total is everybody's last."""
        self._sum.stop()

    def _another_summand(self) -> NDArray[np.uint64]:
        """Refuse to sum again: who was lost may have learnt the total given up."""
        who = ", ".join(map(self._post.address.name_of, sorted(self._sum.lost)))
        raise DropoutError(
            f"{who} dropped out, and a sum that was given up would cost more privacy "
            f"than epsilon={self.path.settings.epsilon:g} if it was formed anew; fit "
            "again with what is left of your budget"
        )

    def _learn(self, total: Total) -> Learnt:
        """Take a total; return the next summand, and a report on the iteration."""
        report = None
        if total.step == 0:
            self.path = self._compute(NoisyPath.set_up, self.path, total.words)
        else:
            path = self.path = self._compute(NoisyPath.take, self.path, total.words)
            # How well an agent's samples are explained is between it and them.
            report = Report(
                iteration=path.iteration,
                n_exchanges=max(0, self._sum.n_rounds - 1),
                H=path.H,
                squared_error=math.nan,
                stopped=path.finished,
                privacy=privacy_account(path.numbers, path.n_units, path.iteration),
                final=path.finished or total.last,
            )
            if report.final:
                self._W = self._W[:, :0]
                return Learnt(None, report)
        path = self.path
        start = self._W / path.divisors[:, None]
        self._W = self._samples.right_factors(path.H, start)
        if self._notes is not None:
            self._notes.right_factors(path.H[None], self._W[None])
        return Learnt(path.numbers.encode(self._samples, self._W), report)
