"""The protocols by name: the one place where `protocol` is looked at."""

from __future__ import annotations

from typing import Any

from .._consensus.protocol import Consensus
from .._mpc.protocol import MpcProtocol
from .._protocol import FitProtocol
from .._secure_sum.protocol import SecureSumProtocol

_ALL: tuple[FitProtocol, ...] = (Consensus(), SecureSumProtocol(), MpcProtocol())
PROTOCOLS = {protocol.name: protocol for protocol in _ALL}


def protocol_of(estimator: Any) -> FitProtocol:
    """Return the protocol that an estimator names.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters, validated.

    Returns
    -------
    FitProtocol

    Examples
    --------
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf._fit.protocols import protocol_of
    >>> protocol_of(PrivateDistributedNMF(protocol="secure-sum")).agrees
    True
    """
    return PROTOCOLS[estimator.protocol]
