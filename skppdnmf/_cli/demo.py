"""`skppdnmf demo`: five agents factorise handwritten digits under real keys."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import click
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from .._estimator import PrivateDistributedNMF
from .._fit.protocols import protocol_of
from .._text import format_bytes
from .bench import timed_fit
from .demo_federation import federation
from .errors import compute
from .options import PARAMETERS
from .terminal import format_table, on_terminal

N_AGENTS = 5
# Few components and iterations, since each value of the left factor is paid for in
# ciphertexts; the second column shows where more iterations lead.
N_COMPONENTS = 5
FEW, MANY = 2, 60


@click.group(invoke_without_command=True)
@click.option(
    "--key-size",
    type=PARAMETERS["key_size"][0],
    default=2048,
    show_default=True,
    help=PARAMETERS["key_size"][1],
)
@click.option(
    "--max-iter",
    type=PARAMETERS["max_iter"][0],
    default=FEW,
    show_default=True,
    help="Iterations of the encrypted fit.",
)
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
@click.pass_context
def demo(ctx: click.Context, key_size: int, max_iter: int, quiet: bool) -> None:
    """Factorise handwritten digits that five agents hold, under real encryption.

    Beside the encrypted consensus, the same computation without ciphertexts and with
    more iterations, the secure sum, and scikit-learn's NMF of the pooled data.
    """
    if ctx.invoked_subcommand is not None:
        return
    X = load_digits().data
    shared: dict[str, Any] = {
        "n_components": N_COMPONENTS,
        "partition": N_AGENTS,
        "adjacency": "ring",
        "tol": 0,
        "random_state": 0,
    }
    encrypted = PrivateDistributedNMF(
        **shared,
        key_size=key_size,
        max_iter=max_iter,
        n_jobs=min(N_AGENTS, os.cpu_count() or 1),
        verbose=int(on_terminal() and not quiet),
    )
    simulated = PrivateDistributedNMF(**shared, encryption="simulated", max_iter=MANY)
    summed = PrivateDistributedNMF(**shared, protocol="secure-sum", max_iter=MANY)
    pooled = NMF(N_COMPONENTS, init="random", max_iter=2000, random_state=0)
    click.echo(
        f"{len(X)} images of 8 x 8 pixels, held by {N_AGENTS} agents on a ring; "
        f"{N_COMPONENTS} components"
    )
    fits = {
        "encrypted": encrypted,
        "simulated": simulated,
        "secure sum": summed,
        "pooled NMF": pooled,
    }
    seconds = [compute(partial(timed_fit, each, X)) for each in fits.values()]
    columns = [
        describe_fit(each, X, taken)
        for each, taken in zip(fits.values(), seconds, strict=True)
    ]
    rows = [("", *fits)]
    rows += [(name, *(column[name] for column in columns)) for name in columns[0]]
    click.echo(format_table(rows))


demo.add_command(federation)


def describe_fit(estimator: Any, X: Any, seconds: float) -> dict[str, str]:
    """Return what a fit came to, in words for a table.

    Parameters
    ----------
    estimator : PrivateDistributedNMF or sklearn.decomposition.NMF
        Fitted.
    X : ndarray
        The data.
    seconds : float
        Duration of the fit.

    Returns
    -------
    dict of str
        The same keys for both kinds.
    """
    is_private = isinstance(estimator, PrivateDistributedNMF)
    is_encrypted = is_private and protocol_of(estimator).encrypts(estimator)
    return {
        "relative error": f"{estimator.reconstruction_err_ / np.linalg.norm(X):.4f}",
        "consensus error": f"{estimator.consensus_error_:.4f}" if is_private else "-",
        "iterations": f"{estimator.n_iter_}",
        "exchanges": f"{estimator.n_exchanges_}" if is_private else "-",
        "key bits": f"{estimator.key_size}" if is_encrypted else "-",
        "ciphertexts": (
            f"{estimator.traffic_['ciphertexts']:,}" if is_encrypted else "-"
        ),
        "sent": (
            format_bytes(estimator.traffic_["bytes"])
            if is_private and protocol_of(estimator).protects(estimator)
            else "-"
        ),
        "seconds": f"{seconds:.1f}",
    }
