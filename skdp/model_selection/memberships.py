"""Count the trainings of a search that a record can take part in, from public facts."""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn import model_selection as splitters
from sklearn.model_selection import BaseCrossValidator

from skdp._numbers import Indices, is_integer

# The trainings that a record takes part in: how many there are of each size.
Membership = Counter[int]
Splits = Sequence[tuple[ArrayLike, ArrayLike]]

# A record is in one test fold, whichever it is: how the folds are drawn does not matter.
ONE_FOLD = (splitters.KFold, splitters.StratifiedKFold)
REPEATED = (splitters.RepeatedKFold, splitters.RepeatedStratifiedKFold)
# These split by row numbers alone.
BY_NUMBER = (
    splitters.LeaveOneOut,
    splitters.LeavePOut,
    splitters.PredefinedSplit,
    splitters.TimeSeriesSplit,
)
AT_RANDOM = (splitters.ShuffleSplit, splitters.StratifiedShuffleSplit)
GROUPS_TESTED = 0.2  # share of the groups that GroupShuffleSplit tests by default
# Their splits follow from the labels; only the sizes of the splits do not.
BY_LABELS = (
    splitters.StratifiedKFold,
    splitters.RepeatedStratifiedKFold,
    splitters.StratifiedShuffleSplit,
)


def memberships_of(
    splitter: BaseCrossValidator | Splits, n_records: int, unit: str = "row"
) -> list[Membership]:
    """Return the trainings that a record can take part in, counted by size.

    Parameters
    ----------
    splitter : splitter of scikit-learn, or list of (train, test) pairs of row numbers
    n_records : int
    unit : {"row", "group"}, default="row"

    Returns
    -------
    list of Counter
        Number of trainings by number of records, one for each membership that is not part of
        another.

    Raises
    ------
    ValueError
        If the splits of this splitter do not follow from the number of records.
    """
    if unit == "group":
        splitter = _of_rows(splitter)
    if isinstance(splitter, Sequence):
        return _counted([train for train, _ in splitter], n_records)
    if type(splitter) in REPEATED:
        n_splits = splitter.get_n_splits() // splitter.n_repeats
        once = memberships_of(splitters.KFold(n_splits), n_records)
        several = itertools.combinations_with_replacement(once, splitter.n_repeats)
        return _largest(sum(memberships, Membership()) for memberships in several)
    if type(splitter) not in (*ONE_FOLD, *BY_NUMBER, *AT_RANDOM):
        raise ValueError(
            f"privacy_of: the splits of {splitter!r} do not follow from the number of rows. Pass "
            "splits=list(cv.split(X, y, groups)), the pairs that were used; they are assumed to be "
            "public."
        )
    # Labels that replace the true ones: the sizes of the splits do not depend on them.
    labels = np.arange(n_records) % 2 if type(splitter) in AT_RANDOM else np.zeros(n_records)
    trains = [train for train, _ in splitter.split(np.zeros((n_records, 1)), labels)]
    seeded = is_integer(getattr(splitter, "random_state", None))
    if type(splitter) in AT_RANDOM and not (seeded and type(splitter) is splitters.ShuffleSplit):
        # Nobody knows any more which rows were drawn: a record may have been in all of them.
        return [Membership(len(train) for train in trains)]
    return _counted(trains, n_records)


def _of_rows(splitter: Any) -> BaseCrossValidator:
    """Return the splitter that divides rows as this one divides groups, whatever their rows."""
    if type(splitter) is splitters.GroupKFold and getattr(splitter, "shuffle", False):
        return splitters.KFold(splitter.n_splits)
    if type(splitter) is splitters.LeaveOneGroupOut:
        return splitters.LeaveOneOut()
    if type(splitter) is splitters.LeavePGroupsOut:
        return splitters.LeavePOut(splitter.n_groups)
    if type(splitter) is splitters.GroupShuffleSplit:
        test, train = splitter.test_size, splitter.train_size
        return splitters.ShuffleSplit(
            splitter.n_splits,
            test_size=GROUPS_TESTED if test is train is None else test,
            train_size=train,
            random_state=splitter.random_state,
        )
    named = "given by row numbers" if isinstance(splitter, Sequence) else f"of {splitter!r}"
    raise ValueError(
        f"privacy_of: the fits protect groups of rows, and the splits {named} do not follow from "
        "the number of groups: folds of rows may contain a part of a group. Use "
        "GroupKFold(..., shuffle=True), or count the fits by a PrivacyBudget."
    )


def _counted(trains: Iterable[ArrayLike], n_records: int) -> list[Membership]:
    numbers = [_row_numbers(train, n_records) for train in trains]
    sizes = list(dict.fromkeys(map(len, numbers)))
    times = np.zeros((n_records, len(sizes)), dtype=np.int64)
    for train in numbers:
        times[train, sizes.index(len(train))] += 1
    return _largest(
        Membership({size: int(n) for size, n in zip(sizes, row, strict=True) if n})
        for row in np.unique(times, axis=0)
    )


def _row_numbers(train: ArrayLike, n_samples: int) -> Indices:
    """Return the row numbers of a training; raise ValueError for repeated or invalid numbers."""
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


def _largest(memberships: Iterable[Membership]) -> list[Membership]:
    """Leave out memberships that are part of another."""
    kept: list[Membership] = []
    for membership in sorted(memberships, key=Membership.total, reverse=True):
        if not any(membership <= other for other in kept):
            kept.append(membership)
    return kept
