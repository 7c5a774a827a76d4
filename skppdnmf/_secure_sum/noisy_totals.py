r"""Totals under differential privacy: what one sample can change, and the noise on it.

With the samples at most `clip` long, and the right factors of unit components at most
`RIGHT_BOUND` times that, one sample changes the pair of W^T W and W^T X by

.. math:: \mu^2 = \|w\|^4 / s_A^2 + \|w\|^2 \|x\|^2 / s_B^2,

in units of the noise: entries off the diagonal of W^T W, of which one of two is sent,
have noise less by the root of two. A sample beyond that is given less weight, which
leaves what its right factor says as it is. Then all is rounded towards zero, which
makes no number larger, and what is summed is whole and exact.

What an agent makes of a sample must not depend on its other samples, not by a bit: an
entry rounded otherwise would be one more that a sample changes. Libraries of linear
algebra sum in another order for another number of columns; everything here goes entry
by entry.

Where the unit is an agent, what may change is all that it sends. An agent then sends
the mean over its samples, so that all count alike, and shortens it to `AGENT_BOUND` of
the bound of one sample: means of different samples are shorter than these.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..exceptions import CorruptedTotalError, ExcessiveNoiseError
from .accountant import Guarantee
from .noise import discrete_gaussian
from .plausible import NOISE_DEVIATIONS, check_totals
from .settings import NoiseSettings
from .totals import Totals

Array = NDArray[np.float64]
Words = NDArray[np.uint64]

# Bound on a right factor's norm over that of a sample. Most are longer, so that all
# samples say as much as they may.
RIGHT_BOUND = 0.5
# Bound on the mean over an agent's samples, in that of one sample.
AGENT_BOUND = 0.5
# Units in the bounds of samples and of right factors, and in one sample.
_UNITS = 1 << 18
# More than this no federation has.
_NO_UNITS = float(1 << 30)
_COUNT_UNITS = 1 << 32
# Rows whose products are summed exactly in doubles.
_ROWS = 1 << 15
# A total of these stays below 2**62 with its noise.
MOST_SAMPLES = 1 << 23
# Of a right factor's squared norm over its bound, which is more than any solver's.
_LARGEST = 2.0**40
# Rounding in the bound's own arithmetic stays far below this.
_MARGIN = 1e-9
# Totals, and the ratio of signal to noise from which on so many are better than fewer.
_TOTALS = ((60, 36.0), (30, 24.0), (15, 10.0), (8, 0.0))
LEAST_RATIO = 2.0
_DOUBT = 3.0  # standard deviations
_SWEEPS = 20


def signal_to_noise(
    guarantee: Guarantee, n_samples: float, n_components: int, n_features: int
) -> float:
    """Return what a row of W^T X is over its noise, all totals together.

    Parameters
    ----------
    guarantee : Guarantee
        What is promised.
    n_samples : float
        Of all agents, evenly spread over the components; or agents with samples, over
        `AGENT_BOUND`, where these are the unit.
    n_components, n_features : int
        K and F.

    Returns
    -------
    float
    """
    mu = guarantee.mu_totals * math.sqrt(1.0 - guarantee.gram_share)
    return n_samples * mu / (n_components * math.sqrt(n_features))


def count_totals(ratio: float, max_iter: int) -> int:
    """Return how many totals to take at this ratio of signal to noise."""
    return min(max_iter, next(n for n, least in _TOTALS if ratio >= least))


class NoisyTotals:
    """Turns samples and right factors into words under noise, and totals back.

    Parameters
    ----------
    settings : NoiseSettings
        Common to all agents.
    n_components, n_features : int
        K and F.

    Attributes
    ----------
    n_totals : int
        Totals that are taken; 0 before the number of units is known.
    units : str
        What is counted: samples, or agents with samples.
    gram_scale, product_scale : int
        Of one agent's noise on the diagonal of W^T W and on W^T X, in units.
    """

    def __init__(
        self, settings: NoiseSettings, n_components: int, n_features: int
    ) -> None:
        self.settings = settings
        self.guarantee = settings.guarantee
        self.n_components = n_components
        self.n_features = n_features
        self.n_totals = 0
        self.units = "agents" if settings.unit == "agent" else "samples"
        self.gram_scale = self.off_diagonal_scale = self.product_scale = 0
        self._upper = np.triu_indices(n_components)

    @property
    def n_words(self) -> int:
        """Words of a total."""
        K = self.n_components
        return K * (K + 1) // 2 + K * self.n_features

    @property
    def sample_unit(self) -> float:
        """What samples are multiples of."""
        return self.settings.clip / _UNITS

    @property
    def right_unit(self) -> float:
        """What right factors are multiples of."""
        return RIGHT_BOUND * self.sample_unit

    @property
    def bound(self) -> float:
        """What one unit may change, in the bound of one sample."""
        return AGENT_BOUND if self.settings.unit == "agent" else 1.0

    def ratio(self, n_units: float) -> float:
        """Return the signal over the noise, as `signal_to_noise`, for so many units."""
        shape = self.n_components, self.n_features
        return signal_to_noise(self.guarantee, n_units / self.bound, *shape)

    @property
    def count_noise(self) -> float:
        """Standard deviation of all agents' noise on the number of units."""
        return self.count_scale * math.sqrt(self.settings.n_agents) / _COUNT_UNITS

    @property
    def least_ratio(self) -> float:
        """Signal to noise below which the noise may exceed the signal.

        The number of units must not be noise, either.
        """
        return LEAST_RATIO + self.ratio(_DOUBT * self.count_noise)

    @property
    def count_scale(self) -> int:
        """Of one agent's noise on the number of units, in steps of the count."""
        return self._one_share(_COUNT_UNITS / self.guarantee.mu_count)

    def _one_share(self, scale: float) -> int:
        """Return the scale of one agent's noise where those of the honest add up."""
        return max(1, math.ceil(scale / math.sqrt(self.settings.n_honest)))

    def count_words(self, n_samples: int) -> Words:
        """Return an agent's summand of the number of units, under noise."""
        noise = discrete_gaussian(self.count_scale, 1)
        n_units = min(n_samples, 1) if self.settings.unit == "agent" else n_samples
        return (noise + n_units * _COUNT_UNITS).view(np.uint64)

    def read_count(self, words: Words) -> float:
        """Return the number of units from a total, with its noise."""
        return float(words.view(np.int64)[0]) / _COUNT_UNITS

    def planned(self, n_units: float) -> NoisyTotals:
        """Return the numbers of a fit whose number of units is public.

        Parameters
        ----------
        n_units : float
            From the first total.

        Returns
        -------
        NoisyTotals
            With the number of totals, and the noise.

        Raises
        ------
        ExcessiveNoiseError
            If the noise exceeds the signal.
        CorruptedTotalError
            If there cannot be so many.
        OverflowError
            If there are so many units that a total could wrap.
        ValueError
            If delta is too small for integer noise.
        """
        K, F = self.n_components, self.n_features
        most_below = NOISE_DEVIATIONS * self.count_noise
        if not -most_below <= n_units < _NO_UNITS:
            raise CorruptedTotalError(
                f"the total of the numbers of {self.units} is {n_units:.6g}, which no "
                "noise explains: an agent has sent what it must not"
            )
        ratio = self.ratio(n_units)
        if not ratio >= self.least_ratio:
            raise ExcessiveNoiseError(
                f"at epsilon={self.settings.epsilon:g} and "
                f"delta={self.settings.delta:g} the noise exceeds what about "
                f"{max(0.0, n_units):.0f} {self.units} say of n_components={K} in {F} "
                f"features: their ratio is {max(0.0, ratio):.2g}, and "
                f"{self.least_ratio:.2g} is needed, which takes "
                f"{self.least_ratio / self.ratio(1.0):.0f} {self.units}, fewer "
                "components or a larger epsilon"
            )
        if n_units > MOST_SAMPLES:
            raise OverflowError(
                f"about {n_units:.0f} {self.units}: with epsilon totals of more than "
                f"{MOST_SAMPLES} could exceed 64 bits"
            )
        return self.of_length(count_totals(ratio, self.settings.max_iter))

    def of_length(self, n_totals: int) -> NoisyTotals:
        """Return the numbers of a fit of so many totals."""
        planned = copy(self)
        planned.n_totals = n_totals
        mu = self.guarantee.mu_totals / (math.sqrt(n_totals) * self.bound)
        share = self.guarantee.gram_share
        gram = float(_UNITS) ** 2 / (mu * math.sqrt(share))
        products = float(_UNITS) ** 2 / (mu * math.sqrt(1.0 - share))
        planned.gram_scale = self._one_share(gram)
        planned.off_diagonal_scale = self._one_share(gram / math.sqrt(2.0))
        planned.product_scale = self._one_share(products)
        self.guarantee.check(
            1 + n_totals * self.n_words,
            min(self.count_scale, planned.off_diagonal_scale, planned.product_scale),
            self.settings.n_honest,
        )
        return planned

    @property
    def gram_noise(self) -> float:
        """Standard deviation of all agents' noise on the diagonal of W^T W."""
        scale = self.gram_scale * math.sqrt(self.settings.n_agents)
        return scale * self.right_unit**2

    @property
    def product_noise(self) -> float:
        """Standard deviation of all agents' noise on an entry of W^T X."""
        scale = self.product_scale * math.sqrt(self.settings.n_agents)
        return scale * self.right_unit * self.sample_unit

    def check_totals(self, totals: Totals, n_units: float) -> None:
        """Refuse totals that no units of this number can have, noise allowed for.

        Parameters
        ----------
        totals : Totals
            Decoded.
        n_units : float
            Units of all agents, under noise.

        Raises
        ------
        CorruptedTotalError
            If one cannot be.
        """
        # A sample's right factor alone may take all of the bound.
        most = float(_UNITS) ** 2 / math.sqrt(self.guarantee.gram_share)
        n_most = max(0.0, n_units) + NOISE_DEVIATIONS * self.count_noise
        check_totals(
            totals.gram,
            totals.products,
            n_most * self.bound * most * self.right_unit**2,
            noise=(
                NOISE_DEVIATIONS * self.gram_noise,
                NOISE_DEVIATIONS * self.product_noise,
            ),
        )

    def whole(self, samples: Samples, right: Array) -> tuple[Any, Array]:
        """Return samples and right factors in whole units, within the bound.

        Parameters
        ----------
        samples : Samples
            Clipped.
        right : ndarray of shape (K, n_i)
            Their right factors, of unit components.

        Returns
        -------
        samples : ndarray of shape (F, n_i), or sparse matrix of shape (n_i, F)
        right : ndarray of shape (K, n_i)
        """
        share = self.guarantee.gram_share
        x = samples.squared_norms / self.sample_unit**2
        with np.errstate(over="ignore", invalid="ignore"):
            w = _sums_of_squares(right / self.right_unit)
        # No right factor of a clipped sample is longer than a few times the bound.
        sound = w <= _LARGEST * float(_UNITS) ** 2
        right, w = np.where(sound, right, 0.0), np.where(sound, w, 0.0)
        limit = float(_UNITS) ** 4 * (1.0 - _MARGIN)
        change = share * w * w + (1.0 - share) * w * x
        # Both shrink by the fourth root of what the change's square exceeds.
        excess = np.maximum(change / limit, 1.0)
        factor = np.sqrt(np.sqrt(1.0 / excess)) * (1.0 - _MARGIN)
        whole_right = np.trunc(right * (factor / self.right_unit))
        whole_samples = samples.truncated(factor / self.sample_unit)
        w = _sums_of_squares(whole_right)
        x = whole_samples.squared_norms
        # Rounding cannot have brought anything beyond the bound; if it has, that is
        # not sent.
        kept = share * w * w + (1.0 - share) * w * x <= limit
        return whole_samples.data, np.where(kept, whole_right, 0.0)

    def encode(self, samples: Samples, right: Array) -> Words:
        """Return an agent's summand, its noise included.

        Parameters
        ----------
        samples, right
            As for `whole`.

        Returns
        -------
        ndarray of uint64, shape (n_words,)
        """
        words = self.summand(*self.whole(samples, right))
        if self.settings.unit == "agent":
            words = self.mean(words, samples.n_samples)
        K = self.n_components
        rows, columns = self._upper
        noise = np.empty(self.n_words, dtype=np.int64)
        upper = noise[: len(rows)]
        upper[rows == columns] = discrete_gaussian(self.gram_scale, K)
        upper[rows != columns] = discrete_gaussian(
            self.off_diagonal_scale, len(rows) - K
        )
        noise[len(rows) :] = discrete_gaussian(self.product_scale, K * self.n_features)
        return (words + noise).view(np.uint64)

    def mean(self, words: NDArray[np.int64], n_samples: int) -> NDArray[np.int64]:
        """Return an agent's mean summand, within the bound of all that it sends.

        Parameters
        ----------
        words : ndarray of int64
            The sum over its samples.
        n_samples : int
            Their number.

        Returns
        -------
        ndarray of int64
            Rounded towards zero.

        Raises
        ------
        OverflowError
            If there are so many samples that the sum could have wrapped.
        """
        if n_samples > MOST_SAMPLES:
            raise OverflowError(
                f"{n_samples} samples: with epsilon an agent has {MOST_SAMPLES} at most"
            )
        values = words / max(1, n_samples)
        bound = AGENT_BOUND**2 * (1.0 - _MARGIN)
        excess = max(1.0, self.square(values) / bound)
        values = np.trunc(values * ((1.0 - _MARGIN) / math.sqrt(excess)))
        # As for samples, rounding cannot have brought it beyond the bound.
        kept = self.square(values) <= bound
        return (values if kept else np.zeros_like(values)).astype(np.int64)

    def square(self, values: Array) -> float:
        """Return the square of a change of a total, in the bound of one sample.

        Parameters
        ----------
        values : ndarray of shape (n_words,)
            In the total's units.

        Returns
        -------
        float
        """
        values = values / float(_UNITS) ** 2
        share = self.guarantee.gram_share
        upper, products = np.split(values, [len(self._upper[0])])
        twice = np.where(self._upper[0] == self._upper[1], 1.0, 2.0)
        gram = float(twice @ upper**2)
        return share * gram + (1.0 - share) * float(products @ products)

    def summand(self, samples: Any, right: Array) -> NDArray[np.int64]:
        """Return the words of whole samples and right factors, without noise."""
        K, F = self.n_components, self.n_features
        gram = np.zeros((K, K), dtype=np.int64)
        products = np.zeros((K, F), dtype=np.int64)
        for start in range(0, right.shape[1], _ROWS):
            part = right[:, start : start + _ROWS]
            gram += (part @ part.T).astype(np.int64)
            if sparse.issparse(samples):
                product = (samples[start : start + _ROWS].T @ part.T).T
            else:
                product = part @ samples[:, start : start + _ROWS].T
            products += np.asarray(product).astype(np.int64)
        return np.concatenate([gram[self._upper], products.ravel()])

    def decode(self, words: Words) -> Totals:
        """Return the totals of one start from the sum of all agents' words."""
        K, F = self.n_components, self.n_features
        upper, products = np.split(words.view(np.int64), [len(self._upper[0])])
        gram: Array = np.zeros((K, K))
        gram[self._upper] = upper
        gram.T[self._upper] = upper
        return Totals(
            (gram * self.right_unit**2).reshape(1, K, K),
            products.reshape(1, K, F).astype(np.float64)
            * (self.right_unit * self.sample_unit),
            np.zeros((1, K)),
        )


class Samples:
    """An agent's samples, column by column, or sparse.

    Parameters
    ----------
    data : ndarray of shape (F, n_i), or sparse matrix of shape (n_i, F)
        In double precision.
    """

    def __init__(self, data: Any) -> None:
        self.data = data
        if sparse.issparse(data):
            # Along each row, in the order of its entries.
            squares = data.copy()
            squares.data = squares.data**2
            ones = np.ones(data.shape[1])
            self.squared_norms = np.asarray(squares @ ones).ravel()
        else:
            self.squared_norms = _sums_of_squares(data)

    @classmethod
    def clipped(cls, X: Any, clip: float) -> Samples:
        """Return samples that are shortened to a bound.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_i, F)
            An agent's samples.
        clip : float
            Largest Euclidean norm.

        Returns
        -------
        Samples

        Examples
        --------
        >>> import numpy as np
        >>> from skppdnmf._secure_sum.noisy_totals import Samples
        >>> Samples.clipped(np.array([[3.0, 4.0], [0.5, 0.0]]), 1.0).data.T
        array([[0.6, 0.8],
               [0.5, 0. ]])
        """
        if sparse.issparse(X):
            data = sparse.csr_array(X, dtype=np.float64)
        else:
            data = np.array(X.T, dtype=np.float64, order="C")
        samples = cls(data)
        norms = np.sqrt(samples.squared_norms)
        factor = np.minimum(1.0, clip / np.maximum(norms, clip))
        # The same arithmetic for all samples, whether or not another one is long.
        return cls(samples._scaled(factor))

    @property
    def n_samples(self) -> int:
        """How many."""
        return len(self.squared_norms)

    def truncated(self, factor: Array) -> Samples:
        """Return the samples times factors, rounded towards zero."""
        data = self._scaled(factor)
        values = data.data if sparse.issparse(data) else data
        np.trunc(values, out=values)
        return Samples(data)

    def _scaled(self, factor: Array) -> Any:
        """Return the samples times factors."""
        if not sparse.issparse(self.data):
            return self.data * factor
        scaled = self.data.copy()
        scaled.data = scaled.data * np.repeat(factor, np.diff(scaled.indptr))
        return scaled

    def right_factors(self, H: Array, start: Array) -> Array:
        """Return nearly best right factors, each a function of its sample and start.

        Parameters
        ----------
        H : ndarray of shape (K, F)
            Unit components.
        start : ndarray of shape (K, n_i)
            Where to start; nonnegative.

        Returns
        -------
        ndarray of shape (K, n_i)
        """
        if sparse.issparse(self.data):
            products = np.ascontiguousarray((self.data @ H.T).T)
        else:
            products = np.zeros_like(start)
            for column, row in zip(H.T, self.data, strict=True):
                products += column[:, None] * row
        gram = H @ H.T
        W = start.copy()
        for _ in range(_SWEEPS):
            for k in range(len(W)):
                step = products[k] + gram[k, k] * W[k]
                for j in range(len(W)):
                    step -= gram[k, j] * W[j]
                np.maximum(step / gram[k, k], 0.0, out=W[k])
        return W


def _sums_of_squares(columns: Array) -> Array:
    """Return each column's sum of squares, summed from above."""
    sums = np.zeros(columns.shape[1])
    for row in columns:
        sums += row * row
    return sums
