"""Wu, Wang, Cristali, Gu, Willett (2021): noise matched to the step sizes of SGD.

For smooth losses, convex or not, the paper bounds the mean squared gradient of SGD with step sizes
``eta_t`` and noise ``alpha_t``. Of all noise of equal cost, ``alpha_t`` in proportion to
``eta_t ** (-1/2)`` minimises the noise term (Thm 4.2), so noise rises as steps fall. The gain over
uniform noise grows with the range of the step sizes, and vanishes for constant steps.

"adp_sgd" is this algorithm (ADP-SGD). By default the last of 200 to 1000 steps is half as long as
the first, noise is "step_matched", and all rows are in each step. ``noise_schedule="uniform"`` is
DP-SGD. ``learning_rate="adaptive"`` follows the norms of the *noisy* gradients: as printed, the
adaptive steps are computed from gradients without noise, which is not private.

Worth using: to compare schedules of steps and noise. It is about as accurate as "gd" and slower.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skdp import steps
from skdp._numbers import Array, require
from skdp.solvers import base, checks, defaults, descent
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution
from skdp.steps import name_of, named, polynomial


class AdaptiveStep(NamedTuple):
    """Step t has size ``initial / b_t``, where b grows with the norms of the noisy gradients.

    ``b_t**2 = b_{t-1}**2 + max(||g_t||**2 - E ||noise||**2, least)``. The sizes depend on answers
    that were released before, and cost nothing. The noise of the steps has to be fixed before the
    run: it is matched to the guess ``b_t**2 = first**2 + growth t`` (Wu, Wang, Cristali, Gu,
    Willett 2021, sec. 5.2, where b is computed from gradients without noise, which is not private).

    Attributes
    ----------
    initial : float, default=1.0
        Positive.
    first : float, default=1.0
        b_0, positive.
    least : float, default=1e-3
        Least growth of ``b**2`` in a step, positive.
    growth : float, default=1.0
        Guess of the growth of ``b**2`` in a step, not negative.
    """

    initial: float = 1.0
    first: float = 1.0
    least: float = 1e-3
    growth: float = 1.0

    def expected_sizes(self, n_steps: int) -> Array:
        """Return the sizes of the steps 1..n_steps if the guess ``growth`` were right."""
        for name, value in self._asdict().items():
            is_valid = 0 < value < math.inf or (name == "growth" and value == 0)
            require(f"learning_rate: {name}", value, "be positive and finite", is_valid)
        return np.asarray(
            self.initial / np.sqrt(self.first**2 + self.growth * np.arange(1, n_steps + 1))
        )

    def start(self) -> Callable[[Array, float], float]:
        """Return the sizes of one run, each from a noisy gradient and the noise in an entry of it.

        The squares of large gradients may overflow over many steps. The size is 0 then.
        """
        squared = float(self.first) ** 2

        def size(gradient: Array, noise_std: float) -> float:
            nonlocal squared
            with np.errstate(over="ignore"):
                square = float(np.sum(gradient * gradient)) - gradient.size * noise_std**2
            squared += max(square, self.least)
            return float(self.initial / math.sqrt(squared))

        return size


@base.hyperparameters
class AdaptiveNoiseSGD(descent.GradientSolver):
    """Stochastic gradient descent with falling steps and noise matched to them (ADP-SGD).

    Step t requests the mean gradient on a batch, with each record's gradient clipped and noise in
    proportion to ``alpha_t``, and moves to ``w = prox(w - eta_t * gradient)``. By default
    ``alpha_t`` is ``eta_t ** (-1/2)``, which minimises the noise term of the bound on the mean
    squared gradient (Wu, Wang, Cristali, Gu, Willett 2021, Thm 4.2): noise rises while steps fall.
    With ``noise_schedule="uniform"`` it is DP-SGD.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps, at least 1.
    learning_rate : float, str, tuple (str, dict) or "auto", default="auto"
        Step sizes, as for `GradientDescent`, or "adaptive": by the norms of the noisy gradients,
        with arguments such as ``("adaptive", {"growth": 0.01})``. "auto" is "polynomial", with a
        last step that is half as long as the first.
    {batch_size}
    {sampling}
    noise_schedule : str, tuple (str, dict), array of shape (max_iter,) or "auto", default="auto"
        Noise of the steps relative to each other. "auto" is "step_matched", by the step sizes of
        this solver, or the expected ones if they are adaptive. "uniform" is DP-SGD.
    {clip_norm}
    {averaging}

    Notes
    -----
    The paper samples batches of "fixed_size". It computes an adaptive step size from the gradient
    before noise is added, and scales the release by it, which is not private. Here the step size
    is computed from the noisy gradient.

    References
    ----------
    X. Wu, L. Wang, I. Cristali, Q. Gu, R. Willett: Adaptive Differentially Private Empirical Risk
    Minimization. 2021, arXiv:2110.07435.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> from skdp.solvers import AdaptiveNoiseSGD
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> solver = AdaptiveNoiseSGD(max_iter=300, batch_size=0.2)
    >>> model = DPLogisticRegression(classes=[0, 1], solver=solver, epsilon=3.0).fit(X, y)
    >>> model.score(X, y) > 0.85  # public rows: an exact score is fine
    True
    """

    name = "adp_sgd"
    paper = "Wu, Wang, Cristali, Gu, Willett (2021)"
    algorithms = (("ADP-SGD", {}), ("DP-SGD", {"noise_schedule": "uniform"}))
    purpose = "About as accurate as 'gd', but slower."

    max_iter: Resolved[int] = AUTO
    learning_rate: base.StepSize = "auto"
    batch_size: int | float | None = None
    sampling: str = "poisson"
    noise_schedule: base.RelativeNoise = "auto"
    clip_norm: Resolved[float] = AUTO
    averaging: str = "auto"

    def averages_groups(self, pure: bool) -> bool:
        return True

    def automatic(self, public: Public, problem: Problem) -> Settings:
        """Return the distance, clip and average of gradient descent, with falling steps.

        Steps are ``initial / sqrt(T/3 + t)``, so that the last of the T is half as long as the
        first, which is as long as a plain step may be. There are as many as necessary to travel the
        distance, within limits, also with step sizes that the user sets. The paper's ``sqrt(20 +
        t)`` would fall sevenfold in 1000 steps, and stop too early.
        """
        max_iter, size = checks.given_steps(self.max_iter, self.learning_rate)
        distance = defaults.travelled_distance(public, problem)
        longest = defaults.longest_plain_step(public, problem, 2)  # the limit of stability
        if max_iter is None:
            # The mean of steps that fall in this way is 2/3 of the first.
            mean = longest / 1.5 if size is None else size
            # The most was chosen on the first data of `benchmarks.papers.next_to_gd`.
            max_iter = defaults.count_within(distance / mean, (200, 1000))
        delay = max_iter / 3
        sizes = polynomial(max_iter, a=delay)
        initial = min(distance / float(sizes.sum()), longest / float(sizes[0]))
        descent = defaults.descent_defaults(public, problem)
        return {
            "max_iter": max_iter,
            "learning_rate": ("polynomial", {"initial": initial, "a": delay}),
            "noise_schedule": "step_matched",
            "clip_norm": descent["clip_norm"],
            "averaging": descent["averaging"],
        }

    @property
    def _adaptive(self) -> AdaptiveStep | None:
        if name_of(self.learning_rate) != "adaptive":
            return None
        return named("learning_rate", {"adaptive": AdaptiveStep}, self.learning_rate, "")()

    def _sizes(self) -> Array:
        if self._adaptive is not None:
            return self._adaptive.expected_sizes(self.max_iter)
        return super()._sizes()

    def solve(self, oracle: Oracle) -> Solution:
        n_steps = self.max_iter
        average = steps.IterateAverage(self.averaging, n_steps, oracle.rng)
        path: descent.Path = descent.Proximal(oracle.problem, oracle.start(), average)
        if self._adaptive is not None:
            size_of = self._adaptive.start()
            path = descent.Sized(path, lambda point, gradient, std: size_of(gradient, std))
        batches = descent.samplers(self.batch_size, self.sampling, oracle.public)
        run = descent.schedule(self._sizes(), self.clip_norm, self._noises(), batches)
        return Solution(descent.descend(oracle, path, run), n_steps)
