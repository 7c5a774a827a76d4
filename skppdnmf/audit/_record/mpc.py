"""What agents see of secure multi-party computation: their samples, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._agent import Envelope
from ..._fit.noise import check_privacy
from ..._fit.seeds import draw_seeds
from ..._fit.uses import check_uses
from ..._mpc.plain import PlainRun
from ..._mpc.protocol import check_parties, random_starts
from ..._mpc.settings import count_starts, settings_of
from .._attacks.leakage import dense
from .._views.transcript import AgentView, Label, Public, Transcript
from .recorder import Recorder, frozen

NAME = "mpc"


class MpcRecorder(Recorder):
    """Records a fit on secret shares: there is nothing but its result.

    Shares are uniformly random to each of those that compute, and are not kept.
    """

    def new_notes(self, number: int) -> None:
        """Return nothing: no agent sees anything of its own."""

    @staticmethod
    def letter(turn: int, sender: Label, receiver: Label, envelope: Envelope) -> Any:
        """Refuse an envelope: none is sent."""
        raise TypeError("a fit on secret shares has no envelopes")

    def transcript(self, model: Any) -> Transcript:
        """Put everything together once the fit is over."""
        return _transcript(
            self.labels,
            self.setting.network.adjacency,
            self.plan.starts,
            self.parts,
            model.components_,
            model,
        )


def check_mpc(estimator: Any) -> None:
    """Refuse what a fit on secret shares refuses; SPU is not needed."""
    estimator._validate_params()
    check_privacy(estimator)
    check_uses(estimator)


def of_components(transcript: Transcript, estimator: Any) -> Transcript:
    """Return what would be seen of a fit of the same samples on secret shares.

    By the same iterations in floating point, which end within rounding of those on
    shares: an attack on the components alone cannot tell them apart.

    Parameters
    ----------
    transcript : Transcript
        A fit of the same samples, under any protocol.
    estimator : PrivateDistributedNMF
        With its parameters.

    Returns
    -------
    Transcript

    Raises
    ------
    ValueError
        If there are fewer than three agents, or its parameters do not go with it.
    """
    public = transcript.public
    check_parties(estimator, len(public.labels))
    K, F = public.start.shape
    parts = [dense(transcript.view(label).X) for label in public.labels]
    holders = [part for part in parts if len(part)]
    sizes = tuple(len(part) for part in holders)
    settings = settings_of(estimator, sizes, F)
    n_starts = count_starts(estimator, sum(sizes), F, K)
    starts = random_starts(
        public.start,
        n_starts,
        draw_seeds(estimator.random_state).start,
        settings.n_fixed,
    )
    run = PlainRun(holders, starts, settings)
    for _ in range(settings.n_iterations):
        run.advance()
    return _transcript(
        public.labels, public.adjacency, starts, parts, run.components, estimator
    )


def _transcript(
    labels: tuple[Label, ...],
    adjacency: NDArray[Any],
    starts: NDArray[np.float64],
    parts: Sequence[Any],
    components: NDArray[Any],
    model: Any,
) -> Transcript:
    """Put together what everybody sees, and nothing else."""
    public = Public(
        labels=labels,
        adjacency=frozen(adjacency),
        settings=None,
        start=starts[0],
        scale=1.0,
        unit=1.0,
        components=frozen(components),
        protocol=NAME,
        encryption=None,
        starts=frozen(starts),
    )
    views = {
        label: AgentView(label, public, part, (), (), (), ())
        for label, part in zip(labels, parts, strict=True)
    }
    return Transcript(public, views, [], model, False)
