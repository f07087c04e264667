"""Labels of groups, where the unit of privacy is a group of rows, such as all rows of a person.

Labels are turned into numbers and forgotten. Neither they nor the number of rows are shown: both
are private.
"""

import dataclasses
import itertools
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _num_samples

from skdp._numbers import AnyArray, Array, Indices
from skdp.fitting.refusals import require_one_kind, without_sizes
from skdp.fitting.tables import has_hidden_cells, kinds_of_labels
from skdp.oracle import Public, noise_source
from skdp.oracle.sources.groups import GroupedMemorySource, Groups
from skdp.oracle.sources.memory import Map, MemorySource
from skdp.oracle.sources.records import Records
from skdp.oracle.sources.sparse_rows import AnyRows, is_csr

SORTED_KINDS = "biufcmMUS"  # of arrays whose entries NumPy sorts by their values


class GroupLabels:
    """Groups of the rows of a fit, from their labels, which are not kept.

    Parameters
    ----------
    who : str
        The estimator, for refusals.
    labels : array of shape (n_rows,)
        As in `number_labels`.
    **arrays
        What has to have as many rows, by name; None is left out.

    Attributes
    ----------
    codes : array of shape (n_rows,)
        Number of the group of each row, as in `number_labels`.
    n_groups : int
        Public.
    """

    def __init__(self, who: str, labels: Any, **arrays: Any) -> None:
        with without_sizes(who, grouped=True):
            column = label_column(who, labels)
            lengths = {_rows_of(value) for value in arrays.values() if value is not None}
            if lengths - {None, len(column)}:
                given = [name for name, value in arrays.items() if value is not None]
                raise ValueError(
                    f"{who}: {', '.join(given)} and groups must have one entry for each row; their "
                    "lengths differ. (With groups the number of rows is private, so they are not "
                    "shown.) Nothing was released."
                )
            self.codes, self.n_groups = number_labels(who, column)
        if not self.n_groups:
            raise ValueError(f"{who}: groups holds no label. Nothing was released.")

    def __reduce__(self) -> Any:
        raise TypeError("groups cannot be pickled: a saved model must not hold its training data.")


def number_labels(who: str, labels: Any) -> tuple[Indices, int]:
    """Return the number of each label, equal labels having the same one, and how many there are.

    Labels are equal as the keys of a dictionary are. Their numbers follow from the set of labels
    alone: where the rows of a group stand, and how many they are, must not move the others, since
    blocks of a stream, for one, are made of groups with consecutive numbers.

    Parameters
    ----------
    who : str
        The estimator or function, for refusals.
    labels : array of shape (n_rows,)
        Integers, strings, dates, tuples, records of a structured array, or anything else that can
        be a key of a dictionary. None may be missing, in whole or in part.

    Returns
    -------
    codes : array of shape (n_rows,)
        From 0 on, in the order of the labels where they have one. Others, such as sets, are
        ordered by their hash values; those of strings change from one Python process to the next.
    n_labels : int

    Raises
    ------
    ValueError
        If labels are missing, of several kinds, such as the number 7 and the text "7", cannot be
        hashed or compared, or equal ones have other hash values. The message quotes none of them,
        and does not say how many there are.
    """
    column = label_column(who, labels)
    if column.dtype.names is not None:  # one field after the other: each has an order of its own
        codes = np.zeros(len(column), dtype=np.int64)
        for name in column.dtype.names:
            for part in column[name].reshape(len(column), -1).T if len(column) else ():
                more, n_more = number_labels(who, part)
                codes = np.unique(codes * n_more + more, return_inverse=True)[1].reshape(-1)
        return codes.astype(np.int64, copy=False), int(codes.max(initial=-1)) + 1
    kind = column.dtype.kind
    if kind in SORTED_KINDS:  # by numpy, once those that have no place in the order are out
        if kind in "fcmM" and (np.isnat(column) if kind in "mM" else np.isnan(column)).any():
            raise _missing(who)
        names, codes = np.unique(column, return_inverse=True)
        return codes.reshape(-1).astype(np.int64, copy=False), len(names)
    require_one_kind(who, "groups", [kinds_of_labels(column)])
    # A label runs code of its own when it is compared, and an error of that may quote the label.
    try:
        with warnings.catch_warnings(action="ignore"):
            return _number_objects(who, column.tolist())
    except (_LabelsError, MemoryError):
        raise
    except Exception:
        raise _LabelsError(
            f"{who}: groups holds labels that cannot be compared, or cannot be hashed, as lists "
            "and sets cannot. Make them integers, strings, or tuples of these. Nothing was "
            "released."
        ) from None


def label_column(who: str, labels: Any) -> AnyArray:
    """Return labels as a one-dimensional array; those of a list stay what they are.

    NumPy alone would make strings of ``[1, "1", True]``, and two dimensions of a list of tuples.
    """
    if isinstance(labels, list | tuple):
        types = set(map(type, labels))
        column = np.asarray(labels) if types in ({int}, {float}) else np.empty(0)
        if column.dtype.kind == "i" or types == {float}:  # integers beyond int64 become floats
            return column
        return np.fromiter(labels, dtype=object, count=len(labels))
    column = np.empty((0, 0)) if sparse.issparse(labels) else labels
    if has_hidden_cells(column):
        raise _missing(who)
    column = np.asarray(column)
    if column.ndim != 1:
        raise ValueError(
            f"{who}: groups must be one-dimensional, a label for each row. Nothing was released."
        )
    return column


class _LabelsError(ValueError):
    """A refusal of labels, which quotes none."""


def _missing(who: str) -> ValueError:
    return _LabelsError(
        f"{who}: groups holds missing labels (None, NaN or NaT, also as a part of a label). A row "
        "without a label belongs to nobody who could be protected: leave such rows out, or give "
        "each a label of its own. Nothing was released."
    )


def _number_objects(who: str, labels: list[Any]) -> tuple[Indices, int]:
    """Return the numbers of labels that NumPy cannot sort, by a dictionary."""
    seen: dict[Any, int] = {}  # numbers in the order in which labels come, which must not stay
    codes = np.fromiter(
        (seen.setdefault(label, len(seen)) for label in labels), dtype=np.int64, count=len(labels)
    )
    if any(map(_is_missing, seen)):
        raise _missing(who)
    ranks = np.empty(len(seen), dtype=np.int64)
    ranks[[seen[label] for label in _in_order(who, list(seen))]] = np.arange(len(seen))
    return ranks[codes], len(seen)


def _in_order(who: str, labels: list[Any]) -> list[Any]:
    """Return distinct labels in an order that does not depend on the one in which they come."""
    ordered, is_unique = _sorted(labels)
    if is_unique:
        return ordered
    if any(one == other for one, other in itertools.pairwise(ordered)):
        raise _LabelsError(
            f"{who}: groups holds labels that are equal but have different hash values, so that a "
            "dictionary takes them for different ones, such as dates of different types. Make all "
            "labels of one type. Nothing was released."
        )
    # By hash value; those that share one are in random order, as any other would show which came
    # first.
    shuffled = [labels[place] for place in noise_source(None).permutation(len(labels))]
    return sorted(shuffled, key=hash)


def _sorted(labels: Iterable[Any]) -> tuple[list[Any], bool]:
    """Return labels in order, if they are comparable, and whether that order is unique."""
    try:
        ordered = sorted(labels)
        # Where each entry is less than the next, and "<" is transitive, the order is unique.
        return ordered, all(one < other for one, other in itertools.pairwise(ordered))
    except Exception:  # numbers next to strings, or a comparison of the label's own
        return [], False


def require_order(who: str, labels: AnyArray) -> None:
    """Raise ValueError for labels that each pass over the rows may number in another way.

    A group would then be in one part of a random split in one pass, and in another in the next.

    Parameters
    ----------
    who : str
        The estimator or function, for refusals.
    labels : array of shape (n_rows,)
        That `number_labels` takes.
    """
    for name in labels.dtype.names or ():
        require_order(who, labels[name].reshape(-1))
    if labels.dtype.kind in SORTED_KINDS or labels.dtype.names or _sorted(set(labels.tolist()))[1]:
        return
    raise _LabelsError(
        f"{who}: groups holds labels without an order, such as sets of strings; each pass "
        "over partitions could number them in another way. Make all labels integers, or all "
        "strings. Nothing was released."
    )


def _is_missing(label: Any) -> bool:
    """Whether a label, or a part of it, is None, or is not equal to itself, as NaN is not."""
    if type(label) in (str, int, bytes):
        return False
    if label is None:
        return True
    try:
        is_equal = bool(label == label)  # as a dictionary compares
    except TypeError:  # the comparison of a missing value of pandas is missing, too
        return True
    return not is_equal or any(map(_is_missing, _parts_of(label)))


def _parts_of(label: Any) -> Iterable[Any]:
    """Return what a label is made of: two containers of the same NaN are equal, of two are not."""
    if isinstance(label, np.void):
        return (label.item(),)
    if isinstance(label, tuple | frozenset):
        return label
    if dataclasses.is_dataclass(label):
        return [getattr(label, field.name) for field in dataclasses.fields(label) if field.compare]
    return ()


def _rows_of(array: Any) -> int | None:
    """Return the length of an array; None where it has none, which others refuse."""
    try:
        return int(_num_samples(array))
    except (TypeError, ValueError):
        return None


@np.errstate(all="ignore")  # a warning, or an error in its place, would show a hostile row
def within_groups(
    X: AnyRows, targets: AnyArray, weights: Array | None, codes: Indices
) -> tuple[AnyRows, AnyArray]:
    """Return rows and targets as deviations from the means over the rows of their group.

    The map acts group by group: what becomes of a group's rows follows from these rows, their
    targets and their weights alone, bit for bit. So two data sets that differ in the rows of one
    group become two that differ in the rows of that group, with the same labels: neighbours become
    neighbours, and a fit whose unit of privacy is the same group keeps its guarantee.

    * "replace_one": any rows of a group become any rows of that group, as many.
    * "zero_out": a null group adds nothing to any sum and has nothing to be mapped; rows of zeros
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
    X: Any,
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
    if codes is None:
        return MemorySource(records, row_bound, spread)
    n_groups = int(codes.max()) + 1 if len(codes) else 0
    return GroupedMemorySource(records, Groups.of(codes, n_groups), row_bound, spread)
