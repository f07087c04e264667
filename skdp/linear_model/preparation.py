"""What is settled about a fit before any row is read: public facts, problem, solver and stages."""

import pickle
from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from skdp._numbers import shown
from skdp.accounting import Adjacency, PrivacyStatement
from skdp.linear_model._estimator import (
    Prepared,
    PrivateEstimatorMixin,
    noise_assumptions,
    row_assumptions,
)
from skdp.linear_model.noise_warning import warn_about_noise
from skdp.linear_model.parameters import (
    check_bound,
    check_counts,
    choose_solver,
    constraint_set,
    require_one_pass,
    require_pure_dp,
)
from skdp.objective import Loss, Penalty, Problem
from skdp.oracle import Public, SolverStage, Stage, make_plan
from skdp.oracle.sources.base import IN_MEMORY, PARTITIONED
from skdp.solvers import Solver
from skdp.solvers.auto import automatic_solver
from skdp.stages.choice import check_stages, recalibration_stage, scaling_stage

# Hyperparameters that an estimator hands on to a solver chosen by name, with their defaults.
HANDED_ON: dict[str, Any] = {
    "max_iter": "auto",
    "learning_rate": "auto",
    "momentum": "auto",
    "batch_size": None,
    "noise_schedule": "auto",
    "clip_norm": "auto",
}
# Parameters that no plan depends on.
NOT_PLANNED = frozenset({"budget", "noise_source", "random_state", "verbose"})

# Plans of fits that were prepared lately, by parameters and shape: the fits of a cross-validation
# share theirs. The oldest goes first.
MAX_PLANS = 64
_plans: dict[tuple[Any, ...], Prepared] = {}


class PlannedModel(PrivateEstimatorMixin):
    """A model whose fits are settled by parameters and public facts, but for the rows."""

    solver: str | Solver
    data_norm: float | None
    target_bound: float | None = None
    calibration: str = "none"
    constraint: str | None
    radius: float
    scaling: str
    bounds: Any
    fit_intercept: bool
    verbose: int

    # ------------------------------------------------------------------ what subclasses say

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

    def _plan(
        self, n_samples: int, n_features: int, n_outputs: int, is_sparse: bool
    ) -> PrivacyStatement:
        self._check_parameters()
        check_counts("plan", n_samples=n_samples, n_features=n_features)
        weighted = getattr(self, "class_weight", None) is not None
        prepared = self._prepare(n_samples, n_features, n_outputs, is_sparse, weighted)
        public, plan = prepared.public, prepared.plan
        warn_about_noise(type(self).__name__, plan, public, prepared.problem)
        return plan.statement(public, self._assumptions(prepared), self.noise_source)

    # ------------------------------------------------------------------ what a fit consists of

    def _prepare(
        self,
        n_rows: int,
        n_features: int,
        n_outputs: int,
        is_sparse: bool,
        weighted: bool,
        provides: frozenset[str] = IN_MEMORY,
    ) -> Prepared:
        """Settle all that does not depend on rows; equal fits of one shape are planned once."""
        shape = n_rows, n_features, n_outputs, is_sparse, weighted, provides
        parameters = self.get_params(deep=False)
        planned = {name: value for name, value in parameters.items() if name not in NOT_PLANNED}
        try:
            key = type(self), pickle.dumps(planned), shape
        except (pickle.PicklingError, TypeError, AttributeError):
            return self._prepared(*shape)
        found = _plans.get(key)
        if found is None:
            found = self._prepared(*shape)
            while len(_plans) >= MAX_PLANS:
                _plans.pop(next(iter(_plans)), None)
            _plans[key] = found
        return found

    def _prepared(
        self,
        n_rows: int,
        n_features: int,
        n_outputs: int,
        is_sparse: bool,
        weighted: bool,
        provides: frozenset[str],
    ) -> Prepared:
        who = type(self).__name__
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
            provides=provides,
        )
        public = replace(
            public, row_bound=public.long_row if self.data_norm is None else public.data_norm
        )
        problem = Problem(
            self._loss(n_outputs),
            self._penalty(n_rows),
            constraint_set(self.constraint, self.radius),
            fit_intercept=bool(self.fit_intercept),
        )
        asked = self._choose_solver(public, problem)
        asked.check(problem)
        if public.streamed:
            require_one_pass(who, asked)
        # 1. Scaling comes first; the solver works on what it leaves.
        before = None
        if not public.streamed:
            before = scaling_stage(who, self.scaling, self.bounds, public, problem, self.accountant)
        scaled = public if before is None else before.public_after(public)
        # 2. Recalibration comes last; the solver gets what the two leave of the budget.
        plain = isinstance(self.solver, str) and self.solver == "auto" and not self._given()
        after = recalibration_stage(
            who, self.calibration, plain, scaled, problem, self.accountant, asked.adaptive
        )
        left = scaled.share if after is None else scaled.share * (1 - after.share)
        solver = asked.resolve(replace(scaled, share=left), problem)
        stages: tuple[Stage | None, ...] = before, SolverStage(solver), after
        sequence = tuple(stage for stage in stages if stage is not None)
        plan = make_plan(sequence, public, problem, self.accountant)
        return Prepared(public, problem, sequence, plan, solver)

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
        self._check_shared_parameters()
        check_bound("data_norm", self.data_norm)
        check_bound("target_bound", self.target_bound)
        constraint_set(self.constraint, self.radius)
        check_stages(self.scaling, self.bounds, self.data_norm, self.constraint, self.calibration)
        if not isinstance(self.fit_intercept, (bool, np.bool_)):
            raise ValueError(
                f"fit_intercept must be True or False; got {shown(self.fit_intercept)}."
            )
        self._check_own_parameters()
        if self.delta == 0 and self.epsilon != np.inf:
            require_pure_dp(type(self).__name__, self._choose_solver())

    def _assumptions(self, prepared: Prepared) -> tuple[str, ...]:
        public = prepared.public_after
        found = [
            *row_assumptions(public),
            "Hyperparameters, and any scaling or selection of columns before this fit, did not "
            "use these rows, or are accounted for elsewhere.",
            *self._target_assumptions(),
            *(text for stage in prepared.stages for text in stage.assumptions()),
        ]
        if public.weighted:
            found.append("That weights are finite, not negative and not all 0 is public.")
        if self.data_norm is not None:
            found.append(
                f"data_norm = {self.data_norm:g} was chosen without looking at the rows; "
                "longer rows were scaled down to it."
            )
        elif public.row_bound is not None:
            found.append(
                f"Rows longer than {public.row_bound:.4g}, twice what columns of unit size give, "
                "were scaled down to it, in fit and in predict; data_norm sets another bound."
            )
        found += noise_assumptions(self.noise_source, self.epsilon)
        if public.provides == PARTITIONED:
            found.append(
                "Rows came in partitions; how they are divided does not depend on private values. "
                "Whoever runs the passes over them, and carries their sums, is trusted."
            )
        if public.streamed:
            found += [
                f"Rows arrived block by block and were read once. n = {public.n_rows} was "
                "declared; places without a row count as null records.",
                "The order of arrival and the sizes of blocks did not depend on private values. "
                "The order is not secret, so nothing was amplified by shuffling.",
            ]
        return tuple(found)
