"""Residuals of one record in plain floats, for loops of tiny steps where arrays are slow."""

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any

from skdp.objective.losses import Huber, Logistic, SquaredError

Residual = Callable[[float, float], float]


@singledispatch
def scalar_residual(loss: Any) -> Residual | None:
    """Return the residual of a loss of one margin as a function of (margin, target).

    As `Loss.residual`, up to rounding, and nan where a margin is nan; it raises nothing.

    Parameters
    ----------
    loss : Loss

    Returns
    -------
    callable or None
        None if the loss has no such function here.
    """
    return None


@scalar_residual.register
def _(loss: SquaredError) -> Residual:
    return lambda margin, target: margin - target


@scalar_residual.register
def _(loss: Logistic) -> Residual:
    exp = math.exp

    def residual(margin: float, target: float) -> float:
        if margin < -700.0:  # where exp would overflow
            return -target
        return 1.0 / (1.0 + exp(-margin)) - target

    return residual


@scalar_residual.register
def _(loss: Huber) -> Residual:
    limit = loss.threshold
    return lambda margin, target: min(max(margin - target, -limit), limit)
