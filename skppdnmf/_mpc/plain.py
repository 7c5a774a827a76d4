"""The same iterations in floating point, by whoever has all samples: the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import solver
from .settings import MpcSettings


class PlainRun:
    """Runs what is run on shares in plain arrays, iteration by iteration.

    Parameters
    ----------
    parts : sequence of ndarray of shape (n_i, F)
        All agents' samples.
    starts : ndarray of shape (S, K, F)
        Common starts.
    settings : MpcSettings
        What has been agreed upon.

    Attributes
    ----------
    n_iterations : int
        That have been done.
    index : int
        The start that was chosen; 0 before.
    """

    def __init__(
        self,
        parts: Sequence[NDArray[Any]],
        starts: NDArray[np.float64],
        settings: MpcSettings,
    ) -> None:
        self._settings = settings
        scaled = [solver.normalised(part) for part in parts]
        exponents = np.array([exponent for _, exponent in scaled], dtype=np.float32)
        self._X, self._scale, *rest = solver.scaled(
            np, [X for X, _ in scaled], exponents, settings.penalties
        )
        self._weights = rest[0] if rest else None
        self._fixed = settings.fixed_of(starts)
        self._columns = None
        if self._fixed is not None:
            self._columns = solver.fixed_columns(starts, settings.n_fixed)
        self._state = solver.begun(np, len(self._X), starts, settings.n_fixed)
        self._norm = float(np.linalg.norm(self._X))
        self.n_iterations = 0
        self.index = 0
        self._leading = 0

    def advance(self) -> float:
        """Do one more iteration.

        Returns
        -------
        float
            The error of the factors, relative to the data; of the best start.
        """
        settings = self._settings
        weight = solver.weight_of(self.n_iterations, settings.n_iterations)
        self._state = solver.iterated(
            np,
            self._X,
            self._state,
            np.float32(weight),
            self._weights,
            self._columns,
        )
        self.n_iterations += 1
        several = len(self._state.left) > 1
        if several and self.n_iterations == settings.n_side_by_side:
            self.index = int(solver.best(np, self._X, self._state, self._weights))
            k = slice(self.index, self.index + 1)
            self._state = solver.State(*(one[k] for one in self._state))
        errors = [
            float(np.linalg.norm(self._X - right @ left.T))
            for left, right in zip(
                self._state.left, self._state.right_ahead, strict=True
            )
        ]
        self._leading = int(np.argmin(errors))
        return errors[self._leading] / (self._norm or 1.0)

    @property
    def components(self) -> NDArray[np.float64]:
        """The components as they are, of the start with the least error."""
        scale = self._scale if any(self._settings.penalties) else None
        return solver.components_of(
            self._state.left[self._leading], scale, self._X.size, self._fixed
        )
