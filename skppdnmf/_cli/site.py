"""`skppdnmf site`: what a site that holds data decides, and whom it trusts."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import click

from .._data.graph import name_some
from .._files.errors import CommandError, describe
from .._sealing.identity import Identity, fingerprint, read_public, write_public
from .._site.folder import FILE, SiteFolder, read_folder
from .._site.samples import read_samples
from .terminal import format_table

# Where a passphrase is looked for; a command line would show it to everybody.
PASSPHRASE_VARIABLE = "SKPPDNMF_PASSPHRASE"
IDENTITY = "identity.pem"

TEMPLATE = """\
# What this site decides for itself. Files are relative to this folder.
name = "{name}"
identity = "{identity}"      # the private key: mode 600, and on no other machine
results = "results"            # a folder for each run
log = "log.jsonl"              # what was asked, run, refused

# The other sites' public keys: `skppdnmf site trust NAME KEY`, after their fingerprint
# has been read out over the phone.
[roster]

# Data sets by the names that jobs use, one table for each:
# [datasets.cohort]
# file = "cohort.csv"          # .csv, .tsv, .parquet, .npy, .npz, .mtx
# drop = ["patient"]           # columns that are no features; or columns = [...]
# header = true                # whether the first line holds names
# rows = "0:500"               # a range of rows, the end not among them
# where = {{ ward = "A" }}       # rows with this value, in a column that is no feature
# sample_weight = "count"      # a column, or another file, with the samples' weights
# missing = true               # whether entries may be missing (empty, nan)

[policy]
protocols = ["secure-sum"]
min_sites = 3
max_components = 100
max_n_init = 8
max_iterations = 200
# Least number of the other sites' samples for each component; known, and checked, after
# the first sum of the secure sum, before any product of the data is summed.
min_other_samples_per_component = 50
# Whether whoever submits a job may have the components.
components_to_submitter = false
# Whether errors may name this site's features where those of the sites differ.
share_feature_names = true
# Whether rehearsals are taken that protect nothing. Not beside data that matter.
unprotected = false
"""


def _passphrase() -> str | None:
    """Return the passphrase of the environment."""
    return os.environ.get(PASSPHRASE_VARIABLE)


def _identity(folder: SiteFolder) -> Identity:
    """Return the site's key, or say what is wrong with it."""
    try:
        return Identity.load(folder.identity, _passphrase())
    except FileNotFoundError as error:
        raise CommandError(f"{folder.identity}: there is no such file") from error
    except (OSError, ValueError) as error:
        raise CommandError(describe(error)) from error


_FOLDER = click.argument(
    "folder", type=click.Path(path_type=Path), default=Path(), required=False
)


@click.group()
def site() -> None:
    """Set up a site of a federation: its key, its roster, its data, its policy.

    DIR is the site's folder, that of the present directory if none is given; FLARE
    looks for it in the `local` folder of the site's workspace.
    """


@site.command("init")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--name", required=True, help="The site's name in the federation.")
@click.option(
    "--passphrase",
    "ask",
    is_flag=True,
    help=f"Encrypt the key; asks, unless {PASSPHRASE_VARIABLE} is set.",
)
def init(folder: Path, name: str, ask: bool) -> None:
    """Make a key and a commented skppdnmf.toml."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise CommandError(
            f"--name {name!r} should be letters, digits, '-', '_' and '.'"
        )
    for file in (folder / FILE, folder / IDENTITY):
        if file.exists():
            raise CommandError(f"{file}: exists, and a key is never replaced")
    passphrase = _passphrase()
    if ask and passphrase is None:
        passphrase = click.prompt(
            "Passphrase", hide_input=True, confirmation_prompt=True
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        identity = Identity.new()
        identity.save(folder / IDENTITY, passphrase if ask else None)
        (folder / FILE).write_text(TEMPLATE.format(name=name, identity=IDENTITY))
    except OSError as error:
        raise CommandError(f"{folder}: cannot be written: {describe(error)}") from error
    click.echo(f"{folder / FILE}: name the data sets there, and set the policy")
    _echo_key(name, identity.public)


@site.command("fingerprint")
@_FOLDER
def show_fingerprint(folder: Path) -> None:
    """Print the public key, and what to read out over the phone."""
    read = read_folder(folder)
    _echo_key(read.name, _identity(read).public)


def _echo_key(name: str, public: bytes) -> None:
    """Print a public key for the others, and its fingerprint."""
    click.echo(f"send:     skppdnmf site trust {name} {write_public(public)}")
    click.echo(f"read out: {fingerprint(public)}")


@site.command("trust")
@click.argument("name")
@click.argument("key")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path(),
    help="The site's folder; the present directory without it.",
)
def trust(name: str, key: str, folder: Path) -> None:
    """Add another site's public KEY to the roster, under its NAME."""
    read = read_folder(folder)
    try:
        public = read_public(key)
    except ValueError as error:
        raise CommandError(describe(error)) from error
    if name == read.name:
        raise CommandError(f"{name} is this site; its own key is in {read.identity}")
    known = read.roster.get(name)
    if known is not None and known != key:
        raise CommandError(
            f"{name} has another key in the roster "
            f"({fingerprint(read_public(known))}); take that out of {FILE} first"
        )
    for other, its in read.roster.items():
        if its == key and other != name:
            raise CommandError(f"{other} has this key already")
    if known is None:
        file = read.path / FILE
        text = file.read_text(encoding="utf-8")
        line = f'{_key(name)} = "{key}"\n'
        if re.search(r"(?m)^\[roster\][^\n]*\n", text):
            text = re.sub(
                r"(?m)^(\[roster\][^\n]*\n)", lambda m: m[1] + line, text, count=1
            )
        else:
            text += f"\n[roster]\n{line}"
        file.write_text(text, encoding="utf-8")
        read_folder(folder)
    click.echo(f"{name}: compare over the phone: {fingerprint(public)}")


def _key(name: str) -> str:
    """Return a name as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'


@site.command("check")
@_FOLDER
def check(folder: Path) -> None:
    """Read the data, and print how much there is and what a job may do.

    Nothing is printed of what the values are.
    """
    read = read_folder(folder)
    identity = _identity(read)
    for name, key in read.roster.items():
        try:
            read_public(key)
        except ValueError as error:  # noqa: PERF203 - a few sites
            raise CommandError(f"roster.{name}: {describe(error)}") from error
    if not read.datasets:
        raise CommandError(f"{read.path / FILE}: names no data sets")
    rows: list[tuple[Any, ...]] = [
        ("data set", "rows", "columns", "type", "weights", "gaps")
    ]
    for name in read.datasets:
        X, weights = read_samples(read, name)
        kind = X.dtypes.iloc[0] if hasattr(X, "dtypes") else X.dtype
        size = f"{X.shape[0]:,}", f"{X.shape[1]:,}"
        missing = read.datasets[name].missing
        rows.append((name, *size, str(kind), _yes(weights is not None), _yes(missing)))
    click.echo(f"{read.name}: {fingerprint(identity.public)}")
    click.echo(f"trusts: {name_some(list(read.roster)) or 'nobody yet'}")
    click.echo(format_table(rows))
    policy = read.policy
    allowed = [
        ("a job may", ""),
        ("protocols", ", ".join(policy.protocols)),
        ("sites, at least", f"{policy.min_sites}"),
        ("components, at most", f"{policy.max_components}"),
        ("random starts, at most", f"{policy.max_n_init}"),
        ("iterations, at most", f"{policy.max_iterations}"),
        (
            "others' samples per component, at least",
            f"{policy.min_other_samples_per_component:g}",
        ),
        ("components to the submitter", _yes(policy.components_to_submitter)),
        ("name features that differ", _yes(policy.share_feature_names)),
        ("rehearsals without protection", _yes(policy.unprotected)),
    ]
    click.echo(format_table(allowed))


def _yes(allowed: bool) -> str:
    """Return a word."""
    return "yes" if allowed else "no"
