"""Turn noisy answers into steps: step sizes, momentum, averages, clipping norms, noise of steps.

Everything here is a pure function or a small state machine without access to rows or budgets.
"""

from skdp.steps.iterates import AVERAGES, AnyMomentum, IterateAverage, Momentum
from skdp.steps.schedules import (
    LocalSizes,
    RelativeNoise,
    StepSize,
    constant_clip,
    constant_size,
    relative_noise,
    step_sizes,
)
