"""Base of the estimators: from rows to coefficients, on the one path of all private fits."""

from __future__ import annotations

import importlib
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from skdp._docstrings import without_types
from skdp._fitting import assumptions, parameters, refusals, user_warnings
from skdp._fitting.data import Data
from skdp._fitting.estimator import Fit, PrivateEstimator, planned_once
from skdp._fitting.privacy import Privacy
from skdp._fitting.rows import read_data, read_stream
from skdp._fitting.targets import (
    Targets,
    checked_labels,
    checked_offset,
    in_raw_units,
    scaled_scores,
    starting_point,
)
from skdp._numbers import AnyArray, AnyType, Array, MatrixLike, Table, shown
from skdp._oracle import Public, Solution, make_plan
from skdp._stages import column_bounds
from skdp._stages.base import StageParameters
from skdp._stages.inference import inference_share
from skdp._stages.sequence import Prepared, stages_of
from skdp.accounting import LABEL, PrivacyStatement
from skdp.linear_model.inference import keep_inference, normal_intervals
from skdp.objective import ElasticNet, Loss, OffsetLogistic, OffsetMultinomial, Problem
from skdp.objective.tweedie import LARGEST_EXPONENT
from skdp.solvers import auto
from skdp.solvers.checks import is_auto

# Hyperparameters that an estimator hands on to a solver chosen by name. Their default is "auto".
HANDED_ON = ("max_iter", "learning_rate", "momentum", "noise_schedule", "clip_norm")
Start = tuple[Array, Array]  # coefficients (features by outputs) and intercepts


@parameters.declared
class DPLinearModel(PrivateEstimator, metaclass=ABCMeta):
    """Base of the estimators: from rows to coefficients, through the oracle.

    Subclasses define the targets, the problem, and the display of coefficients.
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    solver: parameters.SolverChoice = "auto"
    max_iter: int | parameters.Auto = "auto"
    learning_rate: parameters.StepSize = "auto"
    momentum: parameters.AnyMomentum = "auto"
    noise_schedule: parameters.RelativeNoise = "auto"
    clip_norm: float | str = "auto"
    scaling: parameters.Scaling = "auto"
    prior: Any = None
    constraint: parameters.ConstraintChoice = None
    fit_intercept: bool = True
    privacy: Privacy | None = None
    verbose: int = 0
    # Values of the parameters that only some estimators declare, for the others.
    inference: parameters.InferenceChoice = field(default=None, init=False)
    fixed_effects: bool = field(default=False, init=False)

    _protects_labels = True
    _multi_output = False  # True if y may have several columns
    _calibrates = False  # True if fits end with a calibration

    # ------------------------------------------------------------------ what subclasses say

    @abstractmethod
    def _loss(self, n_outputs: int) -> Loss:
        """Return the loss."""

    @abstractmethod
    def _read_targets(self, y: AnyArray, dtype: AnyType) -> Targets:
        """Check y and turn it into targets of the kind that the loss takes."""

    @abstractmethod
    def _declared_targets(self, n_outputs: int) -> Targets:
        """Return targets of that kind, of two rows or so, before any row has arrived."""

    @abstractmethod
    def _penalty(self, n_rows: int) -> ElasticNet:
        """Return the penalty, next to the mean loss."""

    def _unit_of_loss(self, n_outputs: int) -> float:
        """Return the public number by which the loss is divided, and the penalty with it."""
        return 1.0

    @property
    def _has_intercept(self) -> bool:
        """True if an intercept is fitted. Deviations from means have none."""
        return bool(self.fit_intercept) and not self.fixed_effects

    def _check_own_parameters(self) -> None:
        """Raise ValueError if a parameter that only the subclass has is out of range."""

    @abstractmethod
    def _target_assumptions(self) -> tuple[str, ...]:
        """Say what was taken from y, or declared about it, as public."""

    @abstractmethod
    def _plain_model(self) -> Any:
        """Return scikit-learn's own estimator, without coefficients."""

    @abstractmethod
    def _show(self, coef: Array, intercept: Array, targets: Targets) -> None:
        """Store ``coef`` (features by outputs) and ``intercept`` in scikit-learn's shapes."""

    def __sklearn_clone__(self) -> Self:
        """Clone. A prior is a fitted model, which is not fitted again."""
        copy: Self = super().__sklearn_clone__()
        copy.prior = self.prior
        return copy

    # ------------------------------------------------------------------ the path

    def _facts_of(
        self, data: Data, coef_init: Table = None, intercept_init: Table = None
    ) -> dict[str, Any]:
        n_outputs = data.targets.n_outputs
        given = coef_init, intercept_init, data.n_features, n_outputs, self._has_intercept
        start = starting_point(*given)
        more = {"start": start, "label_weights": data.targets.label_weights}
        return {**super()._facts_of(data), "n_outputs": n_outputs, **more}

    def _warn_before(self, prepared: Prepared) -> None:
        who = self._who
        user_warnings.warn_about_inference(who, prepared)
        user_warnings.warn_about_units(who, self._scaling_word, prepared)
        user_warnings.warn_about_label_set(who, self._reads_label_set, self.epsilon)

    @without_types
    def fit(
        self,
        X: Table,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        groups: Table = None,
    ) -> Self:
        """Fit the model, spending its budget.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            float64 or float32. Sparse input is used as CSR. Alternatively a `Chunks` or
            `Partitions` object, which also contains y and, if used, weights and labels of groups,
            or a dask array or data frame, in which case y, weights and groups must also be dask
            collections.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Class labels or regression targets. Several targets are fitted jointly and do not split
            the budget.
        sample_weight : array of shape (n_samples,), float or None, default=None
            Not negative. Only ratios of weights matter, as the loss is divided by the sum of the
            weights. In scikit-learn that sum also multiplies the loss next to most penalties.
            Weights are divided by a scale near the largest of them, which is estimated privately
            unless ``Privacy(max_weight=...)`` declares it. Larger weights count as this scale.
        offset : array of shape (n_samples,) or (n_samples, n_outputs), or None, default=None
            Added to each row's margin, with a coefficient of 1: ``log(exposure)`` with a log link,
            or the margins of a public model. Predictions then need an offset. Ranges of targets,
            declared or estimated, are those of the targets less the offset, with a log link of ``y
            / exp(offset)``.
        coef_init, intercept_init : array or None, default=None
            Where the solver starts, in the shapes and units of ``coef_`` and ``intercept_``. None
            is zero. Public by assumption, which the privacy statement lists: a point learnt from
            the same rows is a leak, unless its cost is accounted for.
        groups : array of shape (n_samples,) or None, default=None
            Labels of groups, such as persons: all numbers or all text, none missing. The guarantee
            then protects all rows with one label, whatever their number. The number of groups is
            public and replaces n. The number of rows is private. Each group counts once in the
            model. None protects single rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data is refused. Nothing is released then.
        """
        if self.prior is not None:
            given = {"coef_init": coef_init, "intercept_init": intercept_init}
            with refusals.refusing(self._who):
                self._refuse_with_prior(**given)
            importlib.import_module("skdp.linear_model.prior").fit_with_prior(
                self, X, y, sample_weight, groups, offset
            )
            return self
        data = read_data(self, X, y, sample_weight, groups, offset)
        return self._fit(data, coef_init, intercept_init)

    def _refuse_with_prior(self, **given: Any) -> None:
        """Raise ValueError for anything that a fit from a prior does not have."""
        own = ("constraint", "inference", "fixed_effects")
        given |= {name: getattr(self, name) or None for name in own}
        beside = [name for name, value in given.items() if value is not None]
        if self.prior is not None and beside:
            raise ValueError(f"prior is not possible beside {', '.join(beside)}; leave one out.")

    def fit_blocks(
        self,
        blocks: Iterable[tuple[Table, ...]],
        *,
        n_features: int,
        n_samples: int | None = None,
        n_groups: int | None = None,
        n_outputs: int = 1,
        sparse: bool = False,
        weighted: bool = False,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to a stream of blocks of rows, each of which is read once.

        The solver must read each row once: "whitened", "adaptive_shuffled_sgd" or "shuffled_sgd".
        "auto" is "whitened" unless there are weights, several outputs, many columns or little
        signal. Memory contains one arriving block and the first rows. The last two solvers also
        keep ``n_samples / max_iter`` rows. The budget is charged once, before the first block is
        read. Columns and targets are standardised by figures from the first rows to arrive, which
        are used for nothing else. `PublicRange` and `PublicSample` need none. If scaling is
        impossible, for instance with delta = 0, columns should have about unit standard deviation:
        a `NoiseWarning` is issued unless ``scaling="none"`` or a `RowNorm` confirms it.

        Parameters
        ----------
        blocks : iterable of tuples (X, y), with weights or groups behind if there are any
            X of shape (any, n_features), y of shape (any,) or (any, n_outputs). Data frames have
            the same columns in the same order in all blocks. A classifier needs
            ``classes`` to be declared. With ``weighted``, ``sample_weight`` follows, of shape
            (any,). With ``n_groups``, labels of groups, as in ``fit``, follow:
            *all rows of a group have to arrive in one block*.
        n_features : int
            Number of columns.
        n_samples : int or None, default=None
            Number of rows, declared as public, needed without ``n_groups``. Missing rows count as
            null records, and no result reveals that they were missing. Rows beyond it are left out,
            with a warning. If blocks are a list, they are refused before the budget is charged.
        n_groups : int or None, default=None
            Number of groups, declared in place of the number of rows: the guarantee protects
            groups.
        n_outputs : int, default=1
            Number of targets of a regression.
        sparse : bool, default=False
            Whether X is sparse.
        weighted : bool, default=False
            Whether blocks hold weights of rows, as ``sample_weight`` in ``fit``.
        coef_init, intercept_init : array or None, default=None
            Where the solver starts, as in ``fit``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is refused, before any block is read, or if a block is. Blocks in a list
            are all checked before the budget is charged.

        Notes
        -----
        The order of arrival and the sizes of blocks must not depend on private values. No shuffle
        is needed for privacy: a record keeps its place, so it lies in one of the solver's blocks,
        whatever the other records are (parallel composition). There is no amplification, either, as
        the order is not secret: the price is that of one step. For accuracy, rows should arrive in
        about random order.

        The first rows, whose number follows from the budget and the shape, and the others are two
        blocks of one division by the order of arrival. Histograms of the first spend the whole
        budget, and so do the steps on the others: the cost is the maximum of both, as a record is
        in one (parallel composition, McSherry 2009, Thm 4). Each release in ``privacy_`` says
        which block it was on.

        Within a call no row is read twice, and a solver that would have to is refused. Another call
        is another fit, with a price of its own. Give ``privacy`` a budget that both share to have
        it counted.

        Labels of different blocks are not compared: that would require storing labels, or values
        that follow from them, which are private. Whoever has rows in k blocks counts as k groups,
        and is protected k times less. The statement says so.

        Examples
        --------
        >>> import numpy as np
        >>> from skdp import DPLinearRegression
        >>> def blocks():
        ...     rng = np.random.default_rng(0)
        ...     for _ in range(20):
        ...         X = rng.standard_normal((1000, 3))
        ...         yield X, X @ [1.0, -1.0, 0.5] + 0.1 * rng.standard_normal(1000)
        >>> model = DPLinearRegression(scaling="none")
        >>> model.fit_blocks(blocks(), n_samples=20000, n_features=3).coef_.round(1).tolist()
        [1.0, -1.0, 0.5]
        """
        with refusals.refusing(self._who):
            self._refuse_with_prior(fit_blocks=blocks)
        form = blocks, n_features, n_outputs, n_samples, n_groups, sparse, weighted
        return self._fit(read_stream(self, *form), coef_init, intercept_init)

    def _read_rows(self, X: Table, y: Table, groups: object = None, **checks: Any) -> Table:
        """Validate X and y, by the kind of targets that the loss takes."""
        if self._loss(1).targets != "label":
            checks |= {"multi_output": self._multi_output, "y_numeric": True}
            refusals.refuse_columns("y", y)
            refusals.refuse_missing_targets(y)
        elif y is not None:
            y = checked_labels(y)
        return self._read("X or y", X, y, **checks)

    def _with_offset(
        self, targets: Targets, weights: AnyArray | None, offset: AnyArray
    ) -> tuple[Targets, AnyArray | None]:
        """Put the offsets of margins into targets, and with some log links into weights."""
        if offset.shape[1] not in (1, targets.n_outputs):
            raise refusals.InputError(
                f"offset must have one column, or one for each of {targets.n_outputs} outputs."
            )
        loss = self._loss(targets.n_outputs)
        try:
            values, weights = loss.with_offsets(offset, targets.values, weights)
        except ValueError as reason:
            raise refusals.InputError(str(reason)) from None
        return replace(targets, values=values), weights

    def _keep(self, solution: Solution, fit: Fit) -> None:
        """Store the results of a fit, in the user's units."""
        for name in [one for one in vars(self) if one.endswith("_") and not one.endswith("_in_")]:
            delattr(self, name)  # of an earlier fit
        prepared, targets = fit.prepared, fit.data.targets
        public, n_features = prepared.public, prepared.public.n_features
        coef, intercept = solution.coef[:n_features], np.zeros(targets.n_outputs)
        if public.has_intercept:
            intercept = public.intercept_size * solution.coef[n_features]
        self._show(*in_raw_units(coef, intercept, solution.scaling), targets)
        keep_inference(self, solution, public.has_intercept)
        if "debiased" in solution.results:
            names = fit.data.names
            user_warnings.warn_about_collinear_columns(self._who, prepared, self.determined_, names)
        for stage in prepared.stages:
            for name, value in stage.results(solution).items():
                setattr(self, name, value)
        self.solver_ = deepcopy(prepared.solver)
        self.offset_fitted_ = public.has_offset
        self.privacy_ = fit.statement
        fit.data.keep_columns(self)

    def coefficients(self) -> Table:
        """Return the coefficients as a table, largest effect first. It needs pandas.

        Returns
        -------
        pandas.DataFrame
            Indexed by column: ``coefficient`` (with several outputs one column for each), in the
            unit of X, and ``effect``, the change of the prediction if the column changes by its
            scale in ``scaling_`` (1 if columns were not scaled). With several outputs it is the
            largest. With a log link ``rate ratio``, the factor on the mean for one unit more of a
            column, is between them, and the effect is one on the logarithm of the mean.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skdp import DPRidge
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> DPRidge(epsilon=10.0).fit(X, y).coefficients().columns.tolist()
        ['coefficient', 'effect']
        """
        check_is_fitted(self, "coef_")
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise ImportError(f"{self._who}: coefficients() needs pandas.") from None
        coef = np.atleast_2d(self.coef_)
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        several = [f"coefficient {name}" for name in self._output_names]
        table = pandas.DataFrame(
            coef.T, index=names, columns=["coefficient"] if len(coef) == 1 else several
        )
        columns = None if self.scaling_ is None else self.scaling_.columns
        sizes = 1.0 if columns is None else columns.scale
        largest = np.abs(coef).argmax(axis=0)
        if len(coef) == 1 and self._loss(1).link == "log":
            table["rate ratio"] = np.exp(np.clip(coef[0], -LARGEST_EXPONENT, LARGEST_EXPONENT))
            estimates = vars(self).get("inference_")
            if estimates is not None:  # whose intervals are about other coefficients
                table["debiased rate ratio"] = self._loss(1).mean(estimates.coef)
                limits = normal_intervals(estimates.coef, estimates.std_error, 0.95)
                limits = np.clip(limits, -LARGEST_EXPONENT, LARGEST_EXPONENT)
                table[["lower", "upper"]] = np.exp(limits)
        table["effect"] = coef[largest, np.arange(coef.shape[1])] * sizes
        return table.sort_values("effect", key=np.abs, ascending=False)

    @property
    def _output_names(self) -> Iterable[object]:
        """Labels, quantiles or numbers of the rows of ``coef_``."""
        return getattr(self, "classes_", range(len(np.atleast_2d(self.coef_))))

    def to_sklearn(self) -> Any:
        """Return a fitted linear model of scikit-learn with the same coefficients.

        It can be given to tools for scikit-learn's own models: SHAP, converters to ONNX or PMML, a
        service without skdp. It is as public as this model.

        Returns
        -------
        LinearRegression, Ridge or LogisticRegression
            It predicts ``X @ coef_.T + intercept_`` everywhere. This model treats rows as the fit
            did: columns are clipped to their ranges, long rows are scaled down, and predictions of
            regressors are clipped to ``prediction_range_``. Rows like most others get the same
            prediction either way.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from skdp import DPLogisticRegression
        >>> X, y = load_iris(return_X_y=True)
        >>> model = DPLogisticRegression(classes=[0, 1, 2], epsilon=10.0).fit(X, y)
        >>> plain = model.to_sklearn()
        >>> type(plain).__name__, plain.coef_.shape
        ('LogisticRegression', (3, 4))
        """
        check_is_fitted(self, "coef_")
        plain = self._plain_model()
        plain.coef_, plain.intercept_ = self.coef_.copy(), np.copy(self.intercept_)[()]
        plain.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            plain.feature_names_in_ = self.feature_names_in_
        return plain

    def _exact_score(
        self,
        metric: Callable[..., float],
        X: MatrixLike,
        y: ArrayLike,
        weights: ArrayLike | None,
        offset: ArrayLike | None,
    ) -> float:
        """Return a metric of scikit-learn, with a warning, as it is computed without noise."""
        user_warnings.warn_about_score(self._who, self.epsilon)
        predicted = self.predict(X, offset=offset)
        otherwise = refusals.NO_LABELS if is_classifier(self) else refusals.NO_NUMBERS
        with (
            refusals.refusing(self._who),
            refusals.without_cells("y or sample_weight", otherwise=otherwise),
        ):
            return float(metric(y, predicted, sample_weight=weights))

    @abstractmethod
    def predict(self, X: MatrixLike, *, offset: ArrayLike | None = None) -> AnyArray:
        """Predict targets or labels."""

    def _linear_predictor(self, X: Table) -> Array:
        """Return margins without offsets."""
        check_is_fitted(self, "coef_")
        if "prior_fit_" in vars(self):
            prior = importlib.import_module("skdp.linear_model.prior")
            return np.asarray(prior.margins_with_prior(self, X))
        X = self._read_new(X)
        coef = np.atleast_2d(self.coef_).T
        # Rows that are to be predicted are no deviations, which ranges and bounds are about.
        limits = (None, None) if self.fixed_effects else (self.scaling_, self.row_bound_)
        return np.asarray(scaled_scores(X, coef, self.intercept_, *limits))

    def _offset_of_rows(self, offset: Table, n_rows: int) -> Array | float:
        """Return the offsets of rows to predict, 0 if neither the fit nor the call got any."""
        with refusals.refusing(self._who):
            if offset is not None:
                return checked_offset(offset, n_rows)
            if getattr(self, "offset_fitted_", False):
                raise refusals.InputError(
                    "the model was fitted with an offset, and none was given for these rows. Pass "
                    "offset=, or an array of zeros for predictions without it."
                )
            return 0.0

    @property
    def _prior_is_private(self) -> bool:
        if self.prior is None:
            return False
        return bool(importlib.import_module("skdp.linear_model.prior").Prior.of(self).costs)

    # ------------------------------------------------------------------ plans

    def _plan(
        self,
        n_samples: int | None,
        n_features: int,
        n_outputs: int,
        is_sparse: bool,
        n_groups: int | None,
        weighted: bool,
    ) -> PrivacyStatement:
        if self.prior is not None:
            priors = importlib.import_module("skdp.linear_model.prior")
            planned: PrivacyStatement = priors.plan_with_prior(
                self, n_samples, n_features, n_outputs, is_sparse, n_groups, weighted
            )
            return planned
        facts: dict[str, Any] = {"sparse": is_sparse, "weighted": weighted}
        with refusals.refusing(self._who):
            self._check_parameters()
            counts = {"n_features": n_features, "n_outputs": n_outputs}
            n_records = parameters.planned_records("plan", n_samples, n_groups, **counts)
            for name, given in facts.items():
                parameters.check_bool(name)(given)
            # Whether labels have weights, and any of them 0, decides what a fit consists of.
            by_label = getattr(self, "class_weight", None)
            if by_label is not None:
                facts["label_weights"] = 1.0, *[0.0] * (0 in by_label.values())
            grouped = n_groups is not None
            prepared = self._prepare(n_records, n_features, n_outputs, grouped=grouped, **facts)
        public, plan = prepared.public, prepared.plan
        user_warnings.warn_about_noise(self._who, prepared)
        user_warnings.warn_about_inference(self._who, prepared)
        user_warnings.warn_about_units(self._who, self._scaling_word, prepared)
        cost = plan.cost(public, self._assumptions(prepared), self._terms.noise_source)
        statement = replace(cost.statement(), notes=prepared.notes)
        inference = user_warnings.inference_expectation(prepared)
        if inference is not None:
            return replace(statement, expectations=inference[:1])
        if self.solver == "auto" and not self._given():  # as the fits that were measured
            return replace(statement, expectations=user_warnings.expectations(prepared))
        return statement

    def _knows_target_range(self, n_samples: int, n_features: int, n_outputs: int = 1) -> bool:
        """Whether a fit bounds its targets, by a declared range or an estimated one."""
        grouped = bool(self.fixed_effects)
        prepared = self._prepare(n_samples, n_features, n_outputs, grouped=grouped)
        return prepared.public_after.target_bound is not None

    # ------------------------------------------------------------------ what a fit consists of

    def _prepare(
        self,
        n_records: int,
        n_features: int,
        n_outputs: int = 1,
        *,
        grouped: bool = False,
        names: Sequence[str] | None = None,
        start: Start | None = None,
        **facts: Any,
    ) -> Prepared:
        """Settle all that does not depend on rows.

        ``names`` of columns, empty if they have none, are for a `PublicRange` that names them.
        """
        bounds, terms = column_bounds.declared_bounds(self.scaling, n_features, names), self._terms
        targets = column_bounds.declared_targets(self.scaling)
        if self.fixed_effects and not grouped:
            raise ValueError(
                "fixed_effects=True subtracts the means of each group of rows, and no groups were "
                "given. Pass groups to fit, or n_groups to plan and fit_blocks."
            )
        public = self._public(
            n_records,
            n_features,
            grouped,
            n_outputs=n_outputs,
            labels_alone=terms.adjacency == LABEL,
            has_intercept=self._has_intercept,
            data_norm=float(self.scaling.norm)
            if isinstance(self.scaling, column_bounds.RowNorm)
            else None,
            target_bound=None if targets is None else max(abs(end) for end in targets),
            rows_per_group=terms.rows_per_group,
            max_weight=terms.max_weight,
            **facts,
        )
        return planned_once(self, (bounds, public, start))

    def _prepared(
        self, bounds: column_bounds.DeclaredBounds | None, public: Public, start: Start | None
    ) -> Prepared:
        longest = public.long_row if public.data_norm is None else public.data_norm
        public = replace(public, row_bound=longest)
        if isinstance(bounds, column_bounds.PublicSample):
            public = replace(public, moments=bounds.second_moments(public.has_intercept))
        if start is not None:
            public = public.starting_at(*start)
        loss = self._loss(public.n_outputs)
        if public.has_offset and loss.targets == "label":
            several = OffsetMultinomial(public.n_outputs) if public.n_outputs > 1 else None
            loss = several or OffsetLogistic()
        problem = Problem(
            loss.for_signal(public.signal_to_noise),
            self._penalty(public.n_rows).scaled(1 / self._unit_of_loss(public.n_outputs)),
            parameters.constraint_set(self.constraint),
            fit_intercept=self._has_intercept,
        )
        share, settings = inference_share(self.inference), self._given()
        given_solver = self._who, self.solver, settings, public, problem
        solver = auto.choose_solver(*given_solver, share is None)
        solver.check(problem)
        auto.require_use(self._who, solver, public, problem, start)
        if public.clips_means and not solver.averages_groups(public.is_pure):
            public = replace(public, rows_per_group=None)
        given = StageParameters(
            self._who,
            self._scaling_word,
            bounds,
            column_bounds.declared_targets(self.scaling),
            self._calibrates,
            share,
            public.has_weights,
        )
        sequence = stages_of(given, public, problem, solver)
        plan = make_plan(sequence.stages, public, problem)
        left_out = (
            f"{what} is left out: it is possible only with {need}."
            for what, need in sequence.left_out.items()
        )
        notes = list(left_out)
        name, arguments = auto.name_and_arguments(self.solver)
        if is_auto(name):
            settings |= arguments
            notes.insert(0, auto.note_on_choice(public, problem, settings, solver.name))
        return Prepared(public, problem, sequence.stages, plan, sequence.solver, tuple(notes))

    @property
    def _reads_label_set(self) -> bool:
        """Whether the labels of a classifier come from the rows, as none are declared."""
        is_label = self._loss(1).targets == "label"
        return is_label and getattr(self, "classes", None) is None

    def _given(self) -> dict[str, Any]:
        """Hyperparameters that were set, to be handed on to a solver chosen by name."""
        values = {name: getattr(self, name) for name in HANDED_ON}
        return {name: value for name, value in values.items() if not is_auto(value)}

    @property
    def _scaling_word(self) -> str:
        """The value of ``scaling`` by which stages are chosen: declarations are part of "auto"."""
        if isinstance(self.scaling, str):
            return self.scaling
        return "none" if isinstance(self.scaling, column_bounds.RowNorm) else "auto"

    def _check_parameters(self) -> None:
        parameters.check_parameters(vars(self))
        column_bounds.check_scaling(self.scaling)
        standardises = column_bounds.declared_bounds(self.scaling) is not None
        standardises |= self._scaling_word == "private"
        if self.constraint is not None and standardises:
            raise ValueError(
                f"scaling={shown(self.scaling)} standardises columns, and a constraint bounds "
                "coefficients of columns as they are given. Set one of the two."
            )
        if column_bounds.declared_targets(self.scaling) is not None and is_classifier(self):
            raise ValueError(f"labels have no range. Leave target out of {shown(self.scaling)}.")
        self._check_own_parameters()

    def _assumptions(self, prepared: Prepared) -> tuple[str, ...]:
        # Of a stream, first records may be held for scaling alone.
        public, n_rows = prepared.public_after, prepared.public.n_rows
        return (
            *assumptions.row_assumptions(replace(public, n_rows=n_rows)),
            "Hyperparameters, and any scaling or selection of columns before this fit, did not "
            "use these rows, or are accounted for elsewhere.",
            *self._target_assumptions(),
            *(text for stage in prepared.stages for text in stage.assumptions()),
            *assumptions.declared_assumptions(public),
            *assumptions.noise_assumptions(self._terms.noise_source, self.epsilon),
            *(assumptions.stream_assumptions(public, n_rows) if public.streamed else ()),
        )
