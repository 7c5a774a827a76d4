"""What a fit under the secure sum sends, from formulas."""

from __future__ import annotations

from .._data.graph import Network
from .left_factor import starts_after
from .limbs import N_LIMBS
from .messages import KEY_ENTRY_BYTES, SIGNED_BYTES, SUM_HEADER_BYTES, WORD_BYTES
from .totals import SETUP_WORDS
from .tree import SpanningTrees


def count_bytes(
    network: Network, words_per_start: int, n_starts: int, max_iter: int
) -> int:
    """Count what the secure sum sends in a fit that runs all its iterations.

    Parameters
    ----------
    network : Network
        The graph.
    words_per_start : int
        Words of one start's totals.
    n_starts : int
        Random starts that are followed side by side at first.
    max_iter : int
        Iterations.

    Returns
    -------
    int
        Bytes; none of one agent alone.
    """
    words = SETUP_WORDS + N_LIMBS
    for iteration in range(1, max_iter + 1):
        words += n_starts * words_per_start
        n_starts = starts_after(iteration, n_starts, max_iter)
    return count_bytes_of(network, words, max_iter + 1)


def count_bytes_of(network: Network, words: int, n_sums: int) -> int:
    """Count what sums take that together have so many words.

    Parameters
    ----------
    network : Network
        The graph.
    words : int
        Words of all sums.
    n_sums : int
        How many sums.

    Returns
    -------
    int
        Bytes; none of one agent alone.
    """
    if network.n_agents == 1:
        return 0
    tree = SpanningTrees(network)(frozenset())
    below = dict.fromkeys(tree.children, 1)
    for agent in reversed(tree.children):  # children before parents
        if agent != tree.root:
            below[tree.parents[agent]] += below[agent]
    n_links = network.n_agents - 1
    keys = sum(below[agent] for agent in below if agent != tree.root)
    keys += n_links * network.n_agents
    n_messages = 2 * n_links * (n_sums + 1)
    n_bytes = n_messages * SUM_HEADER_BYTES
    n_bytes += keys * (KEY_ENTRY_BYTES + SIGNED_BYTES)
    n_bytes += 2 * n_links * words * WORD_BYTES
    return n_bytes
