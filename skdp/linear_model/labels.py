"""Sets of labels: sorted, looked up, weighted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp._numbers import is_real, shown


def sorted_labels(declared: Any) -> NDArray[Any]:
    """Return sorted labels, from an array or any other collection, such as a set."""
    if not hasattr(declared, "__array__"):
        declared = list(declared)
    return np.unique(np.asarray(declared))


def encode(labels: NDArray[Any], declared: ArrayLike) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the declared labels, sorted, and the place of each label among them."""
    classes = sorted_labels(declared)
    codes = np.searchsorted(classes, labels)
    codes[codes == len(classes)] = 0
    if (classes[codes] != labels).any():
        raise ValueError(
            "y holds a label that is not among the declared classes "
            f"({', '.join(str(label) for label in classes[:20])}). Nothing was released."
        )
    return classes, codes


def weights_by_label(
    class_weight: Mapping[Any, float], classes: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the weight of each label, 1 where none is given."""
    unknown = [label for label in class_weight if label not in set(classes.tolist())]
    if unknown:
        raise ValueError(f"class_weight names labels that are not among the classes: {unknown!r}.")
    given = [class_weight.get(label, 1.0) for label in classes.tolist()]
    if not all(is_real(weight) for weight in given):
        raise ValueError(f"class_weight must map labels to numbers; got {shown(class_weight)}.")
    weights = np.array(given, dtype=float)
    if not ((weights >= 0) & np.isfinite(weights)).all():
        raise ValueError(
            f"class_weight must be finite and not negative; got {shown(class_weight)}."
        )
    return weights
