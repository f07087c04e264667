"""Error bounds and step counts, which can be computed before any budget is spent.

Only what fits use is here; `skdp.planning.papers` has the tools of papers' experiments.
"""

import importlib
import warnings
from typing import Any

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


def __getattr__(name: str) -> Any:
    """Return a name that moved to `skdp.planning.papers`, with a FutureWarning."""
    if not name.startswith("_"):
        # By name, at first use: fits do not import the papers' tools.
        papers = importlib.import_module("skdp.planning.papers")
        if name in papers.__all__:
            message = f"skdp.planning.{name} has moved to skdp.planning.papers.{name}."
            warnings.warn(message, FutureWarning, stacklevel=2)
            return getattr(papers, name)
    raise AttributeError(f"module 'skdp.planning' has no attribute {name!r}")
