"""The last stage of a fit: one Newton step from its solution, and the covariance of the result.

The solution of a private fit is biased: gradients are clipped, steps are few, penalties pull. One
Newton step of an estimating equation that bounds rows by a weight removes the bias if the model is
correctly specified (Simpson, Ruppert, Carroll 1992). All that the step uses is released with noise
of a known distribution, so the covariance of its result contains both the rows' share (a sandwich:
White 1980, with groups of rows, one of the groups' terms: Liang, Zeger 1986) and that of the noise
(Avella-Medina, Bradshaw, Loh 2021).

References
----------
D. Simpson, D. Ruppert, R. Carroll: On one-step GM estimates and stability of inferences in linear
regression. JASA 1992.
H. White: A heteroskedasticity-consistent covariance matrix estimator and a direct test for
heteroskedasticity. Econometrica 1980.
K.-Y. Liang, S. Zeger: Longitudinal data analysis using generalized linear models. Biometrika 1986.
M. Avella-Medina, C. Bradshaw, P.-L. Loh: Differentially private inference via noisy optimization.
arXiv:2103.11003, 2021.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator

from skdp._numbers import Array, is_real, require
from skdp._oracle import Oracle, Public, Solution
from skdp._oracle.releases import moments, record_sums
from skdp._stages.base import GAUSSIAN, OptionalStage, StageParameters, first_missing, is_regression
from skdp._stages.inference_bounds import (
    AHEAD,
    COUNT_SHARE,
    RESIDUAL_FACTOR,
    SHARE_OF_LOG_LINK,
    STAGE_SHARE,
    Bounds,
    MeanWeight,
    has_mean_release,
    mean_hessian,
    weighted_means,
)
from skdp.objective import Problem
from skdp.objective.tweedie import unbounded_unit
from skdp.solvers.core.shrinkage import LARGEST_CONDITION, inverse_of, spectrum
from skdp.solvers.defaults import GRAM_COLUMNS, UNBOUNDED, target_unit

# Choices of ours, by coverage and width of intervals on simulated rows (see bounds.py).
FIRST_RESIDUAL = 4.0  # cap of residuals whose variance is requested, in target units
EVENTS = 1.5  # least cap of residuals with a log link, in sizes of an event
N_VARIANCES = 3  # answers about it, in turn, if the loss is not quadratic
LEAST_VARIANCE, MOST_VARIANCE = 0.02, 1.2  # of residuals, as caps take it, in squared target units
MEAN_FACTOR = 3.0  # least cap of residuals for the intercept, next to that for the step
LEAST_WEIGHT = 0.25  # least mean square of the rows' weights that is not taken for noise
# Damping of the steps before the last one: eigenvalues of their Hessian are raised by this multiple
# of the spectral norm of its noise, so that no step is long where noise exceeds the rows.
DAMPING = 2.5

About = tuple[Array, moments.Coordinates, float, float]  # point, T, row_norm, and cap
Parts = tuple[Array, Array, float, float]  # Hessian and gradient, and the noise of either


@dataclass(frozen=True, eq=False)
class DebiasedEstimate:
    """A parameter without the bias of clipping and penalties, and its uncertainty.

    In standardised units, the intercept for a constant feature of size 1. All of it is noisy.

    Attributes
    ----------
    coef : array of shape (n_outputs * n_parameters,)
        Class after class. The intercept, if there is one, is last in each.
    covariance : array of shape (n_outputs * n_parameters, n_outputs * n_parameters)
        Of ``coef`` around its estimand, over rows and noise.
    privacy_covariance : array of the same shape
        The part of it that the noise accounts for.
    relative_error : array of shape (n_outputs * n_features,)
        Largest relative error, to first order, that noise causes in the inverse Hessian in the
        direction of each coefficient.
    cut : float
        Share of the records, a noisy count, whose row was shortened or whose residual was capped.
    mean_weight : MeanWeight or None, default=None
        Of logistic regression with two classes.
    covariance_noise : float, default=0.0
        Standard deviation of noise on the diagonal of ``covariance``, next to that of
        ``privacy_covariance``, where the latter is a multiple of the identity.
    """

    coef: Array
    covariance: Array
    privacy_covariance: Array
    relative_error: Array
    cut: float
    mean_weight: MeanWeight | None = None
    covariance_noise: float = 0.0


@dataclass(frozen=True, eq=False)
class _Step:
    """What was released about the estimating equation at the solution, as means over rows.

    In whitened coordinates, those of ``transform``. Of several classes there are these of each of
    the contrasts.

    Attributes
    ----------
    transform : array of shape (n_parameters, n_parameters)
    contrasts : array of shape (n_outputs, n_contrasts)
    hessian, squares : array of shape (n_contrasts * n_parameters, n_contrasts * n_parameters)
        ``squares`` are second moments of the equation's terms.
    gradient : array of shape (n_contrasts * n_parameters,)
    hessian_std, squares_std, gradient_std : float
        Noise on the diagonals of Hessian and squares, and on the gradient.
    n_rows : int
    """

    transform: Array
    contrasts: Array
    hessian: Array
    squares: Array
    gradient: Array
    hessian_std: float
    squares_std: float
    gradient_std: float
    n_rows: int

    def spread_of_means(self, variance: float, mean_weight: float) -> float:
        """Variance of a record's part of the mean residual. That of rows, if it is smaller.

        The last column of the records is 1, so in their own coordinates the last entry of the
        squares is the mean of ``(mean of c(f r) f)**2``, and that of the Hessian the mean of
        ``w f**2``: over the mean of the working weights w it is about the mean of f**2.
        Two standard deviations of the noise are added: a variance that is too small by chance would
        make for intervals that are.
        """
        last = np.linalg.inv(self.transform)[:, -1]
        weight = float(last @ self.hessian @ last) / mean_weight
        if not weight > LEAST_WEIGHT:
            return variance
        spread = float(last @ self.squares @ last) + 2 * self.squares_std * float(last @ last)
        return min(spread / weight, variance)

    def covariance_with_mean(self) -> Array:
        """Covariance of the coefficients' sampling errors with the mean residual, less its sign."""
        last = np.linalg.inv(self.transform)[:, -1]
        inverse = np.linalg.pinv(self.hessian, 1 / LARGEST_CONDITION, hermitian=True)
        return np.asarray(self.transform @ inverse @ self.squares @ last) / self.n_rows

    def estimate(self, point: Array, n_features: int, cut: float) -> DebiasedEstimate:
        """Return the parameter after the step from the point, with its covariance.

        For squared error the error of the step is ``H^-1 (N_H delta - N_g - e)``, exactly, with
        N the noise of Hessian and gradient, delta the step and e the sampling error of the
        gradient. N_H is symmetric with variance s**2 on the diagonal and s**2 / 2 off it, so the
        covariance of ``N_H delta`` is ``s**2 / 2 (|delta|**2 I + delta delta')``.

        The blocks of a Hessian of several classes are symmetric, too. Once its noise is made so,
        it is that of products of two such matrices, one of contrasts, one of columns. With D the
        step, a row for each contrast, the covariance of ``N_H delta`` is ``s**2 / 4`` times
        ``|D|**2 I x I + I x D'D + D D' x I + delta delta'``, which is the above for one row.
        """
        n_contrasts, size = self.contrasts.shape[1], len(self.gradient)
        transform = np.kron(self.contrasts, self.transform)
        inverse = inverse_of(self.hessian)
        back = transform @ inverse
        step = inverse @ self.gradient
        # 1. Noise, and sampling errors: noise may have made their covariance indefinite.
        along, steps = 0.25 * self.hessian_std**2, step.reshape(n_contrasts, -1)
        variance = self.gradient_std**2 + along * float(step @ step)
        noise = variance * np.eye(size)
        noise += along * np.outer(step, step)
        noise += along * np.kron(np.eye(n_contrasts), steps.T @ steps)
        noise += along * np.kron(steps @ steps.T, np.eye(size // n_contrasts))
        squares, directions = np.linalg.eigh(self.squares)
        sampling = (directions * np.maximum(squares, 0.0)) @ directions.T
        # HC1: residuals of n rows around p fitted parameters are smaller than the errors.
        n_free = max(self.n_rows - size, 1)
        sampling /= n_free
        # 2. Back to the coordinates of the rows, and to classes.
        privacy = back @ noise @ back.T
        # 3. How far the noise of the Hessian changes its inverse. Directions in which rows do not
        #    vary at all are not determined without noise either.
        least = 10 * float(np.linalg.norm(self.hessian, 2)) / LARGEST_CONDITION
        noise_norm = max(self.hessian_std * _noise_norm(self.contrasts, size), least)
        n_outputs = len(point.T)
        axes = transform.reshape(n_outputs, -1, size)[:, :n_features].reshape(-1, size)
        error = noise_norm * np.linalg.norm(axes @ inverse, axis=1) / np.linalg.norm(axes, axis=1)
        return DebiasedEstimate(
            coef=(self.contrasts @ self.contrasts.T @ point.T).ravel() - back @ self.gradient,
            covariance=privacy + back @ sampling @ back.T,
            privacy_covariance=privacy,
            relative_error=error,
            cut=cut,
            covariance_noise=self.squares_std / n_free / variance if variance > 0 else 0.0,
        )


class CoefficientInference(BaseEstimator):
    """Request standard errors, intervals and p-values of the coefficients of a fit.

    Parameters
    ----------
    share : float or "auto", default="auto"
        Share of the budget, in mu squared, that the inference gets after scaling, in (0, 1). More
        of it makes intervals narrower and ``coef_`` noisier. "auto" is a third, and three fifths
        with a log link where that is expected to determine the coefficients.

    Examples
    --------
    >>> from skdp import CoefficientInference, DPRidge
    >>> DPRidge(inference=CoefficientInference(share=0.5)).plan(100_000, 5).releases[-1].kind
    'capped_residuals'
    """

    def __init__(self, share: float | Literal["auto"] = "auto") -> None:
        self.share = share


def inference_share(inference: object) -> float | Literal["auto"] | None:
    """Return the share that a value of the parameter ``inference`` stands for, None for none.

    Raises
    ------
    ValueError
        If it is no such value, or the share is out of its range.
    """
    if inference is None or inference is False:
        return None
    if inference is True or (isinstance(inference, str) and inference == "coefficients"):
        inference = CoefficientInference()
    if not isinstance(inference, CoefficientInference):
        allowed = "be a bool, None, 'coefficients' or CoefficientInference(share)"
        require("inference", inference, allowed, is_valid=False)
        return None
    share = inference.share
    if isinstance(share, str) and share == "auto":
        return "auto"
    is_valid = is_real(share) and 0 < share < 1
    require("CoefficientInference: share", share, "be a number in (0, 1) or 'auto'", is_valid)
    return float(share)


@dataclass(frozen=True, eq=False)
class InferenceStage(OptionalStage):
    """A debiased parameter beside the solution, with the covariance that intervals need.

    The solution itself stays as it is. Rows are standardised by the affine part of the scaling:
    clipped columns would have another regression.

    Parameters
    ----------
    share : float
        Of the rest of mu squared after scaling, in (0, 1).
    """

    share: float
    title: ClassVar[str] = "inference"
    place: ClassVar[str] = "after"

    @classmethod
    def concerns(cls, problem: Problem, parameters: StageParameters) -> bool:
        return parameters.inference_share is not None

    @classmethod
    def demanded(cls, public: Public, problem: Problem, parameters: StageParameters) -> str | None:
        return "inference about coefficients"

    @classmethod
    def applies(cls, public: Public, problem: Problem, parameters: StageParameters) -> str | None:
        loss, provided = problem.loss, problem.provides
        n_outputs, n_contrasts = loss.contrasts.shape
        needs = {
            f"a loss that declares working weights; {loss.name} has none": loss.weight_bound
            is None,
            "one target. Fit each target separately": public.n_outputs != n_outputs,
            # In units of their own, residuals would be capped at the size of one event.
            "a scaling that finds the unit of the targets, with a log link": loss.link == "log"
            and parameters.scaling == "none",
            "no L1 penalty and no constraint: the estimate would not be normal around the truth": (
                not provided.issuperset(("smooth_penalty", "unconstrained"))
            ),
            GAUSSIAN: public.has_laplace_noise,
            "rows that can be read more than once; fit_blocks reads them once": public.streamed,
            "a solver that plans its noise beforehand, such as solver='auto'": parameters.adaptive,
            "records without weights: sample_weight=None, class_weight=None": public.has_weights
            and not is_regression(problem),
            f"at most {GRAM_COLUMNS} columns, over the number of classes less one where there are "
            "several, as it releases matrices of them": public.n_features * n_contrasts
            > GRAM_COLUMNS,
        }
        return first_missing(needs)

    @classmethod
    def of(cls, public: Public, problem: Problem, parameters: StageParameters) -> Self:
        share = parameters.inference_share
        assert share is not None
        if share == "auto":
            is_log = problem.loss.link == "log"
            is_certain = is_log and Bounds.of(public, problem, SHARE_OF_LOG_LINK).is_certain
            share = SHARE_OF_LOG_LINK if is_certain else STAGE_SHARE
        return cls(share)

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        public, problem = oracle.public, oracle.problem
        bounds = Bounds.of(public, problem, self.share)
        oracle.unclip(solution.scaling)
        loss, point = problem.loss, solution.coef.copy()
        if public.has_intercept:
            point[-1] *= public.intercept_size  # the constant feature has size 1 from here on

        # 1. Coordinates in which rows are about as long in every direction.
        gram, coordinates = self._coordinates(oracle, point, bounds)

        # 2. The step.
        if is_regression(problem):
            cap, most, variance = self._residual_bounds(oracle, point, bounds, gram)
            if oracle.is_noisy and problem.loss.residual_bound is not None:
                cap = min(cap, problem.loss.residual_bound)
        else:
            cap = (loss.residual_bound or 1.0) if oracle.is_noisy else UNBOUNDED
        about = point, coordinates, bounds.row_norm, cap
        about = self._steps_ahead(oracle, about, bounds)
        step, point = self._step(oracle, about, bounds), about[0]
        is_binary = loss.link == "logit" and loss.separable
        count = record_sums.CutCount(*about, is_binary)
        cut, cut_std = oracle.with_share(count, self.share * COUNT_SHARE)
        share_cut = min(max(float(cut[0]) / public.n_rows, 0.0), 1.0)
        estimate = step.estimate(point, public.n_features, share_cut)
        if is_binary:
            moved = point[:, 0], estimate.coef
            weight_of = MeanWeight.of(public, loss, gram, moved, cut, cut_std)
            estimate = replace(estimate, mean_weight=weight_of)

        # 3. Capped residuals move the intercept where errors are skewed: it gets its own answer.
        if has_mean_release(public, problem):
            estimate = self._with_mean(oracle, estimate, step, (gram, most, variance), bounds)
        return replace(solution, results={**solution.results, "debiased": estimate})

    def assumptions(self) -> tuple[str, ...]:
        return (
            "For intervals, columns and targets were centred and divided, not clipped to ranges. "
            "A record's part was bounded by shortening its row and capping its residual.",
        )

    def _coordinates(
        self, oracle: Oracle, point: Array, bounds: Bounds
    ) -> tuple[Array, moments.Coordinates]:
        """Return the mean Gram matrix, and coordinates in which it is about the identity."""
        public, problem = oracle.public, oracle.problem
        release = moments.GramSum(bounds.gram_norm)
        answer, std = oracle.with_share(release, self._part(bounds, "gram"))
        gram = moments.unpack_gram(answer, public.n_parameters) / public.total_weight
        std /= public.total_weight
        weighted = mean_hessian(problem.loss, gram, point[:, 0], public.has_intercept)
        eigen = spectrum(weighted, std)
        inflated = eigen.values + eigen.noise_norm
        if public.has_intercept:
            gram[-1, :-1] *= np.abs(gram[-1, :-1]) > 2 * std
            gram[:-1, -1] = gram[-1, :-1]
        return gram, moments.Coordinates(eigen.vectors / np.sqrt(inflated))

    def _with_mean(
        self,
        oracle: Oracle,
        estimate: DebiasedEstimate,
        step: _Step,
        seen: tuple[Array, float, float],
        bounds: Bounds,
    ) -> DebiasedEstimate:
        """Return the estimate with the intercept of one more answer, the mean residual.

        ``seen`` are the Gram matrix, the cap of residuals and their mean square.
        """
        public, loss, (gram, most, variance) = oracle.public, oracle.problem.loss, seen
        weight, means = weighted_means(loss, gram, estimate.coef)
        weight *= public.mean_weight
        request = record_sums.CappedResiduals(estimate.coef[:, None], most)
        answer, std = oracle.with_share(request, self._part(bounds, "mean"))
        # Residuals are predictions less targets.
        unit = weight * public.n_rows
        is_known = not (public.grouped or public.has_weights)
        spread = variance if is_known else step.spread_of_means(variance, weight)
        error = max(spread, 0.0) * public.n_rows / unit**2
        if not loss.quadratic:
            # Its means are not near 0, and noise must not make the error smaller.
            error += max(-2 * float(means @ step.covariance_with_mean()[:-1]) / weight, 0.0)
        # The intercept is the mean of the targets less the prediction from the columns' means. It
        # depends on the other coefficients and on the errors' mean, not on the step's intercept.
        coef, project = estimate.coef.copy(), np.eye(len(means) + 1)
        coef[-1] -= float(answer[0]) / unit
        project[-1, :-1], project[-1, -1] = -means, 0.0
        privacy = project @ estimate.privacy_covariance @ project.T
        covariance = project @ estimate.covariance @ project.T
        privacy[-1, -1] += (std / unit) ** 2
        covariance[-1, -1] += error + (std / unit) ** 2
        return replace(estimate, coef=coef, covariance=covariance, privacy_covariance=privacy)

    def _part(self, bounds: Bounds, name: str) -> float:
        return self.share * bounds.shares[name]

    def _residual_bounds(
        self, oracle: Oracle, point: Array, bounds: Bounds, gram: Array
    ) -> tuple[float, float, float]:
        """Return caps of residuals, for the step and for the intercept, and their mean square.

        The unit of targets says little about residuals where it is that of a few large amounts:
        each answer says where the next one may cut them. A cap below the size of single events,
        which is about the variance over the mean, would leave a share of each of them.
        """
        public, loss, scaling = oracle.public, oracle.problem.loss, oracle.scaling
        unit, per_variance, largest, uppers = target_unit(public), 0.0, 0.0, []
        least = LEAST_VARIANCE * unit**2
        if oracle.is_noisy and loss.link == "log" and scaling is not None and scaling.targets:
            targets = scaling.targets
            mean = weighted_means(loss, gram, point[:, 0])[0] if public.has_intercept else 1.0
            # A long tail is farther than histograms show.
            ratio = float(unbounded_unit(targets.centre, targets.scale, targets.high)[0])
            largest = EVENTS * ratio * unit / min(mean, 1.0)
            unit *= max(bounds.residual_factor / RESIDUAL_FACTOR, ratio)
            per_variance = float(targets.scale[0] / targets.centre[0]) / min(mean, 1.0)

        def cap_for(square: float) -> float:
            event = min(EVENTS * per_variance * square, largest, FIRST_RESIDUAL * unit)
            return max(bounds.residual_factor * math.sqrt(square), event)

        unit = min(unit, UNBOUNDED / FIRST_RESIDUAL)
        most = FIRST_RESIDUAL * unit if oracle.is_noisy else UNBOUNDED
        n_answers = 1 if loss.quadratic else N_VARIANCES
        for _ in range(n_answers):
            request = record_sums.ResidualSquares(point, most)
            answer, std = oracle.with_share(request, self._part(bounds, "scale") / n_answers)
            variance, error = float(answer[0]) / public.n_rows, 2 * std / public.n_rows
            uppers.append(max(max(variance, 0.0) + error, least))
            most = min(most, cap_for(uppers[-1]))
        if not oracle.is_noisy:
            return UNBOUNDED, UNBOUNDED, variance
        cap = cap_for(min(uppers[-1], MOST_VARIANCE * unit**2))
        # With a log link residuals are skewed, and were cut: least by the first answer.
        of_mean = max(cap, MEAN_FACTOR * bounds.residual_factor * math.sqrt(uppers[0]))
        return cap, of_mean, variance if loss.quadratic else max(uppers)

    def _step(self, oracle: Oracle, about: About, bounds: Bounds) -> _Step:
        """Return what is released for the last step, from one point, coordinates and bounds."""
        n_rows, loss = oracle.public.n_rows, oracle.problem.loss
        hessian, gradient, hessian_std, gradient_std = self._parts(oracle, about, bounds.shares)
        release = moments.ScoreSquares(*about)
        answer, std = oracle.with_share(release, self._part(bounds, "squares"))
        squares = moments.unpack_gram(answer, len(gradient)) / n_rows
        noise = hessian_std, std / n_rows
        basis = about[1].matrix, loss.contrasts
        return _Step(*basis, hessian, squares, gradient, *noise, gradient_std, n_rows)

    def _parts(self, oracle: Oracle, about: About, shares: Mapping[str, float]) -> Parts:
        """Return Hessian and gradient, as means, and their noise."""
        if not is_regression(oracle.problem):
            return self._joint(oracle, about, self.share * shares["step"])
        request = moments.ShrunkGradientSum(*about, True)
        gradient, gradient_std = oracle.with_share(request, self.share * shares["gradient"])
        curvature = moments.CappedHessian(*about)
        hessian, std = oracle.with_share(curvature, self.share * shares["hessian"])
        n_rows, hessian = oracle.public.n_rows, moments.unpack_gram(hessian, len(gradient))
        return hessian / n_rows, gradient[:, 0] / n_rows, std / n_rows, gradient_std / n_rows

    def _steps_ahead(self, oracle: Oracle, about: About, bounds: Bounds) -> About:
        """Take damped Newton steps towards the solution, from cheap releases.

        Nothing is estimated here: the step that follows is valid from any point near enough, and
        the distribution of its noise is that of fresh noise at a point that is given.
        """
        contrasts, size = oracle.problem.loss.contrasts, oracle.public.n_parameters
        for _ in range(bounds.n_steps_ahead):
            hessian, gradient, std, _ = self._parts(oracle, about, AHEAD)
            values, vectors = np.linalg.eigh(hessian)
            values = np.maximum(values, max(values[-1], 1e-300) / LARGEST_CONDITION)
            values += DAMPING * std * _noise_norm(contrasts, len(gradient))
            step = (vectors / values) @ (vectors.T @ gradient)
            following = about[0] - about[1].matrix @ step.reshape(-1, size).T @ contrasts.T
            # Without noise there may be no solution, as for classes that a line separates.
            if np.abs(following).max() < 1e100:
                about = following, *about[1:]
        return about

    def _joint(self, oracle: Oracle, about: About, share: float) -> Parts:
        """Return Hessian and gradient of a logistic loss, as means, and their noise."""
        n_rows, loss = oracle.public.n_rows, oracle.problem.loss
        n_contrasts = loss.contrasts.shape[1]
        size = oracle.public.n_parameters * n_contrasts
        both, std = oracle.with_share(moments.LogisticStep(*about), share)
        unit = moments.gradient_weight(loss) * about[2]
        hessian = moments.unpack_gram(both[:-size], size) / n_rows
        gradient = both[-size:] / (unit * n_rows)
        if n_contrasts > 1:  # its blocks are symmetric, but for the noise
            blocks = hessian.reshape(n_contrasts, -1, n_contrasts, size // n_contrasts)
            hessian = ((blocks + blocks.transpose(0, 3, 2, 1)) / 2).reshape(size, size)
        return hessian, gradient, std / n_rows, std / (unit * n_rows)


def _noise_norm(contrasts: Array, size: int) -> float:
    """Return the largest eigenvalue of the noise of a Hessian, over its standard deviation.

    About sqrt(2 p) for p columns. The noise of products of symmetric matrices, of J contrasts and
    p columns, has rows of (J + 1) (p + 1) / 4 times the variance of an entry on the diagonal, so
    that its spectrum ends near twice the root of that (the semicircle law, Wigner 1958).
    """
    n_contrasts = contrasts.shape[1]
    return math.sqrt((n_contrasts + 1) * size / n_contrasts)
