"""SPU: programs on secret shares, and what runs them.

SPU (Ma et al., USENIX ATC 2023) compiles a function of JAX and runs it on shares, here
with ABY3 (Mohassel and Rindal, CCS 2018): three parties hold two of three shares each,
and no two of them may collude. It is an extra and imported nowhere else. Programs open
nothing; all that is opened goes through one function, which keeps an account.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from . import solver
from .ranges import FRACTION_BITS
from .settings import N_PARTIES, MpcSettings
from .solver import State

_STATE = State._fields
_MISSING = (
    'protocol="mpc" needs SPU, which cannot be imported here ({error}). Its wheels are '
    "for Python 3.10 and 3.11, need numpy below 2, and take about a gigabyte with what "
    "they need: pip install 'skppdnmf[mpc]' into an environment of such a Python"
)


class Opened(NamedTuple):
    """A value that was opened.

    Parameters
    ----------
    name : str
        What it is.
    n_values : int
        How many numbers.
    """

    name: str
    n_values: int


class Programs(NamedTuple):
    """What is run on shares, compiled.

    Parameters
    ----------
    begin : Executable
        From all agents' samples to the first state.
    iterate : Executable
        One iteration of all starts.
    best : Executable or None
        Finds the best of several starts.
    choose : list of Executable
        Goes on with one of them.
    iterate_one : Executable
        One iteration of one start.
    """

    begin: Any
    iterate: Any
    best: Any
    choose: list[Any]
    iterate_one: Any


class Machine(Protocol):
    """What programs are run by: all parties in one process, or one of three."""

    def run(self, program: Any) -> None:
        """Run a program on the shares."""
        ...

    def give(self, name: str, value: Any) -> None:
        """Set a public value."""
        ...

    def open(self, name: str) -> Any:
        """Open a value to all agents."""
        ...


# What errors and accounts call what is opened.
_CALLED = {"left": "components", "index": "index of the best start", "scale": "scale"}


def account_of(opened: Sequence[Opened]) -> dict[str, int]:
    """Return how many numbers were opened, by what they are.

    Parameters
    ----------
    opened : sequence of Opened
        In their order.

    Returns
    -------
    dict
    """
    account: dict[str, int] = {}
    for name, n_values in opened:
        called = _CALLED.get(name, name)
        account[called] = account.get(called, 0) + n_values
    return account


def require_spu() -> Any:
    """Return the module `spu`.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If it cannot be imported: what it needs.
    """
    try:
        import spu
        import spu.utils.frontend
    except ImportError as error:
        raise ImportError(_MISSING.format(error=error)) from error
    _quieten(spu)
    return spu


@lru_cache(maxsize=1)
def _quieten(spu: Any) -> None:
    """Have SPU write errors only, and no file into the working directory."""
    options = spu.libspu.logging.LogOptions()
    options.enable_console_logger = False
    options.system_log_path = os.path.join(tempfile.gettempdir(), f"spu-{os.getpid()}")
    options.log_level = spu.libspu.logging.LogLevel.ERROR
    spu.libspu.logging.setup_logging(options)


def runtime_config() -> Any:
    """Return how SPU computes: three parties, whole numbers of 128 bits."""
    libspu = require_spu().libspu
    config = libspu.RuntimeConfig(
        protocol=libspu.ProtocolKind.ABY3,
        field=libspu.FieldType.FM128,
        fxp_fraction_bits=FRACTION_BITS,
    )
    # Faster, but a sign is lost now and then.
    config.trunc_allow_msb_error = False
    return config


def input_names(n_agents: int) -> list[str]:
    """Return what the agents' shares are called: of samples, and of the exponents."""
    return [f"samples {i}" for i in range(n_agents)] + [
        f"exponent {i}" for i in range(n_agents)
    ]


def make_programs(settings: MpcSettings, starts: Any) -> Programs:
    """Compile what is run.

    Parameters
    ----------
    settings : MpcSettings
        What has been agreed upon.
    starts : ndarray of shape (S, K, F)
        Common starts.

    Returns
    -------
    Programs
    """
    import jax.numpy as jnp

    n_starts, n_components, n_features = starts.shape
    n_agents = len(settings.sizes)
    penalised = any(settings.penalties)
    weights = ["weights"] if penalised else []
    n_samples, n_fixed = sum(settings.sizes), settings.n_fixed
    fixed = solver.fixed_columns(starts, n_fixed) if n_fixed else None

    def begin(*given: Any) -> Any:
        exponents = jnp.concatenate(given[n_agents:])
        parts = given[:n_agents]
        scaled = solver.scaled(jnp, parts, exponents, settings.penalties)
        return (*scaled, *solver.begun(jnp, n_samples, starts, n_fixed))

    def iterate(X: Any, *given: Any) -> Any:
        state, weight = State(*given[:4]), given[4]
        penalties = given[5] if penalised else None
        return tuple(solver.iterated(jnp, X, state, weight, penalties, fixed))

    def best(X: Any, *given: Any) -> Any:
        return solver.best(jnp, X, State(*given[:4]), *given[4:])

    def state_of(n: int) -> list[Any]:
        left = _blank(n, n_features, n_components)
        right = _blank(n, n_samples, n_components)
        return [left, left, right, right]

    X = _blank(n_samples, n_features)
    parts = [_blank(size, n_features) for size in settings.sizes]
    inputs = [*parts, *[_blank(1)] * n_agents]
    more = [_blank(4)] * penalised
    names = ["X", *_STATE, "weight", *weights]
    several = state_of(n_starts)
    program = _compiled(
        begin, inputs, input_names(n_agents), ["X", "scale", *weights, *_STATE]
    )
    one = _compiled(iterate, [X, *state_of(1), _blank(), *more], names, _STATE)
    if n_starts == 1:
        return Programs(program, one, None, [], one)
    return Programs(
        program,
        _compiled(iterate, [X, *several, _blank(), *more], names, _STATE),
        _compiled(best, [X, *several, *more], ["X", *_STATE, *weights], ["index"]),
        [_compiled(_chooser(k), several, _STATE, _STATE) for k in range(n_starts)],
        one,
    )


def _chooser(k: int) -> Callable[..., Any]:
    """Return what goes on with one start."""

    def choose(*state: Any) -> Any:
        return tuple(one[k : k + 1] for one in state)

    return choose


def _blank(*shape: int) -> Any:
    """Return an array that has a shape, for a compiler."""
    return np.zeros(shape, dtype=np.float32)


def _compiled(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    names: Sequence[str],
    results: Sequence[str],
) -> Any:
    """Compile a function; its results bear names."""
    spu = require_spu()
    frontend = spu.utils.frontend
    secret, public = (
        spu.libspu.Visibility.VIS_SECRET,
        spu.libspu.Visibility.VIS_PUBLIC,
    )
    options = spu.libspu.CompilerOptions()
    # The bounds are of products that are truncated before they are summed up.
    options.disable_reduce_truncation_optimization = True
    program, _ = frontend.compile(
        frontend.Kind.JAX,
        function,
        list(arguments),
        {},
        list(names),
        [public if name == "weight" else secret for name in names],
        lambda flat: list(results),
        copts=options,
    )
    return program


def factorised(
    machine: Machine,
    programs: Programs,
    settings: MpcSettings,
    after: Callable[[int], bool] | None = None,
) -> dict[str, Any]:
    """Run the factorisation, whose inputs have been shared, and open its result.

    Parameters
    ----------
    machine : Machine
        What runs it.
    programs : Programs
        As compiled from the settings.
    settings : MpcSettings
        What has been agreed upon.
    after : callable or None, default=None
        Called with the number of each finished iteration; returns True to end there.

    Returns
    -------
    dict
        What was opened: ``left`` of shape (1, F, K), ``index`` if there were several
        starts, and ``scale`` if there are penalties.
    """
    opened = {}
    machine.run(programs.begin)
    iterate = programs.iterate
    for iteration in range(settings.n_iterations):
        weight = solver.weight_of(iteration, settings.n_iterations)
        machine.give("weight", np.array(weight, dtype=np.float32))
        machine.run(iterate)
        if programs.best is not None and iteration + 1 == settings.n_side_by_side:
            machine.run(programs.best)
            opened["index"] = machine.open("index")
            machine.run(programs.choose[int(opened["index"])])
            iterate = programs.iterate_one
        if after is not None and after(iteration + 1):
            break
    if any(settings.penalties):
        opened["scale"] = machine.open("scale")
    opened["left"] = machine.open("left")
    return opened


def shared(array: Any) -> list[Any]:
    """Share an array among the parties.

    Parameters
    ----------
    array : ndarray
        Secret.

    Returns
    -------
    list of Share
        One for each party.
    """
    spu = require_spu()
    io = spu.Io(N_PARTIES, runtime_config())
    return io.make_shares(np.asarray(array), spu.libspu.Visibility.VIS_SECRET)


def inputs_of(part: Any) -> tuple[Any, Any]:
    """Return what an agent shares: its samples, and their exponent."""
    X, exponent = solver.normalised(part)
    return X, np.array([exponent], dtype=np.float32)


class Simulator:
    """All parties in one process, each in a thread; links are queues in memory.

    Parameters
    ----------
    configure : callable or None, default=None
        Changes SPU's configuration, of the party that it is told the rank of.

    Attributes
    ----------
    opened : list of Opened
        All that was opened.
    """

    def __init__(self, configure: Callable[[int, Any], None] | None = None) -> None:
        self._spu = spu = require_spu()
        self._io = spu.Io(N_PARTIES, runtime_config())
        self._threads = ThreadPoolExecutor(N_PARTIES)
        self.opened: list[Opened] = []
        description = spu.libspu.link.Desc()
        for rank in range(N_PARTIES):
            description.add_party(f"party {rank}", f"thread {rank}")

        def runtime(rank: int) -> Any:
            link = spu.libspu.link.create_mem(description, rank)
            config = runtime_config()
            if configure is not None:
                configure(rank, config)
            return spu.Runtime(link, config)

        self._runtimes = list(self._threads.map(runtime, range(N_PARTIES)))

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *_: object) -> None:
        self._runtimes.clear()
        self._threads.shutdown()

    def share(self, name: str, array: Any) -> None:
        """Share a secret among the parties."""
        self._set(name, array, self._spu.libspu.Visibility.VIS_SECRET)

    def give(self, name: str, value: Any) -> None:
        """Set a public value."""
        self._set(name, value, self._spu.libspu.Visibility.VIS_PUBLIC)

    def _set(self, name: str, array: Any, visibility: Any) -> None:
        """Set a value of every party."""
        shares = self._io.make_shares(np.asarray(array), visibility)
        for runtime, share in zip(self._runtimes, shares, strict=True):
            runtime.set_var(name, share)

    def run(self, program: Any) -> None:
        """Run a program; all parties have finished then."""
        list(self._threads.map(lambda party: party.run(program), self._runtimes))

    def open(self, name: str) -> Any:
        """Open a value, and keep account of it."""
        shares = [runtime.get_var(name) for runtime in self._runtimes]
        value = self._io.reconstruct(shares)
        self.opened.append(Opened(name, int(np.size(value))))
        return value
