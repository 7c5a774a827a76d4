"""How many ciphertexts a fit makes, from formulas."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._consensus.fixed_point import fixed_point, value_layout, with_spare
from .._consensus.masks import MASK_BITS
from .._consensus.messages import BARE_MESSAGE_BYTES, message_sizes
from .._consensus.scale import N_VALUES, VALUE_BITS
from .._consensus.settings import AgentSettings
from .._data.graph import Network
from .._paillier.payload import public_bytes
from .._paillier.slots import SlotLayout
from .._secure_sum.left_factor import starts_after
from .._secure_sum.limbs import N_LIMBS
from .._secure_sum.messages import KEY_ENTRY_BYTES, SUM_HEADER_BYTES, WORD_BYTES
from .._secure_sum.totals import SETUP_WORDS
from .._secure_sum.tree import SpanningTrees


class Work(NamedTuple):
    """Ciphertext operations of a fit.

    Parameters
    ----------
    exchanges : int
        Exchanges of the left factor.
    encryptions : int
        Ciphertexts that agents make for their requests.
    replies : int
        Ciphertexts that agents make for their replies; as many are decrypted.
    powers : int
        Ciphertexts raised to a mask.
    ciphertexts, bytes : int
        What crosses the links.
    values : int
        Values times directed edges times exchanges.
    """

    exchanges: int
    encryptions: int
    replies: int
    powers: int
    ciphertexts: int
    bytes: int
    values: int


def left_layout(settings: AgentSettings, start: NDArray[np.float64]) -> SlotLayout:
    """Slots with which the left factor's exchange starts; an error if none fits."""
    assert settings.n_max is not None
    # As wide as the exchange makes them: spare bits are left out before a fit is.
    _, bits = fixed_point(start.ravel(), settings.n_max)
    return value_layout(
        start.size,
        with_spare(bits, settings.key_size),
        settings.n_max,
        settings.masking,
        settings.key_size,
    )


def count_work(
    network: Network,
    settings: AgentSettings,
    start: NDArray[np.float64],
    encryption: str | None,
) -> Work:
    """Count the operations of a fit that runs all its iterations.

    Parameters
    ----------
    network : Network
        The graph.
    settings : AgentSettings
        Common to all agents.
    start : ndarray of shape (K, F)
        Common start of the left factor.
    encryption : {"paillier", "simulated"} or None
        Kind of cipher.

    Returns
    -------
    Work
        Simulated ciphertexts count as real ones.
    """
    exchanges = settings.max_iter * settings.max_admm_iter
    n_edges = 2 * network.n_edges
    averages = settings.n_averages if network.n_agents > 1 else 0
    rounds = averages * settings.averaging.n_rounds
    spreading = averages * settings.leader_eccentricity
    batches: list[tuple[int, SlotLayout | None, int]] = [
        (rounds, None, N_VALUES),
        (exchanges if n_edges else 0, None, start.size),
    ]
    if encryption is not None and n_edges:
        average = SlotLayout(
            N_VALUES, VALUE_BITS, MASK_BITS, "scalar", settings.key_size
        )
        batches = [
            (rounds, average, N_VALUES),
            (exchanges, left_layout(settings, start), start.size),
        ]
    encryptions = replies = powers = ciphertexts = n_bytes = 0
    for repeats, layout, n_values in batches:
        sizes = message_sizes(layout, n_values)
        encryptions += repeats * network.n_agents * sizes.request_ciphertexts
        replies += repeats * n_edges * sizes.reply_ciphertexts
        powers += repeats * n_edges * sizes.request_ciphertexts
        ciphertexts += (
            repeats * n_edges * (sizes.request_ciphertexts + sizes.reply_ciphertexts)
        )
        n_bytes += repeats * n_edges * (sizes.request_bytes + sizes.reply_bytes)
    n_bytes += spreading * n_edges * BARE_MESSAGE_BYTES
    if encryption is not None:
        key_bytes = BARE_MESSAGE_BYTES + public_bytes(settings.key_size)
        n_bytes += n_edges * key_bytes
    return Work(
        exchanges if n_edges else 0,
        encryptions,
        replies,
        powers,
        ciphertexts,
        n_bytes,
        exchanges * n_edges * start.size,
    )


def count_sum_work(
    network: Network, words_per_start: int, n_starts: int, max_iter: int
) -> Work:
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
    Work
        Without ciphertexts.
    """
    if network.n_agents == 1:
        return Work(0, 0, 0, 0, 0, 0, 0)
    tree = SpanningTrees(network)(frozenset())
    below = dict.fromkeys(tree.children, 1)
    for agent in reversed(tree.children):  # children before parents
        if agent != tree.root:
            below[tree.parents[agent]] += below[agent]
    n_links = network.n_agents - 1
    keys = sum(below[agent] for agent in below if agent != tree.root)
    keys += n_links * network.n_agents
    words = SETUP_WORDS + N_LIMBS
    for iteration in range(1, max_iter + 1):
        words += n_starts * words_per_start
        n_starts = starts_after(iteration, n_starts, max_iter)
    n_messages = 2 * n_links * (max_iter + 2)
    n_bytes = n_messages * SUM_HEADER_BYTES + keys * KEY_ENTRY_BYTES
    n_bytes += 2 * n_links * words * WORD_BYTES
    return Work(max_iter, 0, 0, 0, 0, n_bytes, 2 * n_links * words)
