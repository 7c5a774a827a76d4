"""What several tests of the displays draw."""

import numpy as np

COMPONENTS = np.random.default_rng(0).exponential(size=(4, 12))
SQUARE = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
HISTORY = {
    name: np.array([3.0, 2.0, 1.0])
    for name in (
        "exchanges",
        "seconds",
        "bytes",
        "local_error",
        "shared_error",
        "consensus_error",
    )
}
