"""A site's part in a run: its policy first, then its data, then its agent.

It does not know how calls reach it; `skppdnmf.flare.site` is where FLARE does.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .._agent import RUN_ID_BYTES, Address, Departure, Envelope, Report, Step
from .._data.checks import check_fixed, check_start, validate_samples
from .._data.graph import make_network
from .._data.weights import WeightedSamples, check_weights
from .._federation.features import FEATURES, FeatureAgent
from .._fit.facts import public_facts
from .._fit.protocols import protocol_of
from .._fit.run import reference_size
from .._fit.seeds import common_start, draw_seeds
from .._fit.uses import check_positive, missing_entries
from .._nmf.threads import single_threaded
from .._protocol import Hooks, Setting
from .._sealing.agent import SealedAgent
from .._sealing.credentials import Credentials
from .._sealing.identity import Identity, Roster, write_public
from .._site.folder import SiteFolder
from .._site.log import SiteLog
from .._site.samples import read_samples
from ..exceptions import (
    AgentLost,
    CorruptedMessageError,
    DropoutError,
    FactsMismatchError,
    FederationError,
    PolicyError,
    RelayLostError,
    TranscriptMismatchError,
)
from .frames import Answer, Failure, join, split
from .job import JobSpec
from .results import Results, last_iteration, read_checkpoint

# Whose messages say nothing of anybody's data.
_PUBLIC = (
    AgentLost,
    CorruptedMessageError,
    DropoutError,
    FactsMismatchError,
    FederationError,
    TranscriptMismatchError,
)


class SiteParty:
    """One site of one run.

    Parameters
    ----------
    folder : SiteFolder
        The site's own.
    job : str
        The job, as `JobSpec.to_text` writes it.
    passphrase : str or None, default=None
        Of the identity.

    Attributes
    ----------
    ended : str or None
        How the run has ended here; None as long as it goes on.
    """

    def __init__(
        self, folder: SiteFolder, job: str, passphrase: str | None = None
    ) -> None:
        self.folder = folder
        self.ended: str | None = None
        self._text = job
        self._passphrase = passphrase
        self._heard = time.monotonic()
        self._lock = threading.Lock()
        self._agent: Any = None
        self._report: Report | None = None
        self._members: list[int] = []
        self._checked = False
        self._log = SiteLog(folder.log, site=folder.name)

    # Calls ---------------------------------------------------------------------

    def offer(self, order: bytes) -> bytes:
        """Say whether the job is allowed; nothing is read for it but the policy.

        Parameters
        ----------
        order : bytes
            JSON with ``run`` (32 hexadecimal digits) and ``sites``, in the order of
            their numbers.

        Returns
        -------
        bytes
            An `Answer`.
        """
        return self._guard(lambda: self._offer(json.loads(order)))

    def prepare(self, order: bytes = b"{}") -> bytes:
        """Read the data and build the agent.

        Parameters
        ----------
        order : bytes
            JSON with ``iteration``, from which a run that has died starts again.

        Returns
        -------
        bytes
            An `Answer`.
        """
        return self._guard(lambda: self._prepare(json.loads(order).get("iteration")))

    def start(self) -> bytes:
        """Let the agent begin."""
        return self._guard(lambda: self._stepped(self._agent.start()))

    def advance(self, mail: bytes) -> bytes:
        """Hand envelopes to the agent."""

        def go_on() -> Answer:
            envelopes = [Envelope.from_bytes(one) for one in split(mail)]
            return self._stepped(self._agent.advance(envelopes))

        return self._guard(go_on)

    def depart(self, order: bytes) -> bytes:
        """Tell the agent who has left."""

        def go_on() -> Answer:
            read = json.loads(order)
            gone = tuple(int(one) for one in read["agents"])
            self._members = [one for one in self._members if one not in gone]
            self._log.note(
                "departed",
                run=self.run.hex(),
                sites=[self.sites[one] for one in gone],
                members=[self.sites[one] for one in self._members],
            )
            return self._stepped(self._agent.depart(Departure(read["number"], gone)))

        return self._guard(go_on)

    def finish(self, order: bytes) -> bytes:
        """Be told how the run has ended.

        Parameters
        ----------
        order : bytes
            JSON with ``error``, None or what ended the run before its time.

        Returns
        -------
        bytes
            The components, as `Results.components_bytes` writes them, if the job
            returns them, which the policy has allowed, and the run was finished here;
            else nothing.
        """
        error = json.loads(order)["error"]
        with self._lock:
            return self._finish(None if error is None else str(error)[:2000])

    # What they do ---------------------------------------------------------------

    def _guard(self, task: Callable[[], Answer]) -> bytes:
        """Run a call; what goes wrong is noted here, and told as far as it may be."""
        with self._lock:
            self._heard = time.monotonic()
            if self.ended is not None:
                failure = Failure("FederationError", self.ended, None)
                return Answer([], failure=failure).to_bytes()
            try:
                with single_threaded():
                    answer = task()
            except Exception as error:
                answer = Answer([], failure=self._failed(error))
            self._heard = time.monotonic()
            return answer.to_bytes()

    def _failed(self, error: Exception) -> Failure:
        """Note an error in full and return what others may know of it."""
        name = type(error).__name__
        self._end(f"{name}: {error}")
        if isinstance(error, _PUBLIC):
            text = str(error)
        else:
            text = f"{self.folder.name} cannot go on; its own log says why"
        sender = getattr(error, "sender", None)
        return Failure(name, text, sender)

    def _offer(self, order: dict[str, Any]) -> Answer:
        """Check the job against the policy."""
        self.spec = JobSpec.from_text(self._text)
        self.run = bytes.fromhex(order["run"])
        self.sites = [str(name) for name in order["sites"]]
        self._log = SiteLog(
            self.folder.log,
            site=self.folder.name,
            run=self.run.hex(),
            dataset=self.spec.dataset,
            protocol=self.spec.parameters.get("protocol"),
        )
        if len(self.run) != RUN_ID_BYTES:
            raise FederationError(f"a run named by {len(self.run)} bytes")
        self._log.note("asked", sites=self.sites)
        policy = self.folder.policy
        asked = self.spec.asked(len(self.sites))
        try:
            policy.check(asked)
            if self.spec.min_sites < policy.min_sites:
                raise PolicyError(
                    f"min_sites={policy.min_sites}: the job goes on with "
                    f"min_sites={self.spec.min_sites}"
                )
            if self.spec.return_components and not policy.components_to_submitter:
                raise PolicyError(
                    "components_to_submitter=false: the job returns the components"
                )
        except PolicyError as error:
            raise PolicyError(f"{self.folder.name} refuses the job: {error}") from error
        if self.folder.name not in self.sites:
            raise FederationError(
                f"{self.folder.name} is not among the sites of the run"
            )
        self.number = self.sites.index(self.folder.name)
        others = [one for one in self.sites if one != self.folder.name]
        strangers = [one for one in others if one not in self.folder.roster]
        if strangers or len(set(self.sites)) < len(self.sites):
            raise FederationError(
                f"{self.folder.name} has no key of {', '.join(strangers) or 'all'} in "
                "its roster: skppdnmf site trust NAME KEY"
            )
        if self.spec.dataset not in self.folder.datasets:
            raise FederationError(
                f"{self.folder.name} has no data set {self.spec.dataset!r}"
            )
        held = self.folder.datasets[self.spec.dataset]
        if held.sample_weight is not None and not self.spec.weighted:
            raise FederationError(
                f"{self.folder.name} has weights for {self.spec.dataset!r}, and the "
                "job asks for none"
            )
        results = self.folder.results / self.run.hex()
        if results.exists():
            raise FederationError(f"run {self.run.hex()} has been here before")
        self._members = list(range(len(self.sites)))
        if self.spec.resume is None:
            return Answer([])
        try:
            iteration = last_iteration(self.folder.results, self.spec.resume)
        except ValueError as error:
            raise FederationError(f"{self.folder.name}: {error}") from error
        return Answer([], iteration)

    def _prepare(self, iteration: int | None) -> Answer:
        """Read the data, and build the agent behind its seals."""
        spec, folder = self.spec, self.folder
        self._identity = Identity.load(folder.identity, self._passphrase)
        given, weights = read_samples(folder, spec.dataset)
        estimator = spec.estimator()
        X = validate_samples(estimator, given, reset=True)
        if missing_entries(estimator, X) and not spec.missing:
            raise FederationError("entries are missing, and the job takes none such")
        check_positive(estimator, X)
        self._names = list(getattr(estimator, "feature_names_in_", range(X.shape[1])))
        self._X = X
        if spec.weighted:
            given = np.ones(X.shape[0]) if weights is None else weights
            weights = check_weights(given, X)
            # Samples of no weight are as good as absent, to the policies as well.
            X, weights = X[weights > 0], weights[weights > 0]
        self._rows = X.shape[0]
        if spec.resume is not None:
            # Whatever the relay says: all sign what they start from.
            try:
                agreed = read_checkpoint(folder.results, spec.resume, iteration)
            except ValueError as error:
                raise FederationError(f"{folder.name}: {error}") from error
            estimator.set_params(init=agreed)
        init = estimator.init
        K, init = check_start(
            estimator.n_components, init, X.shape[1], type(estimator).__name__
        )
        seeds = draw_seeds(estimator.random_state)
        if not spec.seeded_masks:
            seeds = seeds._replace(masks=None)
        network = make_network(estimator.adjacency, len(self.sites), seeds.graph)
        protocol = protocol_of(estimator)
        start = common_start(
            init, K, X.shape[1], seeds.start, protocol.start_scaling(estimator)
        )
        fixed = check_fixed(
            estimator.fixed_components, K, X.shape[1], type(estimator).__name__
        )
        if fixed is not None:
            start = np.concatenate([fixed, start[len(fixed) :]])
        setting = Setting(estimator, network, start, seeds, spec.weighted, spec.missing)
        plan = protocol.plan(setting)
        self._size = reference_size(setting, X, weights)
        neighbours = network.neighbours[self.number].tolist()
        keys = {**folder.roster, folder.name: write_public(self._identity.public)}
        roster = Roster({name: keys[name] for name in self.sites})
        of_the_job = json.loads(spec.to_text())
        del of_the_job["parameters"]
        facts = public_facts(
            setting,
            protocol,
            plan,
            **{f"job {name}": value for name, value in of_the_job.items()},
        )
        # Features are compared by name, and the first that differs is named.
        del facts["n_features"]
        if isinstance(init, str):  # it follows from the seed and the features
            del facts["starts"]
        credentials = Credentials(self._identity, roster, self.run, facts)
        hooks = Hooks(observed=False, credentials=lambda number: credentials)
        part = X if weights is None else WeightedSamples(X, weights)
        inner = plan.build_one(self.number, part, self.sites, self.run, hooks)
        self._inner: Any = inner
        address = Address(
            self.run,
            protocol.code,
            self.number,
            self.sites,
            {FEATURES: "features"},
            neighbours,
        )
        named = folder.policy.share_feature_names
        self._agent = SealedAgent(
            FeatureAgent(inner, self._names, X.dtype, address, neighbours, named),
            credentials,
            neighbours,
            protocol.code,
            min_sites=max(spec.min_sites, folder.policy.min_sites),
            on_dropout=estimator.on_dropout,
        )
        self._K = K
        self.results = Results(
            folder.results / self.run.hex(), spec, self._names, self.sites, roster
        )
        self._log.note("begun", rows=self._rows, K=K)
        return Answer([])

    def _stepped(self, step: Step) -> Answer:
        """Look after an agent's step: policy, checkpoint, traffic."""
        self._check_samples()
        report = step.report
        if report is not None:
            self._report = report
            error = self._relative_error(report)
            n_bytes = sum(envelope.n_bytes for envelope in step.envelopes)
            self.results.note(report, error, n_bytes)
        else:
            self.results.count(sum(envelope.n_bytes for envelope in step.envelopes))
        told = report.shared_error if report and self.spec.return_components else None
        return Answer(
            [join([envelope]) for envelope in step.envelopes],
            0 if report is None else report.iteration,
            0 if report is None else report.n_exchanges,
            math.nan if told is None else told,
            step.finished,
        )

    def _check_samples(self) -> None:
        """Apply the rule on the others' samples as soon as their number is known."""
        n_samples = getattr(self._inner, "n_samples", 0)
        if self._checked or not n_samples:
            return
        self._checked = True
        try:
            self.folder.policy.check_samples(n_samples - self._rows, self._K)
        except PolicyError as error:
            raise PolicyError(
                f"{self.folder.name} goes on no further: {error}"
            ) from error

    def _relative_error(self, report: Report) -> float:
        """Relative error of the site's own samples."""
        if not self._size:
            return 0.0
        return math.sqrt(max(0.0, report.squared_error) / self._size)

    def _finish(self, error: str | None) -> bytes:
        """Write the results, if there are any, and end."""
        if self.ended is not None:
            return b""
        if error is not None or not getattr(self._agent, "finished", False):
            self._end(error or "the relay ended the run before it was finished")
            return b""
        try:
            self.results.write(self._X, self._agent.agreement)
        except Exception as failure:
            self._end(f"{type(failure).__name__}: {failure}")
            return b""
        self._end(None)
        return self.results.components_bytes() if self.spec.return_components else b""

    def _end(self, error: str | None) -> None:
        """Note how the run has ended, once."""
        if self.ended is not None:
            return
        self.ended = "finished" if error is None else error
        facts: dict[str, Any] = {"error": error}
        results = getattr(self, "results", None)
        if results is not None:
            facts["exchanges"] = results.n_exchanges
            facts["bytes"] = results.n_bytes
            facts["rows"] = self._rows
            facts["K"] = self._K
        facts["members"] = [self.sites[one] for one in self._members]
        self._log.note("finished" if error is None else "failed", **facts)
        self._agent = self._inner = self._X = None

    # Nobody calls ---------------------------------------------------------------

    def watch(self, seconds: float) -> bool:
        """End the run if no call has come for so long; return whether it has ended.

        Parameters
        ----------
        seconds : float
            How long a relay may be silent.

        Returns
        -------
        bool
            Whether the run has ended here, for this or for any other reason.
        """
        if self.ended is not None:
            return True
        if not self._lock.acquire(blocking=False):
            return False  # a call is being answered
        try:
            silent = time.monotonic() - self._heard
            if silent > seconds:
                error = RelayLostError(
                    f"{self.folder.name} has heard nothing of the relay for "
                    f"{silent:.0f} s"
                )
                self._end(f"{type(error).__name__}: {error}")
        finally:
            self._lock.release()
        return self.ended is not None

    def cut_off(self, reason: str) -> None:
        """End the run where no relay will, unless it has ended.

        Parameters
        ----------
        reason : str
            Why there is no relay any more.
        """
        with self._lock:
            self._end(f"{RelayLostError.__name__}: {self.folder.name}: {reason}")
