"""One agent's turn, wherever it takes it."""

from __future__ import annotations

from typing import Any

from .._agent import Envelope, Step
from ..exceptions import AgentLost, CorruptedMessageError

# A party, what has arrived for it (None: nothing ever), and whether it may leave.
Call = tuple[Any, list[Envelope] | None, bool]
# The party after its turn, its step, and why it is lost.
Answer = tuple[Any, Step, Exception | None]


def take_turn(
    party: Any, arrived: list[Envelope] | None, may_leave: bool
) -> tuple[Any, Step, Exception | None]:
    """Let one agent go on, where the linear algebra has one thread already.

    What an agent refuses before it has begun is no departure.
    """
    try:
        step = party.start() if arrived is None else party.advance(arrived)
    except (AgentLost, CorruptedMessageError) as error:
        if not may_leave or arrived is None:
            raise
        return party, Step([]), error
    return party, step, None
