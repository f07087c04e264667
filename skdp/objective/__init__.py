"""Losses, penalties and constraints: the objective of a fit, without rows or state."""

from skdp.objective.losses import (
    Huber,
    Logistic,
    Loss,
    SmoothedHinge,
    SmoothedPinball,
    SquaredError,
)
from skdp.objective.multinomial import Multinomial, OffsetLogistic, OffsetMultinomial
from skdp.objective.problem import (
    CAPABILITIES,
    CONSTRAINTS,
    Box,
    Constraint,
    ElasticNet,
    L1Ball,
    L2Ball,
    Problem,
    Simplex,
    Unconstrained,
)
from skdp.objective.tweedie import TweedieLog

__all__ = [
    "CAPABILITIES", "CONSTRAINTS", "Box", "Constraint", "ElasticNet", "Huber", "L1Ball", "L2Ball",
    "Logistic", "Loss", "Multinomial", "OffsetLogistic", "OffsetMultinomial", "Problem", "Simplex",
    "SmoothedHinge", "SmoothedPinball", "SquaredError", "TweedieLog", "Unconstrained",
]  # fmt: skip
