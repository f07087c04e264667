"""Differentially private least squares with L1 and elastic-net penalties."""

from typing import Any

from scipy import sparse
from sklearn import linear_model
from sklearn.utils.validation import check_is_fitted

from skdp.fitting import parameters
from skdp.fitting.privacy import Privacy
from skdp.linear_model.documentation import documented
from skdp.linear_model.regression import DPLinearRegressor
from skdp.objective import Penalty, net


@documented
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
    >>> from skdp import DPElasticNet
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPElasticNet(alpha=1.0, epsilon=5.0, target_bound=350).fit(X, y)
    >>> model.sparse_coef_.shape
    (1, 10)
    """

    def __init__(
        self,
        alpha: float = 1.0,
        l1_ratio: float = 0.5,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        solver: parameters.SolverChoice = "auto",
        max_iter: int | parameters.Auto = "auto",
        learning_rate: parameters.StepSize = "auto",
        momentum: parameters.AnyMomentum = "auto",
        noise_schedule: parameters.RelativeNoise = "auto",
        clip_norm: parameters.ClipNorm = "auto",
        batch_size: int | float | None = None,
        scaling: parameters.Scaling = "auto",
        target_bound: float | None = None,
        constraint: parameters.ConstraintChoice = None,
        fit_intercept: bool = True,
        privacy: Privacy | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.epsilon = epsilon
        self.delta = delta
        self.solver = solver
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.noise_schedule = noise_schedule
        self.clip_norm = clip_norm
        self.batch_size = batch_size
        self.scaling = scaling
        self.target_bound = target_bound
        self.constraint = constraint
        self.fit_intercept = fit_intercept
        self.privacy = privacy
        self.verbose = verbose

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
    >>> from skdp import DPLasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPLasso(alpha=1.0, epsilon=5.0, target_bound=350).fit(X, y)
    >>> model.coef_.shape
    (10,)
    """

    l1_ratio = 1.0  # as of an elastic net, and no parameter

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        solver: parameters.SolverChoice = "auto",
        max_iter: int | parameters.Auto = "auto",
        learning_rate: parameters.StepSize = "auto",
        momentum: parameters.AnyMomentum = "auto",
        noise_schedule: parameters.RelativeNoise = "auto",
        clip_norm: parameters.ClipNorm = "auto",
        batch_size: int | float | None = None,
        scaling: parameters.Scaling = "auto",
        target_bound: float | None = None,
        constraint: parameters.ConstraintChoice = None,
        fit_intercept: bool = True,
        privacy: Privacy | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.epsilon = epsilon
        self.delta = delta
        self.solver = solver
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.noise_schedule = noise_schedule
        self.clip_norm = clip_norm
        self.batch_size = batch_size
        self.scaling = scaling
        self.target_bound = target_bound
        self.constraint = constraint
        self.fit_intercept = fit_intercept
        self.privacy = privacy
        self.verbose = verbose
