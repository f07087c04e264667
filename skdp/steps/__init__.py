"""How one noisy answer becomes one step. Pure functions and small state; no rows, no privacy."""

from skdp.steps.averaging import AVERAGES, IterateAverage
from skdp.steps.clipping import ClippingRule, GeometricClipping, clip_norms
from skdp.steps.influence import (
    NOISE_SCHEDULES,
    CustomNoise,
    ExponentialNoise,
    NoiseSchedule,
    UniformNoise,
    relative_noise,
)
from skdp.steps.momentum import MOMENTA, AveragedGradient, HeavyBall, Momentum
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
    "AveragedGradient",
    "ClippingRule",
    "ConstantStep",
    "CustomNoise",
    "ExponentialNoise",
    "GeometricClipping",
    "HeavyBall",
    "InverseSquareRootStep",
    "IterateAverage",
    "LinearDecayStep",
    "Momentum",
    "NoiseSchedule",
    "StepSchedule",
    "UniformNoise",
    "clip_norms",
    "relative_noise",
    "step_sizes",
]
