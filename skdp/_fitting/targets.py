"""Targets, labels and weights of a fit. Coefficients and scores in the user's units."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils import check_array, check_consistent_length

from skdp._fitting import parts, refusals, tables
from skdp._numbers import AnyArray, AnyType, Array, Indices, Table, is_real, listed, shown
from skdp._oracle import Scaling
from skdp._oracle.sources.records import Records, quotient, row_norms
from skdp._oracle.sources.row_blocks import AnyRows

LARGEST_START = 1e50  # of a number in coef_init, intercept_init and offset


@dataclass(frozen=True)
class Targets:
    """Targets in the form that the loss needs, and other results of reading y.

    Attributes
    ----------
    values : array, first axis n_rows
    n_outputs : int
        Columns of the parameter.
    label_weights : tuple of float
        Public weights of the labels of a classifier, at most 1, empty for none.
    classes : array of shape (n_classes,) or None
        Labels, sorted, of a classifier.
    is_column : bool
        Whether y was one-dimensional.
    """

    values: AnyArray
    n_outputs: int
    label_weights: tuple[float, ...] = ()
    classes: AnyArray | None = None
    is_column: bool = True


OWN_LABELS = (
    "Inside an estimator that makes labels of its own, such as OneVsRestClassifier, declare "
    "classes=[0, 1]."
)


def sorted_labels(declared: Table) -> AnyArray:
    """Return sorted labels, from an array or any other collection, such as a set."""
    if isinstance(declared, str | bytes) or not np.iterable(declared):
        raise ValueError(f"classes must list the labels, as in [0, 1], got {shown(declared)}.")
    if not hasattr(declared, "__array__"):
        declared = list(declared)
    kinds = tables.kinds_of_labels(declared)
    values = np.asarray(declared)
    try:
        if len(kinds) > 1:
            raise TypeError("labels of several kinds")
        return np.unique(values.astype(str) if values.dtype.kind == "T" else values)
    except TypeError:
        raise ValueError(
            f"classes must list labels of one kind, all text or all numbers, got {shown(declared)}."
        ) from None


def checked_labels(y: Table) -> Table:
    """Return labels of a classifier in scikit-learn's form, if they are of one kind.

    NumPy would make one label of the number 7 and the text "7" in a list.
    """
    refusals.refuse_hidden("y", y)
    refusals.refuse_missing_targets(y)
    refusals.require_one_kind("y", tables.kinds_of_labels(y))
    is_text = getattr(getattr(y, "dtype", None), "kind", "") == "T"  # which scikit-learn refuses
    return np.asarray(y).astype(object) if is_text else y


def encode(labels: AnyArray, declared: ArrayLike) -> tuple[AnyArray, Indices]:
    """Return the declared labels, sorted, and the place of each label among them."""
    classes = sorted_labels(declared)
    try:
        codes = np.searchsorted(classes, labels)
    except TypeError:  # objects of several kinds
        codes = np.zeros(len(labels), dtype=np.intp)
    codes[codes == len(classes)] = 0
    if np.any(classes[codes] != labels):
        raise refusals.InputError(
            "y contains a label that is not among the declared classes, "
            f"{listed(classes.tolist(), 20)} ({kind_in_words(classes)}). Declare the labels as "
            f"they are in y, {kind_in_words(labels)}. They are private, so none is shown. Note "
            "that the number 1 and the text '1', and texts with and without a blank, differ. "
            f"{OWN_LABELS}"
        )
    return classes, codes


def kind_in_words(labels: AnyArray) -> str:
    """Name the kind of labels, by their types. "" if all are missing."""
    return tables.in_words(tables.kinds_of_cells(labels))


def weights_by_label(class_weight: Mapping[Hashable, float], classes: AnyArray) -> Array:
    """Return the weight of each label over the largest one. A label without a weight has 1."""
    unknown = [label for label in class_weight if label not in set(classes.tolist())]
    if unknown:
        raise refusals.InputError(
            f"class_weight names labels that are not among the classes: {unknown!r}."
        )
    given = [class_weight.get(label, 1.0) for label in classes.tolist()]
    if not all(is_real(weight) for weight in given):
        raise refusals.InputError(
            f"class_weight must map labels to numbers, got {shown(class_weight)}."
        )
    weights = np.array(given, dtype=float)
    if not ((weights >= 0) & np.isfinite(weights)).all() or not weights.any():
        raise refusals.InputError(
            "class_weight must be finite and not negative, and positive for at least one label, "
            f"got {shown(class_weight)}."
        )
    return weights / largest_weight(class_weight, len(classes))


def largest_weight(class_weight: Mapping[Hashable, float], n_classes: int) -> float:
    """Return the largest weight of a label. A label without a weight has 1."""
    given = [float(weight) for weight in class_weight.values() if is_real(weight)]
    return max(given + [1.0] * (len(class_weight) < n_classes), default=1.0)


# ---------------------------------------------------------------- targets, weights and a start


def checked_targets(model: Any, y: Table, dtype: AnyType) -> Targets:
    """Return the targets that an estimator reads in y. A refusal quotes none of them."""
    otherwise = refusals.NO_LABELS if is_classifier(model) else refusals.NO_NUMBERS
    with refusals.without_cells("y", otherwise=otherwise):
        targets: Targets = model._read_targets(y, dtype)
        return targets


def checked_weights(sample_weight: Table, X: AnyRows, is_all: bool = True) -> Array | None:
    """Return the weights of records. None if none are given.

    ``is_all`` says whether X is all rows of a fit, one of which needs a positive weight.
    """
    if sample_weight is None:
        return None
    if is_real(sample_weight):
        sample_weight = np.full(X.shape[0], float(sample_weight))
    refusals.refuse_columns("sample_weight", sample_weight)
    with refusals.without_cells("sample_weight"):
        weights = check_array(
            sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
        )
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D.")
    check_consistent_length(weights, X)
    if (weights < 0).any():
        raise refusals.InputError("sample_weight must not be negative.")
    if is_all:
        require_positive_weight(bool(weights.any()))
    return np.asarray(weights)


def checked_offset(offset: Table, n_rows: int) -> Array:
    """Return the offsets of the margins of rows, one column or one for each output."""
    refusals.refuse_columns("offset", offset)
    with refusals.without_cells("offset"):
        given = check_array(offset, ensure_2d=False, dtype=np.float64, input_name="offset")
    offsets = np.asarray(given).reshape(len(given), -1)
    if len(offsets) != n_rows or (np.abs(offsets) > LARGEST_START).any():
        raise refusals.InputError(
            f"offset must have one number for each row of X, at most {LARGEST_START:g} in size."
        )
    return offsets


def require_positive_weight(has_one: bool) -> None:
    """Raise ValueError if no record of a fit has a positive weight.

    A fit that was charged as one of several goes on: that it failed would not be private.
    """
    if not has_one and not parts.is_charged():
        raise refusals.InputError(
            "sample_weight is zero for every record. At least one needs a positive weight."
        )


def starting_point(
    coef_init: Table, intercept_init: Table, n_features: int, n_outputs: int, constant: bool
) -> tuple[Array, Array] | None:
    """Return the coefficients (features by outputs) and intercepts of a start that was given.

    Parameters
    ----------
    coef_init : array of shape (n_features,) or (n_outputs, n_features), or None
    intercept_init : float, array of shape (n_outputs,), or None
    n_features, n_outputs : int
    constant : bool
        Whether there is an intercept.

    Returns
    -------
    pair of array, or None if neither was given

    Raises
    ------
    ValueError
        If a shape is another, or a number is not finite or too large to be squared.
    """
    if coef_init is None and intercept_init is None:
        return None
    shapes = {"coef_init": (n_outputs, n_features), "intercept_init": (n_outputs,)}
    start = []
    for (name, shape), given in zip(shapes.items(), (coef_init, intercept_init), strict=True):
        try:
            values: Array = np.zeros(shape) if given is None else np.array(given, dtype=float)
        except (TypeError, ValueError):
            values = np.full(1, np.nan)
        if values.ndim < len(shape) and n_outputs == 1:
            values = values[None]
        if values.shape != shape or not (np.abs(values) <= LARGEST_START).all():
            wanted = " or ".join(str(one) for one in {shape, shape[1:]} if one or n_outputs > 1)
            raise ValueError(
                f"{name} must be None or finite numbers of shape {wanted}, as the fitted attribute "
                f"has, none beyond {LARGEST_START:g}."
            )
        start.append(values)
    coef, intercept = start
    if intercept.any() and not constant:
        raise ValueError(
            "intercept_init was given, and there is no intercept: fit_intercept=False, or "
            "fixed_effects=True."
        )
    return coef.T.copy(), intercept


def in_raw_units(coef: Array, intercept: Array, scaling: Scaling | None) -> tuple[Array, Array]:
    """Coefficients (features by outputs) and intercept for records in the user's units."""
    if scaling is None:
        return coef, intercept
    if scaling.predictors is not None:
        offset, unit = scaling.predictors
        coef, intercept = coef * unit, intercept * unit + offset
    if scaling.columns is not None:
        coef = np.where(scaling.columns.is_point, 0.0, coef.T / scaling.columns.scale).T
        intercept = intercept - scaling.columns.centre @ coef
    return coef, intercept


def scaled_scores(
    X: Table, coef: Array, intercept: Any, scaling: Scaling | None, row_bound: float | None
) -> Array:
    """Scores of records that are clipped, and scaled down where they are long, as in the fit.

    A block of rows at a time, so that a standardised copy of it stays in a cache.
    """
    in_units = base = None
    if scaling is not None and scaling.columns is not None:
        in_units = scaling.columns.for_type(np.float64)
        base = in_units.zeros if sparse.issparse(X) else None
        intercept = intercept + scaling.columns.centre @ coef
        coef = coef * scaling.columns.scale[:, None]
    nothing, scores = np.empty(0), np.empty((X.shape[0], coef.shape[1]))
    records = Records(X, nothing, None, None, nothing, 0.0, in_units, base=base)
    for rows, block in records.numbered_blocks():
        scores[rows] = block.margins(coef)
        if row_bound is not None:
            norms = row_norms(block.stored, base=block.base)
            scores[rows] *= np.minimum(1.0, quotient(row_bound, norms))[:, None]
    return np.asarray(scores + intercept)


def range_of_targets(
    scaling: Scaling | None, declared: tuple[float, float] | None, n_outputs: int
) -> tuple[Array, Array] | None:
    """Return the range of targets, declared or estimated privately. None if there is none."""
    if declared is not None:
        low, high = declared
        return np.full(n_outputs, low), np.full(n_outputs, high)
    targets = None if scaling is None else scaling.targets
    if targets is None or (targets.high >= np.finfo(float).max).all():  # not clipped without noise
        return None
    return targets.low.copy(), targets.high.copy()
