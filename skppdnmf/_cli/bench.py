"""`skppdnmf bench`: what the encrypted exchange costs on this machine."""

from __future__ import annotations

import os
import platform
import time
import warnings
from functools import partial
from typing import Any

import click
import numpy as np
import sklearn
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from .._estimator import PrivateDistributedNMF
from .._fit.cost import estimate_cost
from .._version import __version__
from .errors import compute
from .terminal import format_table

N_COMPONENTS = 10
N_AGENTS = 5
N_FEATURES = 64
KEY_SIZES = (2048, 3072)
MASKINGS = ("scalar", "entrywise")


@click.command()
@click.option("--quick", is_flag=True, help="Only 2048-bit keys, and shorter fits.")
def bench(quick: bool) -> None:
    """Time the encrypted exchange and a fit beside scikit-learn's NMF.

    Takes less than half a minute; ciphertexts are timed on one thread.
    """
    click.echo(
        f"skppdnmf {__version__}, scikit-learn {sklearn.__version__}, numpy "
        f"{np.__version__}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores"
    )
    click.echo()
    click.echo("Encrypted exchange, for each value and directed edge:")
    rows: list[tuple[str, ...]] = [("masking", "key bits", "ms", "bytes")]
    # Row by row: a calibration takes seconds, and its table should not wait.
    for key_size in KEY_SIZES[:1] if quick else KEY_SIZES:
        for masking in MASKINGS:
            milliseconds, n_bytes = compute(partial(cost, masking, key_size))
            rows.append(
                (masking, f"{key_size}", f"{milliseconds:.3f}", f"{n_bytes:.1f}")
            )
    click.echo(format_table(rows))
    click.echo()
    click.echo(
        f"A fit of load_digits() with {N_COMPONENTS} components and {N_AGENTS} agents:"
    )
    click.echo(format_table(compute(lambda: compare(20 if quick else 60))))


def cost(masking: str, key_size: int) -> tuple[float, float]:
    """Return what a value of the left factor costs on one directed edge.

    Parameters
    ----------
    masking : {"scalar", "entrywise"}
        As for the estimator.
    key_size : int
        Bits of the keys.

    Returns
    -------
    milliseconds : float
        Its share of encryption, answer and decryption, on one thread.
    n_bytes : float
        Its share of what is sent.
    """
    # A ring: each agent has two neighbours, for whom it encrypts once.
    estimator = PrivateDistributedNMF(
        N_COMPONENTS,
        partition=N_AGENTS,
        adjacency="ring",
        masking=masking,
        key_size=key_size,
        n_jobs=1,
        random_state=0,
    )
    with warnings.catch_warnings():
        # Nobody's data are at stake here.
        warnings.simplefilter("ignore")
        estimate = estimate_cost(estimator, N_FEATURES)
    values = estimate.exchanges * 2 * N_AGENTS * N_COMPONENTS * N_FEATURES
    return 1000 * estimate.seconds / values, estimate.bytes / values


def compare(max_iter: int) -> list[tuple[str, ...]]:
    """Return a table of fits of digits beside scikit-learn's.

    Parameters
    ----------
    max_iter : int
        Iterations of block coordinate descent.

    Returns
    -------
    list of tuple of str
        Rows.
    """
    X = load_digits().data
    shared: dict[str, Any] = {
        "n_components": N_COMPONENTS,
        "partition": N_AGENTS,
        "max_iter": max_iter,
        "tol": 0,
        "random_state": 0,
    }
    consensus = PrivateDistributedNMF(**shared, encryption="simulated")
    summed = PrivateDistributedNMF(**shared, protocol="secure-sum")
    pooled = NMF(N_COMPONENTS, init="random", max_iter=2000, random_state=0)
    rows: list[tuple[str, ...]] = [("", "seconds", "relative error")]
    for name, estimator in (
        ("consensus, simulated", consensus),
        ("secure sum", summed),
        ("pooled NMF", pooled),
    ):
        seconds = timed_fit(estimator, X)
        error = estimator.reconstruction_err_ / np.linalg.norm(X)
        rows.append((name, f"{seconds:.2f}", f"{error:.4f}"))
    return rows


def timed_fit(estimator: Any, X: Any) -> float:
    """Fit an estimator and return the seconds that it takes."""
    started = time.perf_counter()
    estimator.fit(X)
    return time.perf_counter() - started
