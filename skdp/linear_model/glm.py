"""Differentially private generalised linear models of counts, costs and other amounts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn import linear_model
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import Tags

from skdp._fitting import parameters
from skdp._fitting.estimator import Fit
from skdp._fitting.refusals import InputError
from skdp._fitting.targets import Targets
from skdp._numbers import AnyType, MatrixLike, Table, is_real, require
from skdp._oracle import Solution
from skdp._stages.column_bounds import RowNorm, declared_targets
from skdp.linear_model import inference as intervals
from skdp.linear_model.documentation import documented
from skdp.linear_model.regression import DPLinearRegressor
from skdp.objective import ElasticNet, Loss, Penalty, SquaredError, TweedieLog
from skdp.objective.tweedie import LARGEST_RATIO


@parameters.declared
class DPTweedieModel(intervals.Inference, DPLinearRegressor):
    """Base of generalised linear models whose variance is a power of the mean."""

    _multi_output = False
    _calibrates = True
    power = 1.0
    link = "log"
    alpha: float = 0.0

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return D2, the share of the deviance that is explained, computed without noise.

        It is not private: an `ExactScoreWarning` says so. `skdp.metrics.evaluate` scores with
        noise.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or None, default=None

        Returns
        -------
        float
        """
        return self._exact_score(partial(d2_tweedie_score, power=self.power), X, y, sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = bool(self.power != 0)
        return tags

    def _read_targets(self, y: Table, dtype: AnyType) -> Targets:
        targets = super()._read_targets(y, dtype)
        given = np.asarray(y)
        least = 0.0 if given.size == 0 else given.min()
        if (least <= 0 if self.power == 2 else least < 0) and self.power != 0:
            raise InputError(f"y must be {self._valid} everywhere, and it is not.")
        if self.power == 2:  # a positive target may be 0 in float32
            values = np.maximum(targets.values, np.finfo(dtype).smallest_subnormal)
            targets = replace(targets, values=values)
        return targets

    @property
    def _valid(self) -> str:
        return "positive" if self.power == 2 else "at least 0"

    def _target_assumptions(self) -> tuple[str, ...]:
        texts = super()._target_assumptions()
        return (*texts, f"That targets are {self._valid} is public.") if self.power else texts

    def _keep(self, solution: Solution, fit: Fit) -> None:
        super()._keep(solution, fit)
        if self.prediction_range_ is not None and self.power:
            low, high = self.prediction_range_
            self.prediction_range_ = np.maximum(low, 0.0), high

    def _sklearn_estimator(self, **arguments: Any) -> Any:
        """Return scikit-learn's own estimator."""
        return linear_model.TweedieRegressor(power=self.power, link=self.link, **arguments)

    def _plain_model(self) -> Any:
        plain = self._sklearn_estimator(alpha=self.alpha, fit_intercept=self.fit_intercept)
        plain._base_loss = plain._get_loss()  # which its fit would set, and its predict needs
        return plain

    def _loss(self, n_outputs: int) -> Loss:
        if self.power == 0:
            return SquaredError()
        largest = LARGEST_RATIO
        raw = isinstance(self.scaling, RowNorm) or self.scaling == "none"
        declared = declared_targets(self.scaling)
        if raw and declared is not None:
            largest = max(largest, 2 * declared[1])
        return TweedieLog(self.power, largest)

    def _penalty(self, n_rows: int) -> Penalty:
        return ElasticNet(self.alpha)


@documented
@parameters.declared
class DPPoissonRegressor(DPTweedieModel):
    """Differentially private Poisson regression, of counts and rates, with a log link.

    Minimises the mean of half the Poisson deviance, ``exp(x'w) - y x'w`` up to a constant. ``fit``
    is (epsilon, delta)-differentially private for each row. Targets are at least 0 and need not be
    integers: the estimate is that of a quasi-likelihood.

    Parameters
    ----------
    alpha : float, default=0.0
        Strength of the L2 penalty ``alpha / 2 |w|^2`` next to the mean of half the deviance of
        targets in units of their mean. The intercept is not penalised. With ``scaling="none"``
        targets keep their unit, and the objective is scikit-learn's, where the default is 1, up to
        means of 20 or twice the largest declared target. With noise means should then be of about
        unit size, for which default step sizes are made.
    {parameters}

    Attributes
    ----------
    {coefficients}
    {fitted}
    {fitted_inference}

    Notes
    -----
    The link is logarithmic up to 20 times the mean of all targets and a straight line beyond, only
    in the fit, so that the curvature of the loss is bounded. The mean is estimated privately, as
    part of ``scaling``. Predictions are exponentials, cut to ``prediction_range_``.

    ``sample_weight`` serves as exposure, with the rate, the count over its exposure, as y, in a
    unit in which exposures are about 1, as person-years: the noise fits weights of 1, and residuals
    are cut after they were weighted, so that weights of 100 distort a fit. Without an intercept,
    means are in the unit of y: they should be of about unit size.

    References
    ----------
    {cited}
    P. McCullagh, J. Nelder: Generalized Linear Models. Chapman and Hall, 1989.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((10000, 3))
    >>> y = rng.poisson(np.exp(X @ [0.5, -0.5, 0.0]))
    >>> model = DPPoissonRegressor().fit(X, y)
    >>> bool(np.abs(model.coef_ - [0.5, -0.5, 0.0]).max() < 0.1)
    True
    """

    _sklearn_estimator = linear_model.PoissonRegressor


@documented
@parameters.declared
class DPGammaRegressor(DPTweedieModel):
    """Differentially private gamma regression, of positive amounts, with a log link.

    Minimises the mean of half the gamma deviance, ``y exp(-x'w) + x'w`` up to a constant. ``fit``
    is (epsilon, delta)-differentially private for each row. Targets are positive.

    Parameters
    ----------
    alpha : float, default=0.0
        Strength of the L2 penalty ``alpha / 2 |w|^2`` next to the mean of half the deviance of
        targets in units of their mean. The intercept is not penalised. With ``scaling="none"``
        targets keep their unit, and the objective is scikit-learn's, where the default is 1, up to
        means of 20 or twice the largest declared target. With noise means should then be of about
        unit size, for which default step sizes are made.
    {parameters}

    Attributes
    ----------
    {coefficients}
    {fitted}
    {fitted_inference}

    Notes
    -----
    The link is logarithmic from a twentieth to 20 times the mean of all targets, and the loss is a
    parabola beyond, only in the fit, so that its curvature is bounded. The mean is estimated
    privately, as part of ``scaling``. Predictions are exponentials, cut to ``prediction_range_``.

    ``sample_weight`` serves as exposure, with the rate, the count over its exposure, as y, in a
    unit in which exposures are about 1, as person-years: the noise fits weights of 1, and residuals
    are cut after they were weighted, so that weights of 100 distort a fit. Without an intercept,
    means are in the unit of y: they should be of about unit size.

    References
    ----------
    {cited}
    P. McCullagh, J. Nelder: Generalized Linear Models. Chapman and Hall, 1989.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPGammaRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((10000, 3))
    >>> y = rng.gamma(2.0, np.exp(X @ [0.5, -0.5, 0.0]) / 2)
    >>> model = DPGammaRegressor().fit(X, y)
    >>> bool(np.abs(model.coef_ - [0.5, -0.5, 0.0]).max() < 0.1)
    True
    """

    power = 2.0
    _sklearn_estimator = linear_model.GammaRegressor


@documented
@parameters.declared
class DPTweedieRegressor(DPTweedieModel):
    """Differentially private regression with the deviance of Tweedie's family.

    Minimises the mean of half the deviance. ``fit`` is (epsilon, delta)-differentially private for
    each row. With a log link targets are at least 0, with power 2 positive.

    Parameters
    ----------
    power : float, default=0.0
        Power of the mean that the variance is proportional to: 0 (normal), 1 (Poisson), between 1
        and 2 (compound Poisson-gamma, amounts of which many are 0) or 2 (gamma). With a log link
        other powers do not make for a convex loss.
    link : {"auto", "identity", "log"}, default="auto"
        "auto" is "identity" for power 0 and "log" for other powers. No other combination is
        possible.
    alpha : float, default=0.0
        Strength of the L2 penalty ``alpha / 2 |w|^2`` next to the mean of half the deviance of
        targets in units of their mean. The intercept is not penalised. With ``scaling="none"``
        targets keep their unit, and the objective is scikit-learn's, where the default is 1, up to
        means of 20 or twice the largest declared target. With noise means should then be of about
        unit size, for which default step sizes are made.
    {parameters}

    Attributes
    ----------
    {coefficients}
    {fitted}
    {fitted_inference}

    Notes
    -----
    A log link is logarithmic up to 20 times the mean of all targets and, for powers above 1, from a
    twentieth of it on. The loss is a parabola beyond, only in the fit, so that its curvature is
    bounded. The mean is estimated privately, as part of ``scaling``. Predictions are exponentials,
    cut to ``prediction_range_``.

    ``sample_weight`` serves as exposure, with the rate, the count over its exposure, as y, in a
    unit in which exposures are about 1, as person-years: the noise fits weights of 1, and residuals
    are cut after they were weighted, so that weights of 100 distort a fit. Without an intercept,
    means are in the unit of y: they should be of about unit size.

    References
    ----------
    {cited}
    P. McCullagh, J. Nelder: Generalized Linear Models. Chapman and Hall, 1989.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPTweedieRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((30000, 3))
    >>> y = rng.poisson(0.5, 30000) * rng.gamma(2.0, np.exp(X @ [0.5, -0.5, 0.0]))
    >>> model = DPTweedieRegressor(power=1.5).fit(X, y)
    >>> bool(np.abs(model.coef_ - [0.5, -0.5, 0.0]).max() < 0.2)
    True
    """

    power: float = 0.0
    link: str = "auto"

    def _check_own_parameters(self) -> None:
        power, link = self.power, self.link
        fine = is_real(power) and (power == 0 or 1 <= power <= 2)
        require("power", power, "be 0 or lie in [1, 2]", fine)
        only = "identity" if power == 0 else "log"
        allowed = f"be 'auto' or {only!r} with power={power:g}"
        require("link", link, allowed, isinstance(link, str) and link in ("auto", only))
