"""The trust boundary: the only code that sees a row."""

from skdp.oracle.ledger import BudgetError, Entry, PlanError
from skdp.oracle.noise import NoiseSource, noise_source
from skdp.oracle.oracle import Oracle
from skdp.oracle.public import Public
from skdp.oracle.releases import (
    Bin,
    BinCounts,
    Block,
    Everyone,
    FixedSize,
    GaussianNoise,
    GradientSum,
    LastIterate,
    MagnitudeCounts,
    NoisySum,
    NotAudited,
    Poisson,
    Sampler,
    smoothness,
)
from skdp.oracle.scaling import Columns, Scaling
from skdp.oracle.session import Plan, Solution, Solves, make_plan, rehearse, run

__all__ = [
    "Bin",
    "BinCounts",
    "Block",
    "BudgetError",
    "Columns",
    "Entry",
    "Everyone",
    "FixedSize",
    "GaussianNoise",
    "GradientSum",
    "LastIterate",
    "MagnitudeCounts",
    "NoiseSource",
    "NoisySum",
    "NotAudited",
    "Oracle",
    "Plan",
    "PlanError",
    "Poisson",
    "Public",
    "Sampler",
    "Scaling",
    "Solution",
    "Solves",
    "make_plan",
    "noise_source",
    "rehearse",
    "run",
    "smoothness",
]
