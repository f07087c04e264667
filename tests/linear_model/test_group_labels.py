"""Labels of groups are numbered by equality, as a dictionary does, in their order."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import skdp
from skdp._fitting.grouping import number_labels
from skdp.model_selection import DPHoldout, dp_train_test_split
from skdp.preprocessing import DPStandardScaler

SECRET = "Ada Lovelace"
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Person:
    """Equal by name, without an order."""

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return isinstance(other, Person) and self.name == other.name

    def __hash__(self):
        return hash(self.name)


def objects(labels):
    return np.fromiter(labels, dtype=object, count=len(labels))


# What a person's label is, from the person's number.
KINDS = {
    "int": lambda k: k - 3,
    "beyond int64": lambda k: 2**63 + k % 5 - (2**63 if k % 2 else 0),
    "far beyond int64": lambda k: 10**40 + k,
    "float": lambda k: k / 7,
    "zeros": lambda k: (0.0, -0.0, 0, False, 1.0)[k % 5],
    "str": lambda k: f"person {k}",
    "str with trailing nul": lambda k: "a" + "\0" * (k % 4),
    "bool": lambda k: k % 2 == 0,
    "Decimal": lambda k: Decimal(k) / 10,
    "Decimal of other scales": lambda k: Decimal("1.0" if k % 2 else "1.00") * (k // 2),
    "Fraction": lambda k: Fraction(k, 6),
    "numbers of all types": lambda k: (Fraction(1, 2), 0.5, Decimal("0.5"), 2, 2.0, True)[k % 6],
}
ARRAYS = {
    "int8": lambda codes: codes.astype(np.int8),
    "uint64": lambda codes: np.uint64(2**64 - 1) - codes.astype(np.uint64),
    "float16": lambda codes: codes.astype(np.float16),
    "signed zeros": lambda codes: np.array([0.0, -0.0, 1.0])[codes % 3],
    "fixed-width str": lambda codes: codes.astype("U8"),
    "categorical": lambda codes: pd.Series([f"p{code}" for code in codes], dtype="category"),
    "nullable int": lambda codes: pd.Series(codes, dtype="Int64"),
    "nullable string": lambda codes: pd.Series([f"p{code}" for code in codes], dtype="string"),
}


@pytest.fixture
def codes():
    rng = np.random.default_rng(5)
    return rng.permutation(np.concatenate([np.arange(23), rng.integers(0, 23, 77)]))


def by_dictionary(labels):
    numbers: dict = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels]), len(numbers)


def require_same(labels, found):
    """The partition of rows is that of a dictionary; numbers are 0, 1, ..."""
    codes, n_labels = found
    expected, n_expected = by_dictionary(labels)
    assert n_labels == n_expected
    assert sorted(set(codes.tolist())) == list(range(n_labels))
    assert len(set(zip(codes.tolist(), expected.tolist(), strict=True))) == n_labels


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_those_of_a_dictionary(kind, codes):
    labels = [KINDS[kind](int(code)) for code in codes]  # equal ones are objects of their own
    require_same(labels, number_labels(labels))
    require_same(labels, number_labels(objects(labels)))
    require_same(labels, number_labels(pd.Series(objects(labels), dtype=object)))


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_are_numbered_as_their_entries(kind, codes):
    labels = ARRAYS[kind](codes)
    require_same(np.asarray(labels).tolist(), number_labels(labels))


@pytest.mark.parametrize("kind", KINDS)
def test_where_the_rows_of_a_group_stand_does_not_renumber_others(kind, codes):
    labels = [KINDS[kind](int(code)) for code in codes]
    other = np.random.default_rng(6).permutation(100)
    again = [KINDS[kind](int(codes[place])) for place in other]
    assert np.array_equal(number_labels(again)[0], number_labels(labels)[0][other])


BAD = {
    "Decimal": Decimal("NaN"),
    "signalling Decimal": Decimal("sNaN"),
    "pandas": pd.NA,
    "without an order": Person(SECRET),
    "tuple": (SECRET, 1),
    "bytes": SECRET.encode(),
    "date": datetime.date(2026, 1, 1),
    "list": [SECRET],
    "dict": {SECRET: 1},
    "array": np.zeros(2),
}


def failing(method, error):
    def fail(self, *others):
        raise error(SECRET)

    return type("Failing", (), {"__hash__": lambda self: 7, method: fail})()


for name in ("__eq__", "__hash__"):
    for error in (ValueError, RuntimeError, KeyError):
        BAD[f"{name} that raises {error.__name__}"] = failing(name, error)


@pytest.mark.parametrize("kind", BAD)
def test_a_label_that_is_no_key_is_refused_before_the_charge(kind):
    labels = objects([f"{SECRET} {k // 2}" for k in range(20)])
    labels[[3, 11]] = objects([BAD[kind]] * 2)
    X, y = np.zeros((20, 2)), np.arange(20.0)
    with skdp.PrivacyBudget(9.0, 1e-5) as budget:
        for labelled in (
            lambda: skdp.DPRidge().fit(X, y, groups=labels),
            lambda: DPStandardScaler().fit(X, groups=list(labels)),
            lambda: dp_train_test_split(X, y, groups=labels),
        ):
            with pytest.raises(ValueError, match=r"groups.*Nothing was released") as refusal:
                labelled()
            assert SECRET not in str(refusal.value)
            assert refusal.value.__suppress_context__ or refusal.value.__context__ is None
        assert budget.n_fits == 0


MIXED = {
    "text": lambda k: k if k % 2 else str(k),
    "Decimal": lambda k: Decimal(k) if k % 2 else str(k),
}


class Halves(skdp.data.Partitions):
    """Two partitions, whose labels of groups are of one kind each."""

    def __init__(self, X, y, labels):
        self._given = [(part(X), part(y), part(labels)) for part in (self.first, self.second)]

    @staticmethod
    def first(rows):
        return rows[:200]

    @staticmethod
    def second(rows):
        return rows[200:]

    def run(self, task, spread=map):
        return [task(X, y, groups=labels) for X, y, labels in self._given]


@pytest.mark.parametrize("kind", MIXED)
def test_labels_of_several_kinds_would_make_two_groups_of_a_person(kind):
    """pandas reads an id as a number in one piece of a file, and as text in the next."""
    labels = [MIXED[kind](k // 2) for k in range(400)]
    apart = [MIXED[kind](2 * k + (k < 200)) for k in range(400)]
    X, y = np.zeros((400, 2)), np.arange(400.0)
    blocks = [(X[:200], y[:200], apart[:200]), (X[200:], y[200:], apart[200:])]
    with skdp.PrivacyBudget(9.0, 1e-5) as budget:
        for labelled in (
            lambda: skdp.DPRidge().fit(X, y, groups=labels),
            lambda: skdp.DPRidge().fit(X, y, groups=objects(labels)),
            lambda: DPStandardScaler().fit(X, groups=labels),
            lambda: dp_train_test_split(X, y, groups=labels),
            lambda: skdp.DPRidge().fit(Halves(X, y, apart)),
            lambda: skdp.DPRidge().fit_blocks(blocks, n_groups=400, n_features=2),
        ):
            with pytest.raises(ValueError, match=r"groups must hold labels of one kind.*released"):
                labelled()
        assert budget.n_fits == 0


@pytest.mark.parametrize("form", [list, objects])
def test_no_person_is_on_both_sides_of_a_split(form):
    codes = np.random.default_rng(2).permutation(np.minimum(np.arange(400) // 10, 30))
    labels = form([f"person {code}" for code in codes])
    X, y = np.zeros((400, 3)), np.arange(400.0)
    *_, first, second = dp_train_test_split(X, y, groups=labels)
    assert not set(first) & set(second)
    assert len(set(first) | set(second)) == 31
    assert set(map(type, first)) <= set(map(type, labels))
    holdout = DPHoldout(X, y, groups=labels)
    assert repr(holdout) == "<DPHoldout: 23 groups to fit on, 8 to score on>"
    assert holdout.fit(skdp.DPRidge()).privacy_.n_groups == 23
