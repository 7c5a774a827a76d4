"""Files that the command line reads, and what it says of bad ones."""

import gzip

import numpy as np
import pytest

from skppdnmf._files.errors import CommandError


def matrix(n_samples=7, n_features=4, seed=0):
    """Exponential numbers with zeros among them."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n_samples, n_features))
    return X * (rng.uniform(size=X.shape) < 0.7)


def message(call, *args, **kwargs):
    """What is said of bad input, in one line."""
    with pytest.raises(CommandError) as caught:
        call(*args, **kwargs)
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.message
    return caught.value.message


def write_gzipped(path, source):
    path.write_bytes(gzip.compress(source.read_bytes()))
    return path
