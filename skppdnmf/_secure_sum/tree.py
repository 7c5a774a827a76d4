"""The spanning tree over which sums travel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from .._data.graph import Network
from ..exceptions import DropoutError


@dataclass(frozen=True, eq=False)
class Tree:
    """A spanning tree of the agents.

    Parameters
    ----------
    root : int
        The agent at which the sum comes together.
    parents : dict from int to int
        Of every agent but the root.
    children : dict from int to list of int
        Of every agent, the root first, parents before children.
    """

    root: int
    parents: dict[int, int]
    children: dict[int, list[int]]


class SpanningTrees:
    """The breadth-first trees that all agents derive from the public graph.

    The root is the agent of least eccentricity; among several the one with the
    fewest hops to all others together, and then that of the lowest number.

    Parameters
    ----------
    network : Network
        The graph.

    Examples
    --------
    >>> from skppdnmf._data.graph import make_network
    >>> from skppdnmf._secure_sum.tree import SpanningTrees
    >>> trees = SpanningTrees(make_network("path", 5))
    >>> trees(frozenset()).root
    2
    >>> trees(frozenset({4})).children
    {1: [0, 2], 0: [], 2: [3], 3: []}
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._trees: dict[frozenset[int], Tree] = {}

    def __call__(self, dropped: frozenset[int]) -> Tree:
        """Return the tree of those that have not dropped out.

        Parameters
        ----------
        dropped : frozenset of int
            Agents that have.

        Returns
        -------
        Tree

        Raises
        ------
        DropoutError
            If the others cannot all reach each other.
        """
        tree = self._trees.get(dropped)
        if tree is None:
            tree = self._trees[dropped] = self._grow(dropped)
        return tree

    def _grow(self, dropped: frozenset[int]) -> Tree:
        """Grow the tree breadth first."""
        network = self._network
        left = np.setdiff1d(np.arange(network.n_agents), list(dropped))
        rest = network
        if dropped:
            rest = Network(network.adjacency[np.ix_(left, left)])
        hops = csgraph.shortest_path(
            sparse.csr_matrix(rest.adjacency), method="D", unweighted=True
        )
        if not np.isfinite(hops).all():
            raise DropoutError(
                f"the graph of the {len(left)} agents that are left is not connected"
            )
        # In this order: what the agents send does not depend on their numbering.
        root = int(np.lexsort((hops.sum(axis=1), hops.max(axis=1)))[0])
        parents: dict[int, int] = {}
        children: dict[int, list[int]] = {root: []}
        waiting = [root]
        for agent in waiting:
            for other in map(int, rest.neighbours[agent]):
                if other not in children:
                    children[other] = []
                    children[agent].append(other)
                    parents[other] = agent
                    waiting.append(other)
        name = _named(left)
        return Tree(
            name[root],
            {name[child]: name[parent] for child, parent in parents.items()},
            {name[one]: [name[c] for c in below] for one, below in children.items()},
        )


def _named(left: NDArray[np.intp]) -> list[int]:
    """Numbers in the whole graph of those that are left."""
    return [int(number) for number in left]
