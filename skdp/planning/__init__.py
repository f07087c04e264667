"""Compute error bounds and numbers of steps from public facts, before any budget is spent."""

from skdp.planning.acceleration import (
    heavy_ball_bounds,
    heavy_ball_rate,
    nesterov_bounds,
    nesterov_influence,
    sampling_variance,
    sizes_of_stages,
)
from skdp.planning.bounds import (
    largest_momentum_step,
    momentum_step_limit,
    noise_constant,
    number_of_steps,
    utility_bound,
)
