"""A bound on what several fits of the same data may tell together."""

from __future__ import annotations

import threading
from typing import Any

from .._numbers import python_number
from .._secure_sum.accountant import compose, epsilon_of, mu_of
from ..exceptions import PrivacyBudgetError

# Of delta, what fits leave for noise that is no rounded Gaussian.
_REMAINDER = 0.01


class PrivacyBudget:
    """What all fits of the same data may spend together; refuses to overspend.

    Each fit with `epsilon` tells something anew, and so does every fit of a grid
    search. Estimators that are given one budget, their clones among them, spend from
    it; their fits are composed as Gaussian mechanisms, so that four of epsilon 1 cost
    about 2.2, not 4. Fits of one budget have one unit, the first fit's: what hides a
    sample does not hide an agent.

    A fit spends before it sends anything, and what it has spent stays spent if it
    fails. A budget counts within one process and does not let itself be pickled: a
    copy could be spent as well.

    Parameters
    ----------
    epsilon : float
        Bound for all fits together, above 0.
    delta : float
        Probability with which the bound may fail, between 0 and 1.

    Attributes
    ----------
    n_fits : int
        Fits that have been paid for.

    Examples
    --------
    >>> from skppdnmf import PrivacyBudget
    >>> budget = PrivacyBudget(epsilon=3.0, delta=1e-5)
    >>> budget.spend(epsilon=1.0, delta=1e-6)
    >>> budget.spend(epsilon=1.0, delta=1e-6)
    >>> budget.n_fits, round(budget.spent_epsilon, 2)
    (2, 1.28)
    """

    def __init__(self, epsilon: float, delta: float) -> None:
        epsilon, delta = python_number(epsilon), python_number(delta)
        if not 0 < epsilon < float("inf"):
            raise ValueError(f"epsilon={epsilon!r} should be a number above 0")
        if not 0 < delta < 1:
            raise ValueError(f"delta={delta!r} should be between 0 and 1")
        self.epsilon = float(epsilon)
        self.delta = float(delta)
        self._mus: list[float] = []
        self._deltas: list[float] = []
        self._unit: str | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"PrivacyBudget(epsilon={self.epsilon:g}, delta={self.delta:g})"

    def __deepcopy__(self, memo: Any) -> PrivacyBudget:
        return self

    def __copy__(self) -> PrivacyBudget:
        return self

    def __sklearn_clone__(self) -> PrivacyBudget:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            "a PrivacyBudget is not pickled: a copy could be spent once more; fit in "
            "this process (n_jobs=None, or threads), and save estimators without it"
        )

    @property
    def n_fits(self) -> int:
        """Fits that have been paid for."""
        return len(self._mus)

    @property
    def spent_epsilon(self) -> float:
        """Epsilon of all fits so far together, at the budget's delta."""
        return self._epsilon_of(self._mus, self._deltas)

    def spend(self, epsilon: float, delta: float, unit: str = "sample") -> None:
        """Pay for a fit, or refuse it.

        Parameters
        ----------
        epsilon, delta : float
            Of the fit.
        unit : {"sample", "agent"}, default="sample"
            Its `privacy_unit`.

        Raises
        ------
        PrivacyBudgetError
            If all fits together would exceed the budget, or were of another unit;
            nothing is spent then.
        """
        mu = mu_of(epsilon, delta * (1.0 - _REMAINDER))
        with self._lock:
            if self._unit not in (None, unit):
                raise PrivacyBudgetError(
                    f"privacy_unit={unit!r}, but {self.n_fits} fits have spent from "
                    f"{self!r} with privacy_unit={self._unit!r}; take a budget for each"
                )
            mus, deltas = [*self._mus, mu], [*self._deltas, delta]
            needed = self._epsilon_of(mus, deltas)
            if not needed <= self.epsilon * (1.0 + 1e-9):
                raise PrivacyBudgetError(
                    f"a fit with epsilon={epsilon:g}, delta={delta:g} would exceed "
                    f"{self!r}: {self.n_fits} fits have spent "
                    f"epsilon={self.spent_epsilon:.3g}, and with it "
                    f"{needed:.3g} would be"
                )
            self._mus, self._deltas, self._unit = mus, deltas, unit

    def _epsilon_of(self, mus: list[float], deltas: list[float]) -> float:
        """Epsilon of fits together, at the budget's delta."""
        if not mus:
            return 0.0
        delta = self.delta - _REMAINDER * sum(deltas)
        return epsilon_of(compose(*mus), delta) if delta > 0 else float("inf")
