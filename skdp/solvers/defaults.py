"""What "auto" stands for in gradient descent: functions of public facts alone.

Write d for the number of columns with the intercept, K for the outputs, and R for the size that a
row is taken to have: sqrt(d), or the declared bound if that is smaller. The budget enters through
the signal-to-noise ratio of the whole budget spent on one gradient,

    a = mu n / (d sqrt(K)),

where mu is the Gaussian-DP parameter of (epsilon, delta). Then

1. the clipping norm grows with the budget, ``C = c a**(1/3) R``, so that its bias vanishes while
   its noise stays in proportion; a declared ``target_bound`` B multiplies it by B/4, and it never
   exceeds what a gradient can reach;
2. the distance travelled, steps times step size, is ``S = s min(a, a**(3/4))``, times a where
   that is below 1 and residuals have no bound: noise alone
   carries the predictions no further than about ``c s min(a**(1/3), a**(1/12))``, however many
   steps are taken, so that a small budget gives a timid model and not a wild one;
3. there are as many steps as keep the step size stable, with momentum 0.9, for the most correlated
   columns, whose curvature is h d with h that of the loss, or h times the squared bound on a row
   where residuals have no bound: 100 to 500;
4. noise is uniform, and the mean of the last half of the iterates is returned.

The constants were chosen while looking at a handful of public data sets; most results move by about
a standard error when one of them moves by half. benchmarks/ holds what came out.
"""

from __future__ import annotations

import math
from typing import Any

from skdp.objective import Problem
from skdp.oracle import Public, smoothness

MOMENTUM = 0.9
# Step size times curvature. Heavy ball at 0.9 bears 38: a squared loss keeps below that for the
# longest rows that there can be, uncentred columns included; a loss whose residual is bounded
# cannot run away and goes by rows of the expected size.
STABLE, EXPECTED = 36.0, 20.0
FEWEST, MOST = 100, 500
# The same without momentum and with hidden iterates, where steps beyond 2 are refused, and where
# many steps need not cost more noise than few.
PLAIN, MOST_HIDDEN = 1.9, 2000
UNCLIPPED = 1e12  # in units of R, for a fit without noise
TARGET_UNITS = 4.0  # a declared bound on targets is taken for this many standard deviations


def _constants(public: Public, problem: Problem) -> tuple[float, float]:
    """Clipping c and travel s."""
    n_outputs = public.n_outputs
    if not problem.loss.separable:
        return 0.2, 9.0 * math.sqrt(n_outputs)
    if problem.loss.residual_bound is not None:
        return 0.2, 7.0
    return 0.3, 1.75 * math.sqrt(n_outputs)


def descent_defaults(
    public: Public,
    problem: Problem,
    max_iter: int | None = None,
    learning_rate: float | None = None,
    mu: float | None = None,
) -> dict[str, Any]:
    """Hyperparameters of gradient descent for a problem of this shape and budget.

    Where the user has set the number of steps or their size, the other one follows, so that the
    distance travelled stays what the budget bears. ``mu`` is the budget's, unless it is given.
    """
    n_columns, n_outputs = public.shape
    clipping, travelling = _constants(public, problem)
    curvature = problem.loss.curvature
    row_norm = math.sqrt(n_columns)
    if public.data_norm is not None:
        row_norm = min(row_norm, public.data_norm)
    # 0. Signal to noise; a fit without noise is treated as a very large budget.
    mu = public.gradient_mu if mu is None else mu / public.sensitivity_factor
    ratio = mu * public.n_rows / (n_columns * math.sqrt(n_outputs))
    # 1. The clipping norm, in the targets' unit; never above what a gradient can reach.
    if not public.is_noisy:
        clip_norm = UNCLIPPED * row_norm
    else:
        clip_norm = clipping * ratio ** (1 / 3) * row_norm
        if public.target_bound is not None:
            clip_norm *= public.target_bound / TARGET_UNITS
        if problem.loss.residual_bound is not None and public.row_norm is not None:
            clip_norm = min(clip_norm, problem.loss.residual_bound * public.row_norm)
    # 2. and 3. The distance, the steps, and the step size that follows; in units of 1 / R**2.
    travel = travelling * min(ratio, ratio**0.75)
    if problem.loss.residual_bound is None:
        travel *= min(1.0, ratio)
    if problem.loss.residual_bound is None and public.row_norm is not None:
        largest = STABLE / (curvature * public.row_norm**2) * row_norm**2 / n_columns
    else:
        largest = EXPECTED / (curvature * n_columns)
        if public.data_norm is not None:
            largest *= min(1.0, n_columns / public.data_norm**2)
    unit = n_columns / row_norm**2
    if max_iter is None:
        step = largest if learning_rate is None else learning_rate / unit
        max_iter = min(max(math.ceil(min(travel / step, MOST)), FEWEST), MOST)
    return {
        "max_iter": max_iter,
        "learning_rate": min(travel / max_iter, largest) * unit,
        "momentum": MOMENTUM,
        "noise_schedule": "uniform",
        "clip_norm": clip_norm,
        "averaging": "tail",
    }


def hidden_descent_defaults(
    public: Public,
    problem: Problem,
    max_iter: int | None = None,
    learning_rate: float | None = None,
) -> dict[str, Any]:
    """Hyperparameters of gradient descent that shows its last iterate alone.

    The distance and the clipping norm are those of :func:`descent_defaults`; steps are plain, and
    as long as the theorem on the last iterate allows, so that every one of them forgets the most.
    """
    values = descent_defaults(public, problem)
    distance = values["max_iter"] * values["learning_rate"]
    curvature = smoothness(public, problem)
    if curvature is None:  # no bound on rows and no noise; twice the expected size, squared
        curvature = problem.loss.curvature * 4.0 * public.n_parameters
    step = PLAIN / curvature if learning_rate is None else learning_rate
    if max_iter is None:
        max_iter = min(max(math.ceil(min(distance / step, MOST_HIDDEN)), FEWEST), MOST_HIDDEN)
    return {
        **values,
        "max_iter": max_iter,
        "learning_rate": min(distance / max_iter, step),
        "momentum": 0.0,
        "averaging": "last",
    }
