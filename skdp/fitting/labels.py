"""Labels of a classifier: declared ones, their codes, and weights by label."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdp._numbers import AnyArray, Array, Indices, is_real, listed, shown
from skdp.fitting import tables
from skdp.fitting.refusals import (
    InputError,
    refuse_hidden,
    refuse_missing_targets,
    require_one_kind,
)

OWN_LABELS = (
    "Inside an estimator that makes labels of its own, such as OneVsRestClassifier, declare those: "
    "classes=[0, 1]; classifiers take more than two classes by themselves."
)


def sorted_labels(declared: Any) -> AnyArray:
    """Return sorted labels, from an array or any other collection, such as a set."""
    if isinstance(declared, str | bytes) or not np.iterable(declared):
        raise ValueError(f"classes must list the labels, as in [0, 1]; got {shown(declared)}.")
    if not hasattr(declared, "__array__"):
        declared = list(declared)
    kinds = {kind for _, kind in tables.kinds_of_labels(declared)}
    values = np.asarray(declared)
    try:
        if len(kinds) > 1:
            raise TypeError("labels of several kinds")
        return np.unique(values.astype(str) if values.dtype.kind == "T" else values)
    except TypeError:
        raise ValueError(
            f"classes must list labels of one kind, all text or all numbers; got {shown(declared)}."
        ) from None


def checked_labels(y: Any) -> Any:
    """Return labels of a classifier as scikit-learn takes them, if they are of one kind.

    NumPy would make one label of the number 7 and the text "7" in a list.
    """
    refuse_hidden("y", y)
    refuse_missing_targets(y)
    require_one_kind("y", [tables.kinds_of_labels(y)])
    is_text = getattr(getattr(y, "dtype", None), "kind", "") == "T"  # which scikit-learn refuses
    return np.asarray(y).astype(object) if is_text else y


def encode(labels: AnyArray, declared: ArrayLike) -> tuple[AnyArray, Indices]:
    """Return the declared labels, sorted, and the place of each label among them."""
    classes = sorted_labels(declared)
    kinds = [kind_in_words(values) for values in (classes, labels)]
    if len({*kinds, ""}) == 3:  # "" if all labels are missing
        raise InputError(
            f"classes are {kinds[0]} ({listed(classes.tolist())}), and the labels in y are "
            f"{kinds[1]}. Declare the labels as they are in y. {OWN_LABELS}"
        )
    try:
        codes = np.searchsorted(classes, labels)
    except TypeError:  # objects of several kinds
        codes = np.zeros(len(labels), dtype=np.intp)
    codes[codes == len(classes)] = 0
    if np.any(classes[codes] != labels):
        raise InputError(
            "y holds a label that is not among the declared classes, "
            f"{listed(classes.tolist(), 20)} ({kinds[0]}; the number 1 and the text '1' are "
            f"different labels, and so are texts with and without a blank). "
            f"{OWN_LABELS}"
        )
    return classes, codes


def kind_in_words(labels: AnyArray) -> str:
    """Say in a word what labels are, by their types; "" if all are missing."""
    return tables.in_words(tables.kinds_of_cells(labels))


def weights_by_label(class_weight: Mapping[Any, float], classes: AnyArray) -> Array:
    """Return the weight of each label over the largest one; a label without a weight has 1."""
    unknown = [label for label in class_weight if label not in set(classes.tolist())]
    if unknown:
        raise InputError(f"class_weight names labels that are not among the classes: {unknown!r}.")
    given = [class_weight.get(label, 1.0) for label in classes.tolist()]
    if not all(is_real(weight) for weight in given):
        raise InputError(f"class_weight must map labels to numbers; got {shown(class_weight)}.")
    weights = np.array(given, dtype=float)
    if not ((weights >= 0) & np.isfinite(weights)).all() or not weights.any():
        raise InputError(
            "class_weight must be finite and not negative, and positive for at least one label; "
            f"got {shown(class_weight)}."
        )
    return weights / largest_weight(class_weight, len(classes))


def largest_weight(class_weight: Mapping[Any, float], n_classes: int) -> float:
    """Return the largest weight of a label; a label without a weight has 1."""
    given = [float(weight) for weight in class_weight.values() if is_real(weight)]
    return max(given + [1.0] * (len(class_weight) < n_classes), default=1.0)
