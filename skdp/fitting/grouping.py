"""Labels of groups, where the unit of privacy is a group of rows, such as all rows of a person.

Labels are turned into numbers and forgotten. Neither they nor the number of rows are shown: both
are private.
"""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _num_samples

from skdp._numbers import AnyArray, Array, Indices
from skdp.oracle.sources.groups import GroupedSource, Groups
from skdp.oracle.sources.memory import Map, MemorySource
from skdp.oracle.sources.records import Records


class GroupLabels:
    """Groups of the rows of a fit, from their labels, which are not kept.

    Parameters
    ----------
    who : str
        The estimator, for refusals.
    labels : array of shape (n_rows,)
        Integers, strings, or anything that numpy can sort; none may be missing.
    **arrays
        What has to have as many rows, by name; None is left out.

    Attributes
    ----------
    codes : array of shape (n_rows,)
        Number of the group of each row, from 0 on, in the order of sorted labels.
    n_groups : int
        Public.
    """

    def __init__(self, who: str, labels: Any, **arrays: Any) -> None:
        found = _as_column(who, labels)
        lengths = {_rows_of(value) for value in arrays.values() if value is not None}
        if lengths - {None, len(found)}:
            given = [name for name, value in arrays.items() if value is not None]
            raise ValueError(
                f"{who}: {', '.join(given)} and groups must have one entry for each row; their "
                "lengths differ. (With groups the number of rows is private, so they are not told "
                "here.) Nothing was released."
            )
        if _any_missing(found):
            raise ValueError(
                f"{who}: groups holds missing labels (None, NaN or NaT). A row without a label "
                "belongs to nobody who could be protected: leave such rows out, or give each a "
                "label of its own. Nothing was released."
            )
        try:
            names, codes = np.unique(found, return_inverse=True)
        except TypeError:
            raise ValueError(
                f"{who}: groups holds labels of types that cannot be sorted together; make all of "
                "them integers, or all of them strings. Nothing was released."
            ) from None
        if not len(names):
            raise ValueError(f"{who}: groups holds no label. Nothing was released.")
        # By label: where a group's rows stand, and how many there are, moves no other group.
        self.codes: Indices = codes.reshape(-1).astype(np.int64, copy=False)
        self.n_groups = len(names)

    def __reduce__(self) -> Any:
        raise TypeError("groups cannot be pickled: a saved model must not hold its training data.")


def _as_column(who: str, labels: Any) -> AnyArray:
    column = np.empty((0, 0)) if sparse.issparse(labels) else labels
    if np.ma.isMaskedArray(column) and np.ma.getmaskarray(column).any():
        column = np.array([None], dtype=object).repeat(len(column))
    column = np.asarray(column)
    if column.ndim != 1:
        raise ValueError(
            f"{who}: groups must be one-dimensional, a label for each row. Nothing was released."
        )
    return column


def _rows_of(array: Any) -> int | None:
    """Return the length of an array; None where it has none, which others refuse."""
    try:
        return int(_num_samples(array))
    except (TypeError, ValueError):
        return None


def _any_missing(labels: AnyArray) -> bool:
    if labels.dtype.kind in "Mm":
        return bool(np.isnat(labels).any())
    if labels.dtype.kind in "fc":
        return bool(np.isnan(labels).any())
    if labels.dtype.kind != "O":
        return False
    return any(_is_missing(label) for label in labels.tolist())


def _is_missing(label: Any) -> bool:
    """Whether a label is None, or is not equal to itself, as NaN and NaT are not."""
    if label is None:
        return True
    try:
        return bool(label != label)
    except (TypeError, ValueError):  # the comparison of a missing value of pandas is missing, too
        return True


def rows_in_memory(
    X: Any,
    targets: AnyArray,
    weights: Array | None,
    row_bound: float | None,
    constant: float,
    spread: Map,
    codes: Indices | None,
) -> MemorySource:
    """Return the place where the rows of a fit live, of which groups are the records, if any.

    ``codes`` are the numbers of the rows' groups, from 0 on, none of them without a row.
    """
    records = Records.of(X, targets, weights, row_bound, constant)
    if codes is None:
        return MemorySource(records, row_bound, spread)
    n_groups = int(codes.max()) + 1 if len(codes) else 0
    return GroupedSource(records, Groups.of(codes, n_groups), row_bound, spread)
