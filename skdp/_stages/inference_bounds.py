"""Compute bounds on the contribution of a record to an inference, from public facts.

They contain means of working weights for normal margins.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from skdp._numbers import Array
from skdp._oracle import Public, gradient_weight
from skdp._stages.base import is_regression
from skdp.objective import Loss, Problem
from skdp.solvers.defaults import ROUNDING, UNBOUNDED


def _normal_margins(gram: Array, coef: Array, constant: bool) -> tuple[Array, Array, float, float]:
    """Return means of entries, their covariances with margins in sizes of these, and mean and size.

    The last entry of rows is 1 if it is a constant. Without one means are taken for 0.
    """
    means = np.append(gram[-1, :-1], 1.0) if constant else np.zeros(len(coef))
    centre = float(means @ coef)
    along = gram @ coef - means * centre
    if constant:
        along[-1] = 0.0
    size = math.sqrt(max(float(coef @ along), 0.0))
    # The noise of the matrix may leave no variance at all.
    return means, along / size if size > ROUNDING else 0.0 * along, centre, size


def _working_weights(loss: Loss, centre: float, size: float) -> tuple[Array, Array]:
    """Return working weights at nodes of normal margins, times the nodes' shares, and the nodes."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(32)
    margins = (centre + size * nodes)[:, None]
    weights = loss.working_weight(margins, np.zeros_like(margins))[:, 0]
    return np.maximum(weights, ROUNDING) * shares / shares.sum(), nodes


def mean_hessian(loss: Loss, gram: Array, coef: Array, has_intercept: bool) -> Array:
    """Return the Gram matrix of rows with their working weights, over the mean weight.

    Weights of a log link depend only on the margins, assumed to be normal: they change variances
    and means along the coefficients. For other links it is the Gram matrix as it is.
    """
    if loss.link != "log":
        return gram
    means, along, centre, size = _normal_margins(gram, coef, has_intercept)
    weights, nodes = _working_weights(loss, centre, size)
    first, second = (float(weights @ nodes**power / weights.sum()) for power in (1, 2))
    moved = first * np.outer(along, means)
    return np.asarray(gram + moved + moved.T + (second - 1) * np.outer(along, along))


def weighted_means(loss: Loss, gram: Array, coef: Array) -> tuple[float, Array]:
    """Return the mean working weight, and the columns' means with these weights.

    Where the weights depend on the margins, for normal ones.
    """
    if loss.quadratic:
        return 1.0, gram[-1, :-1]
    means, along, centre, size = _normal_margins(gram, coef, True)
    weights, nodes = _working_weights(loss, centre, size)
    weight = float(weights.sum())
    return weight, (means + float(weights @ nodes) / weight * along)[:-1]


LEAST_SIZE = 1e-3  # of margins: rounding errors of derivatives are divided by it


class MeanWeight(NamedTuple):
    """Mean of the working weights at a parameter, its derivative there if margins are normal.

    The variances are those of the mean at a parameter that is given: due to noise, and in total.
    """

    value: float
    slope: Array
    privacy_variance: float
    variance: float

    @classmethod
    def of(
        cls,
        public: Public,
        loss: Loss,
        gram: Array,
        step: tuple[Array, Array],
        sums: Array,
        std: float,
    ) -> Self:
        """Return the mean at the end of a short step from a noisy sum at its start.

        The variance over rows of a number from 0 to W with the mean m is at most ``m (W - m)``
        (Bhatia, Davis 2000).
        """
        (start, end), most = step, loss.weight_bound or 0.0
        means, along, centre, size = _normal_margins(gram, end, public.has_intercept)

        # For normal z, the derivatives of E[w(c + s z)] are E[z w] / s and E[(z**2 - 1) w] / s.
        size = max(size, LEAST_SIZE)
        weights, nodes = _working_weights(loss, centre, size)
        slope = float(weights @ nodes) * means + float(weights @ (nodes**2 - 1)) * along
        slope /= size
        value = float(sums[1]) * most / public.n_rows + float(slope @ (end - start))
        value = min(max(value, 0.0), most)
        noise = (std * most / public.n_rows) ** 2
        return cls(value, slope, noise, noise + value * (most - value) / public.n_rows)


# All figures here are choices of ours, by coverage and width of intervals on simulated rows
# (`python -m benchmarks inference`), where no other reason is given.

# Shares of the stage's mu squared that its releases get: for numeric targets, of which the mean
# residual is a release of its own if there is an intercept, and for the logistic loss. In addition,
# each has the count of cut records.
NUMERIC = {"gram": 0.10, "scale": 0.05, "gradient": 0.59, "hessian": 0.20, "squares": 0.05}
NUMERIC_INTERCEPT = {**NUMERIC, "gradient": 0.49, "mean": 0.10}
LOGISTIC = {"gram": 0.10, "step": 0.84, "squares": 0.05}
COUNT_SHARE = 0.01
# Of the stage in what scaling leaves of mu squared, if none is given: more with a log link, whose
# intervals are wider and whose predictions lose less by it, if that determines the coefficients.
STAGE_SHARE, SHARE_OF_LOG_LINK = 1 / 3, 0.6
# One Newton step of a loss that is not quadratic errs by the square of its length: from a solution
# whose rows were shortened, which makes coefficients of rare 0/1 columns too large, a single step
# ended far below the true ones. So steps ahead of it, where they can be afforded, have this share
# each, taken from that of the last one. A penalty with more than STRONG_PENALTY times the strong
# convexity of the loss leaves the solution farther off, and requires more of them: of lognormal
# columns such intervals covered .11 with two, .64 with four, .94 with eight (12 simulated
# sets of 20,000 rows, C=1e-3, epsilon 5). Without noise steps cost nothing.
AHEAD = {"step": 0.04, "gradient": 0.06, "hessian": 0.04}
STEPS_AHEAD, STEPS_UNDER_PENALTY, STEPS_WITHOUT_NOISE = 2, 8, 10
STRONG_PENALTY = 0.1

# A coefficient is determined where the noise on the Hessian changes its inverse by less than this,
# relative to it. Intervals beyond it are still valid, and so wide that they say nothing.
MOST_RELATIVE_ERROR = 0.5
# Those of correlated or rare columns are larger than expected. Up to this expected one the stage
# takes what makes intervals narrower and the error larger.
MOST_EXPECTED_ERROR = 0.1
# With a log link steps within the noise lead away, and are not taken from this one on.
MOST_ERROR_OF_LOG_LINK = 0.2

# Rows are shortened before their Gram matrix is computed. Their greatest length, next to that which
# columns of unit size give.
GRAM_FACTOR = 2.0
# Cap of residuals, in their standard deviations. Where rates vary from person to person residuals
# are so skewed that a cap of 3 moved slopes by half a standard error (counts of 4,000 persons,
# epsilon 3), and one of 4 by a fifth.
RESIDUAL_FACTOR, FACTOR_OF_RATES = 3.0, 4.0
# It grows with the budget until the noise of the second moments of the terms, which grows with the
# square of it, has eigenvalues of this share of theirs.
SQUARES_NOISE = 0.4
# Typical eigenvalue of the Hessian for uncorrelated columns, next to that of the Gram matrix. By
# simulations of normal columns, with logistic margins of standard deviation 1.
CURVATURE, LOGISTIC_CURVATURE = 0.9, 0.18
# Logistic residuals are at most 1 and have a standard deviation of 0.5 at even odds. Bounds on rows
# grow with the budget until the noise of the gradient is this share of its sampling error, or the
# largest eigenvalue of the noise of the Hessian is this.
LOGISTIC_FACTOR, GRADIENT_NOISE, HESSIAN_NOISE = 2.0, 0.35, 0.005


def has_mean_release(public: Public, problem: Problem) -> bool:
    """Return whether capping residuals would move the intercept, which gets its own release."""
    is_capped = problem.loss.quadratic or (problem.loss.link == "log" and public.is_noisy)
    return is_capped and public.has_intercept


@dataclass(frozen=True)
class Bounds:
    """Bounds on a record's contributions, as functions of public facts.

    Attributes
    ----------
    gram_norm : float
        Of rows, in their own coordinates.
    row_norm : float
        Of rows, in whitened coordinates.
    residual_factor : float
        Of residuals, in their standard deviations, for numeric targets.
    relative_error : float
        Expected relative error of the inverse Hessian, for uncorrelated columns of unit size.
    shares : mapping
        Of the releases of the stage in its mu squared, but for the count and the steps ahead.
    n_steps_ahead : int, default=0
    """

    gram_norm: float
    row_norm: float
    residual_factor: float
    relative_error: float
    shares: Mapping[str, float]
    n_steps_ahead: int = 0

    @classmethod
    def of(cls, public: Public, problem: Problem, share: float) -> Self:
        """Return the bounds for the number of rows and the budget of the stage.

        Parameters
        ----------
        public : Public
            Once the records are scaled.
        problem : Problem
        share : float
            Of the stage, in the rest of mu squared after scaling.
        """
        shares, last = LOGISTIC, "step"
        if is_regression(problem):
            shares = NUMERIC_INTERCEPT if has_mean_release(public, problem) else NUMERIC
            last = "hessian"
        n_steps = _steps_ahead(public, problem)
        if not public.is_noisy:
            return cls(UNBOUNDED, UNBOUNDED, UNBOUNDED, 0.0, shares, n_steps)
        rest = {name: value - n_steps * AHEAD.get(name, 0.0) for name, value in shares.items()}
        bounds = cls._with(rest, public, problem, share, n_steps)
        # Only if a release with just their share would determine the coefficients.
        most = MOST_ERROR_OF_LOG_LINK if problem.loss.link == "log" else MOST_RELATIVE_ERROR
        if math.sqrt(rest[last] / AHEAD[last]) * bounds.relative_error < most:
            return bounds
        return cls._with(shares, public, problem, share, 0)

    @property
    def is_certain(self) -> bool:
        """True if the noise on the Hessian is expected to be small enough to allow more of it."""
        return self.relative_error <= MOST_EXPECTED_ERROR

    @classmethod
    def _with(
        cls, shares: Mapping[str, float], public: Public, problem: Problem, share: float, ahead: int
    ) -> Self:
        size, n_rows, loss = public.n_parameters, public.n_rows, problem.loss
        mu = public.gradient_mu * math.sqrt(share)
        norm = min(math.sqrt(public.n_features), public.data_norm or math.inf)
        norm = math.hypot(norm, public.has_intercept)
        gram_norm = GRAM_FACTOR * norm
        # 1. Largest eigenvalue of the noise of the Hessian, if rows are as long as usual ones.
        n_contrasts = loss.contrasts.shape[1]
        hessian_noise = size * math.sqrt((n_contrasts + 1) * size) / (n_rows * mu)
        row_factor, curvature, residual_factor = 1.0, CURVATURE, math.inf
        if is_regression(problem):
            weight = loss.with_bounded_weights.weight_bound or 1.0
            hessian_noise *= weight / math.sqrt(shares["hessian"])
            is_of_rates = loss.link == "log" and public.grouped
            residual_factor = FACTOR_OF_RATES if is_of_rates else RESIDUAL_FACTOR
            squares_noise = shares["gradient"] * mu * math.sqrt(2 * size / shares["squares"])
            noise = residual_factor * math.sqrt(size / (shares["gradient"] * n_rows)) / mu
            growth = max(1.0, math.sqrt(SQUARES_NOISE / squares_noise) / noise)
            residual_factor *= growth ** (2 / 3)
        else:
            weight = gradient_weight(loss) * (loss.residual_bound or 1.0)
            hessian_noise *= weight / math.sqrt(shares["step"])
            # 2. How far rows may be longer: until noise is no longer small.
            factor, curvature = LOGISTIC_FACTOR, LOGISTIC_CURVATURE
            if public.n_outputs > 1:
                # In coordinates of contrasts residuals reach sqrt(2), and their variance at even
                # odds is one over the number of classes: a half for two.
                factor = math.sqrt(2 * public.n_outputs)
                curvature *= 4 / public.n_outputs
            noise = factor * math.sqrt(size) / (mu * math.sqrt(shares["step"] * n_rows))
            most = min(GRADIENT_NOISE / noise, math.sqrt(HESSIAN_NOISE / hessian_noise))
            row_factor = max(1.0, most)
        # 3. What whitening leaves of the curvature of columns of this size.
        gram_noise = gram_norm**2 * math.sqrt(2 * size / shares["gram"]) / (n_rows * mu)
        typical = norm**2 / size
        error = hessian_noise * row_factor**2 / (curvature * typical / (typical + gram_noise))
        row_norm = row_factor * math.sqrt(size)
        return cls(gram_norm, row_norm, residual_factor, error, shares, ahead)


def _steps_ahead(public: Public, problem: Problem) -> int:
    """Return how many steps may go ahead of the last one."""
    if problem.loss.link not in ("log", "logit"):
        return 0
    if not public.is_noisy:
        return STEPS_WITHOUT_NOISE
    is_strong = problem.strong_convexity > STRONG_PENALTY * problem.loss.curvature
    return STEPS_UNDER_PENALTY if is_strong and not is_regression(problem) else STEPS_AHEAD
