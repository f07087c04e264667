"""Wang, Ye, Xu (NeurIPS 2017): variance reduction and accelerated mirror descent.

For smooth losses the paper proves that DP-SVRG (strongly convex, Thm 4.2) and DP-SVRG++ (convex,
Thm 4.4) reach the excess of noisy gradient descent, up to logarithms, with far fewer gradients, and
that accelerated mirror descent on a bounded set pays for the set's Gaussian width in place of the
number of columns (Thm 5.4). For losses that are not convex it bounds the gradient at a random
iterate (Thm 6.3).

"svrg" is Algorithm 1, "svrg++" Algorithm 2, "accelerated_mirror_descent" Algorithm 3 (DP-AccMD) and
"gd" with uniform noise and no momentum Algorithm 4 (DP-GD). By default the first two make 60 to
1000 steps on batches of a tenth of the rows, the third 30 to 150 on all rows.

Worth using: "svrg" and "svrg++" only for comparisons. After few passes they are ahead of "gd", but
behind the default solver with ``max_iter=4``. "accelerated_mirror_descent" only on an L1 ball or a
simplex with more columns than rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq

from skdp._numbers import LARGEST_CLIP_NORM, Array, is_real
from skdp.objective import Constraint, L1Ball, Simplex
from skdp.solvers import base, checks, defaults, descent
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution, Solver
from skdp.solvers.defaults import count_within, descent_defaults
from skdp.steps import IterateAverage, constant_clip, constant_size

# ------------------------------------------------------------------ mirror maps

# Least weight on a simplex, next to the sum of weights. Steps multiply the weights, so a weight
# that underflows to 0 would stay there.
LEAST_WEIGHT = 1e-300


class MirrorMap(ABC):
    """A function w on a set that is 1-strongly convex in the set's own norm.

    That norm is the Minkowski norm of the set, ``|v| = min{r >= 0: v in r C}``. Write ``B(z', z)``
    for the Bregman divergence of w. Vectors are flat.

    Attributes
    ----------
    unit_norm : float
        Largest L2 norm of a vector of norm 1: a function that is L-smooth in the L2 norm is
        ``L * unit_norm**2``-smooth in this one (Wang, Ye, Xu 2017, Lemma 5.1, with the radius of a
        symmetric set in place of its diameter).
    divergence_bound : float
        Bound on ``B(z, start)`` over the set.
    """

    unit_norm: float
    divergence_bound: float

    @abstractmethod
    def start(self, size: int) -> Array:
        """Return the minimiser of w over the set."""

    def interior(self, z: Array) -> Array:
        """Return the point of the set itself, or one near it from which steps can lead anywhere."""
        return z

    @abstractmethod
    def step(self, z: Array, slope: Array) -> Array:
        """Return the minimiser over z' in the set of ``B(z', z) + <slope, z'>``."""

    @abstractmethod
    def width(self, size: int) -> float:
        """Return a bound on the expected dual norm of a standard Gaussian vector."""


class PNorm(MirrorMap):
    """``kappa / 2 |v|_q**2`` on an L1 ball, with ``q = 1 + 1 / max(ln d, 1)``.

    ``|.|_q**2 / 2`` is (q - 1)-strongly convex in the q-norm (Ball, Carlen, Lieb 1994), which is at
    least ``d**(1/q - 1)`` times the 1-norm. So with ``kappa = d**(2 - 2/q) / ((q - 1) radius**2)``,
    at most ``e**2 max(ln d, 1) / radius**2``, the map is 1-strongly convex in ``|v|_1 / radius``.

    The step has no closed form, but a single unknown: with ``theta = grad w(z) - slope``, the
    optimality conditions say that ``grad w(z')`` is theta after a soft threshold at some level
    >= 0. The level is 0 if that z' lies in the ball, and otherwise such that ``|z'|_1 = radius``.
    The norm falls as the level rises, so the level follows by bracketing.

    Parameters
    ----------
    radius : float
    size : int
        Number of coordinates, d.
    """

    def __init__(self, radius: float, size: int) -> None:
        self._radius = radius
        self._q = 1.0 + 1.0 / max(math.log(size), 1.0)
        self._p = self._q / (self._q - 1.0)  # the dual exponent
        self._kappa = size ** (2 - 2 / self._q) / ((self._q - 1) * radius**2)
        self.unit_norm = radius
        self.divergence_bound = 0.5 * self._kappa * radius**2

    def start(self, size: int) -> Array:
        return np.zeros(size)

    def step(self, z: Array, slope: Array) -> Array:
        theta = self._gradient(z) - slope
        largest = float(np.abs(theta).max(initial=0.0))
        if largest == 0:
            return np.zeros_like(theta)

        def length(level: float) -> float:
            return float(np.abs(self._inverse(_shrunk(theta, level))).sum())

        level = 0.0
        if length(0.0) > self._radius:
            level = float(
                brentq(lambda at: length(at) - self._radius, 0.0, largest, xtol=1e-15 * largest)
            )
        moved = self._inverse(_shrunk(theta, level))
        if level == 0:
            return moved
        # The solution lies on the sphere. Rounding may move it off, for steep slopes as far as 0.
        norm = float(np.abs(moved).sum())
        if not norm > 0:
            moved = np.where(np.abs(theta) == largest, np.sign(theta), 0.0)
            norm = float(np.abs(moved).sum())
        moved /= norm
        return np.asarray(self._radius * moved)

    def _gradient(self, v: Array) -> Array:
        return np.asarray(self._kappa * _power(v, self._q))

    def _inverse(self, theta: Array) -> Array:
        return np.asarray(_power(theta, self._p) / self._kappa)

    def width(self, size: int) -> float:
        return self._radius * math.sqrt(2 * math.log(2 * size))


class Entropy(MirrorMap):
    """``sum_i u_i ln u_i`` with ``u = v / total``, on a simplex, where steps multiply the weights.

    The map is 1-strongly convex in ``|v|_1 / total`` (Pinsker's inequality).

    Parameters
    ----------
    total : float
    size : int
        Number of coordinates.
    """

    def __init__(self, total: float, size: int) -> None:
        self._total = total
        self.unit_norm = total
        self.divergence_bound = math.log(max(size, 2))

    def start(self, size: int) -> Array:
        return np.full(size, self._total / size)

    def interior(self, z: Array) -> Array:
        # A hundredth of the way to the centre: steps multiply weights, so those of 0 would stay.
        return (1 - 0.01) * z + 0.01 * self.start(len(z))

    def step(self, z: Array, slope: Array) -> Array:
        with np.errstate(divide="ignore", over="ignore"):
            logs = np.log(z / self._total) - self._total * slope
            weights = np.maximum(np.exp(logs - logs.max()), LEAST_WEIGHT)
        return np.asarray(self._total * weights / weights.sum())

    def width(self, size: int) -> float:
        return self._total * math.sqrt(2 * math.log(2 * size))


def mirror_map(constraint: Constraint, size: int) -> MirrorMap:
    """Return the mirror map for ``size`` coefficients on an L1 ball or a simplex."""
    if isinstance(constraint, L1Ball):
        return PNorm(constraint.radius, size)
    assert isinstance(constraint, Simplex)
    return Entropy(constraint.total, size)


def _power(v: Array, exponent: float) -> Array:
    """Gradient of ``|v|**2 / 2``, where ``|.|`` is the p-norm of this exponent."""
    sizes = np.abs(v)
    largest = float(sizes.max(initial=0.0))
    if largest == 0:
        return np.zeros_like(v)
    sizes /= largest  # powers and their sum neither overflow nor vanish
    norm = float(np.sum(sizes**exponent)) ** (1 / exponent)
    return np.asarray(np.copysign(largest * norm * (sizes / norm) ** (exponent - 1), v))


def _shrunk(v: Array, level: float) -> Array:
    return np.asarray(v - np.clip(v, -level, level))


# ------------------------------------------------------------------ accelerated mirror descent

# Factors on the clipping norm of gradient descent, on the loss's curvature, and on the curvature
# that the bound calls for because of noise: the bounds are cautious. They were chosen on synthetic
# rows of 10 to 10,000 columns.
CLIP_FACTOR, CURVATURE_FACTOR, NOISE_FACTOR = 1.5, 0.3, 0.3


@base.hyperparameters
class AcceleratedMirrorDescent(descent.GradientSolver):
    """Accelerated mirror descent on an L1 ball or a simplex, for more columns than rows (DP-AccMD).

    In the geometry of an L1 ball or a simplex, Gaussian noise on d coordinates has a norm of about
    ``sqrt(log d)`` and not ``sqrt(d)``. With ``alpha = (k + 2) / (4 L)`` and ``r = 2 / (k + 2)``,
    step k = 0, 1, ... requests the noisy gradient g at ``x = r z + (1 - r) y`` and moves to

        z = argmin over the set of  B(z', z) + alpha <g, z'>,       y = r z + (1 - r) y,

    where B is the Bregman divergence of a map that is 1-strongly convex in the set's own norm: the
    p-norm with ``p = 1 + 1/ln d`` on an L1 ball, entropy on a simplex. It returns y (Wang, Ye, Xu
    2017, Alg. 3).

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps, at least 1.
    curvature : float or "auto", default="auto"
        L, the largest curvature of the mean loss in the set's own norm, from which step sizes
        follow: ``(k + 2) / (4 L)``. "auto" assumes columns of unit size (rows of the length that
        a `RowNorm` declares, if that is less), and is larger where noise calls for shorter steps.
    noise_schedule : str, tuple (str, dict), array of shape (max_iter,) or "auto", default="auto"
        Noise of the steps relative to each other. "auto" matches it to alpha, which minimises the
        noise term ``sum alpha_k**2 sigma_k**2`` of the bound.
    clip_norm : float or "auto", default="auto"
        L2 bound of one record's gradient.

    Notes
    -----
    The printed algorithm computes y from the gradient without noise and returns it, which is not
    private. The point used here is the one with which the proof of Theorem 5.4 compares, so the
    bound holds.

    The problem needs ``constraint="l1_ball"`` or ``"simplex"``, and a smooth penalty. On an L2 ball
    or in a box, "gd" makes projected steps.
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
    >>> from skdp.objective import L1Ball
    >>> X = np.random.default_rng(0).standard_normal((500, 30))
    >>> model = DPLinearRegression(solver="accelerated_mirror_descent", constraint=L1Ball(1.0))
    >>> bool(abs(model.fit(X, X[:, 3]).coef_).sum() <= 1.0 + 1e-9)
    True
    """

    name = "accelerated_mirror_descent"
    paper = "Wang, Ye, Xu (2017)"
    algorithms = (("DP-AccMD", {}),)
    purpose = "For L1 balls and simplexes. Solver 'gd' was mostly better."
    needs = frozenset({"vertices", "smooth_penalty"})

    max_iter: Resolved[int] = AUTO
    curvature: Resolved[float] = AUTO
    noise_schedule: base.RelativeNoise = "auto"
    clip_norm: Resolved[float] = AUTO

    def automatic(self, public: Public, problem: Problem) -> Settings:
        """Return values that minimise the bound of Wang, Ye, Xu (2017, (76)).

        With noise of standard deviation ``sigma = C sqrt(T) / (mu n)`` on each coordinate of a mean
        gradient, W the mean dual norm of a Gaussian vector, and B the divergence bound of the map,

            excess <= 8 L B / T**2 + T sigma**2 W**2 / (6 L),

        where 1/6 follows from the sum of squared alphas. For a given T the best L is ``T**2 C W /
        (mu n sqrt(48 B))``, if that exceeds the curvature of the loss. More steps are worth their
        time up to the T where the two agree.
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
        # 2. The curvature of the loss. The intercept may double a margin.
        own = problem.loss.curvature * mirror.unit_norm**2 * _mean_square(public)
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
            max_iter = count_within(wanted, (30, 150))
        checks.count(max_iter=max_iter)
        return {
            "max_iter": max_iter,
            "curvature": max(own, rate * max_iter**2),
            "noise_schedule": "step_matched",
            "clip_norm": clip_norm,
        }

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.positive(curvature=self.curvature)
        super().check_values(public, problem)

    def _sizes(self) -> Array:
        sizes = (np.arange(self.max_iter) + 2.0) / (4.0 * float(self.curvature))
        return np.asarray(sizes, dtype=np.float64)

    def solve(self, oracle: Oracle) -> Solution:
        run = descent.schedule(self._sizes(), self.clip_norm, self._noises())
        return Solution(descent.descend(oracle, MirrorPath(oracle), run), self.max_iter)


class MirrorPath(descent.SmoothPath):
    """The coupled sequences of `AcceleratedMirrorDescent`."""

    def __init__(self, oracle: Oracle) -> None:
        public, self._k = oracle.public, 0
        self._n_features, size = public.n_features, _n_coefficients(public)
        self._mirror = mirror = mirror_map(oracle.problem.constraint, size)
        self._unit = _intercept_unit(public, mirror)
        z = oracle.start()
        first = mirror.start(size)
        if public.start is not None:
            first = mirror.interior(z[: public.n_features].ravel())
        z[: public.n_features] = first.reshape(-1, public.n_outputs)
        self._z = self._y = z

    def _between(self) -> Array:
        r = 2.0 / (self._k + 2.0)
        return r * self._z + (1 - r) * self._y

    def at(self, step: descent.Step) -> Array:
        return self._between()

    def move(self, answer: Array, step: descent.Step) -> None:
        n, slope = self._n_features, step.size * answer
        moved = self._z - self._unit**2 * slope
        coefficients = self._mirror.step(self._z[:n].ravel(), slope[:n].ravel())
        moved[:n] = coefficients.reshape(n, -1)
        self._z = moved
        self._y = self._between()
        self._k += 1

    def result(self) -> Array:
        return self._y


def _n_coefficients(public: Public) -> int:
    return public.n_features * public.n_outputs


def _mean_square(public: Public) -> float:
    """Return the largest mean square of a margin at coefficients of norm 1, over ``unit_norm**2``.

    Columns are assumed to have unit size, or rows the declared norm. The maximum is at a vertex, a
    single column.
    """
    return 1.0 if public.data_norm is None else min(1.0, public.data_norm**2)


def _intercept_unit(public: Public, mirror: MirrorMap) -> float:
    """Return the unit of the intercept: it moves margins as far as coefficients of norm 1.

    At most ``unit_norm``: the intercept's noise does not outweigh that of coefficients.
    """
    ratio = math.sqrt(_mean_square(public)) / public.intercept_size
    return mirror.unit_norm * min(1.0, ratio)


# ------------------------------------------------------------------ variance reduction

# Largest step size times curvature. Plain steps are stable up to 2. Less allows for the variation
# among batches.
PLAIN_STEP = 1.8
# Bound on differences over that on gradients.
DIFFERENCES = 2.0
# Share of the squared budget that snapshots get, the last of which decides where the run ends. This
# share, the numbers of epochs and the power in `difference_slope` were chosen on the first data of
# `benchmarks.papers.next_to_gd`.
SNAPSHOT_SHARE = 0.7


@base.hyperparameters
class VarianceReduced(Solver):
    """Base of the solvers whose steps are differences of gradients from those at a snapshot.

    Parameters
    ----------
    batch_size : int, float, None or "auto", default="auto"
        Expected rows in a batch, as a number or a fraction. None uses all rows. Small batches are
        fast but require far more noise for the same budget: see the notes on `SVRG`.
    sampling : {"poisson", "fixed_size"}, default="poisson"
        How batches are drawn, "fixed_size" under replace_one only.
    learning_rate : float or "auto", default="auto"
        Step size.
    clip_norm : float or "auto", default="auto"
        L2 bound of one record's gradient in a snapshot. A difference of gradients is bounded by
        twice that, and by a bound that falls with the distance from the snapshot, as its noise
        does, if rows are bounded and have no weights.

    References
    ----------
    D. Wang, M. Ye, J. Xu: Differentially Private Empirical Risk Minimization Revisited: Faster and
    More General. NeurIPS 2017.
    """

    doubles: ClassVar[bool]  # whether epochs double, and start at the last iterate before

    max_iter: Resolved[int] = AUTO
    inner_steps: Resolved[int] = AUTO
    batch_size: Resolved[descent.BatchSize] = AUTO
    sampling: str = "poisson"
    learning_rate: base.StepSize = "auto"
    clip_norm: Resolved[float] = AUTO

    def automatic(self, public: Public, problem: Problem) -> Settings:
        """Return the distance and clip of gradient descent, in plain steps."""
        longest = defaults.longest_plain_step(public, problem, PLAIN_STEP)
        # Two kinds of answers share the budget, so each is noisier, and the way shorter.
        distance = defaults.travelled_distance(public, problem, 0.6)
        max_iter, size = checks.given_steps(self.max_iter, self.learning_rate)
        if max_iter is None:
            max_iter = count_within(distance / (size or longest), (60, 1000))
        rows = max(256, round(0.1 * public.n_rows))
        return {
            "max_iter": max_iter,
            "inner_steps": math.ceil(max_iter / (30 if self.doubles else 5)),
            "learning_rate": min(distance / max_iter, longest),
            "batch_size": min(rows, public.n_rows),
            "clip_norm": descent_defaults(public, problem)["clip_norm"],
        }

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.count(inner_steps=self.inner_steps)
        descent.check_batches(self.batch_size, self.sampling, public)
        constant_size(self.learning_rate)
        constant_clip(self.clip_norm)

    @property
    def n_epochs(self) -> int:
        """Number of epochs. The last one may be cut short by ``max_iter``."""
        return len(self._lengths())

    def _lengths(self) -> list[int]:
        """Return the steps in each epoch, ``max_iter`` in total."""
        lengths, length, remaining = list[int](), int(self.inner_steps), int(self.max_iter)
        while remaining:
            length *= 2 if self.doubles else 1
            lengths.append(min(length, remaining))
            remaining -= lengths[-1]
        return lengths

    def solve(self, oracle: Oracle) -> Solution:
        public, lengths = oracle.public, self._lengths()
        clip_norm = constant_clip(self.clip_norm)
        batches = descent.samplers(self.batch_size, self.sampling, public)
        # A share q of the squared budget requires 1/sqrt(q) of the noise, divided over the answers.
        # A step sees a record with the probability of its sampler, by which its noise is smaller.
        snapshots = math.sqrt(len(lengths) / SNAPSHOT_SHARE)
        inner = math.sqrt(int(self.max_iter) / (1 - SNAPSHOT_SHARE))
        inner *= descent.batch_rate(self.batch_size, public.n_rows)
        size = constant_size(self.learning_rate)
        longest_difference = min(DIFFERENCES * clip_norm, LARGEST_CLIP_NORM)
        point = anchor = oracle.problem.prox(oracle.start(), 0.0)
        for length in lengths:
            snapshot = oracle.gradient(anchor, clip_norm, snapshots)
            average = IterateAverage("tail", length, oracle.rng, fraction=1.0)
            path = CorrectedPath(oracle.problem, point, average)
            path.anchor, path.snapshot = anchor, snapshot
            run = descent.schedule([size] * length, longest_difference, [inner] * length, batches)
            mean = descent.descend(oracle, path, run)
            point, anchor = path.point if self.doubles else mean, mean
        return Solution(anchor, int(self.max_iter))


class CorrectedPath(descent.Proximal):
    """Proximal steps along differences of gradients from an anchor, plus the gradient there.

    Attributes
    ----------
    anchor : array
    snapshot : array
        The noisy gradient at the anchor.
    """

    anchor: Array
    snapshot: Array

    def query(self, oracle: Oracle, step: descent.Step) -> Array:
        request = step.clip_norm, step.noise, step.batch, difference_slope(oracle.public)
        gradient = self.snapshot + oracle.difference(self.point, self.anchor, *request)
        oracle.note_direction(gradient)
        return gradient


def difference_slope(public: Public) -> float:
    """Return the share of the steepest bound on differences that rows of unit columns need.

    A difference is ``curvature * |x| * |x'(w - w~)|`` long. The steepest bound puts the longest row
    along the way: ``R**2``. For rows of the expected norm r it is about r where columns are
    independent, and ``r**2`` where they are equal. This uses ``r**1.5``.
    """
    if public.row_norm is None or not public.is_noisy:
        return 1.0
    usual = defaults.expected_row_norm(public) ** 1.5
    return float(min(1.0, usual / public.row_norm**2))


class SVRG(VarianceReduced):
    """Variance-reduced gradient descent: a full gradient per epoch, then differences (DP-SVRG).

    An epoch requests a noisy full gradient g~ at a snapshot w~, then ``inner_steps`` steps ``w =
    prox(w - eta * (noisy mean difference of gradients over a batch + g~))`` from w~, each record's
    difference between w and w~ clipped by itself. The mean of the iterates is the next snapshot,
    and the solution in the end (Wang, Ye, Xu 2017, Alg. 1).

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of inner steps in all epochs together, at least 1: T epochs of m steps are ``T * m``.
    inner_steps : int or "auto", default="auto"
        Steps in an epoch, m. The last epoch may be shorter. "auto" makes five epochs.
    {Parameters}

    Notes
    -----
    The paper's noise is sufficient for ``epsilon <= c T m / n**2``, which its own experiments
    exceed by far. Here the noise is calibrated to the budget. A `NoiseWarning` names batches that
    are too small for it.

    References
    ----------
    {References}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(classes=[0, 1], solver="svrg", epsilon=3.0).fit(X, y)
    >>> model.score(X, y) > 0.85  # public rows: an exact score is fine
    True
    """

    name = "svrg"
    paper = "Wang, Ye, Xu (2017)"
    algorithms = (("DP-SVRG", {}),)
    purpose = "For few passes the default with max_iter=4 is better."

    doubles = False


class SVRGPlusPlus(VarianceReduced):
    """Variance-reduced gradient descent with epochs that double, for convex losses (DP-SVRG++).

    This is "svrg", except that epoch s has ``2**s * inner_steps`` steps and starts at the last
    iterate of the epoch before, while the snapshot is the mean of its iterates (Wang, Ye, Xu 2017,
    Alg. 2). It requires no strong convexity. The paper's steps are ``1 / (13 L)``, with L the
    curvature of the loss.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps in all epochs together, at least 1: T epochs are
        ``(2**(T + 1) - 2) * inner_steps``.
    inner_steps : int or "auto", default="auto"
        Steps m: the first epoch has 2 m steps, and each epoch twice the steps of the one before.
        The last may be cut short. "auto" makes about four epochs.
    {Parameters}

    References
    ----------
    {References}
    Z. Allen-Zhu, Y. Yuan: Improved SVRG for Non-Strongly-Convex or Sum-of-Non-Convex Objectives.
    ICML 2016.

    Examples
    --------
    >>> from skdp.solvers import SVRGPlusPlus
    >>> SVRGPlusPlus(inner_steps=10, max_iter=140).n_epochs  # 20 + 40 + 80
    3
    """

    name = "svrg++"
    paper = "Wang, Ye, Xu (2017)"
    algorithms = (("DP-SVRG++", {}),)
    purpose = "Median excess at epsilon 1: 2.4 times that of 'gd'."
    doubles = True
