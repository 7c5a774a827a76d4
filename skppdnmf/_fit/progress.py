"""Progress of a fit, for people who watch."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from .._text import format_bytes
from .history import HistoryRow


class Progress:
    """A progress bar over the iterations, with error and traffic.

    Parameters
    ----------
    verbose : int
        0 shows nothing, 1 a bar, 2 also a line for each iteration.
    max_iter : int
        Length of the bar.
    """

    def __init__(self, verbose: int, max_iter: int) -> None:
        self._verbose = int(verbose)
        self._max_iter = max_iter
        self._bar: Any = None

    def __enter__(self) -> Progress:
        if self._verbose > 0:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=self._max_iter, unit="it", desc="BCD")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, row: HistoryRow) -> None:
        """Show one more iteration."""
        if self._bar is not None:
            self._bar.set_postfix_str(
                f"exchanges {row.exchanges}, error {row.shared_error:.4f}, "
                f"consensus {row.consensus_error:.2g}, {format_bytes(row.bytes)}",
                refresh=False,
            )
            self._bar.update()
            if self._verbose > 1:
                self._bar.write(
                    f"iteration {self._bar.n}: {row.exchanges} exchanges, error "
                    f"{row.shared_error:.6f}, consensus error "
                    f"{row.consensus_error:.3g}, {format_bytes(row.bytes)}, "
                    f"{row.seconds:.1f} s"
                )
