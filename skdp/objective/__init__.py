"""Losses, penalties and constraints: the objective of a fit, without rows or state."""

from skdp.objective.constraints import (
    CONSTRAINTS,
    Box,
    Constraint,
    L1Ball,
    L2Ball,
    Simplex,
    Unconstrained,
)
from skdp.objective.losses import Huber, Logistic, Loss, SquaredError
from skdp.objective.multinomial import Multinomial
from skdp.objective.offsets import OffsetLogistic, OffsetMultinomial
from skdp.objective.penalties import ElasticNet, Penalty
from skdp.objective.problem import CAPABILITIES, Problem
from skdp.objective.smoothed import SmoothedHinge, SmoothedPinball
from skdp.objective.tweedie import TweedieLog

__all__ = [
    "CAPABILITIES", "CONSTRAINTS", "Box", "Constraint", "ElasticNet", "Huber", "L1Ball", "L2Ball",
    "Logistic", "Loss", "Multinomial", "OffsetLogistic", "OffsetMultinomial", "Penalty", "Problem",
    "Simplex", "SmoothedHinge", "SmoothedPinball", "SquaredError", "TweedieLog", "Unconstrained",
]  # fmt: skip
