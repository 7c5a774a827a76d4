"""One agent: what it holds, what it sends and how it takes an answer.

An agent does no I/O. `Agent.advance` takes the messages that have arrived and
returns those to send; whoever carries them (one process, a cluster, a network) need
not know what they mean. An agent goes on as soon as it has all it needs of its
neighbours, so messages may arrive in any order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _admm as admm
from ._averaging import (
    MEAN_MASK_PRODUCT,
    N_MAX,
    N_VALUES,
    VALUE_BITS,
    PrivateAverage,
)
from ._regularisation import Penalty, balancing_scale, left_penalty, right_penalty
from ._settings import AgentSettings, Report
from ._stopping import StopCount
from .exchange import (
    KEY,
    REQUEST,
    WIDEN,
    Cipher,
    DifferenceExchange,
    MaskStream,
    Message,
    public_payload,
    read_public,
    starting_bits,
)

# The penalties under mu = eta = 1, as a fraction of the data's scale, and the
# proximal weight, as a fraction of the largest sum of consensus penalties. The
# figures come from benchmarks/bench_penalties.py.
UNIT_PENALTY = 0.3
PROXIMAL_WEIGHT = 0.4
# An agent without data borrows this fraction of the network's scale.
_LEAST_SCALE = 1e-3
# The consensus penalties grow with the iterations, up to a point: weak ones let the
# components form, strong ones end the oscillation of agents that still disagree.
_GROWTH_ITERATIONS = 120
_MAX_GROWTH = 3.0
# Extrapolation of the right factor between iterations: full below this
# disagreement with the neighbours, none above three times as much.
_EXTRAPOLATION = 0.5
_EXTRAPOLATION_HALF_LIFE = 30
_EXTRAPOLATION_DISAGREEMENT = 0.01
_RIGHT_MAX_ITER = 200
_RIGHT_TOL = 1e-3


class Agent:
    """One party of the federation.

    Parameters
    ----------
    number : int
        Its node in the graph.
    name : str
        How errors call it.
    X : ndarray or sparse matrix of shape (n_i, F)
        Its samples; none for a relay.
    start : ndarray of shape (K, F)
        The common start of the left factor.
    neighbours : sequence of int
        Node numbers of its neighbours.
    neighbour_degrees : sequence of int
        Their numbers of neighbours.
    settings : AgentSettings
        Common to all agents.
    cipher : Cipher
        The agent's own.
    stream : MaskStream
        Source of its masks and dithers.
    """

    def __init__(
        self,
        number: int,
        name: str,
        X: Any,
        start: NDArray[np.float64],
        neighbours: Iterable[int],
        neighbour_degrees: Iterable[int],
        settings: AgentSettings,
        cipher: Cipher,
        stream: MaskStream,
    ) -> None:
        self.number = number
        self.name = name
        self.X = X
        self.settings = settings
        self.cipher = cipher
        self.neighbours = [int(j) for j in neighbours]
        self._place = {j: k for k, j in enumerate(self.neighbours)}
        degree = len(self.neighbours)
        # Metropolis weights of the private average.
        most = np.maximum(degree, np.array(list(neighbour_degrees), dtype=float))
        self._weights = 1.0 / (1.0 + most)
        self._publics: list[Any] = [None] * degree
        self._keys_missing = degree
        self._inbox: list[tuple[int, Message]] = []

        n_components, n_features = start.shape
        self._left_penalty = self._right_penalty = Penalty()
        # The left factor is `unit` times what goes around, which keeps the size of
        # the common start whatever size the penalties give the factors.
        self._unit = 1.0
        zero = np.zeros_like(start)
        self.left = admm.LeftState(start, start, zero, zero, zero)
        empty = np.zeros((X.shape[0], n_components), dtype=X.dtype)
        self.right = admm.RightState(empty, empty, empty)
        self._last_W = empty
        self._squared_norm = self._squared_error = admm.squared_norm(X)
        self._mu = self._eta = self._scale = 0.0
        self._spreading = 0
        self.iteration = 0
        self.n_exchanges = 0
        self.reports: list[Report] = []
        self.finished = False
        self.phase = "keys"

        shared: dict[str, Any] = {
            "n_max": settings.n_max,
            "masking": settings.masking,
            "key_size": settings.key_size,
            "name": name,
        }
        self._average_exchange = DifferenceExchange(
            cipher,
            degree,
            n_values=N_VALUES,
            value_bits=VALUE_BITS,
            streams=stream.spawn(degree),
            # One mask for both numbers: they must spread alike to stay comparable.
            **{**shared, "n_max": settings.n_max and N_MAX, "masking": "scalar"},
        )
        self._left_exchange = DifferenceExchange(
            cipher,
            degree,
            n_values=n_components * n_features,
            value_bits=starting_bits(start, settings.n_max),
            streams=stream.spawn(degree),
            **shared,
        )
        self._exchange = self._average_exchange
        self._left_count = StopCount(settings.diameter, degree)
        self._fit_count = StopCount(settings.diameter, degree)
        self._left_stopped = self._fit_stopped = False
        self._tolerance_met = 0

    # Messages ------------------------------------------------------------------

    def start(self) -> list[tuple[int, Message]]:
        """Solve the right factor for the common start and send the public key.

        Returns
        -------
        list of (int, Message)
            Receivers and messages.
        """
        self._first_solve()
        payload = public_payload(self.cipher)
        if payload is None:
            self._keys_missing = 0
            return []
        message = Message(KEY, 0, payload=payload)
        return [(j, message) for j in self.neighbours]

    def advance(self, arrived: list[tuple[int, Message]]) -> list[tuple[int, Message]]:
        """Take messages and go on as far as they allow.

        At most one BCD iteration is finished in a call; its report is then the last
        of `reports`, for the agent's operator to take.

        Parameters
        ----------
        arrived : list of (int, Message)
            Senders and messages, in any order.

        Returns
        -------
        list of (int, Message)
            Receivers and messages.

        Raises
        ------
        OverflowError
            If the left factor outgrows the plaintext of the key.
        CorruptedMessageError, WrongKeyError
            If a message is not what a neighbour must have sent.
        """
        self._inbox += arrived
        outbox: list[tuple[int, Message]] = []
        if self.phase == "keys":
            self._take_keys()
            if self.phase == "keys":
                return outbox
            self._begin_averaging(outbox)
        iteration = self.iteration
        self._take(outbox)
        while (
            not self.finished
            and self.iteration == iteration
            and self._exchange.complete
            and self._heard == len(self.neighbours)
        ):
            if self.phase == "left":
                self._end_left_round(outbox)
            else:
                self._end_averaging_round(outbox)
            self._take(outbox)
        return outbox

    def _first_solve(self) -> None:
        """Solve the right factor for the common start and prepare the averages."""
        settings = self.settings
        left = left_penalty(settings.left_alpha, settings.l1_ratio, self.X.shape[0])
        right = right_penalty(
            settings.right_alpha, settings.l1_ratio, self.left.H.shape[1]
        )
        if settings.balanced:
            # Unpenalised: at the wrong scale a penalty may leave nothing.
            self._solve_right()
            balance = balancing_scale(left, self.left.H, right, self.right.W)
            self._average = PrivateAverage(balance, settings.averaging)
        self._left_penalty, self._right_penalty = left, right
        if not settings.balanced:
            self._measure()

    def _set_unit(self, unit: float) -> None:
        """Take the agreed unit of the left factor."""
        self._unit = unit
        self._left_penalty = self._left_penalty.rescaled(unit)
        self._right_penalty = self._right_penalty.rescaled(1.0 / unit)
        self._measure()

    def _measure(self) -> None:
        """Solve the right factor and average its size."""
        self._solve_right()
        gram = admm.gram(self.right.W)
        size = float(np.trace(gram)) / len(gram) + self._left_penalty.l2
        if not math.isfinite(size):
            raise OverflowError(
                f"{self.name}: the squared right factor is not finite; rescale X"
            )
        self._size = size
        self._average = PrivateAverage(size, self.settings.averaging)

    def _take_keys(self) -> None:
        """Collect the neighbours' public keys."""
        later = []
        for sender, message in self._inbox:
            if message.kind == KEY:
                self._publics[self._place[sender]] = read_public(message.payload)
                self._keys_missing -= 1
            else:
                later.append((sender, message))
        self._inbox = later
        if not self._keys_missing:
            self.phase = "balance" if self.settings.balanced else "average"

    def _take(self, outbox: list[tuple[int, Message]]) -> None:
        """Use the messages of the present round, keep those of later ones."""
        inbox, self._inbox = self._inbox, []
        requests = []
        for sender, message in inbox:
            if message.round != self._exchange.round:
                self._inbox.append((sender, message))
            elif message.kind == REQUEST:
                requests.append((sender, message))
            else:
                again = self._exchange.accept(self._place[sender], message)
                if again is not None:
                    outbox.append((sender, again))
        # Answered together once all are in, which costs less than one by one.
        if requests and self._heard + len(requests) == len(self.neighbours):
            self._take_requests(requests, outbox)
        else:
            self._inbox += requests

    def _take_requests(
        self,
        requests: list[tuple[int, Message]],
        outbox: list[tuple[int, Message]],
    ) -> None:
        """Answer neighbours and note how far they have stopped."""
        asked = [
            (k, self._publics[k], message)
            for k, message in (
                (self._place[sender], message) for sender, message in requests
            )
            if message.payload is not None
        ]
        widened = set()
        for (k, *_), reply in zip(asked, self._exchange.answer(asked), strict=True):
            outbox.append((self.neighbours[k], reply))
            if reply.kind == WIDEN:
                widened.add(k)  # the request will come again
        for sender, message in requests:
            k = self._place[sender]
            if k not in widened:
                self._heard += 1
                self._scale = self._scale or message.scale
                self._left_count.hear(k, message.left_count)
                self._fit_count.hear(k, message.fit_count)

    def _begin_round(
        self,
        values: NDArray[np.floating],
        active: list[bool],
        outbox: list[tuple[int, Message]],
    ) -> None:
        """Send the requests of a round."""
        self._heard = 0
        counts = (self._left_count.value, self._fit_count.value)
        requests = self._exchange.begin(values, active, counts, self._scale)
        outbox += zip(self.neighbours, requests, strict=True)

    # The scale of the data -----------------------------------------------------

    def _begin_averaging(self, outbox: list[tuple[int, Message]]) -> None:
        """Start the private average, or go on without one."""
        if self.settings.penalty_scaling == "absolute":
            self._begin_left(1.0, outbox)
        elif not self.neighbours:
            if self.settings.balanced:
                self._set_unit(self._average.mean() or 1.0)
            self._begin_left(self._size or 1.0, outbox)
        else:
            self._begin_round(
                self._average.values, [True] * len(self.neighbours), outbox
            )

    def _end_averaging_round(self, outbox: list[tuple[int, Message]]) -> None:
        """Take a round of differences; then pass the leader's estimate on."""
        everyone = [True] * len(self.neighbours)
        if not self._average.done:
            self._average.update(self._exchange.weighted_sum(self._weights))
            if not self._average.done:
                self._begin_round(self._average.values, everyone, outbox)
                return
            if self.number == self.settings.leader:
                balance = self.phase == "balance"
                average = self._average.mean if balance else self._average.estimate
                self._scale = average() or 1.0
        else:
            self._spreading += 1
        if self._spreading < self.settings.leader_eccentricity:
            nobody = [False] * len(self.neighbours)
            self._begin_round(self._average.values, nobody, outbox)
        elif self.phase == "balance":
            self._set_unit(self._scale)
            self.phase = "average"
            self._scale = 0.0
            self._spreading = 0
            self._begin_round(self._average.values, everyone, outbox)
        else:
            self._begin_left(self._scale, outbox)

    def _begin_left(self, scale: float, outbox: list[tuple[int, Message]]) -> None:
        """Fix the penalties of the consensus and start the first BCD iteration."""
        self._scale = scale
        self._left_exchange.round = self._average_exchange.round
        self._exchange = self._left_exchange
        self.phase = "left"
        self._begin_iteration(outbox)

    def _set_consensus_penalty(self) -> None:
        """Fix the largest consensus penalty of this iteration, as all agents do."""
        settings = self.settings
        gamma_square = settings.g_max**2
        if settings.penalty_scaling == "data" and self.neighbours:
            gamma_square *= 2.0 * self._scale / settings.connectivity
            grown = 1.0 + self.iteration / _GROWTH_ITERATIONS
            gamma_square *= min(grown, _MAX_GROWTH) ** 2
        largest = len(self.neighbours) * gamma_square
        published = settings.update == "published"
        self._rho = largest * (MEAN_MASK_PRODUCT if published else PROXIMAL_WEIGHT)
        # The printed multiplier update lacks the factor 1/2.
        self._step = gamma_square * (1.0 if published else 0.5)

    # The left factor -----------------------------------------------------------

    def _begin_iteration(self, outbox: list[tuple[int, Message]]) -> None:
        """Form the left factor's normal equations and take the first step."""
        if not self.iteration:
            self._gram = admm.gram(self.right.W)
            self._products = admm.left_products(self.right.W, self.X)
            self._last_products = self._products
        self._B: NDArray[np.floating] = self._products
        gram = self._gram
        weight = self._extrapolation_weight()
        if weight:
            gram = admm.gram(admm.extrapolate(self.right.W, self._last_W, weight))
            self._B = admm.extrapolate(self._products, self._last_products, weight)
        A, self._B = admm.penalise(gram, self._B, self._left_penalty)
        self._last_W, self._last_products = self.right.W, self._products
        mu = self.settings.mu
        if self.settings.penalty_scaling == "data":
            size = float(np.trace(A)) / len(A)
            mu *= UNIT_PENALTY * max(size, _LEAST_SCALE * self._scale)
        self.left = self.left._replace(
            P=admm.rescale_multiplier(self.left.P, self._mu, mu)
            if self.iteration
            else self.left.P
        )
        self._mu = mu
        self._set_consensus_penalty()
        self._inverse = admm.invert(A, mu + self._rho)
        self._iteration_start = self.left.U
        self._inner = 0
        self._left_stopped = False
        self._left_count.reset()
        self._begin_left_round(outbox)

    def _extrapolation_weight(self) -> float:
        """Weight of the last step of W, less the more the neighbours disagree."""
        if self.settings.update == "published" or self.iteration < 2:
            return 0.0
        if self._disagreement > 3 * _EXTRAPOLATION_DISAGREEMENT:
            return 0.0
        fade = _EXTRAPOLATION_HALF_LIFE / (_EXTRAPOLATION_HALF_LIFE + self.iteration)
        calm = _EXTRAPOLATION_DISAGREEMENT / max(self._disagreement, 1e-300)
        return _EXTRAPOLATION * fade * min(1.0, calm)

    def _begin_left_round(self, outbox: list[tuple[int, Message]]) -> None:
        """Take a step of the left factor and send it."""
        step = (
            admm.published_left_step
            if self.settings.update == "published"
            else admm.left_step
        )
        self._last_U = self.left.U
        self.left = step(self.left, self._inverse, self._B, self._mu, self._rho)
        self.n_exchanges += bool(self.neighbours)
        everyone = [True] * len(self.neighbours)
        self._begin_round(self.left.U.ravel(), everyone, outbox)

    def _end_left_round(self, outbox: list[tuple[int, Message]]) -> None:
        """Accumulate the multiplier; stop, or take the next step."""
        S = self._step * self._exchange.weighted_sum().reshape(self.left.U.shape)
        self.left = admm.add_consensus(self.left, S)
        self._inner += 1
        self._left_stopped = self._left_stopped or self._left_converged()
        self._left_count.update(self._left_stopped)
        self._fit_count.update(self._fit_stopped)
        settings = self.settings
        if self._inner < settings.max_admm_iter and not self._left_count.all_stopped:
            self._begin_left_round(outbox)
        else:
            self._end_iteration()
            if not self.finished:
                self._begin_iteration(outbox)

    def _left_converged(self) -> bool:
        """Whether U stands still, agrees with H and with the neighbours' U."""
        tol = self.settings.tol
        # Were all agents to stop now, news of it would come too late.
        if tol == 0 or self._inner + self.settings.diameter >= (
            self.settings.max_admm_iter
        ):
            return False
        U = self.left.U
        limit = tol * np.linalg.norm(U)
        return bool(
            np.linalg.norm(U - self._last_U) <= limit
            and np.linalg.norm(U - self.left.H) <= limit
            and self._disagree() <= tol
        )

    def _disagree(self) -> float:
        """Distance to the neighbours' mean U relative to one's own."""
        if not self.neighbours:
            return 0.0
        expected = self._step * MEAN_MASK_PRODUCT * len(self.neighbours)
        norm = expected * float(np.linalg.norm(self.left.U))
        return float(np.linalg.norm(self.left.S)) / norm if norm else 0.0

    # The right factor and the end of an iteration ------------------------------

    def _solve_right(self) -> None:
        """Solve the agent's right factor for its copy of the left factor."""
        H = admm.project_left(self.left)
        gram = H @ H.T
        B = admm.right_products(self.X, H)
        A, target = admm.penalise(gram, B, self._right_penalty)
        eta = self.settings.eta
        if self.settings.penalty_scaling == "data":
            eta *= UNIT_PENALTY * float(np.trace(A)) / len(A)
        if self.X.shape[0] and eta:  # else there is nothing to solve
            R = admm.rescale_multiplier(self.right.R, self._eta or eta, eta)
            self.right = admm.right_factor(
                self.right._replace(R=R), A, target, eta, _RIGHT_MAX_ITER, _RIGHT_TOL
            )
            self._eta = eta
        self._squared_error = admm.expanded_residual(
            self._squared_norm, self.right.W, B, gram
        )

    def _end_iteration(self) -> None:
        """Solve the right factor, report, and see whether the fit is over."""
        settings = self.settings
        self._disagreement = self._disagree()
        self._solve_right()
        self.iteration += 1
        H = admm.project_left(self.left)
        W = self.right.W
        self._gram, self._products = admm.gram(W), admm.left_products(W, self.X)
        self._fit_stopped = self._fit_stopped or self._fit_converged()
        self.finished = (
            self.iteration >= settings.max_iter or self._fit_count.all_stopped
        )
        self.reports.append(
            Report(
                self.iteration,
                self.n_exchanges,
                H * self._unit,
                self._squared_error,
                self._gram / self._unit**2,
                (self._products - self._gram @ H) / self._unit,
                self._fit_stopped,
                self.finished,
            )
        )

    def _fit_converged(self) -> bool:
        """Whether two iterations in a row changed little and the neighbours agree.

        No agent stops before news from every other can have reached it.
        """
        tol = self.settings.tol
        U = self.left.U
        still = np.linalg.norm(U - self._iteration_start) <= tol * np.linalg.norm(U)
        met = tol > 0 and still and self._disagreement <= tol
        self._tolerance_met = self._tolerance_met + 1 if met else 0
        n_rounds = self.iteration * self.settings.max_admm_iter
        return self._tolerance_met >= 2 and n_rounds >= self.settings.diameter
