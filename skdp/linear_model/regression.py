"""Differentially private regressions: least squares, robust ones, quantiles, and amounts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn import linear_model
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_pinball_score, d2_tweedie_score, r2_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skdp._fitting import parameters
from skdp._fitting.estimator import Fit
from skdp._fitting.parameters import documented
from skdp._fitting.refusals import InputError
from skdp._fitting.targets import Targets, range_of_targets
from skdp._numbers import AnyArray, AnyType, Array, MatrixLike, Table, are_numbers, is_real, require
from skdp._oracle import Solution
from skdp._stages.column_bounds import RowNorm, declared_targets
from skdp.accounting import PrivacyStatement
from skdp.linear_model import inference as intervals
from skdp.linear_model.base import DPLinearModel
from skdp.objective import (
    ElasticNet,
    Huber,
    Loss,
    SmoothedPinball,
    SquaredError,
    TweedieLog,
)
from skdp.objective.tweedie import LARGEST_RATIO


class DPLinearRegressor(RegressorMixin, DPLinearModel):
    """Base of the regressors: least squares without a penalty, unless they say otherwise."""

    _multi_output = True

    def predict(
        self, X: Table, return_std: bool = False, *, offset: ArrayLike | None = None
    ) -> Table:
        """Predict targets.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to return the mean response by the *debiased* coefficients instead, with its
            standard error, for intervals of the mean response. Rows are not clipped for it. Needs a
            fit with ``inference="coefficients"``.
        offset : array of shape (n_samples,) or None, default=None
            Added to each row's margin, as in ``fit``.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            With ``return_std``, a pair of arrays of shape (n_samples,): means and standard errors,
            which are inf unless all coefficients are determined.
        """
        loss = self._loss(1)
        if return_std:
            means, errors = intervals.mean_response(self, X)
            means = means + np.ravel(self._offset_of_rows(offset, len(means)))
            if loss.link != "log":
                return means, errors
            means = loss.mean(means)
            return means, means * errors  # the delta method
        scores = self._linear_predictor(X)
        scores = self._loss(scores.shape[1]).mean(scores)
        if self.prediction_range_ is not None:
            scores = np.clip(scores, *self.prediction_range_)
        # The range is one of targets without their offsets.
        known = self._offset_of_rows(offset, len(scores))
        scores = scores * np.exp(known) if loss.link == "log" else scores + known
        return scores[:, 0] if self.coef_.ndim == 1 else scores

    def score(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> float:
        """Return the coefficient of determination R2 of the predictions, computed without noise.

        It is not private: an `ExactScoreWarning` says so. So are the scores of scikit-learn's
        searches and of `cross_val_score`. `skdp.metrics.evaluate` scores with noise.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array of shape (n_samples,) or None, default=None
        offset : array of shape (n_samples,) or None, default=None
            Added to each row's margin, as in ``fit``.

        Returns
        -------
        float
        """
        return self._exact_score(r2_score, X, y, sample_weight, offset)

    @documented
    def plan(
        self,
        n_samples: int | None,
        n_features: int,
        n_outputs: int = 1,
        *,
        sparse: bool = False,
        n_groups: int | None = None,
        weighted: bool = False,
    ) -> PrivacyStatement:
        """Return the privacy statement of a fit that has not happened, without data.

        Parameters
        ----------
        {planned_shape}
        n_outputs : int, default=1
            Number of targets.
        {of_a_plan}

        Returns
        -------
        PrivacyStatement
        """
        require("plan: n_outputs", n_outputs, "be 1", self._multi_output or n_outputs == 1)
        return self._plan(n_samples, n_features, n_outputs, sparse, n_groups, weighted)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._multi_output
        return tags

    def _read_targets(self, y: Table, dtype: AnyType) -> Targets:
        if not are_numbers(np.asarray(y)):
            raise InputError("y must hold real numbers.")
        if not np.isfinite(np.asarray(y)).all():  # scikit-learn lets inf among objects pass
            raise InputError("X or y holds infinity (inf).")
        largest = np.finfo(dtype).max
        values: AnyArray = np.clip(y, -largest, largest).astype(dtype, copy=False)
        one = values.ndim == 1
        declared = declared_targets(self.scaling)
        if declared is not None and not self.fixed_effects:
            values = np.clip(values, *declared)
        values = values.reshape(len(values), -1)
        if values.shape[1] != 1 and not self._multi_output:
            raise InputError(
                f"y must have one column, got {values.shape[1]}. Fit each target separately."
            )
        return Targets(values, values.shape[1], is_column=one)

    def _declared_targets(self, n_outputs: int) -> Targets:
        shape = (2,) if n_outputs == 1 else (2, n_outputs)
        return self._read_targets(np.ones(shape), np.dtype(np.float64))

    def _target_assumptions(self) -> tuple[str, ...]:
        sentences = []
        if self.fixed_effects:
            sentences.append(
                "Columns and targets, and so their ranges and bounds, are deviations from the "
                "means of their group's rows, which follow from that group's rows alone. "
                "Predictions clip nothing."
            )
        declared = declared_targets(self.scaling)
        if declared is not None:
            sentences.append(
                "The range of targets, {:g} to {:g}, was chosen without looking at them. Targets "
                "outside were clipped to it.".format(*declared)
            )
        return tuple(sentences)

    def _show(self, coef: Array, intercept: Array, targets: Targets) -> None:
        self.intercept_: float | Array
        one = targets.is_column
        self.coef_ = coef[:, 0].copy() if one else coef.T.copy()
        if not self._has_intercept:
            self.intercept_ = 0.0
        else:
            self.intercept_ = float(intercept[0]) if one else intercept.copy()

    def _keep(self, solution: Solution, fit: Fit) -> None:
        super()._keep(solution, fit)
        n_outputs = fit.data.targets.n_outputs
        ranges = range_of_targets(solution.scaling, declared_targets(self.scaling), n_outputs)
        self.prediction_range_ = None if self.fixed_effects else ranges

    def _plain_model(self) -> Any:
        return linear_model.LinearRegression(fit_intercept=self._has_intercept)

    def _loss(self, n_outputs: int) -> Loss:
        return SquaredError()

    def _penalty(self, n_rows: int) -> ElasticNet:
        return ElasticNet()


@documented
@parameters.declared
class DPLinearRegression(intervals.Inference, DPLinearRegressor):
    """Differentially private ordinary least squares.

    Minimises the mean squared error over all rows. ``fit`` is (epsilon, delta)-differentially
    private for each row. The rows enter only through sums of clipped gradients with noise.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {coefficients}
    {fitted}
    {fitted_inference}

    References
    ----------
    {cited}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPLinearRegression, PublicRange
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPLinearRegression(epsilon=1.0, scaling=PublicRange(target=350)).fit(X, y)
    >>> model.privacy_.epsilon <= 1.0
    True

    Persons whose own level moves columns and targets alike, by differences within persons:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> person = np.repeat(np.arange(3000), 5)
    >>> level = rng.standard_normal(3000)[person]
    >>> X = rng.standard_normal((15000, 2)) + level[:, None]
    >>> y = X @ [1.0, -0.5] + 3 * level + rng.standard_normal(15000)
    >>> model = DPLinearRegression(fixed_effects=True).fit(X, y, groups=person)
    >>> bool(np.abs(model.coef_ - [1.0, -0.5]).max() < 0.2)
    True
    """

    fixed_effects: bool = False

    _calibrates = True


@documented
@parameters.declared
class DPRidge(intervals.Inference, DPLinearRegressor):
    """Differentially private least squares with an L2 penalty.

    Minimises ``|y - Xw|^2 + alpha |w|^2`` over all rows, as `sklearn.linear_model.Ridge` does.
    ``fit`` is (epsilon, delta)-differentially private for each row. The penalty costs no budget.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {coefficients}
    {fitted}
    {fitted_inference}

    References
    ----------
    {cited}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidge, PublicRange
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPRidge(alpha=10.0, scaling=PublicRange(target=350)).fit(X, y)
    >>> model.privacy_.epsilon <= 1.0
    True
    """

    alpha: float = field(default=1.0, kw_only=False)
    fixed_effects: bool = False

    _calibrates = True

    def _plain_model(self) -> Any:
        return linear_model.Ridge(self.alpha, fit_intercept=self._has_intercept)

    def _penalty(self, n_rows: int) -> ElasticNet:
        # scikit-learn's sum of squares, divided by 2 n.
        return ElasticNet(self.alpha / n_rows)


LARGEST_THRESHOLD = 1e50


@documented
@parameters.declared
class DPHuberRegressor(intervals.Inference, DPLinearRegressor):
    """Differentially private regression with Huber's loss.

    Minimises the mean of ``r^2 / 2`` where the residual r is at most ``threshold``, and of
    ``threshold (|r| - threshold / 2)`` where it is larger, plus ``alpha / (2 n) |w|^2``. ``fit`` is
    (epsilon, delta)-differentially private for each row. Outliers among the targets move it less
    than they move least squares, and as residuals are bounded, so are gradients: the noise need not
    cover them.

    Parameters
    ----------
    threshold : float, default=1.35
        Size of a residual beyond which the loss is linear (scikit-learn's ``epsilon``, which is the
        budget here), in units of ``scaling_.targets.scale``, the size of the targets that
        ``scaling`` estimates, or a quarter of a declared bound. Where ``scaling_`` or its
        ``targets`` is None, targets are not standardised, and it is in the unit of the targets:
        with ``scaling="none"`` or a `RowNorm`, and with a constraint, in ``fit_blocks``, and with
        ``delta=0``, unless a `PublicRange` declares columns and targets. scikit-learn's is in units
        of a scale that it estimates from the residuals.
    {parameters}

    Attributes
    ----------
    {coefficients}
    {fitted}
    {fitted_inference}

    References
    ----------
    {cited}
    P. Huber: Robust Estimation of a Location Parameter. Annals of Mathematical Statistics, 1964.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPHuberRegressor, PublicRange
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPHuberRegressor(epsilon=5.0, scaling=PublicRange(target=350)).fit(X, y)
    >>> model.predict(X).shape
    (442,)
    """

    threshold: float = field(default=1.35, kw_only=False)
    alpha: float = 0.0001

    def _check_own_parameters(self) -> None:
        fine = is_real(self.threshold) and 0 < self.threshold <= LARGEST_THRESHOLD
        allowed = f"be a positive number, at most {LARGEST_THRESHOLD:g}"
        require("threshold", self.threshold, allowed, fine)

    def _loss(self, n_outputs: int) -> Loss:
        return Huber(self.threshold)

    def _penalty(self, n_rows: int) -> ElasticNet:
        return ElasticNet(self.alpha / n_rows)


@documented
@parameters.declared
class DPElasticNet(DPLinearRegressor):
    """Differentially private least squares with an L1 and an L2 penalty.

    Minimises ``|y - Xw|^2 / (2 n) + alpha (l1_ratio |w|_1 + (1 - l1_ratio) / 2 |w|^2)``, as
    `sklearn.linear_model.ElasticNet` does. ``fit`` is (epsilon, delta)-differentially private for
    each row. The penalty costs no budget.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, at least 0, in scikit-learn's scale and the unit of the targets.
        The intercept is not penalised.
    l1_ratio : float, default=0.5
        Share of the L1 penalty, in [0, 1]: 0 is L2, 1 is L1.
    {parameters}

    Attributes
    ----------
    {coefficients}
    sparse_coef_ : sparse matrix of shape (1, n_features) or (n_targets, n_features)
        ``coef_`` without its zeros.
    {fitted}

    Notes
    -----
    Steps are proximal: each ends with a soft threshold. Noise makes coefficients differ from 0
    that would be 0 without it, the more so the smaller the budget is, so which ones are 0 is a
    hint, and no test of which columns matter.

    References
    ----------
    {cited}
    D. Wang, M. Ye, J. Xu: Differentially Private Empirical Risk Minimization Revisited: Faster and
    More General. NeurIPS 2017 (proximal steps).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPElasticNet, PublicRange
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPElasticNet(alpha=1.0, epsilon=5.0, scaling=PublicRange(target=350)).fit(X, y)
    >>> model.sparse_coef_.shape
    (1, 10)
    """

    alpha: float = field(default=1.0, kw_only=False)
    l1_ratio: float = field(default=0.5, kw_only=False)

    @property
    def sparse_coef_(self) -> sparse.csr_array:
        """``coef_`` without its zeros."""
        check_is_fitted(self, "coef_")
        return sparse.csr_array(self.coef_.reshape(-1, self.n_features_in_))

    def _plain_model(self) -> Any:
        plain = linear_model.ElasticNet(
            self.alpha, l1_ratio=self.l1_ratio, fit_intercept=self.fit_intercept
        )
        if self.l1_ratio == 1:
            plain = linear_model.Lasso(self.alpha, fit_intercept=self.fit_intercept)
        plain.n_iter_ = self.n_iter_
        return plain

    def _penalty(self, n_rows: int) -> ElasticNet:
        return ElasticNet(float(self.alpha), float(self.l1_ratio))


@documented
@parameters.declared
class DPLasso(DPElasticNet):
    """Differentially private least squares with an L1 penalty.

    Minimises ``|y - Xw|^2 / (2 n) + alpha |w|_1``, as `sklearn.linear_model.Lasso` does. ``fit`` is
    (epsilon, delta)-differentially private for each row. The penalty costs no budget. See the notes
    on `DPElasticNet`.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, at least 0, in scikit-learn's scale and the unit of the targets.
        The intercept is not penalised.
    {parameters}

    Attributes
    ----------
    {coefficients}
    sparse_coef_ : sparse matrix of shape (1, n_features) or (n_targets, n_features)
        ``coef_`` without its zeros.
    {fitted}

    References
    ----------
    {cited}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPLasso, PublicRange
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPLasso(alpha=1.0, epsilon=5.0, scaling=PublicRange(target=350)).fit(X, y)
    >>> model.coef_.shape
    (10,)
    """

    l1_ratio: ClassVar[float] = 1.0  # type: ignore[misc]  # not a parameter here


@documented
@parameters.declared
class DPQuantileRegressor(DPLinearRegressor):
    """Differentially private regression of one quantile of the target, or of several.

    Minimises the mean pinball loss plus ``alpha |w|_1``, as
    `sklearn.linear_model.QuantileRegressor` does. ``fit`` is (epsilon, delta)-differentially
    private for each row. Several quantiles are one release of a matrix at each step: the budget is
    not split over them.

    Parameters
    ----------
    quantile : float, default=0.5
        Quantile to predict, in (0, 1).
    quantiles : sequence of float or None, default=None
        Several of them, in place of ``quantile``. ``coef_`` has a row for each, in this order, and
        predictions have a column. Those of a row are sorted, so that they do not cross
        (Chernozhukov, Fernandez-Val, Galichon 2010).
    alpha : float, default=0.0
        Strength of the L1 penalty, in the unit of the target as scikit-learn's, whose default is 1.
    {parameters}

    Attributes
    ----------
    {coefficients}
    {fitted}

    Notes
    -----
    The kink of the loss is smoothed, at a width that follows from public facts: from 0.2 standard
    deviations of the target where there is much noise to 0.01 where there is little.

    References
    ----------
    {cited}
    R. Koenker, G. Bassett: Regression Quantiles. Econometrica, 1978.
    V. Chernozhukov, I. Fernandez-Val, A. Galichon: Quantile and Probability Curves Without
    Crossing. Econometrica, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((10000, 2))
    >>> y = X[:, 0] + rng.standard_normal(10000)
    >>> model = DPQuantileRegressor(quantiles=[0.1, 0.9]).fit(X, y)
    >>> low, high = model.predict(X).T
    >>> bool(0.75 < np.mean((low < y) & (y < high)) < 0.85)
    True
    """

    _multi_output = False
    _calibrates = True

    quantile: float = field(default=0.5, kw_only=False)
    quantiles: Sequence[float] | None = None
    alpha: float = 0.0

    def predict(
        self, X: Table, return_std: bool = False, *, offset: ArrayLike | None = None
    ) -> Table:
        """Predict quantiles.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        return_std : bool, default=False
            Refused if True: quantile regression has no standard errors here.
        offset : array of shape (n_samples,) or None, default=None
            Added to each row's margin, as in ``fit``.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_quantiles)
        """
        predicted = super().predict(X, return_std, offset=offset)
        if self.quantiles is None:
            return predicted
        order = np.argsort(np.argsort(self._quantiles, kind="stable"), kind="stable")
        return np.sort(predicted, axis=1)[:, order]

    def score(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> float:
        """Return D2 of the pinball loss, the mean over several quantiles, without noise.

        It is not private: an `ExactScoreWarning` says so.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or None, default=None
        offset : array of shape (n_samples,) or None, default=None
            Added to each row's margin, as in ``fit``.

        Returns
        -------
        float
        """

        def mean_d2(y: ArrayLike, predicted: AnyArray, **weights: Table) -> float:
            pairs = zip(self._quantiles, np.atleast_2d(predicted.T), strict=True)
            return float(np.mean([d2_pinball_score(y, p, alpha=q, **weights) for q, p in pairs]))

        return self._exact_score(mean_d2, X, y, sample_weight, offset)

    @property
    def _output_names(self) -> Iterable[object]:
        return self._quantiles

    def _plan(
        self, n_samples: int | None, n_features: int, n_outputs: int, *shape: Any
    ) -> PrivacyStatement:
        self._check_parameters()
        return super()._plan(n_samples, n_features, len(self._quantiles), *shape)

    @property
    def _quantiles(self) -> tuple[float, ...]:
        return (self.quantile,) if self.quantiles is None else tuple(self.quantiles)

    def _check_own_parameters(self) -> None:
        fine = is_real(self.quantile) and 0 < self.quantile < 1
        allowed = "be a number in (0, 1). Several quantiles go into quantiles=[...]"
        require("quantile", self.quantile, allowed, fine)
        fine = self.quantiles is None or (np.ndim(self.quantiles) == 1 and len(self.quantiles) > 0)
        fine = fine and all(is_real(one) and 0 < one < 1 for one in self._quantiles)
        require("quantiles", self.quantiles, "be a list of numbers in (0, 1)", fine)

    def _read_targets(self, y: Table, dtype: AnyType) -> Targets:
        targets = super()._read_targets(y, dtype)
        n_quantiles = len(self._quantiles)
        values = np.repeat(targets.values, n_quantiles, axis=1)
        return Targets(values, n_quantiles, is_column=self.quantiles is None)

    def _declared_targets(self, n_outputs: int) -> Targets:
        return self._read_targets(np.ones(2), np.dtype(np.float64))

    def _plain_model(self) -> Any:
        given = {"alpha": self.alpha, "fit_intercept": self.fit_intercept}
        return linear_model.QuantileRegressor(quantile=self._quantiles[0], **given)

    def _loss(self, n_outputs: int) -> Loss:
        return SmoothedPinball(self._quantiles)

    def _penalty(self, n_rows: int) -> ElasticNet:
        return ElasticNet(self.alpha, l1_ratio=1.0)


@parameters.declared
class DPTweedieModel(intervals.Inference, DPLinearRegressor):
    """Base of generalised linear models whose variance is a power of the mean."""

    _multi_output = False
    _calibrates = True
    power = 1.0
    link = "log"
    alpha: float = 0.0

    def score(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> float:
        """Return D2, the share of the deviance that is explained, computed without noise.

        It is not private: an `ExactScoreWarning` says so. `skdp.metrics.evaluate` scores with
        noise.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or None, default=None
        offset : array of shape (n_samples,) or None, default=None
            Added to each row's margin, as in ``fit``.

        Returns
        -------
        float
        """
        metric = partial(d2_tweedie_score, power=self.power)
        return self._exact_score(metric, X, y, sample_weight, offset)

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
        if self.power and declared_targets(self.scaling) is not None:
            texts += (
                "Within the declared range of targets, a narrower one is estimated privately.",
            )
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

    def _penalty(self, n_rows: int) -> ElasticNet:
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
