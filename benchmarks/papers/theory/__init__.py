"""Tools for the experiments of papers: printed formulas, exact quadratics, certificates, plots.

No fit imports this package.
"""

from benchmarks.papers.theory.certificate import (
    HeavyBallCertificate,
    best_certificate,
    find_certificate,
)
from benchmarks.papers.theory.plots import plot_utility_bounds
from benchmarks.papers.theory.printed import (
    batch_constant,
    exact_budget,
    improvement_ratio,
    printed_adp_noise,
    printed_budget,
    printed_number_of_steps,
    relaxed_number_of_steps,
)
from benchmarks.papers.theory.printed_bounds import (
    printed_adaptive_bounds,
    printed_adp_bound,
    printed_polynomial_bounds,
    random_iterate_steps,
    repetitions,
    true_risk_by_stability,
    true_risk_in_probability,
)
from benchmarks.papers.theory.printed_noise import PAPERS, PrintedNoise, printed_noise
from benchmarks.papers.theory.quadratics import (
    heavy_ball_excess,
    heavy_ball_noise,
    quadratic_excess,
    quadratic_influence,
)
from benchmarks.papers.theory.retraining import (
    RetrainedInfluence,
    estimator_trainer,
    influence_by_retraining,
)

__all__ = [
    "PAPERS",
    "HeavyBallCertificate",
    "PrintedNoise",
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
    "printed_adaptive_bounds",
    "printed_adp_bound",
    "printed_adp_noise",
    "printed_budget",
    "printed_noise",
    "printed_number_of_steps",
    "printed_polynomial_bounds",
    "quadratic_excess",
    "quadratic_influence",
    "random_iterate_steps",
    "relaxed_number_of_steps",
    "repetitions",
    "true_risk_by_stability",
    "true_risk_in_probability",
]
