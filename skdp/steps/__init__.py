"""Turn noisy answers into steps: step sizes, momentum, averages, clipping norms, noise schedules.

Everything here is a pure function or a small state machine without access to rows or budgets.
"""

from skdp.steps.iterates import (
    AVERAGES,
    MOMENTA,
    AveragedGradient,
    HeavyBall,
    IterateAverage,
    Momentum,
    momentum_rule,
)
from skdp.steps.noise_schedules import (
    NOISE_SCHEDULES,
    ExponentialNoise,
    MomentumNoise,
    NoiseSchedule,
    StepMatchedNoise,
    UniformNoise,
    cost_power,
    influence_to_noise,
    least_noise_effect,
    noise_effect,
    noise_multipliers,
    noise_rule,
    relative_noise,
    sampled_laplace_noise,
    stages,
)
from skdp.steps.schedules import (
    AdaptiveStep,
    LocalSizes,
    PolynomialStep,
    SquareRootDecayStep,
    StepSchedule,
    constant_clip,
    constant_size,
    named,
    step_schedule,
    step_sizes,
)
