"""Privacy-preserving distributed nonnegative matrix factorisation."""

from ._data.partition import stack_parts
from ._estimator import PrivateDistributedNMF
from ._fit.budget import PrivacyBudget
from ._fit.cost import CostEstimate, estimate_cost
from ._fit.noise import NoiseEstimate, estimate_noise
from ._version import __version__
from .datasets import load_cbcl, make_paper_synthetic
from .exceptions import (
    AgentLost,
    CostWarning,
    DropoutError,
    DropoutWarning,
    ExcessiveNoiseError,
    InsecureKeyWarning,
    PrivacyBudgetError,
    PrivacyWarning,
)

__all__ = [
    "AgentLost",
    "CostEstimate",
    "CostWarning",
    "DropoutError",
    "DropoutWarning",
    "ExcessiveNoiseError",
    "InsecureKeyWarning",
    "NoiseEstimate",
    "PrivacyBudget",
    "PrivacyBudgetError",
    "PrivacyWarning",
    "PrivateDistributedNMF",
    "__version__",
    "estimate_cost",
    "estimate_noise",
    "load_cbcl",
    "make_paper_synthetic",
    "stack_parts",
]
