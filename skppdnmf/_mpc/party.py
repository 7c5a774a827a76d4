"""One site of a run at the parties: shares its samples, and computes if it is asked to.

All sites are joined by SPU's links under mutual TLS. Each tells the others, signed,
what it takes to be agreed upon and how many samples it has; whoever finds a difference,
or whose policy forbids the run, says so, and nobody shares anything. Then the samples
go in shares to the three that compute, and in the end the components to all.
"""

from __future__ import annotations

import json
import queue
import re
import struct
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._sealing.facts import Facts
from .._sealing.identity import SIGNATURE_BYTES, Identity, verify_signature
from .._version import __version__
from ..exceptions import CorruptedMessageError, DropoutError, FederationError
from .certificates import LinkFiles, write_certificates
from .engine import (
    Opened,
    account_of,
    factorised,
    inputs_of,
    make_programs,
    require_spu,
    runtime_config,
    shared,
)
from .job import MpcJob
from .ranges import check_ranges, check_result
from .settings import N_PARTIES, MpcSettings, penalties_of, side_by_side
from .solver import components_of

_CONNECT_MS = 200  # between attempts
_HELLO = b"skppdnmf mpc hello 1\0"
_GO, _TICK, _VALUE, _OVER = b"go", b"tick", b"value", b"over"
_LENGTH = struct.Struct(">I")
# Errors of SPU's links, and whom they were waiting for.
_WAITED = re.compile(r"key=[^,\s]*:(\d+)->(\d+)")


class Outcome(NamedTuple):
    """What a site has at the end.

    Parameters
    ----------
    components : ndarray of shape (K, F)
        The left factor, the same at all sites.
    n_samples : int
        Of all sites.
    opened : dict from str to int
        How many numbers were opened, by what they are.
    """

    components: Any
    n_samples: int
    opened: dict[str, int]


class Site:
    """One site of a run.

    Parameters
    ----------
    job : MpcJob
        As all have it.
    name : str
        Its own.
    identity : Identity
        Its own.
    roster : mapping from str to bytes
        Public keys of the sites of the job.
    X : ndarray of shape (n_i, F)
        Its samples; none if it only computes.
    features : list of str or None
        Names of the features.
    check : callable or None, default=None
        Called with the number of the others' samples; raises what the policy has
        against the run.
    tell : callable or None, default=None
        Called with the number of each finished iteration, where the site computes or is
        told of it.
    """

    def __init__(
        self,
        job: MpcJob,
        name: str,
        identity: Identity,
        roster: Mapping[str, bytes],
        X: Any,
        features: list[str] | None,
        check: Callable[[int], None] | None = None,
        tell: Callable[[int], None] | None = None,
    ) -> None:
        self._spu = require_spu()
        self._job = job
        self._names = list(job.sites)
        self._parties = list(job.parties)
        self._name = name
        self._rank = self._names.index(name)
        self._identity = identity
        self._roster = {site: roster[site] for site in self._names}
        self._X = np.asarray(X, dtype=np.float64)
        self._features = features
        self._check = check
        self._tell = tell
        self._opened: list[Opened] = []

    def run(self) -> Outcome:
        """Take part in the run.

        Returns
        -------
        Outcome

        Raises
        ------
        FederationError
            If a site has agreed to something else, or refuses.
        DropoutError
            If a site is lost.
        CorruptedMessageError
            If a message is not its sender's.
        OverflowError
            If a number may not fit, or what was opened lies outside of its bounds.
        """
        with tempfile.TemporaryDirectory() as folder:
            files = write_certificates(
                Path(folder), self._name, self._identity, self._roster
            )
            self._link = self._connected(files, self._names, computing=False)
            sizes = self._agreed()
            return self._computed(files, sizes)

    def _connected(self, files: LinkFiles, names: list[str], computing: bool) -> Any:
        """Return a link to others, when all have come."""
        libspu, job = self._spu.libspu, self._job
        description = libspu.link.Desc()
        description.id = f"{job.name} {'parties' if computing else 'sites'}"
        for name in names:
            description.add_party(name, job.port_of(name, computing))
        milliseconds = int(1000 * job.timeout)
        description.recv_timeout_ms = milliseconds
        description.http_timeout_ms = milliseconds
        description.connect_retry_interval_ms = _CONNECT_MS
        description.connect_retry_times = max(1, milliseconds // _CONNECT_MS)
        description.enable_ssl = True
        for options in (description.client_ssl_opts, description.server_ssl_opts):
            options.cert.certificate_path = str(files.certificate)
            options.cert.private_key_path = str(files.key)
            options.verify.verify_depth = 1
            options.verify.ca_file_path = str(files.roots)
        rank = names.index(self._name)
        try:
            return _within(
                job.timeout, lambda: libspu.link.create_brpc(description, rank)
            )
        except (RuntimeError, TimeoutError) as error:
            others = [name for name in names if name != self._name]
            raise DropoutError(
                f"{self._name}: no link to all of {others} within "
                f"timeout={job.timeout:g} s: {_first_line(error)}"
            ) from error

    def _send(self, name: str, data: bytes) -> None:
        """Send bytes to another site."""
        try:
            self._link.send_async(self._names.index(name), data)
        except RuntimeError as error:
            raise self._lost([name], error) from error

    def _received(self, name: str) -> bytes:
        """Receive bytes from another site."""
        try:
            return self._link.recv(self._names.index(name))
        except RuntimeError as error:
            raise self._lost([name], error) from error

    def _lost(self, names: list[str], error: Exception) -> DropoutError:
        """Return the error that names whom nothing was heard from."""
        return DropoutError(
            f"{self._name}: nothing heard from {' or '.join(map(repr, names))} within "
            f"timeout={self._job.timeout:g} s; it is lost, or waits for one that is: "
            f"{_first_line(error)}"
        )

    def _agreed(self) -> list[int]:
        """Compare what is agreed upon, and return the numbers of samples."""
        job, others = self._job, [name for name in self._names if name != self._name]
        facts = Facts(
            {
                "job": job,
                "version": __version__,
                "roster": {name: self._roster[name] for name in self._names},
                "n_features": self._X.shape[1],
                "features": self._features,
            }
        )
        hello = json.dumps(
            {"facts": facts.to_bytes().decode(), "n_samples": len(self._X)}
        ).encode()
        for name in others:
            self._send(name, self._signed(name, hello))
        sizes, differences = {self._name: len(self._X)}, []
        for name in others:
            told = json.loads(self._verified(name, self._received(name)))
            sizes[name] = int(told["n_samples"])
            difference = facts.difference(Facts.from_bytes(told["facts"].encode()))
            if difference is not None:
                differences.append(f"{name}: {difference}")
        refusal: Exception | None = None
        if differences:
            refusal = FederationError(
                f"{self._name} and others have not agreed upon the same: "
                f"{'; '.join(differences)}"
            )
        else:
            try:
                n_samples = sum(sizes.values())
                check_ranges(n_samples, self._X.shape[1], job.n_components)
                if self._check is not None:
                    self._check(n_samples - len(self._X))
            except Exception as error:
                refusal = error
        # No reason is given: it might tell something of the site.
        for name in others:
            self._send(name, self._signed(name, _GO if refusal is None else b"no"))
        refused = [
            name for name in others if self._verified(name, self._received(name)) != _GO
        ]
        if refusal is not None:
            self._link.stop_link()
            raise refusal
        if refused:
            self._link.stop_link()
            raise FederationError(
                f"{', '.join(refused)} refused the run; nothing has been shared"
            )
        return [sizes[name] for name in self._names]

    def _signed(self, receiver: str, message: bytes) -> bytes:
        """Return a message with a signature that is good for one receiver and run."""
        statement = self._statement(self._name, receiver, message)
        return self._identity.sign(statement) + message

    def _verified(self, sender: str, data: bytes) -> bytes:
        """Return a message that its sender has signed."""
        signature, message = data[:SIGNATURE_BYTES], data[SIGNATURE_BYTES:]
        statement = self._statement(sender, self._name, message)
        if not verify_signature(self._roster[sender], signature, statement):
            raise CorruptedMessageError(
                f"{self._name}: refused from {sender}: not signed by its identity",
                sender=self._names.index(sender),
            )
        return message

    def _statement(self, sender: str, receiver: str, message: bytes) -> bytes:
        """Return what is signed."""
        words = [self._job.name, sender, receiver]
        return _HELLO + json.dumps(words).encode() + b"\0" + message

    def _computed(self, files: LinkFiles, sizes: list[int]) -> Outcome:
        """Share the samples, compute, and open the components."""
        job = self._job
        F, K = self._X.shape[1], job.n_components
        holders = [name for name, size in zip(self._names, sizes, strict=True) if size]
        n_samples = sum(sizes)
        penalties = penalties_of(job.alpha_W, job.alpha_H, job.l1_ratio, n_samples, F)
        settings = MpcSettings(
            tuple(size for size in sizes if size),
            job.max_iter,
            side_by_side(job.max_iter),
            penalties,
            len(job.fixed_components or ()),
        )
        rng = np.random.RandomState(job.seed)
        starts = np.abs(rng.standard_normal((job.n_init, K, F)))
        if job.fixed_components is not None:
            starts[:, : settings.n_fixed] = job.fixed_components
        kept = self._share(holders)
        if self._name in self._parties:
            programs = make_programs(settings, starts)
            link = self._connected(files, self._parties, computing=True)
            machine = _Party(self, link, kept, holders)
            try:
                opened = factorised(machine, programs, settings, machine.told)
            except RuntimeError as error:
                found = _WAITED.search(str(error))
                names = [name for name in self._parties if name != self._name]
                if found is not None:
                    names = [self._parties[int(found[1])]]
                raise self._lost(names, error) from error
            machine.end()
            link.stop_link()
        else:
            opened = self._follow()
        self._link.stop_link()
        check_result(opened["left"])
        fixed = settings.fixed_of(starts)
        H = components_of(opened["left"][0], opened.get("scale"), n_samples * F, fixed)
        return Outcome(H, n_samples, account_of(self._opened))

    def _share(self, holders: list[str]) -> dict[str, list[Any]]:
        """Share the samples; return what was received, if this site computes."""
        own: list[Any] = []
        if self._name in holders:
            values = inputs_of(self._X)
            shares = [shared(value) for value in values]
            for rank, party in enumerate(self._parties):
                if party == self._name:
                    own = [value[rank] for value in shares]
                else:
                    for value in shares:
                        self._send(party, pack_share(value[rank]))
        if self._name not in self._parties:
            return {}
        return {
            name: own
            if name == self._name
            else [unpack_share(self._received(name)) for _ in range(2)]
            for name in holders
        }

    def opened(self, name: str, share: Any) -> Any:
        """Send a share of a value to all and put theirs together, where it computes."""
        data = _VALUE + name.encode() + b"\0" + pack_share(share)
        for site in self._names:
            if site != self._name:
                self._send(site, data)
        shares = [
            share if party == self._name else self._value(party, name)
            for party in self._parties
        ]
        return self._reconstructed(name, shares)

    def _value(self, party: str, name: str) -> Any:
        """Receive a share of a value; iterations are told of by the way."""
        while True:
            data = self._received(party)
            if data.startswith(_VALUE):
                found, _, packed = data[len(_VALUE) :].partition(b"\0")
                if found.decode() == name:
                    return unpack_share(packed)
            if not data.startswith(_TICK):
                raise CorruptedMessageError(
                    f"{self._name}: refused from {party}: {name} was due",
                    sender=self._names.index(party),
                )

    def _reconstructed(self, name: str, shares: list[Any]) -> Any:
        """Put a value together, and keep account of it."""
        io = self._spu.Io(N_PARTIES, runtime_config())
        value = io.reconstruct(shares)
        self._opened.append(Opened(name, int(np.size(value))))
        return value

    def _follow(self) -> dict[str, Any]:
        """Wait for what the parties open."""
        opened: dict[str, Any] = {}
        first, *rest = self._parties
        while True:
            data = self._received(first)
            if data == _OVER:
                return opened
            if data.startswith(_TICK):
                # Of all that compute, so that none is lost unnoticed.
                for party in rest:
                    if self._received(party) != data:
                        raise CorruptedMessageError(
                            f"{self._name}: {party} is not where {first} is",
                            sender=self._names.index(party),
                        )
                if self._tell is not None:
                    self._tell(int(data[len(_TICK) :]))
                continue
            name_bytes, _, packed = data[len(_VALUE) :].partition(b"\0")
            name = name_bytes.decode()
            shares = [unpack_share(packed)]
            shares += [self._value(party, name) for party in rest]
            opened[name] = self._reconstructed(name, shares)

    def tick(self, iteration: int) -> None:
        """Tell those that do not compute that an iteration is done."""
        for name in self._names:
            if name not in self._parties:
                self._send(name, _TICK + str(iteration).encode())
        if self._tell is not None:
            self._tell(iteration)

    def over(self) -> None:
        """Tell those that do not compute that the run is over."""
        if self._name == self._parties[0]:
            for name in self._names:
                if name not in self._parties:
                    self._send(name, _OVER)


class _Party:
    """Runs programs as one of three that compute."""

    def __init__(
        self, site: Site, link: Any, inputs: dict[str, list[Any]], holders: list[str]
    ) -> None:
        spu = require_spu()
        self._site = site
        self._rank = link.rank
        self._io = spu.Io(N_PARTIES, runtime_config())
        self._public = spu.libspu.Visibility.VIS_PUBLIC
        self._runtime = spu.Runtime(link, runtime_config())
        for i, name in enumerate(holders):
            samples, exponent = inputs[name]
            self._runtime.set_var(f"samples {i}", samples)
            self._runtime.set_var(f"exponent {i}", exponent)

    def run(self, program: Any) -> None:
        """Run a program with the others."""
        self._runtime.run(program)

    def give(self, name: str, value: Any) -> None:
        """Set a public value, which the others set as well."""
        shares = self._io.make_shares(np.asarray(value), self._public)
        self._runtime.set_var(name, shares[self._rank])

    def open(self, name: str) -> Any:
        """Open a value to all sites."""
        return self._site.opened(name, self._runtime.get_var(name))

    def told(self, iteration: int) -> bool:
        """Tell of an iteration; go on."""
        self._site.tick(iteration)
        return False

    def end(self) -> None:
        """Let the others know."""
        self._site.over()


def _within(seconds: float, function: Callable[[], Any]) -> Any:
    """Return what a function returns that may wait longer than it is allowed to.

    Attempts to connect that end in a refused handshake take as long as they like.
    """
    results: queue.Queue[tuple[Any, Exception | None]] = queue.Queue()

    def run() -> None:
        try:
            results.put((function(), None))
        except Exception as error:
            results.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        value, error = results.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError("some are not there, or have other keys") from None
    if error is not None:
        raise error
    return value


def pack_share(share: Any) -> bytes:
    """Serialise a share: its meta data and its chunks, each after its length."""
    pieces = [bytes(share.meta), *map(bytes, share.share_chunks)]
    return b"".join(_LENGTH.pack(len(piece)) + piece for piece in pieces)


def unpack_share(data: bytes) -> Any:
    """Read a share that `pack_share` has serialised.

    Raises
    ------
    CorruptedMessageError
        If the data are none.
    """
    pieces, place = [], 0
    while place < len(data):
        start = place + _LENGTH.size
        if start > len(data):
            break
        (length,) = _LENGTH.unpack_from(data, place)
        place = start + length
        pieces.append(data[start:place])
    if place != len(data) or not pieces:
        raise CorruptedMessageError(f"a share of {len(data)} bytes is truncated")
    share = require_spu().libspu.Share()
    share.meta, share.share_chunks = pieces[0], pieces[1:]
    return share


def _first_line(error: Exception) -> str:
    """Return what an error of SPU says, without its stack."""
    text = str(error).split("stacktrace", 1)[0]
    return " ".join(text.replace("what:", "").split())
