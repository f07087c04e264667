"""How one noisy answer becomes one step. Pure functions and small state; no rows, no privacy."""

from skdp.steps.accelerated_noise import HeavyBallNoise, MultistageNoise, NesterovNoise, stages
from skdp.steps.acceleration import HeavyBallPath, NesterovPath, Path, nesterov_momentum
from skdp.steps.averaging import AVERAGES, IterateAverage
from skdp.steps.clipping import AdaptiveClipping, ClippingRule, GeometricClipping, clip_norms
from skdp.steps.decay import AdaptiveSizes, AdaptiveStep, PolynomialStep, SquareRootDecayStep
from skdp.steps.influence import (
    NoiseSchedule,
    influence_to_noise,
    least_noise_effect,
    noise_effect,
    noise_multipliers,
)
from skdp.steps.momentum import MOMENTA, AveragedGradient, HeavyBall, Momentum
from skdp.steps.noise_schedules import (
    NOISE_SCHEDULES,
    CustomNoise,
    ExponentialNoise,
    MomentumNoise,
    StepMatchedNoise,
    TwoPhaseMomentumNoise,
    UniformNoise,
    flattening_horizon,
    relative_noise,
)
from skdp.steps.sampled_noise import (
    sampled_epsilon,
    sampled_laplace_factor,
    sampled_laplace_noise,
)
from skdp.steps.schedules import (
    ConstantStep,
    InverseSquareRootStep,
    LinearDecayStep,
    StepSchedule,
    step_sizes,
)

__all__ = [
    "AVERAGES",
    "MOMENTA",
    "NOISE_SCHEDULES",
    "AdaptiveClipping",
    "AdaptiveSizes",
    "AdaptiveStep",
    "AveragedGradient",
    "ClippingRule",
    "ConstantStep",
    "CustomNoise",
    "ExponentialNoise",
    "GeometricClipping",
    "HeavyBall",
    "HeavyBallNoise",
    "HeavyBallPath",
    "InverseSquareRootStep",
    "IterateAverage",
    "LinearDecayStep",
    "Momentum",
    "MomentumNoise",
    "MultistageNoise",
    "NesterovNoise",
    "NesterovPath",
    "NoiseSchedule",
    "Path",
    "PolynomialStep",
    "SquareRootDecayStep",
    "StepMatchedNoise",
    "StepSchedule",
    "TwoPhaseMomentumNoise",
    "UniformNoise",
    "clip_norms",
    "flattening_horizon",
    "influence_to_noise",
    "least_noise_effect",
    "nesterov_momentum",
    "noise_effect",
    "noise_multipliers",
    "relative_noise",
    "sampled_epsilon",
    "sampled_laplace_factor",
    "sampled_laplace_noise",
    "stages",
    "step_sizes",
]
