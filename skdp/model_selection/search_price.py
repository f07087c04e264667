"""Price a plain search of scikit-learn around a private estimator, from public facts."""

from __future__ import annotations

import functools
import itertools
import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn import model_selection as splitters
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, clone, is_classifier
from sklearn.model_selection import BaseCrossValidator, GridSearchCV, RandomizedSearchCV, check_cv
from sklearn.utils import Tags, get_tags

from skdp._numbers import Indices, is_integer
from skdp._warnings import warn
from skdp.accounting import Cost, PrivacyStatement, composed
from skdp.fitting.between_fits import reads_rows
from skdp.fitting.estimator import is_private_model
from skdp.fitting.parameters import planned_records
from skdp.fitting.user_warnings import NotPrivateWarning, PrivacyLeakWarning
from skdp.model_selection.candidates import last_step, steps_of
from skdp.model_selection.total import SEEDED, refuse_resampling

# The trainings that a record takes part in: how many there are of each size.
Membership = Counter[int]
Splits = Sequence[tuple[ArrayLike, ArrayLike]]

# A record is in one test fold, whichever it is: how the folds are drawn does not matter.
ONE_FOLD = (splitters.KFold, splitters.StratifiedKFold)
REPEATED = (splitters.RepeatedKFold, splitters.RepeatedStratifiedKFold)
# These split only by row numbers.
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


SCORES = (
    "The scores are NOT private and NOT part of this price: every held-out score is computed from "
    "rows without noise (cv_results_, best_score_, test_score). Nor is anything private that was "
    "chosen by them: which candidate is the best (best_params_, best_index_), and hence which one "
    "was refitted (best_estimator_). The price is that of the noisy answers in all of the models, "
    "for choices made without looking at these rows."
)
LABELS = (
    "The splits were made by looking at the labels ({}): one changed label can move other records "
    "to other folds. That is NOT part of this price, which holds for splits that are given. Pass "
    "cv=KFold(..., shuffle=True) for splits that do not look."
)
SORTED = (
    "The labels of groups have a total order, as numbers and strings do: scikit-learn's splitters "
    "sort labels, and may divide the rows of one group if they have none."
)
AS_IT_IS = (
    "This is the price of fitting the search once, as it is now, to so many records and columns."
)
REFITTED = (
    "The refit on all rows is counted as that of the candidate that makes the total largest, since "
    "scores chose it."
)


def privacy_of(
    search: BaseEstimator,
    *,
    n_samples: int | None = None,
    n_features: int | Sequence[int] | None = None,
    n_outputs: int | None = None,
    n_groups: int | None = None,
    splits: Iterable[tuple[ArrayLike, ArrayLike]] | None = None,
    delta: float | None = None,
) -> PrivacyStatement:
    """Return what fitting a plain search costs, from public facts and before the fit.

    All candidates are counted, each record in the trainings that it takes part in (K - 1 of K in
    K-fold cross-validation), and the refit. Scores are not counted, because they are not private:
    ``assumptions`` says so. A search over one candidate with ``refit=False`` has the price of
    `sklearn.model_selection.cross_validate`. After the fit the price is the same, if the search
    was not changed.

    Parameters
    ----------
    search : GridSearchCV, RandomizedSearchCV or halving search
        Around an estimator of skdp, or around a pipeline that ends in one; fitted or not. A
        random search needs an integer as ``random_state``.
    n_samples : int or None, default=None
        Number of rows; None with ``n_groups``.
    n_features : int or array of shape (n_candidates,)
        Columns that reach the estimator.
    n_outputs : int or None, default=None
        Classes of a classifier that does not declare them, all of them in every training set, or
        targets of a regressor; None for one target.
    n_groups : int or None, default=None
        Number of groups, if the fits get ``groups``; a record is a group then. Groups must be
        split by ``GroupKFold(shuffle=True)``, `GroupShuffleSplit` or a splitter that leaves groups
        out.
    splits : iterable of (train, test) pairs or None, default=None
        The splits, if they do not follow from ``search.cv`` and the number of rows. They are
        assumed to be public.
    delta : float or None, default=None
        In [0, 1): the delta at which the total is stated; None for that of the fits.

    Returns
    -------
    PrivacyStatement
        Its releases are those that read one record, the one in most trainings.

    Raises
    ------
    ValueError
        If the fits of the search are not known before it is fitted, a candidate is refused, or
        candidates have different adjacencies: their guarantees cannot be compared, nor added up.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> import skdp
    >>> search = GridSearchCV(skdp.DPRidge(epsilon=0.5), {"alpha": [0.1, 1.0, 10.0]})
    >>> round(skdp.privacy_of(search, n_samples=442, n_features=10).epsilon, 2)
    2.0
    """
    # The halving searches are experimental in scikit-learn, hence known by what they have.
    is_halving = hasattr(search, "resource") and hasattr(search, "factor")
    if not (isinstance(search, GridSearchCV | RandomizedSearchCV) or is_halving):
        raise ValueError(
            "privacy_of needs a GridSearchCV, RandomizedSearchCV or halving search; got "
            f"{type(search).__name__}. For fitted models there is total_privacy, and plan() for "
            "models that are not fitted."
        )
    n_records = planned_records("privacy_of", n_samples, n_groups)
    shape = Shape(n_records, n_features, n_outputs, "row" if n_groups is None else "group")
    splitter = _splitter(search) if splits is None else list(splits)
    n_splits = _n_splits(splitter, n_records)
    done = _rehearsed(search, shape, n_splits)
    if shape.unit == "group" and getattr(search, "resource", None) == "n_samples":
        raise ValueError(
            "privacy_of: this search trains on some of the rows first (resource='n_samples'), so "
            "the number of groups in a training is not known. Use another resource, or "
            "GridSearchCV."
        )
    memberships = memberships_of(splitter, shape.n_records, shape.unit)
    rounds, is_refitted = _rounds(done, shape), hasattr(done, "refit_time_")
    total, n_trainings = _most_expensive(memberships, rounds, shape, is_refitted, delta)
    assumptions = [
        SCORES,
        f"{sum(one.n_trained for one in rounds)} candidates are trained on {n_splits} splits each; "
        f"a record takes part in at most {n_trainings} of those trainings.",
        REFITTED if is_refitted else "There was no refit.",
        AS_IT_IS,
        *_assumed_of_splits(splitter, shape.unit),
    ]
    if len(rounds) > 1:
        assumptions.append(
            "Later rounds are counted as of all candidates that scores might have chosen."
        )
    reading = {
        name for estimator, _ in rounds[0].candidates for name in _steps_that_read_rows(estimator)
    }
    if reading:
        assumptions.append(
            f"Steps before the estimator are fitted on the rows: {', '.join(sorted(reading))}. "
            "That is NOT part of this price, and through them one record moves all rows; it holds "
            "for steps that were fitted on public data."
        )
    if total.noise_source == "seeded":
        warn(f"privacy_of: {SEEDED}", NotPrivateWarning)
        assumptions.append(SEEDED)
    return replace(total, assumptions=(*assumptions, *total.assumptions)).statement()


def _most_expensive(
    memberships: list[Membership],
    rounds: list[Round],
    shape: Shape,
    is_refitted: bool,
    delta: float | None,
) -> tuple[Cost, int]:
    """Return the largest cost of a membership with a refit, and its number of trainings.

    Any candidate of the last round may be the one that is refitted.
    """
    sizes = {size for membership in memberships for size in membership}
    trainings = {
        size: [cost for one in rounds for cost in one.trainings(size, shape)] for size in sizes
    }
    last = replace(rounds[-1], share=1.0, n_chosen=1)
    refits = [[refit] for refit in last.trainings(shape.n_records, shape)] if is_refitted else [[]]
    totals = []
    for membership, refit in itertools.product(memberships, refits):
        met = [cost for size in membership.elements() for cost in trainings[size]]
        total = composed("privacy_of", [*met, *refit], delta)
        totals.append((total, membership.total()))
    return max(totals, key=lambda total: total[0].price()[0])


# ---------------------------------------------------------------- candidates and rounds


@dataclass(frozen=True)
class Shape:
    """Public shape of the data of a search.

    Attributes
    ----------
    n_records : int
        Rows, or groups.
    n_features : int or sequence of int
        Columns that reach the estimator; a sequence has a number for each candidate.
    n_outputs : int or None
        Classes or targets; None for declared classes, or for one target.
    unit : {"row", "group"}
        What a record is.
    """

    n_records: int
    n_features: int | Sequence[int] | None
    n_outputs: int | None
    unit: str


def _private_model(estimator: BaseEstimator) -> Any:
    """Return the model at the end of an estimator; ValueError if it is not private."""
    refuse_resampling("privacy_of", estimator)
    model = last_step(estimator)
    if not is_private_model(model):
        raise ValueError(
            f"privacy_of: {type(model).__name__} is not an estimator of skdp, so what its fits "
            "release is not known. Search over an estimator of skdp, or over a Pipeline that ends "
            "in one."
        )
    return model


# An estimator, and how many columns reach its private fits.
Candidate: TypeAlias = tuple[BaseEstimator, int]


def _steps_that_read_rows(estimator: BaseEstimator) -> list[str]:
    """Return the steps before the model that are fitted on rows, and are not priced."""
    return [
        f"{name} ({type(step).__name__})"
        for name, step in steps_of(estimator)[:-1]
        if reads_rows(step) and not _is_priced(step)
    ]


def _cost(candidate: Candidate, n_records: int, shape: Shape) -> Cost:
    """Return the cost of the private fits of a candidate on so many records.

    Private steps before the model keep the number of columns. If a later step changes it, their
    cost does not change: it is their epsilon for any number.
    """
    estimator, n_features = candidate
    rows, groups = (n_records, None) if shape.unit == "row" else (None, n_records)
    costs = []
    for _, step in steps_of(estimator):
        if _is_priced(step):
            takes_outputs = is_private_model(step) and shape.n_outputs is not None
            outputs = (shape.n_outputs,) if takes_outputs else ()
            costs.append(Cost.of(step.plan(rows, n_features, *outputs, n_groups=groups)))
    return functools.reduce(operator.add, costs)


def _is_priced(step: BaseEstimator) -> bool:
    """Whether a step states without rows what its fit costs."""
    keeps_columns = isinstance(step, OneToOneFeatureMixin) and hasattr(step, "plan")
    return keeps_columns or is_private_model(step)


@dataclass(frozen=True)
class Round:
    """Candidates that were trained on the same splits, with the same resources.

    Attributes
    ----------
    candidates : tuple of Candidate
    share : float, default=1.0
        Share of each training set that was used.
    n_chosen : int or None, default=None
        Number of them that were trained, being chosen by scores; None for all of them.
    """

    candidates: tuple[Candidate, ...]
    share: float = 1.0
    n_chosen: int | None = None

    @property
    def n_trained(self) -> int:
        """Number of candidates that were trained."""
        return self.n_chosen or len(self.candidates)

    def trainings(self, n_train: int, shape: Shape) -> list[Cost]:
        """Return the costs of training on ``n_train`` records.

        Which candidates were chosen by scores must not change the price, and the one that is most
        expensive alone need not be so beside others. So each distinct cost is counted as often as
        any was chosen.
        """
        costs = [_cost(one, int(self.share * n_train), shape) for one in self.candidates]
        if self.n_chosen is None:
            return costs
        return [*{cost.releases: cost for cost in costs}.values()] * self.n_chosen


def _rounds(done: BaseEstimator, shape: Shape) -> list[Round]:
    """Return the rounds of a search that was fitted or rehearsed.

    A search has one round, successive halving several: scores choose which candidates of the
    first round go on to a later one.
    """
    results, resource = done.cv_results_, getattr(done, "resource", None)
    iterations = list(results.get("iter", [0] * len(results["params"])))
    amounts = results.get("n_resources", [None] * len(iterations))
    first = results["params"][: iterations.count(0)]
    n_features = np.broadcast_to(np.asarray(shape.n_features), len(first)).tolist()
    rounds = []
    for iteration, amount in sorted(dict(zip(iterations, amounts, strict=True)).items()):
        changed = {} if resource in (None, "n_samples") else {resource: amount}
        candidates = tuple(
            (clone(done.estimator).set_params(**clone(entry | changed, safe=False)), n)
            for entry, n in zip(first, n_features, strict=True)
        )
        share = amount / shape.n_records if resource == "n_samples" else 1.0
        rounds.append(Round(candidates, share, iterations.count(iteration) if iteration else None))
    return rounds


class _Untrained(BaseEstimator):
    """Replaces an estimator: it accepts the same parameters, and learns nothing."""

    def __init__(self, estimator: BaseEstimator) -> None:
        self.estimator = estimator

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"estimator": self.estimator} | (self.estimator.get_params() if deep else {})

    def set_params(self, **params: object) -> BaseEstimator:
        return self

    def fit(self, X: object, y: object) -> BaseEstimator:
        return self

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self.estimator)


def _rehearsed(search: BaseEstimator, shape: Shape, n_splits: int) -> BaseEstimator:
    """Return a search that went through all rounds without rows, as if it was fitted.

    Neither candidates nor rounds depend on scores, but for those that go on to the next round.
    """
    kind, model = type(search), _private_model(search.estimator)
    if kind.__module__.partition(".")[0] != "sklearn":
        raise ValueError(
            f"privacy_of: which fits a {kind.__name__} makes is not known before it is fitted. "
            "Count them by a PrivacyBudget, or use a search of scikit-learn."
        )
    if hasattr(search, "param_distributions") and not is_integer(search.random_state):
        raise ValueError(
            f"privacy_of: this {kind.__name__} draws its candidates as it is fitted. Set its "
            "random_state to an integer, so that they are known before; no noise depends on it."
        )
    is_halving, rows = hasattr(search, "resource"), np.arange(shape.n_records)
    # A halving search requires a number of rows that depends on the number of classes.
    n_classes = shape.n_outputs or len(getattr(model, "classes", None) or ())
    if is_classifier(model) and not n_classes:
        raise ValueError(
            "privacy_of: n_outputs is not known. Pass n_outputs, the number of classes, or "
            f"declare classes=[...] of {type(model).__name__}."
        )
    settings = {
        "estimator": _Untrained(search.estimator),
        "scoring": lambda *of_nothing: 0.0,
        "cv": [(rows, rows)] * n_splits if is_halving else [([0], [0])],
        "refit": bool(search.refit),
        "n_jobs": 1,
        "verbose": 0,
    }
    rehearsal = kind(**{**search.get_params(deep=False), **settings})
    rehearsal.fit(np.zeros((shape.n_records, 1)), rows % max(n_classes, 1))
    rehearsal.n_splits_ = n_splits
    return rehearsal.set_params(estimator=search.estimator)


# ---------------------------------------------------------------- splits


def _splitter(search: BaseEstimator) -> BaseCrossValidator | Splits:
    """Return the splitter of a search, or the list of its splits."""
    if isinstance(search.cv, Iterable) and not hasattr(search.cv, "split"):
        if not isinstance(search.cv, Sequence):
            raise ValueError(
                "privacy_of: cv of the search is an iterator, whose splits can be read once, by "
                "fit; pass splits=..., a list of them."
            )
        return list(search.cv)
    return check_cv(search.cv, y=[0, 1], classifier=is_classifier(search.estimator))


def _n_splits(splitter: BaseCrossValidator | Splits, n_records: int) -> int:
    if isinstance(splitter, Sequence):
        return len(splitter)
    return int(splitter.get_n_splits(np.zeros((n_records, 1)), None, np.arange(n_records)))


def _assumed_of_splits(splitter: BaseCrossValidator | Splits, unit: str) -> list[str]:
    """Return the assumptions on how the splits were made."""
    if type(splitter) in BY_LABELS:
        labels = LABELS.format(type(splitter).__name__)
        warn(f"privacy_of: {labels}", PrivacyLeakWarning)
        return [labels]
    public = f"The splits are public: {unit} numbers alone decide on them."
    return [public, SORTED] if unit == "group" else [public]
