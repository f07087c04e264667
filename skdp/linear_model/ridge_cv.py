"""Ridge regression that chooses its penalty by cross-validation, at the price of one release."""

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._numbers import Array
from skdp.fitting.estimator import Fit
from skdp.fitting.parameters import Scaling
from skdp.fitting.preparation import Prepared
from skdp.fitting.privacy import Privacy
from skdp.fitting.tables import numbered_columns
from skdp.fitting.units import in_raw_units
from skdp.linear_model.documentation import documented
from skdp.linear_model.inference import column_names
from skdp.linear_model.regression import DPLinearRegressor
from skdp.objective import Problem
from skdp.oracle import Public, Solution
from skdp.solvers import Solver
from skdp.solvers.core.fold_moments import FoldMoments, check_alphas


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
    column_sets : sequence of sequences of int or str, or None, default=None
        Sets of columns to choose among, each with every penalty; they cost nothing more, either. By
        number, or all of them by name where X is a data frame. Coefficients of other columns are 0.
        None is the set of all columns. The sets must not follow from these rows.
    {parameters}

    Attributes
    ----------
    {coefficients}
    alpha_ : float
        The penalty with the least error.
    alphas_ : array of shape (n_alphas,)
        The penalties that were compared.
    columns_ : array of int
        The set of columns with the least error, by number.
    cv_errors_ : array of shape (n_alphas,) or (n_sets, n_alphas)
        Mean squared error of each penalty on the folds that its fit did not see, in squared units
        of y; for several targets their sum, each in its standardised unit. Noisy; may be negative
        where noise is large. Each error by itself is not biased by the noise, but the least of
        several is optimistic: the noise that makes an error small makes it the least, too. Judge
        the model by `skdp.metrics.evaluate` on other rows. With ``column_sets``, a row for each
        set.
    path_ : array of shape (n_alphas, n_features) or (n_alphas, n_targets, n_features)
        Coefficients for each penalty; with ``column_sets``, for each set and penalty.
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

    Two sets of columns, at the same price:

    >>> model = DPRidgeCV(column_sets=[[2, 3, 8], range(10)], epsilon=3.0).fit(X, y)
    >>> model.cv_errors_.shape
    (2, 5)
    >>> len(model.columns_) in (3, 10)
    True
    """

    def __init__(
        self,
        alphas: Sequence[float] = (0.1, 1.0, 10.0, 100.0, 1000.0),
        *,
        n_folds: int = 3,
        column_sets: Any = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        scaling: Scaling = "auto",
        target_bound: float | None = None,
        fit_intercept: bool = True,
        privacy: Privacy | None = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.n_folds = n_folds
        self.column_sets = column_sets
        self.epsilon = epsilon
        self.delta = delta
        self.scaling = scaling
        self.target_bound = target_bound
        self.fit_intercept = fit_intercept
        self.privacy = privacy
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The check wants an R² of 0.5 on 200 rows and 10 columns at default parameters. In
        # standardised units the product of the target and the one column that matters adds up to
        # 124 there. Three folds at epsilon 1 put noise with a standard deviation of 114 on it and
        # on the products of nine other columns: too much for any shrinkage to sort out. From
        # epsilon 10 on the same rows give more than 0.6.
        tags.regressor_tags.poor_score = True
        return tags

    def _check_own_parameters(self) -> None:
        check_alphas(self.alphas)  # other parameters are checked by the solver

    def _prepare(self, *shape: Any, **others: Any) -> Prepared:
        model, names, given = copy(self), others.get("names"), self.column_sets
        if _are_names(given):
            # Plans are cached by parameter values, and the same names may be other columns in
            # another data frame. A plan knows no names; any sets cost the same.
            model.column_sets = None
            if names is not None:
                numbered = (numbered_columns(self._who, "column_sets", one, names) for one in given)
                model.column_sets = list(numbered)
        return super(DPRidgeCV, model)._prepare(*shape, **others)

    def _choose_solver(self, public: Public, problem: Problem) -> Solver:
        return FoldMoments(
            alphas=tuple(self.alphas), n_folds=self.n_folds, column_sets=self.column_sets
        )

    def _keep(self, solution: Solution, fit: Fit) -> None:
        super()._keep(solution, fit)
        prepared, targets = fit.prepared, fit.reading.targets
        assert isinstance(prepared.solver, FoldMoments)
        results, n_features = solution.results, prepared.public.n_features
        targets_by = None if solution.scaling is None else solution.scaling.targets
        # Errors of several targets are added up in standardised units.
        unit = 1.0 if targets_by is None or targets.n_outputs > 1 else targets_by.scale[0]
        best_set, best_alpha = divmod(results["best"], len(self.alphas))
        self.alphas_ = np.array(self.alphas, dtype=np.float64)
        self.alpha_ = self.alphas[best_alpha]
        numbered = prepared.solver.column_sets
        sets = [range(n_features)] if numbered is None else numbered
        self.columns_ = np.array(sorted(sets[best_set]), dtype=np.intp)
        shape = len(self.alphas) if self.column_sets is None else (len(sets), len(self.alphas))
        self.cv_errors_ = np.reshape(results["errors"] * unit**2, shape)
        raw = [
            in_raw_units(coef[:n_features], np.zeros(targets.n_outputs), solution.scaling)[0].T
            for coef in results["path"]
        ]
        path = np.array([coef[0] if targets.is_column else coef for coef in raw])
        self.path_ = path.reshape(*self.cv_errors_.shape, *path.shape[1:])


def _are_names(column_sets: Any) -> bool:
    """Whether sets of columns hold names, not numbers."""
    try:
        names = [isinstance(i, str) for one in column_sets for i in one]
        return any(names) and not any(isinstance(one, str) for one in column_sets)
    except TypeError:  # None, or no sets of columns, which the solver refuses
        return False


class RidgePathDisplay:
    """Coefficients and cross-validated errors against the penalty, of a `DPRidgeCV`.

    All that is drawn was released with the fit, so that the picture costs nothing. The penalty that
    was chosen is a dashed line.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
    coefficients : array of shape (n_alphas, n_features)
    errors : array of shape (n_alphas,)
    alpha : float
        The penalty that was chosen.
    names : sequence of str
        Of the columns.

    Attributes
    ----------
    axes_ : array of two matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidgeCV, RidgePathDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPRidgeCV([0.1, 1, 10, 100], epsilon=3.0).fit(X, y)
    >>> display = RidgePathDisplay.from_estimator(model)  # doctest: +SKIP
    """

    def __init__(
        self, alphas: Array, coefficients: Array, errors: Array, alpha: float, names: Sequence[str]
    ) -> None:
        self.alphas, self.coefficients, self.errors = alphas, coefficients, errors
        self.alpha, self.names = alpha, names

    @classmethod
    def from_estimator(cls, estimator: DPRidgeCV, *, axes: Any = None) -> Self:
        """Draw the path of a fitted `DPRidgeCV` with one target: of the set that was chosen.

        Parameters
        ----------
        estimator : DPRidgeCV
        axes : sequence of two matplotlib Axes, default=None
            None for new ones.

        Returns
        -------
        RidgePathDisplay
        """
        check_is_fitted(estimator)
        if np.ndim(estimator.coef_) != 1:
            raise ValueError("RidgePathDisplay: draws one target; this model has several.")
        path, errors = estimator.path_, estimator.cv_errors_
        if errors.ndim == 2:
            best = int(np.argmin(errors.min(axis=1)))
            path, errors = path[best], errors[best]
        names = column_names(estimator, path.shape[1])
        return cls(estimator.alphas_, path, errors, estimator.alpha_, names).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, default=None

        Returns
        -------
        self
        """
        import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots(2, sharex=True, figsize=(6.0, 5.0), layout="constrained")
        order = np.argsort(self.alphas)
        for column, name in zip(self.coefficients.T, self.names, strict=True):
            axes[0].plot(self.alphas[order], column[order], marker=".", label=name)
        axes[1].plot(self.alphas[order], self.errors[order], marker=".", color="black")
        for ax in axes:
            ax.axvline(self.alpha, color="0.6", linestyle="--")
            ax.set_xscale("log" if self.alphas.min() > 0 else "symlog")
        axes[0].set_ylabel("coefficient")
        axes[1].set(xlabel="penalty alpha", ylabel="mean squared error")
        if len(self.names) <= 12:
            axes[0].legend(fontsize="small", ncols=2)
        self.axes_, self.figure_ = axes, axes[0].figure
        return self
