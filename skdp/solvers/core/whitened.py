"""Run gradient descent that is preconditioned (whitened) by a noisy Gram matrix."""

import math

import numpy as np

from skdp import steps
from skdp._numbers import Array
from skdp.oracle import CappedHessian
from skdp.oracle.public import Moments
from skdp.oracle.releases import moments
from skdp.solvers import base, checks, defaults
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution, Solver
from skdp.solvers.core.bound_rules import named_noise
from skdp.solvers.core.whitened_stream import solve_in_one_pass
from skdp.solvers.defaults import UNBOUNDED, growth
from skdp.steps.schedules import SecantRatio
from skdp.steps.shrinkage import Spectrum, shortened, spectrum, variation

# Powers of the signal-to-noise ratio. Noise in directions of little curvature grows with the
# distance, steps / (1 - momentum), times cap**2 / ratio**2: so these two keep its effect constant.
CAP_GROWTH, TRAVEL_GROWTH = 0.4, 1.2
# Bound on a row in units of its expected length, at a small budget.
ROW_FACTOR = 0.9
# Share of the Gram matrix in mu squared. Gradients of squared error are exact in its coordinates.
PLAIN_GRAM_SHARE, GRAM_SHARE = 0.2, 0.05
# Squared error: plain steps at a small budget, which average noise out; from a signal-to-noise
# ratio on the distance grows, half of it by up to so many times as many steps, half by momentum.
PLAIN_STEPS, PLAIN_GROWTH_START = 40, 50.0
MOST_TIMES = 2.0
# A log link: momentum makes steps longer by no more times than there are more of them, as
# exponentials of predictors become far too large otherwise. A cap below the least one, in units of
# the target, makes all means too small.
LOG_LINK_STEPS, LEAST_LOG_CAP = 45, 0.7
# Other losses: steps, in roots of the distance times the largest curvature. With c of them the
# heavy ball's oscillations decay by exp(-c**2 / 4) before iterates are averaged.
SETTLING = 3.0
FEWEST_STEPS = 8
# Logistic loss, from this signal-to-noise ratio on: a Hessian of whitened rows, with as large a
# share as the Gram matrix, replaces most of the steps, of which so many remain. Eight cost 0.007 of
# log loss where classes are separable.
HESSIAN_START, HESSIAN_STEPS = 200.0, 14
# Without noise; the momentum is that of steps with a Hessian, too.
EXACT_STEPS, EXACT_MOMENTUM = 300, 0.5
# Steps are so much shorter once ranges of columns became wider halfway. With steps as before, one
# idle column with a lognormal tail of deviation 3 had up to 27 times the curvature of the Gram
# matrix, and R2 fell from 0.91 to -24; shrinking rows alone leaves up to 0.1 of that.
CURVATURE_AFTER_WIDENING = 3.0
# Signal-to-noise ratio from which on a run then starts anew. At 366, flights lost 0.014 of R2; at
# 1,000 to 1,200 standardised flights and ratdat surveys gained 0.05 and 0.11.
FRESH_START = 600.0

# Of a stream: share of the rows for the Gram matrix, number of steps, bound on rows of the matrix
# in their expected length, and cap on residuals in their own size.
STREAM_GRAM, STREAM_STEPS, STREAM_ROW, STREAM_CAP = 0.5, 4, 0.8, 1.5
STREAM_ROW_FACTOR = 0.6  # in place of ROW_FACTOR, for losses with a bounded residual
# Standard deviations of noise below which coefficients are 0, by their own size and the spread of
# their column, which rare values have. More in cases of columns without any: fits without a
# constant, as with fixed effects, and columns that may be constant.
NONZERO_STDS, STRICT_STDS = 2.0, 4.0
# Least spread of a column of unit size, in standard deviations of the noise: columns near 0 are
# not told from constants below it. Diabetes lost 0.012 of R2 at 18, bank marketing 0.009 at 4.
CLEAR_SPREAD = 20.0
STREAM_AMPLE = 7.0  # signal-to-noise ratio from which on steps are not shortened


@base.hyperparameters
class Whitened(Solver):
    """Gradient descent in coordinates that a private Gram matrix whitens, where few steps suffice.

    1. The Gram matrix A of the rows is released. Let w be its noisy eigenvalues, V its
       eigenvectors and ``lam`` the largest eigenvalue of the noise alone; then
       ``T = V (w + lam)**(-1/2)``.
    2. In the coordinates ``T'x`` rows are about equally long in every direction, so that noise
       affects all directions alike, and step sizes of one over the curvature fit all of them.
       Directions below the noise take short steps, and stay near zero. At a budget that is not
       small these are without momentum, and a longer way than that of the others is shortened for
       later steps and for the result, unless it is three times as long as noise explains.
    3. Each step requests the sum of the gradients there, with rows shrunk to about their expected
       length and residuals capped, each for itself: a long row loses weight, and its residual is
       not cut for being long. If ranges of columns become wider halfway, steps are shorter from
       there on, at a large budget from the start anew, and rows are shrunk to about their expected
       length at any budget. The mean of the last half of the iterates is returned.
    4. For squared error, unless eigenvalues are far below the noise, a fraction of the planned
       steps suffices, if their size and momentum follow from both. Then the planned releases are
       divided among so few points: rows are read once for each, and the mean of its releases has
       as much less noise.
    5. For two classes at a large budget, the Hessian in these coordinates is released after a
       quarter of the steps. Its noise is far below that of A in directions of little curvature:
       its inverse, eigenvalues raised by the noise, makes few steps reach as far as many would.
       The curvature along the last step, by the released gradients, corrects their length.

    Rows that arrive block by block are cut in blocks of its own, and each of its releases has one,
    with the whole budget (parallel composition). The first, on half of the rows, is of rows and
    targets together, and gives a start as well, and the size of residuals; then there are 4 plain
    steps, the last point of which is returned.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps, at least 1. "auto" is 14 with a noisy Hessian, and 300 without noise. For
        squared error it is 40, more for large budgets. For other losses with a bounded residual it
        is three roots of the distance that "gd" travels, steps times step size times the largest
        curvature.
    learning_rate : float, str, tuple (str, dict), StepSchedule or "auto", default="auto"
        Step size for *sums* of gradients in the new coordinates, where the Gram matrix is about the
        identity; or a schedule, as for `GradientDescent`. "auto" is one over the curvature of the
        loss, times ``1 / (1 - beta)`` with Polyak's momentum, whose velocity builds up to that.
        Steps are a third as long once ranges of columns became wider. For quantiles they fall to
        one over the largest curvature, if ``max_iter`` is "auto". With a log link and without
        noise, as for `GradientDescent`.
    {momentum}
        "auto" is 0 for squared error, more for large budgets; likewise for log links, up to 1/2.
        For losses with a bounded residual it makes ``max_iter`` steps as long as the distance. It
        is no more than ``max_iter`` steps can build up.
    noise_schedule : str, NoiseSchedule, array of shape (max_iter,) or "auto", default="auto"
        Noise of the steps relative to each other, as for `GradientDescent`; "auto" is "uniform".
    clip_norm : float or "auto", default="auto"
        Largest norm of one record's gradient, in the unit of "gd", in which a row of standardised
        columns has the length ``sqrt(n_parameters)``: the cap on residuals times
        ``row_factor * sqrt(n_parameters)``. "auto"
        is that of "gd" for losses with a bounded residual; where labels alone are private, the cap
        of a logistic loss is its largest residual.
    gram_share : float or "auto", default="auto"
        Share of the Gram matrix in the squared Gaussian-DP parameter; in (0, 1). "auto" is
        1/20 for losses with a bounded residual, 1/5 otherwise. Of a stream: its share of the rows,
        1/2.
    hessian_share : float or "auto", default="auto"
        Share of the Hessian; 0 releases none. "auto" is 1/10, and that of the Gram matrix as well,
        for two classes from a signal-to-noise ratio of 200 on, otherwise 0. Without noise there
        is a Hessian, too.
    most_releases : int or "auto", default="auto"
        Most releases of a gradient at one point. "auto" is ``max_iter`` for squared error, but for
        a stream or a public sample of rows, if the step size, the momentum and the number of steps
        are those of "auto"; otherwise 1. Where points have several, the eigenvalues determine the
        size and the momentum of steps, whatever they were.
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
    >>> [(release.kind, release.count) for release in model.privacy_.releases[-3:]]
    [('gram', 1), ('gradient', 20), ('calibration', 1)]
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
    most_releases: Resolved[int] = AUTO
    row_norm: Resolved[float] = AUTO
    row_factor: Resolved[float] = AUTO

    @property
    def has_checkpoint(self) -> bool:
        return self.max_iter > 1

    def automatic(self, public: Public, problem: Problem) -> Settings:
        noisy, is_plain = public.is_noisy, problem.loss.residual_bound is None
        gram_share = PLAIN_GRAM_SHARE if is_plain else GRAM_SHARE
        is_ample = not noisy or public.signal_to_noise >= HESSIAN_START
        hessian_share = 2 * GRAM_SHARE if is_ample and _has_hessian(public, problem) else 0.0
        if not checks.is_auto(self.hessian_share):
            hessian_share = self.hessian_share
        row_norm = defaults.gram_row_norm(public, STREAM_ROW if public.streamed else 0.9)
        n_steps = None if checks.is_auto(self.max_iter) else self.max_iter
        if n_steps is not None:
            checks.count(max_iter=n_steps)
        if public.streamed:
            n_steps, momentum, gram_share = n_steps or STREAM_STEPS, 0.0, STREAM_GRAM
        elif not noisy:
            n_steps, momentum = n_steps or EXACT_STEPS, 0.0 if is_plain else EXACT_MOMENTUM
        elif hessian_share:
            n_steps, momentum = n_steps or HESSIAN_STEPS, EXACT_MOMENTUM
            gram_share = 2 * GRAM_SHARE
        elif is_plain:
            n_steps, momentum = _plain_steps(public, problem, n_steps)
        else:
            share = gram_share if checks.is_auto(self.gram_share) else self.gram_share
            longest = row_norm if checks.is_auto(self.row_norm) else self.row_norm
            checks.share(gram_share=share)
            checks.positive(row_norm=longest)
            std = _gram_std(public, longest, share)
            n_steps, momentum = _steps(public, problem, n_steps, std)
        # Velocity takes about 1 / (1 - momentum) steps to build up: a short run has no use for
        # more than it can reach in a quarter of its steps.
        momentum = min(momentum, max(0.0, 1 - 4 / n_steps))
        beta = momentum if checks.is_auto(self.momentum) else self.momentum
        row_factor = ROW_FACTOR * growth(public, 1 / 3) if noisy else UNBOUNDED
        if public.streamed and noisy:
            row_factor = (ROW_FACTOR if is_plain else STREAM_ROW_FACTOR) * growth(public, 0.25)
        if not noisy and not checks.is_auto(self.clip_norm):
            # Without noise nothing is cut, unless gradients are to be clipped.
            is_cut = steps.constant_clip(self.clip_norm) < UNBOUNDED
            row_factor = ROW_FACTOR if is_cut else UNBOUNDED
        widest = row_factor if checks.is_auto(self.row_factor) else self.row_factor
        checks.positive(row_factor=widest)
        cap = _residual_cap(public, problem, widest)
        size = _caution(public, problem) * _gain(beta) / defaults.typical_curvature(public, problem)
        # Where targets follow closely from the columns, quantiles have nearly the largest
        # curvature: steps that stayed too long for it never settled, the less the less noise. Few
        # steps by request have to stay long to cover the distance.
        least = problem.loss.typical_curvature / problem.loss.curvature * size
        falls = checks.is_auto(self.max_iter) and not (is_plain or public.streamed)
        is_quadratic = "quadratic_loss" in problem.provides
        may_repeat = noisy and not public.streamed and public.moments is None
        usual = _plain_steps(public, problem, None)[0], size, momentum
        given = zip((self.max_iter, self.learning_rate, self.momentum), usual, strict=True)
        is_usual = all(checks.is_auto(one) or np.all(one == own) for one, own in given)
        return {
            "max_iter": n_steps,
            "learning_rate": ("square_root_decay", {"initial": size, "final": least})
            if falls and least < size
            else size,
            "momentum": momentum,
            "noise_schedule": "uniform",
            "clip_norm": cap * widest * math.sqrt(public.n_parameters),
            "gram_share": gram_share,
            "hessian_share": hessian_share,
            "most_releases": n_steps if may_repeat and is_quadratic and is_usual else 1,
            "row_norm": row_norm,
            "row_factor": row_factor,
        }

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.count(max_iter=self.max_iter, most_releases=self.most_releases)
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
        self.noise_schedule = named_noise(self, public, problem)

    def solve(self, oracle: Oracle) -> Solution:
        if oracle.public.streamed:
            return solve_in_one_pass(self, oracle)
        public, problem = oracle.public, oracle.problem
        n_steps, curvature = self.max_iter, defaults.typical_curvature(public, problem)
        # 1. The Gram matrix, and coordinates in which it is about the identity.
        known = defaults.penalty_hessian(problem, public) / curvature
        remaining = 1.0 - self.hessian_share
        if public.moments is None:
            answer, std = oracle.with_share(moments.GramSum(self.row_norm), self.gram_share)
            gram = moments.unpack_gram(answer, public.n_parameters)
            remaining -= self.gram_share
        else:
            gram, std = _known_gram(public, public.moments), 0.0
        slope, spread = variation(gram, std, public.has_intercept)
        gram_std = std
        eigen = spectrum(gram, std or _gram_std(public, self.row_norm, self.gram_share), known)
        lifted = eigen.values + eigen.noise_norm
        transform = eigen.vectors / np.sqrt(lifted)
        coordinates = moments.Coordinates(transform)
        # 2. The length to which rows are shrunk there, about their root mean square length, and the
        # cap on residuals that makes for the clipping norm.
        expected = math.sqrt(float((eigen.values / lifted).sum()) / public.total_weight)
        row_norm = min(self.row_factor * expected, UNBOUNDED)
        longest = self.row_factor * math.sqrt(public.n_parameters)
        cap = steps.constant_clip(self.clip_norm) / longest
        # 3. Steps, by default of one over the curvature.
        sizes = steps.step_sizes(self.learning_rate, n_steps)
        costs = steps.relative_noise(self.noise_schedule, n_steps, sizes=sizes) ** -2.0
        shares = remaining * costs / costs.sum()
        rule, start = steps.momentum_rule(self.momentum), oracle.start()
        # Where residuals are bounded, curvature falls if momentum overshoots: the way back is long.
        may_restart = type(rule) is steps.HeavyBall and problem.loss.residual_bound is not None
        direction, may_restart = rule.start(), may_restart and oracle.is_noisy
        point = np.sqrt(lifted)[:, None] * (eigen.vectors.T @ start)
        # Directions below the noise may have no curvature, and momentum would add up their noise.
        # At a small budget, most of the signal lies there: bank marketing lost 0.017 of log loss.
        flat = (eigen.values <= eigen.noise_norm)[:, None]
        flat &= public.signal_to_noise >= PLAIN_GROWTH_START
        # Further columns follow the noise of each step as it adds up there.
        followed = n_steps if oracle.is_noisy else 0
        point = np.hstack([point, np.zeros((len(point), followed))])
        path, shorter = [point], problem.loss.slowdown
        unit = np.sqrt(lifted)[:, None]

        def informed(point: Array) -> Array:
            """Return the point's own columns, moves from the start that noise explains shortened.

            Coefficients along flat directions have the prior of all: far longer ones are noise,
            so that collinear columns share their effect.
            """
            moves, n_outputs = (point - path[0]) / unit, public.n_outputs
            std = flat[:, 0] * np.linalg.norm(moves[:, n_outputs:], axis=1)
            return path[0][:, :n_outputs] + unit * shortened(moves[:, :n_outputs], std)

        hessian: Array | None = None
        secants = SecantRatio()
        local = defaults.local_sizes(oracle, float(sizes[0]))
        times, rate = _times(eigen, public, n_steps)
        rates = np.where(flat, 0.0, rate)
        times = 1 if self.hessian_share else min(self.most_releases, times)
        following, middle, kept = 0, n_steps // 2, 1
        for step, (size, cost) in enumerate(zip(sizes, shares, strict=True)):
            if step == middle > 0:
                kept = len(path)
                if oracle.checkpoint(transform @ informed(np.mean(path[kept // 2 :], axis=0))):
                    # Rows are longer than the Gram matrix knows, and so is the curvature larger.
                    row_norm, times = min(row_norm, ROW_FACTOR * expected), 1
                    shorter = max(shorter, CURVATURE_AFTER_WIDENING)
                    if public.signal_to_noise >= FRESH_START:
                        # Coefficients are too large for wider ranges, and would shrink slowly. The
                        # steps that remain reach as far from the start.
                        point, direction = path[0], rule.start()
            if step == following:
                here = informed(point)
                coef, noisy = transform @ here, np.zeros_like(here)
                if self.hessian_share and step == n_steps // 4:
                    hessian = _hessian(oracle, coef, coordinates, row_norm, self.hessian_share)
                largest = cap
                if step == 0 and not start.any():
                    largest = min(cap, (problem.loss.residual_at_zero or UNBOUNDED) * (1 + 1e-6))
                request = moments.ShrunkGradientSum(coef, row_norm, largest, coordinates)
                first, following = step, min(step + times, middle if step < middle else n_steps)
            answer, std = oracle.with_share(request, float(cost))
            noisy += answer / (following - first)
            if step + 1 < following:
                continue
            gradient = noisy + transform.T @ (public.total_weight * problem.penalty_gradient(coef))
            oracle.note_direction(gradient)
            if oracle.is_rehearsal:  # requests do not depend on the point, which would run away
                path.append(point)
                continue
            noises = np.zeros((len(point), followed))
            noises[:, step : step + 1] = std / math.sqrt(following - first)
            if hessian is not None:
                ratio = secants.next(here, gradient, std, hessian)
                inverse = curvature / ratio * np.linalg.inv(hessian)
                gradient = inverse @ gradient
                noises *= np.linalg.norm(inverse, axis=1, keepdims=True)
                may_restart = False  # the noise of its entries differs
            gradient = np.hstack([gradient, noises])
            if times > 1:
                ahead = rates**2 * (point - path[-2:][0])
                point = point - (1 + rates) ** 2 / 2 * gradient / curvature + ahead
            elif local is None:
                noise = (std / shorter,) if may_restart else ()
                move = size * direction(gradient / shorter, *noise)
                if hessian is None:
                    move = np.where(flat, size / _gain(self.momentum) * gradient / shorter, move)
                point = point - move
            else:
                point = point - local.next(point, gradient) * gradient
            path.append(point)
        # Without noise the last iterate is the best.
        result = np.mean(path[kept:], axis=0) if oracle.is_noisy else point
        coef = transform @ informed(result)
        if oracle.is_noisy and not oracle.is_rehearsal:
            moves, n_outputs = result - path[0], public.n_outputs
            noise = np.sqrt(transform**2 @ np.square(moves[:, n_outputs:]).sum(axis=1))
            size = np.abs(transform @ moves[:, :n_outputs]).max(axis=1) / noise
            is_noise = np.hypot(size, spread) < _needed(oracle, gram_std)
            coef[-1] += slope[is_noise] @ coef[is_noise]
            coef[is_noise] = 0.0
        return Solution(coef, len(path) - 1, slopes=tuple(oracle.gradient_lengths))


def _times(eigen: Spectrum, public: Public, n_steps: int) -> tuple[int, float]:
    """Return how many releases each step may have, and what the heavy ball leaves at each.

    With noise of norm w, an eigenvalue v is divided by ``v + 2 w`` at most: curvatures are at least
    ``v / (v + 2 w)``, and taken to be at most 2. Values below the noise are means of some that may
    be far less, and v**2 / w stands for them. Of the distance a step leaves r, with r**2 as
    momentum and ``(1 + r)**2 / 2`` as size (Polyak 1964). Half of the run leaves 1 over the signal
    to noise.
    """
    noise = eigen.noise_norm or 1.0  # without noise, any will do
    # At a small budget values below the noise call for as many points as there are releases.
    values = eigen.values - noise if n_steps <= PLAIN_STEPS else eigen.values**2 / noise
    values = np.clip(values, 0.001 * noise, eigen.values)
    root = math.sqrt(float((values / (values + 2 * noise)).min()) / 2)
    rate = (1 - root) / (1 + root)
    enough = max(math.log(public.signal_to_noise) / -math.log(rate), FEWEST_STEPS / 2)
    return max(1, int(n_steps / 2 / enough)), rate


def _needed(oracle: Oracle, gram_std: float) -> Array:
    """Return the number of noise deviations above which each coefficient is kept."""
    public, scaling = oracle.public, oracle.scaling
    usual = NONZERO_STDS if public.has_intercept else STRICT_STDS
    is_clear = public.n_rows >= CLEAR_SPREAD * gram_std
    needed = np.full(public.n_parameters, usual * is_clear)
    columns = None if scaling is None else scaling.columns
    if columns is not None and columns.may_be_constant is not None:
        needed[: columns.n_columns][columns.may_be_constant] = STRICT_STDS
    return needed


def _has_hessian(public: Public, problem: Problem) -> bool:
    """Return whether the Hessian of whitened rows can be released: for two classes."""
    return problem.loss.link == "logit" and problem.loss.separable and not public.streamed


def _hessian(
    oracle: Oracle, coef: Array, coordinates: moments.Coordinates, row_norm: float, share: float
) -> Array:
    """Return the Hessian in whitened coordinates, plus the norm of its noise.

    There rows are about as long in every direction, and so is the noise far smaller, next to the
    directions of little curvature, than that of the matrix that whitens.
    """
    public, problem, transform = oracle.public, oracle.problem, coordinates.matrix
    request = CappedHessian(coef, coordinates, row_norm, problem.loss.residual_bound or UNBOUNDED)
    answer, std = oracle.with_share(request, share)
    std = std or problem.loss.curvature * _gram_std(public, row_norm, share)
    known = transform.T @ defaults.penalty_hessian(problem, public) @ transform
    eigen = spectrum(moments.unpack_gram(answer, public.n_parameters), std, known)
    return np.asarray((eigen.vectors * (eigen.values + eigen.noise_norm)) @ eigen.vectors.T)


def _plain_steps(public: Public, problem: Problem, n_steps: int | None) -> tuple[int, float]:
    """Return the number of steps and the momentum where steps at a small budget are plain."""
    travel = growth(public, TRAVEL_GROWTH, start=PLAIN_GROWTH_START)
    more = min(math.sqrt(travel), MOST_TIMES)
    fewest, most = PLAIN_STEPS, defaults.MOMENTUM
    if problem.loss.link == "log":
        fewest, most = LOG_LINK_STEPS, 1 - 1 / MOST_TIMES
    return n_steps or math.ceil(fewest * more), min(1 - more / travel, most)


def _steps(
    public: Public, problem: Problem, n_steps: int | None, gram_std: float
) -> tuple[int, float]:
    """Return the number of steps and the momentum for a loss with bounded residuals.

    A column of unit size travels as far as by "gd". The noise of the Gram matrix shortens its
    steps, and so many times as far is to go.
    """
    noise = gram_std * math.sqrt(2.0 * public.n_parameters) / public.n_rows
    distance = defaults.travelled_distance(public, problem) * (1 + noise)
    distance *= defaults.column_curvature(public, problem)
    if n_steps is None:
        n_steps = max(math.ceil(SETTLING * math.sqrt(distance)), FEWEST_STEPS)
    step = problem.loss.curvature / defaults.typical_curvature(public, problem)
    return n_steps, max(0.0, 1 - n_steps * step / distance)


def _gram_std(public: Public, row_norm: float, gram_share: float) -> float:
    """Return the noise that a released Gram matrix would have: directions below it are small.

    Public second moments save budget; they are no reason to follow the noise of steps there. Nor is
    a Hessian that is public, as where labels alone are private.
    """
    if not public.is_noisy:
        return 0.0
    return float(row_norm**2 / (public.gradient_mu * math.sqrt(gram_share)))


def _residual_cap(public: Public, problem: Problem, row_factor: float) -> float:
    """Return the size to which larger residuals are capped by default, in the targets' unit.

    Bounded ones are capped so that gradients have the clipping norm of "gd".
    """
    if not public.is_noisy:
        return UNBOUNDED
    bound = problem.loss.largest_residual
    if bound is not None and public.streamed:
        return bound * min(1.0, 0.75 * growth(public, 0.25, start=150.0))
    if public.streamed:
        unit = defaults.target_unit(public) * math.sqrt(public.n_outputs)
        return STREAM_CAP * unit * growth(public, 0.25)
    if bound is not None:
        if moments.is_logistic_of_labels(public, problem):
            return bound  # residuals for two labels differ by no more: a cap saves little noise
        return min(bound, defaults.relative_clip(public, problem) / row_factor)
    unit = defaults.target_unit(public) * math.sqrt(public.n_outputs)
    # One size of the target at GROWTH_START, and less below it.
    ratio = public.signal_to_noise / defaults.GROWTH_START
    least = LEAST_LOG_CAP if problem.loss.link == "log" else 0.0
    return float(unit * max(ratio**CAP_GROWTH, least))


def _gain(momentum: base.AnyMomentum) -> float:
    """Return the step size by default, over that without momentum.

    Steps with Polyak's momentum may be as many times as long as it takes steps to build up. The
    first of averaged gradients is a full step, and would be too long.
    """
    rule = steps.momentum_rule(momentum)
    return 1 / (1 - rule.beta) if isinstance(rule, steps.HeavyBall) else 1.0


def _caution(public: Public, problem: Problem) -> float:
    """Return a factor on steps, below 1 for streams with little signal and unbounded residuals.

    A step there has the noise of its block alone, which no mean over many steps reduces.
    """
    if not public.streamed or problem.loss.residual_bound is not None:
        return 1.0
    return min(1.0, public.signal_to_noise / STREAM_AMPLE)


def _known_gram(public: Public, moments: Moments) -> Array:
    """Return the Gram matrix of the rows that a public sample suggests."""
    size = np.ones(len(moments.matrix))
    size[-1] = public.intercept_size
    gram = moments.matrix * np.outer(size, size) * public.total_weight
    return np.asarray(gram[: public.n_parameters, : public.n_parameters])
