"""What an agent, a neighbour and an eavesdropper really learn."""

from ._attack import NeighbourAttack
from ._auditing import audit_report
from ._eavesdropper import EavesdropperAttack
from ._gcd import GcdAttack
from ._leakage import Estimate, Leakage
from ._least_squares import JointMaskAttack, LeastSquaresAttack
from ._pooled_simulation import PooledSimulationAttack
from ._record import record
from ._report import AuditReport, Skipped
from ._simulation import SimulationAttack
from ._sum_views import Sum, SumLetter
from ._transcript import AgentView, Letter, LinkView, Public, Round, State, Transcript

__all__ = [
    "AgentView",
    "AuditReport",
    "EavesdropperAttack",
    "Estimate",
    "GcdAttack",
    "JointMaskAttack",
    "Leakage",
    "LeastSquaresAttack",
    "Letter",
    "LinkView",
    "NeighbourAttack",
    "PooledSimulationAttack",
    "Public",
    "Round",
    "SimulationAttack",
    "Skipped",
    "State",
    "Sum",
    "SumLetter",
    "Transcript",
    "audit_report",
    "record",
]
