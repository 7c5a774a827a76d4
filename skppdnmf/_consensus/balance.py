"""How strongly the agents pull each other: a residual balance that all agree on.

Strong links make the copies of the left factor agree early, on poor components; weak
ones leave them apart. What is right differs from data to data, and shows in two
numbers that every agent has without any exchange of its own: how far it is from its
neighbours, and how far its left factor has moved in an iteration. Each agent puts both,
rounded to quarters of an octave, on its messages, and passes on the largest that it has
heard. After as many rounds as the graph's diameter all hold the same two integers, and
draw the same conclusion from them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .settings import AgentSettings

# Levels are quarters of an octave above 2**-50; 0 stands for nothing at all.
_PER_OCTAVE = 4
_LEVEL_OF_ONE = 50 * _PER_OCTAVE
HIGHEST_LEVEL = 255
# The distance from the neighbours that is aimed at, in octaves of the movement: 0.6
# times, and towards the end 0.15 times. benchmarks/bench_penalties.py shows others.
_TARGET = -0.75
_LAST_TARGET = -2.75
_LAST_PART = 0.6  # of the iterations, from which the target falls
# How fast the pull follows, in octaves for an octave, and how fast that fades.
_RATE = 0.4
_RATE_HALF_LIFE = 60
_LARGEST_STEP = 0.6
_WEAKEST, _STRONGEST = -5.0, 7.0
# Copies that part: two octaves further apart than they have been, and by over 1 %.
_FIRST_ITERATION = 10  # before that the components form
_PARTED = 2 * _PER_OCTAVE
_LARGE = _LEVEL_OF_ONE + round(_PER_OCTAVE * math.log2(0.01))
_WINDOW = 10
_MOST_ANSWERS = 4


class Levels(NamedTuple):
    """The largest distances that an agent has heard of, as integers up to 255.

    Parameters
    ----------
    disagreement : int
        Of an agent's left factor from its neighbours'.
    movement : int
        Of an agent's left factor in one iteration.
    """

    disagreement: int = 0
    movement: int = 0


class Pull(NamedTuple):
    """What the agents have agreed on for an iteration.

    Parameters
    ----------
    strength : float
        Factor of the consensus penalties.
    extrapolated : bool
        Whether right factors may be extrapolated.
    """

    strength: float = 1.0
    extrapolated: bool = True


UNIT_PULL = Pull()


def level(size: float) -> int:
    """Round a relative distance to quarters of an octave.

    Parameters
    ----------
    size : float
        Nonnegative.

    Returns
    -------
    int
        From 0 to 255; 0 for nothing, 200 for one.

    Examples
    --------
    >>> from skppdnmf._consensus.balance import level
    >>> level(1.0), level(0.5), level(0.0), level(1e-30), level(float("inf"))
    (200, 196, 0, 1, 255)
    """
    if not size:
        return 0
    if not size < 2.0**20:
        return HIGHEST_LEVEL
    octaves = math.log2(size)
    place = _LEVEL_OF_ONE + round(_PER_OCTAVE * octaves)
    return max(1, min(HIGHEST_LEVEL, place))


class Balance:
    """One agent's part in the balance; equal in all agents once they have agreed.

    Parameters
    ----------
    settings : AgentSettings
        Common to all agents.

    Attributes
    ----------
    levels : Levels
        To be sent along with the next messages.
    measured : int
        The iteration that they are of.
    parted : bool
        Whether the copies are much further apart than they have been.
    best_iteration : int
        Iterations after which the copies were closest, as far as all know; 0 if none.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from skppdnmf._consensus.balance import Balance
    >>> settings = SimpleNamespace(balances=True, diameter=1, max_iter=60)
    >>> sides = [Balance(settings), Balance(settings)]
    >>> for side, distance in zip(sides, [0.2, 0.01]):
    ...     side.end_iteration(1, distance, 0.02)
    >>> sides[0].hear(sides[1].levels), sides[1].hear(sides[0].levels)
    (None, None)
    >>> for side in sides:
    ...     side.end_round()
    ...     side.end_iteration(2, 0.01, 0.01)
    >>> sides[0].pull == sides[1].pull, sides[0].pull.strength > 1
    (True, True)
    """

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._octaves = 0.0
        self.levels = Levels()
        self.measured = 0
        self._rounds = 0
        self._least = HIGHEST_LEVEL + 1
        self.best_iteration = 0
        self.parted = False
        self._answered = -_WINDOW
        self._answers = 0

    @property
    def pull(self) -> Pull:
        """What holds for the next iteration."""
        calm = self._answers > 0
        return Pull(2.0**self._octaves, not calm)

    @property
    def given_up(self) -> bool:
        """Whether the copies have parted and stronger pulls have not helped."""
        return self._answers > _MOST_ANSWERS

    def hear(self, levels: Levels) -> None:
        """Take what a neighbour's message says."""
        mine = self.levels
        self.levels = Levels(
            max(mine.disagreement, levels.disagreement),
            max(mine.movement, levels.movement),
        )

    def end_round(self) -> None:
        """Count a round in which all neighbours were heard."""
        self._rounds += 1

    def end_iteration(
        self, iteration: int, disagreement: float, movement: float
    ) -> None:
        """Draw conclusions if all agents hold the same levels; then measure anew.

        Parameters
        ----------
        iteration : int
            Finished BCD iterations.
        disagreement, movement : float
            The agent's own, of the iteration that ends.
        """
        if not self._settings.balances:
            return
        if self.measured:
            if self._rounds < self._settings.diameter:
                return
            self._conclude(iteration)
        self.levels = Levels(level(disagreement), level(movement))
        self.measured, self._rounds = iteration, 0

    def _conclude(self, iteration: int) -> None:
        """Change the pull by what all have measured."""
        disagreement, movement = self.levels
        self._watch(iteration, disagreement)
        if not (disagreement and movement):
            return
        done = iteration / self._settings.max_iter
        late = max(0.0, done - _LAST_PART) / (1.0 - _LAST_PART)
        target = _TARGET + (_LAST_TARGET - _TARGET) * late
        excess = (disagreement - movement) / _PER_OCTAVE - target
        rate = _RATE * _RATE_HALF_LIFE / (_RATE_HALF_LIFE + iteration)
        step = max(-_LARGEST_STEP, min(_LARGEST_STEP, rate * excess))
        self._move(step)

    def _move(self, step: float) -> None:
        """Make the pull stronger or weaker, by octaves."""
        self._octaves = max(_WEAKEST, min(_STRONGEST, self._octaves + step))

    def _watch(self, iteration: int, disagreement: int) -> None:
        """Notice copies that part, and answer with a stronger pull."""
        if self.measured < _FIRST_ITERATION:
            return
        if disagreement <= self._least:
            self._least, self.best_iteration = disagreement, self.measured
        self.parted = disagreement > max(self._least + _PARTED, _LARGE)
        if not self.parted:
            self._answers = 0
        elif iteration - self._answered >= _WINDOW:
            self._answered = iteration
            self._answers += 1
            self._move(1.0)
