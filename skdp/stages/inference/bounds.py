"""Compute bounds on the contribution of a record to an inference, from public facts alone."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from skdp.objective import Problem
from skdp.oracle import Public, gradient_weight
from skdp.solvers.defaults import UNBOUNDED
from skdp.stages.base import is_regression

# All figures here are choices of ours, by coverage and width of intervals on simulated rows
# (`python -m benchmarks inference`), where no other reason is given.

# Shares of the stage's mu squared that its releases get: for numeric targets, for squared error
# with an intercept, for a log link with an intercept, whose own answer corrects a bias and needs
# less precision, and for the logistic loss; in addition, each has the count of cut records.
SQUARED = {"gram": 0.10, "scale": 0.05, "gradient": 0.59, "hessian": 0.20, "squares": 0.05}
SQUARED_INTERCEPT = {**SQUARED, "gradient": 0.49, "mean": 0.10}
LOG_LINK = {"gram": 0.05, "scale": 0.03, "gradient": 0.65, "hessian": 0.22, "squares": 0.04}
LOG_LINK_INTERCEPT = {**LOG_LINK, "gradient": 0.62, "mean": 0.03}
LOGISTIC = {"gram": 0.10, "step": 0.84, "squares": 0.05}
COUNT_SHARE = 0.01
# One Newton step of the logistic loss errs by the square of its length: from a solution whose rows
# were shortened, which makes coefficients of rare 0/1 columns too large, a single step ended far
# below the true ones. So steps ahead of it, where they can be afforded, have this share each, taken
# from that of the last one. A penalty whose strong convexity is more than STRONG_PENALTY times the
# curvature of the loss leaves the solution farther off, and requires more of them: of lognormal
# columns such intervals covered .11 with two, .64 with four, .94 with eight (12 simulated sets of
# 20,000 rows, C=1e-3, epsilon 5). Without noise steps cost nothing. With a log link there
# is one, without which intervals of a 0/1 column with 200 ones covered .91 at epsilon 1 and .86 at
# 3; three where the relative error of their Hessians is small; and none where it is large: steps
# within the noise lead away.
LOG_LINK_STEPS = {3: 0.02, 1: 0.2}
AHEAD = {"step": 0.04, "gradient": 0.06, "hessian": 0.04}
STRONG_PENALTY = 0.1

# A coefficient is determined where the noise on the Hessian changes its inverse by less than this,
# relative to it. Intervals beyond it are still valid, and so wide that they say nothing.
MOST_RELATIVE_ERROR = 0.5
# Those of correlated or rare columns are larger than expected. Up to this expected one the stage
# takes what makes intervals narrower and the error larger: longer rows, and shorter columns.
MOST_EXPECTED_ERROR = 0.1

# Rows are shortened before their Gram matrix is computed. Their greatest length, next to that which
# columns of unit size give, is GRAM_FACTOR; beyond mu n / p = GRAM_GROWTH_START it grows as the
# fourth root of mu n / p.
GRAM_FACTOR, GRAM_GROWTH_START = 1.5, 200.0
# Shortening takes most from rare 0/1 columns. So rows may be longer than that, up to a length at
# which the noise of the matrix has eigenvalues of GRAM_NOISE (without noise they are 1), and at
# most MOST_GRAM_FACTOR, about the length of a row with one rare column.
GRAM_NOISE, MOST_GRAM_FACTOR = 0.4, 3.0
# Whitening adds the noise's largest eigenvalue to those of the Gram matrix, which leaves rows
# shorter than their bound supposes. They are lengthened by the mean ratio of both eigenvalues to
# this power: 0.5 would make up for all of it, but leave rare 0/1 columns less room.
LENGTHENING = 0.25


@dataclass(frozen=True)
class NoiseLimits:
    """Limits up to which bounds grow with the budget, for losses of one kind.

    Attributes
    ----------
    residual_factor : float
        Least cap of residuals, in their standard deviations. Logistic residuals are not capped: the
        largest is 1, and their standard deviation is 0.5 at even odds.
    gradient_noise : float
        Of the gradient, as a share of its sampling error.
    hessian_noise : float
        Largest eigenvalue of the noise of the Hessian, from which on the bound on rows stays.
    curvature : float
        Typical eigenvalue of the Hessian for uncorrelated columns, next to that of the Gram matrix;
        by simulations of normal columns, with logistic margins of standard deviation 1.
    row_factor : float, default=1.0
        Least bound on rows, next to the length of usual ones.
    reach : float, default=1.0
        Largest `Bounds.reach`; it makes the error larger in proportion.
    share : float, default=1/3
        Of the stage in what scaling leaves of mu squared, where none is given.
    """

    residual_factor: float
    gradient_noise: float
    hessian_noise: float
    curvature: float
    row_factor: float = 1.0
    reach: float = 1.0
    share: float = 1 / 3


SQUARED_LIMITS = NoiseLimits(3.0, gradient_noise=0.6, hessian_noise=0.1, curvature=0.9)
# Weights vary, so that informative rows are long. With a reach of 2 they count by their length up
# to twice the bound, which makes the gradient's noise smaller next to what it says, and that of the
# Hessian twice as large. Intervals are wider than for squared error, and predictions lose less by a
# larger share.
LOG_LINK_LIMITS = replace(SQUARED_LIMITS, row_factor=0.75, reach=2.0, share=0.6)
# Where rates vary from person to person residuals are so skewed that a cap of 3 moved slopes by
# half a standard error (counts of 4,000 persons, epsilon 3), and one of 4 by a fifth.
LOG_LINK_OF_GROUPS = replace(LOG_LINK_LIMITS, residual_factor=4.0)
LOGISTIC_LIMITS = NoiseLimits(2.0, gradient_noise=0.35, hessian_noise=0.005, curvature=0.18)
# For squared error bounds grow at most until the noise of the second moments of the terms, which
# grows with the square of the bounds, has eigenvalues of this share of theirs. Without this limit
# intervals grew wider with the budget beyond epsilon 10.
SQUARES_NOISE = 0.4
# Numbers of rows, and epsilons, between which a sufficient one is searched for.
SEARCHED = {"n_rows": (1.0, 1e12), "epsilon": (1e-3, 100.0)}


@dataclass(frozen=True)
class Bounds:
    """Bounds on what a record adds: functions of public facts.

    Attributes
    ----------
    gram_norm : float
        Of rows, in their own coordinates.
    row_norm : float
        Of rows, in whitened coordinates.
    residual_factor : float
        Of residuals, in their standard deviations; for numeric targets.
    relative_error : float
        Expected relative error of the inverse Hessian, for uncorrelated columns of unit size.
    shares : mapping
        Of the releases of the stage in its mu squared, but for the count and the steps ahead.
    n_steps_ahead : int, default=0
    reach : float, default=1.0
        Length of rows, next to ``row_norm``, up to which residuals are taken in full.
    """

    gram_norm: float
    row_norm: float
    residual_factor: float
    relative_error: float
    shares: Mapping[str, float]
    n_steps_ahead: int = 0
    reach: float = 1.0

    @classmethod
    def of(cls, public: Public, problem: Problem, share: float) -> Self:
        """Return the bounds for the number of rows and the budget of the stage.

        Parameters
        ----------
        public : Public
            Once the records are scaled.
        problem : Problem
        share : float
            Of the stage, in what scaling leaves of mu squared.
        """
        loss, shares = problem.loss, LOGISTIC
        if is_regression(problem):
            shares = SQUARED_INTERCEPT if public.has_intercept and loss.quadratic else SQUARED
            if loss.link == "log":
                shares = LOG_LINK_INTERCEPT if public.has_intercept else LOG_LINK
        last = "hessian" if "hessian" in shares else "step"
        for n_steps, most in _steps_ahead(public, problem).items():
            rest = {name: value - n_steps * AHEAD.get(name, 0.0) for name, value in shares.items()}
            bounds = cls._with(rest, public, problem, share, n_steps)
            # Only if a release with their share alone would determine the coefficients.
            more = math.sqrt(rest[last] / AHEAD[last]) / bounds.reach
            if more * bounds.relative_error < most:
                return bounds
        return cls._with(shares, public, problem, share, 0)

    @classmethod
    def default_share(cls, public: Public, problem: Problem) -> float:
        """Return the share of the stage where none is given."""
        share = _limits(public, problem).share
        return share if cls.of(public, problem, share).is_certain else NoiseLimits.share

    @property
    def is_certain(self) -> bool:
        """True if the noise on the Hessian is expected to be small enough to allow more of it."""
        return self.relative_error <= MOST_EXPECTED_ERROR * self.reach

    @classmethod
    def _with(
        cls, shares: Mapping[str, float], public: Public, problem: Problem, share: float, ahead: int
    ) -> Self:
        if not public.is_noisy:
            return cls(UNBOUNDED, UNBOUNDED, UNBOUNDED, 0.0, shares, ahead)
        size, n_rows = public.n_parameters, public.n_rows
        numeric = is_regression(problem)
        limits, n_contrasts = _limits(public, problem), problem.loss.contrasts.shape[1]
        mu = public.gradient_mu * math.sqrt(share)
        # 1. Lengths of rows.
        norm = min(math.sqrt(public.n_features), public.data_norm or math.inf)
        norm = math.hypot(norm, public.has_intercept)
        growth = max(1.0, mu * n_rows / size / GRAM_GROWTH_START) ** 0.25
        signal = mu * n_rows / size * math.sqrt(shares["gram"] / (2 * size))
        affordable = math.sqrt(GRAM_NOISE * signal)
        gram_norm = norm * max(GRAM_FACTOR * growth, min(affordable, MOST_GRAM_FACTOR))
        # 2. How far bounds may grow: until noise is no longer small next to sampling errors.
        residual_factor = limits.residual_factor
        gradient_share = shares["gradient" if numeric else "step"]
        noise = limits.residual_factor * math.sqrt(size) / (mu * math.sqrt(gradient_share * n_rows))
        wanted = limits.gradient_noise
        if numeric:
            squares_noise = gradient_share * mu * math.sqrt(2 * size / shares["squares"])
            wanted = min(wanted, math.sqrt(SQUARES_NOISE / squares_noise))
        row_factor = max(1.0, wanted / noise)
        if numeric:
            residual_factor *= row_factor ** (2 / 3)
            row_factor = row_factor ** (1 / 3)
        # 3. Largest eigenvalue of the noise of the Hessian; first as if the row factor were 1.
        largest = problem.loss.with_bounded_weights.weight_bound or 1.0
        largest_residual = problem.loss.residual_bound or 1.0
        if numeric:
            weight = largest / math.sqrt(shares["hessian"])
        else:
            weight = gradient_weight(problem.loss) * largest_residual / math.sqrt(shares["step"])
        hessian_noise = weight * size * math.sqrt((n_contrasts + 1) * size) / (n_rows * mu)
        hessian_noise *= limits.row_factor**2
        row_factor = min(row_factor, max(1.0, math.sqrt(limits.hessian_noise / hessian_noise)))
        hessian_noise *= row_factor**2
        # 4. What whitening leaves of the curvature of columns of this size.
        gram_noise = gram_norm**2 * math.sqrt(2 * size / shares["gram"]) / (n_rows * mu)
        typical = norm**2 / size
        remaining = (typical / (typical + gram_noise)) ** (1 - 2 * LENGTHENING)
        row_norm = limits.row_factor * row_factor * math.sqrt(size)
        error = hessian_noise / (limits.curvature * remaining)
        reach = min(max(2 * MOST_EXPECTED_ERROR / error, 1.0), limits.reach)
        error *= reach
        return cls(gram_norm, row_norm, residual_factor, error, shares, ahead, reach)


def _limits(public: Public, problem: Problem) -> NoiseLimits:
    """Return the limits for a problem; for several classes by those of two.

    In coordinates of contrasts residuals reach sqrt(2), and their variance at even odds is one over
    the number of classes. Of two classes it is a half there, twice that of their margin.
    """
    if problem.loss.link == "log":
        return LOG_LINK_OF_GROUPS if public.grouped else LOG_LINK_LIMITS
    if is_regression(problem) or public.n_outputs == 1:
        return SQUARED_LIMITS if is_regression(problem) else LOGISTIC_LIMITS
    factor, curvature = math.sqrt(2 * public.n_outputs), 4 * LOGISTIC_LIMITS.curvature
    curvature /= public.n_outputs
    return replace(LOGISTIC_LIMITS, residual_factor=factor, curvature=curvature)


def _steps_ahead(public: Public, problem: Problem) -> dict[int, float]:
    """Return how many steps may go ahead of the last one, and up to which error of each."""
    if is_regression(problem):
        return LOG_LINK_STEPS if problem.loss.link == "log" else {}
    is_strong = problem.strong_convexity > STRONG_PENALTY * problem.loss.curvature
    return {(8 if is_strong else 2) if public.is_noisy else 10: MOST_RELATIVE_ERROR}


def enough(public: Public, problem: Problem, share: float, name: str) -> float | None:
    """Return about which number of rows, or epsilon, would determine the coefficients.

    All else being equal, and for uncorrelated columns of unit size.

    Parameters
    ----------
    public : Public
        Once the records are scaled.
    problem : Problem
    share : float
        Of the stage.
    name : {"n_rows", "epsilon"}

    Returns
    -------
    float or None
        None if not even the largest one that is searched would.
    """
    low, high = SEARCHED[name]

    def suffices(value: float) -> bool:
        changed: dict[str, Any] = {name: round(value) if name == "n_rows" else value}
        bounds = Bounds.of(replace(public, **changed), problem, share)
        return bounds.relative_error < MOST_RELATIVE_ERROR

    if not suffices(high):
        return None
    while high > 1.02 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high
