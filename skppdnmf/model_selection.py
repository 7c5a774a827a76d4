"""How many components: held-out entries, and components that return."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score
from sklearn.utils import check_random_state

from ._data.checks import validate_samples
from ._data.partition import is_parts, stack_parts
from ._fit.cost import estimate_cost
from ._fit.protocols import protocol_of
from ._nmf.beta import BetaSamples, beta_of
from ._nmf.observed import observed_errors
from ._warn import warn_user
from .plot import ComponentCurveDisplay

__all__ = [
    "ComponentCurve",
    "ComponentCurveDisplay",
    "CurveCost",
    "component_curve",
    "estimate_curve_cost",
]

Array = NDArray[np.float64]

# Entries of sparse data with observed zeros that are made dense to hold some out.
_MOST_ENTRIES = 50_000_000
# The data, the entries that are held out, and the others.
_COPIES = 3
COLUMNS = (
    "n_components",
    "test_error",
    "test_error_se",
    "cosine",
    "silhouette",
)


@dataclass(frozen=True)
class CurveCost:
    """What a curve costs at most, before it is made.

    Parameters
    ----------
    fits : int
        Fits, of every number of components.
    exchanges : int
        Exchanges of all fits that run all their iterations.
    bytes : int
        Bytes that all links carry.
    """

    fits: int
    exchanges: int
    bytes: int


class ComponentCurve(NamedTuple):
    """What `component_curve` returns.

    Parameters
    ----------
    table : pandas.DataFrame, or dict of ndarray without pandas
        A row for each number of components: ``n_components``, ``test_error`` (relative
        error of held-out entries, mean over the masks) and ``test_error_se``, its
        standard error; ``cosine`` (mean cosine of components with their match among
        those of other starts) and ``silhouette`` (of the matched components; nan of one
        component).
    display : ComponentCurveDisplay
        Draws both; ``display.plot()``.
    best_n_components : int
        The fewest whose error is within a standard error of the least.
    test_errors : ndarray of shape (n_numbers, n_masks)
        Of each fit.
    cost : CurveCost
        What was estimated before it started.
    """

    table: Any
    display: ComponentCurveDisplay
    best_n_components: int
    test_errors: Array
    cost: CurveCost


def component_curve(
    estimator: Any,
    X: Any,
    *,
    n_components: Iterable[int] = range(2, 13),
    agents: Any = None,
    n_masks: int = 5,
    n_starts: int = 5,
    test_size: float = 0.1,
    random_state: Any = None,
    verbose: int = 0,
) -> ComponentCurve:
    """Fit several numbers of components, for the two figures that people choose by.

    Some entries are held out (missing-entry cross-validation): a model with too many
    components fits the rest better, and them worse. The same masks serve all numbers.
    Every agent draws the mask of its own samples; in one process one generator does.
    And the data are fitted from several starts: components that mean something return.
    All of it runs under the secure sum.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With ``protocol="secure-sum"``; its clones are fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), list or dict
        As for `fit`; it may have missing entries.
    n_components : iterable of int, default=range(2, 13)
        Numbers of components.
    agents : array-like of shape (n_samples,) or None, default=None
        As for `fit`.
    n_masks : int, default=5
        Masks, at least two.
    n_starts : int, default=5
        Starts whose components are compared, at least two.
    test_size : float, default=0.1
        Share of the observed entries that a mask holds out.
    random_state : int, RandomState instance or None, default=None
        Of masks and starts.
    verbose : int, default=0
        1 shows a progress bar, after what all fits will cost.

    Returns
    -------
    ComponentCurve
        Table, display and the number that the one-standard-error rule chooses.

    Raises
    ------
    ValueError
        Under another protocol, with `epsilon` (each fit would cost again), with given
        starts, or if an argument is invalid.

    Notes
    -----
    Sparse data whose zeros are observed are made dense for the masks, three times at a
    time, and refused, with what that would take, beyond 50 million entries; the fits
    from several starts have them as they are. With ``sparse_missing=True`` nothing is
    made dense.

    Warnings of the fits are given once each. The totals of all fits tell more than
    those of one of who is in the pool.

    Examples
    --------
    >>> from skppdnmf import PrivateDistributedNMF, make_paper_synthetic
    >>> from skppdnmf.model_selection import component_curve
    >>> X, agents, _, _ = make_paper_synthetic(random_state=0)
    >>> nmf = PrivateDistributedNMF(protocol="secure-sum", tol=0, random_state=0)
    >>> curve = component_curve(
    ...     nmf, X, n_components=[4, 5, 6], agents=agents, n_masks=2, n_starts=2,
    ...     random_state=0,
    ... )
    >>> curve.best_n_components
    5
    """
    numbers = _check(estimator, n_components, n_masks, n_starts, test_size)
    if is_parts(X):
        if agents is not None:
            raise ValueError("agents is given although X is parts, one for each agent")
        X, agents = stack_parts(X)
    names = clone(estimator)
    data = validate_samples(names, X, reset=True)
    if max(numbers) > 1 and data.shape[1] == 1:
        raise ValueError("n_features=1: there is nothing to choose")
    cost = estimate_curve_cost(
        estimator,
        data.shape[1],
        n_components=numbers,
        n_masks=n_masks,
        n_starts=n_starts,
    )
    rng = check_random_state(random_state)
    absent = sparse.issparse(data) and bool(estimator.sparse_missing)
    if sparse.issparse(data) and not absent:
        n_entries = data.shape[0] * data.shape[1]
        if n_entries > _MOST_ENTRIES:
            size = _COPIES * n_entries * data.dtype.itemsize
            raise ValueError(
                f"X is sparse with {data.shape[0]} x {data.shape[1]} entries, zeros "
                f"among those to be held out: dense they would take {size / 1e9:.1f} "
                "GB; take fewer features or samples, or sparse_missing=True if what "
                "is absent is missing"
            )
        held_from = data.toarray()
    else:
        held_from = data
    masks = []
    for _ in range(n_masks):
        masks.append(rng.get_state())
        _hold_out(held_from, test_size, rng)  # drawn again when it is its turn
    seeds = rng.randint(0, 2**31 - 1, size=max(n_masks, n_starts)).tolist()
    errors = np.zeros((len(numbers), n_masks))
    cosines, silhouettes = np.zeros(len(numbers)), np.zeros(len(numbers))
    with _Bar(verbose, cost) as bar, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for row, K in enumerate(numbers):
            for fold, state in enumerate(masks):
                own = np.random.RandomState()
                own.set_state(state)
                train, test = _hold_out(held_from, test_size, own)
                model = clone(estimator).set_params(
                    n_components=K, random_state=seeds[fold]
                )
                model.fit(train, agents=agents)
                errors[row, fold] = _test_error(model, train, test)
                bar.step(K)
            starts = []
            for seed in seeds[:n_starts]:
                model = clone(estimator).set_params(
                    n_components=K, random_state=seed, n_init=1
                )
                starts.append(model.fit(data, agents=agents).components_)
                bar.step(K)
            cosines[row], silhouettes[row] = _stability(starts)
    _warn_once(caught, cost.fits)
    mean = errors.mean(axis=1)
    spread = errors.std(axis=1, ddof=1) / np.sqrt(n_masks)
    least = int(np.argmin(mean))
    within = np.flatnonzero(mean <= mean[least] + spread[least])
    best = min(numbers[k] for k in within)
    columns = (np.array(numbers), mean, spread, cosines, silhouettes)
    values = dict(zip(COLUMNS, columns, strict=True))
    display = ComponentCurveDisplay(**values, best_n_components=best)
    return ComponentCurve(_as_table(values), display, best, errors, cost)


def estimate_curve_cost(
    estimator: Any,
    n_features: int,
    *,
    n_components: Iterable[int] = range(2, 13),
    n_masks: int = 5,
    n_starts: int = 5,
) -> CurveCost:
    """Estimate what `component_curve` will cost, before it is run.

    Parameters
    ----------
    estimator, n_components, n_masks, n_starts
        As for `component_curve`.
    n_features : int
        Number of features.

    Returns
    -------
    CurveCost
        Exchanges and bytes if all fits run all their iterations.

    Raises
    ------
    ValueError
        As by `component_curve` and `skppdnmf.estimate_cost`.

    Examples
    --------
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.model_selection import estimate_curve_cost
    >>> nmf = PrivateDistributedNMF(protocol="secure-sum", max_iter=60)
    >>> estimate_curve_cost(nmf, 30, n_components=[2, 3], n_masks=2, n_starts=3).fits
    10
    """
    numbers = _check(estimator, n_components, n_masks, n_starts, 0.1)
    exchanges = n_bytes = 0
    for K in numbers:
        masked = estimate_cost(estimator, n_features, K)
        single = estimate_cost(clone(estimator).set_params(n_init=1), n_features, K)
        exchanges += n_masks * masked.exchanges + n_starts * single.exchanges
        n_bytes += n_masks * masked.bytes + n_starts * single.bytes
    return CurveCost(len(numbers) * (n_masks + n_starts), exchanges, n_bytes)


def _check(
    estimator: Any,
    n_components: Iterable[int],
    n_masks: int,
    n_starts: int,
    test_size: float,
) -> list[int]:
    """Return the numbers of components; refuse what cannot be done."""
    if not hasattr(estimator, "protocol") or not hasattr(estimator, "adjacency"):
        raise TypeError(
            f"expected a PrivateDistributedNMF, got a {type(estimator).__name__}"
        )
    estimator._validate_params()
    if not protocol_of(estimator).sums:
        raise ValueError(
            f'component_curve with protocol="{estimator.protocol}": held-out entries '
            'need protocol="secure-sum"'
        )
    if estimator.epsilon is not None:
        raise ValueError(
            f"component_curve with epsilon={estimator.epsilon:g}: each of its fits "
            "would cost again, and noise does not cover held-out entries"
        )
    if not isinstance(estimator.init, str):
        raise ValueError("component_curve with a given init, which has one number")
    numbers = list(n_components)
    odd = [k for k in numbers if not isinstance(k, Integral) or k < 1]
    if not numbers or odd or len(set(numbers)) < len(numbers):
        raise ValueError(
            f"n_components={numbers!r} should be distinct integers, 1 or more"
        )
    for name, value in (("n_masks", n_masks), ("n_starts", n_starts)):
        if not isinstance(value, Integral) or value < 2:
            raise ValueError(f"{name}={value!r} should be an integer, 2 or more")
    if not isinstance(test_size, Real) or not 0 < test_size < 1:
        raise ValueError(f"test_size={test_size!r} should be between 0 and 1")
    return [int(k) for k in numbers]


def _hold_out(X: Any, share: float, rng: np.random.RandomState) -> tuple[Any, Any]:
    """Return X without some of its observed entries, and these alone."""
    if sparse.issparse(X):
        held = rng.random_sample(X.nnz) < share
        return _entries(X, ~held), _entries(X, held)
    held = rng.random_sample(X.shape) < share
    blank = X.dtype.type(np.nan)
    return np.where(held, blank, X), np.where(held, X, blank)


def _entries(X: Any, chosen: NDArray[np.bool_]) -> Any:
    """Return some of the stored entries of a CSR matrix."""
    counts = np.concatenate([[0], np.cumsum(chosen)])
    parts = X.data[chosen], X.indices[chosen], counts[X.indptr]
    return sparse.csr_array(parts, shape=X.shape)


def _test_error(model: Any, train: Any, test: Any) -> float:
    """Return the relative error of held-out entries."""
    W = model.transform(train).astype(np.float64)
    H = model.components_.astype(np.float64)
    beta = beta_of(model.beta_loss)
    if beta != 2:
        samples = BetaSamples.of(test, beta, True)
        error, norm = samples.divergences(W, H), samples.null_divergences()
    else:
        norm, error = observed_errors(test, W, H)
    return float(np.sqrt(error.sum() / norm.sum())) if norm.sum() else 0.0


def _stability(starts: Sequence[Array]) -> tuple[float, float]:
    """Return the mean matched cosine and the silhouette of components of all starts."""
    rows = []
    for H in starts:
        H = H.astype(np.float64)
        norms = np.linalg.norm(H, axis=1, keepdims=True)
        rows.append(np.divide(H, norms, out=np.zeros_like(H), where=norms > 0))
    found = []
    for k, one in enumerate(rows):
        for other in rows[k + 1 :]:
            table = one @ other.T
            found.append(table[linear_sum_assignment(-table)].mean())
    # Clusters: the components of the start that agrees best with all, and theirs.
    K = len(rows[0])
    sums = [sum(_matched(one, other)[1] for other in rows) for one in rows]
    centre = rows[int(np.argmax(sums))]
    labels = np.concatenate([_matched(centre, other)[0] for other in rows])
    cosine = float(np.mean(found))
    if K < 2:
        return cosine, float("nan")
    points = np.concatenate(rows)
    distances = np.maximum(0.0, 1.0 - points @ points.T)
    np.fill_diagonal(distances, 0.0)
    return cosine, float(silhouette_score(distances, labels, metric="precomputed"))


def _matched(one: Array, other: Array) -> tuple[NDArray[np.intp], float]:
    """Return each row's match among those of the first, and the sum of cosines."""
    table = other @ one.T
    rows, columns = linear_sum_assignment(-table)
    return columns[np.argsort(rows)], float(table[rows, columns].sum())


def _as_table(values: dict[str, Any]) -> Any:
    """Return a frame where pandas is there."""
    try:
        import pandas as pd
    except ImportError:
        return values
    return pd.DataFrame(values)


def _warn_once(caught: Sequence[Any], n_fits: int) -> None:
    """Warn of what many fits have warned of, once each."""
    late = sum(one.category is ConvergenceWarning for one in caught)
    if late:
        warn_user(
            f"{late} of {n_fits} fits did not reach tol within max_iter iterations; "
            "they are compared as they are",
            ConvergenceWarning,
        )
    shown = {ConvergenceWarning}
    for one in caught:
        if one.category not in shown:
            shown.add(one.category)
            warn_user(str(one.message), one.category)


class _Bar:
    """A progress bar over all fits."""

    def __init__(self, verbose: int, cost: CurveCost) -> None:
        self._verbose = int(verbose)
        self._cost = cost
        self._bar: Any = None

    def __enter__(self) -> _Bar:
        if self._verbose > 0:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=self._cost.fits, unit="fit", desc="components")
            self._bar.write(
                f"{self._cost.fits} fits, at most {self._cost.exchanges} exchanges and "
                f"{self._cost.bytes / 1e6:.1f} MB"
            )
        return self

    def step(self, n_components: int) -> None:
        """Count a fit."""
        if self._bar is not None:
            self._bar.set_postfix(n_components=n_components)
            self._bar.update()

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.close()
