"""Which agents share a key: everybody with everybody, or a random sparse graph."""

from __future__ import annotations

import math
import secrets

import numpy as np
from numpy.typing import NDArray

# Up to so many agents all pairs share a key.
ALL_PAIRS = 50
# What the default degree of a larger key graph withstands: this share of all agents,
# settled before the graph is drawn, may collude, and the chance that they cut honest
# agents off is below 2**-40.
COLLUDING_SHARE = 1 / 3
FAILURE_BITS = 40
_PURPOSE = 0x6B657973


def key_degree(
    n_agents: int,
    colluding: float = COLLUDING_SHARE,
    failure_bits: int = FAILURE_BITS,
) -> int:
    r"""Return with how many others each agent should share a key.

    The graph is that of Bell et al. (CCS 2020): agents on a circle in random order,
    each sharing keys with the k/2 next on either side. The agents that do not
    collude learn nothing but their total as long as the graph among them is
    connected, which it is unless k/2 colluding agents stand side by side. There are
    n places where such a run can begin, so that

    .. math:: P(\text{failure}) \le n \, c^{k/2}

    for a share c of colluding agents that are settled before the order is drawn.
    Those who choose afterwards isolate an agent with the k that share a key with it.

    Parameters
    ----------
    n_agents : int
        Number of agents, n.
    colluding : float, default=1/3
        Largest share c of agents that pool what they know; below 1.
    failure_bits : int, default=40
        The bound on the failure probability is ``2**-failure_bits``.

    Returns
    -------
    int
        ``n_agents - 1`` (all pairs) up to 50 agents, else the smallest sufficient
        even k.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> from skppdnmf.exchange import key_degree
    >>> key_degree(10), key_degree(50), key_degree(1000), key_degree(100_000)
    (9, 49, 64, 72)
    """
    if n_agents < 1:
        raise ValueError(f"n_agents={n_agents} should be >= 1")
    if not 0 < colluding < 1:
        raise ValueError(f"colluding={colluding} should be above 0 and below 1")
    if failure_bits < 1:
        raise ValueError(f"failure_bits={failure_bits} should be >= 1")
    if n_agents <= ALL_PAIRS:
        return n_agents - 1
    bits = failure_bits + math.log2(n_agents)
    half = math.ceil(bits / -math.log2(colluding))
    return min(n_agents - 1, 2 * half)


def make_key_graph(
    n_agents: int, degree: int, rng: np.random.Generator
) -> list[NDArray[np.intp]]:
    """Draw a key graph.

    Parameters
    ----------
    n_agents : int
        Number of agents.
    degree : int
        Others with whom each agent shares a key: at least 1, 2 from three agents
        on, so that the graph is connected. Rounded up to an even number, or to all.
    rng : numpy.random.Generator
        Source of the order on the circle.

    Returns
    -------
    list of ndarray of int
        For each agent the numbers of the others, ascending.

    Raises
    ------
    ValueError
        If the degree is below the least or above ``n_agents - 1``.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.exchange import make_key_graph
    >>> make_key_graph(4, 3, np.random.default_rng(0))[0]
    array([1, 2, 3])
    """
    n_agents, degree = int(n_agents), int(degree)
    check_key_degree(n_agents, degree)
    if degree + degree % 2 >= n_agents - 1:
        everyone = np.arange(n_agents)
        return [np.delete(everyone, i) for i in range(n_agents)]
    order = rng.permutation(n_agents)
    steps = np.arange(1, (degree + 1) // 2 + 1)
    steps = np.concatenate([-steps, steps])
    place = np.argsort(order)
    return [
        np.sort(order[(place[i] + steps) % n_agents]).astype(np.intp)
        for i in range(n_agents)
    ]


def system_generator() -> np.random.Generator:
    """Return a numpy generator with a 256-bit seed from the operating system.

    For what no seed that a program can fix should decide, such as who shares a key
    with whom. The generator expands its seed by numpy's Philox, which passes
    statistical tests but is not a cryptographic generator: keys, noise and masks
    never come from it.

    Returns
    -------
    numpy.random.Generator
        A fresh generator.

    Examples
    --------
    >>> from skppdnmf.exchange import system_generator
    >>> system_generator().integers(2) in (0, 1)
    True
    """
    return np.random.Generator(np.random.Philox(secrets.randbits(256)))


def key_graph_of(n_agents: int, degree: int, seed: int) -> list[NDArray[np.intp]]:
    """Return the key graph that all agents of a run derive alike.

    Parameters
    ----------
    n_agents, degree : int
        As for `make_key_graph`.
    seed : int
        The run's public seed.

    Returns
    -------
    list of ndarray of int
        For each agent the numbers of the others; nobody for an agent alone.

    Examples
    --------
    >>> from skppdnmf._secure_sum.key_graph import key_graph_of
    >>> key_graph_of(3, 2, seed=0)
    [array([1, 2]), array([0, 2]), array([0, 1])]
    """
    if n_agents == 1:
        return [np.empty(0, dtype=np.intp)]
    # A stream of its own: the same seed draws the starts.
    rng = np.random.Generator(np.random.Philox([seed, _PURPOSE]))
    return make_key_graph(n_agents, degree, rng)


def check_key_degree(n_agents: int, degree: int) -> None:
    """Refuse a degree that makes no connected key graph.

    Parameters
    ----------
    n_agents, degree : int
        As for `make_key_graph`.

    Raises
    ------
    ValueError
        If the degree is below the least or above ``n_agents - 1``.
    """
    least = min(2, n_agents - 1)
    if not least <= degree <= n_agents - 1:
        raise ValueError(
            f"key_degree={degree} is not between {least} and n_agents - 1="
            f"{n_agents - 1}"
        )


def keys_connected(peers: dict[int, set[int]]) -> bool:
    """Return whether the key graph is connected.

    Parameters
    ----------
    peers : dict from int to set of int
        For each agent those with whom it shares a key.

    Returns
    -------
    bool
        True for no agent or one.

    Examples
    --------
    >>> from skppdnmf.exchange import keys_connected
    >>> keys_connected({0: {1}, 1: {0}, 2: set()})
    False
    """
    if not peers:
        return True
    reached = set()
    waiting = [next(iter(peers))]
    while waiting:
        agent = waiting.pop()
        if agent not in reached:
            reached.add(agent)
            waiting += [other for other in peers[agent] if other in peers]
    return len(reached) == len(peers)
