"""The trust boundary: the only code that sees a row."""

from skdp.oracle.ledger import BudgetError, Entry, PlanError
from skdp.oracle.noise import NoiseSource, noise_source
from skdp.oracle.oracle import Oracle
from skdp.oracle.public import Public
from skdp.oracle.releases import (
    Bin,
    Block,
    Everyone,
    FixedSize,
    GaussianNoise,
    GradientDifference,
    GradientSum,
    LaplaceNoise,
    LargestEigenvalue,
    LastIterate,
    NoisySum,
    NotAudited,
    Poisson,
    Sampler,
    SVRGPass,
    smoothness,
)
from skdp.oracle.session import Plan, Solution, make_plan, run

__all__ = [
    "Bin",
    "Block",
    "BudgetError",
    "Entry",
    "Everyone",
    "FixedSize",
    "GaussianNoise",
    "GradientDifference",
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
    "SVRGPass",
    "Sampler",
    "Solution",
    "make_plan",
    "noise_source",
    "run",
    "smoothness",
]
