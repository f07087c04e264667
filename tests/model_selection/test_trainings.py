"""Which trainings of a search a record can be in."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from skdp.model_selection.fitted_search import memberships_of


@pytest.mark.parametrize(
    ("splitter", "expected"),
    [
        (KFold(5), [{320: 4}]),
        (KFold(5, shuffle=True), [{320: 4}]),
        (StratifiedKFold(5), [{320: 4}]),
        (KFold(3), [{266: 1, 267: 1}, {267: 2}]),
        (StratifiedKFold(3, shuffle=True), [{266: 1, 267: 1}, {267: 2}]),
        (RepeatedKFold(n_splits=4, n_repeats=3), [{300: 9}]),
        (RepeatedStratifiedKFold(n_splits=4, n_repeats=2), [{300: 6}]),
        (
            RepeatedKFold(n_splits=3, n_repeats=2),
            [{266: 2, 267: 2}, {266: 1, 267: 3}, {267: 4}],
        ),
        (LeaveOneOut(), [{399: 399}]),
        (TimeSeriesSplit(3), [{100: 1, 200: 1, 300: 1}]),
        (PredefinedSplit([-1] * 200 + [0] * 100 + [1] * 100), [{300: 2}]),
        (ShuffleSplit(6, test_size=0.5), [{200: 6}]),
        (StratifiedShuffleSplit(6, test_size=0.25, random_state=0), [{300: 6}]),
        ([(np.arange(300), np.arange(300, 400)), (np.arange(400) >= 200, [0])], [{300: 1, 200: 1}]),
    ],
    ids=str,
)
def test_fates(splitter, expected):
    found = memberships_of(splitter, 400)
    assert sorted(map(repr, found)) == sorted(repr(Counter(membership)) for membership in expected)


def test_fates_agree_with_the_splits(rng):
    """Against counting, on labels that the bound does not know."""
    y = rng.integers(0, 3, 50)
    for splitter in (
        KFold(7, shuffle=True),
        StratifiedKFold(4),
        StratifiedKFold(4, shuffle=True),
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2),
        ShuffleSplit(5),
        ShuffleSplit(5, random_state=0),
        StratifiedShuffleSplit(5),
        TimeSeriesSplit(4),
    ):
        times = [Counter() for _ in range(50)]
        for train, _ in splitter.split(np.zeros((50, 1)), y):
            for row in train:
                times[row][len(train)] += 1
        bound = memberships_of(splitter, 50)
        assert all(any(membership <= other for other in bound) for membership in times), splitter
    assert (
        max(
            membership.total() for membership in memberships_of(ShuffleSplit(5, random_state=0), 50)
        )
        == 5
    )
