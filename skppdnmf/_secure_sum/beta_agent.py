"""One agent of the secure sum under a beta divergence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._agent import Departure, Envelope, Report, Step
from .._data.weights import WeightedSamples
from .._nmf.beta import BetaSamples
from .._protocol import call
from .._sealing.transcript import Transcript
from ..exceptions import DropoutError
from .beta_path import BetaPath
from .beta_totals import BetaTotals, beta_setup_words
from .correspondence import Correspondence, Learnt
from .exchange import SecureSum, Total
from .points import SummedPoints

Array = NDArray[np.float64]

# Multiplicative updates of the right factors, at first and then in each exchange.
_FIRST_STEPS = 5
_STEPS = 2


class BetaAgent:
    """One party of the federation, which sums expected counts.

    Parameters
    ----------
    number : int
        Its node in the graph.
    names : sequence of str
        What errors call the agents.
    X : ndarray, sparse matrix or WeightedSamples of shape (n_i, F)
        Its samples; none for a relay.
    path : BetaPath
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
        path: BetaPath,
        secure_sum: SecureSum,
        correspondents: Sequence[int],
        run: bytes,
        compute: Callable[..., Any] = call,
        notes: Any = None,
    ) -> None:
        self.number = number
        self.name = names[number]
        self.path = path
        given = isinstance(X, WeightedSamples)
        weights = X.weights if given else np.ones(X.shape[0])
        settings = path.settings
        self._samples = BetaSamples.of(
            X.X if given else X, settings.beta, settings.missing
        )
        self._weights: Array = weights
        self._bounds = self._samples.size_bounds() * weights
        self._compute = compute
        self._notes = notes
        self._post = Correspondence(number, names, secure_sum, correspondents, run)
        self._sum = secure_sum
        self._points = SummedPoints(self.name)
        self._W = [self._samples.first_right_factor(H) for H in path.point]
        self._divergences = np.zeros(len(path.point))
        self._divergence = 0.0

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
        """Samples of all agents; 0 before the first total."""
        return self.path.n_samples

    def start(self) -> Step:
        """Begin; the first envelopes carry public keys."""
        return self._post.start(self._setup())

    def advance(self, envelopes: list[Envelope]) -> Step:
        """Take envelopes and go on as far as they allow, one iteration at most."""
        return self._post.advance(envelopes, self._learn, self._another_summand)

    def depart(self, departure: Departure) -> Step:
        """Take note that others have left: the present sum is void."""
        return self._post.depart(departure, self._learn, self._another_summand)

    def stop(self) -> None:
        """Be asked to end the fit: the next total is everybody's last."""
        self._sum.stop()

    def _setup(self) -> NDArray[np.uint64]:
        """Return the summand of the first sum."""
        weighted = self.path.settings.weighted
        return beta_setup_words(
            self._bounds,
            self._samples.null_divergences() * self._weights,
            self._weights if weighted else None,
        )

    def _another_summand(self) -> NDArray[np.uint64]:
        """Return a summand for a sum that was given up, but not the same again."""
        if self.path.iteration < 0:
            if self._sum.exposed:
                names = self._post.address.name_of
                who = ", ".join(map(names, sorted(self._sum.lost)))
                raise DropoutError(
                    f"{who} dropped out in the first sum and one of them may know its "
                    "total: summed anew without them, the bound and the number of the "
                    "samples would show it those of the others that were lost"
                )
            return self._setup()
        self._move_on()
        return self._summand(_STEPS if self.path.iteration else _FIRST_STEPS)

    def _move_on(self) -> None:
        """Go to a point at which nothing has been summed."""
        self.path = self._compute(BetaPath.move_on, self.path, self._post.n_departures)

    def _learn(self, total: Total) -> Learnt:
        """Take a total; return the next summand, and a report on the iteration."""
        if total.step == 0:
            self.path = self._compute(BetaPath.set_up, self.path, total.words)
            if self._sum.fresh:
                self._move_on()
            return Learnt(self._summand(_FIRST_STEPS))
        path = self.path = self._compute(
            BetaPath.take, self.path, total.words, total.fresh
        )
        if path.improved:
            self._divergence = float(self._divergences[path.leader])
        report = Report(
            iteration=total.step,
            n_exchanges=max(0, self._sum.n_rounds - 1),
            H=path.H,
            squared_error=self._divergence,
            stopped=path.converged,
            final=path.finished or total.last,
            shared_error=path.relative_error,
        )
        if report.final:  # no iterate of the right factor is left behind
            self._W = []
            return Learnt(None, report)
        self._W = [self._W[k] for k in path.kept]
        if self._sum.fresh:
            self._move_on()
        return Learnt(self._summand(_STEPS), report)

    def _summand(self, steps: int) -> NDArray[np.uint64]:
        """Improve the right factors and return what the left factor needs of them."""
        path, penalty = self.path, self.path.right
        self._points.add(self._sum.next_step, path.point)
        samples, weights = self._samples, self._weights
        above, below, objectives = [], [], []
        with_below = path.numbers.with_below
        self._divergences = np.zeros(path.n_starts)
        # Missing entries count as zeros at first, so that a feature that nobody has
        # observed gets zeros, for ever.
        filled = path.iteration > 0
        for start, H in enumerate(path.point):
            W, one, other, divergences = samples.improve(
                self._W[start], H, weights, steps, *penalty, with_below, filled
            )
            self._W[start] = W
            above.append(one)
            if other is not None:
                below.append(other)
            self._divergences[start] = divergences @ weights
            objectives.append(self._divergences[start])
            if any(penalty):
                cost = penalty.l1 * W + penalty.l2 / 2 * W * W
                objectives[-1] += cost.sum(axis=1) @ weights
        if self._notes is not None:
            self._notes.right_factors(path.point, np.array([W.T for W in self._W]))
        totals = BetaTotals(np.array(above), np.array(below), np.array(objectives))
        return path.numbers.encode(totals, float(self._bounds.sum()))
