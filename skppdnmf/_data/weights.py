"""Samples that have weights, as an agent gets them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import _check_sample_weight


class WeightedSamples(NamedTuple):
    """An agent's samples with their weights, which stay with it.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_i, n_features)
        Samples.
    weights : ndarray of shape (n_i,)
        Their weights, above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._data.weights import WeightedSamples
    >>> WeightedSamples(np.eye(2), np.array([1.0, 4.0])).shape
    (2, 2)
    """

    X: Any
    weights: NDArray[np.float64]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and features."""
        return self.X.shape


def scale_rows(X: Any, factors: NDArray[np.float64]) -> Any:
    """Multiply rows by factors.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, n_features)
        Rows, in CSR format if sparse.
    factors : ndarray of shape (n,)
        One for each row.

    Returns
    -------
    ndarray or sparse matrix
        Of the type and dtype of X.
    """
    factors = factors.astype(X.dtype)
    if not sparse.issparse(X):
        return X * factors[:, None]
    scaled = X.copy()
    scaled.data *= np.repeat(factors, np.diff(X.indptr))
    return scaled


def check_weights(sample_weight: Any, X: Any) -> NDArray[np.float64]:
    """Return weights that a fit can use.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,)
        The user's.
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Validated samples.

    Returns
    -------
    ndarray of shape (n_samples,), dtype float64

    Raises
    ------
    ValueError
        If they are not one finite number for each sample, none negative and one
        positive, or their square roots are out of the range of the data's numbers.
    """
    weights = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    largest = float(weights.max(initial=0.0))
    if not largest:
        raise ValueError("sample_weight is all zeros; no sample is left")
    limit = float(np.sqrt(np.finfo(X.dtype).max))
    if not 1 / limit <= weights[weights > 0].min() <= largest <= limit:
        raise ValueError(
            f"sample_weight holds {weights[weights > 0].min():g} to {largest:g}; "
            f"{1 / limit:.0e} to {limit:.0e} is allowed in {X.dtype}"
        )
    return weights
