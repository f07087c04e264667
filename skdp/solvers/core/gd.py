"""Run gradient descent on noisy, clipped mean gradients: proximal, projected, with momentum."""

from __future__ import annotations

import math

import numpy as np

from skdp import steps
from skdp._numbers import Array
from skdp.solvers import base, checks, defaults, descent
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution


@base.hyperparameters
class GradientDescent(descent.GradientSolver):
    """Clipped, noisy, proximal gradient descent with momentum, on all rows or on batches.

    Step t requests the mean gradient at the current point, with each record's gradient clipped, and
    moves to ``w = prox(w - eta_t * direction)``. With the uniform noise schedule and without
    momentum this is DP-GD of Wang, Ye, Xu (2017, Alg. 4). With a schedule and averaged momentum it
    is private gradient descent of Hong, Wang, Zhou (2022, Alg. 1).

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps, at least 1.
    learning_rate : float, str, tuple (str, dict) or "auto", default="auto"
        Step size, or a schedule: "polynomial" is ``initial / sqrt(a + c t)`` in step t,
        "square_root_decay" ``initial - k sqrt(t)`` with the last size ``final``. A pair sets
        arguments: ``("polynomial", {"a": 50.0})``. Without noise, of weighted rows or with a log
        link, it is the size of the first step. Others follow the curvature along the path, without
        momentum (Malitsky, Mishchenko 2024).
    {momentum}
    {batch_size}
    {sampling}
    noise_schedule : str, tuple (str, dict), array of shape (max_iter,) or "auto", default="auto"
        Noise of the steps relative to each other: "uniform", "exponential", "momentum",
        "step_matched" or, with arguments, ``("exponential", {"gamma": 0.9})``.
    {clip_norm}
    averaging : {"last", "tail", "random", "sparse"} or "auto", default="auto"
        Which iterate is returned: the last, the mean of the last half ("tail"), or a uniformly
        random one, whose expected squared gradient theory bounds if the problem is not convex
        (Wang, Ye, Xu 2017, Thm 6.3). "sparse", for squared error with an L1 penalty, is the mean of
        the last half after a proximal step along the mean of its gradients, which sets most
        coefficients to 0 that only noise had moved. All are free: the gradients were released.
    mechanism : {"auto", "gaussian", "laplace"}, default="auto"
        Distribution of the noise. "auto" is Laplace if delta is 0, else Gaussian. With Laplace
        noise ``clip_norm`` bounds gradients in L1 norm.

    Notes
    -----
    With an L2 penalty the proximal step is an implicit gradient step on the penalty. It has the
    fixed points of the explicit step and is stable for any strength.

    References
    ----------
    D. Wang, M. Ye, J. Xu: Differentially Private Empirical Risk Minimization Revisited: Faster and
    More General. NeurIPS 2017.
    J. Hong, Z. Wang, J. Zhou: Dynamic Privacy Budget Allocation Improves Data Efficiency of
    Differentially Private Gradient Descent. FAccT 2022.
    Y. Malitsky, K. Mishchenko: Adaptive Proximal Gradient Method for Convex Optimization. NeurIPS
    2024.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidge
    >>> from skdp.solvers import GradientDescent
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPRidge(solver=GradientDescent(max_iter=20, momentum=0.5))
    >>> model.fit(X, y).n_iter_
    20
    """

    name = "gd"
    algorithms = (("DP-GD", {"momentum": 0.0, "noise_schedule": "uniform"}),)
    purpose = "For every problem: proximal gradient descent."
    mechanisms = ("gaussian", "laplace")
    averages = (*steps.AVERAGES, "sparse")

    max_iter: Resolved[int] = AUTO
    learning_rate: base.StepSize = "auto"
    momentum: base.AnyMomentum = "auto"
    batch_size: int | float | None = None
    sampling: str = "poisson"
    noise_schedule: base.RelativeNoise = "auto"
    clip_norm: Resolved[float] = AUTO
    averaging: str = "auto"
    mechanism: str = "auto"

    @property
    def has_checkpoint(self) -> bool:
        return self.max_iter > 1

    def averages_groups(self, pure: bool) -> bool:
        return self.mechanism_for(pure) == "gaussian"

    def automatic(self, public: Public, problem: Problem) -> Settings:
        max_iter, size = checks.given_steps(self.max_iter, self.learning_rate)
        beta = descent.given_beta(self.momentum, public)
        if self.batch_size and beta is None:  # few batches would leave out most rows
            beta = defaults.MOMENTUM
        mechanism = self.mechanism_for(public.is_pure)
        laplace = mechanism == "laplace"
        rule = defaults.laplace_descent_defaults if laplace else defaults.descent_defaults
        values = {**rule(public, problem, max_iter, size, beta=beta), "mechanism": mechanism}
        thresholds = "smooth_penalty" not in problem.provides
        if values["averaging"] == "tail" and thresholds and "quadratic_loss" in problem.provides:
            values["averaging"] = "sparse"
        if self.batch_size and not public.is_noisy and problem.loss.residual_bound is None:
            # Rows are not bounded, as they are with noise. Steps, which momentum makes longer, are
            # stable in mean square up to 2 over the curvature of one record over those of a batch.
            longest = 2 * (1 - values["momentum"]) / defaults.loss_curvature(public, problem)
            longest *= descent.batch_rows(self.batch_size, public.n_rows)
            values["learning_rate"] = min(values["learning_rate"], longest)
        return values

    def solve(self, oracle: Oracle) -> Solution:
        n_steps = self.max_iter
        public, problem = oracle.public, oracle.problem
        sizes = self._sizes() * defaults.slower_for_weights(public, problem, n_steps)
        noises = self._noises(defaults.composition_kind(self.mechanism, public))
        sparse, on_all = self.averaging == "sparse", self.batch_size is None
        average = steps.IterateAverage("tail" if sparse else self.averaging, n_steps, oracle.rng)
        local = defaults.local_sizes(oracle, float(sizes[0])) if on_all else None
        momentum = None if local else steps.Momentum.of(self.momentum)
        path: descent.Path = descent.Proximal(problem, oracle.start(), average, momentum)
        if local is not None:
            path = descent.Sized(path, lambda point, gradient, std: local.next(point, gradient))
        if sparse:
            path = Thresholded(path, oracle, n_steps)
        lengths: list[float] = []
        if on_all and not oracle.is_noisy:
            path = observed = Observed(path, oracle)
            lengths = observed.lengths
        spent = math.fsum(noise**-2 for noise in noises)
        spent = descent.spent_on_batches(spent, self.batch_size, public)
        path = Halfway(path, oracle, n_steps, spent)
        batches = descent.samplers(self.batch_size, self.sampling, public)
        sizes = sizes / problem.loss.slowdown
        run = descent.schedule(sizes, self.clip_norm, noises, batches, self.mechanism)
        return Solution(descent.descend(oracle, path, run), n_steps, slopes=tuple(lengths))


class Thresholded(descent.Wrapper):
    """Ends with a proximal step along the mean of the last gradients.

    The step is large enough to set noise to 0. Whatever its size, it leaves the minimum where it
    is. Its size is one over the curvature of a column of unit size. The intercept, which has
    another unit, stays.
    """

    def __init__(self, path: descent.Path, oracle: Oracle, n_steps: int) -> None:
        super().__init__(path)
        self._problem, self._n_features = oracle.problem, oracle.public.n_features
        self._size = 1 / defaults.column_curvature(oracle.public, oracle.problem)
        self._slopes = steps.IterateAverage("tail", n_steps, oracle.rng)
        self._slopes.add(oracle.start())

    def move(self, answer: Array, step: descent.Step) -> None:
        super().move(answer, step)
        self._slopes.add(answer)

    def result(self) -> Array:
        slope = self._slopes.result()
        slope[self._n_features :] = 0.0
        return self._problem.prox(super().result() - self._size * slope, self._size)


class Observed(descent.Wrapper):
    """Keeps the lengths of proximal gradients, if there is no noise."""

    def __init__(self, path: descent.Path, oracle: Oracle) -> None:
        super().__init__(path)
        self.lengths: list[float] = []
        self._prox = oracle.problem.prox

    def move(self, answer: Array, step: descent.Step) -> None:
        point = self.at(step)
        moved = point - self._prox(point - step.size * answer, step.size)
        self.lengths.append(float(np.linalg.norm(moved)) / step.size)
        super().move(answer, step)


class Halfway(descent.Wrapper):
    """Calls the checkpoint after half of the steps, at the mean of the last iterates before."""

    def __init__(self, path: descent.Path, oracle: Oracle, n_steps: int, spent: float) -> None:
        super().__init__(path)
        self._half, self._spent, self._done = n_steps // 2, spent, 0
        self._average = steps.IterateAverage("tail", max(self._half, 1), oracle.rng)
        self._average.add(oracle.start())

    def query(self, oracle: Oracle, step: descent.Step) -> Array:
        if 0 < self._done == self._half:
            point = self.at(step) if oracle.is_rehearsal else self._average.result()
            oracle.checkpoint(point, self._spent)
        self._done += 1
        return super().query(oracle, step)

    def move(self, answer: Array, step: descent.Step) -> None:
        super().move(answer, step)
        self._average.add(self.at(step))
