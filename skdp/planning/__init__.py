"""What can be worked out before any budget is spent: bounds, step counts, influence."""

from skdp.planning.acceleration import multistage_bounds, multistage_sizes, nesterov_bounds
from skdp.planning.bounds import (
    batch_constant,
    improvement_ratio,
    noise_constant,
    utility_bound,
)
from skdp.planning.budgets import exact_budget, printed_adp_noise, printed_budget
from skdp.planning.heavy_ball import (
    HeavyBallChoice,
    heavy_ball_bounds,
    heavy_ball_excess,
    heavy_ball_noise,
    heavy_ball_rate,
    tune_heavy_ball,
)
from skdp.planning.heavy_ball_certificate import (
    HeavyBallCertificate,
    best_certificate,
    find_certificate,
)
from skdp.planning.horizon import (
    largest_momentum_step,
    momentum_step_limit,
    number_of_steps,
    printed_number_of_steps,
    relaxed_number_of_steps,
)
from skdp.planning.plots import plot_utility_bounds
from skdp.planning.quadratics import quadratic_excess, quadratic_influence
from skdp.planning.retraining import (
    RetrainedInfluence,
    estimator_trainer,
    influence_by_retraining,
)

__all__ = [
    "HeavyBallCertificate",
    "HeavyBallChoice",
    "RetrainedInfluence",
    "batch_constant",
    "best_certificate",
    "estimator_trainer",
    "exact_budget",
    "find_certificate",
    "heavy_ball_bounds",
    "heavy_ball_excess",
    "heavy_ball_noise",
    "heavy_ball_rate",
    "improvement_ratio",
    "influence_by_retraining",
    "largest_momentum_step",
    "momentum_step_limit",
    "multistage_bounds",
    "multistage_sizes",
    "nesterov_bounds",
    "noise_constant",
    "number_of_steps",
    "plot_utility_bounds",
    "printed_adp_noise",
    "printed_budget",
    "printed_number_of_steps",
    "quadratic_excess",
    "quadratic_influence",
    "relaxed_number_of_steps",
    "tune_heavy_ball",
    "utility_bound",
]
