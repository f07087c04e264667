"""The one path from rows to coefficients, shared by all estimators."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp._numbers import is_real, shown
from skdp.accounting import Adjacency, PrivacyStatement
from skdp.accounting.statement import release_lines
from skdp.calibration import Calibrated, calibration_share
from skdp.linear_model.assumptions import about_noise, about_rows
from skdp.linear_model.budget import PrivacyBudget
from skdp.linear_model.calibrating import calibrates, check_calibration
from skdp.linear_model.charging import charge
from skdp.linear_model.noise_advice import warn_about_noise
from skdp.linear_model.parameters import (
    check_bound,
    check_budget,
    check_counts,
    check_noise_source,
    choose_solver,
    constraint_set,
    require_pure_dp,
    warn_about_budget,
    warn_about_seed,
)
from skdp.linear_model.standardising import (
    check_scaling,
    choose_stage,
    in_raw_units,
    scaled_scores,
)
from skdp.linear_model.streaming import FitsBlocks
from skdp.linear_model.travelling import ELSEWHERE, Travels, validated, without_cells
from skdp.objective import Loss, Penalty, Problem
from skdp.oracle import Plan, Public, Solution, Solves, make_plan, run
from skdp.oracle.rows import Rows, canonical
from skdp.oracle.threads import spread_over_threads
from skdp.scaling import Staged
from skdp.solvers import Solver
from skdp.solvers.choice import automatic_solver

Array = NDArray[np.float64]

# Hyperparameters that an estimator hands on to a solver chosen by name, with their defaults.
HANDED_ON: dict[str, Any] = {
    "max_iter": "auto",
    "learning_rate": "auto",
    "momentum": "auto",
    "batch_size": None,
    "noise_schedule": "auto",
    "clip_norm": "auto",
}


@dataclass(frozen=True)
class Targets:
    """Targets as the loss wants them, and what else comes out of y.

    Attributes
    ----------
    values : array, first axis n_rows
    n_outputs : int
        Columns of the parameter.
    weights : array of shape (n_rows,) or None
        Weights that follow from the targets, such as class weights.
    classes : array of shape (n_classes,) or None
        Labels, sorted, of a classifier.
    is_column : bool
        Whether y was one-dimensional.
    """

    values: NDArray[Any]
    n_outputs: int
    weights: Array | None = None
    classes: NDArray[Any] | None = None
    is_column: bool = True


class DPLinearModel(FitsBlocks, Travels):
    """Base of the estimators: from rows to coefficients, through the oracle.

    Subclasses say what the targets are, which problem is solved, and how coefficients are shown.
    """

    epsilon: float
    delta: float
    solver: str | Solver
    data_norm: float | None
    target_bound: float | None = None
    calibration: str = "none"
    adjacency: str
    accountant: str
    budget: PrivacyBudget | None
    constraint: str | None
    radius: float
    scaling: str
    bounds: Any
    fit_intercept: bool
    noise_source: str
    random_state: Any
    verbose: int

    # ------------------------------------------------------------------ what subclasses say

    @abstractmethod
    def _read_targets(self, y: Any, dtype: np.dtype[Any]) -> Targets:
        """Check y and turn it into targets; sets no attribute, as the fit may yet be refused."""

    @abstractmethod
    def _loss(self, n_outputs: int) -> Loss:
        """Return the loss."""

    @abstractmethod
    def _penalty(self, n_rows: int) -> Penalty:
        """Return the penalty, next to the mean loss."""

    @abstractmethod
    def _check_own_parameters(self) -> None:
        """Raise ValueError if a parameter of the subclass is out of range."""

    @abstractmethod
    def _target_assumptions(self) -> tuple[str, ...]:
        """Say what was taken from y, or declared about it, as public."""

    @abstractmethod
    def _show(self, coef: Array, intercept: Array, targets: Targets) -> None:
        """Store ``coef`` (features by outputs) and ``intercept`` in scikit-learn's shapes."""

    # ------------------------------------------------------------------ the path

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None, **checks: Any) -> Self:
        # 1. Everything that can be refused without rows.
        self._check_parameters()
        source, seed = self._noise()
        # 2. Validate the rows.
        # Sums of extreme values may overflow in there: a warning would tell of single records.
        with np.errstate(over="ignore", invalid="ignore"):
            X, y = self._read(X, y, **checks)
            targets = self._read_targets(y, X.dtype)
            weights = _joint_weights(type(self).__name__, sample_weight, targets.weights, X)
        # 3. Public facts, the problem, the solver; then the plan and its price.
        n_rows, n_features = X.shape
        public, problem, whole, solver, plan = self._prepare(
            n_rows, n_features, targets.n_outputs, sparse.issparse(X), weights is not None
        )
        warn_about_budget(type(self).__name__, self.epsilon, self.delta, n_rows)
        warn_about_seed(type(self).__name__, self.noise_source, self.epsilon)
        warn_about_noise(type(self).__name__, plan, public, problem)
        self._report(plan, public)
        statement = plan.statement(public, self._assumptions(public, whole), source.name)
        size = public.intercept_size * public.has_intercept
        with spread_over_threads() as spread:
            rows = Rows(X, targets.values, weights, public.row_bound, size, spread)
            rows.reserve(standardised=isinstance(whole, Staged))
            # 4. Charge the budgets that this fit shares: from here on its debt stands.
            charge(type(self).__name__, statement, self.budget, seed, vars(self).get(ELSEWHERE))
            # 5. Run on the rows, once.
            solution = run(plan, whole, public, problem, rows, source, source.coins())
        # 6. Keep the answer; rows, oracle and generators end here.
        self._keep(solution, public, targets, solver, statement)
        self.row_bound_ = _after(whole, public).row_bound
        return self

    def _keep(
        self,
        solution: Solution,
        public: Public,
        targets: Targets,
        solver: Solver,
        statement: PrivacyStatement,
    ) -> None:
        """Store what a fit found, in the user's units."""
        n_features = public.n_features
        coef, intercept = solution.coef[:n_features], np.zeros(targets.n_outputs)
        if public.has_intercept:
            intercept = public.intercept_size * solution.coef[n_features]
        self._show(*in_raw_units(coef, intercept, solution.scaling), targets)
        self.scaling_ = solution.scaling
        self.n_iter_ = solution.n_iter
        self.n_gradients_ = solution.n_gradients
        self.solver_ = solver
        self.privacy_ = statement

    def _read(self, X: Any, y: Any, **checks: Any) -> tuple[Any, Any]:
        """Validate X and y; a refusal does not quote what a cell holds."""
        X, y = validated(self, "X or y", X, y, **checks)
        return canonical(X), y

    def _plan(
        self, n_samples: int, n_features: int, n_outputs: int, is_sparse: bool
    ) -> PrivacyStatement:
        self._check_parameters()
        check_counts("plan", n_samples=n_samples, n_features=n_features)
        weighted = getattr(self, "class_weight", None) is not None
        public, problem, whole, _, plan = self._prepare(
            n_samples, n_features, n_outputs, is_sparse, weighted
        )
        warn_about_noise(type(self).__name__, plan, public, problem)
        return plan.statement(public, self._assumptions(public, whole), self.noise_source)

    def _prepare(
        self,
        n_rows: int,
        n_features: int,
        n_outputs: int,
        is_sparse: bool,
        weighted: bool,
        streamed: bool = False,
    ) -> tuple[Public, Problem, Solves, Solver, Plan]:
        public = Public(
            n_rows=n_rows,
            n_features=n_features,
            n_outputs=n_outputs,
            adjacency=Adjacency.parse(self.adjacency),
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            has_intercept=bool(self.fit_intercept),
            data_norm=None if self.data_norm is None else float(self.data_norm),
            target_bound=self.target_bound,
            sparse=is_sparse,
            weighted=weighted,
            streamed=streamed,
        )
        public = replace(
            public, row_bound=public.long_row if self.data_norm is None else public.data_norm
        )
        problem = self._problem(n_rows, n_outputs)
        asked = self._choose_solver(public, problem)
        asked.check(problem)
        stage = None
        if not streamed:
            stage = choose_stage(
                type(self).__name__, self.scaling, self.bounds, public, problem, self.accountant
            )
        after = public if stage is None else stage.public_after(public)
        solver, whole = self._share_with_calibration(asked, after, problem)
        if stage is not None:
            whole = Staged.sharing(stage, whole, after, problem, self.accountant)
        return public, problem, whole, solver, make_plan(whole, public, problem, self.accountant)

    def _problem(self, n_rows: int, n_outputs: int) -> Problem:
        return Problem(
            self._loss(n_outputs),
            self._penalty(n_rows),
            constraint_set(self.constraint, self.radius),
            fit_intercept=bool(self.fit_intercept),
        )

    def _share_with_calibration(
        self, asked: Solver, public: Public, problem: Problem
    ) -> tuple[Solver, Solves]:
        """Return the resolved solver, and with it the calibration that follows, if one does."""
        plain = isinstance(self.solver, str) and self.solver == "auto" and not self._given()
        who = type(self).__name__
        if not calibrates(
            who, self.calibration, plain, public, problem, self.accountant, asked.adaptive
        ):
            solver = asked.resolve(public, problem)
            return solver, solver
        left = 1 - calibration_share(public)
        solver = asked.resolve(replace(public, share=public.share * left), problem)
        return solver, Calibrated.sharing(solver, public, problem, self.accountant)

    def _given(self) -> dict[str, Any]:
        """Hyperparameters that were set, to be handed on to a solver chosen by name."""
        given = {}
        for name, default in HANDED_ON.items():
            value = getattr(self, name)
            if not (value is default or (isinstance(value, str) and value == default)):
                given[name] = value
        return given

    def _choose_solver(
        self, public: Public | None = None, problem: Problem | None = None
    ) -> Solver:
        given = self._given()
        automatic = "gd"
        if public is not None and problem is not None:
            automatic = automatic_solver(public, problem, given)
        return choose_solver(type(self).__name__, self.solver, given, automatic)

    def _check_parameters(self) -> None:
        check_budget(self.epsilon, self.delta)
        check_bound("data_norm", self.data_norm)
        check_bound("target_bound", self.target_bound)
        constraint_set(self.constraint, self.radius)
        check_scaling(self.scaling, self.bounds, self.data_norm, self.constraint)
        check_calibration(self.calibration)
        check_noise_source(self.noise_source, self.random_state)
        Adjacency.parse(self.adjacency)
        if not (self.budget is None or isinstance(self.budget, PrivacyBudget)):
            raise ValueError(f"budget must be None or a PrivacyBudget; got {shown(self.budget)}.")
        if not isinstance(self.fit_intercept, (bool, np.bool_)):
            raise ValueError(
                f"fit_intercept must be True or False; got {shown(self.fit_intercept)}."
            )
        self._check_own_parameters()
        if self.delta == 0 and not math.isinf(self.epsilon):
            require_pure_dp(type(self).__name__, self._choose_solver())

    # ------------------------------------------------------------------ what is told

    def _assumptions(self, public: Public, whole: Solves) -> tuple[str, ...]:
        said = [
            *about_rows(public),
            "Hyperparameters, and any scaling or selection of columns before this fit, did not "
            "use these rows, or are accounted for elsewhere.",
            *self._target_assumptions(),
        ]
        public, stage = _after(whole, public), getattr(whole, "stage", None)
        if stage is not None:
            said += stage.said()
        if public.weighted:
            said.append("That weights are finite, not negative and not all 0 is public.")
        if self.data_norm is not None:
            said.append(
                f"data_norm = {self.data_norm:g} was chosen without looking at the rows; "
                "longer rows were scaled down to it."
            )
        elif public.row_bound is not None:
            said.append(
                f"Rows longer than {public.row_bound:.4g}, twice what columns of unit size give, "
                "were scaled down to it, in fit and in predict; data_norm sets another bound."
            )
        return (*said, *about_noise(self.noise_source, self.epsilon))

    def _report(self, plan: Plan, public: Public) -> None:
        if self.verbose:
            statement = plan.statement(public, (), "system")
            for line in release_lines(statement.releases):
                print(
                    f"[{type(self).__name__}] {line}, epsilon {statement.epsilon:.4g}, "
                    f"accountant {statement.accountant}"
                )

    def _linear_predictor(self, X: Any) -> Array:
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        coef = np.atleast_2d(self.coef_).T
        return scaled_scores(canonical(X), coef, self.intercept_, self.scaling_, self.row_bound_)

    # ------------------------------------------------------------------ scikit-learn's hooks

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _after(whole: Solves, public: Public) -> Public:
    """Public facts about the records that the solver answers for."""
    return whole.stage.public_after(public) if isinstance(whole, Staged) else public


def _joint_weights(
    who: str, sample_weight: Any, target_weights: Array | None, X: Any
) -> Array | None:
    """Product of the weights of records and of targets; None if neither is given."""
    if sample_weight is None:
        return target_weights
    if is_real(sample_weight):
        sample_weight = np.full(X.shape[0], float(sample_weight))
    with without_cells(who, "sample_weight"):
        weights = check_array(
            sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
        )
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar; got {weights.ndim}D.")
    check_consistent_length(weights, X)
    if (weights < 0).any():
        raise ValueError("sample_weight must not be negative.")
    if not weights.any():
        raise ValueError("sample_weight is zero for every record.")
    if target_weights is None:
        return np.asarray(weights)
    return np.asarray(np.minimum(weights * target_weights, np.finfo(np.float64).max))
