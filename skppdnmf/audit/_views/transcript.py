"""What every agent saw and what went over every link, kept apart by who saw it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._consensus.balance import UNIT_PULL, Pull
from .sums import Sum, SumLetter

Label = Hashable


class Letter(NamedTuple):
    """One message as a link carried it.

    Parameters
    ----------
    turn : int
        When it was sent; all messages of a turn are sent at the same time.
    sender, receiver : label
        Labels of the agents.
    kind : str
        ``"key"``, ``"request"``, ``"reply"`` or ``"widen"``.
    round : int
        The exchange that it belongs to.
    value_bits, left_count, fit_count, scale, disagreement, movement
        The other numbers of its header, which are not encrypted.
    n_ciphertexts, n_bytes : int
        Its size on a wire.
    data : bytes or None
        Exactly the bytes, header included; None under ``encryption="simulated"``,
        where no bytes are made.
    """

    turn: int
    sender: Label
    receiver: Label
    kind: str
    round: int
    value_bits: int
    left_count: int
    fit_count: int
    scale: float
    disagreement: int
    movement: int
    n_ciphertexts: int
    n_bytes: int
    data: bytes | None


@dataclass(frozen=True)
class Round:
    """One exchange as one agent saw it.

    Parameters
    ----------
    number : int
        Number of the exchange.
    phase : {"balance", "geometric mean", "power mean", "left"}
        What it was for: one of the averages before the first iteration, or the
        left factor.
    iteration : int
        BCD iterations finished before.
    n_max : float
        Fixed-point scale of this exchange.
    values : ndarray of shape (n_values,)
        The agent's own integers u.
    pull : Pull
        What all agents had agreed on for this iteration.
    masks, dithers : dict of ndarray
        For each neighbour that was answered the secret factors G, one or one for
        each value, and the dithers.
    answers : dict of ndarray
        From each neighbour what the agent decrypted, ``G (u_j - u_i) + dither``.
    """

    number: int
    phase: str
    iteration: int
    n_max: float
    values: NDArray[np.float64]
    pull: Pull = UNIT_PULL
    masks: dict[Label, NDArray[np.float64]] = field(default_factory=dict)
    dithers: dict[Label, NDArray[np.float64]] = field(default_factory=dict)
    answers: dict[Label, NDArray[np.float64]] = field(default_factory=dict)


class State(NamedTuple):
    """An agent's copy of the left factor and its right factor after an iteration."""

    iteration: int
    H: NDArray[np.float64]
    W: NDArray[np.floating]


@dataclass(frozen=True)
class Public:
    """What everybody knows beforehand or in the end.

    Parameters
    ----------
    labels : tuple
        Labels of the agents, in the order of the nodes.
    adjacency : ndarray of shape (n_agents, n_agents)
        The graph, in the same order.
    settings : AgentSettings, PathSettings or None
        What the agents agreed upon; None where nothing but the components is seen.
    start : ndarray of shape (K, F)
        Common start of the left factor.
    scale, unit : float
        Agreed scale of the penalties and agreed unit of the left factor; 1 under the
        secure sum.
    components : ndarray of shape (K, F)
        The result.
    protocol, encryption : str
        As for `PrivateDistributedNMF`; the encryption is None but under the consensus.
    starts : ndarray of shape (S, K, F) or None
        All common starts, `start` the first of them; None under the consensus.
    key_graph : dict of tuples
        Under the secure sum the labels with whom each agent shares a key.
    """

    labels: tuple[Label, ...]
    adjacency: NDArray
    settings: Any
    start: NDArray[np.float64]
    scale: float
    unit: float
    components: NDArray[np.floating]
    protocol: str
    encryption: str | None
    starts: NDArray[np.float64] | None = None
    key_graph: dict[Label, tuple[Label, ...]] = field(default_factory=dict)

    def node(self, label: Label) -> int:
        """Return the node of an agent.

        Parameters
        ----------
        label : label
            Its label.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If no agent has this label.
        """
        if label not in self.labels:
            raise ValueError(f"no agent {label!r}; the agents are {list(self.labels)}")
        return self.labels.index(label)

    def neighbours(self, label: Label) -> list[Label]:
        """Return the labels of an agent's neighbours.

        Parameters
        ----------
        label : label
            Its label.

        Returns
        -------
        list
        """
        row = self.adjacency[self.node(label)]
        return [self.labels[k] for k in np.flatnonzero(row)]


@dataclass(frozen=True)
class AgentView:
    """All that one agent saw: its attacks may use this and nothing else.

    Parameters
    ----------
    label : label
        The agent.
    public : Public
        What everybody knows.
    X : ndarray or sparse matrix of shape (n_i, F)
        Its own samples.
    rounds : tuple of Round
        Its exchanges; none under the secure sum.
    states : tuple of State
        Its factors after each iteration; none under the secure sum.
    sent, received : tuple of Letter or of SumLetter
        Its messages.
    sums : tuple of Sum
        Under the secure sum its summands and the totals.
    public_keys : dict of bytes
        Under the secure sum every agent's public key.
    """

    label: Label
    public: Public
    X: Any
    rounds: tuple[Round, ...]
    states: tuple[State, ...]
    sent: tuple[Any, ...]
    received: tuple[Any, ...]
    sums: tuple[Sum, ...] = ()
    public_keys: dict[Label, bytes] = field(default_factory=dict)

    @property
    def left_rounds(self) -> list[Round]:
        """The exchanges of the left factor."""
        return [one for one in self.rounds if one.phase == "left"]


@dataclass(frozen=True)
class LinkView:
    """All that an eavesdropper on every link saw.

    Parameters
    ----------
    public : Public
        What everybody knows.
    letters : dict of tuples of Letter or of SumLetter
        For each directed edge ``(sender, receiver)`` its messages.
    """

    public: Public
    letters: dict[tuple[Label, Label], tuple[Any, ...]]


class Transcript:
    """What was seen in one fit, kept apart by who saw it.

    Made by `record`. An attack takes one agent's `view`, or the `links`, and has no
    way from there to what others hold; the truth is read when its result is scored.

    Parameters
    ----------
    public : Public
        What everybody knows.
    views : dict of AgentView
        For each label.
    letters : list of Letter or of SumLetter
        All messages, in the order in which they were sent.
    estimator : PrivateDistributedNMF
        The fitted estimator.
    dither : bool
        Whether the answers were dithered.

    Attributes
    ----------
    public, estimator, dither
        As given.
    agents : list
        The labels.
    links : LinkView
        What an eavesdropper saw.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.audit import record
    >>> X = np.random.default_rng(0).exponential(size=(12, 6))
    >>> model = PrivateDistributedNMF(
    ...     2, partition=3, encryption="simulated", max_iter=2, tol=0, random_state=0
    ... )
    >>> transcript = record(model, X)
    >>> transcript.agents
    [0, 1, 2]
    >>> view = transcript.view(0)
    >>> view.X.shape, len(view.left_rounds)
    ((4, 6), 10)
    """

    def __init__(
        self,
        public: Public,
        views: dict[Label, AgentView],
        letters: list[Letter] | list[SumLetter],
        estimator: Any,
        dither: bool,
    ) -> None:
        self.public = public
        self.estimator = estimator
        self.dither = dither
        self.agents = list(public.labels)
        self._views = views
        links: dict[tuple[Label, Label], list[Any]] = {}
        for letter in letters:
            links.setdefault((letter.sender, letter.receiver), []).append(letter)
        self.links = LinkView(
            public, {edge: tuple(some) for edge, some in links.items()}
        )

    def view(self, agent: Label) -> AgentView:
        """Return what one agent saw.

        Parameters
        ----------
        agent : label
            Its label.

        Returns
        -------
        AgentView

        Raises
        ------
        ValueError
            If no agent has this label.
        """
        self.public.node(agent)
        return self._views[agent]

    def link(self, sender: Label, receiver: Label) -> tuple[Any, ...]:
        """Return what went over one directed edge.

        Parameters
        ----------
        sender, receiver : label
            Its ends.

        Returns
        -------
        tuple of Letter or of SumLetter
            Empty where there is no such edge.

        Raises
        ------
        ValueError
            If no agent has one of the labels.
        """
        self.public.node(sender), self.public.node(receiver)
        return self.links.letters.get((sender, receiver), ())

    def masks(self, agent: Label, neighbour: Label) -> dict[int, NDArray[np.float64]]:
        """Return an agent's secret factors for one neighbour: never part of a view.

        Parameters
        ----------
        agent, neighbour : label
            Whose factors, and in whose answers.

        Returns
        -------
        dict
            For the number of each exchange its factors.
        """
        return {
            one.number: one.masks[neighbour]
            for one in self.view(agent).rounds
            if neighbour in one.masks
        }

    def __repr__(self) -> str:
        view = self.view(self.agents[0])
        n_letters = sum(map(len, self.links.letters.values()))
        if view.sums:
            return (
                f"Transcript({len(self.agents)} agents, {len(view.sums)} sums, "
                f"{n_letters} messages, protocol={self.public.protocol!r})"
            )
        if self.public.settings is None:
            return (
                f"Transcript({len(self.agents)} agents, the components alone, "
                f"protocol={self.public.protocol!r})"
            )
        return (
            f"Transcript({len(self.agents)} agents, {len(view.rounds)} exchanges, "
            f"{n_letters} messages, encryption={self.public.encryption!r}, "
            f"masking={self.public.settings.masking!r}, dither={self.dither})"
        )
