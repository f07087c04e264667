"""Differentially private quantile regression."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn import linear_model
from sklearn.metrics import d2_pinball_score

from skdp._numbers import AnyArray, AnyType, MatrixLike, Table, is_real, require
from skdp.accounting import PrivacyStatement
from skdp.fitting import parameters
from skdp.fitting.targets import Targets
from skdp.linear_model.documentation import documented
from skdp.linear_model.regression import DPLinearRegressor
from skdp.objective import ElasticNet, Loss, Penalty, SmoothedPinball


@documented
@parameters.declared
class DPQuantileRegressor(DPLinearRegressor):
    """Differentially private regression of one quantile of the target, or of several.

    Minimises the mean pinball loss plus ``alpha |w|_1``, as
    `sklearn.linear_model.QuantileRegressor` does; ``fit`` is (epsilon, delta)-differentially
    private for each row. Several quantiles are one release of a matrix at each step: the budget is
    not split over them.

    Parameters
    ----------
    quantile : float, default=0.5
        Quantile to predict, in (0, 1).
    quantiles : sequence of float or None, default=None
        Several of them, in place of ``quantile``. ``coef_`` has a row for each, in this order, and
        predictions have a column; those of a row are sorted, so that they do not cross
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

    def predict(self, X: Table, return_std: bool = False) -> Table:
        """Predict quantiles.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        return_std : bool, default=False
            Refused if True: quantile regression has no standard errors here.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_quantiles)
        """
        predicted = super().predict(X, return_std)
        if self.quantiles is None:
            return predicted
        order = np.argsort(np.argsort(self._quantiles, kind="stable"), kind="stable")
        return np.sort(predicted, axis=1)[:, order]

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return R2, of several quantiles the mean D2 of their pinball loss, without noise.

        It is not private: an `ExactScoreWarning` says so.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or None, default=None

        Returns
        -------
        float
        """
        if self.quantiles is None:
            return super().score(X, y, sample_weight)

        def mean_d2(y: ArrayLike, predicted: AnyArray, **weights: Table) -> float:
            pairs = zip(self._quantiles, predicted.T, strict=True)
            return float(np.mean([d2_pinball_score(y, p, alpha=q, **weights) for q, p in pairs]))

        return self._exact_score(mean_d2, X, y, sample_weight)

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
        allowed = "be a number in (0, 1); several quantiles go into quantiles=[...]"
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

    def _penalty(self, n_rows: int) -> Penalty:
        return ElasticNet(self.alpha, l1_ratio=1.0)
