"""Turn a raw data frame into numbers: categories, missing values and dates, on one ledger."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp._fitting import tables
from skdp._fitting.assumptions import noise_assumptions, unit_assumptions
from skdp._fitting.data import Data
from skdp._fitting.estimator import Fit, PrivateEstimator
from skdp._fitting.parameters import declared, planned_records
from skdp._fitting.partitions import transforms_partitions
from skdp._fitting.privacy import Privacy
from skdp._fitting.refusals import InputError, refuse_hidden, refusing
from skdp._fitting.rows import read_data
from skdp._numbers import AnyArray, Array, Indices, MatrixLike, Table, is_real, listed, require
from skdp._oracle import Solution
from skdp._oracle.sources.partitioned import Partitions
from skdp._stages.medians import MedianStage, without_missing
from skdp._stages.sequence import Prepared
from skdp._warnings import warn
from skdp.accounting import PrivacyStatement
from skdp.preprocessing.decisions import template


@transforms_partitions
@declared
class DPTabularPreprocessor(TransformerMixin, PrivateEstimator):
    """Turn a data frame of numbers, categories, dates and missing values into columns of numbers.

    * Columns named in ``categories`` become a column of zeros and ones for each label, or a single
      one if there are two labels. A label that was not declared gets zeros everywhere. With
      ``drop="first"`` the first label is the reference level, and has no column.
    * Columns of dates become days since 2000-01-01, in UTC if they have a time zone. Periods count
      by their start. Durations become days.
    * All others are numbers. Missing numbers and dates are filled, and a second column marks them.

    Columns of anything else are refused, and so are mixed columns and, in ``transform``, columns of
    another kind than in ``fit``. Kinds of columns are public, as types are.

    Nothing is learnt from the rows and no budget is spent, unless ``impute="median"``: then the
    medians are estimated from noisy histograms, and ``fit`` is (epsilon, delta)-differentially
    private for each row. In a `sklearn.pipeline.Pipeline` before an estimator of skdp,
    `skdp.total_privacy` adds up the costs of the steps.

    Parameters
    ----------
    categories : dict of column to list of labels, or None, default=None
        Public labels of the columns of categories, from a code book, a form or a statute. Labels
        collected from the rows would reveal, exactly, that a rare one is among them.
    impute : {"constant", "median"}, default="constant"
        The value of missing numbers and dates: ``fill_value``, which costs nothing, or the median
        of the known values, estimated privately.
    fill_value : float, date, or dict of column to float or date, default=None
        Public values for ``impute="constant"``, and for columns of which hardly any value is known.
        Use a value that is typical of its column: a distant value widens the range of the column.
        Columns that are left out get 0, with a warning if a value may be missing in them. For a
        column of dates, a date, such as "1980-01-01".
    missing : "all" or list of columns, default="all"
        Columns that get a second column, which marks missing values. The choice must be public. In
        other columns missing values are filled and not marked. With the mark a linear model fits as
        well whatever number fills them.
    drop : {"first"}, dict of column to label, or None, default=None
        Reference levels, which get zeros and no column: the first label of each category, as in
        `sklearn.preprocessing.OneHotEncoder`, or those of a dict. The columns of all labels add up
        to 1, so that only the differences of their coefficients are determined. With a reference
        level, each coefficient is the difference from it. Of two labels, the first is the reference
        level by default.
    sparse_output : bool, default=False
        Whether ``transform`` returns a CSR matrix, which needs little memory for many labels: a row
        has an entry for each label it has, and for each number that is not 0. All estimators of
        skdp accept it. A data frame (``set_output``) cannot be sparse.
    epsilon : float, default=1.0
        Privacy budget of one ``fit`` with ``impute="median"``, positive. Without effect otherwise.
    delta : float, default=1e-6
        Probability, in (0, 1), with which the epsilon guarantee may fail.
    privacy : Privacy or None, default=None
        Neighbouring relation, shared budget and source of noise. None means the defaults of
        `skdp.Privacy`.

    Attributes
    ----------
    fill_values_ : dict of column to float
        The values of missing numbers and dates.
    kinds_ : dict of column to {"category", "date", "duration", "number"}
        How each column is read. From its type and ``categories``.
    privacy_ : PrivacyStatement
        Releases, cost and assumptions.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X had any.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp import DPTabularPreprocessor
    >>> frame = pd.DataFrame(
    ...     {"age": [31.0, None, 58.0], "sex": ["f", "m", "f"], "ward": ["a", "c", None]}
    ... )
    >>> public = {"sex": ["f", "m"], "ward": ["a", "b", "c"]}
    >>> table = DPTabularPreprocessor(public, fill_value={"age": 45}, missing=["age"])
    >>> table.set_output(transform="pandas").fit_transform(frame)
        age  age_missing  sex_m  ward_a  ward_b  ward_c
    0  31.0          0.0    0.0     1.0     0.0     0.0
    1  45.0          1.0    1.0     0.0     0.0     1.0
    2  58.0          0.0    0.0     0.0     0.0     0.0
    >>> table.privacy_.epsilon
    0.0
    """

    categories: Mapping[Hashable, Sequence[object]] | None = field(default=None, kw_only=False)
    impute: str = "constant"
    fill_value: object | Mapping[Hashable, object] = None
    missing: str | Sequence[Hashable] = "all"
    drop: str | Mapping[Hashable, object] | None = None
    sparse_output: bool = False
    epsilon: float = 1.0
    delta: float = 1e-6
    privacy: Privacy | None = None

    @staticmethod
    def template(X: MatrixLike) -> str:
        """Return the call of this class for a table, with blanks for labels and fills.

        Parameters
        ----------
        X : data frame, Arrow table or array of shape (n_samples, n_features)
            Only its names and types are used.

        Returns
        -------
        str
        """
        with refusing("DPTabularPreprocessor"):
            return template(X)

    def fit(
        self,
        X: MatrixLike | Partitions,
        y: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Settle how each column is read. With ``impute="median"``, spend the budget on medians.

        Parameters
        ----------
        X : data frame, Arrow table or array of shape (n_samples, n_features), or Partitions
            Partitions of such tables, and data frames of dask, are read where they are. All have
            columns of the same names and kinds.
        y : ignored, default=None
        groups : array of shape (n_samples,) or None, default=None
            Labels of groups, such as persons. None may be missing. The guarantee is for a group
            then, with all of its rows. Each counts once in the histograms. Partitions bring their
            own.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or a column is refused. Nothing is released then.
        """
        # A partition has an X and a y. Here y is not read.
        unread = X if tables.is_dask(X) else None
        data = read_data(self._reader(), X, unread, None, groups)
        assert data.column_kinds is not None
        kinds = dict(data.column_kinds)
        self.n_features_in_ = len(kinds)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if data.names:
            self.feature_names_in_ = np.array(data.names, dtype=object)
        zeros = [
            name
            for place, (name, kind) in enumerate(kinds.items())
            if kind != "category" and self.impute == "constant" and self._given(name) is None
            if self._marks(name) or tables.has_mark_of_missing(X, place)
        ]
        if zeros:
            unmarked = [name for name in zeros if not self._marks(name)]
            also = f" Nothing marks those of {listed(unmarked)}, which missing leaves out."
            warn(
                f"{self._who}: missing values of {listed(zeros)} become 0, as fill_value names no "
                "other value for them. Give one that is typical of the column and known from "
                f"elsewhere: fill_value={{...}}.{also if unmarked else ''}",
                UserWarning,
            )
        if self.impute == "median" and data.n_features:
            self._fit(data)
        else:
            names = _numbers_among(kinds)
            self.fill_values_ = dict(zip(names, self._constants(names).tolist(), strict=True))
            shape = data.n_records, len(kinds), data.grouped
            nothing = self._prepare_stages(lambda _: (), *shape, epsilon=0.0, delta=0.0)
            texts = *self._assumptions(nothing), *data.assumptions
            self.privacy_ = nothing.plan.cost(nothing.public, texts, "system").statement()
        self.kinds_ = kinds
        return self

    def _read_rows(
        self, X: MatrixLike, y: object, groups: object = None, **checks: object
    ) -> tuple[Array, Array]:
        """Return the columns of numbers, and targets, which no release reads."""
        X, columns = self._table(X, reset=True)
        self.column_kinds = self._kinds(X, columns)
        numbers = without_missing(self._numbers(X, columns, self.column_kinds))
        return numbers, np.zeros((len(numbers), 1))

    def _check_rows(self, X: MatrixLike) -> None:
        """Raise ValueError for rows that a fit would refuse. Nothing is kept or charged."""
        copy = clone(self)
        X, columns = copy._table(X, reset=True)
        copy._numbers(X, columns, copy._kinds(X, columns))

    def plan(
        self, n_samples: int | None, n_numbers: int, *, n_groups: int | None = None
    ) -> PrivacyStatement:
        """Return the releases and cost of ``fit`` with ``impute="median"``, without any rows.

        Parameters
        ----------
        n_samples : int or None
            Number of rows. With ``n_groups`` it has no effect and may be None.
        n_numbers : int
            Number of columns of numbers and dates.
        n_groups : int or None, default=None
            Number of groups, if ``fit`` would get ``groups``.

        Returns
        -------
        PrivacyStatement
        """
        self._check_parameters()
        n_records = planned_records("plan", n_samples, n_groups, n_numbers=n_numbers)
        shape = n_records, n_numbers, n_groups is not None
        prepared = self._prepare_stages(lambda _: (MedianStage(),), *shape)
        texts = self._assumptions(prepared, n_numbers)
        return prepared.plan.cost(prepared.public, texts, self._terms.noise_source).statement()

    @property
    def _is_charged(self) -> bool:
        return self.impute == "median"

    def transform(self, X: MatrixLike | Partitions) -> Table:
        """Return the columns of numbers. See :meth:`get_feature_names_out`.

        Parameters
        ----------
        X : data frame, Arrow table or array of shape (n_samples, n_features)
            Or Partitions.

        Returns
        -------
        array of shape (n_samples, n_columns), or CSR matrix with ``sparse_output``
            Of partitions partitions, which are turned into numbers where they are in every pass.
        """
        check_is_fitted(self, "kinds_")
        X, columns = self._table(X, reset=False)
        self._require_kinds(X, columns)
        numbers = iter(self._numbers(X, columns, self.kinds_).T)
        blocks: list[Any] = []
        for place, name in enumerate(columns):
            if self.kinds_[name] == "category":
                labels = list((self.categories or {})[name])
                codes, missing = tables.codes_of(X, place, labels)
                kept = [labels.index(label) for label in self._kept_labels(name)]
                blocks.append(_indicators(codes, len(labels))[:, kept])
            else:
                values = next(numbers)
                missing = np.isnan(values)
                blocks.append(np.where(missing, self.fill_values_[name], values)[:, None])
            if self._marks(name):
                blocks.append(missing.astype(float)[:, None])
        if self.sparse_output:
            return sparse.hstack([sparse.csr_array(one) for one in blocks], format="csr")
        return np.hstack([one.toarray() if sparse.issparse(one) else one for one in blocks])

    def get_feature_names_out(self, input_features: object = None) -> AnyArray:
        """Return the names of the columns of the output.

        Parameters
        ----------
        input_features : ignored, default=None

        Returns
        -------
        array of str
            ``age`` and ``age_missing`` for numbers and dates, ``ward_a`` and so on for labels.
        """
        check_is_fitted(self, "kinds_")
        titles = []
        for name, kind in self.kinds_.items():
            title = name if isinstance(name, str) else f"x{name}"
            if kind == "category":
                titles += [f"{title}_{label}" for label in self._kept_labels(name)]
            else:
                titles.append(title)
            titles += [f"{title}_missing"] * self._marks(name)
        return np.array(titles, dtype=object)

    # ------------------------------------------------------------------ columns

    def _table(self, X: MatrixLike, reset: bool) -> tuple[Table, list[Hashable]]:
        """Return the table, and the names of its columns or their numbers."""
        with refusing(type(self).__name__):
            refuse_hidden("X", X)
            X = tables.as_table(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X, list(getattr(self, "feature_names_in_", range(X.shape[1])))

    def _kinds(self, X: Table, columns: list[Hashable]) -> dict[Hashable, str]:
        """Decide how each column is read, from its type and what was declared."""
        who, categories = type(self).__name__, dict(self.categories or {})
        for what in ("categories", "missing", "fill_value"):
            given = getattr(self, what)
            names = given if np.iterable(given) and not isinstance(given, str) else ()
            if unknown := [name for name in names if name not in columns]:
                raise InputError(
                    f"{who}: {what} names columns that X does not have: {listed(unknown)}. X has "
                    f"{listed(columns)}."
                )
        kinds, unread = {}, {}
        for place, name in enumerate(columns):
            present = tables.kinds_in(X, place)
            if name in categories:
                kinds[name] = "category"
                self._require_labels(X, place, name, present)
                continue
            read_as = {tables.BY_NAME[kind].read_as for kind in present} or {"number"}
            if len(read_as) > 1 or "" in read_as:
                unread[name] = present
            kinds[name] = min(read_as)
        self._refuse_unread(X, unread)
        for name, kind in kinds.items():
            given = self._given(name)
            is_number = isinstance(given, bool) or is_real(given)
            if given is not None and kind in ("number", "date") and is_number != (kind == "number"):
                raise InputError(
                    f"{who}: column {name!r} holds {kind}s. Its fill_value must be a {kind}, got "
                    f"{given!r}. Nothing was released."
                )
        return kinds

    def _require_labels(
        self, X: Table, place: int, name: Hashable, present: frozenset[str]
    ) -> None:
        """Raise ValueError for a column of another kind than the labels declared for it."""
        labels = list((self.categories or {})[name])
        declared = {kind for _, kind in tables.kinds_of_labels(labels)}
        if present <= declared or tables.all_missing(X, place):
            return
        raise InputError(
            f"{type(self).__name__}: column {name!r} holds {tables.in_words(present)}, and the "
            f"labels declared for it, {listed(labels)}, are of another kind. Declare them as they "
            "are in the column, all of one kind; pandas.read_csv(dtype={column: str}) reads a "
            "column as text. Nothing was released."
        )

    def _require_kinds(self, X: Table, columns: list[Hashable]) -> None:
        """Raise ValueError for columns that are read in another way than in ``fit``."""
        others = {}
        for place, name in enumerate(columns):
            present, kind = tables.kinds_in(X, place), self.kinds_[name]
            if kind == "category":
                self._require_labels(X, place, name, present)
                continue
            fine = {one.name for one in tables.KINDS if one.read_as == kind}
            fine |= {"text"} if kind == "date" else set()  # as JSON has dates
            if not present <= fine and not tables.all_missing(X, place):
                others[name] = present
        self._refuse_no_dates([name for name in others if self.kinds_[name] == "date"])
        self._refuse_unread(X, others)

    def _refuse_no_dates(self, columns: list[Hashable]) -> None:
        if columns:
            raise InputError(
                f"{type(self).__name__}: X holds cells that cannot be read as dates, in "
                f"{tables.columns_in_words(columns)}, where fit has dates. Convert them by "
                "pandas.to_datetime. Nothing was released."
            )

    def _refuse_unread(self, X: Table, present: Mapping[Hashable, frozenset[str]]) -> None:
        if not present:
            return
        kinds = {getattr(self, "kinds_", {}).get(name, "number") for name in present}
        wanted = "durations" if kinds == {"duration"} else "numbers"
        declare = next(
            (
                " Declare the labels of categories from public knowledge: "
                f"categories={{{name!r}: [...]}}."
                for name, own in present.items()
                if own & {"text", "bytes", "intervals"}
            ),
            "",
        )
        raise InputError(
            f"{type(self).__name__}: X holds {tables.not_numbers(X, present, wanted)}{declare} "
            "Nothing was released."
        )

    def _numbers(self, X: Table, columns: list[Hashable], kinds: Mapping[Hashable, str]) -> Array:
        """Return the columns of numbers and dates as numbers, nan where one is missing."""
        who, columns_read = type(self).__name__, []
        unread: list[Hashable] = []
        for place, name in enumerate(columns):
            if kinds[name] == "category":
                continue
            read = tables.numbers_of if kinds[name] == "number" else tables.days_of
            try:
                columns_read.append(read(X, place))
            except Exception:  # of any type, by code of a cell's own
                unread.append(name)
        self._refuse_no_dates([name for name in unread if kinds[name] != "number"])
        if unread:
            raise InputError(
                f"{who}: X holds cells that cannot be read as numbers, in "
                f"{tables.columns_in_words(unread)}. Turn them into float64. Nothing was released."
            )
        table = np.column_stack(columns_read) if columns_read else np.zeros((len(X), 0))
        if np.isinf(table).any():
            raise InputError(
                f"{who}: X holds infinity (inf){tables.where(X, tables.has_infinity, ',')}. "
                "Replace it by a public rule. Nothing was released."
            )
        return table

    def _kept_labels(self, name: Hashable) -> list[object]:
        """Return the labels of a category that have a column: all but its reference level."""
        labels = list((self.categories or {})[name])
        if isinstance(self.drop, Mapping) and name in self.drop:
            return [label for label in labels if label != self.drop[name]]
        has_reference = len(labels) == 2 or isinstance(self.drop, str)
        return labels[1:] if has_reference else labels

    def _marks(self, name: Hashable) -> bool:
        return isinstance(self.missing, str) or name in self.missing  # "all", or a list

    # ------------------------------------------------------------------ what a fit consists of

    def _check_parameters(self) -> None:
        self._check_shared_parameters()
        who, categories = type(self).__name__, self.categories or {}
        labels = "a list of at least 2 labels, all different, of one kind and none missing"
        is_dict = isinstance(categories, Mapping)
        require(f"{who}: categories", categories, f"be a dict, for each column {labels}", is_dict)
        for name, own in categories.items():
            require(f"{who}: categories[{name!r}]", own, f"be {labels}", tables.are_labels(own))
        filled = self.fill_value
        for value in filled.values() if isinstance(filled, Mapping) else [filled]:
            is_finite = value is None or np.isfinite(tables.number_or_days(value))
            wanted = "hold finite numbers, or dates (a missing category gets zeros everywhere)"
            require(f"{who}: fill_value", value, wanted, bool(is_finite))
        is_drop, missing = self.drop is None or _is_word(self.drop, "first"), self.missing
        for name, one in self.drop.items() if isinstance(self.drop, Mapping) else ():
            own = categories.get(name, ())
            wanted = f"be a label in categories: {listed(own) or 'it has no such column'}"
            require(f"{who}: drop[{name!r}]", one, wanted, one in own)
        is_missing = np.iterable(missing) and not isinstance(missing, str)
        wanted = "be None, 'first' or a dict from columns of categories to one of their labels"
        for name, allowed, is_valid in (
            ("drop", wanted, is_drop or isinstance(self.drop, Mapping)),
            ("impute", "be 'constant' or 'median'", _is_word(self.impute, "constant", "median")),
            ("sparse_output", "be True or False", isinstance(self.sparse_output, bool | np.bool_)),
            ("missing", "be 'all' or a list of columns", is_missing or _is_word(missing, "all")),
        ):
            require(f"{who}: {name}", getattr(self, name), allowed, is_valid)
        if self.impute == "median":
            self._require_delta("impute='constant' costs nothing")

    def _constants(self, names: Sequence[Any]) -> Array:
        """Return what missing values of these columns become where they have no median."""
        given = [self._given(name) for name in names]
        return np.array([0.0 if one is None else tables.number_or_days(one) for one in given])

    def _given(self, name: Hashable) -> object:
        """Return the declared value of a column's gaps, or None."""
        given = self.fill_value
        return given.get(name) if isinstance(given, Mapping) else given

    def _prepare_for(self, data: Data, *start: object) -> Prepared:
        constants = self._constants(_numbers_among(data.column_kinds or {}))
        return self._prepare_stages(lambda _: (MedianStage(constants),), **data.shape)

    def _assumptions(self, prepared: Prepared, n_columns: int | None = None) -> tuple[str, ...]:
        public = prepared.public
        texts = [
            *unit_assumptions(public.n_rows, public.unit, "each median"),
            f"The number of columns, {n_columns or self.n_features_in_}, their names and types are "
            "public.",
            "The labels of categories, fill_value and the columns in missing were declared without "
            "looking at the rows. Labels that were not declared count as none of them.",
            "That cells are of their column's kind, and finite, is public: others are refused.",
        ]
        if self.impute == "median":
            texts += noise_assumptions(self._terms.noise_source, self.epsilon)
        return (*texts, *(text for stage in prepared.stages for text in stage.assumptions()))

    def _keep(self, solution: Solution, fit: Fit) -> None:
        scaling, names = solution.scaling, _numbers_among(fit.data.column_kinds or {})
        assert scaling is not None
        assert scaling.columns is not None
        self.fill_values_ = dict(zip(names, scaling.columns.centre.tolist(), strict=True))
        self.privacy_ = fit.statement

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _is_word(value: object, *words: str) -> bool:
    return isinstance(value, str) and value in words


def _indicators(codes: Indices, n_labels: int) -> sparse.csr_array:
    """Return a column of zeros and ones for each label.

    A code is the place of a row's label, -1 is none of them.
    """
    entries = np.flatnonzero(codes >= 0)
    places = np.searchsorted(entries, np.arange(len(codes) + 1))
    cells = np.ones(len(entries)), codes[entries], places
    return sparse.csr_array(cells, shape=(len(codes), n_labels))


def _numbers_among(kinds: Mapping[Hashable, str]) -> list[Hashable]:
    """Return the columns of numbers and dates."""
    return [name for name, kind in kinds.items() if kind != "category"]
