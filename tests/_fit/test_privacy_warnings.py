"""What the warnings of the consensus advise."""

import warnings

import numpy as np
import pytest

from skppdnmf import PrivateDistributedNMF
from skppdnmf.exceptions import PrivacyWarning


def warned(partition, masking):
    """The privacy warnings of a fit on a path."""
    X = np.random.default_rng(0).random((30, 6))
    model = PrivateDistributedNMF(
        2,
        partition=partition,
        adjacency="path",
        masking=masking,
        encryption="simulated",
        max_iter=1,
        tol=0,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    return [str(w.message) for w in caught if w.category is PrivacyWarning]


@pytest.mark.parametrize(("masking", "n_messages"), [("scalar", 2), ("entrywise", 1)])
@pytest.mark.parametrize(
    ("partition", "holders", "more_neighbours"),
    [
        ([15, 15], "two agents", False),
        ([15, 15, 0], "two agents", True),
        ([15, 0, 0, 15], "two agents", True),
        ([30, 0], "one agent", False),
        ([10, 10, 10], None, True),
        ([10, 10, 10, 0], None, True),
    ],
)
def test_the_secure_sum_is_advised_to_three_that_hold_samples(
    partition, holders, more_neighbours, masking, n_messages
):
    messages = warned(partition, masking)
    assert len(messages) == n_messages
    for message in messages:
        assert ('protocol="secure-sum"' in message) == (holders is None)
        if holders is not None:
            assert "more agents with samples would help" in message
            assert f"hides nothing with {holders} that hold any" in message
    assert "one neighbour" in messages[-1]
    assert ("give them more" in messages[-1]) == more_neighbours
