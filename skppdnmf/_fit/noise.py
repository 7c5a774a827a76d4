"""What noise differential privacy brings to a fit, before any data are touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from .._data.checks import check_start
from .._numbers import python_count, with_python_numbers
from .._secure_sum.noisy_totals import (
    NoisyTotals,
    count_totals,
)
from .._secure_sum.privacy import membership_auc
from .._secure_sum.settings import noise_settings_of
from .budget import PrivacyBudget
from .cost import count_agents
from .protocols import protocol_of

# Excess of the error over that of a fit of pooled data, measured on images of digits:
# what few totals leave, and what noise adds at a signal-to-noise ratio of one.
_FEW_TOTALS = 0.02
_PER_RATIO = 1.6


@dataclass(frozen=True)
class NoiseEstimate:
    """What is to be expected of a fit with `epsilon`.

    Parameters
    ----------
    n_totals : int
        Totals that will be taken.
    mu : float
        Of the whole fit as a Gaussian mechanism; it grows with epsilon.
    gram_noise, product_noise : float
        Standard deviations of all agents' noise on the diagonal of ``W^T W`` and on an
        entry of ``W^T X``, in each total.
    signal_to_noise : float
        Of a row of ``W^T X``, all totals together.
    excess_error : float
        By what fraction the error will exceed that of a fit of pooled data, roughly:
        measured on images of digits. 1 or more means that nothing will be found.
    membership_auc : float
        Largest area under the curve that a test of membership can reach, of a sample
        or, under ``privacy_unit="agent"``, of an agent.
    feasible : bool
        Whether `fit` will go on: with less signal it is refused.

    Examples
    --------
    >>> from skppdnmf import PrivateDistributedNMF, estimate_noise
    >>> model = PrivateDistributedNMF(
    ...     10, protocol="secure-sum", epsilon=3.0, delta=1e-5, clip=1.0
    ... )
    >>> estimate_noise(model, n_samples=5000, n_features=64).n_totals
    60
    """

    n_totals: int
    mu: float
    gram_noise: float
    product_noise: float
    signal_to_noise: float
    excess_error: float
    membership_auc: float
    feasible: bool


def estimate_noise(
    estimator: Any, n_samples: int, n_features: int, n_components: int | None = None
) -> NoiseEstimate:
    """Tell what error to expect of ``estimator.fit`` with `epsilon`.

    No data are touched, so that nothing is spent.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With the parameters to be used; agents are counted as for `estimate_cost`.
    n_samples : int
        Samples of all agents, about. Under ``privacy_unit="agent"`` it makes no
        difference: what counts is the number of agents.
    n_features : int
        Number of features.
    n_components : int or None, default=None
        Number of components; by default the estimator's.

    Returns
    -------
    NoiseEstimate

    Raises
    ------
    ValueError
        If the estimator's `epsilon` is None, or a parameter is invalid.

    Examples
    --------
    >>> from skppdnmf import PrivateDistributedNMF, estimate_noise
    >>> model = PrivateDistributedNMF(
    ...     10, protocol="secure-sum", epsilon=1.0, delta=1e-5, clip=1.0
    ... )
    >>> estimate_noise(model, 300, 64).feasible
    False
    >>> bool(estimate_noise(model, 20_000, 64).excess_error < 0.05)
    True
    """
    n_samples = python_count(n_samples, "n_samples")
    n_features = python_count(n_features, "n_features")
    if n_components is not None:
        estimator = clone(estimator).set_params(n_components=n_components)
    estimator._validate_params()
    estimator = with_python_numbers(estimator)
    if estimator.epsilon is None:
        raise ValueError("epsilon=None: a fit without noise; set epsilon and delta")
    check_privacy(estimator)
    K, _ = check_start(
        estimator.n_components, estimator.init, n_features, type(estimator).__name__
    )
    settings = noise_settings_of(estimator, count_agents(estimator))
    guarantee = settings.guarantee
    numbers = NoisyTotals(settings, K, n_features)
    ratio = numbers.ratio(n_samples if settings.unit == "sample" else settings.n_agents)
    n_totals = count_totals(ratio, settings.max_iter)
    numbers = numbers.of_length(n_totals)
    return NoiseEstimate(
        n_totals=n_totals,
        mu=guarantee.mu,
        gram_noise=numbers.gram_noise,
        product_noise=numbers.product_noise,
        signal_to_noise=ratio,
        excess_error=_FEW_TOTALS + _PER_RATIO / ratio,
        membership_auc=membership_auc(guarantee.mu),
        feasible=ratio >= numbers.least_ratio,
    )


def check_privacy(estimator: Any) -> None:
    """Refuse parameters of differential privacy that do not go together.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        With its parameters, each valid.

    Raises
    ------
    ValueError
        If they do not.
    """
    epsilon, delta = estimator.epsilon, estimator.delta
    budget = estimator.privacy_budget
    if budget is not None and not isinstance(budget, PrivacyBudget):
        raise ValueError(f"privacy_budget={budget!r} should be a PrivacyBudget or None")
    if epsilon is None:
        given: dict[str, Any] = {"delta": delta, "privacy_budget": budget}
        if estimator.privacy_unit != "sample":
            given["privacy_unit"] = estimator.privacy_unit
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"{name}={value!r} although epsilon=None: the fit would have no "
                    "noise and no guarantee; set epsilon"
                )
        return
    protocol = protocol_of(estimator)
    if not protocol.adds_noise:
        raise ValueError(
            f'epsilon={epsilon:g} with protocol="{estimator.protocol}": only '
            f'protocol="secure-sum" adds the noise of differential privacy'
            f"{protocol.no_noise}"
        )
    if delta is None:
        raise ValueError(
            f"epsilon={epsilon:g} without delta: Gaussian noise needs both; delta is "
            "the probability of failure, far below one over the number of samples"
        )
    if estimator.clip is None:
        raise ValueError(
            f"epsilon={epsilon:g} without clip: state the largest Euclidean norm of a "
            "sample, from what is public; longer samples are shortened to it"
        )
    if estimator.alpha_W or (estimator.alpha_H != "same" and estimator.alpha_H):
        raise ValueError(
            f"alpha_W={estimator.alpha_W:g} and alpha_H={estimator.alpha_H!r} with "
            f"epsilon={epsilon:g}: fits with noise have no penalties"
        )
    if estimator.on_dropout != "raise":
        raise ValueError(
            f"on_dropout={estimator.on_dropout!r} with epsilon={epsilon:g}: the lost "
            "agent's noise would be missing, and a sum would be formed twice"
        )
