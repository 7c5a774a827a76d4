"""One agent's factors: what it holds of the factorisation, and its local updates.

No messages here: `Agent` decides when to update, sends U and brings what the
neighbours' answers add up to.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._agent import Report, Witness
from .._nmf import admm
from .._nmf.penalties import Penalty, balancing_scale, left_penalty, right_penalty
from .balance import UNIT_PULL, Pull
from .masks import MEAN_MASK_PRODUCT
from .settings import AgentSettings

# The penalties under mu = eta = 1, as a fraction of the data's scale, and the
# proximal weight, as a fraction of the largest sum of consensus penalties. The
# figures come from benchmarks/bench_penalties.py.
UNIT_PENALTY = 0.3
PROXIMAL_WEIGHT = 0.4
# An agent without data borrows this fraction of the network's scale.
_LEAST_SCALE = 1e-3
# Extrapolation of the right factor between iterations: full below this
# disagreement with the neighbours, none above three times as much.
_EXTRAPOLATION = 0.5
_EXTRAPOLATION_HALF_LIFE = 30
_EXTRAPOLATION_DISAGREEMENT = 0.01
# Fewer ADMM iterations of the left factor do not settle: iterations that stopped
# after one or two would move by about the tolerance for ever.
_LEAST_ADMM_ITER = 3
_RIGHT_MAX_ITER = 200
# Tolerance of the right factor's ADMM: wide while the left factor still moves much.
_FIRST_RIGHT_TOL = 0.02
_LAST_RIGHT_TOL = 1e-3
_RIGHT_TOL_HALF_LIFE = 5


def consensus_penalties(
    settings: AgentSettings, n_neighbours: int, scale: float, strength: float = 1.0
) -> tuple[float, float]:
    """Return an agent's proximal weight and what a unit of its neighbours' sum adds.

    Parameters
    ----------
    settings : AgentSettings
        Common to all agents.
    n_neighbours : int
        The agent's degree in the graph.
    scale : float
        The agreed scale of the data.
    strength : float, default=1.0
        Factor of the penalties that the agents have agreed on.

    Returns
    -------
    proximal : float
        Weight of the agent's last U in (9).
    step : float
        ``gamma**2 / 2``, by which ``sum_j g_ij g_ji (U_j - U_i)`` is multiplied to
        give S when the factors g are in [0.1, 1].
    """
    gamma_square = settings.g_max**2
    if settings.penalty_scaling == "data" and n_neighbours:
        gamma_square *= 2.0 * scale / settings.connectivity * strength
    largest = n_neighbours * gamma_square
    published = settings.update == "published"
    proximal = largest * (MEAN_MASK_PRODUCT if published else PROXIMAL_WEIGHT)
    # The printed multiplier update lacks the factor 1/2.
    return proximal, gamma_square * (1.0 if published else 0.5)


def right_tolerance(iteration: int) -> float:
    """Return how exactly to solve the right factor after so many BCD iterations."""
    fade = _RIGHT_TOL_HALF_LIFE / (_RIGHT_TOL_HALF_LIFE + iteration)
    return max(_LAST_RIGHT_TOL, _FIRST_RIGHT_TOL * fade)


class Factors:
    """One agent's left and right factor.

    The order of calls is `measure` (after `balance` where the penalties ask for it),
    `begin`, and then for each BCD iteration `begin_iteration`, `step` and `add` by
    turns, `end_iteration`.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_i, F)
        The agent's samples; none for a relay.
    start : ndarray of shape (K, F)
        The common start of the left factor.
    n_neighbours : int
        The agent's degree in the graph.
    settings : AgentSettings
        Common to all agents.
    name : str
        How errors call the agent.

    Attributes
    ----------
    left : LeftState
        U, P, Q and S.
    right : RightState
        W, V and R.
    unit : float
        The left factor is `unit` times what the agents exchange, which keeps the
        size of the common start whatever size the penalties give the factors.
    iteration : int
        Finished BCD iterations.
    inner : int
        Finished ADMM iterations of the present one.
    distances : tuple of two floats
        Of U from the neighbours' and from where the last iteration began, over its
        norm.
    """

    def __init__(
        self,
        X: Any,
        start: NDArray[np.float64],
        n_neighbours: int,
        settings: AgentSettings,
        name: str,
    ) -> None:
        self.X = X
        self.n_neighbours = n_neighbours
        self.settings = settings
        self.name = name
        self.unit = 1.0
        self.iteration = self.inner = 0
        zero = np.zeros_like(start)
        self.left = admm.LeftState(start, zero, zero, zero)
        empty = np.zeros((X.shape[0], len(start)), dtype=X.dtype)
        self.right = admm.RightState(empty, empty, empty)
        self._left_penalty = self._right_penalty = Penalty()
        self._last_W = empty
        self._squared_norm = self._squared_error = admm.squared_norm(X)
        self._mu = self._eta = 0.0
        self._tolerance_met = 0
        self._dither = 0.0
        self.distances = 0.0, 0.0
        self._last_solution: Any = None
        self._best_solution: Any = None

    # Before the first iteration ------------------------------------------------

    def _penalties(self) -> tuple[Penalty, Penalty]:
        """Penalties on the left and the right factor, in the data's own units."""
        settings = self.settings
        n_samples, n_features = self.X.shape
        return (
            left_penalty(settings.left_alpha, settings.l1_ratio, n_samples),
            right_penalty(settings.right_alpha, settings.l1_ratio, n_features),
        )

    def balance(self) -> float:
        """Solve the right factor and return the scale that balances the penalties.

        Returns
        -------
        float
            To be averaged over the agents; the mean is the `unit`.
        """
        # Unpenalised: at the wrong scale a penalty may leave nothing.
        self.solve_right()
        left, right = self._penalties()
        return balancing_scale(left, self._H, right, self.right.W)

    def measure(self, unit: float = 1.0) -> float:
        """Solve the right factor under its penalty and return its size.

        Parameters
        ----------
        unit : float, default=1.0
            As agreed, where the penalties ask for it.

        Returns
        -------
        float
            ``trace(W^T W) / K``, and the penalty's part; its mean over the agents is
            the scale of the data.

        Raises
        ------
        OverflowError
            If it is not finite.
        """
        self.unit = unit
        left, right = self._penalties()
        self._left_penalty = left.rescaled(unit)
        self._right_penalty = right.rescaled(1.0 / unit)
        weights = (*self._left_penalty[:2], *self._right_penalty[:2])
        if not all(map(math.isfinite, weights)):
            raise OverflowError(
                f"{self.name}: with the unit {unit:g} of the left factor a penalty is "
                "not finite; rescale X"
            )
        self.solve_right()
        size = float(np.trace(self._gram)) / len(self._gram) + self._left_penalty.l2
        if not math.isfinite(size):
            raise OverflowError(
                f"{self.name}: the squared right factor is not finite; rescale X"
            )
        return size

    # The left factor -----------------------------------------------------------

    def begin(self, scale: float) -> None:
        """Take the agreed scale of the data."""
        self.scale = scale

    def begin_iteration(self, pull: Pull = UNIT_PULL) -> None:
        """Form the left factor's normal equations.

        Parameters
        ----------
        pull : Pull
            What the agents have agreed on for this iteration.
        """
        if not self.iteration:
            self._products = admm.left_products(self.right.W, self.X)
            self._last_products = self._products
        self._B: NDArray[np.floating] = self._products
        gram = self._gram
        weight = self._extrapolation_weight() if pull.extrapolated else 0.0
        if weight:
            gram = admm.gram(admm.extrapolate(self.right.W, self._last_W, weight))
            self._B = admm.extrapolate(self._products, self._last_products, weight)
        A, self._B = admm.penalise(gram, self._B, self._left_penalty)
        self._last_W, self._last_products = self.right.W, self._products
        mu = self.settings.mu
        if self.settings.penalty_scaling == "data":
            size = float(np.trace(A)) / len(A)
            mu *= UNIT_PENALTY * max(size, _LEAST_SCALE * self.scale)
        self.left = self.left._replace(
            P=admm.rescale_multiplier(self.left.P, self._mu, mu)
            if self.iteration
            else self.left.P
        )
        self._mu = mu
        self._proximal, self._step = consensus_penalties(
            self.settings, self.n_neighbours, self.scale, pull.strength
        )
        self._inverse = admm.invert(A, mu + self._proximal)
        self._iteration_start = self.left.U
        self.inner = 0

    def _extrapolation_weight(self) -> float:
        """Weight of the last step of W, less the more the neighbours disagree."""
        if self.settings.update == "published" or self.iteration < 2:
            return 0.0
        if self._disagreement > 3 * _EXTRAPOLATION_DISAGREEMENT:
            return 0.0
        fade = _EXTRAPOLATION_HALF_LIFE / (_EXTRAPOLATION_HALF_LIFE + self.iteration)
        calm = _EXTRAPOLATION_DISAGREEMENT / max(self._disagreement, 1e-300)
        return _EXTRAPOLATION * fade * min(1.0, calm)

    def step(self) -> NDArray[np.floating]:
        """Take an ADMM step of the left factor, (8) to (10).

        Returns
        -------
        ndarray of shape (K, F)
            The new U, to be exchanged.
        """
        published = self.settings.update == "published"
        step = admm.published_left_step if published else admm.left_step
        self._last_left = self.left
        self.left = step(self.left, self._inverse, self._B, self._mu, self._proximal)
        return self.left.U

    def add(self, total: NDArray[np.floating]) -> None:
        """Accumulate the consensus multiplier, (11).

        Parameters
        ----------
        total : ndarray of K F values
            ``sum_j g_ij g_ji (U_j - U_i)``, the factors g in [0.1, 1].
        """
        S = self._step * total.reshape(self.left.U.shape)
        self.left = admm.add_consensus(self.left, S)
        if self.settings.update == "proximal":
            self._dither += self.n_neighbours * self._step**2
        self.inner += 1

    def left_converged(self) -> bool:
        """Whether U stands still, agrees with H and with the neighbours' U."""
        tol = self.settings.tol
        # Were all agents to stop now, news of it would come too late.
        latest = self.settings.max_admm_iter - self.settings.diameter
        if tol == 0 or not _LEAST_ADMM_ITER <= self.inner < latest:
            return False
        (U, P, *_), (last_U, last_P, *_) = self.left, self._last_left
        limit = tol * np.linalg.norm(U)
        return bool(
            np.linalg.norm(U - last_U) <= limit
            and np.linalg.norm(P - last_P) <= limit  # P moves by U - H
            and self._disagree() <= tol
        )

    def _disagree(self) -> float:
        """Distance to the neighbours' mean U relative to one's own."""
        if not self.n_neighbours:
            return 0.0
        expected = self._step * MEAN_MASK_PRODUCT * self.n_neighbours
        with np.errstate(over="ignore"):  # penalties near the largest allowed
            norm = expected * float(np.linalg.norm(self.left.U))
            return float(np.linalg.norm(self.left.S)) / norm if norm else 0.0

    # The right factor and the end of an iteration ------------------------------

    def solve_right(self) -> None:
        """Solve the right factor for the agent's copy of the left factor."""
        H = self._H = admm.project_left(self.left)
        gram = H @ H.T
        B = admm.right_products(self.X, H)
        A, target = admm.penalise(gram, B, self._right_penalty)
        eta = self.settings.eta
        if self.settings.penalty_scaling == "data":
            eta *= UNIT_PENALTY * float(np.trace(A)) / len(A)
        if self.X.shape[0] and eta:  # else there is nothing to solve
            R = admm.rescale_multiplier(self.right.R, self._eta or eta, eta)
            self.right = admm.right_factor(
                self.right._replace(R=R),
                A,
                target,
                eta,
                _RIGHT_MAX_ITER,
                right_tolerance(self.iteration),
            )
            self._eta = eta
        W = self.right.W
        self._gram = admm.gram(W)
        self._squared_error = admm.expanded_residual(
            self._squared_norm, W, B, gram, self._gram
        )

    def end_iteration(self) -> None:
        """Solve the right factor and see whether the iteration changed little."""
        self._disagreement = self._disagree()
        tol, U = self.settings.tol, self.left.U
        norm = float(np.linalg.norm(U))
        moved = float(np.linalg.norm(U - self._iteration_start))
        # Steps of the fixed-point numbers are no disagreement: to pull harder because
        # of them would only add up more dithers.
        rounding = 3.0 * math.sqrt(U.size) / self.settings.n_max
        apart = self._disagreement if self._disagreement * norm > rounding else 0.0
        self.distances = apart, moved / norm if norm else 0.0
        self.solve_right()
        self.iteration += 1
        self._products = admm.left_products(self.right.W, self.X)
        still = moved <= tol * norm
        met = tol > 0 and still and self._disagreement <= tol
        self._tolerance_met = self._tolerance_met + 1 if met else 0

    def converged(self) -> bool:
        """Whether two iterations in a row changed little and the neighbours agree.

        Not before news from every other agent can have arrived.
        """
        settings = self.settings
        n_rounds = self.iteration * settings.max_admm_iter
        return self._tolerance_met >= 2 and n_rounds >= settings.diameter

    def keep_last(self) -> None:
        """Keep the present factors, should they turn out to agree best."""
        self._last_solution = (
            self._H, self.right, self._gram, self._products, self._squared_error
        )  # fmt: skip

    def note_best(self) -> None:
        """Take what was kept last for the factors that agree best."""
        self._best_solution = self._last_solution

    def return_to_best(self) -> bool:
        """Go back to the factors that agreed best, if there are any."""
        if self._best_solution is None:
            return False
        (
            self._H, self.right, self._gram, self._products, self._squared_error
        ) = self._best_solution  # fmt: skip
        return True

    def report(
        self, n_exchanges: int, stopped: bool, final: bool, observed: bool
    ) -> Report:
        """Describe the agent's state after an iteration, for its operator.

        With what the observer of a run in one process is told, if there is one.
        """
        H, gram, products = self._H, self._gram, self._products
        if self.unit != 1.0:
            H, gram, products = (
                H * self.unit, gram / self.unit**2, products / self.unit
            )  # fmt: skip
        witness = None
        if observed:
            witness = Witness(gram, products, self._dither / self.unit**2)
        return Report(
            self.iteration,
            n_exchanges,
            H,
            self._squared_error,
            stopped,
            final,
            witness=witness,
        )
