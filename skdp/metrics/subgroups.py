"""Subgroups that scores are computed for: declared, and rows numbered by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from skdp._fitting import tables
from skdp._fitting.data import Data
from skdp._fitting.refusals import InputError, without_cells
from skdp._numbers import AnyArray, Indices, shown


@dataclass(frozen=True)
class Subgroups:
    """Disjoint subgroups, each with the labels that rows of it have. All of this is public.

    Attributes
    ----------
    column : str, int or None
        Name or number of the column of X that has the labels. None if they come by themselves.
    names : tuple
        Of the subgroups.
    numbers : dict
        Number of the subgroup of each declared label.
    other : int
        Number of the subgroup of all other labels. ``len(names)`` if none is declared.
    """

    column: str | int | None
    names: tuple[Any, ...]
    numbers: Mapping[Any, int] = field(repr=False)
    other: int

    @property
    def n_subgroups(self) -> int:
        """Number of the declared subgroups, and one for rows of none if there may be some."""
        return max(len(self.names), self.other + 1)

    def assumptions(self) -> tuple[str, ...]:
        """Return the privacy statement's sentences."""
        return (
            f"The subgroups ({', '.join(map(str, self.names))}) and their labels were declared "
            "without looking at the rows. Which rows lie in which subgroup, and how many, is "
            "private: each release is a table of all subgroups, to which a record adds one unit, "
            "so that the price is for all of them together.",
        )

    def numbers_of(self, data: Data) -> Indices:
        """Return the number of the subgroup of each row.

        Raises
        ------
        ValueError
            If X has no such column, or its labels are of another type than the declared ones.
        """
        labels = data.by if self.column is None else self._column_of(data.X)
        assert labels is not None
        present, declared = tables.kinds_of_labels(labels), tables.kinds_of_labels([*self.numbers])
        if present and ((), "lists") not in present and not present & declared:
            given = tables.in_words(kind for _, kind in present)
            raise InputError(
                f"the labels of subgroups are {given} in by, and none of those in "
                f"subgroups is. Declare them as {given}."
            )
        # A label runs code of its own when it is hashed, and an error of that may quote it.
        with without_cells("by", otherwise="holds labels that cannot be hashed"):
            return np.fromiter(
                (self.numbers.get(label, self.other) for label in labels.tolist()),
                dtype=np.int64,
                count=len(labels),
            )

    def _column_of(self, X: Any) -> AnyArray:
        names = tables.names_of(X)
        X = np.asarray(X) if isinstance(X, list) else X
        places: list[object] = list(range(np.shape(X)[1])) if names is None else names
        if places.count(self.column) != 1:
            raise InputError(
                f"by={shown(self.column)} must name exactly one column of X. Pass a column "
                f"{'number' if names is None else 'name'}, or an array of labels."
            )
        return tables.column(X, places.index(self.column))


def declared_subgroups(
    column: str | int | None, is_given: bool, declared: Iterable[Any] | Mapping[str, Any] | None
) -> Subgroups | None:
    """Return the declared subgroups, or None if scores are of all rows.

    Parameters
    ----------
    column : str, int or None
        Of X, with labels.
    is_given : bool
        Whether there are labels.
    declared : iterable, mapping or None
        As `skdp.metrics.evaluate` gets it.

    Raises
    ------
    ValueError
        If there are labels and no declaration, or the reverse, or subgroups are not disjoint.
    """
    if is_given != (declared is not None):
        raise ValueError(
            "by= and subgroups= need each other: the labels of rows are private, and which "
            "of them to look for must be declared without looking at the rows, as in "
            "by='sex', subgroups=['f', 'm']."
        )
    if declared is None:
        return None
    if isinstance(declared, str) or not isinstance(declared, Iterable):
        raise ValueError(
            f"subgroups must be a list of labels, or a mapping from names to labels, got "
            f"{shown(declared)}."
        )
    names: tuple[Any, ...] = tuple(declared)
    of, others = [[name] for name in names], []
    if isinstance(declared, Mapping):
        given = declared.values()
        of = [list(one) if isinstance(one, list | tuple | set | range) else [one] for one in given]
        others = [number for number, own in enumerate(of) if own == [None]]
    labels = [(one, i) for i, own in enumerate(of) if i not in others for one in own]
    try:
        numbers = dict(labels)
    except TypeError:  # one cannot be hashed
        numbers = {}
    are_labels = all(label is not None and label == label for label in numbers)
    if not (are_labels and len(labels) == len(numbers) > 0 and len(others) < 2 and all(of)):
        raise ValueError(
            "subgroups must be disjoint: each must have a label, and each label must be "
            "declared once, be hashable and not be missing. In a mapping, one subgroup may have "
            "the label None, for all labels that are not declared."
        )
    return Subgroups(column, names, numbers, others[0] if others else len(of))


def subgroup_labels(by: Any) -> AnyArray:
    """Return the labels of rows as an array of one dimension."""
    with without_cells("by", otherwise="must hold a label for each row"):
        column = None
        if not (np.ma.isMaskedArray(by) or sparse.issparse(by)):
            column = tables.one_dimensional(by)
        if column is None or column.ndim != 1:
            raise InputError(
                "by must be a column of X, or an array with a label for each row, which is neither "
                f"masked nor sparse, got {type(by).__name__}."
            )
        return column
