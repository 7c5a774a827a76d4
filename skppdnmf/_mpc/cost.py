"""What a factorisation on shares sends, from its sizes.

Bytes and messages of SPU's ABY3 over whole numbers of 128 bits, of all three parties
together and, where they depend on which party reshuffles, on average; rounds are the
messages that follow one another. The tests compare them with SPU's own counters.
"""

from __future__ import annotations

from typing import NamedTuple

from .settings import N_PARTIES, MpcSettings
from .solver import MOMENTUM

_WORD = 16
_SHARE = 2 * _WORD  # of three shares a party holds two


class Operation(NamedTuple):
    """What one operation sends.

    Parameters
    ----------
    bytes : int
        For each number of its result.
    messages, rounds : int
        However many numbers there are.
    """

    bytes: int
    messages: int
    rounds: int


PRODUCT = Operation(104, 8, 3)
PUBLIC_PRODUCT = Operation(56, 5, 2)
COMPARISON = Operation(268, 31, 10)
MAXIMUM = Operation(332, 35, 12)
RECIPROCAL = Operation(3108, 180, 60)


class Sent(NamedTuple):
    """What is sent.

    Parameters
    ----------
    bytes, messages, rounds : int
        By all parties; one after another.
    """

    bytes: int = 0
    messages: int = 0
    rounds: int = 0

    def and_then(self, operation: Operation, size: int, times: int = 1) -> Sent:
        """Return this and an operation with a result of so many numbers after it."""
        return Sent(
            self.bytes + times * operation.bytes * size,
            self.messages + times * operation.messages,
            self.rounds + times * operation.rounds,
        )

    def times(self, n: int) -> Sent:
        """Return this, so many times."""
        return Sent(n * self.bytes, n * self.messages, n * self.rounds)

    def __add__(self, other: object) -> Sent:
        """Return this and the other after it."""
        if not isinstance(other, Sent):
            return NotImplemented
        return Sent(*(mine + its for mine, its in zip(self, other, strict=True)))


def one_factor(rows: int, n_components: int, n_starts: int, penalised: bool) -> Sent:
    """Return what is sent for one factor, in one iteration.

    Parameters
    ----------
    rows, n_components, n_starts : int
        Of the factor; side by side.
    penalised : bool
        Whether there are penalties.

    Returns
    -------
    Sent
    """
    square, size = n_components**2, rows * n_components
    sent = Sent().and_then(PRODUCT, size + square, n_starts)
    if penalised:
        sent = sent.and_then(PUBLIC_PRODUCT, square)
    sent = sent.and_then(RECIPROCAL, n_starts * n_components)
    sent = sent.and_then(PRODUCT, n_starts * size).and_then(PRODUCT, n_starts * square)
    sent = sent.and_then(PUBLIC_PRODUCT, n_starts * square)
    for _ in range(len(MOMENTUM) + 1):
        sent = sent.and_then(PRODUCT, size, n_starts)
        sent = sent.and_then(MAXIMUM, n_starts * size)
    sent = sent.and_then(PUBLIC_PRODUCT, n_starts * size)
    return sent.and_then(MAXIMUM, 2 * n_starts * size)


def one_iteration(
    n_samples: int, n_features: int, n_components: int, n_starts: int, penalised: bool
) -> Sent:
    """Return what is sent in one iteration.

    Parameters
    ----------
    n_samples, n_features, n_components, n_starts : int
        Sizes.
    penalised : bool
        Whether there are penalties.

    Returns
    -------
    Sent

    Examples
    --------
    >>> from skppdnmf._mpc.cost import one_iteration
    >>> one_iteration(500, 64, 10, 1, False).rounds
    320
    """
    return one_factor(n_samples, n_components, n_starts, penalised) + one_factor(
        n_features, n_components, n_starts, penalised
    )


def computation(
    settings: MpcSettings, n_features: int, n_components: int, n_starts: int
) -> Sent:
    """Return what the parties send each other from the shares to the components.

    Parameters
    ----------
    settings : MpcSettings
        What has been agreed upon.
    n_features, n_components, n_starts : int
        Sizes.

    Returns
    -------
    Sent
    """
    n_samples, n_agents = sum(settings.sizes), len(settings.sizes)
    penalised = any(settings.penalties)
    sizes = (n_samples, n_features, n_components)
    size = n_samples * n_features
    # To one scale: the largest exponent, two tables, and four products of all samples.
    begin = Sent().and_then(MAXIMUM, n_agents, max(1, (n_agents - 1).bit_length()))
    begin = begin.and_then(COMPARISON, 18 * n_agents).and_then(COMPARISON, 16)
    for part in settings.sizes:
        begin = begin.and_then(PRODUCT, part * n_features)
    begin = begin.and_then(PRODUCT, size, 2).and_then(PUBLIC_PRODUCT, size, 3)
    several = settings.n_side_by_side if n_starts > 1 else 0
    sent = begin + one_iteration(*sizes, n_starts, penalised).times(several)
    if several:
        K, m = n_components, n_features
        for _ in range(n_starts):
            sent = sent.and_then(PRODUCT, (m + K) * K).and_then(PRODUCT, m * K, 3)
        sent = sent.and_then(MAXIMUM, n_starts, 4 * (n_starts - 1).bit_length())
    rest = settings.n_iterations - several
    return sent + one_iteration(*sizes, 1, penalised).times(rest)


def shared_bytes(n_numbers: int) -> int:
    """Return the bytes with which numbers are shared with, or opened by, one party."""
    return _SHARE * n_numbers


def links(sent: Sent) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the messages and bytes of each directed link between the parties.

    Parameters
    ----------
    sent : Sent
        By all parties together, each as much as the others on average.

    Returns
    -------
    dict
        From links to messages and bytes.
    """
    pairs = [(i, j) for i in range(N_PARTIES) for j in range(N_PARTIES) if i != j]
    n = len(pairs)
    return {
        pair: (
            sent.messages // n + (place < sent.messages % n),
            sent.bytes // n + (place < sent.bytes % n),
        )
        for place, pair in enumerate(pairs)
    }
