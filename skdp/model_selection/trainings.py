"""How many trainings of a cross-validation one record can take part in, from public facts."""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePGroupsOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from skdp._numbers import Indices, is_integer
from skdp.fitting.grouping import number_labels
from skdp.fitting.refusals import without_row_counts

# What one record meets: kinds of training (their sizes, say), and how many of each.
Membership = Counter[int]

# A record is in one test fold, whichever it is: how the folds are drawn does not matter.
ONE_FOLD = (KFold, StratifiedKFold)
REPEATED = (RepeatedKFold, RepeatedStratifiedKFold)
# These split by row numbers alone.
BY_NUMBER = (LeaveOneOut, LeavePOut, PredefinedSplit, TimeSeriesSplit)
AT_RANDOM = (ShuffleSplit, StratifiedShuffleSplit)
GROUPS_TESTED = 0.2  # share of the groups that GroupShuffleSplit tests by default
# Their splits follow from the labels; only the sizes of the splits do not.
READ_LABELS = (StratifiedKFold, RepeatedStratifiedKFold, StratifiedShuffleSplit)


def memberships_of(splitter: Any, n_samples: int) -> list[Membership]:
    """Return the trainings that a record can take part in, told apart by their sizes.

    Parameters
    ----------
    splitter : splitter of scikit-learn, or list of (train, test) pairs of row numbers
    n_samples : int

    Returns
    -------
    list of Counter
        Number of trainings by number of rows, one for each membership that is not part of another.

    Raises
    ------
    ValueError
        If the splits of this splitter do not follow from the number of rows.
    """
    if isinstance(splitter, Sequence):
        return _counted([train for train, _ in splitter], n_samples)
    if type(splitter) in REPEATED:
        n_splits = splitter.get_n_splits() // splitter.n_repeats
        once = memberships_of(KFold(n_splits), n_samples)
        several = itertools.combinations_with_replacement(once, splitter.n_repeats)
        return _most_expensive(sum(memberships, Membership()) for memberships in several)
    if type(splitter) not in (*ONE_FOLD, *BY_NUMBER, *AT_RANDOM):
        raise ValueError(
            f"privacy_of: the splits of {splitter!r} do not follow from the number of rows. Pass "
            "splits=list(cv.split(X, y, groups)), the pairs that were used; they are taken as "
            "public."
        )
    # Labels that stand in for the true ones: the sizes of the splits do not depend on them.
    labels = np.arange(n_samples) % 2 if type(splitter) in AT_RANDOM else np.zeros(n_samples)
    trains = [train for train, _ in splitter.split(np.zeros((n_samples, 1)), labels)]
    seeded = is_integer(getattr(splitter, "random_state", None))
    if type(splitter) in AT_RANDOM and not (seeded and type(splitter) is ShuffleSplit):
        # Nobody knows any more which rows were drawn: a record may have been in all of them.
        return [Membership(len(train) for train in trains)]
    return _counted(trains, n_samples)


def memberships_of_groups(splitter: Any, n_groups: int, groups: Any = None) -> list[Membership]:
    """Return the trainings that a group can take part in, told apart by their numbers of groups.

    Parameters
    ----------
    splitter : splitter of scikit-learn, or list of (train, test) pairs of row numbers
    n_groups : int
    groups : array of shape (n_rows,) or None
        Labels of the rows, for pairs.

    Raises
    ------
    ValueError
        If the splits do not follow from the number of groups.
    """
    if isinstance(splitter, Sequence):
        trains = trainings_of_groups([train for train, _ in splitter], groups)
        return _counted(trains, n_groups)
    of_rows = _counterpart(splitter)
    if of_rows is not None:
        return memberships_of(of_rows, n_groups)
    raise ValueError(
        f"privacy_of: the fits protect groups of rows, and the splits of {splitter!r} do not "
        "follow from the number of groups: folds of rows may hold a part of a group, and some deal "
        "groups out by the numbers of their rows. Use GroupKFold(..., shuffle=True), or pass "
        "splits, taken as public, and groups, the labels of the rows."
    )


def _counterpart(splitter: Any) -> Any:
    """Return what deals rows out as this deals groups out, whatever their rows; None if unknown."""
    if type(splitter) is GroupKFold and getattr(splitter, "shuffle", False):
        return KFold(splitter.n_splits)
    if type(splitter) is LeaveOneGroupOut:
        return LeaveOneOut()
    if type(splitter) is LeavePGroupsOut:
        return LeavePOut(splitter.n_groups)
    if type(splitter) is GroupShuffleSplit:
        test, train = splitter.test_size, splitter.train_size
        return ShuffleSplit(
            splitter.n_splits,
            test_size=GROUPS_TESTED if test is train is None else test,
            train_size=train,
            random_state=splitter.random_state,
        )
    return None


def trainings_of_groups(trains: Iterable[Any], groups: Any) -> list[Indices]:
    """Return the groups that have a row in each training, by number; labels are not kept."""
    if groups is None:
        raise ValueError(
            "privacy_of: the fits protect groups of rows; pass groups, the labels of the rows, so "
            "that splits of rows tell who took part in which training."
        )
    codes, _ = number_labels("privacy_of", groups)
    with without_row_counts(True):
        return [np.unique(codes[row_numbers(train, len(codes))]) for train in trains]


def memberships_among(
    trains: Sequence[Any], kinds: Sequence[int], n_samples: int
) -> list[Membership]:
    """Return the memberships of all records, the trainings being of the given ``kinds``."""
    distinct = list(dict.fromkeys(kinds))
    times = np.zeros((n_samples, len(distinct)), dtype=np.int64)
    for train, kind in zip(trains, kinds, strict=True):
        times[train, distinct.index(kind)] += 1
    found = np.unique(times, axis=0)
    return _most_expensive(
        Membership({kind: int(n) for kind, n in zip(distinct, row, strict=True) if n})
        for row in found
    )


def _counted(trains: Iterable[Any], n_samples: int) -> list[Membership]:
    numbers = [row_numbers(train, n_samples) for train in trains]
    return memberships_among(numbers, [len(train) for train in numbers], n_samples)


def row_numbers(train: Any, n_samples: int) -> Indices:
    """Return the rows of one training; ValueError if one is out of range or in it twice."""
    numbers = np.asarray(train)
    if numbers.dtype == bool:
        numbers = np.flatnonzero(numbers)
    if numbers.size and not (-n_samples <= numbers.min() and numbers.max() < n_samples):
        raise ValueError(f"privacy_of: the splits name rows beyond n_samples = {n_samples}.")
    numbers = numbers % n_samples
    if len(np.unique(numbers)) < len(numbers):
        raise ValueError(
            "privacy_of: a split names a row twice. Two copies of a record add twice the bound, "
            "which the guarantee of a fit does not cover."
        )
    return numbers


def _most_expensive(memberships: Iterable[Membership]) -> list[Membership]:
    """Leave out memberships that are part of another."""
    kept: list[Membership] = []
    for membership in sorted(memberships, key=lambda membership: membership.total(), reverse=True):
        if not any(membership <= other for other in kept):
            kept.append(membership)
    return kept
