"""Make neighbouring data sets that differ in one hostile record."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse as scipy_sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import get_tags

from skdp._numbers import AnyArray, Array, MatrixLike
from skdp.accounting import LABEL, Adjacency
from skdp.fitting.grouping import number_labels
from skdp.fitting.privacy import terms_among
from skdp.oracle import compiled
from skdp.oracle.sources.row_blocks import AnyRows

SMALL = 60, 4  # shape of made-up data: any will do
FOR_LOOPS = 1 << 10, 1 << 7  # the same, of several tiles of a compiled loop

# A record of one of these lengths, in every column, or of their mixtures, has broken something
# somewhere: overflow, underflow, clipping of zero, rounding.
LONG = 1e5
LENGTHS = {
    "null": 0.0,
    "negative zero": -0.0,
    "long": LONG,
    "long, turned around": -LONG,
    "overflowing": 1e300,
    "underflowing": 1e-170,
    "subnormal": 5e-324,
}
TARGETS = (-1e300, -3.0, 0.0, 1e-310, 1e12)
NULL_POSITIVE = 1.0  # target of a null record where 0 is none
WEIGHTS = (1.0, 1e6, 1e300, 5e-324)
CLASS_WEIGHT = 1e10  # of a class, whose product with the largest weight overflows
SIZES = (1, 2, 40)  # numbers of rows that a group has in place of its own
LARGEST_SINGLE = 1e30  # entry of a sparse row in single precision
PARTS = (1e30, 1e17)  # an entry of a sparse row in two parts, plus and minus this


def stated_adjacency(estimator: BaseEstimator) -> str | None:
    """Return the one adjacency of an estimator or of those inside it, None if there is none."""
    adjacencies = {str(terms.adjacency) for terms in terms_among(estimator.get_params()).values()}
    return adjacencies.pop() if len(adjacencies) == 1 else None


@dataclass(frozen=True, eq=False)
class NeighbouringPair:
    """Two data sets that differ in the records of one unit of privacy.

    Attributes
    ----------
    name : str
        What is hostile about the record.
    data, neighbour : mapping
        Arguments of ``fit``.
    relation : Adjacency
        How the two differ.
    parameters : mapping, default={}
        What the estimator's parameters are set to, for both.
    """

    name: str
    data: Mapping[str, AnyRows]
    neighbour: Mapping[str, AnyRows]
    relation: Adjacency
    parameters: Mapping[str, object] = field(default_factory=dict)


def made_up_data(
    estimator: BaseEstimator, shape: tuple[int, int] = SMALL
) -> tuple[AnyArray, AnyArray]:
    """Return rows and targets of an estimator's task, drawn from a fixed seed.

    Returns
    -------
    X : array of the given shape
    y : array of shape (n_samples,)
    """
    rng = np.random.default_rng(20)
    X = rng.standard_normal(shape)
    if is_classifier(estimator):
        labels = labels_of(estimator, [0, 1])
        return X, np.asarray(labels)[np.arange(len(X)) % len(labels)]
    slopes = np.resize([1.0, -1.0, 0.5, 0.0], shape[1])
    y = X @ slopes + 0.1 * rng.standard_normal(len(X))
    return X, np.exp(y) if get_tags(estimator).target_tags.positive_only else y


def dense_copy(X: MatrixLike) -> Array:
    """Return rows as a dense array of their own."""
    rows: Any = X
    return np.array(rows.toarray() if scipy_sparse.issparse(rows) else rows, dtype=np.float64)


def labels_of(estimator: BaseEstimator, y: ArrayLike) -> list[Hashable]:
    """Return the classes that records may have: those declared, else those in y."""
    for name, value in estimator.get_params().items():
        if name.rpartition("__")[2] == "classes" and value is not None:
            return list(value)
    return list(np.unique(np.asarray(y)))


def pair_for_loops(
    estimator: BaseEstimator, relation: Adjacency, weighted: bool
) -> Iterator[NeighbouringPair]:
    """Load compiled loops, which then do the work, and yield a pair of made-up data."""
    compiled.load()
    X, y = made_up_data(estimator, FOR_LOOPS)
    relation = relation if weighted else Adjacency.REPLACE_ONE
    maker = _PairMaker(estimator, X, y, relation, None, weighted)
    yield maker.pair("long record among many", 7, maker._long, maker.targets()[-1])


def hostile_pairs(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike | None,
    adjacency: Adjacency,
    groups: ArrayLike | None = None,
    weighted: bool = True,
    thorough: bool = False,
) -> Iterator[NeighbouringPair]:
    """Yield pairs of data sets, each with one kind of hostile record.

    Under "zero_out" the neighbour has a null record in its place, of weight 0; under "replace_one"
    the record that was there; under "label" the same record with the target that was there.
    Without weights there are no null records: then pairs differ as under "replace_one", which is
    what their distances are to be held against.

    Parameters
    ----------
    estimator : estimator
        Not fitted; it says which forms of data it takes.
    X, y : arrays
        The other records.
    adjacency : Adjacency
    groups : array of shape (n_samples,), optional
        Whose record each is; then all records of one person are hostile at once.
    weighted : bool, default=True
        Whether the records have weights.
    thorough : bool, default=False
        Every record with every target and weight, in place of each in turn.

    Yields
    ------
    NeighbouringPair
    """
    dense = dense_copy(X)
    targets = None if y is None else np.asarray(y)
    relation = adjacency if weighted else Adjacency.REPLACE_ONE
    maker = _PairMaker(estimator, dense, targets, relation, groups, weighted, thorough)
    for pairs_of in HOSTILE_RECORDS:
        yield from pairs_of(maker)


class _PairMaker:
    """Makes pairs of data sets that differ in a hostile record."""

    def __init__(
        self,
        estimator: BaseEstimator,
        X: AnyArray,
        y: AnyArray | None,
        relation: Adjacency,
        groups: ArrayLike | None,
        weighted: bool,
        thorough: bool = False,
    ) -> None:
        self._estimator, self._X, self._y = estimator, X, y
        self._relation, self._weighted, self._thorough = relation, weighted, thorough
        self._groups = None if groups is None else number_labels("audit", groups)[0]
        self._takes_y = "y" in inspect.signature(estimator.fit).parameters and y is not None
        self._long, self._zeros = np.full(X.shape[1], LONG), np.zeros(X.shape[1])

    # ------------------------------------------------------------------ kinds of records

    def extreme(self) -> Iterator[NeighbouringPair]:
        """Yield records of extreme lengths, each with some or all targets and weights."""
        targets, n_columns = self.targets(), self._X.shape[1]
        rows = {name: np.full(n_columns, length) for name, length in LENGTHS.items()}
        rows["overflowing, signs mixed"] = 1e308 * (-1.0) ** np.arange(n_columns)
        rows["of all sizes"] = np.resize([1e200, 1e-200, 0.0, 1.0], n_columns)
        for turn, (name, row) in enumerate(rows.items()):
            for shift, target in enumerate(targets):
                if not self._thorough and shift != turn % len(targets):
                    continue
                weights = WEIGHTS if self._thorough else (WEIGHTS[(turn + shift) % len(WEIGHTS)],)
                for weight in weights:
                    place = (turn + shift) % len(self._X)
                    yield self.pair(f"{name} record", place, row, target, weight)

    def copies(self) -> Iterator[NeighbouringPair]:
        """Yield a record that duplicates another one, and a record opposite to it."""
        for name, sign in (("duplicate", 1.0), ("opposite", -1.0)):
            yield self.pair(f"{name} record", 0, sign * self._X[-1], self.targets()[-1])

    def exchanged(self) -> Iterator[NeighbouringPair]:
        """Yield a record for its opposite, and for zeros, where records are exchanged."""
        first, *_, last = [*self.targets(), *self.targets()]
        if self._relation is Adjacency.REPLACE_ONE:
            for name, target, other in (
                ("long record for its opposite", last, -self._long),
                ("long record, other target", last, self._long),
                ("long record for its opposite, same target", first, -self._long),
                ("long record for zeros", last, self._zeros),
            ):
                yield self.pair(name, 4, self._long, target, instead=(other, first))

    def aligned(self) -> Iterator[NeighbouringPair]:
        """Yield a record in the direction of all others, where sums are largest."""
        others = self._among(np.tile(1e3 * self._X[:1], (len(self._X), 1)))
        for target in self.targets()[-2:]:
            row, instead = LONG * self._X[0], (self._zeros, target)
            yield others.pair("aligned records", 1, row, target, instead=instead)

    def isolated(self) -> Iterator[NeighbouringPair]:
        """Yield a record that is alone in its column."""
        X, row = self._X.copy(), self._zeros.copy()
        X[:, -1], row[-1] = 0.0, LONG
        yield self._among(X).pair("record alone in its column", 1, row, self.targets()[-1])

    def weighty(self) -> Iterator[NeighbouringPair]:
        """Yield heavy and light records of common size, and a heavy one in a heavy class."""
        targets = self.targets()
        for turn, weight in enumerate(WEIGHTS if self._weighted else ()):
            name, target = f"record of weight {weight:g}", targets[turn % len(targets)]
            yield self.pair(name, 2, 3 * self._X[1], target, weight)
        names = [n for n in self._estimator.get_params() if n.rpartition("__")[2] == "class_weight"]
        if names and is_classifier(self._estimator):
            by_class = {one: CLASS_WEIGHT if one == targets[-1] else 1.0 for one in targets}
            name = "heavy record in a heavy class"
            heavy = self.pair(name, 2, self._X[1], targets[-1], max(WEIGHTS))
            yield replace(heavy, parameters=dict.fromkeys(names, by_class))

    def resized(self) -> Iterator[NeighbouringPair]:
        """Yield groups of another number of rows."""
        if self._groups is not None and stated_adjacency(self._estimator) != LABEL:
            for place, size in enumerate(SIZES):
                yield self._group_of(size, place, self._long, self.targets()[-1])

    def sparse(self) -> Iterator[NeighbouringPair]:
        """Yield sparse records, in single precision and with entries in parts."""
        if get_tags(self._estimator).input_tags.sparse:
            for name in ("null", "long", "overflowing"):
                row = np.full(self._X.shape[1], min(LENGTHS[name], LARGEST_SINGLE))
                pair = self.pair(f"sparse {name} record", 3, row, self.targets()[0])
                data, neighbour = _in_csr(pair.data), _in_csr(pair.neighbour)
                yield replace(pair, data=data, neighbour=neighbour)
            for part in PARTS:
                yield self._in_parts(part, 3)

    def _among(self, X: AnyArray) -> _PairMaker:
        """Return a maker of pairs among other records."""
        other = copy.copy(self)
        other._X = X
        return other

    # ------------------------------------------------------------------ pairs

    def targets(self) -> list[Hashable]:
        """Return the targets that records may have."""
        if self._y is None:
            return [None]
        if is_classifier(self._estimator):
            return labels_of(self._estimator, self._y)
        targets: tuple[float, ...] = TARGETS
        if get_tags(self._estimator).target_tags.positive_only:
            targets = tuple(abs(value) or NULL_POSITIVE for value in TARGETS)
        if not np.issubdtype(self._y.dtype, np.integer):
            return list(targets)
        limits = np.iinfo(self._y.dtype)
        return [min(max(int(value), limits.min), limits.max) for value in targets]

    def pair(
        self,
        name: str,
        place: int,
        row: AnyArray,
        target: Hashable,
        weight: float = 1.0,
        instead: tuple[AnyArray, Hashable] | None = None,
    ) -> NeighbouringPair:
        """Return the pair that differs in the unit to which the record at ``place`` belongs.

        Where records are exchanged, ``instead`` is the other one; the one that was there if None.
        """
        unit = np.array([place])
        if self._groups is not None:
            unit = np.flatnonzero(self._groups == self._groups[place])
        there, other = self._plain(), self._plain()
        there["X"][unit] = row
        if self._takes_y:
            there["y"][unit] = target
        if self._weighted:
            there["sample_weight"][unit] = weight
        if self._relation is Adjacency.ZERO_OUT:
            self._null(other, unit)
        elif instead is not None:
            other["X"][unit] = instead[0]
            if self._takes_y:
                other["y"][unit] = instead[1]
        return NeighbouringPair(name, there, self._allowed(other, there), self._relation)

    def _allowed(self, other: dict[str, AnyRows], there: dict[str, AnyRows]) -> dict[str, AnyRows]:
        """Return a neighbour in which targets alone differ, where they alone are protected."""
        if stated_adjacency(self._estimator) != LABEL:
            return other
        return {**there, "y": other["y"]}

    def _group_of(self, size: int, place: int, row: AnyArray, target: Hashable) -> NeighbouringPair:
        """Return a pair of data sets: a group has ``size`` copies of a row, or its original rows.

        The neighbour has one null record in its place where groups are left out.
        """
        plain = self._plain()
        label = plain["groups"][place]
        unit = np.flatnonzero(plain["groups"] == label)
        kept = {key: np.delete(value, unit, axis=0) for key, value in plain.items()}
        new = {"X": row, "y": target, "sample_weight": 1.0, "groups": label}

        def with_records(number: int) -> dict[str, AnyRows]:
            return {
                key: np.insert(value, [place] * number, new[key], axis=0)
                for key, value in kept.items()
            }

        there, other = with_records(size), plain
        if self._relation is Adjacency.ZERO_OUT:
            other = with_records(1)
            self._null(other, np.array([place]))
        return NeighbouringPair(f"group of {size} long records", there, other, self._relation)

    def _in_parts(self, part: float, place: int) -> NeighbouringPair:
        """Return a pair in which an entry is stored as ``part`` and minus that.

        It is small in a norm and large in a sum of parts.
        """
        plain, other = self._plain(), self._plain()
        rows = scipy_sparse.csr_array(plain["X"])
        start = rows.indptr[place + 1]
        data = np.insert(rows.data, start, [part, -part])
        indices = np.insert(rows.indices, start, [min(1, rows.shape[1] - 1)] * 2)
        indptr = rows.indptr + 2 * (np.arange(rows.shape[0] + 1) > place)
        hostile = {**plain, "X": scipy_sparse.csr_array((data, indices, indptr), shape=rows.shape)}
        if self._relation is Adjacency.ZERO_OUT:
            self._null(other, np.array([place]))
        other = {**other, "X": scipy_sparse.csr_array(other["X"])}
        name = f"sparse entry in parts of {part:g}"
        return NeighbouringPair(name, hostile, self._allowed(other, hostile), self._relation)

    def _plain(self) -> dict[str, AnyRows]:
        arguments: dict[str, AnyRows] = {"X": self._X.copy()}
        if self._takes_y and self._y is not None:
            arguments["y"] = self._y.copy()
        if self._weighted:
            arguments["sample_weight"] = np.ones(len(self._X))
        if self._groups is not None:
            arguments["groups"] = self._groups.copy()
        return arguments

    def _null(self, data: dict[str, AnyRows], unit: AnyArray) -> None:
        data["X"][unit] = 0.0
        if self._takes_y:
            positive = get_tags(self._estimator).target_tags.positive_only
            null = NULL_POSITIVE if positive else 0.0
            data["y"][unit] = self.targets()[0] if is_classifier(self._estimator) else null
        if self._weighted:
            data["sample_weight"][unit] = 0.0


def _in_csr(data: Mapping[str, AnyRows]) -> dict[str, AnyRows]:
    clipped = np.clip(data["X"], -LARGEST_SINGLE, LARGEST_SINGLE).astype(np.float32)
    return {**data, "X": scipy_sparse.csr_array(clipped)}


HOSTILE_RECORDS = (
    _PairMaker.extreme,
    _PairMaker.copies,
    _PairMaker.exchanged,
    _PairMaker.aligned,
    _PairMaker.isolated,
    _PairMaker.weighty,
    _PairMaker.resized,
    _PairMaker.sparse,
)
