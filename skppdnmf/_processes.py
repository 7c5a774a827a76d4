"""Worker processes for ciphertexts, where threads would wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from joblib import effective_n_jobs
from joblib.externals.loky import ProcessPoolExecutor
from joblib.parallel import get_active_backend

# Starting processes takes a few seconds; shorter fits are better off without.
_LEAST_SECONDS = 15.0


def runs_in_threads() -> bool:
    """Whether joblib would run the agents in threads of this process."""
    backend, _ = get_active_backend(prefer="threads")
    return bool(getattr(backend, "supports_sharedmem", False))


@contextmanager
def cipher_processes(n_jobs: int | None, seconds: float) -> Iterator[Executor | None]:
    """Provide processes that work on ciphertexts, where that pays.

    Encryption and entrywise masking consist of operations of a few microseconds
    that hold the interpreter's lock, so threads gain little from a second core.
    The processes get the agents' keys; they end with the fit.

    Parameters
    ----------
    n_jobs : int or None
        As for joblib.
    seconds : float
        Expected time of the fit.

    Yields
    ------
    Executor or None
        None with one job, for a short fit, or where joblib's backend runs the
        agents themselves in other processes.
    """
    jobs = effective_n_jobs(n_jobs)
    if jobs < 2 or seconds < _LEAST_SECONDS or not runs_in_threads():
        yield None
        return
    executor = ProcessPoolExecutor(max_workers=jobs)
    try:
        yield executor
    finally:
        executor.shutdown()
