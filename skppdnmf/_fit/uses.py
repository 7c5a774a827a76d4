"""What only totals over all samples can do, and where it is refused."""

from __future__ import annotations

from typing import Any

from .protocols import protocol_of


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
    if estimator.fixed_components is not None:
        used["fixed_components"] = True
    noisy = dict(used)
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
