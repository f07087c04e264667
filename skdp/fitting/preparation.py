"""What is settled about a fit before any row is read: public facts, problem, solver and stages."""

import pickle
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from skdp._numbers import Array, listed, require
from skdp.accounting import LABEL, Adjacency, PrivacyStatement
from skdp.fitting.assumptions import noise_assumptions, row_assumptions
from skdp.fitting.inference_outlook import expectation, warn_about_inference
from skdp.fitting.noise_warning import expectations, warn_about_noise
from skdp.fitting.parameters import (
    check_bound,
    check_counts,
    choose_solver,
    constraint_set,
    planned_records,
    require_one_pass,
    require_pure_dp,
    require_start,
)
from skdp.fitting.path import (
    Prepared,
    PrivateEstimatorMixin,
)
from skdp.fitting.units import starting_point
from skdp.objective import Loss, Penalty, Problem
from skdp.oracle import Public, make_plan
from skdp.oracle.sources.base import IN_MEMORY, PARTITIONED
from skdp.solvers import Solver, get_solver
from skdp.solvers.auto import automatic_solver
from skdp.stages.base import StageParameters
from skdp.stages.column_bounds import DeclaredBounds, declared_bounds, known_moments
from skdp.stages.sequence import check_inference, check_stages, stages_of

# Hyperparameters that an estimator hands on to a solver chosen by name, with their defaults.
HANDED_ON: dict[str, Any] = {
    "max_iter": "auto",
    "learning_rate": "auto",
    "momentum": "auto",
    "momentum_kind": "auto",
    "batch_size": None,
    "noise_schedule": "auto",
    "clip_norm": "auto",
}
# Parameters that no plan depends on.
NOT_PLANNED = frozenset({"budget", "linear_predictions", "noise_source", "random_state", "verbose"})

# Plans of fits that were prepared lately, by parameters and shape: the fits of a cross-validation
# share theirs. The oldest goes first.
MAX_PLANS = 64
Start = tuple[Array, Array]  # coefficients (features by outputs) and intercepts
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
    inference: str = "none"
    inference_share: float = 1 / 3
    fit_intercept: bool
    linear_predictions: bool = False
    verbose: int
    rows_per_group: float | None = None
    protects_labels = True

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of a solver, ``solver__...``, make an object of a named solver.

        Parameters
        ----------
        **params : dict
            Parameters of the estimator, and of its solver after the prefix ``solver__``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is unknown, or one of the solver is set where ``solver="auto"``.
        """
        inner = {name: params[name] for name in params if name.startswith("solver__")}
        super().set_params(**{name: params[name] for name in params if name not in inner})
        if inner and isinstance(self.solver, str):
            who = type(self).__name__
            if self.solver == "auto":
                own = [name for name in inner if name.removeprefix("solver__") in HANDED_ON]
                instead = listed(name.removeprefix("solver__") for name in own)
                raise ValueError(
                    f"{who}: {listed(inner)} needs a solver whose parameters are known, and "
                    "solver='auto' is chosen in fit. Name one, as in solver='gd'"
                    f"{f', or set {instead} of the estimator itself' if own else ''}."
                )
            self.solver = get_solver(self.solver)
        super().set_params(**inner)
        return self

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
        self,
        n_samples: int | None,
        n_features: int,
        n_outputs: int,
        is_sparse: bool,
        n_groups: int | None,
        weighted: bool,
    ) -> PrivacyStatement:
        self._check_parameters()
        check_counts("plan", n_features=n_features)
        require("weighted", weighted, "be True or False", isinstance(weighted, bool | np.bool_))
        n_records = planned_records(n_samples, n_groups)
        weighted = weighted or getattr(self, "class_weight", None) is not None
        prepared = self._prepare(
            n_records, n_features, n_outputs, is_sparse, weighted, grouped=n_groups is not None
        )
        public, plan = prepared.public, prepared.plan
        warn_about_noise(type(self).__name__, plan, public, prepared.problem)
        warn_about_inference(type(self).__name__, prepared)
        statement = plan.statement(public, self._assumptions(prepared), self.noise_source)
        expected = expectation(prepared)
        if expected is not None:
            return replace(statement, expectations=expected[:1])
        smooth = {"unconstrained", "smooth_penalty"} <= prepared.problem.provides
        if smooth and self._is_plain:  # as the fits that were measured
            return replace(statement, expectations=expectations(public, prepared.problem))
        return statement

    def knows_target_range(self, n_samples: int, n_features: int, n_outputs: int = 1) -> bool:
        """Whether a fit bounds its targets, by a declared figure or by one that it finds."""
        prepared = self._prepare(n_samples, n_features, n_outputs, False, False)
        return prepared.public_after.target_bound is not None

    # ------------------------------------------------------------------ what a fit consists of

    def _prepare(
        self,
        n_rows: int,
        n_features: int,
        n_outputs: int,
        is_sparse: bool,
        weighted: bool,
        provides: frozenset[str] = IN_MEMORY,
        names: Sequence[str] | None = None,
        start: Start | None = None,
        grouped: bool = False,
    ) -> Prepared:
        """Settle all that does not depend on rows; equal fits of one shape are planned once.

        ``names`` of columns, empty if they have none, are for ``bounds`` that name them.
        """
        bounds = None if self.bounds is None else declared_bounds(self.bounds, n_features, names)
        shape = n_rows, n_features, n_outputs, is_sparse, weighted, provides, start, grouped
        parameters = self.get_params(deep=False)
        planned = {name: value for name, value in parameters.items() if name not in NOT_PLANNED}
        try:
            key = type(self), pickle.dumps((planned, bounds, shape))
        except (pickle.PicklingError, TypeError, AttributeError):
            return self._prepared(bounds, *shape)
        found = _plans.get(key)
        if found is None:
            found = self._prepared(bounds, *shape)
            while len(_plans) >= MAX_PLANS:
                _plans.pop(next(iter(_plans)), None)
            _plans[key] = found
        return found

    def _prepared(
        self,
        bounds: DeclaredBounds | None,
        n_rows: int,
        n_features: int,
        n_outputs: int,
        is_sparse: bool,
        weighted: bool,
        provides: frozenset[str],
        start: Start | None,
        grouped: bool,
    ) -> Prepared:
        who = type(self).__name__
        public = Public(
            n_rows=n_rows,
            n_features=n_features,
            n_outputs=n_outputs,
            adjacency=Adjacency.parse(self.adjacency, labels=True),
            labels_alone=self.adjacency == LABEL,
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            has_intercept=bool(self.fit_intercept),
            data_norm=None if self.data_norm is None else float(self.data_norm),
            target_bound=self.target_bound,
            sparse=is_sparse,
            weighted=weighted,
            unit="group" if grouped else "row",
            rows_per_group=self.rows_per_group,
            provides=provides,
        )
        public = replace(
            public, row_bound=public.long_row if self.data_norm is None else public.data_norm
        )
        public = replace(public, moments=known_moments(bounds, public.has_intercept))
        if start is not None:
            public = public.starting_at(*start)
        problem = Problem(
            self._loss(n_outputs),
            self._penalty(n_rows),
            constraint_set(self.constraint, self.radius),
            fit_intercept=bool(self.fit_intercept),
        )
        asked = self._choose_solver(public, problem)
        asked.check(problem)
        if start is not None:
            require_start(who, asked, problem, start[0])
        if public.clips_means and not asked.averages_groups(public.is_pure):
            public = replace(public, rows_per_group=None)
        if public.streamed:
            require_one_pass(who, asked)
        parameters = StageParameters(
            who,
            self.accountant,
            self.scaling,
            bounds,
            self.calibration,
            self.inference,
            self.inference_share,
            is_default_solver=self._is_plain,
        )
        sequence = stages_of(parameters, public, problem, asked)
        plan = make_plan(sequence.stages, public, problem, self.accountant)
        return Prepared(public, problem, sequence.stages, plan, sequence.solver)

    def _start(
        self, coef_init: Any, intercept_init: Any, n_features: int, n_outputs: int
    ) -> Start | None:
        """Return where the solver is to start, if the fit was told."""
        asked = coef_init, intercept_init, n_features, n_outputs, bool(self.fit_intercept)
        return starting_point(type(self).__name__, *asked)

    @property
    def _is_plain(self) -> bool:
        """Whether the algorithm is the default."""
        return isinstance(self.solver, str) and self.solver == "auto" and not self._given()

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
        check_bound("rows_per_group", self.rows_per_group)
        constraint_set(self.constraint, self.radius)
        check_stages(self.scaling, self.bounds, self.data_norm, self.constraint, self.calibration)
        check_inference(self.inference, self.inference_share)
        for name in ("fit_intercept", "linear_predictions"):
            value = getattr(self, name)
            require(name, value, "be True or False", isinstance(value, bool | np.bool_))
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
        if public.clips_means:
            found.append(
                f"rows_per_group = {public.rows_per_group:g} was guessed without looking at the "
                "rows. The mean gradient of a group is clipped, whatever the number of its rows."
            )
        if public.weighted:
            found.append(
                "That weights are finite, not negative and not all 0 is public. The weight of a "
                "record follows from that record alone, which the weights of AdaBoost do not."
            )
        if public.start is not None:
            found.append(
                "coef_init and intercept_init, where the solver started, are public: they were "
                "not learnt from these rows, or what that cost is accounted for elsewhere."
            )
        if self.data_norm is not None:
            found.append(
                f"data_norm = {self.data_norm:g} was chosen without looking at the rows; "
                "longer rows were scaled down to it."
            )
        elif public.row_bound is not None:
            found.append(
                f"Rows longer than {public.row_bound:.4g}, twice what columns of unit size give, "
                "were scaled down to it, or to row_bound_ if that is more, in fit and in predict; "
                "data_norm sets another bound."
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
                f"declared; places without a {public.unit} count as null records.",
                f"The order of arrival and the numbers of {public.unit}s in blocks did not depend "
                "on private values. The order is not secret, so nothing was amplified by "
                "shuffling.",
            ]
            if public.grouped:
                found.append(
                    "All rows of a group arrived in one block. Labels of different blocks were not "
                    "compared, since nothing of them is kept: whoever has rows in k blocks counts "
                    "as k groups."
                )
        return tuple(found)
