"""Threads that take part in whatever work a run in one process has to share."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

from joblib import effective_n_jobs
from joblib.parallel import BACKENDS, get_active_backend

from .._nmf.blocks import one_by_one
from .._nmf.threads import limit_this_thread


class Helpers:
    """Threads beside the caller's: work is shared with those that are idle.

    The thread that has work does it itself, item after item, and helpers take items
    from it as they are free. So agents can share their rows from within their turns,
    which may be shared themselves: nobody waits for work that nobody does. Moved to
    another process, it is no help.

    Parameters
    ----------
    n_threads : int
        With the caller's; 1 for no help.

    Examples
    --------
    >>> from skppdnmf._federation.helpers import Helpers
    >>> with Helpers(2) as helpers:
    ...     helpers.share(abs, [-1, 2, -3])
    [1, 2, 3]
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._executor: ThreadPoolExecutor | None = None
        if n_threads > 1:
            self._executor = ThreadPoolExecutor(
                n_threads - 1, "skppdnmf", initializer=limit_this_thread
            )

    @classmethod
    def of(cls, n_jobs: int | None, n_agents: int, prefer: str = "threads") -> Helpers:
        """Return as many as joblib would start, if it would start threads.

        Parameters
        ----------
        n_jobs : int or None
            The estimator's.
        n_agents : int
            More than there are agents, or processors, would have nothing to do.
        prefer : {"threads", "processes"}, default="threads"
            As for `joblib.Parallel`.

        Returns
        -------
        Helpers
        """
        backend, _ = get_active_backend(prefer=prefer)
        if type(backend) is not BACKENDS["threading"]:
            return cls(1)
        most = max(n_agents, os.cpu_count() or 1)
        return cls(min(effective_n_jobs(n_jobs), most))

    def share(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Return ``[function(item) for item in items]``, whoever computes which.

        Parameters
        ----------
        function : callable
            Of one item.
        items : iterable
            What to do.

        Returns
        -------
        list
            In the order of the items. An exception is that of the first item that
            raised one, and then no further item is begun.
        """
        items = list(items)
        if self._executor is None or len(items) < 2:
            return one_by_one(function, items)
        work = _Work(function, items)
        n_helpers = min(self.n_threads, len(items)) - 1
        futures = [self._executor.submit(work.run) for _ in range(n_helpers)]
        try:
            work.run()
        finally:
            work.give_up()
            for future in futures:
                if not future.cancel():
                    future.result()
        return work.results()

    def __enter__(self) -> Helpers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._executor is not None:
            self._executor.shutdown()

    def __reduce__(self) -> tuple[type[Helpers], tuple[int]]:
        return Helpers, (1,)


class _Work:
    """Items that several threads take one by one."""

    def __init__(self, function: Callable[[Any], Any], items: list[Any]) -> None:
        self._function = function
        self._items = items
        self._results: list[Any] = [None] * len(items)
        self._errors: dict[int, BaseException] = {}
        self._lock = threading.Lock()
        self._next = 0

    def run(self) -> None:
        """Take items until there are none, or one has failed."""
        while True:
            with self._lock:
                place = self._next
                if place >= len(self._items) or self._errors:
                    return
                self._next += 1
            try:
                self._results[place] = self._function(self._items[place])
            except BaseException as error:  # raised by whoever has shared the work
                self._errors[place] = error

    def give_up(self) -> None:
        """Begin no further item."""
        with self._lock:
            self._next = len(self._items)

    def results(self) -> list[Any]:
        """Return the results, or raise the first error."""
        if self._errors:
            raise self._errors[min(self._errors)]
        return self._results
