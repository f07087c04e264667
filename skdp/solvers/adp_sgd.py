"""Stochastic gradient descent with falling steps, whose noise is matched to the step sizes."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from skdp._numbers import Array
from skdp.objective import Problem
from skdp.oracle import Oracle, Public, Solution
from skdp.solvers.base import Solver
from skdp.solvers.batches import SAMPLINGS, batch_rows, samplers
from skdp.solvers.checks import check_choice, given_steps, is_auto
from skdp.solvers.clip_tracker import ClipTracker, adaptive_clip, check_clip
from skdp.solvers.defaults import descent_defaults
from skdp.steps import (
    AVERAGES,
    AdaptiveSizes,
    AdaptiveStep,
    ClippingRule,
    IterateAverage,
    NoiseSchedule,
    PolynomialStep,
    StepSchedule,
    relative_noise,
    step_sizes,
)

FEWEST, MOST = 200, 2000
# Defaults of gradient descent bear steps of 38 over the curvature, by momentum; plain ones 2.
PLAIN = 2 / 38


class AdaptiveNoiseSGD(Solver):
    """Stochastic gradient descent with falling steps and noise matched to them (ADP-SGD).

    Step t asks for the mean gradient on a batch, each record's part clipped, with noise in
    proportion to ``alpha_t``, and goes ``w = prox(w - eta_t * gradient)``. By default ``alpha_t``
    is ``eta_t ** (-1/2)``, the choice that makes the noise term of the bound on the mean squared
    gradient least (Wu, Wang, Cristali, Gu, Willett 2021, Thm 4.2): noise rises while steps fall.
    With ``noise_schedule="uniform"`` it is DP-SGD.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps, at least 1.
    learning_rate : float, StepSchedule, AdaptiveStep or "auto", default="auto"
        Step sizes. ``PolynomialStep``: ``initial / sqrt(a + c t)``. ``SquareRootDecayStep``:
        ``initial - k sqrt(t)``, down to ``final``. ``AdaptiveStep``: from the norms of the noisy
        gradients. "auto" is a ``PolynomialStep`` whose last step is half as long as the first.
    batch_size : int, float or None, default=None
        Expected rows in a batch, as a number or a fraction. None takes all rows at every step.
    sampling : {"poisson", "fixed_size", "shuffled", "balls_and_bins"}, default="poisson"
        How batches are drawn. The paper's own is "fixed_size", under replace_one only.
    noise_schedule : str, NoiseSchedule or array of shape (max_iter,), default="step_matched"
        How noisy the steps are next to each other. "step_matched" and "auto" follow this solver's
        step sizes, for an ``AdaptiveStep`` those that it expects; "uniform" is DP-SGD.
    clip_norm : float, ClippingRule, "adaptive" or "auto", default="auto"
        L2 bound of one record's gradient. "adaptive" is `AdaptiveClipping`: a norm that follows
        noisy counts.
    averaging : {"last", "tail", "random"} or "auto", default="auto"
        Which iterate is returned; "tail" is the mean of the last half.

    Notes
    -----
    In the paper an adaptive step size is computed from the gradient before noise is added, and
    scales what is released: that is not private. Here it is computed from the noisy gradient.

    References
    ----------
    X. Wu, L. Wang, I. Cristali, Q. Gu, R. Willett: Adaptive Differentially Private Empirical Risk
    Minimization. 2021, arXiv:2110.07435.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPLogisticRegression
    >>> from skdp.solvers import AdaptiveNoiseSGD
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> solver = AdaptiveNoiseSGD(max_iter=300, batch_size=0.2)
    >>> model = DPLogisticRegression(solver=solver, epsilon=3.0).fit(scale(X), y)
    >>> model.score(scale(X), y) > 0.85
    True
    """

    name: ClassVar[str] = "adp_sgd"

    def __init__(
        self,
        *,
        max_iter: Any = "auto",
        learning_rate: float | StepSchedule | AdaptiveStep | str = "auto",
        batch_size: int | float | None = None,
        sampling: str = "poisson",
        noise_schedule: str | NoiseSchedule | Any = "step_matched",
        clip_norm: float | ClippingRule | str = "auto",
        averaging: str = "auto",
    ) -> None:
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.sampling = sampling
        self.noise_schedule = noise_schedule
        self.clip_norm = clip_norm
        self.averaging = averaging

    def automatic(self, public: Public, problem: Problem) -> dict[str, Any]:
        max_iter, size = given_steps(self.max_iter, self.learning_rate)
        values = falling_defaults(public, problem, max_iter, size)
        chosen = {name: value for name, value in values.items() if is_auto(getattr(self, name))}
        return chosen | adaptive_clip(self.clip_norm, values["clip_norm"])

    def resolve(self, public: Public, problem: Problem) -> AdaptiveNoiseSGD:
        resolved = super().resolve(public, problem)
        check_choice("averaging", resolved.averaging, AVERAGES)
        check_choice("sampling", resolved.sampling, SAMPLINGS)
        if resolved.batch_size is not None:
            batch_rows(resolved.batch_size, public.n_rows)
        check_clip(resolved.clip_norm, resolved.max_iter)
        resolved._noises()
        return resolved

    def _expected_sizes(self) -> Array:
        """Step sizes; for an adaptive step those that its noise is matched to."""
        if isinstance(self.learning_rate, AdaptiveStep):
            return self.learning_rate.expected_sizes(self.max_iter)
        return step_sizes(self.learning_rate, self.max_iter)

    def _noises(self) -> Array:
        return relative_noise(self.noise_schedule, self.max_iter, sizes=self._expected_sizes())

    def solve(self, oracle: Oracle) -> Solution:
        n_steps = self.max_iter
        expected, noises = self._expected_sizes(), self._noises()
        rule = self.learning_rate
        adaptive = AdaptiveSizes(rule) if isinstance(rule, AdaptiveStep) else None
        clips = ClipTracker(self.clip_norm, noises, oracle.public)
        average = IterateAverage(self.averaging, n_steps, oracle.rng)
        batches = samplers(self.batch_size, self.sampling, oracle.public)
        point = oracle.start()
        for size, noise, batch in zip(expected, clips.noises, batches, strict=False):
            clip_norm = clips.next(oracle, point, batch)
            gradient = oracle.gradient(point, clip_norm, noise, batch)
            # A step size from the noisy answer is post-processing, and costs nothing.
            if adaptive is not None:
                size = adaptive.next(gradient, oracle.gradient_std(clip_norm, noise, batch))
            point = oracle.problem.prox(point - size * gradient, size)
            average.add(point)
        return Solution(average.result(), n_steps)


def falling_defaults(
    public: Public, problem: Problem, max_iter: int | None, size: float | None = None
) -> dict[str, Any]:
    """Return what "auto" stands for: distance, clip and average of gradient descent.

    Steps are ``initial / sqrt(T/3 + t)``, so that the last of the T is half as long as the first,
    which is as long as a plain step may be; there are as many as it takes to travel the distance,
    within limits, also with steps of the user's own ``size``. The paper's ``sqrt(20 + t)`` would
    fall tenfold in 2000 steps, and get stuck.
    """
    values = descent_defaults(public, problem, 10**9)
    distance = 1e9 * values["learning_rate"]
    longest = PLAIN * descent_defaults(public, problem, 1)["learning_rate"]
    if max_iter is None:
        # The mean of steps that halve so is 2/3 of the first.
        mean = longest / 1.5 if size is None else size
        max_iter = math.ceil(min(max(distance / mean, FEWEST), MOST))
    delay = max_iter / 3
    sizes = PolynomialStep(1.0, a=delay).sizes(max_iter)
    initial = min(distance / float(sizes.sum()), longest / float(sizes[0]))
    return {
        "max_iter": max_iter,
        "learning_rate": PolynomialStep(initial, a=delay),
        "noise_schedule": "step_matched",
        "clip_norm": values["clip_norm"],
        "averaging": values["averaging"],
    }
