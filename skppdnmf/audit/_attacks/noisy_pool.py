"""What an agent can compute of the others' samples from totals under noise."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._secure_sum.noisy_path import NoisyPath
from ..._secure_sum.noisy_totals import AGENT_BOUND, NoisyTotals, Samples
from ..._secure_sum.privacy import membership_auc
from ..._secure_sum.settings import NoiseSettings
from ..._secure_sum.totals import Totals
from .._views.sums import Sum
from .._views.transcript import AgentView
from .leakage import dense
from .pool import Right, finished_sums

Array = NDArray[np.float64]


class NoisyStage(NamedTuple):
    """One sum under noise: what all agents know of it, and what is left of the total.

    Parameters
    ----------
    point : ndarray of shape (1, K, F)
        The left factor.
    divisors : ndarray of shape (K,)
        Of the right factors before it.
    totals : Totals
        Of all others, with the noise of these.
    used : bool
        Whether attacks use it.
    scale : float
        What a sample counts for: 1, or its share in an agent's mean.
    """

    point: Array
    divisors: Array
    totals: Totals
    used: bool
    scale: float


def most_by_guarantee(view: AgentView) -> dict[str, float]:
    """Return what a guarantee leaves of a test of one sample, if there is one.

    Parameters
    ----------
    view : AgentView
        Of any agent.

    Returns
    -------
    dict
        ``epsilon``, and under ``most_auc`` the largest area under the curve; empty
        without epsilon.
    """
    settings = view.public.settings
    if not isinstance(settings, NoiseSettings):
        return {}
    # Of an agent's mean, which a sample more or less moves from one to another.
    factor = 2.0 if settings.unit == "agent" else 1.0
    most = membership_auc(factor * settings.guarantee.mu)
    return {"epsilon": settings.epsilon, "most_auc": most}


class NoisyPool:
    """The samples of all others, as one agent knows them from totals under noise.

    As `Pool`. The agent knows its own noise, too, and takes it off.

    Parameters
    ----------
    view : AgentView
        The agent's.
    max_sums : int or None, default=None
        How many sums to use, spread evenly; None for all.
    n_others : int or None, default=None
        How many samples the others hold; by default what the first total says, under
        noise, or the number of agents where these are the unit.

    Attributes
    ----------
    n_samples : int
        Of all others, as far as is known.
    squared_norm : float
        Of their samples, at most.
    stages : list of NoisyStage
        One for each sum that is used.
    noise : float
        Variance of the noise where `weights` multiply.
    """

    noise = 1.0

    def __init__(
        self,
        view: AgentView,
        max_sums: int | None = None,
        n_others: int | None = None,
    ) -> None:
        settings: NoiseSettings = view.public.settings
        assert view.public.starts is not None
        self._clip = settings.clip
        path = NoisyPath(view.public.starts[0], settings)
        first, *rest = finished_sums(view)
        assert first.total is not None
        count = path.numbers.read_count(first.total - first.words)
        path = path.set_up(first.total)
        self.numbers: NoisyTotals = path.numbers
        self.n_samples = max(1, round(count)) if n_others is None else n_others
        self.squared_norm = self.n_samples * settings.clip**2
        own = dense(view.X)
        share = (settings.n_agents - 1) / max(1, self.n_samples)
        most = len(rest) if max_sums is None else min(max_sums, len(rest))
        used = set(np.rint(np.linspace(0, len(rest) - 1, most)).astype(int).tolist())
        self._all = []
        for number, one in enumerate(rest):
            assert one.total is not None
            scale = 1.0
            if settings.unit == "agent":
                scale = share * self._shortened(one, own)
            self._all.append(
                NoisyStage(
                    path.H[None],
                    path.divisors,
                    path.numbers.decode(one.total - one.words),
                    number in used,
                    scale,
                )
            )
            path = path.take(one.total)
        self.stages = [stage for stage in self._all if stage.used]
        others = math.sqrt(settings.n_agents - 1)
        numbers = self.numbers
        gram = numbers.gram_scale * others * numbers.right_unit**2
        products = numbers.product_scale * others
        products *= numbers.right_unit * numbers.sample_unit
        self._weights = np.array([[gram**-2.0, products**-2.0]])

    def _shortened(self, one: Sum, own: Array) -> float:
        """Return by what agents' means are shortened, as the agent's own is."""
        if not len(own) or one.right is None:
            return AGENT_BOUND
        numbers = self.numbers
        samples = Samples.clipped(own, self._clip)
        words = numbers.summand(*numbers.whole(samples, one.right[0]))
        norm = math.sqrt(numbers.square(words / len(own)))
        return min(1.0, AGENT_BOUND / norm) if norm else AGENT_BOUND

    def weights(self, stage: NoisyStage) -> Array:
        """Return weights under which the noise of all others has variance one."""
        return self._weights

    def simulate(self, X: Array) -> list[Right]:
        """Return the right factors that samples have in each sum that is used.

        Parameters
        ----------
        X : ndarray of shape (n, F)
            Samples.

        Returns
        -------
        list of Right
            As far as bounds leave them.
        """
        samples = Samples.clipped(X, self._clip)
        numbers = self.numbers
        lengths = np.linalg.norm(X, axis=1)
        lengths[lengths == 0] = 1.0
        result = []
        W = np.zeros((numbers.n_components, len(X)))
        for stage in self._all:
            W = samples.right_factors(stage.point[0], W / stage.divisors[:, None])
            if not stage.used:
                continue
            whole, right = numbers.whole(samples, W)
            # Samples are shortened, too; here their right factors bear it all.
            kept = np.linalg.norm(whole, axis=0) * numbers.sample_unit / lengths
            right = right * numbers.right_unit
            result.append(
                Right(
                    math.sqrt(stage.scale) * right[None],
                    stage.scale * (right * kept)[None],
                )
            )
        return result
