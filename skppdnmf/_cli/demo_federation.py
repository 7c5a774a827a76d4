"""`skppdnmf demo federation`: sites as processes, with FLARE between them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.datasets import load_digits

from .._data.partition import split_samples
from .._estimator import PrivateDistributedNMF
from .._files.errors import FAILED, CommandError, describe
from .._sealing.identity import Identity, write_public
from .._site.folder import FILE
from .._text import format_bytes
from ..exceptions import FederationError
from .federate import RunBar, require_flare
from .site import IDENTITY, TEMPLATE
from .terminal import format_table

N_COMPONENTS = 10
DATASET = "digits"


@click.command()
@click.option(
    "--sites", "n_sites", type=click.IntRange(3, 16), default=4, show_default=True
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="A new folder: the sites' folders, and what FLARE writes.",
)
@click.option("--max-iter", type=click.IntRange(min=1), default=60, show_default=True)
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def federation(n_sites: int, out: Path, max_iter: int, quiet: bool) -> None:
    """Run a federation on this machine, each site in processes of its own.

    Each has its folder, its key, its share of the handwritten digits and its policy.
    NVIDIA FLARE carries the sealed envelopes; its server sees nothing else.
    """
    require_flare()
    if out.exists() and any(out.iterdir()):
        raise CommandError(f"{out}: is not empty")
    from ..flare.environment import variables
    from ..flare.recipe import NMFRecipe
    from ..flare.results import load
    from ..flare.site import SITES_VARIABLE
    from ..flare.submit import local_env, submit_locally

    X = load_digits().data
    partition = split_samples(len(X), n_sites)
    parts = [X[rows] for rows in partition.samples]
    names = [f"site-{k + 1}" for k in range(n_sites)]
    folder = out / "sites"
    make_sites(folder, dict(zip(names, parts, strict=True)))
    click.echo(
        f"{len(X)} images of 8 x 8 pixels at {n_sites} sites; starting them takes a "
        "while"
    )
    parameters: dict[str, Any] = {
        "n_components": N_COMPONENTS,
        "protocol": "secure-sum",
        "max_iter": max_iter,
        "tol": 0,
        "random_state": 0,
    }
    recipe = NMFRecipe(
        PrivateDistributedNMF(**parameters), DATASET, min_sites=n_sites, name="demo"
    )
    env = local_env(names, out / "flare")
    with RunBar(max_iter, quiet) as bar:
        try:
            with variables({SITES_VARIABLE: str(folder.resolve())}):
                outcome = submit_locally(recipe, env, bar.show)
        except FederationError as error:
            raise CommandError(f"failed: {describe(error)}", FAILED) from error
        finally:
            # Connections of a session that has ended go on complaining.
            logging.disable(logging.CRITICAL)
    if outcome["ended"] != "finished":
        raise CommandError(f"failed: {outcome['ended']}", FAILED)
    results = [load(folder / name / "results" / outcome["run"]) for name in names]
    model = PrivateDistributedNMF(**parameters, partition=n_sites).fit(X)
    same = all(np.array_equal(each.components_, model.components_) for each in results)
    click.echo(f"what the relay has stored, of run {outcome['run']}:")
    click.echo(format_table([("file", "bytes"), *stored(Path(outcome["folder"]))]))
    reached = float(results[0].history_["shared_error"][-1])
    click.echo(
        f"{outcome['exchanges']} exchanges, relative error {reached:.4f}, "
        f"{format_bytes(outcome['bytes'])} sealed"
    )
    per_exchange = outcome["seconds_carried"] / outcome["exchanges"]
    click.echo(f"seconds per exchange: {per_exchange:.3f}")
    click.echo(f"bit-identical to one process: {same}")
    if not same:
        raise CommandError("the components differ", FAILED)


def make_sites(folder: Path, parts: dict[str, Any]) -> None:
    """Make a folder for each site, with its key, its data, and the others' keys.

    Parameters
    ----------
    folder : Path
        Where.
    parts : dict from str to ndarray
        Samples by the sites' names.
    """
    keys = {}
    for name, part in parts.items():
        place = folder / name
        place.mkdir(parents=True)
        identity = Identity.new()
        identity.save(place / IDENTITY)
        keys[name] = write_public(identity.public)
        np.save(place / f"{DATASET}.npy", part)
    for name in parts:
        roster = "".join(
            f'{other} = "{key}"\n' for other, key in keys.items() if other != name
        )
        text = TEMPLATE.format(name=name, identity=IDENTITY)
        text = text.replace("[roster]\n", f"[roster]\n{roster}", 1)
        data = f'[datasets.{DATASET}]\nfile = "{DATASET}.npy"\n'
        text = text.replace("\n[policy]", f"\n{data}\n[policy]", 1)
        (folder / name / FILE).write_text(text)


def stored(folder: Path) -> list[tuple[str, str]]:
    """Return the files of a job's result, as the relay has kept them."""
    return [
        (str(file.relative_to(folder)), f"{file.stat().st_size:,}")
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.name.startswith(".")
    ]
