"""Ridge regression that chooses its penalty by cross-validation, at the price of one release."""

from typing import Any

import numpy as np

from skdp._numbers import is_integer, require
from skdp.accounting import PrivacyStatement
from skdp.linear_model._estimator import Prepared
from skdp.linear_model.documentation import documented
from skdp.linear_model.regression import DPLinearRegressor
from skdp.linear_model.units import Targets, in_raw_units
from skdp.objective import Problem
from skdp.oracle import Public, Solution
from skdp.solvers import Solver
from skdp.solvers.fold_moments import FoldMoments, check_alphas


@documented
class DPRidgeCV(DPLinearRegressor):
    """Differentially private ridge regression that chooses its penalty by cross-validation.

    One noisy matrix of second moments is released for each of ``n_folds`` disjoint folds, which
    costs no more than one such matrix. Coefficients and scores for every penalty follow for free.
    What it costs is accuracy: `skdp.DPRidge` with its default penalty is nearly always as good or
    better at the same epsilon. Use this where the path or the scores are wanted themselves.

    Parameters
    ----------
    alphas : sequence of float, default=(0.1, 1.0, 10.0, 100.0, 1000.0)
        Penalties to choose among, in scikit-learn's scale. Any number of them costs the same.
    n_folds : int, default=3
        Number of folds, at least 2; more folds are noisier.
    epsilon : float, default=1.0
        Privacy budget of one ``fit``; positive. inf adds no noise.
    delta : float, default=1e-6
        In (0, 1).
    data_norm : float or None, default=None
        Public bound on a row's L2 norm, as in `skdp.DPRidge`.
    {target_bound}
    {terms}
    {columns}
    {predictions_and_noise}

    Attributes
    ----------
    {coefficients}
    alpha_ : float
        The penalty with the least error.
    cv_errors_ : array of shape (n_alphas,)
        Mean squared error of each penalty on the folds that its fit did not see, in squared units
        of y; for several targets their sum, each in its standardised unit. Noisy, not biased by
        the noise; may be negative where noise is large.
    path_ : array of shape (n_alphas, n_features) or (n_alphas, n_targets, n_features)
        Coefficients for each penalty.
    {fitted}

    References
    ----------
    {references}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPRidgeCV(epsilon=3.0).fit(X, y)
    >>> model.alpha_ in model.alphas
    True
    >>> model.path_.shape
    (5, 10)
    """

    # What other estimators let one choose, and this one does not.
    solver: Any = "auto"
    max_iter = learning_rate = momentum = momentum_kind = noise_schedule = clip_norm = "auto"
    batch_size = constraint = rows_per_group = None
    radius, inference, inference_share = 1.0, "none", 1 / 3

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0, 100.0, 1000.0),
        *,
        n_folds: int = 3,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        data_norm: float | None = None,
        target_bound: float | None = None,
        adjacency: str = "zero_out",
        accountant: str = "auto",
        budget: Any = None,
        scaling: str = "auto",
        bounds: Any = None,
        fit_intercept: bool = True,
        linear_predictions: bool = False,
        noise_source: str = "system",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.n_folds = n_folds
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.target_bound = target_bound
        self.adjacency = adjacency
        self.accountant = accountant
        self.budget = budget
        self.scaling = scaling
        self.bounds = bounds
        self.fit_intercept = fit_intercept
        self.linear_predictions = linear_predictions
        self.noise_source = noise_source
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks ask for R² of 0.5 on 200 rows: too few for noisy folds at epsilon 1
        tags.regressor_tags.poor_score = True
        return tags

    def _check_own_parameters(self) -> None:
        check_alphas(self.alphas)
        fine = is_integer(self.n_folds) and self.n_folds >= 2
        require("n_folds", self.n_folds, "be an integer of at least 2", fine)

    def _choose_solver(
        self, public: Public | None = None, problem: Problem | None = None
    ) -> Solver:
        return FoldMoments(alphas=tuple(self.alphas), n_folds=self.n_folds)

    def _keep(
        self,
        solution: Solution,
        prepared: Prepared,
        targets: Targets,
        statement: PrivacyStatement,
    ) -> None:
        super()._keep(solution, prepared, targets, statement)
        found, n_features = solution.found, prepared.public.n_features
        targets_by = None if solution.scaling is None else solution.scaling.targets
        # Errors of several targets are added up in standardised units.
        unit = 1.0 if targets_by is None or targets.n_outputs > 1 else targets_by.size[0]
        self.alpha_ = self.alphas[found["best"]]
        self.cv_errors_ = found["errors"] * unit**2
        raw = [
            in_raw_units(coef[:n_features], np.zeros(targets.n_outputs), solution.scaling)[0].T
            for coef in found["path"]
        ]
        self.path_ = np.array([coef[0] if targets.is_column else coef for coef in raw])
