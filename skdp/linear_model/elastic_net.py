"""Differentially private least squares with L1 and elastic-net penalties."""

from dataclasses import field
from typing import Any, ClassVar

from scipy import sparse
from sklearn import linear_model
from sklearn.utils.validation import check_is_fitted

from skdp.fitting import parameters
from skdp.linear_model.documentation import documented
from skdp.linear_model.regression import DPLinearRegressor
from skdp.objective import Penalty, net


@documented
@parameters.declared
class DPElasticNet(DPLinearRegressor):
    """Differentially private least squares with an L1 and an L2 penalty.

    Minimises ``|y - Xw|^2 / (2 n) + alpha (l1_ratio |w|_1 + (1 - l1_ratio) / 2 |w|^2)``, as
    `sklearn.linear_model.ElasticNet` does; ``fit`` is (epsilon, delta)-differentially private for
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
    {references}
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

    def _penalty(self, n_rows: int) -> Penalty:
        return net(float(self.alpha), float(self.l1_ratio))


@documented
@parameters.declared
class DPLasso(DPElasticNet):
    """Differentially private least squares with an L1 penalty.

    Minimises ``|y - Xw|^2 / (2 n) + alpha |w|_1``, as `sklearn.linear_model.Lasso` does; ``fit`` is
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
    {references}

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
