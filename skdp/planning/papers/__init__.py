"""Tools for the experiments of papers: printed formulas, exact quadratics, certificates, plots.

No fit imports this package.
"""

from skdp.planning.papers.certificate import (
    HeavyBallCertificate,
    best_certificate,
    find_certificate,
)
from skdp.planning.papers.plots import plot_utility_bounds
from skdp.planning.papers.printed import (
    batch_constant,
    exact_budget,
    improvement_ratio,
    printed_adp_noise,
    printed_budget,
    printed_number_of_steps,
    relaxed_number_of_steps,
)
from skdp.planning.papers.quadratics import (
    heavy_ball_excess,
    heavy_ball_noise,
    quadratic_excess,
    quadratic_influence,
)
from skdp.planning.papers.retraining import (
    RetrainedInfluence,
    estimator_trainer,
    influence_by_retraining,
)

__all__ = [
    "HeavyBallCertificate",
    "RetrainedInfluence",
    "batch_constant",
    "best_certificate",
    "estimator_trainer",
    "exact_budget",
    "find_certificate",
    "heavy_ball_excess",
    "heavy_ball_noise",
    "improvement_ratio",
    "influence_by_retraining",
    "plot_utility_bounds",
    "printed_adp_noise",
    "printed_budget",
    "printed_number_of_steps",
    "quadratic_excess",
    "quadratic_influence",
    "relaxed_number_of_steps",
]
