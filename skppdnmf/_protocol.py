"""The contract of protocols: what a fit asks of each, and what it gets.

A protocol is a folder with an object that satisfies `FitProtocol`; nothing outside of
that folder tells one from another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ._agent import Agent, Report
from ._data.graph import Network
from ._data.partition import Partition
from ._nmf.blocks import one_by_one
from ._sealing.credentials import Credentials


class Seeds(NamedTuple):
    """Independent seeds for what may be reproducible.

    Parameters
    ----------
    graph, start : int
        Of the random graph, and of the common start and all else that agents derive
        alike; both are public.
    masks : list of int or None
        Of the agents' masks and dithers, in runs of one process that are to be
        reproducible; None has every agent draw its own from the operating system.
    """

    graph: int
    start: int
    masks: list[int] | None


class Cost(NamedTuple):
    """What a fit takes that runs all its iterations.

    Parameters
    ----------
    exchanges, ciphertexts, exponentiations, bytes, seconds
        As in `skppdnmf.CostEstimate`.
    """

    exchanges: int
    ciphertexts: int
    exponentiations: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Setting:
    """What a plan is made from: the public facts of a fit.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters, validated.
    network : Network
        The graph; node i is the i-th agent of the roster.
    start : ndarray of shape (K, F)
        The common start of the left factor.
    seeds : Seeds
        Of all that is drawn.
    weighted : bool, default=False
        Whether samples have weights.
    missing : bool, default=False
        Whether entries may be missing.
    remembers : bool, default=False
        Whether the last report is to hold the totals, to be gone on from.
    memory : object or None, default=None
        Totals of earlier samples, which all agents know.
    """

    estimator: Any
    network: Network
    start: NDArray[np.float64]
    seeds: Seeds
    weighted: bool = False
    missing: bool = False
    remembers: bool = False
    memory: Any = None


def call(function: Callable[..., Any], *given: Any) -> Any:
    """Return ``function(*given)``."""
    return function(*given)


def nobody(number: int) -> None:
    """Return no credentials."""
    return


@dataclass(frozen=True)
class Hooks:
    """What a run in one process hands to its agents when they are built.

    Parameters
    ----------
    compute : callable, default=call
        ``compute(function, *arguments)`` returns what the function, which is pure,
        returns: agents of one process need not compute it each.
    recorder : object or None, default=None
        Of an audit; ``recorder.of(number)`` takes notes for one agent.
    credentials : callable, default=nobody
        ``credentials(number)`` returns the `Credentials` with which an agent signs
        what goes farther than its neighbours, or None.
    observed : bool, default=True
        Whether reports tell the observer what only a run in one process may know.
    share : callable, default=one_by_one
        ``share(function, items)`` returns what the function returns for each item:
        an agent with many samples need not go through them alone.
    together : bool, default=False
        Whether all agents are of one process: what two of them derive alike, each for
        itself elsewhere, need not be derived twice.
    """

    compute: Callable[..., Any] = call
    recorder: Any = None
    credentials: Callable[[int], Credentials | None] = nobody
    observed: bool = True
    share: Callable[..., list[Any]] = one_by_one
    together: bool = False


class Build(Protocol):
    """What makes the agents of a plan; see `Plan`."""

    def __call__(
        self,
        parts: Sequence[Any],
        names: Sequence[str],
        run: bytes,
        hooks: Hooks,
        numbers: Sequence[int] | None = None,
    ) -> list[Agent]:
        """Make agents."""
        ...


class Link(NamedTuple):
    """What went over a directed link where no envelopes were carried.

    Parameters
    ----------
    sender, receiver : int
        Numbers in the roster.
    n_messages, n_bytes : int
        How much.
    """

    sender: int
    receiver: int
    n_messages: int
    n_bytes: int


class Computed(NamedTuple):
    """What a run leaves behind that another runtime than ours has carried.

    Parameters
    ----------
    reports : list of Report
        The agents' last reports.
    links : list of Link
        What went over the links; several of the same link add up.
    """

    reports: list[Report]
    links: list[Link]


# Is shown the agents' reports on an iteration, the bytes sent so far and the error that
# an observer of all data computes; returns whether to end the fit.
Watch = Callable[[Sequence[Report], int, float], bool]
Run = Callable[[Sequence[Any], Sequence[str], Watch], Computed]


@dataclass(frozen=True)
class Plan:
    """A fit that is ready to be run: by agents, or by a runtime of the protocol's own.

    Parameters
    ----------
    settings : object
        What all agents have agreed upon.
    starts : ndarray of shape (S, K, F)
        Common starts of the left factor.
    backend : {"threads", "processes"}
        Where the agents of one process had best run.
    on_dropout : {"raise", "continue"} or None
        What to do when an agent is lost; None where the others cannot do without it.
    build : callable
        ``build(parts, names, run, hooks)`` makes the agents from their samples, from
        what errors call them, from the run's 16 bytes, and from `Hooks`; a fifth
        argument says which agents of the roster the parts belong to, if not all. None
        where the protocol has no agents.
    run : callable or None, default=None
        ``run(parts, names, watch)`` runs the fit of all agents in this process where
        it is not agents that do so.
    """

    settings: Any
    starts: NDArray[np.float64]
    backend: str
    on_dropout: str | None
    build: Build | None = None
    run: Run | None = None

    def build_one(
        self, number: int, part: Any, names: Sequence[str], run: bytes, hooks: Hooks
    ) -> Agent:
        """Make one agent of the roster, from its own samples alone."""
        if self.build is None:
            raise TypeError(
                "this protocol is run by a runtime of its own, not by agents"
            )
        (agent,) = self.build([part], names, run, hooks, [number])
        return agent


class FitProtocol(Protocol):
    """What a fit needs of a protocol."""

    name: str
    code: int
    # Whether agents exchange envelopes; else a plan has a runtime of its own.
    has_agents: bool
    # Whether the agents' copies of the left factor can differ.
    agrees: bool
    # Whether it can add the noise of differential privacy.
    adds_noise: bool
    # Whether agents learn sums over all samples, for what needs them.
    sums: bool
    # Whether some components may be known beforehand.
    fixes: bool
    # Why not, after a semicolon, if there is more to say.
    no_noise: str

    def start_scaling(self, estimator: Any) -> str:
        """Return how a given start is scaled, as for `penalty_scaling`."""
        ...

    def privacy(
        self, estimator: Any, network: Network, partition: Partition, n_components: int
    ) -> list[str]:
        """Return what the parameters protect less than a user may believe."""
        ...

    def plan(self, setting: Setting) -> Plan:
        """Return a fit, ready to be run, or refuse it."""
        ...

    def check_data(self, setting: Setting, X: Any) -> None:
        """Refuse what only a process that holds all data can see beforehand."""
        ...

    def warn_of_cost(self, setting: Setting, plan: Plan) -> None:
        """Warn of a fit that will take long."""
        ...

    def cost(self, setting: Setting, n_samples: int | None) -> Cost:
        """Return what a fit takes; the number of samples may be unknown."""
        ...

    def encrypts(self, estimator: Any) -> bool:
        """Return whether ciphertexts are made."""
        ...

    def protects(self, estimator: Any) -> bool:
        """Return whether links hide what they carry, as far as the protocol does."""
        ...

    def in_clear(self, estimator: Any) -> bool:
        """Return whether neighbours read each other's left factors."""
        ...

    def protection(self, estimator: Any) -> str:
        """Return what a fit has protected, and what not, in a few sentences."""
        ...

    def advice(self, estimator: Any) -> str:
        """Return what else to change where a fit has not reached its tolerance."""
        ...

    def remarks(self, estimator: Any, reports: Sequence[Report | None]) -> list[str]:
        """Return what a fit has left to be desired, whether or not it converged."""
        ...
