"""What an agent of the consensus can compute of the others' samples.

Where the left factor is positive, the gradient of an agent's objective is what its
consensus multiplier adds up to, nearly, and the gradient is a sum over its samples. The
multipliers of all agents cancel. So an agent knows the gradient over all others: at the
components, where it is minus its own, and at the end of every iteration, where it is
minus its own multiplier. Between agents whom it alone connects multipliers do not
cancel, and it knows those of each side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._consensus.factors import consensus_penalties
from ..._nmf.hals import hals
from .._views.transcript import AgentView, Label
from .leakage import dense
from .replay import exchanged_product

Array = NDArray[np.float64]

_SWEEPS = 200  # of right factors that an agent has solved nearly to convergence
_UNUSED = 1e-6  # entries of the left factor below this share of the largest are zero
_MOST_POINTS = 20
# Before it the agents agree too little.
_FIRST_ITERATION = 6


class Point(NamedTuple):
    """A left factor at which a gradient over others' samples is known.

    Parameters
    ----------
    solved : ndarray of shape (K, F)
        For which they solved their right factors.
    left : ndarray of shape (K, F)
        At which the gradient is taken.
    used : ndarray of bool, shape (K, F)
        Where it is known.
    total : ndarray
        Its known entries, summed over all others' samples.
    deviation : float, default=1.0
        How far that may be off, in each entry.
    """

    solved: Array
    left: Array
    used: NDArray[np.bool_]
    total: Array
    deviation: float = 1.0


class GradientEvidence:
    """Left factors at which the gradient over all others' samples is known.

    Parameters
    ----------
    points : sequence of Point
        Left factors, and what the gradients add up to.
    n_samples : int
        Of all others.
    noise : float, default=0.0
        1 where the points' deviations are taken account of.

    Notes
    -----
    Penalties are left aside.
    """

    def __init__(self, points: list[Point], n_samples: int, noise: float = 0.0) -> None:
        self.n_samples = n_samples
        self.noise = noise
        self._points = points

    def traces(self, X: Array) -> list[Array]:
        """Return each sample's gradient at each point, a row each."""
        return [
            _gradients(point.solved, point.left, X)[:, point.used] / point.deviation
            for point in self._points
        ]

    def totals(self) -> list[Array]:
        """Return what all others' gradients add up to, at each point."""
        return [point.total / point.deviation for point in self._points]

    def inner(self, one: list[Array], other: list[Array]) -> Array:
        """Return the inner products of gradients."""
        return sum(
            (a @ b.T for a, b in zip(one, other, strict=True)),
            start=np.zeros((len(one[0]), len(other[0]))),
        )

    def paired(self, one: list[Array], other: list[Array]) -> Array:
        """Return the inner products of gradients at the same place."""
        return sum(
            (np.einsum("nd,nd->n", a, b) for a, b in zip(one, other, strict=True)),
            start=np.zeros(len(one[0])),
        )

    def with_sum(self, one: list[Array]) -> Array:
        """Return the inner products of gradients with what all others' must be."""
        return sum(
            (a @ total for a, total in zip(one, self.totals(), strict=True)),
            start=np.zeros(len(one[0])),
        )


def evidence_of_components(view: AgentView, n_others: int) -> GradientEvidence:
    """Return what the published components alone tell an agent.

    Parameters
    ----------
    view : AgentView
        The agent's.
    n_others : int
        How many samples the others hold.

    Returns
    -------
    GradientEvidence
    """
    H = np.asarray(view.public.components, dtype=np.float64)
    used = H > _UNUSED * H.max()
    own = _gradients(H, H, dense(view.X))[:, used].sum(axis=0)
    return GradientEvidence([Point(H, H, used, -own)], n_others)


def evidence_of_neighbour(
    view: AgentView, sizes: Mapping[Label, int], max_points: int | None = None
) -> list[GradientEvidence]:
    """Return what an agent learns from the answers that it decrypts.

    Parameters
    ----------
    view : AgentView
        The agent's, under the consensus.
    sizes : dict from label to int
        How many samples each of the others holds.
    max_points : int or None, default=None
        Iterations to use, spread evenly; None for 20.

    Returns
    -------
    list of GradientEvidence
        One for each set of agents that the agent alone connects with the others, if
        they hold samples: for all others where they are connected without it.
    """
    public = view.public
    rounds = view.left_rounds
    lefts = {state.iteration: state.H / public.unit for state in view.states}
    # The last round of each iteration; before the first one there is no other factor.
    last = {one.iteration + 1: k for k, one in enumerate(rounds)}
    ends = [n for n in last if n in lefts and n - 1 in lefts]
    ends = [n for n in ends if n >= _FIRST_ITERATION] or ends
    if not ends:
        return []
    most = _MOST_POINTS if max_points is None else max_points
    place = np.linspace(0, len(ends) - 1, min(most, len(ends)))
    chosen = [ends[k] for k in np.rint(place).astype(int)]
    steps = np.array(
        [
            consensus_penalties(public.settings, 1, public.scale, one.pull.strength)[1]
            for one in rounds
        ]
    )
    added = {
        label: np.cumsum(steps[:, None, None] * exchanged_product(view, label), axis=0)
        for label in public.neighbours(view.label)
    }
    own = dense(view.X)
    result = []
    for side in sides(view):
        n_samples = sum(sizes[label] for label in side)
        if not n_samples:
            continue
        n_holders = sum(sizes[label] > 0 for label in side)
        # The others are as far from their optimum as the agent itself, for each sample.
        far = n_samples / (max(1, len(own)) * n_holders**0.5)
        points = []
        for n in chosen:
            H, one = lefts[n], rounds[last[n]]
            used = H > _UNUSED * H.max()
            U = one.values.astype(np.float64).reshape(H.shape) / one.n_max
            side_total = -sum(added[j][last[n]] for j in side if j in added)
            missed = _gradients(lefts[n - 1], U, own).sum(axis=0)
            missed -= sum(one[last[n]] for one in added.values())
            deviation = far * float(np.sqrt(np.mean(missed[used] ** 2)))
            points.append(
                Point(lefts[n - 1], U, used, side_total[used], deviation or 1.0)
            )
        result.append(GradientEvidence(points, n_samples, noise=1.0))
    return result


def sides(view: AgentView) -> list[list[Label]]:
    """Return the sets of agents that are connected without the agent.

    Parameters
    ----------
    view : AgentView
        The agent's.

    Returns
    -------
    list of list of label
    """
    left = [label for label in view.public.labels if label != view.label]
    found = []
    while left:
        side = [left.pop(0)]
        for label in side:
            near = [other for other in view.public.neighbours(label) if other in left]
            side += near
            left = [other for other in left if other not in near]
        found.append(side)
    return found


def _gradients(solved: Array, left: Array, X: Array) -> Array:
    """Return each sample's gradient with regard to the left factor, (n, K, F)."""
    products = (solved @ X.T)[None]
    start = np.zeros_like(products)
    W = hals((solved @ solved.T)[None], products, start, _SWEEPS)[0].T
    return W[:, :, None] * (W @ left - X)[:, None, :]
