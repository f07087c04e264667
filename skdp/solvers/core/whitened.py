"""Run noisy Newton steps in coordinates that a noisy Gram matrix whitens: the default."""

import math

import numpy as np

from skdp import steps
from skdp._numbers import AnyArray, Array
from skdp.oracle import CappedHessian, Cut
from skdp.oracle.public import Moments
from skdp.oracle.releases import moments
from skdp.solvers import base, checks, defaults
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution, Solver
from skdp.solvers.defaults import UNBOUNDED, growth
from skdp.steps.shrinkage import spectrum, variation

# Steps, and shares of mu squared. Losses without a Hessian take more steps.
N_STEPS, GRAM_SHARE, HESSIAN_SHARE, STEPS_WITHOUT_HESSIAN = 16, 0.15, 0.1, 40
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
# Standard deviations of noise that the square sum of a column has to exceed if it may be constant;
# without an intercept all may be, if one of unit size exceeds this many.
VARIES, CLEAR = 4.0, 20.0


@base.hyperparameters
class Whitened(Solver):
    """Newton steps with a private Gram matrix, in coordinates that it whitens.

    1. The Gram matrix A of the rows is released. Let w be its noisy eigenvalues, V its
       eigenvectors and ``lam`` the largest eigenvalue of the noise alone; then
       ``T = V (w + lam)**(-1/2)``.
    2. In the coordinates ``T'x`` rows are about equally long in every direction, so that noise
       affects all directions alike, and a step of one over the curvature is Newton's. Directions
       below the noise take short steps, and stay near zero.
    3. Each step requests the sum of the gradients there, with rows shrunk to about their expected
       length and residuals capped, each for itself: a long row loses weight, and its residual is
       not cut for being long. If ranges of columns become wider halfway, steps are shorter from
       there on. The mean of the last half of the iterates is returned.
    4. For two classes, the Hessian in these coordinates is released after the first step, and its
       inverse, eigenvalues raised by the noise, replaces one over the curvature.

    Of rows that arrive block by block each release has a block of its own, with the whole budget
    (parallel composition). The first, on half of the rows, is the Gram matrix.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps, at least 1. "auto" is 16 for squared error and two classes, 40 for other
        losses, 4 of a stream, and 300 without noise.
    learning_rate : float, str, tuple (str, dict), StepSchedule or "auto", default="auto"
        Step size for *sums* of gradients in the new coordinates, where the Gram matrix is about the
        identity; or a schedule, as for `GradientDescent`. "auto" is one over the curvature of the
        loss, times ``1 / (1 - beta)`` with Polyak's momentum, whose velocity builds up to that.
        Steps are a third as long once ranges of columns became wider. With a log link and without
        noise they follow the curvature along the path, as for `GradientDescent`.
    {momentum}
        "auto" is 0. For K classes it makes steps 2 K times as long as gradients, that is twice
        Newton's step where classes are as likely as each other.
    noise_schedule : str, NoiseSchedule, array of shape (max_iter,) or "auto", default="auto"
        Noise of the steps relative to each other, as for `GradientDescent`; "auto" is "uniform".
    clip_norm : float or "auto", default="auto"
        Largest norm of one record's gradient, in the unit of "gd", in which a row of standardised
        columns has the length ``sqrt(n_parameters)``: the cap on residuals times
        ``row_factor * sqrt(n_parameters)``. "auto"
        is that of "gd" for losses with a bounded residual; where only labels are private, the cap
        of a logistic loss is its largest residual.
    gram_share : float or "auto", default="auto"
        Share of the Gram matrix in the squared Gaussian-DP parameter; in (0, 1). "auto" is 0.15. Of
        a stream: its share of the rows, 1/2.
    hessian_share : float or "auto", default="auto"
        Share of the Hessian; 0 releases none. "auto" is 0.1 for two classes, otherwise 0.
    row_norm : float or "auto", default="auto"
        Rows longer than this are shrunk to it before their Gram matrix is computed.
    row_factor : float or "auto", default="auto"
        Rows longer than this many times their expected length are shrunk to that before their
        gradient is computed, both lengths in the new coordinates. At a given ``clip_norm`` a larger
        factor makes for a smaller cap on residuals, ``clip_norm / (row_factor *
        sqrt(n_parameters))`` in units of the target.

    Notes
    -----
    A Gram matrix has p**2 / 2 entries and requires a large budget: the noise of its eigenvalues
    should be well below n / p times the squared norm of rows. Otherwise "gd" is the better choice,
    and ``solver="auto"`` takes it.

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
    clip_norm: base.ClipNorm = "auto"
    gram_share: Resolved[float] = AUTO
    hessian_share: Resolved[float] = AUTO
    row_norm: Resolved[float] = AUTO
    row_factor: Resolved[float] = AUTO

    @property
    def has_checkpoint(self) -> bool:
        return self.max_iter > 1

    def automatic(self, public: Public, problem: Problem) -> Settings:
        n_steps, momentum = N_STEPS, 0.0
        curvature = defaults.typical_curvature(public, problem)
        if not (problem.loss.quadratic or _has_hessian(public, problem)):
            n_steps = STEPS_WITHOUT_HESSIAN
        if not problem.loss.separable:
            # Twice Newton's step at the start, where classes are as likely as each other.
            momentum = 1 - 1 / (2 * public.n_outputs * curvature)
        if public.streamed:
            n_steps, momentum = STREAM_STEPS, 0.0
        elif not public.is_noisy:
            n_steps = EXACT_STEPS
        rule = steps.momentum_rule(momentum if checks.is_auto(self.momentum) else self.momentum)
        # Polyak's velocity takes about 1 / (1 - beta) steps to build up.
        gain = 1 / (1 - rule.beta) if isinstance(rule, steps.HeavyBall) else 1.0
        # Without noise nothing is cut, unless gradients are to be clipped.
        clips = public.is_noisy or not (
            checks.is_auto(self.clip_norm) or steps.constant_clip(self.clip_norm) >= UNBOUNDED
        )
        row_factor = ROW_FACTOR * growth(public, 1 / 3) if clips else UNBOUNDED
        widest = row_factor if checks.is_auto(self.row_factor) else self.row_factor
        checks.positive(row_factor=widest)
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
            "clip_norm": _residual_cap(public, problem) * widest * math.sqrt(public.n_parameters),
            "gram_share": STREAM_GRAM if public.streamed else GRAM_SHARE,
            "hessian_share": HESSIAN_SHARE if _has_hessian(public, problem) else 0.0,
            "row_norm": defaults.gram_row_norm(public, ROW_FACTOR),
            "row_factor": row_factor,
        }

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.count(max_iter=self.max_iter)
        if public.streamed and self.max_iter >= public.n_rows:
            raise ValueError(
                f"max_iter must be less than the number of rows, {public.n_rows}, as every block "
                f"needs one; got {self.max_iter}. Nothing was released."
            )
        steps.momentum_rule(self.momentum)
        sizes = steps.step_sizes(self.learning_rate, self.max_iter)
        steps.relative_noise(self.noise_schedule, self.max_iter, sizes=sizes)
        steps.constant_clip(self.clip_norm)
        checks.share(gram_share=self.gram_share)
        if self.hessian_share != 0:
            checks.share(hessian_share=self.hessian_share)
            if self.gram_share + self.hessian_share >= 1:
                raise ValueError(
                    f"gram_share, {self.gram_share:g}, and hessian_share, {self.hessian_share:g}, "
                    "must add up to less than 1, as steps need a share, too; hessian_share=0 "
                    "releases no Hessian. Nothing was released."
                )
            if not _has_hessian(public, problem):
                raise ValueError(
                    "hessian_share must be 0 but for two classes in memory; "
                    f"got {self.hessian_share!r}. Nothing was released."
                )
        checks.positive(row_norm=self.row_norm, row_factor=self.row_factor)

    def solve(self, oracle: Oracle) -> Solution:
        public, problem, n_steps = oracle.public, oracle.problem, self.max_iter
        blocks = _blocks(public, self.gram_share, n_steps)
        n_rows = [public.n_rows if one is None else one.divisor(public) for one in blocks]
        weight, curvature = (
            n_rows[0] * public.mean_weight,
            defaults.typical_curvature(public, problem),
        )
        # 1. The Gram matrix, and coordinates in which it is about the identity.
        known = defaults.penalty_hessian(problem, public) * (weight / public.total_weight)
        remaining = 1.0 - self.hessian_share
        std = self._gram_std(public)
        if public.moments is None:
            share = 1.0 if public.streamed else self.gram_share
            answer, gram_std = oracle.with_share(moments.GramSum(self.row_norm), share, blocks[0])
            gram, std = moments.unpack_gram(answer, public.n_parameters), gram_std or std
            remaining -= self.gram_share
        else:
            gram = _known_gram(public, public.moments)
        eigen = spectrum(gram, std, known / curvature)
        lifted = eigen.values + eigen.noise_norm
        transform = eigen.vectors / np.sqrt(lifted)
        coordinates = moments.Coordinates(transform)
        # 2. The length to which rows are shrunk there, about their root mean square length, and the
        # cap on residuals that makes for the clipping norm.
        expected = math.sqrt(float((eigen.values / lifted).sum()) / weight)
        row_norm = min(self.row_factor * expected, UNBOUNDED)
        longest = self.row_factor * math.sqrt(public.n_parameters)
        cap = steps.constant_clip(self.clip_norm) / longest
        # 3. Steps, each with a share of the budget, or a block of its own.
        sizes = steps.step_sizes(self.learning_rate, n_steps)
        costs = steps.relative_noise(self.noise_schedule, n_steps, sizes=sizes) ** -2.0
        shares = costs / costs.max() if public.streamed else remaining * costs / costs.sum()
        direction, slowdown = steps.momentum_rule(self.momentum).start(), problem.loss.slowdown
        local = defaults.local_sizes(oracle, float(sizes[0]))
        point, inverse = np.sqrt(lifted)[:, None] * (eigen.vectors.T @ oracle.start()), None
        average = steps.IterateAverage("tail" if oracle.is_noisy else "last", n_steps, oracle.rng)
        half = steps.IterateAverage("tail", max(n_steps // 2, 1), oracle.rng)
        average.add(point)
        half.add(point)
        for step, (size, share) in enumerate(zip(sizes, shares, strict=True)):
            if step == n_steps // 2 > 0:
                middle = point if oracle.is_rehearsal else half.result()
                if oracle.checkpoint(transform @ middle):
                    # Rows are longer than the Gram matrix knows, and so is the curvature larger.
                    row_norm = min(row_norm, ROW_FACTOR * expected)
                    slowdown = max(slowdown, CURVATURE_AFTER_WIDENING)
            coef = transform @ point
            if self.hessian_share and step == min(1, n_steps - 1):
                inverse = self._inverse_hessian(oracle, coef, coordinates, row_norm)
            request = moments.ShrunkGradientSum(coef, coordinates, row_norm, cap)
            gradient, _ = oracle.with_share(request, float(share), blocks[step + 1])
            # As if of as many rows as the matrix.
            gradient = n_rows[0] / n_rows[step + 1] * gradient
            gradient += transform.T @ (weight * problem.penalty_gradient(coef))
            oracle.note_direction(gradient)
            if oracle.is_rehearsal:  # requests do not depend on the point, which would run away
                continue
            if local is not None:
                move = local.next(point, gradient) * gradient
            elif inverse is None:
                move = size / slowdown * direction(gradient)
            else:
                move = size / slowdown * direction(curvature * inverse @ gradient)
            point = point - move
            average.add(point)
            half.add(point)
        if oracle.is_rehearsal:
            return Solution(oracle.start(), n_steps)
        coef = transform @ average.result()
        slope, spread = variation(gram, std, public.has_intercept)
        is_noise = np.logical_and(spread < VARIES, _may_be_constant(oracle, std))
        coef[-1] += slope[is_noise] @ coef[is_noise]
        coef[is_noise] = 0.0
        return Solution(coef, n_steps, slopes=tuple(oracle.gradient_lengths))

    def _gram_std(self, public: Public) -> float:
        """Return the noise that a released Gram matrix would have: directions below it are small.

        Public second moments save budget; they are no reason to follow the noise of steps there.
        """
        if not public.is_noisy:
            return 0.0
        return float(self.row_norm**2 / (public.gradient_mu * math.sqrt(self.gram_share)))

    def _inverse_hessian(
        self, oracle: Oracle, coef: Array, coordinates: moments.Coordinates, row_norm: float
    ) -> Array:
        """Return the inverse of the Hessian in whitened coordinates plus the norm of its noise.

        There rows are about as long in every direction, and so is the noise far smaller, next to
        the directions of little curvature, than that of the matrix that whitens.
        """
        public, problem, transform = oracle.public, oracle.problem, coordinates.matrix
        cap = problem.loss.residual_bound or UNBOUNDED
        request = CappedHessian(coef, coordinates, row_norm, cap)
        answer, std = oracle.with_share(request, self.hessian_share)
        if std == 0 and public.is_noisy:  # as where only labels are private
            expected = public.gradient_mu * math.sqrt(self.hessian_share)
            std = problem.loss.curvature * row_norm**2 / expected
        known = transform.T @ defaults.penalty_hessian(problem, public) @ transform
        eigen = spectrum(moments.unpack_gram(answer, public.n_parameters), std, known)
        return np.asarray((eigen.vectors / (eigen.values + eigen.noise_norm)) @ eigen.vectors.T)


def _blocks(public: Public, share: float, n_steps: int) -> list[Cut] | list[None]:
    """Return the blocks of a stream, the first with a share of the rows; None for all in memory."""
    if not public.streamed:
        return [None] * (n_steps + 1)
    first = math.ceil(share * (public.n_rows - n_steps))
    others = public.n_rows - first
    cuts = (0, *(first + others * step // n_steps for step in range(n_steps + 1)))
    return [Cut(0, cuts, index, once=True) for index in range(n_steps + 1)]


def _may_be_constant(oracle: Oracle, gram_std: float) -> AnyArray:
    """Return the columns that may be constant, by their counts, or as rows have no constant."""
    public, scaling = oracle.public, oracle.scaling
    is_clear = 0 < CLEAR * gram_std <= public.n_rows
    is_flagged = np.full(public.n_parameters, is_clear and not public.has_intercept)
    columns = None if scaling is None else scaling.columns
    if columns is not None and columns.may_be_constant is not None:
        is_flagged[: columns.n_columns] |= columns.may_be_constant
    return is_flagged


def _has_hessian(public: Public, problem: Problem) -> bool:
    """Return whether the Hessian of whitened rows can be released: for two classes."""
    return problem.loss.link == "logit" and problem.loss.separable and not public.streamed


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
    return min(bound, clip / (ROW_FACTOR * growth(public, 1 / 3)))


def _known_gram(public: Public, moments: Moments) -> Array:
    """Return the Gram matrix of the rows that a public sample suggests."""
    size = np.ones(len(moments.matrix))
    size[-1] = public.intercept_size
    gram = moments.matrix * np.outer(size, size) * public.total_weight
    return np.asarray(gram[: public.n_parameters, : public.n_parameters])
