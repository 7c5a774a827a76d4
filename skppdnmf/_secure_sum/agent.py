"""One agent of the secure sum: what it holds and what it makes of the totals.

As `skppdnmf._consensus.agent.Agent` it does no I/O: messages in, messages out. It
learns the network-wide totals and nothing else of the other agents.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._consensus.settings import Report
from .._nmf import admm
from .._nmf.hals import hals
from .exchange import SecureSum, Total
from .left_factor import LeftPath, row_norms
from .messages import SumMessage
from .totals import HEADROOM, Totals, row_blocks, setup_words, squared_norms

Array = NDArray[np.float64]
Letters = list[tuple[int, SumMessage]]

# Passes of coordinate descent, at first and then warm started; more would cost more
# than they gain.
_FIRST_SWEEPS = 10
_SWEEPS = 2


class SumAgent:
    """One party of the federation under the secure sum.

    Parameters
    ----------
    number : int
        Its node in the graph.
    name : str
        How errors call it.
    X : ndarray or sparse matrix of shape (n_i, F)
        Its samples; none for a relay.
    path : LeftPath
        What all agents compute alike.
    secure_sum : SecureSum
        Its side of the sums.

    Attributes
    ----------
    reports : list of Report
        For the agent's operator to take.
    finished : bool
        Whether the fit is over.
    squared_norm : float
        ``||X_i||^2``.
    """

    def __init__(
        self, number: int, name: str, X: Any, path: LeftPath, secure_sum: SecureSum
    ) -> None:
        self.number = number
        self.name = name
        self.X = X
        self.path = path
        self.squared_norm = self._squared_error = admm.squared_norm(X)
        self.reports: list[Report] = []
        self.finished = False
        self._sum = secure_sum
        self._W = self._extrapolated = np.zeros((*path.point.shape[:2], X.shape[0]))
        self._share: Totals | None = None
        self._words = np.empty(0, dtype=np.uint64)
        # Samples and their unit; rounded as soon as all know by how much.
        self._sample_unit = 1.0
        self._rounded_norm = self.squared_norm
        self._blocks: list[Any] = []

    def start(self) -> Letters:
        """Begin; the first messages carry public keys.

        Returns
        -------
        list of (int, SumMessage)
            Receivers and messages.
        """
        if not math.isfinite(self.squared_norm):
            raise OverflowError(f"{self.name}: ||X||^2 is not finite; rescale X")
        return self._sum.start(setup_words(squared_norms(self.X)))

    def advance(self, arrived: Letters) -> Letters:
        """Take messages and go on as far as they allow.

        At most one BCD iteration is finished in a call; its report is then the last
        of `reports`.

        Parameters
        ----------
        arrived : list of (int, SumMessage)
            Senders and messages.

        Returns
        -------
        list of (int, SumMessage)
            Receivers and messages.

        Raises
        ------
        CorruptedMessageError
            If a message is not what a neighbour must have sent.
        """
        outbox, total = self._sum.advance(arrived)
        return self._go_on(outbox, total)

    def drop(self, *others: int) -> Letters:
        """Take note that others have dropped out.

        Parameters
        ----------
        *others : int
            Numbers of the agents that have failed at the same time.

        Returns
        -------
        list of (int, SumMessage)
            Receivers and messages.

        Raises
        ------
        DropoutError
            If the fit cannot go on without them.
        """
        outbox, total = self._sum.drop(*others)
        return self._go_on(outbox, total)

    def _go_on(self, outbox: Letters, total: Total | None) -> Letters:
        """Learn from totals and begin the next sums, one iteration at most."""
        while total is not None:
            n_reports = len(self.reports)
            words = self._learn(total)
            outbox += self._sum.begin(words) if words is not None else []
            if len(self.reports) > n_reports:
                break
            letters, total = self._sum.advance([])
            outbox += letters
        return outbox

    def _learn(self, total: Total) -> NDArray[np.uint64] | None:
        """Take a total; return the next summand, or None at the end."""
        path = self.path
        if total.step == 0:
            path.set_up(total.words)
            if not path.settings.exact:
                self.X = path.fixed_point.round_samples(self.X)
                self._sample_unit = path.fixed_point.sample_unit
                self._rounded_norm = admm.squared_norm(self.X) * self._sample_unit**2
                self._blocks = row_blocks(self.X, path.settings.n_max)
            self._solve_right(_FIRST_SWEEPS)
        else:
            # Alone, an agent has no need to round.
            alone = self._share if path.settings.exact else None
            path.take(total.step, alone or total.words, total.fresh)
            self._end_iteration(total.step)
        if self.finished:
            return None
        if total.step == 0 and not path.settings.exact:
            # With the first totals goes the norm of what has been rounded.
            norm = path.fixed_point.rounded_norm_words(self._blocks)
            return np.concatenate([norm, self._words])
        return self._words

    def _end_iteration(self, step: int) -> None:
        """Report, and solve the right factors for the next points."""
        path = self.path
        if path.improved and self._share is not None:
            gram, products, _ = self._share
            H = path.normalised
            inner = float(np.vdot(products[path.leader], H))
            outer = float(np.vdot(gram[path.leader], H @ H.T))
            self._squared_error = max(0.0, self._rounded_norm - 2.0 * inner + outer)
        self.finished = path.finished
        self.reports.append(
            Report(
                iteration=step,
                n_exchanges=max(0, self._sum.n_rounds - 1),
                H=path.H,
                squared_error=self._squared_error,
                stopped=path.converged,
                final=self.finished,
            )
        )
        if self.finished:  # no iterate of the right factor is left behind
            self._W = self._extrapolated = self._W[:0]
            self._share = None
            self._words = self._words[:0]
            self._sum.end()
            return
        if len(path.kept) < len(self._W):
            self._W = self._W[path.kept]
            self._extrapolated = self._extrapolated[path.kept]
        if path.divisors is not None:
            self._W = self._W / path.divisors[:, :, None]
            self._extrapolated = self._extrapolated / path.divisors[:, :, None]
        self._solve_right(_SWEEPS)

    def _solve_right(self, sweeps: int) -> None:
        """Solve the right factors for the points and form the next summand."""
        path = self.path
        point = path.point
        flat = point.reshape(-1, point.shape[-1])
        products = _right_products(self.X, flat * self._sample_unit)
        products = products.reshape(self._W.shape)
        products -= path.right.l1
        W = hals(path.gram, products, self._extrapolated.copy(), sweeps)
        previous, self._W = self._W, W
        self._extrapolated = W
        if path.weights.any():
            step = W - previous
            step *= path.weights[:, None, None]
            step += W
            self._extrapolated = np.maximum(step, 0.0, out=step)
        norms = row_norms(point)[:, :, None]
        normalised = self._extrapolated * norms
        for start in self._beyond_bound(normalised):
            scale = _best_scale(products[start], path.gram[start], W[start])
            self._extrapolated[start] = scale * W[start]
            normalised[start] = self._extrapolated[start] * norms[start]
        if path.settings.exact:
            self._share = self._exact_share(normalised)
        else:
            self._words, self._share = path.fixed_point.encode(normalised, self._blocks)

    def _beyond_bound(self, normalised: Array) -> NDArray[np.intp]:
        """Return the starts whose summand exceeds the agent's share of the bound."""
        bound = HEADROOM**2 * self.squared_norm / self.path.point.shape[-1]
        largest = np.einsum("skn,skn->sk", normalised, normalised).max(axis=1)
        return np.flatnonzero(~(largest <= bound))

    def _exact_share(self, normalised: Array) -> Totals:
        """Return the totals of the agent alone, not rounded."""
        n_starts, n_components, n_samples = normalised.shape
        flat = normalised.reshape(n_starts * n_components, n_samples)
        return Totals(
            normalised @ normalised.transpose(0, 2, 1),
            _left_products(self.X, flat).reshape(self.path.point.shape),
            normalised.sum(axis=2),
        )


def _best_scale(products: Array, gram: Array, W: Array) -> float:
    """Return the t for which ``t W`` is nearest to the samples."""
    square = float(np.vdot(gram @ W, W))
    return max(0.0, float(np.vdot(products, W)) / square) if square > 0 else 0.0


def _right_products(X: Any, H: Array) -> Array:
    """Return ``H X^T`` in double precision, shape (m, n)."""
    H = H.astype(X.dtype, copy=False)
    product = (X @ H.T).T if sparse.issparse(X) else H @ X.T
    return np.ascontiguousarray(product, dtype=np.float64)


def _left_products(X: Any, W: Array) -> Array:
    """Return ``W X`` in double precision, shape (m, F)."""
    W = W.astype(X.dtype, copy=False)
    product = (X.T @ W.T).T if sparse.issparse(X) else W @ X
    return np.ascontiguousarray(product, dtype=np.float64)
