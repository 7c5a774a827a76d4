"""The options that the commands on a file of data share, and what they amount to.

Adding a parameter to the estimator takes one line in `PARAMETERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import click

from .._data.graph import GENERATORS
from .._estimator import PrivateDistributedNMF
from .._files.errors import CommandError
from .._files.samples import Data, read_data
from .._files.tables import read_adjacency, read_numbers
from .._paillier.primes import MIN_KEY_SIZE
from .outputs import check_writable
from .parameter_types import (
    Blocks,
    Either,
    ImageShape,
    InputFile,
    MatrixFile,
    NoneWord,
    Number,
    ReportFile,
    Truth,
    Word,
    refuse_blank,
)
from .terminal import on_terminal

# What each parameter of the estimator takes on the command line, and what it is.
PARAMETERS: dict[str, tuple[click.ParamType, str]] = {
    "n_components": (
        Either(click.IntRange(min=1), Word(["auto"])),
        "Number of components. auto takes it from --init if that is a file, and is "
        "the number of features otherwise.",
    ),
    "partition": (
        Either(Blocks(), NoneWord()),
        "Which agent holds which samples, if --agents does not say so: a number of "
        "agents (5), block sizes (10,20,30) or fractions (0.5,0.5). none makes four "
        "agents, or one for each sample if these are fewer.",
    ),
    "adjacency": (
        Either(Word(list(GENERATORS)), MatrixFile(read_adjacency)),
        "The graph of the agents, or a file with its adjacency matrix. random is "
        "connected, of average degree 3.",
    ),
    "mu": (
        Number(min=0, max=1e100, min_open=True),
        "ADMM penalty of the left factor. Only --protocol consensus reads it.",
    ),
    "eta": (
        Number(min=0, max=1e100, min_open=True),
        "ADMM penalty of the right factor. Only --protocol consensus reads it.",
    ),
    "g_max": (
        Number(min=0, max=1e100, min_open=True),
        "Largest secret factor of an agent for an edge. Only --protocol consensus "
        "reads it.",
    ),
    "penalty_scaling": (
        Word(["data", "absolute"]),
        "Whether --mu, --eta and --g-max are relative to the scale of the data, on "
        "which the agents agree by a private average, or the paper's absolute numbers.",
    ),
    "masking": (
        Word(["entrywise", "scalar"]),
        "Whether each entry of an answer has its own secret factor, or all share one.",
    ),
    "n_max": (
        Number(min=1, max=1e300),
        "Fixed-point scale: U is sent as round(n_max * U).",
    ),
    "protocol": (
        Word(["consensus", "secure-sum", "mpc"]),
        "The paper's encrypted consensus, totals under pairwise masks, or secure "
        "multi-party computation, which opens nothing but the components.",
    ),
    "encryption": (
        Either(Word(["paillier", "bfv", "simulated"]), NoneWord()),
        "bfv is a lattice cipher, much faster (install skppdnmf[lattice]). "
        "simulated computes the same integers without ciphertexts: the same result, "
        "bit for bit, and no protection. none does not round either.",
    ),
    "key_size": (
        click.IntRange(min=MIN_KEY_SIZE),
        "Bits of the Paillier keys; below 2048 they protect nothing.",
    ),
    "key_scheme": (
        Word(["djn", "subgroup"]),
        "How keys are made; subgroup is faster, on a further assumption.",
    ),
    "update": (
        Word(["proximal", "published"]),
        "published is the paper's printed form of (9) and (11), with which the agents "
        "do not agree; for comparison.",
    ),
    "init": (
        Either(Word(["random", "ones"]), MatrixFile(read_numbers)),
        "Common start of the left factor, or a file with it, of a row for each "
        "component. ones keeps all components alike under consensus.",
    ),
    "n_init": (
        Either(click.IntRange(min=1), Word(["auto"])),
        "Random starts that secure-sum and mpc follow side by side at first; the best "
        "is kept. auto makes it 8, or 4 under mpc, for small problems, 1 for large.",
    ),
    "key_degree": (
        Either(click.IntRange(min=1), NoneWord()),
        "With how many others an agent shares a key under secure-sum. none means with "
        "all, or above 50 agents with as many as are needed.",
    ),
    "on_dropout": (
        Word(["raise", "continue"]),
        "Whether a fit under secure-sum in which an agent fails ends by an error, or "
        "warns and goes on without it, with fresh masks.",
    ),
    "fixed_components": (
        Either(MatrixFile(read_numbers), NoneWord()),
        "A file with known components, a row for each, which stay as they are under "
        "secure-sum or mpc while the others are learned.",
    ),
    "beta_loss": (
        Either(
            Number(min=0, max=2),
            Word(["frobenius", "kullback-leibler", "itakura-saito"]),
        ),
        "Divergence that is minimised under secure-sum, by name or beta.",
    ),
    "forget_factor": (
        Number(min=0, max=1),
        "What is left of the totals of earlier batches; read by skppdnmf partial-fit.",
    ),
    "sparse_missing": (
        Truth(),
        "Whether, under secure-sum, entries that a sparse file does not hold are "
        "missing, and not zero. Empty cells of a table are missing there.",
    ),
    "normalize": (
        Either(Word(["components", "max"]), NoneWord()),
        "Whether, under secure-sum, components are scaled after the fit to sum to one, "
        "or to a largest entry of one, and the right factor the other way.",
    ),
    "alpha_W": (Number(min=0), "Weight of the penalty on the right factor."),
    "alpha_H": (
        Either(Number(min=0), Word(["same"])),
        "Weight of the penalty on the left factor; same takes --alpha-W.",
    ),
    "l1_ratio": (
        Number(min=0, max=1),
        "0 penalises squares, 1 absolute values, numbers between them both.",
    ),
    "max_iter": (
        click.IntRange(min=1),
        "Most iterations of block coordinate descent; under secure-sum each is one "
        "exchange.",
    ),
    "max_admm_iter": (
        click.IntRange(min=1),
        "Most ADMM iterations on the left factor, hence exchanges, in each. Only "
        "--protocol consensus reads it.",
    ),
    "tol": (
        Number(min=0),
        "An agent stops when, relative to the norm of its left factor, neither its "
        "change nor its distance to the neighbours exceeds this. Under secure-sum all "
        "stop when twice in a row the objective falls by at most this fraction. 0 "
        "turns that off.",
    ),
    "epsilon": (
        Either(Number(min=0, max=100, min_open=True), NoneWord()),
        "With it a fit under secure-sum is differentially private with regard to one "
        "sample more or less. Needs --delta and --clip.",
    ),
    "delta": (
        Either(Number(min=0, max=1, min_open=True, max_open=True), NoneWord()),
        "Probability with which the guarantee of --epsilon may fail, far below one "
        "over the number of samples.",
    ),
    "clip": (
        Either(Number(min=0, max=1e100, min_open=True), NoneWord()),
        "Largest Euclidean norm of a sample, known beforehand; with --epsilon longer "
        "samples are shortened to it.",
    ),
    "privacy_unit": (
        Word(["sample", "agent"]),
        "What --epsilon is about: one sample, or all samples of an agent.",
    ),
    "max_colluding": (
        Either(click.IntRange(min=1), NoneWord()),
        "How many agents may tell each other what noise they have added. none makes "
        "it a third of them, but one at least.",
    ),
    "n_jobs": (
        Either(click.INT, NoneWord()),
        "Agents that run side by side, -1 for as many as there are cores. The result "
        "does not depend on it.",
    ),
    "random_state": (
        Either(click.IntRange(min=0, max=2**32 - 1), NoneWord()),
        "Seeds the random graph, the common start and, since all agents run in one "
        "process, their masks; never keys or encryption noise.",
    ),
    "verbose": (
        click.IntRange(min=0),
        "1 shows a progress bar with error and traffic, 2 also a line for each "
        "iteration.",
    ),
}

FILE_HELP = """FILE is a matrix with a sample in each row: .npy, .npz (an array X, the
only array, or a sparse matrix saved by scipy), Matrix Market (.mtx, .mtx.gz), or a
table (.csv, .tsv, .parquet) whose columns are the features."""


class DataCommand(click.Command):
    """A command on a file of data; the help shows the estimator's options apart.

    Options of the command's own take the place of those of a parameter of that name.
    """

    # Defaults of the command that are not the estimator's.
    defaults: Mapping[str, str] = MappingProxyType({})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = {param.name for param in self.params}
        others = [o for o in estimator_options(self.defaults) if o.name not in own]
        self.params = [*self.params, *others]

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the help on the options in two sections.

        Parameters
        ----------
        ctx : click.Context
            Of the command.
        formatter : click.HelpFormatter
            Takes the text.
        """
        for title, own in (("Options", True), ("Parameters of the estimator", False)):
            records = [
                record
                for param in self.get_params(ctx)
                if isinstance(param, click.Option)
                and (param.name not in PARAMETERS) is own
                and (record := param.get_help_record(ctx)) is not None
            ]
            with formatter.section(title):
                formatter.write_dl(records)


class SumsCommand(DataCommand):
    """A command of what needs totals, so that secure-sum is its protocol."""

    defaults = MappingProxyType({"protocol": "secure-sum"})


def estimator_options(
    others: Mapping[str, str] = MappingProxyType({}),
) -> list[click.Option]:
    """Return an option for each parameter of the estimator, with its default."""
    defaults = {**PrivateDistributedNMF().get_params(), **others}
    # Somebody who watches sees progress.
    defaults["verbose"] = lambda: int(on_terminal())
    shown = {"verbose": "1 on a terminal, else 0"}
    return [
        click.Option(
            [f"--{name.replace('_', '-')}", name],
            type=taken,
            default="none" if defaults[name] is None else defaults[name],
            show_default=shown.get(name, True),
            help=text,
        )
        for name, (taken, text) in PARAMETERS.items()
    ]


def weight_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that says what samples weigh."""
    return click.option(
        "--sample-weight",
        metavar="COLUMN|FILE",
        callback=refuse_blank,
        help="Weights of the samples under secure-sum: a column of FILE, which is then "
        "no feature, or a file with a number in each line, or an .npy file.",
    )(command)


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument and the options that say what the data are.

    Parameters
    ----------
    command : callable
        The function of a command.

    Returns
    -------
    callable
        The same, for `click.command`.
    """
    options = (
        click.argument("file", type=InputFile()),
        click.option(
            "--agents",
            metavar="COLUMN|FILE",
            callback=refuse_blank,
            help="Which agent holds which sample: a column of FILE, by name or number "
            "from 0, which is then no feature; or a file with a label in each line, or "
            "an .npy file.",
        ),
        click.option(
            "--drop",
            metavar="COLUMN",
            callback=refuse_blank,
            multiple=True,
            help="Leave a column out, by name or number from 0. May be repeated.",
        ),
        click.option(
            "--header/--no-header",
            default=None,
            help="Whether the first line of a .csv or .tsv file holds names. Without "
            "either, a first line of numbers is taken for data unless it counts the "
            "columns from 0 or 1.",
        ),
        click.option(
            "--report",
            metavar="FILE.html",
            type=ReportFile(),
            help="Write a report with figures, in one HTML file.",
        ),
        click.option(
            "--image-shape",
            type=ImageShape(),
            metavar="ROWSxCOLUMNS",
            help="Draw the features in the report as the pixels of images of this "
            "shape, such as 8x8.",
        ),
        click.option("--force", is_flag=True, help="Replace files that exist."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def make_estimator(ctx: click.Context, quiet: bool) -> PrivateDistributedNMF:
    """Return the estimator that the options describe.

    Parameters
    ----------
    ctx : click.Context
        Of the command.
    quiet : bool
        Whether progress is hidden in any case.

    Returns
    -------
    PrivateDistributedNMF
        Not fitted; it shows a progress bar on a terminal.

    Raises
    ------
    CommandError
        If options exclude each other.
    """
    parameters = {name: ctx.params[name] for name in PARAMETERS}
    if parameters["partition"] is not None and ctx.params["agents"] is not None:
        raise CommandError("--agents and --partition exclude each other")
    if quiet:
        parameters["verbose"] = 0
    return PrivateDistributedNMF(**parameters)


def check_report(ctx: click.Context) -> None:
    """Refuse to go on if a report is wanted that cannot be written.

    Parameters
    ----------
    ctx : click.Context
        Of the command.

    Raises
    ------
    CommandError
        If matplotlib is not installed, the file exists or cannot be written, or if
        there are options for a report that is not wanted.
    """
    report = ctx.params["report"]
    if report is None:
        if ctx.params["image_shape"] is not None:
            raise CommandError("--image-shape is for --report, which is not given")
        return
    check_writable(report, ctx.params["force"])
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise CommandError(
            '--report needs matplotlib: pip install "skppdnmf[plot]"'
        ) from error


def read_input(ctx: click.Context, allow_missing: bool = False) -> Data:
    """Read the data that the options name, and check that images fit them.

    Parameters
    ----------
    ctx : click.Context
        Of the command.
    allow_missing : bool, default=False
        Whether entries may be missing.

    Returns
    -------
    Data
        The samples.

    Raises
    ------
    CommandError
        If they cannot be read, or have another number of features than the images
        have pixels.
    """
    names = ("agents", "drop", "header")
    file = ctx.params["file"]
    data = read_data(
        file,
        **{name: ctx.params[name] for name in names},
        sample_weight=ctx.params.get("sample_weight"),
        allow_missing=allow_missing,
    )
    shape = ctx.params["image_shape"]
    if shape is not None and shape[0] * shape[1] != data.X.shape[1]:
        raise CommandError(
            f"--image-shape {shape[0]}x{shape[1]} has {shape[0] * shape[1]} pixels, "
            f"but {file} has {data.X.shape[1]} features"
        )
    return data
