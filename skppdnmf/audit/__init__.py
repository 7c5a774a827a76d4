"""What an agent, a neighbour and an eavesdropper really learn."""

from ._attacks.attack import NeighbourAttack
from ._attacks.attribute import AttributeAttack
from ._attacks.dropout import DropoutAttack
from ._attacks.eavesdropper import EavesdropperAttack
from ._attacks.gcd import GcdAttack
from ._attacks.leakage import Estimate, Leakage
from ._attacks.least_squares import JointMaskAttack, LeastSquaresAttack
from ._attacks.membership import MembershipAttack
from ._attacks.pooled_simulation import PooledSimulationAttack
from ._attacks.simulation import SimulationAttack
from ._auditing import audit_report
from ._record.record import record
from ._report import AuditReport, Skipped
from ._views.sums import Sum, SumLetter
from ._views.transcript import (
    AgentView,
    Letter,
    LinkView,
    Public,
    Round,
    State,
    Transcript,
)

__all__ = [
    "AgentView",
    "AttributeAttack",
    "AuditReport",
    "DropoutAttack",
    "EavesdropperAttack",
    "Estimate",
    "GcdAttack",
    "JointMaskAttack",
    "Leakage",
    "LeastSquaresAttack",
    "Letter",
    "LinkView",
    "MembershipAttack",
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
