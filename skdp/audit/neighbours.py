"""Make neighbouring data sets that differ in one hostile record."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse as scipy_sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import get_tags

from skdp._fitting.grouping import number_labels
from skdp._fitting.privacy import terms_among
from skdp._numbers import AnyArray, Array, MatrixLike, shown
from skdp._oracle import compiled
from skdp._oracle.sources.row_blocks import AnyRows
from skdp.accounting import LABEL, Adjacency

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


def stated_adjacency(estimator: BaseEstimator) -> str:
    """Return the name of the one adjacency that an estimator, or those inside it, state."""
    adjacencies = {str(terms.adjacency) for terms in terms_among(estimator.get_params()).values()}
    if len(adjacencies) != 1:
        raise ValueError(
            f"{type(estimator).__name__}: one adjacency is audited at a time, got "
            f"{shown(sorted(adjacencies))}. Give adjacency='zero_out' or 'replace_one'."
        )
    return adjacencies.pop()


def relation_of(estimator: BaseEstimator) -> Adjacency:
    """Return the relation of that name."""
    return Adjacency.parse(stated_adjacency(estimator), labels=True)


@dataclass(frozen=True, eq=False)
class NeighbouringPair:
    """Two data sets that differ in the records of one unit of privacy.

    Attributes
    ----------
    name : str
        Why the record is hostile.
    data, neighbour : mapping
        Arguments of ``fit``.
    relation : Adjacency
        How the two differ.
    parameters : mapping, default={}
        Parameters of the estimator, for both.
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
    yield maker.pair("long record among many", 7, np.full(X.shape[1], LONG), maker.targets()[-1])


def hostile_pairs(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike | None,
    adjacency: Adjacency,
    groups: ArrayLike | None = None,
    weighted: bool = True,
) -> Iterator[NeighbouringPair]:
    """Yield pairs of data sets, each with one kind of hostile record.

    Under "zero_out" the neighbour has a null record in its place, of weight 0. Under "replace_one"
    the record that was there. Under "label" the same record with the target that was there. Without
    weights there are no null records: then pairs differ as under "replace_one", whose distances
    apply.

    Parameters
    ----------
    estimator : estimator
        Not fitted. Its tags say which forms of data it accepts.
    X, y : arrays
        The other records.
    adjacency : Adjacency
    groups : array of shape (n_samples,), optional
        Whose record each is. Then all records of one person are hostile at once.
    weighted : bool, default=True
        Whether the records have weights.

    Yields
    ------
    NeighbouringPair
    """
    relation = adjacency if weighted else Adjacency.REPLACE_ONE
    takes_y = "y" in inspect.signature(estimator.fit).parameters and y is not None
    targets = np.asarray(y) if takes_y else None
    codes = None if groups is None else number_labels(groups)[0]
    maker = _PairMaker(estimator, dense_copy(X), targets, relation, codes, weighted)
    yield from maker.extreme()
    yield from maker.far()
    yield from maker.weighty()
    yield from maker.resized()
    yield from maker.sparse()


@dataclass(frozen=True, eq=False)
class _PairMaker:
    """Makes pairs of data sets that differ in a hostile record."""

    estimator: BaseEstimator
    X: AnyArray
    y: AnyArray | None
    relation: Adjacency
    groups: AnyArray | None
    weighted: bool

    # ------------------------------------------------------------------ kinds of records

    def extreme(self) -> Iterator[NeighbouringPair]:
        """Yield records of extreme lengths, each with one of the targets and weights in turn."""
        targets, n_columns = self.targets(), self.X.shape[1]
        rows = {name: np.full(n_columns, length) for name, length in LENGTHS.items()}
        rows["overflowing, signs mixed"] = 1e308 * (-1.0) ** np.arange(n_columns)
        rows["of all sizes"] = np.resize([1e200, 1e-200, 0.0, 1.0], n_columns)
        for turn, (name, row) in enumerate(rows.items()):
            which = turn % len(targets)
            place = turn + which
            weight = WEIGHTS[place % len(WEIGHTS)]
            yield self.pair(f"{name} record", place % len(self.X), row, targets[which], weight)

    def far(self) -> Iterator[NeighbouringPair]:
        """Yield records that move sums the farthest, by their direction or by being exchanged."""
        first, *_, last = [*self.targets(), *self.targets()]
        long, zeros = np.full(self.X.shape[1], LONG), np.zeros(self.X.shape[1])
        yield self.pair("duplicate record", 0, self.X[-1], last)
        yield self.pair("opposite record", 0, -self.X[-1], last)
        if self.relation is Adjacency.REPLACE_ONE:
            for name, target, other in (
                ("long record for its opposite", last, -long),
                ("long record, other target", last, long),
                ("long record for its opposite, same target", first, -long),
                ("long record for zeros", last, zeros),
            ):
                yield self.pair(name, 4, long, target, instead=(other, first))
        aligned = replace(self, X=np.tile(1e3 * self.X[:1], (len(self.X), 1)))
        for target in self.targets()[-2:]:
            yield aligned.pair("aligned records", 1, LONG * self.X[0], target, 1.0, (zeros, target))
        in_last = np.eye(self.X.shape[1])[-1]
        others = replace(self, X=np.where(in_last, 0.0, self.X))
        yield others.pair("record alone in its column", 1, LONG * in_last, last)

    def weighty(self) -> Iterator[NeighbouringPair]:
        """Yield heavy and light records of common size, and a heavy one in a heavy class."""
        targets = self.targets()
        for turn, weight in enumerate(WEIGHTS if self.weighted else ()):
            name, target = f"record of weight {weight:g}", targets[turn % len(targets)]
            yield self.pair(name, 2, 3 * self.X[1], target, weight)
        names = [n for n in self.estimator.get_params() if n.rpartition("__")[2] == "class_weight"]
        if names and is_classifier(self.estimator):
            by_class = {one: CLASS_WEIGHT if one == targets[-1] else 1.0 for one in targets}
            name = "heavy record in a heavy class"
            heavy = self.pair(name, 2, self.X[1], targets[-1], max(WEIGHTS))
            yield replace(heavy, parameters=dict.fromkeys(names, by_class))

    def resized(self) -> Iterator[NeighbouringPair]:
        """Yield groups of another number of rows."""
        if self.groups is not None and stated_adjacency(self.estimator) != LABEL:
            for place, size in enumerate(SIZES):
                yield self._group_of(size, place)

    def sparse(self) -> Iterator[NeighbouringPair]:
        """Yield sparse records, in single precision and with entries in parts."""
        if get_tags(self.estimator).input_tags.sparse:
            for name in ("null", "long", "overflowing"):
                row = np.full(self.X.shape[1], min(LENGTHS[name], LARGEST_SINGLE))
                pair = self.pair(f"sparse {name} record", 3, row, self.targets()[0])
                data, neighbour = _in_csr(pair.data), _in_csr(pair.neighbour)
                yield replace(pair, data=data, neighbour=neighbour)
            for part in PARTS:
                yield self._in_parts(part, 3)

    # ------------------------------------------------------------------ pairs

    def targets(self) -> list[Hashable]:
        """Return the targets that records may have."""
        if self.y is None:
            return [None]
        if is_classifier(self.estimator):
            return labels_of(self.estimator, self.y)
        targets: tuple[float, ...] = TARGETS
        if get_tags(self.estimator).target_tags.positive_only:
            targets = tuple(abs(value) or NULL_POSITIVE for value in TARGETS)
        if not np.issubdtype(self.y.dtype, np.integer):
            return list(targets)
        limits = np.iinfo(self.y.dtype)
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

        Where records are exchanged, ``instead`` is the other one. The one that was there if None.
        """
        unit = np.array([place])
        if self.groups is not None:
            unit = np.flatnonzero(self.groups == self.groups[place])
        there, other = self._plain(), self._plain()
        _put(there, unit, X=row, y=target, sample_weight=weight)
        if self.relation is Adjacency.ZERO_OUT:
            _put(other, unit, **self._null())
        elif instead is not None:
            _put(other, unit, X=instead[0], y=instead[1])
        return NeighbouringPair(name, there, self._allowed(other, there), self.relation)

    def _allowed(self, other: dict[str, AnyRows], there: dict[str, AnyRows]) -> dict[str, AnyRows]:
        """Return a neighbour in which only targets differ, if only targets are protected."""
        if stated_adjacency(self.estimator) != LABEL:
            return other
        return {**there, "y": other["y"]}

    def _group_of(self, size: int, place: int) -> NeighbouringPair:
        """Return a pair of data sets: a group has ``size`` long records, or its original rows.

        The neighbour has one null record in its place where groups are left out.
        """
        plain = self._plain()
        label = plain["groups"][place]
        unit = np.flatnonzero(plain["groups"] == label)
        kept = {key: np.delete(value, unit, axis=0) for key, value in plain.items()}
        new = {"X": LONG, "y": self.targets()[-1], "sample_weight": 1.0, "groups": label}

        def with_records(number: int) -> dict[str, AnyRows]:
            return {
                key: np.insert(value, [place] * number, new[key], axis=0)
                for key, value in kept.items()
            }

        there, other = with_records(size), plain
        if self.relation is Adjacency.ZERO_OUT:
            other = with_records(1)
            _put(other, np.array([place]), **self._null())
        return NeighbouringPair(f"group of {size} long records", there, other, self.relation)

    def _in_parts(self, part: float, place: int) -> NeighbouringPair:
        """Return a pair in which an entry is stored as ``part`` and minus that.

        It is small in a norm and large in a sum of parts.
        """
        plain, other = self._plain(), self._plain()
        rows, d = scipy_sparse.csr_array(plain["X"]), plain["X"].shape[1]
        entries = [part, -part, *plain["X"][place]], [d - 1, d - 1, *range(d)], [0, d + 2]
        odd = scipy_sparse.csr_array(entries, shape=(1, d))
        parted = scipy_sparse.vstack([rows[:place], odd, rows[place + 1 :]], format="csr")
        hostile = {**plain, "X": parted}
        if self.relation is Adjacency.ZERO_OUT:
            _put(other, np.array([place]), **self._null())
        other = {**other, "X": scipy_sparse.csr_array(other["X"])}
        name = f"sparse entry in parts of {part:g}"
        return NeighbouringPair(name, hostile, self._allowed(other, hostile), self.relation)

    def _plain(self) -> dict[str, AnyRows]:
        weights = np.ones(len(self.X)) if self.weighted else None
        given = {"X": self.X, "y": self.y, "sample_weight": weights, "groups": self.groups}
        return {name: one.copy() for name, one in given.items() if one is not None}

    def _null(self) -> dict[str, object]:
        positive = get_tags(self.estimator).target_tags.positive_only
        null = NULL_POSITIVE if positive else 0.0
        target = self.targets()[0] if is_classifier(self.estimator) else null
        return {"X": 0.0, "y": target, "sample_weight": 0.0}


def _put(data: Mapping[str, AnyRows], unit: AnyArray, **cells: object) -> None:
    """Set the cells of some records, where the data have such columns."""
    for name in cells.keys() & data.keys():
        data[name][unit] = cells[name]


def _in_csr(data: Mapping[str, AnyRows]) -> dict[str, AnyRows]:
    clipped = np.clip(data["X"], -LARGEST_SINGLE, LARGEST_SINGLE).astype(np.float32)
    return {**data, "X": scipy_sparse.csr_array(clipped)}
