"""Reads a site's `skppdnmf.toml`: every key is known, or is refused by name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from .._data.graph import name_some
from .._files.errors import CommandError, describe
from .policy import DataSet, Policy

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "skppdnmf.toml"
_SECTIONS = ("name", "identity", "results", "log", "roster", "datasets", "policy")


@dataclass(frozen=True)
class SiteFolder:
    """What a site says of itself in its `skppdnmf.toml`.

    Parameters
    ----------
    path : Path
        The folder; all files are relative to it.
    name : str
        The site's name in the federation.
    identity : Path
        Its private key.
    results : Path
        Folder for results and checkpoints, one folder for each run.
    log : Path
        Where runs are noted, a JSON object in a line for each event.
    roster : dict from str to str
        Public keys of the sites that are trusted, by name.
    datasets : dict from str to DataSet
        By the names that jobs use.
    policy : Policy
        What is allowed.
    """

    path: Path
    name: str
    identity: Path
    results: Path
    log: Path
    roster: dict[str, str]
    datasets: dict[str, DataSet]
    policy: Policy


def read_folder(path: Path) -> SiteFolder:
    r"""Read a site's `skppdnmf.toml`.

    Parameters
    ----------
    path : Path
        The folder that holds it, or the file.

    Returns
    -------
    SiteFolder
        Checked as far as it can be without reading data.

    Raises
    ------
    CommandError
        If there is no such file, it is no TOML, or a key is unknown, missing or of
        another type.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skppdnmf._site.folder import read_folder
    >>> text = 'name = "site-1"\n[datasets.cohort]\nfile = "cohort.csv"\n'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "skppdnmf.toml").write_text(text)
    ...     site = read_folder(Path(folder))
    >>> site.name, list(site.datasets), site.policy.min_sites
    ('site-1', ['cohort'], 3)
    """
    path = Path(path)
    file = path / FILE if path.is_dir() else path
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CommandError(
            f"{file}: there is no such file; `skppdnmf site init` makes one"
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CommandError(f"{file}: cannot be read: {describe(error)}") from error
    _refuse_unknown(file, "", values, _SECTIONS)
    folder = file.parent.resolve()
    name = _text(file, "name", values.get("name"))
    roster = _table(file, "roster", values.get("roster", {}))
    datasets = _table(file, "datasets", values.get("datasets", {}))

    def place(key: str, default: str) -> Path:
        return folder / _text(file, key, values.get(key, default))

    return SiteFolder(
        folder,
        name,
        place("identity", "identity.pem"),
        place("results", "results"),
        place("log", "log.jsonl"),
        {site: _text(file, f"roster.{site}", key) for site, key in roster.items()},
        {
            dataset: _filled(file, f"datasets.{dataset}", DataSet, given)
            for dataset, given in datasets.items()
        },
        _filled(file, "policy", Policy, values.get("policy", {})),
    )


def _refuse_unknown(file: Path, where: str, values: Any, known: Any) -> None:
    """Refuse keys that would be without effect."""
    unknown = [repr(key) for key in values if key not in known]
    if unknown:
        section = f"[{where}]: " if where else ""
        raise CommandError(
            f"{file}: {section}unknown key {name_some(unknown)}; known are "
            f"{', '.join(known)}"
        )


def _text(file: Path, key: str, value: Any) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise CommandError(f"{file}: {key} should be a text, not {value!r}")
    return value


def _table(file: Path, key: str, value: Any) -> Mapping[str, Any]:
    """Return a table."""
    if not isinstance(value, dict):
        raise CommandError(f"{file}: {key} should be a table, not {value!r}")
    return value


def _filled(file: Path, where: str, kind: Any, value: Any) -> Any:
    """Make a dataclass from a table, checking each value against its type."""
    given = _table(file, where, value)
    known = [one.name for one in fields(kind)]
    _refuse_unknown(file, where, given, known)
    hints = get_type_hints(kind)
    read = {}
    for one in fields(kind):
        if one.name in given:
            hint = hints[one.name]
            read[one.name] = _value(file, f"{where}.{one.name}", hint, given[one.name])
        elif one.default is MISSING and one.default_factory is MISSING:
            raise CommandError(f"{file}: [{where}] has no {one.name}")
    return kind(**read)


def _value(file: Path, key: str, hint: Any, value: Any) -> Any:
    """Return a value if it is of the type that a dataclass wants."""
    options = get_args(hint) if get_origin(hint) is not tuple else ()
    wanted = options[0] if options and type(None) in options else hint
    if get_origin(wanted) is tuple:
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return tuple(value)
        expected = "a list of texts"
    elif wanted is bool:
        if isinstance(value, bool):
            return value
        expected = "true or false"
    elif wanted in (int, float):
        number = isinstance(value, int if wanted is int else (int, float))
        if number and not isinstance(value, bool) and value >= 0:
            return wanted(value)
        expected = f"{'an integer' if wanted is int else 'a number'} of at least 0"
    elif get_origin(wanted) is dict:
        if isinstance(value, dict) and all(
            isinstance(one, (str, int)) for one in value.values()
        ):
            return value
        expected = 'a table such as { column = "value" }'
    else:
        return _text(file, key, value)
    raise CommandError(f"{file}: {key} should be {expected}, not {value!r}")
