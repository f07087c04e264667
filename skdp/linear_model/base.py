"""Base of the estimators: from rows to coefficients, on the one path of all private fits."""

import importlib
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse as scipy_sparse
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import check_is_fitted

from skdp._numbers import Array, is_real, shown
from skdp.accounting import PrivacyStatement
from skdp.fitting import parts
from skdp.fitting.between_fits import FitData, numeric_targets
from skdp.fitting.grouping import GroupLabels, rows_in_memory
from skdp.fitting.inference_outlook import warn_about_inference
from skdp.fitting.parameters import check_counts, planned_records, warn_about_label_set
from skdp.fitting.partitions import CheckTask, as_partitions, summaries
from skdp.fitting.path import Prepared
from skdp.fitting.preparation import PlannedModel
from skdp.fitting.refusals import (
    NO_LABELS,
    NO_NUMBERS,
    without_cells,
    without_row_counts,
    without_sizes,
)
from skdp.fitting.streaming import BlockReader
from skdp.fitting.units import Targets, in_raw_units, joint_weights, scaled_scores
from skdp.linear_model.inference import InferenceMixin
from skdp.oracle import Solution
from skdp.oracle.sources.base import PARTITIONED, STREAMED
from skdp.oracle.sources.memory import Map, MemorySource
from skdp.oracle.sources.partitioned import (
    PartitionedSource,
    Partitions,
    SumTask,
    require_few_partitions,
)
from skdp.oracle.sources.stream import StreamSource


class DPLinearModel(InferenceMixin, PlannedModel):
    """Base of the estimators: from rows to coefficients, through the oracle.

    Subclasses say what the targets are, which problem is solved, and how coefficients are shown.
    """

    # ------------------------------------------------------------------ what subclasses say

    @abstractmethod
    def _read_targets(self, y: Any, dtype: np.dtype[Any]) -> Targets:
        """Check y and turn it into targets; sets no attribute, as the fit may yet be refused."""

    @abstractmethod
    def _declared_targets(self, n_outputs: int) -> Targets:
        """Return targets of the declared kind, of two rows or so, before any row has arrived."""

    @abstractmethod
    def _plain_twin(self) -> Any:
        """Return scikit-learn's own estimator, without coefficients."""

    @abstractmethod
    def _show(self, coef: Array, intercept: Array, targets: Targets) -> None:
        """Store ``coef`` (features by outputs) and ``intercept`` in scikit-learn's shapes."""

    # ------------------------------------------------------------------ the path

    @property
    def _reads_label_set(self) -> bool:
        """Whether the labels of a classifier come from the rows, as none are declared."""
        return is_classifier(self) and self.get_params(deep=False)["classes"] is None

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        coef_init: Any,
        intercept_init: Any,
        groups: Any,
        **checks: Any,
    ) -> Self:
        # 1. Everything that can be refused without rows.
        who = type(self).__name__
        self._check_parameters()
        partitions = as_partitions(who, X, y)
        if partitions is not None:
            if groups is not None:
                raise ValueError(
                    f"{who}: {type(X).__name__} takes no groups: rows come in partitions, each is "
                    "summed where it is, and rows of one group may lie in several of them. Fit on "
                    "arrays in memory, or by fit_blocks(n_groups=...), whose blocks hold whole "
                    "groups. Nothing was released."
                )
            warn_about_label_set(who, self._reads_label_set, self.epsilon)
            return self._fit_partitions(
                partitions, sample_weight, coef_init, intercept_init, checks
            )
        part = parts.part_of(X, y, sample_weight, groups, unit=parts.unit_of(groups))
        # 2. Validate the rows.
        grouped = None
        if groups is not None:
            weighing = None if is_real(sample_weight) else sample_weight
            grouped = GroupLabels(who, groups, X=X, y=y, sample_weight=weighing)
        with without_sizes(who, grouped is not None), without_row_counts(grouped is not None):
            X, y = self._read("X or y", X, y, **checks)
            targets = self._checked_targets(y, X.dtype)
            weights = joint_weights(who, sample_weight, targets.weights, X)
        # 3. Public facts, the problem, the solver and the stages around it; then the plan.
        is_sparse = scipy_sparse.issparse(X)
        n_records, n_features = X.shape
        if grouped is not None:
            n_records = grouped.n_groups
        start = self._start(coef_init, intercept_init, n_features, targets.n_outputs)
        prepared = self._prepare(
            n_records,
            n_features,
            targets.n_outputs,
            is_sparse,
            weights is not None,
            names=list(getattr(self, "feature_names_in_", ())),
            start=start,
            grouped=grouped is not None,
        )
        public = prepared.public
        warn_about_inference(type(self).__name__, prepared)
        warn_about_label_set(who, self._reads_label_set, self.epsilon)

        # 4. Charge the budgets that this fit shares, and run on the rows, once.
        def rows(spread: Map) -> MemorySource:
            constant = public.intercept_size * public.has_intercept
            bound = public.row_bound
            codes = None if grouped is None else grouped.codes
            source = rows_in_memory(X, targets.values, weights, bound, constant, spread, codes)
            source.reserve(transformed=len(prepared.stages) > 1)
            return source

        data = FitData(
            X,
            numeric_targets(y, targets.values),
            public.labels_alone,
            None if part else n_records,
            sample_weight,
        )
        assumptions = self._assumptions(prepared)
        solution, statement = self._carry_out(prepared, assumptions, rows, part, data)
        # 5. Keep the answer; rows, oracle and generators end here.
        self._keep(solution, prepared, targets, statement)
        return self

    def _fit_partitions(
        self,
        partitions: Partitions,
        sample_weight: Any,
        coef_init: Any,
        intercept_init: Any,
        checks: dict[str, Any],
    ) -> Self:
        """Fit on rows that stay where they are: in files, or in other processes."""
        who = type(self).__name__
        if sample_weight is not None:
            raise ValueError(f"{who}: rows in partitions take no sample_weight; use class_weight.")
        # 1. A first pass checks the rows, as a fit in memory does.
        twin = self._twin().set_params(budget=None, random_state=None, noise_source="system")
        seen = summaries(who, partitions, CheckTask(twin, self._reads_label_set, checks))
        sizes = [0 if one is None else one.n_rows for one in seen]
        filled = [one for one in seen if one is not None]
        like = filled[0]
        if self._reads_label_set:
            with without_cells(who, "y", otherwise=NO_LABELS):
                twin.classes = np.unique(np.concatenate([one.labels for one in filled]))
            twin._check_parameters()
        declared = replace(twin._declared_targets(like.n_outputs), is_column=like.is_column)
        # 2. The rest is that of any fit.
        require_few_partitions(len(filled))
        prepared = self._prepare(
            sum(sizes),
            like.n_features,
            declared.n_outputs,
            like.is_sparse,
            declared.weights is not None,
            PARTITIONED,
            names=like.names,
            start=self._start(coef_init, intercept_init, like.n_features, declared.n_outputs),
        )
        public = prepared.public
        read = BlockReader(twin, public, declared)
        task = SumTask(read, public.row_bound, public.intercept_size * public.has_intercept)
        solution, statement = self._carry_out(
            prepared,
            self._assumptions(prepared),
            lambda spread: PartitionedSource(partitions, sizes, task, spread),
            parts.part_of(),
        )
        self._keep(solution, prepared, declared, statement)
        self.n_features_in_ = like.n_features
        if like.names is not None:
            self.feature_names_in_ = np.array(like.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        return self

    def fit_blocks(
        self,
        blocks: Iterable[tuple[Any, ...]],
        *,
        n_features: int,
        n_samples: int | None = None,
        n_groups: int | None = None,
        n_outputs: int = 1,
        sparse: bool = False,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
    ) -> Self:
        """Fit the model on blocks of rows that arrive one by one, each read once.

        The solver must be one that reads each row once ("shuffled_sgd" or "adaptive_shuffled_sgd";
        "auto" is the second). Memory is that of an arriving block and of one of the solver's, which
        has ``n_samples / max_iter`` rows. The budget is charged once, before the first block is
        asked for. Columns are used as they come, whatever ``scaling`` says.

        Parameters
        ----------
        blocks : iterable of (X, y), or of (X, y, groups)
            X of shape (any, n_features), y of shape (any,) or (any, n_outputs). A classifier needs
            ``classes`` to be declared. With ``n_groups``, labels of groups, as in ``fit``, follow:
            *all rows of a group have to arrive in one block*.
        n_features : int
            Number of columns.
        n_samples : int or None, default=None
            Number of rows, declared as public; needed without ``n_groups``. Places that no row
            arrives for count as null records, and nothing tells that they were missing. Rows
            beyond it are an error at the end: no model is kept, and the budget is spent.
        n_groups : int or None, default=None
            Number of groups, declared in place of that of rows: the guarantee is for a group.
        n_outputs : int, default=1
            Number of targets of a regression.
        sparse : bool, default=False
            Whether X is sparse.
        coef_init, intercept_init : array or None, default=None
            Where the solver starts, as in ``fit``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is refused, before any block is asked for; or if a block is.

        Notes
        -----
        The order of arrival and the sizes of blocks must not depend on what the rows hold, but for
        what is public. No shuffle is needed for privacy: a record keeps its place, so it
        lies in one of the solver's blocks, whatever the others hold (parallel composition). There
        is no amplification, either, as the order is not secret: the price is that of one step. For
        accuracy, rows should arrive in about random order.

        Within a call no row is read twice, and a solver that would have to is refused. Another call
        is another fit, with a price of its own; give a ``budget`` that both share to have it
        counted.

        Labels of different blocks are not compared: that would take keeping labels, or something
        that follows from them, which are private. Whoever has rows in k blocks counts as k groups,
        and is protected k times less; the statement says so.

        Examples
        --------
        >>> import numpy as np
        >>> from skdp import DPLinearRegression
        >>> def blocks():
        ...     rng = np.random.default_rng(0)
        ...     for _ in range(20):
        ...         X = rng.standard_normal((1000, 3))
        ...         yield X, X @ [1.0, -1.0, 0.5] + 0.1 * rng.standard_normal(1000)
        >>> model = DPLinearRegression()
        >>> model.fit_blocks(blocks(), n_samples=20000, n_features=3).coef_.round(1).tolist()
        [1.0, -1.0, 0.5]
        """
        who = type(self).__name__
        self._check_parameters()
        if self.scaling == "private" or self.bounds is not None:
            raise ValueError(
                f"{who}: fit_blocks takes columns as they are; got scaling={self.scaling!r}, "
                f"bounds={shown(self.bounds)}. Scale the blocks by public figures, or declare "
                "data_norm. Nothing was released."
            )
        n_records = planned_records(n_samples, n_groups, "fit_blocks")
        check_counts("fit_blocks", n_features=n_features, n_outputs=n_outputs)
        declared = self._declared_targets(n_outputs)
        weighted = declared.weights is not None
        shape = n_records, n_features, declared.n_outputs, bool(sparse), weighted
        start = self._start(coef_init, intercept_init, n_features, declared.n_outputs)
        prepared = self._prepare(*shape, STREAMED, start=start, grouped=n_groups is not None)
        public = prepared.public
        reader = BlockReader(self._twin(), public, declared)

        def rows(spread: Map) -> StreamSource:
            constant = public.intercept_size * public.has_intercept

            def arrived(X: Any, values: Any, weights: Any, groups: Any) -> MemorySource:
                return rows_in_memory(X, values, weights, public.row_bound, constant, map, groups)

            return StreamSource(reader.arrivals(blocks), n_records, arrived, reader.nothing())

        assumptions = self._assumptions(prepared)
        solution, statement = self._carry_out(prepared, assumptions, rows, parts.part_of())
        self._keep(solution, prepared, declared, statement)
        self.n_features_in_ = int(n_features)
        if hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        return self

    def _checked_targets(self, y: Any, dtype: np.dtype[Any]) -> Targets:
        """Return the targets of y; a refusal quotes none of them."""
        otherwise = NO_LABELS if is_classifier(self) else NO_NUMBERS
        with without_cells(type(self).__name__, "y", otherwise=otherwise):
            return self._read_targets(y, dtype)

    def _twin(self) -> Self:
        """Return an estimator with the same parameters, on which arriving blocks are checked."""
        return type(self)(**self.get_params(deep=False))

    def _keep(
        self,
        solution: Solution,
        prepared: Prepared,
        targets: Targets,
        statement: PrivacyStatement,
    ) -> None:
        """Store what a fit found, in the user's units."""
        public, n_features = prepared.public, prepared.public.n_features
        coef, intercept = solution.coef[:n_features], np.zeros(targets.n_outputs)
        if public.has_intercept:
            intercept = public.intercept_size * solution.coef[n_features]
        self._show(*in_raw_units(coef, intercept, solution.scaling), targets)
        self._keep_inference(solution, public.has_intercept)
        for stage in prepared.stages:
            for name, value in stage.results(solution).items():
                setattr(self, name, value)
        self.solver_ = clone(prepared.solver)
        self.privacy_ = statement

    def coefficients(self) -> Any:
        """Return the coefficients as a table, largest effect first; it needs pandas.

        Returns
        -------
        pandas.DataFrame
            Indexed by column: ``coefficient`` (with several outputs one column for each), in the
            unit of X, and ``effect``, what the prediction moves by if the column moves by its
            size in ``scaling_``, 1 where columns were not scaled. With several outputs it is
            the largest.

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
            raise ImportError(f"{type(self).__name__}: coefficients() needs pandas.") from None
        coef = np.atleast_2d(self.coef_)
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        several = [
            f"coefficient {number}" for number in getattr(self, "classes_", range(len(coef)))
        ]
        table = pandas.DataFrame(
            coef.T, index=names, columns=["coefficient"] if len(coef) == 1 else several
        )
        columns = None if self.scaling_ is None else self.scaling_.columns
        sizes = 1.0 if columns is None else columns.size
        largest = np.abs(coef).argmax(axis=0)
        table["effect"] = coef[largest, np.arange(coef.shape[1])] * sizes
        return table.sort_values("effect", key=np.abs, ascending=False)

    def to_sklearn(self) -> Any:
        """Return a fitted linear model of scikit-learn with the same coefficients.

        It can be given to whatever takes scikit-learn's own models: SHAP, converters to ONNX or
        PMML, a service without skdp. It is as public as this model.

        Returns
        -------
        LinearRegression, Ridge or LogisticRegression
            It predicts as this model does with ``linear_predictions=True``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from skdp import DPLogisticRegression
        >>> X, y = load_iris(return_X_y=True)
        >>> model = DPLogisticRegression(classes=[0, 1, 2], epsilon=10.0, linear_predictions=True)
        >>> model = model.fit(X, y)
        >>> plain = model.to_sklearn()
        >>> type(plain).__name__, bool((plain.predict(X) == model.predict(X)).all())
        ('LogisticRegression', True)
        """
        check_is_fitted(self, "coef_")
        plain = self._plain_twin()
        plain.coef_, plain.intercept_ = self.coef_.copy(), np.copy(self.intercept_)[()]
        plain.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            plain.feature_names_in_ = self.feature_names_in_
        return plain

    def _linear_predictor(self, X: Any) -> Array:
        check_is_fitted(self, "coef_")
        X = self._read("X", X, reset=False)
        coef = np.atleast_2d(self.coef_).T
        if self.linear_predictions:
            with np.errstate(over="ignore", invalid="ignore"):
                return np.asarray(X @ coef + self.intercept_)
        return scaled_scores(X, coef, self.intercept_, self.scaling_, self.row_bound_)
