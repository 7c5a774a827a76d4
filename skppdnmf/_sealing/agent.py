"""An agent whose envelopes only their receivers can open, and which it can answer for.

It wraps the agent of any protocol and is one itself: whoever carries envelopes sees no
difference but that there is nothing to read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable
from typing import Any

from .._agent import Address, Agent, Departure, Envelope, Step
from .._data.partition import LEAST_HOLDERS
from ..exceptions import (
    CorruptedMessageError,
    DropoutError,
    FactsMismatchError,
    ReplayedMessageError,
    TranscriptMismatchError,
)
from .agreement import (
    Agreement,
    Statement,
    check,
    state,
    statements_from_bytes,
    statements_to_bytes,
)
from .credentials import Credentials
from .hello import Hello
from .links import SEAL_BYTES, SEALED, Links, epoch_of
from .transcript import DIGEST_BYTES, Position, Transcript

# Kinds of message beside the protocol's own, which must be below.
FINAL, HELLO = 254, 255
_KINDS = {FINAL: "final signatures", HELLO: "hello"}
# Under the seal: epoch and number of things told, digest.
_SAID = struct.Struct(f">HI{DIGEST_BYTES}s")
# What a sealed envelope is longer by.
SEALED_BYTES = SEAL_BYTES + _SAID.size


class SealedAgent:
    """An agent of any protocol behind signatures and seals.

    - Before anything else it and its neighbours in the graph sign fresh X25519 keys
      with their identities, for this run, epoch, member set and these facts.
      A neighbour with other facts is refused, and the fact named.
    - Each envelope is sealed by AES-256-GCM under a key of its link and direction, its
      header and a counter authenticated. What is changed, of another run, comes twice
      or in another order is refused. **Whoever carries envelopes must keep the order
      of those from one agent to another**; of different links any order will do.
    - Under each seal goes a digest of what the sender has been told so far. If it is
      not what this agent has been told, the run ends.
    - When others have left it signs the new member set, with fresh keys, and checks
      that enough are left; so do its neighbours.
    - At the end each signs the digest, the signatures go to all, and `agreement` keeps
      them. The agent is `finished` once it has them all.

    Parameters
    ----------
    agent : Agent
        What it wraps. Its attribute ``transcript``, if it has one, says what it has
        been told; without, only departures count.
    credentials : Credentials
        The site's part in the run; the run and the number must be those of the agent.
    neighbours : collection of int
        Numbers of those to whom the agent writes, and who write to it.
    protocol : int
        Code of the agent's protocol.
    min_sites : int, default=1
        With fewer the run must not go on.
    holders : collection of int or None, default=None
        Who holds samples; None for everybody. With fewer than three left the run must
        not go on after a departure, since two would know each other's summand.
    on_dropout : {"raise", "continue"}, default="continue"
        Whether the run may go on without one that has left. Whoever carries envelopes
        may say so of anybody: "raise" has the site refuse.

    Attributes
    ----------
    agreement : Agreement or None
        What all sites have signed; None before the end.
    finished : bool
        Whether all is over, the signatures included.

    Raises
    ------
    ValueError
        If fewer than `min_sites` are on the roster, or the protocol's code or
        `on_dropout` is none.

    Examples
    --------
    Two agents that only greet each other:

    >>> from skppdnmf._agent import Envelope, Step
    >>> from skppdnmf.exchange import Credentials, Identity, Roster, SealedAgent
    >>> class Greeter:
    ...     def __init__(self, number):
    ...         self.number, self.greeted = number, False
    ...     def start(self):
    ...         other = 1 - self.number
    ...         return Step([Envelope(bytes(16), 1, self.number, other, 0, 0, b"hi")])
    ...     def advance(self, envelopes):
    ...         self.greeted |= any(one.body == b"hi" for one in envelopes)
    ...         return Step([], finished=self.greeted)
    >>> identities = [Identity.new(), Identity.new()]
    >>> roster = Roster({"a": identities[0].public, "b": identities[1].public})
    >>> agents = [
    ...     SealedAgent(Greeter(i), Credentials(one, roster, bytes(16), {}), [1 - i], 1)
    ...     for i, one in enumerate(identities)
    ... ]
    >>> sent = [agent.start().envelopes for agent in agents]
    >>> while not all(agent.finished for agent in agents):
    ...     sent = [agents[i].advance(sent[1 - i]).envelopes for i in (0, 1)]
    >>> agents[0].agreement.verify(Credentials(identities[1], roster, bytes(16), {}))
    ['a', 'b']
    """

    def __init__(
        self,
        agent: Agent,
        credentials: Credentials,
        neighbours: Collection[int],
        protocol: int,
        *,
        min_sites: int = 1,
        holders: Collection[int] | None = None,
        on_dropout: str = "continue",
    ) -> None:
        n_agents = len(credentials.roster)
        if not 0 <= protocol < SEALED:
            raise ValueError(
                f"protocol={protocol} should be >= 0 and < {SEALED} to be sealed"
            )
        if n_agents < min_sites:
            raise ValueError(
                f"min_sites={min_sites} exceeds the {n_agents} sites of the roster"
            )
        if on_dropout not in ("raise", "continue"):
            raise ValueError(
                f"on_dropout={on_dropout!r} should be 'raise' or 'continue'"
            )
        self.agent = agent
        self.number = credentials.number
        self.name = credentials.name_of(self.number)
        self.agreement: Agreement | None = None
        self._credentials = credentials
        self._neighbours = [int(one) for one in neighbours]
        self._protocol = protocol
        self._min_sites = min_sites
        self._holders = None if holders is None else frozenset(holders)
        self._on_dropout = on_dropout
        self._address = Address(
            credentials.run,
            protocol | SEALED,
            self.number,
            credentials.names,
            {kind: _KINDS.get(kind, "sealed") for kind in range(HELLO + 1)},
            self._neighbours,
        )
        self._members = tuple(range(n_agents))
        own = getattr(agent, "transcript", None)
        self._own_transcript = credentials.transcript() if own is None else None
        self._epochs: list[Links] = []
        # Hellos of neighbours that have heard of a departure before this agent has.
        self._early: dict[tuple[int, int], Envelope] = {}
        # What waits for keys, and what has been opened but not been taken.
        self._waiting: list[Envelope] = []
        self._opened: list[Envelope] = []
        # What others say that they have been told, where this agent has not been yet.
        self._said: list[tuple[int, Position, bytes]] = []
        self._statements: dict[int, Statement] = {}
        self._passed_on: dict[int, set[int]] = {}
        self._inner_finished = False

    @property
    def transcript(self) -> Transcript:
        """What the agent has been told."""
        if self._own_transcript is not None:
            return self._own_transcript
        return self.agent.transcript  # type: ignore[attr-defined]

    @property
    def finished(self) -> bool:
        """Whether all is over, the signatures included."""
        complete = self._statements.keys() >= set(self._members)
        return self._inner_finished and complete and not self._waiting

    def start(self) -> Step:
        """Begin: the first envelopes greet the neighbours.

        Returns
        -------
        Step

        Raises
        ------
        RuntimeError
            If it has begun before: what was sent then must not be sent again.
        """
        if self._epochs:
            raise RuntimeError(f"{self.name} has been started before")
        outbox = self._greet()
        return self._step(self.agent.start(), outbox)

    def advance(self, envelopes: list[Envelope]) -> Step:
        """Take envelopes and go on as far as they allow.

        Parameters
        ----------
        envelopes : list of Envelope
            Those of one sender in the order in which it sent them.

        Returns
        -------
        Step

        Raises
        ------
        ForgedMessageError
            If an envelope is not from whom it claims to be, or was changed.
        ReplayedMessageError
            If one is of another run, comes twice, or before another.
        FactsMismatchError
            If a neighbour has other public facts.
        TranscriptMismatchError
            If a neighbour has been told something else.
        CorruptedMessageError
            If an envelope is otherwise not what its sender must have sent.
        """
        # All are taken before one is refused: none of them comes again.
        refused = [error for error in map(self._refusal, envelopes) if error]
        if refused:
            raise refused[0]
        opened, self._opened = self._opened, []
        return self._step(self.agent.advance(opened), [])

    def depart(self, departure: Departure) -> Step:
        """Take note that others have left; sign the new member set, with new keys.

        Parameters
        ----------
        departure : Departure
            Who has left; all agents are told the same, in the same order.

        Returns
        -------
        Step

        Raises
        ------
        DropoutError
            If too few are left, the agent cannot go on without them, or
            ``on_dropout="raise"``.
        ValueError
            If departures are missing, or somebody has left who did not take part.
        """
        epoch = len(self._epochs)
        if departure.number != epoch:
            raise ValueError(
                f"{self.name}: told of departure {departure.number} after {epoch - 1}"
            )
        unknown = sorted(set(departure.agents) - set(self._members))
        if unknown or self.number in departure.agents:
            raise ValueError(
                f"{self.name}: told that agents {list(departure.agents)} have left; "
                f"{unknown or self.number} cannot have"
            )
        if self._on_dropout != "continue":
            gone = ", ".join(map(self._credentials.name_of, departure.agents))
            raise DropoutError(
                f"{self.name}: told that {gone} left, and does not go on without: "
                f"on_dropout={self._on_dropout!r}"
            )
        members = tuple(one for one in self._members if one not in departure.agents)
        self._check_members(members)
        self._members = members
        self._waiting, self._opened = [], []  # of an epoch that is void
        self._statements, self._passed_on = {}, {}
        step = self.agent.depart(departure)
        if self._own_transcript is not None:
            self._own_transcript.depart(members)
        outbox = self._greet()
        early = sorted(mark for mark in self._early if mark[0] == epoch)
        for mark in early:
            envelope = self._early.pop(mark)
            if envelope.sender in members:
                self._refusing(envelope.sender, self._take_hello, envelope)
        return self._step(step, outbox)

    def stop(self) -> None:
        """Be asked to end the fit: all agents do so in the same round, soon."""
        self.agent.stop()

    # Departures ----------------------------------------------------------------

    def _check_members(self, members: tuple[int, ...]) -> None:
        """Refuse to go on with too few for a sum to hide anything."""
        if len(members) < self._min_sites:
            raise DropoutError(
                f"{self.name}: {len(members)} sites are left, fewer than "
                f"min_sites={self._min_sites}"
            )
        holders = set(members)
        if self._holders is not None:
            holders &= self._holders
        if len(holders) < LEAST_HOLDERS:
            raise DropoutError(
                f"{self.name}: n_holders={len(holders)} sites that have samples are "
                f"left, at least {LEAST_HOLDERS} are needed"
            )

    # Links ---------------------------------------------------------------------

    def _greet(self) -> list[Envelope]:
        """Open an epoch: fresh keys, signed, for every neighbour that is left."""
        links = Links(
            self._credentials,
            self._protocol,
            len(self._epochs),
            self._members,
            self._correspondents,
        )
        self._epochs.append(links)
        hello = Hello.of(
            self._credentials, self._protocol, links.epoch, links.key, self._members
        ).to_bytes()
        return [
            self._address.seal(other, HELLO, 0, hello) for other in self._correspondents
        ]

    @property
    def _correspondents(self) -> list[int]:
        """The neighbours that are left."""
        return [other for other in self._neighbours if other in self._members]

    def _refusal(self, envelope: Envelope) -> Exception | None:
        """Take an envelope; return why it is refused, if it is."""
        try:
            self._take(envelope)
        except (CorruptedMessageError, RuntimeError) as error:
            return error
        return None

    def _take(self, envelope: Envelope) -> None:
        """Check an envelope at the door, and open it."""
        if envelope.run != self._credentials.run:
            raise ReplayedMessageError(
                f"{self.name}: refused from "
                f"{self._credentials.name_of(envelope.sender)}: an envelope of run "
                f"{envelope.run.hex()}, this is {self._credentials.run.hex()}",
                sender=envelope.sender,
            )
        self._address.admit([envelope])
        if not isinstance(envelope.body, bytes):
            envelope = envelope._replace(body=envelope.body.to_bytes())
        if envelope.sender not in self._members:
            return  # of those that have left nothing is taken any more
        take = self._take_hello if envelope.kind == HELLO else self._take_sealed
        self._refusing(envelope.sender, take, envelope)

    def _refusing(self, sender: int, take: Callable[..., None], *given: Any) -> None:
        """Have errors name both ends of the link."""
        try:
            take(*given)
        except CorruptedMessageError as error:
            text = str(error)
            if not text.startswith(self.name):
                name = self._credentials.name_of(sender)
                text = f"{self.name}: refused from {name}: {text}"
            raise type(error)(text, sender=sender) from error

    def _take_hello(self, envelope: Envelope) -> None:
        """Agree on keys with a neighbour that has the same facts and members."""
        sender = envelope.sender
        hello = Hello.from_bytes(envelope.body, len(self._credentials.roster))
        hello.verify(self._credentials, self._protocol, sender)
        if envelope.round:
            raise CorruptedMessageError(f"a hello of round {envelope.round}")
        difference = self._credentials.facts.difference(hello.facts)
        if difference is not None:
            raise FactsMismatchError(
                f"{self.name} and {self._credentials.name_of(sender)} do not have the "
                f"same public facts: {difference}",
                sender=sender,
            )
        if hello.epoch >= len(self._epochs):
            mark = hello.epoch, sender
            if mark in self._early or hello.epoch > len(self._credentials.roster):
                raise ReplayedMessageError(
                    f"a key for the link of epoch {hello.epoch}, this is "
                    f"{len(self._epochs) - 1}"
                )
            self._early[mark] = envelope
            return
        links = self._epochs[hello.epoch]
        if hello.members != links.members:
            differing = sorted(set(hello.members) ^ set(links.members))
            names = ", ".join(map(self._credentials.name_of, differing))
            raise TranscriptMismatchError(
                f"{self.name} and {self._credentials.name_of(sender)} have been told "
                f"of other members after departure {hello.epoch}: {names}",
                sender=sender,
            )
        links.connect(sender, hello.key)

    def _take_sealed(self, envelope: Envelope) -> None:
        """Open an envelope and note what its sender has been told."""
        sender, epoch = envelope.sender, epoch_of(envelope)
        if epoch >= len(self._epochs) or sender not in self._epochs[epoch]:
            raise ReplayedMessageError(
                f"a sealed envelope of epoch {epoch}, for which there are no keys yet"
            )
        content = self._epochs[epoch].open(envelope)
        if len(content) < _SAID.size:
            raise CorruptedMessageError("nothing under the seal")
        *position, digest = _SAID.unpack_from(content)
        self._said.append((sender, Position(*position), digest))
        self._compare()
        if epoch < len(self._epochs) - 1:
            return  # of an epoch that is void since
        payload = content[_SAID.size :]
        if envelope.kind == FINAL:
            self._take_statements(sender, statements_from_bytes(payload))
        else:
            self._opened.append(
                envelope._replace(protocol=self._protocol, body=payload)
            )

    def _step(self, step: Step, outbox: list[Envelope]) -> Step:
        """Seal what is to be sent, as far as there are keys."""
        self._compare()
        self._inner_finished = step.finished
        self._waiting += step.envelopes
        if self._inner_finished:
            self._sign()
            self._compare_statements()
        links, waiting = self._epochs[-1], self._waiting
        self._waiting = [one for one in waiting if one.receiver not in links]
        outbox += self._sealed(one for one in waiting if one.receiver in links)
        if self._inner_finished:
            outbox += self._sealed(self._signatures())
        if self.finished:
            self._end()
        return Step(outbox, step.report, self.finished)

    def _sealed(self, envelopes: Iterable[Envelope]) -> list[Envelope]:
        """Seal envelopes with what this agent has been told."""
        links, transcript = self._epochs[-1], self.transcript
        said = _SAID.pack(*transcript.position, transcript.digest())
        return [links.seal(envelope, said) for envelope in envelopes]

    # What has been told --------------------------------------------------------

    def _compare(self) -> None:
        """Refuse to go on with one that has been told something else."""
        if not self._said:
            return
        transcript = self.transcript
        later = []
        for sender, position, digest in self._said:
            if not transcript.reaches(position):
                later.append((sender, position, digest))
            elif transcript.digest(position) != digest:
                raise self._mismatch(sender, position)
        self._said = later

    def _mismatch(self, other: int, position: Position) -> TranscriptMismatchError:
        """Return the error that ends a run in which somebody lies."""
        return TranscriptMismatchError(
            f"{self.name} and {self._credentials.name_of(other)} have not been told "
            f"the same, up to {position.n_told} totals and {position.epoch} "
            "departures: somebody lies to one of them, and the run ends",
            sender=other,
        )

    def _sign(self) -> None:
        """Sign the digest of all that has been told, once it is final."""
        if self.number not in self._statements:
            transcript = self.transcript
            self._statements[self.number] = state(
                self._credentials, transcript.position, transcript.digest()
            )

    def _take_statements(self, sender: int, statements: dict[int, Statement]) -> None:
        """Take signatures of the end, each once."""
        epoch = len(self._epochs) - 1
        for number, statement in statements.items():
            if number not in self._members:
                raise CorruptedMessageError(
                    f"a final signature of {self._credentials.name_of(number)}, who "
                    "does not take part"
                )
            known = self._statements.get(number)
            if known is None:
                check(self._credentials, number, epoch, statement)
                self._statements[number] = statement
            elif known != statement:
                raise self._mismatch(number, self.transcript.position)
            self._passed_on.setdefault(sender, set()).add(number)

    def _compare_statements(self) -> None:
        """Refuse an end at which others have been told something else."""
        transcript = self.transcript
        position, digest = transcript.position, transcript.digest()
        for number, statement in self._statements.items():
            if (statement.n_told, statement.digest) != (position.n_told, digest):
                raise self._mismatch(number, position)

    def _signatures(self) -> list[Envelope]:
        """Return the signatures that neighbours do not have yet."""
        links, outbox = self._epochs[-1], []
        for other in self._correspondents:
            if other not in links:
                continue
            known = self._passed_on.setdefault(other, set())
            new = {k: one for k, one in self._statements.items() if k not in known}
            if new:
                known.update(new)
                outbox.append(
                    Envelope(
                        self._credentials.run,
                        self._protocol,
                        self.number,
                        other,
                        FINAL,
                        0,
                        statements_to_bytes(new),
                    )
                )
        return outbox

    def _end(self) -> None:
        """Keep what all have signed."""
        transcript = self.transcript
        self.agreement = Agreement(
            self._credentials.run,
            self._credentials.facts.shown,
            transcript.position,
            transcript.digest(),
            dict(sorted(self._statements.items())),
        )
