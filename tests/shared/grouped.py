"""Neighbours whose rows belong to groups: one group has other rows, and another number of them."""

from __future__ import annotations

import numpy as np

from replays import ESTIMATORS, HOSTILE_ROWS, HOSTILE_TARGETS, TARGETS, data_for, takes
from skdp.accounting import Adjacency
from skdp.solvers import available

PAIRS = [
    (kind, solver)
    for kind in ESTIMATORS
    for solver in sorted(available())
    if takes(solver, kind) and (kind != "linear" or solver == "gd")
]


def grouped_data(kind, rng):
    """Rows of some twenty groups of 1 to 6 rows, in no order: X, y, weights, labels."""
    X, y = data_for(kind, rng)
    labels = rng.permutation(np.repeat(np.arange(100, 130), rng.integers(1, 7, 30))[: len(y)])
    return X, y, rng.exponential(size=len(y)), labels


def with_rows_of(data, label, rows, targets, weights, rng):
    """The data with these rows in place of those of a group, at random places among the others."""
    X, y, w, labels = data
    kept = labels != label
    places = np.sort(rng.integers(0, kept.sum() + 1, len(rows)))
    return (
        np.insert(X[kept], places, rows, axis=0),
        np.insert(y[kept], places, np.asarray(targets, dtype=y.dtype)),
        np.insert(w[kept], places, weights),
        np.insert(labels[kept], places, label),
    )


def group_neighbours(kind, data, adjacency, rng, numbers=(1, 2, 9, 40)):
    """Pairs of data sets: one group has so many hostile rows, or a null row, or a few others."""
    targets = TARGETS.get(kind, HOSTILE_TARGETS)
    names = np.unique(data[3])
    for turn, number in enumerate(numbers):
        label = names[turn % len(names)]
        which = rng.integers(0, len(HOSTILE_ROWS), number)
        if turn % 2:  # all alike, so that their mean is as long as one of them
            which[:] = turn % len(HOSTILE_ROWS)
        rows = np.array([HOSTILE_ROWS[i] for i in which])
        there = with_rows_of(
            data, label, rows, rng.choice(targets, number), 10.0 ** rng.integers(-3, 7, number), rng
        )
        if adjacency is Adjacency.ZERO_OUT:
            other = with_rows_of(data, label, np.zeros((1, 4)), [0], [0.0], rng)
        else:
            few = 1 + number % 3
            other = with_rows_of(
                data, label, -3 * np.ones((few, 4)), targets[:1] * few, np.ones(few), rng
            )
        yield there, other
