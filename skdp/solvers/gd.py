"""Gradient descent on noisy, clipped mean gradients: proximal, projected, with momentum."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skdp._numbers import shown
from skdp.objective import Problem
from skdp.oracle import GaussianNoise, LastIterate, Oracle, Public, Solution
from skdp.solvers.base import Solver
from skdp.solvers.batches import SAMPLINGS, batch_rows, samplers
from skdp.solvers.bound_rules import bound_rules
from skdp.solvers.checks import check_choice, check_interval, given_steps, is_auto
from skdp.solvers.clip_tracker import ClipTracker, adaptive_clip, check_clip
from skdp.solvers.defaults import descent_defaults, hidden_descent_defaults
from skdp.solvers.laplace_defaults import composition_kind, laplace_descent_defaults
from skdp.steps import (
    AVERAGES,
    MOMENTA,
    ClippingRule,
    IterateAverage,
    NoiseSchedule,
    StepSchedule,
    clip_norms,
    relative_noise,
    step_sizes,
)

RELEASES = ("all", "last")


class GradientDescent(Solver):
    """Clipped, noisy, proximal gradient descent with momentum, on all rows or on batches.

    Step t asks for the mean gradient at the current point, each record's part clipped, and goes
    ``w = prox(w - eta_t * direction)``. With the uniform noise schedule and without momentum this
    is DP-GD of Wang, Ye, Xu (2017, Alg. 4); with a schedule and averaged momentum it is private
    gradient descent of Hong, Wang, Zhou (2022, Alg. 1).

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps, at least 1.
    learning_rate : float, StepSchedule or "auto", default="auto"
        Step size.
    momentum : float or "auto", default="auto"
        In [0, 1); 0 is none.
    batch_size : int, float or None, default=None
        Expected rows in a batch, as a number or a fraction. None takes all rows at every step.
    sampling : {"poisson", "fixed_size", "shuffled", "balls_and_bins"}, default="poisson"
        How batches are drawn. "poisson": every row on its own, the least noise for most plans.
        "fixed_size": without replacement, under replace_one only. "shuffled": epochs of disjoint
        blocks. "balls_and_bins": epochs of disjoint blocks that every row picks in secret; the
        amplification needs the extra ``skdp[amplification]``.
    noise_schedule : str, NoiseSchedule, array of shape (max_iter,) or "auto", default="auto"
        How noisy the steps are next to each other.
    clip_norm : float, ClippingRule, "adaptive" or "auto", default="auto"
        L2 bound of one record's gradient. "adaptive" is `AdaptiveClipping`: a norm that follows
        noisy counts.
    momentum_kind : {"heavy_ball", "averaged"}, default="heavy_ball"
        Polyak's heavy ball, or the bias-corrected average of gradients; both with unit gain.
    averaging : {"last", "tail", "random"} or "auto", default="auto"
        Which iterate is returned; "tail" is the mean of the last half, "random" a uniformly random
        one, whose expected squared gradient is what theory bounds where the problem is not convex
        (Wang, Ye, Xu 2017, Thm 6.3).
    release : {"all", "last"}, default="all"
        What is charged for: every noisy gradient, as if all of them were shown, or the last
        iterate alone, the others staying hidden. See the notes.
    condition_number, initial_gap : float or None, default=None
        Public guesses, both or neither, of kappa (M/mu, mu being the strong convexity or the
        constant of Polyak and Lojasiewicz) and of how far the objective is above its minimum at the
        start. With them "auto" stands for what the utility bounds say: a ``max_iter`` that makes
        the bound for the ``noise_schedule`` least, steps of 1/M, exponential noise, no momentum,
        and the last iterate. See the notes.
    mechanism : {"auto", "gaussian", "laplace"}, default="auto"
        Law of the noise; "auto" is Laplace if delta is 0, else Gaussian. With Laplace noise
        ``clip_norm`` bounds gradients in L1 norm.

    Notes
    -----
    ``condition_number`` and ``initial_gap`` with ``noise_schedule="uniform"`` give DP-GD under the
    condition of Polyak and Lojasiewicz (Wang, Ye, Xu 2017, Thm 6.2), and with momentum and
    ``momentum_kind="averaged"`` private gradient descent with momentum (Hong, Wang, Zhou 2022, Thm
    4.8). The bounds assume that clipping is not in the way; with batches, hidden iterates, averages
    of iterates or the heavy ball there is none, which is refused.

    With ``release="last"`` the noise that a budget takes stops growing with the number of steps
    (Bok, Su, Altschuler 2024): for a penalty of strength lambda, per mean loss, at about
    ``2 / (learning_rate * lambda)`` steps. Below that it is of no use. The theorem is one of plain
    steps: no batches, no momentum, no averaging, one step size, clipping norm and noise
    throughout; no weights; one output; ``fit_intercept=False``; an L2 penalty (or any strongly
    convex one, or a bounded constraint); and ``learning_rate <= 2 / (curvature * R**2)`` with R the
    bound on rows and curvature 1 for squared error, 1/4 for logistic loss. All of it is checked,
    and what does not fit is refused.

    With an L2 penalty the proximal step is an implicit gradient step on the penalty, which shares
    its fixed points with the explicit one and is stable for any strength.

    References
    ----------
    D. Wang, M. Ye, J. Xu: Differentially Private Empirical Risk Minimization Revisited: Faster and
    More General. NeurIPS 2017.
    J. Hong, Z. Wang, J. Zhou: Dynamic Privacy Budget Allocation Improves Data Efficiency of
    Differentially Private Gradient Descent. FAccT 2022.
    J. Bok, W. Su, J. Altschuler: Shifted Interpolation for Differential Privacy. ICML 2024.

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

    name: ClassVar[str] = "gd"
    mechanisms = ("gaussian", "laplace")

    def __init__(
        self,
        *,
        max_iter: Any = "auto",
        learning_rate: float | StepSchedule | str = "auto",
        momentum: Any = "auto",
        batch_size: int | float | None = None,
        sampling: str = "poisson",
        noise_schedule: str | NoiseSchedule | Any = "auto",
        clip_norm: float | ClippingRule | str = "auto",
        momentum_kind: str = "heavy_ball",
        averaging: str = "auto",
        release: str = "all",
        condition_number: float | None = None,
        initial_gap: float | None = None,
        mechanism: str = "auto",
    ) -> None:
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.batch_size = batch_size
        self.sampling = sampling
        self.noise_schedule = noise_schedule
        self.clip_norm = clip_norm
        self.momentum_kind = momentum_kind
        self.averaging = averaging
        self.release = release
        self.condition_number = condition_number
        self.initial_gap = initial_gap
        self.mechanism = mechanism

    def mechanism_for(self, pure: bool) -> str:
        hidden = self.release == "last" and self.mechanism == "auto"
        return "gaussian" if hidden else super().mechanism_for(pure)

    def automatic(self, public: Public, problem: Problem) -> dict[str, Any]:
        max_iter, size = given_steps(self.max_iter, self.learning_rate)
        mechanism = self.mechanism_for(public.is_pure)
        defaults = laplace_descent_defaults if mechanism == "laplace" else descent_defaults
        if self.release == "last":
            defaults = hidden_descent_defaults
        values = {**defaults(public, problem, max_iter, size), "mechanism": mechanism}
        if (self.condition_number is None) != (self.initial_gap is None):
            raise ValueError("solver 'gd' takes condition_number and initial_gap together or not.")
        if mechanism == "laplace" and self.condition_number is not None:
            raise ValueError(
                "solver 'gd' with condition_number follows bounds for Gaussian noise; got "
                "mechanism='laplace', which delta=0 asks for. Solver 'nesterov' has such a bound."
            )
        values |= bound_rules(self, public, problem, values)
        chosen = {name: value for name, value in values.items() if is_auto(getattr(self, name))}
        return chosen | adaptive_clip(self.clip_norm, values["clip_norm"], mechanism)

    def resolve(self, public: Public, problem: Problem) -> GradientDescent:
        resolved = super().resolve(public, problem)
        check_interval("momentum", resolved.momentum, low=0.0, below=1.0)
        check_choice("momentum_kind", resolved.momentum_kind, MOMENTA)
        check_choice("averaging", resolved.averaging, AVERAGES)
        check_choice("sampling", resolved.sampling, SAMPLINGS)
        check_choice("release", resolved.release, RELEASES)
        check_choice("mechanism", resolved.mechanism, self.mechanisms)
        if resolved.batch_size is not None:
            batch_rows(resolved.batch_size, public.n_rows)
        step_sizes(resolved.learning_rate, resolved.max_iter)
        check_clip(resolved.clip_norm, resolved.max_iter)
        relative_noise(resolved.noise_schedule, resolved.max_iter)
        if resolved.release == "last":
            resolved._require_plain_steps()
        return resolved

    def _require_plain_steps(self) -> None:
        """Raise ValueError unless a hidden run could make these steps."""
        n_steps = self.max_iter
        sizes = step_sizes(self.learning_rate, n_steps)
        noises = relative_noise(self.noise_schedule, n_steps, sizes=sizes)
        plain = {
            "momentum": self.momentum == 0,
            "averaging": self.averaging == "last",
            "batch_size": self.batch_size is None,
            "learning_rate": _is_constant(sizes),
            "clip_norm": _is_constant(clip_norms(self.clip_norm, n_steps)),
            "mechanism": self.mechanism == "gaussian",
            "noise_schedule": _is_constant(noises),
        }
        for name, holds in plain.items():
            if not holds:
                raise ValueError(
                    "solver 'gd' with release='last' takes plain steps: momentum 0, averaging "
                    "'last', batch_size None, Gaussian noise, and the same learning_rate, "
                    "clip_norm and noise "
                    f"throughout; got {name}={shown(getattr(self, name))}. Nothing was released."
                )

    def solve(self, oracle: Oracle) -> Solution:
        n_steps = self.max_iter
        if self.release == "last":
            return Solution(oracle.ask(self._hidden_run()), n_steps)
        sizes = step_sizes(self.learning_rate, n_steps)
        law = composition_kind(self.mechanism, oracle.public)
        noises = relative_noise(self.noise_schedule, n_steps, law, sizes)
        clips = ClipTracker(self.clip_norm, noises, oracle.public)
        momentum = MOMENTA[self.momentum_kind](self.momentum)
        average = IterateAverage(self.averaging, n_steps, oracle.rng)
        point = oracle.start()
        batches = samplers(self.batch_size, self.sampling, oracle.public)
        for size, noise, batch in zip(sizes, clips.noises, batches, strict=False):
            clip_norm = clips.next(oracle, point, batch)
            gradient = oracle.gradient(point, clip_norm, noise, batch, self.mechanism)
            point = oracle.problem.prox(point - size * momentum.direction(gradient), size)
            average.add(point)
        return Solution(average.result(), n_steps)

    def _hidden_run(self) -> LastIterate:
        n_steps = self.max_iter
        sizes = step_sizes(self.learning_rate, n_steps)
        clips = clip_norms(self.clip_norm, n_steps)
        noises = relative_noise(self.noise_schedule, n_steps, sizes=sizes)
        return LastIterate(n_steps, sizes[0], clips[0], GaussianNoise(noises[0]))


def _is_constant(values: NDArray[np.float64]) -> bool:
    return bool((values == values[0]).all())
