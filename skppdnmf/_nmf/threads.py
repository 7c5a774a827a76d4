"""One thread for the linear algebra, so that results do not depend on how many."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    """Handle on the thread pools of this process's linear algebra."""
    return ThreadpoolController()


def single_threaded() -> AbstractContextManager[Any]:
    """Keep the linear algebra of this process to one thread.

    How a library splits a product among threads decides its last bits, and on the
    small matrices here splitting costs more than it gains.

    Returns
    -------
    context manager
        Restores the number of threads at its end.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._nmf.threads import single_threaded
    >>> with single_threaded():
    ...     product = np.ones((2, 2)) @ np.ones((2, 2))
    """
    return _controller().limit(limits=1, user_api="blas")
