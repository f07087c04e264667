"""Two-stage least squares: coefficients of columns that may depend on the errors."""

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

from numpy.typing import ArrayLike

from skdp._numbers import is_integer, listed, require, shown
from skdp._warnings import warn
from skdp.fitting.estimator import Fit
from skdp.fitting.parameters import Scaling
from skdp.fitting.preparation import Prepared
from skdp.fitting.privacy import Privacy
from skdp.fitting.rows import rows_of
from skdp.fitting.tables import numbered_columns
from skdp.fitting.user_warnings import NoiseWarning
from skdp.linear_model import inference
from skdp.linear_model.documentation import documented
from skdp.linear_model.regression import DPLinearRegressor
from skdp.objective import Problem
from skdp.oracle import Public, Solution
from skdp.solvers import Solver
from skdp.solvers.core.two_stage import LEAST_STRENGTH, TwoStageLeastSquares
from skdp.stages.inference.stage import CoefficientInference

# Share of the inference in mu squared, of what scaling leaves; the rest finds where it starts.
INFERENCE_SHARE = 0.75


@documented
class DP2SLS(DPLinearRegressor):
    """Differentially private two-stage least squares, with instrumental variables.

    Estimates a linear equation some of whose regressors are endogenous: they depend on its errors,
    so that least squares is biased. Instruments move them, and the target by way of them alone.
    X holds the columns of both kinds, in any order. ``fit`` is (epsilon, delta)-differentially
    private for each row. It starts from one noisy matrix of moments, and ends with a step that
    undoes the bias of clipping and gives standard errors, which assume no equal variances.

    Where instruments are weak (a first-stage F below 23.1, noise included) coefficients are "not
    determined", as intervals would cover too little; a `NoiseWarning` says so. As with any such
    screening, intervals cover too little among the few fits that pass it by luck. Only where all
    are determined ``coef_`` is ``coef_debiased_``, otherwise it is the start.

    Parameters
    ----------
    endogenous : sequence of int or str, default=()
        Columns of X that may depend on the errors, by number, or by name where X is a data frame.
    instruments : sequence of int or str, default=()
        Columns of X that are instruments and no regressors, at least as many as are endogenous.
        Their coefficients are 0. All other columns are exogenous regressors.
    {parameters}

    Attributes
    ----------
    {coefficients}
    {fitted}
    {fitted_inference}
    first_stage_f_ : float
        F statistic of the first stage, noise included; the least one of several endogenous columns.

    References
    ----------
    {references}
    J. Montiel Olea, C. Pflueger: A Robust Test for Weak Instruments. Journal of Business & Economic
    Statistics 2013.
    E. Sanderson, F. Windmeijer: A Weak Instrument F-Test in Linear IV Models with Multiple
    Endogenous Variables. Journal of Econometrics 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DP2SLS
    >>> rng = np.random.default_rng(0)
    >>> offer, ability = rng.standard_normal((2, 50_000))
    >>> years = 0.5 * offer + ability + rng.standard_normal(50_000)
    >>> wage = 1.0 * years + 2.0 * ability + rng.standard_normal(50_000)
    >>> X = np.column_stack([years, offer])
    >>> model = DP2SLS(endogenous=[0], instruments=[1]).fit(X, wage)
    >>> bool(abs(model.coef_debiased_[0] - 1.0) < 0.2)  # least squares: 1.9
    True
    """

    _multi_output = False
    conf_int = inference.conf_int
    summary = inference.summary
    wald_test = inference.wald_test

    def __init__(
        self,
        endogenous: Sequence[int] | Sequence[str] = (),
        instruments: Sequence[int] | Sequence[str] = (),
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        scaling: Scaling = "auto",
        target_bound: float | None = None,
        fit_intercept: bool = True,
        fixed_effects: bool = False,
        privacy: Privacy | None = None,
        verbose: int = 0,
    ) -> None:
        self.endogenous = endogenous
        self.instruments = instruments
        self.epsilon = epsilon
        self.delta = delta
        self.scaling = scaling
        self.target_bound = target_bound
        self.fit_intercept = fit_intercept
        self.fixed_effects = fixed_effects
        self.privacy = privacy
        self.verbose = verbose

    @documented
    def fit(  # type: ignore[override]  # no weights, and no start
        self, X: Any, y: ArrayLike | None = None, *, groups: object = None
    ) -> Self:
        """Fit the model, spending its budget.

        Parameters
        ----------
        {rows}
        y : array of shape (n_samples,)
        {of_a_fit}
        """
        return self._fit(rows_of(self._who, X, y, None, groups))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # most of the budget is for intervals
        return tags

    def _check_own_parameters(self) -> None:
        for name in ("endogenous", "instruments"):
            given = getattr(self, name)
            try:
                columns = list(given)
                fine = len(given) == len(set(columns)) == len(columns) and not isinstance(
                    given, str
                )
                by_number = all(is_integer(one) and one >= 0 for one in columns)
                fine &= by_number or all(isinstance(one, str) for one in columns)
            except TypeError:
                fine = False
            allowed = "hold columns of X, by number or all of them by name, once each"
            require(f"{self._who}: {name}", given, allowed, fine)
        if len(self.instruments) < len(self.endogenous):
            raise ValueError(
                f"{self._who}: instruments must hold at least as many columns of X as endogenous, "
                f"{len(self.endogenous)}; got {len(self.instruments)}. Nothing was released."
            )
        self._require_delta("two-stage least squares has no other noise")

    def _prepare(
        self, n_records: int, n_features: int, n_outputs: int = 1, **others: Any
    ) -> Prepared:
        # Plans are cached by parameter values: names may be other columns in another data frame.
        model, names = copy(self), others.get("names")
        model.endogenous = numbered_columns(self._who, "endogenous", self.endogenous, names)
        model.instruments = numbered_columns(self._who, "instruments", self.instruments, names)
        model.inference = CoefficientInference(INFERENCE_SHARE)
        both = sorted(set(model.endogenous) & set(model.instruments))
        if both:
            raise ValueError(
                f"{self._who}: a column is endogenous or an instrument; both are, by number: "
                f"{listed(both)}. Nothing was released."
            )
        numbers = [*model.endogenous, *model.instruments]
        if max(numbers, default=0) >= n_features or len(model.instruments) == n_features:
            raise ValueError(
                f"{self._who}: endogenous and instruments number columns of X, from 0 to "
                f"{n_features - 1}, and not all are instruments; got {shown(self.endogenous)} and "
                f"{shown(self.instruments)}. Nothing was released."
            )
        return super(DP2SLS, model)._prepare(n_records, n_features, n_outputs, **others)

    def _choose_solver(self, public: Public, problem: Problem) -> Solver:
        endogenous, instruments = map(int, self.endogenous), map(int, self.instruments)
        return TwoStageLeastSquares(endogenous=tuple(endogenous), instruments=tuple(instruments))

    def _is_default(self, prepared: Prepared, n_outputs: int) -> bool:
        return False  # nothing like it is among the fits that were measured

    def _keep(self, solution: Solution, fit: Fit) -> None:
        super()._keep(solution, fit)
        self.first_stage_f_ = self.inference_.estimate.first_stage_f
        if self.determined_.all():
            self.coef_, self.intercept_ = self.coef_debiased_.copy(), self.intercept_debiased_
            return
        why = "the noise is too large"
        if 0 < self.first_stage_f_ < LEAST_STRENGTH:
            why = (
                f"instruments are weak: the first-stage F, noise included, is "
                f"{self.first_stage_f_:.3g}, and {LEAST_STRENGTH:g} is needed"
            )
        advice = "More rows or a larger epsilon help."
        warn(f"{self._who}: coefficients are not determined, as {why}. {advice}", NoiseWarning)
