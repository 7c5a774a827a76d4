"""One thread for the linear algebra, so that results do not depend on how many."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Any

import threadpoolctl
from threadpoolctl import ThreadpoolController

# Of what limits each thread that calls it alone, and not the process.
_PER_THREAD = "openmp"


class _SharedLimit:
    """One thread for as long as anybody needs it, then what there was before.

    A library's number of threads belongs to the process. If each user saved and
    restored it, the first to end would lift the limit of the others, and the last
    would restore what the first had set.

    Attributes
    ----------
    holders : set of object
        Who needs the limit at present.
    """

    def __init__(self) -> None:
        self.holders: set[object] = set()
        self._lock = threading.Lock()
        self._controller: ThreadpoolController | None = None
        self._limit: Any = None

    def take(self, holder: object) -> None:
        """Limit the process to one thread, unless it is already."""
        with self._lock:
            self.holders.add(holder)
            if self._limit is None:
                _take_control()
                self._limit = self._shared().limit(limits=1, user_api="blas")

    def give_back(self, holder: object) -> None:
        """Restore what there was once nobody needs the limit."""
        with self._lock:
            self.holders.discard(holder)
            if self._limit is not None and not self.holders:
                limit, self._limit = self._limit, None
                _take_control()
                limit.restore_original_limits()
                _take_control()

    def _shared(self) -> ThreadpoolController:
        """Handle on the libraries whose threads belong to the process."""
        if self._controller is None:
            self._controller = _own_controller(per_thread=False)
        return self._controller


def _take_control() -> None:
    """Let whichever thread comes next set numbers of threads.

    From version 3.8 on threadpoolctl lets only the first that did so do it again, as
    long as it lives; a limit that is counted is not bound to a thread.
    """
    controller: Any = threadpoolctl.OpenBLASController
    if hasattr(controller, "clear_controlling_thread"):
        controller.clear_controlling_thread(force=True)


def _own_controller(per_thread: bool) -> ThreadpoolController:
    """Handle on the linear algebra whose limit each thread has alone, or all share."""
    controller = ThreadpoolController().select(user_api="blas")
    paths = [
        library.filepath
        for library in controller.lib_controllers
        if (getattr(library, "threading_layer", None) == _PER_THREAD) == per_thread
    ]
    return controller.select(filepath=paths)


@lru_cache(maxsize=1)
def _separate() -> ThreadpoolController:
    """Handle on the libraries whose threads belong to the thread that calls them."""
    return _own_controller(per_thread=True)


_LIMIT = _SharedLimit()


@contextmanager
def single_threaded() -> Iterator[None]:
    """Keep the linear algebra of this process to one thread.

    How a library splits a product among threads decides its last bits, and on the
    small matrices here splitting costs more than it gains. Contexts may overlap in
    any order and in any threads: the first limits the process and the last restores
    the number of threads that the first had found.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._nmf.threads import single_threaded
    >>> with single_threaded():
    ...     product = np.ones((2, 2)) @ np.ones((2, 2))
    """
    holder = object()
    try:
        _LIMIT.take(holder)
        with _separate().limit(limits=1, user_api="blas"):
            yield
    finally:
        _LIMIT.give_back(holder)


class _Turns:
    """One thread of the process after the other."""

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            # The thread that has the turn is not in the child.
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Have the turn."""
        with self._lock:
            yield


_TURNS = _Turns()


def in_turn() -> AbstractContextManager[None]:
    """Let the threads of the process go through many short calls one by one.

    Threads that do so side by side hand the interpreter's lock to and fro, and take
    twice as long as one after the other. Beside the one whose turn it is, the others
    multiply large matrices.

    Examples
    --------
    >>> from skppdnmf._nmf.threads import in_turn
    >>> with in_turn():
    ...     total = sum(range(3))
    """
    return _TURNS.taken()


def limit_this_thread() -> None:
    """Keep the linear algebra of the thread that calls this to one thread, for good.

    For a thread that ends with what it is needed for, inside of `single_threaded`.
    """
    _separate().limit(limits=1, user_api="blas")
