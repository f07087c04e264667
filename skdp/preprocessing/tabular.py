"""Turn a raw data frame into numbers by public facts: categories, missing values and dates."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp._fitting import tables
from skdp._fitting.estimator import PrivateEstimator
from skdp._fitting.parameters import declared
from skdp._fitting.partitions import transforms_partitions
from skdp._fitting.refusals import InputError, refuse_hidden, refusing
from skdp._fitting.rows import read_data
from skdp._fitting.user_warnings import IDENTIFIER
from skdp._numbers import AnyArray, Array, Indices, MatrixLike, Table, is_real, listed, require
from skdp._oracle.sources.partitioned import Partitions
from skdp._warnings import warn


@transforms_partitions
@declared
class DPTabularPreprocessor(TransformerMixin, PrivateEstimator):
    """Turn a data frame of numbers, categories, dates and missing values into columns of numbers.

    * Columns named in ``categories`` become a column of zeros and ones for each label, or a single
      one if there are two labels. A label that was not declared gets zeros everywhere. With
      ``drop="first"`` the first label is the reference level, and has no column.
    * Columns of dates become days since 2000-01-01, in UTC if they have a time zone.
    * All others are numbers. Missing numbers and dates are filled, and a second column marks them.

    Columns of anything else are refused, and so are mixed columns and, in ``transform``, columns of
    another kind than in ``fit``. Kinds of columns are public, as types are.

    Nothing is learnt from the rows and no budget is spent.

    Parameters
    ----------
    categories : dict of column to list of labels, or None, default=None
        Public labels of the columns of categories, from a code book, a form or a statute. Labels
        collected from the rows would reveal, exactly, that a rare one is among them.
    fill_value : float, date, or dict of column to float or date, default=None
        Public values of missing numbers and dates. Use a value that is typical of its column: a
        distant value widens the range of the column. Columns that are left out get 0, with a
        warning if a value may be missing in them. For a column of dates, a date, such as
        "1980-01-01".
    missing : "all" or list of columns, default="all"
        Columns that get a second column, which marks missing values. The choice must be public. In
        other columns missing values are filled and not marked. With the mark a linear model fits as
        well whatever number fills them.
    drop : {"first"} or None, default=None
        "first" makes the first label of each category a reference level, which gets zeros and no
        column. The columns of all labels add up to 1, so that only the differences of their
        coefficients are determined. With a reference level, each coefficient is the difference from
        it. Of two labels, the first is always the reference level.
    sparse_output : bool, default=False
        Whether ``transform`` returns a CSR matrix, which needs little memory for many labels: a row
        has an entry for each label it has, and for each number that is not 0. All estimators of
        skdp accept it. A data frame (``set_output``) cannot be sparse.

    Attributes
    ----------
    fill_values_ : dict of column to float
        The values of missing numbers and dates.
    kinds_ : dict of column to {"category", "date", "number"}
        How each column is read. From its type and ``categories``.
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
    """

    categories: Mapping[Hashable, Sequence[object]] | None = field(default=None, kw_only=False)
    fill_value: object | Mapping[Hashable, object] = None
    missing: str | Sequence[Hashable] = "all"
    drop: str | None = None
    sparse_output: bool = False
    privacy = None
    _is_charged = False

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
            uses = columns_by_use(tables.as_table(X))
        labels = "".join(f"        {name!r}: [...],\n" for name in uses["category"])
        filled, left_out = uses["number"] + uses["date"], uses["person"] + uses["none"]
        fills = "".join(f"        {name!r}: ...,\n" for name in filled)
        return (
            "DPTabularPreprocessor(\n"
            "    categories={  # all possible labels, from public knowledge\n"
            f"{labels}    }},\n"
            "    fill_value={  # a typical value, known without a look at the rows\n"
            f"{fills}    }},\n"
            f"    missing={filled!r},  # the columns in which values may be missing\n"
            f"){f'  # leave out of X: {listed(left_out)}' if left_out else ''}"
        )

    def fit(self, X: MatrixLike | Partitions, y: ArrayLike | None = None) -> Self:
        """Settle how each column is read.

        Parameters
        ----------
        X : data frame, Arrow table or array of shape (n_samples, n_features), or Partitions
            Partitions of such tables, and data frames of dask, are read where they are. All have
            columns of the same names and kinds.
        y : ignored, default=None

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or a column is refused.
        """
        # A partition has an X and a y. Here y is not read.
        data = read_data(self._reader(), X, X if tables.is_dask(X) else None)
        assert data.column_kinds is not None
        self.kinds_ = kinds = dict(data.column_kinds)
        self.n_features_in_ = len(kinds)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if data.names:
            self.feature_names_in_ = np.array(data.names, dtype=object)
        self.fill_values_ = {}
        zeros = []
        for place, (name, kind) in enumerate(kinds.items()):
            if kind != "category":
                given = self._given(name)
                self.fill_values_[name] = 0.0 if given is None else tables.number_or_days(given)
                may_be_missing = self._marks(name) or tables.has_mark_of_missing(X, place)
                zeros += [name] if given is None and may_be_missing else []
        if zeros:
            unmarked = [name for name in zeros if not self._marks(name)]
            also = f" Nothing marks those of {listed(unmarked)}, which missing leaves out."
            warn(
                f"{self._who}: missing values of {listed(zeros)} become 0, as fill_value names no "
                "other value for them. Give one that is typical of the column and known from "
                f"elsewhere: fill_value={{...}}.{also if unmarked else ''}",
                UserWarning,
            )
        return self

    def _read_rows(
        self, X: MatrixLike, y: object, groups: object = None, **checks: object
    ) -> tuple[Array, Array]:
        """Return the columns of numbers, and targets, which nothing reads."""
        X, columns = self._table(X, reset=True)
        self.column_kinds = self._kinds(X, columns)
        numbers = self._numbers(X, columns, self.column_kinds)
        return numbers, np.zeros((len(numbers), 1))

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
            read_as = {tables.READ_AS.get(kind, "") for kind in present} or {"number"}
            if len(read_as) > 1 or "" in read_as:
                unread[name] = present
            kinds[name] = min(read_as)
        self._refuse_unread(unread)
        for name, kind in kinds.items():
            given = self._given(name)
            is_number = isinstance(given, bool) or is_real(given)
            if given is not None and kind != "category" and is_number != (kind == "number"):
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
        if present <= tables.kinds_of_labels(labels) or tables.all_missing(X, place):
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
            fine = {"numbers"} if kind == "number" else {"dates", "text"}  # as JSON has dates
            if not present <= fine and not tables.all_missing(X, place):
                others[name] = present
        self._refuse_no_dates([name for name in others if self.kinds_[name] == "date"])
        self._refuse_unread(others)

    def _refuse_no_dates(self, columns: list[Hashable]) -> None:
        if columns:
            raise InputError(
                f"{type(self).__name__}: X holds cells that cannot be read as dates, in "
                f"{tables.columns_in_words(columns)}, where fit has dates. Convert them by "
                "pandas.to_datetime. Nothing was released."
            )

    def _refuse_unread(self, present: Mapping[Hashable, frozenset[str]]) -> None:
        if not present:
            return
        texts = [name for name, own in present.items() if "text" in own]
        declare = (
            " Declare the labels of categories from public knowledge: a type's own levels were "
            f"learnt from the rows. categories={{{next(iter(texts), '')!r}: [...]}}."
        )
        raise InputError(
            f"{type(self).__name__}: X holds {tables.not_numbers(present)}{declare * bool(texts)} "
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
        return labels[1:] if len(labels) == 2 or self.drop else labels

    def _marks(self, name: Hashable) -> bool:
        return isinstance(self.missing, str) or name in self.missing  # "all", or a list

    # ------------------------------------------------------------------ parameters

    def _check_parameters(self) -> None:
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
        missing, drop = self.missing, self.drop
        is_drop = drop is None or (isinstance(drop, str) and drop == "first")
        is_missing = missing == "all" if isinstance(missing, str) else np.iterable(missing)
        for name, allowed, is_valid in (
            ("drop", "be None or 'first'", is_drop),
            ("sparse_output", "be True or False", isinstance(self.sparse_output, bool | np.bool_)),
            ("missing", "be 'all' or a list of columns", is_missing),
        ):
            require(f"{who}: {name}", getattr(self, name), allowed, is_valid)

    def _given(self, name: Hashable) -> object:
        """Return the declared value of a column's gaps, or None."""
        given = self.fill_value
        return given.get(name) if isinstance(given, Mapping) else given

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _indicators(codes: Indices, n_labels: int) -> sparse.csr_array:
    """Return a column of zeros and ones for each label.

    A code is the place of a row's label, -1 is none of them.
    """
    entries = np.flatnonzero(codes >= 0)
    places = np.searchsorted(entries, np.arange(len(codes) + 1))
    cells = np.ones(len(entries)), codes[entries], places
    return sparse.csr_array(cells, shape=(len(codes), n_labels))


# ---------------------------------------------------------------- decisions before a fit


class Decisions(tuple[str, ...]):
    """Decisions before a fit, in sentences. Printed as a numbered list."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n".join(f"{number}. {text}" for number, text in enumerate(self, 1))


def columns_by_use(X: Table) -> dict[str, list[Hashable]]:
    """Return the columns of a table by their possible use, from names and types.

    Returns
    -------
    dict of {"person", "number", "date", "category", "none"} to list of columns
    """
    uses: dict[str, list[Hashable]] = {
        use: [] for use in ("person", "number", "date", "category", "none")
    }
    names = tables.names_of(X)
    for place, name in enumerate(range(X.shape[1]) if names is None else names):
        kinds = tables.kinds_in(X, place) or {"numbers"}
        use = tables.READ_AS.get(min(kinds), "none") if len(kinds) == 1 else "none"
        if IDENTIFIER.fullmatch(str(name)):
            use = "person"
        elif tables.is_categorical(X, place) or kinds == {"text"}:
            use = "category"
        uses[use].append(name)
    return uses


def check(X: Table, y: ArrayLike | None = None) -> Decisions:
    """List the decisions to make before a private fit, without a look at any value.

    The list follows from names, types and shapes, which are public. No budget is spent.

    Parameters
    ----------
    X : data frame, Arrow table, array or sparse matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,) or None, default=None

    Returns
    -------
    tuple of str
        Printed as a numbered list.

    Examples
    --------
    >>> import pandas as pd
    >>> import skdp
    >>> frame = pd.DataFrame({"patient_id": [1, 2], "ward": ["a", "b"], "age": [31.0, 58.0]})
    >>> len(skdp.check(frame, [0, 1]))
    5
    """
    with refusing("check"):
        X = X if sparse.issparse(X) else tables.as_table(X)
        uses = columns_by_use(X)
    n_rows, n_columns = X.shape
    persons = uses["person"]
    leave = f"leave {tables.columns_in_words(persons)} out of X, and " if persons else ""
    advice = {
        "Categories: declare the labels of {} from a code book, or leave free text out": uses[
            "category"
        ],
        "Dates: DPTabularPreprocessor turns {} into days since 2000-01-01": uses["date"],
        "Other types: turn {} into columns of numbers, or leave them out": uses["none"],
        "Missing values: if any may be missing, give fill_value a typical value for {}": (
            uses["number"] + uses["date"]
        ),
    }
    return Decisions(
        (
            f"People: {leave}pass a label for each person as groups if a person may have several "
            "rows.",
            *(
                f"{text.format(tables.columns_in_words(own))}."
                for text, own in advice.items()
                if own
            ),
            *([] if y is None else [_target(y)]),
            f"Budget: choose epsilon (1 by default) and a delta well below 1/n = {1 / n_rows:.2g} "
            f"(1e-6 by default). plan({n_rows}, {n_columns}) of a model states what a fit costs.",
        )
    )


def _target(y: ArrayLike) -> str:
    values = tables.as_array(y)
    if values.dtype.kind == "f":
        return (
            "Target: declare its range, scaling=PublicRange(target=(low, high)), or leave its "
            "estimation to a part of the budget."
        )
    labels = "declare all labels that are possible, classes=[...], without a look at y"
    if values.dtype.kind in "iu":
        return f"Target: if these integers are labels, {labels}. Counts suit DPPoissonRegressor."
    return f"Target: {labels}."
