"""Price searches of scikit-learn before their fit, and add up the prices of fitted models."""

from __future__ import annotations

import functools
import itertools
import operator
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn import model_selection as splitters
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import check_cv

from skdp._fitting.estimator import is_private_model
from skdp._fitting.parameters import planned_records
from skdp._fitting.refusals import refusing
from skdp._fitting.surroundings import everything_in, learning_parts
from skdp._fitting.user_warnings import NotPrivateWarning, PrivacyLeakWarning
from skdp._numbers import is_integer
from skdp._warnings import warn
from skdp.accounting import Cost, PrivacyStatement, composed
from skdp.model_selection.candidates import (
    SEEDED,
    is_counted,
    last_step,
    private_steps,
    refuse_unknown_around,
)

WHO = "privacy_of"
# The trainings that a record takes part in: how many there are of each size.
Membership = Counter[int]

SEARCHES = "GridSearchCV RandomizedSearchCV HalvingGridSearchCV HalvingRandomSearchCV"
REPEATED = (splitters.RepeatedKFold, splitters.RepeatedStratifiedKFold)
AT_RANDOM = (splitters.ShuffleSplit, splitters.StratifiedShuffleSplit)
# A record is in one test fold, whichever it is, or is tested by its number.
BY_NUMBER = (
    splitters.KFold,
    splitters.StratifiedKFold,
    splitters.LeaveOneOut,
    splitters.LeavePOut,
    splitters.PredefinedSplit,
    splitters.TimeSeriesSplit,
)

SCORES = (
    "The scores are NOT private and NOT part of this price: every held-out score is computed from "
    "rows without noise (cv_results_, best_score_, test_score). Choices that follow from them are "
    "not private either: the best candidate (best_params_, best_index_), and hence the candidate "
    "that was refitted (best_estimator_). The price covers the noisy answers in all models, of "
    "fitting the search once, as it is now, to data of this shape."
)
LABELS = (
    "The splits were made by looking at the labels ({}): one changed label can move other records "
    "to other folds. That is NOT part of this price. Pass cv=KFold(..., shuffle=True)."
)
SORTED = (
    "The labels of groups have a total order, as numbers and strings do: scikit-learn's splitters "
    "sort labels, and may divide the rows of one group if they have none."
)
DISJOINT = (
    "No row, and no person, is in the rows of two of these fits, and which rows each of them has "
    "is public: the costliest part is charged."
)


def privacy_of(
    search: BaseEstimator,
    *,
    n_samples: int | None = None,
    n_features: int | None = None,
    n_outputs: int | None = None,
    n_groups: int | None = None,
    delta: float | None = None,
) -> PrivacyStatement:
    """Return the price of the fits of a plain search, from public facts and before the fit.

    The price covers all candidates and the refit. A record counts in the fits that contain it (K -
    1 of K in K-fold cross-validation). Scores are not counted, because they are not private:
    ``assumptions`` says so. A search over one candidate with ``refit=False`` has the price of
    `sklearn.model_selection.cross_validate`. After the fit the price is the same, if the search was
    not changed.

    Parameters
    ----------
    search : GridSearchCV, RandomizedSearchCV or halving search
        Around an estimator of skdp, or around a pipeline that ends in one, fitted or not. A random
        search needs an integer as ``random_state``.
    n_samples : int or None, default=None
        Number of rows. None with ``n_groups``.
    n_features : int
        Columns that reach the estimator.
    n_outputs : int or None, default=None
        Classes of a classifier that does not declare them, all of them in every training set, or
        targets of a regressor. None for one target.
    n_groups : int or None, default=None
        Number of groups, if the fits get ``groups``. A record is a group then. Groups must be split
        by ``GroupKFold(shuffle=True)``.
    delta : float or None, default=None
        In [0, 1): the delta at which the total is stated. None for that of the fits.

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
    with refusing(WHO):
        unit = "row" if n_groups is None else "group"
        _require_known_fits(search, n_outputs, unit)
        n_records = planned_records(WHO, n_samples, n_groups, n_features=n_features)
        splitter = check_cv(search.cv, y=[0, 1], classifier=is_classifier(search.estimator))
        memberships = memberships_of(splitter, n_records, unit)
        records = np.arange(n_records)
        n_splits = splitter.get_n_splits(records[:, None], None, records)
        rounds = _rounds(_rehearsed(search, n_records, n_splits, n_outputs), search, n_records)
        cost = functools.partial(_cost, n_features=n_features, n_outputs=n_outputs, unit=unit)

        @functools.cache
        def costs(size: int) -> list[Cost]:
            met: list[Cost] = []
            for candidates, share, n_trained in rounds:
                each = [cost(one, int(share * size)) for one in candidates]
                # Scores choose who enters later rounds: any distinct cost may be met each time.
                met += _distinct(each) * n_trained if met else each
            return met

        # The largest cost of a membership with a refit, of whichever candidate.
        last = [cost(one, n_records) for one in rounds[-1][0]]
        refits = [[one] for one in _distinct(last)] if search.refit else [[]]
        totals = []
        for membership, refit in itertools.product(memberships, refits):
            met = [cost for size in membership.elements() for cost in costs(size)]
            totals.append((composed(WHO, [*met, *refit], delta), membership.total()))
        total, n_trainings = max(totals, key=lambda total: total[0].price()[0])
    assumptions = [
        SCORES,
        f"{sum(n for *_, n in rounds)} candidates are trained on {n_splits} splits each. A record "
        f"takes part in at most {n_trainings} of those trainings.",
        "The refit on all rows is counted as that of the candidate that makes the total largest."
        if search.refit
        else "There was no refit.",
    ]
    name = type(splitter).__name__
    if "Stratified" in name:
        assumptions.append(LABELS.format(name))
        warn(f"{WHO}: {LABELS.format(name)}", PrivacyLeakWarning)
    else:
        assumptions.append(f"The splits are public: {unit} numbers alone decide on them.")
        assumptions += [SORTED] * (unit == "group")
    if hasattr(search, "resource"):
        assumptions.append(
            "Later rounds are counted as of all candidates that scores might have chosen. Every "
            "class is assumed to occur, because the number of rounds depends on that of classes."
        )
    reading = {part for one in rounds[0][0] for part in learning_parts(one)}
    if reading:
        assumptions.append(
            f"Steps before the estimator are fitted on the rows: {', '.join(sorted(reading))}. "
            "That is NOT part of this price, and through them one record moves all rows. It holds "
            "for steps that were fitted on public data."
        )
    if total.noise_source == "seeded":
        warn(f"{WHO}: {SEEDED}", NotPrivateWarning)
        assumptions.append(SEEDED)
    return replace(total, assumptions=(*assumptions, *total.assumptions)).statement()


def total_privacy(
    *models: BaseEstimator | PrivacyStatement, delta: float | None = None, disjoint: bool = False
) -> PrivacyStatement:
    """Return the total cost of several fits, on the same rows or on disjoint rows.

    Parameters
    ----------
    *models : fitted estimators or PrivacyStatement
        Private models and statements, and estimators of scikit-learn that fit each private model
        in them once and keep it: pipelines, unions and column transformers, voting, one model per
        class or target. Every private model inside is counted. A fitted search of scikit-learn
        costs as much as `skdp.privacy_of` says before its fit.
    delta : float or None, default=None
        In [0, 1): the delta at which the total is stated. None for the one that all of the models
        state.
    disjoint : bool, default=False
        Whether each model was fitted on the rows of other people, such as one model per hospital.
        A person is then in one fit at most, and the total is that of the costliest model
        (parallel composition, McSherry 2009, Thm 4). Sizes and membership of the parts have to be
        public. False adds up all models, as for fits on the same rows.

    Returns
    -------
    PrivacyStatement
        Of all the releases. The queries of a later fit may depend on the answers to earlier ones.
        ``assumptions`` name the steps that read rows without privacy: they are not part of the
        total.

    Raises
    ------
    ValueError
        If no model is given, one has no statement, the models state different adjacencies (such
        guarantees do not add up to one), or an estimator is not known to fit each private model
        once and to keep it. `skdp.privacy_of` prices searches, and a `skdp.PrivacyBudget` counts
        every fit.

    Warns
    -----
    NotPrivateWarning
        If steps read rows without privacy, or several of the fits had seeded noise.

    Examples
    --------
    >>> import skdp
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> models = [skdp.DPRidge().fit(X, y) for _ in range(4)]
    >>> round(skdp.total_privacy(*models, delta=1e-6).epsilon, 2)
    2.12

    Two models of different patients:

    >>> models = [skdp.DPRidge().fit(X[half], y[half]) for half in (slice(0, 221), slice(221, 442))]
    >>> round(skdp.total_privacy(*models, delta=1e-6, disjoint=True).epsilon, 2)
    1.0
    """
    if not models:
        raise ValueError("total_privacy needs at least one fitted model.")
    who = "total_privacy"
    costs: list[Cost] = []
    uncovered: dict[str, None] = {}
    n_seeded = 0
    for model in models:
        if hasattr(model, "cv_results_"):
            model = _price_after_fit(model, delta)
        with refusing(who):
            refuse_unknown_around(model)
        statements = _statements_in(model)
        if not statements:
            raise ValueError(
                f"total_privacy: this {type(model).__name__} has no privacy statement. Pass fitted "
                "estimators of skdp, or pipelines and the like that hold some. JSON of a statement "
                "is read by skdp.PrivacyStatement.from_json(text)."
            )
        costs.append(composed(who, map(Cost.of, statements), delta))
        uncovered |= dict.fromkeys(learning_parts(model))
        n_seeded += sum(one.noise_source == "seeded" for one in statements)
    total = composed(who, costs, delta, disjoint)
    assumptions = []
    if uncovered:
        assumptions.append(
            f"Read rows without privacy: {'; '.join(uncovered)}. That is NOT part of this total, "
            "and what a step learnt from one record may move all other rows. The total holds where "
            "such steps were fitted on public data."
        )
    if n_seeded > 1:
        assumptions.append(SEEDED)
    for text in assumptions:
        warn(f"{who}: {text}", NotPrivateWarning)
    if disjoint:
        total = replace(total, n=None)
        assumptions.append(DISJOINT)
    return replace(total, assumptions=(*assumptions, *total.assumptions)).statement()


def _statements_in(model: object) -> list[PrivacyStatement]:
    """Return the statements of the fitted models in an object, each once."""
    stated = (
        part if isinstance(part, PrivacyStatement) else getattr(part, "privacy_", None)
        for part in everything_in(model, is_counted)
    )
    # Several steps share what was charged once.
    return list({id(one): one for one in stated if isinstance(one, PrivacyStatement)}.values())


def _price_after_fit(search: BaseEstimator, delta: float | None) -> PrivacyStatement:
    """Return the cost of a search, by the public shape of the rows that its refit states."""
    best = last_step(getattr(search, "best_estimator_", None))
    if not is_private_model(best):
        raise ValueError(
            f"total_privacy: this {type(search).__name__} has not refitted an estimator of skdp, "
            "so the number of rows is not known. Price it by skdp.privacy_of."
        )
    n_outputs = len(best.classes_) if is_classifier(best) else None
    if n_outputs is None and best.coef_.ndim > 1 and getattr(best, "quantiles", None) is None:
        n_outputs = len(best.coef_)
    shape = {"n_features": best.n_features_in_, "n_outputs": n_outputs}
    n_rows, n_groups = best.privacy_.n_rows, best.privacy_.n_groups
    price = privacy_of(search, n_samples=n_rows, n_groups=n_groups, **shape, delta=delta)
    rehearsed = _rehearsed(search, n_rows or n_groups, search.n_splits_, n_outputs)
    tried, known = (done.cv_results_["params"] for done in (rehearsed, search))
    records = np.zeros(n_rows or n_groups)
    splitter = check_cv(search.cv, [0, 1], classifier=is_classifier(search.estimator))
    chosen = clone(search.estimator).set_params(**clone(search.best_params_, safe=False))
    unit = best.privacy_.unit
    of_best = _cost(last_step(chosen), len(records), best.n_features_in_, n_outputs, unit)
    is_as_planned = (
        search.refit
        and _schedule(search) == _schedule(rehearsed)
        and known[: _schedule(search)[0][0]] == tried[: _schedule(rehearsed)[0][0]]
        and search.n_splits_ == splitter.get_n_splits(records[:, None], None, records)
        and set(best.privacy_.releases) <= set(of_best.releases)
    )
    if not is_as_planned:
        raise ValueError(
            f"total_privacy: this {type(search).__name__} has not made the fits that are expected. "
            "It was changed after its fit, had weights or an offset, or a class did not occur. "
            "Count the fits by a PrivacyBudget."
        )
    return price


# ---------------------------------------------------------------- candidates and rounds


def _distinct(costs: list[Cost]) -> list[Cost]:
    return list({cost.releases: cost for cost in costs}.values())


def _cost(
    estimator: BaseEstimator, n_train: int, n_features: Any, n_outputs: int | None, unit: str
) -> Cost:
    """Return the cost of the private fits of a candidate on so many records.

    If steps change the number of columns, the cost of private steps before the model does not
    change: it is their epsilon for any number.
    """
    rows, groups = (n_train, None) if unit == "row" else (None, n_train)
    costs = []
    for step in private_steps(estimator):
        outputs = (n_outputs,) if is_private_model(step) and n_outputs is not None else ()
        costs.append(Cost.of(step.plan(rows, n_features, *outputs, n_groups=groups)))
    return functools.reduce(operator.add, costs)


def _require_known_fits(search: BaseEstimator, n_outputs: int | None, unit: str) -> None:
    """Raise ValueError unless the fits of a search follow from public facts."""
    kind, model = type(search), last_step(getattr(search, "estimator", None))
    is_known = kind.__name__ in SEARCHES.split() and kind.__module__.startswith("sklearn.")
    if not (is_known and is_private_model(model)):
        over = f" over {type(model).__name__}" * hasattr(search, "estimator")
        raise ValueError(
            "which fits are made is known for GridSearchCV, RandomizedSearchCV and the halving "
            "searches of scikit-learn over an estimator of skdp, or over a Pipeline that ends in "
            f"one, got {kind.__name__}{over}. A PrivacyBudget counts the fits of other tools, "
            "total_privacy adds up fitted models, and plan() prices one fit."
        )
    if is_classifier(model) and n_outputs is None and model.classes is None:
        raise ValueError(
            "n_outputs is not known. Pass n_outputs, the number of classes, or declare "
            f"classes=[...] of {type(model).__name__}."
        )
    if hasattr(search, "param_distributions") and not is_integer(search.random_state):
        raise ValueError(
            "candidates are drawn as the search is fitted. Set its random_state to an integer, so "
            "that they are known before. No noise depends on it."
        )
    if unit == "group" and getattr(search, "resource", None) == "n_samples":
        raise ValueError(
            "this search trains on some of the rows first (resource='n_samples'), so the number of "
            "groups in a training is not known. Use another resource, or GridSearchCV."
        )


def _rehearsed(
    search: BaseEstimator, n_records: int, n_splits: int, n_outputs: int | None
) -> BaseEstimator:
    """Return a search that was fitted without rows.

    Candidates and rounds do not depend on scores, other than which candidates of the first round
    enter the later ones of successive halving.
    """
    estimator, resource = search.estimator, getattr(search, "resource", None)
    kind, rows = type(estimator), np.arange(n_records)
    untrained = type(kind.__name__, (kind,), {"fit": lambda self, X, y: self})
    settings = {
        "estimator": untrained(**estimator.get_params(deep=False)),
        "scoring": lambda *of_nothing: 0.0,
        "cv": [(rows, rows)] * (1 if resource is None else n_splits),
        "refit": False,
        "n_jobs": 1,
        "verbose": 0,
    }
    done = type(search)(**{**search.get_params(deep=False), **settings})
    # A halving search requires a number of rows that depends on the number of classes.
    declared = np.asarray(getattr(last_step(estimator), "classes", None)).size
    n_classes = n_outputs if is_integer(n_outputs) else declared
    return done.fit(rows[:, None], rows % max(n_classes, 1))


def _schedule(done: BaseEstimator) -> list[tuple[int, int | None]]:
    """Return the number of candidates, and the resources of each, by round of a fitted search."""
    counts = getattr(done, "n_candidates_", [len(done.cv_results_["params"])])
    return list(zip(counts, getattr(done, "n_resources_", [None]), strict=True))


def _rounds(
    done: BaseEstimator, search: BaseEstimator, n_records: int
) -> list[tuple[list[BaseEstimator], float, int]]:
    """Return candidates, share of the training rows and number of trained candidates by round."""
    several, schedule = done.cv_results_["params"], _schedule(done)
    resource = getattr(search, "resource", None)
    of_rows = resource in (None, "n_samples")
    rounds = []
    for n_trained, amount in schedule:
        changed = {} if of_rows else {resource: amount}
        candidates = [
            clone(search.estimator).set_params(**clone(entry | changed, safe=False))
            for entry in several[: schedule[0][0]]
        ]
        share = amount / n_records if amount and of_rows else 1.0
        rounds.append((candidates, share, n_trained))
    return rounds


# ---------------------------------------------------------------- splits


def memberships_of(splitter: Any, n_records: int, unit: str = "row") -> list[Membership]:
    """Return the trainings that may contain a record, counted by size.

    Parameters
    ----------
    splitter : splitter of scikit-learn
    n_records : int
    unit : {"row", "group"}, default="row"

    Returns
    -------
    list of Counter
        Number of trainings by number of records.

    Raises
    ------
    ValueError
        If the splits of this splitter do not follow from the number of records.
    """
    if unit == "group":
        if type(splitter) is not splitters.GroupKFold or not splitter.shuffle:
            raise ValueError(
                f"the fits protect groups of rows, and the splits of {splitter!r} do not follow "
                "from the number of groups: folds of rows may contain a part of a group. Use "
                "GroupKFold(..., shuffle=True), or count the fits by a PrivacyBudget."
            )
        splitter = splitters.KFold(splitter.n_splits)
    kind = type(splitter)
    if kind in REPEATED:
        n_splits = splitter.get_n_splits() // splitter.n_repeats
        once = memberships_of(splitters.KFold(n_splits), n_records)
        several = itertools.combinations_with_replacement(once, splitter.n_repeats)
        return [sum(memberships, Membership()) for memberships in several]
    if kind not in (*BY_NUMBER, *AT_RANDOM):
        raise ValueError(
            f"the splits of {splitter!r} do not follow from the number of rows. Folds that are "
            "public can be declared by PredefinedSplit. A PrivacyBudget counts the fits of others."
        )
    # Labels that replace the true ones: the sizes of the splits do not depend on them.
    labels = np.arange(n_records) % 2 if kind in AT_RANDOM else np.zeros(n_records)
    trains = [train for train, _ in splitter.split(labels[:, None], labels)]
    if kind in AT_RANDOM:  # a record may be in all of them
        return [Membership(map(len, trains))]
    sizes = list(dict.fromkeys(map(len, trains)))
    times = np.zeros((n_records, len(sizes)), dtype=np.int64)
    for train in trains:
        times[train, sizes.index(len(train))] += 1
    return [
        Membership({size: int(n) for size, n in zip(sizes, row, strict=True) if n})
        for row in np.unique(times[times.any(axis=1)], axis=0)
    ]
