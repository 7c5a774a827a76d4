"""What only totals over all samples can do, and where it is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._nmf.beta import beta_of
from .._nmf.observed import has_gaps
from .protocols import protocol_of


def missing_entries(estimator: Any, X: Any) -> bool:
    """Return whether entries of X are missing; refuse them where nothing fills them.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters, each valid.
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Validated data.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        Without sums, with `epsilon`, or if no entry of X is observed.
    """
    missing = has_gaps(X) or (sparse.issparse(X) and estimator.sparse_missing)
    if not missing:
        return False
    what = "sparse_missing=True" if sparse.issparse(X) else "Input X contains NaN"
    check_missing(estimator, what)
    n_observed = X.nnz if sparse.issparse(X) else int((~np.isnan(X)).sum())
    if not n_observed:
        raise ValueError("no entry of X is observed")
    return True


def check_missing(estimator: Any, what: str) -> None:
    """Refuse missing entries where nothing fills them.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters, each valid.
    what : str
        What says that entries are missing.

    Raises
    ------
    ValueError
        Without sums, or with `epsilon`.
    """
    if not protocol_of(estimator).sums:
        raise ValueError(
            f'{what}: with protocol="{estimator.protocol}" no entry may be missing; '
            'protocol="secure-sum" fits the observed ones'
        )
    if estimator.epsilon is not None:
        raise ValueError(
            f"{what} with epsilon={estimator.epsilon:g}: the account of differential "
            "privacy does not cover missing entries"
        )


def check_uses(estimator: Any, **given: Any) -> None:
    """Refuse, by name, what the protocol or the noise cannot do.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters, each valid.
    **given : object
        Arguments of `fit` by name, None if not given.

    Raises
    ------
    ValueError
        If one of them, or such a parameter, is set under a protocol without sums, or
        together with `epsilon` where the account does not cover it.
    """
    used = {name: True for name, value in given.items() if value is not None}
    if beta_of(estimator.beta_loss) != 2:
        used[f"beta_loss={estimator.beta_loss!r}"] = True
    noisy = dict(used)
    if estimator.fixed_components is not None:
        noisy["fixed_components"] = True
        if not protocol_of(estimator).fixes:
            used["fixed_components"] = True
    if estimator.normalize not in (None, "none"):
        used["normalize"] = estimator.normalize
    if used and not protocol_of(estimator).sums:
        name, value = next(iter(used.items()))
        shown = name if value is True else f"{name}={value!r}"
        raise ValueError(
            f'{shown} with protocol="{estimator.protocol}": it needs totals over all '
            'samples, which only protocol="secure-sum" forms'
        )
    if noisy and estimator.epsilon is not None:
        raise ValueError(
            f"{next(iter(noisy))} with epsilon={estimator.epsilon:g}: the account of "
            "differential privacy does not cover it"
        )


def takes_batches(estimator: Any) -> bool:
    """Refuse to fit in batches what has no totals to go on from.

    For `sklearn.utils.metaestimators.available_if`: what is refused has no
    `partial_fit`, and the reason is the cause of the error that says so.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters, each valid.

    Returns
    -------
    bool
        True.

    Raises
    ------
    ValueError
        Without sums, with `epsilon`, with penalties, or under another divergence.
    """
    if not protocol_of(estimator).sums:
        raise ValueError(
            f'partial_fit with protocol="{estimator.protocol}": it needs totals to go '
            'on from, which only protocol="secure-sum" forms'
        )
    if estimator.epsilon is not None:
        raise ValueError(
            f"partial_fit with epsilon={estimator.epsilon:g}: the account of "
            "differential privacy does not cover it"
        )
    if estimator.alpha_W or (estimator.alpha_H != "same" and estimator.alpha_H):
        raise ValueError(
            f"partial_fit with alpha_W={estimator.alpha_W:g} and alpha_H="
            f"{estimator.alpha_H!r}: the totals of earlier batches do not hold what "
            "their right factors would cost beside another left factor"
        )
    if beta_of(estimator.beta_loss) != 2:
        raise ValueError(
            f"partial_fit with beta_loss={estimator.beta_loss!r}: only Frobenius has "
            "totals that stay true while the left factor moves"
        )
    return True


def check_positive(estimator: Any, X: Any) -> None:
    """Refuse zeros under a divergence that they make infinite.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters, each valid.
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Validated data.

    Raises
    ------
    ValueError
        If `beta_loss` is Itakura-Saito and an observed entry is zero.
    """
    if beta_of(estimator.beta_loss) > 0:
        return
    if sparse.issparse(X):
        absent = X.nnz < X.shape[0] * X.shape[1] and not estimator.sparse_missing
        zeros = absent or bool((X.data == 0).any())
    else:
        zeros = bool((X == 0).any())
    if zeros:
        raise ValueError(
            f"beta_loss={estimator.beta_loss!r} although X contains zeros, where the "
            "divergence is infinite; add a small number to X, leave zeros out as "
            "missing (nan), or take a positive beta_loss"
        )
