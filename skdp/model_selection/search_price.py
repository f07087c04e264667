"""Price a plain search of scikit-learn around a private estimator, from public facts."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import BaseCrossValidator, GridSearchCV, RandomizedSearchCV, check_cv

from skdp._warnings import warn
from skdp.accounting import PrivacyStatement, ReleaseRecord, compose_statements
from skdp.fitting.parameters import check_counts
from skdp.fitting.user_warnings import NotPrivateWarning, PrivacyLeakWarning, PrivacyWarning
from skdp.model_selection import fitted_search
from skdp.model_selection.fitted_search import Membership, PrivateFit, Round, Shape, Splits

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
TAKEN = (
    "The splits are taken as public, made without looking at rows or labels. (StratifiedKFold, the "
    "default for classifiers, looks at the labels.)"
)
SORTED = (
    "The labels of groups have a total order, as numbers and strings do: scikit-learn's splitters "
    "sort labels, and may take rows of one group apart where they have none."
)
NOT_FITTED = (
    "The search has not been fitted: this is the price of fitting it once, as it is now, to so "
    "many records and columns."
)
FAILED = (
    "{} of {} candidates fail in every training: the plan of the estimator is refused before its "
    "charge, so it costs nothing. The first refusal: {} Private steps before it count, and so do "
    "fits that fail for other reasons."
)
PROMISES = "such guarantees neither compare nor add up, so fit all candidates under one of them"
SEEDED = (
    "The fits had seeded noise: those with the same seed have the same noise, which "
    "the difference of two models takes off again. This price does NOT hold for them; it is that "
    "of the same search with noise='system'."
)

T = TypeVar("T", str, float)


def privacy_of(
    search: BaseEstimator | Mapping[str, Any],
    *,
    delta: float | None = None,
    n_samples: int | None = None,
    n_features: int | Sequence[int] | None = None,
    n_outputs: int | None = None,
    splits: Iterable[tuple[ArrayLike, ArrayLike]] | None = None,
    n_groups: int | None = None,
    groups: ArrayLike | None = None,
) -> PrivacyStatement:
    """Return what the fits of a plain search or cross-validation cost together.

    All candidates are counted, each record in the trainings that it takes part in (K - 1 of K in
    K-fold cross-validation), and the refit. Scores are not counted, because they are not private:
    ``assumptions`` says so. The price is computed without rows, from what is public, so that a
    search can be priced before it is fitted.

    Parameters
    ----------
    search : GridSearchCV, RandomizedSearchCV or halving search, or result of cross_validate
        Around an estimator of skdp, alone or as the last step of a pipeline; fitted or not. A
        random search that is not fitted needs an integer as ``random_state``. `cross_validate`
        needs ``return_estimator=True``; with ``return_indices=True`` its price is lower.
    delta : float or None, default=None
        In [0, 1): the delta at which the total is stated; None for that of the fits.
    n_samples : int or None, default=None
        Number of rows. None takes it from the refitted model; without one it is needed, as are
        the following two.
    n_features : int, array of shape (n_candidates,) or None, default=None
        Columns that reach the estimator. None takes it from the refitted model.
    n_outputs : int or None, default=None
        Classes of a classifier, all of them in every training set, or targets of a regressor. None
        takes it from the refitted model; before the fit a regressor has one target, unless stated
        otherwise, and a classifier those of its ``classes``.
    splits : iterable of (train, test) pairs or None, default=None
        The splits, where they do not follow from ``search.cv`` and the number of rows. They are
        taken as public.
    n_groups : int or None, default=None
        Number of groups, where the fits got ``groups``; a record is a group then. None takes it
        from the refitted model.
    groups : array of shape (n_samples,) or None, default=None
        Labels of the rows, where the fits got them and splits are given by row numbers: as
        ``splits``, or in a result of `cross_validate`. ``GroupKFold(shuffle=True)``,
        `GroupShuffleSplit` and the splitters that leave groups out need none.

    Returns
    -------
    PrivacyStatement
        Its releases are those that touch one record, the one that meets most.

    Raises
    ------
    ValueError
        If something that is needed is not known, the estimator is none of skdp's, or candidates
        have different adjacencies: their guarantees cannot be compared, nor added up.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import GridSearchCV
    >>> import skdp
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = GridSearchCV(skdp.DPRidge(epsilon=0.5), {"alpha": [0.1, 1.0, 10.0]})
    >>> round(skdp.privacy_of(search, n_samples=442, n_features=10).epsilon, 2)
    2.0
    >>> round(skdp.privacy_of(search.fit(X, y)).epsilon, 2)
    2.0
    """
    if isinstance(search, Mapping):
        return _of_cross_validation(search, delta, groups)
    # The halving searches are experimental in scikit-learn, hence known by what they have.
    is_halving = hasattr(search, "resource") and hasattr(search, "factor")
    if not (isinstance(search, GridSearchCV | RandomizedSearchCV) or is_halving):
        raise ValueError(
            "privacy_of needs a GridSearchCV, RandomizedSearchCV or halving search, or the "
            f"result of cross_validate(..., return_estimator=True); got {type(search).__name__}. "
            "For fitted models there is total_privacy, and plan() of those that are not."
        )
    given = {"n_samples": n_samples, "n_outputs": n_outputs, "n_groups": n_groups}
    check_counts("privacy_of", **{name: n for name, n in given.items() if n is not None})
    splits = None if splits is None else list(splits)
    if hasattr(search, "cv_results_"):
        unchecked = fitted_search.require_as_fitted(search)
    else:
        n_records = fitted_search.known("n_samples", n_samples) if n_groups is None else n_groups
        if n_outputs is None and not is_classifier(search.estimator):
            n_outputs = 1
        n_splits = _n_splits(_splitter(search, splits), n_records)
        search = fitted_search.rehearsed(search, n_records, n_outputs, n_splits)
        unchecked = (NOT_FITTED,)
    shape = Shape.of(search, n_samples, n_groups, n_features, n_outputs)
    return _of_search(search, shape, delta, _splitter(search, splits), groups, unchecked)


def _of_search(
    search: BaseEstimator,
    shape: Shape,
    delta: float | None,
    splitter: BaseCrossValidator | Splits,
    groups: ArrayLike | None,
    unchecked: tuple[str, ...],
) -> PrivacyStatement:
    """Return the price of a search that was fitted, or rehearsed."""
    n_splits = _n_splits(splitter, shape.n_records)
    if n_splits != search.n_splits_:
        raise ValueError(
            f"privacy_of: cv of this {type(search).__name__} was changed after the fit, or other "
            f"splits were passed: these are {n_splits} splits, the search made "
            f"{search.n_splits_}. Restore cv, or pass splits=..., those of the fit."
        )
    if shape.unit == "row":
        memberships = fitted_search.memberships_of(splitter, shape.n_records)
    else:
        if getattr(search, "resource", None) == "n_samples":
            raise ValueError(
                "privacy_of: this search trains on some of the rows first (resource='n_samples'), "
                "so how many groups are in a training is not known. Use another resource, or "
                "GridSearchCV."
            )
        memberships = fitted_search.memberships_of_groups(splitter, shape.n_records, groups)
    rounds = fitted_search.rounds_of(search, shape)
    fits = [candidate for one in rounds for candidate in one.candidates]
    refitted = rounds.pop() if fitted_search.is_refitted(search) else None
    sizes = {size for membership in memberships for size in membership}
    failed = _failed(rounds[0], sizes, shape)
    plans = {
        size: [plan for one in rounds for parts in one.plans(size, shape) for plan in parts]
        for size in sizes
    }
    delta = _common_delta(itertools.chain(*plans.values()), delta)
    # Any candidate may be the one that is refitted: the most expensive total counts.
    refits = [] if refitted is None else refitted.plans(shape.n_records, shape)
    total, membership = max(
        (_most_expensive(memberships, plans, refit, delta) for refit in refits or [()]),
        key=lambda priced: priced[0].epsilon,
    )
    unchecked += failed
    assumptions = _assumptions(search, rounds, membership, splitter, shape.unit, unchecked)
    return _statement(total, assumptions, fits)


def _failed(first: Round, sizes: set[int], shape: Shape) -> tuple[str, ...]:
    """Say how many candidates failed at each training without a charge; ValueError if all did."""
    sizes = {first.n_records(size) for size in sizes}
    by_candidate = [[one.refusal(size, shape) for size in sizes] for one in first.candidates]
    failed = [refusals[0] for refusals in by_candidate if all(refusals)]
    if len(failed) == len(first.candidates):
        raise ValueError(f"privacy_of: every candidate is refused. The first: {failed[0]}")
    n_candidates = len(first.candidates)
    return (FAILED.format(len(failed), n_candidates, failed[0]),) if failed else ()


def _assumptions(
    search: BaseEstimator,
    rounds: list[Round],
    membership: Membership,
    splitter: BaseCrossValidator | Splits,
    unit: str,
    unchecked: tuple[str, ...],
) -> list[str]:
    """Return what the price of a search rests on."""
    n_trained = sum(one.n_chosen or len(one.candidates) for one in rounds)
    assumptions = [
        SCORES,
        f"{n_trained} candidates are trained on {search.n_splits_} splits each; a record takes "
        f"part in at most {membership.total()} of those trainings.",
        "The refit on all rows is counted as that of the candidate that makes the total largest, "
        "since scores chose it."
        if fitted_search.is_refitted(search)
        else "There was no refit.",
        *unchecked,
    ]
    if any(one.n_chosen for one in rounds):
        assumptions.append(
            "Later rounds are counted as of all candidates that scores might have chosen."
        )
    if type(splitter) in fitted_search.SPLITTERS_BY_LABELS:
        assumptions.append(_warned(LABELS.format(type(splitter).__name__), PrivacyLeakWarning))
    else:
        assumptions.append(f"The splits are public: {unit} numbers alone decide on them.")
    if unit == "group" and not isinstance(splitter, Sequence):
        assumptions.append(SORTED)
    return assumptions


def _of_cross_validation(
    results: Mapping[str, Any], delta: float | None, groups: ArrayLike | None
) -> PrivacyStatement:
    if "estimator" not in results:
        raise ValueError(
            "privacy_of: this result of cross_validate holds no fitted models. Pass "
            "return_estimator=True to it (and return_indices=True, for a lower price)."
        )
    fits = [PrivateFit.of(estimator) for estimator in results["estimator"]]
    if not all(hasattr(fit.model, "privacy_") for fit in fits):
        raise ValueError("privacy_of: some of these fits failed, so what they cost is not known.")
    # Private steps before the estimator read the same rows.
    statements = [[fit.model.privacy_, *fit.statements_before] for fit in fits]
    is_grouped = fits[0].model.privacy_.unit == "group"
    if "indices" in results and not (is_grouped and groups is None):
        trains, tests = results["indices"]["train"], results["indices"]["test"]
        if is_grouped:
            numbers = fitted_search.trainings_of_groups(trains, groups)
            n_records = 1 + max(int(one.max()) for one in numbers)
        else:
            n_records = 1 + max(int(np.max(rows)) for rows in (*trains, *tests))
            numbers = [fitted_search.row_numbers(train, n_records) for train in trains]
        memberships = fitted_search.memberships_among(numbers, range(len(fits)), n_records)
        splits = TAKEN
    else:
        memberships = [Membership(range(len(fits)))]
        splits = (
            "Which records each training used is not known, so that each is counted in all of "
            "them; cross_validate(..., return_indices=True) shows it, with groups if the fits got "
            f"them. {TAKEN}"
        )
    delta = _common_delta(itertools.chain(*statements), delta)
    total, membership = _most_expensive(memberships, dict(enumerate(statements)), (), delta)
    taking_part = f"A record takes part in at most {membership.total()} of {len(fits)} trainings."
    return _statement(total, [SCORES, splits, taking_part], fits)


def _most_expensive(
    memberships: list[Membership],
    plans: Mapping[int, list[PrivacyStatement]],
    refit: tuple[PrivacyStatement, ...],
    delta: float,
) -> tuple[PrivacyStatement, Membership]:
    """Return the largest price of a membership: of its trainings and the refit."""
    priced = []
    order: dict[tuple[ReleaseRecord, ...], int] = {}
    for membership in memberships:
        met = [plan for kind, times in membership.items() for plan in plans[kind] * times]
        met = sorted([*met, *refit], key=lambda plan: order.setdefault(plan.releases, len(order)))
        if met:
            priced.append((compose_statements(met, delta), membership))
    return max(priced, key=lambda pair: pair[0].epsilon)


def _statement(
    total: PrivacyStatement, assumptions: list[str], fits: list[PrivateFit]
) -> PrivacyStatement:
    """Return the total with its assumptions."""
    reading = dict.fromkeys(step for fit in fits for step in fit.steps_that_read_rows)
    if reading:
        assumptions.append(
            f"Steps before the estimator are fitted on the rows: {', '.join(reading)}. That is NOT "
            "part of this price, and through them one record moves all rows; it holds for steps "
            "that were fitted on public data."
        )
    if total.noise_source == "seeded":
        assumptions.append(_warned(SEEDED, NotPrivateWarning))
    return replace(total, assumptions=(*assumptions, *total.assumptions))


def _warned(sentence: str, category: type[PrivacyWarning]) -> str:
    warn(f"privacy_of: {sentence}", category)
    return sentence


def _splitter(search: BaseEstimator, splits: Splits | None) -> BaseCrossValidator | Splits:
    """Return the splitter of a search, or the list of its splits."""
    if splits is not None:
        return splits
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


def _common_delta(statements: Iterable[PrivacyStatement], delta: float | None) -> float:
    """Return the delta of a total; ValueError if the fits make different promises."""
    costly = [statement for statement in statements if statement.releases]
    _common("adjacencies", (one.adjacency for one in costly), PROMISES)
    _common("units of privacy", (one.unit for one in costly), PROMISES)
    if delta is not None:
        return delta
    return _common("deltas", (one.delta for one in costly), "pass the delta of the total")


def _common(what: str, values: Iterable[T], advice: str) -> T:
    distinct = sorted(set(values))
    if len(distinct) > 1:
        raise ValueError(f"privacy_of: the fits have different {what} ({distinct}); {advice}.")
    return distinct[0]
