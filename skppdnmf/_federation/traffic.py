"""What went over each link."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .._agent import ENVELOPE_BYTES, Envelope


class Traffic:
    """Counts envelopes, ciphertexts and bytes of each directed edge.

    Attributes
    ----------
    total_bytes : int
        Bytes sent so far.
    """

    def __init__(self) -> None:
        # Plain lists: counting must not cost more than the messages.
        self._counts: dict[tuple[int, int], list[int]] = {}
        self.total_bytes = 0

    def count(self, envelopes: Iterable[Envelope]) -> None:
        """Count envelopes; their ciphertexts unless they are bytes already."""
        last: Any = None
        for _, _, sender, receiver, _, _, body in envelopes:
            # What goes to several neighbours alike is measured once.
            if body is not last:
                last = body
                wire = isinstance(body, bytes)
                n_bytes = ENVELOPE_BYTES + (len(body) if wire else body.n_bytes)
                n_ciphertexts = 0 if wire else body.n_ciphertexts
            counts = self._counts.get((sender, receiver))
            if counts is None:
                counts = self._counts[sender, receiver] = [0, 0, 0]
            counts[0] += 1
            counts[1] += n_ciphertexts
            counts[2] += n_bytes
            self.total_bytes += n_bytes

    def add(self, sender: int, receiver: int, n_messages: int, n_bytes: int) -> None:
        """Count what was not carried in envelopes."""
        counts = self._counts.setdefault((sender, receiver), [0, 0, 0])
        counts[0] += n_messages
        counts[2] += n_bytes
        self.total_bytes += n_bytes

    def summary(self, labels: Sequence[Any]) -> dict[str, Any]:
        """Return totals, and the same for each directed edge by its labels.

        Parameters
        ----------
        labels : sequence
            Labels of the agents.

        Returns
        -------
        dict
            ``messages``, ``ciphertexts``, ``bytes`` and ``edges``.
        """
        names = ("messages", "ciphertexts", "bytes")
        edges = {
            (labels[i], labels[j]): dict(zip(names, counts, strict=True))
            for (i, j), counts in sorted(self._counts.items())
        }
        totals = {name: sum(edge[name] for edge in edges.values()) for name in names}
        return {**totals, "edges": edges}
