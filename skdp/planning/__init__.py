"""Compute error bounds and numbers of steps from public facts, before any budget is spent."""

from skdp.planning.acceleration import (
    multistage_bounds,
    multistage_sizes,
    nesterov_bounds,
    sampling_variance,
)
from skdp.planning.bounds import noise_constant, utility_bound
from skdp.planning.heavy_ball import (
    HeavyBallChoice,
    heavy_ball_bounds,
    heavy_ball_rate,
    tune_heavy_ball,
)
from skdp.planning.step_count import largest_momentum_step, momentum_step_limit, number_of_steps

__all__ = [
    "HeavyBallChoice",
    "heavy_ball_bounds",
    "heavy_ball_rate",
    "largest_momentum_step",
    "momentum_step_limit",
    "multistage_bounds",
    "multistage_sizes",
    "nesterov_bounds",
    "noise_constant",
    "number_of_steps",
    "sampling_variance",
    "tune_heavy_ball",
    "utility_bound",
]
