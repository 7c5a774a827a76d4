"""What a run leaves in a site's folder, and how it is read again."""

from __future__ import annotations

import io
import json
import os
import platform
import re
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._agent import Report
from .._data.graph import make_network
from .._estimator import PrivateDistributedNMF
from .._fit.history import HistoryRow, as_arrays, component_scales, mean_components
from .._fit.seeds import draw_seeds
from .._version import __version__
from .job import JobSpec

COMPONENTS = "components.npz"
RIGHT_FACTOR = "right_factor.npy"
CHECKPOINT = "checkpoint.npz"
AGREEMENT = "agreement.json"


class Results:
    """Collects what a site keeps of a run, and writes it.

    Parameters
    ----------
    folder : Path
        Of this run; it is made.
    spec : JobSpec
        The job.
    names : sequence of str or int
        Names of the features; numbers where they have none.
    sites : sequence of str
        All sites, in the order of their numbers.
    roster : Roster
        Their public keys.

    Attributes
    ----------
    n_exchanges, n_bytes : int
        Exchanges, and bytes sent by this site, so far.
    """

    def __init__(
        self,
        folder: Path,
        spec: JobSpec,
        names: Sequence[Any],
        sites: Sequence[str],
        roster: Any,
    ) -> None:
        folder.mkdir(parents=True, mode=0o700)
        self.folder = folder
        self.n_exchanges = self.n_bytes = 0
        self._spec = spec
        self._names = list(names)
        self._sites = list(sites)
        self._roster = roster
        self._rows: list[HistoryRow] = []
        self._H: NDArray[np.floating] | None = None
        self._scales: NDArray[np.floating] | None = None
        self._started = time.perf_counter()

    def count(self, n_bytes: int) -> None:
        """Count bytes that were sent."""
        self.n_bytes += n_bytes

    def note(self, report: Report, local_error: float, n_bytes: int) -> None:
        """Take an iteration: its left factor is on the disk when this returns."""
        self.n_bytes += n_bytes
        self.n_exchanges = report.n_exchanges
        before = report.H if self._H is None else self._H
        self._H = report.H
        seconds = time.perf_counter() - self._started
        self._rows.append(
            HistoryRow(
                report.n_exchanges,
                local_error,
                report.shared_error,
                0.0 if np.isfinite(report.shared_error) else np.nan,
                seconds,
                self.n_bytes,
            )
        )
        # Of two sites that are cut off one may be an iteration ahead, and no more: the
        # next sum needs all. With the one before they have one in common.
        checkpoint = {
            "components": report.H,
            "before": before,
            "iteration": np.array(len(self._rows)),
        }
        _replace(self.folder / CHECKPOINT, _npz(checkpoint))

    def write(self, X: Any, agreement: Any) -> None:
        """Write components, the site's own right factor, and what all have signed.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_i, n_features)
            The site's samples.
        agreement : Agreement or None
            Of the run.
        """
        assert self._H is not None
        self._scales = component_scales(self._H, self._spec.parameters["normalize"])
        self._H = (self._H / self._scales[:, None]).astype(X.dtype, copy=False)
        _replace(self.folder / COMPONENTS, self.components_bytes())
        model = load(self.folder)
        _replace(self.folder / RIGHT_FACTOR, _npy(model._solve(X)))
        if agreement is not None:
            _replace(self.folder / AGREEMENT, agreement.to_json().encode())

    def components_bytes(self) -> bytes:
        """Return the components, the history and the public facts, as .npz."""
        named = all(isinstance(name, str) for name in self._names)
        facts = {
            "job": json.loads(self._spec.to_text()),
            "sites": self._sites,
            "roster": self._roster.to_text(),
            "versions": {
                "skppdnmf": __version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
        }
        history = as_arrays(self._rows)
        # What a site alone knows stays with it.
        history.pop("local_error")
        return _npz(
            {
                "components": self._H,
                "component_scales": self._scales,
                "feature_names": np.array(self._names if named else [], dtype=str),
                "facts": np.array(json.dumps(facts)),
                **{f"history_{name}": column for name, column in history.items()},
            }
        )


def load(path: str | os.PathLike[str]) -> PrivateDistributedNMF:
    """Read what a run has left: a fitted estimator.

    Parameters
    ----------
    path : path-like
        A ``components.npz``, or the folder of a run that holds one.

    Returns
    -------
    PrivateDistributedNMF
        `transform`, `inverse_transform`, `score` and the displays work; nothing in it
        is of any site's samples. ``history_`` has the error of all samples where the
        protocol tells it, else nan.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is another file.

    Examples
    --------
    >>> from skppdnmf.flare import load
    >>> try:
    ...     load("no such folder")
    ... except FileNotFoundError:
    ...     print("no results")
    no results
    """
    path = Path(path)
    path = path / COMPONENTS if path.is_dir() else path
    with path.open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                read = {name: archive[name] for name in archive.files}
            components = read["components"]
            facts = json.loads(str(read["facts"]))
            spec = JobSpec(**facts["job"])
        except (KeyError, TypeError, OSError, ValueError) as error:
            raise ValueError(f"{path}: holds no results of a run: {error}") from error
    model = spec.estimator()
    sites = facts["sites"]
    history = {
        name.removeprefix("history_"): column
        for name, column in read.items()
        if name.startswith("history_")
    }
    history["local_error"] = np.full(len(history["exchanges"]), np.nan)
    network = make_network(
        model.adjacency, len(sites), draw_seeds(model.random_state).graph
    )
    model.components_ = components
    model.component_scales_ = read["component_scales"]
    model.n_components_, model.n_features_in_ = components.shape
    if read["feature_names"].size:
        model.feature_names_in_ = read["feature_names"].astype(object)
    model.history_ = {
        name: history[name] for name in HistoryRow._fields if name in history
    }
    model.n_iter_ = len(history["exchanges"])
    model.n_exchanges_ = int(history["exchanges"][-1])
    model.consensus_error_ = float(history["consensus_error"][-1])
    model.agent_labels_ = list(sites)
    model.adjacency_ = network.adjacency.copy()
    model.reconstruction_err_ = np.nan
    return model


def last_iteration(results: Path, run: str) -> int:
    """Return how many iterations of a run a site has the left factor of.

    Parameters
    ----------
    results : Path
        Where the site keeps its runs.
    run : str
        Hexadecimal digits that name the run.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If the run has left none here.
    """
    return int(_checkpoint(results, run)["iteration"])


def read_checkpoint(
    results: Path, run: str, iteration: int | None = None
) -> NDArray[np.floating]:
    """Return the left factor that was agreed in an iteration of a run.

    Parameters
    ----------
    results : Path
        Where the site keeps its runs.
    run : str
        Hexadecimal digits that name the run.
    iteration : int or None, default=None
        The last that the site has, or the one before; None for the last.

    Returns
    -------
    ndarray of shape (K, n_features)

    Raises
    ------
    ValueError
        If the run has left none here.
    """
    read = _checkpoint(results, run)
    last = int(read["iteration"])
    if iteration in (None, last):
        return read["components"]
    if iteration == last - 1 and last > 1:
        return read["before"]
    raise ValueError(
        f"resume={run!r}: iteration {iteration} is not among what is kept of that run "
        f"here, which ends with iteration {last}; a site that is behind takes the "
        f"{CHECKPOINT} of another"
    )


def _checkpoint(results: Path, run: str) -> dict[str, NDArray[Any]]:
    """Return what a run has left here to start again from."""
    file = results / run / CHECKPOINT
    if not re.fullmatch(r"[0-9a-f]{32}", run) or not file.is_file():
        raise ValueError(f"resume={run!r}: that run has left no checkpoint here")
    with np.load(file, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _npy(array: Any) -> bytes:
    """Return an array as .npy."""
    file = io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=False)
    return file.getvalue()


def _npz(arrays: dict[str, Any]) -> bytes:
    """Return arrays as .npz."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _replace(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, as a whole or not at all."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    new.replace(path)


def mean_of(files: Sequence[bytes]) -> bytes:
    """Return results with the mean of the sites' components.

    Parameters
    ----------
    files : sequence of bytes
        What each site's `Results.components_bytes` returned.

    Returns
    -------
    bytes
        An .npz file; under a protocol whose copies cannot differ it is any site's.
    """
    archives = []
    for data in files:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            archives.append({name: archive[name] for name in archive.files})
    first = archives[0]
    copies = [archive["components"] for archive in archives]
    return _npz({**first, "components": mean_components(copies)})
