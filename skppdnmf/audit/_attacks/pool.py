"""What an agent can compute of the others' samples from the totals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._nmf.hals import hals
from ..._secure_sum.agent import _FIRST_SWEEPS, _SWEEPS
from ..._secure_sum.left_factor import LeftPath, row_norms
from ..._secure_sum.totals import Totals, read_setup
from .._views.sums import Sum
from .._views.transcript import AgentView

Array = NDArray[np.float64]

# More exact totals take time and tell hardly more.
_MOST_SUMS = 20


class Stage(NamedTuple):
    """One sum: what all agents know of it, and what the others' summands add up to.

    Parameters
    ----------
    point, gram : ndarray of shape (S, K, F) and (S, K, K)
        The left factors, and their problem's matrix.
    linear : float
        Linear penalty on the right factors.
    weights : ndarray of shape (S,)
        Of the extrapolation.
    kept : ndarray of int
        Starts of the stage before that are left.
    divisors : ndarray of shape (S, K) or None
        Of the right factors' columns.
    totals : Totals
        The others'.
    epoch : int
        Dropouts before it.
    """

    point: Array
    gram: Array
    linear: float
    weights: Array
    kept: NDArray[np.intp]
    divisors: Array | None
    totals: Totals
    epoch: int


class Right(NamedTuple):
    """Right factors of samples in one sum, as they count in both totals.

    Parameters
    ----------
    gram, products : ndarray of shape (S, K, n)
        Those of ``W^T W`` and of ``W^T X``. They differ where samples are shortened.
    """

    gram: Array
    products: Array


def finished_sums(view: AgentView, with_dropouts: bool = False) -> list[Sum]:
    """Return the sums of which an agent knows the total, the last of each step."""
    last = {
        one.step: one
        for one in view.sums
        if one.total is not None and (with_dropouts or not one.epoch)
    }
    return list(last.values())


def _check_settings(settings: Any) -> None:
    """Refuse totals that are not of what the attacks simulate."""
    other = f"beta_loss with beta={settings.beta:g}" if settings.beta != 2 else ""
    if settings.missing:
        other = "missing entries"
    if other:
        raise ValueError(
            f"{other}: the attacks on totals know those of the Frobenius norm of "
            "complete data; that they would find nothing here would mean nothing"
        )


class Pool:
    """The samples of all others, as one agent knows them from the totals.

    The left factors' path is a function of the totals, so that every agent can
    follow it again. What remains of a total without the agent's own summand is a sum
    over the others' samples, each of which contributes by itself: `simulate` gives
    the contributions of any samples.

    Parameters
    ----------
    view : AgentView
        The agent's.
    max_sums : int or None, default=None
        How many sums to use, the first ones, the setup not counted; None for 20.
    with_dropouts : bool, default=False
        Whether to go on after a dropout, where totals are over other agents.

    Attributes
    ----------
    n_samples : int
        Of all others.
    squared_norm : float
        Of their samples.
    stages : list of Stage
        One for each sum.
    noise : float
        0: totals are exact.
    """

    noise = 0.0

    def __init__(
        self,
        view: AgentView,
        max_sums: int | None = None,
        with_dropouts: bool = False,
    ) -> None:
        _check_settings(view.public.settings)
        known = finished_sums(view, with_dropouts)
        most = _MOST_SUMS if max_sums is None else max_sums
        totals = [
            (one.words, one.total, one.epoch)
            for one in known[: most + 1]
            if one.total is not None
        ]
        (own, total, last), *rest = totals
        assert view.public.starts is not None
        path = LeftPath(view.public.starts.copy(), view.public.settings)
        path = path.set_up(total)
        self.squared_norm, self.n_samples = read_setup(total - own)
        self.stages = []
        for own, total, epoch in rest:
            if epoch > last:  # those that are left sum at another point
                path = path.move_on(epoch)
            # The first total begins with a norm.
            words = (total - own)[-path.n_words :]
            others = path.fixed_point.decode(words, path.n_starts)
            self.stages.append(
                Stage(
                    path.point,
                    path.gram,
                    path.right.l1,
                    path.weights,
                    path.kept,
                    path.divisors,
                    others,
                    epoch,
                )
            )
            path = path.take(total, epoch > last)
            last = epoch

    def weights(self, stage: Stage) -> Array:
        """Return weights by which both totals of each start count alike."""
        norms = [
            np.einsum("sab,sab->s", part, part)
            for part in (stage.totals.gram, stage.totals.products)
        ]
        return 1.0 / np.where(np.array(norms) > 0, norms, 1.0).T

    def simulate(self, X: Array) -> list[Right]:
        """Return the right factors that samples have in each sum.

        Parameters
        ----------
        X : ndarray of shape (n, F)
            Samples.

        Returns
        -------
        list of Right
            Transposed, for rows of the left factors of root mean square 1, and not
            rounded.
        """
        result = []
        W = extrapolated = np.zeros((*self.stages[0].point.shape[:2], len(X)))
        for number, stage in enumerate(self.stages):
            S, K, F = stage.point.shape
            if number:
                W, extrapolated = W[stage.kept], extrapolated[stage.kept]
                if stage.divisors is not None:
                    W = W / stage.divisors[:, :, None]
                    extrapolated = extrapolated / stage.divisors[:, :, None]
            products = (stage.point.reshape(-1, F) @ X.T).reshape(S, K, -1)
            products -= stage.linear
            sweeps = _SWEEPS if number else _FIRST_SWEEPS
            previous, W = W, hals(stage.gram, products, extrapolated.copy(), sweeps)
            step = stage.weights[:, None, None] * (W - previous)
            extrapolated = np.maximum(W + step, 0.0)
            scaled = extrapolated * row_norms(stage.point)[:, :, None]
            result.append(Right(scaled, scaled))
        return result
