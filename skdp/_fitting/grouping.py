"""Labels of groups, where the unit of privacy is a group of rows, such as all rows of a person.

Labels are turned into numbers and forgotten. Neither they nor the number of rows are shown: both
are private.
"""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _num_samples

from skdp._fitting.refusals import NO_LABELS, InputError, require_one_kind, without_cells
from skdp._fitting.tables import has_hidden_cells, is_missing, kinds_of_labels, one_dimensional
from skdp._numbers import AnyArray, Array, Indices, Table
from skdp._oracle import Public
from skdp._oracle.sources.memory import Map, MemorySource
from skdp._oracle.sources.records import Groups, Records
from skdp._oracle.sources.row_blocks import AnyRows, is_csr

MISSING = (
    "groups holds missing labels (None, NaN or NaT). Leave such rows out, or give each a label of "
    "its own."
)


class GroupLabels:
    """Groups of the rows of a fit, from their labels, which are not kept.

    Parameters
    ----------
    labels : array of shape (n_rows,)
        As in `number_labels`.
    **arrays
        Arrays with as many rows, by name. None is left out.

    Attributes
    ----------
    codes : array of shape (n_rows,)
        Number of the group of each row, as in `number_labels`.
    n_groups : int
        Public.
    """

    def __init__(self, labels: object, **arrays: object) -> None:
        column = label_column(labels)
        lengths = {_rows_of(value) for value in arrays.values() if value is not None}
        if lengths - {None, len(column)}:
            given = [name for name, value in arrays.items() if value is not None]
            raise InputError(
                f"{', '.join(given)} and groups must have one entry for each row. Their lengths "
                "differ. (With groups the number of rows is private, so they are not shown.)"
            )
        self.codes, self.n_groups = number_labels(column)
        if not self.n_groups:
            raise InputError("groups holds no label.")

    def __reduce__(self) -> Any:
        raise TypeError("groups cannot be pickled: a saved model must not hold its training data.")


def number_labels(labels: object) -> tuple[Indices, int]:
    """Return the number of each label, equal labels having the same one, and how many there are.

    Numbers follow from the order of the labels: where the rows of a group stand, and how many they
    are, must not move the others, since blocks of a stream, for one, are made of groups with
    consecutive numbers, and each pass over partitions has to number labels in the same way.

    Parameters
    ----------
    labels : array of shape (n_rows,)
        All text or all numbers. None may be missing.

    Returns
    -------
    codes : array of shape (n_rows,)
        From 0 on, in the order of the labels.
    n_labels : int

    Raises
    ------
    ValueError
        If labels are missing or not of one kind. The message quotes none of them, and does not say
        how many there are.
    """
    column = label_column(labels)
    if column.dtype.kind not in "biufU":  # whose entries NumPy sorts by their values
        cells = column.tolist()
        if any(map(is_missing, cells)):
            raise InputError(MISSING)
        require_one_kind("groups", kinds_of_labels(column))
    elif (column != column).any():
        raise InputError(MISSING)
    with without_cells("groups", otherwise=NO_LABELS):
        names, codes = np.unique(column, return_inverse=True)
    return codes.reshape(-1).astype(np.int64, copy=False), len(names)


def label_column(labels: object) -> AnyArray:
    """Return labels as a one-dimensional array. Labels of a list keep their types.

    NumPy would make strings of ``[1, "1", True]``, and two dimensions of a list of tuples.
    """
    if has_hidden_cells(labels):
        raise InputError(MISSING)
    column = np.empty((0, 0)) if sparse.issparse(labels) else one_dimensional(labels)
    if column.ndim != 1:
        raise InputError("groups must be one-dimensional, a label for each row.")
    return column


def _rows_of(array: Table) -> int | None:
    """Return the length of an array. None where it has none, which others refuse."""
    try:
        return int(_num_samples(array))
    except (TypeError, ValueError):
        return None


@np.errstate(all="ignore")  # a warning, or an error in its place, would show a hostile row
def within_groups(
    X: AnyRows, targets: AnyArray, weights: Array | None, codes: Indices
) -> tuple[AnyRows, AnyArray]:
    """Return rows and targets as deviations from the means over the rows of their group.

    The map acts group by group: the result for a group's rows follows only from these rows, their
    targets and their weights, bit for bit. So two data sets that differ in the rows of one group
    become two that differ in the rows of that group, with the same labels: neighbours become
    neighbours, and a fit whose unit of privacy is the same group keeps its guarantee.

    * "replace_one": any rows of a group become any rows of that group, as many.
    * "zero_out": a null group adds nothing to any sum and has nothing to be mapped. Rows of zeros
      remain zeros.
    * "label": the columns do not depend on the targets, so that they stay public.

    The number of groups, a public fact, and the number of rows of each are the same afterwards. For
    other units the argument fails: a single row moves the means that its whole group is mapped by.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features)
        Sparse rows stay sparse: a row has entries where any of its group has.
    targets : array of floats, first axis n_rows
    weights : array of shape (n_rows,) or None
        Not negative: means are weighted by them, and plain where all of a group are 0. These are
        the constants of groups that minimise the weighted squared error.
    codes : array of shape (n_rows,)
        Numbers of the rows' groups, from 0 on, none of them without a row.

    Returns
    -------
    X, targets : as given
        New arrays of the same types. A column that is constant within a group is exactly 0 in it.
    """
    groups = Groups.of(codes, int(codes.max()) + 1)
    starts = groups.edges[:-1]
    first = groups.order[starts][codes]
    shares = np.ones(len(codes))
    if weights is not None:  # relative to the largest of the group, so that no sum overflows
        largest = np.maximum.reduceat(weights[groups.order], starts)[codes]
        np.divide(weights, largest, out=shares, where=largest > 0)
    shares /= np.bincount(codes, shares)[codes]
    entries = shares[groups.order], groups.order, groups.edges
    averaging = sparse.csr_array(entries, shape=(groups.n_groups, len(codes)))

    def deviations(values: AnyRows) -> AnyRows:
        largest = np.finfo(values.dtype).max / 4  # differences of differences are finite
        if is_csr(values):
            cut = np.clip(values.data, -largest, largest)
            values = sparse.csr_array((cut, values.indices, values.indptr), shape=values.shape)
        else:
            values = np.clip(values, -largest, largest)
        # First from a row of the group: equal values leave no rounding error to be scaled up.
        values = values - values[first]
        return (values - (averaging @ values)[codes]).astype(values.dtype, copy=False)

    return deviations(X), deviations(targets)


def rows_in_memory(
    public: Public,
    X: Table,
    targets: AnyArray,
    weights: Array | None,
    codes: Indices | None,
    spread: Map = map,
) -> MemorySource:
    """Return the place where the rows of a fit live, of which groups are the records, if any.

    ``codes`` are the numbers of the rows' groups, from 0 on, none of them without a row.
    """
    row_bound, constant = public.row_bound, public.intercept_size * public.has_intercept
    records = Records.of(X, targets, weights, row_bound, constant)
    groups = None if codes is None else Groups.of(codes, int(codes.max(initial=-1)) + 1)
    return MemorySource(records, row_bound, spread, groups)
