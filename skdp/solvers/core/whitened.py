"""Run noisy Newton steps in coordinates that a noisy Gram matrix whitens: the default."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from skdp import steps
from skdp._numbers import AnyArray, Array
from skdp._oracle import AllRows, CappedHessian, Cut, Sampler
from skdp._oracle.public import Moments
from skdp._oracle.releases import moments
from skdp.solvers import base, checks, defaults, descent
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution
from skdp.solvers.core.shrinkage import spectrum, variation
from skdp.solvers.defaults import UNBOUNDED, gram_row_norm, growth

# Steps, and shares of mu squared. Losses without a Hessian take more steps.
N_STEPS, GRAM_SHARE, HESSIAN_SHARE, STEPS_WITHOUT_HESSIAN = 16, 0.15, 0.1, 40
STEPS_OF_QUANTILES = 40, 100  # fewest and most
# Of a stream: steps, the share of the rows for the Gram matrix, and the signal-to-noise ratio from
# which on steps are not shortened.
STREAM_STEPS, STREAM_GRAM, STREAM_AMPLE = 4, 0.5, 7.0
EXACT_STEPS = 300  # without noise
# Bound on a row, in units of its expected length, at a small budget.
ROW_FACTOR = 0.9
# Steps are so much shorter once ranges of columns became wider halfway. With steps as before, one
# idle column with a lognormal tail of deviation 3 had up to 27 times the curvature of the Gram
# matrix, and R2 fell from 0.91 to -24.
CURVATURE_AFTER_WIDENING = 3.0
# Standard deviations of noise that the square sum of a column has to exceed if it may be constant,
# if one of unit size exceeds this many.
VARIES, CLEAR = 4.0, 8.0
# Share of a class below which it is rare, and the least one in standard deviations of its noise.
RARE, SEEN = 0.07, 2.0


@base.hyperparameters
class Whitened(descent.GradientSolver):
    """Newton steps with a private Gram matrix, in coordinates that it whitens.

    1. The Gram matrix A of the rows is released. Let w be its noisy eigenvalues, V its eigenvectors
       and ``lam`` the largest eigenvalue of the noise. Then ``T = V (w + lam)**(-1/2)``.
    2. In the coordinates ``T'x`` rows are about equally long in every direction, so that noise
       affects all directions alike, and a step of one over the curvature is Newton's. Directions
       below the noise make small steps, and stay near zero.
    3. Each step requests the sum of the gradients there, with rows shrunk to about their expected
       length and residuals capped, each for itself: a long row loses weight, and its residual is
       not cut for being long. If ranges of columns become wider halfway, steps are shorter from
       there on. The mean of the last half of the iterates is returned.
    4. For two classes, the Hessian in these coordinates is released after the first step, and its
       inverse, eigenvalues raised by the noise, replaces one over the curvature. If a class is
       rare, that step ends at its log odds.

    Of rows that arrive block by block each release has a block of its own, with the whole budget
    (parallel composition). The first, on half of the rows, is the Gram matrix.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps, at least 1. "auto" is 16 for squared error and two classes, 40 to 100 for
        quantiles, 40 for other losses, 4 of a stream, and 300 without noise.
    learning_rate : float, str, tuple (str, dict) or "auto", default="auto"
        Step size for *sums* of gradients in the new coordinates, where the Gram matrix is about the
        identity, or a schedule, as for `GradientDescent`. "auto" is one over the curvature of the
        loss, times ``1 / (1 - beta)`` with Polyak's momentum, whose velocity builds up to that.
        Steps are a third as long once ranges of columns became wider. With a log link and without
        noise they follow the curvature along the path, as for `GradientDescent`.
    {momentum}
        "auto" is 0. For K classes it makes steps 2 K times as long as gradients, that is twice
        Newton's step where classes are as likely as each other.
    noise_schedule : str, tuple (str, dict), array of shape (max_iter,) or "auto", default="auto"
        Noise of the steps relative to each other, as for `GradientDescent`. "auto" is "uniform".
    clip_norm : float or "auto", default="auto"
        Largest norm of one record's gradient, in the unit of "gd", in which a row of standardised
        columns has the length ``sqrt(n_parameters)``: the cap on residuals times the bound on rows
        in that unit. "auto" is that of "gd" for losses with a bounded residual. Where only labels
        are private, the cap of a logistic loss is its largest residual.

    Notes
    -----
    A Gram matrix has p**2 / 2 entries and requires a large budget: the noise of its eigenvalues
    should be well below n / p times the squared norm of rows. Otherwise "gd" is better, and
    ``solver="auto"`` chooses it.

    Weights multiply gradients before the residual is capped, and their roots multiply the rows of
    the Gram matrix.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(classes=[0, 1], epsilon=3.0, solver="whitened")
    >>> model = model.fit(X, y)
    >>> [(release.kind, release.count) for release in model.privacy_.releases[-5:]]
    [('gram', 1), ('gradient', 1), ('hessian', 1), ('gradient', 15), ('calibration', 1)]
    """

    name = "whitened"
    purpose = "For enough rows, above all with correlated columns; fast."
    needs = frozenset({"smooth_loss", "smooth_penalty", "unconstrained"})
    max_columns = defaults.GRAM_COLUMNS
    one_pass = True

    max_iter: Resolved[int] = AUTO
    learning_rate: base.StepSize = "auto"
    momentum: base.AnyMomentum = "auto"
    noise_schedule: base.RelativeNoise = "auto"
    clip_norm: Resolved[float] = AUTO

    @property
    def has_checkpoint(self) -> bool:
        return self.max_iter > 1

    def automatic(self, public: Public, problem: Problem) -> Settings:
        n_steps, momentum = N_STEPS, 0.0
        curvature = defaults.typical_curvature(public, problem)
        if not (problem.loss.quadratic or _has_hessian(public, problem)):
            n_steps = STEPS_WITHOUT_HESSIAN
        if problem.loss.link == "identity" and problem.loss.degree == 1:
            # The loss is hardly curved at high quantiles: steps are as many as noise allows for.
            n_steps = defaults.count_within(public.signal_to_noise, STEPS_OF_QUANTILES)
        if not problem.loss.separable:
            # Twice Newton's step at the start, where classes are as likely as each other.
            momentum = 1 - 1 / (2 * public.n_outputs * curvature)
        if public.streamed:
            n_steps, momentum = STREAM_STEPS, 0.0
        elif not public.is_noisy:
            n_steps = EXACT_STEPS
        rule = steps.Momentum.of(momentum if checks.is_auto(self.momentum) else self.momentum)
        # Polyak's velocity takes about 1 / (1 - beta) steps to build up.
        gain = 1 / (1 - rule.beta) if rule.kind == "heavy_ball" else 1.0
        size = gain / curvature
        if public.streamed:  # a step has the noise of its block, which no mean of many reduces
            size *= min(1.0, public.signal_to_noise / STREAM_AMPLE)
        # Where targets follow closely from the columns, quantiles have nearly the largest
        # curvature: steps that stayed too long for it never settled.
        least = problem.loss.typical_curvature / problem.loss.curvature * size
        is_steep = problem.loss.residual_bound is not None and least < size
        falling = "square_root_decay", {"initial": size, "final": least}
        return {
            "max_iter": n_steps,
            "learning_rate": falling if is_steep and not public.streamed else size,
            "momentum": momentum,
            "noise_schedule": "uniform",
            "clip_norm": _residual_cap(public, problem)
            * _row_factor(public, UNBOUNDED)
            * math.sqrt(public.n_parameters),
        }

    def check_values(self, public: Public, problem: Problem) -> None:
        super().check_values(public, problem)
        if public.streamed and self.max_iter >= public.n_rows:
            raise ValueError(
                f"max_iter must be less than the number of rows, {public.n_rows}, as every block "
                f"needs one, got {self.max_iter}. Nothing was released."
            )

    def solve(self, oracle: Oracle) -> Solution:
        public, n_steps = oracle.public, self.max_iter
        blocks = _blocks(public, n_steps)
        sizes, costs = self._sizes(), self._noises() ** -2.0
        if public.streamed:  # a block of its own for each step, with the whole budget
            shares = costs / costs.max()
        else:
            others = HESSIAN_SHARE * _has_hessian(public, oracle.problem)
            others += GRAM_SHARE * (public.moments is None)
            shares = (1.0 - others) * costs / costs.sum()
        whitened = WhitenedPath(self, oracle, blocks[0], shares)
        path: descent.Path = whitened
        local = defaults.local_sizes(oracle, float(sizes[0]))
        if local is not None and oracle.problem.loss.link == "log":
            path = descent.Sized(
                path, lambda _, gradient, std: local.next(whitened.point, gradient)
            )
        run = descent.schedule(sizes, self.clip_norm, np.ones(n_steps), blocks[1:])
        point = descent.descend(oracle, path, run)
        return Solution(point, n_steps, slopes=tuple(oracle.gradient_lengths))


class WhitenedPath(descent.Path):
    """Iterates in coordinates in which a noisy Gram matrix is about the identity.

    Parameters
    ----------
    solver : Whitened
    oracle : Oracle
    rows : Sampler
        Rows of the Gram matrix.
    shares : array of shape (max_iter,)
        Of the steps in the squared Gaussian-DP parameter.
    """

    def __init__(self, solver: Whitened, oracle: Oracle, rows: Sampler, shares: Array) -> None:
        public, problem = oracle.public, oracle.problem
        self._n_steps, self._oracle, self._shares, self._done = solver.max_iter, oracle, shares, 0
        self._noise = 0.0
        self._n_rows = rows.divisor(public)
        self._weight = self._n_rows * public.mean_weight
        self._curvature = defaults.typical_curvature(public, problem)
        self._gram, self._std = self._matrix(rows)
        known = defaults.penalty_hessian(problem, public) * (self._weight / public.total_weight)
        eigen = spectrum(self._gram, self._std, known / self._curvature)
        lifted = eigen.values + eigen.noise_norm
        self._transform = eigen.vectors / np.sqrt(lifted)
        self._inverse = np.sqrt(lifted)[:, None] * eigen.vectors.T
        self._coordinates = moments.Coordinates(self._transform)
        # Rows are shrunk to about their root mean square length in the new coordinates.
        self._expected = math.sqrt(float((eigen.values / lifted).sum()) / self._weight)
        row_factor = _row_factor(public, solver.clip_norm)
        self._row_norm = min(row_factor * self._expected, UNBOUNDED)
        self._longest = row_factor * math.sqrt(public.n_parameters)
        self._root = np.eye(public.n_parameters)  # of an inverse Hessian
        self._direction = steps.Momentum.of(solver.momentum).start()
        self._slowdown = problem.loss.slowdown
        kind = "tail" if oracle.is_noisy else "last"
        self._average = steps.IterateAverage(kind, self._n_steps, oracle.rng)
        self._half = steps.IterateAverage("tail", max(self._n_steps // 2, 1), oracle.rng)
        self._keep(self._inverse @ oracle.start())

    def _matrix(self, rows: Sampler) -> tuple[Array, float]:
        """Return the Gram matrix, and the noise below which its directions are small.

        Public second moments save budget. They are no reason to follow the noise of steps there.
        """
        public, row_norm = self._oracle.public, gram_row_norm(self._oracle.public, ROW_FACTOR)
        gram_share = STREAM_GRAM if public.streamed else GRAM_SHARE
        std = 0.0
        if public.is_noisy:
            std = float(row_norm**2 / (public.gradient_mu * math.sqrt(gram_share)))
        if public.moments is not None:
            return _known_gram(public, public.moments), std
        share = 1.0 if public.streamed else GRAM_SHARE
        answer, gram_std = self._oracle.with_share(moments.GramSum(row_norm), share, rows)
        return moments.unpack_gram(answer, public.n_parameters), gram_std or std

    def _keep(self, point: Array) -> None:
        self.point = point
        self._average.add(point)
        self._half.add(point)

    def at(self, step: descent.Step) -> Array:
        return np.asarray(self._transform @ self.point)

    def query(self, oracle: Oracle, step: descent.Step) -> Array:
        if self._done == self._n_steps // 2 > 0:
            middle = self.point if oracle.is_rehearsal else self._half.result()
            before = oracle.scaling
            oracle.checkpoint(self._transform @ middle, 1.0)
            if oracle.scaling is not before:
                # Ranges are wider: rows are longer than the Gram matrix knows, curvature is larger.
                self._row_norm = min(self._row_norm, ROW_FACTOR * self._expected)
                self._slowdown = max(self._slowdown, CURVATURE_AFTER_WIDENING)
        coef = self.at(step)
        if _has_hessian(oracle.public, oracle.problem) and self._done == min(1, self._n_steps - 1):
            self._root = self._root_of_inverse(oracle, coef)
        cap, share = step.clip_norm / self._longest, float(self._shares[self._done])
        request = moments.ShrunkGradientSum(coef, self._coordinates, self._row_norm, cap)
        gradient, self._noise = oracle.with_share(request, share, step.batch)
        self._done += 1
        # As if of as many rows as the matrix.
        gradient = self._n_rows / step.batch.divisor(oracle.public) * gradient
        penalty = oracle.problem.penalty_gradient(coef)
        gradient += self._transform.T @ (self._weight * penalty)
        oracle.note_direction(gradient)
        return gradient

    def move(self, answer: Array, step: descent.Step) -> None:
        direction = self._direction(self._root @ (self._root.T @ answer))
        point = self.point - step.size / self._slowdown * direction
        if self._done == 1 and self._n_steps > 1:
            point = point + self._missing_log_odds(point, answer)
        self._keep(point)

    def result(self) -> Array:
        coef = self._transform @ self._average.result()
        public = self._oracle.public
        slope, spread = variation(self._gram, self._std, public.has_intercept)
        is_noise = np.logical_and(spread < VARIES, _may_be_constant(self._oracle, self._std))
        coef[-1] += slope[is_noise] @ coef[is_noise]
        coef[is_noise] = 0.0
        return np.asarray(coef)

    def _missing_log_odds(self, point: Array, gradient: Array) -> Array | float:
        """Return the change in the intercept that the first step lacks if a class is rare.

        The gradient at zero shows the share of a class. From there a step of Newton's stays so far
        from its log odds that the Hessian would be several times too large. The share counts as at
        least `SEEN` standard deviations of its noise, and at least one record. With offsets, the
        gradient at zero does not show it.
        """
        public, problem = self._oracle.public, self._oracle.problem
        is_known = public.has_intercept and public.start is None and not public.has_offset
        if not (is_known and _has_hessian(public, problem)):
            return 0.0
        unit = self._inverse[:, -1:] / public.intercept_size  # raises each margin by 1
        excess = float((unit * gradient).sum()) / self._weight
        noise = SEEN * self._noise * math.sqrt(public.n_parameters / self._weight)
        share = max(0.5 - abs(excess), noise, 1 / self._weight)
        if share > RARE:
            return 0.0
        total = float((self._gram[-1] @ self._transform @ point).item()) / public.intercept_size
        log_odds = math.copysign(math.log(1 / share - 1), -excess)
        return np.asarray((log_odds - total / self._weight) * unit)

    def _root_of_inverse(self, oracle: Oracle, coef: Array) -> Array:
        """Return R with R R' the inverse of the Hessian plus the norm of its noise, in its units.

        There rows are about as long in every direction, and so is the noise far smaller, next to
        the directions of little curvature, than that of the matrix that whitens.
        """
        public, problem = oracle.public, oracle.problem
        cap = problem.loss.residual_bound or UNBOUNDED
        request = CappedHessian(coef, self._coordinates, self._row_norm, cap)
        answer, std = oracle.with_share(request, HESSIAN_SHARE)
        if std == 0 and public.is_noisy:  # as where only labels are private
            expected = public.gradient_mu * math.sqrt(HESSIAN_SHARE)
            std = problem.loss.curvature * self._row_norm**2 / expected
        penalty = np.diag(defaults.penalty_hessian(problem, public))
        known = (self._transform.T * penalty) @ self._transform
        eigen = spectrum(moments.unpack_gram(answer, public.n_parameters), std, known)
        return eigen.vectors * np.sqrt(self._curvature / (eigen.values + eigen.noise_norm))


def _blocks(public: Public, n_steps: int) -> Sequence[Sampler]:
    """Return the blocks of a stream, the first with a share of the rows, or all rows in memory."""
    if not public.streamed:
        return [AllRows()] * (n_steps + 1)
    first = math.ceil(STREAM_GRAM * (public.n_rows - n_steps))
    others = public.n_rows - first
    cuts = (0, *(first + others * step // n_steps for step in range(n_steps + 1)))
    return Cut.blocks(cuts, once=True)


def _may_be_constant(oracle: Oracle, gram_std: float) -> AnyArray:
    """Return the columns that may be constant, by their counts, or as rows have no constant."""
    public, scaling = oracle.public, oracle.scaling
    is_flagged = np.full(public.n_parameters, not public.has_intercept)
    columns = None if scaling is None else scaling.columns
    if columns is not None and columns.may_be_constant is not None:
        is_flagged[: columns.n_columns] |= columns.may_be_constant
    return is_flagged & (0 < CLEAR * gram_std <= public.n_rows)


def _has_hessian(public: Public, problem: Problem) -> bool:
    """Return whether the Hessian of whitened rows can be released: for two classes."""
    return problem.loss.link == "logit" and problem.loss.separable and not public.streamed


def _row_factor(public: Public, clip_norm: float) -> float:
    """Return the bound on rows, in units of their expected length. Without noise none is cut.

    Unless gradients are to be clipped.
    """
    clips = public.is_noisy or clip_norm < UNBOUNDED
    return ROW_FACTOR * growth(public, 1 / 3) if clips else UNBOUNDED


def _residual_cap(public: Public, problem: Problem) -> float:
    """Return the size to which larger residuals are capped by default, in the targets' unit."""
    if not public.is_noisy:
        return UNBOUNDED
    bound = problem.loss.largest_residual
    if bound is None:
        return defaults.target_unit(public) * math.sqrt(public.n_outputs) * growth(public, 1 / 3)
    if moments.is_logistic_of_labels(public, problem):
        return bound  # residuals for two labels differ by no more: a cap saves little noise
    clip = defaults.relative_clip(public, problem)
    return min(bound, clip / _row_factor(public, clip))


def _known_gram(public: Public, moments: Moments) -> Array:
    """Return the Gram matrix of the rows that a public sample suggests."""
    size = np.ones(len(moments.matrix))
    size[-1] = public.intercept_size
    gram = moments.matrix * np.outer(size, size) * public.total_weight
    return np.asarray(gram[: public.n_parameters, : public.n_parameters])
