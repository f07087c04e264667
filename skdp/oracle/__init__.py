"""The trust boundary: the only code that sees a row."""

from skdp.oracle.ledger import BudgetError, Entry, PlanError
from skdp.oracle.noise import NoiseSource, noise_source
from skdp.oracle.oracle import Oracle
from skdp.oracle.public import Public
from skdp.oracle.releases import Everyone, GaussianNoise, GradientSum, NoisySum, NotAudited
from skdp.oracle.session import Plan, Solution, make_plan, run

__all__ = [
    "BudgetError",
    "Entry",
    "Everyone",
    "GaussianNoise",
    "GradientSum",
    "NoiseSource",
    "NoisySum",
    "NotAudited",
    "Oracle",
    "Plan",
    "PlanError",
    "Public",
    "Solution",
    "make_plan",
    "noise_source",
    "run",
]
