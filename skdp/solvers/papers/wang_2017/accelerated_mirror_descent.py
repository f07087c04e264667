"""Run accelerated mirror descent on a bounded set (DP-AccMD), for more columns than rows."""

import math

import numpy as np

from skdp._numbers import Array, is_real
from skdp.objective import L1Ball, Simplex
from skdp.solvers import base, checks
from skdp.solvers.base import Auto, Oracle, Problem, Public, Settings, Solution, Solver
from skdp.solvers.defaults import count_within, descent_defaults
from skdp.steps import clip_norms, relative_noise
from skdp.steps.mirror_maps import MirrorMap, mirror_map

# Fewest and most steps.
STEPS = (30, 150)
# Factors on the clipping norm of gradient descent, on the loss's curvature, and on the curvature
# that the bound calls for because of noise: the bounds are cautious. They were chosen on synthetic
# rows of 10 to 10,000 columns.
CLIP_FACTOR, CURVATURE_FACTOR, NOISE_FACTOR = 1.5, 0.3, 0.3
# Steps on an L2 ball or in a box, over the number up to which the bound falls: in this geometry a
# strongly convex objective is close to its minimum long before, and more steps have more noise.
# Chosen on the first data of `benchmarks.papers.next_to_gd`. On an L1 ball so few steps leave most
# of the way (error 0.36 in place of 0.02 in the experiment of `benchmarks.papers.w17`).
STEPS_FACTOR = 0.3
# Expected curvature along the steepest direction of standardised columns, over the root of their
# number; their number is the most that is possible. A guess.
STEEPEST = 2.5


class AcceleratedMirrorDescent(Solver):
    """Accelerated mirror descent on a ball or simplex, for more columns than rows (DP-AccMD).

    In the geometry of an L1 ball or a simplex, Gaussian noise on d coordinates has a norm of about
    ``sqrt(log d)`` and not ``sqrt(d)``. With ``alpha = (k + 2) / (4 L)`` and ``r = 2 / (k + 2)``,
    step k = 0, 1, ... takes the noisy gradient g at ``x = r z + (1 - r) y`` and moves to

        z = argmin over the set of  B(z', z) + alpha <g, z'>,       y = r z + (1 - r) y,

    where B is the Bregman divergence of a map that is 1-strongly convex in the set's own norm: half
    the squared norm on an L2 ball or a box, the p-norm with ``p = 1 + 1/ln d`` on an L1 ball,
    entropy on a simplex. It returns y (Wang, Ye, Xu 2017, Alg. 3).

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps, at least 1.
    curvature : float or "auto", default="auto"
        L, the largest curvature of the mean loss in the set's own norm, from which step sizes
        follow: ``(k + 2) / (4 L)``. "auto" assumes columns of unit size (rows of ``data_norm``, if
        that is less), and is larger where noise calls for shorter steps.
    noise_schedule : str, NoiseSchedule, array of shape (max_iter,) or "auto", default="auto"
        Noise of the steps relative to each other. "auto" matches it to alpha, which minimises the
        noise term ``sum alpha_k**2 sigma_k**2`` of the bound.
    clip_norm : float, str, tuple (str, dict), ClippingRule or "auto", default="auto"
        L2 bound of one record's gradient; a rule by name, too: "geometric".

    Notes
    -----
    The printed algorithm computes y from the gradient without noise and returns it, which is not
    private. The point used here is the one with which the proof of Theorem 5.4 compares, so the
    bound holds.

    The problem needs a bounded constraint, such as ``constraint="l1_ball"``, and a smooth penalty.
    The intercept, which is neither constrained nor penalised, is a separate Euclidean block, in a
    unit such that it moves the predictions as much as the set does.

    References
    ----------
    D. Wang, M. Ye, J. Xu: Differentially Private Empirical Risk Minimization Revisited: Faster and
    More General. NeurIPS 2017.
    Z. Allen-Zhu, L. Orecchia: Linear Coupling. ITCS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLinearRegression
    >>> X = np.random.default_rng(0).standard_normal((500, 30))
    >>> model = DPLinearRegression(
    ...     solver="accelerated_mirror_descent", constraint="l1_ball", radius=1.0
    ... )
    >>> bool(abs(model.fit(X, X[:, 3]).coef_).sum() <= 1.0 + 1e-9)
    True
    """

    name = "accelerated_mirror_descent"
    purpose = "Reference implementation of DP-AccMD (Wang, Ye, Xu 2017); 'gd' was mostly better."
    needs = frozenset({"bounded_set", "smooth_penalty"})

    def __init__(
        self,
        *,
        max_iter: int | Auto = "auto",
        curvature: float | Auto = "auto",
        noise_schedule: base.RelativeNoise = "auto",
        clip_norm: base.ClipNorm = "auto",
    ) -> None:
        self.max_iter = max_iter
        self.curvature = curvature
        self.noise_schedule = noise_schedule
        self.clip_norm = clip_norm

    def automatic(self, public: Public, problem: Problem) -> Settings:
        """Return values that minimise the bound of Wang, Ye, Xu (2017, (76)).

        With noise of standard deviation ``sigma = C sqrt(T) / (mu n)`` on each coordinate of a mean
        gradient, W the mean dual norm of a Gaussian vector, and B the divergence bound of the map,

            excess <= 8 L B / T**2 + T sigma**2 W**2 / (6 L),

        where 1/6 follows from the sum of squared alphas. For a given T the best L is
        ``T**2 C W / (mu n sqrt(48 B))``, if that exceeds the curvature of the loss; more steps are
        worth their time up to the T where the two agree.
        """
        size = _n_coefficients(public)
        mirror = mirror_map(problem.constraint, size)
        width = max(mirror.width(size), mirror.unit_norm)
        # 1. The clipping norm of gradient descent, and more: noise has less effect here.
        if is_real(self.clip_norm):
            clip_norm = float(self.clip_norm)
        else:
            clip_norm = descent_defaults(public, problem)["clip_norm"]
            if public.is_noisy:
                clip_norm *= CLIP_FACTOR
                if problem.loss.residual_bound is not None and public.row_norm is not None:
                    clip_norm = min(clip_norm, problem.loss.residual_bound * public.row_norm)
        # 2. The curvature of the loss; the intercept may double a margin.
        own = problem.loss.curvature * mirror.unit_norm**2 * _mean_square(public, problem)
        own *= 2.0 if public.has_intercept else 1.0
        own = CURVATURE_FACTOR * own + problem.strong_convexity * mirror.unit_norm**2
        # 3. Steps, and the curvature that fits the noise.
        rate = 0.0
        if public.is_noisy:
            noise = public.gradient_mu * public.n_rows * math.sqrt(48 * mirror.divergence_bound)
            rate = NOISE_FACTOR * clip_norm * width / noise
        max_iter = self.max_iter
        if checks.is_auto(max_iter):
            wanted = math.sqrt(own / rate) if rate > 0 else math.inf
            if not isinstance(problem.constraint, L1Ball | Simplex):
                wanted *= STEPS_FACTOR
            max_iter = count_within(wanted, STEPS)
        checks.count(max_iter=max_iter)
        return {
            "max_iter": max_iter,
            "curvature": max(own, rate * max_iter**2),
            "noise_schedule": "step_matched",
            "clip_norm": clip_norm,
        }

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.positive(curvature=self.curvature)
        clip_norms(self.clip_norm, self.max_iter)
        self._noises()

    def _alphas(self) -> Array:
        sizes = (np.arange(self.max_iter) + 2.0) / (4.0 * float(self.curvature))
        return np.asarray(sizes, dtype=np.float64)

    def _noises(self) -> Array:
        return relative_noise(self.noise_schedule, self.max_iter, sizes=self._alphas())

    def solve(self, oracle: Oracle) -> Solution:
        public, problem, n_steps = oracle.public, oracle.problem, self.max_iter
        clips = clip_norms(self.clip_norm, n_steps)
        mirror = mirror_map(problem.constraint, _n_coefficients(public))
        unit = _intercept_unit(public, problem, mirror)
        z = oracle.start()
        first = mirror.start(_n_coefficients(public))
        if public.start is not None:
            first = mirror.interior(z[: public.n_features].ravel())
        z[: public.n_features] = first.reshape(-1, public.n_outputs)
        y = z
        steps = zip(self._alphas(), clips, self._noises(), strict=True)
        for k, (alpha, clip_norm, noise) in enumerate(steps):
            r = 2.0 / (k + 2.0)
            # 1. The noisy gradient between the two sequences; that of the penalty is public.
            x = r * z + (1 - r) * y
            gradient = oracle.gradient(x, clip_norm, noise) + problem.penalty_gradient(x)
            # 2. The mirror step, by the noisy gradient.
            z = _mirror_step(mirror, unit, z, alpha * gradient, public)
            # 3. The step of y, which depends on no other gradient.
            y = r * z + (1 - r) * y
        return Solution(y, n_steps)


def _mirror_step(mirror: MirrorMap, unit: float, z: Array, slope: Array, public: Public) -> Array:
    """Return z after a mirror step of the coefficients and a plain step of the intercept."""
    n_features = public.n_features
    moved = z - unit**2 * slope
    coefficients = mirror.step(z[:n_features].ravel(), slope[:n_features].ravel())
    moved[:n_features] = coefficients.reshape(n_features, -1)
    return moved


def _n_coefficients(public: Public) -> int:
    return public.n_features * public.n_outputs


def _mean_square(public: Public, problem: Problem) -> float:
    """Return the largest mean square of a margin at coefficients of norm 1, over ``unit_norm**2``.

    Columns are assumed to have unit size, or rows the declared norm. On an L1 ball or a simplex the
    maximum is at a vertex, a single column; on other sets columns are taken to be somewhat alike.
    """
    longest = float(public.n_features)
    if public.data_norm is not None:
        longest = min(longest, public.data_norm**2)
    if isinstance(problem.constraint, L1Ball | Simplex):
        return min(1.0, longest)
    return min(longest, STEEPEST * math.sqrt(public.n_features))


def _intercept_unit(public: Public, problem: Problem, mirror: MirrorMap) -> float:
    """Return the unit of the intercept: it moves margins as far as coefficients of norm 1.

    At most ``unit_norm``: the intercept's noise does not outweigh that of coefficients.
    """
    ratio = math.sqrt(_mean_square(public, problem)) / public.intercept_size
    return mirror.unit_norm * min(1.0, ratio)
