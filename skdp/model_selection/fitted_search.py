"""Read candidates, rounds and memberships off a search of scikit-learn, fitted or not."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike
from sklearn import model_selection as splitters
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, clone, is_classifier
from sklearn.model_selection import BaseCrossValidator
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags

from skdp._numbers import Indices, is_integer
from skdp.accounting import PrivacyStatement
from skdp.fitting.between_fits import reads_rows
from skdp.fitting.estimator import PrivateEstimator, is_private_model
from skdp.fitting.grouping import number_labels
from skdp.fitting.refusals import without_row_counts
from skdp.model_selection.total import refuse_resampling

# ---------------------------------------------------------------- candidates


@dataclass(frozen=True)
class PrivateFit:
    """A private estimator and the steps of a pipeline before it.

    Attributes
    ----------
    model : PrivateEstimator
    path : str
        Prefix of the names of its parameters in the pipeline.
    before : tuple of (name, step) pairs
    n_features : int, default=0
        Columns that reach the estimator, for plans.
    failed : bool, default=False
        Whether none of its fits in the search has ended well.
    """

    model: PrivateEstimator
    path: str
    before: tuple[tuple[str, BaseEstimator], ...]
    n_features: int = 0
    failed: bool = False

    @classmethod
    def of(cls, estimator: BaseEstimator, *of_a_search: Any) -> PrivateFit:
        """Open pipelines, or raise ValueError if there is no private estimator at the end."""
        path, before = "", []
        while isinstance(estimator, Pipeline):
            refuse_resampling("privacy_of", estimator)
            before += estimator.steps[:-1]
            name, estimator = estimator.steps[-1]
            path += f"{name}__"
        if not is_private_model(estimator):
            raise ValueError(
                f"privacy_of: {type(estimator).__name__} is not an estimator of skdp. What its "
                "fits release is not known; the estimator of skdp must stand alone, or be the last "
                "step of a Pipeline."
            )
        return cls(estimator, path, tuple(before), *of_a_search)

    @property
    def statements_before(self) -> list[PrivacyStatement]:
        """Statements of the fitted private steps before the estimator."""
        statements = (getattr(step, "privacy_", None) for _, step in self.before)
        return [item for item in statements if isinstance(item, PrivacyStatement)]

    @property
    def steps_that_read_rows(self) -> list[str]:
        """Steps before the estimator that are fitted on rows, and are not known to be private."""
        return [
            f"{name} ({type(step).__name__})"
            for name, step in self.before
            if reads_rows(step)
            and not isinstance(getattr(step, "privacy_", None), PrivacyStatement)
            and not _is_private(step)
        ]

    def plan(self, n_records: int, shape: Shape) -> tuple[PrivacyStatement, ...]:
        """Return what fits of the private steps and of the estimator release.

        Private steps keep the number of columns. Where a later step changes it, what they cost
        does not: it is their epsilon for any number. They are charged before the estimator is, so
        they count even where it is refused.
        """
        steps = [step for _, step in self.before if _is_private(step)]
        if self.refusal(n_records, shape) is None:
            steps.append(self.model)
        return tuple(self._plan_of(step, n_records, shape) for step in steps)

    def refusal(self, n_records: int, shape: Shape) -> ValueError | None:
        """Return why every fit of a failed candidate was refused before its charge, if it was.

        A fit may fail after its charge, so a failure alone shows nothing. A plan that is refused
        does: a fit makes the same plan first. As "auto" depends on them, rows of all kinds count.
        """
        refusal = None
        for sparse, weighted in itertools.product((False, True), repeat=2) if self.failed else ():
            try:
                self._plan_of(self.model, n_records, shape, sparse=sparse, weighted=weighted)
            except ValueError as error:
                refusal = refusal or error
            else:
                return None
        return refusal

    def _plan_of(
        self, step: BaseEstimator, n_records: int, shape: Shape, **kind: bool
    ) -> PrivacyStatement:
        rows, groups = (n_records, None) if shape.unit == "row" else (None, n_records)
        takes_outputs = step is self.model and not _declares_classes(step)
        outputs = (shape.n_outputs,) if takes_outputs else ()
        plan: PrivacyStatement = step.plan(rows, self.n_features, *outputs, n_groups=groups, **kind)
        return plan


def _declares_classes(model: PrivateEstimator) -> bool:
    return getattr(model, "classes", None) is not None


def _is_private(step: BaseEstimator) -> bool:
    """Whether a step before the estimator states without rows what its fit costs."""
    return isinstance(step, OneToOneFeatureMixin) and callable(getattr(step, "plan", None))


# ---------------------------------------------------------------- public shapes


@dataclass(frozen=True)
class Shape:
    """Public shape of the data of a search.

    Attributes
    ----------
    n_records : int
        Rows, or groups.
    n_features : tuple of int
        Columns that reach the estimator, for each candidate.
    n_outputs : int or None
        Classes or targets; None where the estimator declares its classes.
    unit : {"row", "group"}
        What a record is.
    """

    n_records: int
    n_features: tuple[int, ...]
    n_outputs: int | None
    unit: str = "row"

    @classmethod
    def of(
        cls,
        search: BaseEstimator,
        n_samples: int | None,
        n_groups: int | None,
        n_features: int | Sequence[int] | None,
        n_outputs: int | None,
    ) -> Shape:
        """Complete the numbers that were passed by those of the refitted model."""
        candidate = PrivateFit.of(search.estimator)
        params = _first_round(search)
        records = columns = outputs = None
        unit = "row" if n_groups is None else "group"
        if hasattr(search, "best_estimator_"):
            refitted = PrivateFit.of(search.best_estimator_).model
            statement, columns = refitted.privacy_, refitted.n_features_in_
            if (unit, statement.unit) == ("group", "row"):
                raise ValueError(
                    "privacy_of: n_groups was passed, but the refitted model protects single rows: "
                    "its fit got no groups. (Metadata reaches the fits of a search where routing "
                    "is enabled and the estimator requests it: set_fit_request(groups=True).)"
                )
            unit = statement.unit
            records = statement.n_rows if unit == "row" else statement.n_groups
            shown = refitted.classes_ if is_classifier(refitted) else np.atleast_2d(refitted.coef_)
            outputs = len(shown)
        varied = _varies_before(params, candidate.path)
        if n_features is None and varied:
            raise ValueError(
                "privacy_of: the candidates differ in steps before the estimator, so it is not "
                "known how many columns reach it. Pass n_features, one number for each of the "
                f"{len(params)} candidates (or one for all)."
            )
        if n_features is None or (np.ndim(n_features) == 0 and not varied):
            # mypy: it cannot infer from np.ndim that this is no sequence.
            n_features = known("n_features", n_features, columns)  # type: ignore[arg-type]
        declared = _declares_classes(candidate.model)
        number = n_samples if unit == "row" else n_groups
        return cls(
            n_records=known("n_samples" if unit == "row" else "n_groups", number, records),
            n_features=tuple(np.broadcast_to(n_features, len(params)).tolist()),
            n_outputs=None if declared else known("n_outputs", n_outputs, outputs),
            unit=unit,
        )


def _first_round(search: BaseEstimator) -> list[dict[str, object]]:
    """Parameters of the candidates of the first round."""
    params = list(search.cv_results_["params"])
    return params[: list(search.cv_results_.get("iter", [0] * len(params))).count(0)]


def known(name: str, given: int | None, refitted: int | None = None) -> int:
    """Return a number that was passed or that the refitted model has; ValueError without one."""
    if given is not None and refitted is not None and given != refitted:
        raise ValueError(
            f"privacy_of: {name}={given} was passed, but the refitted model says {refitted}."
        )
    known = refitted if given is None else given
    if known is None:
        raise ValueError(
            f"privacy_of: {name} is not known, as the search holds no refitted model (it is not "
            f"fitted yet, or refit=False). Pass {name}=... ."
        )
    return known


def _varies_before(candidates: list[dict[str, object]], path: str) -> bool:
    """Whether candidates differ in what comes before the estimator."""
    own = path.removesuffix("__")
    before = [
        {name: str(params[name]) for name in params if not (name.startswith(path) or name == own)}
        for params in candidates
    ]
    return any(params != before[0] for params in before)


# ---------------------------------------------------------------- rounds


@dataclass(frozen=True)
class Round:
    """Candidates that were trained on the same splits, with the same resources.

    Attributes
    ----------
    candidates : tuple of PrivateFit
    share : float, default=1.0
        Share of each training set that was used.
    n_chosen : int or None, default=None
        Number of them that were trained, being chosen by scores; None for all of them.
    """

    candidates: tuple[PrivateFit, ...]
    share: float = 1.0
    n_chosen: int | None = None

    def plans(self, n_train: int, shape: Shape) -> list[tuple[PrivacyStatement, ...]]:
        """Return what training on ``n_train`` records releases, for each candidate.

        Which ones scores have chosen must not change the price, and the plan that is most expensive
        alone need not be so beside others. So each distinct plan is counted as often as any was
        chosen.
        """
        plans = [candidate.plan(self.n_records(n_train), shape) for candidate in self.candidates]
        if self.n_chosen is None:
            return plans
        distinct = {tuple(plan.releases for plan in parts): parts for parts in plans}
        return [*distinct.values()] * self.n_chosen

    def n_records(self, n_train: int) -> int:
        """Return how many records of a training set were used."""
        return int(self.share * n_train)


def rounds_of(search: BaseEstimator, shape: Shape) -> list[Round]:
    """Return the rounds of a search, the refit last.

    A search has one round, successive halving several: who goes on to a later one is chosen by
    scores, from all candidates of the first.
    """
    results = search.cv_results_
    n_entries, resource = len(results["params"]), getattr(search, "resource", None)
    iterations = list(results.get("iter", [0] * n_entries))
    amounts = dict(zip(iterations, results.get("n_resources", [None] * n_entries), strict=True))
    rounds = []
    for iteration, amount in sorted(amounts.items()):
        changed = {} if resource in (None, "n_samples") else {resource: amount}
        candidates = [
            PrivateFit.of(
                clone(search.estimator).set_params(**clone({**entry, **changed}, safe=False)),
                n_features,
                time == 0,  # what was never scored was never fitted
            )
            for entry, n_features, time in zip(
                _first_round(search), shape.n_features, results["mean_score_time"], strict=False
            )
        ]
        share = amount / shape.n_records if resource == "n_samples" else 1.0
        n_chosen = None if iteration == 0 else iterations.count(iteration)
        rounds.append(Round(tuple(candidates), share, n_chosen))
    if is_refitted(search):
        rounds.append(Round(rounds[-1].candidates, n_chosen=1))
    return rounds


def is_refitted(search: BaseEstimator) -> bool:
    """Whether the fits of a search, or of its rehearsal, end with one on all rows."""
    return hasattr(search, "refit_time_")


class _Untrained(BaseEstimator):
    """Takes the place of an estimator: it accepts the same parameters, and learns nothing."""

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


def rehearsed(
    search: BaseEstimator, n_records: int, n_classes: int | None, n_splits: int
) -> BaseEstimator:
    """Return a search that went through all rounds without rows, as if it was fitted.

    Neither candidates nor rounds depend on scores, but for who goes on to the next one.
    """
    kind, model = type(search), PrivateFit.of(search.estimator).model
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
    is_halving = hasattr(search, "resource")
    rows = np.arange(n_records)
    labels = np.zeros(n_records, dtype=np.intp)
    if is_halving and is_classifier(model):  # the least number of rows depends on their number
        declared = len(model.classes) if _declares_classes(model) else None
        labels = rows % known("n_outputs", n_classes, declared)
    settings = {
        "estimator": _Untrained(search.estimator),
        "scoring": lambda *of_nothing: 0.0,
        "cv": [(rows, rows)] * n_splits if is_halving else [([0], [0])],
        "refit": bool(search.refit),
        "n_jobs": 1,
        "verbose": 0,
    }
    rehearsal = kind(**{**search.get_params(deep=False), **settings})
    rehearsal.fit(np.zeros((n_records, 1)), labels)
    rehearsal.cv_results_["mean_score_time"] *= 0  # no candidate is known to have been fitted
    vars(rehearsal).pop("best_estimator_", None)
    rehearsal.n_splits_ = n_splits
    return rehearsal.set_params(estimator=search.estimator, cv=search.cv)


def require_as_fitted(search: BaseEstimator) -> tuple[str, ...]:
    """Raise ValueError if a search shows that its estimator was changed after the fit.

    A search keeps its estimator by reference, so that a change of it would change the price. What
    the refit used is held against it.

    Returns
    -------
    tuple of str
        What could not be checked, and is assumed.
    """
    assumed = "Since the search was fitted, its estimator and its cv have not been changed"
    if not hasattr(search, "best_estimator_"):
        return (f"{assumed}: without a refitted model (refit=False) nothing shows it.",)
    candidates = list(search.cv_results_["params"])
    best = candidates[search.best_index_]
    expected = clone(search.estimator).set_params(**clone(best, safe=False)).get_params()
    refitted = search.best_estimator_.get_params()
    resource = getattr(search, "resource", None)  # a halving search sets it anew in each round
    changed = sorted(
        name
        for name in expected.keys() | refitted.keys()
        if name != resource and not _alike(expected.get(name), refitted.get(name))
    )
    if changed:
        raise ValueError(
            f"privacy_of: the estimator of this {type(search).__name__} was changed after the fit: "
            f"the refitted model has other values of {', '.join(changed)}. Restore them, so that "
            "the candidates are priced as they were fitted."
        )
    unseen = {name for entry in candidates for name in best if name not in entry}
    if unseen:
        return (f"{assumed}, nor their value(s) of {', '.join(sorted(unseen))}.",)
    return ()


def _alike(one: object, other: object) -> bool:
    """Whether two values of a parameter are the same; of estimators only the classes count."""
    if isinstance(one, BaseEstimator):
        return type(one) is type(other)  # their parameters are compared by name
    if one is other:
        return True
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if callable(one) or callable(other):
        return one is other
    return bool(joblib.hash(one) == joblib.hash(other))


# ---------------------------------------------------------------- memberships

# The trainings that a record takes part in: how many there are of each kind (of each size, say).
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
SPLITTERS_BY_LABELS = (
    splitters.StratifiedKFold,
    splitters.RepeatedStratifiedKFold,
    splitters.StratifiedShuffleSplit,
)


def memberships_of(splitter: BaseCrossValidator | Splits, n_samples: int) -> list[Membership]:
    """Return the trainings that a record can take part in, counted by size.

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
        once = memberships_of(splitters.KFold(n_splits), n_samples)
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
    if type(splitter) in AT_RANDOM and not (seeded and type(splitter) is splitters.ShuffleSplit):
        # Nobody knows any more which rows were drawn: a record may have been in all of them.
        return [Membership(len(train) for train in trains)]
    return _counted(trains, n_samples)


def memberships_of_groups(
    splitter: BaseCrossValidator | Splits, n_groups: int, groups: ArrayLike | None = None
) -> list[Membership]:
    """Return the trainings that a group can take part in, counted by number of groups.

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


def _counterpart(splitter: BaseCrossValidator) -> BaseCrossValidator | None:
    """Return what deals rows out as this deals groups out, whatever their rows; None if unknown."""
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
    return None


def trainings_of_groups(trains: Iterable[ArrayLike], groups: ArrayLike | None) -> list[Indices]:
    """Return the groups that have a row in each training, by number; labels are not kept."""
    if groups is None:
        raise ValueError(
            "privacy_of: the fits protect groups of rows; pass groups, the labels of the rows, so "
            "that splits of rows show who took part in which training."
        )
    codes, _ = number_labels("privacy_of", groups)
    with without_row_counts(True):
        return [np.unique(codes[row_numbers(train, len(codes))]) for train in trains]


def memberships_among(
    trains: Sequence[Indices], kinds: Sequence[int], n_samples: int
) -> list[Membership]:
    """Return the memberships of all records, the trainings being of the given ``kinds``."""
    distinct = list(dict.fromkeys(kinds))
    times = np.zeros((n_samples, len(distinct)), dtype=np.int64)
    for train, kind in zip(trains, kinds, strict=True):
        times[train, distinct.index(kind)] += 1
    distinct_rows = np.unique(times, axis=0)
    return _most_expensive(
        Membership({kind: int(n) for kind, n in zip(distinct, row, strict=True) if n})
        for row in distinct_rows
    )


def _counted(trains: Iterable[ArrayLike], n_samples: int) -> list[Membership]:
    numbers = [row_numbers(train, n_samples) for train in trains]
    return memberships_among(numbers, [len(train) for train in numbers], n_samples)


def row_numbers(train: ArrayLike, n_samples: int) -> Indices:
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


def _most_expensive(memberships: Iterable[Membership]) -> list[Membership]:
    """Leave out memberships that are part of another."""
    kept: list[Membership] = []
    for membership in sorted(memberships, key=lambda membership: membership.total(), reverse=True):
        if not any(membership <= other for other in kept):
            kept.append(membership)
    return kept
