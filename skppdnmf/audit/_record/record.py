"""Records a fit: who saw what."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from sklearn.base import clone

from ..._estimator import PrivateDistributedNMF
from ..._fit.protocols import protocol_of
from ..._nmf.beta import beta_of
from ...exceptions import PrivacyWarning
from .._views.transcript import Label, Transcript
from .consensus import ConsensusRecorder
from .mpc import MpcRecorder
from .recorder import Recorder
from .secure_sum import SumRecorder

_RECORDERS: dict[str, Callable[[bool, Mapping[Label, int]], Recorder]] = {
    "consensus": lambda dither, dropouts: ConsensusRecorder(dither),
    "secure-sum": lambda dither, dropouts: SumRecorder(dropouts),
    "mpc": lambda dither, dropouts: MpcRecorder(),
}


def record(
    estimator: PrivateDistributedNMF,
    X: Any,
    agents: Any = None,
    *,
    dither: bool = True,
    dropouts: Mapping[Label, int] | None = None,
) -> Transcript:
    """Fit an estimator and note what every agent and every link saw.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        Is cloned, not changed. The agents of the clone run one after the other,
        which does not change the result.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or list
        Data, as for `PrivateDistributedNMF.fit`.
    agents : array-like of shape (n_samples,) or None, default=None
        Label of the agent that holds each sample.
    dither : bool, default=True
        False leaves the dither out of the answers, as the paper prints the protocol.
        For studying what the dither is good for; an estimator always adds it. Has no
        meaning under ``protocol="secure-sum"``.
    dropouts : dict from label to int or None, default=None
        Agents that are to drop out of a secure sum after so many iterations, to study
        what that tells of them. The estimator needs ``on_dropout="continue"``.

    Returns
    -------
    Transcript
        What everybody saw. Under ``encryption="simulated"`` it holds the same
        numbers as under ``"paillier"`` and ``"bfv"``, but no bytes on the links. Under
        ``protocol="secure-sum"`` each view has its `sums`, under ``"mpc"`` nothing but
        the agent's samples and the components.

    Raises
    ------
    TypeError
        If `estimator` is no `PrivateDistributedNMF`.
    ValueError
        If `encryption` is None under the consensus, which hides nothing that could be
        audited, or there is one agent only; if agents are to drop out that are none,
        or of another protocol; and as in `PrivateDistributedNMF.fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.audit import record
    >>> X = np.random.default_rng(0).exponential(size=(12, 6))
    >>> model = PrivateDistributedNMF(
    ...     2, partition=3, encryption="simulated", max_iter=2, tol=0, random_state=0
    ... )
    >>> record(model, X)
    Transcript(3 agents, ... exchanges, ... messages, encryption='simulated',
    masking='entrywise', dither=True)
    """
    check_estimator(estimator)
    model = clone(estimator).set_params(n_jobs=1)
    model._validate_params()
    if beta_of(model.beta_loss) != 2:
        raise ValueError(
            f"beta_loss={model.beta_loss!r}: the attacks know the totals of Frobenius "
            "fits only"
        )
    protocol = protocol_of(model)
    if dropouts and not (protocol.agrees and protocol.has_agents):
        raise ValueError(
            f"dropouts={dict(dropouts)!r}: agents drop out of a secure sum only, not "
            f"under protocol={protocol.name!r}"
        )
    recorder = _RECORDERS[protocol.name](dither, dropouts or {})
    with warnings.catch_warnings():
        # The audit says more than they do.
        warnings.simplefilter("ignore", PrivacyWarning)
        model._fit(X, None, agents, recorder)
    return recorder.transcript(model)


def check_estimator(estimator: Any) -> None:
    """Refuse what cannot be recorded."""
    if not isinstance(estimator, PrivateDistributedNMF):
        raise TypeError(
            f"expected a PrivateDistributedNMF, got a {type(estimator).__name__}"
        )
    if protocol_of(estimator).in_clear(estimator):
        raise ValueError(
            "encryption=None: neighbours read each other's left factors, there is "
            'nothing to audit; use encryption="simulated", "paillier" or "bfv"'
        )
