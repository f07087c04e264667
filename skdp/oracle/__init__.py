"""The trust boundary: the only code that sees a row."""

from skdp.oracle.ledger import BudgetError, Entry, PlanError
from skdp.oracle.noise import NoiseSource, noise_source
from skdp.oracle.oracle import Oracle
from skdp.oracle.public import Public
from skdp.oracle.releases import (
    Bin,
    Block,
    Cut,
    Everyone,
    FixedSize,
    GaussianNoise,
    GradientCount,
    GradientSum,
    LaplaceNoise,
    LargestEigenvalue,
    LastIterate,
    NoisySum,
    NotAudited,
    Poisson,
    ResidualCount,
    Sampler,
    ShuffledPass,
    SquaredNormSum,
    smoothness,
)
from skdp.oracle.session import Plan, Solution, make_plan, run

__all__ = [
    "Bin",
    "Block",
    "BudgetError",
    "Cut",
    "Entry",
    "Everyone",
    "FixedSize",
    "GaussianNoise",
    "GradientCount",
    "GradientSum",
    "LaplaceNoise",
    "LargestEigenvalue",
    "LastIterate",
    "NoiseSource",
    "NoisySum",
    "NotAudited",
    "Oracle",
    "Plan",
    "PlanError",
    "Poisson",
    "Public",
    "ResidualCount",
    "Sampler",
    "ShuffledPass",
    "Solution",
    "SquaredNormSum",
    "make_plan",
    "noise_source",
    "run",
    "smoothness",
]
