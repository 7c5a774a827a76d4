"""What a fit came to, for files and for people."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from .._fit.protocols import protocol_of
from .._text import format_bytes
from .._version import __version__

# More entries than this of a graph or a start are no reading matter.
_LONGEST_VALUE = 80


def summarise(estimator: Any, seconds: float) -> dict[str, Any]:
    """Return what a fit was and what it came to, as JSON has it.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        Fitted.
    seconds : float
        Duration of the fit.

    Returns
    -------
    dict
        ``version``, ``parameters`` and ``results``.
    """
    history = estimator.history_
    traffic = estimator.traffic_
    return {
        "version": __version__,
        "parameters": {k: plain(v) for k, v in estimator.get_params().items()},
        "results": {
            "agents": len(estimator.agent_labels_),
            "samples": int(estimator.sample_agents_.size),
            "features": int(estimator.n_features_in_),
            "components": int(estimator.n_components_),
            "iterations": int(estimator.n_iter_),
            "exchanges": int(estimator.n_exchanges_),
            "reconstruction error": float(estimator.reconstruction_err_),
            # Under protocol="mpc" only an observer of all data knows of an error.
            "relative error": float(
                history.get("observed_error", history["shared_error"])[-1]
            ),
            "consensus error": float(estimator.consensus_error_),
            "messages": int(traffic["messages"]),
            "ciphertexts": int(traffic["ciphertexts"]),
            "bytes": int(traffic["bytes"]),
            "seconds": seconds,
            # Under protocol="secure-sum" a fit may have gone on without some.
            "dropped agents": [plain(each) for each in estimator.dropped_agents_],
        },
    }


def plain(value: Any) -> Any:
    """Return a value as JSON has it: numbers and strings stay, others become text.

    Parameters
    ----------
    value : object
        A parameter's value or a label.

    Returns
    -------
    None, bool, int, float, str or list
        Lists for arrays and frames.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return str(value)


def what_is_not(estimator: Any) -> set[str]:
    """Return results that a fit under its protocol does not have.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        Fitted.

    Returns
    -------
    set of str
        Their names, as `summarise` has them.
    """
    protocol, names = protocol_of(estimator), set()
    if protocol.agrees:
        names.add("consensus error")
    if not protocol.encrypts(estimator) and not estimator.traffic_["ciphertexts"]:
        names.add("ciphertexts")
    return names


def history_columns(estimator: Any) -> dict[str, Any]:
    """Return the columns of a fit's history that say something.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        Fitted.

    Returns
    -------
    dict from str to ndarray
        Without those that are not known, and where all agents have one left factor
        without what is of their copies.
    """
    columns = dict(estimator.history_)
    if protocol_of(estimator).agrees:
        for name in ("local_error", "consensus_error"):
            columns.pop(name, None)
    return {name: each for name, each in columns.items() if not np.isnan(each).all()}


def summary_rows(
    results: dict[str, Any], without: Collection[str] = ()
) -> list[tuple[str, str]]:
    """Return the results of a fit as people read them.

    Parameters
    ----------
    results : dict
        From `summarise`.
    without : collection of str, default=()
        Names of results that are left out.

    Returns
    -------
    list of tuple of str
        Names and values.
    """
    rows = []
    for name, value in results.items():
        if name in without:
            continue
        if isinstance(value, list):
            if value:
                rows.append((name, ", ".join(map(str, value))))
        elif name == "bytes":
            rows.append(("sent", format_bytes(value)))
        elif name == "seconds":
            rows.append((name, f"{value:.1f}"))
        elif isinstance(value, float):
            rows.append((name, f"{value:.4g}"))
        else:
            rows.append((name, f"{value:,}"))
    return rows


def parameter_rows(parameters: dict[str, Any]) -> list[tuple[str, str]]:
    """Return parameters as they are written in code, long arrays by their length."""
    rows = []
    for name, value in parameters.items():
        text = repr(value)
        if len(text) > _LONGEST_VALUE and isinstance(value, list):
            text = f"{len(value)} rows or numbers, given in a file or an option"
        rows.append((name, text))
    return rows
