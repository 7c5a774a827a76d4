"""A run at the parties, as all of them have agreed upon it: one file for all."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from .._files.errors import CommandError, describe
from .settings import N_PARTIES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_PORTS = range(1, 65535)  # the next one is used as well


@dataclass(frozen=True)
class MpcJob:
    """What is run, and where; the same at all sites.

    Parameters
    ----------
    name : str
        Of the run; results go into a folder of this name.
    dataset : str
        What the sites call their samples.
    sites : dict from str to str
        Address of each site, ``host:port``. The three that compute use the next port
        as well.
    parties : tuple of str
        The three sites that compute, of whom no two collude.
    n_components, n_init, max_iter : int
        As for `PrivateDistributedNMF`.
    seed : int
        Public seed of the starts.
    alpha_W, alpha_H, l1_ratio : float
        As for `PrivateDistributedNMF`.
    fixed_components : list of list of float or None
        As for `PrivateDistributedNMF`; not with penalties.
    timeout : float
        Seconds after which a site that has said nothing is taken for lost.
    """

    name: str
    dataset: str
    sites: dict[str, str]
    parties: tuple[str, ...]
    n_components: int
    n_init: int = 1
    max_iter: int = 60
    seed: int = 0
    alpha_W: float = 0.0  # noqa: N815 - the estimator's names
    alpha_H: float | str = "same"  # noqa: N815
    l1_ratio: float = 0.0
    fixed_components: list[list[float]] | None = None
    timeout: float = 60.0

    def port_of(self, site: str, computing: bool = False) -> str:
        """Return where a site is reached, by all or by those that compute."""
        host, port = self.sites[site].rsplit(":", 1)
        return f"{host}:{int(port) + computing}"


def read_job(path: Path) -> MpcJob:
    r"""Read a job; every key is known, or is refused by name.

    Parameters
    ----------
    path : Path
        A TOML file.

    Returns
    -------
    MpcJob

    Raises
    ------
    CommandError
        If it cannot be read, or a key is unknown, missing or of a wrong value.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skppdnmf._mpc.job import read_job
    >>> text = '''
    ... name = "first"
    ... dataset = "cohort"
    ... n_components = 4
    ... parties = ["a", "b", "c"]
    ... [sites]
    ... a = "10.0.0.1:9300"
    ... b = "10.0.0.2:9300"
    ... c = "10.0.0.3:9300"
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "job.toml"
    ...     _ = file.write_text(text)
    ...     job = read_job(file)
    >>> job.max_iter, job.port_of("b"), job.port_of("b", computing=True)
    (60, '10.0.0.2:9300', '10.0.0.2:9301')
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CommandError(f"{path}: cannot be read: {describe(error)}") from error
    known = {one.name: one for one in fields(MpcJob)}
    unknown = [key for key in given if key not in known]
    if unknown:
        raise CommandError(
            f"{path}: unknown key {unknown[0]!r}; known are {', '.join(known)}"
        )
    required = ("name", "dataset", "sites", "parties", "n_components")
    absent = [key for key in required if key not in given]
    if absent:
        raise CommandError(f"{path}: there is no {absent[0]}")
    for key, value in given.items():
        if not _CHECKS[key](value):
            raise CommandError(f"{path}: {key} should be {_WANTED[key]}, not {value!r}")
    sites, parties = given["sites"], given["parties"]
    strangers = [name for name in parties if name not in sites]
    if strangers or len(set(parties)) != N_PARTIES:
        raise CommandError(
            f"{path}: parties={parties!r} should be {N_PARTIES} different sites of "
            f"{list(sites)}"
        )
    if "fixed_components" in given and (
        given.get("alpha_W") or given.get("alpha_H", "same") not in ("same", 0)
    ):
        raise CommandError(
            f"{path}: fixed_components do not go with alpha_W and alpha_H: beside "
            "known components penalties depend on the scale of the data, which stays "
            "secret"
        )
    return MpcJob(**{**given, "parties": tuple(parties)})


def _is_text(value: Any) -> bool:
    """Whether a value is a name that can be one of a folder."""
    return isinstance(value, str) and bool(value.strip()) and "/" not in value


def _is_count(value: Any) -> bool:
    """Whether a value is an integer of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_number(value: Any) -> bool:
    """Whether a value is a number of at least 0."""
    return (
        isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
    )


def _is_address(value: Any) -> bool:
    """Whether a value is a host and a port."""
    if not isinstance(value, str):
        return False
    host, _, port = value.rpartition(":")
    return bool(host) and port.isdigit() and int(port) in _PORTS


_TEXT, _COUNT, _NUMBER = "a name", "an integer of at least 1", "a number of at least 0"
_CHECKS: dict[str, Any] = {
    "name": _is_text,
    "dataset": _is_text,
    "sites": lambda value: (
        isinstance(value, dict)
        and len(value) >= N_PARTIES
        and all(map(_is_address, value.values()))
    ),
    "parties": lambda value: isinstance(value, list) and all(map(_is_text, value)),
    "n_components": _is_count,
    "n_init": _is_count,
    "max_iter": _is_count,
    "seed": lambda value: _is_count(value) or value == 0,
    "alpha_W": _is_number,
    "alpha_H": lambda value: value == "same" or _is_number(value),
    "l1_ratio": lambda value: _is_number(value) and value <= 1,
    "fixed_components": lambda value: (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(row, list) and all(map(_is_number, row)) for row in value)
        and len({len(row) for row in value}) == 1
    ),
    "timeout": lambda value: _is_number(value) and value >= 1,
}
_WANTED = {
    "name": _TEXT,
    "dataset": _TEXT,
    "sites": f'{N_PARTIES} or more addresses such as a = "10.0.0.1:9300"',
    "parties": "a list of names",
    "n_components": _COUNT,
    "n_init": _COUNT,
    "max_iter": _COUNT,
    "seed": "an integer of at least 0",
    "alpha_W": _NUMBER,
    "alpha_H": f'"same" or {_NUMBER}',
    "l1_ratio": "a number from 0 to 1",
    "fixed_components": "a list of rows of numbers of at least 0",
    "timeout": "a number of at least 1",
}
