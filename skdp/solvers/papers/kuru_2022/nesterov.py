"""Run Nesterov's accelerated method, in one stage or in several stages of falling steps."""

import math
from typing import Literal

import numpy as np

from skdp import steps
from skdp._numbers import Array, is_real, require
from skdp.planning import multistage_bounds, multistage_sizes, nesterov_bounds
from skdp.solvers import base, checks
from skdp.solvers.base import Auto, Problem, Public, Resolved
from skdp.solvers.papers.kuru_2022.accelerated import MAX_STEPS, Accelerated, BoundArguments


class Nesterov(Accelerated):
    """Accelerated gradient method of Nesterov, with optimal noise (DP-NAG, DP-NAG-opt).

    Step t requests the mean gradient at ``z = (1 + beta) x - beta x_previous``, with each record's
    gradient clipped, adds the gradient of the penalty, and moves to ``x_next = z - a gradient``,
    with a the ``learning_rate`` and ``beta = (1 - sqrt(a mu)) / (1 + sqrt(a mu))`` (Kuru, Birbil,
    Gurbuzbalaban, Yildirim 2022, eq. 27). The last iterate is returned.

    mu is the strong convexity of the penalty, in the coefficients, or what is declared of the
    objective; problems with neither are refused. An intercept is not penalised. It takes the same
    steps, but the theory is for ``fit_intercept=False`` or a mu that was declared.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps. "auto" minimises the error bound (eq. 32) of a full-batch run, up to 1000;
        see `skdp.planning.nesterov_bounds`.
    noise_schedule : str, NoiseSchedule, array of shape (max_iter,) or "auto", default="auto"
        "auto" is "optimal", which minimises the error bound (Prop. 4.2; numerically on samples with
        delta = 0), with at most 100 times the noise of the least noisy step; "uniform" is DP-NAG.
    {Parameters}

    References
    ----------
    {References}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(
    ...     classes=[0, 1], solver="nesterov", C=0.1, epsilon=1.0, delta=0
    ... )
    >>> model.fit(X, y).solver_.mechanism
    'laplace'
    """

    name = "nesterov"
    purpose = "Reference implementation of DP-NAG (Kuru et al. 2022); 'gd' was mostly better."

    def _bounds(self, facts: BoundArguments, n_steps: int = MAX_STEPS) -> Array:
        schedule = self._bounded_schedule()
        pace = self._pace(facts["smoothness"])
        return nesterov_bounds(n_steps, **facts, step=pace, noise_schedule=schedule)

    def _schedule(self, curvature: float, problem: Problem) -> steps.NoiseSchedule:
        return steps.NesterovNoise(self._kappa(curvature, problem), self._pace(curvature))


class MultistageNesterov(Accelerated):
    """Nesterov's method in stages, with optimal noise (DP-MASG, DP-MASG-opt).

    The steps are those of solver "nesterov". The first stage has ``first_stage`` steps of
    ``learning_rate``; stage k >= 2 has ``2**k ceil(sqrt(kappa) log(2**(p+2)))`` steps of
    ``learning_rate / 4**k``, with ``kappa = L / mu``. Each stage has its own momentum and starts at
    the last iterate of the stage before (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, sec. 4.2).

    mu is the strong convexity of the penalty, in the coefficients; see `Nesterov` on intercepts.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps; "auto" minimises the error bound (eq. 34), up to 1000.
    first_stage : int, "published" or "auto", default="auto"
        Steps of the first stage; "auto" minimises the error bound. "published" is the rule of the
        code that goes with the paper, ``ceil(2 sqrt(kappa) log(sqrt(kappa)))``.
    p : float, default=1.0
        Length of the later stages; at least 0.
    noise_schedule : str, NoiseSchedule, array of shape (max_iter,) or "auto", default="auto"
        "auto" is "optimal", which minimises the error bound, with at most 100 times the noise of
        the least noisy step; "uniform" is DP-MASG.
    {Parameters}

    References
    ----------
    {References}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPRidge(alpha=50, solver="multistage_nesterov", epsilon=3.0)
    >>> model.fit(X, y).n_iter_ >= 1
    True
    """

    first_stage: Resolved[int]
    name = "multistage_nesterov"
    purpose = "Reference implementation of DP-MASG (Kuru et al. 2022); 'gd' was mostly better."

    def __init__(
        self,
        *,
        max_iter: int | Auto = "auto",
        learning_rate: base.StepSize = "auto",
        first_stage: int | Literal["auto", "published"] = "auto",
        p: float = 1.0,
        noise_schedule: base.RelativeNoise = "auto",
        mechanism: str = "auto",
        clip_norm: base.ClipNorm = "auto",
        curvature: float | str = "auto",
        strong_convexity: float | str = "auto",
        curvature_share: float = 0.05,
        initial_gap: float | str = "auto",
        batch_size: int | float | None = None,
        sampling: str = "poisson",
    ) -> None:
        super().__init__(
            max_iter=max_iter, learning_rate=learning_rate, noise_schedule=noise_schedule,
            mechanism=mechanism, clip_norm=clip_norm, curvature=curvature,
            strong_convexity=strong_convexity, curvature_share=curvature_share,
            initial_gap=initial_gap, batch_size=batch_size, sampling=sampling,
        )  # fmt: skip
        self.first_stage = first_stage
        self.p = p

    def check_values(self, public: Public, problem: Problem) -> None:
        super().check_values(public, problem)
        if not (checks.is_auto(self.first_stage) or checks.is_word(self.first_stage, "published")):
            checks.count(first_stage=self.first_stage)
        holds = is_real(self.p) and 0 <= self.p < math.inf
        require("p", self.p, "be a number, at least 0", holds)

    def _choose_steps(self, curvature: float, public: Public, problem: Problem) -> None:
        if checks.is_word(self.first_stage, "published"):
            root = math.sqrt(self._kappa(curvature, problem))
            self.first_stage = max(1, math.ceil(2 * root * math.log(root)))
        if checks.is_auto(self.first_stage):
            n_steps = None if checks.is_auto(self.max_iter) else self.max_iter
            if n_steps is not None:
                checks.count(max_iter=n_steps)
            # The candidates are the same whether or not the number of steps is given.
            most = max(MAX_STEPS, n_steps or 1)
            facts, least = self._facts(curvature, public, problem), math.inf
            for first in np.unique(np.geomspace(1, most, 25).round().astype(int)):
                self.first_stage = int(first)
                bounds = self._bounds(facts, most)
                reached = float(bounds.min() if n_steps is None else bounds[n_steps - 1])
                if reached < least:
                    least, best = reached, self.first_stage
            self.first_stage = best
        super()._choose_steps(curvature, public, problem)

    def _bounds(self, facts: BoundArguments, n_steps: int = MAX_STEPS) -> Array:
        return multistage_bounds(
            n_steps,
            **facts,
            step=self._pace(facts["smoothness"]),
            first_stage=self.first_stage,
            p=self.p,
            noise_schedule=self._bounded_schedule(),
        )

    def _schedule(self, curvature: float, problem: Problem) -> steps.NoiseSchedule:
        kappa = self._kappa(curvature, problem)
        return steps.MultistageNoise(kappa, self._pace(curvature), self.first_stage, self.p)

    def _sizes(self, curvature: float, problem: Problem) -> Array:
        stages = self._kappa(curvature, problem), self._pace(curvature), self.first_stage, self.p
        return multistage_sizes(self.max_iter, curvature, *stages)
