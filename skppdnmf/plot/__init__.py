"""Displays of fitted estimators, in scikit-learn's manner.

They need matplotlib, which ``pip install "skppdnmf[plot]"`` brings; it is imported
when something is drawn, not with this module.
"""

from ._component_curve import ComponentCurveDisplay
from ._components import ComponentsDisplay
from ._leakage import LeakageDisplay
from ._learning_curve import LearningCurveDisplay
from ._network import NetworkDisplay

__all__ = [
    "ComponentCurveDisplay",
    "ComponentsDisplay",
    "LeakageDisplay",
    "LearningCurveDisplay",
    "NetworkDisplay",
]
