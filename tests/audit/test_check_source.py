"""A class of partitions is checked: correct ones pass, and each fault is named."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import skdp
from skdp.audit import check_source

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 2))
Y = X @ [1.0, -2.0] + RNG.standard_normal(300)
WEIGHTS, PEOPLE = RNG.exponential(size=300), np.arange(300) // 3
LABELS = np.array(["n", "p"])[(Y > 0).astype(int)]
CUTS = slice(0, 90), slice(90, 90), slice(90, 210), slice(210, 300)


class Correct(skdp.data.Partitions):
    """Tasks and results are pickled, as on their way to other processes."""

    def __init__(self, X=X, y=Y, **beside):
        columns = {"X": X, "y": y} | beside
        self.parts = [
            {name: one[cut].copy() for name, one in columns.items()} | {"index": index}
            for index, cut in enumerate(CUTS)
        ]
        self.n_passes = 0

    def run(self, task, spread=map):
        self.n_passes += 1
        return spread(self.result(pickle.loads(pickle.dumps(task))), self.now())

    def result(self, task):
        return lambda part: pickle.loads(pickle.dumps(task(**part)))

    def now(self):
        return self.parts


def without_index(part):
    return {name: value for name, value in part.items() if name != "index"}


class Repeated(Correct):
    def now(self):
        return [*self.parts, {**self.parts[0], "index": 4}]


class OtherLength(Correct):
    def now(self):
        return self.parts if self.n_passes == 1 else self.parts[:-1]


class OtherRows(Correct):
    def now(self):
        X = self.parts[0]["X"]
        return [self.parts[0] | {"X": X + self.n_passes}, *self.parts[1:]]


class OtherOrder(Correct):
    def now(self):
        step = 1 - 2 * (self.n_passes % 2)
        return [without_index(one) for one in self.parts[::step]]


class WrongIndex(Correct):
    def now(self):
        return [one | {"index": 0} for one in self.parts]


class Rows(Correct):
    def run(self, task, spread=map):
        return [one["X"] for one in self.parts]


class Fails(Correct):
    def run(self, task, spread=map):
        raise OSError("no such file")


class WithoutWeights(Correct):
    def now(self):
        return [{n: v for n, v in one.items() if n != "sample_weight"} for one in self.parts]


class CutsGroups(Correct):
    def now(self):
        people = np.arange(300) % 50
        return [one | {"groups": people[cut]} for one, cut in zip(self.parts, CUTS, strict=True)]


@pytest.mark.parametrize(
    ("beside", "targets"),
    [({}, Y), ({"sample_weight": WEIGHTS}, Y), ({"groups": PEOPLE}, Y), ({}, LABELS)],
    ids=["rows", "weights", "groups", "labels"],
)
def test_a_correct_class_passes(beside, targets):
    source = Correct(y=targets, **beside)
    check_source(source, X, targets, **beside)
    check_source(source)


FAULTS = {
    Repeated: (AssertionError, "two partitions hold the same rows"),
    OtherLength: (AssertionError, "pass 2 read other rows, .*: 210 in 3"),
    OtherRows: (AssertionError, "pass 2 read other rows"),
    OtherOrder: (AssertionError, "or another order, than pass 1"),
    WrongIndex: (ValueError, "must be its place in the order"),
    Rows: (AssertionError, "run returned ndarray, in place of"),
    Fails: (OSError, "no such file"),
    CutsGroups: (ValueError, "rows of one group lie in several partitions"),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_faults_are_named(fault):
    error, said = FAULTS[fault]
    with pytest.raises(error, match=said):
        check_source(fault())


def test_rows_are_compared_with_those_in_memory():
    source = WithoutWeights(sample_weight=WEIGHTS)
    check_source(source)
    with pytest.raises(AssertionError, match="coefficients differ"):
        check_source(source, X, Y, sample_weight=WEIGHTS)
    with pytest.raises(AssertionError, match="X has 299"):
        check_source(Correct(), X[1:], Y[1:])
