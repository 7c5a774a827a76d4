"""What a job says: parameters, never code, and nothing of anybody's data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .._agent import VERSION
from .._estimator import PrivateDistributedNMF
from .._fit.noise import check_privacy
from .._fit.protocols import protocol_of
from .._fit.uses import check_missing, check_uses
from .._paillier.keys import SECURE_KEY_SIZE
from .._site.policy import Job
from ..exceptions import ProtocolVersionError

# Of the calls between relay and sites, and of the envelopes in them.
PROTOCOL_VERSION = f"1.{VERSION}"
# What concerns the process that runs a fit, not the fit.
_OF_THE_PROCESS = ("n_jobs", "partition", "verbose")
# Starts that "auto" follows at most.
_MOST_STARTS = 8


@dataclass(frozen=True)
class JobSpec:
    """A job, as it is sent to all sites.

    Parameters
    ----------
    parameters : dict
        The estimator's, as JSON has them.
    dataset : str
        Name of the data set, by which each site knows its own.
    min_sites : int
        Fewest sites with which the run may go on.
    timeout : float
        Seconds that a site may take for one answer.
    return_components : bool
        Whether whoever submits it is to have the components.
    seeded_masks : bool
        Whether masks come from the seed, which all know: for rehearsals.
    resume : str or None
        Run whose last agreed left factor is the start.
    weighted : bool
        Whether samples have weights; they count as one where a site has none.
    missing : bool
        Whether entries may be missing.
    version : str
        Of the protocol.
    """

    parameters: dict[str, Any]
    dataset: str
    min_sites: int
    timeout: float
    return_components: bool = False
    seeded_masks: bool = False
    resume: str | None = None
    weighted: bool = False
    missing: bool = False
    version: str = PROTOCOL_VERSION

    def to_text(self) -> str:
        """Write it as JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> JobSpec:
        """Read a job, if it is of this version.

        Raises
        ------
        ProtocolVersionError
            If it is of another version, which is named.
        """
        read: Mapping[str, Any] = json.loads(text)
        version = read.get("version") if isinstance(read, dict) else None
        if version != PROTOCOL_VERSION:
            raise ProtocolVersionError(
                f"the job is of protocol version {version!r}, this site has "
                f"{PROTOCOL_VERSION!r}; upgrade skppdnmf where it is older"
            )
        return cls(**read)

    def estimator(self) -> PrivateDistributedNMF:
        """Return the estimator that it describes, its parameters checked.

        Raises
        ------
        ValueError
            If a parameter is unknown or invalid.
        """
        parameters = dict(self.parameters)
        for name in ("adjacency", "fixed_components", "init"):
            if isinstance(parameters.get(name), list):
                parameters[name] = np.array(parameters[name], dtype=np.float64)
        try:
            estimator = PrivateDistributedNMF(**parameters)
        except TypeError as error:
            raise ValueError(f"the job's parameters: {error}") from error
        estimator._validate_params()
        _check_protocol(estimator)
        check_privacy(estimator)
        check_uses(estimator, sample_weight=self.weighted or None)
        if self.missing:
            check_missing(estimator, "missing=True")
        if self.resume is not None and not protocol_of(estimator).agrees:
            raise ValueError(
                f"resume with protocol={estimator.protocol!r}: each site has a left "
                "factor of its own there, and none to start again from is agreed; use "
                '"secure-sum"'
            )
        return estimator

    def asked(self, n_sites: int) -> Job:
        """Return what a site's policy looks at."""
        estimator = self.estimator()
        n_components = estimator.n_components
        n_init = estimator.n_init
        protocol = protocol_of(estimator)
        # Of the ciphers Paillier alone has keys whose size is a parameter.
        short = (
            estimator.encryption == "paillier" and estimator.key_size < SECURE_KEY_SIZE
        )
        strong = protocol.encrypts(estimator) and not short
        return Job(
            protocol=estimator.protocol,
            n_sites=n_sites,
            n_components=0 if isinstance(n_components, str) else int(n_components),
            n_init=_MOST_STARTS if isinstance(n_init, str) else int(n_init),
            max_iter=int(estimator.max_iter),
            protected=(strong or protocol.agrees) and not self.seeded_masks,
        )


def parameters_of(estimator: PrivateDistributedNMF) -> dict[str, Any]:
    """Return an estimator's parameters as JSON has them.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        Not fitted; its random state an integer.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        If a parameter has no meaning among sites.
    """
    estimator._validate_params()
    _check_protocol(estimator)
    if estimator.n_components == "auto":
        raise ValueError(
            'n_components="auto" has no meaning among sites that allow a number of '
            "components; give the number"
        )
    parameters = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in _OF_THE_PROCESS
    }
    if parameters.pop("privacy_budget", None) is not None:
        raise ValueError(
            "privacy_budget is of one process; among sites each counts for itself"
        )
    return {name: _plain(name, value) for name, value in parameters.items()}


def _check_protocol(estimator: PrivateDistributedNMF) -> None:
    """Refuse a protocol without agents that a relay could carry envelopes for."""
    if not protocol_of(estimator).has_agents:
        raise ValueError(
            f"protocol={estimator.protocol!r} sends no envelopes, and cannot be run "
            'by FLARE; use "secure-sum" or "consensus"'
        )


def _plain(name: str, value: Any) -> Any:
    """Return a parameter as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, (list, tuple)):
        return np.asarray(value, dtype=np.float64).tolist()
    raise ValueError(
        f"{name} is a {type(value).__name__}, which a job cannot carry: give a number, "
        "a text or an array"
    )
